//! Reads a registered object: its functions and their addresses, and its sections with relocations applied.

use crate::bytes::cursor::Endian;
use crate::error::{Error, Result};
use object::{Architecture, RelocationFlags, RelocationKind, RelocationTarget};
use object::{Object, ObjectKind, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, elf};
use std::borrow::Cow;
use std::cmp::Reverse;

/// An ELF object that a process registered through GDB's JIT interface.
#[derive(Debug)]
pub(super) struct Symfile<'data> {
    pub(super) file: object::File<'data>,
    pub(super) size: usize,
}

/// A function of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Function<'data> {
    pub(super) name: &'data [u8],
    pub(super) addr: u64,
    pub(super) size: u64,
}

impl<'data> Symfile<'data> {
    /// Parses an object. `machine` is the machine of the process that registered it.
    pub(super) fn parse(bytes: &'data [u8], machine: u16) -> Result<Self> {
        let file = object::File::parse(bytes)
            .map_err(|error| Error::new("the registered object is damaged").because(error))?;
        let object::File::Elf64(elf) = &file else {
            return Err(Error::new("the object is not a 64-bit ELF file"));
        };
        let object_machine = elf.elf_header().e_machine.get(elf.endian()).0;
        if object_machine != machine {
            let why =
                format!("the object is for ELF machine {object_machine}, but the process ran on machine {machine}");
            return Err(Error::new(why));
        }
        Ok(Self { file, size: bytes.len() })
    }

    pub(super) fn endian(&self) -> Endian {
        if self.file.is_little_endian() { Endian::Little } else { Endian::Big }
    }

    /// The functions that have an address, sorted and without overlaps.
    pub(super) fn functions(&self) -> Vec<Function<'data>> {
        let mut functions: Vec<Function<'data>> = Vec::new();
        // Names may overlap in the string table of a damaged object, and be far longer in total than the object. So
        // their total length is limited.
        let mut name_bytes_left = self.size.saturating_mul(4);
        // A name that exceeds what is left is dropped together with its function; shorter ones may still follow.
        for symbol in self.file.symbols().chain(self.file.dynamic_symbols()) {
            if let Some(function) = self.function(&symbol)
                && let Some(rest) = name_bytes_left.checked_sub(function.name.len())
            {
                name_bytes_left = rest;
                functions.push(function);
            }
        }
        make_disjoint(&mut functions);
        functions
    }

    /// The content of a section, relocated to where it was loaded. Empty if the section is missing, compressed or
    /// damaged.
    pub(super) fn section(&self, name: &str) -> Cow<'data, [u8]> {
        let Some(section) = self.file.section_by_name(name).filter(|section| !is_compressed(section)) else {
            return Cow::default();
        };
        let Ok(bytes) = section.data() else { return Cow::default() };
        match self.file.kind() {
            ObjectKind::Relocatable => self.relocate(&section, bytes).unwrap_or_default(),
            _ => Cow::Borrowed(bytes),
        }
    }

    /// True if the object has line information.
    pub(super) fn has_lines(&self) -> bool {
        [".debug_info", ".debug_line"].iter().all(|name| self.file.section_by_name(name).is_some())
    }

    /// Applies a section's relocations to its content. `None` if one of them is unknown, because the result would be
    /// wrong.
    fn relocate(&self, section: &object::Section<'data, '_>, bytes: &'data [u8]) -> Option<Cow<'data, [u8]>> {
        let mut out = Cow::Borrowed(bytes);
        for (offset, relocation) in section.relocations() {
            let target = match relocation.target() {
                RelocationTarget::Symbol(index) => self.relocation_target(index)?,
                RelocationTarget::Absolute => 0,
                _ => return None,
            };
            let (kind, size) = self.relocation_kind(&relocation);
            // The width of the field to relocate, in bytes.
            let width = match (kind, size) {
                (RelocationKind::None, _) => continue,
                (RelocationKind::Absolute | RelocationKind::Relative, 64) => 8,
                (RelocationKind::Absolute | RelocationKind::Relative, 32) => 4,
                _ => return None,
            };
            // A relative value counts from the address of the field itself.
            let base = if kind == RelocationKind::Relative { section.address().wrapping_add(offset) } else { 0 };
            let start = usize::try_from(offset).ok()?;
            let field = out.to_mut().get_mut(start..start.checked_add(width)?)?;
            let endian = self.endian();
            // On some machines, the addend is in the field itself, which has 4 or 8 bytes.
            let implicit_addend = match *field {
                _ if !relocation.has_implicit_addend() => 0,
                [a, b, c, d] => endian.u32([a, b, c, d]).into(),
                _ => endian.u64(*field.first_chunk()?),
            };
            let addend = (relocation.addend() as u64).wrapping_add(implicit_addend);
            endian.put(target.wrapping_add(addend).wrapping_sub(base), field);
        }
        Some(out)
    }

    /// The kind of a relocation, and its size in bits.
    fn relocation_kind(&self, relocation: &object::Relocation) -> (RelocationKind, u8) {
        match (self.file.architecture(), relocation.flags()) {
            // `R_X86_64_PC64`, which the crate `object` doesn't know. It occurs in the `.eh_frame` of code that LLVM
            // compiled for the large code model.
            (Architecture::X86_64, RelocationFlags::Elf { r_type }) if r_type == elf::R_X86_64_PC64 => {
                (RelocationKind::Relative, 64)
            }
            _ => (relocation.kind(), relocation.size()),
        }
    }

    /// What a symbol refers to: an address in memory, or an offset in a section that isn't loaded. `None` if it can't
    /// be found.
    fn relocation_target(&self, index: object::SymbolIndex) -> Option<u64> {
        let symbol = self.file.symbol_by_index(index).ok()?;
        let section = symbol.section_index().and_then(|index| self.file.section_by_index(index).ok());
        let base = section.filter(is_loaded).map_or(0, |section| section.address());
        Some(base.wrapping_add(symbol.address()))
    }

    /// The function that a symbol defines. `None` for other symbols, and if the function has no name, address or size.
    fn function(&self, symbol: &object::Symbol<'data, '_>) -> Option<Function<'data>> {
        if symbol.kind() != SymbolKind::Text || !symbol.is_definition() {
            return None;
        }
        let name = symbol.name_bytes().ok().filter(|name| !name.is_empty())?;
        let section = self.file.section_by_index(symbol.section_index()?).ok()?;
        // A section with address 0 wasn't placed in memory.
        if !is_loaded(&section) || section.address() == 0 {
            return None;
        }
        let end = section.address().checked_add(section.size())?;
        let addr = self.symbol_address(symbol.address(), &section)?;
        let size = symbol.size().min(end.checked_sub(addr)?);
        (size > 0).then_some(Function { name, addr, size })
    }

    /// The address of a symbol in a section, given the symbol's value. The value is relative to the section in
    /// relocatable objects, and is taken as relative in other objects if it is outside the section's addresses. `None`
    /// if the address overflows.
    fn symbol_address(&self, value: u64, section: &object::Section<'data, '_>) -> Option<u64> {
        let start = section.address();
        let is_address = self.file.kind() != ObjectKind::Relocatable
            && (start..start.saturating_add(section.size())).contains(&value);
        if is_address { Some(value) } else { start.checked_add(value) }
    }
}

fn is_compressed(section: &object::Section<'_, '_>) -> bool {
    matches!(section.flags(), SectionFlags::Elf { sh_flags, .. } if sh_flags.contains(elf::SHF_COMPRESSED))
}

fn is_loaded(section: &object::Section<'_, '_>) -> bool {
    matches!(section.flags(), SectionFlags::Elf { sh_flags, .. } if sh_flags.contains(elf::SHF_ALLOC))
}

/// Sorts functions, keeps only the longest one at each address, and cuts each function where the next one begins.
fn make_disjoint(functions: &mut Vec<Function<'_>>) {
    functions.sort_by_key(|function| (function.addr, Reverse(function.size)));
    functions.dedup_by_key(|function| function.addr);
    let starts: Vec<u64> = functions.iter().skip(1).map(|function| function.addr).collect();
    for (function, next) in functions.iter_mut().zip(starts) {
        function.size = function.size.min(next - function.addr);
    }
}
