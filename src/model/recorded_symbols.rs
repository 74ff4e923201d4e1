//! Symbols that a recording contains. Simpleperf writes them because the files are on a phone.

use rustc_hash::FxHashMap;

/// A function in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedSymbol {
    /// Start address, in the address space that the file's [`SymbolBase`] describes.
    pub addr: u64,
    /// Length in bytes; 0 if it extends to the next symbol.
    pub len: u64,
    /// The name, as the linker or the runtime spells it.
    pub name: Box<[u8]>,
}

/// Which address space the symbols of a file are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolBase {
    /// File offsets; for code that isn't in a file, addresses of the process.
    Start,
    /// The file's virtual addresses. Add this (wrapping) to an offset to get one.
    Linked(u64),
    /// Addresses for which the file's first mapping of code starts here.
    FirstMapping(u64),
}

/// A file and the symbols recorded for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFile {
    /// The path, as mappings spell it.
    pub path: Vec<u8>,
    /// Which address space the symbols are in.
    pub base: SymbolBase,
    /// The symbols, in any order.
    pub symbols: Vec<RecordedSymbol>,
}

/// The recorded symbols of all files.
#[derive(Debug, Clone, Default)]
pub struct RecordedSymbols {
    files: FxHashMap<Vec<u8>, FileSymbols>,
}

#[derive(Debug, Clone)]
struct FileSymbols {
    /// What to add (wrapping) to an offset to get an address in `symbols`.
    shift: u64,
    /// Sorted by address.
    symbols: Vec<RecordedSymbol>,
}

impl RecordedSymbols {
    /// Collects the symbols of all files. `first_mapping` returns the offset
    /// ([`crate::resolve::address_space::Place::offset`]) of the start of a file's first mapping of code.
    pub fn new(files: Vec<RecordedFile>, mut first_mapping: impl FnMut(&[u8]) -> Option<u64>) -> Self {
        let mut all = Self::default();
        for RecordedFile { path, base, symbols } in files {
            let shift = match base {
                SymbolBase::Start => 0,
                SymbolBase::Linked(shift) => shift,
                SymbolBase::FirstMapping(addr) => addr.wrapping_sub(first_mapping(&path).unwrap_or_default()),
            };
            let file = all.files.entry(path).or_insert(FileSymbols { shift, symbols: Vec::new() });
            file.symbols.extend(symbols);
        }
        for file in all.files.values_mut() {
            file.symbols.sort_by_key(|symbol| symbol.addr);
        }
        all
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The symbol at an offset in a file, and the distance from the symbol's start.
    pub fn find(&self, path: &[u8], offset: u64) -> Option<(&RecordedSymbol, u64)> {
        const PAGE: u64 = 0x1000;
        let FileSymbols { shift, symbols } = self.files.get(path)?;
        let addr = offset.wrapping_add(*shift);
        let next = symbols.partition_point(|symbol| symbol.addr <= addr);
        let symbol = &symbols[next.checked_sub(1)?];
        let distance = addr - symbol.addr;
        // A symbol without a length extends to the next one, but by at most a page: beyond that, nothing is known about
        // its end.
        let len = match symbol.len {
            0 => symbols.get(next).map_or(PAGE, |next| next.addr - symbol.addr).min(PAGE),
            len => len,
        };
        if distance < len { Some((symbol, distance)) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(addr: u64, len: u64, name: &str) -> RecordedSymbol {
        RecordedSymbol { addr, len, name: name.as_bytes().into() }
    }

    #[test]
    fn symbols_are_found_by_what_they_are_counted_from() {
        let symbols = || vec![symbol(0x1200, 0, "second"), symbol(0x1100, 0x80, "first")];
        let file = |path: &str, base| RecordedFile { path: path.into(), base, symbols: symbols() };
        let files = vec![
            file("start", SymbolBase::Start),
            file("linked", SymbolBase::Linked(0x1000)),
            file("mapped", SymbolBase::FirstMapping(0x1000)),
        ];
        let known = RecordedSymbols::new(files, |path| (path == b"mapped").then_some(0x4000));
        let find = |path: &str, offset| {
            known.find(path.as_bytes(), offset).map(|(symbol, into)| (String::from_utf8_lossy(&symbol.name), into))
        };
        assert_eq!(find("start", 0x1110).unwrap(), ("first".into(), 0x10));
        assert_eq!(find("linked", 0x17f).unwrap(), ("first".into(), 0x7f));
        assert_eq!(find("linked", 0x180), None);
        assert_eq!(find("mapped", 0x4208).unwrap(), ("second".into(), 8));
        assert_eq!(find("mapped", 0x5200), None);
        assert_eq!(find("mapped", 0x10), None);
        assert_eq!(find("other", 0x1110), None);
    }
}
