//! Decides whether a difference between two recordings is larger than sampling noise.
//!
//! If n of a recording's N samples are in a function, its share n / N is subject to sampling noise: another recording
//! of the same program gives another value. Two shares are compared with a likelihood-ratio test (G-test) on a 2×2
//! table, which contains the samples in the function and the other samples of both recordings:
//!
//! ```text
//! O = n₁, n₂, N₁ − n₁, N₂ − n₂, each moved half a sample towards E (Yates' correction for continuity)
//! E = the expected values if both shares were (n₁ + n₂) / (N₁ + N₂)
//! z = √(2 Σ O ln (O / E))
//! ```
//!
//! The test is also valid for few samples and for recordings of very different lengths: a single sample among 126
//! proves nothing, even if there is none among 5,000 in the other recording.
//!
//! A difference is significant if z > [`THRESHOLD`]. The test uses numbers of samples rather than weights, because a
//! sample with a long period is just as random as one with a short period. It doesn't account for other differences
//! between two runs (machine load, other inputs). Counted data such as callgrind's instructions has no such noise.

/// The smallest significant difference, in standard deviations. At 3, chance alone makes 2.7 of 1,000 unchanged
/// functions look changed: with a hundred functions, about one comparison in four reports a change. At 2, each
/// comparison would report five.
pub const THRESHOLD: f64 = 3.0;

/// How many of an event's samples are in a function, stack or group, out of how many samples in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// The number of samples in the function, stack or group.
    pub part: u64,
    /// The total number of samples of the event.
    pub whole: u64,
}

/// The greatest common divisor of two numbers. If one is 0, it is the other.
pub fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// True if two shares differ by more than sampling noise, in either direction. False if one side has no samples.
pub fn is_significant(before: Share, after: Share) -> bool {
    z(before, after) > THRESHOLD
}

/// The absolute difference between two shares, in standard deviations; 0 if they can't be compared.
fn z(before: Share, after: Share) -> f64 {
    let [n1, whole1, n2, whole2] = [before.part, before.whole, after.part, after.whole].map(|count| count as f64);
    // The share that both recordings would have if nothing had changed. All expected values are computed from it.
    let share = (n1 + n2) / (whole1 + whole2);
    // If there are no samples, `share` is NaN. It then fails the comparisons, so this case is rejected, too.
    if !(whole1 > 0.0 && whole2 > 0.0 && share > 0.0 && share < 1.0) {
        return 0.0;
    }
    let expected1 = whole1 * share;
    // In a 2×2 table with fixed sums, all four values differ from their expected values by the same amount. Yates'
    // correction reduces it by half a sample, but not below 0.
    let apart = ((n1 - expected1).abs() - 0.5).max(0.0).copysign(n1 - expected1);
    // The table's cells for the samples in the function, and those for all other samples.
    let inside = term(expected1, apart) + term(whole2 * share, -apart);
    let outside = term(whole1 * (1.0 - share), -apart) + term(whole2 * (1.0 - share), apart);
    (2.0 * (inside + outside)).max(0.0).sqrt()
}

/// The contribution of one of the table's four cells to the G-test. `apart` is the difference from the expected value.
fn term(expected: f64, apart: f64) -> f64 {
    let observed = expected + apart;
    if observed > 0.0 { observed * (observed / expected).ln() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(part: u64, whole: u64) -> Share {
        Share { part, whole }
    }

    #[test]
    fn the_threshold_is_three_standard_deviations() {
        assert!(!is_significant(share(100, 1000), share(140, 1000)));
        assert!(is_significant(share(100, 1000), share(150, 1000)));
        // z is the square root of the G-test's statistic, which is 7.23 and 11.05 here.
        assert!((z(share(100, 1000), share(140, 1000)) - 2.69).abs() < 0.01);
        assert!((z(share(100, 1000), share(150, 1000)) - 3.32).abs() < 0.01);
    }

    #[test]
    fn a_handful_of_samples_shows_nothing() {
        assert!(!is_significant(share(0, 1000), share(3, 1000)));
        assert!(!is_significant(share(1, 10), share(4, 10)));
        assert!(is_significant(share(0, 1000), share(20, 1000)));
        // The normal approximation would give six standard deviations.
        assert!(!is_significant(share(1, 126), share(0, 4942)));
        assert!(!is_significant(share(2, 126), share(1, 4942)));
        assert!(is_significant(share(6, 126), share(0, 4942)));
    }

    #[test]
    fn without_samples_on_one_side_nothing_is_known() {
        assert!(!is_significant(share(0, 0), share(500, 1000)));
        assert!(!is_significant(share(0, 0), share(0, 0)));
        assert!(!is_significant(share(7, 7), share(9, 9)));
    }

    /// Each sample is in the function with the same probability in both recordings.
    #[test]
    fn two_recordings_of_one_program_rarely_differ() {
        let mut state = 1u64;
        let mut chance = || {
            // Knuth's linear congruential generator. Its upper bits are random enough for this.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for (truth, other) in [0.002, 0.02, 0.2, 0.5].into_iter().flat_map(|truth| [(truth, 500), (truth, 4000)]) {
            let mut sampled = |whole: u64| share((0..whole).filter(|_| chance() < truth).count() as u64, whole);
            let wrong = (0..1000).filter(|_| is_significant(sampled(200), sampled(other))).count();
            assert!(wrong <= 8, "{wrong} of 1,000 at {truth}, 200 beside {other}");
        }
    }

    proptest! {
        #[test]
        fn the_order_does_not_matter(a in 0..1000u64, b in 0..1000u64, more in 1..5000u64, others in 1..5000u64) {
            let (a, b) = (share(a, a + more), share(b, b + others));
            prop_assert_eq!(is_significant(a, b), is_significant(b, a));
        }

        #[test]
        fn equal_shares_never_differ(part in 0..1000u64, more in 0..1000u64, times in 1..100u64) {
            let (a, b) = (share(part, part + more), share(part * times, (part + more) * times));
            prop_assert!(!is_significant(a, b));
        }

        #[test]
        fn more_samples_of_the_same_shares_show_more(a in 0..100u64, b in 0..100u64, times in 2..50u64) {
            let one = z(share(a, 100), share(b, 100));
            let more = z(share(a * times, 100 * times), share(b * times, 100 * times));
            prop_assert!(more >= one, "{} < {}", more, one);
        }
    }
}
