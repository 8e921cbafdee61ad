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
            self.line.join(&caller, queues);
        }
    }

    /// Whether a caller has as many claims under way as it may.
    pub(super) fn is_at_its_most(&self, caller: &Caller) -> bool {
        let Some(&most) = self.capped.at_most.get(caller) else { return false };
        self.claims.values().filter(|claim| claim.caller == *caller).count() >= most
    }

    /// Lets claims of these queues wait until another claim of their caller has ended.
    pub(super) fn put_off(&mut self, caller: Caller, queues: VecDeque<QueueId>) {
        self.capped.put_off.entry(caller).or_default().extend(queues);
    }

    /// A claim of this caller has ended: those that were put off may begin.
    pub(super) fn take_up(&mut self, caller: &Caller) {
        if let Some(queues) = self.capped.put_off.remove(caller) {
            self.line.join(caller, queues);
        }
    }
}
