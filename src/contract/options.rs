//! The options of reading and writing, from the command line.

use crate::analysis::filter::TimeRange;
use crate::analysis::label::{Annotate, By, Tidied};
use crate::analysis::timeline::{CallOptions, Span};
use crate::error::{Error, Result};
use crate::model::Nanos;
use crate::model::stacks::{Keep, Weight};

/// The detail that is reported for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Detail {
    /// Function and module.
    #[default]
    Names,
    /// Source file and line, too.
    Lines,
    /// The address, too.
    Addresses,
}

/// The options of reading.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The way the intervals of formats that hold intervals become stacks.
    pub calls: CallOptions,
    /// The names of the spans that become stacks; empty: all.
    pub only: Vec<String>,
    /// The names of spans that are shown by what they did.
    pub by_sub: Vec<String>,
    /// The arguments by which the time of spans is summed, for traces.
    pub by_args: Vec<String>,
    /// The stretches of time that count, for formats that hold intervals. Others leave that to the filter of rows.
    pub times: Vec<TimeRange>,
    /// The rows that are kept.
    pub keep: Keep,
    /// The part of a frame that is needed; `None`: all. Formats that have it at no cost give more.
    pub detail: Option<Detail>,
    /// True if rows of different recordings and labels are kept apart, for formats that have them.
    pub apart: bool,
    /// True if columns of functions are needed, to look them up in source maps.
    pub columns: bool,
    /// True if spans are counted as Perfetto's trace processor counts them, for traces.
    pub perfetto_compat: bool,
}

impl ReadOptions {
    /// The way intervals become stacks, cut to the time that counts of a recording from `first` to `last`.
    pub fn calls_between(&self, first: u64, last: u64) -> Result<CallOptions> {
        let within = match &self.times[..] {
            [] => None,
            [time] => {
                let (from, to) = time.placed(Nanos(first), Nanos(last));
                Some(Span { start: from.0, end: to.0 })
            }
            _ => return Err(Error::usage("intervals can be cut to one stretch of time only: give --time once")),
        };
        Ok(CallOptions { within, ..self.calls })
    }
}

/// The options of writing.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// The event to write, write, if the format holds only one.
    pub series: usize,
    /// The weight to sum.
    pub weight: Weight,
    /// The key that gets a root of its own.
    pub by: By,
    /// The mark that is appended to names.
    pub annotate: Annotate,
    /// The names that are cut as inferno cuts them, where frames have one string each.
    pub tidied: Tidied,
    /// Rows of one stretch of this many nanoseconds are summed, where a format reports each row.
    pub bucket: Option<u64>,
    /// True if the names of directories give the host and the day, so that rows need not.
    pub partitioned: bool,
}
