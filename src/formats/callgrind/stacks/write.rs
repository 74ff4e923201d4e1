//! Writes stacks as a callgrind file: self costs by instruction and line, and the calls between each pair of functions.
//!
//! Sampled stacks have no call counts, so the number after `calls=` is the number of samples that contain the call.
//! Readers compute a function's inclusive cost as its own cost plus the cost of the calls that it makes. The sum has to
//! equal the weight of the stacks that contain the function. So the weight of a stack is charged to only one of the
//! calls that a function makes in the stack: the last one. The function that was running gets the weight as self cost,
//! and none of its calls is charged. So earlier calls of a recursion are written with a cost of 0.
//!
//! If the input already has a call graph, its calls are written as they are.

use crate::analysis::call_graph::CallGraph;
use crate::analysis::groups::{Step, Sum, Walk};
use crate::analysis::label;
use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::formats::callgrind::grammar::{Columns, IdSpace, Position, PositionEncoder, UNKNOWN};
use crate::model::stacks::{Frame, FrameId, FunctionStart, NameId, Profile};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::Write;

/// Writes all events of a profile. An event whose input has a call graph gets the costs and calls of that graph; those
/// of other events are computed from the stacks of their rows.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let mut sums = CostSums::new(profile);
    let mut walk = Walk::new(profile);
    for (event, series) in profile.series.iter().enumerate() {
        if let Some(graph) = CallGraph::from_series(profile, series) {
            sums.add_graph(event, &graph);
            continue;
        }
        for (row, weight) in series.signed_rows(options.weight) {
            if let Some(stack) = row.stack {
                // Creates the entry even for a cost of 0, so that the function is in the file.
                let (_, frame) = profile.stack_of(stack);
                sums.self_costs_mut(frame);
                walk.add(stack, Sum { weight, count: row.count });
            }
        }
        sums.add_stacks(event, &mut walk);
    }
    // `add_stacks` moves the count and the cost of a call to later calls in the same stacks. If it moved all of both,
    // the call has an empty entry, which is dropped.
    sums.functions.iter_mut().for_each(FunctionCosts::drop_uncounted);
    GraphWriter { profile, sums: &sums, ids: Default::default(), text: Vec::new() }.write_file(out)
}

/// Index into [`CostSums::functions`].
type FunctionId = usize;

/// Where in a function a cost occurs: source position and address. An unknown address or line is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CostSite {
    file: Option<NameId>,
    addr: u64,
    line: u32,
}

/// The costs and calls of all functions, summed over all stacks.
struct CostSums<'a> {
    profile: &'a Profile,
    /// Number of events.
    events: usize,
    /// True if a frame of the profile has an address; then positions get a column for it.
    has_addrs: bool,
    /// The function of each frame of the profile.
    frame_functions: Vec<FunctionId>,
    functions: Vec<FunctionCosts>,
}

struct FunctionCosts {
    /// Some frame of the function, from which its module and file are taken.
    frame: FrameId,
    /// The function's name. If other functions of the file have the same name, the source position is appended, because
    /// readers identify functions by name and file.
    name: String,
    /// The lowest pair of address and line in the function's frames, written as the target of calls to it.
    entry: (u64, u32),
    /// Self costs per event, by location in the function.
    self_costs: BTreeMap<CostSite, Vec<i64>>,
    /// The calls that the function makes, by the location of the call and the called function.
    calls: BTreeMap<(CostSite, FunctionId), CallCosts>,
}

impl FunctionCosts {
    /// Removes calls that have neither a count nor a cost. [`CostSums::enter`] leaves such an entry if every stack with
    /// the call has a later call between the same two functions, because then only the later call is counted.
    fn drop_uncounted(&mut self) {
        self.calls.retain(|_, calls| calls.count > 0 || calls.costs.iter().any(|cost| *cost != 0));
    }
}

/// All calls from one location to one function.
#[derive(Debug, Default)]
struct CallCosts {
    /// Number of calls or, for sampled stacks, of the samples that contain the call.
    count: u64,
    /// Inclusive cost of the calls, per event.
    costs: Vec<i64>,
}

/// Identifies calls: the location of the call, and the called function.
#[derive(Debug, Clone, Copy)]
struct CallKey {
    caller: FunctionId,
    site: CostSite,
    callee: FunctionId,
}

/// The frames from the root to the current one, during a walk over all stacks.
#[derive(Debug, Default)]
struct OpenFrames {
    /// The frames, outermost first.
    list: Vec<OpenFrame>,
    /// For each function, the index in `list` of its innermost frame.
    last_frames: FxHashMap<FunctionId, usize>,
    /// For each pair of caller and callee, the innermost call between them. There may be several calls, from different
    /// locations in the caller.
    last_calls: FxHashMap<(FunctionId, FunctionId), CallKey>,
}

#[derive(Debug)]
struct OpenFrame {
    function: FunctionId,
    frame: FrameId,
    /// The call that led to this frame; `None` for the outermost frame.
    call: Option<CallKey>,
    /// The value in [`OpenFrames::last_frames`] before this frame was entered, to restore it on leaving.
    previous_frame: Option<usize>,
    /// The value in [`OpenFrames::last_calls`] before this frame was entered, to restore it on leaving.
    previous_call: Option<CallKey>,
}

impl<'a> CostSums<'a> {
    /// Prepares one entry for each function, still without costs. A function's entry position is the lowest of its
    /// frames.
    fn new(profile: &'a Profile) -> Self {
        let mut sums = Self {
            profile,
            events: profile.series.len(),
            has_addrs: false,
            frame_functions: Vec::new(),
            functions: Vec::new(),
        };
        let mut function_ids = FxHashMap::default();
        for (id, frame) in profile.frames() {
            let next_id = sums.functions.len();
            let name = label::function(profile, frame);
            let function = *function_ids.entry((name.clone(), frame.module, frame.start)).or_insert(next_id);
            // The position stated for the function is its start if that is known, otherwise a line in it that was
            // executed.
            let line = if frame.start.line > 0 { frame.start.line } else { frame.line };
            let entry = (frame.addr.unwrap_or(0), line);
            if function == next_id {
                sums.functions.push(FunctionCosts {
                    frame: id,
                    name: name.into_owned(),
                    entry,
                    self_costs: BTreeMap::new(),
                    calls: BTreeMap::new(),
                });
            }
            let lowest = &mut sums.functions[function].entry;
            *lowest = (*lowest).min(entry);
            sums.has_addrs |= frame.addr.is_some();
            sums.frame_functions.push(function);
        }
        sums.make_names_unique();
        sums
    }

    /// Appends the source position to the names of functions that have the same name, module and file as another one.
    /// Functions without a known position keep their name, so readers take them for one function.
    fn make_names_unique(&mut self) {
        let profile = self.profile;
        let key = |function: &FunctionCosts| {
            let frame = profile.frame_of(function.frame);
            (function.name.clone(), frame.module, function_file(frame))
        };
        let mut counts: FxHashMap<_, u32> = FxHashMap::default();
        for function in &self.functions {
            *counts.entry(key(function)).or_default() += 1;
        }
        for function in &mut self.functions {
            let FunctionStart { line, column, .. } = profile.frame_of(function.frame).start;
            if counts[&key(function)] > 1 && line > 0 {
                function.name += &if column > 0 { format!(":{line}:{column}") } else { format!(":{line}") };
            }
        }
    }

    /// Where in its function a frame is: source position and address.
    fn site(&self, frame: FrameId) -> CostSite {
        let frame = self.profile.frame_of(frame);
        CostSite { file: frame.file, addr: frame.addr.unwrap_or(0), line: frame.line }
    }

    /// Adds the stacks of an event. A recursive function is in a stack several times, but the stack must count only
    /// once for it. So in each stack, only the last of all calls from one function to another gets the count of
    /// samples. Of all calls that a function makes, only the one from its innermost frame gets the weight. If the
    /// innermost frame is the running one, none of the function's calls gets the weight.
    ///
    /// The walk only finds out at deeper frames which calls these are. So [`Self::enter`] adds count and weight to
    /// every call at first, and takes them back from earlier calls when a function is entered again.
    fn add_stacks(&mut self, event: usize, walk: &mut Walk<'_>) {
        let mut open = OpenFrames::default();
        walk.run(|walk, step| match step {
            Step::Enter(stack) => {
                let (self_sum, total) = walk.sums(stack);
                let (_, frame) = self.profile.stack_of(stack);
                self.add_self_cost(event, frame, self_sum);
                self.enter(event, frame, total, &mut open);
            }
            Step::Leave(_) => open.leave(),
        });
    }

    /// Adds the self costs and calls of an event from its call graph.
    fn add_graph(&mut self, event: usize, graph: &CallGraph) {
        for function in graph.functions() {
            let sum = Sum { weight: function.own, count: function.own.unsigned_abs() };
            self.add_self_cost(event, function.frame, sum);
        }
        for edge in graph.edges() {
            let calls = self.calls_mut(CallKey {
                caller: self.frame_functions[edge.caller.index()],
                site: self.site(edge.caller),
                callee: self.frame_functions[edge.callee.index()],
            });
            // The graph of each event states the same call counts, so they aren't added up.
            calls.count = calls.count.max(edge.count);
            calls.costs[event] = calls.costs[event].saturating_add(edge.cost);
        }
    }

    fn add_self_cost(&mut self, event: usize, frame: FrameId, sum: Sum) {
        if !sum.is_zero() {
            let cost = &mut self.self_costs_mut(frame)[event];
            *cost = cost.saturating_add(sum.weight);
        }
    }

    /// The self cost at a frame's location in its function, per event; 0 at first.
    fn self_costs_mut(&mut self, frame: FrameId) -> &mut Vec<i64> {
        let (events, site) = (self.events, self.site(frame));
        let function = &mut self.functions[self.frame_functions[frame.index()]];
        function.self_costs.entry(site).or_insert_with(|| vec![0; events])
    }

    /// Enters a frame: adds count and weight to the call that led to the frame, and takes them back from earlier calls
    /// of the same functions (see [`Self::add_stacks`]). `open` holds the frames from the root to the caller. `total`
    /// is the sum of all stacks that begin with these frames and the entered one.
    fn enter(&mut self, event: usize, frame: FrameId, total: Sum, open: &mut OpenFrames) {
        let function = self.frame_functions[frame.index()];
        let call = open.list.last().map(|caller| CallKey {
            caller: caller.function,
            site: self.site(caller.frame),
            callee: function,
        });
        if let Some(call) = call {
            let calls = self.calls_mut(call);
            calls.count = calls.count.saturating_add(total.count);
            calls.costs[event] = calls.costs[event].saturating_add(total.weight);
        }
        // Only the last call from `caller` to `function` keeps the count of samples. An earlier one loses it.
        let previous_call = call.and_then(|call| open.last_calls.insert((call.caller, function), call));
        if let Some(previous_call) = previous_call {
            let calls = self.calls_mut(previous_call);
            calls.count = calls.count.saturating_sub(total.count);
        }
        // If the function already has a frame on the stack, the call that this earlier frame made was charged with the
        // weight. Take the charge back: the new frame either makes a later call, which will be charged instead, or is
        // the running one, so that the weight is the function's self cost.
        let previous_frame = open.last_frames.insert(function, open.list.len());
        if let Some(previous_frame) = previous_frame {
            // The earlier frame called the frame after it in `open`. If there is no frame after it, the function has
            // just called itself, and the charged call is `call`.
            let charged = open.list.get(previous_frame + 1).map_or(call, |callee| callee.call);
            if let Some(charged) = charged {
                let cost = &mut self.calls_mut(charged).costs[event];
                *cost = cost.saturating_sub(total.weight);
            }
        }
        open.list.push(OpenFrame { function, frame, call, previous_frame, previous_call });
    }

    /// The costs of the calls with this key; 0 at first.
    fn calls_mut(&mut self, key: CallKey) -> &mut CallCosts {
        let events = self.events;
        let calls = &mut self.functions[key.caller].calls;
        calls.entry((key.site, key.callee)).or_insert_with(|| CallCosts { count: 0, costs: vec![0; events] })
    }

    /// The sum of all self costs, per event.
    fn totals(&self) -> Vec<i64> {
        let mut totals = vec![0i64; self.events];
        for costs in self.functions.iter().flat_map(|function| function.self_costs.values()) {
            for (total, cost) in totals.iter_mut().zip(costs) {
                *total = total.saturating_add(*cost);
            }
        }
        totals
    }
}

impl OpenFrames {
    /// Closes the innermost open frame. Restores what `last_frames` and `last_calls` said before the frame was
    /// entered.
    fn leave(&mut self) {
        let Some(frame) = self.list.pop() else { return };
        match frame.previous_frame {
            Some(previous) => self.last_frames.insert(frame.function, previous),
            None => self.last_frames.remove(&frame.function),
        };
        let Some(CallKey { caller, callee, .. }) = frame.call else { return };
        match frame.previous_call {
            Some(previous) => self.last_calls.insert((caller, callee), previous),
            None => self.last_calls.remove(&(caller, callee)),
        };
    }
}

struct GraphWriter<'a> {
    profile: &'a Profile,
    sums: &'a CostSums<'a>,
    /// The IDs that were given to names so far, by identity (see [`GraphWriter::write_statement`]). The index of the
    /// array is an [`IdSpace`].
    ids: [FxHashMap<Vec<u8>, usize>; 3],
    /// The text of the current function.
    text: Vec<u8>,
}

impl GraphWriter<'_> {
    /// Writes the header, the functions one by one, and the totals.
    fn write_file(mut self, out: &mut dyn Write) -> Result<()> {
        self.write_header(out)?;
        for function in 0..self.sums.functions.len() {
            self.write_function(function);
            out.write_all(&self.text)?;
            self.text.clear();
        }
        Ok(writeln!(out, "totals: {}", join_costs(&self.sums.totals()))?)
    }

    /// Writes the header of the file.
    fn write_header(&self, out: &mut dyn Write) -> Result<()> {
        // The names of all threads, for the `cmd:` line.
        let comms = self.profile.tracks().iter().map(|track| String::from_utf8_lossy(&track.comm));
        let mut comms: Vec<String> =
            comms.filter(|comm| !comm.is_empty()).map(|comm| comm.replace(['\n', '\r'], " ")).collect();
        comms.sort();
        comms.dedup();
        let events: Vec<String> = self.profile.series.iter().map(|series| event_name(&series.name)).collect();
        let positions = if self.sums.has_addrs { "instr line" } else { "line" };
        writeln!(out, "# callgrind format\nversion: 1\ncreator: jitgraft {}", env!("CARGO_PKG_VERSION"))?;
        writeln!(out, "cmd: {}\npart: 1\n\npositions: {positions}", comms.join(", "))?;
        // A callgrind file must have at least one event.
        let events = if events.is_empty() { "samples".to_owned() } else { events.join(" ") };
        Ok(writeln!(out, "events: {events}\nsummary: {}\n", join_costs(&self.sums.totals()))?)
    }

    fn columns(&self) -> Columns {
        if self.sums.has_addrs { Columns::INSTR_LINE } else { Columns::default() }
    }

    fn position(&self, addr: u64, line: u32) -> Position {
        let line = u64::from(line);
        if self.sums.has_addrs { Position([addr, line, 0]) } else { Position([line, 0, 0]) }
    }

    /// Writes a function: its self costs, then its calls. Writes nothing for a function that has neither.
    fn write_function(&mut self, id: FunctionId) {
        let function = &self.sums.functions[id];
        if function.self_costs.is_empty() && function.calls.is_empty() {
            return;
        }
        let frame = self.profile.frame_of(function.frame);
        self.write_name("ob", IdSpace::Object, id);
        self.write_name("fl", IdSpace::File, id);
        self.write_name("fn", IdSpace::Function, id);
        // `true`: write positions relative to the previous one where possible.
        let mut encoder = PositionEncoder::new(self.columns());
        let mut file = function_file(frame);
        for (site, costs) in &function.self_costs {
            self.switch_file(&mut file, site.file, frame);
            encoder.write_cost(self.position(site.addr, site.line), true, &mut self.text);
            self.put(&format!(" {}\n", join_costs(costs)));
        }
        for ((site, callee), CallCosts { count, costs }) in &function.calls {
            self.switch_file(&mut file, site.file, frame);
            self.write_callee(*callee, frame);
            // The position of the callee. The position of the call is on the next line, with the cost.
            self.put(&format!("calls={count} "));
            let (entry, entry_line) = self.sums.functions[*callee].entry;
            encoder.write_target(self.position(entry, entry_line), true, &mut self.text);
            self.put("\n");
            encoder.write_site(self.position(site.addr, site.line), true, &mut self.text);
            self.put(&format!(" {}\n", join_costs(costs)));
        }
        self.put("\n");
    }

    fn put(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    /// Writes an `fi=` or `fe=` line if the next costs are in another file than `current`, and updates `current`.
    /// `function` is a frame of the function that is written: `fe=` returns to its own file, `fi=` enters any other.
    fn switch_file(&mut self, current: &mut Option<NameId>, file: Option<NameId>, function: &Frame) {
        if *current != file {
            let key = if file == function_file(function) { "fe" } else { "fi" };
            let name = self.name(file);
            self.write_statement(key, IdSpace::File, name.clone(), name);
            *current = file;
        }
    }

    /// Writes the lines that name the function that is called. They always include its file, because readers disagree
    /// about what a missing file means. `caller` is a frame of the calling function.
    fn write_callee(&mut self, callee: FunctionId, caller: &Frame) {
        let frame = self.profile.frame_of(self.sums.functions[callee].frame);
        if frame.module != caller.module {
            self.write_name("cob", IdSpace::Object, callee);
        }
        self.write_name("cfi", IdSpace::File, callee);
        self.write_name("cfn", IdSpace::Function, callee);
    }

    /// Writes the object, the file or the name of a function.
    fn write_name(&mut self, key: &str, space: IdSpace, function: FunctionId) {
        let frame = self.profile.frame_of(self.sums.functions[function].frame);
        let (object, file) = (self.name(frame.module), self.name(function_file(frame)));
        match space {
            IdSpace::Object => self.write_statement(key, space, object.clone(), object),
            IdSpace::File => self.write_statement(key, space, file.clone(), file),
            // Functions with the same name in different objects or files are different, so each has its own ID.
            IdSpace::Function => {
                let name = one_line(self.sums.functions[function].name.as_bytes());
                self.write_statement(key, space, [object, file, name.clone()].join(&b'\n'), name);
            }
        }
    }

    /// The name of an object or file, `???` if unknown.
    fn name(&self, id: Option<NameId>) -> Vec<u8> {
        one_line(id.map_or(UNKNOWN, |id| self.profile.name_of(id)))
    }

    /// Writes `key=(ID)` and, if the ID is new, the name. Equal identities get the same ID. The identity of a function
    /// is more than its name: functions of the same name in different files have different IDs.
    fn write_statement(&mut self, key: &str, space: IdSpace, identity: Vec<u8>, name: Vec<u8>) {
        let ids = &mut self.ids[space as usize];
        let next_id = ids.len() + 1;
        let id = *ids.entry(identity).or_insert(next_id);
        self.put(&format!("{key}=({id})"));
        if id == next_id {
            self.put(" ");
            self.text.extend_from_slice(&name);
        }
        self.put("\n");
    }
}

/// The source file in which a function starts or, if unknown, the file of this frame's source line.
fn function_file(frame: &Frame) -> Option<NameId> {
    frame.start.file.or(frame.file)
}

/// A name without line breaks. An empty name becomes `???`, because an ID without a name would be a reference.
fn one_line(name: &[u8]) -> Vec<u8> {
    let name = if name.trim_ascii().is_empty() { UNKNOWN } else { name };
    name.iter().map(|&byte| if byte == b'\n' || byte == b'\r' { b' ' } else { byte }).collect()
}

/// The name of an event as a single word, which callgrind requires.
fn event_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn join_costs(costs: &[i64]) -> String {
    costs.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::format::ReadOptions;
    use crate::error::Warnings;
    use crate::formats::callgrind::{read, sniff};
    use crate::model::stacks::{FrameKind, Row, Series, Track, profile_of};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// What each call should count and cost, computed stack by stack: (caller, callee) → (count, cost).
    fn by_stacks(stacks: &[(String, u64)]) -> BTreeMap<(String, String), (u64, u64)> {
        let mut calls = BTreeMap::new();
        for (stack, weight) in stacks {
            let frames: Vec<&str> = stack.rsplit(';').collect();
            let mut counted = BTreeSet::new();
            let mut charged = BTreeSet::from([frames[0]]);
            for pair in frames.windows(2) {
                let (callee, caller) = (pair[0], pair[1]);
                if !counted.insert((caller, callee)) {
                    continue;
                }
                let call: &mut (u64, u64) = calls.entry((caller.to_owned(), callee.to_owned())).or_default();
                call.0 += 1;
                if charged.insert(caller) {
                    call.1 += *weight;
                }
            }
        }
        calls
    }

    proptest! {
        #[test]
        fn calls_count_and_cost_as_if_each_stack_was_gone_through(
            stacks in proptest::collection::vec(("[abc](;[abc]){0,7}", 1..9u64), 1..20)
        ) {
            let given: Vec<(&str, u64)> = stacks.iter().map(|(stack, weight)| (stack.as_str(), *weight)).collect();
            let profile = profile_of(&given);
            let mut sums = CostSums::new(&profile);
            let mut walk = Walk::new(&profile);
            for row in &profile.series[0].rows {
                walk.add(row.stack.unwrap(), Sum { weight: row.weight as i64, count: 1 });
            }
            sums.add_stacks(0, &mut walk);
            sums.functions.iter_mut().for_each(FunctionCosts::drop_uncounted);
            let name = |function: FunctionId| {
                let frame = profile.frame_of(sums.functions[function].frame);
                String::from_utf8_lossy(profile.name_of(frame.name)).into_owned()
            };
            let mut calls = BTreeMap::new();
            for (caller, function) in sums.functions.iter().enumerate() {
                for ((_, callee), call) in &function.calls {
                    calls.insert((name(caller), name(*callee)), (call.count, call.costs[0] as u64));
                }
            }
            prop_assert_eq!(calls, by_stacks(&stacks));
        }
    }

    #[test]
    fn a_function_without_a_name_keeps_its_cost() {
        let mut profile = Profile::new();
        let track = profile.track(Track::default());
        let frames = [&b"main"[..], b"", b" "].map(|name| Frame::new(profile.name(name), FrameKind::Jit));
        let stack = frames.into_iter().fold(None, |caller, frame| {
            let frame = profile.frame(frame);
            Some(profile.stack(caller, frame))
        });
        let rows = vec![Row { track, stack, weight: 7, count: 1, time: None }];
        profile.series.push(Series { name: "cpu-clock".into(), rows, ..Series::default() });
        let mut out = Vec::new();
        write(&profile, &WriteOptions::default(), &mut out).unwrap();
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains(") ???\n") && !text.contains(") \n"), "{text}");
        let mut warnings = Warnings::new();
        let again = read(&mut &out[..], &ReadOptions::default(), &mut warnings).unwrap();
        assert_eq!(again.series[0].rows.iter().map(|row| row.weight).sum::<u64>(), 7, "{text}");
        assert!(warnings.is_empty());
    }

    #[test]
    fn stacks_become_functions_and_calls_and_come_back() {
        let mut profile = Profile::new();
        let track = profile.track(Track { comm: b"node".to_vec(), ..Track::default() });
        let mut rows = Vec::new();
        for (names, weight) in [("main;f;g", 5), ("main;g", 3), ("main;f;f", 2)] {
            let mut stack = None;
            for (at, name) in names.split(';').enumerate() {
                let name = profile.name(name.as_bytes());
                let module = Some(profile.name(b"/bin/x"));
                let frame = Frame {
                    module,
                    line: at as u32 + 1,
                    addr: Some(0x1000 + at as u64),
                    ..Frame::new(name, FrameKind::User)
                };
                let frame = profile.frame(frame);
                stack = Some(profile.stack(stack, frame));
            }
            rows.push(Row { track, stack, weight, count: 1, time: None });
        }
        profile.series.push(Series { name: "cpu-clock".into(), rows, ..Series::default() });
        let mut out = Vec::new();
        write(&profile, &WriteOptions::default(), &mut out).unwrap();
        let text = String::from_utf8(out.clone()).unwrap();
        assert!(sniff(&out), "{text}");
        assert!(text.contains("positions: instr line\nevents: cpu_clock\nsummary: 10\n"), "{text}");
        let main = "fn=(1) main\ncfi=(1)\ncfn=(2) f\ncalls=2 0x1001 2\n0x1000 1 7\ncfi=(1)\ncfn=(3) g\ncalls=1 0x1001 2\n0x1000 1 3\n";
        assert!(text.contains(main), "{text}");
        let again = read(&mut &out[..], &ReadOptions::default(), &mut Warnings::new()).unwrap();
        assert_eq!(again.series[0].rows.iter().map(|row| row.weight).sum::<u64>(), 10);
    }
}
