//! Sorts functions so that callers come before callees, as far as cycles allow.
//!
//! A function is placed once all its callers are. If only cycles are left, the next function is the one that received
//! most of its cost from callers already placed, and among equals the one with the highest such cost. The order thus
//! follows the program from its start, cycles are entered where the program entered them, and only calls back are out
//! of order.

use crate::model::lists::Lists;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Priority of a function: whether all its callers are placed; how much of its cost came from placed callers, in
/// rounded halves; that cost as bits, which for non-negative numbers have the same order; and the smallest number
/// first.
type Rank = (bool, u8, u64, Reverse<u32>);

/// `callees[f]` are the callees of `f` with weights; none is `f` itself. `begun[f]` is the cost that no call accounts
/// for.
pub(super) fn order(callees: &Lists<(u32, f64)>, begun: &[f64]) -> Vec<u32> {
    let count = callees.count();
    let (mut cost, mut unplaced) = (begun.to_vec(), vec![0usize; count]);
    let mut whole = begun.to_vec();
    callees.items().for_each(|(_, (callee, weight))| {
        unplaced[callee as usize] += 1;
        whole[callee as usize] += weight;
    });
    let rank = |function: u32, cost: &[f64], unplaced: &[usize]| -> Rank {
        let at = function as usize;
        let halves = if cost[at] > 0.0 { (2.0 * cost[at] / whole[at]).round() as u8 } else { 0 };
        (unplaced[at] == 0, halves, cost[at].to_bits(), Reverse(function))
    };
    let mut heap: BinaryHeap<Rank> = (0..count as u32).map(|at| rank(at, &cost, &unplaced)).collect();
    let (mut order, mut is_placed) = (Vec::with_capacity(count), vec![false; count]);
    // Outdated entries of a function stay in the heap behind its newest one.
    while let Some((.., Reverse(function))) = heap.pop() {
        if std::mem::replace(&mut is_placed[function as usize], true) {
            continue;
        }
        order.push(function);
        for &(callee, weight) in &callees[function as usize] {
            let at = callee as usize;
            cost[at] += weight;
            unplaced[at] -= 1;
            if !is_placed[at] {
                heap.push(rank(callee, &cost, &unplaced));
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
