//! How far the demonstration is: bars on a terminal, a line now and then elsewhere.

use std::{
    io::IsTerminal as _,
    sync::Arc,
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::{process::Process, tally::Tally};
use crate::cli::exit::note;

/// Between two lines where nobody watches.
const LINE_EVERY: Duration = Duration::from_secs(4);

/// Shows the tallies of all processes.
pub(super) struct Progress {
    tallies: Vec<(Process, Arc<Tally>)>,
    bars: Vec<ProgressBar>,
    last_line: Instant,
}

impl Progress {
    /// Nothing done yet.
    pub(super) fn new(tallies: &[(Process, Arc<Tally>)]) -> Self {
        let bars = if std::io::stderr().is_terminal() { bars(tallies) } else { Vec::new() };
        Self { tallies: tallies.to_vec(), bars, last_line: Instant::now() }
    }

    /// Shows how far it is now.
    pub(super) fn show(&mut self) {
        if self.bars.is_empty() && self.last_line.elapsed() < LINE_EVERY {
            return;
        }
        self.last_line = Instant::now();
        let sums: Vec<_> = self.tallies.iter().map(|(process, tally)| (process.caller, tally.sums())).collect();
        for (bar, (_, sums)) in self.bars.iter().zip(&sums) {
            bar.set_length(sums.enqueued as u64);
            bar.set_position((sums.acked + sums.dead) as u64);
        }
        if self.bars.is_empty() {
            let parts =
                sums.iter().map(|(caller, sums)| format!("{caller} {} of {}", sums.acked + sums.dead, sums.enqueued));
            note(&parts.collect::<Vec<_>>().join(", "));
        }
    }

    /// Leaves the terminal as it was.
    pub(super) fn finish(self) {
        for bar in self.bars {
            bar.finish_and_clear();
        }
    }
}

fn bars(tallies: &[(Process, Arc<Tally>)]) -> Vec<ProgressBar> {
    let together = MultiProgress::new();
    let style = ProgressStyle::with_template("{msg:<22} {bar:40} {pos:>6} of {len} jobs settled")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    tallies
        .iter()
        .map(|(process, _)| together.add(ProgressBar::new(0).with_style(style.clone()).with_message(process.caller)))
        .collect()
}
