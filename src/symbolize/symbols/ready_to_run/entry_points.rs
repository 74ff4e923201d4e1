//! Collects the entry points of methods (where their code starts) and the methods' names.

use std::sync::Arc;

/// Where the code of a method starts, and the method's name.
#[derive(Debug)]
pub(super) struct EntryPoint {
    /// The index of the runtime function (a piece of code) with which the method starts.
    pub(super) function: u32,
    /// The method's name; `None` if it couldn't be read.
    pub(super) name: Option<Arc<[u8]>>,
}

/// The entry points that have been read so far.
#[derive(Debug)]
pub(super) struct EntryPoints {
    pub(super) all: Vec<EntryPoint>,
    /// How many bytes are left for the names that are read from now on, all of them together.
    pub(super) bytes_left: usize,
}

/// The limit for the size of all names together, as a multiple of the file's size. In real files, the names have about
/// a third of the file's size. The limit keeps damaged files from exhausting memory.
pub(super) const MAX_NAME_RATIO: usize = 4;

impl EntryPoints {
    /// Adds an entry point. Calls `name` for the method's name, unless earlier names have used up the limit. A name
    /// that exceeds the limit is left out.
    pub(super) fn push(&mut self, function: u32, name: impl FnOnce() -> Option<Vec<u8>>) {
        let name = if self.bytes_left > 0 { name() } else { None };
        let name = name.filter(|name| name.len() <= self.bytes_left);
        self.bytes_left -= name.as_ref().map_or(0, Vec::len);
        self.all.push(EntryPoint { function, name: name.map(Arc::from) });
    }
}
