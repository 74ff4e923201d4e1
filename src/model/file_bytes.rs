//! The bytes of a file, shared by everything that refers to parts of them.

use std::fmt;
use std::sync::Arc;

/// A file's bytes, which are freed with the last clone. Cloning copies nothing.
#[derive(Clone)]
pub struct FileBytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl FileBytes {
    /// Takes the bytes of a file: its memory map, or bytes in memory.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(bytes))
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for FileBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "FileBytes({} bytes)", self.bytes().len())
    }
}
