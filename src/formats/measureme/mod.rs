//! measureme profiles (`.mm_profdata`), written by rustc's `-Zself-profile` and Miri's `-Zmiri-measureme`.
//!
//! A file is `MMPD` and a version, followed by pages: tag (u8), size (u32), and a payload of at most 256 KiB. The
//! payloads with the same tag form one stream: events, string data or string index. Each stream starts with a header of
//! 8 bytes. Records and strings can straddle pages. Everything is little endian.
//!
//! An event is written when it *ends*, so within a thread, events are in the order of their ends, and an interval that
//! never ended is missing. It is therefore best to read the file backwards: callers then come before their callees.
//!
//! The string index is written at the very end. If the process is killed, events remain but their names are lost. Such
//! events are called `fn#` and their ID.
//!
//! Versions 7 to 9 are supported. Layout: <https://github.com/rust-lang/measureme>,
//! `measureme/src/{raw_event,stringtable,serialization}.rs`.

mod event;
mod metadata;
mod pages;
mod profile;
mod read;
mod strings;
mod summary;
mod threads;

use crate::contract::spans::{Spans, Wants};

/// The functions that read a measureme profile.
pub const SPANS: Spans = Spans {
    wants: Wants::Whole,
    stacks: read::stacks,
    timeline: read::timeline,
    emit: read::emit,
    summary: Some(summary::summarize),
};

/// Whether an input starts like a measureme file, including the three separate files of old versions.
pub fn sniff(head: &[u8]) -> bool {
    [b"MMPD", b"MMES", b"MMSD", b"MMSI"].iter().any(|magic| head.starts_with(*magic))
}

#[cfg(test)]
mod tests;
