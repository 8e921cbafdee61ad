//! Counts that stop where they would cost too much.

/// Exact up to [`Count::BOUND`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// So many.
    pub value: u64,
    /// There are more.
    pub at_least: bool,
}

impl Count {
    /// What is counted exactly at most; whoever counts reads one row more.
    pub const BOUND: u64 = 10_000;

    /// Of `rows`, counted to one more than the bound.
    pub fn of(rows: u64) -> Self {
        Self { value: rows.min(Self::BOUND), at_least: rows > Self::BOUND }
    }

    /// Of walks that each looked at so many rows, up to one more than the bound, and found so many among them. One that
    /// looked at more than the bound may have left some out.
    pub fn of_walks(walks: &[(u64, u64)]) -> Self {
        let found = walks.iter().map(|(_, found)| found).sum();
        let cut = walks.iter().any(|(walked, _)| *walked > Self::BOUND);
        Self { at_least: cut || found > Self::BOUND, ..Self::of(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_itself_is_exact() {
        assert_eq!(Count::of(10_000), Count { value: 10_000, at_least: false });
        assert_eq!(Count::of(10_001), Count { value: 10_000, at_least: true });
    }

    #[test]
    fn a_walk_that_was_cut_short_makes_a_count_open() {
        assert_eq!(Count::of_walks(&[(10_000, 3), (7, 7)]), Count { value: 10, at_least: false });
        assert_eq!(Count::of_walks(&[(10_001, 3), (7, 7)]), Count { value: 10, at_least: true });
        assert_eq!(Count::of_walks(&[(9_000, 9_000), (9_000, 9_000)]), Count { value: 10_000, at_least: true });
    }
}
