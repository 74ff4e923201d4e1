//! Makes stacks out of the calls of a thread.
//!
//! The file states what each function cost itself, and for each pair how much came in over their calls; it doesn't state
//! which of a function's callers its callees' costs belong to. As in other converters, what a function cost is shared
//! out among its callers in proportion to the inclusive cost of their calls, and what no call accounts for begins in the
//! function itself. So in a graph without cycles the stacks through each call cost what the file states. Each function's
//! self cost is kept exactly in any graph.
//!
//! Paths multiply. A part that is worth little is not shared out again: such parts of all stacks that lead to a function
//! are laid end to end and divided among its callees, which keeps the cost of every call and makes hardly more stacks
//! than there are calls.

use super::thread_graph::EventFlow;
use crate::model::stacks::{FrameId, Profile, StackId};

/// The whole divided by this is the least that is shared out in proportion.
const LEAST_PART: f64 = 4096.0;

/// About this many stacks are made. More would show nothing: the narrowest is then far below a pixel.
const MOST_STACKS: usize = 1 << 18;

/// A function gets no more stacks than those that are left to be made, divided by this; or its equal share.
const LARGEST_PART: usize = 32;

/// A way to a function.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    caller: Option<StackId>,
    /// The share of the function's cost that came this way.
    share: f64,
}

/// The stacks that end in a function.
#[derive(Debug)]
pub(super) struct FunctionStacks {
    /// Its number in the thread's graph.
    pub(super) function: u32,
    /// Its stacks, with shares of its self cost that add up to about 1.
    pub(super) stacks: Vec<(StackId, f64)>,
}

/// The stacks of all functions that cost something with what they called, callers first.
pub(super) fn stacks(
    flow: &EventFlow,
    order: &[u32],
    frames: &[FrameId],
    profile: &mut Profile,
) -> Vec<FunctionStacks> {
    let whole: f64 = flow.own.iter().sum();
    let mut arrivals: Vec<Vec<Arrival>> = vec![Vec::new(); order.len()];
    let (mut found, mut made) = (Vec::new(), 0);
    for (place, &function) in order.iter().enumerate() {
        let at = function as usize;
        let mut ways = std::mem::take(&mut arrivals[at]);
        if flow.below[at] <= 0.0 {
            continue;
        }
        if ways.is_empty() {
            ways.push(Arrival { caller: None, share: 1.0 });
        } else if flow.begun[at] > 0.0 {
            ways.push(Arrival { caller: None, share: flow.begun[at] });
        }
        let left = MOST_STACKS.saturating_sub(made);
        let most = (left / (order.len() - place)).max(left / LARGEST_PART).max(1);
        let ways = thinned(ways, most);
        made += ways.len();
        let stack = |way: &Arrival| (profile.stack(way.caller, frames[at]), way.share);
        let stacks: Vec<(StackId, f64)> = ways.iter().map(stack).collect();
        call(flow, at, &stacks, whole / LEAST_PART, &mut arrivals);
        found.push(FunctionStacks { function, stacks });
    }
    found
}

/// At most so many ways, which stand for all: of those laid end to end the ones at equal distances.
fn thinned(ways: Vec<Arrival>, most: usize) -> Vec<Arrival> {
    if ways.len() <= most {
        return ways;
    }
    let step = ways.iter().map(|way| way.share).sum::<f64>() / most as f64;
    let (mut upto, mut taken) = (0.0, 0.0);
    let mut thin = |way: &Arrival| {
        upto += way.share;
        let points = (upto / step).round() - taken;
        taken += points;
        (points > 0.0).then_some(Arrival { share: points * step, ..*way })
    };
    ways.iter().filter_map(&mut thin).collect()
}

/// Divides what a function called among the stacks that lead to it.
fn call(flow: &EventFlow, caller: usize, stacks: &[(StackId, f64)], least: f64, arrivals: &mut [Vec<Arrival>]) {
    let mut heaviest: Vec<usize> = (0..stacks.len()).collect();
    heaviest.sort_by(|a, b| stacks[*b].1.total_cmp(&stacks[*a].1));
    let inside = flow.below[caller] - flow.own[caller];
    let mut left: Vec<f64> = stacks.iter().map(|(_, share)| share * inside).collect();
    let mut rest: Vec<(usize, f64)> = Vec::new();
    for &(callee, part) in &flow.callees[caller] {
        let callee = callee as usize;
        let cost = flow.below[callee] * part;
        let mut undivided = cost;
        for &at in heaviest.iter().take_while(|at| stacks[**at].1 * cost >= least) {
            let (stack, share) = stacks[at];
            arrivals[callee].push(Arrival { caller: Some(stack), share: share * part });
            left[at] -= share * cost;
            undivided -= share * cost;
        }
        rest.push((callee, undivided));
    }
    // Differences of rounding are no cost.
    let none = inside * 1e-12;
    let mut giving = stacks.iter().zip(left).map(|((stack, _), left)| (*stack, left)).filter(|(_, left)| *left > none);
    let mut next = giving.next();
    for (callee, mut wanted) in rest {
        while wanted > none
            && let Some((stack, left)) = &mut next
        {
            let given = wanted.min(*left);
            arrivals[callee].push(Arrival { caller: Some(*stack), share: given / flow.below[callee] });
            wanted -= given;
            *left -= given;
            if *left <= none {
                next = giving.next();
            }
        }
    }
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
