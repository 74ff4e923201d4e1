//! pprof's gzipped protocol buffer, which `go tool pprof`, Grafana, Parca and speedscope read. All events are value
//! types of one profile; threads are labels.
//!
//! Samples with the same thread and stack are merged, since the format has no field for times. Some producers write
//! times as labels; times that were read from such labels are written as labels again. Viewers take the first mapping
//! for the profiled program, so the program's own file comes first.
//!
//! The messages: <https://github.com/google/pprof/blob/main/proto/profile.proto>.

mod dropped;
mod messages;
mod read;
mod rewrite;
mod tables;

pub use read::{read, sniff};
pub use rewrite::open as open_unsymbolized;

use crate::analysis::function_files::FunctionFiles;
use crate::analysis::label;
use crate::analysis::mapped_pieces::{MappedPiece, MappedPieces};
use crate::analysis::namesakes::system_name;
use crate::analysis::quantity::counted;
use crate::bytes::protobuf::put_field;
use crate::contract::format::WriteOptions;
use crate::contract::rows::{clamp, command_line};
use crate::error::{Error, Result};
use crate::model::Nanos;
use crate::model::about::{TimeExtent, ValueTypes};
use crate::model::stacks::{FrameId, Profile, Row, Series, StackId, Track, TrackId, Weight};
use flate2::{Compression, write::GzEncoder};
use messages::{
    LabelMessage, PprofFunction, PprofLine, PprofLocation, PprofMapping, PprofProfile, PprofSample, StringTable,
    ValueType, write_file,
};
use prost::Message;
use prost::encoding::encode_varint;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::Write;

/// Writes all events of a profile.
pub fn write(profile: &Profile, _options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let PprofDraft { file, sums, labels, time_label } = build(profile);
    let mut gzip = GzEncoder::new(out, Compression::fast());
    let value_count = file.sample_type.len();
    // Every sample has a value for each event, and with very many events nearly all of these are 0. Refuse to write
    // them if they would make the file enormous.
    if value_count > MANY_TYPES && value_count.saturating_mul(sums.len()) > MOST_VALUES {
        let message = format!(
            "the profile is too large for pprof: each of {} samples would have {value_count} values, one for each \
             event",
            sums.len()
        );
        return Err(
            Error::new(message).with_remedy(Some("select events with --event, or use another format".to_owned()))
        );
    }
    let samples = sums.iter().map(|sum| {
        let mut labels = labels.get(&sum.owner).cloned().unwrap_or_default();
        if let (Some(label), Some(time)) = (&time_label, sum.time) {
            let num = clamp(time.0 / label.scale.max(1)); // a scale of 0 would divide by zero
            labels.push(LabelMessage { key: label.key, str: 0, num, num_unit: label.unit });
        }
        sum.encode(profile, labels, value_count).into()
    });
    write_file(&file, samples, &mut gzip)?;
    gzip.finish()?;
    Ok(())
}

/// Upper limit for the number of values in all samples together. Each sample has a value for every type, so a profile
/// with many types is mostly zeros.
const MOST_VALUES: usize = 1 << 28;

/// Profiles with at most this many value types are written without checking [`MOST_VALUES`]. Profilers have a few
/// dozen.
const MANY_TYPES: usize = 256;

/// A profile whose samples are not encoded yet. All encoded samples together can be far larger than the rest of the
/// file, because each lists all its frames. So they are encoded one by one while they are written.
struct PprofDraft {
    file: PprofProfile,
    sums: Vec<SampleSum>,
    /// The labels of samples, by event and thread.
    labels: FxHashMap<(usize, TrackId), Vec<LabelMessage>>,
    /// The label for the times of samples; `None` if times are not written.
    time_label: Option<WrittenTimeLabel>,
}

/// The label that holds the time of a sample. Key and unit are indices of strings.
struct WrittenTimeLabel {
    key: i64,
    unit: i64,
    /// The number of nanoseconds in one unit of the label.
    scale: u64,
}

/// A sample to be written: the sums for one thread and stack, at one time if times are written.
struct SampleSum {
    /// The event and thread, which determine the labels: the key in [`PprofDraft::labels`].
    owner: (usize, TrackId),
    stack: Option<StackId>,
    time: Option<Nanos>,
    /// The values that are not 0, each with the index of its type. Several values of one type are added up when the
    /// sample is encoded. While an event's rows are added, the event's values are the last ones.
    values: Vec<(usize, i64)>,
}

impl SampleSum {
    /// Encodes the sample as a [`PprofSample`] with `value_count` values. With thousands of events, nearly all values
    /// are 0, so runs of zeros are copied instead of being encoded one by one.
    fn encode(&self, profile: &Profile, labels: Vec<LabelMessage>, value_count: usize) -> Vec<u8> {
        let mut values: BTreeMap<usize, i64> = BTreeMap::new();
        for &(index, number) in &self.values {
            let value = values.entry(index).or_default();
            *value = value.saturating_add(number);
        }
        // A value of 0 is encoded as one zero byte.
        let zeros = vec![0; value_count];
        let (mut encoded_values, mut next) = (Vec::with_capacity(value_count + 16), 0);
        for (index, value) in values {
            encoded_values.extend_from_slice(&zeros[next..index]);
            encode_varint(value as u64, &mut encoded_values);
            next = index + 1;
        }
        encoded_values.extend_from_slice(&zeros[next..]);
        // The values are put between two other fields of the message, in the order of the fields' numbers.
        let locations: Vec<u64> = profile.frames_up(self.stack).map(location_id).collect();
        let mut sample = PprofSample { location_id: locations, ..PprofSample::default() }.encode_to_vec();
        put_field(PprofSample::VALUE, &[&encoded_values], &mut sample);
        PprofSample { label: labels, ..PprofSample::default() }.encode_raw(&mut sample);
        sample
    }

    /// Adds `number` to the value with this index. All rows of one event must be added before those of the next.
    fn add(&mut self, index: usize, number: i64) {
        // An event has at most two values, the sample count and the weight, so only the last two of the list can be of
        // the event that is being added.
        match self.values.iter_mut().rev().take(2).find(|(other, _)| *other == index) {
            Some((_, value)) => *value = value.saturating_add(number),
            None => self.values.push((index, number)),
        }
    }
}

/// Builds the whole file, except that its samples are not encoded yet.
fn build(profile: &Profile) -> PprofDraft {
    let (mut strings, mut file) = (StringTable::new(), PprofProfile::default());
    let names = profile.series.iter().map(|series| &*series.name);
    // The value types of the pprof profile that was read. If an event of another file was merged with it, these types
    // don't cover all events, and new ones are made. In a profile that was read from pprof, one sample had the values
    // of all events (`AllEvents`), so it is written like that. Other events each get samples of their own (`OneEvent`).
    let original = profile.about.values.as_ref().filter(|values| values.cover(names));
    let (value_indices, sharing) = match original {
        Some(original) => (add_original_types(profile, original, &mut strings, &mut file), Sharing::AllEvents),
        None => (add_new_types(profile, &mut strings, &mut file), Sharing::OneEvent),
    };
    add_locations(profile, &mut strings, &mut file);
    // Times are only written if the pprof profile that was read had a label for them.
    let time_label = original.and_then(|original| original.time_label.as_ref()).map(|label| WrittenTimeLabel {
        key: strings.id(&label.key),
        unit: strings.id(&label.unit),
        scale: label.scale,
    });
    let mut draft = PprofDraft { file, sums: Vec::new(), labels: FxHashMap::default(), time_label };
    draft.add_samples(profile, &value_indices, sharing, &mut strings);
    add_facts(profile, original, &mut strings, &mut draft.file);
    draft.file.string_table = strings.into_list();
    draft
}

/// Adds value types for a profile that wasn't read from pprof. Each event gets a sample count and a weight, or only the
/// weight if that is a sample count itself. Returns the indices of each event's values in a sample.
fn add_new_types(profile: &Profile, strings: &mut StringTable, file: &mut PprofProfile) -> Vec<ValueIndices> {
    let count = strings.id("count");
    let counted_events = profile.series.iter().filter(|series| series.is_counted()).count();
    // The type of the sample counts is called "samples", unless there are several such types, or an event has this
    // name.
    let is_taken = profile.series.iter().any(|series| series.name == "samples");
    let mut value_indices = Vec::new();
    for series in &profile.series {
        let mut counts = None;
        if series.is_counted() {
            let is_ambiguous = counted_events > 1 || is_taken;
            let name = if is_ambiguous { format!("{}:samples", series.name) } else { "samples".to_owned() };
            counts = Some(file.sample_type.len());
            file.sample_type.push(ValueType { r#type: strings.id(&name), unit: count });
        }
        file.sample_type.push(value_type(series, strings));
        // The weight's type is the one that was added last. Its unit is the event's own, so the factor is 1.
        value_indices.push(ValueIndices { counts, weights: file.sample_type.len() - 1, scale: 1 });
    }
    value_indices
}

/// Adds the value types of the pprof profile that was read (`original`), except those of events that were filtered out.
/// Returns the indices of each event's values in a sample.
fn add_original_types(
    profile: &Profile,
    original: &ValueTypes,
    strings: &mut StringTable,
    file: &mut PprofProfile,
) -> Vec<ValueIndices> {
    // Placeholders, which the loop over the original types overwrites: each event has a type for its weight among these
    // types (`ValueTypes::cover`).
    let mut value_indices = vec![ValueIndices { counts: None, weights: 0, scale: 1 }; profile.series.len()];
    let mut by_name = FxHashMap::default();
    for (number, series) in profile.series.iter().enumerate() {
        // Of events with the same name, the first one counts.
        by_name.entry(&*series.name).or_insert(number);
    }
    for value in &original.types {
        // Leave out a type whose event the user filtered out, or that belongs to no event.
        let Some(&event) = value.event.as_deref().and_then(|event| by_name.get(event)) else { continue };
        let indices = &mut value_indices[event];
        if value.is_count {
            indices.counts = Some(file.sample_type.len());
        } else {
            (indices.weights, indices.scale) = (file.sample_type.len(), value.scale);
        }
        file.sample_type.push(ValueType { r#type: strings.id(&value.name), unit: strings.id(&value.unit) });
    }
    value_indices
}

/// The indices of an event's values in the list of values of each sample.
#[derive(Clone, Copy)]
struct ValueIndices {
    /// The index of the sample count, if it is separate from the weight.
    counts: Option<usize>,
    /// The index of the weight.
    weights: usize,
    /// The factor from the pprof file's unit to the event's unit, such as 1000 from microseconds to nanoseconds.
    scale: u64,
}

fn value_type(series: &Series, strings: &mut StringTable) -> ValueType {
    ValueType { r#type: strings.id(&series.name), unit: strings.id(series.unit.word()) }
}

/// Fills in time, duration, period and comments. If a pprof profile was read, `original` has its settings for viewers,
/// such as the default sample type, which are kept.
fn add_facts(profile: &Profile, original: Option<&ValueTypes>, strings: &mut StringTable, file: &mut PprofProfile) {
    let about = &profile.about;
    // If the input doesn't say when sampling started and ended, take the first and last sample.
    let sampled = about.sampled.or_else(|| extent(profile.series.iter().flat_map(|series| &series.rows)));
    if let Some(sampled) = sampled {
        file.duration_nanos = clamp(sampled.duration());
        if let Some(epoch) = about.epoch {
            file.time_nanos = i64::try_from(epoch + i128::from(sampled.first.0)).unwrap_or(0);
        }
    }
    if let Some(original) = original {
        if let Some((name, unit)) = &original.period_type {
            file.period_type = Some(ValueType { r#type: strings.id(name), unit: strings.id(unit) });
        }
        file.period = original.period;
        file.default_sample_type = strings.id(&original.default_type);
        file.drop_frames = strings.id(&original.drop_frames);
        file.keep_frames = strings.id(&original.keep_frames);
        file.comment.extend(original.comments.iter().map(|comment| strings.id(comment)));
        file.doc_url = strings.id(&original.doc_url);
    } else if let Some(series) = profile.series.first() {
        let first_type = value_type(series, strings);
        (file.period_type, file.period) = (Some(first_type), clamp(series.period()));
        // Without a default sample type, viewers start with the last type, which is the least important event.
        file.default_sample_type = first_type.r#type;
    }
    if let Some(command) = command_line(&about.command) {
        file.comment.push(strings.id(&command));
    }
    file.comment.extend(about.notes.iter().map(|note| strings.id(note)));
    if about.lost > 0 {
        file.comment.push(strings.id(&format!("lost: {}", counted(about.lost, "sample"))));
    }
}

/// The times of the first and last row; `None` if no row has a time.
fn extent<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<TimeExtent> {
    rows.filter_map(|row| row.time).map(TimeExtent::from_moment).reduce(TimeExtent::join)
}

/// Which events put their values into the same sample if thread and stack are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// All events share samples, as in the pprof profile that was read.
    AllEvents,
    /// Each event has its own samples, with its name as a label.
    OneEvent,
}

impl PprofDraft {
    /// Adds the samples of all events: sums of the rows with the same thread, stack and, if times are written, time.
    /// `value_indices` has the indices of each event's values in a sample.
    fn add_samples(
        &mut self,
        profile: &Profile,
        value_indices: &[ValueIndices],
        sharing: Sharing,
        strings: &mut StringTable,
    ) {
        // The samples to which further rows may be added, as indices in `sums`. The flag in the key is true for
        // negative weights, which are kept apart.
        let mut indices: FxHashMap<(TrackId, Option<StackId>, Option<Nanos>, bool), usize> = FxHashMap::default();
        for (index, (series, value_indices)) in profile.series.iter().zip(value_indices).enumerate() {
            // The number of the event in the key of `labels`; 0 if all events have the same labels.
            let (mut event, mut event_label) = (0, None);
            if sharing == Sharing::OneEvent {
                // Samples of earlier events get no more rows: each event has samples of its own.
                indices.clear();
                event = index;
                if profile.series.len() > 1 {
                    event_label = Some(&*series.name);
                }
            }
            for (row, weight) in series.signed_rows(Weight::Period) {
                let &Row { track, stack, .. } = row;
                let time = row.time.filter(|_| self.time_label.is_some());
                // Negative weights get sums of their own, or their sample counts would cancel out with those of
                // positive weights. This can't be done if a sample has values of several events: these may have
                // different signs.
                let is_negative = weight < 0 && sharing == Sharing::OneEvent;
                let sum_index = *indices.entry((track, stack, time, is_negative)).or_insert(self.sums.len());
                if sum_index == self.sums.len() {
                    self.labels
                        .entry((event, track))
                        .or_insert_with(|| labels(profile, profile.track_of(track), event_label, strings));
                    self.sums.push(SampleSum { owner: (event, track), stack, time, values: Vec::new() });
                }
                let sum = &mut self.sums[sum_index];
                if let Some(counts) = value_indices.counts {
                    sum.add(counts, if weight < 0 { -clamp(row.count) } else { clamp(row.count) });
                }
                // `scale` is the factor from the unit in the file to that of the event. Dividing by 0 would panic.
                let scale = clamp(value_indices.scale.max(1));
                sum.add(value_indices.weights, weight / scale);
            }
        }
    }
}

/// The labels of a thread's samples: process, thread, CPU, the name of the event if it is given, and the labels that
/// were read from the input.
fn labels(profile: &Profile, track: &Track, event: Option<&str>, strings: &mut StringTable) -> Vec<LabelMessage> {
    let mut labels = Vec::new();
    let ids = [
        ("pid", track.pid.map(|pid| pid.0.into())),
        ("tid", track.tid.map(|tid| tid.0.into())),
        ("cpu", track.cpu.map(i64::from)),
    ];
    for (key, id) in ids {
        if let Some(num) = id {
            labels.push(LabelMessage { key: strings.id(key), num, ..LabelMessage::default() });
        }
    }
    if !track.comm.is_empty() {
        labels.push(text_label("thread", &String::from_utf8_lossy(&track.comm), strings));
    }
    if let Some(event) = event {
        labels.push(text_label("event", event, strings));
    }
    // Labels that were numbers in the pprof profile that was read become numbers again, unless the value isn't a
    // number: a sample may have used the same key with a text.
    let units = profile.about.values.as_ref().map(|values| &values.number_labels);
    for (key, value) in track.labels.iter().flat_map(|labels| &**labels) {
        let unit = units.and_then(|units| units.get(key));
        match (unit, value.parse()) {
            (Some(unit), Ok(num)) => {
                labels.push(LabelMessage { key: strings.id(key), str: 0, num, num_unit: strings.id(unit) });
            }
            _ => labels.push(text_label(key, value, strings)),
        }
    }
    labels
}

fn text_label(key: &str, text: &str, strings: &mut StringTable) -> LabelMessage {
    LabelMessage { key: strings.id(key), str: strings.id(text), ..LabelMessage::default() }
}

/// pprof reserves ID 0, so IDs are one higher than frame numbers.
fn location_id(frame: FrameId) -> u64 {
    u64::from(frame.0) + 1
}

/// Adds one location per frame, and one function per name, module, file and start. In pprof, lines have no file, only
/// functions do. So if the file of a function is unknown, but its frames are in several files, there is a function for
/// each of these files.
fn add_locations(profile: &Profile, strings: &mut StringTable, file: &mut PprofProfile) {
    // The mappings, in the order of their IDs: `pieces` adds each mapping here when it assigns an ID to it.
    let mut mappings = Vec::new();
    let mut pieces = MappedPieces::new(profile, &mut |piece| mappings.push(piece));
    let mut functions: FxHashMap<_, u64> = FxHashMap::default();
    let mut files = FunctionFiles::default();
    files.update(profile);
    for (id, frame) in profile.frames() {
        let source = files.file_of(profile, frame);
        let name = strings.id(&label::function(profile, frame));
        let new_id = functions.len() as u64 + 1;
        let function_id = *functions.entry((name, frame.module, source, frame.start)).or_insert(new_id);
        if function_id == new_id {
            let filename = source.map_or(0, |file| strings.id_of(profile.name_of(file)));
            let start_line = frame.start.line.into();
            // pprof's functions have a line but no column. So the column is kept in the system name, which also tells
            // apart functions with the same name that start in different columns.
            let with_column = system_name(&label::function(profile, frame), frame.start.line, frame.start.column);
            let system_name = with_column.map_or(name, |text| strings.id(&text));
            file.function.push(PprofFunction { id: new_id, name, system_name, filename, start_line });
        }
        // The ID of the frame's mapping (0 if it has none), and the frame's address in memory.
        let place = pieces.place(profile, frame, &mut |piece| mappings.push(piece));
        let line = vec![PprofLine { function_id, line: frame.line.into(), column: 0 }];
        let (mapping_id, address) = (place.mapping, place.address);
        file.location.push(PprofLocation { id: location_id(id), mapping_id, address, line, is_folded: false });
    }
    file.mapping = (1..).zip(&mappings).map(|(id, piece)| mapping(id, piece, strings)).collect();
}

/// The pprof mapping for a module, or for one mapped range of a module.
fn mapping(id: u64, piece: &MappedPiece<'_>, strings: &mut StringTable) -> PprofMapping {
    let range = piece.range;
    PprofMapping {
        id,
        memory_start: range.map_or(0, |range| range.addr.0),
        memory_limit: range.map_or(0, |range| range.addr.0.saturating_add(range.len)),
        file_offset: range.map_or(0, |range| range.file_offset),
        filename: strings.id_of(piece.name),
        build_id: piece.build.as_deref().map_or(0, |id| strings.id_of(id)),
        // Tell readers that the profile is symbolized, so that they don't look for the mapped files.
        has_functions: true,
        has_filenames: true,
        has_line_numbers: true,
        has_inline_frames: true,
    }
}
