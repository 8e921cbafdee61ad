//! Settling without waiting in the database.

use std::time::{Duration, Instant};

use super::{
    Call, Store,
    engine::Held,
    request::{Ask, Request},
};
use crate::model::{Failure, Outcome};

/// Pauses between tries to settle a job that somebody's open transaction holds; the last one repeats.
const BUSY_PAUSES: [Duration; 3] = [Duration::from_millis(10), Duration::from_millis(50), Duration::from_millis(200)];

impl Store {
    /// Settles, and asks again for busy items from outside the database, so that no connection waits for them.
    pub(super) async fn settle<I, A>(
        &self,
        call: &Call,
        items: Vec<I>,
        request: fn(Ask<I, A>) -> Request,
        held: fn(&A) -> Held,
    ) -> Result<Vec<A>, Failure>
    where
        I: Clone,
    {
        let give_up = call.deadline.min(Instant::now() + self.inner.options.busy_for);
        let bytes = |items: &[I]| items.len() * size_of::<I>().max(64);
        let mut answers = self.ask(call, items.clone(), bytes(&items), request).await?;
        let mut pauses = BUSY_PAUSES.into_iter().chain(std::iter::repeat(BUSY_PAUSES[BUSY_PAUSES.len() - 1]));
        loop {
            let busy: Vec<usize> = (0..answers.len()).filter(|&at| held(&answers[at]) == Held::Busy).collect();
            let pause = pauses.next().unwrap_or_default();
            if busy.is_empty() || Instant::now() + pause >= give_up {
                return Ok(answers);
            }
            tokio::time::sleep(pause).await;
            let again: Vec<I> = busy.iter().map(|&at| items[at].clone()).collect();
            let weight = bytes(&again);
            match self.ask(call, again, weight, request).await {
                Ok(settled) => {
                    for (at, answer) in busy.into_iter().zip(settled) {
                        answers[at] = answer;
                    }
                }
                // The others are settled already: busy, which means unchanged, is the truth for these.
                Err(failure) if failure.outcome == Outcome::NotApplied => return Ok(answers),
                Err(failure) => return Err(failure),
            }
        }
    }
}
