//! Inlined calls and source lines, from DWARF: `addr2line` over sections that we find, decompress and connect.
//!
//! A context is built once for each shard of addresses (it caches without locks); the decompressed sections are
//! shared by all shards of a file. Split units (`.dwo`, `.dwp`) that the wanted addresses need are opened before.
//!
//! A context reads the head of every unit, for which it needs the unit's abbreviations: in a file of two thousand
//! units, of which ten are hit, that is nearly all of its work. Where `.debug_aranges` tells where units are, those
//! that lie elsewhere are shown to it without abbreviations, and it leaves them out. Units that are not listed there
//! stay, and of those that are, it need not know every range: where an address is listed nowhere, they are asked
//! themselves. Should a unit refer to one that was left out, a context of all units answers.

use super::files::{self, SearchOptions};
use super::image::Image;
use super::plt;
use addr2line::{Context, FrameIter, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{DwarfPackage, DwarfPackageSections, DwarfSections, DwoId, EndianSlice, RunTimeEndian, Section, SectionId};
use object::Object;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How DWARF is read.
pub type Reader<'a> = EndianSlice<'a, RunTimeEndian>;
type SectionBytes<'data> = DwarfSections<Cow<'data, [u8]>>;

/// The files with the debugging information of one image.
#[derive(Debug, Default)]
pub struct DebugFiles {
    shared: Option<Image>,
    package: Option<Image>,
    units: Vec<(DwoId, Image)>,
}

/// Their sections.
#[derive(Debug)]
pub struct DebugSections<'data> {
    endian: RunTimeEndian,
    main: SectionBytes<'data>,
    shared: Option<SectionBytes<'data>>,
    package: Option<DwarfPackageSections<Cow<'data, [u8]>>>,
    units: FxHashMap<u64, SectionBytes<'data>>,
    /// `.debug_abbrev` of `main` without the tables of units that lie elsewhere than the wanted addresses.
    near: Option<Vec<u8>>,
}

/// Answers for addresses of one file. Not shared between threads.
pub struct Inlines<'a> {
    sections: &'a DebugSections<'a>,
    context: Context<Reader<'a>>,
    /// Of all units, where `context` is of the near ones only.
    whole: OnceCell<Option<Context<Reader<'a>>>>,
    package: Option<DwarfPackage<Reader<'a>>>,
}

impl DebugFiles {
    /// Opens what `main` needs besides itself to answer for these link-time addresses.
    pub fn open(main: &Image, running: &Image, options: &SearchOptions, addresses: &[u64]) -> Self {
        let mut files = Self { shared: options.shared(main), ..Self::default() };
        // A unit that was split has left its addresses behind.
        let may_be_split = main.object().is_ok_and(|object| object.section_by_name(".debug_addr").is_some());
        if !may_be_split {
            return files;
        }
        let wanted = DebugSections::load(main, &files, addresses).map(|sections| sections.split_units(addresses));
        let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else { return files };
        files.package = options.package(&[running, main]);
        if files.package.is_none() {
            let open = |(id, path): (DwoId, PathBuf)| Some((id, files::open(&path)?));
            files.units = wanted.into_iter().filter_map(open).collect();
        }
        files
    }
}

impl<'data> DebugSections<'data> {
    /// Finds and decompresses the sections that answer for these link-time addresses. `None` if `main` is damaged.
    pub fn load(main: &'data Image, files: &'data DebugFiles, addresses: &[u64]) -> Option<Self> {
        let object = main.object().ok()?;
        let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let sections = |image: &'data Image, name: fn(SectionId) -> Option<&'static str>| {
            let object = image.object().ok()?;
            let section = |id| {
                name(id).filter(|_| is_wanted(id)).map_or(Cow::Borrowed(&[][..]), |name| image.section(&object, name))
            };
            DwarfSections::load(|id| Ok::<_, gimli::Error>(section(id))).ok()
        };
        let package = files.package.as_ref().and_then(|image| {
            let object = image.object().ok()?;
            let section =
                |id: SectionId| id.dwo_name().map_or(Cow::Borrowed(&[][..]), |name| image.section(&object, name));
            DwarfPackageSections::load(|id| Ok::<_, gimli::Error>(section(id))).ok()
        });
        let units = files.units.iter().filter_map(|(id, image)| Some((id.0, sections(image, |id| id.dwo_name())?)));
        let own = sections(main, |id| Some(id.name()))?;
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        Some(Self {
            endian,
            near: near_abbreviations(&own.borrow(|bytes| EndianSlice::new(bytes, endian)), &addresses),
            main: own,
            shared: files.shared.as_ref().and_then(|image| sections(image, |id| Some(id.name()))),
            package,
            units: units.collect(),
        })
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Reader<'a> {
        EndianSlice::new(bytes, self.endian)
    }

    /// Of the units that may be hit, or of all.
    fn context(&self, all: bool) -> Option<Context<Reader<'_>>> {
        let mut dwarf = self.main.borrow_with_sup(self.shared.as_ref(), |bytes| self.reader(bytes));
        if let Some(near) = self.near.as_ref().filter(|_| !all) {
            dwarf.debug_abbrev = self.reader(near).into();
        }
        Context::from_dwarf(dwarf).ok()
    }

    /// The split units of these addresses, with the paths where their compiler put them.
    fn split_units(&self, addresses: &[u64]) -> Vec<(DwoId, PathBuf)> {
        let mut units = Vec::new();
        let mut seen = FxHashSet::default();
        let Some(context) = self.context(false) else { return units };
        for &addr in addresses.iter().filter(|&&addr| has_next(addr)) {
            for (load, _) in context.preload_units(addr) {
                if seen.insert(load.dwo_id.0) {
                    units.extend(dwo_path(&load).map(|path| (load.dwo_id, path)));
                }
            }
        }
        units
    }
}

/// The abbreviations without the tables of units that lie elsewhere than these ascending addresses. `None` if no
/// unit is known to.
fn near_abbreviations(dwarf: &gimli::Dwarf<Reader<'_>>, addresses: &[u64]) -> Option<Vec<u8>> {
    // Of each unit that is listed: whether an address lies in it.
    let mut hit: FxHashMap<usize, bool> = FxHashMap::default();
    let mut listed = vec![false; addresses.len()];
    let mut lists = dwarf.debug_aranges.headers();
    while let Some(list) = lists.next().ok()? {
        let mut ranges = list.entries();
        while let Some(range) = ranges.next().ok()? {
            if range.length() > 0 {
                let end = range.address().saturating_add(range.length());
                let below = |limit: u64| addresses.partition_point(|&addr| addr < limit);
                let inside = listed.get_mut(below(range.address())..below(end)).unwrap_or_default();
                inside.fill(true);
                *hit.entry(list.debug_info_offset().0).or_default() |= !inside.is_empty();
            }
        }
    }
    let unlisted = unlisted(addresses, &listed);
    let (mut near, mut far) = (FxHashSet::default(), Vec::new());
    let mut units = dwarf.units();
    while let Some(unit) = units.next().ok()? {
        let table = unit.debug_abbrev_offset().0;
        match unit.debug_info_offset().and_then(|offset| hit.get(&offset.0)) {
            Some(false) if !covers(dwarf, unit, &unlisted) => far.push(table),
            _ => drop(near.insert(table)),
        }
    }
    far.retain(|table| !near.contains(table));
    let mut abbreviations = dwarf.debug_abbrev.reader().slice().to_vec();
    for &table in &far {
        // A table begins with the code of its first entry: 0 ends it.
        *abbreviations.get_mut(table)? = 0;
    }
    (!far.is_empty()).then_some(abbreviations)
}

/// The addresses that no list has. The byte behind one that is listed is none: it is looked at only if nothing is
/// found there.
fn unlisted(addresses: &[u64], listed: &[bool]) -> Vec<u64> {
    let mut before = None;
    let each = addresses.iter().zip(listed).filter_map(|(&addr, &listed)| {
        let behind = before.replace((addr, listed)) == Some((addr.wrapping_sub(1), true));
        (!listed && !behind).then_some(addr)
    });
    each.collect()
}

/// Whether one of these ascending addresses lies in a unit, or may do so: the unit is asked itself.
fn covers(dwarf: &gimli::Dwarf<Reader<'_>>, unit: gimli::UnitHeader<Reader<'_>>, addresses: &[u64]) -> bool {
    let look = || {
        let unit = dwarf.unit(unit)?;
        let mut ranges = dwarf.unit_ranges(&unit)?;
        while let Some(range) = ranges.next()? {
            if plt::is_hit(addresses, range.begin, range.end) {
                return Ok::<bool, gimli::Error>(true);
            }
        }
        Ok(false)
    };
    !addresses.is_empty() && look().unwrap_or(true)
}

/// Sections that tell of variables, types and macros are large, and dear where they are compressed.
fn is_wanted(id: SectionId) -> bool {
    use SectionId::{DebugLoc, DebugLocLists, DebugMacinfo, DebugMacro, DebugNames, DebugTypes};
    !matches!(id, DebugLoc | DebugLocLists | DebugMacinfo | DebugMacro | DebugNames | DebugTypes)
}

fn dwo_path(load: &SplitDwarfLoad<Reader<'_>>) -> Option<PathBuf> {
    let path = |reader: &Reader<'_>| PathBuf::from(OsStr::from_bytes(reader.slice()));
    let dir = load.comp_dir.as_ref().map(path).unwrap_or_default();
    Some(Path::new(&dir).join(path(load.path.as_ref()?)))
}

impl<'a> Inlines<'a> {
    /// Reads the table of units. `None` if it is damaged.
    pub fn new(sections: &'a DebugSections<'a>) -> Option<Self> {
        let empty = EndianSlice::new(&[], sections.endian);
        let package = sections.package.as_ref();
        let package = package.and_then(|package| package.borrow(|bytes| sections.reader(bytes), empty).ok());
        Some(Self { sections, context: sections.context(false)?, whole: OnceCell::new(), package })
    }

    /// The calls at a link-time address, innermost first. Empty if nothing is known.
    pub fn find(&self, addr: u64) -> Option<FrameIter<'_, Reader<'a>>> {
        let frames = self.find_in(&self.context, addr);
        if frames.is_none() && self.sections.near.is_some() {
            let whole = self.whole.get_or_init(|| self.sections.context(true));
            return self.find_in(whole.as_ref()?, addr);
        }
        frames
    }

    /// `None` if it is damaged, or refers to a unit that the context does not have.
    fn find_in<'c>(&self, context: &'c Context<Reader<'a>>, addr: u64) -> Option<FrameIter<'c, Reader<'a>>> {
        if !has_next(addr) {
            return None;
        }
        let mut lookup = context.find_frames(addr);
        loop {
            match lookup {
                LookupResult::Output(frames) => return frames.ok(),
                LookupResult::Load { load, continuation } => lookup = continuation.resume(self.split(&load)),
            }
        }
    }

    fn split(&self, load: &SplitDwarfLoad<Reader<'a>>) -> Option<Arc<gimli::Dwarf<Reader<'a>>>> {
        if let Some(package) = &self.package {
            return package.find_cu(load.dwo_id, &load.parent).ok().flatten().map(Arc::new);
        }
        let unit = self.sections.units.get(&load.dwo_id.0)?;
        let mut dwarf = unit.borrow(|bytes| self.sections.reader(bytes));
        dwarf.make_dwo(&load.parent);
        Some(Arc::new(dwarf))
    }
}

impl std::fmt::Debug for Inlines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inlines").finish_non_exhaustive()
    }
}

/// addr2line looks for what is between an address and the next one.
fn has_next(addr: u64) -> bool {
    addr != u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_the_test_binary() {
        let image = files::open(&std::env::current_exe().unwrap()).unwrap();
        let object = image.object().unwrap();
        use object::ObjectSymbol;
        let own = object.symbols().find(|symbol| {
            symbol.name().is_ok_and(|name| name.contains("a_function_of_the_test_binary")) && symbol.size() > 0
        });
        let addr = own.unwrap().address();
        let files = DebugFiles::open(&image, &image, &SearchOptions::default(), &[addr]);
        let sections = DebugSections::load(&image, &files, &[addr]).unwrap();
        let inlines = Inlines::new(&sections).unwrap();
        let mut frames = inlines.find(addr).unwrap();
        let location = frames.next().unwrap().unwrap().location.unwrap();
        assert!(location.file.unwrap().ends_with("inlines.rs"), "{:?}", location.file);
    }

    #[test]
    fn nothing_is_at_the_last_address() {
        let image = files::open(&std::env::current_exe().unwrap()).unwrap();
        let files = DebugFiles::open(&image, &image, &SearchOptions::default(), &[u64::MAX]);
        let sections = DebugSections::load(&image, &files, &[u64::MAX]).unwrap();
        assert!(Inlines::new(&sections).unwrap().find(u64::MAX).is_none());
    }
}
