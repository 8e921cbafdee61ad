//! One lane: connects, serves, connects again.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::Notify, time::timeout};

use super::{
    counts::Held,
    engine::{LaneRole, Session},
    error::EngineError,
    lanes::{Lanes, Work},
    ledger::{self, Spread},
    line::{Batch, Queued},
    merged::{self, AckAct, EnqueueAct, ExtendAct, GiveBackAct, Merges, NackAct, Ran, Tries},
    request::{Ask, Request, Single},
    schema,
};
use crate::{
    model::Caller,
    telemetry::spans::{Origin, Producers},
};

/// Applying migrations takes at most this long; each of their statements has the database's own limit.
const MIGRATING: Duration = Duration::from_secs(600);

/// The life of a lane. Ends when the line is closed and empty.
pub(super) async fn run(lanes: Arc<Lanes>, index: usize, role: LaneRole) {
    connect_and_serve(&lanes, index, role).await;
    lanes.ledger.closed(index, Instant::now());
}

async fn connect_and_serve(lanes: &Lanes, index: usize, role: LaneRole) {
    let mut pause = lanes.options.reconnect_min;
    let mut connected_before = false;
    loop {
        let Some(opened) = lanes.closing.run_until_cancelled(open(lanes, index, role)).await else { return };
        match opened {
            Ok(mut session) => {
                pause = lanes.options.reconnect_min;
                lanes.joined(role, connected_before);
                connected_before = true;
                let lost = serve(lanes, index, role, session.as_mut()).await;
                lanes.left(index, role);
                match lost {
                    Some(error) => tracing::warn!(lane = index, %error, "a lane lost its connection"),
                    None => return,
                }
            }
            Err(error) => {
                if matches!(error, EngineError::Unfit(_)) {
                    tracing::error!(lane = index, %error, retry_in = ?pause, "a lane cannot use the database");
                } else {
                    tracing::warn!(lane = index, %error, retry_in = ?pause, "a lane cannot connect");
                }
                let jittered = pause.mul_f64(0.5 + rand::random::<f64>() / 2.0);
                if lanes.closing.run_until_cancelled(tokio::time::sleep(jittered)).await.is_none() {
                    return;
                }
                pause = (pause * 2).min(lanes.options.reconnect_max);
            }
        }
    }
}

/// A connection with a current schema behind it. The first lane looks after the schema, the others wait for it.
async fn open(lanes: &Lanes, index: usize, role: LaneRole) -> Result<Box<dyn Session>, EngineError> {
    if index > 0 {
        let mut schema = lanes.schema.subscribe();
        // The sender lives as long as the lanes do.
        drop(schema.wait_for(|current| *current).await);
    }
    let limit = lanes.options.connect_timeout;
    let connecting = async {
        timeout(limit, lanes.engine.connect(role))
            .await
            .unwrap_or_else(|_| Err(EngineError::Unavailable(format!("no connection within {limit:?}"))))
    };
    let started = Instant::now();
    let mut session = on_the_books(lanes, index, (&Caller::broker("lane"), "connect"), connecting).await?;
    lanes.counts.opened(started.elapsed());
    if index == 0 && !*lanes.schema.borrow() {
        let limit = if lanes.options.migrate { MIGRATING } else { lanes.options.statement_deadline };
        let preparing = async {
            timeout(limit, schema::prepare(lanes.engine.as_ref(), session.as_mut(), lanes.options.migrate))
                .await
                .unwrap_or_else(|_| Err(EngineError::Unavailable(format!("the schema was not known within {limit:?}"))))
        };
        on_the_books(lanes, index, (&schema::caller(), "migrate"), preparing).await?;
        lanes.schema.send_replace(true);
    }
    Ok(session)
}

/// What a lane does of itself, as a hold like any other.
async fn on_the_books<T>(
    lanes: &Lanes,
    index: usize,
    (caller, statement): (&Caller, &'static str),
    work: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    lanes.ledger.began(index, caller, statement, Instant::now());
    let result = work.await;
    lanes.ledger.ended(index, &ledger::Ran::unasked(result.is_err()), Instant::now());
    result
}

/// Serves until the connection is lost (says why) or the line is closed.
async fn serve(
    lanes: &Lanes,
    index: usize,
    role: LaneRole,
    session: &mut (dyn Session + 'static),
) -> Option<EngineError> {
    let wake = Arc::new(Notify::new());
    let mut used = Instant::now();
    loop {
        let lost = match lanes.next(index, role, &wake, used).await {
            Work::End => return None,
            Work::Ping => ping(lanes, index, session).await.err(),
            Work::Run(batch) => run_batch(lanes, (index, role), session, batch).await,
        };
        if lost.is_some() {
            return lost;
        }
        used = Instant::now();
    }
}

async fn ping(lanes: &Lanes, index: usize, session: &mut (dyn Session + 'static)) -> Result<(), EngineError> {
    let (caller, started) = (Caller::broker("lane"), Instant::now());
    let asking = async {
        timeout(lanes.options.connect_timeout, session.ping(&caller))
            .await
            .unwrap_or_else(|_| Err(EngineError::NotSent("the database does not answer".into())))
    };
    let answered = on_the_books(lanes, index, (&caller, "ping"), asking).await;
    let (wait, hold, failed) = (Duration::ZERO, started.elapsed(), answered.as_ref().err().map(EngineError::class));
    let held = Held { caller: &caller, act: "ping", items: 1, wait, hold, origins: &[], failed };
    lanes.counts.ran(&held, Producers::default());
    answered
}

async fn run_batch(
    lanes: &Lanes,
    lane: (usize, LaneRole),
    session: &mut (dyn Session + 'static),
    batch: Batch<Request>,
) -> Option<EngineError> {
    let (ended, caller, started) = (batch.ended(), batch.caller.clone(), Instant::now());
    let mut waits = Spread::EMPTY;
    batch.requests.iter().for_each(|request| waits.add(started.saturating_duration_since(request.queued_at())));
    let name = batch.requests.first().map_or(batch.kind.name(), Request::name);
    let items: usize = batch.requests.iter().map(Queued::items).sum();
    let origins: Vec<Origin> = lanes.counts.origins(&batch.requests);
    lanes.ledger.began(lane.0, &caller, name, started);
    let Left { unsent, poison, failed, producers, tries } =
        dispatch(session, &caller, batch.requests, lanes.options.statement_deadline).await;
    let hold = started.elapsed();
    let (statements, errors, rows) = (tries.statements, tries.errors, items as u64);
    lanes.ledger.ended(lane.0, &ledger::Ran { waits, statements, rows, errors }, started + hold);
    let wait = waits.longest();
    lanes.counts.met_conflicts(tries.conflicts);
    lanes.counts.ran(&Held { caller: &caller, act: name, items, wait, hold, origins: &origins, failed }, producers);
    lanes.done(lane, &ended, hold, poison.is_none());
    if !unsent.is_empty() {
        lanes.put_back(&caller, unsent);
    }
    poison
}

/// What a batch leaves behind.
#[derive(Default)]
struct Left {
    /// Requests of which nothing was sent.
    unsent: Vec<Request>,
    /// What made the connection unusable.
    poison: Option<EngineError>,
    /// The class of the failure that a request was told.
    failed: Option<&'static str>,
    /// Of a claim: whose jobs came.
    producers: Producers,
    tries: Tries,
}

async fn dispatch(
    session: &mut (dyn Session + 'static),
    caller: &Caller,
    requests: Vec<Request>,
    deadline: Duration,
) -> Left {
    let mut sorted = Sorted::default();
    for request in requests {
        match request {
            Request::Enqueue(ask) => sorted.enqueue.push(ask),
            Request::Ack(ask) => sorted.ack.push(ask),
            Request::Nack(ask) => sorted.nack.push(ask),
            Request::Extend(ask) => sorted.extend.push(ask),
            Request::GiveBack(ask) => sorted.give_back.push(ask),
            Request::Single(single) => return run_single(session, single, deadline).await,
        }
    }
    // A batch is of one kind, so one of these has something in it.
    if !sorted.enqueue.is_empty() {
        merge(EnqueueAct, session, caller, sorted.enqueue, deadline, Request::Enqueue).await
    } else if !sorted.ack.is_empty() {
        merge(AckAct, session, caller, sorted.ack, deadline, Request::Ack).await
    } else if !sorted.nack.is_empty() {
        merge(NackAct, session, caller, sorted.nack, deadline, Request::Nack).await
    } else if !sorted.extend.is_empty() {
        merge(ExtendAct, session, caller, sorted.extend, deadline, Request::Extend).await
    } else {
        merge(GiveBackAct, session, caller, sorted.give_back, deadline, Request::GiveBack).await
    }
}

#[derive(Default)]
struct Sorted {
    enqueue: Vec<Ask<<EnqueueAct as Merges>::Item, <EnqueueAct as Merges>::Answer>>,
    ack: Vec<Ask<<AckAct as Merges>::Item, <AckAct as Merges>::Answer>>,
    nack: Vec<Ask<<NackAct as Merges>::Item, <NackAct as Merges>::Answer>>,
    extend: Vec<Ask<<ExtendAct as Merges>::Item, <ExtendAct as Merges>::Answer>>,
    give_back: Vec<Ask<<GiveBackAct as Merges>::Item, <GiveBackAct as Merges>::Answer>>,
}

async fn merge<M: Merges<On = dyn Session>>(
    act: M,
    session: &mut (dyn Session + 'static),
    caller: &Caller,
    asks: Vec<Ask<M::Item, M::Answer>>,
    deadline: Duration,
    back: fn(Ask<M::Item, M::Answer>) -> Request,
) -> Left {
    let Ran { unsent, poison, failed, tries } = merged::run(act, session, caller, asks, deadline).await;
    Left { unsent: unsent.into_iter().map(back).collect(), poison, failed, tries, producers: Producers::default() }
}

async fn run_single(session: &mut (dyn Session + 'static), single: Single, deadline: Duration) -> Left {
    let conflicts = single.conflicts.clone();
    let ran = run_act(session, single, deadline).await;
    let conflicts = conflicts.count();
    let mended = conflicts - u64::from(ran.failed == Some("conflict")).min(conflicts);
    let tries = Tries { statements: ran.tries.statements + mended, errors: ran.tries.errors + mended, conflicts };
    Left { tries, ..ran }
}

async fn run_act(session: &mut (dyn Session + 'static), single: Single, deadline: Duration) -> Left {
    let error = match timeout(deadline, (single.act)(session)).await {
        Ok(Ok(())) => {
            let producers = single.producers.get().cloned().unwrap_or_default();
            return Left { producers, tries: Tries { statements: 1, ..Tries::default() }, ..Left::default() };
        }
        Ok(Err(error)) => error,
        // The act is dropped with its reply: its asker hears that the outcome is unknown.
        Err(_) => EngineError::Unknown("no answer within the lane's own deadline".into()),
    };
    Left {
        failed: Some(error.class()),
        poison: Some(error).filter(EngineError::poisons_connection),
        tries: Tries { statements: 1, errors: 1, conflicts: 0 },
        ..Left::default()
    }
}
