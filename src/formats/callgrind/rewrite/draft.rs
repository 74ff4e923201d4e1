//! The rewritten text of one chunk, with placeholders where names belong that other chunks may define.

use super::stats::RewriteStats;
use crate::formats::callgrind::grammar::IdSpace;

/// A rewritten chunk of a file.
#[derive(Debug)]
pub struct RewrittenChunk {
    pub(super) bytes: Vec<u8>,
    pub(super) placeholders: Vec<Placeholder>,
    /// What was done in it.
    pub stats: RewriteStats,
}

/// Something that is only known when all chunks before are written.
#[derive(Debug)]
pub(super) struct Placeholder {
    /// Its place in the bytes.
    pub(super) at: usize,
    pub(super) kind: PlaceholderKind,
}

/// What stands at a placeholder.
#[derive(Debug)]
pub(super) enum PlaceholderKind {
    /// A new name.
    New(IdSpace, Box<[u8]>),
    /// A function of the input whose definition may have gone with the block that held it.
    InputFunction(u32, Box<[u8]>),
    /// The definition of that function was in a statement that is gone.
    Dropped(u32),
    /// Ids mean nothing from here on.
    Forget,
}

/// The rewritten text of a chunk while it is being written.
#[derive(Debug, Default)]
pub(super) struct ChunkDraft {
    pub(super) bytes: Vec<u8>,
    placeholders: Vec<Placeholder>,
}

impl ChunkDraft {
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn leave(&mut self, kind: PlaceholderKind) {
        self.placeholders.push(Placeholder { at: self.bytes.len(), kind });
    }

    pub(super) fn new_name(&mut self, space: IdSpace, name: &[u8]) {
        self.leave(PlaceholderKind::New(space, name.into()));
    }

    pub(super) fn input_function(&mut self, id: u32, name: &[u8]) {
        self.leave(PlaceholderKind::InputFunction(id, name.into()));
    }

    pub(super) fn dropped_function(&mut self, id: u32) {
        self.leave(PlaceholderKind::Dropped(id));
    }

    pub(super) fn forget_ids(&mut self) {
        self.leave(PlaceholderKind::Forget);
    }

    pub(super) fn finish(self, stats: RewriteStats) -> RewrittenChunk {
        RewrittenChunk { bytes: self.bytes, placeholders: self.placeholders, stats }
    }
}
