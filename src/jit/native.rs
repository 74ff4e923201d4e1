//! Decides where sources without times, such as perf maps, may name code in files.
//!
//! A perf map may name any address that no symbol of the file there covers, because JIT compilers also write code to
//! cache files, unlinked files and static buffers. Where the file has a symbol, that one is used: V8's perf maps repeat
//! the built-in functions in the text of node or Chromium. If the file isn't available, or only in another version, the
//! perf map may name its code only if a JIT compiler is likely to have written the file: it was deleted, or is in
//! `/dev/shm`.
//!
//! Some entries are longer than their code and extend into a library that follows. They must not name anything in the
//! library's text.

use crate::error::Warnings;
use crate::model::ancestry::Ancestry;
use crate::model::mapping_kind::MappingKind;
use crate::model::process::{CpuMode, Mapping, Processes};
use crate::model::ranges::{IntervalTree, Span};
use crate::model::{Addr, Nanos, Pid};
use crate::symbolize::address_space::{AddressSpaces, MappedPlace};
use crate::symbolize::code_map::CodeList;
use crate::symbolize::dso::{DsoId, DsoKind};
use crate::symbolize::symbols::files::SearchOptions;
use crate::symbolize::symbols::images::Images;
use crate::symbolize::symbols::no_elf::NoElf;
use crate::symbolize::symbols::{SymbolOptions, functions};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Finds the address ranges in which entries without times (those of perf maps) must not name the code, because a file
/// is mapped there, and its own symbols name the code. The result hides these ranges.
pub(super) fn find_ranges_to_hide(
    lists: &[CodeList<'_>],
    processes: &Processes,
    search: &SearchOptions,
) -> CodeList<'static> {
    let mut hidden = CodeList::default();
    let overlaps = find_overlaps(lists, processes);
    if overlaps.is_empty() {
        return hidden;
    }
    let spaces = AddressSpaces::new(processes);
    let Processes { machine, os_release, .. } = processes;
    let search = SearchOptions { machine: *machine, os_release: os_release.clone(), ..search.clone() };
    let mut symbols = Symbols::new(&spaces, search);
    for same_file in overlaps.chunk_by(|one, next| (one.pid, &one.file) == (next.pid, &next.file)) {
        // The entries are sorted by address, so each address that several of them cover is looked up only once.
        let mut searched_to = Addr(0);
        for overlap in same_file {
            let common = overlap.common_range();
            // `place` is the position in the file that is mapped at the start of the overlap. If something else was
            // ever mapped over this part of the file (`None`), each sample there is looked up at its own time. So
            // nothing has to be hidden.
            let Some(place) = place_at_end(overlap.pid, common.start, &spaces) else { continue };
            // What the entry must leave to the file's symbols: nothing, all that is in the file, or what the symbols
            // cover.
            match symbols.claim(overlap, place) {
                Claim::Nothing => {}
                Claim::All => hidden.hide_untimed(overlap.pid, common),
                // Hide the entry only where the file has symbols.
                Claim::Symbols => {
                    let unsearched = common.start.max(searched_to)..common.end;
                    searched_to = searched_to.max(common.end);
                    if unsearched.start < unsearched.end
                        && let Some(place) = place_at_end(overlap.pid, unsearched.start, &spaces)
                    {
                        for range in symbols.ranges_with_symbols(&unsearched, place) {
                            hidden.hide_untimed(overlap.pid, range);
                        }
                    }
                }
            }
        }
    }
    hidden
}

/// Stands for the end of the recording: later than all its records.
const END: Nanos = Nanos(u64::MAX - 1);

/// The address range of an entry without a time, and that of a file mapping that overlaps it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Overlap {
    pid: Pid,
    file: Range<Addr>,
    entry: Range<Addr>,
}

impl Overlap {
    fn common_range(&self) -> Range<Addr> {
        self.entry.start.max(self.file.start)..self.entry.end.min(self.file.end)
    }

    fn is_entry_inside_file(&self) -> bool {
        self.common_range() == self.entry
    }
}

/// What is mapped at an address at the end of the recording, if it is a file. `None` if something else was ever mapped
/// over that file; the symbols at such addresses are looked up for each sample at its time instead.
fn place_at_end(pid: Pid, addr: Addr, spaces: &AddressSpaces) -> Option<MappedPlace> {
    let place = spaces.lookup(pid, addr, END, CpuMode::User)?;
    let is_file = spaces.dsos().get(place.dso).kind == DsoKind::File;
    (place.until >= END && is_file && !place.is_remapped).then_some(place)
}

/// The address range of a mapped file.
#[derive(Debug)]
struct FileMapping(Range<Addr>);

impl Span for FileMapping {
    fn range(&self) -> Range<u64> {
        self.0.start.0..self.0.end.0
    }
}

/// Every pair of an untimed entry and a file mapping that overlap. Usually there are none.
fn find_overlaps(lists: &[CodeList<'_>], processes: &Processes) -> Vec<Overlap> {
    let mut overlaps = Vec::new();
    let mut files_by_pid = FxHashMap::default();
    let mut ancestry = None;
    for (pid, entry) in lists.iter().flat_map(CodeList::untimed) {
        let ancestry = ancestry.get_or_insert_with(|| Ancestry::new(processes));
        let files = files_by_pid.entry(pid).or_insert_with(|| mapped_files(pid, ancestry, processes));
        // Calls the closure for each file mapping that overlaps the entry.
        files.visit(entry.start.0..entry.end.0, |file| {
            overlaps.push(Overlap { pid, entry: entry.clone(), file: file.0.clone() });
        });
    }
    // The caller needs the overlaps by file, then by address. Two sources may have the same entry, so duplicates are
    // dropped.
    overlaps.sort_unstable_by_key(|Overlap { pid, file, entry }| (*pid, file.start, file.end, entry.start, entry.end));
    overlaps.dedup();
    overlaps
}

/// The address ranges of executable files that a process or its ancestors mapped. Adjacent or overlapping mappings of
/// one file are merged, because they only differ in protection.
fn mapped_files(pid: Pid, ancestry: &Ancestry, processes: &Processes) -> IntervalTree<FileMapping> {
    let mut mappings: Vec<&Mapping> = Vec::new();
    for process in ancestry.ancestors(pid).filter_map(|pid| processes.by_pid.get(&pid)) {
        // Jitdumps and images of JIT code are left out (`ends_jit_code`): they don't replace JIT code at their
        // addresses.
        let files = process.mappings.iter().filter(|mapping| mapping.executable && mapping.kind().ends_jit_code());
        mappings.extend(files);
    }
    mappings.sort_by_key(|mapping| (&mapping.path, mapping.addr));
    let mut ranges: Vec<FileMapping> = Vec::new();
    let mut last_path = None;
    for mapping in mappings {
        let end = Addr(mapping.addr.0.saturating_add(mapping.len));
        match ranges.last_mut() {
            Some(FileMapping(last)) if last_path == Some(&mapping.path) && mapping.addr <= last.end => {
                last.end = last.end.max(end);
            }
            _ => ranges.push(FileMapping(mapping.addr..end)),
        }
        last_path = Some(&mapping.path);
    }
    IntervalTree::new(ranges)
}

/// The part of an untimed entry that must be left to the symbols of the file that the entry overlaps.
enum Claim {
    /// Nothing: the entry may name all of its code.
    Nothing,
    /// The addresses that the file's symbols cover.
    Symbols,
    /// The whole entry.
    All,
}

/// Symbols of files, which are opened on first use.
struct Symbols<'a> {
    spaces: &'a AddressSpaces,
    images: Images<'a>,
    options: SymbolOptions,
    /// For each file that was asked for, the address ranges (in the file's address space) that its symbols cover.
    by_file: FxHashMap<DsoId, Vec<Range<u64>>>,
}

impl<'a> Symbols<'a> {
    fn new(spaces: &'a AddressSpaces, search: SearchOptions) -> Self {
        let images = Images::new(spaces.dsos().iter(), search.clone());
        let options = SymbolOptions { search, ..SymbolOptions::default() };
        Self { spaces, images, options, by_file: FxHashMap::default() }
    }

    /// Determines which part of an entry of JIT code must be left to the symbols of the mapped file that it overlaps.
    /// `place` is the position in that file at which the overlap begins.
    fn claim(&self, overlap: &Overlap, place: MappedPlace) -> Claim {
        let Some(image) = self.images.get(place.dso) else {
            // The file can't be read, so its symbols are unknown. If it is probably a file in which a JIT compiler puts
            // its code, it has none, and the entry may name all of its code. This is assumed if the entry begins in the
            // file, and the file was deleted, is shared memory (in `/dev`), or is of a kind that has no symbols.
            // Otherwise, the whole entry is left to the file.
            let path = &self.spaces.dsos().get(place.dso).path;
            let begins_in_file = overlap.entry.start >= overlap.file.start;
            let is_jit_file =
                begins_in_file && (MappingKind::from_path(path).is_likely_jit_file() || self.has_no_symbols(path));
            return if is_jit_file { Claim::Nothing } else { Claim::All };
        };
        // Inside the file, the entry may name what the file's symbols don't cover.
        if overlap.is_entry_inside_file() {
            return Claim::Symbols;
        }
        // An entry that reaches into the file from outside must not name anything in its text. But JIT compilers may
        // write code to static buffers, which are in data sections.
        let is_text = image.vaddr(place.offset).is_some_and(|addr| image.is_text(addr));
        if is_text { Claim::All } else { Claim::Symbols }
    }

    /// True if the file exists but can't have symbols, for example because it is a compiler's cache.
    fn has_no_symbols(&self, path: &[u8]) -> bool {
        let search = &self.options.search;
        let mut kinds = search.recorded_paths(path).into_iter().filter_map(|path| search.no_elf(&path));
        kinds.any(|kind| matches!(kind, NoElf::Other | NoElf::SbclCore | NoElf::JitDump))
    }

    /// The parts of an address range in memory that the file's symbols cover. `place` is the position in the file that
    /// the range begins at. Empty if the file isn't found.
    fn ranges_with_symbols(&mut self, range: &Range<Addr>, place: MappedPlace) -> Vec<Range<Addr>> {
        let Self { images, options, by_file, .. } = self;
        let symbols = by_file.entry(place.dso).or_insert_with(|| {
            // Warnings are dropped here: the same problems are reported when the file's symbols name frames.
            functions::named_ranges(place.dso, images, options, &mut Warnings::new())
        });
        let Some(start) = images.get(place.dso).and_then(|image| image.vaddr(place.offset)) else { return Vec::new() };
        let end = start.saturating_add(range.end.0 - range.start.0);
        let first = symbols.partition_point(|symbol| symbol.end <= start);
        let mut ranges = Vec::new();
        for symbol in symbols[first..].iter().take_while(|symbol| symbol.start < end) {
            let symbol_start = symbol.start.max(start) - start;
            let symbol_end = symbol.end.min(end) - start;
            ranges.push(Addr(range.start.0 + symbol_start)..Addr(range.start.0 + symbol_end));
        }
        ranges
    }
}
