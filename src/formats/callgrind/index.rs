//! First pass: what the ids mean, and how things stand at the start of each part of the file.
//!
//! With this in hand, any part can be rewritten without the parts before it. Of all the names only those matter that
//! callgrind made out of an address, so memory does not grow with the others.

use super::chunks::Chunk;
use super::history::{History, TextId, Texts};
use super::line::{
    Key, Line, NameField, Space, UNKNOWN, decimal, has_raw_part, line, name_field, raw_name, statements,
};
use super::positions::Columns;
use rustc_hash::FxHashSet;

/// A name as a file refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Ref<'a> {
    /// By id.
    Id(u32),
    /// In full.
    Name(&'a [u8]),
}

/// The same, kept beyond the part of the file that says it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum OwnedRef {
    Id(u32),
    Name(Box<[u8]>),
}

impl<'a> Ref<'a> {
    pub(super) fn of(field: NameField<'a>) -> Self {
        match field {
            NameField::Define(id, _) | NameField::Refer(id) => Self::Id(id),
            NameField::Plain(name) => Self::Name(name),
        }
    }

    fn to_owned(self) -> OwnedRef {
        match self {
            Self::Id(id) => OwnedRef::Id(id),
            Self::Name(name) => OwnedRef::Name(name.into()),
        }
    }
}

impl OwnedRef {
    fn as_ref(&self) -> Ref<'_> {
        match self {
            Self::Id(id) => Ref::Id(*id),
            Self::Name(name) => Ref::Name(name),
        }
    }
}

/// What later lines inherit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct State<'a> {
    /// The last `ob=`.
    pub(super) ob: Option<Ref<'a>>,
    /// The last `fl=`.
    pub(super) fl: Option<Ref<'a>>,
    /// An `fi=` or `fe=` after it: where some readers believe the next function to be.
    pub(super) open_file: Option<Ref<'a>>,
    /// The columns in front of the costs.
    pub(super) columns: Columns,
}

impl<'a> State<'a> {
    /// Follows a statement.
    pub(super) fn apply(&mut self, line: Line<'a>) {
        match line {
            Line::Spec(Key::Ob, value) => self.ob = Some(Ref::of(name_field(value))),
            Line::Spec(Key::Fl, value) => {
                self.fl = Some(Ref::of(name_field(value)));
                self.open_file = None;
            }
            Line::Spec(Key::Fi | Key::Fe, value) => self.open_file = Some(Ref::of(name_field(value))),
            Line::Header(b"positions", value) => self.columns = Columns::parse(value).unwrap_or_default(),
            _ => {}
        }
    }

    fn to_owned(self) -> OwnedState {
        let Self { ob, fl, open_file, columns } = self;
        OwnedState {
            ob: ob.map(Ref::to_owned),
            fl: fl.map(Ref::to_owned),
            open_file: open_file.map(Ref::to_owned),
            columns,
        }
    }
}

/// A [`State`] kept beyond its part of the file.
#[derive(Debug, Clone, Default)]
struct OwnedState {
    ob: Option<OwnedRef>,
    fl: Option<OwnedRef>,
    open_file: Option<OwnedRef>,
    columns: Columns,
}

/// What the header says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// `creator:`
    pub creator: Vec<u8>,
    /// `pid:`, the first one.
    pub pid: Option<i32>,
    /// `events:`, the first one.
    pub events: Vec<Vec<u8>>,
    /// Whether every part has instruction addresses.
    pub has_instr: bool,
    /// How many `part:` lines there are.
    pub parts: u64,
}

/// Everything that the second pass must know beforehand.
#[derive(Debug, Default)]
pub struct Index {
    /// What the headers say.
    pub about: About,
    states: Vec<OwnedState>,
    unknown_objects: History<bool>,
    /// Names with a raw part; empty where an id has got another name.
    raw_functions: History<TextId>,
    texts: Texts,
    /// Heads of raw names seen where the object is unknown, sorted.
    raw_heads: Vec<u64>,
    max_ids: [u32; 3],
    saw_positions: bool,
    state: OwnedState,
}

/// What one part of the file defines, to be put in order by [`Index::append`].
#[derive(Debug)]
pub struct Facts {
    definitions: Vec<Definition>,
    headers: Vec<Header>,
    raw_heads: Vec<(u64, Object)>,
    max_ids: [u32; 3],
    changes: OwnedState,
    changed_columns: bool,
}

/// `word: value`
type Header = (Box<[u8]>, Box<[u8]>);

#[derive(Debug)]
struct Definition {
    offset: u64,
    id: u32,
    what: Defined,
}

#[derive(Debug)]
enum Defined {
    Object {
        unknown: bool,
    },
    /// Empty if it has no raw part.
    Function {
        name: Box<[u8]>,
        object: Object,
    },
}

/// The object of a function where it is named.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Object {
    /// Said in this part.
    Said(OwnedRef),
    /// The one at the start of the part.
    Inherited,
}

/// Looks through one part. Independent of all others.
pub fn facts(chunk: &Chunk) -> Facts {
    let mut scan = Scan::default();
    for (at, text) in statements(&chunk.bytes) {
        scan.statement(chunk.offset + at as u64, line(text));
    }
    let Scan { definitions, headers, raw_heads, max_ids, state, changed_columns, .. } = scan;
    Facts { definitions, headers, raw_heads, max_ids, changes: state.to_owned(), changed_columns }
}

#[derive(Debug, Default)]
struct Scan<'a> {
    definitions: Vec<Definition>,
    headers: Vec<Header>,
    raw_heads: Vec<(u64, Object)>,
    max_ids: [u32; 3],
    state: State<'a>,
    changed_columns: bool,
    cob: Option<Ref<'a>>,
    /// Raw names without ids, told once a part.
    told: FxHashSet<(u64, Option<Ref<'a>>)>,
}

impl<'a> Scan<'a> {
    fn statement(&mut self, offset: u64, line: Line<'a>) {
        match line {
            Line::Spec(key, value) => self.spec(offset, key, value),
            Line::Header(word, value) => self.header(word, value),
            Line::Cost(_) | Line::Other => {}
        }
        self.state.apply(line);
    }

    fn header(&mut self, word: &[u8], value: &[u8]) {
        if matches!(word, b"creator" | b"pid" | b"events" | b"part" | b"positions") {
            self.headers.push((word.into(), value.into()));
            self.changed_columns |= word == b"positions";
        }
    }

    fn spec(&mut self, offset: u64, key: Key, value: &'a [u8]) {
        let Some(space) = key.space() else {
            if key == Key::Calls {
                self.cob = None;
            }
            return;
        };
        let field = name_field(value);
        if key == Key::Cob {
            self.cob = Some(Ref::of(field));
        }
        if let NameField::Define(id, _) | NameField::Refer(id) = field {
            let max = &mut self.max_ids[space as usize];
            *max = id.max(*max);
        }
        match (field, space) {
            (NameField::Define(id, name), Space::Object) => {
                let what = Defined::Object { unknown: name == UNKNOWN };
                self.definitions.push(Definition { offset, id, what });
            }
            (NameField::Define(id, name), Space::Function) => {
                let name = if has_raw_part(name) { name.into() } else { Box::default() };
                let what = Defined::Function { name, object: self.object_of(key) };
                self.definitions.push(Definition { offset, id, what });
            }
            (NameField::Plain(name), Space::Function) => {
                if let Some((addr, _)) = raw_name(name)
                    && self.told.insert((addr, self.said_object(key)))
                {
                    self.raw_heads.push((addr, self.object_of(key)));
                }
            }
            _ => {}
        }
    }

    fn said_object(&self, key: Key) -> Option<Ref<'a>> {
        self.cob.filter(|_| key == Key::Cfn).or(self.state.ob)
    }

    fn object_of(&self, key: Key) -> Object {
        self.said_object(key).map_or(Object::Inherited, |object| Object::Said(object.to_owned()))
    }
}

impl Index {
    /// Takes over what a part defines. The parts must come in order.
    pub fn append(&mut self, facts: Facts) {
        let at_start = self.state.ob.clone();
        self.states.push(self.state.clone());
        for (word, value) in &facts.headers {
            self.header(word, value);
        }
        let mut heads = Vec::new();
        for Definition { offset, id, what } in facts.definitions {
            match what {
                Defined::Object { unknown } => {
                    if self.unknown_objects.last(id).unwrap_or(false) != unknown {
                        self.unknown_objects.push(id, offset, unknown);
                    }
                }
                Defined::Function { name, object } => {
                    let head = raw_name(&name).map(|(addr, _)| addr);
                    if let Some(addr) = head.filter(|_| self.is_unknown_at(&object, at_start.as_ref(), offset)) {
                        heads.push(addr);
                    }
                    if *self.texts.get(self.raw_functions.last(id).unwrap_or_default()) != *name {
                        let text = self.texts.add(&name);
                        self.raw_functions.push(id, offset, text);
                    }
                }
            }
        }
        for (addr, object) in facts.raw_heads {
            if self.is_unknown_at(&object, at_start.as_ref(), u64::MAX) {
                heads.push(addr);
            }
        }
        self.add_raw_heads(heads);
        for (max, seen) in self.max_ids.iter_mut().zip(facts.max_ids) {
            *max = seen.max(*max);
        }
        self.follow(facts.changes, facts.changed_columns);
    }

    fn add_raw_heads(&mut self, mut heads: Vec<u64>) {
        heads.retain(|head| !self.is_raw_head(*head));
        if heads.is_empty() {
            return;
        }
        self.raw_heads.append(&mut heads);
        // Two runs in order, mostly: that takes one pass.
        self.raw_heads.sort();
        self.raw_heads.dedup();
    }

    fn follow(&mut self, changes: OwnedState, changed_columns: bool) {
        if changes.fl.is_some() || changes.open_file.is_some() {
            self.state.open_file = changes.open_file;
        }
        self.state.ob = changes.ob.or(self.state.ob.take());
        self.state.fl = changes.fl.or(self.state.fl.take());
        if changed_columns {
            self.state.columns = changes.columns;
        }
    }

    fn header(&mut self, word: &[u8], value: &[u8]) {
        let about = &mut self.about;
        match word {
            b"creator" if about.creator.is_empty() => about.creator = value.to_vec(),
            b"pid" if about.pid.is_none() => about.pid = decimal(value).and_then(|pid| i32::try_from(pid).ok()),
            b"events" if about.events.is_empty() => {
                about.events =
                    value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect();
            }
            b"part" => about.parts += 1,
            b"positions" => {
                let has = Columns::parse(value).is_some_and(|columns| columns.instr.is_some());
                about.has_instr = has && (about.has_instr || !self.saw_positions);
                self.saw_positions = true;
            }
            _ => {}
        }
    }

    fn is_unknown_at(&self, object: &Object, inherited: Option<&OwnedRef>, offset: u64) -> bool {
        let object = match object {
            Object::Said(object) => Some(object),
            Object::Inherited => inherited,
        };
        self.is_unknown_object(object.map(OwnedRef::as_ref), offset)
    }

    /// How things stand at the start of a part.
    pub(super) fn state_at(&self, chunk: usize) -> State<'_> {
        self.states.get(chunk).map_or_else(State::default, |state| State {
            ob: state.ob.as_ref().map(OwnedRef::as_ref),
            fl: state.fl.as_ref().map(OwnedRef::as_ref),
            open_file: state.open_file.as_ref().map(OwnedRef::as_ref),
            columns: state.columns,
        })
    }

    /// Whether an object is `???`.
    pub(super) fn is_unknown_object(&self, object: Option<Ref<'_>>, offset: u64) -> bool {
        match object {
            Some(Ref::Id(id)) => self.unknown_objects.at(id, offset).unwrap_or(false),
            Some(Ref::Name(name)) => name == UNKNOWN,
            None => false,
        }
    }

    /// The name of a function id if it has a raw part.
    pub(super) fn raw_function(&self, id: u32, offset: u64) -> Option<&[u8]> {
        self.raw_functions.at(id, offset).map(|text| self.texts.get(text)).filter(|name| !name.is_empty())
    }

    /// Whether some function in unknown memory starts there: only then is an address among the callers of a name
    /// absolute for sure.
    pub(super) fn is_raw_head(&self, addr: u64) -> bool {
        self.raw_heads.binary_search(&addr).is_ok()
    }

    /// All start addresses of functions without a name in unknown memory, in order.
    pub fn unknown_functions(&self) -> &[u64] {
        &self.raw_heads
    }

    /// The largest ids in use, by space.
    pub(super) fn max_ids(&self) -> [u32; 3] {
        self.max_ids
    }

    /// Whether valgrind wrote it: then positions are relative to cost lines only.
    pub(super) fn is_by_valgrind(&self) -> bool {
        self.about.creator.starts_with(b"callgrind-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::callgrind::chunks::Chunks;

    fn index(text: &[u8], size: usize) -> Index {
        let mut index = Index::default();
        for chunk in Chunks::new(text, size) {
            index.append(facts(&chunk.unwrap()));
        }
        index
    }

    const TEXT: &[u8] = b"version: 1\ncreator: callgrind-3.19.0\npid: 77\npositions: instr line\nevents: Ir Dr\n\n\
        ob=(1) lib.so\nfl=(1) a.c\nfn=(1) f\n0x10 1 5\ncob=(2) ???\ncfi=(2) ???\ncfn=(2) 0x0000000000001000\ncalls=1 0x1000 0\n* * 9\n\
        fn=(3) 0x0000000000002000\n0x20 1 5\n\n\
        ob=(2)\nfl=(2)\nfn=(2)\n0x1000 0 5\nfi=(1)\n+1 3 1\nfn=(4) 0x0000000000003000'0x0000000000001000\n0x3000 0 1\n";

    #[test]
    fn ids_and_states_do_not_depend_on_the_cuts() {
        for size in [1, 40, 90, 1000] {
            let index = index(TEXT, size);
            assert_eq!(index.about.pid, Some(77));
            assert!(index.about.has_instr && index.is_by_valgrind());
            assert_eq!(index.about.events, [b"Ir", b"Dr"]);
            assert_eq!(index.unknown_functions(), [0x1000, 0x3000], "0x2000 is relative to lib.so (size {size})");
            assert_eq!(index.raw_function(2, u64::MAX), Some(&b"0x0000000000001000"[..]));
            assert_eq!(index.raw_function(2, 10), None, "not yet defined there");
            assert_eq!(index.raw_function(1, u64::MAX), None);
            assert_eq!(index.max_ids(), [2, 2, 4]);
            assert!(index.is_unknown_object(Some(Ref::Id(2)), u64::MAX));
        }
        let index = index(TEXT, 1);
        let last = index.state_at(index.states.len() - 1);
        assert_eq!((last.ob, last.fl, last.open_file), (Some(Ref::Id(2)), Some(Ref::Id(2)), Some(Ref::Id(1))));
    }

    #[test]
    fn a_later_part_may_give_an_id_another_meaning() {
        let text = b"ob=(1) ???\nfn=(1) 0x0000000000001000\n1 1\nob=(1) real.so\nfn=(1) name\n2 2\n";
        let index = index(text, 1000);
        let later = text.len() as u64;
        assert!(index.is_unknown_object(Some(Ref::Id(1)), 20) && !index.is_unknown_object(Some(Ref::Id(1)), later));
        assert!(index.raw_function(1, 20).is_some() && index.raw_function(1, later).is_none());
    }
}
