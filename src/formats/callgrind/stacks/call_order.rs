//! Puts functions into an order in which little cost goes backward: callers before callees, as far as cycles allow.
//!
//! P. Eades, X. Lin, W. F. Smyth, "A fast and effective heuristic for the feedback arc set problem" (1993), with
//! weights: functions that no remaining one calls go to the front, functions that call no remaining one to the back;
//! when there is neither, the one goes to the front that gives most more than it takes.

use crate::model::lists::Lists;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// `callees[f]` are the callees of `f` with weights; none calls itself.
pub(super) fn order(callees: &Lists<(u32, f64)>) -> Vec<u32> {
    let mut unplaced = Unplaced::new(callees);
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        while let Some(function) = unplaced.sinks.pop() {
            if unplaced.take(function, false) {
                back.push(function);
            }
        }
        let Some(function) = unplaced.sources.pop().or_else(|| unplaced.best()) else { break };
        if unplaced.take(function, true) {
            front.push(function);
        }
    }
    front.extend(back.into_iter().rev());
    front
}

/// The functions that have no place yet.
struct Unplaced<'a> {
    callees: &'a Lists<(u32, f64)>,
    callers: Lists<(u32, f64)>,
    taken: Vec<bool>,
    /// Number of calls from and to functions that are unplaced.
    calls_in: Vec<usize>,
    calls_out: Vec<usize>,
    /// Weight out to those unplaced, less weight in from them, plus weight in from the front.
    surplus: Vec<f64>,
    sources: Vec<u32>,
    sinks: Vec<u32>,
    /// By surplus; entries whose surplus has changed since are stale.
    heap: BinaryHeap<(Surplus, Reverse<u32>)>,
}

#[derive(PartialEq)]
struct Surplus(f64);

impl Eq for Surplus {}

impl Ord for Surplus {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Surplus {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> Unplaced<'a> {
    fn new(callees: &'a Lists<(u32, f64)>) -> Self {
        let count = callees.len();
        let callers = Lists::new(count, callees.items().map(|(caller, (callee, weight))| (callee, (caller, weight))));
        let mut surplus = vec![0.0; count];
        for (caller, (callee, weight)) in callees.items() {
            surplus[caller as usize] += weight;
            surplus[callee as usize] -= weight;
        }
        let calls_in: Vec<usize> = callers.iter().map(<[_]>::len).collect();
        let calls_out: Vec<usize> = callees.iter().map(<[_]>::len).collect();
        // Popped from the end: the first comes first.
        let without =
            |calls: &[usize]| -> Vec<u32> { (0..count as u32).rev().filter(|&at| calls[at as usize] == 0).collect() };
        let (sources, sinks) = (without(&calls_in), without(&calls_out));
        let heap = (0..count as u32).map(|at| (Surplus(surplus[at as usize]), Reverse(at))).collect();
        Self { callees, callers, taken: vec![false; count], calls_in, calls_out, surplus, sources, sinks, heap }
    }

    fn best(&mut self) -> Option<u32> {
        while let Some((Surplus(surplus), Reverse(function))) = self.heap.pop() {
            let at = function as usize;
            if !self.taken[at] && self.surplus[at] == surplus {
                return Some(function);
            }
        }
        None
    }

    /// Gives a function its place; `false` if it has one already.
    fn take(&mut self, function: u32, to_front: bool) -> bool {
        if std::mem::replace(&mut self.taken[function as usize], true) {
            return false;
        }
        for &(callee, weight) in &self.callees[function as usize] {
            let at = callee as usize;
            self.calls_in[at] -= 1;
            // No longer taken from one that is unplaced; and if from the front, so much the better.
            self.surplus[at] += if to_front { 2.0 * weight } else { weight };
            self.changed(callee);
        }
        for at in 0..self.callers[function as usize].len() {
            let (caller, weight) = self.callers[function as usize][at];
            self.calls_out[caller as usize] -= 1;
            self.surplus[caller as usize] -= weight;
            self.changed(caller);
        }
        true
    }

    fn changed(&mut self, function: u32) {
        let at = function as usize;
        if self.taken[at] {
            return;
        }
        if self.calls_out[at] == 0 {
            self.sinks.push(function);
        } else if self.calls_in[at] == 0 {
            self.sources.push(function);
        } else {
            self.heap.push((Surplus(self.surplus[at]), Reverse(function)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_first_and_the_lightest_call_of_a_cycle_backward() {
        // 0 → 2 → 1 → 3 → 2 (light), 4 on its own.
        let calls = [(0, (2, 5.0)), (1, (3, 9.0)), (2, (1, 9.0)), (3, (2, 1.0))];
        let order = order(&Lists::new(5, calls.into_iter()));
        let place = |function: u32| order.iter().position(|&at| at == function).unwrap();
        assert_eq!(order.len(), 5);
        assert!(place(0) < place(2) && place(2) < place(1) && place(1) < place(3));
    }
}
