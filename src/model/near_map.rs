//! Maps by numbers that are given one after the other: processes and threads.
//!
//! A hash scatters what is requested one after the other over the whole table; once the table is larger than the
//! caches, each look-up waits for memory. Here 16 numbers in a row stand side by side, and only such rows are
//! scattered.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

/// A map by process, thread, or both.
pub type NearMap<K, V> = HashMap<K, V, BuildHasherDefault<NearHasher>>;

/// The hash with which [`InternedNumbers`](super::interner::InternedNumbers) of such keys are found.
pub fn near_hash<Q: Hash + ?Sized>(key: &Q) -> u32 {
    BuildHasherDefault::<NearHasher>::default().hash_one(key) as u32
}

/// The number of bits of a number give its place in the row.
const IN_ROW: u32 = 4;

/// All bits but the seven by which a table distinguishes what stands side by side.
const BELOW_TAG: u64 = u64::MAX >> 7;

/// Spreads over all bits (2⁶⁴ divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash: numbers of 32 bits give the place in a row together, by their sum; anything else is scattered.
#[derive(Debug, Default, Clone, Copy)]
pub struct NearHasher {
    near: u32,
    far: u64,
}

impl NearHasher {
    fn scatter(&mut self, value: u64) {
        self.far = (self.far.rotate_left(5) ^ value).wrapping_mul(SPREAD);
    }
}

impl Hasher for NearHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.scatter(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.near = self.near.wrapping_add(number);
        self.scatter(u64::from(number >> IN_ROW));
    }

    fn write_i32(&mut self, number: i32) {
        self.write_u32(number.cast_unsigned());
    }

    fn write_u64(&mut self, number: u64) {
        self.scatter(number);
    }

    /// The variant of an enumeration.
    fn write_isize(&mut self, number: isize) {
        self.scatter(number as u64);
    }

    /// The low bits are the place: where the row begins, wherever that is, and the place in the row.
    fn finish(&self) -> u64 {
        let row = self.far ^ (self.far >> 32);
        let in_row = u64::from(self.near) & ((1 << IN_ROW) - 1);
        let apart = self.far.wrapping_add(in_row).wrapping_mul(SPREAD);
        (apart & !BELOW_TAG) | (row.wrapping_add(in_row) & BELOW_TAG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Pid, Tid};

    fn hash(key: impl Hash) -> u64 {
        BuildHasherDefault::<NearHasher>::default().hash_one(key)
    }

    #[test]
    fn numbers_of_a_row_are_side_by_side_and_distinguished() {
        let row: Vec<u64> = (32..48).map(|pid| hash(Pid(pid))).collect();
        let places: Vec<u64> = row.iter().map(|hash| hash & 0xffff).collect();
        assert!(places.windows(2).all(|pair| pair[1] == pair[0] + 1), "{places:x?}");
        let mut tags: Vec<u64> = row.iter().map(|hash| hash >> 57).collect();
        tags.sort_unstable();
        tags.dedup();
        assert!(tags.len() > 8, "{tags:?}");
    }

    #[test]
    fn rows_are_scattered() {
        let mut rows: Vec<u64> = (0..4096).map(|row| hash((Pid(row * 16), Tid(row * 16))) & 0xfff).collect();
        rows.sort_unstable();
        rows.dedup();
        assert!(rows.len() > 2000, "{} of 4096", rows.len());
    }
}
