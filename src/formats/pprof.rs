//! pprof's gzipped protocol buffer (`go tool pprof`, Grafana, Parca, speedscope read it): all events as value types of one
//! profile, threads as labels.
//!
//! Samples of one thread and stack are one sample: the format has no times. Its viewers show what weighs most of the
//! first mapping, so that is the program's own file.
//!
//! Field numbers are those of <https://github.com/google/pprof/blob/main/proto/profile.proto>.

mod dropped;
mod messages;
mod read;
mod rewrite;
mod tables;

pub use read::{read, sniff};
pub use rewrite::open as open_unsymbolized;

use crate::analysis::function_files::FunctionFiles;
use crate::analysis::label;
use crate::analysis::mapped_pieces::{MappedPieces, Piece};
use crate::analysis::namesakes::system_name;
use crate::contract::format::WriteOptions;
use crate::contract::rows::{clamp, command_line};
use crate::error::{Error, Result};
use crate::model::Nanos;
use crate::model::about::{TimeExtent, ValueTypes};
use crate::model::stacks::{FrameId, Profile, Row, Series, StackId, Track, TrackId, Weight};
use flate2::{Compression, write::GzEncoder};
use messages::{
    LabelMessage, PprofFunction, PprofLine, PprofLocation, PprofMapping, PprofProfile, PprofSample, StringTable,
    ValueType,
};
use prost::Message;
use prost::encoding::message::encode as encode_tagged;
use rustc_hash::FxHashMap;
use std::io::Write;

/// Writes all events.
pub fn write(profile: &Profile, _options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let PprofDraft { mut file, sums, labels } = build(profile);
    let mut gzip = GzEncoder::new(out, Compression::fast());
    let values = file.sample_type.len();
    if values > MANY_TYPES && values.saturating_mul(sums.len()) > MOST_VALUES {
        let message = format!(
            "pprof cannot hold this: each of {} samples would have {values} values, one for each type",
            sums.len()
        );
        return Err(Error::new(message).with_remedy(Some("choose some with --event, or another format".to_owned())));
    }
    let types = PprofProfile { sample_type: std::mem::take(&mut file.sample_type), ..PprofProfile::default() };
    let mut bytes = types.encode_to_vec();
    for sum in &sums {
        encode_tagged(SAMPLE, &sum.message(profile, &labels), &mut bytes);
        if bytes.len() >= PIECE {
            gzip.write_all(&bytes)?;
            bytes.clear();
        }
    }
    file.encode_raw(&mut bytes);
    gzip.write_all(&bytes)?;
    gzip.finish()?;
    Ok(())
}

/// The number of [`PprofProfile::sample`].
const SAMPLE: u32 = 2;

/// So much is packed at once.
const PIECE: usize = 1 << 20;

/// A sample has a value for each type, most of them 0: so many may all samples together have.
const MOST_VALUES: usize = 1 << 28;

/// Profilers count a few dozen things.
const MANY_TYPES: usize = 256;

/// A file, whose samples are not spelled out yet: each has the list of all its frames, which may be far more than all
/// else together.
struct PprofDraft {
    file: PprofProfile,
    sums: Vec<SampleSum>,
    /// By event and thread.
    labels: FxHashMap<(usize, TrackId), Vec<LabelMessage>>,
}

/// A sample.
struct SampleSum {
    /// The event and thread whose labels it has.
    owner: (usize, TrackId),
    stack: Option<StackId>,
    values: Vec<i64>,
}

impl SampleSum {
    fn message(&self, profile: &Profile, labels: &FxHashMap<(usize, TrackId), Vec<LabelMessage>>) -> PprofSample {
        let location_id = profile.frames_up(self.stack).map(location_id).collect();
        let label = labels.get(&self.owner).cloned().unwrap_or_default();
        PprofSample { location_id, value: self.values.clone(), label }
    }
}

fn build(profile: &Profile) -> PprofDraft {
    let (mut strings, mut file) = (StringTable::new(), PprofProfile::default());
    let names = profile.series.iter().map(|series| &*series.name);
    let stated = profile.about.values.as_ref().filter(|values| values.are_of(names));
    let places = match stated {
        Some(stated) => stated_places(profile, stated, &mut strings, &mut file),
        None => own_places(profile, &mut strings, &mut file),
    };
    locations(profile, &mut strings, &mut file);
    let mut draft = PprofDraft { file, sums: Vec::new(), labels: FxHashMap::default() };
    draft.add_samples(profile, &places, stated.is_some(), &mut strings);
    head(profile, stated, &mut strings, &mut draft.file);
    draft.file.string_table = strings.into_list();
    draft
}

/// The values of samples for events that aren't a pprof profile's: each event has two, or one if its weight is a number
/// of samples.
fn own_places(profile: &Profile, strings: &mut StringTable, file: &mut PprofProfile) -> Vec<ValuePlaces> {
    let count = strings.id("count");
    let counted = profile.series.iter().filter(|series| series.is_counted()).count();
    // An event may be called so itself.
    let is_taken = profile.series.iter().any(|series| series.name == "samples");
    let mut places = Vec::new();
    for series in &profile.series {
        let counts = series.is_counted().then(|| {
            let samples =
                if counted > 1 || is_taken { format!("{}:samples", series.name) } else { "samples".to_owned() };
            file.sample_type.push(ValueType { r#type: strings.id(&samples), unit: count });
            file.sample_type.len() - 1
        });
        file.sample_type.push(value_type(series, strings));
        places.push(ValuePlaces { counts, weights: file.sample_type.len() - 1, scale: 1 });
    }
    places
}

/// The values of samples as the pprof profile that was read has them, those of events that were left out excepted.
fn stated_places(
    profile: &Profile,
    stated: &ValueTypes,
    strings: &mut StringTable,
    file: &mut PprofProfile,
) -> Vec<ValuePlaces> {
    let mut places = vec![ValuePlaces { counts: None, weights: 0, scale: 1 }; profile.series.len()];
    let mut by_name = FxHashMap::default();
    for (number, series) in profile.series.iter().enumerate() {
        by_name.entry(&*series.name).or_insert(number);
    }
    for value in &stated.types {
        let event = value.event.as_deref().and_then(|event| by_name.get(event));
        let Some(place) = event.map(|event| &mut places[*event]) else { continue };
        if value.is_count {
            place.counts = Some(file.sample_type.len());
        } else {
            (place.weights, place.scale) = (file.sample_type.len(), value.scale);
        }
        file.sample_type.push(ValueType { r#type: strings.id(&value.name), unit: strings.id(&value.unit) });
    }
    places
}

/// The places of an event's values in a sample.
#[derive(Clone, Copy)]
struct ValuePlaces {
    /// The number of samples, if there is one by itself.
    counts: Option<usize>,
    weights: usize,
    /// The number of the event's units that one of the file's is.
    scale: u64,
}

fn value_type(series: &Series, strings: &mut StringTable) -> ValueType {
    ValueType { r#type: strings.id(&series.name), unit: strings.id(series.unit.word()) }
}

/// When, how long, how often, and what the profile that was read asks its viewers for.
fn head(profile: &Profile, stated: Option<&ValueTypes>, strings: &mut StringTable, file: &mut PprofProfile) {
    let about = &profile.about;
    let sampled = about.sampled.or_else(|| extent(profile.series.iter().flat_map(|series| &series.rows)));
    file.duration_nanos = sampled.map_or(0, |sampled| clamp(sampled.duration()));
    let wall = about.epoch.zip(sampled).map(|(epoch, sampled)| epoch + i128::from(sampled.first.0));
    file.time_nanos = wall.and_then(|wall| i64::try_from(wall).ok()).unwrap_or(0);
    if let Some(stated) = stated {
        let period_type = stated.period_type.as_ref();
        file.period_type =
            period_type.map(|(name, unit)| ValueType { r#type: strings.id(name), unit: strings.id(unit) });
        file.period = stated.period;
        file.default_sample_type = strings.id(&stated.default_type);
        file.drop_frames = strings.id(&stated.drop_frames);
        file.keep_frames = strings.id(&stated.keep_frames);
    } else if let Some(series) = profile.series.first() {
        let counted = value_type(series, strings);
        (file.period_type, file.period) = (Some(counted), clamp(series.period()));
        // Without it, viewers begin with the last one: of several events, the least.
        file.default_sample_type = counted.r#type;
    }
    file.comment.extend(command_line(&about.command).map(|command| strings.id(&command)));
    file.comment.extend(about.notes.iter().map(|note| strings.id(note)));
    if about.lost > 0 {
        file.comment.push(strings.id(&format!("{} samples were lost", about.lost)));
    }
}

fn extent<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<TimeExtent> {
    rows.filter_map(|row| row.time).map(|time: Nanos| TimeExtent::at(time)).reduce(TimeExtent::with)
}

impl PprofDraft {
    /// Adds the samples of all events. Those of one thread and stack are one sample if they are `joined`; else each event
    /// has its own, with its name as a label.
    fn add_samples(&mut self, profile: &Profile, places: &[ValuePlaces], joined: bool, strings: &mut StringTable) {
        let mut numbers: FxHashMap<(TrackId, Option<StackId>), usize> = FxHashMap::default();
        for (at, (series, places)) in profile.series.iter().zip(places).enumerate() {
            let owner = if joined { 0 } else { at };
            if !joined {
                numbers.clear();
            }
            let event = (!joined && profile.series.len() > 1).then_some(&*series.name);
            for (row, weight) in series.signed_rows(Weight::Period) {
                let &Row { track, stack, .. } = row;
                let number = *numbers.entry((track, stack)).or_insert(self.sums.len());
                if number == self.sums.len() {
                    self.labels.entry((owner, track)).or_insert_with(|| label(profile.track_of(track), event, strings));
                    let values = vec![0; self.file.sample_type.len()];
                    self.sums.push(SampleSum { owner: (owner, track), stack, values });
                }
                let values = &mut self.sums[number].values;
                if let Some(counts) = places.counts {
                    let count = if weight < 0 { -clamp(row.count) } else { clamp(row.count) };
                    values[counts] = values[counts].saturating_add(count);
                }
                let weight = weight / clamp(places.scale.max(1));
                values[places.weights] = values[places.weights].saturating_add(weight);
            }
        }
    }
}

/// The process of a sample.
fn label(track: &Track, event: Option<&str>, strings: &mut StringTable) -> Vec<LabelMessage> {
    let numbers = [
        ("pid", track.pid.map(|pid| i64::from(pid.0))),
        ("tid", track.tid.map(|tid| i64::from(tid.0))),
        ("cpu", track.cpu.map(i64::from)),
    ];
    let comm = Some(String::from_utf8_lossy(&track.comm)).filter(|comm| !comm.is_empty());
    let mut labels = Vec::new();
    for (key, number) in numbers {
        labels.extend(number.map(|num| LabelMessage { key: strings.id(key), str: 0, num }));
    }
    for (key, text) in [("thread", comm.as_deref()), ("event", event)] {
        labels.extend(text.map(|text| LabelMessage { key: strings.id(key), str: strings.id(text), num: 0 }));
    }
    labels
}

/// Ids must not be 0.
fn location_id(frame: FrameId) -> u64 {
    u64::from(frame.0) + 1
}

/// One location for each frame, one entry for each function. Where only the files of lines are known, there is one for
/// each of these: the format has a file for functions only.
fn locations(profile: &Profile, strings: &mut StringTable, file: &mut PprofProfile) {
    let mut found = Vec::new();
    let mut pieces = MappedPieces::new(profile, &mut |piece| found.push(piece));
    let mut functions: FxHashMap<_, u64> = FxHashMap::default();
    let mut files = FunctionFiles::default();
    files.update(profile);
    for (id, frame) in profile.frames() {
        let source = files.file_of(profile, frame);
        let name = strings.id(&label::function(profile, frame));
        let next = functions.len() as u64 + 1;
        let function_id = *functions.entry((name, frame.module, source, frame.start)).or_insert(next);
        if function_id == next {
            let filename = source.map_or(0, |file| strings.id_of(profile.name_of(file)));
            let start_line = frame.start.line.into();
            let of_column = system_name(&label::function(profile, frame), frame.start.line, frame.start.column);
            let system_name = of_column.map_or(name, |text| strings.id(&text));
            file.function.push(PprofFunction { id: next, name, system_name, filename, start_line });
        }
        let place = pieces.place(profile, frame, &mut |piece| found.push(piece));
        let line = vec![PprofLine { function_id, line: frame.line.into() }];
        let (mapping_id, address) = (place.mapping, place.address);
        file.location.push(PprofLocation { id: location_id(id), mapping_id, address, line });
    }
    file.mapping = (1..).zip(&found).map(|(id, piece)| mapping(id, piece, strings)).collect();
}

fn mapping(id: u64, piece: &Piece<'_>, strings: &mut StringTable) -> PprofMapping {
    let range = piece.range;
    PprofMapping {
        id,
        memory_start: range.map_or(0, |range| range.addr.0),
        memory_limit: range.map_or(0, |range| range.addr.0.saturating_add(range.len)),
        file_offset: range.map_or(0, |range| range.file_offset),
        filename: strings.id_of(piece.name),
        build_id: piece.build.as_deref().map_or(0, |id| strings.id_of(id)),
        // With this flag, readers do not look for the binaries.
        has_functions: true,
        has_filenames: true,
        has_line_numbers: true,
        has_inline_frames: true,
    }
}
