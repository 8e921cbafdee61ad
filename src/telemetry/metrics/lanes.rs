//! Lanes: who waits for them, who holds them, what runs on them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram},
};

use super::{Maker, Metrics};
use crate::{
    model::Caller,
    telemetry::{
        caller_labels::CallerLabels,
        names::{
            BATCH_SIZE, CONNECTION_COUNT, CONNECTION_MAX, CREATE_TIME, HOLD_TIME, OPERATION_DURATION, PENDING_REQUESTS,
            REFUSED, STATEMENT_CONFLICTS, STATEMENT_ERRORS, TIMEOUTS, USE_TIME, WAIT_TIME, key,
        },
    },
};

/// What the lanes are called among pools.
const POOL: &str = "lanes";

pub(super) struct LaneInstruments {
    pub(super) callers: Arc<CallerLabels>,
    pub(super) refused: Counter<u64>,
    wait_time: Histogram<f64>,
    use_time: Histogram<f64>,
    hold_time: Counter<f64>,
    create_time: Histogram<f64>,
    operation_duration: Histogram<f64>,
    statement_errors: Counter<u64>,
    statement_conflicts: Counter<u64>,
    batch_size: Histogram<f64>,
    timeouts: Counter<u64>,
}

impl LaneInstruments {
    pub(super) fn new(maker: &Maker, callers: CallerLabels) -> Self {
        Self {
            callers: Arc::new(callers),
            wait_time: maker.histogram(&WAIT_TIME),
            use_time: maker.histogram(&USE_TIME),
            hold_time: maker.seconds(&HOLD_TIME),
            create_time: maker.histogram(&CREATE_TIME),
            operation_duration: maker.histogram(&OPERATION_DURATION),
            statement_errors: maker.counter(&STATEMENT_ERRORS),
            statement_conflicts: maker.counter(&STATEMENT_CONFLICTS),
            batch_size: maker.histogram(&BATCH_SIZE),
            timeouts: maker.counter(&TIMEOUTS),
            refused: maker.counter(&REFUSED),
        }
    }
}

/// How busy the lanes are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LanesReading {
    /// Lanes with a statement under way.
    pub used: u64,
    /// Lanes that are connected and have nothing to do.
    pub idle: u64,
    /// Lanes that there may be.
    pub max: u64,
    /// Requests that wait for a lane, by caller.
    pub waiting: Vec<(Caller, u64)>,
}

impl Metrics {
    /// A lane ran `items` jobs or tokens of one act for a caller on an engine of this `system`: how long its oldest request had
    /// waited, how long the lane was held.
    pub fn lane_held(
        &self,
        caller: &Caller,
        (system, act): (&'static str, &'static str),
        items: usize,
        wait: Duration,
        hold: Duration,
    ) {
        let lanes = &self.0.lanes;
        let caller = lanes.callers.of(caller);
        let of_pool = [pool(), caller.clone()];
        let hold = hold.as_secs_f64();
        lanes.wait_time.record(wait.as_secs_f64(), &of_pool);
        lanes.use_time.record(hold, &of_pool);
        lanes.hold_time.add(hold, &of_pool);
        let [summary, system] = [KeyValue::new(key::DB_SUMMARY, act), KeyValue::new(key::DB_SYSTEM, system)];
        #[expect(clippy::cast_precision_loss, reason = "a batch has thousands of items at most")]
        lanes.batch_size.record(items as f64, std::slice::from_ref(&summary));
        lanes.operation_duration.record(hold, &[system, summary, caller]);
    }

    /// Begins the series of failures at 0, for these classes: a rate cannot see the first step of one that begins with it.
    pub fn begin_lanes(&self, classes: &[&'static str]) {
        for class in classes {
            self.0.lanes.statement_errors.add(0, &[KeyValue::new(key::ERROR, *class)]);
        }
        self.0.lanes.statement_conflicts.add(0, &[]);
        for caller in self.0.lanes.callers.fixed() {
            self.0.lanes.timeouts.add(0, &[pool(), caller.clone()]);
            self.0.lanes.refused.add(0, std::slice::from_ref(&caller));
            self.0.lanes.hold_time.add(0.0, &[pool(), caller]);
        }
    }

    /// A request waited for a lane in vain.
    pub fn lane_timed_out(&self, caller: &Caller) {
        self.0.lanes.timeouts.add(1, &[pool(), self.0.lanes.callers.of(caller)]);
    }

    /// A lane was opened.
    pub fn lane_opened(&self, took: Duration) {
        self.0.lanes.create_time.record(took.as_secs_f64(), &[pool()]);
    }

    /// A statement failed. `class` names a class of engine errors.
    pub fn statement_failed(&self, class: &'static str) {
        self.0.lanes.statement_errors.add(1, &[KeyValue::new(key::ERROR, class)]);
    }

    /// Statements met deadlocks, or did not get their locks in time.
    pub fn conflicts_met(&self, conflicts: u64) {
        self.0.lanes.statement_conflicts.add(conflicts, &[]);
    }

    /// Reads the lanes whenever somebody asks for metrics. Once per handle.
    #[expect(clippy::cast_precision_loss, reason = "counts of lanes and requests are small")]
    pub fn watch_lanes(&self, read: impl Fn() -> LanesReading + Send + Sync + 'static) {
        let (maker, callers, read) = (&self.0.maker, self.0.lanes.callers.clone(), Arc::new(read));
        let (of_states, of_max, of_line) = (read.clone(), read.clone(), read);
        maker.observed(&CONNECTION_COUNT, move |say| {
            let lanes = of_states();
            for (state, count) in [("used", lanes.used), ("idle", lanes.idle)] {
                say(count as f64, &[pool(), KeyValue::new(key::CONNECTION_STATE, state)]);
            }
        });
        maker.observed(&CONNECTION_MAX, move |say| say(of_max().max as f64, &[pool()]));
        maker.observed(&PENDING_REQUESTS, move |say| {
            // callers without a series of their own share one, so they are summed first
            let mut sums: BTreeMap<KeyValueByText, u64> = BTreeMap::new();
            for (caller, count) in of_line().waiting {
                *sums.entry(KeyValueByText(callers.of(&caller))).or_default() += count;
            }
            sums.entry(KeyValueByText(callers.of(&Caller::unattributed()))).or_default();
            for (KeyValueByText(caller), count) in sums {
                say(count as f64, &[pool(), caller]);
            }
        });
    }
}

fn pool() -> KeyValue {
    KeyValue::new(key::POOL, POOL)
}

/// A label, ordered by its text.
struct KeyValueByText(KeyValue);

impl PartialEq for KeyValueByText {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for KeyValueByText {}

impl PartialOrd for KeyValueByText {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyValueByText {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.value.as_str().cmp(&other.0.value.as_str())
    }
}
