//! Finds a dump's loads by their code_index, which a MOVE names.

use rustc_hash::FxHashMap;

/// The loads so far. Runtimes count them, so that the list is in order and nothing else is kept; where it is not, a
/// map is made at the first move.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    /// code_index and place in the list of events.
    list: Vec<(u64, u32)>,
    unordered: bool,
    map: Option<FxHashMap<u64, u32>>,
}

impl Indexes {
    /// Notes a load and its place.
    pub(super) fn push(&mut self, index: u64, place: usize) {
        let place = place as u32;
        if let Some(map) = &mut self.map {
            map.insert(index, place);
            return;
        }
        self.unordered |= self.list.last().is_some_and(|(last, _)| *last > index);
        self.list.push((index, place));
    }

    /// The place of the last load with an index.
    pub(super) fn last(&mut self, index: u64) -> Option<usize> {
        let place = if self.map.is_none() && !self.unordered {
            self.counted(index).or_else(|| self.listed(index))
        } else {
            let map = self.map.get_or_insert_with(|| std::mem::take(&mut self.list).into_iter().collect());
            map.get(&index).copied()
        };
        place.map(|place| place as usize)
    }

    /// The place if every number was used once.
    fn counted(&self, index: u64) -> Option<u32> {
        let first = self.list.first()?.0;
        let at = usize::try_from(index.checked_sub(first)?).ok()?;
        let (known, place) = *self.list.get(at)?;
        let last = self.list.get(at + 1).is_none_or(|(next, _)| *next != index);
        (known == index && last).then_some(place)
    }

    fn listed(&self, index: u64) -> Option<u32> {
        let behind = self.list.partition_point(|(known, _)| *known <= index);
        self.list[..behind].last().filter(|(known, _)| *known == index).map(|(_, place)| *place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_load_of_an_index_is_found_whatever_the_order() {
        for order in [[1, 2, 2, 5, 7, 7], [7, 1, 2, 7, 2, 5], [1, 2, 5, 7, 2, 1]] {
            let mut indexes = Indexes::default();
            for (place, index) in order.into_iter().enumerate() {
                indexes.push(index, place);
                for asked in 0..9 {
                    let expected = order[..=place].iter().rposition(|known| *known == asked);
                    assert_eq!(indexes.last(asked), expected, "{order:?} up to {place}, index {asked}");
                }
            }
        }
    }
}
