//! The first pass over a file: what must be known before its first line is rewritten.

use crate::bytes::digits::decimal;
use crate::formats::callgrind::grammar::{
    Chunk, Columns, IdSpace, Keyword, NameField, NameRef, Statement, UNKNOWN, event_names, is_valgrind, name_field,
    raw_name, statements,
};
use rustc_hash::FxHashSet;
use std::sync::Arc;

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

/// What the first pass found out about a whole file.
#[derive(Debug, Default)]
pub struct FileIndex<'a> {
    /// Facts from the headers.
    pub header: FileHeader,
    /// The settings in effect at the start of each chunk.
    starts: Vec<ChunkStart<'a>>,
    /// The largest ID in each namespace; the index is an [`IdSpace`].
    pub(super) max_ids: [u32; 3],
    /// Addresses that callgrind used as names of functions in unknown objects.
    unknown_functions: FxHashSet<u64>,
    /// True after the first `positions:` line.
    saw_positions: bool,
    /// The settings in effect after the last chunk.
    end: ChunkStart<'a>,
}

/// Settings from all earlier chunks of a file on which the meaning of a chunk's lines depends.
#[derive(Debug, Clone, Default)]
pub(super) struct ChunkStart<'a> {
    /// The columns before the costs, as the last `positions:` line announces.
    pub(super) columns: Columns,
    /// The object that the last `ob=` line names; `None` if there is no such line before the chunk.
    pub(super) object: Option<NameRef<'a>>,
    pub(super) unknown_objects: UnknownObjects,
}

/// The IDs that stand for the unknown object, `???`. Chunks share the set, because it hardly ever changes.
#[derive(Debug, Clone, Default)]
pub(super) struct UnknownObjects(Arc<FxHashSet<u32>>);

impl UnknownObjects {
    /// Notes that an object's ID is defined: `is_unknown` tells whether as `???`, or as another name.
    pub(super) fn define(&mut self, id: u32, is_unknown: bool) {
        if self.0.contains(&id) != is_unknown {
            let ids = Arc::make_mut(&mut self.0);
            if is_unknown {
                ids.insert(id)
            } else {
                ids.remove(&id)
            };
        }
    }

    /// True if the object's name is `???`.
    pub(super) fn contain(&self, object: Option<NameRef<'_>>) -> bool {
        match object {
            Some(NameRef::Id(id)) => self.0.contains(&id),
            Some(NameRef::Name(name)) => name == UNKNOWN,
            None => false,
        }
    }
}

/// What the first pass found out about a chunk.
#[derive(Debug, Default)]
pub struct ChunkFacts<'a> {
    /// Word and value of each header line that [`FileIndex`] needs.
    headers: Vec<(&'a [u8], &'a [u8])>,
    /// Definitions of objects, and functions that are named by an address, in the order of the chunk.
    definitions: Vec<Definition<'a>>,
    /// The largest ID in each namespace; the index is an [`IdSpace`].
    max_ids: [u32; 3],
    /// The object that the chunk's last `ob=` names; `None` if the chunk has no `ob=`.
    object: Option<NameRef<'a>>,
}

#[derive(Debug)]
enum Definition<'a> {
    /// The definition of an object's ID.
    Object { id: u32, is_unknown: bool },
    /// A function whose name is an address. `object` is the object in effect at its line; `None` if that is still the
    /// object in effect at the start of the chunk.
    RawFunction { addr: u64, object: Option<NameRef<'a>> },
}

/// Collects the facts about a chunk that matter for the whole file: headers, the current object at the chunk's end, the
/// highest IDs, and the definitions of objects and of functions without a name. Needs nothing from other chunks, so
/// chunks can be scanned in parallel.
pub fn scan_chunk<'a>(chunk: &Chunk<'a>) -> ChunkFacts<'a> {
    let mut facts = ChunkFacts::default();
    // The object of the next callee, from the `cob=` since the last call.
    let mut callee_object = None;
    for (_, statement) in statements(chunk.bytes) {
        match statement {
            Statement::Header(word, value) => {
                if matches!(word, b"creator" | b"cmd" | b"pid" | b"events" | b"part" | b"positions") {
                    facts.headers.push((word, value));
                }
            }
            Statement::Spec(Keyword::Calls, _) => callee_object = None,
            Statement::Spec(keyword, value) => {
                let Some(space) = keyword.space() else { continue };
                let field = name_field(value);
                match keyword {
                    Keyword::Ob => facts.object = Some(field.into()),
                    Keyword::Cob => callee_object = Some(field.into()),
                    _ => {}
                }
                // A callee without a `cob=` line is in its caller's object.
                let object = if keyword == Keyword::Cfn { callee_object.or(facts.object) } else { facts.object };
                facts.add_name(space, field, object);
            }
            Statement::Cost(_) | Statement::Other => {}
        }
    }
    facts
}

impl<'a> ChunkFacts<'a> {
    /// Collects the facts about a name: the highest ID, which ID is the unknown object, and unnamed functions.
    fn add_name(&mut self, space: IdSpace, field: NameField<'a>, object: Option<NameRef<'a>>) {
        if let NameField::Define(id, _) | NameField::Refer(id) = field {
            let max = &mut self.max_ids[space as usize];
            *max = id.max(*max);
        }
        match (space, field) {
            (IdSpace::Object, NameField::Define(id, name)) => {
                self.definitions.push(Definition::Object { id, is_unknown: name == UNKNOWN });
            }
            (IdSpace::Function, NameField::Define(_, name) | NameField::Plain(name)) => {
                if let Some((addr, _)) = raw_name(name) {
                    self.definitions.push(Definition::RawFunction { addr, object });
                }
            }
            _ => {}
        }
    }
}

impl<'a> FileIndex<'a> {
    /// Adds the facts of a chunk. Chunks must come in order.
    pub fn append(&mut self, facts: ChunkFacts<'a>) {
        // A chunk starts with what is in effect at the end of the previous one.
        self.starts.push(self.end.clone());
        for (word, value) in facts.headers {
            self.apply_header(word, value);
        }
        for definition in facts.definitions {
            match definition {
                Definition::Object { id, is_unknown } => self.end.unknown_objects.define(id, is_unknown),
                Definition::RawFunction { addr, object } => {
                    if self.end.unknown_objects.contain(object.or(self.end.object)) {
                        self.unknown_functions.insert(addr);
                    }
                }
            }
        }
        for (max, seen) in self.max_ids.iter_mut().zip(facts.max_ids) {
            *max = seen.max(*max);
        }
        self.end.object = facts.object.or(self.end.object);
    }

    /// Keeps what a header line says. Of headers that occur in each part of the file, the first counts.
    fn apply_header(&mut self, word: &[u8], value: &[u8]) {
        let header = &mut self.header;
        match word {
            b"creator" if header.creator.is_empty() => header.creator = value.to_vec(),
            b"cmd" if header.command.is_empty() => header.command = value.to_vec(),
            b"pid" if header.pid.is_none() => header.pid = decimal(value).and_then(|pid| i32::try_from(pid).ok()),
            b"events" if header.events.is_empty() => header.events = event_names(value),
            b"part" => header.parts += 1,
            b"positions" => {
                let columns = Columns::parse(value);
                let has_instr = columns.is_some_and(|columns| columns.instr.is_some());
                // True if this `positions:` line and all earlier ones list instruction addresses.
                header.has_instr = has_instr && (header.has_instr || !self.saw_positions);
                self.saw_positions = true;
                self.end.columns = columns.unwrap_or(self.end.columns);
            }
            _ => {}
        }
    }

    /// The settings in effect at the start of a chunk.
    pub(super) fn chunk_start(&self, chunk: usize) -> ChunkStart<'a> {
        self.starts.get(chunk).cloned().unwrap_or_default()
    }

    /// True if callgrind named a function of an unknown object by this address. An address among the callers in a name
    /// may be relative to some object. It is certainly absolute only if this returns true.
    pub(super) fn is_unknown_function(&self, addr: u64) -> bool {
        self.unknown_functions.contains(&addr)
    }

    /// The number of unnamed functions in unknown objects.
    pub fn unknown_functions(&self) -> usize {
        self.unknown_functions.len()
    }

    /// True if valgrind wrote the file.
    pub(super) fn is_by_valgrind(&self) -> bool {
        is_valgrind(&self.header.creator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::callgrind::grammar::chunks;

    fn index(text: &[u8], size: usize) -> FileIndex<'_> {
        let mut index = FileIndex::default();
        chunks(text, size).for_each(|chunk| index.append(scan_chunk(&chunk)));
        index
    }

    const TEXT: &[u8] = b"version: 1\ncreator: callgrind-3.19.0\npid: 77\npositions: instr line\nevents: Ir Dr\n\n\
        ob=(1) lib.so\nfl=(1) a.c\nfn=(1) f\n0x10 1 5\ncob=(2) ???\ncfi=(2) ???\ncfn=(2) 0x0000000000001000\ncalls=1 0x1000 0\n* * 9\n\
        fn=(3) 0x0000000000002000\n0x20 1 5\n\n\
        ob=(2)\nfl=(2)\nfn=(2)\n0x1000 0 5\nfi=(1)\n+1 3 1\nfn=(4) 0x0000000000003000'0x0000000000001000\n0x3000 0 1\n";

    #[test]
    fn facts_do_not_depend_on_the_cuts() {
        for size in [1, 40, 90, 1000] {
            let index = index(TEXT, size);
            assert_eq!(index.header.pid, Some(77));
            assert!(index.header.has_instr && index.is_by_valgrind());
            assert_eq!(index.header.events, [b"Ir", b"Dr"]);
            let mut unknown: Vec<u64> = index.unknown_functions.iter().copied().collect();
            unknown.sort_unstable();
            assert_eq!(unknown, [0x1000, 0x3000], "0x2000 is relative to lib.so (size {size})");
            assert_eq!(index.max_ids, [2, 2, 4]);
            let chunks = chunks(TEXT, size).count();
            assert_eq!(index.chunk_start(0).columns, Columns::default());
            assert!((1..chunks).all(|chunk| index.chunk_start(chunk).columns == Columns::INSTR_LINE));
        }
    }

    #[test]
    fn a_later_part_may_give_an_object_s_id_another_meaning() {
        let text = b"ob=(1) ???\nfn=(1) 0x0000000000001000\n1 1\nob=(1) real.so\nfn=(1) 0x0000000000002000\n2 2\n";
        for size in [1, 1000] {
            let index = index(text, size);
            assert!(index.is_unknown_function(0x1000) && !index.is_unknown_function(0x2000));
        }
    }
}
