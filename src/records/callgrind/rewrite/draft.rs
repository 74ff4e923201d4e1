//! The rewritten text of a chunk: ranges of the input, new text, and placeholders for names that other chunks may
//! define.

use super::stats::RewriteStats;
use crate::records::callgrind::grammar::{BlockContext, NameRef, push_id, same_name};

/// A rewritten chunk of a file.
#[derive(Debug)]
pub struct RewrittenChunk<'a> {
    /// New text. [`Piece::Own`] refers to ranges of it.
    pub(super) own: Vec<u8>,
    pub(super) pieces: Vec<Piece<'a>>,
    /// Statistics about what was rewritten.
    pub stats: RewriteStats,
}

/// A piece of a rewritten chunk.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    /// New text: from the end of the previous [`Piece::Own`] up to this offset in [`RewrittenChunk::own`].
    Own(usize),
    /// A range of the input, to be copied.
    Input(&'a [u8]),
    /// Placeholder for the ID of a new object, given by name.
    Object(&'a [u8]),
    /// Placeholder for the ID of a new source file, given by name.
    File(&'a [u8]),
    /// Placeholder for the ID of a JIT function, given by its entry ([`super::jit_functions::JitFunctions::name`]) and
    /// a suffix of its name.
    Jit(usize, Box<[u8]>),
    /// Placeholder for the `cob=`, `cfi=` and `cfn=` lines before a call of a JIT function, given by its entry and a
    /// suffix of its name.
    Callee(usize, Box<[u8]>),
    /// Placeholder for the ID of a new function that isn't a JIT function, given by name.
    Function(Box<[u8]>),
    /// A function of the input, given by ID and name. The name is written again if a removed block had defined it.
    InputFunction(u32, &'a [u8]),
    /// The definition of this function ID was removed from the text.
    Dropped(u32),
    /// The header of a part follows, at which readers forget all IDs.
    Forget,
}

impl<'a> RewrittenChunk<'a> {
    /// Empties the chunk's collections and returns them for reuse by the next chunk.
    pub fn into_memory(self) -> DraftMemory<'a> {
        let Self { mut own, mut pieces, .. } = self;
        own.clear();
        pieces.clear();
        DraftMemory { own, pieces }
    }
}

/// The collections of a rewritten chunk, whose allocations the next chunk reuses. Allocating anew would take longer
/// than filling them.
#[derive(Debug, Default)]
pub struct DraftMemory<'a> {
    own: Vec<u8>,
    pieces: Vec<Piece<'a>>,
}

/// The name of an object or file in the output.
#[derive(Debug, Clone, Copy)]
pub(super) enum OutputName<'a> {
    /// A name that the input already has.
    Input(NameRef<'a>),
    /// A name that the input doesn't have.
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

/// The object and files that are in effect for readers of the output, at some point of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReaderContext<'a> {
    /// The current object (`ob=`).
    pub(super) ob: Option<OutputName<'a>>,
    /// The last `fl=`, to which `fn=` returns.
    pub(super) fl: Option<OutputName<'a>>,
    /// The current file: the last `fl=`, `fi=` or `fe=`.
    pub(super) file: Option<OutputName<'a>>,
}

impl<'a> From<BlockContext<'a>> for ReaderContext<'a> {
    /// Converts what is in effect for readers of the input.
    fn from(context: BlockContext<'a>) -> Self {
        Self {
            ob: context.ob.map(OutputName::Input),
            fl: context.fl.map(OutputName::Input),
            file: context.open_file.or(context.fl).map(OutputName::Input),
        }
    }
}

/// Ranges of the input with fewer bytes than this are copied into the new text. Longer ones are only referred to.
const SHORT: usize = 64;

/// The text of a chunk while it is being rewritten.
#[derive(Debug)]
pub(super) struct ChunkDraft<'a> {
    pub(super) own: Vec<u8>,
    /// The length of new text that is already in `pieces`.
    placed: usize,
    pieces: Vec<Piece<'a>>,
}

impl<'a> ChunkDraft<'a> {
    /// Creates a draft for a chunk of `len` bytes. Reserving too much costs nothing; repeated growing would.
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

    #[inline]
    pub(super) fn put_all(&mut self, texts: &[&[u8]]) {
        for text in texts {
            self.put(text);
        }
    }

    /// Appends `(id) name`, the definition of an ID.
    pub(super) fn put_definition(&mut self, id: u32, name: &[u8]) {
        self.put_id(id);
        self.put_all(&[b" ", name]);
    }

    /// Appends `ob=name` or `cob=name`.
    #[inline]
    pub(super) fn put_object(&mut self, key: &[u8], name: OutputName<'a>) {
        self.put_statement(key, name, Piece::Object);
    }

    /// Appends `fl=name`, or another statement that specifies a file.
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

    /// Removes the last byte of the new text, unless a piece already refers to it.
    pub(super) fn unput(&mut self) {
        if self.own.len() > self.placed {
            self.own.pop();
        }
    }

    /// Appends a range of the input.
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

    /// Appends a placeholder. It will be filled when all earlier chunks are written.
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
