//! A map from address ranges to values, in which later ranges overwrite earlier ones.
//!
//! ```text
//! insert a    ├──────── a ────────┤
//! insert b          ├─ b ─┤               reports the middle of a as overwritten
//! entries     ├─ a ─┼─ b ─┼── a ──┤       `skipped` of the second a is its distance from the start of the whole a
//! ```
//!
//! The entries are stored in sorted blocks. A change needs two short binary searches and moves few entries. Overwritten
//! entries are adjacent, whereas a tree would be searched again for each of them.

use std::ops::Range;

/// The number of entries above which a block is split. It is small in tests, so that few entries already fill several
/// blocks.
const BLOCK: usize = if cfg!(test) { 4 } else { 64 };

/// Ranges that don't overlap, each with a value.
#[derive(Debug, Clone)]
pub struct RangeMap<V> {
    /// Entries by address. No block is empty, except if it is the only one.
    blocks: Vec<Vec<Entry<V>>>,
    /// The start address of each block. They are stored separately so that a search accesses little memory.
    starts: Vec<u64>,
}

/// An address range with its value: an entry of the map, or a part of one that was removed ([`RangeMap::clear`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<V> {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// The distance of this entry's start from the start of the range as it was inserted.
    pub skipped: u64,
    /// The value.
    pub value: V,
}

impl<V: Copy> Entry<V> {
    /// The part of this entry in a range, which must be inside the entry.
    fn part(&self, range: Range<u64>) -> Self {
        let Range { start, end } = range;
        Self { start, end, skipped: self.skipped + (start - self.start), value: self.value }
    }
}

/// Where an entry is stored.
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
    /// Inserts a range, and calls `overwritten` with each entry, or part of an entry, that it replaces. Does nothing
    /// for an empty range.
    pub fn insert(&mut self, range: Range<u64>, value: V, overwritten: impl FnMut(Entry<V>)) {
        self.clear(range.clone(), overwritten);
        self.insert_into_gap(range, value);
    }

    /// Inserts a range where the map has no entries, because [`clear`](Self::clear) has removed them.
    pub fn insert_into_gap(&mut self, range: Range<u64>, value: V) {
        if !range.is_empty() {
            let Range { start, end } = range;
            let block = self.block_for(start);
            let index =
                self.blocks.get(block).map_or(0, |entries| entries.partition_point(|entry| entry.start < start));
            self.insert_entry(EntryPlace { block, index }, Entry { start, end, skipped: 0, value });
        }
    }

    /// Removes everything in a range, and calls `removed` with each entry, or part of an entry, that was in it. Parts
    /// outside the range stay.
    pub fn clear(&mut self, range: Range<u64>, mut removed: impl FnMut(Entry<V>)) {
        if range.is_empty() {
            return;
        }
        let mut place = self.first_ending_after(range.start);
        while let Some(entry) = self.entry(place)
            && entry.start < range.end
        {
            removed(entry.part(entry.start.max(range.start)..entry.end.min(range.end)));
            // Whether a part of the entry stays before the range, and whether one stays after it.
            let (stays_before, stays_after) = (entry.start < range.start, range.end < entry.end);
            match (stays_before, stays_after) {
                // After the removal, the next entry is at `place`.
                (false, false) => self.remove_entry(place),
                (true, false) => {
                    self.replace_entry(place, entry.part(entry.start..range.start));
                    place.index += 1;
                }
                // The range ends within this entry, so nothing after it is in the range.
                (false, true) => return self.replace_entry(place, entry.part(range.end..entry.end)),
                (true, true) => {
                    self.replace_entry(place, entry.part(entry.start..range.start));
                    let next_place = EntryPlace { index: place.index + 1, ..place };
                    return self.insert_entry(next_place, entry.part(range.end..entry.end));
                }
            }
            // The next entry may be in the next block.
            place = self.skip_block_end(place);
        }
    }

    /// Removes the entries that overlap a range and whose value `is_evicted` accepts, and calls `each` with every entry
    /// that it removes. Entries are removed as a whole, also their parts outside the range.
    pub fn evict(&mut self, range: Range<u64>, is_evicted: impl Fn(&V) -> bool, mut each: impl FnMut(Entry<V>)) {
        if range.is_empty() {
            return;
        }
        let mut place = self.first_ending_after(range.start);
        while let Some(entry) = self.entry(place)
            && entry.start < range.end
        {
            if is_evicted(&entry.value) {
                self.remove_entry(place);
                each(entry);
            } else {
                place.index += 1;
            }
            place = self.skip_block_end(place);
        }
    }

    /// The entry that contains an address.
    pub fn get(&self, addr: u64) -> Option<Entry<V>> {
        self.entry(self.first_ending_after(addr)).filter(|entry| entry.start <= addr)
    }

    /// The entries that overlap a range, by address.
    pub fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = Entry<V>> + '_ {
        let EntryPlace { block, index } = self.first_ending_after(range.start);
        let entries = self.blocks[block.min(self.blocks.len())..].iter().flatten().skip(index).copied();
        entries.take_while(move |entry| entry.start < range.end && !range.is_empty())
    }

    /// True if the map has no entries.
    pub fn is_empty(&self) -> bool {
        self.blocks.first().is_none_or(Vec::is_empty)
    }

    /// All entries, by address.
    pub fn iter(&self) -> impl Iterator<Item = Entry<V>> + '_ {
        self.blocks.iter().flatten().copied()
    }

    /// Removes and returns all entries, by address. Keeps one block's memory for new entries.
    pub fn drain(&mut self) -> impl Iterator<Item = Entry<V>> + '_ {
        self.starts.truncate(1);
        let rest = self.blocks.split_off(self.blocks.len().min(1));
        let first = self.blocks.first_mut().map(|entries| entries.drain(..));
        first.into_iter().flatten().chain(rest.into_iter().flatten())
    }

    /// The index of the block that contains an entry with this start address, or into which such an entry would be
    /// inserted.
    fn block_for(&self, start: u64) -> usize {
        self.starts.partition_point(|first| *first <= start).saturating_sub(1)
    }

    /// The place of the first entry that ends after an address: of the entry that contains the address, or else of the
    /// next one. If there is no such entry, a place after all entries.
    fn first_ending_after(&self, addr: u64) -> EntryPlace {
        let block = self.block_for(addr);
        let index = self.blocks.get(block).map_or(0, |entries| entries.partition_point(|entry| entry.end <= addr));
        self.skip_block_end(EntryPlace { block, index })
    }

    /// Turns a place after the last entry of a block into the place of the first entry in the next block.
    fn skip_block_end(&self, place: EntryPlace) -> EntryPlace {
        match self.blocks.get(place.block) {
            Some(entries) if place.index >= entries.len() => EntryPlace { block: place.block + 1, index: 0 },
            _ => place,
        }
    }

    fn entry(&self, place: EntryPlace) -> Option<Entry<V>> {
        self.blocks.get(place.block)?.get(place.index).copied()
    }

    fn replace_entry(&mut self, EntryPlace { block, index }: EntryPlace, entry: Entry<V>) {
        self.blocks[block][index] = entry;
        if index == 0 {
            self.starts[block] = entry.start;
        }
    }

    /// Removes an entry, and its block if that becomes empty (unless it is the only one).
    fn remove_entry(&mut self, EntryPlace { block, index }: EntryPlace) {
        let entries = &mut self.blocks[block];
        entries.remove(index);
        if let Some(first) = entries.first() {
            self.starts[block] = first.start;
        } else if self.blocks.len() > 1 {
            self.blocks.remove(block);
            self.starts.remove(block);
        }
    }

    /// Inserts an entry, and splits its block if that becomes too long.
    fn insert_entry(&mut self, EntryPlace { block, index }: EntryPlace, entry: Entry<V>) {
        let Some(entries) = self.blocks.get_mut(block) else {
            // The map has no blocks yet.
            self.blocks.push(vec![entry]);
            self.starts.push(entry.start);
            return;
        };
        entries.insert(index, entry);
        self.starts[block] = entries[0].start;
        if entries.len() > BLOCK {
            let second_half = entries.split_off(BLOCK / 2);
            self.starts.insert(block + 1, second_half[0].start);
            self.blocks.insert(block + 1, second_half);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop_oneof, proptest};

    /// Tests use addresses below this.
    const END: usize = 40;

    /// The naive map to compare with: for each address, its value, and its distance from the start of the inserted
    /// range.
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

    /// Identifies the inserted range that a cell belongs to, by its value and where the range would start.
    fn origin(cell: Option<(u16, u64)>, at: usize) -> Option<(u16, i64)> {
        cell.map(|(value, skipped)| (value, at as i64 - skipped as i64))
    }

    /// The cells that the naive map removes. An eviction removes all adjacent cells of the same origin.
    fn removed_cells(cells: &Cells, change: &Change) -> Cells {
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
                // Makes every value unique. Otherwise the naive map couldn't tell a range from an equal one that it
                // replaces.
                if let Change::Insert(_, value) = &mut change {
                    *value |= number as u16;
                }
                let expected = removed_cells(&cells, &change);
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
