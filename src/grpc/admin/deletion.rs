//! A deletion on the wire.

use crate::{
    dispatch::Dispatch,
    grpc::steps::{Stepped, Steps},
    model::{Failure, QueueName},
    store::{Call, Deletion, Store},
    v1,
};

/// The deletion of a queue in steps.
pub(super) struct DeleteSteps {
    store: Store,
    dispatch: Dispatch,
    name: QueueName,
    deletion: Deletion,
    begun: bool,
}

impl DeleteSteps {
    pub(super) fn new(store: Store, dispatch: Dispatch, name: QueueName, deletion: Deletion) -> Self {
        Self { store, dispatch, name, deletion, begun: false }
    }

    /// The dispatcher here hears at once that the queue was closed, or opened again.
    async fn tell(&self, call: &Call) {
        match self.store.queue_now(call, &self.name).await {
            Ok(Some(row)) => self.dispatch.changed(row),
            Ok(None) => self.dispatch.deleted(self.name.clone()),
            Err(failure) => tracing::debug!(%failure, "the dispatcher reads the queue's state a little later"),
        }
    }
}

impl Steps for DeleteSteps {
    type Frame = v1::DeleteQueueResponse;

    async fn step(&mut self, call: &Call) -> Result<Stepped<Self::Frame>, Failure> {
        let progress = self.store.delete_queue(call, &mut self.deletion).await;
        if !std::mem::replace(&mut self.begun, true) || progress.as_ref().map_or(true, |progress| progress.done) {
            self.tell(call).await;
        }
        let progress = progress?;
        let frame = v1::DeleteQueueResponse { removed: progress.removed, done: progress.done };
        Ok(Stepped { frame, next: (!progress.done).then_some(progress.pause) })
    }

    fn done(&self) -> String {
        format!("removed={}", self.deletion.removed())
    }

    fn changed(&self) -> bool {
        self.deletion.removed() > 0
    }
}
