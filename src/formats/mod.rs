//! Bytes ↔ typed records. A format knows no files, no threads and no other format.
//!
//! [`FORMATS`] is the one table of what jitgraft reads and writes: help, detection and tests walk it. A new format
//! is its own file or folder, one `mod` line and one entry here.

pub mod cursor;
pub mod format;

use format::Format;

/// Every format, in the order in which detection asks them.
pub const FORMATS: &[Format] = &[];

/// The format of an input, by its first bytes (give at least 4 KiB, or all there are).
pub fn detect(head: &[u8]) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.sniff.is_some_and(|sniff| sniff(head)))
}
