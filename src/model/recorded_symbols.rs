//! Symbols that a recorder wrote into its recording: simpleperf does, since the files are on a phone.

use rustc_hash::FxHashMap;

/// A function of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedSymbol {
    /// Its first address, as the file counts them.
    pub addr: u64,
    /// Its length in bytes; 0 if it reaches to the next one.
    pub len: u64,
    /// Its name, as the linker or the runtime spells it.
    pub name: Box<[u8]>,
}

/// What the symbols of a file are counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolBase {
    /// The file's first byte, or address 0 where mappings are not of files.
    Start,
    /// The file's addresses: they differ from offsets by this (wrapping).
    Linked(u64),
    /// This address, where its first mapping of code begins.
    FirstMapping(u64),
}

/// A file and its symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFile {
    /// Its path, as mappings spell it.
    pub path: Vec<u8>,
    /// How addresses in it become those of symbols.
    pub base: SymbolBase,
    /// Its symbols, in any order.
    pub symbols: Vec<RecordedSymbol>,
}

/// The symbols of all files.
#[derive(Debug, Clone, Default)]
pub struct RecordedSymbols {
    files: FxHashMap<Vec<u8>, FileSymbols>,
}

#[derive(Debug, Clone)]
struct FileSymbols {
    /// Added (wrapping) to a place's offset, it gives the address that symbols are counted by.
    shift: u64,
    /// In the order of addresses.
    symbols: Vec<RecordedSymbol>,
}

impl RecordedSymbols {
    /// Those of these files. `first_mapping` gives the offset that the first byte of a file's first mapping of code has
    /// as a place ([`crate::resolve::address_space::Place::offset`]).
    pub fn new(files: Vec<RecordedFile>, mut first_mapping: impl FnMut(&[u8]) -> Option<u64>) -> Self {
        let mut all = Self::default();
        for RecordedFile { path, base, symbols } in files {
            let shift = match base {
                SymbolBase::Start => 0,
                SymbolBase::Linked(shift) => shift,
                SymbolBase::FirstMapping(addr) => addr.wrapping_sub(first_mapping(&path).unwrap_or_default()),
            };
            let of = all.files.entry(path).or_insert(FileSymbols { shift, symbols: Vec::new() });
            of.symbols.extend(symbols);
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

    /// The symbol at an offset of a file, and how far into it that is.
    pub fn find(&self, path: &[u8], offset: u64) -> Option<(&RecordedSymbol, u64)> {
        let FileSymbols { shift, symbols } = self.files.get(path)?;
        let addr = offset.wrapping_add(*shift);
        let behind = symbols.partition_point(|symbol| symbol.addr <= addr);
        let symbol = &symbols[behind.checked_sub(1)?];
        let into = addr - symbol.addr;
        // One without a length reaches to the next, if that follows within a page: else nothing is known of its end.
        let len = match symbol.len {
            0 => symbols.get(behind).map_or(0x1000, |next| next.addr - symbol.addr).min(0x1000),
            len => len,
        };
        (into < len).then_some((symbol, into))
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
