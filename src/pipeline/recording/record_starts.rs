//! Finds where the records of a stream start, using all threads.
//!
//! The end of a record is the start of the next one. Going from record to record through a long recording would take a
//! single thread a long time. Instead, each section of the recording is processed from something that looks like the
//! start of a record. If the section before it ends elsewhere, that was no record, and the section is processed again
//! from the right offset.

use crate::bytes::cursor::Endian;
use crate::error::Error;
use crate::formats::perf_data::{RawRecord, Records, Stop, find_record_start, is_compressed, kind};
use crate::parallel::Pool;
use std::ops::Range;

/// The approximate size of a section in bytes. It is small enough that all threads finish at about the same time.
const SECTION: usize = 1 << 20;

/// Where the records of a stream start.
#[derive(Debug)]
pub(crate) struct RecordStarts {
    /// Ranges of bytes of about equal size that consist of whole records.
    pub(super) sections: Vec<Range<usize>>,
    /// The offsets of records that aren't samples.
    pub(super) others: Vec<usize>,
    /// True if any record is compressed.
    pub(crate) has_compressed: bool,
    /// Why reading the records ended early; `None` if it didn't.
    pub(super) damage: Option<Error>,
}

/// The records of a section, as one thread found them.
#[derive(Debug)]
struct WalkedSection {
    /// The offset of the section's first record.
    start: usize,
    /// The offset after the section's last record. This may be after the start of the next section.
    end: usize,
    others: Vec<usize>,
    has_compressed: bool,
    /// True if reading stopped before the end of the section, at something that isn't a record.
    stopped: bool,
}

impl RecordStarts {
    /// The result for a stream without records.
    pub(crate) fn none() -> Self {
        Self { sections: Vec::new(), others: Vec::new(), has_compressed: false, damage: None }
    }

    /// Finds all records of a stream. `base` is the offset of the stream in the file, for messages.
    pub(crate) fn find_records(bytes: &[u8], base: u64, endian: Endian, pool: &Pool) -> Self {
        Self::walk_sections(bytes, base, endian, SECTION, pool)
    }

    /// Finds all records of a stream in parallel. The stream is divided into sections of about `length` bytes. Where
    /// the first record of a section starts isn't known before the section in front of it was read, so each thread
    /// guesses it. Sections with a wrong guess are read again.
    fn walk_sections(bytes: &[u8], base: u64, endian: Endian, length: usize, pool: &Pool) -> Self {
        // The size of every record is a multiple of eight, so sections start at multiples of eight as well.
        let length = length.next_multiple_of(8);
        let limits: Vec<Range<usize>> = (0..bytes.len().max(1))
            .step_by(length)
            .map(|start| start..start.saturating_add(length).min(bytes.len()))
            .collect();
        let guessed = pool.map(limits.clone(), |limits: Range<usize>| {
            let start = if limits.start == 0 { Some(0) } else { find_record_start(bytes, limits.clone(), endian) };
            start.map(|start| WalkedSection::walk(bytes, start..limits.end, endian))
        });
        let mut starts = Self::none();
        // The offset after the last record of the sections so far, where the next record must start.
        let mut end = 0;
        for (limits, guessed) in limits.into_iter().zip(guessed) {
            // A record that starts in an earlier section may reach to the end of this one. Then no record starts here,
            // and the section is skipped. The only section of an empty stream also ends at `end`, which is 0, but isn't
            // skipped.
            if end >= limits.end && end > 0 {
                continue;
            }
            // The guess was right if the section starts where the one before it ended. Otherwise, it is walked again
            // from there.
            let section = match guessed {
                Some(section) if section.start == end => section,
                _ => WalkedSection::walk(bytes, end..limits.end, endian),
            };
            end = section.end;
            starts.sections.push(section.start..section.end.min(bytes.len()));
            starts.others.extend(section.others);
            starts.has_compressed |= section.has_compressed;
            if section.stopped {
                break;
            }
        }
        // Try to read another record after the last one. That fails with `Damage` unless the stream ends here as it
        // should.
        let rest = bytes.get(end..).unwrap_or_default();
        if let Stop::Damage(error) = Records::new(rest, base.saturating_add(end as u64), endian).stop() {
            starts.damage = Some(error);
        }
        starts
    }
}

impl WalkedSection {
    /// Finds the records that start in a range, whose first byte must be the start of a record.
    fn walk(bytes: &[u8], range: Range<usize>, endian: Endian) -> Self {
        let Range { start, end: limit } = range;
        let mut section = Self { start, end: start, others: Vec::new(), has_compressed: false, stopped: false };
        let mut records = Records::new(&bytes[start..], start as u64, endian);
        while section.end < limit {
            let Some(record) = records.next() else {
                section.stopped = true;
                break;
            };
            section.add(&record);
        }
        section
    }

    fn add(&mut self, record: &RawRecord<'_>) {
        if record.kind != kind::SAMPLE {
            self.others.push(self.end);
            self.has_compressed |= is_compressed(record);
        }
        self.end = usize::try_from(record.end()).unwrap_or(usize::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
    use std::num::NonZeroUsize;

    fn record(kind: u32, size: u16) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([2, 0]);
        bytes.extend(size.to_le_bytes());
        bytes.resize(usize::from(size), 0);
        bytes
    }

    /// Creates a sample record whose contents look like records.
    fn deceiving(size: u16) -> Vec<u8> {
        let mut bytes = record(kind::SAMPLE, size);
        let inner = record(kind::SAMPLE, 16);
        bytes[8..].chunks_exact_mut(16).for_each(|place| place.copy_from_slice(&inner));
        bytes
    }

    fn auxtrace(payload: usize) -> Vec<u8> {
        let mut bytes = record(kind::AUXTRACE, 48);
        bytes[8..16].copy_from_slice(&(payload as u64).to_le_bytes());
        bytes.extend(std::iter::repeat_n(9, payload));
        bytes
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let size = || (1..60u16).prop_map(|words| words * 8);
        let one = prop_oneof![
            6 => size().prop_map(|size| record(kind::SAMPLE, size)),
            3 => (1..100u16).prop_map(|words| deceiving(8 + words * 16)),
            3 => size().prop_map(|size| record(kind::MMAP, size)),
            1 => (0..9_000usize).prop_map(auxtrace),
            1 => any::<u16>().prop_map(|size| record(kind::EXIT, size.max(1))),
        ];
        (prop::collection::vec(one, 0..200), 0..100usize).prop_map(|(records, cut)| {
            let mut bytes = records.concat();
            bytes.truncate(bytes.len().saturating_sub(cut));
            bytes
        })
    }

    proptest! {
        #[test]
        fn stretches_that_are_begun_anywhere_are_as_one_walk_through_all(
            bytes in stream(),
            threads in 1..4usize,
            length in 1..5000usize,
        ) {
            let pool = Pool::new(NonZeroUsize::new(threads)).unwrap();
            let starts = RecordStarts::walk_sections(&bytes, 64, Endian::Little, length, &pool);
            let mut records = Records::new(&bytes, 0, Endian::Little);
            let mut others = Vec::new();
            let mut end = 0;
            for record in records.by_ref() {
                if record.kind != kind::SAMPLE {
                    others.push(record.offset as usize);
                }
                end = (record.end() as usize).min(bytes.len());
            }
            let damaged = matches!(records.stop(), Stop::Damage(_));
            prop_assert_eq!(&starts.others, &others);
            prop_assert_eq!(starts.damage.is_some(), damaged);
            let parts = &starts.sections;
            prop_assert_eq!(parts.last().map_or(0, |part| part.end), end);
            prop_assert_eq!(parts.first().map_or(0, |part| part.start), 0);
            for pair in parts.windows(2) {
                prop_assert_eq!(pair[0].end, pair[1].start);
            }
            let parts = parts.iter().map(|part| &bytes[part.clone()]);
            let count: usize = parts.map(|part| Records::new(part, 0, Endian::Little).count()).sum();
            prop_assert_eq!(count, Records::new(&bytes, 0, Endian::Little).count());
        }
    }
}
