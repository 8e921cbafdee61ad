//! The message of a call while it is read.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Sleep, sleep_until},
};
use tonic::{Status, body::Body};

use super::RequestId;
use crate::{
    grpc::status,
    model::{Failure, Reason},
};

/// A message that must be complete by its call's deadline, and whose bytes count against a bound on all messages that are
/// not complete yet: a client that sends headers and then nothing, or very slowly, costs little and not for long.
pub(super) struct ReadBody {
    body: Body,
    deadline: Instant,
    /// Only where the message did not come at once: most do, and a timer costs more than reading them.
    alarm: Option<Pin<Box<Sleep>>>,
    id: RequestId,
    unread: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

impl ReadBody {
    /// `body` of call `id`; its bytes come out of `unread`.
    pub(super) fn new(body: Body, deadline: Instant, id: RequestId, unread: Arc<Semaphore>) -> Self {
        Self { body, deadline, alarm: None, id, unread, held: None }
    }

    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline;
        self.alarm.get_or_insert_with(|| Box::pin(sleep_until(deadline.into()))).as_mut().poll(cx)
    }

    fn hold(&mut self, bytes: usize) -> Result<(), Failure> {
        let more = u32::try_from(bytes).ok().and_then(|bytes| self.unread.clone().try_acquire_many_owned(bytes).ok());
        match (more, &mut self.held) {
            (None, _) => {
                return Err(Failure::not_applied(Reason::Overloaded, "too many incomplete requests; try again later"));
            }
            (Some(more), Some(held)) => held.merge(more),
            (Some(more), held @ None) => *held = Some(more),
        }
        Ok(())
    }
}

impl http_body::Body for ReadBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                Poll::Ready(Some(match this.hold(bytes) {
                    Ok(()) => Ok(frame),
                    Err(failure) => Err(status::of(&failure, this.id, None)),
                }))
            }
            Poll::Pending if this.poll_alarm(cx).is_ready() => {
                let late = Failure::not_applied(Reason::Deadline, "the request was not complete at its deadline");
                Poll::Ready(Some(Err(status::of(&late, this.id, None))))
            }
            ended_or_pending => ended_or_pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
