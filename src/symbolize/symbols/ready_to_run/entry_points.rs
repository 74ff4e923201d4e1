//! Collects the entry points of methods (where their code starts) and the methods' names.

use std::sync::Arc;

/// Where the code of a method starts. The name is `None` if it couldn't be read.
#[derive(Debug)]
pub(super) struct EntryPoint {
    /// The index of the runtime function (a piece of code) with which the method starts.
    pub(super) function: u32,
    pub(super) name: Option<Arc<[u8]>>,
}

/// The entry points that have been read so far.
#[derive(Debug)]
pub(super) struct EntryPoints {
    pub(super) all: Vec<EntryPoint>,
    /// The number of bytes that names read from now on may take in total.
    pub(super) room: usize,
}

/// All names together may take this many times the size of the file. This limits the memory for damaged files. In real
/// files, names take a third of the file's size.
pub(super) const ROOM: usize = 4;

impl EntryPoints {
    /// Adds an entry point. Calls `name` for the method's name, unless earlier names have used up [`Self::room`].
    pub(super) fn push(&mut self, function: u32, name: impl FnOnce() -> Option<Vec<u8>>) {
        let name = if self.room > 0 { name() } else { None };
        let name = name.filter(|name| name.len() <= self.room);
        self.room -= name.as_ref().map_or(0, Vec::len);
        self.all.push(EntryPoint { function, name: name.map(Arc::from) });
    }
}
