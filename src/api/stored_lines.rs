//! The source lines of a piece of JIT code, without borrowing from the file that they were read from.

use crate::model::code::{InlinedCall, Line, Lines, MOST_INLINED, Positions, SourceMap};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// A function that decodes the line entries of a source, such as a jitdump ([`Lines::decode`]).
type Decode = for<'any> fn(&Lines<'any>) -> Vec<Line<'any>>;

/// The source lines of a piece of code.
#[derive(Debug, Clone)]
pub(super) enum StoredLines {
    /// A copy of the entries in a jitdump. They are decoded when they are needed. See [`Lines`] for the fields.
    Encoded { raw: Box<[u8]>, decode: Decode, count: u64, base: u64, size: u64, big_endian: bool },
    /// Decoded lines and inlined calls, for sources whose entries can't be decoded without other data of the source.
    Decoded(OwnedSourceMap),
}

impl StoredLines {
    /// Copies the lines of a piece of code. `None` if there are none.
    pub(super) fn copy(lines: &Lines<'_>) -> Option<Self> {
        if lines.raw.is_empty() {
            return None;
        }
        // The encoded bytes are kept if the copy alone is enough to decode them later. If decoding needs a source map
        // or data shared by a whole file, which the copy can't keep, lines are decoded now.
        match lines.decode {
            Some(decode) if lines.positions.is_none() && lines.authored.is_none() => Some(Self::Encoded {
                raw: lines.raw.into(),
                decode,
                count: lines.count,
                base: lines.base,
                size: lines.size,
                big_endian: lines.big_endian,
            }),
            _ => Some(Self::Decoded(OwnedSourceMap::copy(&lines.source_map()))),
        }
    }

    /// The lines, borrowed from this copy. `function` is the code's name.
    pub(super) fn to_lines<'a>(&'a self, function: &'a [u8]) -> Lines<'a> {
        match self {
            Self::Encoded { raw, decode, count, base, size, big_endian } => Lines {
                raw,
                decode: Some(*decode),
                count: *count,
                base: *base,
                size: *size,
                big_endian: *big_endian,
                function,
                ..Lines::default()
            },
            // `positions` has the lines. But `raw` must not be empty, because that would mean that there are no lines.
            Self::Decoded(source) => Lines { raw: b"decoded", positions: Some(source), function, ..Lines::default() },
        }
    }
}

/// A function at an offset in a piece of code.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedCall<'a> {
    /// The name of an inlined function; `None` for the function that was compiled.
    pub(super) inlined: Option<&'a [u8]>,
    /// The source file; empty if unknown.
    pub(super) file: &'a [u8],
    /// The line; 0 if unknown.
    pub(super) line: u32,
}

impl StoredLines {
    /// The functions at an offset in the code: inlined calls, from the innermost outwards, then the function that was
    /// compiled. Empty if no line is known there.
    pub(super) fn calls_at<'a>(&'a self, function: &'a [u8], offset: u64) -> Vec<PlacedCall<'a>> {
        let source = match self {
            Self::Decoded(source) => return source.calls_at(offset),
            Self::Encoded { .. } => self.to_lines(function).source_map(),
        };
        let line = source.line_at(offset);
        line.map(|line| PlacedCall { inlined: None, file: line.file, line: line.line }).into_iter().collect()
    }
}

/// The lines and inlined calls of a piece of code: a [`SourceMap`] that owns its texts.
#[derive(Debug, Clone)]
pub(super) struct OwnedSourceMap {
    /// Names of files and functions.
    texts: Vec<Box<[u8]>>,
    /// The lines, sorted by offset.
    lines: Vec<OwnedLine>,
    /// The inlined calls.
    calls: Vec<OwnedCall>,
}

/// A [`Line`], the source position of the code from an offset on, with the file as an index in
/// [`OwnedSourceMap::texts`].
#[derive(Debug, Clone, Copy)]
struct OwnedLine {
    offset: u64,
    /// The index of the file's name in the texts.
    file: u32,
    line: u32,
    column: u32,
    /// The index of the innermost inlined call that the line belongs to; `None` if it belongs to the compiled function.
    inlined: Option<u32>,
}

/// An [`InlinedCall`] with function and file as indices in [`OwnedSourceMap::texts`].
#[derive(Debug, Clone, Copy)]
struct OwnedCall {
    /// The index of the function's name in the texts.
    function: u32,
    /// The index of the file's name in the texts.
    file: u32,
    line: u32,
    column: u32,
    /// The index of the call into which this one was inlined; `None` if that is the compiled function.
    parent: Option<u32>,
}

impl OwnedSourceMap {
    /// Copies a source map. Each text is stored once.
    fn copy(source: &SourceMap<'_>) -> Self {
        let mut copy = Self { texts: Vec::new(), lines: Vec::new(), calls: Vec::new() };
        let mut numbers: FxHashMap<&[u8], u32> = FxHashMap::default();
        for line in &source.lines {
            let Line { offset, file, line, discriminator: column, inlined } = *line;
            let file = intern(file, &mut numbers, &mut copy.texts);
            copy.lines.push(OwnedLine { offset, file, line, column, inlined });
        }
        for call in &source.calls {
            let InlinedCall { ref function, file, line, column, parent } = *call;
            let function = intern(function, &mut numbers, &mut copy.texts);
            let file = intern(file, &mut numbers, &mut copy.texts);
            copy.calls.push(OwnedCall { function, file, line, column, parent });
        }
        copy
    }

    fn text(&self, index: u32) -> &[u8] {
        &self.texts[index as usize]
    }

    /// The functions at an offset in the code: inlined calls, from the innermost outwards, then the function that was
    /// compiled. Empty if no line is known there.
    fn calls_at(&self, offset: u64) -> Vec<PlacedCall<'_>> {
        let after = self.lines.partition_point(|line| line.offset <= offset);
        let Some(line) = self.lines[..after].last() else { return Vec::new() };
        let mut calls = Vec::new();
        // The executed line belongs to the innermost function. In the function around it, the line is that of the call,
        // and so on.
        let (mut file, mut line_number, mut next_call) = (line.file, line.line, line.inlined);
        // In damaged data, a call may contain itself, so their number is limited.
        while let Some(call) = next_call.and_then(|call| self.calls.get(call as usize))
            && calls.len() < MOST_INLINED
        {
            let inlined = Some(self.text(call.function));
            calls.push(PlacedCall { inlined, file: self.text(file), line: line_number });
            (file, line_number, next_call) = (call.file, call.line, call.parent);
        }
        calls.push(PlacedCall { inlined: None, file: self.text(file), line: line_number });
        calls
    }
}

/// The index of a text in `texts`. Adds the text if it is new.
fn intern<'t>(text: &'t [u8], numbers: &mut FxHashMap<&'t [u8], u32>, texts: &mut Vec<Box<[u8]>>) -> u32 {
    *numbers.entry(text).or_insert_with(|| {
        texts.push(text.into());
        texts.len() as u32 - 1
    })
}

impl Positions for OwnedSourceMap {
    fn source_map<'a>(&'a self, _raw: &'a [u8]) -> SourceMap<'a> {
        let mut source = SourceMap::default();
        for &OwnedLine { offset, file, line, column, inlined } in &self.lines {
            source.lines.push(Line { offset, file: self.text(file), line, discriminator: column, inlined });
        }
        for &OwnedCall { function, file, line, column, parent } in &self.calls {
            let (function, file) = (Cow::Borrowed(self.text(function)), self.text(file));
            source.calls.push(InlinedCall { function, file, line, column, parent });
        }
        source
    }
}
