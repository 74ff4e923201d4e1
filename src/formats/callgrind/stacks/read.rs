//! A call graph as a profile: its calls as the file states them, and stacks that are made of them.

use super::call_paths::{share_out, stacks};
use super::graph::{CallGraph, GraphFunction};
use super::thread_graph::ThreadGraph;
use crate::formats::callgrind::grammar::{UNKNOWN, raw_name};
use crate::model::runtimes::{RuntimeSet, Tiers};
use crate::model::stacks::{
    Calls, Frame, FrameId, FrameKind, NameId, Profile, Row, SelfCost, Series, ThreadCalls, Track, TrackId, Unit,
};
use crate::model::tier::Tier;
use crate::model::{Pid, Tid};

/// The frames of a function.
struct FunctionFrames {
    /// As the file calls it.
    stated: Vec<FrameId>,
    /// As it is called in stacks.
    in_stacks: Vec<FrameId>,
}

/// The stacks and calls of a graph, one series for each event.
pub(super) fn profile_of(graph: &CallGraph) -> Profile {
    let mut profile = Profile::new();
    let names = graph.events.iter().map(|name| String::from_utf8_lossy(name).into_owned());
    profile.series =
        names.map(|name| Series { name, unit: Unit::Named("count".to_owned()), ..Series::default() }).collect();
    let runtimes = RuntimeSet::of_program(program(&graph.command));
    let mut tiers = Tiers::default();
    let mut frames = FunctionFrames { stated: Vec::new(), in_stacks: Vec::new() };
    for function in &graph.functions {
        frames.push(&mut profile, graph, function, |id, name| tiers.of(id, name, runtimes));
    }
    for thread in &graph.threads {
        let tid = thread.number.map(Tid);
        let track = Track { comm: comm(&graph.command), pid: graph.pid.map(Pid), tid, cpu: None };
        let thread = ThreadGraph::new(thread);
        if !thread.functions.is_empty() {
            let track = profile.track(track);
            add_stacks(&thread, &frames, track, &mut profile);
            let calls = calls_of(&thread, &frames, track, &profile);
            profile.calls.push(calls);
        }
    }
    profile
}

fn add_stacks(thread: &ThreadGraph<'_>, frames: &FunctionFrames, track: TrackId, profile: &mut Profile) {
    let of_function: Vec<FrameId> = thread.functions.iter().map(|at| frames.in_stacks[*at as usize]).collect();
    for event in 0..profile.series.len() {
        let flow = thread.flow(event);
        let found = stacks(&flow, thread.order(), &of_function, profile);
        let rows = &mut profile.series[event].rows;
        for function in &found {
            share_out(thread.own(event, function.function as usize), &function.stacks, |stack, weight| {
                rows.push(Row { track, stack: Some(stack), weight, count: weight, time: None });
            });
        }
    }
}

/// The calls as they are stated.
fn calls_of(thread: &ThreadGraph<'_>, frames: &FunctionFrames, track: TrackId, profile: &Profile) -> ThreadCalls {
    let events = 0..profile.series.len();
    let own = |(at, &function): (usize, &u32)| SelfCost {
        function: frames.stated[function as usize],
        in_stacks: frames.in_stacks[function as usize],
        costs: events.clone().map(|event| thread.own(event, at)).collect(),
    };
    let stated = |at: u32| frames.stated[thread.functions[at as usize] as usize];
    ThreadCalls {
        track,
        events: profile.series.iter().map(|series| series.name.clone()).collect(),
        functions: thread.functions.iter().enumerate().map(own).collect(),
        calls: (thread.calls.iter())
            .map(|(caller, callee, calls)| Calls {
                caller: stated(*caller),
                callee: stated(*callee),
                count: calls.count,
                costs: events.clone().map(|event| calls.costs.of(event)).collect(),
            })
            .collect(),
    }
}

/// The program's name out of its command line.
fn comm(command: &[u8]) -> Vec<u8> {
    program(command).rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec()
}

/// The program's path out of its command line.
fn program(command: &[u8]) -> &[u8] {
    command.trim_ascii().split(u8::is_ascii_whitespace).next().unwrap_or_default()
}

impl FunctionFrames {
    /// The next function.
    fn push(
        &mut self,
        profile: &mut Profile,
        graph: &CallGraph,
        function: &GraphFunction,
        mut tier: impl FnMut(NameId, &[u8]) -> Option<Tier>,
    ) {
        let known = |name: &[u8]| !name.is_empty() && name != UNKNOWN;
        let object = Some(graph.texts.get(function.object)).filter(|name| known(name));
        let file = Some(graph.texts.get(function.file)).filter(|name| known(name));
        let stated = graph.texts.get(function.name);
        let kind = match object {
            Some(object) if is_jit_object(object) => FrameKind::Jit,
            None if raw_name(stated).is_some() => FrameKind::Anonymous,
            _ => FrameKind::User,
        };
        let kind = if raw_name(stated).is_some() { kind.unnamed() } else { kind };
        let text = without_recursion(stated);
        let name = profile.name(text);
        let frame = Frame {
            tier: if kind == FrameKind::Jit { tier(name, text) } else { None },
            module: object.map(|object| profile.name(object)),
            file: file.map(|file| profile.name(file)),
            ..Frame::new(name, kind)
        };
        self.in_stacks.push(profile.frame(frame));
        let name = profile.name(stated);
        self.stated.push(profile.frame(Frame { name, ..frame }));
    }
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

#[cfg(test)]
mod tests {
    use super::super::graph::read;
    use super::*;
    use crate::error::Warnings;
    use crate::model::call_graph::CallGraph;

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
        assert_eq!(tier(text), [None, Some(Tier::Optimised)]);
        assert_eq!(tier(&text.replace("rakudo-m", "other")), [None, None]);
    }

    #[test]
    fn a_shared_callee_is_shared_out_and_cycles_end() {
        let text = "events: Ir\nfn=main\n1 10\ncfn=a\ncalls=1 1\n2 40\ncfn=b\ncalls=1 1\n3 80\n\
            fn=a\n1 10\ncfn=c\ncalls=1 1\n1 30\nfn=b\n1 20\ncfn=c\ncalls=2 1\n1 60\n\
            fn=c\n1 85\ncfn=a\ncalls=1 1\n2 5\nfn=c'2\n1 7\n";
        assert_eq!(stacks(text), ["c 7", "main 10", "main;a 10", "main;a;c 28", "main;b 20", "main;b;c 57"]);
    }

    /// A ladder: each of `levels` pairs of functions calls both of the next pair, so that there are 2^levels paths.
    fn ladder(levels: u64) -> String {
        let (mut text, mut below) = (String::from("events: Ir\n"), vec![0; levels as usize + 1]);
        for level in (0..levels).rev() {
            // Either function costs its number, and half of what both below cost.
            below[level as usize] = 2 * (level + 1) + below[level as usize + 1];
        }
        for level in 0..levels {
            for side in ["a", "b"] {
                text += &format!("fn={side}{level}\n1 {}\n", (level + 1) << 20);
                for next in ["a", "b"].iter().filter(|_| level + 1 < levels) {
                    let cost = below[level as usize + 1] << 18;
                    text += &format!("cfn={next}{}\ncalls=1 1\n1 {cost}\n", level + 1);
                }
            }
        }
        text
    }

    #[test]
    fn paths_that_multiply_cost_what_is_stated() {
        let text = ladder(40);
        let profile = profile_of(&read(text.as_bytes(), &mut Warnings::new()).unwrap());
        let series = &profile.series[0];
        let total: u64 = series.rows.iter().map(|row| row.weight).sum();
        assert_eq!(total, ((1..=40).sum::<u64>() * 2) << 20);
        assert!(profile.stack_count() < 1 << 20, "{}", profile.stack_count());
        let deviations = CallGraph::of(&profile, series).unwrap().deviations(&profile, series);
        assert_eq!(deviations.in_cycles, None);
        let largest = deviations.outside_cycles.unwrap().cost;
        assert!(largest * 100 <= total, "{largest} of {total}");
    }

    #[test]
    fn more_stacks_than_can_be_shown_are_thinned() {
        let text = ladder(2000);
        let profile = profile_of(&read(text.as_bytes(), &mut Warnings::new()).unwrap());
        let series = &profile.series[0];
        assert!(profile.stack_count() < 1 << 20, "{}", profile.stack_count());
        let total: u64 = series.rows.iter().map(|row| row.weight).sum();
        assert_eq!(total, ((1..=2000).sum::<u64>() * 2) << 20);
    }

    #[test]
    fn what_no_call_accounts_for_begins_in_the_function_itself() {
        let text = "events: Ir\nfn=main\n1 10\ncfn=clone\ncalls=1 1\n2 5\nfn=clone\n1 5\ncfn=thread\ncalls=1 1\n2 95\n\
            fn=thread\n1 95\n";
        assert_eq!(stacks(text), ["clone 5", "clone;thread 90", "main 10", "main;clone;thread 5"]);
    }

    #[test]
    fn threads_have_their_own_calls() {
        let text = "events: Ir\npart: 1\nthread: 1\nfn=(1) main\n1 3\ncfn=(2) f\ncalls=1 1\n1 4\nfn=(2)\n1 4\n\
            part: 1\nthread: 2\nfn=(3) run\n1 5\ncfn=(2)\ncalls=2 1\n1 6\nfn=(2)\n1 6\n";
        assert_eq!(stacks(text), ["main 3", "main;f 4", "run 5", "run;f 6"]);
        let profile = profile_of(&read(text.as_bytes(), &mut Warnings::new()).unwrap());
        assert_eq!(profile.calls.len(), 2);
        assert_eq!(profile.track_of(profile.calls[1].track).tid, Some(Tid(2)));
        assert_eq!((profile.calls[1].calls[0].count, profile.calls[1].calls[0].costs[0]), (2, 6));
    }
}
