//! Rows on their way into a table: written as they come, so that nobody need hold all of them.

use crate::error::Result;
use crate::model::about::About;
use crate::model::recorded::{Labels, Recording, day, micros};
use crate::model::stacks::{Frame, FrameKind, Profile, TRUNCATED, UNKNOWN};
use crate::runtimes::jit_names::{JitNames, ReadableNames};
use std::borrow::Cow;
use std::fmt;

/// The facts about an input that the rows of a profile do not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowOrigin {
    /// The recording that they are of.
    pub recording: Recording,
    /// The labels that all of them have, besides their own.
    pub labels: Labels,
    /// The way names of JIT code are written.
    pub jit_names: JitNames,
}

/// The way names of JIT code of an input are written.
#[derive(Debug, Default)]
pub struct WrittenNames {
    jit_names: JitNames,
    readable: ReadableNames,
}

impl WrittenNames {
    /// For the functions of a profile.
    pub fn new(jit_names: JitNames, profile: &Profile) -> Self {
        let jit = profile.frames().filter(|(_, frame)| frame.kind == FrameKind::Jit);
        let jit = jit.map(|(_, frame)| profile.name_of(frame.name));
        let readable = match jit_names {
            JitNames::Raw => ReadableNames::default(),
            asked => ReadableNames::new(jit, asked == JitNames::Merged),
        };
        Self { jit_names, readable }
    }

    /// The name of a frame, whose own name this is.
    pub fn of<'n>(&self, frame: &Frame, name: &'n [u8]) -> Cow<'n, [u8]> {
        match frame.kind {
            FrameKind::Jit if self.jit_names != JitNames::Raw => self.readable.of(name),
            _ => Cow::Borrowed(name),
        }
    }
}

/// Writes the rows of inputs, one input after the other.
///
/// Stacks, frames and threads keep their numbers from the first call for an input to the last; only the rows differ
/// from call to call.
pub trait RowWriter {
    /// From now on, rows are of this input; a part of its rows may be there.
    fn begin(&mut self, origin: RowOrigin, profile: &Profile) -> Result<()>;

    /// Takes these rows, all of them behind those that came before.
    fn rows(&mut self, profile: &Profile) -> Result<()>;

    /// This input has no more rows.
    fn end(&mut self, profile: &Profile) -> Result<()>;

    /// No input follows.
    fn finish(&mut self) -> Result<()>;
}

impl fmt::Debug for dyn RowWriter + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowWriter")
    }
}

/// When the stretch of time begins that a time of a recording's clock is in, in nanoseconds. Those of different
/// recordings begin alike, by the wall clock, where that is known (`epoch`: [`About::epoch`](crate::model::about::About)).
pub fn stretch_of(own: i64, stretch: i64, epoch: Option<i128>) -> i64 {
    let offset = epoch.unwrap_or(0);
    let since = i128::from(own) + offset;
    let start = since - since.rem_euclid(i128::from(stretch.max(1))) - offset;
    i64::try_from(start).unwrap_or(own)
}

/// A number as most formats have it; the largest that they can say instead of a larger one.
pub fn clamp(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// When the first sample of an input was taken, in nanoseconds since 1970, if that is known; as many of its rows as are
/// there give, where nothing else does.
pub fn start(profile: &Profile) -> Option<i128> {
    let times = profile.series.iter().flat_map(|series| &series.rows).filter_map(|row| row.time);
    let first = profile.about.sampled.map(|sampled| sampled.first).or_else(|| times.min())?;
    Some(profile.about.epoch? + i128::from(first.0))
}

/// The recording that a profile is of, as far as it is known when these rows are there.
pub fn recording_of(profile: &Profile) -> Recording {
    let About { host, arch, os_release, command, epoch, .. } = &profile.about;
    let text = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into());
    let first = start(profile).and_then(micros);
    Recording {
        input: None,
        host: text(host),
        arch: text(arch),
        kernel: text(os_release),
        command: command_line(command),
        start: first,
        day: first.and_then(day),
        share_named: share_named(profile).map(f64::to_bits),
        epoch: epoch.and_then(|epoch| i64::try_from(epoch).ok()),
        bucket: None,
    }
}

/// A command as a recording has it: its words, separated by blanks.
pub fn command_line(words: &[Vec<u8>]) -> Option<Box<str>> {
    let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
    (!words.is_empty()).then(|| words.join(" ").into())
}

/// The share of all frames that have a name. If the reader did not count them, the rows that are here count.
fn share_named(profile: &Profile) -> Option<f64> {
    let counted = profile.about.frames;
    let (mut frames, mut unnamed) = (counted.frames, counted.unnamed);
    if frames == 0 {
        let rows = profile.series.iter().flat_map(|series| &series.rows);
        for (row, frame) in rows.flat_map(|row| profile.frames_up(row.stack).map(move |frame| (row, frame))) {
            let name = profile.name_of(profile.frame_of(frame).name);
            if name != TRUNCATED {
                frames = frames.saturating_add(row.count);
                unnamed = unnamed.saturating_add(if name == UNKNOWN { row.count } else { 0 });
            }
        }
    }
    (frames > 0).then(|| 1.0 - unnamed as f64 / frames as f64)
}

/// Writes a profile that is all there.
pub fn write_whole(writer: &mut dyn RowWriter, profile: &Profile) -> Result<()> {
    writer.begin(RowOrigin { recording: recording_of(profile), ..RowOrigin::default() }, profile)?;
    writer.rows(profile)?;
    writer.end(profile)?;
    writer.finish()
}
