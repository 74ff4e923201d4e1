//! Source lines and inlined calls of registered objects, from DWARF. An object is decoded completely when the lines of
//! its first function are requested.

use super::symfile::{Function, Symfile};
use crate::model::code::{InlinedCall, Line, MOST_INLINED, SourceMap};
use crate::model::dwarf_depth::limit_sections;
use crate::records::jit_logs::code_log::{LogPositions, TextId, Texts};
use addr2line::Context;
use gimli::{DwarfSections, EndianSlice, RunTimeEndian, constants as dw};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::OnceLock;

type LineTableReader<'a> = EndianSlice<'a, RunTimeEndian>;

/// The objects of a core that have lines.
#[derive(Debug, Default)]
pub(super) struct Registered {
    pub(super) objects: Vec<RegisteredObject>,
}

#[derive(Debug)]
pub(super) struct RegisteredObject {
    /// The object's range in the core.
    range: Range<usize>,
    machine: u16,
    lines: OnceLock<ObjectLines>,
}

impl Registered {
    /// Adds an object with lines. Returns its number, for [`place`].
    pub(super) fn push(&mut self, range: Range<usize>, machine: u16) -> u32 {
        self.objects.push(RegisteredObject { range, machine, lines: OnceLock::new() });
        self.objects.len() as u32 - 1
    }
}

/// Encodes the key under which the lines of a function are looked up: object number and address.
pub(super) fn place(object: u32, addr: u64) -> [u8; 12] {
    let mut place = [0; 12];
    place[..4].copy_from_slice(&object.to_le_bytes());
    place[4..].copy_from_slice(&addr.to_le_bytes());
    place
}

fn parse_place(place: &[u8]) -> Option<(u32, u64)> {
    let (object, addr) = place.split_first_chunk()?;
    Some((u32::from_le_bytes(*object), u64::from_le_bytes(*addr.first_chunk()?)))
}

impl LogPositions for Registered {
    fn source_map<'a>(&'a self, file: &'a [u8], entry: &'a [u8]) -> SourceMap<'a> {
        let known = parse_place(entry).and_then(|(object, addr)| {
            let object = self.objects.get(object as usize)?;
            let lines = object.lines.get_or_init(|| {
                let bytes = file.get(object.range.clone()).unwrap_or_default();
                Symfile::parse(bytes, object.machine).map(|symfile| ObjectLines::read(&symfile)).unwrap_or_default()
            });
            lines.source_map(addr)
        });
        known.unwrap_or_default()
    }
}

/// The source lines of all functions in an object.
#[derive(Debug, Default)]
struct ObjectLines {
    texts: Texts,
    /// The lines of each function, by its address.
    functions: FxHashMap<u64, FunctionLines>,
    /// The number of calls that are nested too deeply.
    too_deep: u64,
}

#[derive(Debug, Default)]
struct FunctionLines {
    rows: Vec<LineRow>,
    calls: Vec<Call>,
}

#[derive(Debug, Clone, Copy)]
struct LineRow {
    offset: u64,
    place: SourcePlace,
    inlined: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Call {
    function: TextId,
    /// Where the call is in its caller.
    place: SourcePlace,
    parent: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SourcePlace {
    file: TextId,
    line: u32,
}

impl ObjectLines {
    /// Reads the lines of an object. Damaged DWARF yields what can still be read.
    fn read(symfile: &Symfile<'_>) -> Self {
        Self::try_read(symfile).unwrap_or_default()
    }

    fn try_read(symfile: &Symfile<'_>) -> Option<Self> {
        let endian = RunTimeEndian::from(symfile.endian());
        let mut sections = DwarfSections::load(|id| Ok::<_, gimli::Error>(symfile.section(id.name()))).ok()?;
        let too_deep = limit_sections(&mut sections, endian, MOST_INLINED);
        let dwarf = || sections.borrow(|bytes| EndianSlice::new(bytes, endian));
        let edges = edges(&dwarf());
        let context = Context::from_dwarf(dwarf()).ok()?;
        // Each line and each inlined call takes at least one byte of the object, which limits their number.
        let mut reader =
            LineProgramReader { context, edges, left: symfile.size, lines: Self { too_deep, ..Self::default() } };
        for function in symfile.functions() {
            let lines = reader.function(&function);
            reader.lines.functions.insert(function.addr, lines);
        }
        Some(reader.lines)
    }

    fn source_map(&self, addr: u64) -> Option<SourceMap<'_>> {
        let FunctionLines { rows, calls } = self.functions.get(&addr)?;
        let file = |place: SourcePlace| self.texts.get(place.file);
        let line = |row: &LineRow| Line {
            offset: row.offset,
            file: file(row.place),
            line: row.place.line,
            discriminator: 0,
            inlined: row.inlined,
        };
        let call = |call: &Call| InlinedCall {
            function: self.texts.get(call.function).into(),
            file: file(call.place),
            line: call.place.line,
            column: 0,
            parent: call.parent,
        };
        Some(SourceMap {
            lines: rows.iter().map(line).collect(),
            calls: calls.iter().map(call).collect(),
            too_deep: self.too_deep,
        })
    }
}

/// Start and end addresses of inlined calls, sorted.
fn edges(dwarf: &gimli::Dwarf<LineTableReader<'_>>) -> Vec<u64> {
    let mut edges = Vec::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.tag() != dw::DW_TAG_inlined_subroutine {
                continue;
            }
            let Ok(mut ranges) = dwarf.die_ranges(&unit, entry) else { continue };
            while let Ok(Some(range)) = ranges.next() {
                edges.extend([range.begin, range.end]);
            }
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

struct LineProgramReader<'a> {
    context: Context<LineTableReader<'a>>,
    edges: Vec<u64>,
    /// How many more lines and calls may be kept.
    left: usize,
    lines: ObjectLines,
}

impl LineProgramReader<'_> {
    fn function(&mut self, function: &Function<'_>) -> FunctionLines {
        let (start, end) = (function.addr, function.addr.saturating_add(function.size));
        let mut places = vec![start];
        let below = |limit| self.edges.partition_point(|edge| *edge < limit);
        places.extend(&self.edges[below(start)..below(end).max(below(start))]);
        if let Ok(rows) = self.context.find_location_range(start, end) {
            let edges = rows.flat_map(|(at, len, _)| [at, at.saturating_add(len)]);
            places.extend(edges.filter(|at| (start..end).contains(at)).take(self.left));
        }
        places.sort_unstable();
        places.dedup();
        let (mut lines, mut known) = (FunctionLines::default(), FxHashMap::default());
        for at in places {
            let before = lines.rows.len() + lines.calls.len();
            let row = self.row(at, at - start, &mut lines, &mut known);
            let is_same = |last: &LineRow| (last.place, last.inlined) == (row.place, row.inlined);
            if !lines.rows.last().is_some_and(is_same) {
                lines.rows.push(row);
            }
            match self.left.checked_sub(lines.rows.len() + lines.calls.len() - before) {
                Some(left) => self.left = left,
                None => break,
            }
        }
        lines
    }

    /// The source line at an address, with its inlined calls. All frames there but the last are inlined.
    fn row(&mut self, addr: u64, offset: u64, lines: &mut FunctionLines, known: &mut FxHashMap<Call, u32>) -> LineRow {
        let mut frames = Vec::new();
        if let Ok(mut found) = self.context.find_frames(addr).skip_all_loads() {
            while let Ok(Some(frame)) = found.next() {
                let texts = &mut self.lines.texts;
                let name = frame.function.as_ref().map_or(&b""[..], |function| function.name.slice());
                let location = frame.location.as_ref();
                let file = texts.intern(location.and_then(|location| location.file).unwrap_or_default().as_bytes());
                let line = location.and_then(|location| location.line).unwrap_or(0);
                frames.push((texts.intern(name), SourcePlace { file, line }));
            }
        }
        let unknown = || SourcePlace { file: self.lines.texts.intern(b""), line: 0 };
        let place = frames.first().map(|(_, place)| *place);
        let mut parent = None;
        for (callee, caller) in frames.iter().zip(frames.iter().skip(1)).rev() {
            let call = Call { function: callee.0, place: caller.1, parent };
            parent = Some(*known.entry(call).or_insert_with(|| {
                lines.calls.push(call);
                lines.calls.len() as u32 - 1
            }));
        }
        LineRow { offset, place: place.unwrap_or_else(unknown), inlined: parent }
    }
}
