//! Output that is written row by row, so that the whole profile needn't be in memory.

use crate::error::Result;
use crate::model::about::About;
use crate::model::frame_counts::FrameCounts;
use crate::model::recorded::{Labels, Recording, day, micros};
use crate::model::stacks::{Frame, FrameKind, Profile, TRUNCATED, UNKNOWN};
use crate::runtimes::jit_names::{JitNames, ReadableNames};
use std::borrow::Cow;
use std::fmt;

/// Facts about an input that its profile doesn't contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowOrigin {
    /// The recording that the rows belong to.
    pub recording: Recording,
    /// Labels that apply to all rows of the input, in addition to each row's own.
    pub labels: Labels,
    /// How names of JIT code are written.
    pub jit_names: JitNames,
}

/// The names to write for the JIT functions of one input, in the spelling that the user or the format chose.
#[derive(Debug, Default)]
pub struct WrittenNames {
    jit_names: JitNames,
    readable: ReadableNames,
}

impl WrittenNames {
    /// Determines how to write the names of a profile's JIT functions: as the runtime wrote them (`Raw`), or in
    /// readable form. For readable names, all names of the profile are examined first, because different functions must
    /// get different names.
    pub fn new(jit_names: JitNames, profile: &Profile) -> Self {
        let mut readable = ReadableNames::default();
        if jit_names != JitNames::Raw {
            let jit_frames = profile.frames().filter(|(_, frame)| frame.kind == FrameKind::Jit);
            let names = jit_frames.map(|(_, frame)| profile.name_of(frame.name));
            readable = ReadableNames::new(names, jit_names == JitNames::Merged);
        }
        Self { jit_names, readable }
    }

    /// True if all names are written as the runtime wrote them.
    pub fn are_raw(&self) -> bool {
        self.jit_names == JitNames::Raw
    }

    /// The name to write for a frame, given its function's original name.
    pub fn spell<'n>(&self, frame: &Frame, name: &'n [u8]) -> Cow<'n, [u8]> {
        match frame.kind {
            FrameKind::Jit if self.jit_names != JitNames::Raw => self.readable.convert(name),
            _ => Cow::Borrowed(name),
        }
    }
}

/// Writes the rows of several inputs, one input after the other. While an input is read, all calls get the same profile
/// with more and more stacks, frames and tracks, whose IDs don't change. Its rows are different in each call.
pub trait RowWriter {
    /// Starts a new input. `profile` may already hold some of the input's rows, which [`rows`](Self::rows) gets later.
    fn begin(&mut self, origin: RowOrigin, profile: &Profile) -> Result<()>;

    /// Writes the rows that `profile` contains now. Rows that an earlier call wrote are no longer in the profile.
    fn rows(&mut self, profile: &Profile) -> Result<()>;

    /// Ends the current input.
    fn end(&mut self, profile: &Profile) -> Result<()>;

    /// Completes the output. Call it after the last input has ended.
    fn finish(&mut self) -> Result<()>;
}

impl fmt::Debug for dyn RowWriter + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowWriter")
    }
}

/// The start of the interval that contains `time`. Intervals are `length` nanoseconds long, and both times are
/// nanoseconds on the recording's clock. If `epoch`, the wall-clock time of that clock's zero, is known (see
/// [`About::epoch`](crate::model::about::About)), intervals are aligned to the wall clock, so that they are the same
/// for all recordings.
pub fn interval_start(time: i64, length: i64, epoch: Option<i128>) -> i64 {
    let epoch = epoch.unwrap_or(0);
    let wall_time = i128::from(time) + epoch;
    let start = wall_time - wall_time.rem_euclid(i128::from(length.max(1))) - epoch;
    i64::try_from(start).unwrap_or(time)
}

/// Converts a number to `i64`. Numbers that are too large become `i64::MAX`.
pub fn clamp(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The wall-clock time of the first sample, in nanoseconds since 1970; `None` if unknown. If the input doesn't state
/// when the first sample was taken, the earliest time of the rows read so far is used.
pub fn start(profile: &Profile) -> Option<i128> {
    let times = profile.series.iter().flat_map(|series| &series.rows).filter_map(|row| row.time);
    let first = profile.about.sampled.map(|sampled| sampled.first).or_else(|| times.min())?;
    Some(profile.about.epoch? + i128::from(first.0))
}

/// Describes a recording with the facts that are known after the parts of it that were read so far. The caller sets
/// `input` and `bucket`.
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

/// Joins the words of a command line with spaces. `None` if there are no words.
pub fn command_line(words: &[Vec<u8>]) -> Option<Box<str>> {
    let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
    (!words.is_empty()).then(|| words.join(" ").into())
}

/// The share of frames that have a name, from 0 to 1, over all samples. If the reader didn't count frames, those of the
/// rows read so far are counted. `None` if there are no frames.
fn share_named(profile: &Profile) -> Option<f64> {
    let FrameCounts { mut frames, mut unnamed, .. } = profile.about.frames;
    if frames == 0 {
        for row in profile.series.iter().flat_map(|series| &series.rows) {
            for frame in profile.frames_up(row.stack) {
                let name = profile.name_of(profile.frame_of(frame).name);
                // `[truncated]` only says that frames are missing, so don't count it as a frame.
                if name == TRUNCATED {
                    continue;
                }
                frames = frames.saturating_add(row.count);
                if name == UNKNOWN {
                    unnamed = unnamed.saturating_add(row.count);
                }
            }
        }
    }
    if frames == 0 {
        return None;
    }
    Some(1.0 - unnamed as f64 / frames as f64)
}

/// Writes an output that has a single input, whose profile is complete.
pub fn write_whole(writer: &mut dyn RowWriter, profile: &Profile) -> Result<()> {
    writer.begin(RowOrigin { recording: recording_of(profile), ..RowOrigin::default() }, profile)?;
    writer.rows(profile)?;
    writer.end(profile)?;
    writer.finish()
}
