//! Second pass: names the code of unknown memory, part by part.
//!
//! Blocks that neither hold nor call code with a name are copied byte for byte. A block of a known object that
//! calls such code has the statements in front of its `calls=` lines replaced. A block of unknown memory is decoded
//! and written anew ([`super::regroup`]).

use super::Grafts;
use super::block::Block;
use super::chunks::Chunk;
use super::index::{Index, Ref, State};
use super::line::{
    Key, Line, NameField, Space, has_raw_part, line, lines, name_field, raw_name, replace_callers, statements,
};
use super::piece::{Done, Draft, Piece};
use super::regroup::Groups;
use crate::error::Error;

/// A name in the output: of the input, or a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name<'a> {
    Old(Ref<'a>),
    New(&'a [u8]),
}

impl Name<'_> {
    pub(super) fn write(self, space: Space, draft: &mut Draft) {
        match self {
            Self::Old(Ref::Id(id)) => draft.put(format!("({id})").as_bytes()),
            Self::Old(Ref::Name(name)) => draft.put(name),
            Self::New(name) => draft.new_name(space, name),
        }
    }
}

/// What readers of the output have in mind where that is not what the input says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Displaced<'a> {
    /// The object.
    pub(super) ob: Option<Name<'a>>,
    /// The last `fl=`, to which `fn=` returns.
    pub(super) fl: Option<Name<'a>>,
    /// The current file, after `fi=` and `fe=` too.
    pub(super) file: Option<Name<'a>>,
}

/// What naming a function comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named<'a> {
    /// It is code with a name: which, and what follows the head of its raw name.
    Graft(usize, Vec<u8>),
    /// Raw addresses among its callers are replaced in its definition.
    Edited(Option<u32>, Vec<u8>),
    /// Refers to a raw name whose definition may be gone.
    Old(u32, &'a [u8]),
    /// As it is.
    Same,
}

/// Rewrites one part.
pub fn rewrite(chunk: &Chunk, index: &Index, grafts: &dyn Grafts) -> Piece {
    let state = index.state_at(chunk.index);
    let names = Names { index, grafts };
    let rewriter =
        Rewriter { chunk, names, state, draft: Draft::default(), done: Done::default(), copied: 0, displaced: None };
    rewriter.run()
}

/// Answers what a name in the file stands for.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) index: &'a Index,
    pub(super) grafts: &'a dyn Grafts,
}

impl<'a> Names<'a> {
    /// `in_unknown`: whether the function's object is `???`.
    pub(super) fn named(self, field: NameField<'a>, in_unknown: bool, offset: u64) -> Named<'a> {
        let (id, name, defines) = match field {
            NameField::Plain(name) => (None, name, true),
            NameField::Define(id, name) => (Some(id), name, true),
            NameField::Refer(id) => match self.index.raw_function(id, offset) {
                Some(name) => (Some(id), name, false),
                None => return Named::Same,
            },
        };
        if defines && !has_raw_part(name) {
            return Named::Same;
        }
        let head = raw_name(name).and_then(|(addr, tail)| Some((self.grafts.at(addr)?, tail)));
        match (head, id) {
            (Some((entry, tail)), _) if in_unknown => return Named::Graft(entry, self.tail(tail)),
            (Some(_), Some(id)) if !defines => return Named::Old(id, name),
            _ => {}
        }
        let edited = self.tail(name);
        if defines && edited != name { Named::Edited(id, edited) } else { Named::Same }
    }

    /// A name with the raw addresses among its callers replaced.
    pub(super) fn tail(self, tail: &[u8]) -> Vec<u8> {
        let resolve = |addr| {
            let entry = self.grafts.at(addr).filter(|_| self.index.is_raw_head(addr))?;
            Some(self.grafts.name(entry).to_vec())
        };
        replace_callers(tail, resolve).into_owned()
    }
}

struct Rewriter<'a> {
    chunk: &'a Chunk,
    names: Names<'a>,
    state: State<'a>,
    draft: Draft,
    done: Done,
    /// What is before this has been dealt with.
    copied: usize,
    displaced: Option<Displaced<'a>>,
}

/// A function's block while its end is looked for.
#[derive(Clone, Copy)]
struct Open<'a> {
    start: usize,
    state: State<'a>,
    in_unknown: bool,
    touched: bool,
}

impl<'a> Rewriter<'a> {
    fn run(mut self) -> Piece {
        let mut open: Option<Open<'a>> = None;
        let mut cob = None;
        let text = &self.chunk.bytes;
        for (at, text) in statements(text) {
            let line = line(text);
            let offset = self.chunk.offset + at as u64;
            if matches!(line, Line::Spec(Key::Fn | Key::Ob | Key::Fl, _) | Line::Header(..)) {
                self.close(open.take(), at);
                cob = None;
            }
            match line {
                Line::Spec(Key::Fn, value) => {
                    let in_unknown = self.names.index.is_unknown_object(self.state.ob, offset);
                    let touched = !in_unknown && self.names.named(name_field(value), false, offset) != Named::Same;
                    open = Some(Open { start: at, state: self.state, in_unknown, touched });
                }
                Line::Spec(Key::Cob, value) => cob = Some(Ref::of(name_field(value))),
                Line::Spec(Key::Cfn | Key::Jfn, value) => {
                    if let Some(open) = open.as_mut().filter(|open| !open.in_unknown && !open.touched) {
                        let in_unknown = cob.is_some() && self.names.index.is_unknown_object(cob, offset);
                        open.touched = self.names.named(name_field(value), in_unknown, offset) != Named::Same;
                    }
                }
                Line::Spec(Key::Calls, _) => cob = None,
                Line::Header(b"part" | b"thread" | b"pid" | b"positions" | b"events", _) => {
                    self.copy_to(at);
                    self.draft.forget_ids();
                }
                _ => {}
            }
            self.state.apply(line);
        }
        self.close(open, text.len());
        self.copy_to(text.len());
        if !self.chunk.last {
            self.restore(self.state);
        }
        self.draft.finish(self.done)
    }

    /// Copies what stands before `end` as it is.
    fn copy_to(&mut self, end: usize) {
        let Some(bytes) = self.chunk.bytes.get(self.copied..end) else { return };
        if let Some(displaced) = &mut self.displaced {
            for (_, text) in statements(bytes) {
                match line(text) {
                    Line::Spec(Key::Ob, value) => displaced.ob = Some(Name::Old(Ref::of(name_field(value)))),
                    Line::Spec(key @ (Key::Fl | Key::Fi | Key::Fe), value) => {
                        displaced.file = Some(Name::Old(Ref::of(name_field(value))));
                        displaced.fl = if key == Key::Fl { displaced.file } else { displaced.fl };
                    }
                    _ => {}
                }
            }
        }
        self.draft.put(bytes);
        self.copied = end;
    }

    /// Makes readers of the output inherit what the input says.
    fn restore(&mut self, state: State<'a>) {
        let Some(displaced) = self.displaced.take() else { return };
        if let Some(ob) = state.ob.map(Name::Old).filter(|ob| displaced.ob != Some(*ob)) {
            statement(&mut self.draft, b"ob=", ob, Space::Object);
        }
        let (fl, file) = (state.fl.map(Name::Old), state.open_file.or(state.fl).map(Name::Old));
        if (displaced.fl, displaced.file) == (fl, file) {
            return;
        }
        if let Some(fl) = state.fl {
            statement(&mut self.draft, b"fl=", Name::Old(fl), Space::File);
        }
        if let Some(open) = state.open_file {
            statement(&mut self.draft, b"fi=", Name::Old(open), Space::File);
        }
    }

    /// Deals with a block that ends at `end`.
    fn close(&mut self, open: Option<Open<'a>>, end: usize) {
        let Some(open) = open else { return };
        if open.in_unknown && self.regroup(open, end) {
            self.copied = end;
            return;
        }
        if !open.in_unknown {
            let (text, names) = (&self.chunk.bytes[open.start..end], self.names);
            self.done.strays.look(text, open.state, !names.index.is_by_valgrind(), names.grafts);
        }
        if self.displaced.is_some() {
            self.copy_to(open.start);
            self.restore(open.state);
        }
        if open.touched {
            self.copy_to(open.start);
            self.edit(open, end);
            self.copied = end;
        }
    }

    /// Whether a block of unknown memory was written anew.
    fn regroup(&mut self, open: Open<'a>, end: usize) -> bool {
        let offset = self.chunk.offset + open.start as u64;
        let text = &self.chunk.bytes[open.start..end];
        let Some(block) = Block::parse(text, open.state, !self.names.index.is_by_valgrind()) else {
            self.done.skipped.add(Error::new("its positions do not add up").at(offset));
            return false;
        };
        let Some(groups) =
            Groups::of(&block, self.names, open.state, offset..self.chunk.offset + end as u64, &mut self.done)
        else {
            return false;
        };
        self.copy_to(open.start);
        let before = self.displaced.unwrap_or_else(|| Displaced {
            ob: open.state.ob.map(Name::Old),
            fl: open.state.fl.map(Name::Old),
            file: open.state.open_file.or(open.state.fl).map(Name::Old),
        });
        self.displaced = Some(groups.write(&mut self.draft, before));
        true
    }

    /// Replaces the callees of a block of a known object.
    fn edit(&mut self, open: Open<'a>, end: usize) {
        let base = self.chunk.offset + open.start as u64;
        let mut callee = PendingCallee::default();
        for (at, text) in lines(&self.chunk.bytes[open.start..end]) {
            let offset = base + at as u64;
            match line(text) {
                Line::Spec(Key::Cob, value) => callee.hold(text, Some(value)),
                Line::Spec(Key::Cfi, _) => callee.hold(text, None),
                Line::Spec(Key::Cfn, value) => {
                    let in_unknown = callee.cob.is_some() && self.names.index.is_unknown_object(callee.cob, offset);
                    let named = self.names.named(name_field(value), in_unknown, offset);
                    self.edit_callee(&mut callee, text, named, name_field(value));
                }
                Line::Spec(Key::Fn, value) => self.edit_name(b"fn=", text, value, offset),
                Line::Spec(Key::Jfn, value) => self.edit_name(b"jfn=", text, value, offset),
                Line::Spec(Key::Calls, _) => {
                    callee.release(&mut self.draft);
                    callee.cob = None;
                    self.put_line(text);
                }
                _ => self.put_line(text),
            }
        }
        callee.release(&mut self.draft);
        // The last line of a file may lack its line feed: then so does the copy.
        if self.chunk.bytes.get(end - 1) != Some(&b'\n') {
            self.draft.bytes.pop();
        }
    }

    fn put_line(&mut self, text: &[u8]) {
        self.draft.put(text);
        self.draft.put(b"\n");
    }

    fn edit_callee(&mut self, callee: &mut PendingCallee<'a>, text: &'a [u8], named: Named<'a>, field: NameField<'a>) {
        let Named::Graft(entry, tail) = named else {
            callee.release(&mut self.draft);
            self.put_named(b"cfn=", text, named);
            return;
        };
        callee.release_definitions(&mut self.draft);
        if let NameField::Define(id, _) = field {
            self.draft.dropped_function(id);
        }
        let grafts = self.names.grafts;
        statement(&mut self.draft, b"cob=", Name::New(grafts.object()), Space::Object);
        statement(&mut self.draft, b"cfi=", Name::New(grafts.file(entry)), Space::File);
        let name = [grafts.name(entry), &tail].concat();
        statement(&mut self.draft, b"cfn=", Name::New(&name), Space::Function);
    }

    fn edit_name(&mut self, key: &[u8], text: &'a [u8], value: &'a [u8], offset: u64) {
        let named = self.names.named(name_field(value), false, offset);
        self.put_named(key, text, named);
    }

    fn put_named(&mut self, key: &[u8], text: &[u8], named: Named<'_>) {
        match named {
            Named::Edited(id, name) => {
                self.draft.put(key);
                if let Some(id) = id {
                    self.draft.put(format!("({id}) ").as_bytes());
                }
                self.put_line(&name);
            }
            Named::Old(id, name) => {
                self.draft.put(key);
                self.draft.old_function(id, name);
                self.draft.put(b"\n");
            }
            Named::Same | Named::Graft(..) => self.put_line(text),
        }
    }
}

/// The statements in front of a `cfn=`, held back until it is known what they lead to.
#[derive(Debug, Default)]
struct PendingCallee<'a> {
    held: Vec<&'a [u8]>,
    cob: Option<Ref<'a>>,
}

impl<'a> PendingCallee<'a> {
    fn hold(&mut self, text: &'a [u8], cob: Option<&'a [u8]>) {
        self.held.push(text);
        if let Some(value) = cob {
            self.cob = Some(Ref::of(name_field(value)));
        }
    }

    fn release(&mut self, draft: &mut Draft) {
        for text in self.held.drain(..) {
            draft.put(text);
            draft.put(b"\n");
        }
    }

    /// Only those that define an id: later blocks may refer to it. Of repeated statements readers take the last.
    fn release_definitions(&mut self, draft: &mut Draft) {
        self.held.retain(
            |text| matches!(line(text), Line::Spec(_, value) if matches!(name_field(value), NameField::Define(..))),
        );
        self.release(draft);
    }
}

/// Writes `key=name`.
pub(super) fn statement(draft: &mut Draft, key: &[u8], name: Name<'_>, space: Space) {
    draft.put(key);
    name.write(space, draft);
    draft.put(b"\n");
}
