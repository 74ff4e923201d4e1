//! Statistics of durations: number, sum, extremes and standard deviation.

/// Count, sum, minimum, maximum and variance of durations. Sums are exact integers, so that tallies can be merged in
/// any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// The number of durations.
    pub count: u64,
    /// The sum of the durations.
    pub sum: i128,
    /// The minimum; meaningless if there are no durations.
    pub min: i64,
    /// The maximum; meaningless if there are no durations.
    pub max: i64,
    /// The sum of the squares of the durations.
    squares: i128,
}

impl Default for Tally {
    fn default() -> Self {
        Self { count: 0, sum: 0, min: i64::MAX, max: i64::MIN, squares: 0 }
    }
}

impl Tally {
    /// Adds a duration.
    #[inline]
    pub fn add(&mut self, duration: i64) {
        self.count += 1;
        self.sum += i128::from(duration);
        self.min = self.min.min(duration);
        self.max = self.max.max(duration);
        self.squares = self.squares.saturating_add(i128::from(duration) * i128::from(duration));
    }

    /// Adds the durations of another tally.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// The mean, truncated to an integer; `None` if there are no durations.
    pub fn mean(&self) -> Option<i64> {
        i64::try_from(self.sum.checked_div(i128::from(self.count))?).ok()
    }

    /// The population standard deviation, truncated to an integer; `None` if there are no durations.
    pub fn deviation(&self) -> Option<i64> {
        let count = i128::from(self.count);
        if count == 0 {
            return None;
        }
        let n = count as f64;
        // n² times the variance, exact unless the integers overflow.
        let scaled = match (count.checked_mul(self.squares), self.sum.checked_mul(self.sum)) {
            (Some(squares), Some(square_of_sum)) => (squares - square_of_sum) as f64,
            _ => n * self.squares as f64 - (self.sum as f64).powi(2),
        };
        Some((scaled.max(0.0).sqrt() / n) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_exact_where_floating_point_cancels() {
        let mut tally = Tally::default();
        assert_eq!((tally.mean(), tally.deviation()), (None, None));
        for _ in 0..3 {
            tally.add(4_000_000_123);
        }
        assert_eq!((tally.mean(), tally.deviation()), (Some(4_000_000_123), Some(0)));
        let mut other = Tally::default();
        other.add(4_000_000_127);
        tally.merge(&other);
        assert_eq!((tally.count, tally.min, tally.max), (4, 4_000_000_123, 4_000_000_127));
        assert_eq!((tally.mean(), tally.deviation()), (Some(4_000_000_124), Some(1)));
    }
}
