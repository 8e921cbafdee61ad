//! From streams that wait to the slots of one claim.

use crate::model::StreamNumber;

/// Deals up to `limit` slots to the streams in turn, one each round, none more than its room. The order of the answer is the
/// order in which slots are to be used: where fewer jobs come than were asked for, they still go to different streams.
pub(super) fn deal(rooms: &[(StreamNumber, u32)], limit: usize) -> Vec<StreamNumber> {
    let mut slots = Vec::with_capacity(limit.min(rooms.iter().map(|(_, room)| *room as usize).sum()));
    let mut left: Vec<(StreamNumber, u32)> = rooms.iter().filter(|(_, room)| *room > 0).copied().collect();
    while !left.is_empty() && slots.len() < limit {
        left.retain_mut(|(stream, room)| {
            if slots.len() < limit {
                slots.push(*stream);
                *room -= 1;
            }
            *room > 0
        });
    }
    slots
}

/// Slots that a stream may have in a claim of the queue at place `at` among its queues, so that each round gives every queue
/// with ready jobs at least one job and none more than its share.
///
/// `ready` says for each of the stream's queues, in the stream's order, whether it has jobs to give; `unused` is the credit
/// of this round. Where there is less credit than there are such queues, those next after `turn` have one slot each.
pub(super) fn share(ready: &[bool], turn: usize, at: usize, unused: u32) -> u32 {
    let queues = u32::try_from(ready.iter().filter(|ready| **ready).count()).unwrap_or(u32::MAX);
    if queues <= 1 {
        return unused;
    }
    if unused >= queues {
        return unused / queues;
    }
    let count = ready.len();
    let before = (0..count).map(|step| (turn + step) % count).take_while(|&place| place != at);
    let ahead = before.filter(|&place| ready[place]).count();
    u32::from((ahead as u64) < u64::from(unused))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slots_are_dealt_in_turn() {
        let rooms = [(StreamNumber(1), 3), (StreamNumber(2), 1), (StreamNumber(3), 2)];
        let numbers = |limit| deal(&rooms, limit).iter().map(|stream| stream.0).collect::<Vec<_>>();
        assert_eq!(numbers(100), [1, 2, 3, 1, 3, 1]);
        assert_eq!(numbers(4), [1, 2, 3, 1]);
        assert!(numbers(0).is_empty());
    }

    #[test]
    fn credit_is_divided_between_queues_with_ready_jobs() {
        let ready = [true, false, true];
        assert_eq!(share(&ready, 0, 0, 10), 5);
        assert_eq!(share(&ready, 0, 2, 10), 5);
        assert_eq!(share(&[true, false, false], 0, 0, 10), 10);
    }

    #[test]
    fn with_one_credit_queues_take_turns() {
        let ready = [true, false, true];
        assert_eq!((share(&ready, 0, 0, 1), share(&ready, 0, 2, 1)), (1, 0));
        assert_eq!((share(&ready, 1, 0, 1), share(&ready, 1, 2, 1)), (0, 1));
    }

    proptest! {
        #[test]
        fn no_stream_gets_more_than_its_room_and_no_room_is_wasted(
            rooms in proptest::collection::vec(0u32..20, 0..20),
            limit in 0usize..100,
        ) {
            let rooms: Vec<_> = (0u32..).map(StreamNumber).zip(rooms).collect();
            let slots = deal(&rooms, limit);
            let wanted: usize = rooms.iter().map(|(_, room)| *room as usize).sum();
            prop_assert_eq!(slots.len(), wanted.min(limit));
            let mut counts: BTreeMap<StreamNumber, u32> = BTreeMap::new();
            for stream in slots {
                *counts.entry(stream).or_default() += 1;
            }
            for (stream, room) in rooms {
                prop_assert!(counts.get(&stream).copied().unwrap_or(0) <= room);
            }
        }

        #[test]
        fn a_round_serves_every_queue_or_all_of_the_credit(
            ready in proptest::collection::vec(any::<bool>(), 1..32),
            turn in 0usize..32,
            unused in 1u32..64,
        ) {
            let shares: Vec<u32> =
                (0..ready.len()).filter(|&at| ready[at]).map(|at| share(&ready, turn % ready.len(), at, unused)).collect();
            let queues = u32::try_from(shares.len()).expect("few");
            prop_assert!(shares.iter().sum::<u32>() <= unused || queues == 0);
            if unused >= queues {
                prop_assert!(shares.iter().all(|&share| share >= 1 && share <= (unused / queues).max(1)));
            } else {
                prop_assert_eq!(shares.iter().sum::<u32>(), unused);
            }
        }
    }
}
