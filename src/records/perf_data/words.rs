//! Lists of 64-bit words in records: call chains, registers, copies of stacks.

use crate::bytes::cursor::Endian;

/// A list of 64-bit words in the record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Words<'data> {
    bytes: &'data [u8],
    endian: Endian,
}

impl<'data> Words<'data> {
    /// Bytes that are read as words; what is left at the end is not seen.
    #[inline]
    pub fn new(bytes: &'data [u8], endian: Endian) -> Self {
        Self { bytes, endian }
    }

    /// As they are in the file.
    #[inline]
    pub fn bytes(self) -> &'data [u8] {
        self.bytes
    }

    /// This many from the start on.
    #[inline]
    pub(super) fn first(self, count: usize) -> Self {
        let bytes = self.bytes.get(..count.saturating_mul(8)).unwrap_or(self.bytes);
        Self { bytes, ..self }
    }

    /// The number.
    #[inline]
    pub fn len(self) -> usize {
        self.bytes.len() / 8
    }

    /// True if it is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// One of them.
    #[inline]
    pub fn get(self, index: usize) -> Option<u64> {
        let (words, _) = self.bytes.as_chunks::<8>();
        words.get(index).map(|word| self.endian.u64(*word))
    }

    /// Does something with each word of those blocks of `N` that are requested, and of what is left behind the last
    /// block.
    #[inline]
    pub fn for_each_in<const N: usize>(self, asked_for: impl Fn(&[u64; N]) -> bool, mut act: impl FnMut(u64)) {
        let (words, _) = self.bytes.as_chunks::<8>();
        let (blocks, rest) = words.as_chunks::<N>();
        let read = |word: &[u8; 8]| self.endian.u64(*word);
        let mut values = [0; N];
        for block in blocks {
            for (value, word) in values.iter_mut().zip(block) {
                *value = read(word);
            }
            if asked_for(&values) {
                values.into_iter().for_each(&mut act);
            }
        }
        rest.iter().for_each(|word| act(read(word)));
    }

    /// The number of words at the end of two lists are the same.
    pub fn same_at_end(self, other: Self) -> usize {
        let ((own, _), (other, _)) = (self.bytes.as_chunks::<8>(), other.bytes.as_chunks::<8>());
        own.iter().rev().zip(other.iter().rev()).take_while(|(own, other)| own == other).count()
    }

    /// All of them.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + use<'data> {
        let (words, _) = self.bytes.as_chunks::<8>();
        words.iter().map(move |word| self.endian.u64(*word))
    }
}
