//! Archives: a recording and all files that are needed to name its code, packed into one file. `jitgraft pack` makes an
//! archive on the recorded machine; any other machine can read it like a recording.
//!
//! ```text
//! jitgraft-pack           identifies the archive
//! manifest.json           lists the files with sizes and hashes
//! data, data.1, …         the recording, named as in a directory of perf record
//! perf-77.map, …          jitdumps, perf maps and logs
//! root/usr/bin/node       mapped files by path; used like --symfs
//! .build-id/ab/cdef…/elf  other versions of them, and debugging information; used like --debug-dir
//! kcore_dir/kallsyms      the kernel's symbols, if the user asked for them
//! ```
//!
//! An archive is a tar file compressed with zstd. For reading, it isn't unpacked to a directory
//! ([`crate::io::Archive`]).

mod manifest;
mod read;
mod write;

pub(crate) use manifest::{Manifest, PackedFile, Role};
pub(crate) use read::{Packed, ROOT, is_archive, read};
pub(crate) use write::{Piece, write};
