//! Finds inlined calls and source lines in DWARF. Uses `addr2line`, on sections that are located and decompressed here.
//!
//! Addresses are resolved in shards, and each shard builds its own `addr2line` context, because contexts cache results
//! without locks. All shards of a file share the decompressed sections. The split units (`.dwo`, `.dwp`) that the
//! addresses need are opened beforehand.

use super::files::{DEBUGGING, SearchOptions};
use super::image::Image;
use super::near::{Listed, Reader, Tables};
use crate::error::Warnings;
use crate::model::code::MOST_INLINED;
use crate::model::dwarf_depth::{count_deep_calls, limit_sections, without_deep_calls};
use addr2line::{Context, FrameIter, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{
    AbbreviationsCacheStrategy, DwarfPackage, DwarfPackageSections, DwarfSections, DwoId, EndianSlice, RunTimeEndian,
    SectionId,
};
use object::Object;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

type SectionBytes<'data> = DwarfSections<Cow<'data, [u8]>>;

/// Other files to which the debug information of an image refers.
#[derive(Debug, Default)]
pub struct DebugFiles {
    /// The supplementary file, in which dwz has put what several files share (`.gnu_debugaltlink`).
    supplementary: Option<Image>,
    /// The package of split units (`.dwp`).
    package: Option<Image>,
    /// Files with one split unit each (`.dwo`), if there is no package.
    units: Vec<(DwoId, Image)>,
}

/// Whether the line tables of an image are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineTables {
    /// Positions in the source are requested.
    Needed,
    /// Only functions and inlined calls are requested.
    NotNeeded,
}

/// The debug sections of an image and of the other files to which they refer.
#[derive(Debug)]
pub struct DebugSections<'data> {
    endian: RunTimeEndian,
    image: &'data Image,
    /// The image's own sections, without those parts that the requested addresses don't need (see the module `near`).
    own: SectionBytes<'data>,
    /// The section `.debug_abbrev`, changed so that the parts left out of `own` are skipped.
    abbreviations: Cow<'data, [u8]>,
    /// True if units are left out of `own`.
    lacks_units: bool,
    /// All sections of the image, with nothing left out. Loaded if a unit in `own` refers to one that was left out;
    /// `None` if they are damaged.
    whole: OnceLock<Option<SectionBytes<'data>>>,
    /// The sections of the supplementary file (dwz).
    supplementary: Option<SectionBytes<'data>>,
    /// The sections of the package of split units.
    package: Option<DwarfPackageSections<Cow<'data, [u8]>>>,
    /// The sections of each split unit that has a file of its own, by the unit's ID.
    units: FxHashMap<u64, SectionBytes<'data>>,
    /// The number of inlined calls that aren't shown because they are nested too deep.
    left_out: AtomicU64,
}

/// Finds the inlined calls at the addresses of one file. Each thread has its own.
pub struct Inlines<'a> {
    sections: &'a DebugSections<'a>,
    context: Context<Reader<'a>>,
    /// An `addr2line` context with all units of the file. Made when `context` lacks a unit that is needed.
    whole: OnceCell<Option<Context<Reader<'a>>>>,
    /// The package of split units, if there is one.
    package: Option<DwarfPackage<Reader<'a>>>,
}

impl DebugFiles {
    /// Opens the additional debug files that are needed to resolve these link-time addresses: the supplementary file,
    /// which several files share, and the files with split units. Missing ones are left out. `main` is the image with
    /// the DWARF, `running` the file that ran; they may be the same.
    pub fn open(
        main: &Image,
        running: &Image,
        options: &SearchOptions,
        addresses: &[u64],
        warnings: &mut Warnings,
    ) -> Self {
        let mut files = Self { supplementary: options.find_shared(main, warnings), ..Self::default() };
        // If there are split units, `main` has their addresses in the section `.debug_addr`.
        let may_be_split = main.object().is_ok_and(|object| object.section_by_name(".debug_addr").is_some());
        if !may_be_split {
            return files;
        }
        // To find out which split units are needed, `main` is loaded without its line tables, which don't matter for
        // that.
        let Some(sections) = DebugSections::load(main, &files, addresses, LineTables::NotNeeded) else { return files };
        let split_units = sections.split_units(addresses);
        if split_units.is_empty() {
            return files;
        }
        // The borrow of `files` must end here, because `files` is changed below.
        drop(sections);
        // A package (`.dwp`) contains all split units. Without one, each unit is in a file of its own.
        files.package = options.find_package(&[running, main], warnings);
        if files.package.is_none() {
            for (id, path) in split_units {
                if let Some(image) = options.open(&path, DEBUGGING, warnings) {
                    files.units.push((id, image));
                }
            }
        }
        files
    }
}

impl<'data> DebugSections<'data> {
    /// Loads and decompresses the sections that these link-time addresses need. `None` if `main` is damaged.
    pub fn load(main: &'data Image, files: &'data DebugFiles, addresses: &[u64], lines: LineTables) -> Option<Self> {
        let object = main.object().ok()?;
        let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let mut units = FxHashMap::default();
        for (id, image) in &files.units {
            if let Some(unit) = sections(image, |section| section.dwo_name()) {
                units.insert(id.0, unit);
            }
        }
        let mut loaded = Self {
            endian,
            image: main,
            own: SectionBytes::default(),
            abbreviations: main.section(&object, SectionId::DebugAbbrev.name()),
            lacks_units: false,
            whole: OnceLock::new(),
            supplementary: files.supplementary.as_ref().and_then(|image| sections(image, |id| Some(id.name()))),
            package: files.package.as_ref().and_then(load_package),
            units,
            left_out: AtomicU64::new(0),
        };
        loaded.load_own(&object, addresses, lines)?;
        Some(loaded)
    }

    /// The number of inlined calls that aren't shown because they are nested too deep, as far as known by now.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Loads the image's own sections, without the units and line tables that the addresses don't need; see the module
    /// `near`. `None` if the sections are damaged. Without a readable `.debug_aranges`, nothing is left out.
    fn load_own(&mut self, object: &object::File<'data>, addresses: &[u64], lines: LineTables) -> Option<()> {
        let (image, endian) = (self.image, self.endian);
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        let aranges = image.section(object, SectionId::DebugAranges.name());
        // Which units contain the addresses, according to `.debug_aranges`; `None` if that section is damaged.
        let listed = Listed::new(&EndianSlice::new(&aranges, endian).into(), &addresses);
        let (info, is_cut) = match &listed {
            Some(listed) => listed.info(image, object, endian),
            None => (image.section(object, SectionId::DebugInfo.name()), false),
        };
        let section = |id| match id {
            // `.debug_info`, `.debug_aranges` and `.debug_abbrev` have been read already. `.debug_line` is read below,
            // if it is needed.
            SectionId::DebugInfo | SectionId::DebugAranges | SectionId::DebugAbbrev | SectionId::DebugLine => {
                Cow::default()
            }
            id if is_wanted(id) => image.section(object, id.name()),
            _ => Cow::default(),
        };
        self.own = DwarfSections::load(|id| Ok::<_, gimli::Error>(section(id))).ok()?;
        self.own.debug_info = info.into();
        self.own.debug_aranges = aranges.into();
        // If any units are left out, lookups that fail are repeated with all units.
        let mut lacks_units = is_cut;
        let mut needs_lines = true;
        // If `.debug_aranges` or a unit is damaged, all units and line tables are kept.
        if let Some(listed) = &listed
            && let Some(tables) = Tables::new(&self.dwarf(), listed)
        {
            lacks_units |= tables.leave_out_far(&mut self.abbreviations);
            // `leave_out_lines` returns false if the line tables are needed to find the address ranges of units.
            needs_lines = lines == LineTables::Needed || !tables.leave_out_lines(&mut self.abbreviations);
        }
        if needs_lines {
            self.own.debug_line = image.section(object, SectionId::DebugLine.name()).into();
        }
        self.lacks_units = lacks_units;
        self.limit_depth(listed.as_ref(), &addresses);
        Some(())
    }

    /// Removes inlined calls that are nested too deep, and counts them in `left_out`. In the image's own units, this is
    /// only done if a unit may contain one of the addresses. `listed` tells which units may; if it is `None`, all may.
    fn limit_depth(&mut self, listed: Option<&Listed>, addresses: &[u64]) {
        let dwarf = self.dwarf();
        let is_wanted = |unit: &gimli::UnitHeader<Reader<'_>>| match listed {
            Some(listed) => listed.may_cover(&dwarf, *unit, addresses),
            None => true,
        };
        let mut left_out = 0;
        // If no calls are nested too deep, the sections stay as they are.
        if let Some(shallow) = without_deep_calls(&dwarf, MOST_INLINED, is_wanted) {
            left_out = shallow.left_out;
            self.own.debug_info = Cow::<[u8]>::Owned(shallow.info).into();
            self.abbreviations = shallow.abbreviations.into();
        }
        for unit in self.units.values_mut() {
            left_out += limit_sections(unit, self.endian, MOST_INLINED);
        }
        self.left_out.fetch_add(left_out, Ordering::Relaxed);
    }

    fn reader<'a>(&self, bytes: &'a [u8]) -> Reader<'a> {
        EndianSlice::new(bytes, self.endian)
    }

    /// The image's DWARF, without those parts that the requested addresses don't need.
    fn dwarf(&self) -> gimli::Dwarf<Reader<'_>> {
        let mut dwarf = self.own.borrow_with_sup(self.supplementary.as_ref(), |bytes| self.reader(bytes));
        dwarf.debug_abbrev = self.reader(&self.abbreviations).into();
        // The units that one run of a compiler made share an abbreviation table, so parsed tables are cached.
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        dwarf
    }

    /// An `addr2line` context with the units that the requested addresses may need.
    fn context(&self) -> Option<Context<Reader<'_>>> {
        Context::from_dwarf(self.dwarf()).ok()
    }

    /// An `addr2line` context with all units of the file, whose sections are loaded when this is first called. `None`
    /// if they are damaged.
    fn whole_context(&self) -> Option<Context<Reader<'_>>> {
        let whole = self.whole.get_or_init(|| {
            let mut whole = sections(self.image, |id| Some(id.name()))?;
            self.left_out.fetch_add(limit_sections(&mut whole, self.endian, MOST_INLINED), Ordering::Relaxed);
            Some(whole)
        });
        let mut dwarf = whole.as_ref()?.borrow_with_sup(self.supplementary.as_ref(), |bytes| self.reader(bytes));
        // As in `dwarf`, abbreviation tables that several units share are parsed once.
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        Context::from_dwarf(dwarf).ok()
    }

    /// The split units that these addresses need, each once. Each comes with the path at which the compiler put its
    /// file; units without a path are left out.
    fn split_units(&self, addresses: &[u64]) -> Vec<(DwoId, PathBuf)> {
        let mut units = Vec::new();
        let mut added = FxHashSet::default();
        let Some(context) = self.context() else { return units };
        // `addr2line` can't look up the last address of the address space.
        for &addr in addresses.iter().filter(|&&addr| has_next(addr)) {
            for (load, _) in context.preload_units(addr) {
                if added.insert(load.dwo_id.0)
                    && let Some(path) = dwo_path(&load)
                {
                    units.push((load.dwo_id, path));
                }
            }
        }
        units
    }
}

/// All sections of an image except those about variables, types and macros. `name` gives the name of a section in this
/// file. `None` if the file is damaged.
fn sections(image: &Image, name: fn(SectionId) -> Option<&'static str>) -> Option<SectionBytes<'_>> {
    let object = image.object().ok()?;
    let section = |id| match name(id) {
        Some(name) if is_wanted(id) => image.section(&object, name),
        _ => Cow::Borrowed(&[][..]),
    };
    DwarfSections::load(|id| Ok::<_, gimli::Error>(section(id))).ok()
}

/// False for sections about variables, types and macros. They are large and expensive to decompress.
fn is_wanted(id: SectionId) -> bool {
    use SectionId::{DebugLoc, DebugLocLists, DebugMacinfo, DebugMacro, DebugNames, DebugTypes};
    !matches!(id, DebugLoc | DebugLocLists | DebugMacinfo | DebugMacro | DebugNames | DebugTypes)
}

/// Loads the sections of a package of split units (`.dwp`). `None` if it is damaged.
fn load_package(image: &Image) -> Option<DwarfPackageSections<Cow<'_, [u8]>>> {
    let object = image.object().ok()?;
    let section = |id: SectionId| match id.dwo_name() {
        Some(name) => image.section(&object, name),
        None => Cow::default(),
    };
    DwarfPackageSections::load(|id| Ok::<_, gimli::Error>(section(id))).ok()
}

/// The path of the file of a split unit, relative to the directory in which the compiler ran. `None` if the unit of the
/// image doesn't state it.
fn dwo_path(load: &SplitDwarfLoad<Reader<'_>>) -> Option<PathBuf> {
    let path = |reader: &Reader<'_>| PathBuf::from(OsStr::from_bytes(reader.slice()));
    let dir = load.comp_dir.as_ref().map(path).unwrap_or_default();
    Some(Path::new(&dir).join(path(load.path.as_ref()?)))
}

impl<'a> Inlines<'a> {
    /// Reads the list of units; `None` if the list is damaged.
    pub fn new(sections: &'a DebugSections<'a>) -> Option<Self> {
        let empty = EndianSlice::new(&[], sections.endian);
        let package = sections.package.as_ref();
        let package = package.and_then(|package| package.borrow(|bytes| sections.reader(bytes), empty).ok());
        Some(Self { sections, context: sections.context()?, whole: OnceCell::new(), package })
    }

    /// The functions that were active at a link-time address, innermost first. `None` if the debug information is
    /// damaged.
    pub fn find(&self, addr: u64) -> Option<FrameIter<'_, Reader<'a>>> {
        let frames = self.find_in(&self.context, addr);
        // A unit may refer to another unit that was left out. That looks like damage, so the lookup is repeated with
        // all units.
        if frames.is_none() && self.sections.lacks_units {
            let whole = self.whole.get_or_init(|| self.sections.whole_context());
            return self.find_in(whole.as_ref()?, addr);
        }
        frames
    }

    /// The functions that were active at a link-time address, innermost first, from the units of one context. `None` if
    /// the debug information is damaged, or refers to a unit that the context lacks.
    fn find_in<'c>(&self, context: &'c Context<Reader<'a>>, addr: u64) -> Option<FrameIter<'c, Reader<'a>>> {
        // `addr2line` can't look up the last address of the address space.
        if !has_next(addr) {
            return None;
        }
        let mut lookup = context.find_frames(addr);
        loop {
            match lookup {
                LookupResult::Output(frames) => return frames.ok(),
                // The lookup needs a split unit. Without it, the lookup goes on with what the other units say.
                LookupResult::Load { load, continuation } => lookup = continuation.resume(self.split(&load)),
            }
        }
    }

    /// The split unit that a unit of the image refers to, from the package or a file of its own. `None` if it is
    /// missing, or has inlined calls that are nested too deep.
    fn split(&self, load: &SplitDwarfLoad<Reader<'a>>) -> Option<Arc<gimli::Dwarf<Reader<'a>>>> {
        if let Some(package) = &self.package {
            let dwarf = package.find_cu(load.dwo_id, &load.parent).ok().flatten()?;
            // In a package, calls can't be removed, because its sections are shared by all units.
            let deep = count_deep_calls(&dwarf, MOST_INLINED);
            self.sections.left_out.fetch_add(deep, Ordering::Relaxed);
            return if deep == 0 { Some(Arc::new(dwarf)) } else { None };
        }
        // If a unit has a file of its own, `limit_depth` has already removed its calls that are nested too deep.
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

/// False for the last address of the address space. addr2line can't look it up, because it searches the range from an
/// address to the next one.
fn has_next(addr: u64) -> bool {
    addr != u64::MAX
}

#[cfg(test)]
mod tests {
    use super::super::files::ELF;
    use super::*;

    #[test]
    fn a_function_of_the_standard_library() {
        let image =
            SearchOptions::default().open(&std::env::current_exe().unwrap(), ELF, &mut Warnings::new()).unwrap();
        let object = image.object().unwrap();
        use object::ObjectSymbol;
        // A function of the standard library, because DWARF for this crate's functions differs between builds.
        let start =
            object.symbols().find(|symbol| symbol.name().is_ok_and(|name| name.contains("lang_start_internal")));
        let addr = start.unwrap().address();
        let files = DebugFiles::open(&image, &image, &SearchOptions::default(), &[addr], &mut Warnings::new());
        let sections = DebugSections::load(&image, &files, &[addr], LineTables::Needed).unwrap();
        let inlines = Inlines::new(&sections).unwrap();
        let mut frames = inlines.find(addr).unwrap();
        let location = frames.next().unwrap().unwrap().location.unwrap();
        assert!(location.file.unwrap().ends_with("rt.rs"), "{:?}", location.file);
    }

    #[test]
    fn functions_are_the_same_without_lines() {
        let image =
            SearchOptions::default().open(&std::env::current_exe().unwrap(), ELF, &mut Warnings::new()).unwrap();
        let object = image.object().unwrap();
        use object::ObjectSymbol;
        // Uses a function of the standard library, because what DWARF says about this crate's functions depends on the
        // build.
        let own = object.symbols().find(|symbol| symbol.name().is_ok_and(|name| name.contains("lang_start_internal")));
        let addresses: Vec<u64> = (0..64).map(|at| own.as_ref().unwrap().address() + at).collect();
        let files = DebugFiles::open(&image, &image, &SearchOptions::default(), &addresses, &mut Warnings::new());
        let found = |lines| {
            let sections = DebugSections::load(&image, &files, &addresses, lines).unwrap();
            let inlines = Inlines::new(&sections).unwrap();
            let (mut names, mut places) = (Vec::new(), 0);
            for &addr in &addresses {
                let mut frames = inlines.find(addr).unwrap();
                while let Some(frame) = frames.next().unwrap() {
                    names.extend(frame.function.map(|function| (addr, function.name.slice().to_vec())));
                    places += usize::from(frame.location.is_some_and(|place| place.file.is_some()));
                }
            }
            (names, places)
        };
        let ((names, places), (alone, no_places)) = (found(LineTables::Needed), found(LineTables::NotNeeded));
        assert_eq!(names, alone);
        assert!(names.len() >= addresses.len() && places >= addresses.len() && no_places == 0);
    }

    #[test]
    fn nothing_is_at_the_last_address() {
        let image =
            SearchOptions::default().open(&std::env::current_exe().unwrap(), ELF, &mut Warnings::new()).unwrap();
        let files = DebugFiles::open(&image, &image, &SearchOptions::default(), &[u64::MAX], &mut Warnings::new());
        let sections = DebugSections::load(&image, &files, &[u64::MAX], LineTables::Needed).unwrap();
        assert!(Inlines::new(&sections).unwrap().find(u64::MAX).is_none());
    }
}
