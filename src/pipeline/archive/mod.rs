//! Archives: a recording together with everything that names its code, packed into one file on the recorded machine
//! (`jitgraft pack`) and readable like a recording on any other.
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
//! It is a tar file compressed with zstd. An archive isn't unpacked to a directory for reading
//! ([`crate::io::Archive`]).

mod manifest;
mod read;
mod write;

pub(crate) use manifest::{Manifest, PackedFile, Role};
pub(crate) use read::{Packed, ROOT, is_archive, read};
pub(crate) use write::{Piece, write};
