//! Settings of a queue as flags.

use std::time::Duration;

use clap::{Args, ValueEnum};
use prost_types::FieldMask;

use crate::{cli::flag, v1::QueueSettings};

/// What is to hold from now on. What is not given stays as it is.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(super) struct Settings {
    /// How long a lease lasts where its stream does not say
    #[arg(long, value_name = "TIME", value_parser = flag::span)]
    lease: Option<Duration>,
    /// Leases granted before a job is dead, where the job does not say
    #[arg(long, value_name = "COUNT")]
    max_attempts: Option<u32>,
    /// First pause before a retry; doubled with each attempt
    #[arg(long, value_name = "TIME", value_parser = flag::span)]
    backoff_base: Option<Duration>,
    /// Longest pause before a retry
    #[arg(long, value_name = "TIME", value_parser = flag::span)]
    backoff_cap: Option<Duration>,
    /// How long idempotency keys are kept
    #[arg(long, value_name = "TIME", value_parser = flag::span)]
    idempotency_retention: Option<Duration>,
    /// How long dead jobs are kept
    #[arg(long, value_name = "TIME", value_parser = flag::span)]
    dead_retention: Option<Duration>,
    /// How long acked jobs stay visible
    #[arg(long, value_name = "TIME", value_parser = flag::span)]
    acked_retention: Option<Duration>,
    /// A job that stays ready for so long becomes dead
    #[arg(long, value_name = "TIME", value_parser = flag::span)]
    time_to_live: Option<Duration>,
    /// Live jobs at most
    #[arg(long, value_name = "COUNT")]
    max_backlog_jobs: Option<u64>,
    /// Payload bytes of live jobs at most
    #[arg(long, value_name = "BYTES")]
    max_backlog_bytes: Option<u64>,
    /// Settings that go back to their defaults
    #[arg(long, value_name = "SETTING", value_enum, value_delimiter = ',')]
    reset: Vec<Setting>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Setting {
    Lease,
    MaxAttempts,
    BackoffBase,
    BackoffCap,
    IdempotencyRetention,
    DeadRetention,
    AckedRetention,
    TimeToLive,
    MaxBacklogJobs,
    MaxBacklogBytes,
}

impl Setting {
    /// Its field in the contract.
    fn field(self) -> &'static str {
        match self {
            Self::Lease => "lease_duration",
            Self::MaxAttempts => "max_attempts",
            Self::BackoffBase => "backoff_base",
            Self::BackoffCap => "backoff_cap",
            Self::IdempotencyRetention => "idempotency_retention",
            Self::DeadRetention => "dead_retention",
            Self::AckedRetention => "acked_retention",
            Self::TimeToLive => "time_to_live",
            Self::MaxBacklogJobs => "max_backlog_jobs",
            Self::MaxBacklogBytes => "max_backlog_bytes",
        }
    }
}

impl Settings {
    /// The values and which of them are meant; or the setting that is both given and reset.
    pub(super) fn wire(&self) -> Result<(QueueSettings, FieldMask), String> {
        let settings = QueueSettings {
            lease_duration: self.lease.map(flag::wire),
            max_attempts: self.max_attempts,
            backoff_base: self.backoff_base.map(flag::wire),
            backoff_cap: self.backoff_cap.map(flag::wire),
            idempotency_retention: self.idempotency_retention.map(flag::wire),
            dead_retention: self.dead_retention.map(flag::wire),
            acked_retention: self.acked_retention.map(flag::wire),
            time_to_live: self.time_to_live.map(flag::wire),
            max_backlog_jobs: self.max_backlog_jobs,
            max_backlog_bytes: self.max_backlog_bytes,
            ..QueueSettings::default()
        };
        let mut paths = Vec::new();
        for setting in Setting::value_variants() {
            let given = match setting {
                Setting::Lease => self.lease.is_some(),
                Setting::MaxAttempts => self.max_attempts.is_some(),
                Setting::BackoffBase => self.backoff_base.is_some(),
                Setting::BackoffCap => self.backoff_cap.is_some(),
                Setting::IdempotencyRetention => self.idempotency_retention.is_some(),
                Setting::DeadRetention => self.dead_retention.is_some(),
                Setting::AckedRetention => self.acked_retention.is_some(),
                Setting::TimeToLive => self.time_to_live.is_some(),
                Setting::MaxBacklogJobs => self.max_backlog_jobs.is_some(),
                Setting::MaxBacklogBytes => self.max_backlog_bytes.is_some(),
            };
            let reset = self.reset.contains(setting);
            if given && reset {
                return Err(format!("{} is both given and reset", setting.field().replace('_', "-")));
            }
            if given || reset {
                paths.push(setting.field().to_owned());
            }
        }
        Ok((settings, FieldMask { paths }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_and_what_is_reset_is_in_the_mask_and_nothing_else() {
        let settings = Settings {
            lease: Some(Duration::from_secs(60)),
            reset: vec![Setting::MaxBacklogJobs],
            ..Settings::default()
        };
        let (values, mask) = settings.wire().expect("no contradiction");
        assert_eq!(mask.paths, ["lease_duration", "max_backlog_jobs"]);
        assert_eq!(values.lease_duration.map(|lease| lease.seconds), Some(60));
        assert_eq!(values.max_backlog_jobs, None);
    }

    #[test]
    fn a_setting_cannot_be_given_and_reset() {
        let settings = Settings { max_attempts: Some(3), reset: vec![Setting::MaxAttempts], ..Settings::default() };
        assert!(settings.wire().expect_err("a contradiction").starts_with("max-attempts"));
    }

    #[test]
    fn every_setting_names_a_field_of_the_contract() {
        let contract = include_str!("../../../proto/leasehold/v1/admin.proto");
        for setting in Setting::value_variants() {
            assert!(contract.contains(&format!(" {} = ", setting.field())), "{setting:?}");
        }
    }
}
