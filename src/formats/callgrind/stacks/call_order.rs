//! Sorts functions so that callers come before callees, as far as cycles allow.
//!
//! The order is made by placing one function after the other. A function is placed once all its callers are. If every
//! function left is in a cycle or called from one, the next function is the one that received most of its cost from
//! callers already placed, and among equals the one with the highest such cost. The order thus follows the program from
//! its start, and cycles are entered where the program entered them. Only calls that close a cycle have the
//! callee before the caller.

use crate::model::lists::Lists;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Priority of a function that isn't placed yet. The fields are compared in this order, and the greatest is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// True if all callers of the function are placed.
    has_all_callers: bool,
    /// Share of the function's cost that came from placed callers, in halves and rounded: 0, 1 or 2.
    halves: u8,
    /// The cost that came from placed callers, as the bits of an `f64`. For non-negative numbers, these sort like the
    /// numbers.
    cost_bits: u64,
    /// The function's number. Among equals, the lowest number comes first.
    function: Reverse<u32>,
}

/// What is known about a function while the order is determined.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    /// The cost that the function received from placed callers, all added up, plus the part of its cost that no call
    /// accounts for.
    placed_cost: f64,
    /// The cost that the function received from all its callers, placed or not, plus the part of its cost that no call
    /// accounts for.
    whole_cost: f64,
    /// Number of callers that aren't placed yet.
    unplaced_callers: usize,
    is_placed: bool,
}

impl Candidate {
    /// The rank of the candidate, by which the next function is chosen. `function` breaks ties: lower numbers win.
    fn rank(&self, function: u32) -> Rank {
        // The share of the cost that came from placed callers, rounded to halves: 0, 1 or 2. If there is no such cost,
        // the whole may be 0, so don't divide by it.
        let halves = if self.placed_cost > 0.0 { (2.0 * self.placed_cost / self.whole_cost).round() as u8 } else { 0 };
        Rank {
            has_all_callers: self.unplaced_callers == 0,
            halves,
            // The cost isn't negative, and for such numbers, the bits of an `f64` sort like the numbers.
            cost_bits: self.placed_cost.to_bits(),
            function: Reverse(function),
        }
    }
}

/// The functions in an order with callers before callees, as far as cycles allow. `callees[f]` are the callees of `f`
/// with weights; none is `f` itself. `uncalled[f]` is the cost of `f` that no call accounts for.
pub(super) fn order(callees: &Lists<(u32, f64)>, uncalled: &[f64]) -> Vec<u32> {
    let mut candidates = Vec::with_capacity(callees.count());
    // Cost that no call accounts for waits for no caller, so it counts as placed from the start.
    for &cost in uncalled {
        candidates.push(Candidate { placed_cost: cost, whole_cost: cost, unplaced_callers: 0, is_placed: false });
    }
    for (_, (callee, weight)) in callees.items() {
        let candidate = &mut candidates[callee as usize];
        candidate.unplaced_callers += 1;
        candidate.whole_cost += weight;
    }
    // Functions whose callers are all placed rank first. The others follow by the share, then the amount, of their cost
    // that came from placed callers.
    let ranks = (0u32..).zip(&candidates).map(|(function, candidate)| candidate.rank(function));
    let mut heap: BinaryHeap<Rank> = ranks.collect();
    let mut order = Vec::with_capacity(candidates.len());
    // When a function's rank changes, a new entry is added and the old one stays in the heap. Ranks only rise, so the
    // new entry comes out first; the old one is recognized because the function is placed by then.
    while let Some(Rank { function: Reverse(function), .. }) = heap.pop() {
        if std::mem::replace(&mut candidates[function as usize].is_placed, true) {
            continue;
        }
        order.push(function);
        for &(callee, weight) in &callees[function as usize] {
            let candidate = &mut candidates[callee as usize];
            candidate.placed_cost += weight;
            candidate.unplaced_callers -= 1;
            if !candidate.is_placed {
                heap.push(candidate.rank(callee));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_first_and_a_cycle_from_where_it_was_entered() {
        // 0 → 2 → 1 → 3 → 2, with more cost in the cycle than came in from outside; 4 stands alone.
        let calls = [(0, (2, 5.0)), (1, (3, 9.0)), (2, (1, 9.0)), (3, (2, 9.0))];
        let order = order(&Lists::new(5, calls.into_iter()), &[5.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(order, [0, 4, 2, 1, 3]);
    }

    #[test]
    fn a_function_whose_callers_are_all_placed_precedes_one_with_more_cost() {
        let calls = [(0, (1, 9.0)), (0, (2, 1.0)), (1, (2, 1.0)), (2, (1, 1.0)), (0, (3, 1.0))];
        let order = order(&Lists::new(4, calls.into_iter()), &[11.0, 0.0, 0.0, 0.0]);
        assert_eq!(order, [0, 3, 1, 2]);
    }
}
