//! `.debug_aranges`: which unit covers an address. libdw before 0.192 finds no unit without it. DWARF 4, 6.1.2.

use crate::bytes::byte_writer::ByteWriter;
use crate::records::elf_image::target::Target;

/// The bytes of a set's length, which it does not count.
const LENGTH: usize = 4;

/// The section under way.
pub(super) struct Aranges {
    target: Target,
    out: Vec<u8>,
}

impl Aranges {
    pub(super) fn new(target: Target) -> Self {
        Self { target, out: Vec::new() }
    }

    /// The set of one unit, which is at `info` in `.debug_info`: (address, length) of its code.
    pub(super) fn unit(&mut self, info: usize, ranges: &[(u64, u64)]) {
        let size = usize::from(self.target.address_size());
        let mut set = ByteWriter::new(self.target.endian);
        set.u16(2); // version
        set.u32(info as u32);
        set.low_bytes(size as u64, 1).low_bytes(0, 1); // no segments
        // A set starts aligned; the first tuple is aligned to the size of a tuple within it, its length counted.
        let header = (LENGTH + set.len()).next_multiple_of(2 * size) - LENGTH;
        set.bytes(&vec![0; header - set.len()]);
        for &(addr, len) in ranges.iter().chain([&(0, 0)]) {
            set.low_bytes(addr, size).low_bytes(len, size);
        }
        let mut whole = ByteWriter::behind(std::mem::take(&mut self.out), self.target.endian);
        whole.u32(set.len() as u32).bytes(&set.finish());
        self.out = whole.finish();
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.out
    }
}
