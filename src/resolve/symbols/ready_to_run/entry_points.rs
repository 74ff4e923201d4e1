//! The starts of the code of methods, and their names.

use std::sync::Arc;

/// A code range begins where a method does; the name may be unknown all the same.
#[derive(Debug)]
pub(super) struct EntryPoint {
    /// Number of its first runtime function.
    pub(super) function: u32,
    pub(super) name: Option<Arc<[u8]>>,
}

/// All that were read so far.
#[derive(Debug)]
pub(super) struct EntryPoints {
    pub(super) all: Vec<EntryPoint>,
    /// Bytes that further names may have.
    pub(super) room: usize,
}

/// All names together have at most this many times the bytes of their file: real ones have a third.
pub(super) const ROOM: usize = 4;

impl EntryPoints {
    /// Adds one; its name is requested if there is room for any.
    pub(super) fn push(&mut self, function: u32, name: impl FnOnce() -> Option<Vec<u8>>) {
        let name = if self.room > 0 { name() } else { None };
        let name = name.filter(|name| name.len() <= self.room);
        self.room -= name.as_ref().map_or(0, Vec::len);
        self.all.push(EntryPoint { function, name: name.map(Arc::from) });
    }
}
