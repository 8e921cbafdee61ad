//! What commands print: tables for people, or JSON for programs. Data goes to stdout.
//!
//! With `--json` every thing is one JSON object on a line of its own. Fields are named as in the contract; instants are RFC 3339
//! texts, lengths of time numbers of seconds (`…_seconds`), states and statuses words in lower case; what is absent is left
//! out or null. Fields are only ever added.

pub(super) mod caller;
pub(super) mod confirm;
pub(super) mod consumer;
pub(super) mod escape;
pub(super) mod facts;
pub(super) mod horizon;
pub(super) mod job;
pub(super) mod progress;
pub(super) mod queue;
pub(super) mod session;
pub(super) mod stock;
pub(super) mod table;
pub(super) mod time;

use std::io::{IsTerminal as _, Write as _};

use clap::Args;
use serde::Serialize;

use self::table::Table;
use super::{Exit, broker::Failed};

/// How data is printed.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct Output {
    /// Print JSON, one object on each line
    #[arg(long)]
    pub(super) json: bool,
}

impl Output {
    /// Prints one thing as JSON, on a line.
    pub(super) fn object(value: &impl Serialize) -> Result<(), Failed> {
        let text = serde_json::to_string(value)
            .map_err(|error| Failed::new(Exit::Failure, format!("no JSON can be made of the answer: {error}")))?;
        Self::line(&escape::json(&text))
    }

    /// Prints a line, at once.
    pub(super) fn line(text: &str) -> Result<(), Failed> {
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{text}")?;
        stdout.flush()?;
        Ok(())
    }

    /// Prints a table; nothing but a note where it has no rows.
    pub(super) fn table(table: &Table, nothing: &str) -> Result<(), Failed> {
        if table.is_empty() {
            super::exit::note(&nothing);
            return Ok(());
        }
        Self::line(table.render(Style::of_stdout()).trim_end())
    }
}

/// Whether text is made up for eyes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// For files, pipes, and people who do not want colours.
    Plain,
    /// For terminals.
    Colour,
}

impl Style {
    /// What stdout can show: colours on a terminal, unless `NO_COLOR` is set or the terminal is dumb.
    pub(super) fn of_stdout() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|value| value != "dumb");
        if wanted && std::io::stdout().is_terminal() { Self::Colour } else { Self::Plain }
    }

    /// Text that stands out, such as a heading.
    pub(super) fn bold(self, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("\u{1b}[1m{text}\u{1b}[0m"),
        }
    }
}
