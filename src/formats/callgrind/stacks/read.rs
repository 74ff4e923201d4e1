//! Converts a call graph to a profile. The profile contains the calls as in the file, and stacks made from them.

use super::call_paths::{FunctionStacks, find_stacks, share_out};
use super::graph::CallGraph;
use super::thread_graph::{LineCost, ThreadGraph};
use crate::bytes::digits::decimal;
use crate::formats::callgrind::cost_reader::{FunctionName, TextNumber};
use crate::formats::callgrind::grammar::{UNKNOWN, raw_name, strip_recursion};
use crate::model::mapping_kind::base_name;
use crate::model::stacks::{
    Calls, Counting, Frame, FrameId, FrameKind, FunctionStart, NameId, Profile, Row, SelfCost, Series, StackId,
    ThreadCalls, Track, TrackId, UNKNOWN as NO_NAME, Unit,
};
use crate::model::tier::Tier;
use crate::model::{Pid, Tid};
use crate::runtimes::{RuntimeSet, Tiers};
use rustc_hash::{FxHashMap, FxHashSet};

/// The two frames of each function of a graph; the index is the function's number.
#[derive(Default)]
struct FunctionFrames {
    /// Frames with the function's name as in the file (`fib'2`), for the profile's list of calls.
    full_frames: Vec<FrameId>,
    /// Frames with the function's name without the recursion level (`fib`), for stacks.
    stack_frames: Vec<FrameId>,
}

/// Converts a graph to a profile with one series per event.
pub(super) fn to_profile(graph: &CallGraph) -> Profile {
    let mut profile = Profile::new();
    for name in &graph.events {
        let name = String::from_utf8_lossy(name).into_owned();
        // `is_measured` is false for files of converters: these hold samples, whose sums aren't exact.
        let counting = if is_measured(graph, &name) { Counting::Exact } else { Counting::Unknown };
        profile.series.push(Series { name, unit: Unit::Named("count".to_owned()), counting, ..Series::default() });
    }
    let runtimes = RuntimeSet::from_program(program(&graph.command));
    let anonymous = anonymous_kind(&graph.command);
    let mut tiers = Tiers::default();
    let mut frames = FunctionFrames::default();
    let positions = start_positions(graph);
    for (function, position) in graph.functions.iter().zip(positions) {
        frames.push(&mut profile, graph, function, position, anonymous, |id, name| tiers.find(id, name, runtimes));
    }
    for thread in &graph.threads {
        let tid = thread.number.map(Tid);
        let track = Track { comm: comm(&graph.command), pid: graph.pid.map(Pid), tid, ..Track::default() };
        let thread = ThreadGraph::new(thread);
        if !thread.functions.is_empty() {
            let track = profile.track(track);
            add_stacks(&thread, graph, &frames, track, &mut profile);
            let calls = thread_calls(&thread, &frames, track, &profile);
            profile.calls.push(calls);
        }
    }
    profile
}

/// True if costs were counted, not sampled. Converters write samples in callgrind's format too: jitgraft names itself
/// as the creator, and pprof names no creator and calls its events for example `cpu(nanoseconds)`.
fn is_measured(graph: &CallGraph, event: &str) -> bool {
    let is_from_pprof = graph.creator.is_empty() && event.ends_with(')');
    !is_from_pprof && !graph.creator.starts_with(b"jitgraft")
}

/// Makes stacks for each event of a thread, and adds them with the functions' self costs as rows to the event's series.
fn add_stacks(
    thread: &ThreadGraph<'_>,
    graph: &CallGraph,
    frames: &FunctionFrames,
    track: TrackId,
    profile: &mut Profile,
) {
    // Stacks use frames without a recursion level, so all levels of a function look the same in them.
    let thread_frames: Vec<FrameId> =
        thread.functions.iter().map(|function| frames.stack_frames[*function as usize]).collect();
    for event in 0..profile.series.len() {
        let flow = thread.flow(event);
        for FunctionStacks { function, stacks } in find_stacks(&flow, &thread.order, &thread_frames, profile) {
            let self_cost = thread.self_cost(event, function as usize);
            let parts = share_out(self_cost.unsigned_abs(), &stacks);
            let lines = thread.lines(event, function as usize);
            for (stack, weight) in split_by_line(parts, lines, graph, profile) {
                let row = Row { track, stack: Some(stack), weight, count: weight, time: None };
                let series = &mut profile.series[event];
                // Weights have no sign, so the rows of negative costs are in a list of their own.
                let rows = if self_cost < 0 { &mut series.negative } else { &mut series.rows };
                rows.push(row);
            }
        }
    }
}

/// Splits each stack's part of a function's self cost by source line. The file doesn't say which stack caused the cost
/// of which line, so the first lines go to the first stacks: stacks and lines are laid end to end and cut at each
/// boundary. This adds few rows, and each stack and each line keeps its sum.
fn split_by_line(
    parts: Vec<(StackId, u64)>,
    lines: Vec<LineCost>,
    graph: &CallGraph,
    profile: &mut Profile,
) -> Vec<(StackId, u64)> {
    if lines.is_empty() {
        return parts;
    }
    let mut rows = Vec::with_capacity(parts.len() + lines.len());
    let mut lines = lines.into_iter();
    let mut line = lines.next();
    for (stack, mut weight) in parts {
        let (caller, frame) = profile.stack_of(stack);
        let function = *profile.frame_of(frame);
        while weight > 0 {
            let Some(current) = &mut line else {
                // The costs of the lines are used up, so the rest of the weight has no line.
                rows.push((stack, weight));
                break;
            };
            let part = weight.min(current.cost);
            if part > 0 {
                let file = Some(profile.name(graph.texts.get(current.file)));
                let frame = profile.frame(Frame { file, line: current.line, ..function });
                rows.push((profile.stack(caller, frame), part));
            }
            weight -= part;
            current.cost -= part;
            if current.cost == 0 {
                line = lines.next();
            }
        }
    }
    rows
}

/// Converts the thread's self costs and calls, as the file states them, to the profile's type for calls. In it, each
/// recursion level of a function (`fib'2`) is a function of its own. An entry with self cost therefore has two frames:
/// that of the level, and the one without level (`fib`) that stands for it in stacks.
fn thread_calls(thread: &ThreadGraph<'_>, frames: &FunctionFrames, track: TrackId, profile: &Profile) -> ThreadCalls {
    let events = profile.series.len();
    let mut functions = Vec::with_capacity(thread.functions.len());
    for (index, &function) in thread.functions.iter().enumerate() {
        functions.push(SelfCost {
            function: frames.full_frames[function as usize],
            stack_frame: frames.stack_frames[function as usize],
            costs: (0..events).map(|event| thread.self_cost(event, index)).collect(),
        });
    }
    let full_frame = |index: u32| frames.full_frames[thread.functions[index as usize] as usize];
    let mut calls = Vec::with_capacity(thread.calls.len());
    for edge in &thread.calls {
        calls.push(Calls {
            caller: full_frame(edge.caller),
            callee: full_frame(edge.callee),
            count: edge.calls.count,
            costs: (0..events).map(|event| edge.calls.costs.get(event)).collect(),
        });
    }
    let events = profile.series.iter().map(|series| series.name.clone()).collect();
    ThreadCalls { track, events, functions, calls }
}

/// The program's name, from its command line.
fn comm(command: &[u8]) -> Vec<u8> {
    base_name(program(command)).to_vec()
}

/// The program's path, from its command line. cg_diff writes two command lines, separated by `;`.
fn program(command: &[u8]) -> &[u8] {
    let word = command.trim_ascii().split(u8::is_ascii_whitespace).next().unwrap_or_default();
    word.strip_suffix(b";").unwrap_or(word)
}

/// The kind of unnamed code in memory without a file: JIT code if the profiled program has a JIT compiler. `command` is
/// the command line in the file's header.
pub fn anonymous_kind(command: &[u8]) -> FrameKind {
    let runtimes = RuntimeSet::from_program(program(command));
    if runtimes == RuntimeSet::default() { FrameKind::Anonymous } else { FrameKind::JitUnnamed }
}

/// The kind of a function's code. `object` is `None` for memory without a file, and `anonymous` is the kind of unnamed
/// code there.
pub fn function_kind(name: &[u8], object: Option<&[u8]>, anonymous: FrameKind) -> FrameKind {
    // callgrind names a function without a symbol by its address.
    let is_unnamed = raw_name(name).is_some();
    let kind = match object {
        Some(object) if is_jit_object(object) => FrameKind::Jit,
        None if is_unnamed => anonymous,
        _ => FrameKind::User,
    };
    if is_unnamed { kind.unnamed() } else { kind }
}

impl FunctionFrames {
    /// Adds the next function of the graph: its full frame and its stack frame are added to `profile`, and their IDs to
    /// `self`. `position` is the source position in its name, if any; `anonymous` is the kind of frames for code in
    /// memory without a file; `find_tier` returns the tier of a JIT function by its name.
    fn push(
        &mut self,
        profile: &mut Profile,
        graph: &CallGraph,
        function: &FunctionName,
        position: Option<NamedPosition<'_>>,
        anonymous: FrameKind,
        mut find_tier: impl FnMut(NameId, &[u8]) -> Option<Tier>,
    ) {
        let object = unless_unknown(graph.texts.get(function.object));
        let file = unless_unknown(graph.texts.get(function.file)).map(|file| profile.name(file));
        let mut full_name = graph.texts.get(function.name);
        if full_name.is_empty() {
            full_name = NO_NAME;
        }
        let kind = function_kind(full_name, object, anonymous);
        let mut stack_name = strip_recursion(full_name);
        let mut start = FunctionStart { file, ..FunctionStart::default() };
        // Our writer appended the start of the function to its name, so take it off again.
        if let Some(position) = position {
            (stack_name, full_name) = (position.name, position.name);
            (start.line, start.column) = (position.line, position.column);
        }
        let name = profile.name(stack_name);
        let frame = Frame {
            tier: if kind == FrameKind::Jit { find_tier(name, stack_name) } else { None },
            module: object.map(|object| profile.name(object)),
            file,
            start,
            ..Frame::new(name, kind)
        };
        self.stack_frames.push(profile.frame(frame));
        let name = profile.name(full_name);
        self.full_frames.push(profile.frame(Frame { name, ..frame }));
    }
}

/// A function's name, split into the name itself and the source position that our writer appends if several functions
/// have the same name and file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NamedPosition<'a> {
    name: &'a [u8],
    /// Line and column where the function starts. The column is 0 if unknown.
    line: u32,
    column: u32,
}

impl<'a> NamedPosition<'a> {
    /// Parses `NAME:LINE:COLUMN` or `NAME:LINE`. `None` for other names.
    fn parse(text: &'a [u8]) -> Option<Self> {
        let (rest, last) = split_number(text)?;
        if let Some((name, line)) = split_number(rest) {
            return Some(Self { name, line, column: last });
        }
        Some(Self { name: rest, line: last, column: 0 })
    }
}

/// Splits a number of at least 1 off the end of a name, where it follows a colon.
fn split_number(text: &[u8]) -> Option<(&[u8], u32)> {
    let colon = memchr::memrchr(b':', text)?;
    let number = u32::try_from(decimal(&text[colon + 1..])?).ok()?;
    let rest = &text[..colon];
    if number == 0 || rest.is_empty() || rest.ends_with(b":") { None } else { Some((rest, number)) }
}

/// For each function, the source position in its name, if our writer put it there; `None` for all functions of files
/// that jitgraft didn't write. Our writer appends a position only if several functions share their name, file and
/// object, so a number at the end of any other name belongs to the name.
fn start_positions(graph: &CallGraph) -> Vec<Option<NamedPosition<'_>>> {
    let mut positions = vec![None; graph.functions.len()];
    if !graph.creator.starts_with(b"jitgraft") {
        return positions;
    }
    // For each name (without position), file and object, the different positions of the functions that share them.
    type Key<'a> = (&'a [u8], TextNumber, TextNumber);
    let mut namesakes: FxHashMap<Key<'_>, FxHashSet<(u32, u32)>> = FxHashMap::default();
    for (position, function) in positions.iter_mut().zip(&graph.functions) {
        let text = graph.texts.get(function.name);
        *position = NamedPosition::parse(text);
        let (name, start) =
            position.map_or((text, (0, 0)), |position| (position.name, (position.line, position.column)));
        namesakes.entry((name, function.file, function.object)).or_default().insert(start);
    }
    for (position, function) in positions.iter_mut().zip(&graph.functions) {
        *position = position.filter(|position| namesakes[&(position.name, function.file, function.object)].len() > 1);
    }
    positions
}

/// The name of an object or file. `None` if it is empty or `???`.
fn unless_unknown(name: &[u8]) -> Option<&[u8]> {
    if name.is_empty() || name == UNKNOWN { None } else { Some(name) }
}

/// True for objects of JIT code as named by `jitgraft callgrind` and perf.
fn is_jit_object(object: &[u8]) -> bool {
    let base = base_name(object);
    base.starts_with(b"jitted-") || (base.starts_with(b"perf-") && base.ends_with(b".map"))
}

#[cfg(test)]
mod tests {
    use super::super::graph::read;
    use super::*;
    use crate::analysis::call_graph::CallGraph;
    use crate::error::Warnings;

    fn stacks(text: &str) -> Vec<String> {
        let mut warnings = Warnings::new();
        let profile = to_profile(&read(text.as_bytes(), false, &mut warnings).unwrap());
        assert!(warnings.is_empty(), "{warnings:?}");
        let mut lines = Vec::new();
        for row in &profile.series[0].rows {
            let frames = profile.frames_up(row.stack).map(|frame| profile.frame_of(frame));
            let mut names: Vec<_> = frames.map(|frame| String::from_utf8_lossy(profile.name_of(frame.name))).collect();
            names.reverse();
            lines.push(format!("{} {}", names.join(";"), row.weight));
        }
        lines.sort();
        lines
    }

    #[test]
    fn code_of_a_runtime_that_the_command_names_has_its_tier() {
        let text = "cmd: /usr/bin/rakudo-m -e 1\nevents: Ir\nob=libmoar.so\nfn=MVM_interp_run\n1 10\n\
            ob=jitted-7.elf\nfn=find_method(nqpmo.nqp:1391)\n1 10\n";
        let tier = |text: &str| {
            let profile = to_profile(&read(text.as_bytes(), true, &mut Warnings::new()).unwrap());
            profile.frames().filter(|(_, frame)| frame.line == 0).map(|(_, frame)| frame.tier).collect::<Vec<_>>()
        };
        assert_eq!(tier(text), [None, Some(Tier::Optimized)]);
        assert_eq!(tier(&text.replace("rakudo-m", "other")), [None, None]);
    }

    #[test]
    fn a_shared_callee_is_shared_out_and_cycles_end() {
        let text = "events: Ir\nfn=main\n1 10\ncfn=a\ncalls=1 1\n2 40\ncfn=b\ncalls=1 1\n3 80\n\
            fn=a\n1 10\ncfn=c\ncalls=1 1\n1 30\nfn=b\n1 20\ncfn=c\ncalls=2 1\n1 60\n\
            fn=c\n1 85\ncfn=a\ncalls=1 1\n2 5\nfn=c'2\n1 7\n";
        assert_eq!(stacks(text), ["c 7", "main 10", "main;a 10", "main;a;c 28", "main;b 20", "main;b;c 57"]);
    }

    /// Reads a file without repetitions and returns the number of its stacks. Asserts that self costs are exact and
    /// inclusive costs nearly so.
    fn stacks_cost_what_is_stated(text: &str) -> usize {
        let graph = read(text.as_bytes(), false, &mut Warnings::new()).unwrap();
        let profile = to_profile(&graph);
        let series = &profile.series[0];
        let calls = CallGraph::from_series(&profile, series).unwrap();
        let mut self_costs = vec![0; profile.frame_count()];
        for row in &series.rows {
            self_costs[profile.stack_of(row.stack.unwrap()).1.index()] += row.weight as i64;
        }
        assert!(calls.functions().iter().all(|function| self_costs[function.frame.index()] == function.own));
        let deviations = calls.deviations(&profile, series);
        assert_eq!(deviations.in_cycles, None);
        let (largest, total) = (deviations.outside_cycles.unwrap().cost, self_costs.iter().sum::<i64>());
        assert!(largest as i64 * 100 <= total, "{largest} of {total}");
        profile.stack_count()
    }

    /// A file with an acyclic graph: the self cost of each function, and its callers with their shares of its inclusive
    /// cost. Callers have smaller numbers. Functions without a caller are roots.
    fn acyclic_file(self_costs: &[u64], callers: &[Vec<(usize, u64)>]) -> String {
        let count = self_costs.len();
        let (mut inclusive, mut calls) = (self_costs.to_vec(), vec![String::new(); count]);
        for callee in (0..count).rev() {
            let mut left = inclusive[callee];
            let mut shares: u64 = callers[callee].iter().map(|caller| caller.1).sum();
            for &(caller, share) in &callers[callee] {
                let cost = (u128::from(left) * u128::from(share) / u128::from(shares)) as u64;
                (left, shares) = (left - cost, shares - share);
                inclusive[caller] += cost;
                calls[caller] += &format!("cfn=f{callee}\ncalls=1 1\n1 {cost}\n");
            }
        }
        let mut text = "events: Ir\n".to_owned();
        for function in 0..count {
            text += &format!("fn=f{function}\n1 {}\n{}", self_costs[function], calls[function]);
        }
        text
    }

    /// A file with a graph in levels of `width` functions. Each function is called by `callers` functions of the level
    /// above. `self_cost` returns the self cost of a level's functions.
    fn file_with_levels(count: usize, width: usize, callers: usize, self_cost: impl Fn(usize) -> u64) -> String {
        // Scattered numbers, the same on each run.
        let scattered = |number: usize| (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let (mut self_costs, mut all_callers) = (Vec::new(), Vec::new());
        for function in 0..count * width {
            let level = function / width;
            self_costs.push(self_cost(level));
            let mut callers_with_shares = Vec::new();
            if let Some(above) = level.checked_sub(1) {
                for caller in 0..callers {
                    let number = above * width + (function + caller * caller) % width;
                    callers_with_shares.push((number, 1 + scattered(function + 7 * caller)));
                }
            }
            all_callers.push(callers_with_shares);
        }
        acyclic_file(&self_costs, &all_callers)
    }

    #[test]
    fn ways_that_multiply_cost_what_is_stated() {
        let ladder = |levels: u64| {
            let callers = |function: usize| match (function / 2).checked_sub(1) {
                Some(level) => vec![(2 * level, 1), (2 * level + 1, 1)],
                None => vec![],
            };
            let self_costs: Vec<u64> = (0..2 * levels).map(|function| (function / 2 + 1) << 20).collect();
            acyclic_file(&self_costs, &(0..self_costs.len()).map(callers).collect::<Vec<_>>())
        };
        for (name, text) in [
            ("ladder of 40", ladder(40)),
            ("ladder of 2000", ladder(2000)),
            ("uneven ladder", file_with_levels(2000, 2, 2, |level| (level as u64 * 7919) % 1000)),
            (
                "ladder of which only the last costs",
                file_with_levels(2000, 2, 2, |level| u64::from(level == 1999) << 40),
            ),
            ("wide", file_with_levels(100, 30, 6, |level| (level as u64 * 7919) % 1000)),
            ("wide of which only the last costs", file_with_levels(100, 30, 6, |level| u64::from(level == 99) << 30)),
            ("chain", file_with_levels(5000, 1, 1, |level| (level as u64 * 7919) % 1000)),
        ] {
            let stacks = stacks_cost_what_is_stated(&text);
            assert!(stacks < 1 << 20, "{name}: {stacks}");
        }
    }

    #[test]
    fn many_callers_and_many_callees_cost_what_is_stated() {
        // main calls two functions, each of which calls thousands; all of these call one more, which calls a chain.
        // That makes 12,000,000 stacks.
        let (width, chain) = (40_000, 300);
        let callers = |at: usize| match at {
            0 => vec![],
            1 => vec![(0, 1)],
            2 => vec![(0, 1)],
            at if at < 3 + width => vec![(1 + at % 2, 1)],
            at if at == 3 + width => (3..at).map(|caller| (caller, 1 + 2 * (caller as u64 % 2))).collect(),
            at => vec![(at - 1, 1)],
        };
        let count = 3 + width + chain;
        let self_costs: Vec<u64> = (0..count).map(|at| if at + 1 == count { 1 << 40 } else { at as u64 % 7 }).collect();
        let stacks =
            stacks_cost_what_is_stated(&acyclic_file(&self_costs, &(0..count).map(callers).collect::<Vec<_>>()));
        assert!(stacks < 3 << 20, "{stacks}");
        // Two functions that both call each of many small ones.
        let callers = |at: usize| if at < 2 { vec![] } else { vec![(0, 1), (1, at as u64 % 3 + 1)] };
        let self_costs: Vec<u64> = (0..50_000).map(|at| at % 11).collect();
        let stacks = stacks_cost_what_is_stated(&acyclic_file(
            &self_costs,
            &(0..self_costs.len()).map(callers).collect::<Vec<_>>(),
        ));
        assert!(stacks <= 2 * self_costs.len(), "{stacks}");
    }

    proptest::proptest! {
        #[test]
        fn any_acyclic_graph_costs_what_is_stated(
            self_costs in proptest::collection::vec(proptest::prop_oneof![0u64..2, 0u64..1000, 0u64..1 << 40], 2..120),
            calls in proptest::collection::vec((0usize..120, 0usize..120, 1u64..1000), 0..600),
        ) {
            let mut callers = vec![Vec::new(); self_costs.len()];
            for (one, other, share) in calls {
                let [caller, callee] = [one.min(other), one.max(other)];
                if caller < callee && callee < self_costs.len() {
                    callers[callee].push((caller, share));
                }
            }
            stacks_cost_what_is_stated(&acyclic_file(&self_costs, &callers));
        }
    }

    #[test]
    fn cost_without_a_call_begins_in_the_function_itself() {
        let text = "events: Ir\nfn=main\n1 10\ncfn=clone\ncalls=1 1\n2 5\nfn=clone\n1 5\ncfn=thread\ncalls=1 1\n2 95\n\
            fn=thread\n1 95\n";
        assert_eq!(stacks(text), ["clone 5", "clone;thread 90", "main 10", "main;clone;thread 5"]);
    }

    #[test]
    fn threads_have_their_own_calls() {
        let text = "events: Ir\npart: 1\nthread: 1\nfn=(1) main\n1 3\ncfn=(2) f\ncalls=1 1\n1 4\nfn=(2)\n1 4\n\
            part: 1\nthread: 2\nfn=(3) run\n1 5\ncfn=(2)\ncalls=2 1\n1 6\nfn=(2)\n1 6\n";
        assert_eq!(stacks(text), ["main 3", "main;f 4", "run 5", "run;f 6"]);
        let profile = to_profile(&read(text.as_bytes(), true, &mut Warnings::new()).unwrap());
        assert_eq!(profile.calls.len(), 2);
        assert_eq!(profile.track_of(profile.calls[1].track).tid, Some(Tid(2)));
        assert_eq!((profile.calls[1].calls[0].count, profile.calls[1].calls[0].costs[0]), (2, 6));
    }
}
