//! Writes a recording with edits applied to its records, and adjusts everything around the records.
//!
//! The rewriter doesn't know what the edits are for. What no edit touches is copied byte for byte, in order. The fields
//! that depend on lengths are recomputed: `data.size` and `data.offset` in the header, the offsets in the feature
//! table, and the file offsets inside the AUXTRACE feature (`struct auxtrace_index`).

use super::header::{FILE_HEADER, Form, PIPE_HEADER};
use super::kind;
use super::recording::Recording;
use super::walk::{Records, record};
use crate::bytes::byte_writer::ByteWriter;
use crate::bytes::cursor::{Cursor, Endian};
use crate::error::{Result, Warning, Warnings};
use linux_perf_data::Feature;
use std::collections::BTreeMap;
use std::ops::Range;

/// A replacement at one offset of the record stream: some bytes are removed, others are inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Where to edit: the offset of a record's start, or of the end of the stream.
    pub at: u64,
    /// Number of bytes to remove. They must be whole records with their payloads. 0 to only insert.
    pub remove: u64,
    /// The bytes to insert.
    pub insert: Vec<u8>,
}

/// Edits sorted by offset.
#[derive(Debug, Default)]
pub struct Edits {
    list: Vec<Edit>,
}

/// Receives a rewritten record stream.
pub trait EditSink {
    /// Appends bytes to the new stream.
    fn bytes(&mut self, bytes: &[u8]) -> Result<()>;
    /// Appends a range of the old stream, given by its offsets, without changes.
    fn copy(&mut self, range: Range<u64>) -> Result<()>;
}

impl Edits {
    /// Sorts the edits. Those at the same offset keep their order.
    pub fn new(mut list: Vec<Edit>) -> Self {
        list.sort_by_key(|edit| edit.at);
        Self { list }
    }

    /// The length in bytes that a stream of `len` bytes has after the edits.
    pub fn new_len(&self, len: u64) -> u64 {
        let removed: u64 = self.list.iter().map(|edit| edit.remove).sum();
        let inserted: u64 = self.list.iter().map(|edit| edit.insert.len() as u64).sum();
        (len + inserted).saturating_sub(removed)
    }

    /// The number of bytes by which the edits move the record at `offset` towards the end of the stream. If they remove
    /// more than they insert, this number wraps around below 0, so callers must use a wrapping addition.
    fn shift(&self, offset: u64) -> u64 {
        let edits_before = self.list.partition_point(|edit| edit.at <= offset);
        let mut shift: u64 = 0;
        for edit in &self.list[..edits_before] {
            // Bytes inserted at `offset` come before the record and move it. Bytes removed at `offset` are the record
            // itself, so they don't count.
            let removed = if edit.at < offset { edit.remove } else { 0 };
            shift = shift.wrapping_add(edit.insert.len() as u64).wrapping_sub(removed);
        }
        shift
    }

    /// Sends a range of the old stream to `sink`, with the edits applied. All edits must lie in the range.
    pub fn apply(&self, range: Range<u64>, sink: &mut dyn EditSink) -> Result<()> {
        // Offset up to which the old stream was copied or removed so far.
        let mut done = range.start;
        for edit in &self.list {
            if edit.at > done {
                sink.copy(done..edit.at)?;
                done = edit.at;
            }
            sink.bytes(&edit.insert)?;
            // `max`, because the previous edit at the same offset may have removed more.
            done = done.max(edit.at.saturating_add(edit.remove));
        }
        if done < range.end { sink.copy(done..range.end) } else { Ok(()) }
    }
}

/// Everything before the records in file form: header, attrs and IDs.
#[derive(Debug)]
pub struct Front {
    /// The encoded bytes. The records directly follow them in the file.
    pub bytes: Vec<u8>,
}

/// Byte offsets of fields in `struct perf_file_header`.
const DATA_SIZE: usize = 48;
const FEATURE_BITS: usize = 72;

impl Front {
    /// Copies `bytes`, which is everything before the records of a recording in file form. Only the size of the data
    /// and the feature bits are updated.
    pub fn keep(recording: &Recording, bytes: &[u8], data_size: u64, features: &Features) -> Self {
        let mut front = Self { bytes: bytes.to_vec() };
        front.put(DATA_SIZE, 8, data_size, recording.header.endian);
        front.put_features(recording, features);
        front
    }

    /// Builds header, attrs and IDs for a recording that was not in file form.
    pub fn build(recording: &Recording, data_size: u64, features: &Features) -> Self {
        let endian = recording.header.endian;
        // All entries of the attrs section have the same length, so shorter attrs are padded to the length of the
        // longest.
        let attr_size = recording.events.iter().map(|event| event.attr_bytes.len()).max().unwrap_or_default();
        // An entry consists of the attr, then offset and length of the event's IDs (two words).
        let entry_size = attr_size + 16;
        // The IDs of all events follow the header, which is filled in last; so `ids.len()` is an offset in the file.
        let mut ids = ByteWriter::append_to(vec![0; FILE_HEADER as usize], endian);
        let mut entries = ByteWriter::new(endian);
        for event in &recording.events {
            let mut attr = event.attr_bytes.clone();
            attr.resize(attr_size, 0);
            entries.bytes(&attr).u64(ids.len() as u64).u64(event.ids.len() as u64 * 8);
            for &id in &event.ids {
                ids.u64(id);
            }
        }
        let (mut bytes, entries) = (ids.finish(), entries.finish());
        let attrs_offset = bytes.len() as u64;
        bytes.extend(&entries);
        let data_offset = bytes.len() as u64;
        let mut front = Self { bytes };
        let magic = u64::from_be_bytes(*b"2ELIFREP"); // written as PERFILE2 in little-endian order
        let (entry_size, attrs_len) = (entry_size as u64, entries.len() as u64);
        // The fields of the header, in order. The last two describe the section of event types, which perf no longer
        // writes.
        let fields = [magic, FILE_HEADER, entry_size, attrs_offset, attrs_len, data_offset, data_size, 0, 0];
        for (index, field) in fields.into_iter().enumerate() {
            front.put(index * 8, 8, field, endian);
        }
        front.put_features(recording, features);
        front
    }

    /// Overwrites the number of `len` bytes at `offset`. Does nothing if the front is too short for it.
    fn put(&mut self, offset: usize, len: usize, number: u64, endian: Endian) {
        if let Some(field) = self.bytes.get_mut(offset..offset + len) {
            endian.put(number, field);
        }
    }

    /// Sets the bits of the header that say which features the file has. They are stored as words of 4 or 8 bytes in
    /// the recording's byte order.
    fn put_features(&mut self, recording: &Recording, features: &Features) {
        // Bit N of the first number stands for feature N, bit N of the second for feature 128 + N.
        let mut bits = [0u128; 2];
        for feature in features.sections.keys() {
            if let Some(half) = bits.get_mut(feature.0 as usize / 128) {
                *half |= 1 << (feature.0 % 128);
            }
        }
        let width = if recording.header.wide_feature_words { 8 } else { 4 };
        // The bitmap has 32 bytes, 16 for each of the two numbers in `bits`. `offset` is a word's offset in the bitmap.
        // Shift the number so that the word's bits are the lowest; `put` only writes the lowest `width` bytes.
        for offset in (0..32).step_by(width) {
            let word = bits[offset / 16] >> (8 * (offset % 16));
            self.put(FEATURE_BITS + offset, width, word as u64, recording.header.endian);
        }
    }
}

/// The feature sections to write.
#[derive(Debug, Clone, Default)]
pub struct Features {
    /// The content of each section.
    pub sections: BTreeMap<Feature, Vec<u8>>,
    /// Number of unused bytes between the feature table and the first section. perf reserves table entries for features
    /// and later finds that some of them have nothing to write.
    pub gap: u64,
}

/// Limit in bytes for [`Features::gap`]: 128 table entries. If the gap is larger, perf didn't leave it, and the file is
/// damaged.
const MAX_GAP: u64 = 128 * TABLE_ENTRY;

/// Length in bytes of an entry in the feature table: offset and length of a section.
const TABLE_ENTRY: u64 = 16;

impl Features {
    /// The features of a recording, unchanged.
    pub fn from_recording(recording: &Recording) -> Self {
        let sections = recording.features.iter().map(|(&feature, section)| (feature, section.bytes.clone())).collect();
        // Keep the gap that the recorder left before the first section, unless it is too large to be perf's. A pipe has
        // no table, and so no gap.
        let mut gap = 0;
        let first_section = recording.features.values().map(|feature| feature.offset).min();
        if recording.header.form == Form::File
            && let Some(first_section) = first_section
        {
            let table_end = recording.header.data.end().saturating_add(recording.features.len() as u64 * TABLE_ENTRY);
            gap = first_section.checked_sub(table_end).filter(|&gap| gap <= MAX_GAP).unwrap_or_default();
        }
        Self { sections, gap }
    }

    /// Updates the AUXTRACE feature, which lists the file offsets of the AUXTRACE records. `new_offset` returns the new
    /// offset of a record for its old one.
    pub fn move_auxtrace(&mut self, endian: Endian, new_offset: impl Fn(u64) -> u64) {
        let Some(index) = self.sections.get_mut(&Feature::AUXTRACE) else { return };
        // The feature consists of a u64 with the number of entries and, for each entry, a u64 offset in the file and a
        // u64 size.
        let (words, _) = index.as_chunks_mut::<8>();
        for entry in words.get_mut(1..).unwrap_or_default().chunks_exact_mut(2) {
            endian.put(new_offset(endian.u64(entry[0])), &mut entry[0]);
        }
    }

    /// Encodes everything after the records in file form: the feature table, then the sections. `table_offset` is the
    /// file offset at which the table begins.
    pub fn encode(&self, table_offset: u64, endian: Endian) -> Vec<u8> {
        // The offset of the next section.
        let mut offset = table_offset + self.sections.len() as u64 * TABLE_ENTRY + self.gap;
        let mut table = ByteWriter::new(endian);
        for section in self.sections.values() {
            table.u64(offset).u64(section.len() as u64);
            offset += section.len() as u64;
        }
        let mut bytes = table.finish();
        bytes.resize(bytes.len() + self.gap as usize, 0);
        self.sections.values().for_each(|section| bytes.extend(section));
        bytes
    }
}

/// The file offset to which the edits move the record at `offset`. The record stream began at `old_start` in the input
/// and begins at `new_start` in the output.
pub fn moved_offset(edits: &Edits, offset: u64, old_start: u64, new_start: u64) -> u64 {
    offset.wrapping_add(edits.shift(offset)).wrapping_sub(old_start).wrapping_add(new_start)
}

/// Features that perf never sends through a pipe: they describe sections of a file, or have their own record type.
const NOT_IN_PIPES: [Feature; 6] = [
    Feature::TRACING_DATA,
    Feature::BUILD_ID,
    Feature::BRANCH_STACK,
    Feature::AUXTRACE,
    Feature::STAT,
    Feature::DIR_FORMAT,
];

/// Encodes the start of a recording in pipe form. It contains what file form stores before and after the records:
/// header, attrs, features, tracepoint formats and build IDs. What is too long for a record is left out with a warning.
pub fn pipe_front(recording: &Recording, features: &Features, warnings: &mut Warnings) -> Vec<u8> {
    let endian = recording.header.endian;
    let mut out = ByteWriter::new(endian);
    // The magic number: `PERFILE2` in little-endian order.
    out.u64(u64::from_be_bytes(*b"2ELIFREP")).u64(PIPE_HEADER);
    // The second argument is the result of `record`, which is `None` if the record would be too long.
    let mut push_record = |what: &str, bytes: Option<Vec<u8>>| match bytes {
        Some(bytes) => {
            out.bytes(&bytes);
        }
        None => warnings.push(Warning::new(format!(
            "{what} is too long for a record, so it was left out of the output in pipe form"
        ))),
    };
    for event in &recording.events {
        let mut body = ByteWriter::append_to(event.attr_bytes.clone(), endian);
        for &id in &event.ids {
            body.u64(id);
        }
        push_record("the attr of an event", record(kind::HEADER_ATTR, 0, &body.finish(), endian));
    }
    for (feature, section) in features.sections.iter().filter(|(feature, _)| !NOT_IN_PIPES.contains(feature)) {
        let mut body = ByteWriter::new(endian);
        body.u64(feature.0.into()).bytes(section).pad(8);
        push_record(&format!("feature section {feature}"), record(kind::HEADER_FEATURE, 0, &body.finish(), endian));
    }
    if let Some(section) = features.sections.get(&Feature::TRACING_DATA) {
        let mut size = ByteWriter::new(endian);
        size.u32(u32::try_from(section.len()).unwrap_or(u32::MAX));
        // TRACING_DATA has a record type of its own. The section follows the record as its payload, padded to a
        // multiple of 8.
        let mut bytes = record(kind::HEADER_TRACING_DATA, 0, &size.finish(), endian).unwrap_or_default();
        bytes.extend(section);
        bytes.resize(bytes.len() + section.len().next_multiple_of(8) - section.len(), 0);
        push_record("the tracepoint formats", Some(bytes));
    }
    if let Some(section) = features.sections.get(&Feature::BUILD_ID) {
        // The section BUILD_ID already consists of records. Encode them again, because old recorders left the type of
        // these records 0, and didn't pad them to a multiple of 8.
        for raw in Records::new(section, 0, endian) {
            let mut body = raw.body().rest().to_vec();
            body.resize(body.len().next_multiple_of(8), 0);
            push_record("a build ID", record(kind::HEADER_BUILD_ID, raw.misc, &body, endian));
        }
    }
    out.finish()
}

/// Returns the edits that turn the records of a recording in pipe form into those of file form: they remove the records
/// with attrs, features and tracepoint formats. Also adds the tracepoint formats (TRACING_DATA) to `features`. They
/// are missing there because they follow their record as its payload, which [`Recording::absorb`] doesn't see. `base`
/// is the file offset of `data`.
pub fn leave_pipe(recording: &Recording, data: &[u8], base: u64, features: &mut Features) -> Vec<Edit> {
    let mut edits = Vec::new();
    for raw in Records::new(data, base, recording.header.endian) {
        if raw.kind == kind::HEADER_TRACING_DATA {
            let start = usize::try_from(raw.offset - base).unwrap_or(usize::MAX).saturating_add(raw.bytes.len());
            let mut body: Cursor<'_> = raw.body();
            // The record states the size without the padding, which `raw.payload` includes.
            let size = body.u32("size").unwrap_or_default() as usize;
            let payload = data.get(start..start.saturating_add(size)).unwrap_or_default();
            features.sections.insert(Feature::TRACING_DATA, payload.to_vec());
        }
        // Other records of pipes, such as build IDs, stay: a file may have them among its records, too.
        if matches!(raw.kind, kind::HEADER_ATTR | kind::HEADER_FEATURE | kind::HEADER_TRACING_DATA) {
            let end = raw.end().min(base + data.len() as u64); // the end of the record and its payload
            edits.push(Edit { at: raw.offset, remove: end - raw.offset, insert: Vec::new() });
        }
    }
    edits
}

/// True if [`Front::keep`] can be used: the recording has file form, and all attrs and IDs are before the records,
/// where the edits don't move them.
pub fn front_can_stay(recording: &Recording) -> bool {
    recording.header.form == Form::File && recording.attrs_end <= recording.header.data.offset
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Copied<'a>(&'a [u8], Vec<u8>);

    impl EditSink for Copied<'_> {
        fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
            self.1.extend(bytes);
            Ok(())
        }

        fn copy(&mut self, range: Range<u64>) -> Result<()> {
            self.1.extend(&self.0[range.start as usize..range.end as usize]);
            Ok(())
        }
    }

    fn edit(at: u64, remove: u64, insert: &[u8]) -> Edit {
        Edit { at, remove, insert: insert.to_vec() }
    }

    #[test]
    fn edits_replace_insert_and_remove_and_know_where_things_went() {
        let edits = Edits::new(vec![edit(9, 0, b"Z"), edit(2, 0, b"AB"), edit(2, 3, b"C"), edit(6, 2, b"")]);
        let mut out = Copied(b"012345678", Vec::new());
        edits.apply(0..9, &mut out).unwrap();
        assert_eq!(out.1, b"01ABC58Z");
        assert_eq!(edits.new_len(9), 8);
        assert_eq!(moved_offset(&edits, 5, 0, 100), 105);
        assert_eq!(moved_offset(&edits, 8, 0, 100), 106);
        assert_eq!(moved_offset(&edits, 1, 0, 0), 1);
    }

    #[test]
    fn the_auxtrace_index_follows_its_records() {
        let index: Vec<u8> = [2u64, 500, 48, 900, 48].iter().flat_map(|word| word.to_be_bytes()).collect();
        let sections = BTreeMap::from([(Feature::AUXTRACE, index)]);
        let mut features = Features { sections, gap: 0 };
        features.move_auxtrace(Endian::Big, |offset| offset + 16);
        let words: Vec<u64> = features.sections[&Feature::AUXTRACE]
            .as_chunks::<8>()
            .0
            .iter()
            .map(|word| u64::from_be_bytes(*word))
            .collect();
        assert_eq!(words, [2, 516, 48, 916, 48]);
    }
}
