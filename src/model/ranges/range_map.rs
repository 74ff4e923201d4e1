//! A map from ranges to values in which later ranges overwrite earlier ones.
//!
//! ```text
//! insert a    ├──────── a ────────┤
//! insert b          ├─ b ─┤               removed: the middle of a
//! entries     ├─ a ─┼─ b ─┼── a ──┤       the second a has skipped as much as lies before it in the whole one
//! ```
//!
//! The entries are in blocks: a change finds its place by two short searches and moves few others, and what a range
//! overwrites stands side by side, where a tree would be walked anew for each.

use std::ops::Range;

/// A block of more entries becomes two. In tests even few entries must be several blocks.
const BLOCK: usize = if cfg!(test) { 4 } else { 64 };

/// Ranges that do not overlap, each with a value.
#[derive(Debug, Clone)]
pub struct RangeMap<V> {
    /// By first address; none is empty but the only one.
    blocks: Vec<Vec<Entry<V>>>,
    /// The first address of each block, apart from the rest, since only these are searched through.
    starts: Vec<u64>,
}

/// A range of the map, or a part of one that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<V> {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// The offset of this one's start from the start of the range that was inserted.
    pub skipped: u64,
    /// The value.
    pub value: V,
}

/// The place of an entry.
#[derive(Debug, Clone, Copy)]
struct EntryPlace {
    block: usize,
    index: usize,
}

impl<V> Default for RangeMap<V> {
    fn default() -> Self {
        Self { blocks: Vec::new(), starts: Vec::new() }
    }
}

impl<V: Copy> RangeMap<V> {
    /// Puts a range on top; `overwritten` gets what it removes. An empty range does nothing.
    pub fn insert(&mut self, range: Range<u64>, value: V, overwritten: impl FnMut(Entry<V>)) {
        self.clear(range.clone(), overwritten);
        self.insert_into_gap(range, value);
    }

    /// Puts a range where nothing is: what was there must have been [cleared](Self::clear).
    pub fn insert_into_gap(&mut self, range: Range<u64>, value: V) {
        if !range.is_empty() {
            let Range { start, end } = range;
            let block = self.block_of(start);
            let index =
                self.blocks.get(block).map_or(0, |entries| entries.partition_point(|entry| entry.start < start));
            self.insert_at(EntryPlace { block, index }, Entry { start, end, skipped: 0, value });
        }
    }

    /// Removes whatever is in a range, and shows it to `removed`. The parts on either side stay.
    pub fn clear(&mut self, range: Range<u64>, mut removed: impl FnMut(Entry<V>)) {
        if range.is_empty() {
            return;
        }
        let mut place = self.first_ending_behind(range.start);
        while let Some(entry) = self.entry(place).filter(|entry| entry.start < range.end) {
            let (low, high) = (entry.start.max(range.start), entry.end.min(range.end));
            let before = (entry.start < low).then_some(Entry { end: low, ..entry });
            let behind = Entry { start: high, skipped: entry.skipped + (high - entry.start), ..entry };
            let behind = (high < entry.end).then_some(behind);
            removed(Entry { start: low, end: high, skipped: entry.skipped + (low - entry.start), ..entry });
            match (before, behind) {
                (None, None) => self.remove_at(place),
                (Some(rest), None) | (None, Some(rest)) => self.replace_at(place, rest),
                (Some(before), Some(behind)) => {
                    self.replace_at(place, before);
                    self.insert_at(EntryPlace { index: place.index + 1, ..place }, behind);
                }
            }
            if behind.is_some() {
                return;
            }
            if before.is_some() {
                place.index += 1;
            }
            place = self.settled(place);
        }
    }

    /// Removes the entries that overlap a range, as far as `wanted` allows, with the parts that extend beyond it.
    pub fn evict(&mut self, range: Range<u64>, wanted: impl Fn(&V) -> bool, mut evicted: impl FnMut(Entry<V>)) {
        if range.is_empty() {
            return;
        }
        let mut place = self.first_ending_behind(range.start);
        while let Some(entry) = self.entry(place).filter(|entry| entry.start < range.end) {
            if wanted(&entry.value) {
                self.remove_at(place);
                evicted(entry);
            } else {
                place.index += 1;
            }
            place = self.settled(place);
        }
    }

    /// The entry that an address is in.
    pub fn get(&self, addr: u64) -> Option<Entry<V>> {
        self.entry(self.first_ending_behind(addr)).filter(|entry| entry.start <= addr)
    }

    /// The entries that overlap a range, by address.
    pub fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = Entry<V>> + '_ {
        let EntryPlace { block, index } = self.first_ending_behind(range.start);
        let from_there = self.blocks[block.min(self.blocks.len())..].iter().flatten().skip(index).copied();
        from_there.take_while(move |entry| entry.start < range.end && !range.is_empty())
    }

    /// True if it is empty.
    pub fn is_empty(&self) -> bool {
        self.blocks.first().is_none_or(Vec::is_empty)
    }

    /// All entries, by address.
    pub fn iter(&self) -> impl Iterator<Item = Entry<V>> + '_ {
        self.blocks.iter().flatten().copied()
    }

    /// Takes all entries out, by address. The memory of the first stays for those to come.
    pub fn drain(&mut self) -> impl Iterator<Item = Entry<V>> + '_ {
        self.starts.truncate(1);
        let rest = self.blocks.split_off(self.blocks.len().min(1));
        let first = self.blocks.first_mut().map(|entries| entries.drain(..));
        first.into_iter().flatten().chain(rest.into_iter().flatten())
    }

    /// The block in which an entry that starts at an address is, or would be.
    fn block_of(&self, start: u64) -> usize {
        self.starts.partition_point(|first| *first <= start).saturating_sub(1)
    }

    /// The place of the first entry that ends behind an address: the one that holds it, or the next.
    fn first_ending_behind(&self, addr: u64) -> EntryPlace {
        let block = self.block_of(addr);
        let index = self.blocks.get(block).map_or(0, |entries| entries.partition_point(|entry| entry.end <= addr));
        self.settled(EntryPlace { block, index })
    }

    /// The same place; behind the last entry of a block, the first of the next.
    fn settled(&self, place: EntryPlace) -> EntryPlace {
        match self.blocks.get(place.block) {
            Some(entries) if place.index >= entries.len() => EntryPlace { block: place.block + 1, index: 0 },
            _ => place,
        }
    }

    fn entry(&self, place: EntryPlace) -> Option<Entry<V>> {
        self.blocks.get(place.block)?.get(place.index).copied()
    }

    fn replace_at(&mut self, EntryPlace { block, index }: EntryPlace, entry: Entry<V>) {
        self.blocks[block][index] = entry;
        if index == 0 {
            self.starts[block] = entry.start;
        }
    }

    fn remove_at(&mut self, EntryPlace { block, index }: EntryPlace) {
        let entries = &mut self.blocks[block];
        entries.remove(index);
        if let Some(first) = entries.first() {
            self.starts[block] = first.start;
        } else if self.blocks.len() > 1 {
            self.blocks.remove(block);
            self.starts.remove(block);
        }
    }

    fn insert_at(&mut self, EntryPlace { block, index }: EntryPlace, entry: Entry<V>) {
        let Some(entries) = self.blocks.get_mut(block) else {
            self.blocks.push(vec![entry]);
            self.starts.push(entry.start);
            return;
        };
        entries.insert(index, entry);
        self.starts[block] = entries[0].start;
        if entries.len() > BLOCK {
            let behind = entries.split_off(BLOCK / 2);
            self.starts.insert(block + 1, behind[0].start);
            self.blocks.insert(block + 1, behind);
        }
    }
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

    /// Each range that a cell's value came with is recognized by where it would start.
    fn origin(cell: Option<(u16, u64)>, at: usize) -> Option<(u16, i64)> {
        cell.map(|(value, skipped)| (value, at as i64 - skipped as i64))
    }

    /// The parts that the naive map removes: for an eviction, neighbors of one origin as a whole.
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
                // No two are alike: where one lies upon an equal one, painted addresses cannot distinguish them.
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
