//! Files for what reads files, in memory where the system has a place for that.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A directory that goes with its files.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    pub fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Self(tempfile::Builder::new().prefix("jitgraft-fuzz-").tempdir_in(place).unwrap())
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file.
    pub fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// Cuts an input into parts, each behind its length in four bytes; the last one has what is left.
pub(super) fn parts<const N: usize>(mut bytes: &[u8]) -> [&[u8]; N] {
    std::array::from_fn(|at| {
        if at + 1 == N {
            return bytes;
        }
        let Some((len, rest)) = bytes.split_first_chunk() else { return std::mem::take(&mut bytes) };
        let (part, rest) = rest.split_at((u32::from_le_bytes(*len) as usize).min(rest.len()));
        bytes = rest;
        part
    })
}
