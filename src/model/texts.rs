//! Lists and tables of strings that are stored one after the other, so that a million names need only a handful of
//! allocations.

use super::interner::{InternedNumbers, MOST, hash_of};
use std::marker::PhantomData;

/// A list of byte strings, stored one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextList {
    bytes: Vec<u8>,
    /// The offset at which each string ends.
    ends: Vec<usize>,
}

impl TextList {
    /// Appends a string.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// The string with this index; `None` if there is none.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        Some(&self.bytes[self.start(index)..end])
    }

    /// Copies the strings from this index to the end.
    pub fn since(&self, index: usize) -> Self {
        let start = self.start(index);
        Self { bytes: self.bytes[start..].to_vec(), ends: self.ends[index..].iter().map(|end| end - start).collect() }
    }

    /// All strings, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end)..end])
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if the list has no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |previous| self.ends[previous])
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for TextList {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut list = Self::default();
        texts.into_iter().for_each(|text| list.push(text.as_ref()));
        list
    }
}

/// A table of strings: finds strings by ID and IDs by string. If IDs run out, further strings get the ID of another
/// string, as in an [`Interner`](super::interner::Interner).
#[derive(Debug, Clone)]
pub struct Texts<Id> {
    list: TextList,
    numbers: InternedNumbers,
    most: u32,
    full: bool,
    id: PhantomData<Id>,
}

impl<Id> Default for Texts<Id> {
    fn default() -> Self {
        let (list, numbers) = (TextList::default(), InternedNumbers::default());
        Self { list, numbers, most: MOST, full: false, id: PhantomData }
    }
}

impl<Id: Copy + From<u32> + Into<u32>> Texts<Id> {
    /// Returns the ID of a string, and adds the string if it is new. If IDs ran out, returns the ID of the first
    /// string.
    pub fn intern(&mut self, text: &[u8]) -> Id {
        let hash = hash_of(text);
        if let Some(known) = self.find_hashed(hash, text) {
            return Id::from(known);
        }
        let new = self.add(text);
        if let Some(number) = new {
            self.numbers.insert(hash, number);
        }
        Id::from(new.unwrap_or(0))
    }

    /// Adds a string without looking for an equal one, and without making it findable by [`find`](Self::find). For
    /// strings that hardly ever repeat.
    pub fn push(&mut self, text: &[u8]) -> Id {
        Id::from(self.add(text).unwrap_or(0))
    }

    /// The ID of a string; `None` if it hasn't been interned.
    pub fn find(&self, text: &[u8]) -> Option<Id> {
        self.find_hashed(hash_of(text), text).map(Id::from)
    }

    /// The string with this ID; empty if there is none.
    pub fn get(&self, id: Id) -> &[u8] {
        let number: u32 = id.into();
        self.list.get(number as usize).unwrap_or_default()
    }
}

impl<Id> Texts<Id> {
    fn find_hashed(&self, hash: u32, text: &[u8]) -> Option<u32> {
        self.numbers.find(hash, |number| self.list.get(number as usize) == Some(text))
    }

    /// Appends a string and returns its ID; `None` if IDs ran out.
    fn add(&mut self, text: &[u8]) -> Option<u32> {
        let Some(number) = u32::try_from(self.list.len()).ok().filter(|number| *number < self.most) else {
            self.full = true;
            return None;
        };
        self.list.push(text);
        Some(number)
    }

    /// All strings, in the order of their IDs.
    pub fn list(&self) -> &TextList {
        &self.list
    }

    /// The number of strings. Their IDs are 0 up to, but not including, this number.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True if the table has no strings.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// True if IDs ran out, so that some string got another string's ID.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Creates a table that can hold `most` strings.
    #[cfg(test)]
    pub(super) fn with_limit(most: u32) -> Self {
        Self { most, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_out_as_they_went_in_and_equal_ones_are_kept_once() {
        let mut texts = Texts::<u32>::default();
        let ids = [&b"f"[..], b"", b"g", b"f", b""].map(|text| texts.intern(text));
        assert_eq!(ids.map(|id| texts.get(id)), [&b"f"[..], b"", b"g", b"f", b""]);
        assert_eq!((ids[0], ids[1]), (ids[3], ids[4]));
        assert_eq!(texts.list().iter().collect::<Vec<_>>(), [&b"f"[..], b"", b"g"]);
        assert_eq!(texts.list().bytes, b"fg");
        assert_eq!((texts.find(b"g"), texts.find(b"h")), (Some(ids[2]), None));
    }

    #[test]
    fn a_pushed_row_stands_for_itself() {
        let mut texts = Texts::<u32>::default();
        let pushed = [texts.push(b"f"), texts.push(b"f")];
        assert_ne!(pushed[0], pushed[1]);
        assert_eq!((texts.find(b"f"), texts.get(pushed[1])), (None, &b"f"[..]));
        assert_ne!(texts.intern(b"f"), pushed[1]);
    }

    #[test]
    fn full_ones_still_know_what_they_have() {
        let mut texts = Texts::<u32>::with_limit(2);
        assert_eq!([&b"a"[..], b"b", b"c", b"b", b"c"].map(|text| texts.intern(text)), [0, 1, 0, 1, 0]);
        assert!(texts.is_full());
        assert_eq!(texts.len(), 2);
    }

    #[test]
    fn a_part_of_a_list_is_a_list() {
        let list: TextList = ["f", "", "gh", "i"].into_iter().collect();
        assert_eq!(list.since(2), ["gh", "i"].into_iter().collect());
        assert_eq!((list.since(4).len(), list.get(2), list.get(4)), (0, Some(&b"gh"[..]), None));
    }
}
