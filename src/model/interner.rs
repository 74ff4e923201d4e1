//! Interning: distinct values get IDs in order of first appearance.
//!
//! IDs have 32 bits, since profiles hold millions of them. An input may contain more distinct values than there are
//! IDs. Further values then get the ID of some other value, and the table remembers that it is full. Readers needn't
//! check at every step; whoever uses the result checks once, and fails with [`full`].

use crate::error::Error;
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

/// Defines ID types for tables. Each table has its own, so that IDs of different tables can't be confused.
macro_rules! id {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);
        impl From<u32> for $name {
            fn from(number: u32) -> Self {
                Self(number)
            }
        }
        impl From<$name> for u32 {
            fn from(id: $name) -> Self {
                id.0
            }
        }
        impl $name {
            /// The ID as an index into its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

pub(crate) use id;

/// The maximum number of interned values. All IDs are smaller than this number, so that `u32::MAX` can stand for
/// "none".
pub(super) const MOST: u32 = u32::MAX;

/// The error for a table that ran out of IDs. `what` names the table's entries in the plural.
pub fn full(what: &str) -> Error {
    Error::new(format!("too many different {what} (more than {MOST}); read less at once with --time, --event or --pid"))
}

/// A hash table that finds IDs by the hashes of their values. The values are stored elsewhere.
///
/// The table stores 32 bits of each hash next to the ID. It can therefore grow without looking at values, and a lookup
/// rarely looks at a value that isn't the wanted one.
#[derive(Debug, Clone, Default)]
pub struct InternedNumbers(HashTable<Numbered>);

#[derive(Debug, Clone, Copy)]
struct Numbered {
    hash: u32,
    number: u32,
}

impl InternedNumbers {
    /// Finds an ID by the hash of its value; `None` if there is none. Several values may have the same hash, so
    /// `is_wanted` gets an ID and compares that ID's value with the wanted one.
    pub fn find(&self, hash: u32, is_wanted: impl Fn(u32) -> bool) -> Option<u32> {
        let found = self.0.find(expand_hash(hash), |known| known.hash == hash && is_wanted(known.number));
        found.map(|known| known.number)
    }

    /// Inserts an ID with the hash of its value. The table must not contain an equal value.
    pub fn insert(&mut self, hash: u32, number: u32) {
        self.0.insert_unique(expand_hash(hash), Numbered { hash, number }, |known| expand_hash(known.hash));
    }

    /// Removes all IDs.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Expands a hash from 32 bits to 64. The lowest and the highest bits must all depend on the hash: hashbrown picks the
/// slot by the lowest, and compares the highest.
fn expand_hash(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

/// The hash of a value, as [`InternedNumbers`] expects it.
pub fn hash_of<Q: Hash + ?Sized>(item: &Q) -> u32 {
    let hash = FxBuildHasher.hash_one(item);
    (hash ^ (hash >> 32)) as u32
}

/// A table of distinct values: finds values by ID and IDs by value. Each value is stored once.
#[derive(Debug, Clone)]
pub struct Interner<T, Id> {
    items: Vec<T>,
    numbers: InternedNumbers,
    most: u32,
    full: bool,
    id: PhantomData<Id>,
}

impl<T, Id> Default for Interner<T, Id> {
    fn default() -> Self {
        Self { items: Vec::new(), numbers: InternedNumbers::default(), most: MOST, full: false, id: PhantomData }
    }
}

impl<T: Hash + Eq, Id: From<u32>> Interner<T, Id> {
    /// Returns the ID of a value, and adds the value if it is new. If IDs ran out, returns the ID of another value.
    pub fn intern(&mut self, item: T) -> Id {
        let hash = hash_of(&item);
        if let Some(known) = self.numbers.find(hash, |number| self.items[number as usize] == item) {
            return Id::from(known);
        }
        Id::from(self.push(hash, item))
    }

    /// Returns the ID of a value, and adds the value if it is new. Only then is it converted to an owned value. If IDs
    /// ran out, returns the ID of another value.
    pub fn number<Q: Hash + Eq + ?Sized>(&mut self, item: &Q) -> Id
    where
        T: Borrow<Q> + for<'q> From<&'q Q>,
    {
        self.get(item).unwrap_or_else(|| self.intern(item.into()))
    }

    /// The ID of a value; `None` if the value hasn't been interned.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, item: &Q) -> Option<Id>
    where
        T: Borrow<Q>,
    {
        let known = self.numbers.find(hash_of(item), |number| self.items[number as usize].borrow() == item);
        known.map(Id::from)
    }

    /// Adds a value that isn't in the table and returns its ID. If IDs ran out, returns 0.
    fn push(&mut self, hash: u32, item: T) -> u32 {
        let Some(number) = u32::try_from(self.items.len()).ok().filter(|number| *number < self.most) else {
            self.full = true;
            return 0;
        };
        self.items.push(item);
        self.numbers.insert(hash, number);
        number
    }
}

impl<T, Id> Interner<T, Id> {
    /// All values, indexed by ID.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Returns all values, indexed by ID.
    pub fn into_items(self) -> Vec<T> {
        self.items
    }

    /// True if IDs ran out, so that some value got another value's ID.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Creates a table that can hold `most` values.
    #[cfg(test)]
    pub(super) fn with_limit(most: u32) -> Self {
        Self { most, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_still_has_what_it_has() {
        let mut table = Interner::<&str, u32>::with_limit(2);
        assert_eq!(["a", "b", "a"].map(|item| table.intern(item)), [0, 1, 0]);
        assert!(!table.is_full());
        assert_eq!(["b", "c", "a"].map(|item| table.intern(item)), [1, 0, 0]);
        assert!(table.is_full());
        assert_eq!(table.items(), ["a", "b"]);
    }
}
