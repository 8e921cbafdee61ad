//! Claims of callers that may hold few lanes. As many are under way as have a lane to run on; the others wait here, so that they
//! take no place from other callers' claims.

use std::collections::{HashMap, VecDeque};

use super::Desk;
use crate::model::{Caller, QueueId};

/// What is put off.
#[derive(Debug, Default)]
pub(super) struct Capped {
    /// Claims that a caller may have under way at once, where that is bounded.
    at_most: HashMap<Caller, usize>,
    /// Queues whose claims wait for another one of their caller to end. No entry is empty.
    put_off: HashMap<Caller, VecDeque<QueueId>>,
}

impl Desk {
    /// So many claims of these callers may be under way at once from now on; of all others, any number.
    pub(in crate::dispatch) fn set_claims_at_most(&mut self, at_most: HashMap<Caller, usize>) {
        self.capped.at_most = at_most;
        for (caller, queues) in std::mem::take(&mut self.capped.put_off) {
            self.line.extend(queues.into_iter().map(|queue| (queue, caller.clone())));
        }
    }

    /// Puts a claim off where its caller has as many under way as it may; says whether it did.
    pub(super) fn put_off(&mut self, queue: QueueId, caller: &Caller) -> bool {
        let Some(&most) = self.capped.at_most.get(caller) else { return false };
        let under_way = self.claims.values().filter(|claim| claim.caller() == caller).count();
        if under_way < most {
            return false;
        }
        self.capped.put_off.entry(caller.clone()).or_default().push_back(queue);
        true
    }

    /// The next claim of this caller may begin, where one was put off: another one has ended or did not begin.
    pub(super) fn take_up(&mut self, caller: &Caller) {
        if let Some(queues) = self.capped.put_off.get_mut(caller) {
            let next = queues.pop_front();
            if queues.is_empty() {
                self.capped.put_off.remove(caller);
            }
            self.line.extend(next.map(|queue| (queue, caller.clone())));
        }
    }
}
