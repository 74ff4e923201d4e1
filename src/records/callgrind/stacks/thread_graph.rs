//! The calls of one thread, its functions numbered from 0.

use super::call_order::order;
use super::graph::{Calls, Thread};
use crate::model::lists::Lists;
use rustc_hash::FxHashMap;

/// The functions that a thread ran, and the calls between them.
pub(super) struct ThreadGraph<'g> {
    /// The functions by their numbers in the file's graph.
    pub(super) functions: Vec<u32>,
    /// Calls by caller and callee, in the order of these.
    pub(super) calls: Vec<(u32, u32, &'g Calls)>,
    /// The indexes of the functions' self costs in the thread's.
    own: Vec<Option<usize>>,
    thread: &'g Thread,
    /// Callers before callees.
    pub(super) order: Vec<u32>,
}

/// What a line of a function cost itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineCost {
    /// The number of the file's name in the file's graph.
    pub(super) file: u32,
    pub(super) line: u32,
    /// The amount.
    pub(super) cost: u64,
}

/// The way the cost of one event came to each function, without the calls that close a cycle.
pub(super) struct EventFlow {
    /// The self cost of each function.
    pub(super) own: Vec<f64>,
    /// The cost of it and all below it.
    pub(super) below: Vec<f64>,
    /// The share of that which began in it: in no call that is left.
    pub(super) begun: Vec<f64>,
    /// The callees of each function, with the share of the callee's cost that came by this call.
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

    /// The self cost of a function.
    pub(super) fn own(&self, event: usize, function: usize) -> i64 {
        self.own[function].map_or(0, |at| self.thread.costs[at].1.of(event))
    }

    /// What each line of a function cost itself, by file and line; nothing unless the parts have the sign of the whole.
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
            // Calls without cost still state who called: far below any with a cost.
            let weight = if cost > 0 { cost as f64 } else { calls.count.max(1) as f64 * 1e-9 };
            (caller, (callee, weight))
        });
        Lists::new(self.functions.len(), weighted)
    }

    /// The excess of each function and its calls over the cost of the calls to it: what was called before anything was
    /// recorded, or by nothing, as the first function of a thread.
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

    /// The way an event's cost came to the functions. What is below zero came as its amount does.
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
