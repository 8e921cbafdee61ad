//! What became of leases.

use std::time::Duration;

use super::{
    time::{duration, lease_duration, timestamp},
    tokens::Tokens,
};
use crate::{
    model::{Failure, Limits},
    store::engine::{AckedRow, ExtendedRow, Held, NackedRow},
    v1::{self, SettleStatus},
};

/// How long an Extend is for; `None` is what each lease was granted for.
pub(in crate::grpc) fn extend_duration(
    sent: Option<&prost_types::Duration>,
    limits: &Limits,
) -> Result<Option<Duration>, Failure> {
    Ok(sent.map(|sent| lease_duration("lease_duration", sent, limits)).transpose()?)
}

/// The answer to an Ack.
pub(in crate::grpc) fn acked(tokens: &Tokens, rows: &[AckedRow]) -> Result<v1::AckResponse, Failure> {
    let result = |row: &AckedRow| plain(status(row.held));
    Ok(v1::AckResponse { results: tokens.results(rows, result, &plain(SettleStatus::InvalidToken))? })
}

/// The answer to a Nack.
pub(in crate::grpc) fn nacked(tokens: &Tokens, rows: &[NackedRow]) -> Result<v1::NackResponse, Failure> {
    let result = |row: &NackedRow| v1::SettleResult {
        status: status(row.held).into(),
        dead: row.dead,
        available_at: row.ready_at.map(timestamp),
    };
    Ok(v1::NackResponse { results: tokens.results(rows, result, &plain(SettleStatus::InvalidToken))? })
}

/// The answer to an Extend.
pub(in crate::grpc) fn extended(tokens: &Tokens, rows: &[ExtendedRow]) -> Result<v1::ExtendResponse, Failure> {
    let result = |row: &ExtendedRow| v1::ExtendResult {
        status: status(row.held).into(),
        lease_expires_at: row.expires_at.map(timestamp),
        lease_remaining: (row.held == Held::Ok).then(|| duration(row.remaining)),
        cancel_requested: row.cancel_requested,
    };
    let malformed = v1::ExtendResult { status: SettleStatus::InvalidToken.into(), ..v1::ExtendResult::default() };
    Ok(v1::ExtendResponse { results: tokens.results(rows, result, &malformed)? })
}

fn plain(status: SettleStatus) -> v1::SettleResult {
    v1::SettleResult { status: status.into(), ..v1::SettleResult::default() }
}

fn status(held: Held) -> SettleStatus {
    match held {
        Held::Ok => SettleStatus::Ok,
        Held::Gone => SettleStatus::Gone,
        Held::LeaseLost => SettleStatus::LeaseLost,
        Held::Busy => SettleStatus::Busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{JobId, LeaseId, LeaseToken, Outcome, ReplicaId, StreamNumber, Timestamp};

    fn tokens(sent: &[&str]) -> Tokens {
        Tokens::parse("lease_tokens", sent.iter().copied(), &Limits::default()).expect("a fine number")
    }

    fn token(job: i64) -> String {
        LeaseToken { job: JobId(job), lease: LeaseId(1), replica: ReplicaId(2), stream: StreamNumber(3) }.encode()
    }

    #[test]
    fn malformed_tokens_are_answered_in_their_place_and_never_asked_about() {
        let (one, two) = (token(1), token(2));
        let tokens = tokens(&["", &one, "bad", &two, &one, &two[1..]]);
        let asked: Vec<_> = tokens.leases().iter().map(|lease| lease.job).collect();
        assert_eq!(asked, [JobId(1), JobId(2), JobId(1)]);
        let rows = [Held::Ok, Held::Busy, Held::Gone].map(|held| AckedRow { held, queue: None, readied: None });
        let answer = acked(&tokens, &rows).expect("one row per lease");
        let statuses: Vec<_> = answer.results.iter().map(v1::SettleResult::status).collect();
        let malformed = SettleStatus::InvalidToken;
        assert_eq!(
            statuses,
            [malformed, SettleStatus::Ok, malformed, SettleStatus::Busy, SettleStatus::Gone, malformed]
        );
    }

    #[test]
    fn a_wrong_number_of_answers_is_our_bug_and_not_an_ok() {
        let failure = acked(&tokens(&[&token(1)]), &[]).expect_err("no row");
        assert_eq!(failure.outcome, Outcome::Unknown);
    }

    #[test]
    fn an_extended_lease_shows_its_end_and_a_lost_one_none() {
        let held = ExtendedRow {
            held: Held::Ok,
            expires_at: Some(Timestamp(2_000_000)),
            remaining: Duration::from_secs(30),
            cancel_requested: true,
        };
        let lost =
            ExtendedRow { held: Held::LeaseLost, expires_at: None, remaining: Duration::ZERO, cancel_requested: false };
        let answer = extended(&tokens(&[&token(1), &token(2)]), &[held, lost]).expect("two rows");
        assert_eq!(answer.results[0].lease_remaining, Some(prost_types::Duration { seconds: 30, nanos: 0 }));
        assert!(answer.results[0].cancel_requested);
        assert_eq!(answer.results[1].status(), SettleStatus::LeaseLost);
        assert_eq!((answer.results[1].lease_remaining, answer.results[1].lease_expires_at), (None, None));
    }

    #[test]
    fn a_call_holds_one_to_a_thousand_tokens() {
        for count in [0, 1_001] {
            let sent = vec![""; count];
            let refused = Tokens::parse("lease_tokens", sent.iter().copied(), &Limits::default()).expect_err("count");
            assert_eq!(refused.invalid[0].field, "lease_tokens");
        }
    }
}
