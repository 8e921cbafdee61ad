//! What commands write to stderr, passed on to ours.

use std::{io::Write as _, time::Duration};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

/// Pieces on their way.
const AHEAD: usize = 64;
/// How long a reader of stderr that is stuck is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(1);

enum Piece {
    Text(Bytes),
    Flush(oneshot::Sender<()>),
}

/// Passes pieces on by a thread of its own: whoever reads our stderr may be slow, and leases are extended meanwhile.
pub(super) struct Relay(mpsc::Sender<Piece>);

impl Relay {
    /// Begins.
    pub(super) fn start() -> Self {
        let (sender, mut pieces) = mpsc::channel(AHEAD);
        std::thread::spawn(move || {
            while let Some(piece) = pieces.blocking_recv() {
                match piece {
                    // where it cannot be written there is nobody to tell
                    Piece::Text(text) => drop(std::io::stderr().lock().write_all(&text)),
                    Piece::Flush(done) => drop(done.send(())),
                }
            }
        });
        Self(sender)
    }

    /// Passes a piece on, and waits while there are too many.
    pub(super) async fn pass(&self, text: Bytes) {
        // the thread ends with the program
        drop(self.0.send(Piece::Text(text)).await);
    }

    /// Passes a line on, unless there are too many pieces: it is not worth waiting for.
    pub(super) fn note(&self, line: &str) {
        drop(self.0.try_send(Piece::Text(format!("{line}\n").into())));
    }

    /// Waits until all is written that was passed on before, but not for long.
    pub(super) async fn flush(&self) {
        let (done, written) = oneshot::channel();
        let flushed = async {
            if self.0.send(Piece::Flush(done)).await.is_ok() {
                written.await.ok();
            }
        };
        tokio::time::timeout(PATIENCE, flushed).await.ok();
    }
}
