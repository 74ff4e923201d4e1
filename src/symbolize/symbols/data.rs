//! Finds variables by address, for samples with data addresses. Frames are never named after variables, even if their
//! code lies in one.

use super::image::Image;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

/// The variable at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The variable's name, still mangled.
    pub name: Vec<u8>,
    /// The offset of the address from the start of the variable, in bytes.
    pub offset: u64,
}

/// The variables of a program or library.
#[derive(Debug, Default)]
pub struct Variables {
    /// The variables, sorted by link-time address. Of several variables at the same address, the largest comes last; of
    /// equally large ones, a global one comes after a local one.
    list: Vec<DataSymbol>,
}

/// The symbol of a variable. The fields are in the order by which [`Variables`] sorts.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DataSymbol {
    start: u64,
    size: u64,
    is_global: bool,
    name: Vec<u8>,
}

impl Variables {
    /// Reads the symbol tables of files that are all linked for the same addresses, such as a program and its debug
    /// file.
    pub fn new(images: &[&Image]) -> Self {
        let mut list = Vec::new();
        for image in images {
            let Ok(object) = image.object() else { continue };
            for symbol in object.symbols().chain(object.dynamic_symbols()) {
                if symbol.kind() == SymbolKind::Data
                    && symbol.is_definition()
                    && let Ok(name) = symbol.name_bytes()
                    && !name.is_empty()
                {
                    list.push(DataSymbol {
                        start: symbol.address(),
                        size: symbol.size(),
                        is_global: symbol.is_global(),
                        name: name.to_vec(),
                    });
                }
            }
        }
        // Symbols are compared field by field: by address, then by size. Lookups take the last symbol at an address,
        // which is therefore the largest.
        list.sort();
        Self { list }
    }

    /// The variable that contains the address; `None` if there is none. A variable without a size extends to the next
    /// one.
    pub fn find(&self, vaddr: u64) -> Option<Variable> {
        let after = self.list.partition_point(|symbol| symbol.start <= vaddr);
        let symbol = &self.list[after.checked_sub(1)?];
        let offset = vaddr - symbol.start;
        (symbol.size == 0 || offset < symbol.size).then(|| Variable { name: symbol.name.clone(), offset })
    }
}

/// The link-time address of the data that was mapped at a file offset. Unlike [`Image::vaddr`], also finds variables
/// without contents in the file (`.bss`), if they share a page with the end of a segment's contents. That page is
/// mapped from the file, so such a variable has an offset after the contents, but within the segment's size in memory.
/// `None` if no segment contains the offset.
pub fn vaddr_of_data(image: &Image, offset: u64) -> Option<u64> {
    if let Some(vaddr) = image.vaddr(offset) {
        return Some(vaddr);
    }
    // The offset may be in several segments, because a linker may pad an earlier one to a whole page. The last one
    // counts.
    let mut found = None;
    for segment in image.object().ok()?.segments() {
        let (start, len) = segment.file_range();
        let distance = offset.wrapping_sub(start);
        if (len..segment.size()).contains(&distance) {
            found = segment.address().checked_add(distance);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Bytes;

    #[test]
    fn variables_behind_the_contents_of_a_file_have_addresses() {
        let path = std::env::current_exe().unwrap();
        let image = Image::new(&path, Bytes::Owned(std::fs::read(&path).unwrap())).unwrap();
        let object = image.object().unwrap();
        // Rust programs have variables that are zero at first (`.bss`).
        let data = object.segments().filter(|segment| segment.size() > segment.file_range().1).last().unwrap();
        let (start, len) = data.file_range();
        assert_eq!(image.vaddr(start + len), None);
        for distance in [0, len - 1, len, data.size() - 1] {
            assert_eq!(vaddr_of_data(&image, start + distance), Some(data.address() + distance), "{distance:#x}");
        }
        assert_eq!(vaddr_of_data(&image, start + data.size()), None);
    }

    #[test]
    fn the_nearest_variable_below_an_address_is_at_it() {
        let symbol = |start, size, name: &str| DataSymbol { start, size, is_global: true, name: name.into() };
        let list = vec![symbol(0x100, 0, "start"), symbol(0x200, 8, "part"), symbol(0x200, 0x20, "whole")];
        let variables = Variables { list };
        let find = |vaddr| variables.find(vaddr).map(|found| (String::from_utf8(found.name).unwrap(), found.offset));
        assert_eq!(find(0x1f0), Some(("start".into(), 0xf0)));
        assert_eq!(find(0x210), Some(("whole".into(), 0x10)));
        assert_eq!((find(0x220), find(0xff)), (None, None));
    }
}
