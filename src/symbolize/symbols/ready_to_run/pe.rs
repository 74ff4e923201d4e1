//! The outer structure of a .NET PE file: its sections, its metadata, and the header of its precompiled code.

/// A range of the file that is loaded into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// The first address of the range, relative to the start of the image in memory.
    pub rva: u32,
    /// The offset of the range in the file.
    pub offset: u32,
    /// The size of the range in the file, in bytes.
    pub size: u32,
}

/// A .NET PE file.
#[derive(Debug)]
pub(super) struct Pe<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) machine: u16,
    pub(super) sections: Vec<Section>,
    /// The address and size of the metadata. The address is relative to the start of the image, like all addresses
    /// here.
    pub(super) metadata: (u32, u32),
    /// The address of the header for code compiled ahead of time; `None` if the file has no such code.
    pub(super) native_header: Option<u32>,
}

/// The index of .NET's entry in the data directories of a PE file.
const DIRECTORY_OF_DOT_NET: usize = 14;

impl<'a> Pe<'a> {
    /// Reads the headers. `None` if the file isn't a PE file or doesn't belong to .NET.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        if !bytes.starts_with(b"MZ") {
            return None;
        }
        // The number at this offset says where the signature is.
        let signature = usize::try_from(u32_at(bytes, 0x3c)?).ok()?;
        if !bytes.get(signature..)?.starts_with(b"PE\0\0") {
            return None;
        }
        let machine = u16_at(bytes, signature + 4)?;
        let section_count = u16_at(bytes, signature + 6)?;
        // After the signature and the file header comes the optional header, whose size the file header states, and
        // then the table of sections.
        let optional = signature + 24;
        let first_section = optional + usize::from(u16_at(bytes, signature + 20)?);
        // PE32+, the 64-bit format, has larger fields before the directories.
        let directories = optional + if u16_at(bytes, optional)? == 0x20b { 112 } else { 96 };
        // The header of a section has 40 bytes. If the table is cut off, the sections before that are kept.
        let sections = (0..usize::from(section_count)).map_while(|section| {
            let header = first_section + 40 * section;
            let (size, offset) = (u32_at(bytes, header + 16)?, u32_at(bytes, header + 20)?);
            Some(Section { rva: u32_at(bytes, header + 12)?, offset, size })
        });
        let mut pe = Self { bytes, machine, sections: sections.collect(), metadata: (0, 0), native_header: None };
        // .NET's header has the address and size of the metadata at offset 8, and the address of the header for code
        // compiled ahead of time at offset 64.
        let dot_net_header = pe.offset(u32_at(bytes, directories + 8 * DIRECTORY_OF_DOT_NET)?)?;
        pe.metadata = (u32_at(bytes, dot_net_header + 8)?, u32_at(bytes, dot_net_header + 12)?);
        pe.native_header = u32_at(bytes, dot_net_header + 64).filter(|&rva| rva != 0);
        Some(pe)
    }

    /// The file offset of the byte at address `rva`. `None` if the file has no such byte.
    pub(super) fn offset(&self, rva: u32) -> Option<usize> {
        let (section, distance) = self.sections.iter().find_map(|section| {
            let distance = rva.checked_sub(section.rva).filter(|&distance| distance < section.size)?;
            Some((section, distance))
        })?;
        usize::try_from(section.offset.checked_add(distance)?).ok()
    }

    /// The end address of the section that contains the address `rva`; `None` if there is none.
    pub(super) fn section_end(&self, rva: u32) -> Option<u32> {
        let section = self.sections.iter().find(|section| {
            let distance = rva.checked_sub(section.rva);
            distance.is_some_and(|distance| distance < section.size)
        })?;
        section.rva.checked_add(section.size)
    }

    /// The `size` bytes of the file from the address `rva` on. `None` if the file doesn't have all of them.
    pub(super) fn slice(&self, rva: u32, size: u32) -> Option<&'a [u8]> {
        let offset = self.offset(rva)?;
        self.bytes.get(offset..offset.checked_add(usize::try_from(size).ok()?)?)
    }
}

/// Reads a 32-bit little-endian number at `offset`. `None` beyond the end.
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Reads a 16-bit little-endian number at `offset`. `None` beyond the end.
pub(super) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_before_a_section_is_not_in_it_with_any_size() {
        let sections = vec![Section { rva: 0x2000, offset: 0x400, size: u32::MAX }];
        let pe = Pe { bytes: &[0; 0x500], machine: 0, sections, metadata: (0, 0), native_header: None };
        assert_eq!([pe.offset(0x1fff), pe.offset(0x2000), pe.offset(0x2010)], [None, Some(0x400), Some(0x410)]);
        assert_eq!(pe.offset(u32::MAX).and_then(|at| pe.bytes.get(at)), None);
    }
}
