//! Running merged requests without joining their fates.
//!
//! Requests of one kind and caller run as one statement. One that was certainly not applied, for a reason in the data or a
//! lock, runs again in halves, down to single requests, so that each gets the answer that it would have got alone. One whose
//! outcome is unknown makes every request in it unknown and is never repeated here. A request whose asker has given up since,
//! and so was told that its outcome is unknown, is not run again: a lock that nobody lets go of would otherwise hold the lane
//! for as many waits as there were requests.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;

use super::{
    engine::{AckedRow, EnqueuedRow, ExtendRow, ExtendedRow, JobRow, LeaseRef, LockWait, NackRow, NackedRow, Session},
    error::EngineError,
    request::Ask,
    retry::{TRIES, pause},
};
use crate::model::Caller;

/// An act whose requests can run as one statement.
#[async_trait]
pub(super) trait Merges: Send + Sync {
    /// What it runs on: a session, or in tests what stands for one.
    type On: ?Sized + Send;
    type Item: Send + Sync;
    type Answer: Send;

    async fn run(
        &self,
        on: &mut Self::On,
        caller: &Caller,
        items: &[Self::Item],
        wait: LockWait,
    ) -> Result<Vec<Self::Answer>, EngineError>;
}

pub(super) struct EnqueueAct;
pub(super) struct AckAct;
pub(super) struct NackAct;
pub(super) struct ExtendAct;
pub(super) struct GiveBackAct;

macro_rules! merges {
    ($act:ty, $item:ty => $answer:ty, |$session:ident, $caller:ident, $items:ident, $wait:ident| $run:expr) => {
        #[async_trait]
        impl Merges for $act {
            type On = dyn Session;
            type Item = $item;
            type Answer = $answer;
            async fn run(
                &self,
                $session: &mut Self::On,
                $caller: &Caller,
                $items: &[$item],
                $wait: LockWait,
            ) -> Result<Vec<$answer>, EngineError> {
                $run.await
            }
        }
    };
}

merges!(EnqueueAct, JobRow => EnqueuedRow, |session, caller, items, wait| session.enqueue(caller, items, wait));
merges!(AckAct, LeaseRef => AckedRow, |session, caller, items, wait| session.ack(caller, items, wait));
merges!(NackAct, NackRow => NackedRow, |session, caller, items, wait| session.nack(caller, items, wait));
merges!(ExtendAct, ExtendRow => ExtendedRow, |session, caller, items, _wait| session.extend(caller, items));
merges!(GiveBackAct, LeaseRef => bool, |session, caller, items, _wait| session.give_back(caller, items));

/// What a run left behind.
pub(super) struct Ran<I, A> {
    /// Requests of which nothing was sent: they wait for another lane.
    pub(super) unsent: Vec<Ask<I, A>>,
    /// What made the connection unusable, if anything did.
    pub(super) poison: Option<EngineError>,
    /// The class of the last failure that a request was told.
    pub(super) failed: Option<&'static str>,
    /// Statements that ran, and those of them that failed.
    pub(super) tries: Tries,
}

/// Statements that ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tries {
    /// All of them.
    pub(super) statements: u64,
    /// Those that failed.
    pub(super) errors: u64,
    /// Those of them that met a deadlock, or a lock that they did not get in time.
    pub(super) conflicts: u64,
}

/// Requests that run as one statement: their items in one row, and where each one's end.
struct Group<I, A> {
    items: Vec<I>,
    asks: Vec<Ask<I, A>>,
    sizes: Vec<usize>,
}

impl<I, A> Group<I, A> {
    fn new(mut asks: Vec<Ask<I, A>>) -> Self {
        let sizes: Vec<usize> = asks.iter().map(|ask| ask.items.len()).collect();
        let items = asks.iter_mut().flat_map(|ask| std::mem::take(&mut ask.items)).collect();
        Self { items, asks, sizes }
    }

    /// The group without requests whose askers have given up; nothing where none is left.
    fn still_wanted(self) -> Option<Self> {
        if self.asks.iter().all(|ask| !ask.reply.is_closed()) {
            return Some(self);
        }
        let wanted: Vec<_> = self.apart().into_iter().filter(|ask| !ask.reply.is_closed()).collect();
        (!wanted.is_empty()).then(|| Self::new(wanted))
    }

    /// The requests as they came, their items back in them.
    fn apart(self) -> Vec<Ask<I, A>> {
        let mut items = self.items.into_iter();
        let mut asks = self.asks;
        for (ask, size) in asks.iter_mut().zip(self.sizes) {
            ask.items = items.by_ref().take(size).collect();
        }
        asks
    }

    fn halves(self) -> [Self; 2] {
        let mut first = self.apart();
        let second = first.split_off(first.len().div_ceil(2));
        [Self::new(first), Self::new(second)]
    }

    fn answer(self, answers: Vec<A>) {
        let mut answers = answers.into_iter();
        for (ask, size) in self.asks.into_iter().zip(self.sizes) {
            // An asker that stopped waiting has said what it knows already.
            drop(ask.reply.send(Ok(answers.by_ref().take(size).collect())));
        }
    }

    fn fail(self, error: &EngineError) {
        for ask in self.asks {
            drop(ask.reply.send(Err(error.clone())));
        }
    }
}

/// Runs `asks`, each statement for at most `deadline`, and answers them.
pub(super) async fn run<M: Merges>(
    act: M,
    on: &mut M::On,
    caller: &Caller,
    asks: Vec<Ask<M::Item, M::Answer>>,
    deadline: Duration,
) -> Ran<M::Item, M::Answer> {
    let (mut groups, mut failed, mut tries) = (Vec::new(), None, Tries::default());
    // A lane took them, so they run once whatever becomes of their askers.
    let mut next = Some(Group::new(asks));
    while let Some(group) = next {
        match attempt(&act, on, caller, &group, deadline, &mut tries).await {
            Ok(answers) => group.answer(answers),
            Err(error) if group.asks.len() > 1 && error.may_be_halved() => {
                let [first, second] = group.halves();
                groups.extend([second, first]);
            }
            Err(error @ EngineError::NotSent(_)) => {
                groups.push(group);
                let unsent = groups.into_iter().rev().flat_map(Group::apart).collect();
                return Ran { unsent, failed: Some(error.class()), poison: Some(error), tries };
            }
            Err(error) => {
                failed = Some(error.class());
                group.fail(&error);
                if error.poisons_connection() {
                    let unsent = groups.into_iter().rev().flat_map(Group::apart).collect();
                    return Ran { unsent, failed, poison: Some(error), tries };
                }
            }
        }
        next = std::iter::from_fn(|| groups.pop()).find_map(Group::still_wanted);
    }
    Ran { unsent: Vec::new(), poison: None, failed, tries }
}

async fn attempt<M: Merges>(
    act: &M,
    on: &mut M::On,
    caller: &Caller,
    group: &Group<M::Item, M::Answer>,
    deadline: Duration,
    tries: &mut Tries,
) -> Result<Vec<M::Answer>, EngineError> {
    let items = &group.items;
    let (most, wait) = if group.asks.len() == 1 { (TRIES, LockWait::Full) } else { (1, LockWait::Short) };
    let mut trial = 0;
    loop {
        trial += 1;
        let result = match timeout(deadline, act.run(on, caller, items, wait)).await {
            Ok(result) => result,
            Err(_) => Err(EngineError::Unknown("no answer within the lane's own deadline".into())),
        };
        tries.statements += 1;
        tries.errors += u64::from(result.is_err());
        tries.conflicts += u64::from(matches!(result, Err(EngineError::Conflict(_))));
        match result {
            Ok(answers) if answers.len() == items.len() => return Ok(answers),
            Ok(answers) => {
                let counts = format!("{} answers for {} items", answers.len(), items.len());
                return Err(EngineError::Bug(counts));
            }
            Err(EngineError::Conflict(_)) if trial < most && group.asks.iter().any(|ask| !ask.reply.is_closed()) => {
                pause(trial).await;
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::sync::oneshot::{self, Receiver};

    use super::*;
    use crate::{store::request::Ticket, telemetry::spans::Origin};

    /// Statements sent so far, and what the database answers.
    struct Scripted {
        sent: Vec<Vec<i32>>,
        answer: fn(&[i32], LockWait) -> Result<(), EngineError>,
    }

    struct Doubling;

    #[async_trait]
    impl Merges for Doubling {
        type On = Scripted;
        type Item = i32;
        type Answer = i32;

        async fn run(
            &self,
            on: &mut Scripted,
            _caller: &Caller,
            items: &[i32],
            wait: LockWait,
        ) -> Result<Vec<i32>, EngineError> {
            on.sent.push(items.to_vec());
            (on.answer)(items, wait)?;
            Ok(items.iter().map(|item| item * 2).collect())
        }
    }

    type Answer = Receiver<Result<Vec<i32>, EngineError>>;

    fn ask(items: &[i32]) -> (Ask<i32, i32>, Answer) {
        let (reply, answer) = oneshot::channel();
        let ask = Ask {
            items: items.to_vec(),
            bytes: 0,
            ticket: Ticket::new(),
            queued_at: Instant::now(),
            origin: Origin::default(),
            reply,
        };
        (ask, answer)
    }

    async fn run_all(
        requests: &[&[i32]],
        answer: fn(&[i32], LockWait) -> Result<(), EngineError>,
    ) -> (Ran<i32, i32>, Vec<Answer>, Scripted) {
        let (asks, answers) = requests.iter().map(|items| ask(items)).unzip();
        let mut on = Scripted { sent: Vec::new(), answer };
        let ran = run(Doubling, &mut on, &Caller::unattributed(), asks, Duration::from_secs(5)).await;
        (ran, answers, on)
    }

    #[tokio::test]
    async fn each_request_gets_its_own_answers() {
        let (_, answers, on) = run_all(&[&[1, 2], &[3], &[4, 5, 6]], |_, _| Ok(())).await;
        let mut got = Vec::new();
        for answer in answers {
            got.push(answer.await.expect("answered").expect("fine"));
        }
        assert_eq!(got, [vec![2, 4], vec![6], vec![8, 10, 12]]);
        assert_eq!(on.sent.len(), 1);
    }

    #[tokio::test]
    async fn a_refused_request_fails_alone_among_ninety_nine_good_ones() {
        let items: Vec<[i32; 1]> = (0..100).map(|n| [n]).collect();
        let requests: Vec<&[i32]> = items.iter().map(<[i32; 1]>::as_slice).collect();
        let (ran, answers, on) =
            run_all(
                &requests,
                |items, _| {
                    if items.contains(&37) { Err(EngineError::Refused("23514".into())) } else { Ok(()) }
                },
            )
            .await;
        for (at, answer) in answers.into_iter().enumerate() {
            let answer = answer.await.expect("answered");
            assert_eq!(answer.is_err(), at == 37, "request {at}: {answer:?}");
        }
        assert!(ran.poison.is_none());
        assert!(on.sent.len() <= 16, "halving takes few statements: {}", on.sent.len());
    }

    #[tokio::test]
    async fn an_unknown_outcome_is_everybodys_and_is_never_repeated() {
        let (ran, answers, on) = run_all(&[&[1], &[2]], |_, _| Err(EngineError::Unknown("reset".into()))).await;
        for answer in answers {
            assert!(matches!(answer.await.expect("answered"), Err(EngineError::Unknown(_))));
        }
        assert_eq!(on.sent.len(), 1);
        assert!(ran.poison.is_some() && ran.unsent.is_empty());
    }

    #[tokio::test]
    async fn what_was_not_sent_waits_again_in_its_order() {
        let (ran, _answers, _) = run_all(&[&[1, 2], &[3]], |_, _| Err(EngineError::NotSent("closed".into()))).await;
        let items: Vec<Vec<i32>> = ran.unsent.into_iter().map(|ask| ask.items).collect();
        assert_eq!(items, [vec![1, 2], vec![3]]);
    }

    #[tokio::test]
    async fn a_connection_lost_between_halves_leaves_the_rest_unsent() {
        let (ran, answers, _) = run_all(&[&[1], &[2], &[3]], |items, _| match items {
            [1] => Err(EngineError::Unknown("reset".into())),
            _ => Err(EngineError::Refused("23514".into())),
        })
        .await;
        let mut answers = answers.into_iter();
        let first = answers.next().expect("three").await.expect("answered");
        assert!(matches!(first, Err(EngineError::Unknown(_))));
        let left: Vec<Vec<i32>> = ran.unsent.into_iter().map(|ask| ask.items).collect();
        assert_eq!(left, [vec![2], vec![3]]);
    }

    #[tokio::test]
    async fn a_single_request_waits_for_locks_in_full_and_tries_three_times() {
        let (_, answers, on) = run_all(&[&[1], &[2]], |items, wait| {
            assert_eq!(wait == LockWait::Full, items.len() == 1, "merged ones wait shortly");
            if items.contains(&2) { Err(EngineError::Conflict("40P01".into())) } else { Ok(()) }
        })
        .await;
        let results: Vec<_> = futures_util::future::join_all(answers).await;
        assert!(matches!(&results[0], Ok(Ok(_))));
        assert!(matches!(&results[1], Ok(Err(EngineError::Conflict(_)))));
        assert_eq!(on.sent, [vec![1, 2], vec![1], vec![2], vec![2], vec![2]]);
    }

    #[tokio::test]
    async fn a_request_that_failed_is_not_run_again_for_an_asker_who_gave_up() {
        let (asks, mut answers): (Vec<_>, Vec<_>) = [[1], [2], [3], [4]].iter().map(|items| ask(items)).unzip();
        drop(answers.split_off(1));
        let mut on = Scripted { sent: Vec::new(), answer: |_, _| Err(EngineError::Conflict("55P03".into())) };
        let ran = run(Doubling, &mut on, &Caller::unattributed(), asks, Duration::from_secs(5)).await;
        assert!(ran.unsent.is_empty() && ran.poison.is_none());
        assert_eq!(on.sent, [vec![1, 2, 3, 4], vec![1], vec![1], vec![1]], "the first time it runs for all of them");
        assert!(matches!(answers.remove(0).await.expect("answered"), Err(EngineError::Conflict(_))));

        let (lone, answer) = ask(&[5]);
        drop(answer);
        on.sent.clear();
        run(Doubling, &mut on, &Caller::unattributed(), vec![lone], Duration::from_secs(5)).await;
        assert_eq!(on.sent, [vec![5]]);
    }

    #[tokio::test]
    async fn too_few_answers_are_a_bug_and_not_somebody_elses_answer() {
        struct Short;
        #[async_trait]
        impl Merges for Short {
            type On = ();
            type Item = i32;
            type Answer = i32;
            async fn run(&self, (): &mut (), _: &Caller, _: &[i32], _: LockWait) -> Result<Vec<i32>, EngineError> {
                Ok(vec![1])
            }
        }
        let (ask, answer) = ask(&[1, 2]);
        let ran = run(Short, &mut (), &Caller::unattributed(), vec![ask], Duration::from_secs(5)).await;
        assert!(matches!(answer.await.expect("answered"), Err(EngineError::Bug(_))));
        assert!(ran.poison.is_some());
    }
}
