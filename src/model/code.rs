//! JIT code as a sequence of events, independent of the format that reports it: a jitdump, a perf map, or an ELF object
//! that was loaded at a known address.

use super::units::Addr;
use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

/// A piece of code that a runtime wrote to memory. Its name and bytes are borrowed from the file that reports the code.
#[derive(Debug, Clone, Copy)]
pub struct Code<'data> {
    /// The name that the runtime gave it, which needn't be UTF-8.
    pub name: &'data [u8],
    /// The address at which it was loaded. Code that moves has another address later.
    pub addr: Addr,
    /// The length of the code in bytes; can be 0.
    pub size: u64,
    /// The machine code (`size` bytes); `None` if the source has only names, like a perf map.
    pub bytes: Option<&'data [u8]>,
    /// Source lines, sorted by offset from the start of the code; empty if unknown.
    pub lines: Lines<'data>,
    /// Unwinding information; `None` if it is missing or empty.
    pub unwind: Option<Unwind<'data>>,
    /// The source that reported the code, such as a jitdump or perf map.
    pub origin: OriginId,
}

impl<'data> Code<'data> {
    /// Creates code without source lines and unwinding information.
    pub fn new(name: &'data [u8], addr: Addr, bytes: &'data [u8], origin: OriginId) -> Self {
        let (size, lines) = (bytes.len() as u64, Lines::default());
        Self { name, addr, size, bytes: Some(bytes), lines, unwind: None, origin }
    }
}

/// A source of code, such as a jitdump or perf map: an index into the code map's list of origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginId(pub u32);

/// The source lines of one piece of code, decoded only when needed: a jitdump may contain millions of entries that no
/// sample touches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lines<'data> {
    /// The undecoded entries as the source contains them; empty if there are none.
    pub raw: &'data [u8],
    /// Decodes the entries in `raw`. Each format provides its own decoder, so that the model doesn't depend on layouts.
    /// `None` if there are no lines, or if `positions` decodes them.
    pub decode: Option<for<'any> fn(&Lines<'any>) -> Vec<Line<'any>>>,
    /// The number of entries that the source's record states (`nr_entry` in a jitdump). `raw` may contain fewer.
    pub count: u64,
    /// What to subtract from an entry's address to get an offset into the code: the address of the code, plus the
    /// producer's bias (0x40 in V8).
    pub base: u64,
    /// The size of the code in bytes. Entries beyond its end are dropped.
    pub size: u64,
    /// True if the entries are big-endian.
    pub big_endian: bool,
    /// The code's name. Some producers garble file names, but repeat them in function names, so the decoder may look
    /// there.
    pub function: &'data [u8],
    /// Decodes `raw` instead of `decode`, for formats whose entries refer to other data in the file, such as a list of
    /// scripts.
    pub positions: Option<&'data dyn Positions>,
    /// Source maps for generated files; `None` if there are none.
    pub authored: Option<&'data dyn AuthoredLines>,
}

/// Maps positions in generated files (such as bundled JavaScript) to the files that people wrote.
pub trait AuthoredLines: Debug + Sync {
    /// The authored file, line and column for a position in a generated file; `None` if the file isn't known to be
    /// generated.
    fn position(&self, file: &[u8], line: u32, column: u32) -> Option<(&[u8], u32, u32)>;

    /// The authored name of an inlined function, in the same spelling as the generated name. Returns `name` itself if
    /// it is unchanged.
    fn function<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]>;
}

/// Decodes entries with source positions, for formats whose entries can't be decoded alone: they refer to data that all
/// code of the same file shares, such as a list of scripts.
pub trait Positions: Debug + Sync {
    /// The source lines and inlined calls in a piece of code's entries ([`Lines::raw`]).
    fn source_map<'a>(&'a self, raw: &'a [u8]) -> SourceMap<'a>;

    /// The inlined calls that a piece of code's entries list without saying where in the code they are. Empty if the
    /// format doesn't report such calls.
    fn expanded_calls(&self, _raw: &[u8]) -> Vec<ExpandedCall> {
        Vec::new()
    }
}

impl<'data> Lines<'data> {
    /// The source lines, sorted by offset. Entries outside the code are dropped.
    pub fn entries(&self) -> Vec<Line<'data>> {
        self.source_map().lines
    }

    /// Calls that the compiler inlined in this code, but for which the source states no addresses.
    pub fn expanded_calls(&self) -> Vec<ExpandedCall> {
        self.positions.map_or_else(Vec::new, |positions| positions.expanded_calls(self.raw))
    }

    /// The source lines and inlined calls, with authored positions where they are known. Calls are nested at most
    /// [`MOST_INLINED`] deep.
    pub fn source_map(&self) -> SourceMap<'data> {
        let generated = match (self.positions, self.decode) {
            (Some(positions), _) => positions.source_map(self.raw),
            (None, Some(decode)) => SourceMap { lines: decode(self), ..SourceMap::default() },
            (None, None) => SourceMap::default(),
        };
        let generated = generated.limit_depth();
        match self.authored {
            Some(authored) => generated.map_to_authored(authored),
            None => generated,
        }
    }
}

/// The maximum nesting of inlined calls. Compilers nest a few dozen, and every position produces one frame per level.
/// Lines in calls that are nested deeper count as lines of the call at this depth.
pub const MOST_INLINED: usize = 256;

/// Source lines and inlined calls of one piece of code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceMap<'data> {
    /// The source lines, sorted by offset.
    pub lines: Vec<Line<'data>>,
    /// Inlined calls, referred to by index ([`Line::inlined`], [`InlinedCall::parent`]).
    pub calls: Vec<InlinedCall<'data>>,
    /// How many lines were in calls nested deeper than [`MOST_INLINED`].
    pub too_deep: u64,
}

/// How an inlined call is nested in others.
#[derive(Debug, Clone, Copy)]
struct Nesting {
    /// 1 if no other call contains the call.
    depth: usize,
    /// If `depth` is more than [`MOST_INLINED`]: the index of the call at the depth [`MOST_INLINED`] + 1, which is this
    /// call itself or contains it. Has no meaning for calls at smaller depths, or for those that contain themselves.
    first_too_deep: usize,
}

/// The depth of a call that contains itself, directly or not.
const ENDLESS: usize = usize::MAX;

impl<'data> SourceMap<'data> {
    /// Makes all lines belong to calls at a depth of at most [`MOST_INLINED`]: if a line's call is deeper, the line
    /// moves to the enclosing call at that depth. Lines in calls that contain themselves move to the code's own
    /// function.
    fn limit_depth(mut self) -> Self {
        // With so few calls, none can be nested too deep. A call that contains itself does no harm either:
        // `calls_around` ends nevertheless.
        if self.calls.len() <= MOST_INLINED {
            return self;
        }
        let nestings = self.nestings();
        for line in &mut self.lines {
            let Some(call) = line.inlined else { continue };
            let call = call as usize;
            // In damaged data, a line may belong to a call that doesn't exist.
            if call >= self.calls.len() {
                continue;
            }
            let Nesting { depth, first_too_deep } = nestings[call];
            if depth == ENDLESS {
                line.inlined = None;
            } else if depth > MOST_INLINED {
                // The line moves to the call of the maximum depth around its own call. In that call, the position that
                // is executing is that of the call `first_too_deep`: its file, line and column. Lines have no field for
                // a column, but keep one in `discriminator` if there is one (see `Line`).
                let InlinedCall { file, line: number, column, parent, .. } = self.calls[first_too_deep];
                (line.file, line.line, line.discriminator, line.inlined) = (file, number, column, parent);
            } else {
                continue;
            }
            self.too_deep += 1;
        }
        self
    }

    /// How each call is nested in others, in the order of the calls.
    fn nestings(&self) -> Vec<Nesting> {
        // Real depths start at 1.
        const UNKNOWN: usize = 0;
        let new_nesting = |call| Nesting { depth: UNKNOWN, first_too_deep: call };
        let mut nestings: Vec<Nesting> = (0..self.calls.len()).map(new_nesting).collect();
        // The calls on the walk from `first` outwards, innermost first.
        let mut path = Vec::new();
        for first in 0..self.calls.len() {
            // Walk outwards to a call whose depth is known, then back.
            let mut next = Some(first);
            while let Some(call) = next
                && nestings[call].depth == UNKNOWN
            {
                // Mark the call as visited. If the walk outwards comes back to a call with this mark, the call contains
                // itself, and `ENDLESS` is the right depth for all calls on the walk. Otherwise the mark is replaced
                // by the depth on the way back.
                nestings[call].depth = ENDLESS;
                path.push(call);
                let parent = self.calls[call].parent.map(|parent| parent as usize);
                next = parent.filter(|parent| *parent < self.calls.len());
            }
            let mut nesting = match next {
                // The walk ended at a call whose depth is known. If that call is on the path itself, the depth is
                // `ENDLESS`.
                Some(known) => nestings[known],
                // The last call on the path is contained in no other.
                None => Nesting { depth: 0, first_too_deep: first },
            };
            while let Some(call) = path.pop() {
                // `ENDLESS` stays as it is: it is the largest number.
                nesting.depth = nesting.depth.saturating_add(1);
                // Calls that are deeper than `MOST_INLINED` + 1 keep the index of the call at that depth. For calls
                // that aren't too deep, the index doesn't matter.
                if nesting.depth <= MOST_INLINED + 1 {
                    nesting.first_too_deep = call;
                }
                nestings[call] = nesting;
            }
        }
        nestings
    }

    /// Replaces positions in generated files, such as bundled JavaScript, by positions in the files that people wrote.
    /// Also replaces the names of inlined functions by their authored names.
    fn map_to_authored(mut self, authored: &'data dyn AuthoredLines) -> Self {
        for line in &mut self.lines {
            // For generated code such as JavaScript, the discriminator is the column (see `Line`).
            if let Some((file, number, column)) = authored.position(line.file, line.line, line.discriminator) {
                (line.file, line.line, line.discriminator) = (file, number, column);
            }
        }
        for call in &mut self.calls {
            if let Some((file, number, column)) = authored.position(call.file, call.line, call.column) {
                (call.file, call.line, call.column) = (file, number, column);
            }
            if let Cow::Owned(name) = authored.function(&call.function) {
                call.function = Cow::Owned(name);
            }
        }
        self
    }

    /// The source line of the instruction at `offset` bytes from the start of the code; `None` before the first line.
    pub fn line_at(&self, offset: u64) -> Option<&Line<'data>> {
        self.lines[..self.lines.partition_point(|line| line.offset <= offset)].last()
    }

    /// The inlined calls around a line, innermost first.
    pub fn calls_around(&self, line: &Line<'data>) -> impl Iterator<Item = &InlinedCall<'data>> {
        // In damaged data, a call may contain itself. Don't loop forever.
        let mut remaining = self.calls.len();
        let mut next = line.inlined;
        std::iter::from_fn(move || {
            remaining = remaining.checked_sub(1)?;
            let call = self.calls.get(next? as usize)?;
            next = call.parent;
            Some(call)
        })
    }
}

/// A call that the compiler inlined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlinedCall<'data> {
    /// The inlined function's name, spelled as if the function had been compiled on its own.
    pub function: Cow<'data, [u8]>,
    /// The source file that contains the call.
    pub file: &'data [u8],
    /// The line that contains the call, from 1; 0 if unknown.
    pub line: u32,
    /// The column of the call, from 1; 0 if unknown.
    pub column: u32,
    /// The inlined call that contains this one (index into [`SourceMap::calls`]); `None` if the code's own function
    /// does.
    pub parent: Option<u32>,
}

/// A call that the compiler inlined, without a known address. The function is known to be part of the code, but never
/// becomes a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandedCall {
    /// The inlined function's name, spelled as if the function had been compiled on its own. Thousands of calls may
    /// share one copy of it.
    pub function: Arc<[u8]>,
    /// How many inlined calls this one is nested in. Calls are listed in preorder: a call comes right before those
    /// inlined into it.
    pub depth: u32,
    /// The bytecode index of the call in its caller.
    pub bytecode: u32,
}

/// A source position. It applies from its own `offset` up to the next position's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Line<'data> {
    /// The position's offset from the start of the code, in bytes.
    pub offset: u64,
    /// The source file as the runtime named it.
    pub file: &'data [u8],
    /// The line number, from 1; 0 if unknown.
    pub line: u32,
    /// The jitdump's `discrim` field: a column in some producers (V8), a discriminator in others.
    pub discriminator: u32,
    /// The innermost inlined call that the line belongs to (index into [`SourceMap::calls`]); `None` for the code's own
    /// function.
    pub inlined: Option<u32>,
}

/// Unwinding information as a jitdump contains it: `.eh_frame`, then `.eh_frame_hdr`, in the layout of perf and V8.
#[derive(Debug, Clone, Copy)]
pub struct Unwind<'data> {
    /// The `.eh_frame` section: CIEs and FDEs. Addresses in it assume that it directly follows the code, aligned to 8
    /// bytes.
    pub eh_frame: &'data [u8],
    /// The `.eh_frame_hdr` section.
    pub eh_frame_hdr: &'data [u8],
    /// How many bytes of both sections are mapped after the code in the process; 0 if they are in the jitdump only.
    pub mapped_size: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expanded_calls_are_distinguished_from_the_inside_and_end_even_if_they_run_in_a_circle() {
        let call = |function: &'static [u8], parent| InlinedCall {
            function: function.into(),
            file: b"",
            line: 0,
            column: 0,
            parent,
        };
        let calls =
            vec![call(&b"outer"[..], None), call(b"inner", Some(0)), call(b"round", Some(2)), call(b"lost", Some(9))];
        let line = |offset, inlined| Line { offset, inlined, ..Line::default() };
        let lines = vec![line(4, None), line(8, Some(1)), line(12, Some(2)), line(16, Some(3))];
        let map = SourceMap { lines, calls, too_deep: 0 };
        let around = |offset| {
            let calls = map.line_at(offset).into_iter().flat_map(|line| map.calls_around(line));
            calls.map(|call| String::from_utf8_lossy(&call.function).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(map.line_at(3), None);
        assert!(around(4).is_empty());
        assert_eq!(around(11), ["inner", "outer"]);
        assert_eq!(around(12).len(), 4);
        assert_eq!(around(99), ["lost"]);
    }

    #[test]
    fn calls_in_too_many_calls_count_for_the_outermost_of_these() {
        let (most, all) = (MOST_INLINED as u32, 100_000);
        let call = |at: u32| InlinedCall {
            function: Cow::Borrowed(&b"f"[..]),
            file: b"a.js",
            line: at,
            column: 0,
            parent: at.checked_sub(1),
        };
        let mut calls: Vec<_> = (0..all).map(call).collect();
        calls.extend([InlinedCall { parent: Some(all), ..call(all) }, InlinedCall { parent: Some(all), ..call(all) }]);
        let line = |inlined| Line { line: 7, inlined: Some(inlined), ..Line::default() };
        let lines = [0, most - 1, most, all - 1, all, all + 1, u32::MAX].map(line).to_vec();
        let map = SourceMap { lines, calls, too_deep: 0 }.limit_depth();
        let shown: Vec<_> = map.lines.iter().map(|line| (line.line, line.inlined)).collect();
        let outermost = (most, Some(most - 1));
        let lost = (7, Some(u32::MAX));
        assert_eq!(shown[..3], [(7, Some(0)), (7, Some(most - 1)), outermost]);
        assert_eq!(shown[3..], [outermost, (7, None), (7, None), lost]);
        assert_eq!(map.too_deep, 4);
    }
}
