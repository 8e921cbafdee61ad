//! Statements with a row of parameters for each item.
//!
//! Their texts come in five sizes, so that few are prepared whatever the batches: a batch is sent in as many statements as
//! it takes.

use std::sync::LazyLock;

/// Largest first. With these no batch of a thousand takes more than fifteen statements.
const SIZES: [usize; 5] = [256, 64, 16, 4, 1];

/// One statement in its sizes.
pub(super) struct Repeated(LazyLock<[String; SIZES.len()]>);

/// Storing jobs.
pub(super) static ENQUEUE_JOBS: Repeated =
    Repeated(LazyLock::new(|| sized(include_str!("sql/enqueue_jobs.sql"), ",\n")));

/// Looking from floors on.
pub(super) static LOOK_FROM: Repeated =
    Repeated(LazyLock::new(|| sized(include_str!("sql/look_from.sql"), "\nunion all\n")));

/// Locking units of several stocks.
pub(super) static RESERVE_UNITS: Repeated =
    Repeated(LazyLock::new(|| sized(include_str!("sql/reserve_units.sql"), "\nunion all\n")));

/// Keeping jobs with a reservation.
pub(super) static KEEP_EXPIRY_JOBS: Repeated =
    Repeated(LazyLock::new(|| sized(include_str!("sql/keep_expiry_jobs.sql"), ",\n")));

/// The text with its last line as often as each size says.
fn sized(sql: &str, between: &str) -> [String; SIZES.len()] {
    let (head, row) = sql.trim_end().rsplit_once('\n').unwrap_or(("", sql));
    SIZES.map(|size| format!("{head}\n{}", vec![row; size].join(between)))
}

impl Repeated {
    /// The largest size that `fits`, and its text; the smallest where none does.
    pub(super) fn largest(&'static self, fits: impl Fn(usize) -> bool) -> (usize, &'static str) {
        let at = SIZES.iter().position(|&size| fits(size)).unwrap_or(SIZES.len() - 1);
        (SIZES[at], &self.0[at])
    }

    /// The smallest size that has room for so many, and its text; the largest where none has.
    pub(super) fn smallest(&'static self, items: usize) -> (usize, &'static str) {
        let at = SIZES.iter().rposition(|&size| size >= items).unwrap_or(0);
        (SIZES[at], &self.0[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_as_many_rows_of_parameters() {
        for size in SIZES {
            let (got, text) = ENQUEUE_JOBS.largest(|at_most| at_most <= size);
            assert_eq!((got, text.matches('?').count()), (size, 15 * size), "{text}");
            let (got, text) = LOOK_FROM.largest(|at_most| at_most <= size);
            assert_eq!((got, text.matches("r.tier = ?").count()), (size, size), "{text}");
        }
        assert_eq!(ENQUEUE_JOBS.largest(|_| false).0, 1);
    }

    #[test]
    fn a_query_with_room_to_spare_is_the_smallest_that_has_it() {
        for (items, size) in [(1, 1), (2, 4), (4, 4), (5, 16), (64, 64), (100, 256), (1_000, 256)] {
            let (got, text) = RESERVE_UNITS.smallest(items);
            assert_eq!((got, text.matches("skip locked").count()), (size, size), "{items}");
        }
    }
}
