//! Who is there: what replicas write about themselves, and what operators read of it.

use super::{
    Call, Store,
    engine::{Attendance, Attended, Page, Report, StreamRecord, StreamsWalk},
    statement::Statement,
};
use crate::model::{Caller, Failure, QueueName, StreamId};

impl Store {
    /// See [`super::engine::Attending::attend`].
    pub async fn attend(&self, mut report: Report) -> Result<Attended, Failure> {
        let caller = Caller::broker("presence");
        report.absent = self.inner.options.absent_after;
        self.single(&self.own(caller.clone()), Statement::writing("attend"), move |session| {
            Box::pin(async move { session.attend(&caller, &report).await })
        })
        .await
    }

    /// Takes this replica out.
    pub async fn leave(&self) -> Result<(), Failure> {
        let (caller, replica) = (Caller::broker("presence"), self.inner.replica);
        self.single(&self.own(caller.clone()), Statement::writing("leave"), move |session| {
            Box::pin(async move { session.leave(&caller, replica).await })
        })
        .await
    }

    /// What replicas say of these queues, summed; one for each, in order: streams, credit that is free, and rates over the
    /// last minute. As of what each wrote down last.
    pub async fn attendance(&self, call: &Call, queues: Vec<QueueName>) -> Result<Vec<Attendance>, Failure> {
        let (caller, absent) = (call.caller.clone(), self.inner.options.absent_after);
        self.single(call, Statement::reading("attendance"), move |session| {
            Box::pin(async move { session.attendance(&caller, &queues, absent).await })
        })
        .await
    }

    /// Lease streams of all replicas, as each wrote them down last.
    pub async fn list_streams(
        &self,
        call: &Call,
        mut walk: StreamsWalk,
    ) -> Result<Page<StreamRecord, StreamId>, Failure> {
        let caller = call.caller.clone();
        walk.absent = self.inner.options.absent_after;
        self.single(call, Statement::reading("list_streams"), move |session| {
            Box::pin(async move { session.list_streams(&caller, &walk).await })
        })
        .await
    }
}
