//! Bounds-checked reading of binary data in either byte order. Errors contain the file offset and the field's name.

use crate::error::{Error, Result};

/// The byte order of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

macro_rules! number {
    ($($name:ident: $type:ty),*) => {
        impl Endian {$(
            /// Decodes a number that is stored in this byte order.
            #[inline]
            pub fn $name(self, bytes: [u8; size_of::<$type>()]) -> $type {
                match self {
                    Self::Little => <$type>::from_le_bytes(bytes),
                    Self::Big => <$type>::from_be_bytes(bytes),
                }
            }
        )*}

        impl Cursor<'_> {$(
            /// Reads a number; `field` is its name in error messages.
            #[inline]
            pub fn $name(&mut self, field: &str) -> Result<$type> {
                Ok(self.endian.$name(self.array(field)?))
            }
        )*}
    };
}

number!(u8: u8, u16: u16, u32: u32, u64: u64);

impl Endian {
    /// Stores the lowest `into.len()` bytes of a number in `into`, in this byte order. `into` has at most 8 bytes.
    #[inline]
    pub fn put(self, number: u64, into: &mut [u8]) {
        match self {
            Self::Little => into.copy_from_slice(&number.to_le_bytes()[..into.len()]),
            Self::Big => into.copy_from_slice(&number.to_be_bytes()[8 - into.len()..]),
        }
    }
}

impl From<Endian> for gimli::RunTimeEndian {
    fn from(endian: Endian) -> Self {
        match endian {
            Endian::Little => Self::Little,
            Endian::Big => Self::Big,
        }
    }
}

/// Reads part of a file from start to end, and keeps the position of the next byte to read.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'data> {
    bytes: &'data [u8],
    /// The index in `bytes` of the next byte to read.
    position: usize,
    /// The offset of `bytes` in the file.
    base: u64,
    endian: Endian,
}

impl<'data> Cursor<'data> {
    /// Starts at the beginning of `bytes`. `base` is the offset of `bytes` in their file.
    pub fn new(bytes: &'data [u8], base: u64, endian: Endian) -> Self {
        Self { bytes, position: 0, base, endian }
    }

    /// The offset of the next byte within the file.
    pub fn offset(&self) -> u64 {
        self.base + self.position as u64
    }

    /// Number of bytes left. Before allocating memory for a count that the file states, limit the count by this number.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// True if no byte is left.
    pub fn is_empty(&self) -> bool {
        self.left() == 0
    }

    /// The byte order.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// The remaining bytes. Doesn't move the position.
    pub fn rest(&self) -> &'data [u8] {
        &self.bytes[self.position..]
    }

    /// Reads `len` bytes; `field` names them in error messages.
    #[inline]
    pub fn bytes(&mut self, len: u64, field: &str) -> Result<&'data [u8]> {
        match usize::try_from(len).ok().filter(|&len| len <= self.left()) {
            Some(len) => {
                let bytes = &self.bytes[self.position..self.position + len];
                self.position += len;
                Ok(bytes)
            }
            None => Err(self.too_short(field, len)),
        }
    }

    #[cold]
    fn too_short(&self, field: &str, len: u64) -> Error {
        let left = self.left();
        let verb = if left == 1 { "is" } else { "are" };
        self.error(format!("{field} needs {len} bytes, but only {left} {verb} left"))
    }

    /// Reads `len` bytes and returns a cursor over them; `field` names them in error messages.
    pub fn part(&mut self, len: u64, field: &str) -> Result<Self> {
        let base = self.offset();
        Ok(Self::new(self.bytes(len, field)?, base, self.endian))
    }

    /// Reads a string that ends with a NUL byte; the NUL is consumed but not returned. `field` names the string in
    /// error messages.
    pub fn cstr(&mut self, field: &str) -> Result<&'data [u8]> {
        let Some(len) = memchr::memchr(0, self.rest()) else {
            return Err(
                self.error(format!("{field} has no terminating NUL byte in the {} remaining bytes", self.left()))
            );
        };
        let bytes = &self.bytes[self.position..self.position + len];
        self.position += len + 1;
        Ok(bytes)
    }

    /// Creates an error that states the offset of the next byte.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::new(message).at_offset(self.offset())
    }

    /// Reads `N` bytes; `field` names them in error messages.
    #[inline]
    fn array<const N: usize>(&mut self, field: &str) -> Result<[u8; N]> {
        match self.bytes[self.position..].first_chunk::<N>() {
            Some(bytes) => {
                self.position += N;
                Ok(*bytes)
            }
            None => Err(self.too_short(field, N as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_both_orders_and_the_offset_of_a_short_one() {
        let bytes = [1, 0, 0, 0, 2, b'x', 0, 9];
        let mut little = Cursor::new(&bytes, 100, Endian::Little);
        assert_eq!(little.u32("a").unwrap(), 1);
        assert_eq!(little.u8("b").unwrap(), 2);
        assert_eq!(little.cstr("name").unwrap(), b"x");
        let error = little.u16("size").unwrap_err();
        assert_eq!(error.to_string(), "at byte 0x6b: size needs 2 bytes, but only 1 is left");
        assert_eq!(Cursor::new(&bytes, 0, Endian::Big).u32("a").unwrap(), 0x0100_0000);
        assert!(little.bytes(u64::MAX, "code").is_err());
    }
}
