//! How much dearer lane time is for a caller that may have a part of it alone.

/// What each statement of a caller counts for, as a multiple of its length, so that it gets `own` of all lane time and no more
/// while `shares` (parts of 1, `own` among them) of callers with a share and `others` without one wait: as if all waited without
/// end. A caller whose share is more than what falls to it anyway pays the plain price.
pub(super) fn price(own: f64, shares: &mut [f64], others: usize) -> f64 {
    (even(shares, others) / own).max(1.0)
}

/// What falls to each caller that its share does not hold back.
fn even(shares: &mut [f64], others: usize) -> f64 {
    shares.sort_by(f64::total_cmp);
    let (mut left, mut callers) = (1.0, count(shares.len() + others));
    for share in &*shares {
        let even = left / callers;
        if *share >= even {
            return even;
        }
        left -= share;
        callers -= 1.0;
    }
    // Without others, nobody is left who could have the rest: they share it in proportion.
    if others > 0 { left / callers } else { shares.last().copied().unwrap_or(1.0) }
}

#[allow(clippy::cast_precision_loss, reason = "callers are far below 2^52")]
fn count(callers: usize) -> f64 {
    callers as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(is: f64, should: f64) {
        assert!((is - should).abs() < 1e-9, "{is}, not {should}");
    }

    #[test]
    fn prices_give_each_caller_its_share() {
        near(price(0.2, &mut [0.2], 1), 4.0); // 0.2 to 0.8
        near(price(0.1, &mut [0.1, 0.1], 1), 8.0); // 0.1, 0.1 and 0.8
        near(price(0.1, &mut [0.1], 3), 3.0); // 0.1 and three times 0.3
        near(price(0.1, &mut [0.4, 0.1], 1), 5.0); // 0.1, 0.4 and 0.5
        near(price(0.4, &mut [0.4, 0.1], 1), 1.25);
    }

    #[test]
    fn a_share_above_what_falls_to_everybody_costs_nothing() {
        near(price(0.5, &mut [0.5], 1), 1.0);
        near(price(0.2, &mut [0.2], 100), 1.0);
        near(price(0.9, &mut [0.9, 0.9], 0), 1.0);
        near(price(1.0, &mut [1.0], 0), 1.0);
    }

    #[test]
    fn with_nobody_else_lane_time_is_shared_in_proportion() {
        near(price(0.1, &mut [0.1], 0), 1.0);
        near(price(0.1, &mut [0.1, 0.3], 0), 3.0);
        near(price(0.3, &mut [0.1, 0.3], 0), 1.0);
    }
}
