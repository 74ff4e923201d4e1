//! The result of the first pass over a file: what IDs stand for, and the statements in effect at the start of each
//! chunk.
//!
//! With it, any chunk can be rewritten without the chunks before it. Of the function names, only those that contain an
//! address are kept, so memory doesn't grow with the others.

use super::scan::{ChunkFacts, Defined, Definition};
use crate::bytes::digits::decimal;
use crate::records::callgrind::grammar::{BlockContext, Columns, IdTable, NameRef, UNKNOWN, event_names, same_name};

/// Facts from the headers of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHeader {
    /// Value of the first `creator:` header.
    pub creator: Vec<u8>,
    /// Value of the first `cmd:` header: the program with its arguments.
    pub command: Vec<u8>,
    /// Value of the first `pid:` header.
    pub pid: Option<i32>,
    /// Event names in the first `events:` header.
    pub events: Vec<Vec<u8>>,
    /// True if every part has instruction addresses.
    pub has_instr: bool,
    /// Number of `part:` lines.
    pub parts: u64,
}

/// What the first pass found out about a whole file. The second pass needs it to rewrite any chunk.
#[derive(Debug, Default)]
pub struct FileIndex<'a> {
    /// Facts from the headers.
    pub header: FileHeader,
    contexts: Vec<BlockContext<'a>>,
    unknown_objects: IdHistory<bool>,
    /// Function names that contain an address, by ID. An empty name means that the ID was redefined with a name without
    /// one.
    raw_functions: IdHistory<&'a [u8]>,
    /// Addresses that callgrind used as names of functions in unknown objects.
    raw_heads: Vec<u64>,
    /// This many elements at the start of `raw_heads` are sorted and unique.
    sorted_heads: usize,
    pub(super) max_ids: [u32; 3],
    saw_positions: bool,
    context: BlockContext<'a>,
}

impl<'a> FileIndex<'a> {
    /// Adds the facts of a chunk. Chunks must come in order. Call [`FileIndex::finish`] after the last.
    pub fn append(&mut self, facts: ChunkFacts<'a>) {
        let inherited = self.context.ob;
        self.contexts.push(self.context);
        for (word, value) in &facts.headers {
            self.apply_header(word, value);
        }
        for Definition { offset, id, what } in facts.definitions {
            match what {
                Defined::Object { unknown } => {
                    if self.unknown_objects.last(id).unwrap_or(false) != unknown {
                        self.unknown_objects.push(id, offset, unknown);
                    }
                }
                Defined::Function { name, head, object } => {
                    if let Some(addr) = head
                        && self.is_unknown_object(object.resolve(inherited), offset)
                    {
                        self.raw_heads.push(addr);
                    }
                    if !same_name(self.raw_functions.last(id).unwrap_or_default(), name) {
                        self.raw_functions.push(id, offset, name);
                    }
                }
            }
        }
        for (addr, object) in facts.raw_heads {
            if self.is_unknown_object(object.resolve(inherited), u64::MAX) {
                self.raw_heads.push(addr);
            }
        }
        // In a file without IDs, each chunk repeats the names of its functions; remove the duplicates now and then.
        if self.raw_heads.len() > 2 * self.sorted_heads + (1 << 16) {
            self.sort_heads();
        }
        for (max, seen) in self.max_ids.iter_mut().zip(facts.max_ids) {
            *max = seen.max(*max);
        }
        self.apply_changes(facts.changes, facts.changed_columns);
    }

    /// Completes the index after the last chunk.
    pub fn finish(mut self) -> Self {
        self.sort_heads();
        self
    }

    fn sort_heads(&mut self) {
        // The list consists largely of sorted runs, which a stable sort merges in one pass.
        self.raw_heads.sort();
        self.raw_heads.dedup();
        self.sorted_heads = self.raw_heads.len();
    }

    /// Updates the statements in effect to those at the end of a chunk.
    fn apply_changes(&mut self, changes: BlockContext<'a>, changed_columns: bool) {
        if changes.fl.is_some() || changes.open_file.is_some() {
            self.context.open_file = changes.open_file;
        }
        self.context.ob = changes.ob.or(self.context.ob);
        self.context.fl = changes.fl.or(self.context.fl);
        if changed_columns {
            self.context.columns = changes.columns;
        }
    }

    fn apply_header(&mut self, word: &[u8], value: &[u8]) {
        let header = &mut self.header;
        match word {
            b"creator" if header.creator.is_empty() => header.creator = value.to_vec(),
            b"cmd" if header.command.is_empty() => header.command = value.to_vec(),
            b"pid" if header.pid.is_none() => header.pid = decimal(value).and_then(|pid| i32::try_from(pid).ok()),
            b"events" if header.events.is_empty() => header.events = event_names(value),
            b"part" => header.parts += 1,
            b"positions" => {
                let has_instr = Columns::parse(value).is_some_and(|columns| columns.instr.is_some());
                header.has_instr = has_instr && (header.has_instr || !self.saw_positions);
                self.saw_positions = true;
            }
            _ => {}
        }
    }

    /// The statements in effect at the start of a chunk.
    pub(super) fn chunk_context(&self, chunk: usize) -> BlockContext<'a> {
        self.contexts.get(chunk).copied().unwrap_or_default()
    }

    /// True if the object's name is `???`. IDs can be redefined, so the name is looked up as of the file offset
    /// `offset`.
    pub(super) fn is_unknown_object(&self, object: Option<NameRef<'_>>, offset: u64) -> bool {
        match object {
            Some(NameRef::Id(id)) => self.unknown_objects.get(id, offset).unwrap_or(false),
            Some(NameRef::Name(name)) => name == UNKNOWN,
            None => false,
        }
    }

    /// The name of a function ID as of the file offset `offset`; `None` if the name contains no address.
    pub(super) fn raw_function(&self, id: u32, offset: u64) -> Option<&'a [u8]> {
        self.raw_functions.get(id, offset).filter(|name| !name.is_empty())
    }

    /// True if a function in an unknown object starts at `addr`. Only then is an address among the callers in a name
    /// certainly absolute.
    pub(super) fn is_raw_head(&self, addr: u64) -> bool {
        self.raw_heads.binary_search(&addr).is_ok()
    }

    /// Start addresses of all unnamed functions in unknown objects, sorted.
    pub fn unknown_functions(&self) -> &[u64] {
        &self.raw_heads
    }

    /// True if valgrind wrote the file: relative positions then refer to cost lines only.
    pub(super) fn is_by_valgrind(&self) -> bool {
        self.header.creator.starts_with(b"callgrind-")
    }
}

/// The values of IDs, each valid from some file offset on. Optimized for millions of IDs, nearly all of which have one
/// value. Values must be pushed in file order.
#[derive(Debug)]
struct IdHistory<T> {
    /// For each ID, an index into `values`.
    indices: IdTable,
    values: Vec<IdValues<T>>,
    lists: Vec<Vec<(u64, T)>>,
}

#[derive(Debug, Clone, Copy)]
enum IdValues<T> {
    /// A single value, valid from this file offset on.
    One(u64, T),
    /// Index into `lists`. A `Vec` in each element would take several times the memory.
    Many(u32),
}

impl<T> Default for IdHistory<T> {
    fn default() -> Self {
        Self { indices: IdTable::default(), values: Vec::new(), lists: Vec::new() }
    }
}

impl<T: Copy> IdHistory<T> {
    /// The value of an ID as of a file offset; `None` if it has none yet.
    fn get(&self, id: u32, offset: u64) -> Option<T> {
        match *self.values.get(self.indices.get(id)? as usize)? {
            IdValues::One(start, value) => (start <= offset).then_some(value),
            IdValues::Many(list) => {
                let list = self.lists.get(list as usize)?;
                let after = list.partition_point(|(start, _)| *start <= offset);
                Some(list.get(after.checked_sub(1)?)?.1)
            }
        }
    }

    /// The last value of an ID in the file so far; `None` if it has none.
    fn last(&self, id: u32) -> Option<T> {
        self.get(id, u64::MAX)
    }

    /// Sets the value that an ID has from a file offset on.
    fn push(&mut self, id: u32, offset: u64, value: T) {
        // There are fewer than 2^32 values, because each belongs to another ID.
        let next = self.values.len() as u32;
        let Some(values) = self.indices.get(id).and_then(|index| self.values.get_mut(index as usize)) else {
            self.indices.insert(id, next);
            return self.values.push(IdValues::One(offset, value));
        };
        match *values {
            IdValues::One(start, first) => {
                *values = IdValues::Many(self.lists.len() as u32);
                self.lists.push(vec![(start, first), (offset, value)]);
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
    use crate::records::callgrind::grammar::chunks;
    use crate::records::callgrind::rewrite::scan::scan_chunk;

    fn index(text: &[u8], size: usize) -> FileIndex<'_> {
        let mut index = FileIndex::default();
        chunks(text, size).for_each(|chunk| index.append(scan_chunk(&chunk)));
        index.finish()
    }

    const TEXT: &[u8] = b"version: 1\ncreator: callgrind-3.19.0\npid: 77\npositions: instr line\nevents: Ir Dr\n\n\
        ob=(1) lib.so\nfl=(1) a.c\nfn=(1) f\n0x10 1 5\ncob=(2) ???\ncfi=(2) ???\ncfn=(2) 0x0000000000001000\ncalls=1 0x1000 0\n* * 9\n\
        fn=(3) 0x0000000000002000\n0x20 1 5\n\n\
        ob=(2)\nfl=(2)\nfn=(2)\n0x1000 0 5\nfi=(1)\n+1 3 1\nfn=(4) 0x0000000000003000'0x0000000000001000\n0x3000 0 1\n";

    #[test]
    fn ids_and_states_do_not_depend_on_the_cuts() {
        for size in [1, 40, 90, 1000] {
            let index = index(TEXT, size);
            assert_eq!(index.header.pid, Some(77));
            assert!(index.header.has_instr && index.is_by_valgrind());
            assert_eq!(index.header.events, [b"Ir", b"Dr"]);
            assert_eq!(index.unknown_functions(), [0x1000, 0x3000], "0x2000 is relative to lib.so (size {size})");
            assert_eq!(index.raw_function(2, u64::MAX), Some(&b"0x0000000000001000"[..]));
            assert_eq!(index.raw_function(2, 10), None, "not yet defined there");
            assert_eq!(index.raw_function(1, u64::MAX), None);
            assert_eq!(index.max_ids, [2, 2, 4]);
            assert!(index.is_unknown_object(Some(NameRef::Id(2)), u64::MAX));
        }
        let index = index(TEXT, 1);
        let last = index.chunk_context(index.contexts.len() - 1);
        assert_eq!(
            (last.ob, last.fl, last.open_file),
            (Some(NameRef::Id(2)), Some(NameRef::Id(2)), Some(NameRef::Id(1)))
        );
    }

    #[test]
    fn a_later_part_may_give_an_id_another_meaning() {
        let text = b"ob=(1) ???\nfn=(1) 0x0000000000001000\n1 1\nob=(1) real.so\nfn=(1) name\n2 2\n";
        let index = index(text, 1000);
        let later = text.len() as u64;
        assert!(
            index.is_unknown_object(Some(NameRef::Id(1)), 20) && !index.is_unknown_object(Some(NameRef::Id(1)), later)
        );
        assert!(index.raw_function(1, 20).is_some() && index.raw_function(1, later).is_none());
    }

    #[test]
    fn values_hold_from_their_offsets_on() {
        let mut history = IdHistory::default();
        for (id, offset, value) in [(7, 10, 'a'), (9, 15, 'x'), (7, 20, 'b'), (7, 30, 'c')] {
            history.push(id, offset, value);
        }
        assert_eq!(
            [9, 10, 19, 20, 30].map(|offset| history.get(7, offset)),
            [None, Some('a'), Some('a'), Some('b'), Some('c')]
        );
        assert_eq!([14, 15].map(|offset| history.get(9, offset)), [None, Some('x')]);
        assert_eq!((history.last(7), history.last(9), history.last(8)), (Some('c'), Some('x'), None));
    }
}
