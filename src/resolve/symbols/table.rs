//! The functions of one file, by address: from its symbol tables, and made up for its procedure linkage table.
//!
//! Where several symbols start at one address, the choice is perf's (`choose_best_symbol`): one with a size, not
//! weak, global, with fewer leading underscores, with the longer name. A symbol without a size reaches to the next
//! one, at most to the end of its section.

use super::demangle::demangle;
use super::plt;
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SectionIndex, SymbolFlags, SymbolKind, elf};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cmp::Reverse;

/// Functions by address.
#[derive(Debug, Default)]
pub struct SymbolTable<'data> {
    /// Sorted by first address.
    symbols: Vec<Symbol<'data>>,
    /// The highest end of all symbols up to each.
    reach: Vec<u64>,
}

/// One function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol<'data> {
    /// Its first address, as linked.
    pub start: u64,
    /// One past its last address.
    pub end: u64,
    /// Its name as the linker knows it.
    pub name: Cow<'data, [u8]>,
    sized: bool,
    binding: Binding,
}

/// In ascending preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Weak,
    Local,
    Global,
}

/// What a symbol's section allows.
#[derive(Debug, Clone, Copy)]
struct Section {
    /// One past its last address.
    end: u64,
    /// Labels without a type count only in text sections: elsewhere they mark data.
    text: bool,
}

impl<'data> SymbolTable<'data> {
    /// Reads the symbols of files in this order: those with full tables before the running image. Each file gives
    /// its `.symtab` and its `.dynsym`.
    pub fn new(objects: &[&object::File<'data>]) -> Self {
        let mut symbols = Vec::new();
        for object in objects {
            let sections = executable_sections(object);
            symbols.extend(object.symbols().filter_map(|symbol| function(&symbol, &sections)));
            symbols.extend(object.dynamic_symbols().filter_map(|symbol| function(&symbol, &sections)));
        }
        Self::from_symbols(symbols)
    }

    fn from_symbols(mut symbols: Vec<Symbol<'data>>) -> Self {
        symbols.sort_by_key(|symbol| symbol.start);
        let mut next = u64::MAX;
        for index in (0..symbols.len()).rev() {
            if let Some(after) = symbols.get(index + 1).filter(|after| after.start > symbols[index].start) {
                next = after.start;
            }
            let symbol = &mut symbols[index];
            if !symbol.sized {
                symbol.end = symbol.end.min(next);
            }
        }
        let mut high = 0;
        let reach = symbols.iter().map(|symbol| {
            high = high.max(symbol.end);
            high
        });
        let reach = reach.collect();
        Self { symbols, reach }
    }

    /// The function that an address belongs to: the one that starts nearest below it and reaches it. A label without
    /// a size counts only where no function with a size reaches: inside one it marks a place, not a function.
    pub fn find(&self, addr: u64) -> Option<&Symbol<'data>> {
        let mut at = self.symbols.partition_point(|symbol| symbol.start <= addr);
        let mut label = None;
        while at > 0 && self.reach[at - 1] > addr {
            at -= 1;
            if self.symbols[at].end > addr {
                let best = self.best_at(at, addr);
                if best.sized {
                    return Some(best);
                }
                label = label.or(Some(best));
            }
        }
        label
    }

    /// Of all symbols that start where the one at `last` does and reach `addr`, the one to show.
    fn best_at(&self, last: usize, addr: u64) -> &Symbol<'data> {
        let start = self.symbols[last].start;
        let group = self.symbols[..=last].iter().rev().take_while(|symbol| symbol.start == start);
        let group = group.filter(|symbol| symbol.end > addr);
        group.max_by_key(|symbol| symbol.preference()).unwrap_or(&self.symbols[last])
    }

    /// Adds `name@plt` for the stubs of the procedure linkage table, where no symbol covers them.
    pub fn add_plt(&mut self, object: &object::File<'data>) {
        let stubs = plt::stubs(object);
        let new = stubs.into_iter().filter(|stub| self.find(stub.start).is_none_or(|found| !found.sized));
        let new: Vec<_> = new
            .map(|stub| Symbol {
                start: stub.start,
                end: stub.end,
                name: Cow::Owned(stub.name),
                sized: true,
                binding: Binding::Global,
            })
            .collect();
        let mut symbols = std::mem::take(&mut self.symbols);
        symbols.extend(new);
        *self = Self::from_symbols(symbols);
    }
}

impl Symbol<'_> {
    fn preference(&self) -> impl Ord {
        let readable = demangle(&self.name);
        let name = readable.as_deref().map_or(&*self.name, str::as_bytes);
        let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
        let (weak, global) = (self.binding == Binding::Weak, self.binding == Binding::Global);
        (self.sized, !weak, global, Reverse(underscores), name.len())
    }
}

fn executable_sections(object: &object::File<'_>) -> FxHashMap<SectionIndex, Section> {
    let executable = object.sections().filter(|section| match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(elf::SHF_EXECINSTR),
        _ => false,
    });
    let of = |section: object::Section<'_, '_>| {
        let text = section.name().is_ok_and(|name| name.contains("text"));
        (section.index(), Section { end: section.address().saturating_add(section.size()), text })
    };
    executable.map(of).collect()
}

fn function<'data>(
    symbol: &impl ObjectSymbol<'data>,
    sections: &FxHashMap<SectionIndex, Section>,
) -> Option<Symbol<'data>> {
    let section = sections.get(&symbol.section_index()?)?;
    let name = symbol.name_bytes().ok().filter(|name| !name.is_empty())?;
    match symbol.kind() {
        SymbolKind::Text | SymbolKind::Data => {}
        _ if section.text && is_label(symbol, name) => {}
        _ => return None,
    }
    let binding = match (symbol.is_weak(), symbol.is_global()) {
        (true, _) => Binding::Weak,
        (_, true) => Binding::Global,
        _ => Binding::Local,
    };
    let (start, size) = (symbol.address(), symbol.size());
    let end = if size == 0 { section.end } else { start.saturating_add(size) };
    Some(Symbol { start, end, name: Cow::Borrowed(name), sized: size != 0, binding })
}

/// Symbols without a type: labels of assembly code. The assembler's own marks of ARM code and data are none.
fn is_label<'data>(symbol: &impl ObjectSymbol<'data>, name: &[u8]) -> bool {
    let SymbolFlags::Elf { st_info, st_other } = symbol.flags() else { return false };
    let visible = !matches!(st_other.visibility(), elf::STV_HIDDEN | elf::STV_INTERNAL);
    st_info.st_type() == elf::STT_NOTYPE && visible && !matches!(name, [b'$', b'a' | b'd' | b't' | b'x', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(start: u64, size: u64, name: &'static str, binding: Binding) -> Symbol<'static> {
        let end = if size == 0 { 0x9000 } else { start + size };
        Symbol { start, end, name: Cow::Borrowed(name.as_bytes()), sized: size != 0, binding }
    }

    fn name(table: &SymbolTable<'_>, addr: u64) -> Option<String> {
        table.find(addr).map(|symbol| String::from_utf8_lossy(&symbol.name).into_owned())
    }

    #[test]
    fn of_several_at_one_address_the_best_is_shown() {
        use Binding::{Global, Local, Weak};
        let table = SymbolTable::from_symbols(vec![
            symbol(0x10, 8, "weak_but_with_a_long_name", Weak),
            symbol(0x10, 8, "__write", Global),
            symbol(0x10, 8, "write", Global),
            symbol(0x10, 8, "local_write", Local),
            symbol(0x10, 0, "unsized_write", Global),
        ]);
        assert_eq!(name(&table, 0x17).as_deref(), Some("write"));
    }

    #[test]
    fn unsized_symbols_reach_to_the_next_and_inner_ones_win() {
        use Binding::Local;
        let table = SymbolTable::from_symbols(vec![
            symbol(0x100, 0x100, "outer", Local),
            symbol(0x140, 0x10, "inner", Local),
            symbol(0x180, 0, "label", Local),
            symbol(0x300, 0, "open", Local),
            symbol(0x400, 4, "closed", Local),
        ]);
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
    fn the_test_binary_knows_its_own_functions() {
        let path = std::env::current_exe().unwrap();
        let bytes = crate::io::map_file(&path).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let table = SymbolTable::new(&[&object]);
        let main = object.symbols().find(|symbol| symbol.name() == Ok("main")).unwrap();
        assert_eq!(name(&table, main.address() + main.size() - 1).as_deref(), Some("main"));
    }
}
