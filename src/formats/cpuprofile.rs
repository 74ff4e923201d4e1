//! V8's sampling profile (`.cpuprofile`): `node --cpu-prof`, Chrome's DevTools, `v8.Session` of the inspector.
//!
//! The file is one JSON object. `nodes` is the call tree: each node is a function at a source position and lists the
//! IDs of its children. `samples` has the innermost node of each sample. `timeDeltas` has the microseconds between each
//! sample and the previous one; the first delta counts from `startTime`. A sample stands for the time until the next
//! sample, the last one for the time until `endTime`, as DevTools shows it. V8 may write samples out of order (with
//! negative deltas), so they are sorted first. If samples or their times are missing, the hit counts of the nodes are
//! used instead.
//!
//! A node's line is where its function starts. `positionTicks` has the sampled lines, each with a number of samples,
//! but doesn't say which samples. Lines are assigned to the node's samples in the order of this list.
//!
//! Until Chrome 57, the tree was nested in `head`, lines and columns were counted from 1, start and end were in
//! seconds, and `timestamps` had the time of each sample in microseconds.
//!
//! See <https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#type-Profile>.

mod head;
mod node;

use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warning, Warnings, strip_values};
use crate::model::Nanos;
use crate::model::stacks::{Frame, FrameKind, FunctionStart, Profile, Row, StackId, Track, Unit};
use node::{CallFrame, LineTicks, ProfileNode};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// True if an input starts like a `.cpuprofile`: with one of the format's keys, and not like a trace.
pub fn sniff(head: &[u8]) -> bool {
    const FIRST_KEYS: [&str; 5] = ["\"nodes\"", "\"startTime\"", "\"endTime\"", "\"samples\"", "\"timeDeltas\""];
    let Some(members) = head.trim_ascii_start().strip_prefix(b"{") else { return false };
    let members = members.trim_ascii_start();
    let has = |text: &str| memchr::memmem::find(head, text.as_bytes()).is_some();
    // Traces can contain the same keys, but have a reader of their own.
    if has("\"traceEvents\"") {
        return false;
    }
    // Profiles from before Chrome 57 have a tree of nodes in `head`. Other keys may precede it.
    if has("\"head\"") {
        return has("\"functionName\"") && has("\"hitCount\"");
    }
    FIRST_KEYS.iter().any(|key| members.starts_with(key.as_bytes())) && (has("\"callFrame\"") || has("\"timeDeltas\""))
}

/// Reads a profile. From a truncated file, reads as much as possible.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut parts = ProfileMembers::default();
    let mut json = serde_json::Deserializer::from_slice(bytes);
    // This fills `parts` while it parses, so after an error `parts` has what came before the error.
    if let Err(error) = parts.deserialize(&mut json) {
        if parts.nodes.is_empty() {
            return Err(Error::new("is not a complete .cpuprofile").because(error));
        }
        warnings.push(Warning::new(format!("cannot be read completely ({})", strip_values(&error))));
    }
    let mut profile = Profile::empty(options.keep);
    // The file has the samples of a single thread, and doesn't state its name.
    let track = Track { comm: b"JavaScript".to_vec(), ..Track::default() };
    parts.push_to(&mut profile, track, warnings);
    Ok(profile)
}

/// A profile that V8 wrote into trace events: in pieces (a `Profile` and several `ProfileChunk` events) or as a whole
/// (`CpuProfile`). Holds one pair per event: its time, if it has one, and the JSON text of its `args`.
#[derive(Debug, Default)]
pub(super) struct ProfileChunks(Vec<(Option<i64>, Vec<u8>)>);

impl ProfileChunks {
    /// The names of the events with parts of a profile.
    pub(super) const EVENTS: &[&[u8]] = &[b"Profile", b"ProfileChunk", b"CpuProfile"];

    /// Adds the time and the arguments of one of the [`EVENTS`](Self::EVENTS). Events may be added in any order.
    pub(super) fn add(&mut self, time: Option<i64>, args: &[u8]) {
        self.0.push((time, args.to_vec()));
    }

    /// Adds all samples to `profile`, as samples of the thread `track`. Events whose arguments can't be parsed are
    /// skipped with a warning.
    pub(super) fn push_to(mut self, profile: &mut Profile, track: Track, warnings: &mut Warnings) {
        // The deltas of a chunk continue those of the chunk before, so their order matters.
        self.0.sort_by_key(|(time, _)| *time);
        let (mut parts, mut skipped) = (ProfileMembers::default(), Skipped::new("ProfileChunk"));
        for (_, args) in &self.0 {
            match serde_json::from_slice(args) {
                Ok(ChunkArguments { data }) => parts.append(data),
                // The message of serde is left out, because it may quote private data from the file.
                Err(_) => skipped.add(Error::new("the arguments of a profile event are not in V8's format")),
            }
        }
        warnings.extend(skipped.into_warning());
        if !parts.samples.is_empty() {
            parts.push_to(profile, track, warnings);
        }
    }
}

#[derive(Deserialize)]
struct ChunkArguments<'a> {
    #[serde(borrow, default)]
    data: ProfileChunk<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ProfileChunk<'a> {
    start_time: Option<f64>,
    end_time: Option<f64>,
    #[serde(borrow)]
    cpu_profile: ChunkProfile<'a>,
    time_deltas: Vec<i64>,
    /// The sampled line of each sample, from 1; 0 if unknown. The list is absent if all lines are unknown.
    lines: Vec<i64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ChunkProfile<'a> {
    #[serde(borrow)]
    nodes: Vec<ProfileNode<'a>>,
    samples: Vec<u64>,
    /// Start time in microseconds. Only set in whole profiles, not in chunks.
    start_time: Option<f64>,
    end_time: Option<f64>,
    time_deltas: Vec<i64>,
    /// The time of each sample in microseconds, instead of the delta from the previous one.
    timestamps: Vec<f64>,
}

/// A sample, or all hits of a node at one line.
struct WeighedNode {
    node: u64,
    /// The sampled line; 0 if unknown.
    line: u32,
    weight: u64,
    count: u64,
    time: Option<Nanos>,
}

/// The contents of a profile, as far as it has been read.
#[derive(Default)]
struct ProfileMembers<'a> {
    nodes: Vec<ProfileNode<'a>>,
    samples: Vec<u64>,
    /// The sampled line of each sample, if the profile states it; 0 if unknown. May be shorter than `samples`.
    lines: Vec<u32>,
    /// The microseconds between each sample and the previous one; the first one counts from `start`.
    deltas: Vec<i64>,
    /// Start time in microseconds.
    start: f64,
    /// End time in microseconds.
    end: f64,
    /// The time of each sample in microseconds, in profiles from before Chrome 57.
    timestamps: Vec<f64>,
}

impl<'a> ProfileMembers<'a> {
    /// Appends the part of a profile that one event holds. Events must be appended in the order of their times.
    fn append(&mut self, ProfileChunk { start_time, end_time, cpu_profile, time_deltas, lines }: ProfileChunk<'a>) {
        self.start = start_time.or(cpu_profile.start_time).unwrap_or(self.start);
        self.end = end_time.or(cpu_profile.end_time).unwrap_or(self.end);
        self.nodes.extend(cpu_profile.nodes);
        // Earlier events may have stated samples without lines, so their lines are filled up with 0 first.
        self.lines.resize(self.samples.len(), 0);
        self.lines.extend(lines.into_iter().map(|line| u32::try_from(line).unwrap_or(0)));
        self.samples.extend(cpu_profile.samples);
        self.deltas.extend(time_deltas);
        self.deltas.extend(cpu_profile.time_deltas);
        // Where the event states times instead of deltas, its first sample counts from the start of the profile.
        let mut last = self.start as i64;
        for time in cpu_profile.timestamps {
            self.deltas.push((time as i64).saturating_sub(last));
            last = time as i64;
        }
    }

    /// Takes the nodes from the nested tree (`head`) of an old profile. Also converts the old profile's times to
    /// microseconds and deltas.
    fn take_head(&mut self, head: &RawValue) -> serde_json::Result<()> {
        self.nodes = head::nodes(head.get().as_bytes())?;
        // Old profiles state the start and the end in seconds, but the times of samples in microseconds.
        (self.start, self.end) = ((self.start * 1e6).round(), (self.end * 1e6).round());
        // If the file has no times of samples, spread the samples evenly between start and end, as in DevTools.
        if self.timestamps.is_empty() && self.deltas.is_empty() && self.end > self.start {
            let (count, length) = (self.samples.len() as f64, self.end - self.start);
            self.timestamps = (0..self.samples.len()).map(|index| self.start + length * index as f64 / count).collect();
        }
        let mut before = self.start;
        for time in std::mem::take(&mut self.timestamps) {
            self.deltas.push(time as i64 - before as i64);
            before = time;
        }
        Ok(())
    }

    /// Adds the samples to `profile`, as samples of the thread `track`.
    fn push_to(mut self, profile: &mut Profile, track: Track, warnings: &mut Warnings) {
        let has_times = !self.samples.is_empty() && self.deltas.len() >= self.samples.len();
        if !has_times && !self.samples.is_empty() {
            let (samples, times) = (self.samples.len(), self.deltas.len());
            let message = format!(
                "the profile has {samples} samples but only {times} timestamps, so weights are sample counts instead \
                 of times"
            );
            warnings.push(Warning::new(message));
            // `samples` may be truncated, so the hit counts of the nodes are preferred if there are at least as many
            // hits as samples. If there are fewer, hit counts are missing, and the samples are used without times.
            let hits = self.nodes.iter().fold(0u64, |sum, node| sum.saturating_add(node.hit_count));
            if hits >= samples as u64 {
                self.samples.clear();
            }
        }
        let mut skipped = Skipped::new("sample");
        let stacks = stacks(&self.nodes, profile);
        let track = profile.track(track);
        let (name, unit) = if has_times { ("cpu", Unit::Nanos) } else { ("hits", Unit::Samples) };
        let series = profile.series_named(name, unit);
        let samples = if has_times {
            self.timed_samples()
        } else if self.samples.is_empty() {
            self.hits()
        } else {
            self.samples_without_times()
        };
        for (number, sample) in samples.iter().enumerate() {
            let Some(&stack) = stacks.get(&sample.node) else {
                skipped.add(Error::new(format!(
                    "sample {number} refers to node {}, which is not in the call tree",
                    sample.node
                )));
                continue;
            };
            let WeighedNode { line, weight, count, time, .. } = *sample;
            let stack = match stack {
                Some(stack) => Some(with_line(stack, line, profile)),
                // The root isn't a function, so a sample of the root has an unknown stack.
                None => Some(profile.unknown_stack()),
            };
            profile.push(series, Row { track, stack, weight, count, time });
        }
        warnings.extend(skipped.into_warning());
    }

    /// The samples sorted by time. The weight of each is the time until the next sample; for the last one, until the
    /// end of the profile. If the file states no line for a sample, the sample gets a line from its node's list. Each
    /// line of that list is given to as many samples as it has ticks.
    fn timed_samples(&self) -> Vec<WeighedNode> {
        let mut time = self.start as i64;
        // The time in microseconds of each sample, with the sample's index.
        let mut order: Vec<(i64, usize)> = Vec::with_capacity(self.samples.len());
        for number in 0..self.samples.len() {
            time = time.saturating_add(self.deltas.get(number).copied().unwrap_or(0));
            order.push((time, number));
        }
        order.sort_by_key(|(time, _)| *time);
        let mut lines = LinesOfNodes::new(&self.nodes);
        let mut samples = Vec::with_capacity(order.len());
        for (position, &(time, number)) in order.iter().enumerate() {
            let next = order.get(position + 1).map_or(self.end as i64, |(time, _)| *time);
            let node = self.samples[number];
            let stated_line = self.lines.get(number).copied().filter(|line| *line > 0);
            samples.push(WeighedNode {
                node,
                line: stated_line.unwrap_or_else(|| lines.next(node)),
                weight: nanos(next.saturating_sub(time)),
                count: 1,
                time: Some(Nanos(nanos(time))),
            });
        }
        samples
    }

    /// The samples of a profile without times; each counts 1.
    fn samples_without_times(&self) -> Vec<WeighedNode> {
        let mut lines = LinesOfNodes::new(&self.nodes);
        let mut samples = Vec::with_capacity(self.samples.len());
        for &node in &self.samples {
            samples.push(WeighedNode { node, line: lines.next(node), weight: 1, count: 1, time: None });
        }
        samples
    }

    /// The hits of the nodes, split by line. Hits for which a node states no line have line 0.
    fn hits(&self) -> Vec<WeighedNode> {
        let mut rows = Vec::new();
        for node in &self.nodes {
            let mut remaining = node.hit_count;
            // Stands for all hits that are left after the stated lines.
            let unknown_line = LineTicks { line: 0, ticks: u64::MAX };
            for LineTicks { line, ticks } in node.position_ticks.iter().copied().chain([unknown_line]) {
                let hits = ticks.min(remaining);
                remaining -= hits;
                if hits > 0 {
                    rows.push(WeighedNode { node: node.id, line, weight: hits, count: hits, time: None });
                }
            }
        }
        rows
    }
}

/// Converts microseconds to nanoseconds. Negative times become 0.
fn nanos(micros: i64) -> u64 {
    u64::try_from(micros).unwrap_or(0).saturating_mul(1000)
}

/// Assigns the sampled lines of each node to its samples, in the order of the node's list.
struct LinesOfNodes<'n>(FxHashMap<u64, RemainingLines<'n>>);

/// The lines of a node that aren't assigned to samples yet.
struct RemainingLines<'n> {
    /// The line to assign next, with its remaining ticks.
    current: LineTicks,
    /// The node's lines after `current`.
    next_lines: std::slice::Iter<'n, LineTicks>,
}

impl<'n> LinesOfNodes<'n> {
    fn new(nodes: &'n [ProfileNode<'_>]) -> Self {
        let mut by_node = FxHashMap::default();
        for node in nodes.iter().filter(|node| !node.position_ticks.is_empty()) {
            let current = LineTicks { line: 0, ticks: 0 };
            by_node.insert(node.id, RemainingLines { current, next_lines: node.position_ticks.iter() });
        }
        Self(by_node)
    }

    /// The line for the next sample of a node, given by its ID; 0 if all lines of the node were given to other samples.
    fn next(&mut self, node: u64) -> u32 {
        let Some(RemainingLines { current, next_lines }) = self.0.get_mut(&node) else { return 0 };
        while current.ticks == 0 {
            let Some(next) = next_lines.next() else { return 0 };
            *current = *next;
        }
        current.ticks -= 1;
        current.line
    }
}

/// Returns a stack like this one, but with its innermost frame at `line`. Returns the stack unchanged if the line is 0
/// or the frame has no file.
fn with_line(stack: StackId, line: u32, profile: &mut Profile) -> StackId {
    let (caller, frame) = profile.stack_of(stack);
    let frame = *profile.frame_of(frame);
    if line == 0 || frame.file.is_none() {
        return stack;
    }
    let frame = profile.frame(Frame { line, ..frame });
    profile.stack(caller, frame)
}

/// The stack of each node, by node ID; `None` for the root.
fn stacks(nodes: &[ProfileNode<'_>], profile: &mut Profile) -> FxHashMap<u64, Option<StackId>> {
    let mut parents: FxHashMap<u64, u64> = FxHashMap::default();
    // Most profiles state the children of each node; those that were streamed state the parent instead.
    for node in nodes {
        for &child in &node.children {
            parents.entry(child).or_insert(node.id);
        }
        if let Some(parent) = node.parent {
            parents.entry(node.id).or_insert(parent);
        }
    }
    let by_id: FxHashMap<u64, &ProfileNode<'_>> = nodes.iter().map(|node| (node.id, node)).collect();
    let mut stacks: FxHashMap<u64, Option<StackId>> = FxHashMap::default();
    for node in nodes {
        // Walk up to a node whose stack is known, then add the stacks of the nodes below it, the outermost first.
        // Recursion instead could overflow the stack in deep trees.
        let mut path = vec![node.id];
        while let Some(parent) = path.last().and_then(|id| parents.get(id))
            && !stacks.contains_key(parent)
            && by_id.contains_key(parent)
            // In a damaged file, a node may be its own ancestor. A valid path has at most as many nodes as the file.
            && path.len() <= nodes.len()
        {
            path.push(*parent);
        }
        for id in path.iter().rev() {
            if stacks.contains_key(id) {
                continue;
            }
            let Some(node) = by_id.get(id) else { continue };
            let caller = parents.get(id).and_then(|parent| stacks.get(parent)).copied().flatten();
            let is_root = node.call_frame.function_name == "(root)" && caller.is_none();
            let stack = if is_root { None } else { Some(stack(node, caller, profile)) };
            stacks.insert(*id, stack);
        }
    }
    stacks
}

/// The stack of a node: that of its caller, extended by the node's function.
fn stack(node: &ProfileNode<'_>, caller: Option<StackId>, profile: &mut Profile) -> StackId {
    let CallFrame { function_name, url, line_number, column_number } = &node.call_frame;
    // V8's own states, such as `(garbage collector)`, have names in parentheses.
    let is_state = function_name.starts_with('(') && function_name.ends_with(')') && url.is_empty();
    let name = if function_name.is_empty() { "(anonymous)" } else { function_name };
    // During such a state, the engine's native code runs, so the frame isn't JIT code.
    let kind = if is_state { FrameKind::User } else { FrameKind::Jit };
    let mut frame = Frame::new(profile.name(name.as_bytes()), kind);
    if !url.is_empty() {
        let file = Some(profile.name(url.as_bytes()));
        frame.file = file;
        frame.start = FunctionStart { file, line: from_one(*line_number), column: from_one(*column_number) };
    }
    let frame = profile.frame(frame);
    profile.stack(caller, frame)
}

/// Converts a line or column that counts from 0 to one that counts from 1. -1, which means unknown, becomes 0.
fn from_one(number: i64) -> u32 {
    u32::try_from(number.saturating_add(1)).unwrap_or(0)
}

/// Fills the fields while the text is parsed, so that what was read before an error is kept.
impl<'de> DeserializeSeed<'de> for &mut ProfileMembers<'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut ProfileMembers<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a .cpuprofile")
    }

    /// Reads the members of a profile that matter, in any order. An old profile has a tree (`head`) instead of nodes.
    /// The tree is converted after all members were read, because its times depend on other members. It is ignored in a
    /// file that has nodes, too.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut head = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "nodes" => map.next_value_seed(AppendTo(&mut self.nodes))?,
                "samples" => map.next_value_seed(AppendTo(&mut self.samples))?,
                "timeDeltas" => map.next_value_seed(AppendTo(&mut self.deltas))?,
                "startTime" => self.start = map.next_value::<f64>()?,
                "endTime" => self.end = map.next_value::<f64>()?,
                "timestamps" => map.next_value_seed(AppendTo(&mut self.timestamps))?,
                "head" => head = Some(map.next_value::<&RawValue>()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match head {
            Some(head) if self.nodes.is_empty() => self.take_head(head).map_err(A::Error::custom),
            _ => Ok(()),
        }
    }
}

/// Reads a JSON array into a list, element by element.
struct AppendTo<'l, T>(&'l mut Vec<T>);

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for AppendTo<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for AppendTo<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element()? {
            self.0.push(element);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::Keep;

    const NODES: &str = r#""nodes":[
        {"id":1,"callFrame":{"functionName":"(root)","url":"","lineNumber":-1},"children":[2,4]},
        {"id":2,"callFrame":{"functionName":"main","url":"file:///a.js","lineNumber":0},"hitCount":2,"children":[3]},
        {"id":3,"callFrame":{"functionName":"","url":"file:///a.js","lineNumber":6},"hitCount":1},
        {"id":4,"callFrame":{"functionName":"(idle)","url":"","lineNumber":-1},"hitCount":1}]"#;

    /// The rows, each with its frames (innermost first), weight and time; and the warnings.
    fn lines(text: &str) -> (Vec<String>, Vec<String>) {
        let mut warnings = Warnings::new();
        let profile = read(text.as_bytes(), &ReadOptions::default(), &mut warnings).unwrap();
        let mut lines = Vec::new();
        for row in &profile.series[0].rows {
            let mut frames = Vec::new();
            for id in profile.frames_up(row.stack) {
                let frame = profile.frame_of(id);
                frames.push(format!("{}:{}", String::from_utf8_lossy(profile.name_of(frame.name)), frame.start.line));
            }
            lines.push(format!("{} {} {:?}", frames.join("<"), row.weight, row.time.map(|time| time.0)));
        }
        (lines, warnings.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_sample_stands_for_the_time_until_the_next_one() {
        let text =
            format!("{{{NODES},\"startTime\":100,\"endTime\":200,\"samples\":[2,3,4],\"timeDeltas\":[10,20,30]}}");
        assert!(sniff(text.as_bytes()));
        let expected =
            ["main:1 20000 Some(110000)", "(anonymous):7<main:1 30000 Some(130000)", "(idle):0 40000 Some(160000)"];
        assert_eq!(lines(&text), (expected.map(str::to_owned).to_vec(), Vec::new()));
    }

    #[test]
    fn samples_out_of_order_are_put_in_order() {
        let text =
            format!("{{{NODES},\"startTime\":100,\"endTime\":200,\"samples\":[2,3,2],\"timeDeltas\":[50,-20,30]}}");
        let expected =
            ["(anonymous):7<main:1 20000 Some(130000)", "main:1 10000 Some(150000)", "main:1 40000 Some(160000)"];
        assert_eq!(lines(&text).0, expected);
    }

    #[test]
    fn without_samples_nodes_count_their_hits() {
        let expected = ["main:1 2 None", "(anonymous):7<main:1 1 None", "(idle):0 1 None"];
        assert_eq!(lines(&format!("{{{NODES}}}")).0, expected);
    }

    #[test]
    fn samples_without_times_count_one_each_where_nodes_count_none() {
        let nodes = r#""nodes":[{"id":1,"callFrame":{"functionName":"f"},"children":[2]},{"id":2,"callFrame":{"functionName":"g"}}]"#;
        let (rows, said) = lines(&format!("{{{nodes},\"startTime\":0,\"endTime\":9,\"samples\":[1,2,2]}}"));
        assert_eq!(rows, ["f:0 1 None", "g:0<f:0 1 None", "g:0<f:0 1 None"]);
        assert!(said[0].contains("3 samples but only 0 times"), "{said:?}");
    }

    #[test]
    fn a_profile_that_is_cut_off_keeps_what_is_there_and_reports_it() {
        let text = format!("{{{NODES},\"startTime\":100,\"endTime\":200,\"samples\":[2,3,");
        let (rows, said) = lines(&text);
        assert_eq!(rows, ["main:1 2 None", "(anonymous):7<main:1 1 None", "(idle):0 1 None"]);
        assert!(
            said[0].contains("cannot be read completely") && said[1].contains("2 samples but only 0 times"),
            "{said:?}"
        );
        let wrong = format!("{text}9],\"timeDeltas\":[1,2,3]}}");
        assert!(lines(&wrong).1[0].contains("sample 2 refers to node 9"), "{:?}", lines(&wrong).1);
    }

    /// The line of each row's innermost frame, and the row's weight.
    fn lines_and_weights(text: &str, keep: Keep) -> Vec<(u32, u64)> {
        let options = ReadOptions { keep, ..ReadOptions::default() };
        let profile = read(text.as_bytes(), &options, &mut Warnings::new()).unwrap();
        let line = |row: &Row| profile.frames_up(row.stack).next().map_or(0, |frame| profile.frame_of(frame).line);
        profile.series[0].rows.iter().map(|row| (line(row), row.weight)).collect()
    }

    #[test]
    fn lines_that_ran_are_given_out_in_order_and_what_has_none_is_unknown() {
        let nodes = r#""nodes":[{"id":1,"callFrame":{"functionName":"f","url":"a.js","lineNumber":5,"columnNumber":2},
            "hitCount":4,"positionTicks":[{"line":11,"ticks":2},{"line":14,"ticks":1}]}]"#;
        let timed = format!("{{{nodes},\"startTime\":0,\"endTime\":4,\"samples\":[1,1,1,1],\"timeDeltas\":[0,1,1,1]}}");
        let rows = [(11, 1000), (11, 1000), (14, 1000), (0, 1000)];
        assert_eq!(lines_and_weights(&timed, Keep::EachRow), rows);
        assert_eq!(lines_and_weights(&timed, Keep::Sums), [(11, 2000), (14, 1000), (0, 1000)]);
        assert_eq!(lines_and_weights(&format!("{{{nodes}}}"), Keep::Sums), [(11, 2), (14, 1), (0, 1)]);
    }

    #[test]
    fn lines_in_unusual_spellings_cost_no_samples() {
        for (ticks, expected) in [
            ("null", [(0, 4)].as_slice()),
            ("[]", &[(0, 4)]),
            (r#"[{"line":8.0,"ticks":3.0},{"line":9,"ticks":1}]"#, &[(8, 3), (9, 1)]),
            (r#"[{"line":-1,"ticks":1},{"line":8,"ticks":3}]"#, &[(0, 1), (8, 3)]),
            (r#"[{"line":8,"ticks":18446744073709551615}]"#, &[(8, 4)]),
            (r#"[{"line":8,"ticks":-2},{"ticks":1},{"line":9}]"#, &[(0, 1), (0, 3)]),
        ] {
            let text = format!(
                r#"{{"nodes":[{{"id":1,"callFrame":{{"functionName":"f","url":"a.js","lineNumber":5,"columnNumber":2}},
                "children":null,"hitCount":4,"positionTicks":{ticks}}}]}}"#
            );
            let mut rows = lines_and_weights(&text, Keep::EachRow);
            rows.sort_unstable();
            let mut sums: Vec<(u32, u64)> = Vec::new();
            for (line, weight) in rows {
                match sums.last_mut() {
                    Some(last) if last.0 == line => last.1 += weight,
                    _ => sums.push((line, weight)),
                }
            }
            let whole: u64 = expected.iter().map(|(_, weight)| weight).sum();
            assert_eq!(whole, 4);
            assert_eq!(sums.iter().map(|(_, weight)| weight).sum::<u64>(), whole, "{ticks}");
            let known = |rows: &[(u32, u64)]| rows.iter().copied().filter(|(line, _)| *line > 0).collect::<Vec<_>>();
            assert_eq!(known(&sums), known(expected), "{ticks}");
        }
    }

    #[test]
    fn an_old_profile_has_a_nested_tree_and_seconds() {
        let text = r#"{"head":{"functionName":"(root)","url":"","lineNumber":0,"callUID":1,"hitCount":0,"id":1,
            "children":[{"functionName":"main","scriptId":"7","url":"a.js","lineNumber":1,"columnNumber":1,"hitCount":1,
            "children":[{"functionName":"f \"children\":[","url":"a.js","lineNumber":7,"columnNumber":3,"hitCount":2,
            "children":[],"id":3,"positionTicks":[{"line":9,"ticks":2}]}],"id":2}]},
            "startTime":1.0,"endTime":1.0006,"samples":[2,3,3],"timestamps":[1000100,1000200,1000400]}"#;
        assert!(sniff(text.as_bytes()));
        let expected = [
            "main:1 100000 Some(1000100000)",
            "f \"children\":[:7<main:1 200000 Some(1000200000)",
            "f \"children\":[:7<main:1 200000 Some(1000400000)",
        ];
        assert_eq!(lines(text), (expected.map(str::to_owned).to_vec(), Vec::new()));
        assert_eq!(lines_and_weights(text, Keep::EachRow), [(0, 100_000), (9, 200_000), (9, 200_000)]);
    }

    #[test]
    fn an_old_tree_may_be_as_deep_as_it_likes() {
        let deep = 100_000;
        let open = (0..deep).map(|id| format!("{{\"id\":{id},\"functionName\":\"f\",\"hitCount\":1,\"children\":["));
        let text = format!("{{\"head\":{}{}}}", open.collect::<String>(), "]}".repeat(deep));
        let profile = read(text.as_bytes(), &ReadOptions::default(), &mut Warnings::new()).unwrap();
        assert_eq!(profile.stack_count(), deep);
    }

    #[test]
    fn a_node_that_is_its_own_ancestor_ends_somewhere() {
        let text = r#"{"nodes":[{"id":1,"callFrame":{"functionName":"a"},"hitCount":1,"children":[2]},
            {"id":2,"callFrame":{"functionName":"b"},"hitCount":1,"children":[1]}]}"#;
        assert_eq!(lines(text).0.len(), 2);
    }

    #[test]
    fn sums_need_no_rows_of_their_own() {
        let text = format!("{{{NODES},\"endTime\":9,\"samples\":[2,2,2],\"timeDeltas\":[1,1,1]}}");
        let options = ReadOptions { keep: Keep::Sums, ..ReadOptions::default() };
        let profile = read(text.as_bytes(), &options, &mut Warnings::new()).unwrap();
        let row = profile.series[0].rows[0];
        assert_eq!((profile.series[0].rows.len(), row.weight, row.count), (1, 8000, 3));
    }
}
