//! Collects the addresses where the code of methods starts, with the methods' names.

use std::sync::Arc;

/// A runtime function with which a method starts. The name is `None` if it couldn't be read.
#[derive(Debug)]
pub(super) struct EntryPoint {
    /// Index of the method's first runtime function.
    pub(super) function: u32,
    pub(super) name: Option<Arc<[u8]>>,
}

/// The entry points read so far.
#[derive(Debug)]
pub(super) struct EntryPoints {
    pub(super) all: Vec<EntryPoint>,
    /// The number of bytes that further names may take.
    pub(super) room: usize,
}

/// All names together may take up to this many times the size of the file, a limit for damaged files. In real files
/// they take a third of the file's size.
pub(super) const ROOM: usize = 4;

impl EntryPoints {
    /// Adds an entry point. `name` is called only if the names read so far leave [`Self::room`] for more.
    pub(super) fn push(&mut self, function: u32, name: impl FnOnce() -> Option<Vec<u8>>) {
        let name = if self.room > 0 { name() } else { None };
        let name = name.filter(|name| name.len() <= self.room);
        self.room -= name.as_ref().map_or(0, Vec::len);
        self.all.push(EntryPoint { function, name: name.map(Arc::from) });
    }
}
