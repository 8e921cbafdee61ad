//! One consumer's stream, as the HTTP/2 layer sees it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use futures_util::Stream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{buffer::Buffer, frame::Frame, inbox::Inbox};
use crate::model::{Caller, Failure, QueueName, StreamNumber};

/// What a consumer asks for; checked against its limits.
#[derive(Debug, Clone)]
pub struct StreamSpec {
    /// 1 to 32, each once.
    pub queues: Vec<QueueName>,
    /// For operators.
    pub consumer: String,
    /// The business process that claims run for.
    pub caller: Caller,
    /// Leases outstanding at most, at least 1.
    pub max_in_flight: u32,
    /// Payload bytes outstanding at most; no bound where 0.
    pub max_in_flight_bytes: u64,
    /// The queue's setting where absent.
    pub lease_duration: Option<Duration>,
    /// End once nothing is ready and nothing is outstanding.
    pub stop_when_empty: bool,
    /// When the consumer stops waiting.
    pub deadline: Option<Instant>,
    /// Cancelled when the connection is old: the stream says Drain and ends.
    pub connection_closing: CancellationToken,
    /// Where it comes from, for operators.
    pub peer: String,
}

/// A stream that enters.
pub(super) struct Opening {
    pub(super) number: StreamNumber,
    pub(super) spec: StreamSpec,
    pub(super) buffer: Arc<Buffer>,
    pub(super) ends_at: Instant,
}

/// Frames for one consumer. A job is sent when it is taken from here; what was not when this is dropped goes back at once,
/// without an attempt.
pub struct LeaseStream {
    number: StreamNumber,
    buffer: Arc<Buffer>,
    inbox: Arc<Inbox>,
    frame_bytes: usize,
    closing: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    ended: bool,
}

impl LeaseStream {
    pub(super) fn new(
        number: StreamNumber,
        buffer: Arc<Buffer>,
        inbox: Arc<Inbox>,
        frame_bytes: usize,
        closing: CancellationToken,
    ) -> Self {
        let closing = Some(Box::pin(closing.cancelled_owned()));
        Self { number, buffer, inbox, frame_bytes, closing, ended: false }
    }
}

impl Stream for LeaseStream {
    type Item = Result<Frame, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        if this.closing.as_mut().is_some_and(|closing| closing.as_mut().poll(context).is_ready()) {
            this.closing = None;
            this.inbox.tell(|mail| mail.closing.push(this.number));
        }
        let (polled, note) = this.buffer.poll(context.waker(), Instant::now(), this.frame_bytes);
        if note.taken || !note.stale.is_empty() {
            this.inbox.tell(|mail| {
                if note.taken {
                    mail.taken.push(this.number);
                }
                if !note.stale.is_empty() {
                    mail.stale.push((this.number, note.stale));
                }
            });
        }
        this.ended = matches!(polled, Poll::Ready(None | Some(Err(_))));
        polled
    }
}

impl Drop for LeaseStream {
    fn drop(&mut self) {
        let unsent = self.buffer.close();
        self.inbox.tell(|mail| mail.closed.push((self.number, unsent)));
        self.inbox.leave();
    }
}
