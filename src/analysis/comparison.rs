//! What a change between two profiles of a program means.
//!
//! Samples are judged by chance ([`significance`](crate::analysis::significance)), by their shares of the whole. What
//! was measured call by call has no chance in it: each change is real, and amounts are compared, not shares. Of sums
//! whose number of samples nobody knows, nothing is said, unless the user states what one sample weighs.

use crate::analysis::groups::Sum;
use crate::analysis::significance::{Share, is_significant};
use crate::model::stacks::{Counting, Series, Weight};
use std::num::NonZeroU64;

/// How two profiles are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompareOptions {
    /// True if only functions of exactly the same name are the same.
    pub exact_names: bool,
    /// What one sample weighs, where the input doesn't say.
    pub sample_weight: Option<NonZeroU64>,
}

/// By what changes are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// By the numbers of samples.
    Samples,
    /// By amounts: everything was measured.
    Exact,
    /// Not at all.
    Nothing,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// There was nothing before.
    New,
    /// There is nothing now.
    Gone,
    /// More than chance, or more at all where everything was measured.
    More,
    /// Less, likewise.
    Less,
    /// What sampling alone would make of the same program.
    Noise,
    /// The same amount, of what was measured.
    Same,
    /// Nobody knows.
    Unjudged,
}

/// Two profiles' events of one name.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// By what changes are judged.
    pub evidence: Evidence,
    /// All of the earlier one.
    pub before: Sum,
    /// All of the later one.
    pub after: Sum,
    /// What one sample of each side weighs, where the user states it.
    pub one: [Option<NonZeroU64>; 2],
}

impl Evidence {
    /// The word for it in the page.
    pub fn word(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Exact => "exact",
            Self::Nothing => "nothing",
        }
    }
}

impl Change {
    /// The word for it in tables; empty if nothing is known.
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

    /// True if something changed, as far as is known.
    pub fn is_real(self) -> bool {
        matches!(self, Self::New | Self::Gone | Self::More | Self::Less)
    }
}

impl Comparison {
    /// Of the sums of `weight` of two events.
    pub fn new(before: &Series, after: &Series, weight: Weight, options: CompareOptions) -> Self {
        let stated = |series: &Series| options.sample_weight.filter(|_| series.counting == Counting::Unknown);
        let one = [stated(before), stated(after)];
        let is_sampled =
            |series: &Series, one: Option<NonZeroU64>| series.counting == Counting::Sampled || one.is_some();
        let evidence = if before.counting == Counting::Exact && after.counting == Counting::Exact {
            Evidence::Exact
        } else if is_sampled(before, one[0]) && is_sampled(after, one[1]) {
            Evidence::Samples
        } else {
            Evidence::Nothing
        };
        Self { evidence, before: whole(before, weight), after: whole(after, weight), one }
    }

    /// The change of a part of them.
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
                let (share_before, share_after) =
                    (self.share(0, before, self.before), self.share(1, after, self.after));
                if !is_significant(share_before, share_after) {
                    return Change::Noise;
                }
                let part = |share: Share| share.part as f64 / share.whole as f64;
                direction(part(share_after) > part(share_before))
            }
        }
    }

    fn share(&self, side: usize, part: Sum, whole: Sum) -> Share {
        match self.one[side] {
            Some(one) => Share { part: part.weight.unsigned_abs() / one, whole: whole.weight.unsigned_abs() / one },
            None => Share { part: part.count, whole: whole.count },
        }
    }

    /// The change of the whole in per cent; `None` without anything before.
    pub fn growth(&self) -> Option<f64> {
        let (before, after) = (self.before.weight as f64, self.after.weight as f64);
        (before > 0.0).then(|| 100.0 * (after - before) / before)
    }
}

fn whole(series: &Series, weight: Weight) -> Sum {
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
        // Its share fell by half.
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
        // One sample weighs 1,000, whatever is counted.
        let stated = CompareOptions { sample_weight: NonZeroU64::new(1000), ..CompareOptions::default() };
        let known = compare([Counting::Unknown; 2], stated);
        assert_eq!(known.change(sum(100_000, 100_000), sum(200_000, 200_000)), Change::Noise);
        assert_eq!(known.change(sum(100_000, 100_000), sum(400_000, 400_000)), Change::More);
    }
}
