//! Reads the Firefox Profiler's processed profiles, as saved by its page, samply and jitgraft.
//!
//! Tables are sets of columns, and refer to rows of other tables by index: a sample to a stack, a stack to its caller's
//! stack and a frame, a frame to a function, a function to a name and a resource, a resource to a library. In old files
//! each thread has its own tables; in newer ones they are in `shared`. Likewise, libraries moved from threads to the
//! file. Times are in milliseconds, either absolute or as differences from the previous sample.

use super::meta::os_of_platform;
use crate::analysis::category::Category;
use crate::analysis::named_frames::{NamedFrames, StatedFrame};
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::stacks::{Counting, FrameId, FrameKind, Profile, Row, StackId, Track, TrackId, Unit};
use crate::model::tier::Tier;
use crate::model::{Nanos, Pid, Tid};
use serde::Deserialize;

/// True if an input starts like a processed profile: a JSON object that states the version of that format.
pub fn sniff(head: &[u8]) -> bool {
    let Some(members) = head.trim_ascii_start().strip_prefix(b"{") else { return false };
    members.trim_ascii_start().starts_with(b"\"")
        && memchr::memmem::find(head, b"\"preprocessedProfileVersion\"").is_some()
}

/// A column of numbers. `None` stands for `null`.
pub(super) type Column = Vec<Option<f64>>;

#[derive(Deserialize)]
struct ReadFile {
    #[serde(default)]
    meta: ReadMeta,
    #[serde(default)]
    libs: Vec<Lib>,
    #[serde(default)]
    shared: ReadTables,
    threads: Vec<ReadThread>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ReadMeta {
    categories: Vec<NamedCategory>,
    platform: String,
}

#[derive(Deserialize)]
struct NamedCategory {
    name: String,
}

#[derive(Deserialize, Default, PartialEq)]
#[serde(default)]
struct Lib {
    name: String,
    path: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadThread {
    #[serde(default)]
    name: String,
    #[serde(default)]
    process_name: Option<String>,
    #[serde(default)]
    pid: ReadId,
    #[serde(default)]
    tid: ReadId,
    #[serde(default)]
    libs: Vec<Lib>,
    samples: ReadSamples,
    #[serde(default)]
    js_allocations: Option<ReadSamples>,
    /// Native allocations and deallocations.
    #[serde(default)]
    native_allocations: Option<ReadSamples>,
    #[serde(flatten)]
    tables: ReadTables,
}

/// The ID of a process or thread, as a number or text. A text has a suffix (`77.1`) if the ID was reused.
#[derive(Debug, Deserialize, Default)]
#[serde(untagged)]
pub(super) enum ReadId {
    #[default]
    None,
    Whole(f64),
    Text(String),
}

impl ReadId {
    /// The ID without a suffix; `None` if it is missing or isn't a number.
    pub(super) fn get(&self) -> Option<i32> {
        match self {
            Self::None => None,
            Self::Whole(number) => Some(*number as i32),
            Self::Text(text) => text.split('.').next()?.parse().ok(),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ReadSamples {
    stack: Column,
    time: Option<Column>,
    time_deltas: Option<Column>,
    weight: Option<Column>,
    weight_type: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ReadTables {
    string_array: Option<Vec<String>>,
    stack_table: Option<ReadStacks>,
    frame_table: Option<ReadFrames>,
    func_table: Option<ReadFunctions>,
    resource_table: Option<ReadResources>,
    native_symbols: Option<NativeSymbols>,
    sources: Option<ReadSources>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ReadStacks {
    frame: Column,
    prefix: Column,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ReadFrames {
    func: Column,
    address: Column,
    inline_depth: Column,
    category: Column,
    native_symbol: Column,
    line: Column,
    column: Column,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ReadFunctions {
    name: Column,
    #[serde(rename = "isJS")]
    is_js: Vec<bool>,
    resource: Column,
    file_name: Column,
    source: Column,
    line_number: Column,
    column_number: Column,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ReadResources {
    lib: Column,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct NativeSymbols {
    lib_index: Column,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ReadSources {
    filename: Column,
}

/// The index in a cell; `None` if the cell is `null`, missing or not a valid index.
pub(super) fn index_in(column: &[Option<f64>], row: usize) -> Option<usize> {
    let number = number_in(column, row)?;
    (number >= 0.0 && number < f64::from(u32::MAX)).then_some(number as usize)
}

/// The number in a cell; `None` if the cell is `null` or missing.
fn number_in(column: &[Option<f64>], row: usize) -> Option<f64> {
    column.get(row).copied().flatten()
}

/// Reads the samples and allocations of all threads.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let file: ReadFile = serde_json::from_slice(bytes)
        .map_err(|error| Error::new("is not a complete Firefox profile").because(error))?;
    let mut profile = Profile::empty(options.keep);
    if !file.meta.platform.is_empty() {
        profile.about.os = Some(os_of_platform(&file.meta.platform).into());
    }
    let shared_libs = file.shared_libs();
    let (mut named, mut skipped) = (NamedFrames::default(), Skipped::new("sample"));
    // The stacks in the tables that all threads share. They are read when the first thread without tables of its own
    // needs them.
    let mut shared_stacks: Option<Vec<Option<StackId>>> = None;
    for thread in &file.threads {
        let tables = ThreadTables::new(&file, thread, shared_libs, options);
        // Declared out here, so that it lives as long as `stacks`, which may borrow from it.
        let own_stacks;
        let stacks = if thread.tables.stack_table.is_some() {
            own_stacks = tables.stacks(&mut named, &mut profile);
            &own_stacks
        } else {
            &*shared_stacks.get_or_insert_with(|| tables.stacks(&mut named, &mut profile))
        };
        let track = profile.track(thread.track());
        thread.samples.push(None, stacks, track, &mut profile, &mut skipped);
        for (name, table) in
            [("js-allocations", &thread.js_allocations), ("native-allocations", &thread.native_allocations)]
        {
            if let Some(table) = table {
                table.push(Some(name), stacks, track, &mut profile, &mut skipped);
            }
        }
    }
    warnings.extend(skipped.into_warning());
    Ok(profile)
}

impl ReadFile {
    /// The libraries that shared tables refer to: the file's list or, if the file has none, the list that all threads
    /// have in common. Empty if the threads' lists differ, because it is unclear which thread's list is meant.
    fn shared_libs(&self) -> &[Lib] {
        let of_first = self.threads.first().map_or(&[][..], |thread| &thread.libs);
        if self.libs.is_empty() && self.threads.iter().all(|thread| thread.libs == of_first) {
            return of_first;
        }
        &self.libs
    }
}

impl ReadThread {
    /// The thread that the samples belong to. If the file states no name for it, it gets the name of its process.
    fn track(&self) -> Track {
        let process = self.process_name.as_deref().unwrap_or_default();
        let name = if self.name.is_empty() { process } else { &self.name };
        Track {
            comm: name.as_bytes().to_vec(),
            pid: self.pid.get().map(Pid),
            tid: self.tid.get().map(Tid),
            ..Track::default()
        }
    }
}

/// The tables that a thread's stacks refer to: its own, or else those that all threads share.
struct ThreadTables<'f> {
    categories: &'f [NamedCategory],
    libs: &'f [Lib],
    strings: &'f [String],
    stacks: Option<&'f ReadStacks>,
    frames: Option<&'f ReadFrames>,
    funcs: Option<&'f ReadFunctions>,
    resources: Option<&'f ReadResources>,
    symbols: Option<&'f NativeSymbols>,
    sources: Option<&'f ReadSources>,
    /// True if the caller needs columns of source positions ([`ReadOptions::columns`]).
    keep_columns: bool,
}

impl<'f> ThreadTables<'f> {
    /// Chooses each table for a thread: its own or, if it has none, the one that all threads of the file share.
    fn new(file: &'f ReadFile, thread: &'f ReadThread, shared_libs: &'f [Lib], options: &ReadOptions) -> Self {
        let (own, shared) = (&thread.tables, &file.shared);
        // A thread's own libraries are only meant for its own functions. Shared functions refer to shared libraries.
        let has_own_libs = own.func_table.is_some() && !thread.libs.is_empty();
        Self {
            categories: &file.meta.categories,
            libs: if has_own_libs { &thread.libs } else { shared_libs },
            strings: own.string_array.as_ref().or(shared.string_array.as_ref()).map_or(&[], Vec::as_slice),
            stacks: own.stack_table.as_ref().or(shared.stack_table.as_ref()),
            frames: own.frame_table.as_ref().or(shared.frame_table.as_ref()),
            funcs: own.func_table.as_ref().or(shared.func_table.as_ref()),
            resources: own.resource_table.as_ref().or(shared.resource_table.as_ref()),
            symbols: own.native_symbols.as_ref().or(shared.native_symbols.as_ref()),
            sources: own.sources.as_ref().or(shared.sources.as_ref()),
            keep_columns: options.columns,
        }
    }

    /// The stack for each row of the stack table; `None` if the row has no valid frame, or if its caller's row doesn't
    /// come before it.
    fn stacks(&self, named: &mut NamedFrames, profile: &mut Profile) -> Vec<Option<StackId>> {
        let frames = self.frames(named, profile);
        let Some(table) = self.stacks else { return Vec::new() };
        let mut stacks: Vec<Option<StackId>> = Vec::with_capacity(table.frame.len());
        for row in 0..table.frame.len() {
            stacks.push(stack(table, row, &frames, &stacks, profile));
        }
        stacks
    }

    /// The frame for each row of the frame table.
    fn frames(&self, named: &mut NamedFrames, profile: &mut Profile) -> Vec<FrameId> {
        let Some(table) = self.frames else { return Vec::new() };
        (0..table.func.len()).map(|row| named.frame(profile, self.stated_frame(table, row))).collect()
    }

    /// What the tables say about the frame in a row of the frame table.
    fn stated_frame(&self, table: &ReadFrames, row: usize) -> StatedFrame<'f> {
        let function_row = index_in(&table.func, row);
        let function = match (self.funcs, function_row) {
            (Some(functions), Some(row)) => self.function(functions, row),
            _ => FunctionRow::default(),
        };
        // The library is stated by the function's resource, otherwise by the frame's native symbol.
        let lib = function.lib.or_else(|| index_in(&self.symbols?.lib_index, index_in(&table.native_symbol, row)?));
        StatedFrame {
            function: self.string(function.name),
            module: lib.and_then(|lib| self.libs.get(lib)).map_or(&[], Lib::module),
            build: &[],
            file: self.string(function.file),
            line: small_number_in(&table.line, row),
            column: if self.keep_columns { small_number_in(&table.column, row) } else { 0 },
            start: function.start,
            // The format states files of functions, not of executed lines, so the function starts in `file`.
            is_start_unknown: false,
            // -1 means that the frame has no address.
            addr: number_in(&table.address, row).filter(|addr| *addr >= 0.0).map(|addr| addr as u64),
            kind: self.kind(table, row, function_row),
            tier: None,
        }
    }

    /// What the tables say about the function in a row of the function table.
    fn function(&self, table: &ReadFunctions, row: usize) -> FunctionRow {
        let lib = index_in(&table.resource, row).and_then(|resource| index_in(&self.resources?.lib, resource));
        let source_file = index_in(&table.source, row).and_then(|source| index_in(&self.sources?.filename, source));
        FunctionRow {
            name: index_in(&table.name, row),
            lib,
            file: source_file.or_else(|| index_in(&table.file_name, row)),
            start: (small_number_in(&table.line_number, row), small_number_in(&table.column_number, row)),
        }
    }

    /// The string with this index; empty if there is none.
    fn string(&self, index: Option<usize>) -> &'f [u8] {
        index.and_then(|index| self.strings.get(index)).map_or(&[], |text| text.as_bytes())
    }

    /// The kind of code; `None` if the file doesn't state it.
    fn kind(&self, table: &ReadFrames, row: usize, function_row: Option<usize>) -> Option<FrameKind> {
        if index_in(&table.inline_depth, row).is_some_and(|depth| depth > 0) {
            return Some(FrameKind::Inlined);
        }
        if let Some(category) = index_in(&table.category, row).and_then(|index| self.categories.get(index))
            && let Some(kind) = kind_of_category(&category.name)
        {
            return Some(kind);
        }
        let is_js = function_row.and_then(|row| self.funcs?.is_js.get(row).copied()).unwrap_or(false);
        if is_js { Some(FrameKind::Jit) } else { None }
    }
}

/// A row of the function table. Names and files are indices of strings.
#[derive(Default)]
struct FunctionRow {
    name: Option<usize>,
    lib: Option<usize>,
    file: Option<usize>,
    /// Line and column where the function starts; 0 if unknown.
    start: (u32, u32),
}

/// The stack for a row of the stack table. `stacks` has the stacks of the rows before it, among which its caller has to
/// be. `None` if the row, or its caller's row, refers to something that isn't there.
fn stack(
    table: &ReadStacks,
    row: usize,
    frames: &[FrameId],
    stacks: &[Option<StackId>],
    profile: &mut Profile,
) -> Option<StackId> {
    let frame_row = index_in(&table.frame, row)?;
    let frame = *frames.get(frame_row)?;
    // `null` instead of a caller: the frame is the outermost one.
    if number_in(&table.prefix, row).is_none() {
        return Some(profile.stack(None, frame));
    }
    let caller_row = index_in(&table.prefix, row)?;
    let caller = stacks.get(caller_row).copied().flatten()?;
    Some(profile.stack(Some(caller), frame))
}

/// The number in a cell, such as a line; 0 if the cell is `null`, missing or out of range.
fn small_number_in(column: &[Option<f64>], row: usize) -> u32 {
    index_in(column, row).and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}

/// The kind of code for the name of a category, if it is a name that only jitgraft uses; otherwise `None`, because the
/// categories of other tools describe what a thread is doing.
fn kind_of_category(name: &str) -> Option<FrameKind> {
    if Tier::from_name(&name.to_ascii_lowercase()).is_some() {
        return Some(FrameKind::Jit);
    }
    let category = Category::ALL.into_iter().find(|category| category.name().eq_ignore_ascii_case(name))?;
    // Other tools also have categories called like `Native` and `Unknown`, so these names don't tell the kind of code.
    (!matches!(category, Category::Native | Category::Unknown)).then(|| category.kind())
}

impl Lib {
    fn module(&self) -> &[u8] {
        if self.path.is_empty() { self.name.as_bytes() } else { self.path.as_bytes() }
    }
}

impl ReadSamples {
    /// Adds the samples of a thread to the event called `name`; without a name, to an event named after what the
    /// weights measure. `stacks` has the stack for each row of the stack table; `None` for damaged rows. Samples that
    /// refer to damaged rows are skipped and counted in `skipped`. Samples with `null` as their stack get the unknown
    /// stack.
    fn push(
        &self,
        name: Option<&str>,
        stacks: &[Option<StackId>],
        track: TrackId,
        profile: &mut Profile,
        skipped: &mut Skipped,
    ) {
        let (unit_name, unit, scale) = match self.weight_type.as_deref() {
            Some("tracing-ms") => ("time", Unit::Nanos, 1e6),
            Some("samples") | None => ("samples", Unit::Samples, 1.0),
            Some(unit) => (unit, Unit::Named(unit.to_owned()), 1.0),
        };
        let counts_samples = unit == Unit::Samples;
        let series = profile.series_named(name.unwrap_or(unit_name), unit);
        // Weights in another unit don't tell how many samples they stand for.
        if !counts_samples {
            profile.series[series].counting = Counting::Unknown;
        }
        let (mut millis, mut rounding_error) = (0.0, 0.0);
        for row in 0..self.stack.len() {
            // A time may be given as the difference from the previous one.
            millis = self.time(row, millis);
            let stack = match self.stack[row] {
                None => Some(profile.unknown_stack()),
                Some(number) => {
                    let stack = index_in(&self.stack, row).and_then(|index| stacks.get(index).copied().flatten());
                    if stack.is_none() {
                        skipped.add(Error::new(format!(
                            "sample {row} refers to stack {number}, which is not in the file"
                        )));
                        continue;
                    }
                    stack
                }
            };
            // Carry the rounding error of each sample over to the next one, so that the sum is right.
            let exact = self.weight(row) * scale + rounding_error;
            let rounded = exact.round();
            rounding_error = exact - rounded;
            let weight = rounded.abs() as u64;
            let count = if counts_samples { weight } else { 1 };
            let time = if self.has_times() { Some(Nanos((millis * 1e6).round() as u64)) } else { None };
            let row = Row { track, stack, weight, count, time };
            // Deallocations, for example, have negative weights.
            if rounded < 0.0 {
                profile.push_negative(series, row);
            } else {
                profile.push(series, row);
            }
        }
    }

    fn has_times(&self) -> bool {
        self.time.is_some() || self.time_deltas.is_some()
    }

    /// The time in milliseconds of the sample in this row. `before` is the previous sample's time, which is returned if
    /// the sample has none.
    fn time(&self, row: usize, before: f64) -> f64 {
        if let Some(time) = self.time.as_ref().and_then(|times| number_in(times, row)) {
            return time;
        }
        let delta = self.time_deltas.as_ref().and_then(|deltas| number_in(deltas, row));
        before + delta.unwrap_or(0.0)
    }

    /// The weight of the sample in this row: 1 if the table has no weights, 0 if only this one is missing.
    fn weight(&self, row: usize) -> f64 {
        self.weight.as_ref().map_or(1.0, |weights| number_in(weights, row).unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Warnings;

    fn lines(text: &str) -> (Vec<String>, Vec<String>) {
        assert!(sniff(text.as_bytes()), "{text}");
        let mut warnings = Warnings::new();
        let profile = read(text.as_bytes(), &ReadOptions::default(), &mut warnings).unwrap();
        let mut lines = Vec::new();
        for series in &profile.series {
            for row in &series.rows {
                let mut names = Vec::new();
                for id in profile.frames_up(row.stack) {
                    let frame = profile.frame_of(id);
                    let name = String::from_utf8_lossy(profile.name_of(frame.name));
                    let module = frame.module.map_or(&[][..], |module| profile.name_of(module));
                    names.push(format!("{name}@{}:{:?}", String::from_utf8_lossy(module), frame.kind));
                }
                let Track { comm, pid, tid, .. } = profile.track_of(row.track);
                let track = format!("{} {pid:?}/{tid:?}", String::from_utf8_lossy(comm));
                let time = row.time.map(|time| time.0);
                lines.push(format!("{} {track} {} {} {time:?}", series.name, names.join("<"), row.weight));
            }
        }
        (lines, warnings.iter().map(ToString::to_string).collect())
    }

    /// Files up to 2022: all tables are in the thread, and IDs are numbers.
    #[test]
    fn a_thread_may_have_its_own_tables() {
        let text = r#"{"meta":{"preprocessedProfileVersion":30,"interval":1},"threads":[{"name":"GeckoMain","pid":7,"tid":9,
            "libs":[{"name":"libxul.so","path":"/x/libxul.so"}],"stringArray":["main","f","0x1f","libxul.so"],
            "samples":{"length":3,"stack":[1,null,2],"time":[0.5,1.5,2],"weight":null,"weightType":"samples"},
            "stackTable":{"length":3,"frame":[0,1,2],"prefix":[null,0,0],"category":[0,0,0]},
            "frameTable":{"length":3,"func":[0,1,2],"address":[-1,16,31],"line":[null,3,null]},
            "funcTable":{"length":3,"name":[0,1,2],"isJS":[false,true,false],"resource":[-1,-1,0],"fileName":[null,null,null]},
            "resourceTable":{"length":1,"lib":[0],"name":[3],"host":[null],"type":[1]}}]}"#;
        let track = "samples GeckoMain Some(Pid(7))/Some(Tid(9))";
        let expected = [
            format!("{track} f@:Jit<main@:User 1 Some(500000)"),
            format!("{track} [unknown]@:Unknown 1 Some(1500000)"),
            format!("{track} [unknown]@/x/libxul.so:NativeUnnamed<main@:User 1 Some(2000000)"),
        ];
        assert_eq!(lines(text), (expected.to_vec(), Vec::new()));
    }

    /// Newer files: tables are shared, times are differences, and IDs are texts.
    #[test]
    fn threads_may_share_their_tables() {
        let text = r#"{"meta":{"preprocessedProfileVersion":58,"categories":[{"name":"Other"},{"name":"Kernel"}]},
            "libs":[{"name":"a","path":""}],
            "shared":{"stringArray":["main","g","read"],"stackTable":{"frame":[0,1,2],"prefix":[null,0,1]},
              "frameTable":{"func":[0,1,2],"inlineDepth":[0,1,0],"category":[0,0,1],"nativeSymbol":[0,0,null]},
              "funcTable":{"name":[0,1,2],"resource":[-1,-1,-1],"source":[null,null,null]},
              "nativeSymbols":{"libIndex":[0]}},
            "threads":[{"name":"","processName":"a","pid":"7.1","tid":"8","samples":{"stack":[2,9],"timeDeltas":[1,2],
                "weight":[1.4,1],"weightType":"tracing-ms"}},
              {"name":"b","pid":"7","tid":"9","samples":{"stack":[0],"weight":[3]}}]}"#;
        let (rows, said) = lines(text);
        let expected = [
            "time a Some(Pid(7))/Some(Tid(8)) read@:Kernel<g@a:Inlined<main@a:User 1400000 Some(1000000)",
            "samples b Some(Pid(7))/Some(Tid(9)) main@a:User 3 None",
        ];
        assert_eq!(rows, expected);
        assert!(said[0].contains("1 sample skipped: sample 1 refers to stack 9"), "{said:?}");
    }

    /// Threads of one process have the same libraries. If lists differ, no library is better than a wrong one.
    #[test]
    fn shared_tables_refer_to_the_libraries_of_the_file_or_of_all_threads() {
        let text = |file: &str, libs: [&str; 2]| {
            let threads = libs.map(|libs| format!(r#"{{"name":"t","libs":[{libs}],"samples":{{"stack":[0]}}}}"#));
            format!(
                r#"{{"meta":{{"preprocessedProfileVersion":60}},"libs":[{file}],
                "shared":{{"stringArray":["f"],"stackTable":{{"frame":[0],"prefix":[null]}},"frameTable":{{"func":[0]}},
                  "funcTable":{{"name":[0],"resource":[0]}},"resourceTable":{{"lib":[0]}}}},
                "threads":[{}]}}"#,
                threads.join(",")
            )
        };
        let (a, b) = (r#"{"name":"a"}"#, r#"{"name":"b"}"#);
        for (file, threads, modules) in [
            (a, ["", ""], ["f@a:", "f@a:"]),
            (a, [b, b], ["f@a:", "f@a:"]),
            ("", [b, b], ["f@b:", "f@b:"]),
            ("", [a, b], ["f@:", "f@:"]),
            ("", ["", b], ["f@:", "f@:"]),
        ] {
            let (rows, said) = lines(&text(file, threads));
            let is_expected = rows.iter().zip(modules).all(|(row, module)| row.contains(module));
            assert!(rows.len() == 2 && is_expected && said.is_empty(), "{rows:?} {said:?}");
        }
    }

    #[test]
    fn allocations_are_events_and_what_is_freed_is_below_zero() {
        let text = r#"{"meta":{"preprocessedProfileVersion":58},"shared":{"stringArray":["f"],
            "stackTable":{"frame":[0],"prefix":[null]},"frameTable":{"func":[0]},"funcTable":{"name":[0]}},
            "threads":[{"name":"a","samples":{"stack":[0]},
            "nativeAllocations":{"time":[1,2],"weight":[64,-24],"weightType":"bytes","stack":[0,0],"length":2}}]}"#;
        let profile = read(text.as_bytes(), &ReadOptions::default(), &mut Warnings::new()).unwrap();
        let series = &profile.series[1];
        assert_eq!((series.name.as_str(), series.unit.name()), ("native-allocations", "bytes"));
        let weights: Vec<i64> =
            series.signed_rows(crate::model::stacks::Weight::Period).map(|(_, weight)| weight).collect();
        assert_eq!(weights, [64, -24]);
    }

    #[test]
    fn a_stack_that_precedes_its_caller_is_none() {
        let text = r#"{"meta":{"preprocessedProfileVersion":58},"shared":{"stringArray":["f"],
            "stackTable":{"frame":[0,0],"prefix":[1,1]},"frameTable":{"func":[0]},"funcTable":{"name":[0]}},
            "threads":[{"name":"a","samples":{"stack":[0,1]}}]}"#;
        let (rows, said) = lines(text);
        assert!(rows.is_empty() && said[0].contains("2 samples skipped"), "{rows:?} {said:?}");
    }
}
