//! JIT code as neutral events: what a jitdump, a perf map or a placed ELF object state, without their layouts.

use super::units::{Addr, Nanos, Pid, Tid};
use std::borrow::Cow;
use std::fmt::Debug;

/// One code range that a runtime wrote into memory. Everything borrows from the mapped dump.
#[derive(Debug, Clone, Copy)]
pub struct Code<'data> {
    /// The name as the runtime gave it; need not be UTF-8.
    pub name: &'data [u8],
    /// The address of the code when it was logged. A moved piece lives elsewhere later.
    pub addr: Addr,
    /// Length in bytes; can be 0.
    pub size: u64,
    /// The machine code, `size` bytes; `None` where the source has only names (perf map).
    pub bytes: Option<&'data [u8]>,
    /// Source lines, sorted by offset from the start of the code; empty if unknown.
    pub lines: Lines<'data>,
    /// Unwinding information; `None` if the dump has none, or an empty one.
    pub unwind: Option<Unwind<'data>>,
    /// The source that said so: an index into the code map's list of origins.
    pub origin: OriginId,
}

impl<'data> Code<'data> {
    /// A piece of machine code without lines and unwinding information.
    pub fn new(name: &'data [u8], addr: Addr, bytes: &'data [u8], origin: OriginId) -> Self {
        let (size, lines) = (bytes.len() as u64, Lines::default());
        Self { name, addr, size, bytes: Some(bytes), lines, unwind: None, origin }
    }
}

/// The dump or map that a code range comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginId(pub u32);

/// Line entries of one code range, decoded when asked for: a dump may hold millions that no sample touches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lines<'data> {
    /// The entries as they are in the dump; empty if absent.
    pub raw: &'data [u8],
    /// Decodes them. A format puts its own decoder here, so that the model has no layout.
    pub decode: Option<for<'any> fn(&Lines<'any>) -> Vec<Line<'any>>>,
    /// The number of entries that the dump claims.
    pub count: u64,
    /// The address to subtract from an entry's to get the offset from the start of the code: the code's address,
    /// plus the producer's bias (V8: 0x40).
    pub base: u64,
    /// The size of the code: entries beyond it are nonsense.
    pub size: u64,
    /// True if the producer's byte order is big endian.
    pub big_endian: bool,
    /// The code's name: some producers damage the names of files, and have them in those of functions, too.
    pub function: &'data [u8],
    /// Reports instead of `decode`, where more than the entries is needed.
    pub positions: Option<&'data dyn Positions>,
    /// If the files of these lines were generated, the lines that their authors wrote.
    pub authored: Option<&'data dyn AuthoredLines>,
}

/// Positions in generated files → positions in the files that their authors wrote.
pub trait AuthoredLines: Debug + Sync {
    /// File, line and column of a generated position; `None` if the file isn't known to be generated.
    fn position(&self, file: &[u8], line: u32, column: u32) -> Option<(&[u8], u32, u32)>;

    /// The authored name of an inlined function, spelled like the generated one.
    fn function<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]>;
}

/// Reports what the raw entries of one code range state, by what its source gives once for all code.
pub trait Positions: Debug + Sync {
    /// Lines and inlined calls of the code that has these entries ([`Lines::raw`]).
    fn source_map<'a>(&'a self, raw: &'a [u8]) -> SourceMap<'a>;

    /// The calls that the compiler expanded, where the entries report them without their addresses.
    fn expanded(&self, _raw: &[u8]) -> Vec<ExpandedCall> {
        Vec::new()
    }
}

impl<'data> Lines<'data> {
    /// The entries, sorted by offset; those outside the code are left out.
    pub fn entries(&self) -> Vec<Line<'data>> {
        self.source_map().lines
    }

    /// The calls that the compiler expanded at unknown addresses.
    pub fn expanded(&self) -> Vec<ExpandedCall> {
        self.positions.map_or_else(Vec::new, |positions| positions.expanded(self.raw))
    }

    /// The entries, and the calls that were expanded.
    pub fn source_map(&self) -> SourceMap<'data> {
        let generated = match (self.positions, self.decode) {
            (Some(positions), _) => positions.source_map(self.raw),
            (None, Some(decode)) => SourceMap { lines: decode(self), ..SourceMap::default() },
            (None, None) => SourceMap::default(),
        };
        let generated = generated.limit_depth();
        match self.authored {
            Some(authored) => generated.authored(authored),
            None => generated,
        }
    }
}

/// Inlined calls in more calls than these are left out: they count for the call around them, as all do where inlined
/// calls are not shown. Compilers nest a few dozen; each position has all of its calls as frames.
pub const MOST_INLINED: usize = 256;

/// The source lines of one code range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceMap<'data> {
    /// Sorted by offset.
    pub lines: Vec<Line<'data>>,
    /// The calls that the compiler expanded.
    pub calls: Vec<InlinedCall<'data>>,
    /// The number of lines that were in more than [`MOST_INLINED`] of them.
    pub too_deep: u64,
}

/// The depth of a call that is in itself.
const ENDLESS: usize = usize::MAX;

impl<'data> SourceMap<'data> {
    /// The same, with lines that are in too many calls where the outermost [`MOST_INLINED`] of these lead.
    fn limit_depth(mut self) -> Self {
        if self.calls.len() <= MOST_INLINED {
            return self;
        }
        let (depths, outermost) = self.depths();
        for line in &mut self.lines {
            let Some(call) = line.inlined.map(|call| call as usize).filter(|call| *call < self.calls.len()) else {
                continue;
            };
            if depths[call] == ENDLESS {
                line.inlined = None;
            } else if depths[call] > MOST_INLINED {
                let InlinedCall { file, line: number, column, parent, .. } = self.calls[outermost[call]];
                (line.file, line.line, line.discriminator, line.inlined) = (file, number, column, parent);
            } else {
                continue;
            }
            self.too_deep += 1;
        }
        self
    }

    /// The number of calls that each call is in, with itself, and of those that are too deep, the outermost one around it
    /// that is.
    fn depths(&self) -> (Vec<usize>, Vec<usize>) {
        const UNKNOWN: usize = 0;
        let mut depths = vec![UNKNOWN; self.calls.len()];
        let mut outermost: Vec<usize> = (0..self.calls.len()).collect();
        let mut path = Vec::new();
        for call in 0..self.calls.len() {
            let mut at = Some(call);
            while let Some(call) = at
                && depths[call] == UNKNOWN
            {
                // If it is come to again before it is known, it is in itself.
                depths[call] = ENDLESS;
                path.push(call);
                let parent = self.calls[call].parent.map(|parent| parent as usize);
                at = parent.filter(|parent| *parent < self.calls.len());
            }
            let (mut depth, mut around) = at.map_or((0, call), |call| (depths[call], outermost[call]));
            while let Some(call) = path.pop() {
                depth = depth.saturating_add(1);
                if depth <= MOST_INLINED + 1 {
                    around = call;
                }
                (depths[call], outermost[call]) = (depth, around);
            }
        }
        (depths, outermost)
    }

    /// The same, with lines written by people.
    fn authored(mut self, authored: &'data dyn AuthoredLines) -> Self {
        for line in &mut self.lines {
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

    /// The position of the byte at `offset`.
    pub fn at(&self, offset: u64) -> Option<&Line<'data>> {
        self.lines[..self.lines.partition_point(|line| line.offset <= offset)].last()
    }

    /// The expanded calls around a position, innermost first.
    pub fn calls_around(&self, line: &Line<'data>) -> impl Iterator<Item = &InlinedCall<'data>> {
        // In damaged entries a call may be inside of itself.
        let mut left = self.calls.len();
        let mut next = line.inlined;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let call = self.calls.get(next? as usize)?;
            next = call.parent;
            Some(call)
        })
    }
}

/// A call that the compiler expanded into its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlinedCall<'data> {
    /// The called function, spelled as if it were code of its own.
    pub function: Cow<'data, [u8]>,
    /// The file of the caller.
    pub file: &'data [u8],
    /// The line of the call in it, counted from 1; 0 is unknown.
    pub line: u32,
    /// The column of the call, from 1; 0 is unknown.
    pub column: u32,
    /// The expanded call ([`SourceMap::calls`]) that this one is in; `None` if it is in the code's own function.
    pub parent: Option<u32>,
}

/// A call that the compiler expanded at unknown addresses: it can be determined of the code, and never is a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandedCall {
    /// The called function, spelled as if it were code of its own.
    pub function: Vec<u8>,
    /// The number of expanded calls that it is in. Its caller precedes it.
    pub depth: u32,
    /// The call's place in its caller: index into the caller's bytecode.
    pub bytecode: u32,
}

/// A source position from `offset` on, up to the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Line<'data> {
    /// Bytes from the start of the code.
    pub offset: u64,
    /// The file as the runtime named it.
    pub file: &'data [u8],
    /// Counted from 1; 0 is unknown.
    pub line: u32,
    /// The jitdump's `discrim`: a column in some producers (V8), a discriminator in others.
    pub discriminator: u32,
    /// The innermost expanded call ([`SourceMap::calls`]) that it is in; `None` in the code's own function.
    pub inlined: Option<u32>,
}

/// Unwinding information as the dump has it: `.eh_frame`, then `.eh_frame_hdr`, as perf and V8 lay them out.
#[derive(Debug, Clone, Copy)]
pub struct Unwind<'data> {
    /// The `.eh_frame` bytes: CIEs and FDEs relative to their place directly behind the code, aligned to 8.
    pub eh_frame: &'data [u8],
    /// The `.eh_frame_hdr` bytes.
    pub eh_frame_hdr: &'data [u8],
    /// The number of its bytes that are mapped in the process behind the code; 0 if it is only in the dump.
    pub mapped_size: u64,
}

/// Something that happened to JIT code in one process.
#[derive(Debug, Clone, Copy)]
pub struct CodeEvent<'data> {
    /// The process, by the recording's own number (pid namespaces are already undone).
    pub pid: Pid,
    /// The thread that did it, as the dump states; 0 if unknown.
    pub tid: Tid,
    /// When, on the recording's clock; `None` for sources without times, which then hold for the whole run.
    pub time: Option<Nanos>,
    /// The event.
    pub kind: CodeEventKind<'data>,
}

/// The kind of a [`CodeEvent`].
#[derive(Debug, Clone, Copy)]
pub enum CodeEventKind<'data> {
    /// Code was written to `code.addr`.
    Load(Code<'data>),
    /// The code that was loaded with index `load` of the same event list moved to `to`.
    Move {
        /// Position in the event list of the load (never a code_index, which producers repeat).
        load: usize,
        /// The new address; name, bytes, lines and unwinding information stay.
        to: Addr,
    },
    /// The code that was loaded with index `load` of the same event list is no more.
    Unload {
        /// As of a move.
        load: usize,
        /// The address.
        at: Addr,
    },
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
            let calls = map.at(offset).into_iter().flat_map(|line| map.calls_around(line));
            calls.map(|call| String::from_utf8_lossy(&call.function).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(map.at(3), None);
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
