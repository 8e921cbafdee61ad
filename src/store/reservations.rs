//! Reservations: the fast way, then the slow one; their ends; what upkeep asks for.

use std::{sync::Arc, time::Duration};

use super::{
    Call, Store, Stored,
    engine::{
        Cart, End, Ended, EnqueuedRow, JobRow, Pruned, ReservationRef, ReservationRow, Reserved, ShortLine, Swept,
    },
    jobs::Again,
    statement::Statement,
};
use crate::{
    model::{
        Caller, Failure, Key, NewJob, QueueId, QueueName, Reason, ReservationId, ReservationLine, ReservationState,
        Shortage, StockKey, Timestamp, reservation::lines_hash,
    },
    telemetry::metrics::ReserveResult,
};

/// What is to be held. Its parts have been checked against their limits.
#[derive(Debug, Clone)]
pub struct NewReservation {
    /// Names it.
    pub reference: Key,
    /// At least one, each key once.
    pub lines: Vec<ReservationLine>,
    /// How long it holds them.
    pub time_to_live: Duration,
    /// Stored with it.
    pub jobs: Vec<NewJob>,
    /// Stored when it expires; without idempotency keys and fixed starts.
    pub jobs_on_expiry: Vec<NewJob>,
}

/// A reservation, and what came with the act that asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// As it is.
    pub row: ReservationRow,
    /// The same act was done before; nothing was done now.
    pub duplicate: bool,
    /// Jobs that were stored now.
    pub stored: Vec<Stored>,
}

impl Store {
    /// Holds all lines or none. What another act is about to free is waited for, for a second at most.
    pub async fn reserve(&self, call: &Call, new: NewReservation) -> Result<Reservation, Failure> {
        let reserved = self.hold(call, new).await;
        if let Some(metrics) = &self.inner.options.metrics {
            metrics.reserved(match &reserved {
                Ok(Reservation { duplicate: true, .. }) => ReserveResult::Duplicate,
                Ok(_) => ReserveResult::Held,
                Err(failure) if failure.reason == Reason::SoldOut => ReserveResult::SoldOut,
                Err(failure) if failure.reason == Reason::Disabled => ReserveResult::Disabled,
                Err(_) => ReserveResult::Failure,
            });
        }
        reserved
    }

    async fn hold(&self, call: &Call, mut new: NewReservation) -> Result<Reservation, Failure> {
        self.note_use_of_stock();
        self.go_by_switches().await?;
        if let Err(stopped) = self.see_that_items_are_on(new.lines.iter().map(|line| &line.key.item)) {
            return self.known_or(call, new, stopped).await;
        }
        let names = names(&new.jobs);
        let (asked, later) = (std::mem::take(&mut new.jobs), std::mem::take(&mut new.jobs_on_expiry));
        let rows = async { Ok::<_, Failure>((self.job_rows(call, asked).await?, self.job_rows(call, later).await?)) };
        let (jobs, jobs_on_expiry) = match rows.await {
            Ok(rows) => rows,
            Err(failure) if takes_none(failure.reason) => return self.known_or(call, new, failure).await,
            Err(failure) => return Err(failure),
        };
        let queues: Vec<QueueId> = jobs.iter().map(|row| row.queue).collect();
        let mut lines = new.lines;
        lines.sort();
        let cart = Arc::new(Cart {
            reference: new.reference,
            content: lines_hash(&lines),
            lines,
            time_to_live: new.time_to_live,
            jobs,
            jobs_on_expiry,
            pool: self.inner.options.stock.pool,
        });
        let reserved = match self.take(call, &cart).await {
            Err(failure) if failure.reason == Reason::Disabled => return Err(self.why_closed(call, names).await),
            answer => answer?,
        };
        match reserved {
            Reserved::New { reservation, jobs, low } => {
                self.refill_soon(low.iter().filter_map(|&line| cart.lines.get(line)).map(|line| line.key.clone()));
                Ok(Reservation { row: reservation, duplicate: false, stored: self.stored(jobs, queues) })
            }
            Reserved::Known(row) => Ok(Reservation { row, duplicate: true, stored: Vec::new() }),
            Reserved::KeyReused => Err(reused("the reference is in use for other lines", &cart.reference)),
            Reserved::SoldOut(short) => Err(sold_out(&short, |line| {
                cart.lines.get(line).map(|line| (line.key.clone(), u64::from(line.quantity)))
            })),
            Reserved::Short | Reserved::Busy => Err(busy()),
        }
    }

    /// What is held under the reference already, which no switch takes back; else, and where that cannot be seen, `stopped`.
    async fn known_or(&self, call: &Call, mut new: NewReservation, stopped: Failure) -> Result<Reservation, Failure> {
        new.lines.sort();
        match self.reservation(call, ReservationRef::Reference(new.reference.clone())).await {
            Ok(row) if row.lines == new.lines => Ok(Reservation { row, duplicate: true, stored: Vec::new() }),
            Ok(_) => Err(reused("the reference is in use for other lines", &new.reference)),
            Err(_) => Err(stopped),
        }
    }

    /// The fast way where pools can suffice, then the slow one.
    async fn take(&self, call: &Call, cart: &Arc<Cart>) -> Result<Reserved, Failure> {
        let bytes = weight(&cart.jobs) + weight(&cart.jobs_on_expiry);
        if cart.lines.iter().all(|line| line.quantity <= cart.pool) {
            let (caller, asked) = (call.caller.clone(), Arc::clone(cart));
            let fast = self
                .single(call, Statement::writing("reserve").carrying(bytes), move |session| {
                    Box::pin(async move { session.reserve_fast(&caller, &asked).await })
                })
                .await?;
            if fast != Reserved::Short {
                return Ok(fast);
            }
        }
        if let Some(metrics) = &self.inner.options.metrics {
            metrics.reserve_goes_slow();
        }
        let mut again = Again::new(call, self.inner.options.busy_for);
        loop {
            let (caller, asked) = (call.caller.clone(), Arc::clone(cart));
            let slow = self
                .single(call, Statement::writing("reserve_slow").carrying(bytes), move |session| {
                    Box::pin(async move { session.reserve_slow(&caller, &asked).await })
                })
                .await?;
            if !matches!(slow, Reserved::Busy | Reserved::Short) || !again.pause().await {
                return Ok(slow);
            }
        }
    }

    /// Makes the held units leave, and stores jobs with that. A reservation that is committed already is a duplicate; one
    /// that ended otherwise a failure.
    pub async fn commit_reservation(
        &self,
        call: &Call,
        reservation: ReservationId,
        jobs: Vec<NewJob>,
    ) -> Result<Reservation, Failure> {
        self.end(call, reservation, ReservationState::Committed, jobs).await
    }

    /// Gives the held units back. A reservation that is released already is a duplicate; one that ended otherwise a failure.
    pub async fn release_reservation(&self, call: &Call, reservation: ReservationId) -> Result<Reservation, Failure> {
        self.end(call, reservation, ReservationState::Released, Vec::new()).await
    }

    async fn end(
        &self,
        call: &Call,
        reservation: ReservationId,
        state: ReservationState,
        jobs: Vec<NewJob>,
    ) -> Result<Reservation, Failure> {
        self.note_use_of_stock();
        let names = names(&jobs);
        let jobs = match self.job_rows(call, jobs).await {
            Ok(jobs) => jobs,
            Err(failure) if takes_none(failure.reason) => {
                return self.ended_or(call, reservation, state, failure).await;
            }
            Err(failure) => return Err(failure),
        };
        let queues: Vec<QueueId> = jobs.iter().map(|row| row.queue).collect();
        let (caller, bytes) = (call.caller.clone(), weight(&jobs));
        let end = Arc::new(End { reservation, state, jobs });
        let name = if state == ReservationState::Committed { "commit_reservation" } else { "release_reservation" };
        let ended = self
            .single(call, Statement::writing(name).carrying(bytes), move |session| {
                Box::pin(async move { session.end_reservation(&caller, &end).await })
            })
            .await;
        match ended {
            Ok(Ended::Now { reservation, jobs }) => {
                if let (Some(metrics), Some(ended)) = (&self.inner.options.metrics, reservation.ended_at) {
                    metrics.reservation_ended(state, ended.since(reservation.created_at));
                }
                Ok(Reservation { row: reservation, duplicate: false, stored: self.stored(jobs, queues) })
            }
            Ok(Ended::Before(row)) if row.state == state => {
                Ok(Reservation { row, duplicate: true, stored: Vec::new() })
            }
            Ok(Ended::Before(row)) => Err(over(&row)),
            Ok(Ended::Gone) => Err(none(&ReservationRef::Id(reservation))),
            Err(failure) if failure.reason == Reason::Disabled => Err(self.why_closed(call, names).await),
            Err(failure) => Err(failure),
        }
    }

    /// What is to be answered of a reservation where jobs of its end cannot be stored: that it ended before, if it did.
    async fn ended_or(
        &self,
        call: &Call,
        reservation: ReservationId,
        state: ReservationState,
        refused: Failure,
    ) -> Result<Reservation, Failure> {
        match self.reservation(call, ReservationRef::Id(reservation)).await {
            Ok(row) if row.state == state => Ok(Reservation { row, duplicate: true, stored: Vec::new() }),
            Ok(row) if row.state != ReservationState::Held => Err(over(&row)),
            _ => Err(refused),
        }
    }

    /// Moves the expiry of a reservation that is held to so long from now, never to an earlier instant than it was.
    pub async fn extend_reservation(
        &self,
        call: &Call,
        reservation: ReservationId,
        time_to_live: Duration,
    ) -> Result<ReservationRow, Failure> {
        self.note_use_of_stock();
        let caller = call.caller.clone();
        let row = self
            .single(call, Statement::writing("extend_reservation"), move |session| {
                Box::pin(async move { session.extend_reservation(&caller, reservation, time_to_live).await })
            })
            .await?;
        match row {
            Some(row) if row.state == ReservationState::Held => Ok(row),
            Some(row) => Err(over(&row)),
            None => Err(none(&ReservationRef::Id(reservation))),
        }
    }

    /// A reservation as it is.
    pub async fn reservation(&self, call: &Call, by: ReservationRef) -> Result<ReservationRow, Failure> {
        let (caller, asked) = (call.caller.clone(), by.clone());
        let row = self
            .single(call, Statement::reading("find_reservation"), move |session| {
                Box::pin(async move { session.find_reservation(&caller, &asked).await })
            })
            .await?;
        row.ok_or_else(|| none(&by))
    }

    /// See [`super::engine::Reserving::sweep_expired`].
    pub async fn sweep_expired(&self, floor: Timestamp, limit: usize) -> Result<Swept, Failure> {
        let caller = Caller::broker("sweeper");
        let swept = self
            .single(&self.own(caller.clone()), Statement::writing("sweep_expired"), move |session| {
                Box::pin(async move { session.sweep_expired(&caller, floor, limit).await })
            })
            .await?;
        if !swept.lags.is_empty() {
            self.note_use_of_stock();
        }
        if let Some(metrics) = &self.inner.options.metrics {
            swept.lags.iter().for_each(|lag| metrics.reservation_swept(*lag));
        }
        Ok(swept)
    }

    /// See [`super::engine::Reserving::prune_reservations`].
    pub async fn prune_reservations(
        &self,
        floor: Timestamp,
        retention: Duration,
        limit: usize,
    ) -> Result<Pruned, Failure> {
        let caller = Caller::broker("pruner");
        self.single(&self.own(caller.clone()), Statement::writing("prune_reservations"), move |session| {
            Box::pin(async move { session.prune_reservations(&caller, floor, retention, limit).await })
        })
        .await
    }

    /// Jobs by the rules of Enqueue: their queues known or made, within the queues' bounds.
    async fn job_rows(&self, call: &Call, jobs: Vec<NewJob>) -> Result<Vec<JobRow>, Failure> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let nothing_done = |failure: Failure| super::no_job_yet(failure, call);
        let rows = self.rows(call, jobs).await.map_err(nothing_done)?;
        self.keep_backlog_bounds(call, &rows).await.map_err(nothing_done)?;
        Ok(rows)
    }

    fn stored(&self, jobs: Vec<EnqueuedRow>, queues: Vec<QueueId>) -> Vec<Stored> {
        self.inner.counts.enqueued(&jobs, &queues);
        jobs.into_iter().zip(queues).map(|(row, queue)| Stored { row, queue }).collect()
    }
}

/// Queues take no jobs now; whoever asks for nothing new is not concerned.
fn takes_none(reason: Reason) -> bool {
    matches!(reason, Reason::Disabled | Reason::QueueFull | Reason::NotFound)
}

fn names(jobs: &[NewJob]) -> Vec<QueueName> {
    jobs.iter().map(|job| job.queue.clone()).collect()
}

fn weight(jobs: &[JobRow]) -> usize {
    jobs.iter().map(|row| row.job.weight()).sum()
}

/// What a call says of stock of which too little is free; `line` knows its rows by their places.
pub(super) fn sold_out(short: &[ShortLine], line: impl Fn(usize) -> Option<(StockKey, u64)>) -> Failure {
    let shortages = short.iter().filter_map(|short| {
        line(short.line).map(|(key, requested)| Shortage { key, requested, available: short.available })
    });
    Failure::sold_out(shortages.collect())
}

/// What a call says of a reference that came with other content.
pub(super) fn reused(why: &str, reference: &Key) -> Failure {
    Failure::not_applied(Reason::KeyReused, why).about(reference.as_str())
}

/// What is missing is being freed by somebody else, who took too long.
pub(super) fn busy() -> Failure {
    Failure::not_applied(Reason::Conflict, "another call is freeing what this one needs; try again")
}

fn over(row: &ReservationRow) -> Failure {
    let message = format!("reservation {} is {}", row.id, row.state.as_str());
    Failure::not_applied(Reason::ReservationEnded, message).about_reservation(row.id)
}

fn none(by: &ReservationRef) -> Failure {
    let (message, subject) = match by {
        ReservationRef::Id(id) => (format!("there is no reservation {id}, or it ended long ago"), id.to_string()),
        ReservationRef::Reference(reference) => (
            format!("there is no reservation with reference '{reference}', or it ended long ago"),
            reference.to_string(),
        ),
    };
    Failure::not_applied(Reason::NotFound, message).about_reservation(subject)
}
