//! One job: its command, and its lease, which is extended meanwhile.

use std::{
    collections::BTreeMap,
    process::ExitStatus,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    Plan,
    process::Process,
    verdict::{self, Stop, Verdict},
};
use crate::{
    cli::{
        broker::{Broker, Pauses},
        lease::stream::is_permanent,
        output::time,
    },
    v1::{ExtendRequest, LeasedJob, SettleStatus},
};

/// A lease that nobody said the length of; the broker always does.
const UNSAID: Duration = Duration::from_secs(10);

/// A leased job, and when its lease ends by this machine's monotonic clock.
pub(super) struct Held {
    pub(super) job: LeasedJob,
    pub(super) until: Instant,
    /// Which stream it came from, and so whose credit it uses.
    pub(super) stream: u64,
}

impl Held {
    /// A job that has just come.
    pub(super) fn new(job: LeasedJob, stream: u64) -> Self {
        let left = job.lease_remaining.and_then(|left| left.try_into().ok()).unwrap_or(UNSAID);
        Self { job, until: Instant::now() + left, stream }
    }

    /// Runs the plan's command for it. `stop` says when it is to stop from outside.
    pub(super) async fn run(
        mut self,
        plan: Arc<Plan>,
        broker: Broker,
        mut stop: watch::Receiver<Option<Stop>>,
    ) -> (Self, Verdict) {
        if self.seems_over() && !self.is_still_held(&broker).await {
            return (self, Verdict::Lost);
        }
        let mut process = match Process::start(&plan, self.job.payload.clone(), self.variables(&plan)) {
            Ok(process) => process,
            Err(error) => {
                plan.relay.note(&format!("leasehold: job {}: sh cannot be started: {error}", self.job.job_id));
                return (self, Verdict::Release(plan.release_delay));
            }
        };
        let ended = tokio::select! {
            status = process.wait() => Ok(status),
            stop = self.keep(&broker) => Err(stop),
            stop = told(&mut stop) => Err(stop),
        };
        let verdict = match ended {
            Ok(Ok(status)) => verdict::of(status, &process.tail().await, plan.release_delay),
            Err(stop) => match self.stop(&mut process, stop, &plan, &broker).await {
                Ok(status) => verdict::of_stopped(stop, status, &process.tail().await),
                Err(error) => Verdict::Retry(format!("the command could not be stopped: {error}")),
            },
            Ok(Err(error)) => Verdict::Retry(format!("the command could not be waited for: {error}")),
        };
        (self, verdict)
    }

    /// Whether the lease has ended by this machine's clock, as it has where the job lay unread while this process stood still. Clocks
    /// differ, so it is a reason to ask and no more.
    fn seems_over(&self) -> bool {
        let until = self.job.lease_expires_at.and_then(|until| SystemTime::try_from(until).ok());
        until.is_some_and(|until| until <= SystemTime::now())
    }

    /// Asks for more time, once; where nobody answers, what was said when the job came holds.
    async fn is_still_held(&mut self, broker: &Broker) -> bool {
        let asked = Instant::now();
        let request = ExtendRequest { lease_tokens: vec![self.job.lease_token.clone()], lease_duration: None };
        let mut client = broker.queue();
        let Ok(Ok(answer)) = timeout_at(self.until, client.extend(broker.call(request))).await else {
            return Instant::now() < self.until;
        };
        let Some(result) = answer.into_inner().results.into_iter().next() else { return true };
        match result.status() {
            SettleStatus::Ok => {
                self.until = asked + result.lease_remaining.and_then(|left| left.try_into().ok()).unwrap_or(UNSAID);
                true
            }
            SettleStatus::Busy | SettleStatus::Unspecified => true,
            SettleStatus::Gone | SettleStatus::LeaseLost | SettleStatus::InvalidToken => false,
        }
    }

    /// Stops the command. A lease that is not lost is still needed until then, to say what became of the job.
    async fn stop(
        &mut self,
        process: &mut Process,
        stop: Stop,
        plan: &Plan,
        broker: &Broker,
    ) -> std::io::Result<ExitStatus> {
        let kept = async {
            if matches!(stop, Stop::Told | Stop::Cancelled) {
                self.keep(broker).await;
            }
            std::future::pending().await
        };
        tokio::select! {
            status = process.stop(plan.kill_after) => status,
            never = kept => never,
        }
    }

    /// Extends the lease again and again; returns when the command is to stop.
    async fn keep(&mut self, broker: &Broker) -> Stop {
        let mut pauses = Pauses::new(Duration::from_millis(200), Duration::from_secs(2));
        let mut due = self.halfway();
        loop {
            sleep_until(due).await;
            let asked = Instant::now();
            let request = ExtendRequest { lease_tokens: vec![self.job.lease_token.clone()], lease_duration: None };
            let mut client = broker.queue();
            let Ok(answer) = timeout_at(self.until, client.extend(broker.call(request))).await else {
                return Stop::RanOut;
            };
            let result = answer.map(|answer| answer.into_inner().results.into_iter().next());
            match result {
                Ok(Some(result)) => match result.status() {
                    SettleStatus::Ok if result.cancel_requested => return Stop::Cancelled,
                    SettleStatus::Ok => {
                        let left = result.lease_remaining.and_then(|left| left.try_into().ok()).unwrap_or(UNSAID);
                        // counted from before the call, so that its way here is not taken for time that is left
                        self.until = asked + left;
                        pauses.reset();
                        due = self.halfway();
                        continue;
                    }
                    SettleStatus::Busy | SettleStatus::Unspecified => {}
                    SettleStatus::Gone | SettleStatus::LeaseLost | SettleStatus::InvalidToken => return Stop::Lost,
                },
                Err(status) if is_permanent(&status) => {
                    sleep_until(self.until).await;
                    return Stop::RanOut;
                }
                Ok(None) | Err(_) => {}
            }
            due = Instant::now() + pauses.draw();
            if due >= self.until {
                sleep_until(self.until).await;
                return Stop::RanOut;
            }
        }
    }

    fn halfway(&self) -> Instant {
        Instant::now() + self.until.saturating_duration_since(Instant::now()) / 2
    }

    /// What the command may know.
    fn variables(&self, plan: &Plan) -> Vec<(&'static str, String)> {
        let job = &self.job;
        let headers: BTreeMap<_, _> = job.headers.iter().collect();
        let mut variables = vec![
            ("LEASEHOLD_ADDRESS", plan.address.clone()),
            ("LEASEHOLD_CALLER", plan.caller.clone()),
            ("LEASEHOLD_JOB_ID", job.job_id.clone()),
            ("LEASEHOLD_JOB_QUEUE", job.queue.clone()),
            ("LEASEHOLD_JOB_LEASE_TOKEN", job.lease_token.clone()),
            ("LEASEHOLD_JOB_LEASE_NUMBER", job.lease_number.to_string()),
            ("LEASEHOLD_JOB_ATTEMPT", job.attempt.to_string()),
            ("LEASEHOLD_JOB_MAX_ATTEMPTS", job.max_attempts.to_string()),
            ("LEASEHOLD_JOB_PRIORITY", job.priority.to_string()),
            ("LEASEHOLD_JOB_CONTENT_TYPE", job.content_type.clone()),
            ("LEASEHOLD_JOB_ORDERING_KEY", job.ordering_key.clone()),
            ("LEASEHOLD_JOB_IDEMPOTENCY_KEY", job.idempotency_key.clone()),
            ("LEASEHOLD_JOB_HEADERS", serde_json::json!(headers).to_string()),
            ("LEASEHOLD_JOB_LAST_ERROR", job.last_error.clone()),
        ];
        for (name, at) in [
            ("LEASEHOLD_JOB_ENQUEUED_AT", job.enqueued_at),
            ("LEASEHOLD_JOB_AVAILABLE_AT", job.available_at),
            ("LEASEHOLD_JOB_LEASE_EXPIRES_AT", job.lease_expires_at),
        ] {
            variables.extend(time::maybe(at).map(|at| (name, at)));
        }
        for (name, value) in [("TRACEPARENT", &job.traceparent), ("TRACESTATE", &job.tracestate)] {
            variables.extend((!value.is_empty()).then(|| (name, value.clone())));
        }
        // no variable can hold it
        variables.into_iter().map(|(name, value)| (name, value.replace('\0', "\u{fffd}"))).collect()
    }
}

/// Waits until it is to stop.
async fn told(stop: &mut watch::Receiver<Option<Stop>>) -> Stop {
    match stop.wait_for(Option::is_some).await {
        Ok(stop) => stop.unwrap_or(Stop::Told),
        Err(_) => Stop::Told,
    }
}
