//! Makes stacks out of a call graph.
//!
//! The graph knows what each function cost itself, and for each pair how much came in over their calls; it does not
//! know which of a function's callers its callees' costs belong to. As other converters do, what a function costs is
//! shared out among its callers in proportion to the inclusive cost of their calls. Inclusive costs are used as
//! weights only: in programs with stacks of their own callgrind's are far larger than the whole, while self costs
//! always add up, and here each function's self cost is kept exactly.
//!
//! Calls that close a cycle are left out, the lightest as far as possible, so that there is an end. Paths multiply, so
//! only the heaviest get stacks of their own; the others meet under one root, [`RARE`].

use super::call_order::order;
use super::graph::{CallGraph, GraphFunction};
use crate::formats::callgrind::grammar::{UNKNOWN, raw_name};
use crate::model::Pid;
use crate::model::lists::Lists;
use crate::model::runtimes::{RuntimeSet, Tiers};
use crate::model::stacks::{Frame, FrameId, FrameKind, NameId, Profile, Row, Series, StackId, Track, Unit};
use crate::model::tier::Tier;
use std::collections::BinaryHeap;

/// The root of what does not get a stack of its own.
const RARE: &[u8] = b"[rare call paths]";

/// How many paths get stacks of their own. More would show nothing: the narrowest is then far below a pixel.
const MOST_PATHS: usize = 1 << 18;

/// The stacks of a graph, one series for each event.
pub(super) fn profile_of(graph: &CallGraph) -> Profile {
    let calls = AcyclicCalls::new(graph);
    let mut profile = Profile::new();
    let runtimes = RuntimeSet::of_program(program(&graph.command));
    let mut tiers = Tiers::default();
    let frame = |function| frame(&mut profile, graph, function, |id, name| tiers.of(id, name, runtimes));
    let frames: Vec<FrameId> = graph.functions.iter().map(frame).collect();
    let paths = paths(graph, &calls, &frames, &mut profile);
    let track = profile.track(Track { comm: comm(&graph.command), pid: graph.pid.map(Pid), ..Track::default() });
    for (event, name) in graph.events.iter().enumerate() {
        let mut rows = Vec::new();
        for (function, paths) in paths.iter().enumerate() {
            share_out(graph.cost(event, function), paths, |stack, weight| {
                rows.push(Row { track, stack: Some(stack), weight, count: weight, time: None });
            });
        }
        let name = String::from_utf8_lossy(name).into_owned();
        profile.series.push(Series { name, unit: Unit::Named("count".to_owned()), rows, ..Series::default() });
    }
    profile
}

/// The program's name out of its command line.
fn comm(command: &[u8]) -> Vec<u8> {
    program(command).rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec()
}

/// The program's path out of its command line.
fn program(command: &[u8]) -> &[u8] {
    command.trim_ascii().split(u8::is_ascii_whitespace).next().unwrap_or_default()
}

fn frame(
    profile: &mut Profile,
    graph: &CallGraph,
    function: &GraphFunction,
    mut tier: impl FnMut(NameId, &[u8]) -> Option<Tier>,
) -> FrameId {
    let known = |name: &[u8]| !name.is_empty() && name != UNKNOWN;
    let object = Some(graph.texts.get(function.object)).filter(|name| known(name));
    let file = Some(graph.texts.get(function.file)).filter(|name| known(name));
    let name = graph.texts.get(function.name);
    let is_raw = raw_name(name).is_some();
    let kind = match object {
        Some(object) if is_jit_object(object) => FrameKind::Jit,
        None if is_raw => FrameKind::Unknown,
        _ => FrameKind::User,
    };
    let text = without_recursion(name);
    let name = profile.name(text);
    let frame = Frame {
        tier: if kind == FrameKind::Jit { tier(name, text) } else { None },
        module: object.map(|object| profile.name(object)),
        file: file.map(|file| profile.name(file)),
        ..Frame::new(name, kind)
    };
    profile.frame(frame)
}

/// Objects of JIT code as `jitgraft callgrind` and perf name them.
fn is_jit_object(object: &[u8]) -> bool {
    let base = object.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    base.starts_with(b"jitted-") || (base.starts_with(b"perf-") && base.ends_with(b".map"))
}

/// callgrind keeps levels of recursion apart as `f`, `f'2`; in a stack they are `f;f`.
fn without_recursion(name: &[u8]) -> &[u8] {
    match memchr::memrchr(b'\'', name) {
        Some(at) if at > 0 && at + 1 < name.len() && name[at + 1..].iter().all(u8::is_ascii_digit) => &name[..at],
        _ => name,
    }
}

/// The calls of a graph without those that close a cycle.
struct AcyclicCalls {
    /// Callees of each function and the share of the callee's cost that comes by this call.
    callees: Lists<(u32, f64)>,
    has_caller: Vec<bool>,
    /// Callers before callees.
    order: Vec<u32>,
}

impl AcyclicCalls {
    fn new(graph: &CallGraph) -> Self {
        let count = graph.functions.len();
        let others = graph.calls.iter().filter(|((caller, callee), _)| caller != callee);
        let weighted = others.map(|(&(caller, callee), calls)| {
            // Calls without cost still say who called: far below any with a cost.
            let weight = if calls.cost > 0 { calls.cost as f64 } else { calls.count.max(1) as f64 * 1e-9 };
            (caller, (callee, weight))
        });
        let mut callees = Lists::new(count, weighted);
        for caller in 0..count {
            callees.list_mut(caller).sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        }
        let order = order(&callees);
        let mut places = vec![0; count];
        for (place, &function) in order.iter().enumerate() {
            places[function as usize] = place;
        }
        let is_forward = |&(caller, (callee, _)): &(u32, (u32, f64))| places[caller as usize] < places[callee as usize];
        let callees = Lists::new(count, callees.items().filter(is_forward));
        let mut calls = Self { callees, has_caller: vec![false; count], order };
        calls.weights_to_shares();
        calls
    }

    fn weights_to_shares(&mut self) {
        let mut sums = vec![0.0; self.callees.len()];
        for (_, (callee, weight)) in self.callees.items() {
            sums[callee as usize] += weight;
            self.has_caller[callee as usize] = true;
        }
        for (callee, weight) in self.callees.items_mut() {
            *weight /= sums[*callee as usize];
        }
    }
}

/// One way to a function, and which share of the function's cost it has.
#[derive(Debug, PartialEq)]
struct CallPath {
    /// What hangs on it, for the heaviest to come first.
    weight: f64,
    function: u32,
    share: f64,
    parent: Option<StackId>,
}

impl Eq for CallPath {}

impl Ord for CallPath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_weight = self.weight.total_cmp(&other.weight);
        by_weight.then(other.function.cmp(&self.function)).then(other.parent.cmp(&self.parent))
    }
}

impl PartialOrd for CallPath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The stacks that end in each function, with shares that add up to 1.
fn paths(graph: &CallGraph, calls: &AcyclicCalls, frames: &[FrameId], profile: &mut Profile) -> Lists<(StackId, f64)> {
    let mut found: Vec<(u32, (StackId, f64))> = Vec::new();
    let mut rare = vec![0.0; frames.len()];
    let below = costs_below(graph, calls);
    let mut heap = BinaryHeap::new();
    for &function in &calls.order {
        if !calls.has_caller[function as usize] {
            heap.push(CallPath { weight: below[function as usize], function, share: 1.0, parent: None });
        }
    }
    let mut count = 0;
    while let Some(CallPath { weight, function, share, parent }) = heap.pop() {
        let at = function as usize;
        if count >= MOST_PATHS || (weight < 1.0 && parent.is_some()) {
            rare[at] += share;
            continue;
        }
        count += 1;
        let stack = profile.stack(parent, frames[at]);
        found.push((function, (stack, share)));
        for &(callee, part) in &calls.callees[at] {
            let share = share * part;
            heap.push(CallPath {
                weight: below[callee as usize] * share,
                function: callee,
                share,
                parent: Some(stack),
            });
        }
    }
    under_one_root(calls, frames, rare, profile, &mut found);
    Lists::new(frames.len(), found.into_iter())
}

fn under_one_root(
    calls: &AcyclicCalls,
    frames: &[FrameId],
    mut rare: Vec<f64>,
    profile: &mut Profile,
    found: &mut Vec<(u32, (StackId, f64))>,
) {
    let name = profile.name(RARE);
    let root = profile.frame(Frame::new(name, FrameKind::Unknown));
    for &function in &calls.order {
        let at = function as usize;
        let share = rare[at];
        if share <= 0.0 {
            continue;
        }
        let root = profile.stack(None, root);
        let stack = profile.stack(Some(root), frames[at]);
        found.push((function, (stack, share)));
        for &(callee, part) in &calls.callees[at] {
            rare[callee as usize] += share * part;
        }
    }
}

/// What each function and everything below it cost, of the first event, by the shares of the calls.
fn costs_below(graph: &CallGraph, calls: &AcyclicCalls) -> Vec<f64> {
    let mut below = vec![0.0; graph.functions.len()];
    for &function in calls.order.iter().rev() {
        let at = function as usize;
        let own = graph.cost(0, at) as f64;
        let callees = calls.callees[at].iter().map(|&(callee, share)| below[callee as usize] * share);
        below[at] = own + callees.sum::<f64>();
    }
    below
}

/// Shares a cost out so that the parts are whole and add up to it.
fn share_out(cost: u64, paths: &[(StackId, f64)], mut part: impl FnMut(StackId, u64)) {
    let all: f64 = paths.iter().map(|(_, share)| share).sum();
    let (mut upto, mut given) = (0.0, 0);
    for (at, &(stack, share)) in paths.iter().enumerate() {
        upto += share;
        let last = at + 1 == paths.len();
        let until = if last { cost } else { ((cost as f64 * (upto / all)).round() as u64).clamp(given, cost) };
        if until > given {
            part(stack, until - given);
        }
        given = until;
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::read;
    use super::*;
    use crate::error::Warnings;

    fn stacks(text: &str) -> Vec<String> {
        let mut warnings = Warnings::new();
        let profile = profile_of(&read(text.as_bytes(), &mut warnings).unwrap());
        assert!(warnings.is_empty(), "{warnings:?}");
        let series = &profile.series[0];
        let line = |row: &Row| {
            let mut names: Vec<_> = profile
                .frames_up(row.stack)
                .map(|frame| String::from_utf8_lossy(profile.name_of(profile.frame_of(frame).name)))
                .collect();
            names.reverse();
            format!("{} {}", names.join(";"), row.weight)
        };
        let mut lines: Vec<_> = series.rows.iter().map(line).collect();
        lines.sort();
        lines
    }

    #[test]
    fn code_of_a_runtime_that_the_command_names_has_its_tier() {
        let text = "cmd: /usr/bin/rakudo-m -e 1\nevents: Ir\nob=libmoar.so\nfn=MVM_interp_run\n1 10\n\
            ob=jitted-7.elf\nfn=find_method(nqpmo.nqp:1391)\n1 10\n";
        let tier = |text: &str| {
            let profile = profile_of(&read(text.as_bytes(), &mut Warnings::new()).unwrap());
            profile.frames().map(|(_, frame)| frame.tier).collect::<Vec<_>>()
        };
        assert_eq!(tier(text), [None, Some(Tier::Optimised), None]);
        assert_eq!(tier(&text.replace("rakudo-m", "other")), [None, None, None]);
    }

    #[test]
    fn a_shared_callee_is_shared_out_and_cycles_end() {
        let text = "events: Ir\nfn=main\n1 10\ncfn=a\ncalls=1 1\n2 40\ncfn=b\ncalls=1 1\n3 80\n\
            fn=a\n1 10\ncfn=c\ncalls=1 1\n1 30\nfn=b\n1 20\ncfn=c\ncalls=2 1\n1 60\n\
            fn=c\n1 91\ncfn=a\ncalls=1 1\n2 5\nfn=c'2\n1 7\n";
        assert_eq!(stacks(text), ["c 7", "main 10", "main;a 10", "main;a;c 30", "main;b 20", "main;b;c 61"]);
    }

    #[test]
    fn paths_that_multiply_end_under_one_root_and_nothing_is_lost() {
        // A ladder: each of 40 functions calls the next two ways, so that there are 2^40 paths.
        let mut text = String::from("events: Ir\n");
        for n in 0..40 {
            for side in ["a", "b"] {
                text += &format!("fn={side}{n}\n1 {}\n", n + 1);
                for next in ["a", "b"] {
                    text += &format!("cfn={next}{}\ncalls=1 1\n1 100\n", n + 1);
                }
            }
        }
        let lines = stacks(&text);
        let total: u64 = lines.iter().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(total, (1..=40).sum::<u64>() * 2);
        assert!(lines.iter().any(|line| line.starts_with("[rare call paths];")));
    }
}
