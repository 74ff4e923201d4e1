//! Symbols that a recording contains itself. Simpleperf records them because the files are on a phone.

use rustc_hash::FxHashMap;

/// A function in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedSymbol {
    /// The start address. [`SymbolBase`] says what it is relative to.
    pub addr: u64,
    /// The length in bytes; 0 if the symbol extends to the next one.
    pub len: u64,
    /// The name, as the linker or the runtime spells it.
    pub name: Box<[u8]>,
}

/// What the addresses of a file's symbols are relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolBase {
    /// Symbol addresses are file offsets or, for code that isn't in a file, addresses in the process.
    Start,
    /// Symbol addresses are the file's virtual addresses: file offsets plus this number (wrapping).
    Linked(u64),
    /// Symbol addresses assume that the file's first mapping of code starts at this address.
    FirstMapping(u64),
}

/// A file and its symbols in the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFile {
    /// The path, as mappings spell it.
    pub path: Vec<u8>,
    /// What the symbols' addresses are relative to.
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
    /// The difference (wrapping) between a symbol's address and its file offset.
    shift: u64,
    /// Sorted by address.
    symbols: Vec<RecordedSymbol>,
}

impl RecordedSymbols {
    /// Collects the symbols of all files. `first_mapping` returns the file offset at which the first mapping of a
    /// file's code starts ([`crate::symbolize::address_space::MappedPlace::offset`]).
    pub fn new(files: Vec<RecordedFile>, mut first_mapping: impl FnMut(&[u8]) -> Option<u64>) -> Self {
        let mut all = Self::default();
        for RecordedFile { path, base, symbols } in files {
            // The number to add to a file offset to get an address that can be compared with those of the symbols.
            let shift = match base {
                SymbolBase::Start => 0,
                SymbolBase::Linked(shift) => shift,
                SymbolBase::FirstMapping(addr) => addr.wrapping_sub(first_mapping(&path).unwrap_or_default()),
            };
            // If a file is listed several times, the shift of its first entry is used for all symbols.
            let file = all.files.entry(path).or_insert(FileSymbols { shift, symbols: Vec::new() });
            file.symbols.extend(symbols);
        }
        for file in all.files.values_mut() {
            file.symbols.sort_by_key(|symbol| symbol.addr);
        }
        all
    }

    /// True if the recording contains no symbols of files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The symbol that contains an offset in a file, and the offset's distance from the symbol's start. `None` if there
    /// is none.
    pub fn find(&self, path: &[u8], offset: u64) -> Option<(&RecordedSymbol, u64)> {
        const PAGE: u64 = 0x1000;
        let FileSymbols { shift, symbols } = self.files.get(path)?;
        let addr = offset.wrapping_add(*shift);
        let next = symbols.partition_point(|symbol| symbol.addr <= addr);
        let symbol = &symbols[next.checked_sub(1)?];
        let distance = addr - symbol.addr;
        // The end of a symbol without a length isn't known. Assume that it extends to the next one, but by no more than
        // a page.
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
