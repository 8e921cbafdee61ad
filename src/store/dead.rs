//! Dead jobs: listed, counted, made live again.

use std::time::Duration;

use super::{
    Call, Store,
    engine::{CountWalk, DeadFilter, DeadPlace, DeadWalk, JobRecord, Page, RedriveStep, Redriven},
    jobs::{WALK, fill},
    statement::Statement,
};
use crate::model::{Count, Failure, QueueId};

impl Store {
    /// A page of a queue's dead jobs: several walks where one finds too little, for half a second at most.
    pub async fn list_dead(&self, call: &Call, walk: DeadWalk) -> Result<Page<JobRecord, DeadPlace>, Failure> {
        let begin = walk.clone();
        let step = move |before: Option<DeadPlace>, found: usize, bytes: u64| {
            let mut walk = begin.clone();
            walk.before = before.or(walk.before);
            walk.bounds.found = found;
            walk.bounds.bytes = bytes;
            let caller = call.caller.clone();
            self.single(call, Statement::reading("list_dead"), move |session| {
                Box::pin(async move { session.list_dead(&caller, &walk).await })
            })
        };
        fill(walk.bounds.found, walk.bounds.bytes, step).await
    }

    /// How many dead jobs of a queue pass the filter.
    pub async fn count_dead(&self, call: &Call, queue: QueueId, filter: &DeadFilter) -> Result<Count, Failure> {
        let (mut jobs, mut after) = (0, None);
        loop {
            let (caller, filter) = (call.caller.clone(), filter.clone());
            let walk = CountWalk { queue, filter, after, rows: WALK };
            let counted = self
                .single(call, Statement::reading("count_dead"), move |session| {
                    Box::pin(async move { session.count_dead(&caller, &walk).await })
                })
                .await?;
            jobs += counted.jobs;
            if jobs > Count::BOUND || counted.next.is_none() {
                return Ok(Count::of(jobs));
            }
            after = counted.next;
        }
    }

    /// One step; see [`super::engine::Steering::redrive`].
    pub async fn redrive(&self, call: &Call, step: RedriveStep) -> Result<Redriven, Failure> {
        let (caller, of) = (call.caller.clone(), step.which.queue());
        let redriven = self
            .persistently(call, Statement::writing("redrive"), move |session| {
                let (caller, step) = (caller.clone(), step.clone());
                Box::pin(async move { session.redrive(&caller, &step).await })
            })
            .await?;
        for queue in redriven.readied.iter().copied().chain(of) {
            self.inner.views.forget(queue);
        }
        Ok(redriven)
    }
}

/// How many jobs a second at most become how many in one step, and how long after the end of one the next may begin. Steps
/// that follow each other at that distance bring no more than `rate` jobs in any second.
pub fn pace(rate: u32, at_most: usize) -> (usize, Duration) {
    /// Steps a second where the rate allows for it: often enough to be smooth, seldom enough to be cheap.
    const STEPS: u32 = 10;
    let rate = rate.max(1);
    let jobs = (rate / STEPS).max(1).min(u32::try_from(at_most).unwrap_or(u32::MAX).max(1));
    let steps = (rate / jobs).max(1);
    (jobs as usize, Duration::from_secs(1).div_f64(f64::from(steps)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slow_redrive_goes_one_by_one_and_a_fast_one_by_thousands() {
        assert_eq!(pace(1, 1_000), (1, Duration::from_secs(1)));
        assert_eq!(pace(100, 1_000), (10, Duration::from_millis(100)));
        assert_eq!(pace(100_000, 1_000), (1_000, Duration::from_millis(10)));
    }

    proptest! {
        #[test]
        fn no_second_sees_more_jobs_than_the_rate(rate in 1u32..=100_000, at_most in 1usize..=1_000) {
            let (jobs, pause) = pace(rate, at_most);
            prop_assert!(jobs >= 1 && jobs <= at_most);
            // Steps end at least a pause apart, so that a second that does not begin with one sees this many.
            let steps = (Duration::from_secs(1).as_nanos()).div_ceil(pause.as_nanos() + 1);
            prop_assert!(steps * jobs as u128 <= u128::from(rate));
            // Nor is it much slower than it may be.
            prop_assert!(f64::from(u32::try_from(jobs).unwrap_or(u32::MAX)) / pause.as_secs_f64() >= f64::from(rate) / 2.0 || at_most < 1_000);
        }
    }
}
