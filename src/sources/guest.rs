//! Names functions of guest programs. QEMU's user mode emulation names each translated instruction by its guest address
//! (`guest-0x400280`). If the guest's ELF files are available, they tell which function that is.
//!
//! | file | found by |
//! |---|---|
//! | any | `--guest FILE` |
//! | the guest program | words of the recorded command line that are ELF files |
//! | its loader and libraries | the program's headers; libraries are next to the loader, below the `-L` directory |
//!
//! QEMU doesn't report where it loaded a file. Programs that aren't relocatable are at the address that they were
//! linked for. For others, the guest addresses reveal it: if a function ran, its first instruction did, too. For wrong
//! load addresses that is only true of few functions.
//!
//! Source: `linux-user/elfload.c` and `tcg/perf.c` of QEMU since 8.0.

use crate::io::door::Named;
use crate::records::jitdump::{Body, JitDump};
use crate::records::perf_map;
use crate::resolve::symbols::demangle::demangle;
use crate::resolve::symbols::files::ELF;
use crate::resolve::symbols::image::Image;
use crate::resolve::symbols::table::SymbolTable;
use object::{Object, ObjectKind, ObjectSection, ObjectSymbol, SymbolKind};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Prefix of the names that QEMU writes.
const PREFIX: &[u8] = b"guest-0x";

/// How many names at the start of a file are checked for the prefix. Files without it aren't searched to the end.
const FIRST: usize = 64;

/// Load addresses are multiples of this.
const PAGE: u64 = 0x1000;

/// How many addresses and functions are considered for finding a load address, and how many candidates are checked in
/// detail (more if the file doesn't list all of its functions).
const MOST: usize = 1 << 16;
const CLOSER: usize = 256;
const CLOSER_OF_SOME: usize = 1 << 10;

/// Rough size of an instruction in bytes.
const INSTRUCTION: u64 = 4;

/// If a file doesn't list all of its functions, at least this many of them must have run.
const FEWEST_OF_SOME: u64 = 6;

/// Functions of a guest program, by guest address.
#[derive(Debug, Default)]
pub(super) struct GuestNames {
    names: FxHashMap<u64, Box<[u8]>>,
    /// The number of distinct guest addresses.
    all: usize,
    /// ELF files that provided names.
    files: Vec<PathBuf>,
    /// Why other existing files weren't used.
    refused: Vec<String>,
}

/// A file that may be part of the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GuestCandidate {
    /// Passed with `--guest`.
    Given(PathBuf),
    /// A word of the recorded command line.
    Word(PathBuf),
    /// Required by a file that has been used.
    Asked(PathBuf),
}

/// Where to look for the guest's files.
#[derive(Debug, Clone, Copy)]
pub(super) struct GuestFiles<'a> {
    /// Passed with `--guest`.
    pub(super) given: &'a [PathBuf],
    /// The recorded command line.
    pub(super) command: &'a [Vec<u8>],
    /// True if files of other users are trusted (`-f`).
    pub(super) force: bool,
}

impl GuestNames {
    /// Names the code of a perf map.
    pub(super) fn of_map(entries: &[perf_map::Entry<'_>], files: GuestFiles<'_>) -> Self {
        Self::of(entries.iter().map(|entry| entry.name), files)
    }

    /// Names the code of a jitdump.
    pub(super) fn of_dump(dump: &JitDump<'_>, files: GuestFiles<'_>) -> Self {
        let names = dump.records().flatten().filter_map(|record| match record.body {
            Body::Load(load) => Some(load.name),
            _ => None,
        });
        Self::of(names, files)
    }

    fn of<'n>(names: impl Iterator<Item = &'n [u8]> + Clone, files: GuestFiles<'_>) -> Self {
        if !names.clone().take(FIRST).any(|name| address(name).is_some()) {
            return Self::default();
        }
        let mut addresses: Vec<u64> = names.filter_map(address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let mut guest = Self { all: addresses.len(), ..Self::default() };
        let mut wanted: Vec<GuestCandidate> = files.given.iter().cloned().map(GuestCandidate::Given).collect();
        wanted.extend(words(files.command).map(GuestCandidate::Word));
        let (mut at, mut has_program) = (0, false);
        while let Some(file) = wanted.get(at).cloned() {
            at += 1;
            let (path, named, is_program) = match file {
                GuestCandidate::Given(path) => (path, Named::User, false),
                GuestCandidate::Asked(path) => (path, Named::Recording, false),
                // Further words are the program's arguments, which may be programs as well.
                GuestCandidate::Word(_) if has_program => continue,
                GuestCandidate::Word(path) => (path, Named::Recording, true),
            };
            let opened = match named.door(files.force).open(&path, ELF) {
                Some(Ok(opened)) => opened,
                Some(Err(error)) => {
                    // Words may be anything, so report only files.
                    let is_meant = !is_program || named.door(true).look(&path).is_some_and(|about| about.is_file());
                    guest.refused.extend(is_meant.then(|| error.to_string()));
                    continue;
                }
                None => continue,
            };
            let Ok(image) = Image::new(&path, opened.bytes) else { continue };
            let Ok(object) = image.object() else { continue };
            if guest.add(&object, &addresses, is_program) {
                has_program |= is_program;
                guest.files.push(path);
                let asked = asked_for(&object, &root(files.command)).into_iter();
                let new: Vec<_> = asked.map(GuestCandidate::Asked).filter(|file| !wanted.contains(file)).collect();
                wanted.extend(new);
            }
        }
        guest
    }

    /// The function at the guest address that a name contains; the name itself if unknown.
    pub(super) fn name<'a>(&'a self, name: &'a [u8]) -> &'a [u8] {
        address(name).and_then(|addr| self.names.get(&addr)).map_or(name, |known| &known[..])
    }

    /// A remark for users: how many addresses were named, and by which files. `None` if there are no guest addresses.
    pub(super) fn remark(&self, path: &Path) -> Option<String> {
        if self.all == 0 {
            return None;
        }
        if self.files.is_empty() {
            let refused: String = self.refused.iter().map(|why| format!("; {why}")).collect();
            let said = "its names are addresses in a guest; name its functions with --guest FILE";
            return Some(format!("{}: {said}{refused}", path.display()));
        }
        let files: Vec<_> = self.files.iter().map(|file| file.display().to_string()).collect();
        let (known, all) = (self.names.len(), self.all);
        Some(format!("{}: named {known} of {all} guest addresses, from {}", path.display(), files.join(", ")))
    }

    /// Adds the names of a file. False if its load address can't be determined.
    fn add(&mut self, object: &object::File<'_>, addresses: &[u64], is_program: bool) -> bool {
        let functions = GuestFunctions::of(object);
        let entry = is_program.then(|| object.entry());
        let base = match object.kind() {
            ObjectKind::Executable => functions.fit(addresses, 0).then_some(0),
            _ => functions.place(addresses, entry),
        };
        let (Some(base), Some(&(first, _)), Some(end)) =
            (base, functions.ranges.first(), functions.ranges.iter().map(|function| function.1).max())
        else {
            return false;
        };
        let from = addresses.partition_point(|&addr| addr < base.saturating_add(first));
        let own = addresses[from..].iter().take_while(|&&addr| addr < base.saturating_add(end));
        let wanted: Vec<u64> = own.map(|addr| addr - base).collect();
        let table = SymbolTable::new(&[object], Vec::new(), &wanted);
        for addr in wanted {
            if let Some(symbol) = table.find(addr) {
                let name = demangle(&symbol.name).map_or_else(|| symbol.name.to_vec(), |name| name.into());
                self.names.entry(base + addr).or_insert_with(|| name.into());
            }
        }
        true
    }
}

/// The guest address in a name that QEMU wrote.
fn address(name: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(name.strip_prefix(PREFIX)?).ok()?, 16).ok()
}

/// Words of a command line that may be files, except for the emulator's own name.
fn words(command: &[Vec<u8>]) -> impl Iterator<Item = PathBuf> {
    let paths = command.iter().map(|word| PathBuf::from(OsStr::from_bytes(word)));
    let is_qemu = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"qemu-"));
    paths.filter(move |path| !is_qemu(path))
}

/// The directory with the guest's files: the value of `-L`.
fn root(command: &[Vec<u8>]) -> PathBuf {
    let behind = command.iter().position(|word| word == b"-L").and_then(|at| command.get(at + 1));
    behind.map_or_else(|| PathBuf::from("/"), |root| PathBuf::from(OsStr::from_bytes(root)))
}

/// Paths of the loader and the libraries that a program requires.
fn asked_for(object: &object::File<'_>, root: &Path) -> Vec<PathBuf> {
    let loader = object.section_by_name(".interp").and_then(|section| section.data().ok());
    let Some(loader) = loader.and_then(|name| name.strip_suffix(b"\0")) else { return Vec::new() };
    let loader = root.join(OsStr::from_bytes(loader.strip_prefix(b"/").unwrap_or(loader)));
    let real = std::fs::canonicalize(&loader).unwrap_or_else(|_| loader.clone());
    let beside = real.parent().unwrap_or(Path::new("/")).to_owned();
    let libraries = needed(object).into_iter().filter(|name| !name.contains(&b'/'));
    let libraries = libraries.map(|name| beside.join(OsStr::from_bytes(&name)));
    std::iter::once(loader).chain(libraries).collect()
}

/// Names of the required libraries (DT_NEEDED).
fn needed(object: &object::File<'_>) -> Vec<Vec<u8>> {
    const DT_NEEDED: u64 = 1;
    let data = |name: &str| object.section_by_name(name).and_then(|section| section.data().ok()).unwrap_or_default();
    let (dynamic, strings, is_wide) = (data(".dynamic"), data(".dynstr"), object.is_64());
    let number = |bytes: &[u8]| {
        let digits = |sum: u64, byte: &u8| (sum << 8) | u64::from(*byte);
        if object.is_little_endian() { bytes.iter().rev().fold(0, digits) } else { bytes.iter().fold(0, digits) }
    };
    let half = if is_wide { 8 } else { 4 };
    let entries = dynamic.chunks_exact(2 * half).map(|entry| (number(&entry[..half]), number(&entry[half..])));
    let names = entries.filter(|(tag, _)| *tag == DT_NEEDED).filter_map(|(_, at)| {
        let name = strings.get(usize::try_from(at).ok()?..)?;
        Some(name[..memchr::memchr(0, name)?].to_vec())
    });
    names.collect()
}

/// The functions in an ELF file.
#[derive(Debug)]
struct GuestFunctions {
    /// Start and end of each function, sorted.
    ranges: Vec<(u64, u64)>,
    /// True if all functions are listed. A stripped library only lists those that it exports.
    complete: bool,
}

impl GuestFunctions {
    fn of(object: &object::File<'_>) -> Self {
        let symbols = object.symbols().chain(object.dynamic_symbols());
        let known =
            symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.size() > 0);
        let mut ranges: Vec<(u64, u64)> =
            known.filter_map(|symbol| Some((symbol.address(), symbol.address().checked_add(symbol.size())?))).collect();
        ranges.sort_unstable();
        ranges.dedup_by_key(|function| function.0);
        Self { ranges, complete: object.symbol_table().is_some() }
    }

    /// Finds the load address of a relocatable file, for which most of its functions start at an address that ran.
    /// `entry` is the entry point of a program, which must have run, too.
    fn place(&self, addresses: &[u64], entry: Option<u64>) -> Option<u64> {
        let mut by_page_offset: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
        for (start, _) in self.ranges.iter().take(MOST) {
            by_page_offset.entry(start % PAGE).or_default().push(*start);
        }
        let mut votes: FxHashMap<u64, u32> = FxHashMap::default();
        for addr in addresses.iter().take(MOST) {
            for start in by_page_offset.get(&(addr % PAGE)).into_iter().flatten() {
                if let Some(base) = addr.checked_sub(*start) {
                    *votes.entry(base).or_default() += 1;
                }
            }
        }
        let mut bases: Vec<(u64, u32)> = votes.into_iter().collect();
        bases.sort_unstable_by_key(|&(base, votes)| (std::cmp::Reverse(votes), base));
        let begins = |base: u64| {
            entry.is_none_or(|entry| base.checked_add(entry).is_some_and(|addr| addresses.binary_search(&addr).is_ok()))
        };
        let bases = bases.into_iter().map(|(base, _)| base).filter(|&base| begins(base));
        if self.complete {
            return bases.take(CLOSER).find(|&base| self.fit(addresses, base));
        }
        // If other code ran as well, some functions seem to start at many addresses. Accept a load address only if no
        // other one fits.
        let mut fitting = bases.take(CLOSER_OF_SOME).filter(|&base| self.fit(addresses, base));
        fitting.next().filter(|_| fitting.next().is_none())
    }

    /// True if a load address fits: functions that ran did so from their start, and little ran between functions. The
    /// conditions are stricter if the file doesn't list all functions.
    fn fit(&self, addresses: &[u64], base: u64) -> bool {
        let before = |addr: u64| addresses.partition_point(|&other| other < base.saturating_add(addr));
        let (mut ran, mut begun, mut inside, mut end, mut bytes) = (0u64, 0u64, 0, 0, 0u64);
        for &(start, until) in &self.ranges {
            let (from, to) = (before(start), before(until));
            ran += u64::from(to > from);
            begun += u64::from(to > from && addresses.get(from) == Some(&base.saturating_add(start)));
            bytes = bytes.saturating_add(if to > from { until - start } else { 0 });
            // Functions may overlap.
            inside += to.saturating_sub(from.max(end));
            end = end.max(to);
        }
        let all = end.saturating_sub(self.ranges.first().map_or(0, |function| before(function.0)));
        // If every instruction in a region ran, functions of any file seem to start there.
        let has_gaps = (inside as u64).saturating_mul(INSTRUCTION) <= bytes / 5 * 4;
        let enough = if self.complete { ran >= 3 && inside * 2 >= all } else { ran >= FEWEST_OF_SOME && has_gaps };
        let most = if self.complete { begun * 5 >= ran * 4 } else { begun * 20 >= ran * 19 };
        enough && most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions of 0x40 bytes at uneven distances.
    fn spread() -> Vec<(u64, u64)> {
        (0..200u64).map(|at| at * 0x90 + at * at % 7 * 0x10).map(|start| (0x1000 + start, 0x1040 + start)).collect()
    }

    /// Every instruction (4 bytes each) of every third function, loaded at `base`.
    fn ran(base: u64) -> Vec<u64> {
        spread().iter().step_by(3).flat_map(|&(start, end)| (start..end).step_by(4)).map(|addr| base + addr).collect()
    }

    fn told(ranges: Vec<(u64, u64)>, complete: bool) -> GuestFunctions {
        GuestFunctions { ranges, complete }
    }

    #[test]
    fn a_relocatable_file_is_placed_where_its_functions_begin() {
        let base = 0x7f70_3a0d_8000;
        let functions = told(spread(), true);
        assert_eq!(functions.place(&ran(base), None), Some(base));
        let mut with_others = ran(base);
        with_others.extend((0..4000).map(|at| 0x5000_0000 + at * 4));
        with_others.sort_unstable();
        assert_eq!(functions.place(&with_others, Some(0x1000)), Some(base));
    }

    #[test]
    fn a_stripped_library_is_placed_by_the_functions_that_others_call() {
        let base = 0x7f70_3a0d_8000;
        let exported: Vec<(u64, u64)> = spread().into_iter().step_by(9).collect();
        // Functions rarely run from the first to the last instruction.
        let first_half = |&(start, end): &(u64, u64)| (start..(start + end) / 2).step_by(4);
        let ran: Vec<u64> = spread().iter().step_by(3).flat_map(first_half).map(|addr| base + addr).collect();
        assert_eq!(told(exported.clone(), true).place(&ran, None), None, "most ran between them");
        assert_eq!(told(exported.clone(), false).place(&ran, None), Some(base));
        // Another program ran at so many addresses that functions of the library seem to start there, too.
        let mut beside = ran.clone();
        let by_chance = |addr: &u64| (addr.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) & 1 == 0;
        beside.extend((0x1000..0x9000).step_by(4).filter(by_chance).map(|addr| base + 0x20_0000 + addr));
        beside.sort_unstable();
        assert_eq!(told(exported.clone(), false).place(&beside, None), Some(base), "no other place fits");
        let mut twice = ran.clone();
        twice.extend(ran.iter().map(|addr| addr + 0x20_0000));
        assert_eq!(told(exported.clone(), false).place(&twice, None), None, "two places fit");
        let few = exported[..4].to_vec();
        assert_eq!(told(few, false).place(&ran, None), None, "so few may be by chance");
    }

    #[test]
    fn a_file_that_did_not_run_is_placed_nowhere() {
        let others: Vec<u64> = (0..4000).map(|at| 0x5000_0000 + at * 4).collect();
        for complete in [true, false] {
            let functions = told(spread(), complete);
            assert_eq!(functions.place(&others, None), None);
            assert_eq!(functions.fit(&ran(0), 0), complete, "all ran, from first to last");
            let none = told(Vec::new(), complete);
            assert!(!none.fit(&others, 0) && none.place(&[], None).is_none());
        }
        assert!(!told(spread(), true).fit(&ran(0x8_1000), 0x8_0000));
    }

    #[test]
    fn a_guests_file_is_read_whatever_is_cut_off_and_whichever_byte_is_wrong() {
        let file = include_bytes!("../../fixtures/recording-qemu/guest-static-pie");
        let map = include_bytes!("../../fixtures/recording-qemu/perf-19810.map");
        let name = |line: &'static [u8]| line.splitn(3, |byte| *byte == b' ').nth(2).and_then(address);
        let mut ran: Vec<u64> = map.split(|byte| *byte == b'\n').filter_map(name).collect();
        ran.sort_unstable();
        let named = |bytes: &[u8]| {
            let Ok(object) = object::File::parse(bytes) else { return 0 };
            asked_for(&object, Path::new("/nowhere"));
            let mut guest = GuestNames::default();
            guest.add(&object, &ran, true);
            guest.names.len()
        };
        let whole = named(file);
        assert!(whole > 20, "{whole} of {} addresses", ran.len());
        for at in 0..file.len() {
            assert!(named(&file[..at]) <= whole, "{at} bytes");
            let mut bent = file.to_vec();
            bent[at] ^= 1 << (at % 8);
            assert!(named(&bent) <= ran.len(), "byte {at:#x}");
        }
    }

    #[test]
    fn only_names_of_qemus_form_are_addresses() {
        assert_eq!(address(b"guest-0x400280"), Some(0x40_0280));
        assert_eq!(address(b"guest-0x"), None);
        assert_eq!(address(b"guest-0x12 of"), None);
        let names =
            GuestNames { names: [(0x10, Box::from(&b"mix"[..]))].into_iter().collect(), ..GuestNames::default() };
        assert_eq!(names.name(b"guest-0x10"), b"mix");
        assert_eq!(names.name(b"guest-0x11"), b"guest-0x11");
        assert_eq!(names.name(b"prologue"), b"prologue");
    }
}
