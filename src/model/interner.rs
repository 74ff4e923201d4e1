//! Distinct things, numbered by first appearance.
//!
//! Numbers have 32 bits: a profile holds them by the million. An input can hold more distinct things, if the machine
//! holds them; then no number is given twice, whoever asks gets one that exists, and the table is known to be full.
//! Readers need not look at every step: who takes over what was read asks once whether it is whole ([`full`]).

use crate::error::Error;
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// So many distinct things have a number each; the one number that is left stands for none where one is needed.
pub(super) const MOST: u32 = u32::MAX;

/// The error for a table that was full.
pub fn full(what: &str) -> Error {
    Error::new(format!(
        "more than {MOST} different {what}, which is all that can be numbered: read less at once (--time, --event, --pid)"
    ))
}

/// Things by number, and numbers by thing.
#[derive(Debug, Clone)]
pub struct Interner<T, Id> {
    items: Vec<T>,
    ids: FxHashMap<T, Id>,
    most: u32,
    full: bool,
}

impl<T, Id> Default for Interner<T, Id> {
    fn default() -> Self {
        Self { items: Vec::new(), ids: FxHashMap::default(), most: MOST, full: false }
    }
}

impl<T: Hash + Eq + Clone, Id: Copy + From<u32>> Interner<T, Id> {
    /// The number of a thing; that of the first one if there is none left.
    pub fn intern(&mut self, item: T) -> Id {
        let next = u32::try_from(self.items.len()).ok().filter(|&next| next < self.most);
        let Some(next) = next else {
            let known = self.ids.get(&item).copied();
            self.full |= known.is_none();
            return known.unwrap_or(Id::from(0));
        };
        *self.ids.entry(item).or_insert_with_key(|item| {
            self.items.push(item.clone());
            Id::from(next)
        })
    }

    /// The number of a thing that is known.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, item: &Q) -> Option<Id>
    where
        T: std::borrow::Borrow<Q>,
    {
        self.ids.get(item).copied()
    }
}

impl<T, Id> Interner<T, Id> {
    /// All; the position is the number.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Whether a thing got no number of its own.
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
    fn a_full_table_still_knows_what_it_has() {
        let mut table = Interner::<&str, u32>::of_most(2);
        assert_eq!(["a", "b", "a"].map(|item| table.intern(item)), [0, 1, 0]);
        assert!(!table.is_full());
        assert_eq!(["b", "c", "a"].map(|item| table.intern(item)), [1, 0, 0]);
        assert!(table.is_full());
        assert_eq!(table.items(), ["a", "b"]);
    }
}
