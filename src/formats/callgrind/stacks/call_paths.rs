//! Makes stacks from the calls of a thread.
//!
//! A file has the self cost of each function and the cost of the calls between each pair of functions, but not which of
//! a function's callers caused the costs of its callees. As in other converters, the cost of each path to a function is
//! distributed in proportion to its own cost and that of its callees; cost that no call accounts for begins in the
//! function itself. In a graph without cycles, the stacks through each function therefore cost what the file says. Self
//! costs are exact in any graph.
//!
//! The number of paths multiplies with each level of calls, so only large parts are split in proportion. The rest of
//! the paths are laid end to end, like segments of a line, and the line is cut into one section per callee. The
//! function's own cost is the first section, taken from the smallest paths, so that these end there. A path that lies
//! across a cut is split. If it is worth less than a unit, it goes completely to one of the two callees instead. That
//! callee then gets too much and the other too little, which their other callers compensate. Thus no cost of a caller
//! is lost, and a function has about as many paths as its cost has units.

use super::thread_graph::EventFlow;
use crate::model::stacks::{FrameId, Profile, StackId};

/// The unit of cost ([`PathFinder::unit`]) is chosen such that the inclusive costs of all functions add up to at most
/// this many units. This roughly limits the number of stacks. More stacks would be invisible: the narrowest one is
/// already far below a pixel.
const MAX_UNITS: f64 = 262_144.0;

/// The unit of cost ([`PathFinder::unit`]) is also chosen such that the self costs of all functions add up to at most
/// this many units.
const MAX_SELF_UNITS: f64 = 16_384.0;

/// If a callee's proportional part of a stack is worth at least this many units, it is split off exactly.
const LARGE_PART: f64 = 4.0;

/// A path worth less than a unit goes to one callee as a whole, unless that callee has fewer paths than this. Then the
/// path can be cut, and the callee gets only a part of it.
const FEW_PATHS: usize = 4;

/// A function that costs `n` units keeps at most `MAX_PATHS * (1 + n)` paths. If more reach it, they are thinned out to
/// half of that.
const MAX_PATHS: f64 = 8.0;

/// A path of calls to a function.
#[derive(Debug, Clone, Copy)]
struct CallPath {
    /// The stack that ends in the caller; `None` if the path begins in the function itself.
    caller: Option<StackId>,
    /// The cost that came along this path.
    cost: f64,
}

/// A stack from the root to the current function. Its cost is being divided among the function and its callees.
#[derive(Debug, Clone, Copy)]
struct DividedStack {
    stack: StackId,
    cost: f64,
    /// The part of `cost` that hasn't been given to the function or a callee yet.
    remaining: f64,
}

/// The stacks that end in a function.
#[derive(Debug)]
pub(super) struct FunctionStacks {
    /// The function's number in the thread's graph.
    pub(super) function: u32,
    /// The stacks, each with its approximate share of the function's self cost.
    pub(super) stacks: Vec<(StackId, f64)>,
}

/// The state while stacks are made from the costs of one event.
struct PathFinder<'f> {
    flow: &'f EventFlow,
    /// The smallest cost that is worth splitting.
    unit: f64,
    /// The paths that have reached each function. The last element ([`Self::self_taker`]) holds those that end in the
    /// function that is being divided.
    arrivals: Vec<Vec<CallPath>>,
    /// For each function, the cost of all calls to it so far, minus the cost of the paths that it received. Negative if
    /// it received too much.
    owed: Vec<f64>,
    /// For each function, the costliest call to it: the cost of the call, and the caller's largest stack. If no path
    /// reaches the function, the function's own stack continues this stack of the caller.
    costliest: Vec<Option<(f64, StackId)>>,
}

/// A share of the cost that arrived at a function: for the function itself, or for one of its callees.
struct Part {
    /// Index of the callee, or [`PathFinder::self_taker`] for the function's self cost.
    taker: usize,
    cost: f64,
}

/// Finds the stacks of all functions with self cost. `order` lists callers before callees; `frames` has the frame of
/// each function. The stacks are added to `profile`.
pub(super) fn find_stacks(
    flow: &EventFlow,
    order: &[u32],
    frames: &[FrameId],
    profile: &mut Profile,
) -> Vec<FunctionStacks> {
    let count = order.len();
    let (self_costs, inclusive) = (flow.self_costs.iter().sum::<f64>(), flow.inclusive.iter().sum::<f64>());
    let mut finder = PathFinder {
        flow,
        // The smallest cost that is worth splitting. With the larger of the two quotients, all inclusive costs together
        // are at most `MAX_UNITS` units, and all self costs together at most `MAX_SELF_UNITS`.
        unit: (inclusive / MAX_UNITS).max(self_costs / MAX_SELF_UNITS),
        // One more than there are functions: the last element is that of `self_taker`.
        arrivals: vec![Vec::new(); count + 1],
        owed: vec![0.0; count],
        costliest: vec![None; count],
    };
    let mut function_stacks = Vec::new();
    for &function in order {
        let index = function as usize;
        // Neither the function nor anything that it calls has costs, so no stack needs it.
        if flow.inclusive[index] <= 0.0 {
            continue;
        }
        let mut open = Vec::new();
        for CallPath { caller, cost } in finder.take_paths(index) {
            open.push(DividedStack { stack: profile.stack(caller, frames[index]), cost, remaining: cost });
        }
        // Gives the callees their shares of the cost as new paths, and returns the stacks that end in this function.
        let stacks = finder.divide(index, &mut open);
        if flow.self_costs[index] > 0.0 {
            function_stacks.push(FunctionStacks { function, stacks });
        }
    }
    function_stacks
}

impl PathFinder<'_> {
    /// The index under which the function that is being divided receives its own self cost.
    fn self_taker(&self) -> usize {
        self.owed.len()
    }

    /// Removes and returns the paths that reached a function, at least one. If a part of the function's cost came by no
    /// call, a path that begins in the function is added for it. If there is no path at all, one without cost is made:
    /// it continues the largest stack of the costliest caller. If there are too many paths, [`thin_out`] reduces them.
    fn take_paths(&mut self, function: usize) -> Vec<CallPath> {
        let mut paths = std::mem::take(&mut self.arrivals[function]);
        let inclusive = self.flow.inclusive[function];
        let uncalled = self.flow.uncalled[function];
        if uncalled > 0.0 {
            paths.push(CallPath { caller: None, cost: inclusive * uncalled });
        } else if paths.is_empty() {
            paths.push(CallPath { caller: self.costliest[function].map(|(_, stack)| stack), cost: 0.0 });
        }
        // The more a function costs, the more paths it may have: `MAX_PATHS`, and as many again for each unit of cost.
        let most = (MAX_PATHS * (1.0 + inclusive / self.unit)) as usize;
        if paths.len() > most {
            thin_out(&mut paths, most / 2);
        }
        paths
    }

    /// Divides the cost of a function among itself and its callees. `open` has the stacks that reach the function, at
    /// least one. Returns the stacks that end in the function, each with its share of the self cost.
    fn divide(&mut self, function: usize, open: &mut [DividedStack]) -> Vec<(StackId, f64)> {
        open.sort_by(|a, b| b.cost.total_cmp(&a.cost));
        let largest = open[0].stack;
        let whole = open.iter().map(|open| open.cost).sum();
        let mut parts = self.compute_parts(function, whole, largest);
        self.divide_large(&mut parts, whole, open);
        // `divide_rest` takes the stacks in this order, and the self cost is its first part. So the self cost is cut
        // from the smallest remainders, whose paths end here.
        open.sort_by(|a, b| a.remaining.total_cmp(&b.remaining));
        self.divide_rest(parts, whole, open);
        let self_taker = self.self_taker();
        let mut stacks = Vec::new();
        // `divide_large` and `divide_rest` gave these paths to the function itself, as if it were its own callee. So
        // `caller` is the stack that ends in the function.
        for path in std::mem::take(&mut self.arrivals[self_taker]) {
            if let Some(stack) = path.caller {
                stacks.push((stack, path.cost));
            }
        }
        // Without cost to divide, the function got no path. Its self cost needs a stack nevertheless. A single stack
        // gets all of it, whatever share is stated here.
        if stacks.is_empty() {
            stacks.push((largest, whole));
        }
        stacks
    }

    /// Divides the stacks that reach a function (`open`) among the parts of the function's cost. A part is the
    /// function's self cost or what one callee gets. In proportion to its cost, each part should get a share of every
    /// stack. Gives it only the large ones of these shares ([`LARGE_PART`]), and lowers the part's cost to what is
    /// still missing. `whole` is the cost of all stacks together. `open` must be sorted by descending cost.
    fn divide_large(&mut self, parts: &mut [Part], whole: f64, open: &mut [DividedStack]) {
        let large = LARGE_PART * self.unit;
        for part in parts.iter_mut().filter(|part| part.cost > 0.0) {
            let share = part.cost / whole;
            for stack in open.iter_mut().take_while(|stack| stack.cost * share >= large) {
                part.cost -= stack.cost * share;
                self.give(part.taker, stack, stack.cost * share);
            }
        }
    }

    /// Lays what remains of the stacks end to end, and cuts this line into the remaining parts, one after the other.
    /// `open` must be sorted by ascending remaining cost.
    fn divide_rest(&mut self, parts: Vec<Part>, whole: f64, open: &mut [DividedStack]) {
        // Ignore rounding errors.
        let negligible = whole * 1e-12;
        // `next` is the index of the stack from which the next section is cut. `wanted` is how much cost the current
        // taker should still get. If a taker gets too much or too little, the next taker's part is smaller or larger by
        // the difference.
        let (mut next, mut wanted) = (0, 0.0);
        for Part { taker, cost } in parts {
            wanted += cost;
            while wanted > negligible
                && let Some(stack) = open.get_mut(next)
            {
                // `taker` is the callee whose turn it is, or the function itself. A stack with less than a unit left
                // isn't cut: the taker gets all of it or, if it wants less than half, leaves it to the next taker. Only
                // the function itself and callees with few paths may get a piece.
                let may_cut = taker == self.self_taker()
                    || stack.remaining >= self.unit
                    || self.arrivals[taker].len() < FEW_PATHS;
                if !may_cut && wanted < stack.remaining / 2.0 {
                    break;
                }
                let amount = if may_cut { wanted.min(stack.remaining) } else { stack.remaining };
                if amount > negligible {
                    self.give(taker, stack, amount);
                }
                wanted -= amount;
                // `give` has lowered what remains of the stack. If nothing is left, go on to the next stack.
                next += usize::from(stack.remaining <= negligible);
            }
        }
    }

    /// Divides `whole`, the cost that arrived at a function: its self cost first, then one part for each callee. The
    /// parts add up to `whole`. Also adds the function's calls to `owed` and `costliest`, which are kept for each
    /// callee. `largest` is the costliest stack that ends in the function.
    fn compute_parts(&mut self, function: usize, whole: f64, largest: StackId) -> Vec<Part> {
        // The paths to the function may carry less than its self cost, so the self cost is capped.
        let self_cost = self.flow.self_costs[function].min(whole);
        let mut callees = Vec::new();
        for &(callee, share) in &self.flow.callees[function] {
            let callee = callee as usize;
            let cost = self.flow.inclusive[callee] * share;
            if cost > 0.0 {
                self.owed[callee] += cost;
                if self.costliest[callee].is_none_or(|(costliest, _)| costliest < cost) {
                    self.costliest[callee] = Some((cost, largest));
                }
                callees.push(Part { taker: callee, cost });
            }
        }
        // Divide in proportion to `owed`, what each callee has yet to receive: the cost of this caller's calls, which
        // was just added above, and what earlier callers still owe it. ([`Self::give`] subtracts each path that it
        // gets.) Small paths are given as a whole, so a caller may give too much or too little. The next callers
        // compensate.
        let owed: f64 = callees.iter().map(|part| self.owed[part.taker].max(0.0)).sum();
        if owed > 0.0 {
            for part in &mut callees {
                part.cost = self.owed[part.taker].max(0.0);
            }
        }
        // Scale the parts so that, together with the self cost, they add up to the whole. `sum` is positive if there
        // are callees, because only costs above 0 were added.
        let sum: f64 = callees.iter().map(|part| part.cost).sum();
        for part in &mut callees {
            part.cost *= (whole - self_cost) / sum;
        }
        callees.insert(0, Part { taker: self.self_taker(), cost: self_cost });
        callees
    }

    /// Gives a part of a stack's cost to a callee or to the function itself, whose own cost isn't booked in `owed`.
    fn give(&mut self, taker: usize, stack: &mut DividedStack, cost: f64) {
        stack.remaining -= cost;
        self.arrivals[taker].push(CallPath { caller: Some(stack.stack), cost });
        if let Some(owed) = self.owed.get_mut(taker) {
            *owed -= cost;
        }
    }
}

/// Reduces the paths to about `most` that represent all of them. Every path that costs at least `step`, the whole cost
/// divided by `most`, stays. The smaller ones are laid end to end, like segments of a line that has a point every
/// `step`. A path stays if it contains such a point, and then costs `step` for each.
fn thin_out(paths: &mut Vec<CallPath>, most: usize) {
    let step = paths.iter().map(|path| path.cost).sum::<f64>() / most as f64;
    // `path_end` is where the current path ends on the line of small paths, `points_before` how many of the line's
    // points the paths before it contain.
    let (mut path_end, mut points_before) = (0.0, 0.0);
    paths.retain_mut(|path| {
        if path.cost >= step {
            return true;
        }
        path_end += path.cost;
        let points = (path_end / step).round() - points_before;
        points_before += points;
        path.cost = points * step;
        points > 0.0
    });
}

/// Splits a cost into integer parts in proportion to the stacks' shares. Running sums are rounded instead of single
/// parts, so that the parts add up to the cost.
pub(super) fn share_out(cost: u64, stacks: &[(StackId, f64)]) -> Vec<(StackId, u64)> {
    let sum: f64 = stacks.iter().map(|(_, share)| share).sum();
    let mut parts = Vec::new();
    // The sums up to and including the current stack: of the shares, and of the parts.
    let (mut share_sum, mut part_sum) = (0.0, 0);
    for (index, &(stack, share)) in stacks.iter().enumerate() {
        share_sum += share;
        let before = part_sum;
        let is_last = index + 1 == stacks.len();
        let rounded = (cost as f64 * (share_sum / sum)).round() as u64;
        part_sum = if is_last { cost } else { rounded.clamp(before, cost) };
        if part_sum > before {
            parts.push((stack, part_sum - before));
        }
    }
    parts
}
