//! Names functions of the kernel and its modules, using a symbol list (kallsyms) of exactly the kernel that was
//! recorded.
//!
//! Lists are tried in this order: the file given with `--kallsyms`; the list in the recording's own `kcore_dir`; the
//! list that perf keeps in its cache under the kernel's build ID (each `--debug-dir` may be such a cache); and
//! `/proc/kallsyms` if the recorded kernel is running here. The kernel starts at another address in each boot, so
//! addresses are shifted by the difference between the recording's and the list's address of one reference symbol. A
//! list in which the kernel ends elsewhere than in the recording belongs to another kernel and is never used, wherever
//! it was found. If the kernel's image (`vmlinux`) is available ([`super::symbols::files`]), it names the kernel's
//! functions and inlined calls, and lists name only the modules.
//!
//! Each line is `ADDRESS TYPE NAME [MODULE]`; see scripts/kallsyms.c and kernel/kallsyms.c (`s_show`) in Linux.

mod lines;
mod running;

use super::address_space::KernelReference;
use super::dso::{Dso, DsoId, DsoKind, Dsos};
use super::symbols::files::{self, SearchOptions};
use super::symbols::images::Images;
use crate::error::{Error, Result, Warning, Warnings};
use crate::io;
use crate::io::door::{self, Door, Start};
use crate::model::Addr;
use crate::model::process::BuildId;
use lines::{SymbolLine, name_at_start};
use object::{Object, ObjectSymbol};
use running::RunningKernel;
pub use running::running_build_id;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Where to look for kernel symbols.
#[derive(Debug, Clone, Default)]
pub struct KernelOptions {
    /// The file given with `--kallsyms`. It is used even if nothing shows that it belongs to the recorded kernel.
    pub kallsyms: Option<PathBuf>,
    /// The list in a recording that is a directory: `kcore_dir/kallsyms`.
    pub recorded: Option<PathBuf>,
    /// The release of the recorded kernel, as printed by `uname -r`.
    pub os_release: Option<Vec<u8>>,
}

/// The kernel functions of a symbol list, by address. Of about 100,000 functions in a list, only those are kept that
/// contain one of the addresses to be looked up.
#[derive(Debug, Default)]
pub struct KernelSymbols {
    /// The text of the symbol list, which has the names; `None` if no list was found.
    text: Option<io::Bytes>,
    /// The functions that are kept, sorted by address.
    symbols: Vec<ListedSymbol>,
    /// How much larger addresses in the symbol list are than addresses in the recording, modulo 2^64.
    shift: u64,
    /// [`KernelReference::beyond_end`], as addresses in the symbol list.
    beyond_end: Range<u64>,
    /// True if the reference symbol has the same address in the symbol list and in the recording. The list is then from
    /// the same boot, because addresses differ between boots.
    is_same_boot: bool,
}

#[derive(Debug, Clone, Copy)]
struct ListedSymbol {
    /// The address of the function in the symbol list. The recorded address is lower by [`KernelSymbols::shift`].
    addr: u64,
    /// The byte offset of the function's name in the text of the symbol list.
    name: u32,
    /// False for data, which is only kept beyond the end of the kernel's mapping. It shows where functions end there.
    is_function: bool,
}

/// The kernel function at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSymbol<'a> {
    pub name: &'a [u8],
    /// The offset of the address from the start of the function, in bytes.
    pub offset: u64,
}

/// The warning about a symbol list in perf's cache that is stored under the build ID of the recorded kernel, but has
/// the symbols of the kernel running here.
const LIST_OF_RUNNING_KERNEL: &str =
    "not used: it lists the symbols of the kernel running here (perf inject stored them), not of the recorded one";

/// The warning about a given symbol list (`--kallsyms`) that is in perf's cache, in the directory of another kernel's
/// build ID.
const OTHER_DIRECTORY: &str = "not used: the build ID in its path is not that of the recorded kernel";

/// Kernel functions are shorter than this many bytes (the longest one has about 100 KiB). If the nearest symbol before
/// an address is further away, the address isn't in that symbol's function, but in a gap between modules.
const MAX_FUNCTION_LEN: u64 = 1 << 20;

/// How much larger addresses in the kernel's image are than those in the recording, modulo 2^64. They differ because
/// each boot loads the kernel at a random address. 0 if the image is missing, or if the recording doesn't state the
/// address of a reference symbol that the image has.
pub fn link_shift(reference: Option<&KernelReference>, images: &Images<'_>, kernel: DsoId) -> u64 {
    let (Some(image), Some(reference)) = (images.get(kernel), reference) else { return 0 };
    let Ok(object) = image.object() else { return 0 };
    match object.symbol_by_name_bytes(&reference.symbol) {
        Some(symbol) => symbol.address().wrapping_sub(reference.addr.0),
        None => 0,
    }
}

impl KernelSymbols {
    /// Finds the symbol list of the recorded kernel. If no list certainly belongs to it, the result is empty and there
    /// is a warning. Only addresses in `wanted` can be looked up later.
    pub fn find(
        wanted: &[u64],
        dsos: &Dsos,
        reference: Option<&KernelReference>,
        options: &KernelOptions,
        search: &SearchOptions,
        warnings: &mut Warnings,
    ) -> Self {
        Self::find_with(&RunningKernel::read(), wanted, dsos, reference, options, search, warnings)
    }

    /// Tries the files that may be the recorded kernel's symbol list, in order, and returns the first one that passes
    /// all checks. Each list that fails a check gets a warning. If none passes, the result is empty and there is
    /// another warning. `running` describes this machine's kernel.
    fn find_with(
        running: &RunningKernel,
        wanted: &[u64],
        dsos: &Dsos,
        reference: Option<&KernelReference>,
        options: &KernelOptions,
        search: &SearchOptions,
        warnings: &mut Warnings,
    ) -> Self {
        let kernel = dsos.iter().map(|(_, dso)| dso).find(|dso| dso.kind == DsoKind::Kernel);
        let build_id = kernel.and_then(|dso: &Dso| dso.build_id);
        let is_running = running.is_recorded(build_id, options.os_release.as_deref());
        // Equal build IDs prove that the running kernel is the recorded one; equal releases don't.
        let is_certain = is_running == Some(true) && build_id.is_some();
        for list in candidate_lists(running, is_running, build_id, options, search) {
            let is_of_running = matches!(list, KernelList::Running(_));
            // If the user gave a symbol list from perf's cache, its path contains the build ID of its kernel.
            if matches!(list, KernelList::Given(_)) && build_id.is_some_and(|id| is_for_other_kernel(list.path(), id)) {
                warnings.push(Warning::new(OTHER_DIRECTORY).in_file(list.path(), None));
                continue;
            }
            let text = match list.open() {
                None => continue,
                Some(Ok(text)) => text,
                Some(Err(error)) => {
                    warnings.push(error.in_file(list.path()).into_warning());
                    continue;
                }
            };
            let is_cached = matches!(list, KernelList::Cached { .. });
            // perf inject may have stored the symbol list of the kernel running here under the build ID of the recorded
            // kernel.
            if is_cached && is_running == Some(false) && running.has_list(&text) {
                warnings.push(Warning::new(LIST_OF_RUNNING_KERNEL).in_file(list.path(), None));
                continue;
            }
            // Where the kernel must end in the symbol list, to prove that the list is the recorded kernel's. `None` if
            // the list is the running kernel's and build IDs prove that this kernel was recorded, or if the recording
            // doesn't state the end.
            let end = match reference {
                Some(reference) if !(is_certain && is_of_running) => reference.end,
                _ => None,
            };
            match Self::parse_and_check(text, reference, end, wanted) {
                // The recording has neither a build ID nor a release. The running kernel's list is then only used if it
                // has the reference symbol at the recorded address, which means that it is from the same boot.
                Ok(symbols) if is_of_running && is_running.is_none() && !symbols.is_same_boot => {}
                Ok(symbols) => return symbols,
                Err(error) => warnings.push(error.in_file(list.path()).into_warning()),
            }
        }
        let which = match is_running {
            None => {
                "the recording does not say which kernel was running (perhaps perf was killed, or still runs), and \
                 nothing proves that it was this machine's"
            }
            Some(true) => "this machine runs the same kernel, but no list of its symbols can be used",
            Some(false) => "this machine runs a different kernel",
        };
        warnings.push(Warning::new(format!(
            "no symbols for the recorded kernel: {which}. Kernel functions stay unnamed; pass --kallsyms FILE, a copy \
             of /proc/kallsyms made as root on the recorded machine"
        )));
        Self::default()
    }

    /// Rejects a list in which the kernel ends elsewhere than in the recording (at `recorded`). perf takes the end from
    /// one of two symbols (`_edata` in the newest versions, else `_etext`), so a match of either is enough.
    fn check_end(&self, recorded: u64) -> Result<()> {
        let text = self.text.as_deref().unwrap_or_default();
        let mut ends = Vec::new();
        for symbol in ["_etext", "_edata"] {
            if let Some(addr) = lines::find_address(text, symbol.as_bytes()) {
                // The symbol's address in the recorded boot, which may have loaded the kernel elsewhere.
                let addr = addr.wrapping_sub(self.shift);
                if addr == recorded {
                    return Ok(());
                }
                ends.push(format!("{symbol} at {addr:#x}"));
            }
        }
        if ends.is_empty() {
            return Err(Error::new(format!(
                "not used: the symbol list lacks _etext and _edata, so nothing shows that it is from the recorded \
                 kernel, which ends at address {recorded:#x}; pass the complete list"
            )));
        }
        Err(Error::new(format!(
            "not used: the symbol list is from a different kernel. The recorded kernel ends at address {recorded:#x}, \
             but the kernel in the list ends at another address ({})",
            ends.join(" and ")
        )))
    }

    /// Parses a symbol list. Fails if the kernel in the list ends elsewhere than at the recorded address `end`. That is
    /// `None` if the recording doesn't state where the kernel ends, or if the list is known to be the right one anyway.
    fn parse_and_check(
        text: io::Bytes,
        reference: Option<&KernelReference>,
        end: Option<Addr>,
        wanted: &[u64],
    ) -> Result<Self> {
        let symbols = Self::parse(text, reference, wanted)?;
        if let Some(end) = end {
            symbols.check_end(end.0)?;
        }
        Ok(symbols)
    }

    /// Parses a symbol list, and keeps the functions that contain an address in `wanted`. `reference` is the recorded
    /// address of a symbol. If the list has this symbol at another address, the kernel was loaded elsewhere when the
    /// list was made, and all recorded addresses are shifted by the difference. Fails if all addresses in the list are
    /// 0.
    fn parse(text: io::Bytes, reference: Option<&KernelReference>, wanted: &[u64]) -> Result<Self> {
        let (mut shift, mut beyond_end) = (0, 0..0);
        let mut is_same_boot = false;
        if let Some(reference) = reference {
            if let Some(listed) = lines::find_address(&text, &reference.symbol) {
                shift = listed.wrapping_sub(reference.addr.0);
                // Each boot loads the kernel at a random address, so an equal address means the same boot.
                is_same_boot = shift == 0;
            }
            let Range { start, end } = reference.beyond_end;
            beyond_end = start.wrapping_add(shift)..end.wrapping_add(shift);
        }
        // `lookup` also looks at the byte after an address.
        let mut wanted: Vec<u64> = wanted
            .iter()
            .flat_map(|addr| [addr.wrapping_add(shift), addr.wrapping_add(shift).wrapping_add(1)])
            .collect();
        wanted.sort_unstable();
        let (mut symbols, mut has_addresses) = (Vec::new(), false);
        // Only functions that contain a wanted address are kept. `lowest_wanted` is the lowest wanted address at or
        // above the start of `previous`, the symbol before the current one. If the current symbol starts at or below
        // that address, `previous` contains no wanted address and is dropped. Lists are sorted, except that the
        // addresses of each module begin anew; there, `previous` is always kept.
        let mut previous: Option<ListedSymbol> = None;
        let mut lowest_wanted = 0;
        for SymbolLine { addr, kind, name } in lines::parse_list(&text) {
            // Only functions count: symbols in the text section, and weak ones. Data matters where the kernel's
            // initialization code is, because there it lies between functions.
            let is_beyond_end = beyond_end.contains(&addr);
            let is_end_of_code = is_beyond_end && ends_code(name_at_start(&text[name..]));
            let is_function = matches!(kind, b't' | b'T' | b'w' | b'W') && !is_end_of_code;
            if !is_function && !is_beyond_end {
                continue;
            }
            // A name more than 4 GiB into the symbol list is skipped, because the offsets of names are stored in 32
            // bits.
            let Ok(name) = u32::try_from(name) else { continue };
            has_addresses |= is_function && addr != 0;
            // True for the first function, and where the addresses of a module begin anew.
            let is_new_start = previous.is_none_or(|previous| addr < previous.addr);
            if is_new_start || addr > lowest_wanted {
                symbols.extend(previous);
                let next = wanted.partition_point(|&wanted| wanted < addr);
                lowest_wanted = wanted.get(next).copied().unwrap_or(u64::MAX);
            }
            previous = Some(ListedSymbol { addr, name, is_function });
        }
        symbols.extend(previous);
        if !has_addresses {
            return Err(Error::new(
                "has no function addresses, so kernel functions stay unnamed; read /proc/kallsyms as root, or set \
                 kernel.kptr_restrict to 0 first",
            ));
        }
        // The sort is stable, so that of several symbols at the same address the last one in the symbol list is shown,
        // as in perf. A function wins over data.
        symbols.sort_by_key(|symbol| (symbol.addr, symbol.is_function));
        Ok(Self { text: Some(text), symbols, shift, beyond_end, is_same_boot })
    }

    /// The bytes of the symbol list that was found; `None` if none was found.
    pub fn into_list(self) -> Option<io::Bytes> {
        self.text
    }

    /// The function at a recorded address; `None` if unknown. The address must be one of those that were passed to
    /// [`Self::find`].
    ///
    /// If the address is the last byte of the padding before a function (`__pfx_NAME`), returns that function, not the
    /// padding. Such addresses come from samples in a retpoline. This thunk jumps to a function by writing the
    /// function's start over the return address on the stack. The call chain then has that start as a return address,
    /// and callers pass the byte before a return address.
    pub fn lookup(&self, addr: u64) -> Option<KernelSymbol<'_>> {
        // The symbol list may be from a boot in which the kernel was at another address, so the recorded address is
        // shifted.
        let addr = addr.wrapping_add(self.shift);
        let symbol = self.listed_at(addr)?;
        if symbol.name.starts_with(b"__pfx_")
            && let Some(next) = self.listed_at(addr.wrapping_add(1))
            && next.offset == 0
        {
            return Some(next);
        }
        Some(symbol)
    }

    /// The last function in the symbol list that starts at or before `addr`. `addr` is an address as in the list, which
    /// may differ from the recorded address.
    fn listed_at(&self, addr: u64) -> Option<KernelSymbol<'_>> {
        let after = self.symbols.partition_point(|symbol| symbol.addr <= addr);
        let symbol = self.symbols[..after].last()?;
        let offset = addr - symbol.addr;
        // No function is that long: the address is in a gap, for example between two modules.
        if offset >= MAX_FUNCTION_LEN {
            return None;
        }
        // The address is in data between the kernel's code and its initialization code, or after that.
        let is_in_data =
            !symbol.is_function || (self.beyond_end.contains(&addr) && symbol.addr < self.beyond_end.start);
        if is_in_data {
            return None;
        }
        let name = name_at_start(self.text.as_ref()?.get(symbol.name as usize..)?);
        Some(KernelSymbol { name, offset })
    }
}

/// True for symbols that mark where a section of code ends. The list has them as functions, but what follows is data.
fn ends_code(name: &[u8]) -> bool {
    matches!(name, b"_etext" | b"_einittext")
}

/// The directory in perf's cache that has the kernel symbol lists, as `BUILDID/kallsyms`.
const CACHE_FOLDER: &str = "[kernel.kallsyms]";

/// A file that may be the recorded kernel's symbol list.
enum KernelList {
    /// The file given with `--kallsyms`.
    Given(PathBuf),
    /// The symbol list inside a recording that is a directory (`kcore_dir` of perf record --kcore).
    Recorded(PathBuf),
    /// A symbol list in perf's cache.
    Cached {
        path: PathBuf,
        /// True if the symbol list may be owned by another user (`-f`).
        force: bool,
    },
    /// The symbol list of the kernel that is running here.
    Running(PathBuf),
}

/// All files that may be the recorded kernel's symbol list, in the order in which they should be tried. `is_running`
/// says whether the recorded kernel is the one running here; `None` if unknown. Then the running kernel's list is
/// tried, too, and the caller accepts it only if the list is from the boot that was recorded.
fn candidate_lists(
    running: &RunningKernel,
    is_running: Option<bool>,
    build_id: Option<BuildId>,
    options: &KernelOptions,
    search: &SearchOptions,
) -> Vec<KernelList> {
    let mut lists = Vec::new();
    lists.extend(options.kallsyms.clone().map(KernelList::Given));
    lists.extend(options.recorded.clone().map(KernelList::Recorded));
    if let Some(id) = build_id {
        // perf's cache has the symbol list of each kernel that was recorded. `perf archive` packs that list, so it may
        // come from another machine.
        for dir in search.id_dirs() {
            let path = dir.join(CACHE_FOLDER).join(files::hex(id)).join("kallsyms");
            lists.push(KernelList::Cached { path, force: search.force });
        }
    }
    // The symbol list of the running kernel. If it is unknown which kernel was recorded, the caller uses this list only
    // if the reference symbol shows that it is from the recorded boot.
    if is_running != Some(false) {
        lists.push(KernelList::Running(running.kallsyms.clone()));
    }
    lists
}

impl KernelList {
    fn path(&self) -> &Path {
        match self {
            Self::Given(path) | Self::Recorded(path) | Self::Cached { path, .. } | Self::Running(path) => path,
        }
    }

    /// Opens the symbol list. `None` if the file doesn't exist, except for a file that the user named: its absence is
    /// an error. Fails if the file may not be read, or if it is another user's and isn't a text file.
    fn open(&self) -> Option<Result<io::Bytes>> {
        let opened = match self {
            // A file that the user named must exist.
            Self::Given(path) => return Some(io::map_file(path)),
            // The size of the file in /proc is given as 0, so it is read to its end instead of being mapped.
            Self::Running(path) => return io::is_there(path).then(|| io::map_file(path)),
            Self::Recorded(path) => {
                // The symbol list is `kcore_dir/kallsyms` in the recording's directory, which the user typed.
                let recording = path.ancestors().nth(2)?;
                let door = Door { named: door::Named::Part, start: Start::Typed(recording), force: false };
                door.open(path, LIST)?
            }
            Self::Cached { path, force } => door::Named::Recording.door(*force).open(path, LIST)?,
        };
        Some(opened.map(|opened| opened.bytes))
    }
}

/// What another user's file must be to be accepted as a symbol list: a text file, so it has no zero bytes. Such files
/// are written from front to back and have no large holes.
const LIST: door::Kind =
    door::Kind { holes: |head| (!head.contains(&0)).then_some(door::Holes::Small), otherwise: "is not a text file" };

/// True if `list` is in perf's cache, in a directory named after a build ID other than `id`.
fn is_for_other_kernel(list: &Path, id: BuildId) -> bool {
    let Some(directory) = list.parent() else { return false };
    directory.parent().is_some_and(|folder| folder.ends_with(CACHE_FOLDER)) && !directory.ends_with(files::hex(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "ffffffff81000000 T _text\nffffffff81000000 T _stext\nffffffff81000100 t do_one\n\
                        ffffffff81000180 d data\nffffffffc0000000 t ext4_map\t[ext4]\nbad line\n";

    fn parse(list: &str, reference: Option<&KernelReference>, wanted: &[u64]) -> Result<KernelSymbols> {
        KernelSymbols::parse(io::Bytes::Owned(list.into()), reference, wanted)
    }

    #[test]
    fn initialization_code_lies_beyond_the_end_between_data() {
        let list = "ffffffff81000000 T _text\nffffffff81000100 t last\nffffffff81000200 T _etext\n\
                    ffffffff81001000 D __start_rodata\nffffffff81002000 D __init_begin\n\
                    ffffffff81002000 T _sinittext\nffffffff81002100 t start_kernel\nffffffff81002200 T _einittext\n\
                    ffffffffc0000000 t module_code\t[ext4]\nffffffffc0000010 d module_data\t[ext4]\n";
        // The recorded boot loaded the kernel 0x1000000 bytes higher.
        let at = |addr: u64| addr + 0x0100_0000;
        let reference = KernelReference {
            symbol: b"_text".into(),
            addr: Addr(at(0xffff_ffff_8100_0000)),
            end: Some(Addr(at(0xffff_ffff_8100_0200))),
            beyond_end: at(0xffff_ffff_8100_0200)..at(0xffff_ffff_8500_0200),
        };
        let expected = [
            (0xffff_ffff_8100_01ff, Some(("last".to_owned(), 0xff))),
            (0xffff_ffff_8100_0fff, None),
            (0xffff_ffff_8100_1000, None),
            (0xffff_ffff_8100_2004, Some(("_sinittext".to_owned(), 4))),
            (0xffff_ffff_8100_2110, Some(("start_kernel".to_owned(), 0x10))),
            (0xffff_ffff_8100_2200, None),
        ];
        let wanted: Vec<u64> = expected.iter().map(|(addr, _)| at(*addr)).collect();
        let symbols = parse(list, Some(&reference), &wanted).unwrap();
        for (addr, found) in expected {
            assert_eq!(name(&symbols, at(addr)), found, "{addr:#x}");
        }
        // Without `_etext` and without data, the last function doesn't reach beyond the end.
        let list = "ffffffff81000000 T _text\nffffffff81000100 t last\nffffffff81002100 t start_kernel\n";
        let symbols = parse(list, Some(&reference), &wanted).unwrap();
        assert_eq!(name(&symbols, at(0xffff_ffff_8100_0fff)), None);
        assert_eq!(name(&symbols, at(0xffff_ffff_8100_2110)), Some(("start_kernel".to_owned(), 0x10)));
    }

    fn name(symbols: &KernelSymbols, addr: u64) -> Option<(String, u64)> {
        let found = symbols.lookup(addr)?;
        Some((String::from_utf8_lossy(found.name).into_owned(), found.offset))
    }

    /// The name of the function at an address, and the offset of the address in it. Checks that the result doesn't
    /// depend on which other addresses are wanted.
    fn name_in(list: &str, reference: Option<&KernelReference>, addr: u64) -> Option<(String, u64)> {
        let alone = name(&parse(list, reference, &[addr]).unwrap(), addr);
        let around: Vec<u64> = (0..0x400).rev().map(|at| (addr + at).saturating_sub(0x200)).collect();
        assert_eq!(alone, name(&parse(list, reference, &around).unwrap(), addr));
        alone
    }

    #[test]
    fn functions_by_address_also_after_another_boot() {
        assert_eq!(name_in(LIST, None, 0xffff_ffff_8100_0004), Some(("_stext".into(), 4)));
        assert_eq!(name_in(LIST, None, 0xffff_ffff_8100_0190), Some(("do_one".into(), 0x90)));
        assert_eq!(name_in(LIST, None, 0xffff_ffff_c000_0010), Some(("ext4_map".into(), 0x10)));
        assert_eq!(name_in(LIST, None, 0xffff_ffff_9000_0000), None);
        assert_eq!(name_in(LIST, None, 5), None);
        let reference =
            KernelReference { symbol: b"_text".into(), addr: Addr(0xffff_ffff_a200_0000), end: None, beyond_end: 0..0 };
        assert_eq!(name_in(LIST, Some(&reference), 0xffff_ffff_a200_0104), Some(("do_one".into(), 4)));
    }

    #[test]
    fn functions_need_not_come_in_the_order_of_their_addresses() {
        let list =
            "00002000 t d\n00001000 t b\n00001800 t c\n00001000 t b2\n00000800 t a\n00002000 t d2\n00000900 d x\n";
        for (addr, expected) in [
            (0x7ff, None),
            (0x800, Some(("a", 0))),
            (0xfff, Some(("a", 0x7ff))),
            (0x1000, Some(("b2", 0))),
            (0x17ff, Some(("b2", 0x7ff))),
            (0x1900, Some(("c", 0x100))),
            (0x2003, Some(("d2", 3))),
        ] {
            let expected = expected.map(|(name, offset)| (name.to_owned(), offset));
            assert_eq!(name_in(list, None, addr), expected, "{addr:x}");
        }
    }

    #[test]
    fn the_padding_before_a_function_called_nothing() {
        let list = "1000 T first\n1030 t __pfx_second\n1040 t second\n1040 t alias\n1070 t __pfx_third\n1080 t third\n\
                    10f0 t __pfx_gone\n1110 t fourth\n";
        for (addr, expected) in [
            (0x102f, ("first", 0x2f)),
            (0x1030, ("__pfx_second", 0)),
            (0x103e, ("__pfx_second", 0xe)),
            (0x103f, ("alias", 0)),
            (0x1040, ("alias", 0)),
            (0x106f, ("alias", 0x2f)),
            (0x107f, ("third", 0)),
            (0x10ef, ("third", 0x6f)),
            (0x110f, ("fourth", 0)),
            (0x10ff, ("__pfx_gone", 0xf)),
        ] {
            assert_eq!(name_in(list, None, addr), Some((expected.0.to_owned(), expected.1)), "{addr:x}");
        }
    }

    #[test]
    fn a_list_without_addresses_is_refused() {
        let error = parse("0000000000000000 T _text\n", None, &[5]).unwrap_err().to_string();
        assert!(error.contains("kptr_restrict"), "{error}");
    }

    /// Looks up a kernel function on a machine whose running kernel has the list `LIST`. `recorded` is the recorded
    /// kernel's build ID, release and address of `_text`; `cached` is a list in perf's cache. Returns the function's
    /// name and the warnings.
    fn found(recorded: (Option<u8>, Option<&str>, u64), cached: Option<&str>) -> (Option<String>, Vec<String>) {
        found_by_end(recorded, cached, None)
    }

    /// Like [`found`], for a recorded kernel that is `len` bytes long.
    fn found_by_end(
        recorded: (Option<u8>, Option<&str>, u64),
        cached: Option<&str>,
        len: Option<u64>,
    ) -> (Option<String>, Vec<String>) {
        found_beside_list(LIST, recorded, cached, len)
    }

    /// Like [`found_by_end`], with the list of the running kernel.
    fn found_beside_list(
        running: &str,
        recorded: (Option<u8>, Option<&str>, u64),
        cached: Option<&str>,
        len: Option<u64>,
    ) -> (Option<String>, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("running");
        std::fs::write(&list, running).unwrap();
        let running =
            RunningKernel { build_id: BuildId::new(&[1; 20]), release: Some(b"6.1\n".into()), kallsyms: list };
        let (id, release, addr) = recorded;
        let build_id = id.and_then(|id| BuildId::new(&[id; 20]));
        let cache = dir.path().join("cache");
        if let (Some(text), Some(id)) = (cached, build_id) {
            let place = cache.join("[kernel.kallsyms]").join(files::hex(id));
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("kallsyms"), text).unwrap();
        }
        let mut dsos = Dsos::default();
        dsos.intern(Dso { path: b"[kernel.kallsyms]_text".into(), build_id, file: None, kind: DsoKind::Kernel });
        let end = len.map(|len| Addr(addr + len));
        let reference = KernelReference { symbol: b"_text".into(), addr: Addr(addr), end, beyond_end: 0..0 };
        let options = KernelOptions { os_release: release.map(Into::into), ..KernelOptions::default() };
        let search = SearchOptions { cache: Some(cache), ..SearchOptions::default() };
        let mut warnings = Warnings::new();
        let (wanted, reference) = (addr + 0x104, Some(&reference));
        let symbols = KernelSymbols::find_with(&running, &[wanted], &dsos, reference, &options, &search, &mut warnings);
        let said = warnings.iter().map(ToString::to_string).collect();
        (name(&symbols, wanted).map(|(name, _)| name), said)
    }

    const TEXT: u64 = 0xffff_ffff_8100_0000;

    #[test]
    fn a_recording_that_names_no_kernel_is_of_the_one_that_is_where_it_was() {
        // The recorder was killed, so the recording has neither a build ID nor a release.
        assert_eq!(found((None, None, TEXT), None), (Some("do_one".into()), vec![]));
        let (name, said) = found((None, None, TEXT + 0x20_0000), None);
        assert!(
            name.is_none() && said.len() == 1 && said[0].contains("does not say which kernel was running"),
            "{said:?}"
        );
        // A recording that has a build ID or a release matches at any load address.
        assert_eq!(found((Some(1), None, TEXT + 0x20_0000), None), (Some("do_one".into()), vec![]));
        assert_eq!(found((None, Some("6.1"), TEXT), None), (Some("do_one".into()), vec![]));
        let (name, said) = found((Some(2), Some("6.1"), TEXT), None);
        assert!(name.is_none() && said.len() == 1 && said[0].contains("runs a different kernel"), "{said:?}");
        // It is the running kernel, but its list ends elsewhere, or shows no addresses to this user.
        let hidden = "0000000000000000 T _text\n0000000000000000 t do_one\n";
        for (list, recorded) in [(LIST, (None, Some("6.1"), TEXT)), (hidden, (Some(1), Some("6.1"), TEXT))] {
            let (name, said) = found_beside_list(list, recorded, None, Some(0x400));
            let last = said.last().unwrap();
            assert!(name.is_none() && last.contains("this machine runs the same kernel, but"), "{said:?}");
        }
    }

    #[test]
    fn a_cached_list_that_is_this_machines_is_not_another_kernels() {
        let of_other = "ffffffff81000000 T _text\nffffffff81000100 t their_one\n";
        assert_eq!(found((Some(2), None, TEXT), Some(of_other)), (Some("their_one".into()), vec![]));
        // The list may also be from an earlier boot and have other modules.
        let of_this = LIST.replace("ffffffff81", "ffffffff92").replace("ext4", "xfs");
        for list in [LIST, &of_this] {
            let (name, said) = found((Some(2), None, TEXT), Some(list));
            assert_eq!(name, None);
            assert!(said.len() == 2 && said[0].contains("not of the recorded one"), "{said:?}");
        }
        assert_eq!(found((Some(1), None, TEXT), Some(LIST)), (Some("do_one".into()), vec![]));
    }

    #[test]
    fn a_list_that_ends_elsewhere_is_another_kernels() {
        let theirs = "ffffffff81000000 T _text\nffffffff81000100 t their_one\nffffffff81000400 T _etext\n";
        let with_data = format!("{theirs}ffffffff81000800 D _edata\n");
        let moved = with_data.replace("ffffffff81", "ffffffff92");
        let cached = |list, len| found_by_end((Some(2), None, TEXT), Some(list), len);
        for (list, len) in [(theirs, 0x400), (&with_data, 0x400), (&with_data, 0x800), (&moved, 0x800)] {
            assert_eq!(cached(list, Some(len)), (Some("their_one".into()), vec![]), "{list}");
        }
        assert_eq!(cached(&with_data, None).0, Some("their_one".into()));
        let (name, said) = cached("ffffffff81000000 T _text\nffffffff81000100 t their_one\n", Some(0x400));
        assert!(name.is_none() && said[0].contains("lacks _etext and _edata"), "{said:?}");
        for (list, len) in [(theirs, 0x404), (theirs, 0x800), (&with_data, 0x600), (&moved, 0x600)] {
            let (name, said) = cached(list, Some(len));
            let expected = format!("The recorded kernel ends at address {:#x}, but the kernel in the list", TEXT + len);
            assert!(said[0].contains("_etext at 0xffffffff81000400"), "{said:?}");
            assert!(name.is_none() && said.len() == 2 && said[0].contains(&expected), "{said:?}");
        }
    }

    #[test]
    fn the_running_kernel_is_believed_by_its_build_id_or_its_end() {
        let running = |recorded, len| found_by_end(recorded, None, Some(len)).0;
        // The running kernel's list has no symbol for the kernel's end.
        assert_eq!(running((Some(1), None, TEXT), 0x400), Some("do_one".into()));
        for recorded in [(None, Some("6.1"), TEXT), (None, None, TEXT)] {
            assert_eq!(running(recorded, 0x400), None);
        }
        let ending = |recorded, len| {
            let given = LIST.to_owned() + "ffffffff81000400 T _etext\n";
            found_beside_list(&given, recorded, None, Some(len)).0
        };
        assert_eq!(ending((None, Some("6.1"), TEXT), 0x400), Some("do_one".into()));
        assert_eq!(ending((None, Some("6.1"), TEXT), 0x500), None);
        assert_eq!(ending((None, None, TEXT), 0x500), None);
        assert_eq!(ending((Some(1), None, TEXT), 0x500), Some("do_one".into()));
    }

    #[test]
    fn a_list_in_the_directory_of_another_build_id_is_another_kernels() {
        let of = |digit: u8| BuildId::new(&[digit; 20]).unwrap();
        let list = Path::new("/root/.debug/[kernel.kallsyms]").join(files::hex(of(2))).join("kallsyms");
        assert!(!is_for_other_kernel(&list, of(2)));
        assert!(is_for_other_kernel(&list, of(1)));
        assert!(!is_for_other_kernel(Path::new("/root/lists/0101/kallsyms"), of(1)));
    }
}
