//! JIT code in the form that a callgrind file needs: by address only, without times, and with unique names.
//!
//! callgrind adds up costs over the whole run. If there were several pieces of code at an address one after another,
//! the last one gets all the cost. It is then marked as ambiguous, so that users can be told how much cost may have a
//! wrong name.
//!
//! The symbolizer isn't used for this, for two reasons. It looks up one address at a time, but here costs are summed by
//! address ranges that belong to the same code. And it leaves out code that a later entry of the same perf map
//! replaced, but such code is what makes a name ambiguous.

use crate::formats::callgrind::{CodeLine, CodeLookup, JitFunctions};
use crate::model::Pid;
use crate::model::code::{Code, OriginId};
use crate::model::ranges::{Entry, RangeMap};
use crate::parallel::Pool;
use crate::symbolize::code_map::{CodeId, CodeMap, Segment};
use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::hash::BuildHasher;

/// The JIT code of a process at the end of the run, to be looked up by address.
#[derive(Debug)]
pub(crate) struct CodeNames<'m, 'data> {
    map: &'m CodeMap<'data>,
    /// The start address of each range in `visible`. The starts are in a list of their own so that a binary search
    /// touches less memory.
    starts: Vec<u64>,
    /// The address ranges in which entries are visible, sorted and without overlaps.
    visible: Vec<VisibleRange>,
    /// All JIT code of the process, visible at the end of the run or not.
    entries: Vec<JitEntry<'data>>,
    /// The name of the object file (`ob=`) to which the output attributes the code.
    object: Vec<u8>,
}

/// A range of addresses in which an entry is visible. Its start is in [`CodeNames::starts`].

#[derive(Debug, Clone, Copy)]
struct VisibleRange {
    end: u64,
    /// The index of the entry in [`CodeNames::entries`].
    entry: u32,
}

/// A piece of JIT code at an address. Code that was moved has an entry for each address.
#[derive(Debug)]
pub(crate) struct JitEntry<'data> {
    /// The ID of the code in the code map.
    pub(crate) id: CodeId,
    /// The address of the code's first byte.
    pub(crate) addr: u64,
    /// The name of the function in the output.
    name: Cow<'data, [u8]>,
    /// The source file; `???` if unknown.
    file: &'data [u8],
    /// True if other code was at some of the entry's addresses before.
    ambiguous: bool,
}

impl<'m, 'data> CodeNames<'m, 'data> {
    /// Determines which code of process `pid` was in memory at the end of the run: where pieces of code were at the
    /// same address one after another, the last one is visible and hides the others. `object` is the name of the object
    /// file (`ob=`) to which the output attributes the code.
    pub(crate) fn new(map: &'m CodeMap<'data>, pid: Pid, object: Vec<u8>, pool: &Pool) -> Self {
        let mut painter = Painter::new(map);
        let (mut timed, untimed): (Vec<&Segment>, Vec<&Segment>) =
            map.segments().iter().filter(|segment| segment.pid == pid).partition(|segment| is_timed(segment));
        // Add code without a time first: code with a time is more reliable and hides it. A segment is an address range
        // that held one piece of code during a range of time. Code without a time is from perf maps. If a later line of
        // a perf map hides an earlier one, the earlier code has no segment, but it makes the name ambiguous. So take
        // all code of these maps, not only the code that has segments.
        let untimed_origins: FxHashSet<OriginId> =
            untimed.iter().map(|segment| map.code(segment.code).origin).collect();
        let untimed_codes = codes(map).filter(|(_, code)| untimed_origins.contains(&code.origin));
        let untimed_ranges = painter.add_loaded(untimed_codes);
        // In most perf maps, no code replaced other code. Then all ranges are visible, and need only be sorted.
        let disjoint = if timed.is_empty() { sort_if_disjoint(&untimed_ranges) } else { None };
        let visible = disjoint.unwrap_or_else(|| {
            for range in untimed_ranges {
                painter.paint(range);
            }
            // In the order in which the code was loaded, so that later code hides earlier code.
            timed.sort_by_key(|segment| (segment.from, segment.code, segment.start));
            for segment in timed.iter().filter(|segment| segment.start < segment.end) {
                // The segment may be a later part of the code. Subtracting `offset` gives the address of the code's
                // first byte.
                let entry = painter.find_or_add_entry(segment.code, segment.start.0.wrapping_sub(segment.offset));
                painter.paint(EntryRange { start: segment.start.0, end: segment.end.0, entry });
            }
            painter.visible_ranges()
        });
        let mut entries = painter.entries;
        make_names_unique(map, &mut entries, visible.iter().map(|range| range.entry));
        let with_lines = entries.iter_mut().filter(|entry| has_lines(&map.code(entry.id))).collect();
        pool.map(with_lines, |entry: &mut JitEntry<'data>| {
            let code = map.code(entry.id);
            if let Some(line) = code.lines.entries().first() {
                entry.file = source_file(&code, line.file);
            }
        });
        let starts = visible.iter().map(|range| range.start).collect();
        let visible = visible.iter().map(|range| VisibleRange { end: range.end, entry: range.entry }).collect();
        Self { map, starts, visible, entries, object }
    }

    /// The code of an entry, from the code map.
    pub(crate) fn code(&self, entry: &JitEntry<'data>) -> Code<'data> {
        self.map.code(entry.id)
    }

    /// True if the process has no JIT code.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries that later code doesn't hide completely, in the order of time.
    pub(crate) fn visible_entries(&self) -> impl Iterator<Item = &JitEntry<'data>> {
        let mut is_visible = vec![false; self.entries.len()];
        for range in &self.visible {
            is_visible[range.entry as usize] = true;
        }
        self.entries.iter().zip(is_visible).filter(|(_, is_visible)| *is_visible).map(|(entry, _)| entry)
    }

    /// True if other code was at some of the entry's addresses before. `entry` is the entry's index.
    pub(crate) fn is_ambiguous(&self, entry: usize) -> bool {
        self.entries.get(entry).is_some_and(|entry| entry.ambiguous)
    }

    /// All code of a source, in the source's order. Also includes code that later code replaced.
    pub(crate) fn codes_of_origin(&self, origin: OriginId) -> Vec<(CodeId, Code<'data>)> {
        codes(self.map).filter(|(_, code)| code.origin == origin).collect()
    }

    /// The source file and line of the code at an address: those of the last line entry that starts at or before it.
    /// `None` if unknown.
    pub(crate) fn source_line(&self, addr: u64) -> Option<(&'data [u8], u32)> {
        let entry = &self.entries[self.find(addr)?];
        let offset = addr.checked_sub(entry.addr)?;
        let code = self.code(entry);
        let lines = code.lines.entries();
        let after = lines.partition_point(|line| line.offset <= offset);
        let line = lines.get(after.checked_sub(1)?)?;
        Some((source_file(&code, line.file), line.line))
    }

    /// The number of pieces of code in the code map, for all processes.
    pub(crate) fn code_count(&self) -> usize {
        self.map.code_count()
    }
}

/// All pieces of code in the code map, for all processes.
fn codes<'data>(map: &CodeMap<'data>) -> impl Iterator<Item = (CodeId, Code<'data>)> {
    (0..map.code_count()).map(|at| CodeId(at as u32)).map(|id| (id, map.code(id)))
}

/// True if source lines of the code are known.
fn has_lines(code: &Code<'_>) -> bool {
    code.lines.decode.is_some() || code.lines.positions.is_some()
}

/// True if it is known when the code was loaded or replaced.
fn is_timed(segment: &Segment) -> bool {
    segment.from.0 != 0 || segment.until.0 != u64::MAX
}

/// Cleans up the source file of a line. V8 overwrites the start of some file names with other bytes. Such a name is
/// replaced by the file in the function's name, which has the form `JS:*f /path/of.js:12:7`. `file:` URLs become paths,
/// which source viewers expect.
fn source_file<'data>(code: &Code<'data>, file: &'data [u8]) -> &'data [u8] {
    let is_name = file.iter().any(|byte| b"/.:".contains(byte)) && file.iter().all(|byte| *byte >= b' ');
    let file = if is_name { file } else { file_in_name(code.name).unwrap_or(b"???") };
    match file.strip_prefix(b"file://") {
        Some(path) if path.starts_with(b"/") => path,
        _ => file,
    }
}

/// The file in V8's name for a function, such as `JS:*f /path/of.js:12:7`. `None` for other names.
fn file_in_name(name: &[u8]) -> Option<&[u8]> {
    let space = name.iter().position(|&byte| byte == b' ')?;
    let mut parts = name[space + 1..].rsplitn(3, |&byte| byte == b':');
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let column = parts.next()?;
    let line = parts.next()?;
    let file = parts.next()?;
    (is_number(column) && is_number(line) && !file.is_empty()).then_some(file)
}

/// Determines which code is visible at the end of the run: later code hides earlier code at the same addresses.
struct Painter<'m, 'data> {
    map: &'m CodeMap<'data>,
    /// The entries so far, in the order of time.
    entries: Vec<JitEntry<'data>>,
    /// For each piece of code in the code map, the index of its first entry; `None` if it has none yet.
    first_entries: Vec<Option<u32>>,
    /// The indexes of further entries, for code that was moved, by code and address.
    moved_entries: FxHashMap<(u32, u64), u32>,
    /// The address ranges that are visible so far, each with the index of its entry.
    visible: RangeMap<u32>,
}

impl<'m, 'data> Painter<'m, 'data> {
    /// Starts without entries, so that no address range is visible yet.
    fn new(map: &'m CodeMap<'data>) -> Self {
        Self {
            map,
            entries: Vec::with_capacity(map.code_count()),
            first_entries: vec![None; map.code_count()],
            moved_entries: FxHashMap::default(),
            visible: RangeMap::default(),
        }
    }

    /// Adds an entry for each code at the address where it was first loaded; moves to other addresses are ignored.
    /// Returns the address ranges of these entries.
    fn add_loaded(&mut self, codes: impl Iterator<Item = (CodeId, Code<'data>)>) -> Vec<EntryRange> {
        let mut ranges = Vec::with_capacity(self.entries.capacity());
        for (id, code) in codes {
            let start = code.addr.0;
            let end = start.saturating_add(code.size);
            if start < end {
                ranges.push(EntryRange { start, end, entry: self.find_or_add_entry(id, start) });
            }
        }
        ranges
    }

    /// Makes an entry's range visible, so that it hides earlier code there. Marks the entry as ambiguous if it hides
    /// different code.
    fn paint(&mut self, EntryRange { start, end, entry }: EntryRange) {
        let map = self.map;
        let entries = &self.entries;
        let mut hides_other_code = false;
        self.visible.insert(start..end, entry, |overwritten| {
            let hidden = map.code(entries[overwritten.value as usize].id);
            let code = map.code(entries[entry as usize].id);
            // A perf map and a jitdump may both list the code, possibly under different names. That makes no name
            // ambiguous, so only code of the same source is compared.
            hides_other_code |= hidden.origin == code.origin && hidden.name != code.name;
        });
        self.entries[entry as usize].ambiguous |= hides_other_code;
    }

    /// The address ranges that are visible now, sorted by address.
    fn visible_ranges(&self) -> Vec<EntryRange> {
        let mut ranges = Vec::new();
        for Entry { start, end, value: entry, .. } in self.visible.iter() {
            ranges.push(EntryRange { start, end, entry });
        }
        ranges
    }

    /// The index of the entry for code `id` at an address. Adds the entry if it doesn't exist yet.
    fn find_or_add_entry(&mut self, id: CodeId, addr: u64) -> u32 {
        // There are fewer than 2³² entries, because each belongs to one of the code map's changes, which are numbered
        // with 32 bits.
        let next = self.entries.len() as u32;
        // Most code is only at one address and has one entry, which is in `first_entries`. Only moved code has further
        // entries, in `moved_entries`.
        let first = self.first_entries[id.0 as usize];
        let index = match first {
            Some(first) if self.entries[first as usize].addr == addr => return first,
            Some(_) => *self.moved_entries.entry((id.0, addr)).or_insert(next),
            None => *self.first_entries[id.0 as usize].insert(next),
        };
        if index == next {
            let name = Cow::Borrowed(self.map.name(id));
            // `???`: the file is unknown for now. `CodeNames::new` sets it for code with lines.
            self.entries.push(JitEntry { id, addr, name, file: b"???", ambiguous: false });
        }
        index
    }
}

/// An address range of an entry.
#[derive(Debug, Clone, Copy)]
struct EntryRange {
    start: u64,
    end: u64,
    /// The index of the entry in [`Painter::entries`].
    entry: u32,
}

/// Sorts the ranges by address. `None` if any two overlap, so that one code replaced another.
fn sort_if_disjoint(ranges: &[EntryRange]) -> Option<Vec<EntryRange>> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable_by_key(|range| range.start);
    sorted.is_sorted_by(|before, after| before.end <= after.start).then_some(sorted)
}

/// Makes names unique, because functions of one name are one function in a callgrind file: if several functions have
/// the same name, the address where a function was loaded is appended to its name. A function without a name is called
/// `(no name)`. `visible` are the indexes of visible entries.
fn make_names_unique(map: &CodeMap<'_>, entries: &mut [JitEntry<'_>], visible: impl Iterator<Item = u32>) {
    let shared = find_shared_names(map, entries, visible);
    for entry in entries.iter_mut() {
        if entry.name.is_empty() {
            entry.name = Cow::Borrowed(b"(no name)");
        }
    }
    if shared.is_empty() {
        return;
    }
    for entry in entries.iter_mut() {
        let Code { name, addr, .. } = map.code(entry.id);
        if shared.contains(name) {
            entry.name.to_mut().extend_from_slice(format!("#{:#x}", addr.0).as_bytes());
        }
    }
}

/// Returns the names that belong to several functions, among the entries with the indexes `visible`. Entries with the
/// same name are several functions only if their code was loaded at different addresses. If code was listed twice, or
/// was moved after it was loaded, its entries have the same load address, so they count as one function.
fn find_shared_names<'data>(
    map: &CodeMap<'data>,
    entries: &[JitEntry<'_>],
    visible: impl Iterator<Item = u32>,
) -> FxHashSet<&'data [u8]> {
    let mut shared = FxHashSet::default();
    // The first entry with each name. A table of indexes takes less memory than a map from names.
    let mut first_with_name: HashTable<u32> = HashTable::with_capacity(entries.len());
    let hash = |name: &[u8]| FxBuildHasher.hash_one(name);
    let name_of = |entry: u32| map.name(entries[entry as usize].id);
    // The address where the code was loaded, even if it was moved later.
    let addr_of = |entry: u32| map.code(entries[entry as usize].id).addr;
    for entry in visible {
        let name = name_of(entry);
        match first_with_name.find(hash(name), |other| name_of(*other) == name) {
            Some(first) => {
                if addr_of(*first) != addr_of(entry) {
                    shared.insert(name);
                }
            }
            None => {
                first_with_name.insert_unique(hash(name), entry, |other| hash(name_of(*other)));
            }
        }
    }
    shared
}

impl<'m, 'data> JitFunctions for CodeNames<'m, 'data> {
    /// The entry at an address (`None` if there is none), with the range of addresses for which the answer is the same.
    fn find_range(&self, addr: u64) -> CodeLookup {
        // A fast path, because most addresses are lower than all JIT code.
        let first_start = self.starts.first().copied().unwrap_or(u64::MAX);
        if addr < first_start {
            return CodeLookup { range: 0..first_start, entry: None };
        }
        let after = self.starts.partition_point(|start| *start <= addr);
        let next = self.starts.get(after).copied().unwrap_or(u64::MAX);
        // The fast path has handled all addresses below the first range. So `after` is 0 only if there is no JIT code
        // at all.
        let Some(before) = after.checked_sub(1) else { return CodeLookup { range: first_start..next, entry: None } };
        let visible = self.visible[before];
        if addr < visible.end {
            CodeLookup { range: self.starts[before]..visible.end, entry: Some(visible.entry as usize) }
        } else {
            CodeLookup { range: visible.end..next, entry: None }
        }
    }

    fn name(&self, entry: usize) -> &[u8] {
        &self.entries[entry].name
    }

    fn file(&self, entry: usize) -> &[u8] {
        self.entries[entry].file
    }

    fn object(&self) -> &[u8] {
        &self.object
    }

    /// The source lines of an entry's code, each with the address where its instructions start. Empty if none are
    /// known.
    fn lines(&self, entry: usize) -> Vec<CodeLine<'_>> {
        let entry = &self.entries[entry];
        let code = self.code(entry);
        if !has_lines(&code) {
            return Vec::new();
        }
        let mut lines = Vec::new();
        for line in code.lines.entries() {
            lines.push(CodeLine {
                addr: entry.addr.wrapping_add(line.offset),
                file: source_file(&code, line.file),
                line: line.line,
            });
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::code::Lines;
    use crate::model::process::Processes;
    use crate::model::{Addr, Nanos};
    use crate::symbolize::code_map::CodeList;

    /// A piece of code in a source: time (`None` in a perf map), name, address, size.
    type Listed = (Option<u64>, &'static str, u64, u64);

    /// The name at each address, followed by `?` if there was different code before.
    fn names_at(sources: &[&[Listed]], addrs: &[u64]) -> Vec<String> {
        let list = |(origin, listed): (usize, &&[Listed])| -> CodeList<'static> {
            let mut list = CodeList::default();
            for &(time, name, addr, size) in *listed {
                let (addr, origin) = (Addr(addr), OriginId(origin as u32));
                let code = Code {
                    name: name.as_bytes(),
                    addr,
                    size,
                    bytes: None,
                    lines: Lines::default(),
                    unwind: None,
                    origin,
                };
                list.load(Pid(7), time.map(Nanos), &code);
            }
            list
        };
        let pool = Pool::new(std::num::NonZeroUsize::new(1)).unwrap();
        let map = CodeMap::build(sources.iter().enumerate().map(list).collect(), &Processes::default(), &pool);
        let names = CodeNames::new(&map, Pid(7), b"jitted-7.elf".to_vec(), &pool);
        let shown = |&addr: &u64| match names.find(addr) {
            Some(entry) => {
                let mark = if names.is_ambiguous(entry) { "?" } else { "" };
                format!("{}{mark}", String::from_utf8_lossy(names.name(entry)))
            }
            None => String::new(),
        };
        addrs.iter().map(shown).collect()
    }

    #[test]
    fn of_code_at_one_address_the_last_counts_and_is_ambiguous() {
        let dump: &[Listed] =
            &[(Some(1), "old", 0x100, 0x40), (Some(2), "new", 0x120, 0x40), (Some(3), "far", 0x200, 0x10)];
        let addrs = [0xff, 0x100, 0x11f, 0x120, 0x15f, 0x160, 0x200];
        assert_eq!(names_at(&[dump], &addrs), ["", "old", "old", "new?", "new?", "", "far"]);
        let map: &[Listed] = &[(None, "old", 0x100, 0x40), (None, "new", 0x120, 0x40), (None, "far", 0x200, 0x10)];
        assert_eq!(names_at(&[map], &addrs), ["", "old", "old", "new?", "new?", "", "far"]);
    }

    #[test]
    fn code_that_lies_apart_is_found_in_whatever_order_it_is_listed() {
        let map: &[Listed] =
            &[(None, "c", 0x300, 0x10), (None, "a", 0x100, 0x10), (None, "none", 0x150, 0), (None, "b", 0x110, 0x10)];
        let addrs = [0xff, 0x100, 0x110, 0x11f, 0x120, 0x150, 0x300, 0x310];
        assert_eq!(names_at(&[map], &addrs), ["", "a", "b", "b", "", "", "c", ""]);
    }

    #[test]
    fn the_same_code_listed_again_is_not_ambiguous() {
        let dump: &[Listed] = &[(Some(1), "f", 0x100, 0x40), (Some(2), "f", 0x100, 0x40)];
        assert_eq!(names_at(&[dump], &[0x110]), ["f"]);
        // Erlang's perf map has the names of its jitdump with a dollar sign added. The jitdump is the better source.
        let (dump, map): (&[Listed], &[Listed]) =
            (&[(Some(1), "m:f/1", 0x100, 0x40)], &[(None, "$m:f/1", 0x100, 0x40), (None, "$m:g/1", 0x140, 0x40)]);
        assert_eq!(names_at(&[dump, map], &[0x110, 0x150]), ["m:f/1", "$m:g/1"]);
    }

    #[test]
    fn different_functions_of_one_name_are_distinguished() {
        let map: &[Listed] = &[(None, "(-e:1)", 0x100, 0x10), (None, "(-e:1)", 0x200, 0x10), (None, "", 0x300, 0x10)];
        assert_eq!(names_at(&[map], &[0x100, 0x200, 0x300]), ["(-e:1)#0x100", "(-e:1)#0x200", "(no name)"]);
    }

    #[test]
    fn the_file_in_a_name_of_v8() {
        assert_eq!(file_in_name(b"JS:*f /a b/of.js:12:7"), Some(&b"/a b/of.js"[..]));
        assert_eq!(file_in_name(b"JS:^next node:internal/realm:3:9"), Some(&b"node:internal/realm"[..]));
        assert_eq!(file_in_name(b"Builtin:ArrayMap"), None);
        assert_eq!(file_in_name(b"f (x:1:y)"), None);
    }
}
