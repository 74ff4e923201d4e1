//! Builds binary data in which all numbers have the same byte order. The counterpart of
//! [`Cursor`](crate::bytes::cursor::Cursor).

use crate::bytes::cursor::Endian;

/// Binary output being built.
#[derive(Debug, Clone)]
pub struct ByteWriter {
    bytes: Vec<u8>,
    endian: Endian,
}

impl ByteWriter {
    /// Creates a writer whose output is empty.
    pub fn new(endian: Endian) -> Self {
        Self::append_to(Vec::new(), endian)
    }

    /// Creates a writer that appends to `bytes`.
    pub fn append_to(bytes: Vec<u8>, endian: Endian) -> Self {
        Self { bytes, endian }
    }

    /// Writes a 16-bit number.
    pub fn u16(&mut self, number: u16) -> &mut Self {
        self.low_bytes(number.into(), 2)
    }

    /// Writes a 32-bit number.
    pub fn u32(&mut self, number: u32) -> &mut Self {
        self.low_bytes(number.into(), 4)
    }

    /// Writes a 64-bit number.
    pub fn u64(&mut self, number: u64) -> &mut Self {
        self.low_bytes(number, 8)
    }

    /// Writes the lowest `len` bytes of a number; `len` is at most 8. Useful for addresses, whose size depends on the
    /// machine.
    #[inline]
    pub fn low_bytes(&mut self, number: u64, len: usize) -> &mut Self {
        let mut bytes = [0; 8];
        let bytes = &mut bytes[..len.min(8)];
        self.endian.put(number, bytes);
        self.bytes(bytes)
    }

    /// Writes bytes unchanged.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Writes zeros until the length of the output is a multiple of `align` bytes.
    pub fn pad(&mut self, align: usize) -> &mut Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(align), 0);
        self
    }

    /// The length of the output in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if the output is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The finished output.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::cursor::Cursor;

    #[test]
    fn a_written_file_is_read_again_in_both_byte_orders() {
        for endian in [Endian::Little, Endian::Big] {
            let mut writer = ByteWriter::new(endian);
            writer.u16(0x102).u32(0x304_0506).u64(u64::MAX - 1).low_bytes(0xa1_b2c3_d4e5, 4).bytes(b"x").pad(8);
            assert_eq!(writer.len(), 24);
            let bytes = writer.finish();
            let mut cursor = Cursor::new(&bytes, 0, endian);
            assert_eq!(cursor.u16("a").unwrap(), 0x102);
            assert_eq!(cursor.u32("b").unwrap(), 0x304_0506);
            assert_eq!(cursor.u64("c").unwrap(), u64::MAX - 1);
            assert_eq!(cursor.u32("d").unwrap(), 0xb2c3_d4e5);
            assert_eq!(cursor.bytes(6, "e").unwrap(), b"x\0\0\0\0\0");
        }
    }
}
