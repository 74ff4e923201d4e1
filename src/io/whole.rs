//! Gets the whole contents of a file: maps them or, in programs that use the library, copies them.
//!
//! A mapped file that somebody truncates raises SIGBUS when it is read. The program has a handler for that (`guard`);
//! other programs don't, so they get a copy. Small files are copied to memory, large ones to a temporary file without a
//! name. Nobody else can truncate that file, so it is mapped.

use super::guard::are_maps_watched;
use super::mapped::{Bytes, map_regular_to};
use super::spool::spool;
use crate::error::Result;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// The contents of a regular file that isn't empty, whatever its position.
pub(super) fn contents(file: &File) -> Result<Bytes> {
    contents_to(file, file.metadata()?.len())
}

/// The contents of a regular file before the offset `end`, which isn't 0.
pub(super) fn contents_to(file: &File, end: u64) -> Result<Bytes> {
    if are_maps_watched() { map_regular_to(file, end) } else { spool(FromStart { file, position: 0, end }) }
}

/// Reads a file from its start up to `end`, without moving the file's own position.
struct FromStart<'a> {
    file: &'a File,
    position: u64,
    end: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
        let most = into.len().min(left);
        let read = self.file.read_at(&mut into[..most], self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    #[test]
    fn without_the_handler_a_truncated_file_stays_whole() {
        for len in [10, 5 << 20] {
            let mut file = tempfile::tempfile().unwrap();
            let text: Vec<u8> = (0..len).map(|at| at as u8).collect();
            file.write_all(&text).unwrap();
            let bytes = contents(&file).unwrap();
            let start = contents_to(&file, 7).unwrap();
            file.set_len(0).unwrap();
            assert!(bytes[..] == text[..] && start[..] == text[..7]);
            assert_eq!(file.stream_position().unwrap(), len as u64);
        }
    }
}
