//! Sums of samples' costs, separately for each event.

pub use crate::analysis::groups::Sum as Cost;
use crate::model::stacks::Weight;

/// One [`Cost`] for each event, by the event's index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Costs(Vec<Cost>);

impl Costs {
    /// Adds the cost of one or more samples of an event, given by its index.
    pub fn add(&mut self, event: usize, cost: Cost) {
        if self.0.len() <= event {
            self.0.resize(event + 1, Cost::default());
        }
        self.0[event] += cost;
    }

    /// Adds all costs of another sum.
    pub fn join(&mut self, other: &Self) {
        other.0.iter().enumerate().for_each(|(event, cost)| self.add(event, *cost));
    }

    /// The cost in the event with this index; zero if it has none.
    pub fn get(&self, event: usize) -> Cost {
        self.0.get(event).copied().unwrap_or_default()
    }

    /// The key by which code is sorted, hottest first: the cost in the first event; if that is equal, in the second,
    /// and so on.
    pub(super) fn heat(&self, weight: Weight) -> Vec<i64> {
        self.0.iter().map(|cost| cost.of(weight)).collect()
    }

    /// The number of samples, over all events.
    pub fn samples(&self) -> u64 {
        self.0.iter().map(|cost| cost.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_events_add_up_apart() {
        let (one, two) = (Cost { weight: 10, count: 1 }, Cost { weight: 30, count: 2 });
        let mut costs = Costs::default();
        costs.add(1, one);
        let mut others = Costs::default();
        others.add(0, two);
        others.add(1, two);
        costs.join(&others);
        assert_eq!((costs.get(0), costs.get(1), costs.get(2)), (two, Cost { weight: 40, count: 3 }, Cost::default()));
        assert_eq!(costs.samples(), 5);
        assert_eq!(two.percent_of(costs.get(1), Weight::Period), 75.0);
        assert_eq!(two.percent_of(Cost::default(), Weight::Samples), 0.0);
    }
}
