//! Names functions of programs that run in an emulator (guests). QEMU's user mode emulation names each translated
//! instruction by its guest address (`guest-0x400280`). If the guest's ELF files are available, they tell which
//! function the address is in.
//!
//! | file | found by |
//! |---|---|
//! | any | `--guest FILE` |
//! | the guest program | words of the recorded command line that are ELF files |
//! | its loader and libraries | the program's headers; libraries are next to the loader, below the `-L` directory |
//!
//! QEMU doesn't report where it loaded a file. Programs that aren't position-independent are at the address that they
//! were linked for. For other files, the guest addresses reveal the load address: if a function ran, an address at its
//! start ran, too. With a wrong load address, that is true of only a few functions.
//!
//! Source: `linux-user/elfload.c` and `tcg/perf.c` of QEMU since 8.0.

use crate::io::door::Named;
use crate::jit::jitdump::{Body, JitDump};
use crate::jit::perf_map;
use crate::symbolize::symbols::demangle::demangle;
use crate::symbolize::symbols::files::ELF;
use crate::symbolize::symbols::image::Image;
use crate::symbolize::symbols::table::SymbolTable;
use object::{Object, ObjectKind, ObjectSection, ObjectSymbol, SymbolKind};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How the names that QEMU writes begin. The guest address follows in hexadecimal digits.
const PREFIX: &[u8] = b"guest-0x";

/// How many names are searched for QEMU's prefix. If none of them has it, the other names in the jitdump or perf map
/// aren't looked at.
const CHECKED_NAMES: usize = 64;

/// Load addresses are multiples of this.
const PAGE: u64 = 0x1000;

/// The maximum number of addresses of the guest (the program that QEMU runs), and of functions, to look at in order to
/// find a load address.
const MAX_COMPARED: usize = 1 << 16;

/// The maximum number of possible load addresses to check in detail.
const MAX_CANDIDATES: usize = 256;

/// Like [`MAX_CANDIDATES`], for a file that doesn't list all of its functions.
const MAX_CANDIDATES_INCOMPLETE: usize = 1 << 10;

/// The usual size of an instruction in bytes.
const INSTRUCTION: u64 = 4;

/// The minimum number of functions that must have run at a possible load address, if the file doesn't list all of its
/// functions.
const MIN_RAN_INCOMPLETE: u64 = 6;

/// Names of a guest program's functions, for the guest addresses that occur in a jitdump or perf map.
#[derive(Debug, Default)]
pub(super) struct GuestNames {
    names: FxHashMap<u64, Box<[u8]>>,
    /// The number of distinct guest addresses, named or not.
    address_count: usize,
    /// ELF files that provided names.
    files: Vec<PathBuf>,
    /// For each file that exists but wasn't used: why.
    refused: Vec<String>,
}

/// A file that may be the guest program, its loader or one of its libraries.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GuestCandidate {
    path: PathBuf,
    origin: CandidateOrigin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CandidateOrigin {
    /// The user passed the file with `--guest`.
    User,
    /// The file's path is a word of the recorded command line.
    CommandLine,
    /// Another guest file, which provided names, requires this file.
    Required,
}

/// Where to look for the guest's files.
#[derive(Debug, Clone, Copy)]
pub(super) struct GuestFiles<'a> {
    /// The files that the user passed with `--guest`.
    pub(super) user_files: &'a [PathBuf],
    /// The recorded command line.
    pub(super) command: &'a [Vec<u8>],
    /// True if files of other users are trusted (`-f`).
    pub(super) force: bool,
}

impl GuestNames {
    /// Finds out which functions the guest addresses in a perf map belong to.
    pub(super) fn from_perf_map(entries: &[perf_map::Entry<'_>], files: GuestFiles<'_>) -> Self {
        Self::from_names(entries.iter().map(|entry| entry.name), files)
    }

    /// Finds out which functions the guest addresses in a jitdump belong to.
    pub(super) fn from_jitdump(dump: &JitDump<'_>, files: GuestFiles<'_>) -> Self {
        let names = dump.records().flatten().filter_map(|record| match record.body {
            Body::Load(load) => Some(load.name),
            _ => None,
        });
        Self::from_names(names, files)
    }

    /// Finds out which functions the guest addresses in these names belong to. Guest programs and libraries are opened
    /// only if there are such addresses.
    fn from_names<'n>(names: impl Iterator<Item = &'n [u8]> + Clone, files: GuestFiles<'_>) -> Self {
        // If none of the first names is a guest address, the names aren't from an emulator.
        if !names.clone().take(CHECKED_NAMES).any(|name| parse_address(name).is_some()) {
            return Self::default();
        }
        let mut addresses: Vec<u64> = names.filter_map(parse_address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let mut guest = Self { address_count: addresses.len(), ..Self::default() };
        let mut candidates = first_candidates(files);
        let mut has_program = false;
        let mut next = 0;
        // The list grows in the loop: a file that is used adds the files that it requires.
        while next < candidates.len() {
            let candidate = candidates[next].clone();
            next += 1;
            let is_program = candidate.origin == CandidateOrigin::CommandLine;
            // Words that follow the guest program are its arguments, which may be programs as well.
            if is_program && has_program {
                continue;
            }
            let Some(image) = guest.open(&candidate, files.force) else { continue };
            let Ok(object) = image.object() else { continue };
            if !guest.add_names(&object, &addresses, is_program) {
                continue;
            }
            has_program |= is_program;
            guest.files.push(candidate.path);
            add_required_files(&mut candidates, &object, &guest_root(files.command));
        }
        guest
    }

    /// Opens a candidate. `None` if it doesn't exist, isn't an ELF file, or can't be opened, because of its owner, for
    /// example. In the last case, the reason is stored.
    fn open(&mut self, candidate: &GuestCandidate, force: bool) -> Option<Image> {
        let GuestCandidate { path, origin } = candidate;
        // Who named the file decides how it may be opened.
        let named_by = if *origin == CandidateOrigin::User { Named::User } else { Named::Recording };
        match named_by.door(force).open(path, ELF)? {
            Ok(opened) => Image::new(path, opened.bytes).ok(),
            Err(error) => {
                // Words of the command line may be anything, so report them only if they are files.
                if *origin != CandidateOrigin::CommandLine || is_file(path, named_by) {
                    self.refused.push(error.to_string());
                }
                None
            }
        }
    }

    /// The name of the function at the guest address in `name`. Returns `name` itself if it has no guest address or the
    /// function is unknown.
    pub(super) fn resolve_name<'a>(&'a self, name: &'a [u8]) -> &'a [u8] {
        match parse_address(name).and_then(|addr| self.names.get(&addr)) {
            Some(function) => function,
            None => name,
        }
    }

    /// A remark for users about the jitdump or perf map at `path`: how many guest addresses got names, and from which
    /// files. `None` if it has no guest addresses.
    pub(super) fn remark(&self, path: &Path) -> Option<String> {
        if self.address_count == 0 {
            return None;
        }
        if self.files.is_empty() {
            let refused: String = self.refused.iter().map(|why| format!("; {why}")).collect();
            let advice =
                "the names in the file are addresses in an emulated program; pass that program with --guest FILE";
            return Some(format!("{}: {advice}{refused}", path.display()));
        }
        let files: Vec<_> = self.files.iter().map(|file| file.display().to_string()).collect();
        let (known, all) = (self.names.len(), self.address_count);
        Some(format!("{}: named {known} of {all} guest addresses, from {}", path.display(), files.join(", ")))
    }

    /// Adds the names of the functions at those guest addresses that are in a file. `addresses` are all guest
    /// addresses, sorted. `is_program` is true for the guest program, false for its libraries. Returns false, without
    /// adding anything, if the file's load address can't be determined.
    fn add_names(&mut self, object: &object::File<'_>, addresses: &[u64], is_program: bool) -> bool {
        let functions = GuestFunctions::from_object(object);
        let base = match object.kind() {
            // A program that isn't position-independent can only be loaded at the addresses for which it is linked.
            ObjectKind::Executable if functions.fits_at(0, addresses) => Some(0),
            ObjectKind::Executable => None,
            _ if is_program => functions.find_base(addresses, Some(object.entry())),
            _ => functions.find_base(addresses, None),
        };
        let Some(base) = base else { return false };
        let Some(&(first, _)) = functions.ranges.first() else { return false };
        let end = functions.ranges.iter().map(|&(_, end)| end).max().unwrap_or(first);
        // The guest addresses in the file, as link-time addresses.
        let first_index = addresses.partition_point(|&addr| addr < base.saturating_add(first));
        let in_file = addresses[first_index..].iter().take_while(|&&addr| addr < base.saturating_add(end));
        let link_addrs: Vec<u64> = in_file.map(|addr| addr - base).collect();
        let table = SymbolTable::new(&[object], Vec::new(), &link_addrs);
        for addr in link_addrs {
            if let Some(symbol) = table.find(addr) {
                let name = demangle(&symbol.name).map_or_else(|| symbol.name.to_vec(), |name| name.into());
                // A name from an earlier file stays.
                self.names.entry(base + addr).or_insert_with(|| name.into());
            }
        }
        true
    }
}

/// True if the path is that of a regular file, even of one that can't be opened because of its owner.
fn is_file(path: &Path, named_by: Named) -> bool {
    named_by.door(true).look(path).is_some_and(|about| about.is_file())
}

/// The files that are tried first: those that the user named, and words of the command line.
fn first_candidates(files: GuestFiles<'_>) -> Vec<GuestCandidate> {
    let mut candidates = Vec::new();
    for path in files.user_files {
        candidates.push(GuestCandidate { path: path.clone(), origin: CandidateOrigin::User });
    }
    for path in command_paths(files.command) {
        candidates.push(GuestCandidate { path, origin: CandidateOrigin::CommandLine });
    }
    candidates
}

/// Appends the loader and libraries that an ELF file requires, except those that an earlier file required as well.
/// `root` is the directory with the guest's files.
fn add_required_files(candidates: &mut Vec<GuestCandidate>, object: &object::File<'_>, root: &Path) {
    let mut required = Vec::new();
    for path in required_files(object, root) {
        let candidate = GuestCandidate { path, origin: CandidateOrigin::Required };
        if !candidates.contains(&candidate) {
            required.push(candidate);
        }
    }
    candidates.extend(required);
}

/// The guest address in a name that QEMU wrote.
fn parse_address(name: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(name.strip_prefix(PREFIX)?).ok()?, 16).ok()
}

/// Words of the recorded command line that may be paths, except for the emulator itself.
fn command_paths(command: &[Vec<u8>]) -> impl Iterator<Item = PathBuf> {
    command.iter().map(|word| PathBuf::from(OsStr::from_bytes(word))).filter(|path| !is_qemu(path))
}

fn is_qemu(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"qemu-"))
}

/// The directory with the guest's files: the value of QEMU's option `-L`.
fn guest_root(command: &[Vec<u8>]) -> PathBuf {
    let option = command.iter().position(|word| word == b"-L");
    match option.and_then(|index| command.get(index + 1)) {
        Some(root) => PathBuf::from(OsStr::from_bytes(root)),
        None => PathBuf::from("/"),
    }
}

/// Paths of the loader and the libraries that a program requires. The libraries are assumed to be in the directory of
/// the loader. Empty if the file states no loader, as libraries and static programs don't.
fn required_files(object: &object::File<'_>, root: &Path) -> Vec<PathBuf> {
    let loader = object.section_by_name(".interp").and_then(|section| section.data().ok());
    let Some(loader) = loader.and_then(|name| name.strip_suffix(b"\0")) else { return Vec::new() };
    let loader = root.join(OsStr::from_bytes(loader.strip_prefix(b"/").unwrap_or(loader)));
    // The loader's path may be a link. The libraries are next to the file that it leads to.
    let real_loader = std::fs::canonicalize(&loader).unwrap_or_else(|_| loader.clone());
    let directory = real_loader.parent().unwrap_or(Path::new("/"));
    let mut files = vec![loader];
    for name in required_libraries(object) {
        // A name with a slash is a path in itself, so it isn't in the loader's directory.
        if !name.contains(&b'/') {
            files.push(directory.join(OsStr::from_bytes(&name)));
        }
    }
    files
}

/// Names of the libraries that an ELF file requires (DT_NEEDED).
fn required_libraries(object: &object::File<'_>) -> Vec<Vec<u8>> {
    const DT_NEEDED: u64 = 1;
    let dynamic = section_data(object, ".dynamic");
    let strings = section_data(object, ".dynstr");
    let word = if object.is_64() { 8 } else { 4 };
    let mut names = Vec::new();
    // An entry has two words: a tag, and here the offset of a name in `.dynstr`.
    for entry in dynamic.chunks_exact(2 * word) {
        let (tag, value) = entry.split_at(word);
        if read_word(object, tag) != DT_NEEDED {
            continue;
        }
        let name = usize::try_from(read_word(object, value)).ok().and_then(|offset| strings.get(offset..));
        if let Some(name) = name
            && let Some(len) = memchr::memchr(0, name)
        {
            names.push(name[..len].to_vec());
        }
    }
    names
}

fn section_data<'data>(object: &object::File<'data>, name: &str) -> &'data [u8] {
    object.section_by_name(name).and_then(|section| section.data().ok()).unwrap_or_default()
}

/// Reads a number of up to 8 bytes in the byte order of a file.
fn read_word(object: &object::File<'_>, bytes: &[u8]) -> u64 {
    let append = |number: u64, byte: &u8| (number << 8) | u64::from(*byte);
    if object.is_little_endian() { bytes.iter().rev().fold(0, append) } else { bytes.iter().fold(0, append) }
}

/// The functions in an ELF file.
#[derive(Debug)]
struct GuestFunctions {
    /// Start and end of each function, sorted.
    ranges: Vec<(u64, u64)>,
    /// True if all functions are listed. A stripped library only lists those that it exports.
    is_complete: bool,
}

impl GuestFunctions {
    /// Collects the address ranges of the functions in an ELF file.
    fn from_object(object: &object::File<'_>) -> Self {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for symbol in object.symbols().chain(object.dynamic_symbols()) {
            let is_function = symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.size() > 0;
            if is_function && let Some(end) = symbol.address().checked_add(symbol.size()) {
                ranges.push((symbol.address(), end));
            }
        }
        ranges.sort_unstable();
        ranges.dedup_by_key(|&mut (start, _)| start);
        // Without `.symtab`, only the functions that other files can use are listed.
        Self { ranges, is_complete: object.symbol_table().is_some() }
    }

    /// Finds the load address of a position-independent file: one for which most functions that ran did so from their
    /// start. `addresses` are all guest addresses, sorted. `entry` is the entry point if the file is a program; it must
    /// have run, too. `None` if no load address fits, or several do in a file that doesn't list all functions.
    fn find_base(&self, addresses: &[u64], entry: Option<u64>) -> Option<u64> {
        let ran = |addr: u64| addresses.binary_search(&addr).is_ok();
        let entry_ran = |base: u64| match entry {
            Some(entry) => base.checked_add(entry).is_some_and(ran),
            None => true,
        };
        // The most likely load addresses come first.
        let bases = self.vote_for_bases(addresses).into_iter().filter(|&base| entry_ran(base));
        if self.is_complete {
            return bases.take(MAX_CANDIDATES).find(|&base| self.fits_at(base, addresses));
        }
        // Other files' code may have run at so many addresses that this file's functions seem to start at some of them,
        // whatever the load address. So accept a load address only if no other one fits.
        let mut fitting = bases.take(MAX_CANDIDATES_INCOMPLETE).filter(|&base| self.fits_at(base, addresses));
        let base = fitting.next()?;
        if fitting.next().is_none() { Some(base) } else { None }
    }

    /// All load addresses for which at least one function starts at an address that ran. Load addresses with more such
    /// functions come first. `addresses` are all guest addresses, sorted.
    fn vote_for_bases(&self, addresses: &[u64]) -> Vec<u64> {
        // Pages are mapped as a whole, so the offset in the page is the same in the file and in memory.
        let mut starts_by_page_offset: FxHashMap<u64, Vec<u64>> = FxHashMap::default();
        for (start, _) in self.ranges.iter().take(MAX_COMPARED) {
            starts_by_page_offset.entry(start % PAGE).or_default().push(*start);
        }
        let mut votes: FxHashMap<u64, u32> = FxHashMap::default();
        for addr in addresses.iter().take(MAX_COMPARED) {
            for start in starts_by_page_offset.get(&(addr % PAGE)).into_iter().flatten() {
                if let Some(base) = addr.checked_sub(*start) {
                    *votes.entry(base).or_default() += 1;
                }
            }
        }
        let mut bases: Vec<(u64, u32)> = votes.into_iter().collect();
        bases.sort_unstable_by_key(|&(base, votes)| (std::cmp::Reverse(votes), base));
        bases.into_iter().map(|(base, _)| base).collect()
    }

    /// True if a load address fits: most functions that ran did so from their start, and little ran outside functions.
    /// The conditions are stricter if the file doesn't list all of its functions. `addresses` are all guest addresses,
    /// sorted.
    fn fits_at(&self, base: u64, addresses: &[u64]) -> bool {
        let index_of = |addr: u64| addresses.partition_point(|&other| other < base.saturating_add(addr));
        // The number of functions that ran at all, how many of them ran from their start, and their total size in
        // bytes.
        let (mut ran, mut ran_from_start, mut bytes) = (0u64, 0u64, 0u64);
        // The number of addresses that are in functions, and the index in `addresses` after the last of them.
        let (mut inside, mut last_end) = (0, 0);
        for &(start, end) in &self.ranges {
            // The addresses in this function that ran have the indices from `from` to `to` (exclusive).
            let (from, to) = (index_of(start), index_of(end));
            if to > from {
                ran += 1;
                ran_from_start += u64::from(addresses[from] == base.saturating_add(start));
                bytes = bytes.saturating_add(end - start);
            }
            // Functions may overlap. Count each address once.
            inside += to.saturating_sub(from.max(last_end));
            last_end = last_end.max(to);
        }
        if !self.is_complete {
            // The test is whether functions start at addresses that ran. If every instruction in this memory ran, any
            // file would pass it. So at most 80% of the instructions in the functions may have run.
            let has_gaps = (inside as u64).saturating_mul(INSTRUCTION) <= bytes / 5 * 4;
            // At least 95% of the functions that ran must have run from their start.
            return ran >= MIN_RAN_INCOMPLETE && has_gaps && ran_from_start * 20 >= ran * 19;
        }
        // At least half of the addresses between the first function and the last one that ran must be in functions, and
        // 80% of the functions that ran must have run from their start.
        let first = self.ranges.first().map_or(0, |&(start, _)| index_of(start));
        let all = last_end.saturating_sub(first);
        // Fewer than three functions could fit by chance.
        ran >= 3 && inside * 2 >= all && ran_from_start * 5 >= ran * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_effort::step;

    /// Functions of 0x40 bytes at uneven distances.
    fn spread() -> Vec<(u64, u64)> {
        (0..200u64).map(|at| at * 0x90 + at * at % 7 * 0x10).map(|start| (0x1000 + start, 0x1040 + start)).collect()
    }

    /// Every instruction (4 bytes each) of every third function, loaded at `base`.
    fn ran(base: u64) -> Vec<u64> {
        spread().iter().step_by(3).flat_map(|&(start, end)| (start..end).step_by(4)).map(|addr| base + addr).collect()
    }

    fn functions_of(ranges: Vec<(u64, u64)>, complete: bool) -> GuestFunctions {
        GuestFunctions { ranges, is_complete: complete }
    }

    #[test]
    fn a_relocatable_file_is_placed_where_its_functions_begin() {
        let base = 0x7f70_3a0d_8000;
        let functions = functions_of(spread(), true);
        assert_eq!(functions.find_base(&ran(base), None), Some(base));
        let mut with_others = ran(base);
        with_others.extend((0..4000).map(|at| 0x5000_0000 + at * 4));
        with_others.sort_unstable();
        assert_eq!(functions.find_base(&with_others, Some(0x1000)), Some(base));
    }

    #[test]
    fn a_stripped_library_is_placed_by_the_functions_that_others_call() {
        let base = 0x7f70_3a0d_8000;
        let exported: Vec<(u64, u64)> = spread().into_iter().step_by(9).collect();
        // Functions rarely run from the first to the last instruction.
        let first_half = |&(start, end): &(u64, u64)| (start..(start + end) / 2).step_by(4);
        let ran: Vec<u64> = spread().iter().step_by(3).flat_map(first_half).map(|addr| base + addr).collect();
        assert_eq!(functions_of(exported.clone(), true).find_base(&ran, None), None, "most ran between them");
        assert_eq!(functions_of(exported.clone(), false).find_base(&ran, None), Some(base));
        // Another program ran at so many addresses that functions of the library seem to start there, too.
        let mut with_others = ran.clone();
        let by_chance = |addr: &u64| (addr.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) & 1 == 0;
        with_others.extend((0x1000..0x9000).step_by(4).filter(by_chance).map(|addr| base + 0x20_0000 + addr));
        with_others.sort_unstable();
        assert_eq!(
            functions_of(exported.clone(), false).find_base(&with_others, None),
            Some(base),
            "no other place fits"
        );
        let mut twice = ran.clone();
        twice.extend(ran.iter().map(|addr| addr + 0x20_0000));
        assert_eq!(functions_of(exported.clone(), false).find_base(&twice, None), None, "two places fit");
        let few = exported[..4].to_vec();
        assert_eq!(functions_of(few, false).find_base(&ran, None), None, "so few may be by chance");
    }

    #[test]
    fn a_file_that_did_not_run_is_placed_nowhere() {
        let others: Vec<u64> = (0..4000).map(|at| 0x5000_0000 + at * 4).collect();
        for complete in [true, false] {
            let functions = functions_of(spread(), complete);
            assert_eq!(functions.find_base(&others, None), None);
            assert_eq!(functions.fits_at(0, &ran(0)), complete, "all ran, from first to last");
            let none = functions_of(Vec::new(), complete);
            assert!(!none.fits_at(0, &others) && none.find_base(&[], None).is_none());
        }
        assert!(!functions_of(spread(), true).fits_at(0x8_0000, &ran(0x8_1000)));
    }

    #[test]
    fn a_guests_file_is_read_whatever_is_cut_off_and_whichever_byte_is_wrong() {
        let file = include_bytes!("../../fixtures/recording-qemu/guest-static-pie");
        let map = include_bytes!("../../fixtures/recording-qemu/perf-19810.map");
        let name = |line: &'static [u8]| line.splitn(3, |byte| *byte == b' ').nth(2).and_then(parse_address);
        let mut ran: Vec<u64> = map.split(|byte| *byte == b'\n').filter_map(name).collect();
        ran.sort_unstable();
        let named = |bytes: &[u8]| {
            let Ok(object) = object::File::parse(bytes) else { return 0 };
            required_files(&object, Path::new("/nowhere"));
            let mut guest = GuestNames::default();
            guest.add_names(&object, &ran, true);
            guest.names.len()
        };
        let whole = named(file);
        assert!(whole > 20, "{whole} of {} addresses", ran.len());
        for at in (0..file.len()).step_by(step(5)) {
            assert!(named(&file[..at]) <= whole, "{at} bytes");
            let mut bent = file.to_vec();
            bent[at] ^= 1 << (at % 8);
            assert!(named(&bent) <= ran.len(), "byte {at:#x}");
        }
    }

    #[test]
    fn only_names_of_qemus_form_are_addresses() {
        assert_eq!(parse_address(b"guest-0x400280"), Some(0x40_0280));
        assert_eq!(parse_address(b"guest-0x"), None);
        assert_eq!(parse_address(b"guest-0x12 of"), None);
        let names =
            GuestNames { names: [(0x10, Box::from(&b"mix"[..]))].into_iter().collect(), ..GuestNames::default() };
        assert_eq!(names.resolve_name(b"guest-0x10"), b"mix");
        assert_eq!(names.resolve_name(b"guest-0x11"), b"guest-0x11");
        assert_eq!(names.resolve_name(b"prologue"), b"prologue");
    }
}
