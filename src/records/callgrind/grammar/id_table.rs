//! Numbers by ids, possibly millions.

use rustc_hash::FxHashMap;
use std::num::NonZeroU32;

/// The names of ids. They count up from 1, if nobody made them up.
#[derive(Debug, Default)]
pub(in super::super) struct IdTable {
    first: Vec<Option<NonZeroU32>>,
    others: FxHashMap<u32, u32>,
    /// The number of insertions, repeated or not.
    inserted: usize,
}

impl IdTable {
    /// An id stands for a number from now on.
    pub(in super::super) fn insert(&mut self, id: u32, number: u32) {
        let at = id as usize;
        // No more room than twice what is needed, whatever the ids are.
        let is_near = at < self.first.len().max(2 * self.inserted + 64);
        self.inserted += 1;
        let Some(kept) = number.checked_add(1).and_then(NonZeroU32::new).filter(|_| is_near) else {
            self.others.insert(id, number);
            return;
        };
        if at >= self.first.len() {
            self.first.resize(at + 1, None);
        }
        self.first[at] = Some(kept);
        self.others.remove(&id);
    }

    /// The name that it stands for.
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
        /// As a table by hash, and never much larger than what is in it.
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
