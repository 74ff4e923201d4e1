//! One event, as it is in the file.

use super::layout::{VersionLayout, WIDE};

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
