//! Decides where entries of perf maps and other sources without times may name code in files.
//!
//! A perf map may name any address that no symbol of the file there covers, because JIT compilers also write code to
//! cache files, unlinked files and static buffers. Where the file has a symbol, that one is used: V8's perf maps repeat
//! the built-in functions in the text of node or Chromium. If the file isn't available, or only in another version, the
//! perf map may name its code only if a JIT compiler is likely to have written the file: it was deleted, or is in
//! `/dev/shm`.
//!
//! Some entries are longer than their code and extend into a library behind it. They don't name anything in the
//! library's text.

use crate::error::Warnings;
use crate::model::ancestry::Ancestry;
use crate::model::backing::Backing;
use crate::model::process::{CpuMode, Mapping, Processes};
use crate::model::ranges::{IntervalTree, Span};
use crate::model::{Addr, Nanos, Pid};
use crate::resolve::address_space::{AddressSpaces, Place};
use crate::resolve::code_map::CodeList;
use crate::resolve::dso::{DsoId, DsoKind};
use crate::resolve::symbols::files::SearchOptions;
use crate::resolve::symbols::images::Images;
use crate::resolve::symbols::no_elf::NoElf;
use crate::resolve::symbols::{SymbolOptions, functions};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Finds the parts of untimed entries that lie over files but must not name the code there, and returns them as ranges
/// to hide.
pub(super) fn named_by_files(
    lists: &[CodeList<'_>],
    processes: &Processes,
    search: &SearchOptions,
) -> CodeList<'static> {
    let mut hidden = CodeList::default();
    let over_files = over_files(lists, processes);
    if over_files.is_empty() {
        return hidden;
    }
    let spaces = AddressSpaces::new(processes);
    let Processes { machine, os_release, .. } = processes;
    let search = SearchOptions { machine: *machine, os_release: os_release.clone(), ..search.clone() };
    let mut symbols = Symbols::new(&spaces, search);
    for same_file in over_files.chunk_by(|a, b| (a.pid, &a.file) == (b.pid, &b.file)) {
        // The entries are sorted. Look up the addresses of overlapping entries only once.
        let mut asked = Addr(0);
        for over in same_file {
            let common = over.common();
            let Some(place) = place_to_the_end(over.pid, common.start, &spaces) else { continue };
            match symbols.claim(over, place) {
                Claim::Nothing => {}
                Claim::All => hidden.hide_untimed(over.pid, common),
                Claim::Symbols => {
                    let rest = common.start.max(asked)..common.end;
                    asked = asked.max(common.end);
                    let place = place_to_the_end(over.pid, rest.start, &spaces).filter(|_| rest.start < rest.end);
                    for named in place.into_iter().flat_map(|place| symbols.named_in(&rest, place)) {
                        hidden.hide_untimed(over.pid, named);
                    }
                }
            }
        }
    }
    hidden
}

/// The time of the end of the recording.
const END: Nanos = Nanos(u64::MAX - 1);

/// An entry without a time, and a file mapping that it overlaps.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OverFile {
    pid: Pid,
    file: Range<Addr>,
    entry: Range<Addr>,
}

impl OverFile {
    fn common(&self) -> Range<Addr> {
        self.entry.start.max(self.file.start)..self.entry.end.min(self.file.end)
    }

    fn is_inside(&self) -> bool {
        self.common() == self.entry
    }
}

/// The file mapping at an address at the end of the recording; `None` if it isn't a file, or if something else was
/// mapped over it. Such mappings are looked up for each sample at its time instead.
fn place_to_the_end(pid: Pid, addr: Addr, spaces: &AddressSpaces) -> Option<Place> {
    let place = spaces.lookup(pid, addr, END, CpuMode::User)?;
    let is_file = spaces.dsos().get(place.dso).kind == DsoKind::File;
    (place.until >= END && is_file && !place.is_remapped).then_some(place)
}

#[derive(Debug)]
struct FileMapping(Range<Addr>);

impl Span for FileMapping {
    fn range(&self) -> Range<u64> {
        self.0.start.0..self.0.end.0
    }
}

/// All entries without a time that overlap a file mapping. Usually there are none.
fn over_files(lists: &[CodeList<'_>], processes: &Processes) -> Vec<OverFile> {
    let (mut found, mut files, mut ancestry) = (Vec::new(), FxHashMap::default(), None);
    for (pid, entry) in lists.iter().flat_map(CodeList::untimed) {
        let ancestry = ancestry.get_or_insert_with(|| Ancestry::new(processes));
        let files = files.entry(pid).or_insert_with(|| files_of(pid, ancestry, processes));
        files.visit(entry.start.0..entry.end.0, |file| {
            found.push(OverFile { pid, entry: entry.clone(), file: file.0.clone() });
        });
    }
    found.sort_unstable_by_key(|over| (over.pid, over.file.start, over.file.end, over.entry.start, over.entry.end));
    found.dedup();
    found
}

/// The address ranges where a process or its ancestors mapped executable files. Adjacent or overlapping mappings of a
/// file are merged: they only differ in protection.
fn files_of(pid: Pid, ancestry: &Ancestry, processes: &Processes) -> IntervalTree<FileMapping> {
    let family = ancestry.ancestors(pid).filter_map(|pid| processes.by_pid.get(&pid));
    let files = family.flat_map(|process| &process.mappings);
    let mut files: Vec<&Mapping> =
        files.filter(|mapping| mapping.executable && mapping.backing().ends_jit_code()).collect();
    files.sort_by_key(|mapping| (&mapping.path, mapping.addr));
    let mut ranges: Vec<FileMapping> = Vec::new();
    let mut last_path = None;
    for mapping in files {
        let end = Addr(mapping.addr.0.saturating_add(mapping.len));
        match ranges.last_mut() {
            Some(last) if last_path == Some(&mapping.path) && mapping.addr <= last.0.end => {
                last.0.end = last.0.end.max(end);
            }
            _ => ranges.push(FileMapping(mapping.addr..end)),
        }
        last_path = Some(&mapping.path);
    }
    IntervalTree::new(ranges)
}

/// Which part of an entry the file below it names.
enum Claim {
    Nothing,
    /// Wherever it has symbols.
    Symbols,
    All,
}

/// Symbols of files, which are opened on first use.
struct Symbols<'a> {
    spaces: &'a AddressSpaces,
    images: Images<'a>,
    options: SymbolOptions,
    by_file: FxHashMap<DsoId, Vec<Range<u64>>>,
}

impl<'a> Symbols<'a> {
    fn new(spaces: &'a AddressSpaces, search: SearchOptions) -> Self {
        let images = Images::new(spaces.dsos().iter(), search.clone());
        let options = SymbolOptions { search, ..SymbolOptions::default() };
        Self { spaces, images, options, by_file: FxHashMap::default() }
    }

    /// Which part of an entry belongs to the file at this place.
    fn claim(&self, over: &OverFile, place: Place) -> Claim {
        let Some(image) = self.images.get(place.dso) else {
            let path = &self.spaces.dsos().get(place.dso).path;
            let begins_here = over.entry.start >= over.file.start;
            let is_jit = begins_here && (Backing::of(path).is_likely_jit_file() || self.has_no_symbols(path));
            return if is_jit { Claim::Nothing } else { Claim::All };
        };
        // Static buffers are in data sections.
        let is_text = || image.vaddr(place.offset).is_some_and(|addr| image.is_text(addr));
        if over.is_inside() || !is_text() { Claim::Symbols } else { Claim::All }
    }

    /// True if the file exists but is of a kind that has no symbols, such as a compiler's cache.
    fn has_no_symbols(&self, path: &[u8]) -> bool {
        let search = &self.options.search;
        let mut kinds = search.recorded_paths(path).into_iter().filter_map(|path| search.no_elf(&path));
        kinds.any(|kind| matches!(kind, NoElf::Other | NoElf::SbclCore | NoElf::JitDump))
    }

    /// The parts of an address range that symbols of a file cover. `place` is where the range begins.
    fn named_in(&mut self, range: &Range<Addr>, place: Place) -> Vec<Range<Addr>> {
        let Self { images, options, by_file, .. } = self;
        // Problems with files are reported where their symbols name frames.
        let load = || functions::named(place.dso, images, options, &mut Warnings::new());
        let named = by_file.entry(place.dso).or_insert_with(load);
        let Some(start) = images.get(place.dso).and_then(|image| image.vaddr(place.offset)) else { return Vec::new() };
        let end = start.saturating_add(range.end.0 - range.start.0);
        let first = named.partition_point(|symbol| symbol.end <= start);
        let inside = named[first..].iter().take_while(|symbol| symbol.start < end);
        let at = |addr: u64| Addr(range.start.0 + (addr - start));
        inside.map(|symbol| at(symbol.start.max(start))..at(symbol.end.min(end))).collect()
    }
}
