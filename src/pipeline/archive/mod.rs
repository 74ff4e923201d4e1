//! Archives: a recording with all that names its code, packed into one file on the machine that it was recorded on
//! (`jitgraft pack`), and read on any other like a recording.
//!
//! ```text
//! jitgraft-pack           the mark by which an archive is known
//! manifest.json           what follows, with sizes and hashes
//! data, data.1, …         the recording: the names are those in a directory of perf record's
//! perf-77.map, …          dumps, maps and logs
//! root/usr/bin/node       files that ran, by their paths: --symfs
//! .build-id/ab/cdef…/elf  other versions of them, and debugging information: --debug-dir
//! kcore_dir/kallsyms      the kernel's symbols, if they were asked for
//! ```
//!
//! It is a tar file packed by zstd. An archive that is read is not unpacked to a directory ([`crate::io::Archive`]).

mod manifest;
mod read;
mod write;

pub(crate) use manifest::{Manifest, PackedFile, Role};
pub(crate) use read::{Packed, ROOT, is_archive, read};
pub(crate) use write::{Piece, write};
