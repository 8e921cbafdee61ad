//! The loop that takes jobs from streams, runs commands, and settles.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    Plan,
    run::Held,
    settling::{Settled, settle},
    tally::Tally,
    verdict::{Stop, Verdict},
};
use crate::{
    cli::{
        broker::{Broker, Failed},
        lease::stream::{Ask, Event, Stream},
        signals::Signals,
    },
    v1::{LeasedJob, RevokedLease},
};

/// Time for the last calls, once all commands have ended.
const LAST_CALLS: Duration = Duration::from_secs(10);
/// A stream that ended is not opened again sooner than this after it was opened.
const PAUSE: Duration = Duration::from_millis(100);

type Opening = Pin<Box<dyn Future<Output = Result<Stream, Failed>> + Send>>;

/// How far the end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Jobs are wanted.
    Working,
    /// None is wanted; commands may end by themselves until this.
    Finishing(Option<Instant>),
    /// Commands were told to stop; calls may still be made until this.
    Stopping(Instant),
}

/// See the module above.
pub(super) struct Worker {
    streams: Broker,
    calls: Broker,
    ask: Ask,
    plan: Arc<Plan>,
    parallel: u32,
    /// Jobs still to be begun; no bound where absent.
    left: Option<u64>,
    phase: Phase,
    stream: Option<Stream>,
    opening: Option<Opening>,
    /// Number of the newest stream, and how many of its jobs use its credit.
    number: u64,
    outstanding: u32,
    opened: Instant,
    /// Received, with no place to run yet.
    waiting: VecDeque<Held>,
    running: JoinSet<(Held, Verdict)>,
    /// To stop the command of a lease.
    stops: HashMap<String, watch::Sender<Option<Stop>>>,
    settling: JoinSet<(Held, Verdict, Settled)>,
    tally: Tally,
    failed: Option<Failed>,
}

impl Worker {
    pub(super) fn new(
        streams: Broker,
        calls: Broker,
        ask: Ask,
        plan: Arc<Plan>,
        parallel: u32,
        left: Option<u64>,
    ) -> Self {
        Self {
            streams,
            calls,
            ask,
            plan,
            parallel,
            left,
            phase: Phase::Working,
            stream: None,
            opening: None,
            number: 0,
            outstanding: 0,
            opened: Instant::now() - PAUSE,
            waiting: VecDeque::new(),
            running: JoinSet::new(),
            stops: HashMap::new(),
            settling: JoinSet::new(),
            tally: Tally::default(),
            failed: None,
        }
    }

    /// Works to the end: what became of the jobs, and why it ended where that is a failure.
    pub(super) async fn run(mut self, mut signals: Signals) -> (Tally, Result<(), Failed>) {
        loop {
            self.begin();
            self.adjust();
            if self.is_over() {
                break;
            }
            let deadline = match self.phase {
                Phase::Working | Phase::Finishing(None) => None,
                Phase::Finishing(Some(at)) | Phase::Stopping(at) => Some(at),
            };
            tokio::select! {
                signal = signals.next() => self.told(signal),
                () = until(deadline) => {
                    if matches!(self.phase, Phase::Stopping(_)) {
                        break;
                    }
                    self.stop();
                }
                event = next(&mut self.stream) => self.heard(event),
                opened = open(&mut self.opening) => self.opened(opened),
                Some(ended) = self.running.join_next() => match ended {
                    Ok((held, verdict)) => self.ended(held, verdict),
                    Err(error) => self.broke(&error),
                },
                Some(settled) = self.settling.join_next() => match settled {
                    Ok((held, verdict, settled)) => self.settled(&held, &verdict, &settled),
                    Err(error) => self.broke(&error),
                },
            }
        }
        self.tally.unanswered += self.settling.len() as u64 + self.running.len() as u64;
        (self.tally, self.failed.map_or(Ok(()), Err))
    }

    /// Begins what waits, as far as there are places.
    fn begin(&mut self) {
        while self.free() > 0
            && let Some(held) = self.waiting.pop_front()
        {
            let (stop, stopped) = watch::channel(None);
            self.stops.insert(held.job.lease_token.clone(), stop);
            self.running.spawn(held.run(self.plan.clone(), self.calls.clone(), stopped));
        }
    }

    /// Places for further commands.
    fn free(&self) -> u32 {
        self.parallel.saturating_sub(u32::try_from(self.running.len()).unwrap_or(u32::MAX))
    }

    /// Sees to it that there is a stream with the right credit, or none.
    fn adjust(&mut self) {
        if self.left == Some(0) && self.phase == Phase::Working {
            self.phase = Phase::Finishing(None);
        }
        let wanted = self.phase == Phase::Working;
        let places = self.free().saturating_sub(u32::try_from(self.waiting.len()).unwrap_or(u32::MAX));
        let replace = self.stream.as_ref().is_some_and(|stream| {
            let used_up = stream.credit <= self.outstanding;
            let too_much = self.left.is_some_and(|left| left < u64::from(stream.credit));
            used_up && (places > 0 || too_much)
        });
        if !wanted || replace {
            self.close();
        }
        if wanted && self.stream.is_none() && self.opening.is_none() && places > 0 {
            let credit = self.left.map_or(places, |left| places.min(u32::try_from(left).unwrap_or(u32::MAX)));
            let (broker, ask, plan) = (self.streams.clone(), self.ask.clone(), self.plan.clone());
            let not_before = self.opened + PAUSE;
            self.opening = Some(Box::pin(async move {
                sleep_until(not_before).await;
                Stream::open(&broker, &ask, credit, &|text| plan.relay.note(text)).await
            }));
        }
        if !wanted {
            self.opening = None;
        }
    }

    fn is_over(&self) -> bool {
        self.phase != Phase::Working && self.running.is_empty() && self.settling.is_empty() && self.waiting.is_empty()
    }

    /// A signal: the first one ends the work politely, the second one at once.
    fn told(&mut self, signal: &str) {
        match self.phase {
            Phase::Working | Phase::Finishing(None) => {
                let running = self.running.len();
                self.plan.relay.note(&format!("leasehold: {signal}: no more jobs; {running} commands still run"));
                self.phase = Phase::Finishing(Some(Instant::now() + self.plan.grace));
                self.close();
                for held in std::mem::take(&mut self.waiting) {
                    self.settle(held, Verdict::Release(Duration::ZERO));
                }
            }
            Phase::Finishing(Some(_)) => self.stop(),
            Phase::Stopping(_) => {}
        }
    }

    /// Stops all commands.
    fn stop(&mut self) {
        self.phase = Phase::Stopping(Instant::now() + self.plan.kill_after + LAST_CALLS);
        for stop in self.stops.values() {
            stop.send_replace(Some(Stop::Told));
        }
    }

    /// Closes the stream. What had come and was not begun goes back.
    fn close(&mut self) {
        if let Some(stream) = self.stream.take() {
            for job in stream.close() {
                self.tally.leased += 1;
                self.settle(Held::new(job, self.number), Verdict::Release(Duration::ZERO));
            }
        }
    }

    fn opened(&mut self, opened: Result<Stream, Failed>) {
        self.opening = None;
        match opened {
            Ok(stream) => {
                self.stream = Some(stream);
                self.number += 1;
                self.outstanding = 0;
                self.opened = Instant::now();
            }
            Err(failed) => {
                self.failed = Some(failed);
                self.phase = Phase::Finishing(None);
            }
        }
    }

    fn heard(&mut self, event: Event) {
        match event {
            Event::Jobs(jobs) => jobs.into_iter().for_each(|job| self.received(job)),
            Event::Revoked(leases) => leases.iter().for_each(|lease| self.revoked(lease)),
            Event::Empty => {
                self.stream = None;
                self.phase = Phase::Finishing(None);
            }
            Event::Ended(_) => self.stream = None,
        }
    }

    fn received(&mut self, job: LeasedJob) {
        self.tally.leased += 1;
        self.outstanding += 1;
        let held = Held::new(job, self.number);
        if self.left == Some(0) {
            self.settle(held, Verdict::Release(Duration::ZERO));
            return;
        }
        self.left = self.left.map(|left| left - 1);
        self.waiting.push_back(held);
    }

    fn revoked(&mut self, lease: &RevokedLease) {
        let stop = if lease.cancel_requested { Stop::Cancelled } else { Stop::Lost };
        if let Some(of_lease) = self.stops.get(&lease.lease_token) {
            of_lease.send_replace(Some(stop));
        }
    }

    /// A command has ended.
    fn ended(&mut self, held: Held, verdict: Verdict) {
        self.stops.remove(&held.job.lease_token);
        self.settle(held, verdict);
    }

    /// A bug of ours. The job's lease ends by itself.
    fn broke(&mut self, error: &tokio::task::JoinError) {
        self.plan.relay.note(&format!("leasehold: a job is left to the end of its lease: {error}"));
        self.tally.unanswered += 1;
    }

    /// Tells the broker, which gives the credit back from then on.
    fn settle(&mut self, held: Held, verdict: Verdict) {
        if held.stream == self.number {
            self.outstanding = self.outstanding.saturating_sub(1);
        }
        let (broker, retry_delay) = (self.calls.clone(), self.plan.retry_delay);
        self.settling.spawn(async move {
            let settled = settle(&broker, &held, &verdict, retry_delay).await;
            (held, verdict, settled)
        });
    }

    fn settled(&mut self, held: &Held, verdict: &Verdict, settled: &Settled) {
        self.tally.add(settled);
        if self.plan.quiet || *settled == Settled::Acked {
            return;
        }
        let became = match settled {
            Settled::Acked => return,
            Settled::Retried => "to be retried".to_owned(),
            Settled::Released => "released".to_owned(),
            Settled::Dead => "dead".to_owned(),
            Settled::Cancelled => "cancelled".to_owned(),
            Settled::Lost => "its lease was lost".to_owned(),
            Settled::Unanswered(why) => format!("left to the end of its lease: {why}"),
        };
        let why = match verdict {
            Verdict::Retry(error) | Verdict::Reject(error) => error.lines().next().unwrap_or_default(),
            _ => "",
        };
        let (job, attempt, most) = (&held.job.job_id, held.job.attempt, held.job.max_attempts);
        let line =
            format!("job {job}, attempt {attempt} of {most}: {became}{}{why}", if why.is_empty() { "" } else { "; " });
        self.plan.relay.note(&crate::cli::output::escape::text(&line));
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn next(stream: &mut Option<Stream>) -> Event {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

async fn open(opening: &mut Option<Opening>) -> Result<Stream, Failed> {
    match opening {
        Some(opening) => opening.await,
        None => std::future::pending().await,
    }
}
