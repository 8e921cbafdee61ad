//! Claims that may begin, in the order in which they do: callers take turns, and in its turn a caller claims from several of its
//! queues with one statement.

use std::collections::{HashMap, VecDeque};

use crate::model::{Caller, QueueId};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ClaimLine {
    /// Each caller with a queue in line, once.
    turns: VecDeque<Caller>,
    /// Their queues. No entry is empty.
    queues: HashMap<Caller, VecDeque<QueueId>>,
}

impl ClaimLine {
    /// Puts queues of a caller at the end of its own.
    pub(super) fn join(&mut self, caller: &Caller, queues: impl IntoIterator<Item = QueueId>) {
        let mut queues = queues.into_iter().peekable();
        if queues.peek().is_none() {
            return;
        }
        if let Some(own) = self.queues.get_mut(caller) {
            own.extend(queues);
        } else {
            self.turns.push_back(caller.clone());
            self.queues.insert(caller.clone(), queues.collect());
        }
    }

    /// Takes out whose turn it is, with all of its queues.
    pub(super) fn next(&mut self) -> Option<(Caller, VecDeque<QueueId>)> {
        let caller = self.turns.pop_front()?;
        let queues = self.queues.remove(&caller).unwrap_or_default();
        Some((caller, queues))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_take_turns_with_all_of_their_queues() {
        let [shop, mail] = ["shop", "mail"].map(|name| Caller::parse(name).expect("a name"));
        let mut line = ClaimLine::default();
        line.join(&shop, [QueueId(1), QueueId(2)]);
        line.join(&mail, [QueueId(1)]);
        line.join(&shop, [QueueId(3)]);
        line.join(&mail, []);
        assert_eq!(line.next(), Some((shop.clone(), VecDeque::from([QueueId(1), QueueId(2), QueueId(3)]))));
        line.join(&shop, [QueueId(4)]);
        assert_eq!(line.next(), Some((mail, VecDeque::from([QueueId(1)]))), "who has had a turn comes last");
        assert_eq!(line.next(), Some((shop, VecDeque::from([QueueId(4)]))));
        assert_eq!(line.next(), None);
    }
}
