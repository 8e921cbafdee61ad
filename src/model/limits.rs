//! Bounds on what one request may hold.

use std::time::Duration;

/// Every bound that input is checked against. All are options with these defaults; none is ever clamped to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one payload.
    pub payload_bytes: usize,
    /// Entries of one job's headers.
    pub header_entries: usize,
    /// Bytes of one job's headers, keys and values together.
    pub header_bytes: usize,
    /// Jobs or tokens in one call.
    pub batch: usize,
    /// Queues of one stream.
    pub queues_per_stream: usize,
    /// Jobs outstanding on one stream.
    pub max_in_flight: u32,
    /// Furthest that a delay or a due time may lie ahead.
    pub delay: Duration,
    /// Shortest lease.
    pub lease_min: Duration,
    /// Longest lease.
    pub lease_max: Duration,
    /// Leases granted before a job is dead.
    pub max_attempts: u16,
    /// Bytes of a kept error text; a longer one is cut on a character boundary.
    pub error_bytes: usize,
    /// Those of stock and reservations.
    pub stock: StockLimits,
}

/// Bounds on calls about stock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockLimits {
    /// Lines of one reservation.
    pub lines: usize,
    /// Units of one line.
    pub quantity: u32,
    /// Jobs that come with a reservation, those on its expiry among them; or with its commit.
    pub jobs: usize,
    /// Adjustments of one call.
    pub adjustments: usize,
    /// How long a reservation holds its units where it does not say.
    pub usual_time_to_live: Duration,
    /// Shortest that it may hold them.
    pub shortest_time_to_live: Duration,
    /// Longest that it may hold them.
    pub longest_time_to_live: Duration,
}

impl StockLimits {
    /// Bytes of a reason that is kept.
    pub const REASON_BYTES: usize = 1_024;
}

impl Default for StockLimits {
    fn default() -> Self {
        Self {
            lines: 100,
            quantity: 1_000_000,
            jobs: 100,
            adjustments: 1_000,
            usual_time_to_live: Duration::from_mins(15),
            shortest_time_to_live: Duration::from_secs(1),
            longest_time_to_live: Duration::from_hours(24),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload_bytes: 1 << 20,
            header_entries: 32,
            header_bytes: 16 << 10,
            batch: 1_000,
            queues_per_stream: 32,
            max_in_flight: 10_000,
            delay: Duration::from_secs(365 * 24 * 3_600),
            lease_min: Duration::from_secs(1),
            lease_max: Duration::from_secs(12 * 3_600),
            max_attempts: 1_000,
            error_bytes: 4 << 10,
            stock: StockLimits::default(),
        }
    }
}

/// `text` as it may be stored: NUL becomes U+FFFD, and what is past `max` bytes is cut on a character boundary.
pub fn storable_text(text: &str, max: usize) -> String {
    let mut kept = text.replace('\0', "\u{fffd}");
    if kept.len() > max {
        let end = (0..=max).rev().find(|&at| kept.is_char_boundary(at)).unwrap_or(0);
        kept.truncate(end);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_error_is_cut_on_a_character_boundary() {
        let kept = storable_text(&"🦀".repeat(2_000), 4_098);
        assert_eq!(kept.len(), 4_096);
        assert!(kept.chars().all(|c| c == '🦀'));
    }

    #[test]
    fn nul_in_an_error_becomes_visible() {
        assert_eq!(storable_text("a\0b", 10), "a\u{fffd}b");
    }
}
