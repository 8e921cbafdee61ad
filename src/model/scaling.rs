//! Whether workers of a queue should run, and how many.

use std::time::Duration;

use super::QueueName;

/// What somebody who scales workers wants to go by.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// Whose jobs.
    pub queue: QueueName,
    /// What is measured, and how much of it is for one worker; each metric once.
    pub targets: Vec<(ScalingMetric, f64)>,
    /// So many ready jobs call for no worker yet.
    pub activation_ready: u64,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScalingMetric {
    /// Ready jobs.
    Ready,
    /// Age of the oldest one, in seconds.
    Oldest,
}

/// What is in a queue, as far as it calls for workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueLoad {
    /// Jobs that a worker could have now; counted exactly up to [`super::Count::BOUND`].
    pub ready: u64,
    /// For how long the oldest of them has been ready.
    pub oldest: Duration,
    /// Jobs that workers have.
    pub leased: u64,
}

impl Scaling {
    /// Whether at least one worker should run. One that has jobs is not taken away from them.
    pub fn is_active(&self, load: &QueueLoad) -> bool {
        load.leased > 0 || load.ready > self.activation_ready
    }
}

impl ScalingMetric {
    /// As scalers name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "leasehold-ready-jobs",
            Self::Oldest => "leasehold-oldest-ready-seconds",
        }
    }

    /// How much of it there is.
    pub fn of(self, load: &QueueLoad) -> f64 {
        match self {
            // exact: counts end far below 2^53
            #[allow(clippy::cast_precision_loss)]
            Self::Ready => load.ready as f64,
            Self::Oldest => load.oldest.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaling(activation_ready: u64) -> Scaling {
        let queue = QueueName::parse("queue", "mail").expect("a name");
        Scaling { queue, targets: vec![(ScalingMetric::Ready, 5.0)], activation_ready }
    }

    fn load(ready: u64, leased: u64) -> QueueLoad {
        QueueLoad { ready, leased, oldest: Duration::from_millis(1_500) }
    }

    #[test]
    fn more_ready_jobs_than_allowed_for_call_for_a_worker() {
        assert!(!scaling(0).is_active(&load(0, 0)));
        assert!(scaling(0).is_active(&load(1, 0)));
        assert!(!scaling(10).is_active(&load(10, 0)));
        assert!(scaling(10).is_active(&load(11, 0)));
    }

    #[test]
    fn a_worker_that_has_jobs_stays() {
        assert!(scaling(10).is_active(&load(0, 1)));
    }

    #[test]
    fn metrics_are_in_jobs_and_seconds() {
        let shown = |metric: ScalingMetric| metric.of(&load(7, 0)).to_string();
        assert_eq!([ScalingMetric::Ready, ScalingMetric::Oldest].map(shown), ["7", "1.5"]);
    }
}
