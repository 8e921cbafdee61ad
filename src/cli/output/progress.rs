//! How far something is: on a terminal alone.

use std::{io::IsTerminal as _, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line at the end of a terminal that is gone when dropped. Elsewhere it is nothing.
pub(in crate::cli) struct Progress(ProgressBar);

impl Progress {
    /// How many of `total`, where that is known, in `unit`s.
    pub(in crate::cli) fn new(total: Option<u64>, unit: &'static str) -> Self {
        let visible = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(
            total,
            if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
        );
        let template = match (total, unit) {
            (Some(_), "bytes") => "{bar:40} {bytes} of {total_bytes}, {eta} left, {msg}".to_owned(),
            (Some(_), unit) => format!("{{bar:40}} {{pos}} of {{len}} {unit}, {{eta}} left"),
            (None, unit) => format!("{{spinner}} {{pos}} {unit}, {{per_sec}}"),
        };
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        if visible {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        Self(bar)
    }

    /// So far.
    pub(in crate::cli) fn at(&self, position: u64) {
        self.0.set_position(position);
    }

    /// A word beside the bar.
    pub(in crate::cli) fn say(&self, text: String) {
        self.0.set_message(text);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
