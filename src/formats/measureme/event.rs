//! One event, as it is in the file, and what changed of it between the versions of the format.

use crate::error::{Error, Result};

/// Bytes of an event with ids of 4 bytes.
pub(super) const NARROW: usize = 24;

/// Bytes of an event with ids of 8 bytes.
pub(super) const WIDE: usize = 32;

/// The widths that changed between versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VersionLayout {
    /// Bytes of an event: [`NARROW`] or [`WIDE`].
    pub(super) event: usize,
    /// Bytes of a string id: 4 or 8.
    pub(super) id: usize,
    /// True if the second highest end value marks an integer; before version 8 it was a time.
    pub(super) integers: bool,
}

impl VersionLayout {
    pub(super) fn of(version: u32) -> Result<Self> {
        match version {
            0..7 => Err(Error::new(format!(
                "measureme file version {version} is older than supported (7 to 9): record again with a newer compiler"
            ))),
            7 | 8 => Ok(Self { event: NARROW, id: 4, integers: version == 8 }),
            9 => Ok(Self { event: WIDE, id: 8, integers: true }),
            _ => Err(Error::new(format!("measureme file version {version} is newer than supported (7 to 9)"))),
        }
        .map_err(|error| error.at(4))
    }
}

/// An end of 2^48 - 1 marks an instant.
const INSTANT: u64 = 0xFFFF_FFFF_FFFF;
/// An end of 2^48 - 2 marks a number.
const INTEGER: u64 = INSTANT - 1;

/// A `RawEvent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawEvent {
    /// `event_kind`: the string id of the category.
    pub(super) kind: u64,
    /// `event_id`: the string id of the label and its arguments.
    pub(super) id: u64,
    /// `thread_id`: rustc's thread, Miri's *virtual* thread.
    pub(super) thread: u32,
    /// The event, and its time.
    pub(super) payload: Payload,
}

/// The 96 bits of payload. Times are in the counter's unit (mostly nanoseconds) since the recording began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload {
    /// Something that took time.
    Interval {
        /// Its start.
        start: u64,
        /// Its end; not before the start (a damaged record gets an end equal to its start).
        end: u64,
    },
    /// Something that happened at a time.
    Instant(u64),
    /// A number, without a time.
    Integer(u64),
}

impl VersionLayout {
    /// Decodes a record of [`VersionLayout::event`] bytes.
    #[inline]
    pub(super) fn decode<const EVENT: usize>(self, record: &[u8; EVENT]) -> RawEvent {
        // Lengths are known here: no word is looked for behind the end.
        let word = |at: usize| u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
        let wide = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let (kind, id) = if EVENT == WIDE { (wide(0), wide(8)) } else { (word(0).into(), word(4).into()) };
        let rest = EVENT - 16;
        let upper = u64::from(word(rest + 12));
        let start = u64::from(word(rest + 4)) | (upper & 0xFFFF_0000) << 16;
        let end = u64::from(word(rest + 8)) | (upper & 0xFFFF) << 32;
        let payload = match end {
            INSTANT => Payload::Instant(start),
            INTEGER if self.integers => Payload::Integer(start),
            _ => Payload::Interval { start, end: end.max(start) },
        };
        RawEvent { kind, id, thread: word(rest), payload }
    }
}
