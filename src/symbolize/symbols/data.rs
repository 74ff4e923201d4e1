//! Finds variables by address: for samples with data addresses, and for frames in data. A call chain by frame pointers
//! goes astray in code that uses the frame pointer for something else, and may then contain addresses of data. `perf
//! record -d` records where data is mapped, and such a frame is named after the variable, as in perf.

use super::image::Image;
use super::plt::is_hit;
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, elf};

/// The variable at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The variable's name, still mangled.
    pub name: Vec<u8>,
    /// The offset of the address from the start of the variable, in bytes.
    pub offset: u64,
    /// False if the variable's symbol has no size. Then the address may be after the variable's end.
    pub has_size: bool,
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
    /// Collects the variables in the symbol tables of files that are all linked for the same addresses, such as a
    /// program and its debug file.
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
        let has_size = symbol.size != 0;
        (!has_size || offset < symbol.size).then(|| Variable { name: symbol.name.clone(), offset, has_size })
    }
}

/// True if any of the link-time addresses, which must be ascending, is in a section of data.
pub fn is_any_in_data(object: &object::File<'_>, addresses: &[u64]) -> bool {
    object.sections().any(|section| {
        is_data(&section) && is_hit(addresses, section.address(), section.address().saturating_add(section.size()))
    })
}

/// True if a section is loaded and contains data. That includes `.bss`, but not `.tbss`: the variables of threads are
/// elsewhere, and its addresses are those of the sections after it.
fn is_data(section: &object::Section<'_, '_>) -> bool {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return false };
    // In the images that jitgraft writes, `.text.names` has code without bytes and isn't marked as executable.
    let is_text = section.name().is_ok_and(|name| name.contains("text"));
    let is_code = sh_flags.contains(elf::SHF_EXECINSTR) || is_text;
    sh_flags.contains(elf::SHF_ALLOC) && !sh_flags.contains(elf::SHF_TLS) && !is_code
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Bytes;
    use object::ObjectSegment;

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
            assert_eq!(image.vaddr_in_memory(start + distance), Some(data.address() + distance), "{distance:#x}");
        }
        assert_eq!(image.vaddr_in_memory(start + data.size()), None);
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
