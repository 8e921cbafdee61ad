//! What became of the jobs.

use std::fmt;

use serde::Serialize;

use super::settling::Settled;

/// How many jobs ended how. Each leased job is counted once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(super) struct Tally {
    pub(super) leased: u64,
    pub(super) acked: u64,
    pub(super) retried: u64,
    pub(super) dead: u64,
    pub(super) released: u64,
    pub(super) cancelled: u64,
    pub(super) lost: u64,
    pub(super) unanswered: u64,
}

impl Tally {
    pub(super) fn add(&mut self, settled: &Settled) {
        let count = match settled {
            Settled::Acked => &mut self.acked,
            Settled::Retried => &mut self.retried,
            Settled::Released => &mut self.released,
            Settled::Dead => &mut self.dead,
            Settled::Cancelled => &mut self.cancelled,
            Settled::Lost => &mut self.lost,
            Settled::Unanswered(_) => &mut self.unanswered,
        };
        *count += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} jobs leased: {} acked, {} to be retried, {} dead",
            self.leased, self.acked, self.retried, self.dead
        )?;
        for (count, word) in [
            (self.released, "released"),
            (self.cancelled, "cancelled"),
            (self.lost, "whose lease was lost"),
            (self.unanswered, "left to the end of their leases"),
        ] {
            if count > 0 {
                write!(f, ", {count} {word}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_is_counted_once_and_rare_ones_are_told_where_they_happened() {
        let mut tally = Tally { leased: 7, ..Tally::default() };
        for settled in [
            Settled::Acked,
            Settled::Retried,
            Settled::Released,
            Settled::Dead,
            Settled::Cancelled,
            Settled::Lost,
            Settled::Unanswered(String::new()),
        ] {
            tally.add(&settled);
        }
        let Tally { leased, acked, retried, dead, released, cancelled, lost, unanswered } = tally;
        assert_eq!(leased, acked + retried + dead + released + cancelled + lost + unanswered);
        assert!(
            tally
                .to_string()
                .ends_with("1 released, 1 cancelled, 1 whose lease was lost, 1 left to the end of their leases")
        );
        assert_eq!(Tally::default().to_string(), "0 jobs leased: 0 acked, 0 to be retried, 0 dead");
    }
}
