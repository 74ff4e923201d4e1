//! First pass over a chunk: which IDs it defines, and which statements are in effect after it.

use crate::records::callgrind::grammar::{
    BlockContext, Chunk, IdSpace, Keyword, NameField, NameRef, Statement, UNKNOWN, has_raw_caller, name_field,
    raw_name, same_name, statements,
};
use rustc_hash::FxHashSet;

/// What the first pass found out about a chunk, to be collected in file order by [`super::index::FileIndex::append`].
#[derive(Debug)]
pub struct ChunkFacts<'a> {
    pub(super) definitions: Vec<Definition<'a>>,
    pub(super) headers: Vec<HeaderLine<'a>>,
    /// Addresses that serve as names of functions without an ID, and the objects of these functions.
    pub(super) raw_heads: Vec<(u64, DefiningObject<'a>)>,
    pub(super) max_ids: [u32; 3],
    /// The statements of the chunk that are in effect at its end.
    pub(super) changes: BlockContext<'a>,
    /// True if the chunk has a `positions:` line, which declares the columns.
    pub(super) changed_columns: bool,
}

/// Keyword and value of a header line, `word: value`.
pub(super) type HeaderLine<'a> = (&'a [u8], &'a [u8]);

/// The definition of an ID, at a file offset.
#[derive(Debug)]
pub(super) struct Definition<'a> {
    pub(super) offset: u64,
    pub(super) id: u32,
    pub(super) what: Defined<'a>,
}

/// What an ID is defined as.
#[derive(Debug)]
pub(super) enum Defined<'a> {
    Object {
        unknown: bool,
    },
    /// `name` is empty if it contains no address. `head` is the address if the function is named by one.
    Function {
        name: &'a [u8],
        head: Option<u64>,
        object: DefiningObject<'a>,
    },
}

impl Defined<'_> {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Function { name, object, .. }, Self::Function { name: other, object: other_object, .. }) => {
                same_name(name, other) && object == other_object
            }
            _ => false,
        }
    }
}

/// The object in effect where a function is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum DefiningObject<'a> {
    /// An `ob=` or `cob=` in the same chunk specifies it.
    Stated(NameRef<'a>),
    /// It is the object in effect at the start of the chunk.
    Inherited,
}

impl<'a> DefiningObject<'a> {
    /// The object, given the one in effect at the start of the chunk.
    pub(super) fn resolve(self, inherited: Option<NameRef<'a>>) -> Option<NameRef<'a>> {
        match self {
            Self::Stated(object) => Some(object),
            Self::Inherited => inherited,
        }
    }
}

/// Scans a chunk, independently of all other chunks.
pub fn scan_chunk<'a>(chunk: &Chunk<'a>) -> ChunkFacts<'a> {
    let mut scan = ChunkScan::default();
    for (offset, _, line) in statements(chunk.bytes) {
        scan.read_statement(chunk.offset + offset as u64, line);
    }
    let ChunkScan { definitions, headers, raw_heads, max_ids, context, changed_columns, .. } = scan;
    ChunkFacts { definitions, headers, raw_heads, max_ids, changes: context, changed_columns }
}

#[derive(Debug, Default)]
struct ChunkScan<'a> {
    definitions: Vec<Definition<'a>>,
    headers: Vec<HeaderLine<'a>>,
    raw_heads: Vec<(u64, DefiningObject<'a>)>,
    max_ids: [u32; 3],
    context: BlockContext<'a>,
    changed_columns: bool,
    cob: Option<NameRef<'a>>,
    /// The (address, object) pairs that are already in `raw_heads`; used to enter each only once.
    seen: FxHashSet<(u64, Option<NameRef<'a>>)>,
}

impl<'a> ChunkScan<'a> {
    fn read_statement(&mut self, offset: u64, line: Statement<'a>) {
        match line {
            Statement::Spec(key, value) => self.read_spec(offset, key, value),
            Statement::Header(word, value) => self.read_header(word, value),
            Statement::Cost(_) | Statement::Other => {}
        }
        self.context.apply(line);
    }

    fn read_header(&mut self, word: &'a [u8], value: &'a [u8]) {
        if matches!(word, b"creator" | b"cmd" | b"pid" | b"events" | b"part" | b"positions") {
            self.headers.push((word, value));
            self.changed_columns |= word == b"positions";
        }
    }

    fn read_spec(&mut self, offset: u64, key: Keyword, value: &'a [u8]) {
        let Some(space) = key.space() else {
            if key == Keyword::Calls {
                self.cob = None;
            }
            return;
        };
        let field = name_field(value);
        if key == Keyword::Cob {
            self.cob = Some(field.into());
        }
        if let NameField::Define(id, _) | NameField::Refer(id) = field {
            let max = &mut self.max_ids[space as usize];
            *max = id.max(*max);
        }
        match (field, space) {
            (NameField::Define(id, name), IdSpace::Object) => {
                let what = Defined::Object { unknown: name == UNKNOWN };
                self.definitions.push(Definition { offset, id, what });
            }
            (NameField::Define(id, name), IdSpace::Function) => {
                let head = raw_name(name).map(|(addr, _)| addr);
                let name = if head.is_some() || has_raw_caller(name) { name } else { &[] };
                let what = Defined::Function { name, head, object: self.defining_object(key) };
                // Some writers define a function again where its block follows the call.
                if !self.definitions.last().is_some_and(|last| last.id == id && last.what.is_same(&what)) {
                    self.definitions.push(Definition { offset, id, what });
                }
            }
            (NameField::Plain(name), IdSpace::Function) => {
                if let Some((addr, _)) = raw_name(name)
                    && self.seen.insert((addr, self.stated_object(key)))
                {
                    self.raw_heads.push((addr, self.defining_object(key)));
                }
            }
            _ => {}
        }
    }

    /// The object in effect for a function after this keyword, as in `fn=` or `cfn=`. `None` if this chunk doesn't
    /// specify it.
    fn stated_object(&self, key: Keyword) -> Option<NameRef<'a>> {
        if key == Keyword::Cfn { self.cob.or(self.context.ob) } else { self.context.ob }
    }

    fn defining_object(&self, key: Keyword) -> DefiningObject<'a> {
        self.stated_object(key).map_or(DefiningObject::Inherited, DefiningObject::Stated)
    }
}
