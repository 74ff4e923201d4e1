//! How the weight of a function, or of a box in a flame graph, is divided among tiers.

use crate::model::tier::Tier;

/// Weights by tier. Most code has a single tier, which is stored without allocating, because each node of a tree has
/// such a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TierShares {
    /// The first tier and its weight; `None` if nothing was added yet. The tier itself is `None` if it is unknown.
    first: Option<(Option<Tier>, u64)>,
    /// The weights of further tiers, as a linked list.
    others: Option<Box<Self>>,
}

impl TierShares {
    /// Adds weight to a tier; `None` stands for code whose tier is unknown.
    pub fn add(&mut self, tier: Option<Tier>, weight: u64) {
        match &mut self.first {
            None => self.first = Some((tier, weight)),
            Some((first_tier, sum)) if *first_tier == tier => *sum = sum.saturating_add(weight),
            Some(_) => self.others.get_or_insert_default().add(tier, weight),
        }
    }

    /// Tiers with a weight above zero.
    fn with_weight(&self) -> impl Iterator<Item = (Option<Tier>, u64)> {
        let all = std::iter::successors(Some(self), |shares| shares.others.as_deref());
        all.filter_map(|shares| shares.first).filter(|(_, weight)| *weight > 0)
    }

    /// Tiers with a weight above zero, heaviest first.
    pub fn heaviest_first(&self) -> Vec<(Option<Tier>, u64)> {
        let mut shares: Vec<_> = self.with_weight().collect();
        shares.sort_by_key(|&(tier, weight)| (std::cmp::Reverse(weight), tier));
        shares
    }

    /// True if more than one tier has weight.
    pub fn is_mixed(&self) -> bool {
        self.with_weight().nth(1).is_some()
    }

    /// The tiers with their percentages, heaviest first: `optimized 81.00%, baseline 19.00%`. Empty if no tier is
    /// known.
    pub fn text(&self) -> String {
        let shares = self.heaviest_first();
        if shares.iter().all(|(tier, _)| tier.is_none()) {
            return String::new();
        }
        let whole: f64 = shares.iter().map(|&(_, weight)| weight as f64).sum();
        let mut texts = Vec::new();
        for (tier, weight) in shares {
            let name = tier.map_or("no known tier", Tier::name);
            texts.push(format!("{name} {}", percent(weight as f64 / whole)));
        }
        texts.join(", ")
    }
}

/// Formats a share from 0 to 1 as a percentage with two decimals, like all percentages in tables. If a share is neither
/// nothing nor all, it isn't rounded to 0.00% or 100.00%, but becomes `<0.01%` or `>99.99%`.
fn percent(share: f64) -> String {
    match (10_000.0 * share).round() {
        0.0 if share > 0.0 => "<0.01%".to_owned(),
        10_000.0 if share < 1.0 => ">99.99%".to_owned(),
        _ => format!("{:.2}%", 100.0 * share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_reported_with_the_heaviest_first() {
        let mut shares = TierShares::default();
        assert_eq!((shares.text(), shares.is_mixed()), (String::new(), false));
        shares.add(None, 7);
        assert_eq!(shares.text(), "");
        let mut shares = TierShares::default();
        for (tier, weight) in [(Tier::Baseline, 19), (Tier::Optimized, 40), (Tier::Optimized, 41), (Tier::Wasm, 0)] {
            shares.add(Some(tier), weight);
        }
        assert_eq!(shares.heaviest_first(), [(Some(Tier::Optimized), 81), (Some(Tier::Baseline), 19)]);
        assert_eq!((shares.text().as_str(), shares.is_mixed()), ("optimized 81.00%, baseline 19.00%", true));
    }

    #[test]
    fn a_small_share_is_not_reported_as_nothing() {
        let mut shares = TierShares::default();
        shares.add(Some(Tier::Optimized), 999_999);
        shares.add(Some(Tier::Interpreted), 1);
        assert_eq!(shares.text(), "optimized >99.99%, interpreted <0.01%");
    }
}
