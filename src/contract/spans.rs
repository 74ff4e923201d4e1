//! What a format must provide if its inputs hold spans of time.
//!
//! A new format only has to read its spans into a [`Timeline`]; [`stacks`] and [`Timeline::emit`] do the rest. A format
//! may implement any of these itself if it can do better, for example with less memory or more details.

use crate::analysis::quantity::counted;
use crate::analysis::timeline::{LabelSummary, NO_NAME, NameNumber, SpanSink, Timeline};
use crate::contract::options::ReadOptions;
use crate::error::{Result, Warning, Warnings};
use crate::model::stacks::Profile;
use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

/// The functions of a format that holds spans of time.
#[derive(Debug, Clone, Copy)]
pub struct Spans {
    /// Whether the format prefers all bytes at once or a stream.
    pub wants: Wants,
    /// A function that reads the spans and sums them by call path.
    pub stacks: fn(input: SpanInput<'_>, options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile>,
    /// A function that reads all spans into memory, for commands that look at single spans.
    pub timeline: fn(input: SpanInput<'_>, options: &ReadOptions, warnings: &mut Warnings) -> Result<Timeline>,
    /// A function that passes the spans to `sink` one by one, with everything the file says about them.
    pub emit: fn(input: SpanInput<'_>, sink: &mut dyn SpanSink, warnings: &mut Warnings) -> Result<()>,
    /// A function that sums the spans by label. `None` if the format's spans have no labels; a summary then shows
    /// top-level spans.
    pub summary: Option<fn(input: SpanInput<'_>, warnings: &mut Warnings) -> Result<LabelSummary>>,
}

/// How a format prefers to get the bytes of an input. The format's functions must be able to handle both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// The format wants all bytes at once, from a mapped file, and reads them in any order.
    Whole,
    /// The format reads a stream from start to end, so that compressed input needn't be decompressed to a file first.
    Stream,
}

/// An input with spans.
pub enum SpanInput<'a> {
    /// All bytes, in memory or in a mapped file.
    Whole {
        /// The whole input.
        bytes: &'a [u8],
        /// To be called with ranges of bytes that the reader won't need again.
        done: Done,
    },
    /// A stream, read from its start.
    Stream(Box<dyn Read + Send + 'a>),
}

impl<'a> SpanInput<'a> {
    /// An input whose bytes are in memory.
    pub fn whole(bytes: &'a [u8]) -> Self {
        Self::Whole { bytes, done: Done::default() }
    }

    /// Returns all bytes, and a callback for ranges that the reader won't need again. A stream is read into memory.
    pub fn into_whole(self) -> Result<(Cow<'a, [u8]>, Done)> {
        match self {
            Self::Whole { bytes, done } => Ok((Cow::Borrowed(bytes), done)),
            Self::Stream(mut stream) => {
                let mut bytes = Vec::new();
                stream.read_to_end(&mut bytes)?;
                Ok((Cow::Owned(bytes), Done::default()))
            }
        }
    }

    /// Returns a stream of the bytes. Bytes in memory are reported as no longer needed once they have been read from
    /// it.
    pub fn into_stream(self) -> Box<dyn Read + Send + 'a> {
        match self {
            Self::Whole { bytes, done } => Box::new(ReleasingReader { bytes, position: 0, done }),
            Self::Stream(stream) => stream,
        }
    }
}

impl Debug for SpanInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole { bytes, .. } => write!(f, "Whole({} bytes)", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

/// A callback with which a reader reports ranges of bytes that it won't need again, so that the pages of a mapped file
/// can be released. Does nothing by default.
#[derive(Clone, Default)]
pub struct Done(Option<Arc<dyn Fn(Range<usize>) + Send + Sync>>);

impl Done {
    /// Creates a callback that passes on to `report` the ranges of bytes that a reader won't need again.
    pub fn new(report: impl Fn(Range<usize>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(report)))
    }

    /// Reports that the reader won't need these bytes again.
    pub fn release(&self, range: Range<usize>) {
        if let Some(report) = &self.0 {
            report(range);
        }
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Done(callback)" } else { "Done(none)" })
    }
}

/// Reads bytes once, in order, and reports the bytes that were read as no longer needed.
struct ReleasingReader<'a> {
    bytes: &'a [u8],
    position: usize,
    done: Done,
}

impl Read for ReleasingReader<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = (&self.bytes[self.position..]).read(to)?;
        self.done.release(self.position..self.position + read);
        self.position += read;
        Ok(read)
    }
}

/// Nests the spans of each thread by their times, and sums them to stacks. Some spans state an action. Such a span is
/// shown under the action's name instead of its own if the user requested spans by name ([`ReadOptions::only`]), or if
/// the span's name is in `named_by_action` (the format's list) or in [`ReadOptions::named_by_action`] (the user's
/// list).
pub fn stacks(
    timeline: &Timeline,
    named_by_action: &[&[u8]],
    options: &ReadOptions,
    warnings: &mut Warnings,
) -> Result<Profile> {
    let mut only: Vec<NameNumber> =
        options.only.iter().filter_map(|name| timeline.names.find(name.as_bytes())).collect();
    if only.is_empty() && !options.only.is_empty() {
        // No span has a requested name. Since an empty list would select all spans, select those with a name that no
        // span has.
        only.push(NO_NAME);
    }
    let all_show_action = !only.is_empty();
    let show_action_names = named_by_action.iter().copied().chain(options.named_by_action.iter().map(String::as_bytes));
    let show_action: Vec<NameNumber> = show_action_names.filter_map(|name| timeline.names.find(name)).collect();
    let (first, last) = timeline.bounds();
    let calls = options.calls_between(u64::try_from(first).unwrap_or(0), u64::try_from(last).unwrap_or(0))?;
    let mut stacked = timeline.stacks(calls, &only, |slice| {
        let shows_action = slice.action != NO_NAME && (all_show_action || show_action.contains(&slice.name));
        if shows_action { slice.action } else { slice.name }
    });
    warn_of_overlaps(stacked.overlaps, warnings);
    // The calls were cut to the requested time range. Filtering by time again would drop their sums, which have no
    // times.
    stacked.profile.cut_to_time = true;
    Ok(stacked.profile)
}

/// Warns about spans that overlap an earlier span of their thread without being nested in that span. `count` is how
/// many there are.
fn warn_of_overlaps(count: u64, warnings: &mut Warnings) {
    let message = match count {
        0 => return,
        1 => {
            "1 span overlaps an earlier span of its thread without being nested in that span; the later span starts a \
              new stack"
                .to_owned()
        }
        count => format!(
            "{} overlap an earlier span of their thread without being nested in that span; each later span starts a \
             new stack",
            counted(count, "span")
        ),
    };
    warnings.push(Warning::new(message));
}
