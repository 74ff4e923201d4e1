//! A map from ranges to values in which later ranges overwrite earlier ones.
//!
//! ```text
//! insert a    ├──────── a ────────┤
//! insert b          ├─ b ─┤               removed: the middle of a
//! entries     ├─ a ─┼─ b ─┼── a ──┤       the second a has skipped as much as lies before it in the whole one
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges that do not overlap, each with a value.
#[derive(Debug, Clone)]
pub struct RangeMap<V> {
    /// By first address.
    entries: BTreeMap<u64, RestOfRange<V>>,
}

/// What is left of a range that was inserted.
#[derive(Debug, Clone, Copy)]
struct RestOfRange<V> {
    /// One past the last address.
    end: u64,
    /// How much of the range lay before it.
    skipped: u64,
    value: V,
}

/// A range of the map, or a part of one that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<V> {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// How far behind the start of the range that was inserted this one starts.
    pub skipped: u64,
    /// The value.
    pub value: V,
}

impl<V> Default for RangeMap<V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

impl<V: Copy> RangeMap<V> {
    /// Puts a range on top; `overwritten` is shown what it removes. An empty range does nothing.
    pub fn insert(&mut self, range: Range<u64>, value: V, overwritten: impl FnMut(Entry<V>)) {
        self.clear(range.clone(), overwritten);
        self.insert_into_gap(range, value);
    }

    /// Puts a range where nothing is: what was there must have been [cleared](Self::clear).
    pub fn insert_into_gap(&mut self, range: Range<u64>, value: V) {
        if !range.is_empty() {
            self.entries.insert(range.start, RestOfRange { end: range.end, skipped: 0, value });
        }
    }

    /// Removes whatever is in a range, and shows it to `removed`. What stands out on either side stays.
    pub fn clear(&mut self, range: Range<u64>, mut removed: impl FnMut(Entry<V>)) {
        if range.is_empty() {
            return;
        }
        let mut next = self.first_overlapping(&range);
        while let Some(start) = next {
            self.clear_entry(start, &range, &mut removed);
            next = self.first_starting_in(&range);
        }
    }

    fn clear_entry(&mut self, start: u64, range: &Range<u64>, removed: &mut impl FnMut(Entry<V>)) {
        let Some(rest) = self.entries.remove(&start) else { return };
        let (low, high) = (start.max(range.start), rest.end.min(range.end));
        if start < low {
            self.entries.insert(start, RestOfRange { end: low, ..rest });
        }
        if high < rest.end {
            self.entries.insert(high, RestOfRange { skipped: rest.skipped + (high - start), ..rest });
        }
        removed(Entry { start: low, end: high, skipped: rest.skipped + (low - start), value: rest.value });
    }

    /// Removes the entries that overlap a range, as far as `wanted` says so, with all that stands out of it.
    pub fn evict(&mut self, range: Range<u64>, wanted: impl Fn(&V) -> bool, mut evicted: impl FnMut(Entry<V>)) {
        let those: Vec<u64> =
            self.overlapping(range).filter(|entry| wanted(&entry.value)).map(|entry| entry.start).collect();
        for start in those {
            if let Some(rest) = self.entries.remove(&start) {
                evicted(entry((&start, &rest)));
            }
        }
    }

    /// The entry that an address is in.
    pub fn get(&self, addr: u64) -> Option<Entry<V>> {
        self.entries.range(..=addr).next_back().filter(|(_, rest)| addr < rest.end).map(entry)
    }

    /// The entries that overlap a range, by address.
    pub fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = Entry<V>> + '_ {
        let first = self.first_overlapping(&range).filter(|_| !range.is_empty());
        first.into_iter().flat_map(move |first| self.entries.range(first..range.end).map(entry))
    }

    /// All entries, by address.
    pub fn iter(&self) -> impl Iterator<Item = Entry<V>> + '_ {
        self.entries.iter().map(entry)
    }

    /// Takes all entries out, by address.
    pub fn drain(&mut self) -> impl Iterator<Item = Entry<V>> + use<V> {
        std::mem::take(&mut self.entries).into_iter().map(|(start, rest)| entry((&start, &rest)))
    }

    /// Where the first entry starts that overlaps a range.
    fn first_overlapping(&self, range: &Range<u64>) -> Option<u64> {
        let before = self.entries.range(..range.start).next_back().filter(|(_, rest)| rest.end > range.start);
        before.map(|(start, _)| *start).or_else(|| self.first_starting_in(range))
    }

    fn first_starting_in(&self, range: &Range<u64>) -> Option<u64> {
        self.entries.range(range.clone()).next().map(|(start, _)| *start)
    }
}

fn entry<V: Copy>((&start, &RestOfRange { end, skipped, value }): (&u64, &RestOfRange<V>)) -> Entry<V> {
    Entry { start, end, skipped, value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop_oneof, proptest};

    /// The addresses of the tests are below this.
    const END: usize = 40;

    /// By address: the value there, and how far into its range the address is.
    type Cells = [Option<(u16, u64)>; END];

    #[derive(Debug, Clone)]
    enum Change {
        Insert(Range<u64>, u16),
        Clear(Range<u64>),
        Evict(Range<u64>, u16),
    }

    fn range() -> impl Strategy<Value = Range<u64>> {
        (0..END as u64, 0..12u64).prop_map(|(start, len)| start..(start + len).min(END as u64))
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            4 => (range(), any::<u8>()).prop_map(|(range, value)| Change::Insert(range, u16::from(value) << 8)),
            1 => range().prop_map(Change::Clear),
            1 => (range(), any::<u8>()).prop_map(|(range, least)| Change::Evict(range, u16::from(least) << 8)),
        ]
    }

    fn paint(cells: &mut Cells, entry: Entry<u16>) {
        for at in entry.start..entry.end {
            assert_eq!(cells[at as usize], None, "two entries at {at}");
            cells[at as usize] = Some((entry.value, entry.skipped + (at - entry.start)));
        }
    }

    /// Each range that a cell's value came with is told by where it would start.
    fn origin(cell: Option<(u16, u64)>, at: usize) -> Option<(u16, i64)> {
        cell.map(|(value, skipped)| (value, at as i64 - skipped as i64))
    }

    /// What the naive map removes: for an eviction, neighbours of one origin as a whole.
    fn removed(cells: &Cells, change: &Change) -> Cells {
        let inside = |range: &Range<u64>, at: usize| range.contains(&(at as u64));
        std::array::from_fn(|at| {
            cells[at].filter(|(value, _)| match change {
                Change::Insert(range, _) | Change::Clear(range) => inside(range, at),
                Change::Evict(range, least) => {
                    let same = |other: usize| origin(cells[other], other) == origin(cells[at], at);
                    let low = (0..=at).rev().take_while(|&other| same(other)).last().unwrap_or(at);
                    let high = (at..END).take_while(|&other| same(other)).last().unwrap_or(at);
                    value >= least && (low..=high).any(|other| inside(range, other))
                }
            })
        })
    }

    proptest! {
        #[test]
        fn it_does_what_painting_each_address_does(changes in proptest::collection::vec(change(), 0..40)) {
            let (mut map, mut cells) = (RangeMap::default(), [None; END]);
            for (number, mut change) in changes.into_iter().enumerate() {
                // No two are alike: where one lies upon an equal one, painted addresses cannot tell them apart.
                if let Change::Insert(_, value) = &mut change {
                    *value |= number as u16;
                }
                let expected = removed(&cells, &change);
                let mut seen = [None; END];
                let note = |entry| paint(&mut seen, entry);
                match change.clone() {
                    Change::Insert(range, value) => map.insert(range, value, note),
                    Change::Clear(range) => map.clear(range, note),
                    Change::Evict(range, least) => map.evict(range, |value| *value >= least, note),
                }
                assert_eq!(seen, expected);
                (0..END).filter(|at| expected[*at].is_some()).for_each(|at| cells[at] = None);
                if let Change::Insert(range, value) = change {
                    range.clone().for_each(|at| cells[at as usize] = Some((value, at - range.start)));
                }
                let mut now = [None; END];
                map.iter().for_each(|entry| paint(&mut now, entry));
                assert_eq!(now, cells);
                assert!(map.iter().is_sorted_by_key(|entry| entry.start));
            }
            for (at, cell) in cells.into_iter().enumerate() {
                let found = map.get(at as u64).map(|entry| (entry.value, entry.skipped + (at as u64 - entry.start)));
                assert_eq!(found, cell);
            }
            let all: Vec<Entry<u16>> = map.iter().collect();
            let over = |entry: &&Entry<u16>| entry.start < 30 && 10 < entry.end;
            let expected: Vec<Entry<u16>> = all.iter().filter(over).copied().collect();
            assert_eq!(map.overlapping(10..30).collect::<Vec<_>>(), expected);
            assert_eq!(map.drain().collect::<Vec<_>>(), all);
            assert_eq!(map.iter().count(), 0);
        }
    }
}
