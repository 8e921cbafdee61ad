//! Grants that were never sent go back, in batches that form by themselves.

use std::{
    mem,
    time::{Duration, Instant},
};

use tracing::warn;

use super::{Act, Desk};
use crate::{
    dispatch::{agenda::Alarm, buffer::Returned},
    model::Failure,
};

/// Grants in one statement.
const RETURNED: usize = 1_000;
/// Statements under way at once.
const RETURNING: usize = 4;
/// Tries for one grant: the database may be away for a while. After the last one the lease ends by itself.
const TRIES: u32 = 30;
/// Pause between tries.
const PAUSE: Duration = Duration::from_millis(500);

impl Desk {
    pub(super) fn start_returns(&mut self) {
        while self.returning < RETURNING && !self.returns.is_empty() {
            let rest = self.returns.split_off(self.returns.len().min(RETURNED));
            let batch = mem::replace(&mut self.returns, rest);
            self.returning += 1;
            self.acts.push(Act::GiveBack(batch));
        }
    }

    pub(super) fn given_back(&mut self, returned: Vec<Returned>, result: Result<Vec<bool>, Failure>, now: Instant) {
        self.returning -= 1;
        match result {
            Ok(undone) => {
                for (returned, undone) in returned.iter().zip(undone) {
                    if undone {
                        self.heat(returned.queue, 1, true);
                    }
                }
            }
            // Giving back what was given back already changes nothing, so an unknown outcome is tried again as well.
            Err(failure) => {
                if self.returns_again.is_empty() {
                    self.agenda.set(now + PAUSE, Alarm::GiveBack);
                }
                let tried = returned.len();
                let again = returned.into_iter().map(|one| Returned { tries: one.tries + 1, ..one });
                let before = self.returns_again.len();
                self.returns_again.extend(again.filter(|one| one.tries < TRIES));
                let given_up = tried - (self.returns_again.len() - before);
                if given_up > 0 {
                    warn!(jobs = given_up, %failure, "jobs that were not sent could not be given back; their leases expire");
                }
            }
        }
    }
}
