//! The call graph of one thread, with functions numbered from 0.

use super::call_order::order;
use super::graph::{Calls, Thread};
use crate::model::lists::Lists;
use rustc_hash::FxHashMap;

/// The functions that a thread ran, and the calls between them.
pub(super) struct ThreadGraph<'g> {
    /// For each function, its number in the graph of the whole callgrind file.
    pub(super) functions: Vec<u32>,
    /// All calls, sorted by caller and callee.
    pub(super) calls: Vec<CallEdge<'g>>,
    /// For each function, the index of its self cost in the thread's costs; `None` if it has none.
    cost_indices: Vec<Option<usize>>,
    thread: &'g Thread,
    /// Functions sorted so that callers come before callees, as far as cycles allow.
    pub(super) order: Vec<u32>,
}

/// All calls from one function to another. The functions are given as indices into [`ThreadGraph::functions`].
#[derive(Debug, Clone, Copy)]
pub(super) struct CallEdge<'g> {
    pub(super) caller: u32,
    pub(super) callee: u32,
    pub(super) calls: &'g Calls,
}

/// The self cost of a line in a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineCost {
    /// The source file's name, as a number among the texts of the call graph.
    pub(super) file: u32,
    pub(super) line: u32,
    /// The absolute value of the cost.
    pub(super) cost: u64,
}

/// How the cost of an event reached each function: through which calls, or without a call. Calls that close a cycle are
/// left out.
pub(super) struct EventFlow {
    /// Self cost of each function, without its callees.
    pub(super) self_costs: Vec<f64>,
    /// Cost of each function including its callees.
    pub(super) inclusive: Vec<f64>,
    /// For each function, the fraction of its inclusive cost that didn't come from any call in `callees`.
    pub(super) uncalled: Vec<f64>,
    /// The callees of each function, each with the fraction of the callee's inclusive cost that came from this caller.
    pub(super) callees: Lists<(u32, f64)>,
}

impl<'g> ThreadGraph<'g> {
    /// Numbers the functions of a thread: first those with self costs, then those that only occur in calls.
    pub(super) fn new(thread: &'g Thread) -> Self {
        let mut graph = Self { functions: vec![], calls: vec![], cost_indices: vec![], thread, order: vec![] };
        let mut indices = FxHashMap::default();
        for (cost_index, (function, _)) in thread.costs.iter().enumerate() {
            indices.insert(*function, graph.add_function(*function, Some(cost_index)));
        }
        let mut calls: Vec<_> = thread.calls.iter().collect();
        calls.sort_unstable_by_key(|(caller_and_callee, _)| **caller_and_callee);
        for (&(caller, callee), calls) in calls {
            let caller = *indices.entry(caller).or_insert_with(|| graph.add_function(caller, None));
            let callee = *indices.entry(callee).or_insert_with(|| graph.add_function(callee, None));
            graph.calls.push(CallEdge { caller, callee, calls });
        }
        // The first event determines the order for all events, so that the same calls close cycles in all of them.
        graph.order = order(&graph.weighted_callees(0), &graph.uncalled_costs(0));
        graph
    }

    /// Adds a function, and returns its index.
    fn add_function(&mut self, function: u32, cost_index: Option<usize>) -> u32 {
        self.functions.push(function);
        self.cost_indices.push(cost_index);
        self.functions.len() as u32 - 1
    }

    /// Self cost of a function in an event; 0 if it has none.
    pub(super) fn self_cost(&self, event: usize, function: usize) -> i64 {
        self.cost_indices[function].map_or(0, |index| self.thread.costs[index].1.get(event))
    }

    /// Self cost of a function by file and line, as absolute values. Empty if a line's cost has the opposite sign of
    /// the function's, because then the function's cost can't be divided among its lines.
    pub(super) fn lines(&self, event: usize, function: usize) -> Vec<LineCost> {
        let Some(cost_index) = self.cost_indices[function] else { return Vec::new() };
        let sign = self.self_cost(event, function).signum();
        let mut lines = Vec::new();
        for (&(file, line), costs) in &self.thread.lines[cost_index] {
            let cost = costs.get(event);
            if cost == 0 {
                continue;
            }
            if cost.signum() != sign {
                return Vec::new();
            }
            lines.push(LineCost { file, line, cost: cost.unsigned_abs() });
        }
        lines
    }

    /// The callees of each function, each with the cost of the calls to it. Calls of a function to itself are left out.
    fn weighted_callees(&self, event: usize) -> Lists<(u32, f64)> {
        let others = self.calls.iter().filter(|edge| edge.caller != edge.callee);
        let weighted = others.map(|edge| {
            let cost = edge.calls.costs.get(event).unsigned_abs();
            // Calls without cost still tell who called whom. Their weight is far below that of any call with a cost. A
            // count of 0 is damage, but there was a call.
            let weight = if cost > 0 { cost as f64 } else { edge.calls.count.max(1) as f64 * 1e-9 };
            (edge.caller, (edge.callee, weight))
        });
        Lists::new(self.functions.len(), weighted)
    }

    /// For each function, the part of its inclusive cost (self cost plus the cost of the calls that it makes) that
    /// exceeds the cost of the recorded calls to it; 0 if there is no excess. A function has an excess if it was called
    /// before the recording began, or if it has no caller, such as the first function of a thread.
    fn uncalled_costs(&self, event: usize) -> Vec<f64> {
        let self_costs = (0..self.functions.len()).map(|function| self.self_cost(event, function));
        let mut uncalled: Vec<i128> = self_costs.map(|cost| i128::from(cost.unsigned_abs())).collect();
        for edge in &self.calls {
            let cost = i128::from(edge.calls.costs.get(event).unsigned_abs());
            uncalled[edge.caller as usize] += cost;
            uncalled[edge.callee as usize] -= cost;
        }
        uncalled.into_iter().map(|cost| cost.max(0) as f64).collect()
    }

    /// How an event's cost reached the functions. Negative costs are treated by their absolute value.
    pub(super) fn flow(&self, event: usize) -> EventFlow {
        let count = self.functions.len();
        let mut ranks = vec![0; count];
        for (rank, &function) in self.order.iter().enumerate() {
            ranks[function as usize] = rank;
        }
        let weighted = self.weighted_callees(event);
        // Only calls from an earlier to a later function in `order` are kept, so that the graph has no cycles.
        let forward = weighted.items().filter(|&(caller, (callee, _))| ranks[caller as usize] < ranks[callee as usize]);
        let mut callees = Lists::new(count, forward);
        let mut uncalled = self.uncalled_costs(event);
        // The cost that reaches each function, by calls or without. The calls' weights and the uncalled costs are then
        // divided by it, so that they become fractions.
        let mut sums = uncalled.clone();
        for (_, (callee, weight)) in callees.items() {
            sums[callee as usize] += weight;
        }
        for (callee, weight) in callees.items_mut() {
            *weight /= sums[*callee as usize];
        }
        for (uncalled_cost, sum) in uncalled.iter_mut().zip(&sums) {
            // A function that no cost reaches begins its own stacks.
            *uncalled_cost = if *sum > 0.0 { *uncalled_cost / sum } else { 1.0 };
        }
        let self_costs: Vec<f64> =
            (0..count).map(|function| self.self_cost(event, function).unsigned_abs() as f64).collect();
        let mut inclusive = self_costs.clone();
        // Callees come after their callers in `order`, so in reverse order the callees' inclusive costs are complete.
        for &function in self.order.iter().rev() {
            let called = callees[function as usize].iter();
            let cost_of_calls: f64 = called.map(|&(callee, share)| inclusive[callee as usize] * share).sum();
            inclusive[function as usize] += cost_of_calls;
        }
        EventFlow { self_costs, inclusive, uncalled, callees }
    }
}
