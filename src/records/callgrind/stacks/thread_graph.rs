//! The call graph of one thread, with functions numbered from 0.

use super::call_order::order;
use super::graph::{Calls, Thread};
use crate::model::lists::Lists;
use rustc_hash::FxHashMap;

/// The functions that a thread ran, and the calls between them.
pub(super) struct ThreadGraph<'g> {
    /// For each function, its number in the file's graph.
    pub(super) functions: Vec<u32>,
    /// All calls as (caller, callee, calls), sorted by caller and callee, which are indices into `functions`.
    pub(super) calls: Vec<(u32, u32, &'g Calls)>,
    /// For each function, the index of its self cost in the thread's costs.
    own: Vec<Option<usize>>,
    thread: &'g Thread,
    /// Functions sorted so that callers come before callees.
    pub(super) order: Vec<u32>,
}

/// The self cost of a line in a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineCost {
    /// Number of the file's name in the file's graph.
    pub(super) file: u32,
    pub(super) line: u32,
    pub(super) cost: u64,
}

/// How the cost of an event reached each function, disregarding calls that close a cycle.
pub(super) struct EventFlow {
    /// Self cost of each function, without its callees.
    pub(super) own: Vec<f64>,
    /// Cost of each function including its callees.
    pub(super) below: Vec<f64>,
    /// For each function, the share of this cost that no remaining call accounts for.
    pub(super) begun: Vec<f64>,
    /// The callees of each function. The number is the share of the callee's cost that this call brought.
    pub(super) callees: Lists<(u32, f64)>,
}

impl<'g> ThreadGraph<'g> {
    pub(super) fn new(thread: &'g Thread) -> Self {
        let mut graph = Self { functions: vec![], calls: vec![], own: vec![], thread, order: vec![] };
        let mut numbers = FxHashMap::default();
        for (at, (function, _)) in thread.costs.iter().enumerate() {
            numbers.insert(*function, graph.push(*function, Some(at)));
        }
        let mut calls: Vec<_> = thread.calls.iter().collect();
        calls.sort_unstable_by_key(|(ends, _)| **ends);
        for (&(caller, callee), calls) in calls {
            let [caller, callee] =
                [caller, callee].map(|function| *numbers.entry(function).or_insert_with(|| graph.push(function, None)));
            graph.calls.push((caller, callee, calls));
        }
        graph.order = order(&graph.weights(0), &graph.begun(0));
        graph
    }

    fn push(&mut self, function: u32, own: Option<usize>) -> u32 {
        self.functions.push(function);
        self.own.push(own);
        self.functions.len() as u32 - 1
    }

    /// Self cost of a function.
    pub(super) fn own(&self, event: usize, function: usize) -> i64 {
        self.own[function].map_or(0, |at| self.thread.costs[at].1.of(event))
    }

    /// Self cost of a function by file and line. Empty if some lines have the opposite sign of the whole.
    pub(super) fn lines(&self, event: usize, function: usize) -> Vec<LineCost> {
        let Some(at) = self.own[function] else { return Vec::new() };
        let sign = self.own(event, function).signum();
        let lines = self.thread.lines[at].iter().map(|(&(file, line), costs)| (file, line, costs.of(event)));
        let mut costs = Vec::new();
        for (file, line, cost) in lines.filter(|(.., cost)| *cost != 0) {
            if cost.signum() != sign {
                return Vec::new();
            }
            costs.push(LineCost { file, line, cost: cost.unsigned_abs() });
        }
        costs
    }

    /// The callees of each function, with the cost of the calls.
    fn weights(&self, event: usize) -> Lists<(u32, f64)> {
        let others = self.calls.iter().filter(|(caller, callee, _)| caller != callee);
        let weighted = others.map(|&(caller, callee, calls)| {
            let cost = calls.costs.of(event).unsigned_abs();
            // Calls without cost still tell who called whom. Their weight is far below that of any call with a cost.
            let weight = if cost > 0 { cost as f64 } else { calls.count.max(1) as f64 * 1e-9 };
            (caller, (callee, weight))
        });
        Lists::new(self.functions.len(), weighted)
    }

    /// For each function, how much its own cost and that of its calls exceed the cost of the calls to it. This is cost
    /// from before the recording, or of a function without a caller, such as a thread's first.
    fn begun(&self, event: usize) -> Vec<f64> {
        let own = (0..self.functions.len()).map(|function| i128::from(self.own(event, function).unsigned_abs()));
        let mut begun: Vec<i128> = own.collect();
        for &(caller, callee, calls) in &self.calls {
            let cost = i128::from(calls.costs.of(event).unsigned_abs());
            begun[caller as usize] += cost;
            begun[callee as usize] -= cost;
        }
        begun.into_iter().map(|cost| cost.max(0) as f64).collect()
    }

    /// How an event's cost reached the functions. Negative costs are treated by their absolute value.
    pub(super) fn flow(&self, event: usize) -> EventFlow {
        let count = self.functions.len();
        let mut places = vec![0; count];
        for (place, &function) in self.order.iter().enumerate() {
            places[function as usize] = place;
        }
        let weights = self.weights(event);
        let is_forward = |&(caller, (callee, _)): &(u32, (u32, f64))| places[caller as usize] < places[callee as usize];
        let mut callees = Lists::new(count, weights.items().filter(is_forward));
        let mut begun = self.begun(event);
        let mut sums = begun.clone();
        callees.items().for_each(|(_, (callee, weight))| sums[callee as usize] += weight);
        callees.items_mut().iter_mut().for_each(|(callee, weight)| *weight /= sums[*callee as usize]);
        for (begun, sum) in begun.iter_mut().zip(&sums) {
            *begun = if *sum > 0.0 { *begun / sum } else { 1.0 };
        }
        let own: Vec<f64> = (0..count).map(|function| self.own(event, function).unsigned_abs() as f64).collect();
        let mut below = own.clone();
        for &function in self.order.iter().rev() {
            let callees = callees[function as usize].iter();
            below[function as usize] += callees.map(|&(callee, share)| below[callee as usize] * share).sum::<f64>();
        }
        EventFlow { own, below, begun, callees }
    }
}
