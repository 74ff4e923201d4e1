//! Options for reading and writing that come from the command line.

use crate::analysis::filter::TimeRange;
use crate::analysis::label::{Annotate, By, Tidied};
use crate::analysis::timeline::{CallOptions, Span};
use crate::error::{Error, Result};
use crate::model::Nanos;
use crate::model::stacks::{Keep, Weight};

/// How much is known or written about a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Detail {
    /// Only function and module.
    #[default]
    Names,
    /// Function, module, source file and line, but no address.
    Lines,
    /// Function, module, source file, line and address.
    Addresses,
}

/// Options for readers.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// For formats with intervals: how intervals become stacks.
    pub calls: CallOptions,
    /// Names of the spans that become stacks. Empty means all.
    pub only: Vec<String>,
    /// Names of spans that are shown by their action instead of their name.
    pub by_sub: Vec<String>,
    /// For traces: names of arguments. The time of spans is summed for each value of these arguments.
    pub by_args: Vec<String>,
    /// For formats with intervals: the time ranges to read. In other formats, rows are filtered by time after reading.
    pub times: Vec<TimeRange>,
    /// Whether each row is kept, or only sums.
    pub keep: Keep,
    /// How much of each frame is needed; `None` means everything. Formats may return more if it costs nothing.
    pub detail: Option<Detail>,
    /// Whether to keep rows of different recordings or with different labels apart, in formats that have these.
    pub apart: bool,
    /// Whether the columns of functions are needed, for looking them up in source maps.
    pub columns: bool,
    /// For traces: whether to count spans as Perfetto's trace processor does.
    pub perfetto_compat: bool,
}

impl ReadOptions {
    /// How intervals become stacks, cut to the requested time within a recording from `first` to `last` (nanoseconds).
    /// Fails if more than one range of time was requested.
    pub fn calls_between(&self, first: u64, last: u64) -> Result<CallOptions> {
        let within = match &self.times[..] {
            [] => None,
            [time] => {
                let (from, to) = time.times(Nanos(first), Nanos(last));
                Some(Span { start: from.0, end: to.0 })
            }
            _ => return Err(Error::usage("spans can only be cut to one time range; pass --time once")),
        };
        Ok(CallOptions { within, ..self.calls })
    }
}

/// Options for writers.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// The index of the event to write, in formats that hold only one.
    pub series: usize,
    /// Which weight of the samples to sum.
    pub weight: Weight,
    /// Which key adds an outermost frame to each stack, such as the thread.
    pub by: By,
    /// Which suffixes to append to frame names, such as `_[k]` for kernel code.
    pub annotate: Annotate,
    /// Which names are shortened as inferno-collapse-perf does it, in formats where a frame is a single string.
    pub tidied: Tidied,
    /// In formats that list every row: sum the rows within each interval of this many nanoseconds. `None` keeps them
    /// all.
    pub bucket: Option<u64>,
    /// True if the directory names of the output already contain host and day, so that rows needn't.
    pub partitioned: bool,
}
