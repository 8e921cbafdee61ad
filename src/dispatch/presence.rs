//! What this replica says of itself to operators: its streams, what they ask for, and what becomes of queues' jobs.
//!
//! Only what changed is written: an idle replica, however many streams it has, sends one small statement each time. After a
//! statement whose outcome is not known, and where nothing is known of the replica any more, everything is said anew.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::{Mutex, oneshot},
    time::timeout,
};

use super::Shared;
use crate::{
    model::{Caller, Failure, QueueId, QueueName, ReplicaId, StreamId, StreamNumber},
    store::{
        Store, Totals,
        engine::{DemandReport, Rates, Report, StreamReport},
    },
};

/// Streams, and queues, of one statement.
const ROWS: usize = 1_000;
/// What rates are made over.
const MINUTE: Duration = Duration::from_secs(60);
/// While nothing changed, what was written so lately is as good as new to whoever asks.
const FRESH: Duration = Duration::from_secs(5);
/// Sums are taken no more often than this.
const SUMS: Duration = Duration::from_secs(1);
/// Going away waits no longer than this for the database.
const FAREWELL: Duration = Duration::from_millis(500);

/// A stream, for operators.
#[derive(Debug)]
pub(super) struct StreamFacts {
    pub(super) consumer: String,
    pub(super) peer: String,
    pub(super) caller: Caller,
    pub(super) queues: Vec<QueueName>,
    pub(super) max_in_flight: u32,
    pub(super) opened_at: Instant,
}

/// The same at one moment.
#[derive(Debug, Clone)]
pub(super) struct StreamState {
    pub(super) number: StreamNumber,
    pub(super) about: Arc<StreamFacts>,
    pub(super) in_flight: u32,
    pub(super) free_credit: u32,
    pub(super) oldest_lease: Option<Instant>,
}

/// Writes it down.
pub struct Presence {
    store: Store,
    shared: Arc<Shared>,
    name: String,
    started: Instant,
    told: Mutex<Told>,
}

/// What the database has of this replica, as far as is known.
#[derive(Default)]
struct Told {
    /// Certainly all of it.
    whole: bool,
    left: bool,
    at: Option<Instant>,
    streams: HashMap<StreamNumber, (u32, Option<Instant>)>,
    demand: BTreeMap<QueueName, (u64, u64)>,
    rates: HashMap<QueueId, Rates>,
    /// Sums of the last minute, the oldest first.
    sums: VecDeque<(Instant, HashMap<QueueId, Totals>)>,
}

impl Presence {
    pub(super) fn new(store: Store, shared: Arc<Shared>, name: String) -> Self {
        let started = Instant::now();
        let sums = VecDeque::from([(started, HashMap::new())]);
        Self { store, shared, name, started, told: Mutex::new(Told { sums, ..Told::default() }) }
    }

    /// Writes down that this replica is there, and what changed.
    pub async fn report(&self) -> Result<(), Failure> {
        self.write(Duration::ZERO).await
    }

    /// Writes down what changed, if anything did: what is read afterwards is what this replica knows now.
    pub async fn refresh(&self) -> Result<(), Failure> {
        self.write(FRESH).await
    }

    /// Takes this replica out, as far as the database can be reached; nothing is written from now on.
    pub async fn leave(&self) {
        let mut told = self.told.lock().await;
        told.left = true;
        if told.at.is_some() {
            match timeout(FAREWELL, self.store.leave()).await {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => tracing::debug!(%failure, "this replica is still on the list of those present"),
                Err(_) => tracing::debug!("this replica is still on the list of those present"),
            }
        }
    }

    /// Writes down what changed; where nothing did, that it is there, unless it said so within `fresh`.
    async fn write(&self, fresh: Duration) -> Result<(), Failure> {
        let mut told = self.told.lock().await;
        if told.left {
            return Ok(());
        }
        let streams = self.streams().await;
        let now = Instant::now();
        told.learn(|| self.store.totals(), now);
        let said_lately = told.at.is_some_and(|at| now.saturating_duration_since(at) < fresh);
        if said_lately && told.whole && told.changes(self.store.replica(), &streams, now, false).is_empty() {
            return Ok(());
        }
        if !self.send(&mut told, &streams, now).await? {
            // Others took it out meanwhile: what it said before is gone.
            told.whole = false;
            self.send(&mut told, &streams, now).await?;
        }
        told.at = Some(now);
        Ok(())
    }

    /// All streams at this moment; none once the dispatcher has ended.
    async fn streams(&self) -> Vec<StreamState> {
        let (ask, answer) = oneshot::channel();
        self.shared.inbox.tell(|mail| mail.asked.push(ask));
        tokio::select! {
            streams = answer => streams.unwrap_or_default(),
            () = self.shared.done.cancelled() => Vec::new(),
        }
    }

    /// Sends what changed, a thousand rows at a time. False where the replica was not known and so all of it is needed.
    async fn send(&self, told: &mut Told, streams: &[StreamState], now: Instant) -> Result<bool, Failure> {
        let anew = !std::mem::replace(&mut told.whole, false);
        let mut changes = told.changes(self.store.replica(), streams, now, anew);
        let mut first = anew;
        loop {
            let mut report = self.blank();
            report.anew = std::mem::take(&mut first);
            changes.fill(&mut report);
            let attended = self.store.attend(report).await?;
            self.shared.inbox.hint(|mail| &mut mail.suspected, attended.to_cancel);
            if attended.unknown_before && !anew {
                return Ok(false);
            }
            if changes.is_empty() {
                break;
            }
        }
        told.remember(streams);
        told.whole = true;
        Ok(true)
    }

    fn blank(&self) -> Report {
        Report {
            replica: self.store.replica(),
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            age: self.started.elapsed(),
            anew: false,
            streams: Vec::new(),
            closed: Vec::new(),
            demand: Vec::new(),
            unasked: Vec::new(),
            rates: Vec::new(),
            quiet: Vec::new(),
            absent: Duration::ZERO, // the store's to say
        }
    }
}

impl Told {
    /// Takes note of the sums; those older than a minute make room, but for the one that the minute begins with.
    fn learn(&mut self, sums: impl FnOnce() -> HashMap<QueueId, Totals>, now: Instant) {
        if self.sums.back().is_some_and(|(at, _)| now.saturating_duration_since(*at) < SUMS) {
            return;
        }
        self.sums.push_back((now, sums()));
        while self.sums.get(1).is_some_and(|(at, _)| now.saturating_duration_since(*at) >= MINUTE) {
            self.sums.pop_front();
        }
    }

    /// Jobs a second since the oldest sums; queues of which nothing happened are left out.
    fn rates_now(&self) -> HashMap<QueueId, Rates> {
        let (Some((since, before)), Some((now, sums))) = (self.sums.front(), self.sums.back()) else {
            return HashMap::new();
        };
        let seconds = now.saturating_duration_since(*since).as_secs_f64().max(1.0);
        let rate = |now: u64, before: u64| {
            let jobs = u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX);
            (f64::from(jobs) / seconds * 1_000.0).round() / 1_000.0
        };
        let of = |(queue, sums): (&QueueId, &Totals)| {
            let before = before.get(queue).copied().unwrap_or_default();
            let rates = Rates {
                enqueued: rate(sums.enqueued, before.enqueued),
                leased: rate(sums.leased, before.leased),
                acked: rate(sums.acked, before.acked),
                retried: rate(sums.retried, before.retried),
                expired: rate(sums.expired, before.expired),
                dead: rate(sums.dead, before.dead),
            };
            (rates != Rates::default()).then_some((*queue, rates))
        };
        sums.iter().filter_map(of).collect()
    }

    /// What has to be written; where everything is said anew, what is gone is gone anyway.
    fn changes(&self, replica: ReplicaId, streams: &[StreamState], now: Instant, anew: bool) -> Changes {
        let id = |number| StreamId { replica, number };
        let ago = |at: Instant| now.saturating_duration_since(at);
        let mut changed = Vec::new();
        for stream in streams {
            if anew || self.streams.get(&stream.number) != Some(&(stream.in_flight, stream.oldest_lease)) {
                changed.push(StreamReport {
                    stream: id(stream.number),
                    consumer: stream.about.consumer.clone(),
                    peer: stream.about.peer.clone(),
                    caller: stream.about.caller.clone(),
                    queues: stream.about.queues.clone(),
                    max_in_flight: stream.about.max_in_flight,
                    in_flight: stream.in_flight,
                    oldest_lease: stream.oldest_lease.map(ago),
                    age: ago(stream.about.opened_at),
                });
            }
        }
        let open: HashSet<StreamNumber> = streams.iter().map(|stream| stream.number).collect();
        let closed: Vec<StreamId> =
            self.streams.keys().filter(|number| !open.contains(number)).copied().map(id).collect();

        let (demand, rates) = (demand(streams), self.rates_now());
        let wanted = demand.iter().filter(|(queue, sums)| anew || self.demand.get(queue) != Some(sums));
        let wanted: Vec<DemandReport> = wanted
            .map(|(queue, (streams, free))| DemandReport {
                queue: queue.clone(),
                streams: *streams,
                free_credit: *free,
            })
            .collect();
        let unasked: Vec<QueueName> =
            self.demand.keys().filter(|queue| !demand.contains_key(*queue)).cloned().collect();
        let moved: Vec<(QueueId, Rates)> = rates
            .iter()
            .filter(|(queue, rates)| anew || self.rates.get(queue) != Some(rates))
            .map(|(queue, rates)| (*queue, *rates))
            .collect();
        let quiet: Vec<QueueId> = self.rates.keys().filter(|queue| !rates.contains_key(queue)).copied().collect();

        if anew {
            return Changes { changed, wanted, moved, ..Changes::default() };
        }
        Changes { changed, closed, wanted, unasked, moved, quiet }
    }

    fn remember(&mut self, streams: &[StreamState]) {
        self.streams = streams.iter().map(|stream| (stream.number, (stream.in_flight, stream.oldest_lease))).collect();
        self.demand = demand(streams);
        self.rates = self.rates_now();
    }
}

/// What is left to be written.
#[derive(Debug, Default, PartialEq)]
struct Changes {
    changed: Vec<StreamReport>,
    closed: Vec<StreamId>,
    wanted: Vec<DemandReport>,
    unasked: Vec<QueueName>,
    moved: Vec<(QueueId, Rates)>,
    quiet: Vec<QueueId>,
}

impl Changes {
    fn is_empty(&self) -> bool {
        self.changed.is_empty()
            && self.closed.is_empty()
            && self.wanted.is_empty()
            && self.unasked.is_empty()
            && self.moved.is_empty()
            && self.quiet.is_empty()
    }

    /// Moves a thousand of each into a report.
    fn fill(&mut self, report: &mut Report) {
        report.streams = some(&mut self.changed);
        report.closed = some(&mut self.closed);
        report.demand = some(&mut self.wanted);
        report.unasked = some(&mut self.unasked);
        report.rates = some(&mut self.moved);
        report.quiet = some(&mut self.quiet);
    }
}

fn some<T>(all: &mut Vec<T>) -> Vec<T> {
    all.split_off(all.len().saturating_sub(ROWS))
}

/// Streams and free credit by queue.
fn demand(streams: &[StreamState]) -> BTreeMap<QueueName, (u64, u64)> {
    let mut demand: BTreeMap<QueueName, (u64, u64)> = BTreeMap::new();
    for stream in streams {
        for queue in &stream.about.queues {
            let (count, free) = match demand.get_mut(queue) {
                Some(sums) => sums,
                None => demand.entry(queue.clone()).or_default(),
            };
            *count += 1;
            *free += u64::from(stream.free_credit);
        }
    }
    demand
}

#[cfg(test)]
mod tests;
