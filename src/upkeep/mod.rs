//! Passes that keep the tables in order. This file holds the only loop; each pass supplies one bounded step.
//!
//! A pass walks an index that rows leave at its left end, from a floor that it remembers. Every ten minutes it walks from the
//! beginning, for what a floor can miss. While it finds nothing it takes at most a twentieth of one lane's time; while it finds
//! much, a [`Stride`] says how many rows its next step takes and how long it rests before: calls are not to notice.

mod arrivals;
mod budgets;
mod census;
mod expiry;
mod presence;
mod pruner;
mod reaper;
mod refill;
mod seldom;
mod sweeper;
mod switches;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use rand::Rng as _;
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use self::{
    arrivals::{Arrivals, Sight},
    budgets::Budgets,
    census::{Census, Readings},
    expiry::Expiry,
    presence::Present,
    pruner::{AckedJobs, DeadJobs, EndedReservations, IdempotencyKeys},
    reaper::Reaper,
    refill::Refill,
    sweeper::Sweeper,
    switches::Switches,
};
use crate::{
    dispatch::Dispatch,
    model::Failure,
    store::{Pace, Store, Stride},
    telemetry::metrics::QueueReading,
};

/// How often passes run. The defaults are those that the documentation states.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UpkeepOptions {
    /// Between two passes of the reaper.
    pub reaper_interval: Duration,
    /// Between two passes over the arrivals.
    pub arrivals_interval: Duration,
    /// Between two passes over jobs past their time to live.
    pub expiry_interval: Duration,
    /// Between two passes of the pruner.
    pub pruner_interval: Duration,
    /// Between two passes of the sweeper over reservations past their time.
    pub sweeper_interval: Duration,
    /// Between two passes over stocks that have something to add up.
    pub refill_interval: Duration,
    /// How long ended reservations are kept.
    pub reservation_retention: Duration,
    /// Between two readings of switches that stop reservations.
    pub switch_interval: Duration,
    /// Between two readings of callers' budgets.
    pub budget_interval: Duration,
    /// Between two measurements of queues.
    pub census_interval: Duration,
    /// Queues that are measured apart; none at all are measured where 0.
    pub census_queues: usize,
    /// Between two reports of this replica about itself.
    pub presence_interval: Duration,
    /// Rows in one statement at most.
    pub step: usize,
    /// How fast a pass that finds much works it off.
    pub pace: Pace,
    /// Between two walks from the beginning.
    pub full_walk_interval: Duration,
    /// Whether passes begin at what they remember, and not before everything.
    pub floors: bool,
}

impl Default for UpkeepOptions {
    fn default() -> Self {
        Self {
            reaper_interval: Duration::from_secs(1),
            arrivals_interval: Duration::from_secs(1),
            expiry_interval: Duration::from_secs(2),
            pruner_interval: Duration::from_mins(1),
            sweeper_interval: Duration::from_secs(5),
            refill_interval: Duration::from_secs(10),
            reservation_retention: Duration::from_hours(30 * 24),
            switch_interval: Duration::from_secs(5),
            budget_interval: Duration::from_secs(5),
            census_interval: Duration::from_secs(10),
            census_queues: 100,
            presence_interval: Duration::from_secs(10),
            step: 1_000,
            pace: Pace::default(),
            full_walk_interval: Duration::from_mins(10),
            floors: true,
        }
    }
}

/// Passes run at least this often, however long one takes and however often it failed.
const SLOWEST: Duration = Duration::from_secs(10);
/// After a first failure a pass that jobs wait for comes again no later.
const RETRY: Duration = Duration::from_secs(1);
/// A pass that finds nothing takes at most this part of the time.
const SHARE: u32 = 20;

/// One bounded step of a pass.
#[async_trait]
trait Pass: Send + 'static {
    /// For logs and metrics.
    fn name(&self) -> &'static str;

    /// Whether its first step comes at once, and not after its interval.
    fn begins_at_once(&self) -> bool {
        false
    }

    /// Where jobs wait for it: how long it may take its time over them.
    fn is_waited_for(&self) -> Option<Duration> {
        None
    }

    /// Ends when its next step is wanted before its interval is over.
    async fn called(&mut self) {
        std::future::pending::<()>().await;
    }

    /// Forgets its floor: the next step walks from the beginning.
    fn start_over(&mut self);

    /// Does at most `limit` rows.
    async fn run_once(&mut self, limit: usize) -> Result<Step, Failure>;

    /// The last thing it does.
    async fn end(&mut self) {}
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    /// Rows changed or removed.
    rows: usize,
    /// There may be more to do at once.
    more: bool,
}

impl Step {
    /// A step that stopped at its limit has more to do.
    fn of(rows: usize, limit: usize) -> Self {
        Self { rows, more: rows >= limit }
    }
}

/// What a pass did since the start, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PassCounts {
    /// Steps that went through.
    pub steps: u64,
    /// Steps that failed.
    pub failures: u64,
    /// Rows changed or removed.
    pub rows: u64,
    /// Time that steps took.
    pub busy: Duration,
}

#[derive(Debug, Default)]
struct Counters {
    steps: AtomicU64,
    failures: AtomicU64,
    rows: AtomicU64,
    busy_micros: AtomicU64,
}

/// The running passes.
pub struct Upkeep {
    stop: CancellationToken,
    loops: JoinSet<()>,
    counters: Vec<(&'static str, Arc<Counters>)>,
    queues: Readings,
}

impl Upkeep {
    /// Starts all passes on the current runtime.
    pub fn start(store: Store, dispatch: Dispatch, options: UpkeepOptions) -> Self {
        let queues: Readings = Arc::new(Mutex::new(Arc::default()));
        let mut upkeep = Self {
            stop: CancellationToken::new(),
            loops: JoinSet::new(),
            counters: Vec::new(),
            queues: queues.clone(),
        };
        let (reaper, pruner) = (options.reaper_interval, options.pruner_interval);
        let sight = Arc::new(Sight::default());
        upkeep.run(Reaper::new(store.clone(), dispatch.clone(), sight.clone()), reaper, &options);
        if store.is_shared() {
            let arrivals = arrivals::interval(&options);
            upkeep.run(Arrivals::new(store.clone(), dispatch.clone(), sight), arrivals, &options);
        }
        upkeep.run(Expiry::new(store.clone(), dispatch.clone()), options.expiry_interval, &options);
        upkeep.run(Sweeper::new(store.clone(), dispatch.clone()), options.sweeper_interval, &options);
        if store.is_shared() {
            upkeep.run(Refill::new(store.clone()), options.refill_interval, &options); // one writer alone leaves nothing to fold
        }
        upkeep.run(Switches::new(store.clone()), options.switch_interval, &options);
        upkeep.run(EndedReservations::new(store.clone(), options.reservation_retention), pruner, &options);
        upkeep.run(Present::new(dispatch), options.presence_interval, &options);
        upkeep.run(DeadJobs::new(store.clone()), pruner, &options);
        upkeep.run(AckedJobs::new(store.clone()), pruner, &options);
        if options.census_queues > 0 {
            upkeep.run(Census::new(store.clone(), options.census_queues, queues), options.census_interval, &options);
        }
        upkeep.run(IdempotencyKeys::new(store.clone()), pruner, &options);
        upkeep.run(Budgets::new(store), options.budget_interval, &options);
        upkeep
    }

    fn run(&mut self, pass: impl Pass, interval: Duration, options: &UpkeepOptions) {
        let counters = Arc::new(Counters::default());
        self.counters.push((pass.name(), counters.clone()));
        self.loops.spawn(keep_up(pass, interval, *options, counters, self.stop.clone()));
    }

    /// Reads what each pass did since the start; goes on to do so when this handle is gone.
    pub fn reader(&self) -> impl Fn() -> Vec<(&'static str, PassCounts)> + Send + Sync + 'static {
        let counters = self.counters.clone();
        move || counters.iter().map(|(name, counters)| (*name, counters.read())).collect()
    }

    /// Reads what was measured last of each queue; goes on to do so when this handle is gone.
    pub fn queues(&self) -> impl Fn() -> Arc<[QueueReading]> + Send + Sync + 'static {
        let queues = self.queues.clone();
        move || queues.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends all passes after the step that each is in.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.loops.join_next().await {
            if let Err(failure) = ended {
                warn!(%failure, "an upkeep pass has ended early");
            }
        }
    }
}

impl Counters {
    fn read(&self) -> PassCounts {
        PassCounts {
            steps: self.steps.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            rows: self.rows.load(Ordering::Relaxed),
            busy: Duration::from_micros(self.busy_micros.load(Ordering::Relaxed)),
        }
    }

    fn count(&self, result: &Result<Step, Failure>, took: Duration) {
        match result {
            Ok(step) => {
                self.steps.fetch_add(1, Ordering::Relaxed);
                self.rows.fetch_add(step.rows as u64, Ordering::Relaxed);
            }
            Err(_) => drop(self.failures.fetch_add(1, Ordering::Relaxed)),
        }
        self.busy_micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// The loop.
async fn keep_up(
    mut pass: impl Pass,
    interval: Duration,
    options: UpkeepOptions,
    counters: Arc<Counters>,
    stop: CancellationToken,
) {
    let mut full_walk_at = Instant::now() + options.full_walk_interval;
    let mut failures = 0_u32;
    let stride = Stride::new(options.pace, options.step);
    let mut stride = pass.is_waited_for().map_or(stride.clone(), |patience| stride.at_latest_after(patience));
    let mut pause = if pass.begins_at_once() { Duration::ZERO } else { interval };
    // Between the steps of work that goes on, and after a failure.
    let mut rests = false;
    loop {
        // Not in step with other replicas.
        let wait = pause.mul_f64(rand::rng().random_range(0.9..=1.1));
        let turn = async {
            tokio::select! {
                () = sleep(wait) => {}
                () = pass.called(), if !rests => {}
            }
        };
        if stop.run_until_cancelled(turn).await.is_none() {
            pass.end().await;
            return;
        }
        let began = Instant::now();
        if !options.floors || began >= full_walk_at {
            pass.start_over();
            full_walk_at = began + options.full_walk_interval;
        }
        let result = pass.run_once(stride.rows()).await;
        let ended = Instant::now();
        let took = ended.saturating_duration_since(began);
        counters.count(&result, took);
        let rest = result.as_ref().map_or(Duration::ZERO, |step| stride.stepped(step.rows, began, ended, step.more));
        let retry = if result.is_err() && pass.is_waited_for().is_some() { interval.min(RETRY) } else { interval };
        pause = pause_after(&result, took, rest, (retry, failures));
        rests = !result.as_ref().is_ok_and(|step| !step.more);
        match result {
            Ok(done) => {
                if failures > 0 {
                    info!(pass = pass.name(), "upkeep works again");
                }
                failures = 0;
                if done.rows > 0 {
                    debug!(pass = pass.name(), rows = done.rows, took_ms = took.as_millis(), "upkeep");
                }
            }
            Err(failure) => {
                if failures == 0 {
                    warn!(pass = pass.name(), %failure, "upkeep failed and is tried again");
                }
                failures = failures.saturating_add(1);
            }
        }
    }
}

/// How long a pass that jobs wait for rests between its steps at all.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long to wait after a step that `took` so long: a `rest` where there is more to do; `failures` is how many failed in a row
/// before it.
fn pause_after(
    result: &Result<Step, Failure>,
    took: Duration,
    rest: Duration,
    (interval, failures): (Duration, u32),
) -> Duration {
    let slowest = SLOWEST.max(interval);
    match result {
        Ok(step) if step.more => rest,
        Ok(step) if step.rows > 0 => interval,
        Ok(_) => (took * SHARE).clamp(interval, slowest),
        Err(_) => interval.saturating_mul(1 << failures.min(4)).min(slowest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Reason;

    const INTERVAL: Duration = Duration::from_secs(1);
    const REST: Duration = Duration::from_millis(8);

    fn after(result: &Result<Step, Failure>, took_ms: u64, failures: u32) -> Duration {
        pause_after(result, Duration::from_millis(took_ms), REST, (INTERVAL, failures))
    }

    #[test]
    fn a_full_step_is_followed_after_a_rest_and_not_an_interval() {
        assert_eq!(after(&Ok(Step::of(1_000, 1_000)), 500, 0), REST);
        assert_eq!(after(&Ok(Step::of(999, 1_000)), 500, 0), INTERVAL);
    }

    #[test]
    fn an_empty_walk_that_takes_long_comes_less_often_but_within_ten_seconds() {
        assert_eq!(after(&Ok(Step::of(0, 1_000)), 5, 0), INTERVAL);
        assert_eq!(after(&Ok(Step::of(0, 1_000)), 100, 0), Duration::from_secs(2));
        assert_eq!(after(&Ok(Step::of(0, 1_000)), 5_000, 0), Duration::from_secs(10));
    }

    #[test]
    fn failures_wait_longer_each_time_up_to_ten_seconds() {
        let fails = || Err(Failure::not_applied(Reason::DatabaseUnavailable, "away"));
        assert_eq!(after(&fails(), 1, 0), INTERVAL);
        assert_eq!(after(&fails(), 1, 2), 4 * INTERVAL);
        assert_eq!(after(&fails(), 1, 60), Duration::from_secs(10));
    }
}
