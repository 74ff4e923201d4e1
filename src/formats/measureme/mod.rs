//! measureme profiles (`.mm_profdata`): what rustc's `-Zself-profile` and Miri's `-Zmiri-measureme` write.
//!
//! `MMPD` and a version, then pages: tag (u8), size (u32), payload of at most 256 KiB. The payloads of one tag,
//! joined, are one stream: events, string data, or string index, each with a header of 8 bytes. Records and strings
//! straddle pages. Little endian throughout.
//!
//! An event is written when it *ends*: file order is end order within a thread, and an interval that never ended
//! has no record. The file is therefore best read backwards: callers come before what they called.
//!
//! The string index is written when the profiler is dropped: a killed process leaves events whose names are lost.
//! They are shown as `fn#` and their id.
//!
//! Versions 7 to 9 are read. Layout: <https://github.com/rust-lang/measureme>, `measureme/src/{raw_event,stringtable,serialization}.rs`.

mod event;
mod halves;
mod metadata;
mod pages;
mod profile;
mod read;
mod strings;
mod summary;
mod summing;

use crate::contract::spans::{Spans, Wants};

/// The questions about a profile.
pub const SPANS: Spans = Spans {
    wants: Wants::Whole,
    stacks: read::stacks,
    timeline: read::timeline,
    tell: read::tell,
    summary: Some(summary::summarize),
};

/// True if an input starts as one of ours, the old ones in three files included.
pub fn sniff(head: &[u8]) -> bool {
    [b"MMPD", b"MMES", b"MMSD", b"MMSI"].iter().any(|magic| head.starts_with(*magic))
}

#[cfg(test)]
mod tests;
