//! How long to wait before another try.

use std::time::Duration;

use tonic::Status;
use tonic_types::StatusExt as _;

/// Pauses that double up to a bound, each drawn between half of it and all of it, so that many clients do not come back together.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Pauses {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Pauses {
    pub(in crate::cli) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// It worked: the next pause is the first one again.
    pub(in crate::cli) fn reset(&mut self) {
        self.next = self.first;
    }

    /// The next pause.
    pub(in crate::cli) fn draw(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause.mul_f64(0.5 + rand::random::<f64>() / 2.0)
    }

    /// Waits as long as the broker says where it says it, else for the next pause.
    pub(in crate::cli) async fn wait(&mut self, status: &Status) {
        let drawn = self.draw();
        let said = status.get_error_details().retry_info().and_then(|info| info.retry_delay);
        tokio::time::sleep(said.map_or(drawn, |said| said.clamp(drawn, self.longest.max(drawn)))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_start_anew_after_a_success() {
        let mut pauses = Pauses::new(Duration::from_millis(100), Duration::from_secs(1));
        for full in [100, 200, 400, 800, 1_000, 1_000].map(Duration::from_millis) {
            let drawn = pauses.draw();
            assert!((full / 2..=full).contains(&drawn), "{full:?}: {drawn:?}");
        }
        pauses.reset();
        assert!(pauses.draw() <= Duration::from_millis(100));
    }
}
