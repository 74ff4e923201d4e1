//! The call graph of a profile whose input records calls: inclusive costs, callers and callees, summed over threads.
//!
//! A function's inclusive cost is the sum of the costs of the calls to it, as in callgrind_annotate. Recursive calls
//! are counted again, so that it may exceed the total. For a function that nobody calls, it is the self cost plus the
//! cost of its calls.

mod cycles;
mod deviation;

pub use deviation::{Deviation, Deviations};

use crate::model::lists::Lists;
use crate::model::stacks::{FrameId, Profile, Series, ThreadCalls, Weight};
use rustc_hash::FxHashMap;

/// The call graph of one event.
#[derive(Debug, Clone, Default)]
pub struct CallGraph {
    functions: Vec<GraphFunction>,
    edges: Vec<Edge>,
}

/// A function and its costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphFunction {
    /// The function.
    pub frame: FrameId,
    /// The frame that stands for this function in stacks. Differs from `frame` if the input has a separate function for
    /// each level of recursion, but stacks don't.
    pub stack_frame: FrameId,
    /// The self cost: without calls to other functions.
    pub own: i64,
    /// The inclusive cost: of all calls to the function, or `with_calls` if nobody calls it.
    pub total: i64,
    /// The self cost plus the inclusive cost of all calls that the function makes. This is more than the inclusive cost
    /// if some calls to the function weren't recorded, as for a thread's first function, or for one that was already
    /// running when recording began.
    pub with_calls: i64,
}

/// All calls from one function to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The caller.
    pub caller: FrameId,
    /// The callee.
    pub callee: FrameId,
    /// The number of calls.
    pub count: u64,
    /// The inclusive cost of the callee in these calls.
    pub cost: i64,
}

/// A function's costs while threads are summed.
#[derive(Debug, Clone, Copy)]
struct FunctionSums {
    frame: FrameId,
    stack_frame: FrameId,
    /// The self cost.
    own: i64,
    /// The inclusive cost of all calls to the function.
    cost_of_calls_to: i64,
    /// The inclusive cost of all calls that the function makes.
    cost_of_callees: i64,
    /// True if any call to the function was recorded.
    is_called: bool,
}

/// The index of `series` in `list`, compared by memory address; `None` if it isn't an element of the list.
fn index_in(list: &[Series], series: &Series) -> Option<usize> {
    let index = std::ptr::from_ref(series).addr().checked_sub(list.as_ptr().addr())? / size_of::<Series>();
    list.get(index).filter(|element| std::ptr::eq(*element, series)).map(|_| index)
}

/// The index of the event `name` in a thread's list of events. `likely`, the event's index in the profile, is tried
/// first, because there may be thousands of threads, and most list their events in the profile's order. `None` if the
/// thread lacks the event.
fn find_event(calls: &ThreadCalls, name: &str, likely: Option<usize>) -> Option<usize> {
    if let Some(index) = likely
        && calls.events.get(index).is_some_and(|event| *event == name)
    {
        return Some(index);
    }
    calls.events.iter().position(|event| *event == name)
}

impl CallGraph {
    /// Builds the call graph of an event. `None` if the recorded calls don't add up to the event's total: the input
    /// records no calls, or stacks from other inputs were merged in.
    pub fn from_series(profile: &Profile, series: &Series) -> Option<Self> {
        let index_in_profile = index_in(&profile.series, series);
        // The threads that have the event, each with the index of the event among its own.
        let mut threads: Vec<(&ThreadCalls, usize)> = Vec::new();
        for calls in &profile.calls {
            if let Some(event) = find_event(calls, &series.name, index_in_profile) {
                threads.push((calls, event));
            }
        }
        // Only self costs are compared with the event's total: inclusive costs contain those of callees again.
        let self_costs = threads.iter().map(|(calls, event)| {
            let costs = calls.functions.iter().map(|function| cost(&function.costs, *event));
            sum(costs)
        });
        if sum(self_costs) != series.signed_total(Weight::Period) || threads.is_empty() {
            return None;
        }
        let mut gathered = Gathered::default();
        for (calls, event) in threads {
            gathered.add(calls, event);
        }
        let functions = gathered.functions.into_iter().map(FunctionSums::to_function).collect();
        Some(Self { functions, edges: gathered.edges })
    }

    /// All functions, in the order of the input.
    pub fn functions(&self) -> &[GraphFunction] {
        &self.functions
    }

    /// All calls, in the order of the input.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// For each function, the number of the cycle that contains it: the functions of a cycle call each other, directly
    /// or not. `None` if the function never calls itself, not even through others.
    pub fn cycles(&self) -> Vec<Option<u32>> {
        let function_numbers: FxHashMap<FrameId, u32> =
            self.functions.iter().map(|function| function.frame).zip(0..).collect();
        let calls = self.edges.iter().map(|edge| (function_numbers[&edge.caller], function_numbers[&edge.callee]));
        let cycles = cycles::cycles(&Lists::new(self.functions.len(), calls.clone()));
        // Every function has a cycle number, most of them one that no other function has. It only stands for a cycle if
        // a function calls itself or another one with the same number.
        let mut is_cycle = vec![false; self.functions.len()];
        for (caller, callee) in calls {
            let cycle = cycles[caller as usize];
            if cycle == cycles[callee as usize] {
                is_cycle[cycle as usize] = true;
            }
        }
        cycles.into_iter().map(|cycle| is_cycle[cycle as usize].then_some(cycle)).collect()
    }
}

/// A call graph while threads are being added to it.
#[derive(Debug, Default)]
struct Gathered {
    functions: Vec<FunctionSums>,
    /// The index of each function in `functions`.
    function_indexes: FxHashMap<FrameId, usize>,
    edges: Vec<Edge>,
    /// The index in `edges`, by caller and callee.
    edge_indexes: FxHashMap<(FrameId, FrameId), usize>,
}

impl Gathered {
    /// Adds the functions and calls of a thread, with their costs of one event.
    fn add(&mut self, thread: &ThreadCalls, event: usize) {
        for thread_function in &thread.functions {
            let function = self.function(thread_function.function);
            function.stack_frame = thread_function.stack_frame;
            add(&mut function.own, cost(&thread_function.costs, event));
        }
        for calls in &thread.calls {
            let inclusive = cost(&calls.costs, event);
            add(&mut self.function(calls.caller).cost_of_callees, inclusive);
            let callee = self.function(calls.callee);
            callee.is_called = true;
            add(&mut callee.cost_of_calls_to, inclusive);
            let edge = self.edge(calls.caller, calls.callee);
            edge.count = edge.count.saturating_add(calls.count);
            add(&mut edge.cost, inclusive);
        }
    }

    /// Finds a function, or adds it without costs.
    fn function(&mut self, frame: FrameId) -> &mut FunctionSums {
        let index = *self.function_indexes.entry(frame).or_insert(self.functions.len());
        if index == self.functions.len() {
            self.functions.push(FunctionSums {
                frame,
                stack_frame: frame,
                own: 0,
                cost_of_calls_to: 0,
                cost_of_callees: 0,
                is_called: false,
            });
        }
        &mut self.functions[index]
    }

    /// Finds the edge between two functions, or adds it without costs.
    fn edge(&mut self, caller: FrameId, callee: FrameId) -> &mut Edge {
        let index = *self.edge_indexes.entry((caller, callee)).or_insert(self.edges.len());
        if index == self.edges.len() {
            self.edges.push(Edge { caller, callee, count: 0, cost: 0 });
        }
        &mut self.edges[index]
    }
}

impl FunctionSums {
    fn to_function(self) -> GraphFunction {
        let Self { frame, stack_frame, own, .. } = self;
        let with_calls = own.saturating_add(self.cost_of_callees);
        let total = if self.is_called { self.cost_of_calls_to } else { with_calls };
        GraphFunction { frame, stack_frame, own, total, with_calls }
    }
}

fn cost(costs: &[i64], event: usize) -> i64 {
    costs.get(event).copied().unwrap_or(0)
}

fn add(sum: &mut i64, cost: i64) {
    *sum = sum.saturating_add(cost);
}

fn sum(costs: impl Iterator<Item = i64>) -> i64 {
    costs.fold(0, i64::saturating_add)
}
