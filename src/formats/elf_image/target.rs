//! The kind of program that an image is for, and the size of the parts at the start of its file.

use crate::bytes::cursor::Endian;
use object::elf;
use object::write::elf::Encoder;
use std::ops::Range;

/// Number of program headers in an image for perf. Unused ones are of type PT_NULL.
pub(super) const SEGMENTS: usize = 5;

/// Length of the build ID note: namesz, descsz, type, "GNU\0", 20 bytes.
const NOTE: u64 = 12 + 4 + 20;

/// The kind of program that the code belongs to. This is the recorded program, not the one that reads the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The machine, as the ELF header states it (`e_machine`).
    pub machine: u16,
    /// True for ELFCLASS64.
    pub is_64: bool,
    /// The byte order.
    pub endian: Endian,
}

impl Target {
    /// Chooses the usual ELF class for a machine, because dumps only state machine and byte order.
    pub fn new(machine: u16, endian: Endian) -> Self {
        // Machines whose programs usually have 32-bit addresses.
        let narrow = [elf::EM_386, elf::EM_ARM, elf::EM_PPC, elf::EM_MIPS, elf::EM_SPARC, elf::EM_68K, elf::EM_SH];
        Self { machine, is_64: !narrow.contains(&elf::Machine(machine)), endian }
    }

    pub(super) fn address_size(self) -> u8 {
        if self.is_64 { 8 } else { 4 }
    }

    /// The encoder for the structures of an ELF file.
    pub(super) fn encoder(self) -> Encoder<object::Endianness> {
        let endian = if self.endian == Endian::Big { object::Endianness::Big } else { object::Endianness::Little };
        Encoder::new(endian, self.is_64, elf::Machine(self.machine))
    }

    /// The first file offset at which code can start: after the ELF header, `segments` program headers and the build ID
    /// note.
    pub(super) fn header_size(self, segments: usize) -> u64 {
        self.note(segments).end.next_multiple_of(16)
    }

    /// The file range of the build ID note, which is the first section and follows the program headers. `segments` is
    /// the number of program headers.
    pub(super) fn note(self, segments: usize) -> Range<u64> {
        let encoder = self.encoder();
        let start = encoder.file_header_size() + segments as u64 * encoder.program_header_size();
        start..start + NOTE
    }
}
