//! Reads messages into stacks: each value type becomes an event, each resource a process, each sample one or more rows.

use super::dictionary::{Attribute, entry_at};
use super::messages::{
    CLOCK_KEY, COUNTS, Dictionary, LOST_KEY, LocationMessage, NAMES_KEY, OWN_CLOCK, PERF_NAMES, ProfileMessage,
    ProfilesData, ResourceProfiles, SampleMessage, ValueType,
};
use super::modules::{GNU_BUILD_ID, Modules};
use super::owner::{Owner, Tracks};
use crate::analysis::category::Category;
use crate::analysis::named_frames::{LocationFrames, NamedFrames, StatedFrame};
use crate::analysis::namesakes::{LineAndColumn, read_position};
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::Nanos;
use crate::model::about::{TimeExtent, join_extents};
use crate::model::stacks::{Counting, FrameKind, Profile, Row, Sampling, StackId, TrackId, Unit};
use crate::model::tier::Tier;
use prost::Message;
use prost::bytes::Bytes;

/// The name of events whose value type has no name.
const UNNAMED: &str = "values";

/// Reads `ProfilesData` messages of the input into one profile.
#[derive(Debug)]
pub(super) struct Reader {
    profile: Profile,
    named: NamedFrames,
    modules: Modules,
    sampled: Option<TimeExtent>,
    /// Whether timestamps are on a clock whose offset from the wall clock is unknown.
    has_own_clock: bool,
    /// True if rows that differ in their machine or labels stay apart ([`ReadOptions::apart`]).
    keeps_labels: bool,
    skipped: Skipped,
}

impl Reader {
    /// Creates a reader that hasn't read any `ProfilesData` message. Its profile is still empty.
    pub(super) fn new(options: &ReadOptions) -> Self {
        Self {
            profile: Profile::empty(options.keep),
            named: NamedFrames::default(),
            modules: Modules::default(),
            sampled: None,
            has_own_clock: false,
            keeps_labels: options.apart,
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

    /// Reads a `ProfilesData` message into the profile. Never fails: samples that can't be read are counted.
    pub(super) fn read_message(&mut self, message: ProfilesData) -> Result<()> {
        // The number of frames is limited in proportion to the size of the message.
        let size = message.encoded_len();
        let dictionary = message.dictionary.unwrap_or_default();
        let mut frames = LocationFrames::new("dictionary", size);
        for (number, location) in (0..).zip(&dictionary.location_table) {
            add_location(number, location, &dictionary, &mut frames, self);
        }
        self.modules.add(&dictionary);
        let stacks = vec![None; dictionary.stack_table.len()];
        let mut reader = MessageReader { dictionary, frames, stacks, reader: self };
        for resource in &message.resource_profiles {
            reader.read_resource(resource);
        }
        Ok(())
    }
}

/// Adds the frames of a location to `frames`, one for each of its lines. Inlined functions get the module and address
/// of the function that they are inlined in. `number` is the location's index in the dictionary.
fn add_location(
    number: u64,
    location: &LocationMessage,
    dictionary: &Dictionary,
    frames: &mut LocationFrames,
    reader: &mut Reader,
) {
    let attributes = &location.attribute_indices;
    let kind = dictionary.attribute_text(attributes, "profile.frame.type").and_then(|word| frame_kind(&word));
    let tier = dictionary.attribute_text(attributes, "jitgraft.tier");
    let tier = tier.and_then(|word| Tier::from_name(std::str::from_utf8(&word).ok()?));
    let mapping = entry_at(&dictionary.mapping_table, location.mapping_index);
    // For interpreted code without a mapping, profilers store a line or anything else in the address field, so it
    // doesn't count as an address.
    let has_address = location.address != 0 && (mapping.is_some() || kind != Some(FrameKind::Jit));
    let address_in_file = mapping.map_or(location.address, |mapping| mapping.address_in_file(location.address));
    let module = mapping.map_or(&b""[..], |mapping| dictionary.string(mapping.filename_strindex));
    let build = mapping.and_then(|mapping| dictionary.attribute_text(&mapping.attribute_indices, GNU_BUILD_ID));
    let build = build.unwrap_or_default();
    let addr = if has_address { Some(address_in_file) } else { None };
    // What all frames of the location have in common. A location without lines gets this as its only frame.
    let common = StatedFrame { module, build: &build, addr, kind, tier, ..StatedFrame::default() };
    let lines = location.lines.iter().map(|line| {
        let function = entry_at(&dictionary.function_table, line.function_index).copied().unwrap_or_default();
        let name = dictionary.string(function.name_strindex);
        let system_name = dictionary.string(function.system_name_strindex);
        let unless_invalid = |number: i64| u32::try_from(number).unwrap_or(0);
        let stated = LineAndColumn { line: unless_invalid(line.line), column: unless_invalid(line.column) };
        // What the stated position means depends on the names. The system name may end in the column where the function
        // starts; the position of an anonymous function may be its start instead of the executed code.
        let position = read_position(stated, unless_invalid(function.start_line), name, system_name);
        StatedFrame {
            function: if name.is_empty() { system_name } else { name },
            file: dictionary.string(function.filename_strindex),
            line: position.executed.line,
            start: (position.start.line, position.start.column),
            ..common
        }
    });
    frames.add(number, common, lines, &mut reader.named, &mut reader.profile);
}

/// Converts a `profile.frame.type` to a kind of frame. Languages that aren't compiled ahead of time count as JIT code.
/// `None` means that the kind follows from the mapping. `native` gives `None`, too, because profilers also use it for
/// code in anonymous memory whose runtime they don't know.
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
struct MessageReader<'r> {
    dictionary: Dictionary,
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
    /// For each value, the number of samples that it stands for; `None` if the message doesn't state it.
    counts: Option<&'s [i64]>,
    /// The time of each value in nanoseconds since 1970; empty if the values are sums.
    times: &'s [u64],
}

/// The event that a profile's value type became.
#[derive(Debug, Clone, Copy)]
struct ProfileType {
    series: usize,
    /// Factor from the file's unit to the event's unit, such as 1000 from microseconds to nanoseconds.
    scale: u64,
    /// True if the values are numbers of samples, so that the value of a row is also its count.
    counts_samples: bool,
}

impl MessageReader<'_> {
    /// Reads the profiles of one resource, such as a process or container.
    fn read_resource(&mut self, message: &ResourceProfiles) {
        let mut owner = Owner::new(self.reader.keeps_labels);
        for attribute in message.resource.iter().flat_map(|resource| &resource.attributes) {
            let about = &mut self.reader.profile.about;
            owner.add(&self.dictionary.attribute(attribute), &self.dictionary, about);
        }
        for scope in &message.scope_profiles {
            for attribute in scope.scope.iter().flat_map(|scope| &scope.attributes) {
                self.read_scope_attribute(&self.dictionary.attribute(attribute), &owner);
            }
            let mut profiles = scope.profiles.iter().peekable();
            while let Some(profile) = profiles.next() {
                // If a profile's values are sums, our writer puts the number of samples in each sum into a second
                // profile, directly after the first.
                let counts = profiles.next_if(|next| self.are_counts(next, profile));
                self.read_profile(profile, counts, &owner);
            }
        }
    }

    /// Takes a fact about the recording from an attribute that only jitgraft writes.
    fn read_scope_attribute(&mut self, attribute: &Attribute, owner: &Owner) {
        match &attribute.key[..] {
            NAMES_KEY => self.reader.profile.perf_names |= attribute.text().is_some_and(|text| text == PERF_NAMES),
            CLOCK_KEY => self.reader.has_own_clock |= attribute.text().is_some_and(|text| text == OWN_CLOCK),
            LOST_KEY => {
                let lost = attribute.number().and_then(|lost| u64::try_from(lost).ok()).unwrap_or(0);
                self.reader.profile.about.add_lost(lost, owner.host());
            }
            _ => {}
        }
    }

    /// Whether each value of the profile `counts` is the sample count of the corresponding value of `profile`. Our own
    /// writer writes such profiles, each directly after the profile to which it belongs.
    fn are_counts(&self, counts: &ProfileMessage, profile: &ProfileMessage) -> bool {
        let (counts_name, unit) = self.value_type(counts.sample_type);
        let (name, _) = self.value_type(profile.sample_type);
        unit == "count"
            && counts_name.strip_suffix(COUNTS) == Some(&name)
            && counts.samples.len() == profile.samples.len()
            && counts.samples.iter().zip(&profile.samples).all(|(count, sample)| differ_only_in_values(count, sample))
    }

    /// Reads a profile. `counts` is the profile that holds its sample counts, if there is one: it has the same samples
    /// in the same order.
    fn read_profile(&mut self, message: &ProfileMessage, counts: Option<&ProfileMessage>, owner: &Owner) {
        let event = self.event(message);
        let mut tracks = Tracks::new(owner, self.dictionary.attributes(&message.attribute_indices));
        let mut count_samples = counts.into_iter().flat_map(|counts| &counts.samples);
        for sample in &message.samples {
            // The sample at the same position in `counts`. If it is missing or damaged, the counts are unknown.
            let count_sample = count_samples.next().and_then(|encoded| SampleMessage::decode(encoded.clone()).ok());
            let counts = count_sample.map(|count_sample| count_sample.values);
            if let Err(error) = self.read_sample(sample, counts.as_deref(), event, &mut tracks) {
                self.reader.skipped.add(error);
            }
        }
    }

    /// The name and the unit of a value type.
    fn value_type(&self, value_type: Option<ValueType>) -> (String, String) {
        let ValueType { type_strindex, unit_strindex } = value_type.unwrap_or_default();
        (self.dictionary.text(type_strindex), self.dictionary.text(unit_strindex))
    }

    /// Finds or creates the event for a profile's value type. Sets its sampling period or frequency if the profile
    /// states it and no profile before did.
    fn event(&mut self, message: &ProfileMessage) -> ProfileType {
        let (mut name, unit_word) = self.value_type(message.sample_type);
        let (scale, unit) = Unit::parse_word(&unit_word);
        let mut sampling = None;
        if message.period_type.is_some()
            && let Ok(period) = u64::try_from(message.period)
            && period > 0
        {
            // If the period has the name and unit of the event, it is the weight of a sample. Otherwise, if it is a
            // time, it is the interval between samples of an event that counts something else.
            let (period_name, period_word) = self.value_type(message.period_type);
            if period_name == name && period_word == unit_word {
                sampling = Some(Sampling::Period(period.saturating_mul(scale)));
            } else if let (period_scale, Unit::Nanos) = Unit::parse_word(&period_word) {
                let nanos = period.saturating_mul(period_scale).max(1);
                sampling = Some(Sampling::Frequency(1_000_000_000 / nanos));
            }
        }
        if name.is_empty() {
            name.push_str(UNNAMED);
        }
        let index = self.reader.profile.series_with_unit(&name, &unit);
        let series = &mut self.reader.profile.series[index];
        series.sampling = series.sampling.or(sampling);
        // True if the values of the profile are numbers of samples. If its name ends in `COUNTS`, our writer made it to
        // hold the sample counts of the profile before it. Usually both are read together. A profile of counts gets
        // here only if the profile to which it belongs isn't directly before it.
        let counts_samples = unit == Unit::Samples && (name == "samples" || name.ends_with(COUNTS));
        ProfileType { series: index, scale, counts_samples }
    }

    /// Reads a sample and adds its rows to the event's series. `counts` has, for each value of the sample, the number
    /// of samples that it stands for; `None` if the message doesn't state it.
    fn read_sample(
        &mut self,
        encoded: &Bytes,
        counts: Option<&[i64]>,
        event: ProfileType,
        tracks: &mut Tracks,
    ) -> Result<()> {
        let sample = SampleMessage::decode(encoded.clone())
            .map_err(|error| Error::new("the sample is damaged").because(error))?;
        let stack = match self.stack(sample.stack_index)? {
            Some(stack) => stack,
            None => self.reader.profile.unknown_stack(),
        };
        let track = tracks.track_id(&sample, &self.dictionary, &mut self.reader.profile);
        let values = SampleValues { values: &sample.values, counts, times: &sample.timestamps_unix_nano };
        self.add_rows(event, track, stack, values)
    }

    /// Adds the rows of a sample, one for each value or time. A sample with times has either as many values as times,
    /// or no values, which means that each time counts as 1. Without times, the values are sums. Other samples are
    /// refused.
    fn add_rows(&mut self, event: ProfileType, track: TrackId, stack: StackId, sample: SampleValues<'_>) -> Result<()> {
        let SampleValues { values, counts, times } = sample;
        if values.is_empty() && times.is_empty() {
            return Err(Error::new("the sample has neither values nor times"));
        }
        if !values.is_empty() && !times.is_empty() && values.len() != times.len() {
            return Err(Error::new(format!("the sample has {} values, but {} timestamps", values.len(), times.len())));
        }
        // A value without a time is a sum, and nothing says how many samples it stands for.
        if times.is_empty() && !event.counts_samples && counts.is_none() {
            let series = &mut self.reader.profile.series[event.series];
            series.uncounted = true;
            series.counting = Counting::Unknown;
        }
        let scale = i64::try_from(event.scale).unwrap_or(i64::MAX);
        for index in 0..values.len().max(times.len()) {
            let signed = values.get(index).copied().unwrap_or(1).saturating_mul(scale);
            let time = times.get(index).map(|time| Nanos(*time));
            let weight = signed.unsigned_abs();
            self.reader.sampled = join_extents(self.reader.sampled, time.map(TimeExtent::from_moment));
            let count = match counts.and_then(|counts| counts.get(index)) {
                Some(count) => count.unsigned_abs(),
                None if event.counts_samples => weight,
                // A value with a time is one sample, even if its weight is 0. A sum counts as one sample unless it is
                // 0.
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
    fn stack(&mut self, number: i32) -> Result<Option<StackId>> {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        if let Some(Some(known)) = self.stacks.get(index) {
            return Ok(*known);
        }
        let Some(message) = self.dictionary.stack_table.get(index) else {
            // Number 0 stands for the empty stack, even if the table lacks it.
            if number == 0 {
                return Ok(None);
            }
            return Err(Error::new(format!("the sample refers to stack {number}, which is not in the dictionary")));
        };
        // A negative index becomes a huge one, for which `frames` has no location, so the stack is refused.
        let locations: Vec<u64> = message.location_indices.iter().map(|index| *index as u64).collect();
        let stack = self.frames.stack(&locations, &mut self.reader.profile)?;
        self.stacks[index] = Some(stack);
        Ok(stack)
    }
}

/// Whether two samples agree in everything but their values, and have the same number of values.
fn differ_only_in_values(counts: &Bytes, sample: &Bytes) -> bool {
    let decode = |sample: &Bytes| SampleMessage::decode(sample.clone());
    let (Ok(mut counts), Ok(mut sample)) = (decode(counts), decode(sample)) else { return false };
    let (values, others) = (std::mem::take(&mut counts.values), std::mem::take(&mut sample.values));
    values.len() == others.len() && counts == sample
}
