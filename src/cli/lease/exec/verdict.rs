//! What becomes of a job, by how its command ended.

use std::{os::unix::process::ExitStatusExt as _, process::ExitStatus, time::Duration};

/// Exit code of a command whose job will never succeed: `EX_DATAERR` of sysexits.h.
const REJECT: i32 = 65;
/// Exit code of a command that could not begin: `EX_TEMPFAIL` of sysexits.h.
const RELEASE: i32 = 75;

/// What the broker is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Done.
    Ack,
    /// Failed: again later.
    Retry(String),
    /// Not begun: again after this.
    Release(Duration),
    /// Will never succeed.
    Reject(String),
    /// Somebody cancelled it, and it was stopped: the broker removes it.
    Cancelled,
    /// The lease is gone: there is nothing to tell.
    Lost,
}

/// Why a command is to stop before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Somebody cancelled the job.
    Cancelled,
    /// Another lease decides, or none.
    Lost,
    /// No call that would have extended the lease got through in time.
    RanOut,
    /// This worker ends.
    Told,
}

/// The verdict on a command that ended by itself.
pub(super) fn of(status: ExitStatus, tail: &str, release_delay: Duration) -> Verdict {
    match status.code() {
        Some(0) => Verdict::Ack,
        Some(REJECT) => Verdict::Reject(said(status, tail)),
        Some(RELEASE) => Verdict::Release(release_delay),
        _ => Verdict::Retry(said(status, tail)),
    }
}

/// The verdict on a command that was stopped. One that was done nevertheless is done.
pub(super) fn of_stopped(stop: Stop, status: ExitStatus, tail: &str) -> Verdict {
    match stop {
        Stop::Lost => Verdict::Lost,
        _ if status.success() => Verdict::Ack,
        Stop::Cancelled => Verdict::Cancelled,
        Stop::RanOut => Verdict::Retry(said(status, &format!("stopped, as its lease could not be extended; {tail}"))),
        Stop::Told => Verdict::Release(Duration::ZERO),
    }
}

/// How it ended and what it said, for the job's error.
fn said(status: ExitStatus, tail: &str) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    };
    if tail.is_empty() { how } else { format!("{how}: {tail}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(1);

    fn exited(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn the_exit_code_decides() {
        assert_eq!(of(exited(0), "noise", PAUSE), Verdict::Ack);
        assert_eq!(of(exited(65), "no such order", PAUSE), Verdict::Reject("exit code 65: no such order".into()));
        assert_eq!(of(exited(75), "", PAUSE), Verdict::Release(PAUSE));
        assert_eq!(of(exited(1), "", PAUSE), Verdict::Retry("exit code 1".into()));
        assert_eq!(of(ExitStatus::from_raw(9), "x", PAUSE), Verdict::Retry("killed by signal 9: x".into()));
    }

    #[test]
    fn a_command_that_was_stopped_counts_no_attempt_unless_the_job_or_its_lease_ended() {
        let killed = ExitStatus::from_raw(15);
        assert_eq!(of_stopped(Stop::Told, killed, ""), Verdict::Release(Duration::ZERO));
        assert_eq!(of_stopped(Stop::Cancelled, killed, ""), Verdict::Cancelled);
        assert_eq!(of_stopped(Stop::Lost, killed, ""), Verdict::Lost);
        assert!(matches!(of_stopped(Stop::RanOut, killed, ""), Verdict::Retry(_)));
    }

    #[test]
    fn a_command_that_was_done_when_it_was_stopped_is_done_but_for_a_lost_lease() {
        for stop in [Stop::Told, Stop::Cancelled, Stop::RanOut] {
            assert_eq!(of_stopped(stop, exited(0), ""), Verdict::Ack);
        }
        assert_eq!(of_stopped(Stop::Lost, exited(0), ""), Verdict::Lost);
    }
}
