//! The functions of one file by address. They come from the file's symbol tables and from its PLT, whose stubs get
//! symbols made up here.
//!
//! If several symbols start at one address, perf's rules decide (`choose_best_symbol`): a symbol with a size wins, then
//! one that isn't weak, then a global one, then the one with fewer leading underscores, then the one with the longer
//! name. A symbol without a size extends to the next symbol, at most to the end of its section.

use super::demangle::demangle;
use super::gopclntab::{GoFunction, GoTable};
use super::plt::{self, Stub, StubTarget};
use super::ready_to_run::Method;
use object::read::elf::{ElfFile, FileHeader, Sym, SymbolTable as ElfTable};
use object::{Endianness, Object, ObjectSection, SectionFlags, SymbolIndex, elf};
use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::ops::Range;
use std::sync::OnceLock;

/// The lowest bit in an Arm function symbol's value. It is set for Thumb code and isn't part of the address (aaelf32,
/// "Symbol Values").
const THUMB: u64 = 1;

/// The functions of a file that contain addresses to be looked up. A recording hits a few thousand of a file's hundred
/// thousand symbols; the others are neither sorted nor stored.
#[derive(Debug, Default)]
pub struct SymbolTable<'data> {
    /// The functions, sorted by start address.
    symbols: Vec<Symbol<'data>>,
    /// For each symbol, the highest end address among the symbol itself and all symbols before it.
    reach: Vec<u64>,
}

/// A function of a file, or a label in assembly code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol<'data> {
    /// The first link-time address.
    pub start: u64,
    /// One past the last link-time address.
    pub end: u64,
    /// The raw name, still mangled.
    pub name: Cow<'data, [u8]>,
    /// False if the symbol states no size, so that `end` is only an upper bound.
    has_size: bool,
    binding: Binding,
    /// How readable the name is; computed when first needed.
    spelling: OnceLock<NameQuality>,
}

/// How readable a name is; greater is better. First the number of leading underscores counts (fewer are better), then
/// the length (longer is better).
type NameQuality = (Reverse<usize>, usize);

/// The binding of an ELF symbol, in ascending order of perf's preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Weak,
    Local,
    Global,
}

/// A section of a file that may contain functions.
#[derive(Debug, Clone, Copy)]
struct CodeSection {
    /// One past the section's last address.
    end: u64,
    /// True if the section's name contains `text`. In other sections, symbols without a type are ignored, because they
    /// mark data.
    is_text: bool,
}

impl<'data> SymbolTable<'data> {
    /// Reads the symbols of several files. Uses `.symtab` and `.dynsym` of each file, and `stubs` where no symbol
    /// covers them. If symbols of two files are equally good, lookups find that of the earlier file. So files with full
    /// symbol tables must come before the file that ran. Only addresses in `wanted`, which must be ascending, can be
    /// looked up later.
    pub fn new(objects: &[&object::File<'data>], stubs: Vec<Stub>, wanted: &[u64]) -> Self {
        let stubs: Vec<_> = stubs.into_iter().filter(|stub| plt::is_hit(wanted, stub.start, stub.end)).collect();
        // `add_stubs` needs more symbols than the wanted ones. It leaves out stubs that have a symbol, so it needs
        // those at the starts of the stubs. And some stubs get their names from the symbol at another address
        // (`ChosenBy`).
        let mut addresses = wanted.to_vec();
        for stub in &stubs {
            addresses.push(stub.start);
            if let StubTarget::ChosenBy(addr) = stub.target {
                addresses.push(addr);
            }
        }
        addresses.sort_unstable();
        addresses.dedup();
        let mut collector = SymbolCollector::new(&addresses);
        for object in objects {
            let sections = executable_sections(object);
            match object {
                object::File::Elf32(file) => collector.add_file(file, &sections),
                object::File::Elf64(file) => collector.add_file(file, &sections),
                _ => {}
            }
        }
        let mut table = Self::from_symbols(collector.finish());
        table.add_stubs(stubs);
        table
    }

    /// Makes the table from the methods of a ReadyToRun image, which has no symbols.
    pub fn from_methods(methods: &'data [Method]) -> Self {
        let symbols = methods.iter().map(|method| Symbol::global(method.start, method.end, (&*method.name).into()));
        Self::from_symbols(symbols.collect())
    }

    /// Sorts the symbols by address; those at the same address stay in their order. Also fills in `reach`, the highest
    /// end among each symbol and those before it. A lookup goes back until no earlier symbol reaches the address.
    fn from_symbols(mut symbols: Vec<Symbol<'data>>) -> Self {
        symbols.sort_by_key(|symbol| symbol.start);
        let mut reach = Vec::with_capacity(symbols.len());
        let mut highest_end = 0;
        for symbol in &symbols {
            highest_end = highest_end.max(symbol.end);
            reach.push(highest_end);
        }
        Self { symbols, reach }
    }

    /// The function that contains an address. If several do, the one that starts last. `None` if none does. A symbol
    /// without a size counts only if no symbol with a size contains the address, because inside a function it is just a
    /// label.
    pub fn find(&self, addr: u64) -> Option<&Symbol<'data>> {
        let mut index = self.symbols.partition_point(|symbol| symbol.start <= addr);
        let mut label = None;
        // `reach` is the highest end among a symbol and all before it. If that isn't above `addr`, no earlier symbol
        // contains the address.
        while index > 0 && self.reach[index - 1] > addr {
            index -= 1;
            if self.symbols[index].end > addr {
                let best = self.best_with_same_start(index, addr);
                if best.has_size {
                    return Some(best);
                }
                label = label.or(Some(best));
            }
        }
        label
    }

    /// Of the symbols that start at the same address and contain `addr`, the best one. `last` is the index of the last
    /// of these symbols. If perf's rules prefer none of them, returns the first.
    fn best_with_same_start(&self, last: usize, addr: u64) -> &Symbol<'data> {
        let mut best = &self.symbols[last];
        for earlier in self.symbols[..last].iter().rev().take_while(|symbol| symbol.start == best.start) {
            // The earlier symbol is taken unless the rules prefer the best one so far.
            if earlier.end > addr && !best.is_preferred_to(earlier) {
                best = earlier;
            }
        }
        best
    }

    /// Adds functions from Go's own table, for those wanted addresses that no symbol with a size covers. `wanted` must
    /// be ascending.
    pub fn add_go_functions(&mut self, go: &GoTable<'data>, wanted: &[u64]) {
        let mut new: Vec<Symbol<'data>> = Vec::new();
        let extent = go.extent();
        for &addr in wanted.iter().filter(|addr| extent.contains(addr)) {
            // The previous wanted address may have been in the same function, which has been added then.
            let is_in_last = new.last().is_some_and(|last| addr < last.end);
            if is_in_last {
                continue;
            }
            let has_symbol = self.find(addr).is_some_and(|symbol| symbol.has_size);
            if !has_symbol && let Some(GoFunction { range, name }) = go.find(addr) {
                new.push(Symbol::global(range.start, range.end, name.into()));
            }
        }
        self.add(new);
    }

    /// Adds `name@plt` for each PLT stub that no symbol with a size covers.
    fn add_stubs(&mut self, stubs: Vec<Stub>) {
        let mut symbols = Vec::new();
        for stub in stubs {
            if self.find(stub.start).is_some_and(|found| found.has_size) {
                continue;
            }
            let name = match &stub.target {
                StubTarget::Named(name) => Some(&name[..]),
                // The function at `addr` chooses the one to which the stub jumps, and both have the same name.
                StubTarget::ChosenBy(addr) => {
                    self.find(*addr).filter(|symbol| symbol.start == *addr).map(|symbol| &*symbol.name)
                }
            };
            if let Some(name) = name {
                symbols.push(Symbol::global(stub.start, stub.end, Cow::Owned([name, b"@plt"].concat())));
            }
        }
        self.add(symbols);
    }

    /// Adds symbols, and sorts all of them again.
    fn add(&mut self, new: Vec<Symbol<'data>>) {
        if !new.is_empty() {
            let mut symbols = std::mem::take(&mut self.symbols);
            symbols.extend(new);
            *self = Self::from_symbols(symbols);
        }
    }
}

impl<'data> Symbol<'data> {
    /// Makes a global symbol with a size.
    fn global(start: u64, end: u64, name: Cow<'data, [u8]>) -> Self {
        Self { start, end, name, has_size: true, binding: Binding::Global, spelling: OnceLock::new() }
    }

    /// True if perf's rules prefer this symbol to `other`. False if they prefer the other or neither.
    fn is_preferred_to(&self, other: &Self) -> bool {
        let rank =
            |symbol: &Self| (symbol.has_size, symbol.binding != Binding::Weak, symbol.binding == Binding::Global);
        match rank(self).cmp(&rank(other)) {
            // Usually both are the same symbol, from two tables. Comparing the raw names first avoids demangling them.
            Ordering::Equal => self.name != other.name && self.spelling() > other.spelling(),
            order => order.is_gt(),
        }
    }

    /// How readable the name is. Cached, because computing it for every lookup would be most of a lookup's cost.
    fn spelling(&self) -> NameQuality {
        *self.spelling.get_or_init(|| {
            let readable = demangle(&self.name);
            let name = readable.as_deref().map_or(&*self.name, str::as_bytes);
            let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
            (Reverse(underscores), name.len())
        })
    }
}

/// Collects the symbols that contain wanted addresses, in one pass over the unsorted symbol tables.
struct SymbolCollector<'a, 'data> {
    /// The wanted addresses in ascending order.
    addresses: &'a [u64],
    /// For each wanted address, the start of the nearest symbol at or before it. While symbols are added, the start of
    /// a symbol is only recorded for the first wanted address at or after it, so some entries stay `None`.
    /// [`Self::finish`] fills these in.
    nearest: Vec<Option<u64>>,
    symbols: Vec<Symbol<'data>>,
    slots: AddressSlots,
}

/// Speeds up the search in a sorted list of addresses. The range from the first to the last address is split into slots
/// of 2^`bits` bytes.
struct AddressSlots {
    bits: u32,
    /// For each slot, the number of addresses before it; at the end, the number of all addresses.
    before: Vec<u32>,
}

impl AddressSlots {
    /// Divides the range of the addresses, which must be ascending, into slots of equal length, and counts the
    /// addresses before each slot.
    fn new(addresses: &[u64]) -> Self {
        let span = addresses.first().zip(addresses.last()).map_or(0, |(first, last)| last - first);
        // Several times more slots than addresses, so that most slots contain at most one address. A slot has a length
        // of 2^`bits` bytes.
        let max_slots = addresses.len() as u64 * 4;
        let bits = (0..64).find(|bits| span >> bits <= max_slots).unwrap_or(63);
        let first = addresses.first().copied().unwrap_or_default();
        // One entry per slot (the last one is `span >> bits`), and one for the number of all addresses.
        let mut before = vec![0; (span >> bits) as usize + 2];
        // First counts the addresses in each slot. The count of a slot is stored in the entry after it, so adding up
        // all entries so far gives the number of addresses before each slot.
        for addr in addresses {
            before[((addr - first) >> bits) as usize + 1] += 1;
        }
        for slot in 1..before.len() {
            before[slot] += before[slot - 1];
        }
        Self { bits, before }
    }

    /// The indices of the addresses in the slot that contains the address `distance` bytes after the first one. `None`
    /// after the last slot.
    fn indices(&self, distance: u64) -> Option<Range<usize>> {
        let slot = (distance >> self.bits) as usize;
        Some(*self.before.get(slot)? as usize..*self.before.get(slot + 1)? as usize)
    }
}

impl<'a, 'data> SymbolCollector<'a, 'data> {
    fn new(addresses: &'a [u64]) -> Self {
        let nearest = vec![None; addresses.len()];
        Self { addresses, nearest, symbols: Vec::new(), slots: AddressSlots::new(addresses) }
    }

    /// Adds the symbols of a file's two symbol tables, as far as they may contain a wanted address.
    fn add_file<Elf: FileHeader<Endian = Endianness>>(
        &mut self,
        file: &ElfFile<'data, Elf>,
        sections: &[Option<CodeSection>],
    ) {
        let is_arm = file.elf_header().e_machine(file.endian()) == elf::EM_ARM;
        for table in [file.elf_symbol_table(), file.elf_dynamic_symbol_table()] {
            // The first entry of every symbol table is a placeholder.
            for (index, symbol) in table.enumerate().skip(1) {
                self.add_symbol(file.endian(), table, index, symbol, sections, is_arm);
            }
        }
    }

    /// Adds a symbol if it may contain a wanted address. Returns `None` early if the symbol is skipped; callers don't
    /// need the result.
    fn add_symbol<Elf: FileHeader<Endian = Endianness>>(
        &mut self,
        endian: Endianness,
        table: &ElfTable<'data, Elf>,
        index: SymbolIndex,
        symbol: &Elf::Sym,
        sections: &[Option<CodeSection>],
        is_arm: bool,
    ) -> Option<()> {
        let value: u64 = symbol.st_value(endian).into();
        let start = if is_arm && symbol.st_type() == elf::STT_FUNC { value & !THUMB } else { value };
        let size: u64 = symbol.st_size(endian).into();
        // Most symbols are rejected here, before the slower checks below. `first` is the index of the first wanted
        // address at or after the symbol's start. A symbol that ends before this address isn't stored. But the symbol's
        // start is recorded if no symbol so far starts nearer to the address. An earlier symbol without a size ends at
        // that start, and so doesn't contain the address.
        let first = self.find_first_from(start)?;
        let ends_before_address = size != 0 && start.saturating_add(size) <= self.addresses[first];
        let is_nearest = self.nearest[first] < Some(start);
        if ends_before_address && !is_nearest {
            return None;
        }
        let name = || table.symbol_name(endian, symbol).ok().filter(|name| !name.is_empty());
        let section_index = table.symbol_section(endian, symbol, index).ok()??;
        // `None` for a section that has no code.
        let section = (*sections.get(section_index.0)?)?;
        match symbol.st_type() {
            // The symbol has no name.
            _ if symbol.st_name(endian) == 0 => return None,
            // `sections` has only sections with code. So an object (`STT_OBJECT`) in one of them is code, too, such as
            // some functions in assembly.
            elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_OBJECT | elf::STT_COMMON => {}
            elf::STT_NOTYPE if section.is_text && is_label(symbol, name()?) => {}
            _ => return None,
        }
        // For a symbol without a size, `finish` replaces this end by a nearer one.
        let end = if size == 0 { section.end } else { start.saturating_add(size) };
        self.record_start(first, start);
        if self.contains_wanted(first, end) {
            let binding = match symbol.st_bind() {
                elf::STB_WEAK => Binding::Weak,
                elf::STB_LOCAL => Binding::Local,
                _ => Binding::Global,
            };
            let spelling = OnceLock::new();
            self.symbols.push(Symbol {
                start,
                end,
                name: Cow::Borrowed(name()?),
                has_size: size != 0,
                binding,
                spelling,
            });
        }
        Some(())
    }

    /// Records the start of a symbol in `nearest`. `first` is the index of the lowest wanted address at or after
    /// `start`.
    fn record_start(&mut self, first: usize, start: u64) {
        self.nearest[first] = self.nearest[first].max(Some(start));
    }

    /// True if a symbol that ends at `end` contains a wanted address. `first` is the index of the lowest wanted address
    /// at or after the symbol's start.
    fn contains_wanted(&self, first: usize, end: u64) -> bool {
        self.addresses[first] < end
    }

    /// The index of the lowest wanted address at or after `start`; `None` if there is none.
    fn find_first_from(&self, start: u64) -> Option<usize> {
        let in_slot = self.slots.indices(start.saturating_sub(*self.addresses.first()?))?;
        let first = in_slot.start + self.addresses[in_slot].partition_point(|&addr| addr < start);
        (first < self.addresses.len()).then_some(first)
    }

    /// Returns the collected symbols. A symbol without a size is left out if it isn't the nearest symbol at or before
    /// any wanted address, because lookups can't find it. Otherwise it gets an end with which every wanted address is
    /// looked up correctly: one byte after the last wanted address for which it is the nearest, or the end of its
    /// section if that comes first. Where the next symbol starts isn't known, because symbols without wanted addresses
    /// aren't collected.
    fn finish(mut self) -> Vec<Symbol<'data>> {
        // The entry of a wanted address is still empty if no symbol starts between the previous wanted address and it.
        // Then it gets the entry of the previous address.
        let mut highest = None;
        for nearest in &mut self.nearest {
            highest = highest.max(*nearest);
            *nearest = highest;
        }
        let (addresses, nearest) = (self.addresses, &self.nearest);
        self.symbols.retain_mut(|symbol| {
            if symbol.has_size {
                return true;
            }
            // The starts in `nearest` are in ascending order. `after` is the index after the last wanted address for
            // which this symbol, or one that starts earlier, is the nearest.
            let after = nearest.partition_point(|&nearest| nearest <= Some(symbol.start));
            match after.checked_sub(1) {
                Some(last) if nearest[last] == Some(symbol.start) => {
                    symbol.end = symbol.end.min(addresses[last].saturating_add(1));
                    true
                }
                _ => false,
            }
        });
        self.symbols
    }
}

/// The sections that may contain functions, by section number; `None` for all others.
fn executable_sections(object: &object::File<'_>) -> Vec<Option<CodeSection>> {
    let mut sections = Vec::new();
    for section in object.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        let is_text = section.name().is_ok_and(|name| name.contains("text"));
        // jitgraft itself writes ELF images in which code with unknown bytes is in `.text.names`, a section that isn't
        // marked as executable. This section counts as code, too.
        let without_bytes = is_text && section.file_range().is_none();
        if sh_flags.contains(elf::SHF_EXECINSTR) || without_bytes {
            let index = section.index().0;
            sections.resize(sections.len().max(index + 1), None);
            sections[index] = Some(CodeSection { end: section.address().saturating_add(section.size()), is_text });
        }
    }
    sections
}

/// True if a symbol without a type is a label in assembly code that may name functions. It must be visible in other
/// files (perf requires that, too), and not be one of Arm's mapping symbols (`$a`, `$d`, …).
fn is_label(symbol: &impl Sym, name: &[u8]) -> bool {
    let is_visible = !matches!(symbol.st_visibility(), elf::STV_HIDDEN | elf::STV_INTERNAL);
    is_visible && !matches!(name, [b'$', b'a' | b'd' | b't' | b'x', ..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::ObjectSymbol;

    fn symbol(start: u64, size: u64, name: &'static str, binding: Binding) -> Symbol<'static> {
        let end = if size == 0 { 0x9000 } else { start + size };
        Symbol {
            start,
            end,
            name: Cow::Borrowed(name.as_bytes()),
            has_size: size != 0,
            binding,
            spelling: OnceLock::new(),
        }
    }

    /// The name at an address. Checks that the result doesn't depend on which other addresses are looked up.
    fn name(symbols: &[Symbol<'static>], addr: u64) -> Option<String> {
        let alone = found(symbols, &[addr], addr);
        let all: Vec<u64> = (0..0x500).collect();
        assert_eq!(alone, found(symbols, &all, addr));
        alone
    }

    fn found(symbols: &[Symbol<'static>], addresses: &[u64], addr: u64) -> Option<String> {
        let mut collector = SymbolCollector::new(addresses);
        for symbol in symbols {
            let Some(first) = collector.find_first_from(symbol.start) else { continue };
            collector.record_start(first, symbol.start);
            if collector.contains_wanted(first, symbol.end) {
                collector.symbols.push(symbol.clone());
            }
        }
        let table = SymbolTable::from_symbols(collector.finish());
        table.find(addr).map(|symbol| String::from_utf8_lossy(&symbol.name).into_owned())
    }

    #[test]
    fn the_best_of_several_at_one_address_is_shown() {
        use Binding::{Global, Local, Weak};
        let table = [
            symbol(0x10, 8, "weak_but_with_a_long_name", Weak),
            symbol(0x10, 8, "__write", Global),
            symbol(0x10, 8, "write", Global),
            symbol(0x10, 8, "local_write", Local),
            symbol(0x10, 0, "unsized_write", Global),
        ];
        assert_eq!(name(&table, 0x17).as_deref(), Some("write"));
    }

    #[test]
    fn unsized_symbols_reach_to_the_next_and_inner_ones_win() {
        use Binding::Local;
        let table = [
            symbol(0x100, 0x100, "outer", Local),
            symbol(0x140, 0x10, "inner", Local),
            symbol(0x180, 0, "label", Local),
            symbol(0x300, 0, "open", Local),
            symbol(0x400, 4, "closed", Local),
        ];
        assert_eq!(name(&table, 0xff), None);
        assert_eq!(name(&table, 0x13f).as_deref(), Some("outer"));
        assert_eq!(name(&table, 0x14f).as_deref(), Some("inner"));
        assert_eq!(name(&table, 0x150).as_deref(), Some("outer"));
        assert_eq!(name(&table, 0x181).as_deref(), Some("outer"));
        assert_eq!(name(&table, 0x200).as_deref(), Some("label"));
        assert_eq!(name(&table, 0x3ff).as_deref(), Some("open"));
        assert_eq!(name(&table, 0x404), None);
    }

    #[test]
    fn the_test_binary_has_its_own_functions() {
        let path = std::env::current_exe().unwrap();
        let bytes = crate::io::map_file(&path).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let main = object.symbols().find(|symbol| symbol.name() == Ok("main")).unwrap();
        let last = main.address() + main.size() - 1;
        let table = SymbolTable::new(&[&object], Vec::new(), &[last]);
        assert_eq!(table.find(last).map(|symbol| &*symbol.name), Some(&b"main"[..]));
    }

    /// Calls of a function that is chosen when the program starts go through a stub, whose slot's relocation has no
    /// symbol.
    #[test]
    fn stubs_of_functions_that_are_chosen_at_the_start_have_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let code = "
            int one(void) { return 1; }
            static int (*pick(void))(void) { return one; }
            static int chosen_one(void) __attribute__((ifunc(\"pick\")));
            int main(void) { return chosen_one(); }";
        std::fs::write(dir.path().join("x.c"), code).unwrap();
        let mut gcc = std::process::Command::new("gcc");
        assert!(
            gcc.args(["-O1", "-fPIE", "-pie", "-o", "x", "x.c"]).current_dir(dir.path()).status().unwrap().success()
        );
        let bytes = std::fs::read(dir.path().join("x")).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let pick = object.symbols().find(|symbol| symbol.name() == Ok("pick")).unwrap().address();
        let stubs = plt::stubs(&object);
        let stub = stubs.iter().find(|stub| stub.target == StubTarget::ChosenBy(pick)).unwrap();
        let last = stub.end - 1;
        let table = SymbolTable::new(&[&object], vec![stub.clone()], &[last]);
        let found = table.find(last).map(|symbol| (symbol.start, String::from_utf8_lossy(&symbol.name).into_owned()));
        assert_eq!(found, Some((stub.start, "chosen_one@plt".to_owned())));
    }
}
