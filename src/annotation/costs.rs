//! The sums of samples, for each event.

use crate::model::stacks::Weight;

/// The samples of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Their periods, in the event's unit.
    pub weight: u64,
    /// The number of them.
    pub count: u64,
}

impl Cost {
    /// The weight that is summed of it.
    pub fn of(self, weight: Weight) -> u64 {
        match weight {
            Weight::Period => self.weight,
            Weight::Samples => self.count,
        }
    }

    /// Adds another of the same event.
    pub fn add(&mut self, other: Self) {
        self.weight = self.weight.saturating_add(other.weight);
        self.count = self.count.saturating_add(other.count);
    }

    /// The share of a whole, in percent.
    pub fn percent_of(self, whole: Self, weight: Weight) -> f64 {
        match whole.of(weight) {
            0 => 0.0,
            whole => 100.0 * self.of(weight) as f64 / whole as f64,
        }
    }
}

/// One [`Cost`] for each event, in the order of the events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Costs(Vec<Cost>);

impl Costs {
    /// Those of one sample, or of equal ones.
    pub fn add(&mut self, event: usize, cost: Cost) {
        if self.0.len() <= event {
            self.0.resize(event + 1, Cost::default());
        }
        self.0[event].add(cost);
    }

    /// Adds all of another.
    pub fn join(&mut self, other: &Self) {
        other.0.iter().enumerate().for_each(|(event, cost)| self.add(event, *cost));
    }

    /// That of one event.
    pub fn get(&self, event: usize) -> Cost {
        self.0.get(event).copied().unwrap_or_default()
    }

    /// By what is hotter than other costs: the first event before the second.
    pub(super) fn heat(&self, weight: Weight) -> Vec<u64> {
        self.0.iter().map(|cost| cost.of(weight)).collect()
    }

    /// All samples, whatever event they are of.
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
