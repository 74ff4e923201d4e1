//! Makes stacks from the calls of a thread.
//!
//! A file has the self cost of each function and the cost of the calls between each pair of functions, but not which of
//! a function's callers caused the costs of its callees. As in other converters, the cost of each path to a function is
//! distributed in proportion to its own cost and that of its callees; cost that no call accounts for begins in the
//! function itself. In a graph without cycles, the stacks through each function therefore cost what the file says. Self
//! costs are exact in any graph.
//!
//! The number of paths multiplies, so small parts are not split. Instead, what is left of the paths is laid end to end
//! and cut into parts. The function's own cost is taken first, from the smallest paths, so that these end there. A path
//! is cut where the part of one callee ends and that of the next begins, but a path worth less than a unit goes
//! completely to one of the two. The excess of that callee and the lack of the other are compensated by their other
//! callers. Thus no cost of a caller is lost, and a function has about as many paths as its cost has units.

use super::thread_graph::EventFlow;
use crate::model::stacks::{FrameId, Profile, StackId};

/// Approximate limit of stacks: all stacks together cost this many units. More would be invisible; the narrowest one is
/// already far below a pixel.
const MOST_STACKS: f64 = 262_144.0;

/// The smallest unit is the whole cost divided by this.
const FINEST: f64 = 16_384.0;

/// Parts of at least this many units are split in proportion.
const LARGE_PART: f64 = 4.0;

/// A function with fewer paths than this may get a part of a path that is worth less than a unit.
const FEW_WAYS: usize = 4;

/// A function has at most this many paths, plus as many for each unit of its cost.
const MANY_WAYS: f64 = 8.0;

/// A path to a function.
#[derive(Debug, Clone, Copy)]
struct Way {
    caller: Option<StackId>,
    /// The cost that came along this path.
    cost: f64,
}

/// A stack that ends in a function, while its cost is being divided.
#[derive(Debug, Clone, Copy)]
struct DividedStack {
    stack: StackId,
    cost: f64,
    left: f64,
}

/// The stacks that end in a function.
#[derive(Debug)]
pub(super) struct FunctionStacks {
    /// The function's number in the thread's graph.
    pub(super) function: u32,
    /// The stacks, each with its approximate part of the self cost.
    pub(super) stacks: Vec<(StackId, f64)>,
}

/// The state while stacks are made from an event's costs.
struct Paths<'f> {
    flow: &'f EventFlow,
    unit: f64,
    /// The paths to each function. The last element holds the paths of the current function that end in it.
    arrivals: Vec<Vec<Way>>,
    /// For each function, how much more cost the callers processed so far should have passed on to it than they did.
    owed: Vec<f64>,
    /// The costliest call to each function with the largest stack of its caller. Used as the path if the function gets
    /// none.
    costliest: Vec<Option<(f64, StackId)>>,
}

/// The stacks of all functions with self cost, callers first.
pub(super) fn stacks(
    flow: &EventFlow,
    order: &[u32],
    frames: &[FrameId],
    profile: &mut Profile,
) -> Vec<FunctionStacks> {
    let count = order.len();
    let (whole, below) = (flow.own.iter().sum::<f64>(), flow.below.iter().sum::<f64>());
    let mut paths = Paths {
        flow,
        unit: (below / MOST_STACKS).max(whole / FINEST),
        arrivals: vec![Vec::new(); count + 1],
        owed: vec![0.0; count],
        costliest: vec![None; count],
    };
    let mut found = Vec::new();
    for &function in order {
        let at = function as usize;
        if flow.below[at] <= 0.0 {
            continue;
        }
        let stack =
            |way: &Way| DividedStack { stack: profile.stack(way.caller, frames[at]), cost: way.cost, left: way.cost };
        let mut open: Vec<DividedStack> = paths.ways(at).iter().map(stack).collect();
        let stacks = paths.divide(at, &mut open);
        if flow.own[at] > 0.0 {
            found.push(FunctionStacks { function, stacks });
        }
    }
    found
}

impl Paths<'_> {
    /// The paths to a function; at least one.
    fn ways(&mut self, at: usize) -> Vec<Way> {
        let mut ways = std::mem::take(&mut self.arrivals[at]);
        let below = self.flow.below[at];
        if self.flow.begun[at] > 0.0 {
            ways.push(Way { caller: None, cost: below * self.flow.begun[at] });
        } else if ways.is_empty() {
            ways.push(Way { caller: self.costliest[at].map(|(_, stack)| stack), cost: 0.0 });
        }
        let many = (MANY_WAYS * (1.0 + below / self.unit)) as usize;
        if ways.len() > many { thinned(ways, many / 2) } else { ways }
    }

    /// Divides the cost of a function among its callees and itself. Returns the stacks that end in it.
    fn divide(&mut self, at: usize, open: &mut [DividedStack]) -> Vec<(StackId, f64)> {
        open.sort_by(|a, b| b.cost.total_cmp(&a.cost));
        let largest = open[0].stack;
        let whole = open.iter().map(|open| open.cost).sum();
        let itself = self.owed.len();
        let mut parts = self.parts(at, whole, largest);
        for (taker, part) in parts.iter_mut().filter(|(_, part)| *part > 0.0) {
            let (share, least) = (*part / whole, LARGE_PART * self.unit);
            for open in open.iter_mut().take_while(|open| open.cost * share >= least) {
                *part -= open.cost * share;
                self.give(*taker, open, open.cost * share);
            }
        }
        open.sort_by(|a, b| a.left.total_cmp(&b.left));
        // Ignore rounding errors.
        let none = whole * 1e-12;
        let (mut next, mut more) = (0, 0.0);
        for (taker, part) in parts {
            more += part;
            while more > none
                && let Some(open) = open.get_mut(next)
            {
                let is_cut = taker == itself || open.left >= self.unit || self.arrivals[taker].len() < FEW_WAYS;
                if !is_cut && more < open.left / 2.0 {
                    break;
                }
                let cost = if is_cut { more.min(open.left) } else { open.left };
                if cost > none {
                    self.give(taker, open, cost);
                }
                more -= cost;
                next += usize::from(open.left <= none);
            }
        }
        let ended = std::mem::take(&mut self.arrivals[itself]);
        let mut stacks: Vec<_> = ended.into_iter().filter_map(|way| Some((way.caller?, way.cost))).collect();
        if stacks.is_empty() {
            stacks.push((largest, whole));
        }
        stacks
    }

    /// How the whole cost that arrived at a function is divided: its own part first, then one for each callee.
    fn parts(&mut self, at: usize, whole: f64, largest: StackId) -> Vec<(usize, f64)> {
        let own = self.flow.own[at].min(whole);
        let mut parts = vec![(self.owed.len(), own)];
        for &(callee, share) in &self.flow.callees[at] {
            let callee = callee as usize;
            let cost = self.flow.below[callee] * share;
            if cost > 0.0 {
                self.owed[callee] += cost;
                if self.costliest[callee].is_none_or(|(costliest, _)| costliest < cost) {
                    self.costliest[callee] = Some((cost, largest));
                }
                parts.push((callee, cost));
            }
        }
        let owed: f64 = parts[1..].iter().map(|(callee, _)| self.owed[*callee].max(0.0)).sum();
        if owed > 0.0 {
            parts[1..].iter_mut().for_each(|(callee, part)| *part = self.owed[*callee].max(0.0));
        }
        let sum: f64 = parts[1..].iter().map(|(_, part)| part).sum();
        parts[1..].iter_mut().for_each(|(_, part)| *part *= (whole - own) / sum);
        parts
    }

    fn give(&mut self, taker: usize, open: &mut DividedStack, cost: f64) {
        open.left -= cost;
        self.arrivals[taker].push(Way { caller: Some(open.stack), cost });
        if let Some(owed) = self.owed.get_mut(taker) {
            *owed -= cost;
        }
    }
}

/// Reduces paths to about `most` that represent all: those worth the most, and of the others, laid end to end, those at
/// equal distances.
fn thinned(mut ways: Vec<Way>, most: usize) -> Vec<Way> {
    let step = ways.iter().map(|way| way.cost).sum::<f64>() / most as f64;
    let (mut upto, mut taken) = (0.0, 0.0);
    ways.retain_mut(|way| {
        if way.cost >= step {
            return true;
        }
        upto += way.cost;
        let points = (upto / step).round() - taken;
        taken += points;
        way.cost = points * step;
        points > 0.0
    });
    ways
}

/// Splits a cost into integer parts in proportion to the stacks' shares. The parts add up to the cost.
pub(super) fn share_out(cost: u64, stacks: &[(StackId, f64)], mut part: impl FnMut(StackId, u64)) {
    let all: f64 = stacks.iter().map(|(_, share)| share).sum();
    let (mut upto, mut given) = (0.0, 0);
    for (at, &(stack, share)) in stacks.iter().enumerate() {
        upto += share;
        let last = at + 1 == stacks.len();
        let until = if last { cost } else { ((cost as f64 * (upto / all)).round() as u64).clamp(given, cost) };
        if until > given {
            part(stack, until - given);
        }
        given = until;
    }
}
