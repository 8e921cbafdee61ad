//! Sliding windows as rings of coarse slots.

use std::time::Duration;

/// What figures are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Window {
    /// The last 10 seconds.
    TenSeconds,
    /// The last minute.
    OneMinute,
    /// The last 10 minutes.
    TenMinutes,
    /// The last hour.
    OneHour,
    /// All since the broker started.
    SinceStart,
}

/// Slots of a window that lie behind the one that is filled now. A window so covers its name and up to a fifth more.
const WHOLE: u64 = 5;
const SLOTS: usize = 6;

impl Window {
    /// Those that slide.
    pub(super) const SLIDING: [Self; 4] = [Self::TenSeconds, Self::OneMinute, Self::TenMinutes, Self::OneHour];

    /// Nanoseconds of a slot; nothing for the one that does not slide.
    pub(super) fn slot(self) -> Option<u64> {
        let seconds = match self {
            Self::TenSeconds => 10,
            Self::OneMinute => 60,
            Self::TenMinutes => 600,
            Self::OneHour => 3_600,
            Self::SinceStart => return None,
        };
        Some(seconds * 1_000_000_000 / WHOLE)
    }

    /// Where it begins, in nanoseconds since the start, seen from `now`.
    pub(super) fn begins(self, now: u64) -> u64 {
        self.slot().map_or(0, |slot| (now / slot).saturating_sub(WHOLE) * slot)
    }

    /// What it covers at `now`.
    pub(super) fn covered(self, now: u64) -> Duration {
        Duration::from_nanos(now - self.begins(now))
    }
}

/// One `T` for each window.
#[derive(Debug)]
pub(super) struct Windows<T> {
    sliding: [Ring<T>; 4],
    since_start: T,
}

/// The slots of one window; those that nothing fell into are not there.
#[derive(Debug)]
struct Ring<T>([Option<Box<(u64, T)>>; SLOTS]);

impl<T: Clone> Windows<T> {
    pub(super) fn new(empty: &T) -> Self {
        Self { sliding: std::array::from_fn(|_| Ring([const { None }; SLOTS])), since_start: empty.clone() }
    }

    /// Changes what `at` falls into, in each window.
    pub(super) fn at(&mut self, at: u64, empty: &T, change: impl Fn(&mut T)) {
        change(&mut self.since_start);
        for (window, ring) in Window::SLIDING.into_iter().zip(&mut self.sliding) {
            if let Some(slot) = window.slot() {
                change(ring.slot(at / slot, empty));
            }
        }
    }

    /// Spreads the time from `from` to `to` over the slots that it falls into.
    pub(super) fn over(&mut self, from: u64, to: u64, empty: &T, add: impl Fn(&mut T, u64)) {
        add(&mut self.since_start, to.saturating_sub(from));
        for (window, ring) in Window::SLIDING.into_iter().zip(&mut self.sliding) {
            let Some(slot) = window.slot() else { continue };
            let mut from = from.max(window.begins(to));
            while from < to {
                let number = from / slot;
                let until = to.min((number + 1) * slot);
                add(ring.slot(number, empty), until - from);
                from = until;
            }
        }
    }

    /// What lies in `window`, seen from `now`.
    pub(super) fn parts(&self, window: Window, now: u64) -> impl Iterator<Item = &T> {
        let at = Window::SLIDING.into_iter().position(|sliding| sliding == window);
        let numbers = window.slot().map(|slot| (now / slot).saturating_sub(WHOLE)..=now / slot);
        let ring = at.and_then(|at| numbers.map(|numbers| (&self.sliding[at], numbers)));
        let all = ring.is_none().then_some(&self.since_start);
        let slots = ring.into_iter().flat_map(|(ring, numbers)| {
            ring.0.iter().flatten().filter(move |slot| numbers.contains(&slot.0)).map(|slot| &slot.1)
        });
        all.into_iter().chain(slots)
    }
}

impl<T: Clone> Ring<T> {
    #[allow(clippy::cast_possible_truncation, reason = "below SLOTS")]
    fn slot(&mut self, number: u64, empty: &T) -> &mut T {
        let slot = self.0[(number % SLOTS as u64) as usize].get_or_insert_with(|| Box::new((number, empty.clone())));
        if slot.0 != number {
            **slot = (number, empty.clone());
        }
        &mut slot.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn sum(windows: &Windows<u64>, window: Window, now: u64) -> u64 {
        windows.parts(window, now).sum()
    }

    #[test]
    fn each_window_forgets_what_lies_before_it_and_nothing_else() {
        let mut windows = Windows::new(&0_u64);
        for second in 0..5_000 {
            windows.at(second * SECOND, &0, |sum| *sum += 1);
            let now = second * SECOND;
            for (window, seconds) in [
                (Window::TenSeconds, 10),
                (Window::OneMinute, 60),
                (Window::TenMinutes, 600),
                (Window::OneHour, 3_600),
                (Window::SinceStart, u64::MAX),
            ] {
                let covered = window.covered(now).as_secs();
                assert!(covered >= second.min(seconds) && covered <= seconds.saturating_add(seconds / 5), "{window:?}");
                assert_eq!(sum(&windows, window, now), covered + 1, "{window:?} after {second} s");
            }
        }
        let later = 100_000 * SECOND;
        assert_eq!(sum(&windows, Window::OneHour, later), 0);
        assert_eq!(sum(&windows, Window::SinceStart, later), 5_000);
    }

    #[test]
    fn a_long_time_counts_in_each_window_with_the_part_that_lies_in_it() {
        let mut windows = Windows::new(&0_u64);
        windows.over(SECOND, 1_000 * SECOND, &0, |sum, part| *sum += part);
        let now = 1_000 * SECOND;
        for window in Window::SLIDING {
            let expected = window.covered(now).min(Duration::from_secs(999));
            assert_eq!(Duration::from_nanos(sum(&windows, window, now)), expected, "{window:?}");
        }
        assert_eq!(sum(&windows, Window::SinceStart, now), 999 * SECOND);
    }
}
