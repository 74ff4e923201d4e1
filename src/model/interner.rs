//! Distinct things, numbered by first appearance.
//!
//! Numbers have 32 bits: a profile holds them by the million. An input can hold more distinct things, if the machine
//! holds them; then no number is given twice, whoever asks gets one that exists, and the table is known to be full.
//! Readers need not look at every step: who takes over what was read asks once whether it is whole ([`full`]).

use crate::error::Error;
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

/// Numbers of things as types of their own, so that those of one table are not taken for another's.
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
            /// As an index into the table of its kind.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

pub(crate) use id;

/// The number of distinct things that have a number each; the one number that is left stands for none where one is
/// needed.
pub(super) const MOST: u32 = u32::MAX;

/// The error for a table that was full.
pub fn full(what: &str) -> Error {
    Error::new(format!(
        "more than {MOST} different {what}, which is all that can be numbered: read less at once (--time, --event, --pid)"
    ))
}

/// Numbers of things, found by their hash; the things are elsewhere.
///
/// The table holds a part of each hash beside the number, so that it grows, and most things that are not the one looked
/// for are distinguished, without a look at the things.
#[derive(Debug, Clone, Default)]
pub struct InternedNumbers(HashTable<Numbered>);

#[derive(Debug, Clone, Copy)]
struct Numbered {
    hash: u32,
    number: u32,
}

impl InternedNumbers {
    /// The number of which `is_it` holds.
    pub fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let found = self.0.find(whole(hash), |known| known.hash == hash && is_it(known.number));
        found.map(|known| known.number)
    }

    /// Adds a number; that of an equal thing must not be there.
    pub fn insert(&mut self, hash: u32, number: u32) {
        self.0.insert_unique(whole(hash), Numbered { hash, number }, |known| whole(known.hash));
    }
}

/// A hash that a part of one stands for: a table takes the place from the low bits, and compares the highest.
fn whole(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

/// The part of a hash that [`InternedNumbers`] are found by.
pub fn hash_of<Q: Hash + ?Sized>(item: &Q) -> u32 {
    let hash = FxBuildHasher.hash_one(item);
    (hash ^ (hash >> 32)) as u32
}

/// Things by number, and numbers by thing. Each thing is kept once.
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
    /// The number of a thing; that of the first thing if no number is left.
    pub fn intern(&mut self, item: T) -> Id {
        let hash = hash_of(&item);
        let known = self.numbers.find(hash, |number| self.items[number as usize] == item);
        Id::from(known.unwrap_or_else(|| self.push(hash, item)))
    }

    /// The number of a thing, which is only made of this if it is new.
    pub fn number<Q: Hash + Eq + ?Sized>(&mut self, item: &Q) -> Id
    where
        T: Borrow<Q> + for<'q> From<&'q Q>,
    {
        self.get(item).unwrap_or_else(|| self.intern(item.into()))
    }

    /// The number of a thing that is known.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, item: &Q) -> Option<Id>
    where
        T: Borrow<Q>,
    {
        let known = self.numbers.find(hash_of(item), |number| self.items[number as usize].borrow() == item);
        known.map(Id::from)
    }

    fn push(&mut self, hash: u32, item: T) -> u32 {
        let next = u32::try_from(self.items.len()).ok().filter(|&next| next < self.most);
        let Some(number) = next else {
            self.full = true;
            return 0;
        };
        self.items.push(item);
        self.numbers.insert(hash, number);
        number
    }
}

impl<T, Id> Interner<T, Id> {
    /// All; the position is the number.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The same, when no more come.
    pub fn into_items(self) -> Vec<T> {
        self.items
    }

    /// True if a thing got no number of its own.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// For tests: one that is full sooner.
    #[cfg(test)]
    pub(super) fn of_most(most: u32) -> Self {
        Self { most, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_still_has_what_it_has() {
        let mut table = Interner::<&str, u32>::of_most(2);
        assert_eq!(["a", "b", "a"].map(|item| table.intern(item)), [0, 1, 0]);
        assert!(!table.is_full());
        assert_eq!(["b", "c", "a"].map(|item| table.intern(item)), [1, 0, 0]);
        assert!(table.is_full());
        assert_eq!(table.items(), ["a", "b"]);
    }
}
