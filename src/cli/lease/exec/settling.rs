//! Telling the broker what became of a job, until it answers.

use std::time::Duration;

use tokio::time::Instant;
use tonic::Status;

use super::{run::Held, verdict::Verdict};
use crate::{
    cli::{
        broker::{Broker, Failed, Pauses, outcome_is_unknown},
        flag,
        lease::stream::is_permanent,
    },
    v1::{AckRequest, NackAction, NackItem, NackRequest, SettleResult, SettleStatus},
};

/// How long after a lease's end it is still tried: as long as nobody reaped the job its holder may settle it.
const AFTERWARDS: Duration = Duration::from_secs(60);

/// What the broker answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Settled {
    Acked,
    /// Ready again later.
    Retried,
    /// Released, and no attempt was counted.
    Released,
    /// Rejected, or out of attempts.
    Dead,
    /// Somebody cancelled it.
    Cancelled,
    /// The lease decides nothing any more.
    Lost,
    /// No answer: the lease ends by itself.
    Unanswered(String),
}

/// Tells the verdict, again and again where the broker is away.
pub(super) async fn settle(broker: &Broker, held: &Held, verdict: &Verdict, retry_delay: Option<Duration>) -> Settled {
    let until = held.until.max(Instant::now()) + AFTERWARDS;
    let mut pauses = Pauses::new(Duration::from_millis(50), Duration::from_secs(2));
    // an earlier call that got no answer may have done it
    let mut maybe_done = false;
    loop {
        let failed = match tell(broker, &held.job.lease_token, verdict, retry_delay).await {
            Ok(Some(result)) => match settled(verdict, result, maybe_done) {
                Some(settled) => return settled,
                None => "another transaction holds the job".to_owned(),
            },
            Ok(None) => "the broker's answer is empty".to_owned(),
            Err(status) => {
                maybe_done |= outcome_is_unknown(&status);
                let permanent = is_permanent(&status);
                let text = Failed::from(status).headline().to_owned();
                if permanent {
                    return Settled::Unanswered(text);
                }
                text
            }
        };
        if Instant::now() >= until {
            return Settled::Unanswered(failed);
        }
        tokio::time::sleep(pauses.draw()).await;
    }
}

async fn tell(
    broker: &Broker,
    token: &str,
    verdict: &Verdict,
    retry_delay: Option<Duration>,
) -> Result<Option<SettleResult>, Status> {
    let (action, delay, error) = match verdict {
        Verdict::Ack => {
            let request = AckRequest { lease_tokens: vec![token.to_owned()] };
            let answer = broker.queue().ack(broker.call(request)).await?.into_inner();
            return Ok(answer.results.into_iter().next());
        }
        Verdict::Lost => {
            return Ok(Some(SettleResult { status: SettleStatus::LeaseLost.into(), ..Default::default() }));
        }
        Verdict::Retry(error) => (NackAction::Retry, retry_delay, error.as_str()),
        Verdict::Release(delay) => (NackAction::Release, Some(*delay), ""),
        Verdict::Reject(error) => (NackAction::Reject, None, error.as_str()),
        Verdict::Cancelled => (NackAction::Retry, None, "stopped: the job was cancelled"),
    };
    let item = NackItem {
        lease_token: token.to_owned(),
        action: action.into(),
        delay: delay.map(flag::wire),
        error: error.to_owned(),
    };
    let answer = broker.queue().nack(broker.call(NackRequest { items: vec![item] })).await?.into_inner();
    Ok(answer.results.into_iter().next())
}

/// What an answer means; nothing where it is to be asked again.
fn settled(verdict: &Verdict, result: SettleResult, maybe_done: bool) -> Option<Settled> {
    let done = match verdict {
        Verdict::Ack => Settled::Acked,
        Verdict::Retry(_) => Settled::Retried,
        Verdict::Release(_) => Settled::Released,
        Verdict::Reject(_) => Settled::Dead,
        Verdict::Cancelled => Settled::Cancelled,
        Verdict::Lost => Settled::Lost,
    };
    match result.status() {
        SettleStatus::Ok if result.dead => Some(Settled::Dead),
        SettleStatus::Ok => Some(done),
        SettleStatus::Busy | SettleStatus::Unspecified => None,
        SettleStatus::Gone if maybe_done && *verdict == Verdict::Ack => Some(done),
        // an Ack that was applied leaves nothing that could have lost a lease
        SettleStatus::LeaseLost if maybe_done && *verdict != Verdict::Ack => Some(done),
        SettleStatus::Gone if *verdict == Verdict::Cancelled => Some(done),
        SettleStatus::Gone | SettleStatus::LeaseLost | SettleStatus::InvalidToken => Some(Settled::Lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: SettleStatus) -> SettleResult {
        SettleResult { status: status.into(), ..SettleResult::default() }
    }

    #[test]
    fn an_ack_that_is_gone_was_ours_only_where_an_earlier_one_got_no_answer() {
        assert_eq!(settled(&Verdict::Ack, answer(SettleStatus::Gone), true), Some(Settled::Acked));
        assert_eq!(settled(&Verdict::Ack, answer(SettleStatus::Gone), false), Some(Settled::Lost));
    }

    #[test]
    fn a_nack_that_lost_its_lease_was_ours_only_where_an_earlier_one_got_no_answer() {
        let retry = Verdict::Retry(String::new());
        assert_eq!(settled(&retry, answer(SettleStatus::LeaseLost), true), Some(Settled::Retried));
        assert_eq!(settled(&retry, answer(SettleStatus::LeaseLost), false), Some(Settled::Lost));
        assert_eq!(settled(&Verdict::Ack, answer(SettleStatus::LeaseLost), true), Some(Settled::Lost));
    }

    #[test]
    fn a_busy_job_is_asked_for_again_and_a_last_attempt_makes_it_dead() {
        assert_eq!(settled(&Verdict::Ack, answer(SettleStatus::Busy), false), None);
        let last = SettleResult { dead: true, ..answer(SettleStatus::Ok) };
        assert_eq!(settled(&Verdict::Retry(String::new()), last, false), Some(Settled::Dead));
    }
}
