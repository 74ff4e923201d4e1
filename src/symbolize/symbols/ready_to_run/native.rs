//! Reads the compact integers, sparse arrays and hash tables of ReadyToRun images. Stored offsets count from where they
//! are stored. An integer takes one to five bytes; the low bits of the first byte tell how many.

use super::pe::{u16_at, u32_at};

/// All bytes of a ReadyToRun image.
#[derive(Debug, Clone, Copy)]
pub(super) struct Native<'a>(pub(super) &'a [u8]);

/// The number of elements in a block of a sparse array. Each block is a tree.
const BLOCK: u32 = 16;

impl Native<'_> {
    /// Reads an integer at `offset`. Returns its bits, how many bits these are, and the offset after the integer.
    /// The number of 1s at the low end of the first byte says how many bytes follow it. After these 1s and a 0 come the
    /// integer's bits.
    fn number(self, offset: usize) -> Option<(u32, u32, usize)> {
        let first = *self.0.get(offset)?;
        let len = first.trailing_ones() as usize + 1;
        if len > 5 {
            return None;
        }
        // After a first byte with four 1s, the next four bytes are the integer.
        if len == 5 {
            return Some((u32_at(self.0, offset + 1)?, 32, offset + 5));
        }
        let bytes = self.0.get(offset..offset + len)?;
        let mut bits = 0;
        for &byte in bytes.iter().rev() {
            bits = (bits << 8) | u32::from(byte);
        }
        // The lowest `len` bits are those that tell the length.
        Some((bits >> len, 7 * len as u32, offset + len))
    }

    /// Reads an unsigned integer at `offset`. Returns it and the offset after it.
    pub(super) fn unsigned(self, offset: usize) -> Option<(u32, usize)> {
        self.number(offset).map(|(bits, _, end)| (bits, end))
    }

    /// Reads a signed integer at `offset`. Returns it and the offset after it.
    fn signed(self, offset: usize) -> Option<(i32, usize)> {
        let (bits, width, end) = self.number(offset)?;
        let unused = 32 - width;
        Some(((bits << unused) as i32 >> unused, end))
    }

    /// The index of the runtime function with which a method starts, read from the method's entry at `offset`.
    pub(super) fn runtime_function(self, offset: usize) -> Option<u32> {
        let (number, _) = self.unsigned(offset)?;
        // The lowest bit, and the next one if it is set, only tell what the runtime must do before the method can run.
        Some(if number & 1 == 0 { number >> 1 } else { number >> 2 })
    }

    /// Reads the element with index `number` of a table of numbers, which starts at `offset`. An element has 1, 2 or
    /// 4 bytes if `size` is 0, 1 or more.
    fn table_element(self, offset: usize, size: u32, number: usize) -> Option<usize> {
        match size {
            0 => self.0.get(offset.checked_add(number)?).map(|&byte| byte.into()),
            1 => u16_at(self.0, offset.checked_add(2 * number)?).map(usize::from),
            _ => u32_at(self.0, offset.checked_add(4 * number)?).and_then(|element| usize::try_from(element).ok()),
        }
    }
}

/// A sparse array: many elements may be missing. Each block of 16 elements is a tree.
#[derive(Debug)]
pub(super) struct Array<'a> {
    native: Native<'a>,
    /// The offset of a table that has the position of each block. These positions count from the start of the table.
    base: usize,
    /// The number of elements, including missing ones.
    len: u32,
    /// The size of the table's elements; see [`Native::table_element`].
    index_size: u32,
}

impl<'a> Array<'a> {
    /// Reads the header of the array at `offset`.
    pub(super) fn new(native: Native<'a>, offset: usize) -> Option<Self> {
        let (head, base) = native.unsigned(offset)?;
        Some(Self { native, base, len: head >> 2, index_size: head & 3 })
    }

    /// The index and the offset of each element that isn't missing, among the first `most` elements.
    pub(super) fn iter(&self, most: u32) -> impl Iterator<Item = (u32, usize)> {
        (0..self.len.min(most)).filter_map(|index| Some((index, self.find(index)?)))
    }

    /// The offset of the element with this index; `None` if it is missing. The elements are divided into blocks of
    /// [`BLOCK`], and each block is a tree. The bits of the index in the block, the highest first, are the way from the
    /// root: a 1 leads to the second child, a 0 to the first.
    fn find(&self, index: u32) -> Option<usize> {
        let block = usize::try_from(index / BLOCK).ok()?;
        let mut offset = self.base.checked_add(self.native.table_element(self.base, self.index_size, block)?)?;
        for bit in [8, 4, 2, 1] {
            let (node, after) = self.native.unsigned(offset)?;
            let has_first_child = node & 1 != 0;
            let has_second_child = node & 2 != 0;
            let number = node >> 2;
            if !has_first_child && !has_second_child {
                // A node without children is the only element of its block. Its number is the element's index in the
                // block.
                return if number == index % BLOCK { Some(after) } else { None };
            }
            if index & bit != 0 {
                if !has_second_child {
                    return None;
                }
                offset = offset.checked_add(usize::try_from(number).ok()?)?;
            } else {
                if !has_first_child {
                    return None;
                }
                // The first child directly follows its parent; the distance to the second one is stored.
                offset = after;
            }
        }
        Some(offset)
    }
}

/// The entries of a hash table, as far as they could be read.
pub(super) struct HashTable {
    /// The offsets of the entries.
    pub(super) entries: Vec<usize>,
    /// True if all entries could be read.
    pub(super) is_complete: bool,
}

/// Reads the hash table at this offset; `None` if the table's header is damaged.
pub(super) fn read_hash_table(native: Native<'_>, offset: usize) -> Option<HashTable> {
    let head = *native.0.get(offset)?;
    // The first byte says in its lowest two bits how large the elements of the table of buckets are, and in the others
    // how many buckets there are, as a power of two.
    let (base, index_size) = (offset + 1, u32::from(head & 3));
    // A table with more buckets than the file has bytes is damaged.
    let buckets = 1usize.checked_shl((head >> 2).into()).filter(|&buckets| buckets <= native.0.len())?;
    let mut table = HashTable { entries: Vec::new(), is_complete: true };
    for bucket in 0..buckets {
        // A bucket ends where the next one starts.
        let bucket_start = |number| base.checked_add(native.table_element(base, index_size, number)?);
        let (mut position, end) = (bucket_start(bucket)?, bucket_start(bucket + 1)?);
        // The limit stops damaged tables whose buckets overlap.
        while position < end && table.entries.len() < native.0.len() {
            // A bucket has a byte of the hash for each entry, followed by the distance from there to the entry itself.
            let Some((distance, after)) = native.signed(position + 1) else {
                table.is_complete = false;
                return Some(table);
            };
            match (position + 1).checked_add_signed(distance as isize) {
                Some(entry) => table.entries.push(entry),
                None => table.is_complete = false,
            }
            position = after;
        }
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_to_five_bytes() {
        let number = |bytes: &[u8]| Native(bytes).unsigned(0);
        assert_eq!(number(&[0x54]), Some((42, 1)));
        assert_eq!(number(&[0x01 | 0x40, 0x01]), Some((0x50, 2)));
        assert_eq!(number(&[0x03, 0x00, 0x01]), Some((0x2000, 3)));
        assert_eq!(number(&[0x07, 0, 0, 0x01]), Some((0x10_0000, 4)));
        assert_eq!(number(&[0x0f, 0x78, 0x56, 0x34, 0x12]), Some((0x1234_5678, 5)));
        assert_eq!(number(&[0x1f, 0, 0, 0, 0, 0]), None);
        assert_eq!(number(&[0x01]), None);
        assert_eq!(Native(&[0xfe]).signed(0), Some((-1, 1)));
        assert_eq!(Native(&[0xfd, 0xff]).signed(0), Some((-1, 2)));
    }

    #[test]
    fn a_tree_of_one_element_has_that_alone() {
        // An array of two elements: an index with offsets of one byte, and a tree that has only element 1 and its
        // contents.
        let bytes = [2 << 3, 1, 1 << 3, 0x54];
        let array = Array::new(Native(&bytes), 0).unwrap();
        assert_eq!(array.iter(9).collect::<Vec<_>>(), [(1, 3)]);
    }
}
