//! What samples of the last minute say about the time for which connections were held.
//!
//! A sample is the number of connections of a holder that were busy at one instant. It stands for the time since the sample
//! before it, so the estimate is `held = Σ wᵢ cᵢ` with counts `cᵢ` and weights `wᵢ`: unbiased as long as nobody begins and ends
//! work in step with the samples, which their jitter sees to.
//!
//! Its standard error is taken from the samples themselves, by successive differences:
//! `s² = Σ (cᵢ₊₁ − cᵢ)² / 2(n − 1)`, and `error² = s² Σ wᵢ² + w̄² / 12`. Where holds are short against the interval, counts are
//! independent, `s²` is their variance, and with equal weights the first term is the familiar `T² s² / n`: for a connection that
//! is busy with probability `p`, `T √(p(1 − p) / n)`. Where a hold lasts for many samples only its ends are uncertain, and only
//! they make a difference. The second term is the end that lies between the last sample and now. Of a single sample nothing
//! is known of the spread; its count is taken for its variance, as of events that are independent of each other.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use super::places::Holder;

/// What the estimates cover.
pub(super) const WINDOW: Duration = Duration::from_mins(1);

/// Time for which a holder held connections, as far as samples can tell.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    /// Connections × time.
    pub held: Duration,
    /// One standard error of it.
    pub error: Duration,
}

/// The samples of the last minute.
#[derive(Debug, Default)]
pub(super) struct Window {
    samples: VecDeque<Sample>,
}

#[derive(Debug)]
struct Sample {
    taken: Instant,
    weight: Duration,
    busy: HashMap<Holder, u32>,
}

impl Window {
    /// Adds what was seen at `taken`, which stands for the time `weight` before it.
    pub(super) fn add(&mut self, taken: Instant, weight: Duration, busy: HashMap<Holder, u32>) {
        while self.samples.front().is_some_and(|oldest| taken.duration_since(oldest.taken) >= WINDOW) {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { taken, weight, busy });
    }

    /// How many samples there are.
    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    /// The time that they stand for.
    pub(super) fn covered(&self) -> Duration {
        self.samples.iter().map(|sample| sample.weight).sum()
    }

    /// Everyone seen busy.
    pub(super) fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.samples.iter().flat_map(|sample| sample.busy.keys())
    }

    /// What they say of one holder; nothing where none saw it busy.
    pub(super) fn estimate(&self, holder: &Holder) -> Estimate {
        let counts: Vec<f64> =
            self.samples.iter().map(|sample| sample.busy.get(holder).copied().unwrap_or(0).into()).collect();
        if counts.iter().all(|count| *count == 0.0) {
            return Estimate::default();
        }
        let weights: Vec<f64> = self.samples.iter().map(|sample| sample.weight.as_secs_f64()).collect();
        let held: f64 = counts.iter().zip(&weights).map(|(count, weight)| count * weight).sum();
        let n = u32::try_from(counts.len()).map_or(f64::from(u32::MAX), f64::from);
        let spread = if counts.len() < 2 {
            counts[0]
        } else {
            counts.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum::<f64>() / (2.0 * (n - 1.0))
        };
        let squares: f64 = weights.iter().map(|weight| weight.powi(2)).sum();
        let mean = weights.iter().sum::<f64>() / n;
        let error = (spread * squares + mean.powi(2) / 12.0).sqrt();
        Estimate { held: Duration::from_secs_f64(held), error: Duration::from_secs_f64(error) }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

    use super::*;
    use crate::connections::name::Name;

    const SECOND: Duration = Duration::from_secs(1);

    fn holder() -> Holder {
        Holder { name: Name::clean("a", false).expect("a name"), broker: false }
    }

    fn window(counts: &[u32]) -> Window {
        let (mut window, begin) = (Window::default(), Instant::now());
        for (at, count) in (1_u32..).zip(counts) {
            window.add(begin + SECOND * at, SECOND, HashMap::from([(holder(), *count)]));
        }
        window
    }

    /// Estimate and error of samples a second apart, in seconds.
    fn read(counts: &[u32]) -> (f64, f64) {
        let Estimate { held, error } = window(counts).estimate(&holder());
        (held.as_secs_f64(), error.as_secs_f64())
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6, "{a} is not {b}");
    }

    #[test]
    fn counts_times_their_weights_are_the_estimate() {
        close(read(&[1, 0, 2, 1]).0, 4.0);
        let mut window = Window::default();
        let begin = Instant::now();
        window.add(begin, SECOND / 2, HashMap::from([(holder(), 3)]));
        window.add(begin + SECOND, 4 * SECOND, HashMap::from([(holder(), 1)]));
        close(window.estimate(&holder()).held.as_secs_f64(), 5.5);
        assert_eq!(window.covered(), Duration::from_millis(4_500));
    }

    #[test]
    fn the_error_is_the_formulas() {
        // 60 samples that alternate: s² = 59 / 118
        let counts: Vec<u32> = (0..60).map(|n| n % 2).collect();
        close(read(&counts).1, (0.5 * 60.0 + 1.0 / 12.0_f64).sqrt());
        // one connection all the time: only the end is uncertain
        close(read(&[1; 60]).1, (1.0 / 12.0_f64).sqrt());
        // one that ended half-way: one difference
        let half: Vec<u32> = (0..60).map(|n| u32::from(n < 30)).collect();
        close(read(&half).1, (60.0 / 118.0 + 1.0 / 12.0_f64).sqrt());
        close(read(&[4]).1, (4.0 + 1.0 / 12.0_f64).sqrt());
    }

    #[test]
    fn nothing_seen_is_nothing_said() {
        assert_eq!(Window::default().estimate(&holder()), Estimate::default());
        assert_eq!(window(&[0, 0]).estimate(&holder()), Estimate::default());
    }

    #[test]
    fn samples_leave_after_a_minute() {
        let window = window(&[1; 200]);
        assert_eq!(window.len(), 60);
        assert_eq!(window.covered(), WINDOW);
    }

    /// Work of every length, sampled once a second with the sampler's jitter: how far the estimates are off, against what they
    /// say of themselves.
    #[test]
    fn the_stated_error_is_the_true_one() {
        let mut dice = StdRng::seed_from_u64(4);
        for (hold, pause) in [(0.01, 0.05), (0.1, 0.9), (0.9, 0.9), (5.0, 5.0), (20.0, 10.0), (0.02, 3.0)] {
            let (mut off, mut stated, mut bias, mut truth) = (0.0, 0.0, 0.0, 0.0);
            let runs = 400;
            for _ in 0..runs {
                let (true_held, estimate) = one_minute(hold, pause, &mut dice);
                off += (estimate.held.as_secs_f64() - true_held).powi(2);
                bias += estimate.held.as_secs_f64() - true_held;
                stated += estimate.error.as_secs_f64().powi(2);
                truth += true_held;
            }
            let runs = f64::from(runs);
            let (off, stated) = ((off / runs).sqrt(), (stated / runs).sqrt());
            let (bias, truth) = (bias / runs, truth / runs);
            assert!(off <= 1.25 * stated, "hold {hold}, pause {pause}: off by {off:.2} s, stated {stated:.2} s");
            assert!(bias.abs() <= 0.05 * truth + 0.1, "hold {hold}, pause {pause}: {bias:.2} s of {truth:.2} s");
        }
    }

    /// Exponential holds and pauses of these means over a minute: seconds truly held, and the estimate.
    fn one_minute(hold: f64, pause: f64, dice: &mut StdRng) -> (f64, Estimate) {
        let mut exponential = |mean: f64| -mean * (1.0 - dice.random::<f64>()).ln();
        let (mut spans, mut at, mut works) = (Vec::new(), -60.0, false);
        while at < 61.0 {
            let length = exponential(if works { hold } else { pause });
            if works {
                spans.push((at, at + length));
            }
            at += length;
            works = !works;
        }
        let (mut window, begin, mut now) = (Window::default(), Instant::now(), 0.0);
        loop {
            let gap: f64 = dice.random_range(0.75..1.25);
            if now + gap > 60.0 {
                break;
            }
            now += gap;
            let busy = u32::from(spans.iter().any(|(from, to)| (*from..*to).contains(&now)));
            let (taken, weight) = (begin + Duration::from_secs_f64(now), Duration::from_secs_f64(gap));
            window.add(taken, weight, HashMap::from([(holder(), busy)]));
        }
        let held = spans.iter().map(|(from, to)| (to.clamp(0.0, now) - from.clamp(0.0, now)).max(0.0)).sum();
        (held, window.estimate(&holder()))
    }
}
