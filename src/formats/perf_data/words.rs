//! Lists of 64-bit words in a record, such as call chains, registers and branches.

use crate::bytes::cursor::Endian;

/// A list of 64-bit words that borrows the record's bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Words<'data> {
    bytes: &'data [u8],
    endian: Endian,
}

impl<'data> Words<'data> {
    /// Reads bytes as words. An incomplete word at the end is ignored.
    #[inline]
    pub fn new(bytes: &'data [u8], endian: Endian) -> Self {
        Self { bytes, endian }
    }

    /// The bytes as stored in the file.
    #[inline]
    pub fn bytes(self) -> &'data [u8] {
        self.bytes
    }

    /// The first `count` words, or all if there are fewer.
    #[inline]
    pub(super) fn first(self, count: usize) -> Self {
        let bytes = self.bytes.get(..count.saturating_mul(8)).unwrap_or(self.bytes);
        Self { bytes, ..self }
    }

    /// Number of words.
    #[inline]
    pub fn len(self) -> usize {
        self.bytes.len() / 8
    }

    /// True if there are no words.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The word at `index`; `None` beyond the end.
    #[inline]
    pub fn get(self, index: usize) -> Option<u64> {
        let (words, _) = self.bytes.as_chunks::<8>();
        words.get(index).map(|word| self.endian.u64(*word))
    }

    /// Calls `act` for each word of the list, in order, but skips every block of `N` words for which `is_wanted`
    /// returns false. The words at the end that don't fill a block are never skipped. This is faster than looking at
    /// single words if few blocks are wanted.
    #[inline]
    pub fn for_each_in_wanted_blocks<const N: usize>(
        self,
        is_wanted: impl Fn(&[u64; N]) -> bool,
        mut act: impl FnMut(u64),
    ) {
        let (words, _) = self.bytes.as_chunks::<8>();
        let (blocks, rest) = words.as_chunks::<N>();
        let read = |word: &[u8; 8]| self.endian.u64(*word);
        let mut values = [0; N];
        for block in blocks {
            for (value, word) in values.iter_mut().zip(block) {
                *value = read(word);
            }
            if is_wanted(&values) {
                values.into_iter().for_each(&mut act);
            }
        }
        rest.iter().for_each(|word| act(read(word)));
    }

    /// All words in order.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + use<'data> {
        let (words, _) = self.bytes.as_chunks::<8>();
        words.iter().map(move |word| self.endian.u64(*word))
    }
}
