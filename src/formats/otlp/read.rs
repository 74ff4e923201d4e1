//! Reads messages into stacks: each value type becomes an event, each resource a process, each sample one or more rows.

use super::dictionary::{Attribute, Dictionary, entry_at, field_numbers};
use super::message::{Message, Sample, messages};
use super::messages::{CLOCK_KEY, COUNTS, LOST_KEY, NAMES_KEY, OWN_CLOCK, PERF_NAMES};
use super::modules::{GNU_BUILD_ID, Modules};
use super::owner::{Owner, Tracks};
use super::version::Notation;
use crate::analysis::category::Category;
use crate::analysis::named_frames::{LocationFrames, NamedFrames, StatedFrame};
use crate::analysis::namesakes::column_in_system_name;
use crate::bytes::protobuf::inner;
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::Nanos;
use crate::model::about::{TimeExtent, join_extents};
use crate::model::stacks::{Counting, FrameKind, Profile, Row, Sampling, StackId, TrackId, Unit};
use crate::model::tier::Tier;

/// The name of events whose value type has no name.
const UNNAMED: &str = "values";

/// Reads messages into one profile.
#[derive(Debug)]
pub(super) struct Reader {
    profile: Profile,
    named: NamedFrames,
    modules: Modules,
    sampled: Option<TimeExtent>,
    /// Whether timestamps are on a clock whose offset from the wall clock is unknown.
    has_own_clock: bool,
    /// See [`ReadOptions::apart`].
    apart: bool,
    skipped: Skipped,
}

impl Reader {
    pub(super) fn new(options: &ReadOptions) -> Self {
        Self {
            profile: Profile::keeping(options.keep),
            named: NamedFrames::default(),
            modules: Modules::default(),
            sampled: None,
            has_own_clock: false,
            apart: options.apart,
            skipped: Skipped::new("sample"),
        }
    }

    /// Returns the profile that was read from all messages.
    pub(super) fn finish(mut self, warnings: &mut Warnings) -> Profile {
        warnings.extend(self.skipped.into_warning());
        let about = &mut self.profile.about;
        about.modules = self.modules.modules;
        about.sampled = self.sampled;
        // Timestamps are nanoseconds since 1970, so the recording's clock starts there.
        about.epoch = if self.sampled.is_some() && !self.has_own_clock { Some(0) } else { None };
        self.profile
    }

    /// Reads a `ProfilesData` message.
    pub(super) fn read_message(&mut self, bytes: &[u8], notation: Notation) -> Result<()> {
        let message = Message::read(bytes, notation)?;
        let frames = frames(bytes.len(), &message, self);
        self.modules.add(&message.dictionary);
        let stacks = vec![None; message.dictionary.stacks.len()];
        let Message { dictionary, resources } = message;
        let mut message = MessageReader { dictionary, frames, stacks, reader: self };
        for resource in resources {
            message.read_resource(resource);
        }
        Ok(())
    }
}

/// The frames of all locations of a message; `len` is the message's size in bytes. Inlined functions get the module and
/// address of the function that they are inlined in.
fn frames(len: usize, Message { dictionary, .. }: &Message<'_>, reader: &mut Reader) -> LocationFrames {
    let mut frames = LocationFrames::new("dictionary", len);
    for (number, location) in (0..).zip(&dictionary.locations) {
        let kind = dictionary.attribute_text(location.attributes(), "profile.frame.type").and_then(frame_kind);
        let tier = dictionary.attribute_text(location.attributes(), "jitgraft.tier");
        let tier = tier.and_then(|word| Tier::from_name(std::str::from_utf8(word).ok()?));
        let mapping = entry_at(&dictionary.mappings, location.mapping).copied();
        // For interpreted code without a mapping, profilers store a line or anything else in the address field.
        let has_address = location.address != 0 && (mapping.is_some() || kind != Some(FrameKind::Jit));
        let mapping = mapping.unwrap_or_default();
        let addr = has_address.then(|| mapping.address_in_file(location.address));
        let module = dictionary.string(mapping.file);
        let build = dictionary.attribute_text(mapping.attributes(), GNU_BUILD_ID).unwrap_or_default();
        let whole = StatedFrame { module, build, addr, kind, tier, ..StatedFrame::default() };
        let lines = location.lines().map(|line| {
            let function = entry_at(&dictionary.functions, line.function).copied().unwrap_or_default();
            let (name, system_name) = (dictionary.string(function.name), dictionary.string(function.system_name));
            let start_line = u32::try_from(function.start_line).unwrap_or(0);
            StatedFrame {
                function: if name.is_empty() { system_name } else { name },
                file: dictionary.string(function.file),
                line: u32::try_from(line.line).unwrap_or(0),
                start: (start_line, column_in_system_name(system_name, name, start_line)),
                ..whole
            }
        });
        frames.add(number, whole, lines, &mut reader.named, &mut reader.profile);
    }
    frames
}

/// The kind of code for a `profile.frame.type`. Anything that isn't compiled ahead of time belongs to a runtime. `None`
/// if the mapping tells more: profilers use `native` also for anonymous memory when they know of no runtime in it.
fn frame_kind(frame_type: &[u8]) -> Option<FrameKind> {
    match frame_type {
        b"" | b"unknown" | b"abort-marker" | b"native" => None,
        b"kernel" => Some(FrameKind::Kernel),
        b"go" | b"rust" => Some(FrameKind::User),
        word => {
            let category = std::str::from_utf8(word).ok().and_then(Category::from_name);
            Some(category.map_or(FrameKind::Jit, Category::kind))
        }
    }
}

/// Reads the resources of one message into the profile of a [`Reader`].
struct MessageReader<'r, 'd> {
    dictionary: Dictionary<'d>,
    frames: LocationFrames,
    /// For each stack of the dictionary, its stack in the profile. The outer `None` means that it wasn't looked up yet,
    /// the inner `None` that it is empty.
    stacks: Vec<Option<Option<StackId>>>,
    reader: &'r mut Reader,
}

/// The values of a sample, with their sample counts and times.
#[derive(Clone, Copy)]
struct SampleValues<'s> {
    values: &'s [i64],
    /// The number of samples in each value, if known.
    counts: Option<&'s [i64]>,
    /// Nanoseconds since 1970.
    times: &'s [u64],
}

/// The event that a profile's value type became.
#[derive(Debug, Clone, Copy)]
struct ProfileType {
    series: usize,
    /// The number of the event's units in one unit of the file, such as 1000 nanoseconds in a microsecond.
    scale: u64,
    /// Whether the values are numbers of samples.
    counts: bool,
}

impl<'d> MessageReader<'_, 'd> {
    fn read_resource(&mut self, message: &'d [u8]) {
        let mut owner = Owner::new(self.reader.apart);
        for resource in messages(message, 1) {
            let about = &mut self.reader.profile.about;
            for attribute in messages(resource, 1) {
                owner.add(&self.dictionary.attribute(attribute), &self.dictionary, about);
            }
        }
        for scope in messages(message, 2) {
            for attribute in messages(scope, 1).flat_map(|scope| messages(scope, 3)) {
                self.read_scope_attribute(&self.dictionary.attribute(attribute), &owner);
            }
            let mut profiles = messages(scope, 2).peekable();
            while let Some(profile) = profiles.next() {
                let counts = profiles.next_if(|next| self.are_counts(next, profile));
                self.read_profile(profile, counts, &owner);
            }
        }
    }

    /// Takes a fact about the recording from an attribute that only jitgraft writes.
    fn read_scope_attribute(&mut self, attribute: &Attribute<'d>, owner: &Owner) {
        match attribute.key {
            NAMES_KEY => self.reader.profile.perf_names |= attribute.text() == Some(PERF_NAMES),
            CLOCK_KEY => self.reader.has_own_clock |= attribute.text() == Some(OWN_CLOCK),
            LOST_KEY => {
                let lost = attribute.number().and_then(|lost| u64::try_from(lost).ok()).unwrap_or(0);
                self.reader.profile.about.add_lost(lost, owner.host());
            }
            _ => {}
        }
    }

    /// Whether `counts` holds the sample counts for the values of `profile`, one for one, as our own writer writes
    /// them.
    fn are_counts(&self, counts: &[u8], profile: &[u8]) -> bool {
        let (counts_name, unit) = self.value_type(messages(counts, 1).next().unwrap_or_default());
        let (name, _) = self.value_type(messages(profile, 1).next().unwrap_or_default());
        if unit != "count" || counts_name.strip_suffix(COUNTS) != Some(&name) {
            return false;
        }
        let (Some(counts), Some(samples)) = (read_samples(counts), read_samples(profile)) else { return false };
        counts.len() == samples.len()
            && counts.iter().zip(&samples).all(|(counts, sample)| counts.matches_sample(sample))
    }

    /// Reads a profile. `counts` is the profile that holds its sample counts, if there is one.
    fn read_profile(&mut self, message: &'d [u8], counts: Option<&'d [u8]>, owner: &Owner) {
        let (mut sample_type, mut period_type, mut period, mut attributes) = (None, None, 0, Vec::new());
        for (tag, value) in inner(message) {
            match tag {
                1 => sample_type = Some(value.bytes()),
                5 => period_type = Some(value.bytes()),
                6 => period = value.number(),
                11 => attributes.extend(value.numbers()),
                _ => {}
            }
        }
        let event = self.event(sample_type.unwrap_or_default(), period_type, period);
        let mut tracks = Tracks::new(owner, self.dictionary.attributes(attributes.into_iter()));
        let mut counts = counts.into_iter().flat_map(|counts| messages(counts, 2));
        for sample in messages(message, 2) {
            let counts = counts.next().and_then(|counts| Sample::read(counts).ok()).map(|counts| counts.values);
            if let Err(error) = self.read_sample(sample, counts.as_deref(), event, &mut tracks) {
                self.reader.skipped.add(error);
            }
        }
    }

    /// The name and the unit of an encoded `ValueType`.
    fn value_type(&self, message: &[u8]) -> (String, String) {
        let [name, unit] = [1, 2].map(|tag| field_numbers(message, tag).last());
        let text = |string: Option<u64>| string.map_or_else(String::new, |index| self.dictionary.text(index));
        (text(name), text(unit))
    }

    /// Finds or creates the event for a profile's value type.
    fn event(&mut self, value_type: &[u8], period_type: Option<&[u8]>, period: u64) -> ProfileType {
        let (mut name, unit_word) = self.value_type(value_type);
        let (scale, unit) = Unit::of_word(&unit_word);
        let mut sampling = None;
        if let Some(period_type) = period_type
            && i64::try_from(period).is_ok_and(|period| period > 0)
        {
            let (period_name, period_word) = self.value_type(period_type);
            if period_name == name && period_word == unit_word {
                sampling = Some(Sampling::Period(period.saturating_mul(scale)));
            } else if let (scale, Unit::Nanos) = Unit::of_word(&period_word) {
                sampling = Some(Sampling::Frequency(1_000_000_000 / period.saturating_mul(scale).max(1)));
            }
        }
        if name.is_empty() {
            name.push_str(UNNAMED);
        }
        let index = self.reader.profile.series_of((&name, &unit));
        let series = &mut self.reader.profile.series[index];
        series.sampling = series.sampling.or(sampling);
        let counts = unit == Unit::Samples && (name == "samples" || name.ends_with(COUNTS));
        ProfileType { series: index, scale, counts }
    }

    fn read_sample(
        &mut self,
        message: &'d [u8],
        counts: Option<&[i64]>,
        event: ProfileType,
        tracks: &mut Tracks<'d>,
    ) -> Result<()> {
        let sample = Sample::read(message)?;
        let stack = match self.stack(sample.stack)? {
            Some(stack) => stack,
            None => self.reader.profile.unknown_stack(),
        };
        let track = tracks.track_id(&sample, &self.dictionary, &mut self.reader.profile);
        let values = SampleValues { values: &sample.values, counts, times: &sample.times() };
        self.add_rows(event, track, stack, values)
    }

    /// Adds the rows of a sample. With times, there is either one value per time, or no value and each time counts as
    /// 1. Without times, the values are sums.
    fn add_rows(&mut self, event: ProfileType, track: TrackId, stack: StackId, sample: SampleValues<'_>) -> Result<()> {
        let SampleValues { values, counts, times } = sample;
        if values.is_empty() && times.is_empty() {
            return Err(Error::new("has neither values nor times"));
        }
        if !values.is_empty() && !times.is_empty() && values.len() != times.len() {
            return Err(Error::new(format!("has {} values and {} times", values.len(), times.len())));
        }
        if times.is_empty() && !event.counts && counts.is_none() {
            let series = &mut self.reader.profile.series[event.series];
            series.uncounted = true;
            series.counting = Counting::Unknown;
        }
        let scale = i64::try_from(event.scale).unwrap_or(i64::MAX);
        for index in 0..values.len().max(times.len()) {
            let signed = values.get(index).copied().unwrap_or(1).saturating_mul(scale);
            let time = times.get(index).map(|time| Nanos(*time));
            let weight = signed.unsigned_abs();
            self.reader.sampled = join_extents(self.reader.sampled, time.map(TimeExtent::of_moment));
            let count = match counts.and_then(|counts| counts.get(index)) {
                Some(count) => count.unsigned_abs(),
                None if event.counts => weight,
                None => u64::from(weight > 0 || time.is_some()),
            };
            let row = Row { track, stack: Some(stack), weight, count, time };
            if signed < 0 {
                self.reader.profile.push_negative(event.series, row);
            } else if weight > 0 || count > 0 {
                self.reader.profile.push(event.series, row);
            }
        }
        Ok(())
    }

    /// The profile's ID for a stack of the dictionary; `None` if the stack is empty. Fails if the dictionary has no
    /// such stack.
    fn stack(&mut self, number: u64) -> Result<Option<StackId>> {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        if let Some(Some(known)) = self.stacks.get(index) {
            return Ok(*known);
        }
        let Some(message) = self.dictionary.stacks.get(index) else {
            // Number 0 stands for an empty stack, even if the table is empty.
            if number == 0 {
                return Ok(None);
            }
            return Err(Error::new(format!("refers to stack {number}, which is not in the dictionary")));
        };
        let locations: Vec<u64> = field_numbers(message, 1).collect();
        let stack = self.frames.stack(&locations, &mut self.reader.profile)?;
        self.stacks[index] = Some(stack);
        Ok(stack)
    }
}

/// Decodes all samples of a profile; `None` if one is damaged.
fn read_samples(profile: &[u8]) -> Option<Vec<Sample<'_>>> {
    messages(profile, 2).map(|sample| Sample::read(sample).ok()).collect()
}
