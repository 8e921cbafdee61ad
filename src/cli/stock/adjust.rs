//! `leasehold stock adjust`.

use std::{
    fs::File,
    io::{BufRead, BufReader, IsTerminal as _, Read as _},
    path::{Path, PathBuf},
};

use clap::{ArgGroup, Args};

use super::given;
use crate::{
    cli::{
        Exit,
        broker::{Broker, Failed, Target},
        exit::note,
        output::{Output, progress::Progress},
    },
    v1::{AdjustStockRequest, AdjustStockResponse, StockAdjustment},
};

/// Adjustments of one call.
const BATCH: usize = 1_000;
/// A longer line holds no two names and a number.
const MAX_LINE: u64 = 1_024;

/// `leasehold stock adjust`.
#[derive(Debug, Args)]
#[command(
    after_help = "All adjustments of the command line are made, or none. Lines of a file go in batches of 1000, each whole or not at \
all, under the references REFERENCE:1, REFERENCE:2 and so on: after an interruption the same command on the same file makes what is \
missing, and nothing twice. The names in ITEM@LOCATION=UNITS are divided at the last '@' and the last '='; names that hold such signs \
themselves are safe in a file.\n\nWhat is on hand never falls below what is held."
)]
#[command(group = ArgGroup::new("what").args(["adjustments", "file"]).required(true))]
pub(in crate::cli) struct Adjust {
    /// Units to add, or to take where negative
    #[arg(value_name = "ITEM@LOCATION=UNITS", value_parser = given::adjustment)]
    adjustments: Vec<StockAdjustment>,
    /// Adjustments are the lines of this file, or of stdin for '-': item, location and units, with tabs between them
    #[arg(long, value_name = "FILE", requires = "reference")]
    file: Option<PathBuf>,
    /// Names what is done, such as a delivery: the same reference again changes nothing; a random one where it is not given
    #[arg(long, value_name = "KEY")]
    reference: Option<String>,
    /// Why, kept in the ledger
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Adjust {
    pub(super) async fn run(self) -> Result<Exit, Failed> {
        let broker = self.target.connect().await?;
        if let Some(file) = &self.file {
            return self.all_lines(&broker, file).await;
        }
        let reference = self.reference.clone().unwrap_or_else(|| format!("cli-{:032x}", rand::random::<u128>()));
        let answer = self.send(&broker, self.adjustments.clone(), reference.clone()).await;
        let answer = answer.map_err(|failed| again(failed, &reference))?;
        if answer.duplicate {
            note(&format_args!("{reference} was known: nothing was changed"));
        }
        self.output.stocks(&answer.stocks)?;
        Ok(Exit::Ok)
    }

    async fn all_lines(&self, broker: &Broker, file: &Path) -> Result<Exit, Failed> {
        let reference = self.reference.as_deref().unwrap_or_default();
        let mut lines = open(file)?;
        let progress = Progress::new(None, "stocks adjusted");
        let (mut adjusted, mut known, mut batch) = (0_usize, 0_usize, 0_usize);
        loop {
            let share = read(&mut lines, adjusted).map_err(|failed| so_far(failed, adjusted))?;
            if share.is_empty() {
                break;
            }
            batch += 1;
            let count = share.len();
            let sent = self.send(broker, share, format!("{reference}:{batch}")).await;
            let answer = sent.map_err(|failed| so_far(failed, adjusted))?;
            adjusted += count;
            known += if answer.duplicate { count } else { 0 };
            progress.at(adjusted as u64);
            if self.output.json {
                self.output.stocks(&answer.stocks)?;
            }
        }
        drop(progress);
        let twice = if known > 0 { format!(", {known} of them were known") } else { String::new() };
        note(&format_args!("adjusted {adjusted} stocks{twice}"));
        Ok(Exit::Ok)
    }

    async fn send(
        &self,
        broker: &Broker,
        adjustments: Vec<StockAdjustment>,
        reference: String,
    ) -> Result<AdjustStockResponse, Failed> {
        let request = AdjustStockRequest { adjustments, reference, reason: self.reason.clone() };
        Ok(broker.stock().adjust_stock(broker.call(request)).await?.into_inner())
    }
}

/// What was done by then.
fn so_far(failed: Failed, adjusted: usize) -> Failed {
    match adjusted {
        0 => failed,
        lines => {
            failed.after(&format!("lines 1 to {lines} were adjusted; the same command on the same file does the rest"))
        }
    }
}

/// How to go on where it is not known what became of it.
fn again(failed: Failed, reference: &str) -> Failed {
    if failed.exit == Exit::Unknown {
        return failed.after(&format!("it was sent with --reference {reference}, with which it is safe to repeat"));
    }
    failed
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, Failed> {
    if path.as_os_str() == "-" {
        if std::io::stdin().is_terminal() {
            note(&"item, location and units, with tabs between them, until Ctrl-D:");
        }
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let file = File::open(path).map_err(|error| Failed::new(Exit::Failure, format!("{}: {error}", path.display())))?;
    Ok(Box::new(BufReader::new(file)))
}

/// The next lines, of which `before` were read already.
fn read(lines: &mut Box<dyn BufRead>, before: usize) -> Result<Vec<StockAdjustment>, Failed> {
    let mut batch = Vec::new();
    while batch.len() < BATCH {
        let mut line = String::new();
        let read = lines.take(MAX_LINE).read_line(&mut line);
        let number = before + batch.len() + 1;
        let wrong = |why: &dyn std::fmt::Display| Failed::new(Exit::Invalid, format!("line {number}: {why}"));
        if read.map_err(|error| wrong(&error))? == 0 {
            break;
        }
        batch.push(given::row(line.trim_end_matches(['\n', '\r'])).map_err(|why| wrong(&why))?);
    }
    Ok(batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &'static str) -> Box<dyn BufRead> {
        Box::new(text.as_bytes())
    }

    #[test]
    fn a_line_that_is_wrong_is_named_by_its_number() {
        let mut two = lines("a\tb\t1\r\na\tb\n");
        let failed = read(&mut two, 40).expect_err("the second line has no units");
        assert!(failed.to_string().starts_with("line 42: "), "{failed}");
        assert_eq!(read(&mut lines("a\tb\t1\nc\td\t-2"), 0).expect("two lines").len(), 2);
    }

    #[test]
    fn a_file_without_line_ends_is_not_read_to_its_end() {
        let long = Box::leak("x".repeat(1 << 20).into_boxed_str());
        assert_eq!(read(&mut lines(long), 0).expect_err("no tabs").exit, Exit::Invalid);
    }
}
