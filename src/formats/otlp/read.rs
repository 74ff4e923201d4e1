//! Reads messages into stacks: each value type becomes an event, each resource a process, each sample one or more rows.

use super::dictionary::{Dictionary, at_place, numbers_of};
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
use crate::model::about::{TimeExtent, joined};
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
    untied: bool,
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
            untied: false,
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
        about.epoch = self.sampled.filter(|_| !self.untied).map(|_| 0);
        self.profile
    }

    /// Reads a `ProfilesData` message.
    pub(super) fn message(&mut self, bytes: &[u8], notation: Notation) -> Result<()> {
        let message = Message::read(bytes, notation)?;
        let frames = frames(bytes.len(), &message, self);
        self.modules.add(&message.dictionary);
        let stacks = vec![None; message.dictionary.stacks.len()];
        let Message { dictionary, resources } = message;
        let mut reading = MessageReading { dictionary, frames, stacks, to: self };
        resources.iter().for_each(|resource| reading.resource(resource));
        Ok(())
    }
}

/// The frames of all locations of a message; `len` is the message's size in bytes. Inlined functions get the module and
/// address of the function that they are inlined in.
fn frames(len: usize, Message { dictionary, .. }: &Message<'_>, to: &mut Reader) -> LocationFrames {
    let mut frames = LocationFrames::new("dictionary", len);
    for (number, location) in (0..).zip(&dictionary.locations) {
        let text = |key| dictionary.text_of(location.attributes(), key);
        let kind = text("profile.frame.type").and_then(kind_of_type);
        let tier = text("jitgraft.tier").and_then(|word| Tier::named(std::str::from_utf8(word).ok()?));
        let mapping = at_place(&dictionary.mappings, location.mapping).copied();
        // For interpreted code without a mapping, profilers store a line or anything else in the address field.
        let has_address = location.address != 0 && (mapping.is_some() || kind != Some(FrameKind::Jit));
        let mapping = mapping.unwrap_or_default();
        let addr = has_address.then(|| mapping.in_file(location.address));
        let (module, build) = (dictionary.string(mapping.file), dictionary.text_of(mapping.attributes(), GNU_BUILD_ID));
        let build = build.unwrap_or_default();
        let whole = StatedFrame { module, build, addr, kind, tier, ..StatedFrame::default() };
        let lines = location.lines().map(|line| {
            let function = at_place(&dictionary.functions, line.function).copied().unwrap_or_default();
            let names = [dictionary.string(function.name), dictionary.string(function.system_name)];
            let start_line = u32::try_from(function.start_line).unwrap_or(0);
            StatedFrame {
                function: names.into_iter().find(|name| !name.is_empty()).unwrap_or_default(),
                file: dictionary.string(function.file),
                line: u32::try_from(line.line).unwrap_or(0),
                start: (start_line, column_in_system_name(names[1], names[0], start_line)),
                ..whole
            }
        });
        frames.add(number, whole, lines, &mut to.named, &mut to.profile);
    }
    frames
}

/// The kind of code for a `profile.frame.type`. Anything that isn't compiled ahead of time belongs to a runtime. `None`
/// if the mapping tells more: profilers use `native` also for anonymous memory when they know of no runtime in it.
fn kind_of_type(frame_type: &[u8]) -> Option<FrameKind> {
    match frame_type {
        b"" | b"unknown" | b"abort-marker" | b"native" => None,
        b"kernel" => Some(FrameKind::Kernel),
        b"go" | b"rust" => Some(FrameKind::User),
        word => std::str::from_utf8(word).ok().and_then(Category::named).map(Category::kind).or(Some(FrameKind::Jit)),
    }
}

/// The state while a message is read.
struct MessageReading<'r, 'd> {
    dictionary: Dictionary<'d>,
    frames: LocationFrames,
    /// By stack index. The outer `None` means not looked up yet, the inner one an empty stack.
    stacks: Vec<Option<Option<StackId>>>,
    to: &'r mut Reader,
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

impl<'d> MessageReading<'_, 'd> {
    fn resource(&mut self, message: &'d [u8]) {
        let mut owner = Owner::new(self.to.apart);
        for resource in messages(message, 1) {
            let about = &mut self.to.profile.about;
            messages(resource, 1).for_each(|one| owner.add(&self.dictionary.attribute(one), &self.dictionary, about));
        }
        for scope in messages(message, 2) {
            for attribute in messages(scope, 1).flat_map(|scope| messages(scope, 3)) {
                let attribute = self.dictionary.attribute(attribute);
                match attribute.key {
                    NAMES_KEY => self.to.profile.perf_names |= attribute.text() == Some(PERF_NAMES),
                    CLOCK_KEY => self.to.untied |= attribute.text() == Some(OWN_CLOCK),
                    LOST_KEY => {
                        let lost = attribute.number().and_then(|lost| u64::try_from(lost).ok()).unwrap_or(0);
                        self.to.profile.about.add_lost(lost, owner.host());
                    }
                    _ => {}
                }
            }
            let mut profiles = messages(scope, 2).peekable();
            while let Some(profile) = profiles.next() {
                let counts = profiles.next_if(|next| self.are_counts(next, profile));
                self.profile(profile, counts, &owner);
            }
        }
    }

    /// Whether `counts` holds the sample counts for the values of `profile`, one for one, as our own writer writes
    /// them.
    fn are_counts(&self, counts: &[u8], profile: &[u8]) -> bool {
        let [(counted, unit), (name, _)] =
            [counts, profile].map(|of| messages(of, 1).next().map_or_else(Default::default, |of| self.words(of)));
        if unit != "count" || counted.strip_suffix(COUNTS) != Some(&name) {
            return false;
        }
        let samples = |of| messages(of, 2).map(|one| Sample::read(one).ok()).collect::<Option<Vec<_>>>();
        let (Some(counts), Some(samples)) = (samples(counts), samples(profile)) else { return false };
        counts.len() == samples.len() && counts.iter().zip(&samples).all(|(counts, sample)| counts.goes_with(sample))
    }

    fn profile(&mut self, message: &'d [u8], counts: Option<&'d [u8]>, owner: &Owner) {
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
        let mut tracks = Tracks::of(owner, self.dictionary.attributes(attributes.into_iter()));
        let mut counts = counts.into_iter().flat_map(|counts| messages(counts, 2));
        for sample in messages(message, 2) {
            let counts = counts.next().and_then(|counts| Sample::read(counts).ok()).map(|counts| counts.values);
            let sample = Sample::read(sample);
            let read = sample.and_then(|sample| self.sample((&sample, counts.as_deref()), event, &mut tracks));
            read.unwrap_or_else(|error| self.to.skipped.add(error));
        }
    }

    /// The name and the unit of an encoded `ValueType`.
    fn words(&self, message: &[u8]) -> (String, String) {
        let text = |tag| numbers_of(message, tag).last().map_or_else(String::new, |at| self.dictionary.text(at));
        (text(1), text(2))
    }

    fn event(&mut self, of: &[u8], period_type: Option<&[u8]>, period: u64) -> ProfileType {
        let (mut name, word) = self.words(of);
        let every =
            period_type.map(|of| self.words(of)).filter(|_| i64::try_from(period).is_ok_and(|period| period > 0));
        let (scale, unit) = Unit::of_word(&word);
        let sampling = every.and_then(|(of, every)| match Unit::of_word(&every) {
            _ if of == name && every == word => Some(Sampling::Period(period.saturating_mul(scale))),
            (every, Unit::Nanos) => Some(Sampling::Frequency(1_000_000_000 / period.saturating_mul(every).max(1))),
            _ => None,
        });
        if name.is_empty() {
            name.push_str(UNNAMED);
        }
        let series = self.to.profile.series_of((&name, &unit));
        let of = &mut self.to.profile.series[series];
        of.sampling = of.sampling.or(sampling);
        let counts = unit == Unit::Samples && (name == "samples" || name.ends_with(COUNTS));
        ProfileType { series, scale, counts }
    }

    fn sample(
        &mut self,
        (sample, counts): (&Sample<'d>, Option<&[i64]>),
        event: ProfileType,
        tracks: &mut Tracks<'d>,
    ) -> Result<()> {
        let stack = self.of_table(sample.stack)?;
        let stack = stack.unwrap_or_else(|| self.to.profile.unknown_stack());
        let stack = Some(stack);
        let track = tracks.of_sample(sample, &self.dictionary, &mut self.to.profile);
        self.observations(event, (track, stack), (&sample.values, counts), &sample.times())
    }

    /// Adds the rows of a sample. With times, there is either one value per time, or no value and each time counts as
    /// 1. Without times, the values are sums. `counts` are the numbers of samples in the values, if known.
    fn observations(
        &mut self,
        event: ProfileType,
        (track, stack): (TrackId, Option<StackId>),
        (values, counts): (&[i64], Option<&[i64]>),
        times: &[u64],
    ) -> Result<()> {
        let scale = i64::try_from(event.scale).unwrap_or(i64::MAX);
        let weight = |value: i64| value.saturating_mul(scale);
        let times: Vec<Nanos> = times.iter().map(|time| Nanos(*time)).collect();
        let rows: Vec<(i64, Option<Nanos>)> = match (values, &times[..]) {
            ([], []) => return Err(Error::new("has neither values nor times")),
            ([], times) => times.iter().map(|time| (scale, Some(*time))).collect(),
            (values, []) => {
                if !event.counts && counts.is_none() {
                    self.to.profile.series[event.series].uncounted = true;
                    self.to.profile.series[event.series].counting = Counting::Unknown;
                }
                values.iter().map(|value| (weight(*value), None)).collect()
            }
            (values, times) if values.len() == times.len() => {
                let pairs = values.iter().zip(times);
                pairs.map(|(value, time)| (weight(*value), Some(*time))).collect()
            }
            _ => return Err(Error::new(format!("has {} values and {} times", values.len(), times.len()))),
        };
        for (at, (signed, time)) in rows.into_iter().enumerate() {
            let weight = signed.unsigned_abs();
            self.to.sampled = joined(self.to.sampled, time.map(TimeExtent::at));
            let count = match counts.and_then(|counts| counts.get(at)) {
                Some(count) => count.unsigned_abs(),
                None if event.counts => weight,
                None => u64::from(weight > 0 || time.is_some()),
            };
            let row = Row { track, stack, weight, count, time };
            if signed < 0 {
                self.to.profile.push_negative(event.series, row);
            } else if weight > 0 || count > 0 {
                self.to.profile.push(event.series, row);
            }
        }
        Ok(())
    }

    /// The profile's ID for a stack of the dictionary; `None` if the stack is empty.
    fn of_table(&mut self, at: u64) -> Result<Option<StackId>> {
        let place = usize::try_from(at).ok().filter(|place| *place < self.stacks.len());
        let Some(place) = place else {
            if at == 0 {
                return Ok(None);
            }
            return Err(Error::new(format!("refers to stack {at}, which is not in the dictionary")));
        };
        if let Some(known) = self.stacks[place] {
            return Ok(known);
        }
        let locations: Vec<u64> = numbers_of(self.dictionary.stacks[place], 1).collect();
        let stack = self.frames.stack(&locations, &mut self.to.profile)?;
        self.stacks[place] = Some(stack);
        Ok(stack)
    }
}
