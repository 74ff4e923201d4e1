//! The names of ids, from some offset of the file on: for millions of them, and nearly all with one meaning.

use crate::records::callgrind::grammar::IdTable;

/// The values of ids. They must be pushed in the order of the file.
#[derive(Debug)]
pub(super) struct IdHistory<T> {
    /// Places in `values`.
    places: IdTable,
    values: Vec<IdValues<T>>,
    lists: Vec<Vec<(u64, T)>>,
}

#[derive(Debug, Clone, Copy)]
enum IdValues<T> {
    /// From an offset on.
    One(u64, T),
    /// A place in `lists`: a list for each id would take several times the memory.
    Many(u32),
}

impl<T> Default for IdHistory<T> {
    fn default() -> Self {
        Self { places: IdTable::default(), values: Vec::new(), lists: Vec::new() }
    }
}

impl<T: Copy> IdHistory<T> {
    fn values(&self, id: u32) -> Option<IdValues<T>> {
        self.values.get(self.places.get(id)? as usize).copied()
    }

    /// The value at an offset.
    pub(super) fn at(&self, id: u32, offset: u64) -> Option<T> {
        match self.values(id)? {
            IdValues::One(from, value) => (from <= offset).then_some(value),
            IdValues::Many(list) => {
                let list = self.lists.get(list as usize)?;
                let after = list.partition_point(|(from, _)| *from <= offset);
                Some(list.get(after.checked_sub(1)?)?.1)
            }
        }
    }

    /// The value that was pushed last.
    pub(super) fn last(&self, id: u32) -> Option<T> {
        self.at(id, u64::MAX)
    }

    /// A new value.
    pub(super) fn push(&mut self, id: u32, offset: u64, value: T) {
        // Fewer than 2^32: each place is another id's.
        let next = self.values.len() as u32;
        let Some(values) = self.places.get(id).and_then(|place| self.values.get_mut(place as usize)) else {
            self.places.insert(id, next);
            return self.values.push(IdValues::One(offset, value));
        };
        match *values {
            IdValues::One(from, first) => {
                *values = IdValues::Many(self.lists.len() as u32);
                self.lists.push(vec![(from, first), (offset, value)]);
            }
            IdValues::Many(list) => {
                if let Some(list) = self.lists.get_mut(list as usize) {
                    list.push((offset, value));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_hold_from_their_offsets_on() {
        let mut history = IdHistory::default();
        for (id, offset, value) in [(7, 10, 'a'), (9, 15, 'x'), (7, 20, 'b'), (7, 30, 'c')] {
            history.push(id, offset, value);
        }
        let at = |id, offsets: &[u64]| offsets.iter().map(|offset| history.at(id, *offset)).collect::<Vec<_>>();
        assert_eq!(at(7, &[9, 10, 19, 20, 30]), [None, Some('a'), Some('a'), Some('b'), Some('c')]);
        assert_eq!(at(9, &[14, 15]), [None, Some('x')]);
        assert_eq!((history.last(7), history.last(9), history.last(8)), (Some('c'), Some('x'), None));
    }
}
