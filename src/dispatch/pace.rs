//! How many jobs one claim of a queue asks for.

/// What recent claims of a queue brought.
///
/// The size doubles with every claim that came back full and falls to twice what came otherwise: a claim for one job does not
/// carry a thousand slots, and a backlog is drained in claims of a thousand after six steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pace {
    average: Option<u64>,
    size: usize,
}

/// Jobs of a first claim, whose size nobody can know.
const FIRST: usize = 16;

impl Pace {
    /// Knows nothing yet.
    pub(super) const START: Self = Self { average: None, size: FIRST };

    /// Payload bytes of a job, lately.
    pub(super) fn average(&self) -> Option<u64> {
        self.average
    }

    /// Jobs that the next claim asks for: at most `max_jobs`, at most `max_bytes` by the average, at least 1.
    pub(super) fn size(&self, expected: usize, max_jobs: usize, max_bytes: u64) -> usize {
        let by_bytes = match self.average {
            Some(average) => usize::try_from(max_bytes / average.max(1)).unwrap_or(usize::MAX),
            None => FIRST,
        };
        self.size.max(expected).min(by_bytes).min(max_jobs).max(1)
    }

    /// A claim for `asked` jobs brought `jobs` of `bytes` payload bytes together.
    pub(super) fn learn(&mut self, asked: usize, jobs: usize, bytes: u64) {
        self.size = if jobs < asked { FIRST.max(2 * jobs) } else { FIRST.max(2 * asked).min(1 << 20) };
        let Some(came) = bytes.checked_div(jobs as u64) else { return };
        // Up at once and down slowly: too large a claim costs memory, too small a one only a statement.
        self.average = Some(match self.average {
            Some(average) if came < average => average - (average - came) / 8,
            _ => came,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_claim_is_small_and_full_ones_grow() {
        let mut pace = Pace::START;
        assert_eq!(pace.size(900, 1_000, 8 << 20), 16, "nobody knows how large the jobs are");
        pace.learn(16, 16, 16 * 100);
        assert_eq!(pace.size(0, 1_000, 8 << 20), 32);
        assert_eq!(pace.size(900, 1_000, 8 << 20), 900);
        for _ in 0..10 {
            pace.learn(1_000, 1_000, 1_000 * 100);
        }
        assert_eq!(pace.size(0, 1_000, 8 << 20), 1_000);
        pace.learn(1_000, 1, 100);
        assert_eq!(pace.size(0, 1_000, 8 << 20), 16);
    }

    #[test]
    fn large_jobs_make_small_claims_at_once() {
        let mut pace = Pace::START;
        pace.learn(1_000, 1_000, 1_000);
        pace.learn(1_000, 10, 10 << 20);
        assert_eq!(pace.size(1_000, 1_000, 8 << 20), 8);
        pace.learn(8, 0, 0);
        assert_eq!(pace.average(), Some(1 << 20));
        assert_eq!(pace.size(0, 1_000, 1), 1, "never nothing");
    }
}
