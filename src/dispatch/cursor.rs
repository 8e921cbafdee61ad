//! Where the next claim of a queue begins.
//!
//! Jobs become ready in the order of `ready_at`, give or take the time that their transactions took, so a claim need not
//! walk again what earlier claims took: under an old snapshot the index still holds it. What a cursor can miss, a look that
//! begins well before it finds.

use std::time::Duration;

use crate::model::{Priority, Timestamp};

/// Per priority level the last `ready_at` that was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    last: [Timestamp; Priority::LEVELS],
}

/// How far before the last claimed job a claim begins: transactions that enqueue at once commit in any order.
const OVERLAP: Duration = Duration::from_millis(50);

impl Cursor {
    /// Remembers nothing.
    pub(super) const START: Self = Self { last: [Timestamp::BEGINNING; Priority::LEVELS] };

    /// Floors of the next claim.
    pub(super) fn claim_floors(&self) -> [Timestamp; Priority::LEVELS] {
        self.last.map(|at| at.minus(OVERLAP))
    }

    /// Floors of a look.
    pub(super) fn look_floors(&self, back: Duration) -> [Timestamp; Priority::LEVELS] {
        self.last.map(|at| at.minus(back.max(OVERLAP)))
    }

    /// A job of this level was claimed.
    pub(super) fn claimed(&mut self, priority: Priority, ready_at: Timestamp) {
        let last = &mut self.last[usize::from(priority.level())];
        *last = ready_at.max(*last);
    }

    /// The claim that began at `started` failed, or nobody knows: what it may have passed is to be walked again.
    pub(super) fn put_back(&mut self, started: &Self) {
        for (last, started) in self.last.iter_mut().zip(started.last) {
            *last = started.min(*last);
        }
    }

    /// A job waits here: the next claim must not begin after it.
    pub(super) fn sighted(&mut self, priority: Priority, ready_at: Timestamp) {
        let last = &mut self.last[usize::from(priority.level())];
        *last = ready_at.min(*last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(level: i32) -> Priority {
        Priority::new(level).expect("a level")
    }

    const SECOND: i64 = 1_000_000;

    #[test]
    fn a_claim_begins_a_little_before_the_last_one_claimed() {
        let mut cursor = Cursor::START;
        assert_eq!(cursor.claim_floors(), [Timestamp::BEGINNING; 10]);
        cursor.claimed(level(4), Timestamp(100 * SECOND));
        cursor.claimed(level(4), Timestamp(90 * SECOND));
        assert_eq!(cursor.claim_floors()[4], Timestamp(100 * SECOND - 50_000));
        assert_eq!(cursor.claim_floors()[9], Timestamp::BEGINNING);
        assert_eq!(cursor.look_floors(Duration::from_secs(60))[4], Timestamp(40 * SECOND));
    }

    #[test]
    fn a_failed_claim_puts_the_cursor_back_to_where_it_started() {
        let mut cursor = Cursor::START;
        cursor.claimed(level(4), Timestamp(100 * SECOND));
        let started = cursor;
        cursor.claimed(level(4), Timestamp(200 * SECOND)); // another caller's claim went through meanwhile
        cursor.put_back(&started);
        assert_eq!(cursor, started);
        cursor.put_back(&Cursor { last: [Timestamp(900 * SECOND); 10] });
        assert_eq!(cursor, started, "never forward");
    }

    #[test]
    fn a_sighting_left_of_the_cursor_is_within_the_next_claim() {
        let mut cursor = Cursor::START;
        cursor.claimed(level(4), Timestamp(100 * SECOND));
        cursor.sighted(level(4), Timestamp(70 * SECOND));
        assert!(cursor.claim_floors()[4] < Timestamp(70 * SECOND));
        cursor.sighted(level(4), Timestamp(300 * SECOND));
        assert!(cursor.claim_floors()[4] < Timestamp(70 * SECOND), "one to the right changes nothing");
    }
}
