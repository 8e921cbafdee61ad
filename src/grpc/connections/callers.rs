//! Callers' lane time and budgets.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::stream;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use super::{ConnectionsApi, Frames};
use crate::{
    grpc::{
        audit::Audit,
        convert::{self, Beside},
    },
    model::{Failure, Reason},
    store::{Call, Window},
    v1,
};

/// Between two snapshots of a watcher.
const BETWEEN: Duration = Duration::from_secs(1);

/// What a stream of snapshots goes by.
pub(super) struct Watch {
    /// Until the client's own deadline.
    pub(super) deadline: Option<Instant>,
    /// Ends the stream when its connection takes no new calls.
    pub(super) ending: CancellationToken,
}

/// A stream of snapshots.
struct Watching {
    api: ConnectionsApi,
    window: Window,
    statements: bool,
    ticks: tokio::time::Interval,
    watch: Watch,
    _room: OwnedSemaphorePermit,
}

impl ConnectionsApi {
    pub(super) fn do_list_callers(&self, request: v1::ListCallersRequest) -> Result<v1::ListCallersResponse, Failure> {
        let window = convert::window(request.window)?;
        Ok(v1::ListCallersResponse { snapshot: Some(self.snapshot(window, request.include_statements)) })
    }

    pub(super) fn do_watch_callers(
        &self,
        watch: Watch,
        request: v1::WatchCallersRequest,
    ) -> Result<Frames<v1::WatchCallersResponse>, Failure> {
        let window = convert::window(request.window)?;
        let room = Arc::clone(&self.watchers).try_acquire_owned().map_err(|_| {
            let message = "this replica serves as many streams of WatchCallers as it may; end another one";
            Failure::not_applied(Reason::StreamLimit, message).about(format!("replica:{}", self.replica))
        })?;
        let mut ticks = interval(BETWEEN);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let statements = request.include_statements;
        let watching = Watching { api: self.clone(), window, statements, ticks, watch, _room: room };
        Ok(Box::pin(stream::unfold(watching, |mut watching| async {
            let snapshot = watching.next().await?;
            Some((Ok(v1::WatchCallersResponse { snapshot: Some(snapshot) }), watching))
        })))
    }

    pub(super) async fn do_set_caller_budget(
        &self,
        call: &Call,
        audit: Audit,
        request: &v1::SetCallerBudgetRequest,
    ) -> Result<v1::SetCallerBudgetResponse, Failure> {
        let audit = audit.about(convert::BudgetChange(request));
        let answer = async {
            let (of, budget) = convert::new_budget(request)?;
            let held = self.store.set_budget(call, &of, budget).await?;
            Ok(v1::SetCallerBudgetResponse { budget: held.as_ref().map(convert::budget_shown) })
        };
        audit.end(answer.await, |_| String::new())
    }

    fn snapshot(&self, window: Window, statements: bool) -> v1::CallerSnapshot {
        let (at_work, idle) = self.store.lanes();
        let beside = Beside {
            replica: self.replica.to_string(),
            connected: at_work + idle,
            waiting: self.store.waiting_by_caller(),
            budgets: Arc::clone(&self.store.budgets().borrow()),
        };
        convert::snapshot(&self.store.lane_report(window, statements), beside)
    }
}

impl Watching {
    /// The next snapshot; none where the stream is to end.
    async fn next(&mut self) -> Option<v1::CallerSnapshot> {
        let over = async {
            match self.watch.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.watch.ending.cancelled() => None,
            () = over => None,
            _ = self.ticks.tick() => Some(self.api.snapshot(self.window, self.statements)),
        }
    }
}
