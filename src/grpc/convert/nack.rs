//! What a Nack asks for.

use super::{faults::Faults, time::delay, tokens::Tokens};
use crate::{
    model::{Failure, Invalid, Limits, NackAction, limits::storable_text},
    store::engine::NackRow,
    v1,
};

/// The tokens of a Nack, and for each well-formed one what to do. `jitter` draws a fraction from 0 to 1.
pub(in crate::grpc) fn nack_items(
    request: &v1::NackRequest,
    limits: &Limits,
    mut jitter: impl FnMut() -> f64,
) -> Result<(Tokens, Vec<NackRow>), Failure> {
    let tokens = Tokens::parse("items", request.items.iter().map(|item| item.lease_token.as_str()), limits)?;
    let mut faults = Faults::default();
    // Also items with malformed tokens are checked: whether a request is valid does not hang on its tokens.
    let asked: Vec<_> = request
        .items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let mut keep = |checked: Result<_, Invalid>| {
                faults.keep(checked.map_err(|fault| fault.within(format_args!("items[{index}]"))))
            };
            let delay = match &item.delay {
                Some(sent) => keep(delay("delay", sent, limits)),
                None => None,
            };
            let action = action(item.action).map_err(|fault| fault.within(format_args!("items[{index}]")));
            (faults.keep(action).unwrap_or(NackAction::Retry), delay)
        })
        .collect();
    faults.or(())?;
    let row = |(place, lease): (usize, _)| NackRow {
        lease,
        action: asked[place].0,
        delay: asked[place].1,
        jitter: jitter(),
        error: storable_text(&request.items[place].error, limits.error_bytes),
    };
    let rows = tokens.places().map(row).collect();
    Ok((tokens, rows))
}

fn action(sent: i32) -> Result<NackAction, Invalid> {
    match v1::NackAction::try_from(sent) {
        Ok(v1::NackAction::Unspecified | v1::NackAction::Retry) => Ok(NackAction::Retry),
        Ok(v1::NackAction::Release) => Ok(NackAction::Release),
        Ok(v1::NackAction::Reject) => Ok(NackAction::Reject),
        Err(_) => Err(Invalid::new("action", "must be RETRY, RELEASE or REJECT")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{JobId, LeaseId, LeaseToken, ReplicaId, StreamNumber};

    fn item(token: &str) -> v1::NackItem {
        v1::NackItem { lease_token: token.to_owned(), ..v1::NackItem::default() }
    }

    fn token(job: i64) -> String {
        LeaseToken { job: JobId(job), lease: LeaseId(1), replica: ReplicaId(2), stream: StreamNumber(3) }.encode()
    }

    fn read(items: Vec<v1::NackItem>) -> Result<(Tokens, Vec<NackRow>), Failure> {
        nack_items(&v1::NackRequest { items }, &Limits::default(), || 0.5)
    }

    #[test]
    fn an_item_without_an_action_is_a_retry_by_the_queues_back_off() {
        let (_, rows) = read(vec![item(&token(7))]).expect("valid");
        assert_eq!((rows[0].lease.job, rows[0].action, rows[0].delay), (JobId(7), NackAction::Retry, None));
    }

    #[test]
    fn unknown_actions_and_bad_delays_are_reported_together() {
        let mut first = item(&token(1));
        first.action = 4;
        first.delay = Some(prost_types::Duration { seconds: -1, nanos: 0 });
        let mut second = item("not a token");
        second.action = -1;
        let refused = read(vec![first, second]).expect_err("three faults");
        let fields: Vec<_> = refused.invalid.iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(fields, ["items[0].delay", "items[0].action", "items[1].action"]);
    }

    #[test]
    fn each_row_keeps_what_its_own_item_asked_for_past_malformed_tokens() {
        let mut reject = item(&token(2));
        reject.action = v1::NackAction::Reject.into();
        reject.error = "a\0b".into();
        let (_, rows) = read(vec![item("x"), reject, item(""), item(&token(3))]).expect("valid");
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].lease.job, rows[0].action, rows[0].error.as_str()),
            (JobId(2), NackAction::Reject, "a\u{fffd}b")
        );
        assert_eq!((rows[1].lease.job, rows[1].action), (JobId(3), NackAction::Retry));
    }

    #[test]
    fn a_long_error_is_cut_and_not_refused() {
        let mut long = item(&token(1));
        long.error = "é".repeat(1 << 20);
        let (_, rows) = read(vec![long]).expect("valid");
        assert_eq!(rows[0].error.len(), 4 << 10);
    }

    #[test]
    fn a_nack_holds_one_to_a_thousand_items() {
        for count in [0, 1_001] {
            let refused = read(vec![item(""); count]).expect_err("count");
            assert_eq!(refused.invalid, [Invalid::new("items", "must hold 1 to 1000 entries")]);
        }
    }
}
