//! A map from the IDs in a callgrind file to numbers, for millions of IDs.

use rustc_hash::FxHashMap;
use std::num::NonZeroU32;

/// Maps IDs to numbers. Optimized for IDs that count up from 1, as writers assign them.
#[derive(Debug, Default)]
pub(in super::super) struct IdTable {
    /// The numbers of small IDs, each plus 1. The index is the ID.
    first: Vec<Option<NonZeroU32>>,
    others: FxHashMap<u32, u32>,
    /// How often [`Self::insert`] was called.
    inserted: usize,
}

impl IdTable {
    /// Sets the number of an ID.
    pub(in super::super) fn insert(&mut self, id: u32, number: u32) {
        let index = id as usize;
        // Limits the vector to twice the necessary size, whatever the IDs are.
        let is_near = index < self.first.len().max(2 * self.inserted + 64);
        self.inserted += 1;
        let Some(kept) = number.checked_add(1).and_then(NonZeroU32::new).filter(|_| is_near) else {
            self.others.insert(id, number);
            return;
        };
        if index >= self.first.len() {
            self.first.resize(index + 1, None);
        }
        self.first[index] = Some(kept);
        self.others.remove(&id);
    }

    /// The number of an ID, if it was set.
    pub(in super::super) fn get(&self, id: u32) -> Option<u32> {
        let first = self.first.get(id as usize).copied().flatten().map(|kept| kept.get() - 1);
        first.or_else(|| self.others.get(&id).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares the table with a hash map. It must never be much larger than its content.
        #[test]
        fn ids_stand_for_what_they_were_last_defined_as(
            defined in prop::collection::vec((prop_oneof![0u32..200, any::<u32>()], 0u32..1000), 0..300),
        ) {
            let (mut table, mut model) = (IdTable::default(), FxHashMap::default());
            for (id, number) in defined {
                table.insert(id, number);
                model.insert(id, number);
                prop_assert!(table.first.len() <= 2 * table.inserted + 64);
            }
            for id in (0..300).chain(model.keys().copied()) {
                prop_assert_eq!(table.get(id), model.get(&id).copied());
            }
        }
    }
}
