//! Judges changes between two profiles of a program.
//!
//! Profiles made by sampling are compared by each function's share of the total, with a test whether chance explains
//! the difference ([`significance`](crate::analysis::significance)). If every call was measured, each change is real,
//! and absolute amounts are compared instead of shares. If the number of samples behind the weights is unknown, changes
//! aren't judged, unless the user says how much a sample weighs.

use crate::analysis::groups::Sum;
use crate::analysis::significance::{Share, is_significant};
use crate::model::stacks::{Counting, Series, Weight};
use std::num::NonZeroU64;

/// Options for comparing two profiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompareOptions {
    /// Pair functions of the two profiles only if their names are exactly the same.
    pub exact_names: bool,
    /// The weight of one sample, for inputs that don't state the number of samples. `None` if the user didn't say.
    pub sample_weight: Option<NonZeroU64>,
}

/// The evidence on which changes are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Numbers of samples, which are tested for chance.
    Samples,
    /// Exact amounts: every call was measured.
    Exact,
    /// No evidence: changes aren't judged.
    Nothing,
}

/// How a function or group changed from the earlier to the later profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The function only occurs in the later profile, and sampling noise doesn't explain that.
    New,
    /// The function only occurs in the earlier profile, and sampling noise doesn't explain that.
    Gone,
    /// The function's share of the total grew by more than chance explains, or its exact amount grew.
    More,
    /// The function's share of the total shrank by more than chance explains, or its exact amount shrank.
    Less,
    /// The difference may be sampling noise.
    Noise,
    /// The function's exact amount is the same.
    Same,
    /// The change isn't judged, because there is no evidence ([`Evidence::Nothing`]).
    Unjudged,
}

/// The basis for comparing an event in two profiles.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// The evidence on which changes are judged.
    pub evidence: Evidence,
    /// The event's total in the earlier profile.
    pub before: Sum,
    /// The event's total in the later profile.
    pub after: Sum,
    /// The weight of one sample in the earlier and in the later profile, as the user stated it. `None` if the user
    /// stated none, or if the input states the number of samples itself.
    pub sample_weights: [Option<NonZeroU64>; 2],
}

impl Evidence {
    /// The keyword for this evidence on the page of `view`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Exact => "exact",
            Self::Nothing => "nothing",
        }
    }
}

impl Change {
    /// The word for this change in tables; empty if not judged.
    pub fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Gone => "gone",
            Self::More => "more",
            Self::Less => "less",
            Self::Noise => "noise",
            Self::Same => "same",
            Self::Unjudged => "",
        }
    }

    /// True if the change is known to be real: not noise, and not unjudged.
    pub fn is_real(self) -> bool {
        matches!(self, Self::New | Self::Gone | Self::More | Self::Less)
    }
}

impl Comparison {
    /// Prepares the comparison of an event in an earlier and a later profile.
    pub fn new(before: &Series, after: &Series, weight: Weight, options: CompareOptions) -> Self {
        // The weight of a sample that the user stated only applies to profiles that don't state the number of samples.
        let sample_weight = |series: &Series| options.sample_weight.filter(|_| series.counting == Counting::Unknown);
        let sample_weights = [sample_weight(before), sample_weight(after)];
        let is_sampled = |series: &Series, sample_weight: Option<NonZeroU64>| {
            series.counting == Counting::Sampled || sample_weight.is_some()
        };
        // Numbers of samples can't be compared with exact amounts.
        let evidence = if before.counting == Counting::Exact && after.counting == Counting::Exact {
            Evidence::Exact
        } else if is_sampled(before, sample_weights[0]) && is_sampled(after, sample_weights[1]) {
            Evidence::Samples
        } else {
            Evidence::Nothing
        };
        Self { evidence, before: total_of(before, weight), after: total_of(after, weight), sample_weights }
    }

    /// Judges how a function or group changed, given its weight and sample count in both profiles.
    pub fn change(&self, before: Sum, after: Sum) -> Change {
        let presence = match (before.is_zero(), after.is_zero()) {
            (true, false) => Some(Change::New),
            (false, true) => Some(Change::Gone),
            _ => None,
        };
        let direction = |is_more: bool| presence.unwrap_or(if is_more { Change::More } else { Change::Less });
        match self.evidence {
            Evidence::Nothing => Change::Unjudged,
            Evidence::Exact if before.weight == after.weight => presence.unwrap_or(Change::Same),
            Evidence::Exact => direction(after.weight > before.weight),
            Evidence::Samples => {
                // `0` stands for the earlier profile, `1` for the later one.
                let share_before = self.share(0, before, self.before);
                let share_after = self.share(1, after, self.after);
                if !is_significant(share_before, share_after) {
                    return Change::Noise;
                }
                let fraction_before = share_before.part as f64 / share_before.whole as f64;
                let fraction_after = share_after.part as f64 / share_after.whole as f64;
                direction(fraction_after > fraction_before)
            }
        }
    }

    /// A function's share of the samples of one profile (`side`: 0 for the earlier, 1 for the later). If the user
    /// stated the weight of a sample, the numbers of samples are computed from weights.
    fn share(&self, side: usize, part: Sum, whole: Sum) -> Share {
        match self.sample_weights[side] {
            Some(sample_weight) => Share {
                part: part.weight.unsigned_abs() / sample_weight,
                whole: whole.weight.unsigned_abs() / sample_weight,
            },
            None => Share { part: part.count, whole: whole.count },
        }
    }

    /// By how many percent the event's total grew; negative if it shrank. `None` if the total was zero before.
    pub fn growth(&self) -> Option<f64> {
        let (before, after) = (self.before.weight as f64, self.after.weight as f64);
        (before != 0.0).then(|| 100.0 * (after - before) / before.abs())
    }
}

fn total_of(series: &Series, weight: Weight) -> Sum {
    let mut sum = Sum::default();
    for (row, amount) in series.signed_rows(weight) {
        sum += Sum { weight: amount, count: row.count };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::{Profile, Row, Track};

    fn series(counting: Counting, weight: u64, count: u64) -> Series {
        let row = Row { track: Profile::new().track(Track::default()), stack: None, weight, count, time: None };
        Series { counting, rows: vec![row], ..Series::default() }
    }

    fn sum(weight: i64, count: u64) -> Sum {
        Sum { weight, count }
    }

    fn compare(counting: [Counting; 2], options: CompareOptions) -> Comparison {
        let [before, after] = counting;
        Comparison::new(&series(before, 1_000_000, 1000), &series(after, 2_000_000, 2000), Weight::Period, options)
    }

    #[test]
    fn what_was_measured_is_judged_by_amount() {
        let exact = compare([Counting::Exact; 2], CompareOptions::default());
        assert_eq!(exact.evidence, Evidence::Exact);
        // The function's share of the total fell by half.
        assert_eq!(exact.change(sum(100, 1), sum(100, 1)), Change::Same);
        assert_eq!(exact.change(sum(100, 1), sum(101, 1)), Change::More);
        assert_eq!(exact.change(sum(100, 1), sum(99, 1)), Change::Less);
        assert_eq!(exact.change(sum(0, 0), sum(1, 1)), Change::New);
        assert_eq!(exact.change(sum(5, 1), sum(0, 0)), Change::Gone);
        assert_eq!(exact.growth(), Some(100.0));
    }

    #[test]
    fn samples_are_judged_by_chance_and_sums_not_at_all() {
        let sampled = compare([Counting::Sampled; 2], CompareOptions::default());
        assert_eq!(sampled.change(sum(100_000, 100), sum(200_000, 200)), Change::Noise);
        assert_eq!(sampled.change(sum(100_000, 100), sum(400_000, 400)), Change::More);
        assert_eq!(sampled.change(sum(500_000, 500), sum(400_000, 400)), Change::Less);
        for counting in
            [[Counting::Unknown; 2], [Counting::Sampled, Counting::Unknown], [Counting::Exact, Counting::Sampled]]
        {
            let unknown = compare(counting, CompareOptions::default());
            assert_eq!(unknown.change(sum(0, 0), sum(1_000_000, 1_000_000)), Change::Unjudged, "{counting:?}");
        }
        // The user says that a sample weighs 1,000 units.
        let stated = CompareOptions { sample_weight: NonZeroU64::new(1000), ..CompareOptions::default() };
        let known = compare([Counting::Unknown; 2], stated);
        assert_eq!(known.change(sum(100_000, 100_000), sum(200_000, 200_000)), Change::Noise);
        assert_eq!(known.change(sum(100_000, 100_000), sum(400_000, 400_000)), Change::More);
    }
}
