//! Scripts and functions, from which source lines and inlined calls are decoded. A script's text stays in the log until
//! one of its positions is requested.

use super::names::{spell_function, unescape, unit};
use super::positions::{Inlined, SourceInfo};
use super::records::{Creation, LogRecord};
use crate::model::code::{InlinedCall, Line, SourceMap};
use crate::records::jit_logs::{LogPositions, TextId, Texts};
use rustc_hash::FxHashMap;
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
    /// Which function was at which address from when on. Sorted by [`Self::finish`].
    homes: Vec<Home>,
    /// The function currently at each address.
    current: FxHashMap<u64, u32>,
    /// The spelled name for each (inlined function, prefix of the name of the code that contains it, such as `JS:*`).
    inlined: FxHashMap<(u32, TextId), TextId>,
}

#[derive(Debug)]
struct Script {
    id: u64,
    since: u64,
    name: TextId,
    /// The range of its text in the log.
    text: (usize, usize),
    /// Offsets of the starts of its lines, in UTF-16 units.
    lines: OnceLock<Box<[u32]>>,
}

#[derive(Debug, Clone, Copy)]
struct ScriptFunction {
    /// The name without tag and mark.
    name: TextId,
    /// The tag of its code, followed by `:`.
    tag: TextId,
    script: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Home {
    id: u64,
    since: u64,
    function: u32,
}

impl Sources {
    /// The function that code was created for, added if it is new.
    pub(super) fn function(&mut self, creation: &Creation<'_>, scratch: &mut Vec<u8>) -> Option<u32> {
        let id = creation.function?;
        scratch.clear();
        spell_function(creation.name, scratch);
        if let Some(known) = self.current.get(&id)
            && self.texts.get(self.functions[*known as usize].name) == scratch
        {
            return Some(*known);
        }
        let name = self.texts.intern(scratch);
        let tag = self.texts.intern(&[creation.tag, b":"].concat());
        let function = u32::try_from(self.functions.len()).ok()?;
        self.functions.push(ScriptFunction { name, tag, script: None });
        self.is_at(id, creation.time, function);
        Some(function)
    }

    fn is_at(&mut self, id: u64, since: u64, function: u32) {
        self.homes.push(Home { id, since, function });
        self.current.insert(id, function);
    }

    /// Records that a function's SharedFunctionInfo moved.
    pub(super) fn moved(&mut self, from: u64, to: u64, time: u64) {
        if let Some(function) = self.current.remove(&from) {
            self.is_at(to, time, function);
        }
    }

    /// Records which script a function belongs to.
    pub(super) fn is_of(&mut self, function: u32, script: u64) {
        self.functions[function as usize].script = Some(script);
    }

    /// Records that a script's text is this range of the log.
    pub(super) fn script(&mut self, id: u64, since: u64, name: &[u8], text: (usize, usize)) {
        let mut plain = Vec::with_capacity(name.len());
        if name != UNNAMED {
            unescape(name, &mut plain);
        }
        let name = self.texts.intern(&plain);
        self.scripts.push(Script { id, since, name, text, lines: OnceLock::new() });
    }

    /// Records which functions are inlined into some code. Their names get the tag and mark of that code.
    pub(super) fn inlines(&mut self, info: &SourceInfo<'_>, creation: &Creation<'_>) {
        let prefix = self.texts.intern(&prefix(creation));
        for id in info.functions() {
            let Some(&function) = self.current.get(&id) else { continue };
            if self.inlined.contains_key(&(function, prefix)) {
                continue;
            }
            let ScriptFunction { name, tag, .. } = self.functions[function as usize];
            // A function inlined into a script's top-level code keeps its own tag.
            let outer = [b"Script", &b"Eval"[..]].contains(&creation.tag);
            let tag = if outer { self.texts.get(tag).to_vec() } else { [creation.tag, b":"].concat() };
            let spelled = [&tag, creation.tier, self.texts.get(name)].concat();
            let spelled = self.texts.intern(&spelled);
            self.inlined.insert((function, prefix), spelled);
        }
    }

    /// Sorts everything for lookups, after the last record.
    pub(super) fn finish(mut self) -> Self {
        self.homes.sort_unstable();
        self.homes.shrink_to_fit();
        self.scripts.sort_by_key(|script| (script.id, script.since));
        self.current = FxHashMap::default();
        self
    }

    fn function_at(&self, id: u64, time: u64) -> Option<u32> {
        let behind = self.homes.partition_point(|home| (home.id, home.since) <= (id, time));
        self.homes[..behind].last().filter(|home| home.id == id).map(|home| home.function)
    }

    fn script_of(&self, id: u64, time: u64) -> Option<&Script> {
        let behind = self.scripts.partition_point(|script| (script.id, script.since) <= (id, time));
        self.scripts[..behind].last().filter(|script| script.id == id)
    }
}

fn prefix(creation: &Creation<'_>) -> Vec<u8> {
    [creation.tag, b":", creation.tier].concat()
}

impl Script {
    /// Line and column of an offset in the script, both from 1.
    fn position(&self, file: &[u8], offset: u32) -> (u32, u32) {
        let (start, end) = self.text;
        let lines = self.lines.get_or_init(|| line_starts(file.get(start..end).unwrap_or_default()));
        let line = lines.partition_point(|start| *start <= offset);
        let column = lines[..line].last().map_or(0, |start| offset - start);
        (u32::try_from(line).unwrap_or_default(), column.saturating_add(1))
    }
}

/// Offsets of the starts of lines in an escaped text, in UTF-16 units. Line terminators are those of JavaScript.
fn line_starts(text: &[u8]) -> Box<[u32]> {
    let (mut starts, mut at, mut rest) = (vec![0], 0u32, text);
    let mut last = 0;
    while !rest.is_empty() {
        let (unit, len, units) = units(rest);
        rest = &rest[len..];
        // A line feed after a carriage return belongs to it.
        if last == u16::from(b'\r') && unit != u16::from(b'\n') {
            starts.push(at);
        }
        at = at.saturating_add(units);
        if matches!(unit, 0x0a | 0x2028 | 0x2029) {
            starts.push(at);
        }
        last = unit;
    }
    starts.into_boxed_slice()
}

/// The first UTF-16 unit of a text, its length in bytes, and how many units it stands for. Unescaped bytes are combined
/// to a run, whose unit is 0.
fn units(text: &[u8]) -> (u16, usize, u32) {
    if text[0] == b'\\' {
        let (unit, len) = unit(text);
        return (unit, len, 1);
    }
    let run = memchr::memchr(b'\\', text).unwrap_or(text.len());
    // V8 escapes everything that is not ASCII. If some version doesn't, the text is UTF-8.
    let units = text[..run].iter().map(|byte| u32::from(byte & 0xc0 != 0x80) + u32::from(*byte >= 0xf0)).sum();
    (0, run, units)
}

impl LogPositions for Sources {
    fn source_map<'a>(&'a self, file: &'a [u8], entry: &'a [u8]) -> SourceMap<'a> {
        let decoded = || {
            let creation = LogRecord::at(entry, 0)?.creation().ok()?;
            let last = memchr::memrchr(b'\n', entry)? + 1;
            let info = SourceInfo::parse(LogRecord::at(entry, last)?.fields()).ok()?;
            Some(Decoder { sources: self, file, creation, info }.source_map())
        };
        decoded().unwrap_or_default()
    }
}

struct Decoder<'a> {
    sources: &'a Sources,
    file: &'a [u8],
    creation: Creation<'a>,
    info: SourceInfo<'a>,
}

impl<'a> Decoder<'a> {
    fn source_map(&self) -> SourceMap<'a> {
        let inlined: Vec<Inlined> = self.info.inlined().collect();
        let functions: Vec<Option<u32>> =
            self.info.functions().map(|id| self.sources.function_at(id, self.creation.time)).collect();
        let function = |call: &Inlined| functions.get(call.function? as usize).copied().flatten();
        let scripts: Vec<Option<&Script>> = inlined.iter().map(|call| self.script(function(call))).collect();
        let own = self.sources.script_of(self.info.script, self.creation.time);
        let script_in = |inlined: Option<u32>| match inlined {
            Some(call) => scripts.get(call as usize).copied().flatten(),
            None => own,
        };
        let call = |call: &Inlined| {
            let (file, line, column) = self.place(script_in(call.parent), call.script);
            InlinedCall { function: self.name(function(call)).into(), file, line, column, parent: call.parent }
        };
        let is_known = |call: u32| (call as usize) < inlined.len();
        let inside = self
            .info
            .positions()
            .filter(|position| position.code <= self.creation.size && position.inlined.is_none_or(is_known));
        let line = |position: super::positions::Position| {
            let (file, line, discriminator) = self.place(script_in(position.inlined), position.script);
            Line { offset: position.code, file, line, discriminator, inlined: position.inlined }
        };
        let mut lines: Vec<Line<'a>> = inside.map(line).collect();
        lines.sort_by_key(|line| line.offset);
        SourceMap { lines, calls: inlined.iter().map(call).collect(), too_deep: 0 }
    }

    fn script(&self, function: Option<u32>) -> Option<&'a Script> {
        let script = self.sources.functions[function? as usize].script?;
        self.sources.script_of(script, self.creation.time)
    }

    fn name(&self, function: Option<u32>) -> &'a [u8] {
        let texts = &self.sources.texts;
        let spelled = function.and_then(|function| {
            let prefix = texts.find(&prefix(&self.creation))?;
            self.sources.inlined.get(&(function, prefix))
        });
        spelled.map_or(UNKNOWN, |id| texts.get(*id))
    }

    /// File, line and column of an offset; empty and 0 if unknown.
    fn place(&self, script: Option<&'a Script>, offset: Option<u32>) -> (&'a [u8], u32, u32) {
        let name = |script: &'a Script| Some(self.sources.texts.get(script.name)).filter(|name| !name.is_empty());
        let placed = script.zip(offset).and_then(|(script, offset)| Some((name(script)?, script, offset)));
        placed.map_or((b"", 0, 0), |(name, script, offset)| {
            let (line, column) = script.position(self.file, offset);
            (name, line, column)
        })
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
