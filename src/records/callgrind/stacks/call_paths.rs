//! Makes stacks out of the calls of a thread.
//!
//! The file states what each function cost itself, and for each pair how much came in over their calls; it doesn't state
//! which of a function's callers its callees' costs belong to. As in other converters, the costs of each way to a function
//! are shared out in proportion, among itself and its callees, and what no call accounts for begins in the function itself.
//! So in a graph without cycles the stacks through each function cost what the file states. Each function's self cost is
//! kept exactly in any graph.
//!
//! Ways multiply. So a part that is worth little is not made: what is left of the ways is laid end to end and divided.
//! The function's own cost is taken first, from the smallest ways, so that these end. A way is cut where the part of
//! one callee ends and that of the next begins, but a way that is worth less than a unit goes to one of them. The
//! excess of this callee, and the shortage of the other, are made up for by their other callers. So no cost of a caller
//! is lost, and the ways to a function are about as many as the units that it costs.

use super::thread_graph::EventFlow;
use crate::model::stacks::{FrameId, Profile, StackId};

/// About this many stacks are made: as many as all stacks together have units. More would show nothing: the narrowest is
/// then far below a pixel.
const MOST_STACKS: f64 = 262_144.0;

/// The whole divided by this is the smallest unit.
const FINEST: f64 = 16_384.0;

/// Parts of at least this many units are shared out in proportion.
const LARGE_PART: f64 = 4.0;

/// A function that has fewer ways gets a part of a way that is worth less than a unit.
const FEW_WAYS: usize = 4;

/// A function has at most this many ways, and as many for each unit.
const MANY_WAYS: f64 = 8.0;

/// A way to a function.
#[derive(Debug, Clone, Copy)]
struct Way {
    caller: Option<StackId>,
    /// The cost that came this way.
    cost: f64,
}

/// A stack that ends in a function, while its cost is divided.
#[derive(Debug, Clone, Copy)]
struct DividedStack {
    stack: StackId,
    cost: f64,
    left: f64,
}

/// The stacks that end in a function.
#[derive(Debug)]
pub(super) struct FunctionStacks {
    /// Its number in the thread's graph.
    pub(super) function: u32,
    /// Its stacks, with about the part of its self cost that each has.
    pub(super) stacks: Vec<(StackId, f64)>,
}

/// The stacks that are made of an event's costs.
struct Paths<'f> {
    flow: &'f EventFlow,
    unit: f64,
    /// The ways to each function; behind them those of the current function that end in it.
    arrivals: Vec<Vec<Way>>,
    /// The amount that the callers that were divided had for each function beyond the amount that it got of them.
    owed: Vec<f64>,
    /// The costliest call to each function, and the largest stack of its caller: the way to it if it gets none.
    costliest: Vec<Option<(f64, StackId)>>,
}

/// The stacks of all functions that cost something themselves, callers first.
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
    /// The ways to a function; at least one.
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

    /// Divides what a function cost; gives the stacks that end in it.
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
        // Differences of rounding are not cost.
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

    /// The shares of a function itself and of each of its callees in the whole that came to it.
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

/// About this many ways, which stand for all: those that are worth the most, and of the others, laid end to end, the
/// ones at equal distances.
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

/// Shares a cost out so that the parts are whole and add up to it.
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
