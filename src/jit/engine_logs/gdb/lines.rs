//! Source lines and inlined calls of registered objects, from DWARF. An object is decoded completely when the lines of
//! its first function are requested.

use super::symfile::{Function, Symfile};
use crate::jit::engine_logs::code_log::{LogPositions, TextId, Texts};
use crate::model::code::{InlinedCall, Line, MOST_INLINED, SourceMap};
use crate::model::dwarf_depth::limit_sections;
use addr2line::Context;
use gimli::{DwarfSections, EndianSlice, RunTimeEndian, constants as dw};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::OnceLock;

type LineTableReader<'a> = EndianSlice<'a, RunTimeEndian>;

/// The objects registered with GDB's JIT interface that were found in a core dump and have line information.
#[derive(Debug, Default)]
pub(super) struct ObjectsWithLines {
    pub(super) objects: Vec<ObjectWithLines>,
}

#[derive(Debug)]
pub(super) struct ObjectWithLines {
    /// The object's range in the core dump.
    range: Range<usize>,
    /// ELF `e_machine` of the process that registered the object.
    machine: u16,
    lines: OnceLock<ObjectLines>,
}

impl ObjectsWithLines {
    /// Adds an object with lines. Returns the object's number, for [`encode_key`].
    pub(super) fn push(&mut self, range: Range<usize>, machine: u16) -> u32 {
        self.objects.push(ObjectWithLines { range, machine, lines: OnceLock::new() });
        self.objects.len() as u32 - 1
    }
}

/// Encodes the key under which the lines of a function are looked up: object number and address.
pub(super) fn encode_key(object: u32, addr: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&object.to_le_bytes());
    key[4..].copy_from_slice(&addr.to_le_bytes());
    key
}

fn decode_key(key: &[u8]) -> Option<(u32, u64)> {
    let (object, addr) = key.split_first_chunk()?;
    Some((u32::from_le_bytes(*object), u64::from_le_bytes(*addr.first_chunk()?)))
}

impl LogPositions for ObjectsWithLines {
    /// Decodes the source lines of one function. `entry` is its key: the number of the object that contains it, and its
    /// address. The lines of an object are read when one of its functions is first asked for.
    fn source_map<'a>(&'a self, file: &'a [u8], entry: &'a [u8]) -> SourceMap<'a> {
        let Some((object, addr)) = decode_key(entry) else { return SourceMap::default() };
        let Some(object) = self.objects.get(object as usize) else { return SourceMap::default() };
        let lines = object.lines.get_or_init(|| {
            let bytes = file.get(object.range.clone()).unwrap_or_default();
            Symfile::parse(bytes, object.machine).map(|symfile| ObjectLines::read(&symfile)).unwrap_or_default()
        });
        lines.source_map(addr).unwrap_or_default()
    }
}

/// The source lines of all functions in an object.
#[derive(Debug, Default)]
struct ObjectLines {
    texts: Texts,
    /// The lines of each function, by its address.
    functions: FxHashMap<u64, FunctionLines>,
    /// The number of inlined calls that were left out because they are nested too deeply.
    too_deep: u64,
}

#[derive(Debug, Default)]
struct FunctionLines {
    rows: Vec<LineRow>,
    calls: Vec<Call>,
}

/// A row of a function's line table: the source line of the code from an offset on.
#[derive(Debug, Clone, Copy)]
struct LineRow {
    offset: u64,
    location: SourceLocation,
    /// Index of the inlined call that the code belongs to; `None` if it belongs to the function itself.
    inlined: Option<u32>,
}

/// An inlined call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Call {
    function: TextId,
    /// Source location of the call in its caller.
    location: SourceLocation,
    /// Index of the inlined call that contains this one; `None` if it is directly in the function.
    parent: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SourceLocation {
    file: TextId,
    line: u32,
}

impl ObjectLines {
    /// Reads the lines of an object. Damaged DWARF yields what can still be read.
    fn read(symfile: &Symfile<'_>) -> Self {
        Self::try_read(symfile).unwrap_or_default()
    }

    /// Reads the source lines and inlined calls of all functions in an object. `None` if it has no usable DWARF.
    fn try_read(symfile: &Symfile<'_>) -> Option<Self> {
        let endian = RunTimeEndian::from(symfile.endian());
        let mut sections = DwarfSections::load(|id| Ok::<_, gimli::Error>(symfile.section(id.name()))).ok()?;
        // Removes inlined calls that are nested too deeply, and returns how many were removed.
        let too_deep = limit_sections(&mut sections, endian, MOST_INLINED);
        let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, endian));
        // The start and end addresses of inlined calls are read first, because addr2line's context takes ownership of
        // `dwarf`.
        let edges = inlined_edges(&dwarf);
        let context = Context::from_dwarf(dwarf).ok()?;
        // Each line and each inlined call takes at least one byte of the object. So there can't be more of them than
        // the object has bytes.
        let mut reader =
            LineProgramReader { context, edges, room: symfile.size, lines: Self { too_deep, ..Self::default() } };
        for function in symfile.functions() {
            let lines = reader.read_function(&function);
            reader.lines.functions.insert(function.addr, lines);
        }
        Some(reader.lines)
    }

    /// The source map of the function that starts at an address; `None` if the object has no function there.
    fn source_map(&self, addr: u64) -> Option<SourceMap<'_>> {
        let FunctionLines { rows, calls } = self.functions.get(&addr)?;
        let mut map = SourceMap { too_deep: self.too_deep, ..SourceMap::default() };
        for row in rows {
            map.lines.push(Line {
                offset: row.offset,
                file: self.texts.get(row.location.file),
                line: row.location.line,
                discriminator: 0,
                inlined: row.inlined,
            });
        }
        for call in calls {
            map.calls.push(InlinedCall {
                function: self.texts.get(call.function).into(),
                file: self.texts.get(call.location.file),
                line: call.location.line,
                column: 0,
                parent: call.parent,
            });
        }
        Some(map)
    }
}

/// Start and end addresses of all inlined calls in an object, sorted. The source line of the code can only change at
/// these addresses and where a row of the line table begins.
fn inlined_edges(dwarf: &gimli::Dwarf<LineTableReader<'_>>) -> Vec<u64> {
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

/// Reads the lines of functions one after the other.
struct LineProgramReader<'a> {
    context: Context<LineTableReader<'a>>,
    /// Start and end addresses of inlined calls, sorted.
    edges: Vec<u64>,
    /// How many more lines and calls may be kept.
    room: usize,
    lines: ObjectLines,
}

/// A frame at an address: the function itself or an inlined one.
struct DwarfFrame {
    function: TextId,
    location: SourceLocation,
}

impl LineProgramReader<'_> {
    /// Reads the lines of a function at all addresses where the line or the inlined calls may change. Stops once `room`
    /// is used up: an object with more lines and calls than that is damaged.
    fn read_function(&mut self, function: &Function<'_>) -> FunctionLines {
        let mut lines = FunctionLines::default();
        let mut call_indices = FxHashMap::default();
        for addr in self.change_points(function) {
            let count_before = lines.rows.len() + lines.calls.len();
            let row = self.read_row(addr, addr - function.addr, &mut lines, &mut call_indices);
            let is_change =
                lines.rows.last().is_none_or(|last| last.location != row.location || last.inlined != row.inlined);
            if is_change {
                lines.rows.push(row);
            }
            let added = lines.rows.len() + lines.calls.len() - count_before;
            let Some(room) = self.room.checked_sub(added) else { break };
            self.room = room;
        }
        lines
    }

    /// The addresses in a function at which its line or inlined calls may change, sorted.
    fn change_points(&self, function: &Function<'_>) -> Vec<u64> {
        let range = function.addr..function.addr.saturating_add(function.size);
        let mut points = vec![range.start];
        let first_edge = self.edges.partition_point(|edge| *edge < range.start);
        points.extend(self.edges[first_edge..].iter().take_while(|edge| **edge < range.end));
        if let Ok(rows) = self.context.find_location_range(range.start, range.end) {
            let row_edges = rows.flat_map(|(addr, len, _)| [addr, addr.saturating_add(len)]);
            // A function can't have more rows than the object has room for; see `room`.
            points.extend(row_edges.filter(|addr| range.contains(addr)).take(self.room));
        }
        points.sort_unstable();
        points.dedup();
        points
    }

    /// Reads the source line at an address, which is `offset` bytes into the function. Adds the inlined calls at this
    /// address to `lines`, unless they were added before; `call_indices` holds the indices of all that were added.
    fn read_row(
        &mut self,
        addr: u64,
        offset: u64,
        lines: &mut FunctionLines,
        call_indices: &mut FxHashMap<Call, u32>,
    ) -> LineRow {
        let frames = self.find_frames(addr);
        // The innermost frame is first, so each frame but the last is inlined into the next one. Start with the
        // outermost call, because each inlined call refers to the one that contains it.
        let mut inlined = None;
        for pair in frames.windows(2).rev() {
            let [callee, caller] = pair else { break };
            let call = Call { function: callee.function, location: caller.location, parent: inlined };
            inlined = Some(*call_indices.entry(call).or_insert_with(|| {
                lines.calls.push(call);
                lines.calls.len() as u32 - 1
            }));
        }
        let location = match frames.first() {
            Some(frame) => frame.location,
            None => SourceLocation { file: self.lines.texts.intern(b""), line: 0 },
        };
        LineRow { offset, location, inlined }
    }

    /// The frames at an address, innermost first.
    fn find_frames(&mut self, addr: u64) -> Vec<DwarfFrame> {
        let mut frames = Vec::new();
        // Objects in memory have no split debug information that would have to be loaded.
        let Ok(mut found) = self.context.find_frames(addr).skip_all_loads() else { return frames };
        while let Ok(Some(frame)) = found.next() {
            let texts = &mut self.lines.texts;
            let name = frame.function.as_ref().map_or(&b""[..], |function| function.name.slice());
            let location = frame.location.as_ref();
            let file = location.and_then(|location| location.file).unwrap_or_default();
            let line = location.and_then(|location| location.line).unwrap_or(0);
            let location = SourceLocation { file: texts.intern(file.as_bytes()), line };
            frames.push(DwarfFrame { function: texts.intern(name), location });
        }
        frames
    }
}
