//! Writes a profile as columns of numbers: functions, stacks of functions, threads, and the samples of each event.
//!
//! Frames that differ only in line or address count as one function here, because the page's code listings show
//! instructions and lines. An earlier profile to compare with shares the tables of functions, stacks and threads with
//! the profile that is shown, so its samples are just more rows.

use super::pack::Section;
use super::page_rows::{PageClock, PageNumbers, PageRows};
use crate::analysis::call_graph::CallGraph;
use crate::analysis::category::Category;
use crate::analysis::comparison::{CompareOptions, Comparison};
use crate::analysis::groups::{Grouping, Key, Unnamed, groups};
use crate::analysis::label;
use crate::analysis::quantity::{counted, grouped, row_word};
use crate::model::about::TimeExtent;
use crate::model::interner::Interner;
use crate::model::mapping_kind::base_name;
use crate::model::prefix_tree::PrefixTree;
use crate::model::printable::readable;
use crate::model::stacks::{
    Frame, FrameId, FunctionStart, NameId, Profile, Sampling, Series, ThreadCalls, Track, Weight,
};
use crate::render::palette;
use rustc_hash::FxHashMap;
use serde_json::json;

/// One of several recordings that a page shows together. A track states the number of its recording as `input`.
#[derive(Debug)]
pub struct PageRecording {
    /// The name of the file. It includes as many directories as needed to distinguish it from the other recordings.
    pub name: String,
    /// The path of the file.
    pub path: String,
    /// When the recording's first sample was taken and when the recording ended, on its own clock. `None` if a sample
    /// has no time.
    pub extent: Option<TimeExtent>,
}

impl PageRecording {
    fn json(&self) -> serde_json::Value {
        let time = self.extent.map(|extent| (extent.first.0.to_string(), extent.last.0.to_string()));
        let (start, last) = time.unzip();
        json!({ "name": self.name, "path": self.path, "start": start, "last": last })
    }
}

/// Makes the section `profile`: descriptions of events, threads and recordings, the tables of functions and stacks, and
/// the samples and stated calls of each event. If there is a baseline (an earlier profile to compare with), also makes
/// the section `baseline` with the baseline's samples of the same events. `recordings` is empty unless the page shows
/// several. `instructions` has, for each event and row, the number of the instruction in the listings, counted from 1;
/// 0 if the instruction is not listed.
pub fn sections(
    profile: &Profile,
    recordings: &[PageRecording],
    instructions: &[Vec<u32>],
    baseline: Option<&Profile>,
    compare: CompareOptions,
) -> Vec<Section> {
    let mut tables = PageTables { compares: baseline.is_some(), ..PageTables::default() };
    let profile_numbers = tables.add(profile);
    let baseline = baseline.map(|baseline| (baseline, tables.add(baseline)));
    // For each event, whether the input itself states which function called which, as callgrind files do.
    let is_stated: Vec<bool> =
        profile.series.iter().map(|series| CallGraph::from_series(profile, series).is_some()).collect();
    let sampled = PageRows::new(profile, &profile.series, instructions, &profile_numbers);
    let (summed, untimed) = (note_of_sums(&sampled), note_of_untimed(profile, &sampled));
    let notes = profile.about.notes.iter().chain(&summed).chain(&untimed).map(|note| readable(note.as_bytes()));
    let fields = [
        ("events", profile.series.iter().map(describe_event).collect()),
        ("calls", json!(is_stated)),
        ("notes", json!(notes.collect::<Vec<_>>())),
        ("truncation", json!(profile.about.truncation)),
        ("time", json!(sampled.clock.map(PageClock::json))),
        ("recordings", recordings.iter().map(PageRecording::json).collect()),
        ("categories", describe_categories().into()),
        ("categories_known", Category::are_known(profile).into()),
        ("baseline", baseline.is_some().into()),
        ("rows_have_durations", profile.rows_have_durations.into()),
        ("counted", counted_rows(profile).into()),
    ];
    let json = fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
    let mut section = tables.to_section().json_and_list(json, "tracks", tables.tracks.iter().map(describe_track));
    section = add_call_columns(section, profile, &is_stated, &profile_numbers);
    section = add_row_columns(section, &sampled);
    let mut sections = vec![section];
    if let Some((baseline, baseline_numbers)) = baseline {
        sections.push(baseline_section(profile, baseline, &baseline_numbers, compare));
    }
    sections
}

/// Makes the section `baseline`. It has the same events as the profile that is shown, in the same order, but with the
/// samples of the baseline; an event that the baseline lacks has no samples there. `numbers` are the indices of the
/// baseline's functions, stacks and threads in the page's tables.
fn baseline_section(profile: &Profile, baseline: &Profile, numbers: &PageNumbers, compare: CompareOptions) -> Section {
    let mut by_name: FxHashMap<&str, &Series> = FxHashMap::default();
    for series in &baseline.series {
        // If several events have the same name, the first one is compared.
        by_name.entry(&series.name).or_insert(series);
    }
    let mut events: Vec<Series> = Vec::with_capacity(profile.series.len());
    let mut evidence = Vec::with_capacity(profile.series.len());
    for after in &profile.series {
        let before = match by_name.get(after.name.as_str()) {
            Some(before) => (*before).clone(),
            None => clone_without_rows(after),
        };
        let comparison = Comparison::new(&before, after, Weight::Period, compare);
        // The weights of one sample (`one`) are those that the user stated, for the earlier and the later profile.
        evidence.push(json!({ "kind": comparison.evidence.word(), "one": comparison.sample_weights }));
        events.push(before);
    }
    // Instructions are only listed for the profile that is shown, so there are none for the baseline (`&[]`).
    let sampled = PageRows::new(baseline, &events, &[], numbers);
    let json = json!({
        "evidence": evidence,
        "events": events.iter().map(describe_event).collect::<Vec<_>>(),
        "time": sampled.clock.map(PageClock::json),
    });
    add_row_columns(Section::new("baseline").json(json), &sampled)
}

/// A copy of an event's description without its samples.
fn clone_without_rows(series: &Series) -> Series {
    let Series { name, unit, sampling, uncounted, counting, .. } = series;
    let (name, unit) = (name.clone(), unit.clone());
    Series { name, unit, sampling: *sampling, uncounted: *uncounted, counting: *counting, ..Series::default() }
}

/// The distinct functions, stacks and threads of all profiles in the page.
#[derive(Default)]
struct PageTables<'p> {
    texts: Interner<String, u32>,
    /// True if the page compares two profiles.
    compares: bool,
    /// For file names of modules (without the directory): the text number of the first path with that file name. Used
    /// only if two profiles are compared.
    modules: FxHashMap<Box<[u8]>, u32>,
    functions: Vec<PageFunction>,
    function_numbers: FxHashMap<PageFunctionKey, u32>,
    nodes: PrefixTree<u32>,
    tracks: Vec<&'p Track>,
    track_numbers: FxHashMap<&'p Track, u32>,
}

/// The key that identifies a function: name, module, start position and category. Texts are numbers in
/// [`PageTables::texts`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PageFunctionKey {
    name: u32,
    module: Option<u32>,
    /// The source file in which the function starts.
    file: Option<u32>,
    /// The line and column at which the function starts. (0, 0) if unknown; also if two profiles are compared.
    start: (u32, u32),
    category: Category,
}

struct PageFunction {
    key: PageFunctionKey,
    /// The source file that the page shows for the function: the one with most of the function's self weight.
    file: Option<u32>,
    /// The line that the page shows for the function, in that file.
    line: u32,
}

/// For each frame, the file and line that the page shows for its function: where most of the function's self weight is
/// in the first event, as in the tables of `report`.
fn find_frame_places(profile: &Profile) -> Vec<Option<(NameId, u32)>> {
    let grouping = Grouping::new(profile, &[Key::Module, Key::Function], Unnamed::ByModule);
    let groups = profile.series.first().map(|series| groups(profile, series, Weight::Period, &grouping));
    // Frames of the same function in the same module belong to one group. `grouping` numbers the groups; it calls these
    // numbers frame parts.
    let mut places = vec![None; grouping.frame_parts()];
    for group in groups.into_iter().flatten() {
        if let Some(number) = group.frame {
            places[number as usize] = group.place;
        }
    }
    grouping.frame_part_ids().iter().map(|number| places[*number as usize]).collect()
}

impl<'p> PageTables<'p> {
    /// Adds the functions, stacks and threads of a profile, unless the tables have them already. Returns for each of
    /// the profile's frames, stacks and tracks the number that it has in these tables.
    fn add(&mut self, profile: &'p Profile) -> PageNumbers {
        let first_new = self.functions.len();
        let categories_known = Category::are_known(profile);
        let mut functions: Vec<u32> = Vec::new();
        for (_, frame) in profile.frames() {
            functions.push(self.function(profile, frame, Category::for_table(frame, categories_known)));
        }
        self.find_places(profile, &functions, first_new);
        let mut nodes: Vec<u32> = Vec::with_capacity(profile.stack_count());
        for stack in 0..profile.stack_count() as u32 {
            let (parent, frame) = profile.stack_of(stack.into());
            let parent = parent.map(|parent| nodes[parent.index()]);
            nodes.push(self.nodes.child(parent, functions[frame.index()]));
        }
        let tracks = profile.tracks().iter().map(|track| self.track(track)).collect();
        PageNumbers { functions, nodes, tracks }
    }

    /// The number of a frame's function. Adds the function if it is new.
    fn function(&mut self, profile: &Profile, frame: &Frame, category: Category) -> u32 {
        let FunctionStart { file, line, column } = frame.start;
        let key = PageFunctionKey {
            name: self.texts.number(&*readable(label::function(profile, frame).as_bytes())),
            module: frame.module.map(|module| self.module(profile.name_of(module), frame)),
            file: file.map(|file| self.texts.number(&*readable(profile.name_of(file)))),
            // When comparing, ignore line and column of the start: they change if lines are added above the function.
            start: if self.compares { (0, 0) } else { (line, column) },
            category,
        };
        *self.function_numbers.entry(key).or_insert_with(|| {
            // The file and line to show are set by `find_places`.
            self.functions.push(PageFunction { key, file: None, line: 0 });
            self.functions.len() as u32 - 1
        })
    }

    /// For each function, the number that stands for it in all tiers: that of the first function with the same name,
    /// module and start.
    fn identities(&self) -> Vec<u64> {
        let mut firsts = FxHashMap::default();
        let numbered = (0_u64..).zip(&self.functions);
        let identities = numbered.map(|(number, function)| {
            let PageFunctionKey { name, module, file, start, .. } = function.key;
            *firsts.entry((name, module, file, start)).or_insert(number)
        });
        identities.collect()
    }

    /// Sets the file and line to show for the functions of a profile. `functions` has the function of each frame.
    /// Functions with numbers below `first_new` belong to a profile that was added before, and keep what they have.
    fn find_places(&mut self, profile: &Profile, functions: &[u32], first_new: usize) {
        for ((number, place), (_, frame)) in functions.iter().zip(find_frame_places(profile)).zip(profile.frames()) {
            // If the input states calls, show the function's start, as `report` does: such inputs state costs by line,
            // and the line with the highest cost says little about a function.
            let place = match frame.start.file {
                Some(file) if !profile.calls.is_empty() => Some((file, frame.start.line)),
                _ => place.or_else(|| profile.definition_of(frame)),
            };
            let Some((file, line)) = place else { continue };
            let function = &mut self.functions[*number as usize];
            if *number as usize >= first_new && function.file.is_none() {
                function.file = Some(self.texts.number(&*readable(profile.name_of(file))));
                function.line = line;
            }
        }
    }

    /// The text number of a module's path. When comparing, modules with the same file name get the same number, because
    /// a program may be in another directory now. All files with JIT code get one number, because their names contain
    /// the process ID.
    fn module(&mut self, path: &[u8], frame: &Frame) -> u32 {
        let text = readable(path);
        if !self.compares {
            return self.texts.number(&*text);
        }
        if frame.kind.is_jit() {
            return self.texts.number("[JIT]");
        }
        let base = base_name(path);
        *self.modules.entry(base.into()).or_insert_with(|| self.texts.number(&*text))
    }

    /// The number of a track. Adds the track if it is new.
    fn track(&mut self, track: &'p Track) -> u32 {
        *self.track_numbers.entry(track).or_insert_with(|| {
            self.tracks.push(track);
            self.tracks.len() as u32 - 1
        })
    }

    /// The section with the functions and stacks, in columns.
    fn to_section(&self) -> Section {
        let functions = || self.functions.iter();
        // For each node, how much smaller its parent's number is; 0 if it has no parent.
        let mut distances = Vec::with_capacity(self.nodes.len());
        for (number, (parent, _)) in (0u32..).zip(self.nodes.iter()) {
            distances.push(parent.map_or(0, |parent| u64::from(number - parent)));
        }
        Section::new("profile")
            .texts("texts", self.texts.items())
            .numbers("functions.name", functions().map(|function| function.key.name.into()))
            .numbers("functions.module", functions().map(|function| number_from_one(function.key.module)))
            // Functions that differ only in the tier have one identity.
            .numbers("functions.identity", self.identities())
            .numbers("functions.category", functions().map(|function| category_number(function.key.category)))
            .numbers("functions.file", functions().map(|function| number_from_one(function.file)))
            .numbers("functions.line", functions().map(|function| function.line.into()))
            .numbers("nodes.up", distances)
            .numbers("nodes.function", self.nodes.iter().map(|(_, function)| function.into()))
    }
}

/// Adds 1 to the number. `None` becomes 0.
fn number_from_one(number: Option<u32>) -> u64 {
    number.map_or(0, |number| u64::from(number) + 1)
}

/// The number that the page uses for a kind of code.
pub fn category_number(category: Category) -> u64 {
    Category::ALL.iter().position(|other| *other == category).unwrap_or(Category::ALL.len() - 1) as u64
}

/// Adds columns to a section: the calls that the input states for each event, and the threads that made these calls.
/// `is_stated` says for each event whether it has such calls.
fn add_call_columns(mut section: Section, profile: &Profile, is_stated: &[bool], numbers: &PageNumbers) -> Section {
    // A thread may have thousands of events, so index them by name.
    let mut event_indices: Vec<FxHashMap<&str, usize>> = Vec::new();
    for thread in &profile.calls {
        event_indices.push(thread.events.iter().enumerate().map(|(index, name)| (&name[..], index)).collect());
    }
    for (event, series) in profile.series.iter().enumerate() {
        if !is_stated[event] {
            continue;
        }
        let mut columns = CallColumns::default();
        for (thread, indices) in profile.calls.iter().zip(&event_indices) {
            if let Some(index) = indices.get(&series.name[..]) {
                columns.add(thread, *index, numbers);
            }
        }
        let name = |column: &str| format!("calls.{event}.{column}");
        section = section
            .numbers(name("function"), columns.functions)
            .numbers(name("self"), columns.self_costs)
            .numbers(name("functionTrack"), columns.function_tracks)
            .numbers(name("caller"), columns.callers)
            .numbers(name("callee"), columns.callees)
            .numbers(name("count"), columns.counts)
            .numbers(name("cost"), columns.costs)
            .numbers(name("track"), columns.tracks);
    }
    section
}

/// The columns for the calls of one event that the input states. The first three have an entry per thread and function,
/// the other five an entry per thread and pair of caller and callee.
#[derive(Default)]
struct CallColumns {
    functions: Vec<u64>,
    self_costs: Vec<u64>,
    function_tracks: Vec<u64>,
    callers: Vec<u64>,
    callees: Vec<u64>,
    counts: Vec<u64>,
    costs: Vec<u64>,
    tracks: Vec<u64>,
}

impl CallColumns {
    /// Adds the calls of a thread. `event` is the index of the event in the thread's lists of costs.
    fn add(&mut self, thread: &ThreadCalls, event: usize, numbers: &PageNumbers) {
        let function_number = |frame: FrameId| u64::from(numbers.functions[frame.index()]);
        let track = u64::from(numbers.tracks[thread.track.index()]);
        for function in &thread.functions {
            self.functions.push(function_number(function.function));
            self.self_costs.push(cost_of_event(&function.costs, event));
            self.function_tracks.push(track);
        }
        for calls in &thread.calls {
            self.callers.push(function_number(calls.caller));
            self.callees.push(function_number(calls.callee));
            self.counts.push(calls.count);
            self.costs.push(cost_of_event(&calls.costs, event));
            self.tracks.push(track);
        }
    }
}

/// An event's cost in a list of costs by event; 0 if the list is too short, or if the cost is negative.
fn cost_of_event(costs: &[i64], event: usize) -> u64 {
    costs.get(event).map_or(0, |cost| u64::try_from(*cost).unwrap_or(0))
}

/// Adds columns to a section: the samples of each event, in order of time. Instructions only have a column if some
/// samples have one, and times only if there is a clock.
fn add_row_columns(mut section: Section, rows: &PageRows<'_>) -> Section {
    for event in 0..rows.events() {
        section = section
            .deltas(format!("rows.{event}.node"), rows.rows(event).map(|row| row.node.into()))
            .numbers(format!("rows.{event}.track"), rows.rows(event).map(|row| row.track.into()))
            .numbers(format!("rows.{event}.weight"), rows.rows(event).map(|row| row.weight))
            .numbers(format!("rows.{event}.count"), rows.rows(event).map(|row| row.count));
        if rows.rows(event).any(|row| row.instruction > 0) {
            section =
                section.deltas(format!("rows.{event}.instruction"), rows.rows(event).map(|row| row.instruction.into()));
        }
        if rows.clock.is_some() {
            section = section.deltas(format!("rows.{event}.time"), rows.rows(event).map(|row| row.time));
        }
    }
    section
}

/// A note that says how many samples have no time. `None` if all samples have times, or if the page has no timeline.
fn note_of_untimed(profile: &Profile, rows: &PageRows<'_>) -> Option<String> {
    let all = profile.series.iter().flat_map(|series| &series.rows);
    let untimed = all.filter(|row| row.time.is_none()).fold(0u64, |sum, row| sum.saturating_add(row.count));
    (rows.clock.is_some() && untimed > 0).then(|| {
        format!("samples without a timestamp are shown at the end of the time axis ({})", counted(untimed, "sample"))
    })
}

/// A note that equal samples are summed, and in which time steps. `None` if they aren't summed.
fn note_of_sums(rows: &PageRows<'_>) -> Option<String> {
    let (samples, clock) = (rows.summed?, rows.clock?);
    Some(format!(
        "{} samples are summed by stack, thread and interval of {}; time ranges snap to these intervals",
        grouped(samples as u64),
        length_of(clock.unit())
    ))
}

/// Formats a duration that is 1, 2 or 5 times a power of ten.
fn length_of(nanos: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "\u{b5}s")];
    let (size, name) = units.into_iter().find(|(size, _)| nanos >= *size).unwrap_or((1, "ns"));
    format!("{} {name}", nanos / size)
}

/// The word that the page uses for a row of a profile: `sample`, `call` or `cost`.
fn counted_rows(profile: &Profile) -> &'static str {
    match profile.series.first().and_then(|series| row_word(profile, series)) {
        // The rows are exact costs of recorded calls, or there are no events.
        None => "cost",
        Some("span") => "call",
        Some(word) => word,
    }
}

/// The description of an event for the page.
fn describe_event(series: &Series) -> serde_json::Value {
    // An event that only counts, such as `page-faults`, is itself the unit.
    let unit = if series.unit.name() == "count" { series.name.as_str() } else { series.unit.name() };
    let sampling = series.sampling.map(|sampling| match sampling {
        Sampling::Period(period) => json!({ "period": period }),
        Sampling::Frequency(frequency) => json!({ "frequency": frequency }),
    });
    json!({ "name": readable(series.name.as_bytes()), "unit": readable(unit.as_bytes()), "sampling": sampling })
}

/// The description of a thread for the page.
fn describe_track(track: &&Track) -> serde_json::Value {
    json!({
        "comm": readable(&track.comm),
        "pid": track.pid.map(|pid| pid.0),
        "tid": track.tid.map(|tid| tid.0),
        "cpu": track.cpu,
        "input": track.input,
    })
}

/// Describes the kinds of code for the page, in the order of its legends. `name` includes the tier of JIT code, `kind`
/// doesn't. `letter` is part of the names of the CSS variables that have the kind's colors, such as `--code-LETTER`.
fn describe_categories() -> Vec<serde_json::Value> {
    let mut categories = Vec::new();
    for category in Category::ALL {
        let kind = category.without_tier().name();
        let letter = palette::letter(category).to_string();
        categories.push(json!({ "name": category.name(), "kind": kind, "letter": letter, "jit": category.is_jit() }));
    }
    categories
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::{FrameKind, Row};

    /// A profile with a single sample: the function `main` of `program` called the JIT function `jit`.
    fn profile(program: &str, jit: &str) -> Profile {
        let mut profile = Profile::new();
        let series = profile.series_named("e", crate::model::stacks::Unit::Samples);
        let track = profile.track(Track::default());
        let mut stack = None;
        for (name, module, kind) in [("main", program, FrameKind::User), ("hot", jit, FrameKind::Jit)] {
            let (name, module) = (profile.name(name.as_bytes()), Some(profile.name(module.as_bytes())));
            let frame = profile.frame(Frame { module, ..Frame::new(name, kind) });
            stack = Some(profile.stack(stack, frame));
        }
        profile.push(series, Row { track, stack, weight: 1, count: 1, time: None });
        profile
    }

    #[test]
    fn compared_profiles_have_the_same_functions_though_the_program_moved_and_ran_as_another_process() {
        let (after, before) = (profile("/usr/bin/php", "/tmp/perf-7.map"), profile("/old/bin/php", "/tmp/perf-1.map"));
        let mut tables = PageTables { compares: true, ..PageTables::default() };
        assert_eq!(tables.add(&after).nodes, tables.add(&before).nodes);
        assert_eq!(tables.texts.items(), ["main", "/usr/bin/php", "hot", "[JIT]"]);
    }

    #[test]
    fn one_profile_has_its_modules_as_they_are_called() {
        let profile = profile("/usr/bin/php", "/tmp/perf-7.map");
        let mut tables = PageTables::default();
        tables.add(&profile);
        assert_eq!(tables.texts.items(), ["main", "/usr/bin/php", "hot", "/tmp/perf-7.map"]);
    }

    /// A profile in which the function `f` has samples in these lines. Each line has the given weight, at each of two
    /// addresses.
    fn lines(lines: &[(u32, u64)]) -> Profile {
        let mut profile = Profile::new();
        let (name, file, track) = (profile.name(b"f"), profile.name(b"f.c"), profile.track(Track::default()));
        let series = profile.series_named("e", crate::model::stacks::Unit::Samples);
        for &(line, weight) in lines {
            for addr in [1, 2] {
                let frame = Frame { file: Some(file), line, addr: Some(addr), ..Frame::new(name, FrameKind::User) };
                let frame = profile.frame(frame);
                let stack = Some(profile.stack(None, frame));
                profile.push(series, Row { track, stack, weight, count: 1, time: None });
            }
        }
        profile
    }

    #[test]
    fn a_function_is_where_most_ends_in_it_and_what_is_compared_with_does_not_move_it() {
        let (after, before) = (lines(&[(7, 2), (5, 3), (3, 1)]), lines(&[(9, 99)]));
        let mut tables = PageTables { compares: true, ..PageTables::default() };
        tables.add(&after);
        tables.add(&before);
        let lines: Vec<u32> = tables.functions.iter().map(|function| function.line).collect();
        assert_eq!(lines, [5]);
    }
}
