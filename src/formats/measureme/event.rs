//! Decodes events. Their layout changed between versions.

use crate::error::{Error, Result};

/// Size of an event with 4-byte IDs.
pub(super) const NARROW: usize = 24;

/// Size of an event with 8-byte IDs.
pub(super) const WIDE: usize = 32;

/// The layout of events in one version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VersionLayout {
    /// Size of an event in bytes: [`NARROW`] or [`WIDE`].
    pub(super) event_size: usize,
    /// Size of a string ID in bytes: 4 or 8.
    pub(super) id_size: usize,
    /// True if an event can be an integer, which its end time [`INTEGER`] tells. Before version 8, [`INTEGER`] was an
    /// ordinary time.
    pub(super) has_integers: bool,
}

impl VersionLayout {
    /// The layout of a version. Fails if the version isn't supported.
    pub(super) fn new(version: u32) -> Result<Self> {
        match version {
            0..7 => Err(Error::new(format!(
                "measureme file version {version} is too old (7 to 9 are supported); record again with a newer compiler"
            ))),
            7 | 8 => Ok(Self { event_size: NARROW, id_size: 4, has_integers: version == 8 }),
            9 => Ok(Self { event_size: WIDE, id_size: 8, has_integers: true }),
            _ => Err(Error::new(format!("measureme file version {version} is too new (7 to 9 are supported)"))),
        }
        // The version is the second word of the file.
        .map_err(|error| error.at_offset(4))
    }
}

/// An event with this end time is an instant.
const INSTANT: u64 = 0xFFFF_FFFF_FFFF;
/// An event with this end time is an integer (since version 8).
const INTEGER: u64 = INSTANT - 1;

/// A decoded `RawEvent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawEvent {
    /// `event_kind`: string ID of the category.
    pub(super) kind: u64,
    /// `event_id`: string ID of the label and its arguments.
    pub(super) id: u64,
    /// `thread_id`: a thread in rustc, a *virtual* thread in Miri.
    pub(super) thread: u32,
    /// What happened, and when.
    pub(super) payload: Payload,
}

/// The payload, 96 bits in the file. Times are in the counter's unit (usually nanoseconds) since the recording began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload {
    /// Something that took time, such as a call.
    Interval {
        /// When the interval started.
        start: u64,
        /// When the interval ended; never before its start. (If a damaged record states an earlier end, it is set to
        /// the start.)
        end: u64,
    },
    /// Something that happened at a moment. Holds the time.
    Instant(u64),
    /// A number that has no time.
    Integer(u64),
}

impl VersionLayout {
    /// Decodes a record of [`VersionLayout::event_size`] bytes: IDs of kind and label, thread, and 96 bits of payload.
    #[inline]
    pub(super) fn decode<const EVENT: usize>(self, record: &[u8; EVENT]) -> RawEvent {
        // The record's length is a constant here, so no bounds checks are needed.
        let word = |offset: usize| {
            u32::from_le_bytes([record[offset], record[offset + 1], record[offset + 2], record[offset + 3]])
        };
        // `word` reads a number of four bytes, `wide` one of eight.
        let wide = |offset: usize| u64::from(word(offset)) | u64::from(word(offset + 4)) << 32;
        let (kind, id) = if EVENT == WIDE { (wide(0), wide(8)) } else { (word(0).into(), word(4).into()) };
        // Thread and payload are the last four words. Start and end have 48 bits each: the lower 32 in a word of their
        // own, the upper 16 in one common word, whose upper half belongs to the start.
        let thread_offset = EVENT - 16;
        let upper = u64::from(word(thread_offset + 12));
        let start = u64::from(word(thread_offset + 4)) | (upper & 0xFFFF_0000) << 16;
        let end = u64::from(word(thread_offset + 8)) | (upper & 0xFFFF) << 32;
        // Instants and integers have special end times, which no interval has. Their start field holds the instant's
        // time or the integer.
        let payload = match end {
            INSTANT => Payload::Instant(start),
            INTEGER if self.has_integers => Payload::Integer(start),
            _ => Payload::Interval { start, end: end.max(start) },
        };
        RawEvent { kind, id, thread: word(thread_offset), payload }
    }
}
