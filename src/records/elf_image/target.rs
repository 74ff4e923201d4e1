//! The kind of program that an image is for.

use crate::bytes::cursor::Endian;
use object::elf;

/// The kind of program that the code belongs to: the recorded one, not the one that reads the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// `e_machine`
    pub machine: u16,
    /// True if it is ELFCLASS64.
    pub is_64: bool,
    /// The byte order.
    pub endian: Endian,
}

impl Target {
    /// With the class that programs for this machine usually have: dumps give machine and byte order only.
    pub fn new(machine: u16, endian: Endian) -> Self {
        let narrow = [elf::EM_386, elf::EM_ARM, elf::EM_PPC, elf::EM_MIPS, elf::EM_SPARC, elf::EM_68K, elf::EM_SH];
        Self { machine, is_64: !narrow.contains(&elf::Machine(machine)), endian }
    }

    pub(super) fn is_big(self) -> bool {
        self.endian == Endian::Big
    }

    pub(super) fn address_size(self) -> u8 {
        if self.is_64 { 8 } else { 4 }
    }

    pub(super) fn gimli_endian(self) -> gimli::RunTimeEndian {
        match self.endian {
            Endian::Little => gimli::RunTimeEndian::Little,
            Endian::Big => gimli::RunTimeEndian::Big,
        }
    }
}
