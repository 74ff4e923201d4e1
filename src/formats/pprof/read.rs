//! Reads pprof's protocol buffer. Every sample type becomes an event, and every combination of labels a thread.
//!
//! * A type `samples/count` holds the number of samples for the type after it. The type that pprof shows by default
//!   (`default_sample_type`, or else the last) becomes the first event.
//! * Labels give a sample's process, thread and time.
//! * A location with several lines is a function and the calls inlined in it.
//! * `drop_frames` and `keep_frames` say which frames viewers should hide. We leave these frames out.
//! * A sample without locations gets an unknown function.
//!
//! Samples refer to locations, and a location can have any number of lines, so a small file can ask for a huge number
//! of frames. That number is therefore limited in proportion to the file's size.

use super::dropped::{Dropped, DroppedFunctions, kept_locations};
use super::messages::{LabelMessage, PprofSample, ValueType};
use super::tables::{Tables, is_pid, is_tid};
use crate::analysis::named_frames::{LocationFrames, NamedFrames, StatedFrame};
use crate::analysis::namesakes::{LineAndColumn, read_position};
use crate::analysis::quantity::counted;
use crate::bytes::protobuf::{FieldValue, Fields, inner};
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warning, Warnings};
use crate::model::about::{About, SampleValue, TimeExtent, TimeLabel, ValueTypes, join_extents};
use crate::model::process::BuildId;
use crate::model::stacks::{Counting, Profile, Row, Sampling, Track, Unit};
use crate::model::{Nanos, Pid, Tid};
use prost::Message;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of events whose value type has no name.
const UNNAMED: &str = "values";

/// True if an input looks like an unpacked pprof profile: the types of all fields fit the format, there are at least
/// two fields, one of them is a value type, and one holds a message that isn't empty.
pub fn sniff(head: &[u8]) -> bool {
    let mut fields = Fields::new(head);
    let (mut value_types, mut fitting_fields, mut has_message) = (0, 0, false);
    loop {
        // `head` may end within a field, which `cut` then returns. If that field is large, such as a location with
        // thousands of inlined calls or a sample with thousands of locations, it counts as fitting if its start looks
        // right. The call of `next` below then fails, which ends the loop.
        if let Some((tag @ 2..=5, message)) = fields.cut()
            && (is_start_of_message(message) || tag == 2 && is_start_of_long_sample(message))
        {
            fitting_fields += 1;
            has_message = true;
        }
        let Some(Ok((tag, value))) = fields.next() else { break };
        let fits = match tag {
            // `sample_type` and `period_type`.
            1 | 11 => matches!(value, FieldValue::Bytes(message) if is_value_type(message)),
            // Messages and texts, which are never numbers: `number` returns 0 for them.
            2..=6 | 16 => value.number() == 0,
            // Numbers, for which `bytes` is empty.
            7..=10 | 12 | 14 | 15 => value.bytes().is_empty(),
            // `comment`: a number, or bytes with several of them.
            13 => true,
            // Later versions may have more fields, but the value types come first.
            _ => value_types > 0,
        };
        if !fits {
            return false;
        }
        fitting_fields += 1;
        value_types += u32::from(tag == 1);
        // A value type without name and unit is an empty field, which any protocol buffer may have.
        has_message |= (1..=5).contains(&tag) && !value.bytes().is_empty();
    }
    value_types > 0 && fitting_fields > 1 && has_message
}

/// True if `bytes` looks like the start of a message that is cut off: its first eight fields have numbers that the
/// format uses.
fn is_start_of_message(bytes: &[u8]) -> bool {
    const FIELDS: usize = 8;
    inner(bytes).take(FIELDS).filter(|(tag, _)| (1..=10).contains(tag)).count() == FIELDS
}

/// True if `bytes` looks like the start of a sample that is cut off in its list of locations, which usually is its first
/// field.
fn is_start_of_long_sample(bytes: &[u8]) -> bool {
    const FEWEST_BYTES: usize = 1000;
    matches!(Fields::new(bytes).cut(), Some((1, locations)) if locations.len() >= FEWEST_BYTES && are_varints(locations))
}

/// True if `bytes` can be a list of numbers: none of them, not even one that is cut off, has more than ten bytes.
fn are_varints(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte < 0x80).all(|leading| leading.len() < 10)
}

/// True if `message` may be a `ValueType`: it has at most two fields, both string indices. An index of 0 may be
/// omitted.
fn is_value_type(message: &[u8]) -> bool {
    let mut count = 0;
    for field in Fields::new(message) {
        count += 1;
        if count > 2 || !matches!(field, Ok((1 | 2, FieldValue::Number(_)))) {
            return false;
        }
    }
    true
}

/// Reads a profile that has already been decompressed.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let tables = Tables::read(bytes, warnings);
    if tables.profile.string_table.is_empty() {
        return Err(Error::new("is truncated: it has no string table"));
    }
    let mut profile = Profile::empty(options.keep);
    let events = events(&tables, &mut profile);
    let dropped = DroppedFunctions::compile(&tables, warnings);
    let frames = frames(bytes.len(), &tables, &dropped, options.columns, &mut profile);
    let mut reading = PprofReading {
        frames,
        dropped: dropped.locations(&tables),
        tables: &tables,
        events,
        profile,
        sampled: None,
        // Samples with different labels can only be kept apart if the labels are kept.
        keeps_labels: options.apart || options.labels,
        samples_without_labels: 0,
        number_labels: BTreeMap::new(),
        time_label: None,
        unfit_values: 0,
        skipped_labels: Skipped::new("label"),
    };
    let mut skipped = Skipped::new("sample");
    let mut sample = PprofSample::default();
    for encoded in &tables.samples {
        sample.clear();
        let decoded = sample.merge(*encoded).map_err(|error| Error::new("the sample is damaged").because(error));
        if let Err(error) = decoded.and_then(|()| reading.add_sample(&sample)) {
            skipped.add(error);
        }
    }
    warnings.extend(skipped.into_warning());
    warnings.extend(reading.skipped_labels.into_warning());
    warnings.extend(unfit_values(reading.unfit_values, tables.profile.sample_type.len()));
    reading.profile.about = recording_facts(&tables, reading.sampled);
    reading.profile.about.samples_without_labels = reading.samples_without_labels;
    let values = value_types(&tables, &reading.events, reading.number_labels, &reading.profile);
    let values = ValueTypes { time_label: reading.time_label, ..values };
    reading.profile.about.values = Some(values);
    Ok(reading.profile)
}

/// The warning that `samples` samples don't have exactly one value for each of `types` value types. `None` for 0
/// samples.
fn unfit_values(samples: u64, types: usize) -> Option<Warning> {
    if samples == 0 {
        return None;
    }
    let (samples, types) = (counted(samples, "sample"), counted(types as u64, "value type"));
    Some(Warning::new(format!(
        "{samples} with more or fewer values than the profile's {types}; missing values count as 0, surplus values \
         were skipped"
    )))
}

/// An event, and which of a sample's values are its weight and its sample count.
struct EventValues {
    /// The index of the event in the profile.
    series: usize,
    /// The index of the weight among a sample's values.
    value: usize,
    /// The index of the sample count among a sample's values, which may be the same as `value`. `None` if the file
    /// doesn't state sample counts for this event.
    count: Option<usize>,
    /// Factor from the file's unit to the event's unit, such as 1000 from microseconds to nanoseconds.
    scale: u64,
}

/// Creates an event for each value type, except for types that only count the samples of the next type. The type that
/// viewers show by default comes first.
fn events(tables: &Tables<'_>, profile: &mut Profile) -> Vec<EventValues> {
    let types = &tables.profile.sample_type;
    let mut indices: Vec<usize> = (0..types.len()).filter(|index| !counts_next(tables, *index)).collect();
    let default = tables.profile.default_sample_type;
    let is_default = |index: &usize| default != 0 && types[*index].r#type == default;
    // Move the type that viewers show by default to the front. If the file names none, that is the last type. The other
    // types keep their order.
    if let Some(default) = indices.iter().position(is_default).or(indices.len().checked_sub(1)) {
        indices[..=default].rotate_right(1);
    }
    indices.into_iter().map(|index| EventValues::new(tables, index, profile)).collect()
}

/// If the values of this type are sample counts, returns the name of the event whose samples they count; `None` for
/// other types. The name is empty if the type is just called `samples`, which may count the samples of any event.
fn counted_event(tables: &Tables<'_>, value_type: ValueType) -> Option<String> {
    if tables.string(value_type.unit) != b"count" {
        return None;
    }
    let name = tables.text(value_type.r#type);
    if let Some(event) = name.strip_suffix(":samples") {
        return Some(event.to_owned());
    }
    if name == "samples" || name == "sample" { Some(String::new()) } else { None }
}

/// True if the value type at this index holds the sample counts of the type after it. It doesn't if the type after it
/// holds sample counts, too: these need no counts of their own.
fn counts_next(tables: &Tables<'_>, index: usize) -> bool {
    let Some(event) = counted_event(tables, tables.profile.sample_type[index]) else { return false };
    let Some(next) = tables.profile.sample_type.get(index + 1) else { return false };
    let is_event = event.is_empty() || tables.string(next.r#type) == event.as_bytes();
    is_event && counted_event(tables, *next).is_none()
}

impl EventValues {
    /// Creates the event of the value type at this index.
    fn new(tables: &Tables<'_>, index: usize, profile: &mut Profile) -> Self {
        let value_type = tables.profile.sample_type[index];
        let ValueType { r#type: name, unit } = value_type;
        let (scale, unit) = Unit::parse_word(&tables.text(unit));
        let mut name = tables.text(name);
        if name.is_empty() {
            name.push_str(UNNAMED);
        }
        // Two types may have the same name and different units, as in profiles of lock contention. Names of events must
        // differ, so the second one gets its unit as a suffix.
        if profile.find_series(&name).is_some() {
            name += &format!(" ({})", tables.text(value_type.unit));
        }
        let series = profile.series_named(&name, unit);
        if let Ok(period) = u64::try_from(tables.profile.period)
            && period > 0
            && is_sampled_by(tables, value_type)
        {
            profile.series[series].sampling = Some(Sampling::Period(period.saturating_mul(scale)));
        }
        // The index of the event's sample counts: that of the type before it, or its own.
        let count = if index > 0 && counts_next(tables, index - 1) {
            Some(index - 1)
        } else if counted_event(tables, value_type).is_some() {
            Some(index)
        } else {
            // Nothing in the file says how many samples the weights stand for.
            profile.series[series].counting = Counting::Unknown;
            None
        };
        // Rows of an event without sample counts count as one sample each.
        profile.series[series].uncounted = count.is_none();
        Self { series, value: index, count, scale }
    }
}

/// True if the sampling period of the profile is that of this value type: both have the same name, or they have the
/// same unit and the type's name ends in `_` and the period's name. In Go's heap profiles, the period `space` is that
/// of `inuse_space` and `alloc_space`.
fn is_sampled_by(tables: &Tables<'_>, value_type: ValueType) -> bool {
    let period_type = tables.profile.period_type.unwrap_or_default();
    let (name, period) = (tables.string(value_type.r#type), tables.string(period_type.r#type));
    if name == period {
        return true;
    }
    let is_same_unit = tables.string(value_type.unit) == tables.string(period_type.unit);
    is_same_unit && name.strip_suffix(period).is_some_and(|prefix| prefix.ends_with(b"_"))
}

/// The frames of all locations, one for each line that isn't dropped. Inlined functions get the module and address of
/// the function that they are inlined in. `len` is the size of the file in bytes, which limits the number of frames.
fn frames(
    len: usize,
    tables: &Tables<'_>,
    dropped: &DroppedFunctions,
    keep_columns: bool,
    profile: &mut Profile,
) -> LocationFrames {
    let (mut frames, mut named) = (LocationFrames::new("file", len), NamedFrames::default());
    for location in &tables.profile.location {
        let mapping = tables.mapping(location.mapping_id).cloned().unwrap_or_default();
        // 0 means that the address is unknown.
        let addr = if location.address == 0 { None } else { Some(mapping.address_in_file(location.address)) };
        let (module, build) = (tables.string(mapping.filename), tables.string(mapping.build_id));
        // What all frames of the location have in common. A location without lines gets this as its only frame.
        let common = StatedFrame { module, build, addr, ..StatedFrame::default() };
        let lines = location.line.iter().skip(dropped.dropped_lines(location, tables)).map(|line| {
            let function = tables.function(line.function_id).copied().unwrap_or_default();
            let (name, system_name) = (tables.string(function.name), tables.string(function.system_name));
            let start_line = u32::try_from(function.start_line).unwrap_or(0);
            let (line, column) = line.position();
            // The names tell what the stated position means: the system name may end in the column where the function
            // starts, and the position of an anonymous function may be that of its start instead of the executed code.
            let position = read_position(LineAndColumn { line, column }, start_line, name, system_name);
            StatedFrame {
                function: if name.is_empty() { system_name } else { name },
                file: tables.string(function.filename),
                line: position.executed.line,
                column: if keep_columns { position.executed.column } else { 0 },
                start: (position.start.line, position.start.column),
                ..common
            }
        });
        frames.add(location.id, common, lines, &mut named, profile);
    }
    frames
}

struct PprofReading<'t, 'd> {
    tables: &'t Tables<'d>,
    frames: LocationFrames,
    dropped: FxHashMap<u64, Dropped>,
    events: Vec<EventValues>,
    profile: Profile,
    sampled: Option<TimeExtent>,
    /// True if all labels of samples are kept, so that samples with different labels stay separate. Otherwise, only the
    /// labels for process, thread, CPU and time are used.
    keeps_labels: bool,
    /// The number of samples with labels that are not kept.
    samples_without_labels: u64,
    /// The unit of each label whose values are numbers.
    number_labels: BTreeMap<Box<str>, Box<str>>,
    /// The label that holds the times of samples; `None` if there is none so far.
    time_label: Option<TimeLabel>,
    /// The number of samples that don't have one value for each value type.
    unfit_values: u64,
    /// Labels that can't be kept, because their sample has another one with the same key.
    skipped_labels: Skipped,
}

impl PprofReading<'_, '_> {
    /// Adds a row for each event in which the sample has a value. Fails if the sample refers to a location that doesn't
    /// exist, or if the stacks of all samples read so far have too many frames.
    fn add_sample(&mut self, sample: &PprofSample) -> Result<()> {
        let kept = kept_locations(&sample.location_id, &self.dropped);
        let stack = match self.frames.stack(kept, &mut self.profile)? {
            // A sample without locations still counts, with a single frame that says that its stack is unknown.
            None => Some(self.profile.unknown_stack()),
            stack => stack,
        };
        let SampleOwner { track, time } = self.owner(sample);
        let track = self.profile.track(track);
        self.sampled = join_extents(self.sampled, time.map(TimeExtent::from_moment));
        self.unfit_values += u64::from(sample.value.len() != self.tables.profile.sample_type.len());
        let value_at = |index: usize| sample.value.get(index).copied().unwrap_or(0);
        for event in &self.events {
            let value = value_at(event.value);
            let weight = value.unsigned_abs().saturating_mul(event.scale);
            let count = match event.count {
                Some(index) => value_at(index).unsigned_abs(),
                // The file doesn't state how many samples the weight stands for, so the weight counts as one sample.
                None => u64::from(weight > 0),
            };
            let row = Row { track, stack, weight, count, time };
            if value < 0 {
                self.profile.push_negative(event.series, row);
            // An event for which the sample has the value 0 gets no row.
            } else if weight > 0 || count > 0 {
                self.profile.push(event.series, row);
            }
        }
        Ok(())
    }

    /// Finds out the thread and the time of a sample from its labels.
    fn owner(&mut self, sample: &PprofSample) -> SampleOwner {
        let (mut track, mut time, mut kept_labels) = (Track::default(), None, BTreeMap::new());
        let mut has_unkept_label = false;
        for label in &sample.label {
            let key = self.tables.string(label.key);
            let text = self.tables.string(label.str);
            match key {
                key if is_pid(key) => track.pid = label.id(self.tables).map(Pid),
                key if is_tid(key) => track.tid = label.id(self.tables).map(Tid),
                b"cpu" => track.cpu = label.id(self.tables).and_then(|cpu| u32::try_from(cpu).ok()),
                b"comm" | b"thread" | b"thread_name" | b"thread name" | b"thread.name" if !text.is_empty() => {
                    track.comm = text.to_owned();
                }
                b"time" | b"timestamp" | b"end_timestamp_ns" if label.num > 0 => {
                    let unit = self.tables.text(label.num_unit);
                    // A number without a unit of time counts as nanoseconds.
                    let scale = match Unit::parse_word(&unit) {
                        (scale, Unit::Nanos) => scale,
                        _ => 1,
                    };
                    time = Some(Nanos(label.num.unsigned_abs().saturating_mul(scale)));
                    // The first label with a time decides under which key and in which unit times are written again.
                    if self.time_label.is_none() {
                        self.time_label = Some(TimeLabel { key: self.tables.text(label.key), unit, scale });
                    }
                }
                // In files that jitgraft wrote, this label names the event to which the sample belongs. The label isn't
                // needed, because the sample's values of the other events are 0.
                b"event" if self.profile.find_series(&String::from_utf8_lossy(text)).is_some() => {}
                _ if self.keeps_labels => self.add_label(label, &mut kept_labels),
                _ => has_unkept_label = true,
            }
        }
        self.samples_without_labels += u64::from(has_unkept_label);
        if !kept_labels.is_empty() {
            track.labels = Some(Arc::new(kept_labels));
        }
        SampleOwner { track, time }
    }

    /// Adds a label to those of a sample. A sample may have several values for one key; only the first is kept.
    fn add_label(&mut self, label: &LabelMessage, labels: &mut BTreeMap<Box<str>, Box<str>>) {
        let key = self.tables.text(label.key);
        if labels.contains_key(key.as_str()) {
            let why = format!("a sample has several labels '{key}'; only the first was kept");
            self.skipped_labels.add(Error::new(why));
            return;
        }
        let mut value = self.tables.text(label.str);
        // A label without a text has a number.
        if value.is_empty() {
            let unit = self.tables.text(label.num_unit);
            // The first sample with this key decides the key's unit.
            let key_unit = self.number_labels.entry(key.as_str().into()).or_insert_with(|| unit.as_str().into());
            value = label.num.to_string();
            // A number in another unit than the key's becomes text.
            if **key_unit != *unit {
                value = format!("{value} {unit}");
            }
        }
        labels.insert(key.into(), value.into());
    }
}

/// The thread and the time of a sample.
struct SampleOwner {
    track: Track,
    time: Option<Nanos>,
}

/// The profile's value types and its hints for viewers, so that they can be written again.
fn value_types(
    tables: &Tables<'_>,
    events: &[EventValues],
    number_labels: BTreeMap<Box<str>, Box<str>>,
    profile: &Profile,
) -> ValueTypes {
    let file = &tables.profile;
    let mut types = Vec::with_capacity(file.sample_type.len());
    // Take each type for one that only holds sample counts. The loop below corrects the types that hold an event's
    // weight.
    for &ValueType { r#type: name, unit } in &file.sample_type {
        let (name, unit) = (tables.text(name), tables.text(unit));
        types.push(SampleValue { name, unit, event: None, is_count: true, scale: 1 });
    }
    for event in events {
        let name = &profile.series[event.series].name;
        let weight = &mut types[event.value];
        (weight.event, weight.is_count, weight.scale) = (Some(name.clone()), false, event.scale);
        // If the event has a separate type for its sample counts, that type belongs to the event, too. If its weight is
        // the sample count (`count` is `value`), there is only the one type, which is already done.
        if let Some(count) = event.count
            && count != event.value
        {
            types[count].event = Some(name.clone());
        }
    }
    let ValueType { r#type: name, unit } = file.period_type.unwrap_or_default();
    let has_period_type = name != 0 || unit != 0;
    ValueTypes {
        types,
        default_type: tables.text(file.default_sample_type),
        period_type: has_period_type.then(|| (tables.text(name), tables.text(unit))),
        period: file.period,
        drop_frames: tables.text(file.drop_frames),
        keep_frames: tables.text(file.keep_frames),
        comments: file.comment.iter().map(|comment| tables.text(*comment)).collect(),
        doc_url: tables.text(file.doc_url),
        number_labels,
        time_label: None,
    }
}

/// What the file says about the whole recording: its time, its duration, and the mapped files. `sampled` has the times
/// of the first and last sample on the recording's own clock. If it is `None`, no sample has a time, and 0 on that
/// clock is the start of the profile.
fn recording_facts(tables: &Tables<'_>, sampled: Option<TimeExtent>) -> About {
    let mut about = About { sampled, ..About::default() };
    let start = tables.profile.time_nanos;
    let duration = u64::try_from(tables.profile.duration_nanos).unwrap_or(0);
    if start > 0 {
        let first_sample = sampled.map_or(0, |sampled| sampled.first.0);
        // The start of the profile counts as the time of its first sample.
        about.epoch = Some(i128::from(start) - i128::from(first_sample));
    }
    if sampled.is_none() && (start > 0 || duration > 0) {
        about.sampled = Some(TimeExtent { first: Nanos(0), last: Nanos(duration) });
    }
    for mapping in &tables.profile.mapping {
        let name = tables.string(mapping.filename);
        if !name.is_empty() {
            let module = about.modules.entry(name.to_vec()).or_default();
            module.build_id.add(BuildId::from_digits(tables.string(mapping.build_id)));
            module.map(name, mapping.memory_start..mapping.memory_limit, mapping.file_offset);
        }
    }
    about
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::named_frames::FRAMES_PER_BYTE;
    use prost::encoding::encode_varint;

    fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (tag, bytes) in fields {
            out.push(*tag as u8 * 8 + 2);
            encode_varint(bytes.len() as u64, &mut out);
            out.extend(*bytes);
        }
        out
    }

    fn numbers(fields: &[(u8, u64)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (tag, number) in fields {
            out.push(tag * 8);
            encode_varint(*number, &mut out);
        }
        out
    }

    fn read_all(bytes: &[u8]) -> (Profile, Vec<String>) {
        let mut warnings = Warnings::new();
        let profile = read(bytes, &ReadOptions::default(), &mut warnings).unwrap();
        (profile, warnings.iter().map(ToString::to_string).collect())
    }

    /// Strings 1 to 6: samples, count, cpu, nanoseconds, f, thread.
    fn strings() -> Vec<u8> {
        let strings: [&[u8]; 7] = [b"", b"samples", b"count", b"cpu", b"nanoseconds", b"f", b"thread"];
        strings.iter().flat_map(|string| message(&[(6, string)])).collect()
    }

    fn types() -> Vec<u8> {
        message(&[(1, &numbers(&[(1, 1), (2, 2)])), (1, &numbers(&[(1, 3), (2, 4)]))])
    }

    #[test]
    fn packed_and_single_numbers_mean_the_same() {
        let tables =
            [message(&[(4, &[numbers(&[(1, 1)]), message(&[(4, &numbers(&[(1, 1)]))])].concat())]), strings()].concat();
        let function = message(&[(5, &numbers(&[(1, 1), (2, 5)]))]);
        let single = message(&[(2, &numbers(&[(1, 1), (1, 1), (2, 3), (2, 70)]))]);
        let packed = message(&[(2, &message(&[(1, &[1, 1]), (2, &[3, 70])]))]);
        for sample in [single, packed] {
            let bytes = [types(), sample, function.clone(), tables.clone()].concat();
            assert!(sniff(&bytes));
            let (profile, said) = read_all(&bytes);
            let row = profile.series[0].rows[0];
            assert_eq!((profile.series[0].name.as_str(), row.weight, row.count), ("cpu", 70, 3));
            assert_eq!((profile.frames_up(row.stack).count(), said), (2, Vec::new()));
        }
    }

    #[test]
    fn a_profile_is_known_whose_first_location_is_longer_than_what_is_looked_at() {
        let lines: Vec<u8> = (0..16_000).flat_map(|_| message(&[(4, &numbers(&[(1, 1), (2, 7)]))])).collect();
        let location = message(&[(4, &[numbers(&[(1, 1)]), lines].concat())]);
        let bytes = [types(), location, strings()].concat();
        assert!(bytes.len() > 1 << 16 && sniff(&bytes[..1 << 16]) && sniff(&bytes));
        let one_type = message(&[(1, &numbers(&[(1, 1), (2, 2)]))]);
        assert!(!sniff(&[one_type, b"\x22\xff\x7f".to_vec(), vec![b'a'; 1000]].concat()), "a text behind it");
    }

    #[test]
    fn a_profile_is_known_whose_first_sample_is_longer_than_what_is_looked_at() {
        for id in [1, 200, 1 << 40] {
            let mut locations = Vec::new();
            (0..100_000).for_each(|_| prost::encoding::encode_varint(id, &mut locations));
            let sample = message(&[(2, &message(&[(1, &locations), (2, &[3, 70])]))]);
            let bytes = [types(), sample, strings()].concat();
            assert!(sniff(&bytes[..1 << 16]) && sniff(&bytes), "{id}");
        }
        let one_type = message(&[(1, &numbers(&[(1, 1), (2, 2)]))]);
        let no_numbers = message(&[(2, &message(&[(1, &[0xff; 100_000])]))]);
        assert!(!sniff(&[one_type, no_numbers].concat()[..1 << 16]));
    }

    #[test]
    fn a_type_of_values_may_have_neither_name_nor_unit() {
        // Field numbers of pprof's messages: a profile has sample types in field 1, samples in 2 and locations in 4. A
        // sample has its location in 1 and its value in 2; a location has its ID in 1 and its address in 3.
        let sample = message(&[(2, &numbers(&[(1, 1), (2, 7)]))]);
        let location = message(&[(4, &numbers(&[(1, 1), (3, 0x1f)]))]);
        let bytes = [message(&[(1, &[])]), sample, location, strings()].concat();
        assert!(sniff(&bytes));
        let (profile, said) = read_all(&bytes);
        assert_eq!(
            (profile.series[0].name.as_str(), profile.series[0].rows[0].weight, said),
            ("values", 7, Vec::new())
        );
        // UTF-16 text: an empty line, then letters. Its first two bytes are also an empty field 1 (`sample_type`), as
        // in the profile above.
        assert!(!sniff(b"\n\0\n\0h\0i\0"));
    }

    #[test]
    fn a_small_file_cannot_ask_for_more_frames_than_it_could_show() {
        let lines: Vec<u8> = (0..2000).flat_map(|_| message(&[(4, &numbers(&[(1, 1)]))])).collect();
        let location = message(&[(4, &[numbers(&[(1, 1)]), lines].concat())]);
        let sample = message(&[(2, &message(&[(1, &[1; 5000]), (2, &[1, 1])]))]);
        let bytes = [types(), sample, location, strings()].concat();
        let (profile, said) = read_all(&bytes);
        assert!(profile.series[0].rows.is_empty() && said[0].contains("more frames than"), "{said:?}");
        assert!(profile.stack_count() as u64 <= FRAMES_PER_BYTE * bytes.len() as u64);
    }

    #[test]
    fn a_reference_to_nothing_is_counted() {
        let sample = |location: u64, value: u64| message(&[(2, &numbers(&[(1, location), (2, value), (2, value)]))]);
        let location = message(&[(4, &numbers(&[(1, 1), (3, 0x1f)]))]);
        let bytes = [types(), sample(1, 1), sample(9, 1), sample(1, u64::MAX), location, strings()].concat();
        let (profile, said) = read_all(&bytes);
        let series = &profile.series[0];
        assert_eq!((series.rows.len(), series.negative.len(), series.negative[0].weight), (1, 1, 1));
        assert!(said[0].contains("1 sample skipped") && said[0].contains("location 9"), "{said:?}");
        let cut = read(&bytes[..bytes.len() - strings().len()], &ReadOptions::default(), &mut Warnings::new());
        assert!(cut.unwrap_err().to_string().contains("no string table"));
    }
}
