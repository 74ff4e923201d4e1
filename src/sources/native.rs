//! Entries without a time that name code of files.
//!
//! Some maps report code that is in a file (V8's of its builtins, in node's or Chromium's text), and some entries are
//! longer than their code and reach over a library behind it. Frames that a file names itself keep their names: perf
//! looks up a map only for memory that no file backs. An entry that lies in a file wholly, where that has no symbols,
//! names it.

use crate::error::Warnings;
use crate::model::ancestry::Ancestry;
use crate::model::process::{CpuMode, Mapping, Processes};
use crate::model::ranges::{IntervalTree, Span};
use crate::model::{Addr, Nanos, Pid};
use crate::resolve::address_space::{AddressSpaces, Place};
use crate::resolve::code_map::CodeList;
use crate::resolve::dso::{DsoId, DsoKind};
use crate::resolve::symbols::files::SearchOptions;
use crate::resolve::symbols::images::Images;
use crate::resolve::symbols::{SymbolOptions, functions};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Hides the parts of entries without a time that lie over files' code which they do not name.
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
    let mut inside = Vec::new();
    for over in over_files {
        match over.place_to_the_end(&spaces) {
            Some(place) if over.is_inside() => inside.push((over, place)),
            Some(_) => hidden.hide_untimed(over.pid, over.common()),
            None => {}
        }
    }
    let Processes { machine, os_release, .. } = processes;
    let search = SearchOptions { machine: *machine, os_release: os_release.clone(), ..search.clone() };
    let mut symbols = Symbols::new(&spaces, search);
    let named = inside.into_iter().filter(|(over, place)| symbols.name_any_of(over, *place));
    named.for_each(|(over, _)| hidden.hide_untimed(over.pid, over.entry));
    hidden
}

/// The end of the recording.
const END: Nanos = Nanos(u64::MAX - 1);

/// An entry, and a file's mapping that has addresses with it in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OverFile {
    pid: Pid,
    entry: Range<Addr>,
    file: Range<Addr>,
}

impl OverFile {
    fn common(&self) -> Range<Addr> {
        self.entry.start.max(self.file.start)..self.entry.end.min(self.file.end)
    }

    fn is_inside(&self) -> bool {
        self.common() == self.entry
    }

    /// The mapping there at the end, if it is a file that nothing was mapped over. While something else was there, or
    /// was not there yet, the mapping is looked up for each sample, at its time.
    fn place_to_the_end(&self, spaces: &AddressSpaces) -> Option<Place> {
        let place = spaces.lookup(self.pid, self.common().start, END, CpuMode::User)?;
        (place.until >= END && spaces.dsos().get(place.dso).kind == DsoKind::File).then_some(place)
    }
}

/// The range of a file's mapping.
#[derive(Debug)]
struct FileMapping(Range<Addr>);

impl Span for FileMapping {
    fn range(&self) -> Range<u64> {
        self.0.start.0..self.0.end.0
    }
}

/// All entries without a time that lie over files, at least in part, each once. Mostly there are no such lists.
fn over_files(lists: &[CodeList<'_>], processes: &Processes) -> FxHashSet<OverFile> {
    let (mut found, mut files, mut ancestry) = (FxHashSet::default(), FxHashMap::default(), None);
    for (pid, entry) in lists.iter().flat_map(CodeList::untimed) {
        let ancestry = ancestry.get_or_insert_with(|| Ancestry::new(processes));
        let files = files.entry(pid).or_insert_with(|| files_of(pid, ancestry, processes));
        files.visit(entry.start.0..entry.end.0, |file| {
            found.insert(OverFile { pid, entry: entry.clone(), file: file.0.clone() });
        });
    }
    found
}

/// The addresses where a process, or one that it was forked from, had files with code.
fn files_of(pid: Pid, ancestry: &Ancestry, processes: &Processes) -> IntervalTree<FileMapping> {
    let family = ancestry.ancestors(pid).filter_map(|pid| processes.by_pid.get(&pid));
    let files = family.flat_map(|process| &process.mappings);
    let files = files.filter(|mapping| mapping.executable && mapping.backing().ends_jit_code());
    let range = |file: &Mapping| FileMapping(file.addr..Addr(file.addr.0.saturating_add(file.len)));
    IntervalTree::new(files.map(range).collect())
}

/// The names in files, each opened when it is first requested.
struct Symbols<'a> {
    images: Images<'a>,
    options: SymbolOptions,
    by_file: FxHashMap<DsoId, Vec<Range<u64>>>,
}

impl<'a> Symbols<'a> {
    fn new(spaces: &'a AddressSpaces, search: SearchOptions) -> Self {
        let images = Images::new(spaces.dsos().iter(), search.clone());
        Self { images, options: SymbolOptions { search, ..SymbolOptions::default() }, by_file: FxHashMap::default() }
    }

    /// True if a file names anything where an entry lies that begins at this place.
    fn name_any_of(&mut self, over: &OverFile, place: Place) -> bool {
        let Self { images, options, by_file } = self;
        // Oddities of files are reported where they name frames.
        let load = || functions::named(place.dso, images, options, &mut Warnings::new());
        let named = by_file.entry(place.dso).or_insert_with(load);
        let Some(start) = images.get(place.dso).and_then(|image| image.vaddr(place.offset)) else { return false };
        let end = start.saturating_add(over.entry.end.0 - over.entry.start.0);
        named.get(named.partition_point(|range| range.end <= start)).is_some_and(|range| range.start < end)
    }
}
