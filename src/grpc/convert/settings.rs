//! A queue's settings, and what a request wants changed of them.

use std::{
    fmt::{self, Display, Write as _},
    time::Duration,
};

use super::{
    faults::Faults,
    time::{duration, within},
};
use crate::{
    model::{Failure, Invalid, Limits, QueueName, QueueSettings},
    store::engine::QueueRow,
    v1,
};

const REASON_BYTES: usize = 200;
const SECOND: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const MONTH: Duration = Duration::from_hours(30 * 24);
const YEAR: Duration = Duration::from_hours(365 * 24);
const TEN_YEARS: Duration = Duration::from_hours(3_650 * 24);
/// What the database can hold.
const LARGEST_BOUND: u64 = i64::MAX.cast_unsigned();

/// What an `UpdateQueue` asks for, checked.
#[derive(Debug)]
pub(in crate::grpc) struct QueueUpdate {
    /// Which queue.
    pub(in crate::grpc) queue: QueueName,
    /// It may come into being.
    pub(in crate::grpc) create: bool,
    changes: Vec<Change>,
}

/// One field, and its new value; the default where there is none.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Paused(Option<bool>),
    DisabledReason(Option<String>),
    LeaseDuration(Option<Duration>),
    MaxAttempts(Option<u16>),
    BackoffBase(Option<Duration>),
    BackoffCap(Option<Duration>),
    IdempotencyRetention(Option<Duration>),
    DeadRetention(Option<Duration>),
    MaxBacklogJobs(Option<u64>),
    MaxBacklogBytes(Option<u64>),
    TimeToLive(Option<Duration>),
    AckedRetention(Option<Duration>),
}

/// The request, checked.
pub(in crate::grpc) fn queue_update(request: &v1::UpdateQueueRequest, limits: &Limits) -> Result<QueueUpdate, Failure> {
    let mut faults = Faults::default();
    let queue = faults.keep(QueueName::parse("queue", &request.queue));
    let none = v1::QueueSettings::default();
    let settings = request.settings.as_ref().unwrap_or(&none);
    let paths = request.update_mask.as_ref().map(|mask| &mask.paths[..]).unwrap_or_default();
    if paths.is_empty() && !request.create {
        faults.note(Invalid::new("update_mask", "must name the fields of settings that are to change"));
    }
    let mut changes: Vec<Change> = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        if faults.is_full() {
            break;
        }
        if let Some(change) = Change::read(path, settings, limits) {
            changes.extend(faults.keep(change));
        } else {
            let field = format!("update_mask.paths[{index}]");
            faults.note(Invalid::new(field, "must be a field of settings, such as paused or lease_duration"));
        }
    }
    let queue = faults.or(queue)?.ok_or_else(|| Failure::internal("a queue's name went missing"))?;
    Ok(QueueUpdate { queue, create: request.create, changes })
}

impl Change {
    /// The change of one field; `None` where there is no such field.
    fn read(path: &str, sent: &v1::QueueSettings, limits: &Limits) -> Option<Result<Self, Invalid>> {
        let span = |value: &Option<prost_types::Duration>, min, max| {
            let field = format!("settings.{path}");
            value.as_ref().map(|value| within(&field, value, min, max)).transpose()
        };
        let bound = |value: Option<u64>| match value {
            Some(value) if !(1..=LARGEST_BOUND).contains(&value) => Err(Invalid::new(
                format!("settings.{path}"),
                format!("must be 1 to {LARGEST_BOUND}; leave it out for none"),
            )),
            fine => Ok(fine),
        };
        Some(match path {
            "paused" => Ok(Self::Paused(sent.paused)),
            "disabled_reason" => reason(sent.disabled_reason.as_deref()).map(Self::DisabledReason),
            "lease_duration" => span(&sent.lease_duration, limits.lease_min, limits.lease_max).map(Self::LeaseDuration),
            "max_attempts" => attempts(sent.max_attempts, limits).map(Self::MaxAttempts),
            "backoff_base" => span(&sent.backoff_base, SHORTEST_PAUSE, YEAR).map(Self::BackoffBase),
            "backoff_cap" => span(&sent.backoff_cap, SHORTEST_PAUSE, YEAR).map(Self::BackoffCap),
            "idempotency_retention" => span(&sent.idempotency_retention, SECOND, YEAR).map(Self::IdempotencyRetention),
            "dead_retention" => span(&sent.dead_retention, Duration::ZERO, TEN_YEARS).map(Self::DeadRetention),
            "max_backlog_jobs" => bound(sent.max_backlog_jobs).map(Self::MaxBacklogJobs),
            "max_backlog_bytes" => bound(sent.max_backlog_bytes).map(Self::MaxBacklogBytes),
            "time_to_live" => span(&sent.time_to_live, SECOND, YEAR).map(Self::TimeToLive),
            "acked_retention" => span(&sent.acked_retention, SECOND, MONTH).map(Self::AckedRetention),
            _ => return None,
        })
    }

    fn apply(&self, to: &mut QueueSettings, defaults: &QueueSettings) {
        match self {
            Self::Paused(value) => to.paused = value.unwrap_or(defaults.paused),
            Self::DisabledReason(value) => to.disabled_reason.clone_from(value),
            Self::LeaseDuration(value) => to.lease_duration = value.unwrap_or(defaults.lease_duration),
            Self::MaxAttempts(value) => to.max_attempts = value.unwrap_or(defaults.max_attempts),
            Self::BackoffBase(value) => to.backoff.base = value.unwrap_or(defaults.backoff.base),
            Self::BackoffCap(value) => to.backoff.cap = value.unwrap_or(defaults.backoff.cap),
            Self::IdempotencyRetention(value) => {
                to.idempotency_retention = value.unwrap_or(defaults.idempotency_retention);
            }
            Self::DeadRetention(value) => to.dead_retention = value.unwrap_or(defaults.dead_retention),
            Self::MaxBacklogJobs(value) => to.max_backlog_jobs = value.or(defaults.max_backlog_jobs),
            Self::MaxBacklogBytes(value) => to.max_backlog_bytes = value.or(defaults.max_backlog_bytes),
            Self::TimeToLive(value) => to.time_to_live = value.or(defaults.time_to_live),
            Self::AckedRetention(value) => to.acked_retention = value.or(defaults.acked_retention),
        }
    }
}

impl QueueUpdate {
    /// What becomes of a queue's settings. They are checked as a whole, since the request may name a part of them.
    pub(in crate::grpc) fn apply(
        &self,
        current: &QueueSettings,
        defaults: &QueueSettings,
    ) -> Result<QueueSettings, Failure> {
        let mut settings = current.clone();
        for change in &self.changes {
            change.apply(&mut settings, defaults);
        }
        if settings.backoff.base > settings.backoff.cap {
            let rule =
                format!("must not be longer than backoff_cap, which is {} s", settings.backoff.cap.as_secs_f64());
            return Err(Invalid::new("settings.backoff_base", rule).into());
        }
        Ok(settings)
    }
}

/// For the audit log: each field with its new value.
impl Display for QueueUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue={}", self.queue)?;
        if self.create {
            f.write_str(" create=true")?;
        }
        for change in &self.changes {
            let mut text = String::new();
            let mut say = |name: &str, value: Option<&dyn fmt::Debug>| match value {
                Some(value) => write!(text, " {name}={value:?}"),
                None => write!(text, " {name}=default"),
            };
            macro_rules! say {
                ($name:literal, $value:expr) => {
                    say($name, $value.as_ref().map(|value| value as &dyn fmt::Debug))?
                };
            }
            match change {
                Change::Paused(value) => say!("paused", value),
                Change::DisabledReason(value) => say!("disabled_reason", value),
                Change::LeaseDuration(value) => say!("lease_duration", value),
                Change::MaxAttempts(value) => say!("max_attempts", value),
                Change::BackoffBase(value) => say!("backoff_base", value),
                Change::BackoffCap(value) => say!("backoff_cap", value),
                Change::IdempotencyRetention(value) => say!("idempotency_retention", value),
                Change::DeadRetention(value) => say!("dead_retention", value),
                Change::MaxBacklogJobs(value) => say!("max_backlog_jobs", value),
                Change::MaxBacklogBytes(value) => say!("max_backlog_bytes", value),
                Change::TimeToLive(value) => say!("time_to_live", value),
                Change::AckedRetention(value) => say!("acked_retention", value),
            }
            f.write_str(&text)?;
        }
        Ok(())
    }
}

/// Empty is the same as absent: the queue takes jobs.
fn reason(sent: Option<&str>) -> Result<Option<String>, Invalid> {
    let sent = sent.unwrap_or_default();
    if sent.len() > REASON_BYTES || sent.chars().any(char::is_control) {
        let rule = format!("must be at most {REASON_BYTES} bytes without control characters");
        return Err(Invalid::new("settings.disabled_reason", rule));
    }
    Ok(Some(sent.to_owned()).filter(|reason| !reason.is_empty()))
}

fn attempts(sent: Option<u32>, limits: &Limits) -> Result<Option<u16>, Invalid> {
    let Some(sent) = sent else { return Ok(None) };
    u16::try_from(sent)
        .ok()
        .filter(|attempts| (1..=limits.max_attempts).contains(attempts))
        .map(Some)
        .ok_or_else(|| Invalid::new("settings.max_attempts", format!("must be 1 to {}", limits.max_attempts)))
}

/// A queue as the wire has it, without its counts.
pub(in crate::grpc) fn queue(row: &QueueRow) -> v1::Queue {
    let settings = &row.settings;
    let span = |span: Option<Duration>| span.map(duration);
    v1::Queue {
        name: row.name.as_str().to_owned(),
        settings: Some(v1::QueueSettings {
            paused: Some(settings.paused),
            disabled_reason: Some(settings.disabled_reason.clone().unwrap_or_default()),
            lease_duration: Some(duration(settings.lease_duration)),
            max_attempts: Some(settings.max_attempts.into()),
            backoff_base: Some(duration(settings.backoff.base)),
            backoff_cap: Some(duration(settings.backoff.cap)),
            idempotency_retention: Some(duration(settings.idempotency_retention)),
            dead_retention: Some(duration(settings.dead_retention)),
            max_backlog_jobs: settings.max_backlog_jobs,
            max_backlog_bytes: settings.max_backlog_bytes,
            time_to_live: span(settings.time_to_live),
            acked_retention: span(settings.acked_retention),
        }),
        counts: None,
        deleting: row.closing,
    }
}

#[cfg(test)]
mod tests;
