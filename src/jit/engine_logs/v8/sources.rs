//! The scripts and functions of a V8 log, from which source lines and inlined calls are decoded. A script's text stays
//! in the log until one of its positions is requested.

use super::names::{spell_function, unescape, unit};
use super::positions::{InlinedEntry, Position, SourceInfo};
use super::records::{Creation, LogRecord};
use crate::jit::engine_logs::{LogPositions, TextId, Texts};
use crate::model::code::{InlinedCall, Line, SourceMap};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// V8's name for a script without a name.
const UNNAMED: &[u8] = b"<unknown>";

/// Our name for an inlined function that the log doesn't name.
const UNKNOWN: &[u8] = b"(unknown)";

/// All scripts and functions of a log.
#[derive(Debug, Default)]
pub(super) struct Sources {
    texts: Texts,
    scripts: Vec<Script>,
    functions: Vec<ScriptFunction>,
    /// At which address each function's SharedFunctionInfo was, and since when. Sorted by [`Self::finish`].
    homes: Vec<FunctionHome>,
    /// The function whose SharedFunctionInfo is currently at each address. Only used while the log is read.
    current_functions: FxHashMap<u64, u32>,
    /// The spelled names of inlined functions, by function and prefix. The prefix, such as `JS:*`, is that of the code
    /// into which the function was inlined.
    inlined_names: FxHashMap<(u32, TextId), TextId>,
}

#[derive(Debug)]
struct Script {
    /// V8's number for the script, which may be reused.
    id: u64,
    /// The time from which on the ID means this script.
    since: u64,
    name: TextId,
    /// The range of the script's text in the log.
    text: Range<usize>,
    /// Offsets of the starts of the script's lines, in UTF-16 units.
    lines: OnceLock<Box<[u32]>>,
}

#[derive(Debug, Clone, Copy)]
struct ScriptFunction {
    /// The function's name, without tag and mark of the tier.
    name: TextId,
    /// The tag of the function's code (`JS`), followed by `:`.
    tag: TextId,
    /// The ID of the script that contains the function; `None` if no record has stated it.
    script: Option<u64>,
}

/// States that from time `since` on, the SharedFunctionInfo at address `id` was that of `function`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FunctionHome {
    id: u64,
    since: u64,
    function: u32,
}

impl Sources {
    /// Returns the index of the function that code was created for. Adds the function if it is new. `None` if the
    /// record doesn't identify a function.
    pub(super) fn intern_function(&mut self, creation: &Creation<'_>, scratch: &mut Vec<u8>) -> Option<u32> {
        let id = creation.function?;
        scratch.clear();
        spell_function(creation.name, scratch);
        // The ID is an address, which another function may have by now. So the function that was last seen there is the
        // same only if its name is the same, too.
        if let Some(&current) = self.current_functions.get(&id)
            && self.texts.get(self.functions[current as usize].name) == scratch
        {
            return Some(current);
        }
        let name = self.texts.intern(scratch);
        let tag = self.texts.intern(&[creation.tag, b":"].concat());
        let function = u32::try_from(self.functions.len()).ok()?;
        self.functions.push(ScriptFunction { name, tag, script: None });
        // From this time on, the ID stands for the new function.
        self.add_home(FunctionHome { id, since: creation.time, function });
        Some(function)
    }

    fn add_home(&mut self, home: FunctionHome) {
        self.homes.push(home);
        self.current_functions.insert(home.id, home.function);
    }

    /// Records that a function's SharedFunctionInfo moved.
    pub(super) fn move_function(&mut self, from: u64, to: u64, time: u64) {
        if let Some(function) = self.current_functions.remove(&from) {
            self.add_home(FunctionHome { id: to, since: time, function });
        }
    }

    /// Records which script a function belongs to.
    pub(super) fn set_script(&mut self, function: u32, script: u64) {
        self.functions[function as usize].script = Some(script);
    }

    /// Records that a script's text is this range of the log.
    pub(super) fn add_script(&mut self, id: u64, since: u64, name: &[u8], text: Range<usize>) {
        let mut plain = Vec::with_capacity(name.len());
        if name != UNNAMED {
            unescape(name, &mut plain);
        }
        let name = self.texts.intern(&plain);
        self.scripts.push(Script { id, since, name, text, lines: OnceLock::new() });
    }

    /// Spells the names of the functions that are inlined into some code. They get the tag of that code and the mark of
    /// its tier, which together are the prefix of its name. So there is one spelling per function and prefix.
    pub(super) fn add_inlined(&mut self, info: &SourceInfo<'_>, creation: &Creation<'_>) {
        let prefix = self.texts.intern(&name_prefix(creation));
        let is_top_level = matches!(creation.tag, b"Script" | b"Eval");
        for id in info.functions() {
            // No code was logged for this function, so its name is unknown.
            let Some(&function) = self.current_functions.get(&id) else { continue };
            if self.inlined_names.contains_key(&(function, prefix)) {
                continue;
            }
            let ScriptFunction { name, tag, .. } = self.functions[function as usize];
            // A script's top-level code has a tag that functions don't have, so functions that are inlined into it keep
            // their own tags.
            let tag = if is_top_level { self.texts.get(tag).to_vec() } else { [creation.tag, b":"].concat() };
            let spelled = [&tag, creation.tier, self.texts.get(name)].concat();
            let spelled = self.texts.intern(&spelled);
            self.inlined_names.insert((function, prefix), spelled);
        }
    }

    /// Sorts everything for lookups, after the last record.
    pub(super) fn finish(mut self) -> Self {
        self.homes.sort_unstable();
        self.homes.shrink_to_fit();
        self.scripts.sort_by_key(|script| (script.id, script.since));
        self.current_functions = FxHashMap::default();
        self
    }

    /// The function whose SharedFunctionInfo was at address `id` at a time.
    fn find_function(&self, id: u64, time: u64) -> Option<u32> {
        let after = self.homes.partition_point(|home| (home.id, home.since) <= (id, time));
        self.homes[..after].last().filter(|home| home.id == id).map(|home| home.function)
    }

    /// The script that had this ID at a time.
    fn find_script(&self, id: u64, time: u64) -> Option<&Script> {
        let after = self.scripts.partition_point(|script| (script.id, script.since) <= (id, time));
        self.scripts[..after].last().filter(|script| script.id == id)
    }
}

/// The beginning of a code name: tag and tier, such as `JS:*`.
fn name_prefix(creation: &Creation<'_>) -> Vec<u8> {
    [creation.tag, b":", creation.tier].concat()
}

impl Script {
    /// Line and column of an offset in the script, both from 1.
    fn position(&self, file: &[u8], offset: u32) -> (u32, u32) {
        let lines = self.lines.get_or_init(|| line_starts(file.get(self.text.clone()).unwrap_or_default()));
        let line = lines.partition_point(|start| *start <= offset);
        let column = lines[..line].last().map_or(0, |start| offset - start);
        (u32::try_from(line).unwrap_or_default(), column.saturating_add(1))
    }
}

/// Offsets of the starts of lines in an escaped text, in UTF-16 units. Lines end as in JavaScript: with CR, LF, CR LF,
/// U+2028 or U+2029.
fn line_starts(text: &[u8]) -> Box<[u32]> {
    let mut starts = vec![0];
    // Offset of `rest` in UTF-16 units.
    let mut offset = 0u32;
    let mut rest = text;
    let mut last_unit = 0;
    while !rest.is_empty() {
        let UnitRun { first_unit, units, len } = next_run(rest);
        rest = &rest[len..];
        // A carriage return ends the line. If a line feed follows, the line ends after that instead (see below).
        if last_unit == u16::from(b'\r') && first_unit != u16::from(b'\n') {
            starts.push(offset);
        }
        offset = offset.saturating_add(units);
        if matches!(first_unit, 0x0a | 0x2028 | 0x2029) {
            starts.push(offset);
        }
        last_unit = first_unit;
    }
    starts.into_boxed_slice()
}

/// One escape, or a run of unescaped bytes.
struct UnitRun {
    /// The UTF-16 unit of an escape; 0 for unescaped bytes, none of which ends a line.
    first_unit: u16,
    /// Number of UTF-16 units.
    units: u32,
    /// Length in bytes.
    len: usize,
}

/// Measures what a text with escape sequences begins with: one such sequence, or all characters before the first one. The
/// text must not be empty.
fn next_run(text: &[u8]) -> UnitRun {
    if text[0] == b'\\' {
        let (first_unit, len) = unit(text);
        return UnitRun { first_unit, units: 1, len };
    }
    let len = memchr::memchr(b'\\', text).unwrap_or(text.len());
    // V8 escapes everything that is not ASCII. If some version doesn't, the text is UTF-8. Then each byte that doesn't
    // continue a character stands for one unit, and one that begins a character of four bytes for two.
    let mut units = 0;
    for byte in &text[..len] {
        units += u32::from(byte & 0xc0 != 0x80) + u32::from(*byte >= 0xf0);
    }
    // The first unit matters only if it ends a line. Line ends are always escaped.
    UnitRun { first_unit: 0, units, len }
}

impl LogPositions for Sources {
    fn source_map<'a>(&'a self, file: &'a [u8], entry: &'a [u8]) -> SourceMap<'a> {
        SourceMapDecoder::new(self, file, entry).map(|decoder| decoder.source_map()).unwrap_or_default()
    }
}

/// Decodes the source map of one code range.
struct SourceMapDecoder<'a> {
    sources: &'a Sources,
    file: &'a [u8],
    creation: Creation<'a>,
    info: SourceInfo<'a>,
    /// The script that contains the code's own function.
    script: Option<&'a Script>,
    inlined: Vec<InlinedEntry>,
    /// The function of each element of `inlined`, if known.
    functions: Vec<Option<u32>>,
    /// The script of each element of `inlined`, if known.
    scripts: Vec<Option<&'a Script>>,
}

impl<'a> SourceMapDecoder<'a> {
    /// Parses the records of a code range. `entry` is the part of the log from its `code-creation` record to the end of
    /// its `code-source-info` record. `None` if one of these two records is damaged.
    fn new(sources: &'a Sources, file: &'a [u8], entry: &'a [u8]) -> Option<Self> {
        let creation = LogRecord::parse(entry, 0)?.creation().ok()?;
        let last_line = memchr::memrchr(b'\n', entry)? + 1;
        let info = SourceInfo::parse(LogRecord::parse(entry, last_line)?.fields()).ok()?;
        let inlined: Vec<InlinedEntry> = info.inlined_calls().collect();
        // The functions that the `code-source-info` record lists. Inlined calls refer to them by index.
        let listed: Vec<Option<u32>> = info.functions().map(|id| sources.find_function(id, creation.time)).collect();
        // For each inlined call, the called function and its script.
        let (mut functions, mut scripts) = (Vec::new(), Vec::new());
        for call in &inlined {
            let function = call.function.and_then(|index| *listed.get(index as usize)?);
            let script = function.and_then(|function| sources.functions[function as usize].script);
            functions.push(function);
            scripts.push(script.and_then(|script| sources.find_script(script, creation.time)));
        }
        let script = sources.find_script(info.script, creation.time);
        Some(Self { sources, file, creation, info, script, inlined, functions, scripts })
    }

    /// Decodes the source lines and the inlined calls of a function.
    fn source_map(&self) -> SourceMap<'a> {
        let mut calls = Vec::with_capacity(self.inlined.len());
        for (call, function) in self.inlined.iter().zip(&self.functions) {
            let (file, line, column) = self.position(call.parent, call.call_offset);
            let function = self.function_name(*function).into();
            calls.push(InlinedCall { function, file, line, column, parent: call.parent });
        }
        let mut lines = Vec::new();
        for Position { code_offset, script_offset, inlined } in self.info.positions() {
            // The position is damaged: it is outside of the code, or refers to an inlined call that isn't listed.
            if code_offset > self.creation.size || inlined.is_some_and(|call| call as usize >= self.inlined.len()) {
                continue;
            }
            // As in V8's jitdumps, the column is stored as the discriminator.
            let (file, line, discriminator) = self.position(inlined, script_offset);
            lines.push(Line { offset: code_offset, file, line, discriminator, inlined });
        }
        lines.sort_by_key(|line| line.offset);
        SourceMap { lines, calls, too_deep: 0 }
    }

    /// The name of an inlined function, spelled like that of the function that contains it. [`UNKNOWN`] if the log has
    /// no code of the inlined function, and so no name.
    fn function_name(&self, function: Option<u32>) -> &'a [u8] {
        let texts = &self.sources.texts;
        if let Some(function) = function
            && let Some(prefix) = texts.find(&name_prefix(&self.creation))
            && let Some(spelled) = self.sources.inlined_names.get(&(function, prefix))
        {
            return texts.get(*spelled);
        }
        UNKNOWN
    }

    /// Converts an offset in a script to file, line and column. `inlined` is the index of an inlined call: the script
    /// is the one that contains the called function. If `inlined` is `None`, it is the script of the code's own
    /// function. An empty name and zeros if unknown.
    fn position(&self, inlined: Option<u32>, offset: Option<u32>) -> (&'a [u8], u32, u32) {
        let script = match inlined {
            Some(call) => self.scripts.get(call as usize).copied().flatten(),
            None => self.script,
        };
        let (Some(script), Some(offset)) = (script, offset) else { return (b"", 0, 0) };
        let name = self.sources.texts.get(script.name);
        if name.is_empty() {
            return (b"", 0, 0);
        }
        let (line, column) = script.position(self.file, offset);
        (name, line, column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_begin_where_javascript_has_them_begin_and_are_counted_in_utf_16_units() {
        let text = br"a\nb\x0D\nc\x0Dd\u2028\ud83d\ude00e\\n\x2C\x0D";
        assert_eq!(*line_starts(text), [0, 2, 5, 7, 9], "a, b, c, d, and the rest");
        assert_eq!(*line_starts("ü😀\\nx".as_bytes()), [0, 4], "should some version not escape");
        assert_eq!(*line_starts(b""), [0]);
    }
}
