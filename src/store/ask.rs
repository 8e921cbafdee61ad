//! The asker's side of a request: hand it over, wait, and know what the deadline means.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use futures_util::future::BoxFuture;
use tokio::{
    sync::oneshot,
    time::{sleep_until, timeout_at},
};

use super::{
    Call, Store,
    engine::Session,
    error::EngineError,
    line::{Kind, Queued as _},
    patience::{Patience, Verdict},
    request::{Ask, Request, Single, Ticket},
    retry::{Conflicts, TRIES, pause},
    statement::Statement,
};
use crate::{
    model::{Caller, Failure, Reason},
    telemetry::spans::Producers,
};

impl Store {
    /// Asks for `items`, which may run merged with others of their kind and caller.
    pub(super) async fn ask<I, A>(
        &self,
        call: &Call,
        items: Vec<I>,
        bytes: usize,
        request: fn(Ask<I, A>) -> Request,
    ) -> Result<Vec<A>, Failure> {
        in_time(call)?;
        let (ticket, (reply, answer)) = (Ticket::new(), oneshot::channel());
        let ask = Ask {
            items,
            bytes,
            ticket: ticket.clone(),
            queued_at: Instant::now(),
            origin: self.inner.counts.origin(),
            reply,
        };
        let request = request(ask);
        let kind = request.kind();
        self.inner.lanes.submit(&call.caller, request)?;
        self.answer(call, kind, &ticket, answer).await
    }

    /// Runs one act on its own; again where it met a conflict, up to three times.
    pub(super) async fn single<A, F>(&self, call: &Call, statement: Statement, act: F) -> Result<A, Failure>
    where
        A: Send + 'static,
        F: for<'a> FnOnce(&'a mut dyn Session) -> BoxFuture<'a, Result<A, EngineError>> + Clone + Send + 'static,
    {
        self.single_for(call, statement, Arc::default(), act).await
    }

    /// The same for an act that says whose jobs it got.
    pub(super) async fn single_for<A, F>(
        &self,
        call: &Call,
        statement: Statement,
        producers: Arc<OnceLock<Producers>>,
        act: F,
    ) -> Result<A, Failure>
    where
        A: Send + 'static,
        F: for<'a> FnOnce(&'a mut dyn Session) -> BoxFuture<'a, Result<A, EngineError>> + Clone + Send + 'static,
    {
        in_time(call)?;
        let (ticket, (reply, answer)) = (Ticket::new(), oneshot::channel());
        let conflicts = Conflicts::default();
        let met = conflicts.clone();
        let single = Single {
            act: Box::new(move |session| {
                Box::pin(async move {
                    let mut trial = 1;
                    let result = loop {
                        let result = act.clone()(&mut *session).await;
                        if !matches!(result, Err(EngineError::Conflict(_))) {
                            break result;
                        }
                        met.met();
                        if trial == TRIES || reply.is_closed() {
                            break result;
                        }
                        pause(trial).await;
                        trial += 1;
                    };
                    let for_the_lane = result.as_ref().map(|_| ()).map_err(Clone::clone);
                    // An asker that stopped waiting has said what it knows already.
                    drop(reply.send(result));
                    for_the_lane
                })
            }),
            statement,
            ticket: ticket.clone(),
            queued_at: Instant::now(),
            origin: self.inner.counts.origin(),
            conflicts,
            producers,
        };
        let request = Request::Single(single);
        let kind = request.kind();
        self.inner.lanes.submit(&call.caller, request)?;
        self.answer(call, kind, &ticket, answer).await
    }

    async fn answer<A>(
        &self,
        call: &Call,
        kind: Kind,
        ticket: &Ticket,
        mut answer: oneshot::Receiver<Result<A, EngineError>>,
    ) -> Result<A, Failure> {
        let mut patience =
            Patience::new(Instant::now(), self.inner.options.acquire_timeout, self.inner.budgets.of(&call.caller));
        while let Some(until) = patience.ends().filter(|until| *until < call.deadline) {
            tokio::select! {
                answered = &mut answer => return self.read(answered),
                () = sleep_until(until.into()) => {}
            }
            let verdict = patience.verdict(until, || self.inner.lanes.is_held_back(&call.caller, kind));
            if verdict == Verdict::Wait {
                continue;
            }
            if !ticket.withdraw() {
                break;
            }
            // What a budget refuses is counted as that: the database had lanes.
            if verdict == Verdict::OverBudget {
                return Err(self.over_budget(&call.caller));
            }
            self.inner.counts.timed_out(&call.caller);
            return Err(self.no_lane());
        }
        match timeout_at(call.deadline.into(), answer).await {
            Ok(answered) => self.read(answered),
            Err(_) if ticket.withdraw() => {
                self.inner.counts.timed_out(&call.caller);
                Err(too_late())
            }
            Err(_) => Err(Failure::unknown("the deadline passed while the statement was under way")),
        }
    }

    /// What an asker hears whose turn did not come before its deadline, or before it would have had to have a lane.
    pub(super) fn not_in_time(&self, call: &Call) -> Failure {
        if Instant::now() < call.deadline { self.no_lane() } else { too_late() }
    }

    fn over_budget(&self, caller: &Caller) -> Failure {
        self.inner.lanes.ledger.refused(caller);
        self.inner.counts.refused(caller);
        Failure::not_applied(
            Reason::CallerBudget,
            format!("'{caller}' has as much of the database connections as its budget allows; try again later"),
        )
        .about(caller.as_str())
    }

    fn no_lane(&self) -> Failure {
        if self.inner.lanes.is_available() {
            Failure::not_applied(Reason::Overloaded, "no database connection was free in time; try again later")
        } else {
            Failure::not_applied(Reason::DatabaseUnavailable, "the broker has no connection to its database")
        }
    }

    fn read<A>(&self, answered: Result<Result<A, EngineError>, oneshot::error::RecvError>) -> Result<A, Failure> {
        match answered {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                self.inner.counts.failed(&error);
                match &error {
                    EngineError::Bug(_) => tracing::error!(%error, "a statement's answer makes no sense"),
                    EngineError::KeyReused { .. } | EngineError::Refused(_) => {
                        tracing::debug!(%error, "a statement failed");
                    }
                    _ => tracing::warn!(%error, "a statement failed"),
                }
                Err(error.into())
            }
            // The lane gave up on the act and dropped it.
            Err(_) => Err(Failure::unknown("the database did not answer in time")),
        }
    }
}

/// A lane may be faster than the asker's look at its clock, so what is late already is not handed over.
fn in_time(call: &Call) -> Result<(), Failure> {
    if Instant::now() < call.deadline { Ok(()) } else { Err(too_late()) }
}

fn too_late() -> Failure {
    Failure::not_applied(Reason::Deadline, "the deadline passed before a database connection took the request")
}
