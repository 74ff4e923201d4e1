//! What ids stand for, from some offset of the file on: for millions of them, and nearly all with one meaning.

use rustc_hash::FxHashMap;

/// The values of ids. They must be pushed in the order of the file.
#[derive(Debug)]
pub(super) struct IdHistory<T> {
    /// Places in `values`.
    places: FxHashMap<u32, u32>,
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
        Self { places: FxHashMap::default(), values: Vec::new(), lists: Vec::new() }
    }
}

impl<T: Copy> IdHistory<T> {
    fn values(&self, id: u32) -> Option<IdValues<T>> {
        self.values.get(*self.places.get(&id)? as usize).copied()
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
        let place = *self.places.entry(id).or_insert(next);
        let Some(values) = self.values.get_mut(place as usize) else {
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

/// TextStore one behind the other: millions of short ones take little more than their bytes.
#[derive(Debug, Default)]
pub(super) struct TextStore {
    /// Each behind its length.
    bytes: Vec<u8>,
}

/// Which text; 0 is the empty one.
pub(super) type TextOffset = usize;

impl TextStore {
    /// Keeps a text.
    pub(super) fn add(&mut self, text: &[u8]) -> TextOffset {
        let Some(len) = u32::try_from(text.len()).ok().filter(|len| *len > 0) else { return 0 };
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(&0u32.to_le_bytes());
        }
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&len.to_le_bytes());
        self.bytes.extend_from_slice(text);
        at
    }

    /// The text itself.
    pub(super) fn get(&self, at: TextOffset) -> &[u8] {
        let behind = self.bytes.get(at..).and_then(|bytes| bytes.split_first_chunk::<4>());
        behind.and_then(|(len, rest)| rest.get(..u32::from_le_bytes(*len) as usize)).unwrap_or_default()
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

    #[test]
    fn texts_come_back() {
        let mut texts = TextStore::default();
        let handles = [&b"first"[..], b"", b"0x0000000000001000'2"].map(|text| texts.add(text));
        assert_eq!(handles.map(|at| texts.get(at)), [&b"first"[..], b"", b"0x0000000000001000'2"]);
        assert_eq!(texts.get(1000), b"");
    }
}
