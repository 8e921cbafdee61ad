//! A purge on the wire.

use futures_util::{Stream, stream};
use tonic::Status;

use crate::{
    dispatch::Dispatch,
    grpc::{
        convert,
        steps::{Stepped, Steps},
    },
    model::{Count, Failure},
    store::{Call, Purge, Store},
    v1,
};

/// The one frame of a purge that only counts.
pub(super) fn counted(count: Count) -> impl Stream<Item = Result<v1::PurgeQueueResponse, Status>> + Send {
    let frame = v1::PurgeQueueResponse { removed: 0, done: true, would_remove: Some(convert::count(count)) };
    stream::iter([Ok(frame)])
}

/// A purge in steps.
pub(super) struct PurgeSteps {
    store: Store,
    dispatch: Dispatch,
    purge: Purge,
}

impl PurgeSteps {
    pub(super) fn new(store: Store, dispatch: Dispatch, purge: Purge) -> Self {
        Self { store, dispatch, purge }
    }
}

impl Steps for PurgeSteps {
    type Frame = v1::PurgeQueueResponse;

    async fn step(&mut self, call: &Call) -> Result<Stepped<Self::Frame>, Failure> {
        let progress = self.store.purge(call, &mut self.purge).await?;
        if progress.readied {
            self.dispatch.ready(&[(self.purge.queue(), None)]);
        }
        let frame = v1::PurgeQueueResponse { removed: progress.removed, done: progress.done, would_remove: None };
        Ok(Stepped { frame, next: (!progress.done).then_some(progress.pause) })
    }

    fn done(&self) -> String {
        format!("removed={}", self.purge.removed())
    }

    fn changed(&self) -> bool {
        self.purge.removed() > 0
    }
}
