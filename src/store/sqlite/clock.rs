//! The clock of a database that has none of its own.
//!
//! Every instant in the file comes from here. It starts at the later of the wall clock and the last instant written, runs
//! on the monotonic clock and never goes back, so that neither a step of the wall clock nor a restart frees a lease early.
//! It follows the wall clock in two ways: ahead of it, it runs at nine tenths of the speed until it is met; more than a
//! minute behind it for more than a minute (the machine slept), it steps to it.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::model::Timestamp;

/// Both how far the wall clock must be ahead, and for how long, before it is followed in one step.
const STEP_AFTER: Duration = Duration::from_mins(1);

/// The one clock of an engine, shared by its sessions.
#[derive(Debug)]
pub(super) struct Clock {
    origin: Instant,
    pace: Mutex<Pace>,
}

impl Clock {
    /// A clock that has shown `last` before.
    pub(super) fn starting_after(last: Timestamp) -> Self {
        Self { origin: Instant::now(), pace: Mutex::new(Pace::new(last, wall())) }
    }

    /// What time it is. Never less than any answer before.
    pub(super) fn now(&self) -> Timestamp {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock: of two readers the later one must not bring the earlier instant.
        let (shown, stepped) = pace.read(self.origin.elapsed(), wall());
        if let Some(by) = stepped {
            tracing::warn!(
                step_seconds = by.as_secs_f64(),
                "the wall clock was more than a minute ahead of the database's clock for a minute, which now follows in \
                 one step: did the machine sleep? Leases held meanwhile may have expired"
            );
        }
        shown
    }
}

fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The arithmetic, fed with readings of the two real clocks. Nanoseconds, so that slow running at frequent readings does
/// not round to standing still.
#[derive(Debug)]
struct Pace {
    shown: Duration,
    read_at: Duration,
    wall_ahead_since: Option<Duration>,
}

impl Pace {
    fn new(last: Timestamp, wall: Duration) -> Self {
        let last = Duration::from_micros(u64::try_from(last.0).unwrap_or(0));
        Self { shown: last.max(wall), read_at: Duration::ZERO, wall_ahead_since: None }
    }

    /// What to show at `monotonic` since the start while the wall clock shows `wall`, and the length of the step that was
    /// taken, if any.
    fn read(&mut self, monotonic: Duration, wall: Duration) -> (Timestamp, Option<Duration>) {
        let elapsed = monotonic.saturating_sub(self.read_at);
        self.read_at = self.read_at.max(monotonic);
        let full = self.shown + elapsed;
        let slow = self.shown + elapsed * 9 / 10;
        // Slow as long as that keeps it at or ahead of the wall clock; never held back behind it.
        self.shown = slow.max(full.min(wall));

        let gap = wall.saturating_sub(self.shown);
        let mut stepped = None;
        if gap <= STEP_AFTER {
            self.wall_ahead_since = None;
        } else if monotonic.saturating_sub(*self.wall_ahead_since.get_or_insert(monotonic)) >= STEP_AFTER {
            self.shown = wall;
            self.wall_ahead_since = None;
            stepped = Some(gap);
        }
        (Timestamp(i64::try_from(self.shown.as_micros()).unwrap_or(i64::MAX)), stepped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELEVEN: Duration = Duration::from_secs(1_800_000_000);
    const NOON: Duration = Duration::from_secs(1_800_003_600);

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn at(duration: Duration) -> Timestamp {
        Timestamp(i64::try_from(duration.as_micros()).expect("fits"))
    }

    #[test]
    fn beside_a_true_wall_clock_it_shows_the_same() {
        let mut pace = Pace::new(Timestamp::BEGINNING, NOON);
        for n in [0, 1, 2, 3_600, 3_601] {
            assert_eq!(pace.read(seconds(n), NOON + seconds(n)), (at(NOON + seconds(n)), None));
        }
    }

    #[test]
    fn a_wall_clock_set_back_changes_only_the_speed() {
        let mut pace = Pace::new(Timestamp::BEGINNING, NOON);
        pace.read(seconds(10), NOON + seconds(10));
        // One hour back: from here on nine tenths, until the wall clock has caught up after ten hours.
        let wall = |n: u64| ELEVEN + seconds(n);
        assert_eq!(pace.read(seconds(20), wall(20)).0, at(NOON + seconds(19)));
        assert_eq!(pace.read(seconds(36_010), wall(36_010)).0, at(NOON + seconds(32_410)));
        assert_eq!(pace.read(seconds(36_011), wall(36_011)).0, at(wall(36_011)));
    }

    #[test]
    fn it_never_goes_back_and_never_stands_still_however_often_it_is_read() {
        let mut pace = Pace::new(at(NOON + seconds(60)), NOON);
        let mut last = pace.read(Duration::ZERO, NOON).0;
        for n in 1..=100_000 {
            let shown = pace.read(Duration::from_nanos(100 * n), NOON).0;
            assert!(shown >= last);
            last = shown;
        }
        assert_eq!(last, at(NOON + seconds(60) + Duration::from_millis(9)));
    }

    #[test]
    fn it_starts_at_the_last_instant_written_where_the_wall_clock_is_behind_it() {
        let mut pace = Pace::new(at(NOON), ELEVEN);
        assert_eq!(pace.read(Duration::ZERO, ELEVEN).0, at(NOON));
    }

    #[test]
    fn after_a_minute_a_wall_clock_far_ahead_is_followed_in_one_step() {
        let mut pace = Pace::new(Timestamp::BEGINNING, NOON);
        let wall = |n: u64| NOON + seconds(n) + seconds(7_200);
        assert_eq!(pace.read(seconds(1), wall(1)), (at(NOON + seconds(1)), None));
        assert_eq!(pace.read(seconds(60), wall(60)), (at(NOON + seconds(60)), None));
        assert_eq!(pace.read(seconds(61), wall(61)), (at(wall(61)), Some(seconds(7_200))));
        assert_eq!(pace.read(seconds(62), wall(62)), (at(wall(62)), None));
    }

    #[test]
    fn a_wall_clock_that_returns_within_the_minute_is_not_followed() {
        let mut pace = Pace::new(Timestamp::BEGINNING, NOON);
        pace.read(seconds(1), NOON + seconds(7_201));
        pace.read(seconds(30), NOON + seconds(30));
        assert_eq!(pace.read(seconds(70), NOON + seconds(7_270)), (at(NOON + seconds(70)), None));
        assert_eq!(pace.read(seconds(80), NOON + seconds(110)), (at(NOON + seconds(80)), None));
    }
}
