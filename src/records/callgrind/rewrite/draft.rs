//! The rewritten text of one chunk: pieces of the input as they stand, text of its own, and placeholders where names
//! belong that other chunks may define.

use super::stats::RewriteStats;
use crate::records::callgrind::grammar::{BlockContext, NameRef, push_id, same_name};

/// A rewritten chunk of a file.
#[derive(Debug)]
pub struct RewrittenChunk<'a> {
    /// The text that is not in the input.
    pub(super) own: Vec<u8>,
    pub(super) pieces: Vec<Piece<'a>>,
    /// The statistics.
    pub stats: RewriteStats,
}

/// The parts of the text.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    /// Text of its own, up to there.
    Own(usize),
    /// A part of the input.
    Input(&'a [u8]),
    /// The name of an object.
    Object(&'a [u8]),
    /// The name of a file.
    File(&'a [u8]),
    /// The name of code ([`super::jit_functions::JitFunctions::name`]) and what follows it.
    Jit(usize, Box<[u8]>),
    /// The statements that state that such code is called.
    Callee(usize, Box<[u8]>),
    /// The name of another function.
    Function(Box<[u8]>),
    /// A function of the input whose definition may have gone with the block that held it.
    InputFunction(u32, &'a [u8]),
    /// The definition of that function was in a statement that is gone.
    Dropped(u32),
    /// Ids mean nothing from here on.
    Forget,
}

impl<'a> RewrittenChunk<'a> {
    /// Its memory, for another.
    pub fn into_memory(self) -> DraftMemory<'a> {
        let Self { mut own, mut pieces, .. } = self;
        own.clear();
        pieces.clear();
        DraftMemory { own, pieces }
    }
}

/// Memory that a rewritten chunk is kept in. Fresh memory for each would cost more than filling it.
#[derive(Debug, Default)]
pub struct DraftMemory<'a> {
    own: Vec<u8>,
    pieces: Vec<Piece<'a>>,
}

/// The name of an object or file in the output.
#[derive(Debug, Clone, Copy)]
pub(super) enum OutputName<'a> {
    /// One of the input.
    Input(NameRef<'a>),
    /// One that has no id yet.
    New(&'a [u8]),
}

impl PartialEq for OutputName<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Input(one), Self::Input(other)) => one == other,
            (Self::New(one), Self::New(other)) => same_name(one, other),
            _ => false,
        }
    }
}

/// The context of readers of the output where that differs from the input's.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReaderContext<'a> {
    /// The object.
    pub(super) ob: Option<OutputName<'a>>,
    /// The last `fl=`, to which `fn=` returns.
    pub(super) fl: Option<OutputName<'a>>,
    /// The current file, after `fi=` and `fe=` too.
    pub(super) file: Option<OutputName<'a>>,
}

impl<'a> ReaderContext<'a> {
    /// That of the input.
    pub(super) fn of(context: BlockContext<'a>) -> Self {
        let names = [context.ob, context.fl, context.open_file.or(context.fl)];
        let [ob, fl, file] = names.map(|name| name.map(OutputName::Input));
        Self { ob, fl, file }
    }
}

/// Less than this of the input is copied at once.
const SHORT: usize = 64;

/// The rewritten text of a chunk while it is being written.
#[derive(Debug)]
pub(super) struct ChunkDraft<'a> {
    pub(super) own: Vec<u8>,
    /// So much of its own text is in the pieces.
    placed: usize,
    pieces: Vec<Piece<'a>>,
}

impl<'a> ChunkDraft<'a> {
    /// For a chunk of this many bytes. Unused room costs nothing: growing would, again and again.
    pub(super) fn with_room_for(len: usize, memory: DraftMemory<'a>) -> Self {
        let DraftMemory { mut own, mut pieces } = memory;
        if pieces.capacity() == 0 {
            own.reserve(len / 8);
            pieces.reserve(len / 64);
        }
        Self { own, placed: 0, pieces }
    }

    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.own.extend_from_slice(bytes);
    }

    /// Puts several texts, one behind the other.
    #[inline]
    pub(super) fn put_all(&mut self, texts: &[&[u8]]) {
        texts.iter().for_each(|text| self.put(text));
    }

    /// Puts an id that is defined, with its name.
    pub(super) fn put_definition(&mut self, id: u32, name: &[u8]) {
        self.put_id(id);
        self.put_all(&[b" ", name]);
    }

    /// Puts `ob=name` or `cob=name`.
    #[inline]
    pub(super) fn put_object(&mut self, key: &[u8], name: OutputName<'a>) {
        self.put_statement(key, name, Piece::Object);
    }

    /// Puts `fl=name`, or one of the other statements that give a file.
    #[inline]
    pub(super) fn put_file(&mut self, key: &[u8], name: OutputName<'a>) {
        self.put_statement(key, name, Piece::File);
    }

    #[inline]
    fn put_statement(&mut self, key: &[u8], name: OutputName<'a>, new: impl FnOnce(&'a [u8]) -> Piece<'a>) {
        self.put(key);
        match name {
            OutputName::Input(NameRef::Id(id)) => self.put_id(id),
            OutputName::Input(NameRef::Name(name)) => self.put(name),
            OutputName::New(name) => self.place(new(name)),
        }
        self.put(b"\n");
    }

    /// Takes the last byte back, which was put.
    pub(super) fn unput(&mut self) {
        if self.own.len() > self.placed {
            self.own.pop();
        }
    }

    /// Puts a part of the input.
    #[inline]
    pub(super) fn copy(&mut self, bytes: &'a [u8]) {
        if bytes.len() < SHORT {
            self.put(bytes);
        } else {
            self.place(Piece::Input(bytes));
        }
    }

    #[inline]
    pub(super) fn put_id(&mut self, id: u32) {
        push_id(id, &mut self.own);
    }

    /// Puts what is only known when all chunks before are written.
    #[inline]
    pub(super) fn place(&mut self, piece: Piece<'a>) {
        if self.own.len() > self.placed {
            self.placed = self.own.len();
            self.pieces.push(Piece::Own(self.placed));
        }
        self.pieces.push(piece);
    }

    pub(super) fn finish(mut self, stats: RewriteStats) -> RewrittenChunk<'a> {
        if self.own.len() > self.placed {
            self.pieces.push(Piece::Own(self.own.len()));
        }
        RewrittenChunk { own: self.own, pieces: self.pieces, stats }
    }
}
