//! `.debug_aranges`: which unit covers an address. libdw before 0.192 finds no unit without it. DWARF 4, 6.1.2.

use crate::formats::cursor::Endian;
use crate::formats::elf_image::target::Target;
use gimli::Endianity;

/// The section under way.
pub(super) struct Aranges {
    target: Target,
    out: Vec<u8>,
}

impl Aranges {
    pub(super) fn new(target: Target) -> Self {
        Self { target, out: Vec::new() }
    }

    /// The set of one unit, which stands at `info` in `.debug_info`: (address, length) of its code.
    pub(super) fn unit(&mut self, info: usize, ranges: &[(u64, u64)]) {
        let size = usize::from(self.target.address_size());
        let start = self.out.len();
        self.number(0, 4); // the length, known at the end
        self.number(2, 2); // version
        self.number(info as u64, 4);
        self.number(size as u64, 1);
        self.number(0, 1); // no segments
        // A set starts aligned; the first tuple is aligned to the size of a tuple within it.
        let header = (self.out.len() - start).next_multiple_of(2 * size);
        self.out.resize(start + header, 0);
        for &(addr, len) in ranges.iter().chain([&(0, 0)]) {
            self.number(addr, size);
            self.number(len, size);
        }
        let len = (self.out.len() - start - 4) as u32;
        let endian = self.target.gimli_endian();
        endian.write_u32(&mut self.out[start..start + 4], len);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.out
    }

    fn number(&mut self, value: u64, size: usize) {
        match self.target.endian {
            Endian::Little => self.out.extend_from_slice(&value.to_le_bytes()[..size]),
            Endian::Big => self.out.extend_from_slice(&value.to_be_bytes()[8 - size..]),
        }
    }
}
