//! Calls that do their work in steps and report after each one.

use tonic::Streaming;

use super::{Exit, broker::Failed, output::progress::Progress, signals::Signals};

/// The reports of one call, until its end or a signal.
pub(super) struct Steps<R> {
    frames: Streaming<R>,
    signals: Signals,
    progress: Progress,
    /// What was done to jobs, in the words of the command: `removed`.
    verb: &'static str,
    so_far: u64,
}

impl<R> Steps<R> {
    /// Shows them as jobs that are `verb`.
    pub(super) fn of(frames: Streaming<R>, verb: &'static str, unit: &'static str) -> Result<Self, Failed> {
        Ok(Self { frames, signals: Signals::listen()?, progress: Progress::new(None, unit), verb, so_far: 0 })
    }

    /// The next report, of which `count` says how many jobs were done so far; nothing at the end. A failure, or a signal, says what
    /// had been done by then. A signal leaves the call, so the broker ends after the step that it is in.
    pub(super) async fn next(&mut self, count: impl FnOnce(&R) -> u64) -> Result<Option<R>, Failed> {
        let frame = tokio::select! {
            frame = self.frames.message() => frame.map_err(|status| self.after(status.into()))?,
            signal = self.signals.next() => {
                let ended = format!("ended by {signal}; the step that was under way may have gone through: run the same command again");
                return Err(self.after(Failed::new(Exit::Interrupted, ended)));
            }
        };
        if let Some(frame) = &frame {
            self.so_far = count(frame);
            self.progress.at(self.so_far);
        }
        Ok(frame)
    }

    fn after(&self, failed: Failed) -> Failed {
        match self.so_far {
            0 => failed,
            jobs => failed.after(&format!("{jobs} jobs were {}", self.verb)),
        }
    }
}
