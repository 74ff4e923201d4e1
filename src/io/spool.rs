//! Temporary files without a name, for data that is read more than once but can't be read again from its source: data
//! from a pipe, decompressed data, or files of other users.
//!
//! A file that decompresses to an unexpected size must not fill the file system, so some space is left free.

use super::guard::are_maps_watched;
use super::mapped::{Bytes, map_regular};
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};

/// The space to leave free on the file system, in bytes. On a small file system, a twentieth of its size is enough.
const RESERVE: u64 = 1 << 30;

/// How many bytes may be written before the free space is checked again.
const STEP: u64 = 16 << 20;

/// How many bytes of a stream to copy at once: the capacity of an enlarged pipe.
const AT_ONCE: usize = 1 << 20;

/// The size and free space of a file system, in bytes.
#[derive(Debug, Clone, Copy)]
struct DiskRoom {
    free: u64,
    all: u64,
}

/// A temporary file being written.
#[derive(Debug)]
pub struct Spool {
    file: File,
    /// How many more bytes may be written before the free space is checked again.
    unchecked_bytes: u64,
    /// The function that finds out how much space is free: [`room_of`], or another one in tests.
    room: fn(&File) -> Option<DiskRoom>,
}

/// Creates a temporary file without a name.
pub fn temporary() -> Result<Spool> {
    let file = tempfile::tempfile().map_err(|error| {
        let message = format!("cannot create a temporary file in {}", std::env::temp_dir().display());
        Error::new(message).because(io::Error::from(error.kind())).with_remedy(elsewhere())
    })?;
    Ok(Spool { file, unchecked_bytes: 0, room: room_of })
}

/// The remedy if a temporary file can't be created or written.
fn elsewhere() -> Option<String> {
    Some("set TMPDIR to another directory".to_owned())
}

/// In programs that only use the library, streams up to this size are kept in memory.
const IN_MEMORY: u64 = 1 << 20;

/// Copies a stream to a temporary file without a name, and maps that. So the data can be used more than once, and
/// memory use stays bounded. In programs that only use the library, short streams are kept in memory, like short files
/// (`whole`).
pub fn spool(mut stream: impl Read) -> Result<Bytes> {
    // True in the program `jitgraft`, false in programs that only use the library.
    if are_maps_watched() {
        return temporary()?.filled(stream)?.map();
    }
    let mut start = Vec::new();
    (&mut stream).take(IN_MEMORY).read_to_end(&mut start)?;
    if (start.len() as u64) < IN_MEMORY {
        return Ok(Bytes::Owned(start));
    }
    temporary()?.filled(start.as_slice().chain(stream))?.map()
}

impl Spool {
    /// Copies the whole stream into the file.
    pub fn filled(mut self, mut stream: impl Read) -> Result<Self> {
        let mut out = BufWriter::with_capacity(AT_ONCE, &mut self);
        io::copy(&mut stream, &mut out)?;
        out.flush()?;
        drop(out);
        Ok(self)
    }

    /// Maps what was written.
    pub fn map(&self) -> Result<Bytes> {
        if self.file.metadata()?.len() == 0 { Ok(Bytes::Owned(Vec::new())) } else { map_regular(&self.file) }
    }

    /// The file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the file itself. Nobody checks the free space when it is written to.
    pub fn into_file(self) -> File {
        self.file
    }

    /// The file, to write `len` bytes to it directly instead of through [`Write`]. Fails if that would leave too little
    /// space free.
    pub(super) fn file_for(&mut self, len: u64) -> Result<&mut File> {
        self.check_space(len)?;
        Ok(&mut self.file)
    }

    /// Call this before `len` bytes are written: fails if too little space would be left free. Asks the file system
    /// only once per [`STEP`] bytes.
    fn check_space(&mut self, len: u64) -> io::Result<()> {
        if self.unchecked_bytes < len {
            let mut step = STEP;
            // `room` has the size of the file system and its free space. If the file system doesn't report them, write
            // without a check.
            if let Some(room) = (self.room)(&self.file) {
                let reserve = RESERVE.min(room.all / 20);
                if room.free < reserve.saturating_add(len) {
                    return Err(io::Error::other(full(room.free, reserve)));
                }
                step = step.min(room.free - reserve);
            }
            self.unchecked_bytes = step.max(len);
        }
        self.unchecked_bytes -= len;
        Ok(())
    }
}

/// The error if writing on would leave too little space free for others. Both numbers are in bytes.
fn full(free: u64, reserve: u64) -> Error {
    let (free_mib, reserve_mib) = (free >> 20, reserve >> 20);
    let message = format!(
        "{}: not enough space for a temporary file: {free_mib} MiB are free, and {reserve_mib} MiB must stay free",
        std::env::temp_dir().display()
    );
    Error::new(message).with_remedy(elsewhere())
}

/// The size of the file system that contains a file, and its free space for users other than root. `None` if the file
/// system doesn't report them.
fn room_of(file: &File) -> Option<DiskRoom> {
    let about = rustix::fs::fstatvfs(file).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(about.f_frsize);
    (about.f_blocks > 0).then(|| DiskRoom { free: bytes(about.f_bavail), all: bytes(about.f_blocks) })
}

impl Write for Spool {
    /// Writes to the temporary file. Fails before that if too little space would be left free.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check_space(bytes.len() as u64)?;
        self.file.write(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ => {
                let message = format!("a temporary file in {} cannot be written", std::env::temp_dir().display());
                // `elsewhere` is the remedy: it suggests another directory for temporary files.
                io::Error::other(Error::new(message).because(error).with_remedy(elsewhere()))
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_spooled_and_mapped() {
        assert_eq!(&spool(&b"stream"[..]).unwrap()[..], b"stream");
        let long = vec![7; 3 << 20];
        assert!(spool(&long[..]).unwrap()[..] == long[..]);
        assert!(spool(io::empty()).unwrap().is_empty());
    }

    /// Writes an endless stream to a disk with this much space. Returns the number of bytes written, and the error.
    fn written(room: fn(&File) -> Option<DiskRoom>) -> (u64, String) {
        let mut spool = temporary().unwrap();
        spool.room = room;
        let error = io::copy(&mut io::repeat(7), &mut spool).unwrap_err();
        (spool.file.metadata().unwrap().len(), Error::from(error).to_string())
    }

    /// An otherwise empty file system of this many MiB.
    fn holding<const MIB: u64>(file: &File) -> Option<DiskRoom> {
        let all = MIB << 20;
        Some(DiskRoom { free: all.saturating_sub(file.metadata().unwrap().len()), all })
    }

    #[test]
    fn endless_data_leaves_a_twentieth_of_the_room() {
        let (len, said) = written(holding::<100>);
        assert!(len <= 95 << 20 && len > 90 << 20, "{len}");
        assert!(said.contains("and 5 MiB must stay free"), "{said}");
        assert!(said.ends_with("; set TMPDIR to another directory"), "{said}");
        let (len, _) = written(|_| Some(DiskRoom { free: RESERVE, all: 1 << 50 }));
        assert_eq!(len, 0, "a large file system has a gigabyte for others");
    }

    #[test]
    fn unknown_room_is_taken() {
        let mut spool = temporary().unwrap();
        spool.room = |_| None;
        assert_eq!(io::copy(&mut io::repeat(7).take(40 << 20), &mut spool).unwrap(), 40 << 20);
    }
}
