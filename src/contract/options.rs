//! Options for reading and writing that come from the command line.

use crate::analysis::filter::TimeRange;
use crate::analysis::label::{Annotate, RootFrame, Shortening};
use crate::analysis::timeline::{CallOptions, Span};
use crate::error::{Error, Result};
use crate::model::Nanos;
use crate::model::stacks::{Keep, Timing, Weight};

/// How much is known about a frame, or how much of it is written.
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
    /// For formats that record when calls started and ended: how calls become stacks.
    pub calls: CallOptions,
    /// For formats with spans: only spans with these names become stacks. If empty, all do.
    pub only: Vec<String>,
    /// For formats with spans: the names of spans that are shown under the name of their action
    /// ([`Slice::action`](crate::analysis::timeline::Slice::action)), if they state one.
    pub named_by_action: Vec<String>,
    /// For traces: sum the time of spans separately for each value of the arguments with these names.
    pub by_args: Vec<String>,
    /// For formats with spans: the time ranges to read. In other formats, rows are filtered by time after reading.
    pub times: Vec<TimeRange>,
    /// Whether the profile keeps every row, or only the sum of each stack.
    pub keep: Keep,
    /// How much of each frame the caller needs; `None` means everything. Readers may return more if it costs nothing.
    pub detail: Option<Detail>,
    /// Whether to keep rows apart that differ in their recording or labels, for inputs that state these.
    pub apart: bool,
    /// Whether to keep the labels of samples, so that rows with different labels aren't summed. `apart` implies this.
    pub labels: bool,
    /// Whether the caller needs columns of source positions, for looking them up in source maps.
    pub columns: bool,
    /// For traces: whether to count spans as Perfetto's trace processor does.
    pub perfetto_compat: bool,
}

impl ReadOptions {
    /// The options for turning calls into stacks, with the time range that the user requested. A range may be relative
    /// to the start or end of the recording, which are `first` and `last`, in nanoseconds. Fails if the user requested
    /// more than one range, because calls can only be cut to one.
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
    /// Which number of each row to sum: its weight or its sample count.
    pub weight: Weight,
    /// The key whose value becomes an extra outermost frame of each stack, for instance the thread.
    pub by: RootFrame,
    /// Which suffixes to append to frame names, such as `_[k]` for kernel code.
    pub annotate: Annotate,
    /// Which names are shortened as inferno-collapse-perf does it. Only for formats in which a frame is a single
    /// string.
    pub shortening: Shortening,
    /// For formats that list every row: sum the rows of each interval of this many nanoseconds. `None` keeps every row.
    pub bucket: Option<u64>,
    /// True if rows needn't contain host and day, because the names of the output's directories do (`--partition`).
    pub partitioned: bool,
    /// When the profile's samples were taken, if the caller knows. If it is `None`, a writer that needs it has to look
    /// at all rows of all events. Callers that write one output per event therefore determine it once for all outputs.
    pub timing: Option<Timing>,
}
