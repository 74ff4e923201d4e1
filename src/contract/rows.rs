//! Rows on their way into a table: written as they come, so that nobody need hold all of them.

use crate::error::Result;
use crate::model::stacks::Profile;
use crate::runtimes::jit_names::JitNames;
use std::fmt;

/// What is told of an input that the rows of a profile do not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowOrigin {
    /// The SHA-1 of its bytes, in hexadecimal digits.
    pub hash: Option<String>,
    /// How names of JIT code are written.
    pub jit_names: JitNames,
}

/// Writes the rows of inputs, one input after the other.
///
/// Stacks, frames and threads keep their numbers from the first call for an input to the last; only the rows differ
/// from call to call.
pub trait RowWriter: fmt::Debug {
    /// The rows from now on are of this input, of which a part of the rows may be there.
    fn begin(&mut self, origin: RowOrigin, profile: &Profile) -> Result<()>;

    /// Takes these rows, all of them behind those that came before.
    fn rows(&mut self, profile: &Profile) -> Result<()>;

    /// There are no more rows of this input.
    fn end(&mut self, profile: &Profile) -> Result<()>;

    /// There are no more inputs.
    fn finish(&mut self) -> Result<()>;
}

/// When the stretch of time begins that a time of a recording's clock is in, in nanoseconds. Those of different
/// recordings begin alike, by the wall clock, where that is known (`epoch`: [`About::epoch`](crate::model::about::About)).
pub fn stretch_of(own: i64, stretch: i64, epoch: Option<i128>) -> i64 {
    let offset = epoch.unwrap_or(0);
    let since = i128::from(own) + offset;
    let start = since - since.rem_euclid(i128::from(stretch.max(1))) - offset;
    i64::try_from(start).unwrap_or(own)
}

/// When the first sample of an input was taken, in nanoseconds since 1970, if that is known; as many of its rows as are
/// there tell, where nothing else does.
pub fn start(profile: &Profile) -> Option<i128> {
    let times = profile.series.iter().flat_map(|series| &series.rows).filter_map(|row| row.time);
    let first = profile.about.sampled.map(|sampled| sampled.first).or_else(|| times.min())?;
    Some(profile.about.epoch? + i128::from(first.0))
}

/// Writes a profile that is all there.
pub fn write_whole(writer: &mut dyn RowWriter, profile: &Profile) -> Result<()> {
    writer.begin(RowOrigin::default(), profile)?;
    writer.rows(profile)?;
    writer.end(profile)?;
    writer.finish()
}
