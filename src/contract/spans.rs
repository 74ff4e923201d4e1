//! A format of spans: its part of the table.
//!
//! A new one reads its spans into a [`Timeline`]; [`stacks`] and [`Timeline::tell`] do the rest. Anything that a format
//! can do better than that (in less memory, with more that its file states) it does itself.

use crate::analysis::timeline::{LabelSummary, NO_NAME, SpanSink, Timeline};
use crate::contract::options::ReadOptions;
use crate::error::{Error, Result, Warning, Warnings};
use crate::model::stacks::Profile;
use std::any::Any;
use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

/// The questions about a format that contains spans of time.
#[derive(Debug, Clone, Copy)]
pub struct Spans {
    /// The way its bytes are wanted.
    pub wants: Wants,
    /// Sums the spans by call path.
    pub stacks: fn(input: SpanInput<'_>, options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile>,
    /// Reads all spans, for questions about single ones; memory is taken by their number.
    pub timeline: fn(input: SpanInput<'_>, options: &ReadOptions, warnings: &mut Warnings) -> Result<Timeline>,
    /// Reports a sink of the spans one by one, with all that the file states about them.
    pub tell: fn(input: SpanInput<'_>, sink: &mut dyn SpanSink, warnings: &mut Warnings) -> Result<()>,
    /// Sums the spans by label; `None` if its spans are best asked for those on top.
    pub summary: Option<fn(input: SpanInput<'_>, warnings: &mut Warnings) -> Result<LabelSummary>>,
}

/// The way a format wants the bytes of an input. It must do with the other, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// All of them at once: they are mapped, and need not be read from their start.
    Whole,
    /// One after the other: what is packed is not unpacked to a file first.
    Stream,
}

/// An input, and who helps with it.
#[derive(Debug)]
pub struct SpanInput<'a> {
    /// Its contents.
    pub bytes: SpanBytes<'a>,
    /// The workers side by side.
    pub workers: &'a dyn Workers,
}

impl<'a> SpanInput<'a> {
    /// Bytes in memory, read without help.
    pub fn whole(bytes: &'a [u8]) -> Self {
        Self { bytes: SpanBytes::Whole { bytes, done: Done::default() }, workers: &Alone }
    }
}

/// The bytes of an input.
pub enum SpanBytes<'a> {
    /// All of them.
    Whole {
        /// The bytes.
        bytes: &'a [u8],
        /// The receiver of finished ranges.
        done: Done,
    },
    /// One after the other.
    Stream(Box<dyn Read + Send + 'a>),
}

impl<'a> SpanBytes<'a> {
    /// All of them, and whom to show which are done with. A stream is read into memory.
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

    /// One after the other. Those that were read are done with.
    pub fn into_stream(self) -> Box<dyn Read + Send + 'a> {
        match self {
            Self::Whole { bytes, done } => Box::new(Once { bytes, at: 0, done }),
            Self::Stream(stream) => stream,
        }
    }
}

impl Debug for SpanBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole { bytes, .. } => write!(f, "Whole({} bytes)", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

/// Receives the ranges of bytes that a reader will not look at again, so that a mapped file need not stay in memory.
#[derive(Clone, Default)]
pub struct Done(Option<Arc<dyn Fn(Range<usize>) + Send + Sync>>);

impl Done {
    /// Calls `hear` with each range of the bytes given to the reader.
    pub fn new(hear: impl Fn(Range<usize>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    /// These bytes are done with.
    pub fn with(&self, range: Range<usize>) {
        if let Some(hear) = &self.0 {
            hear(range);
        }
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Done(heard)" } else { "Done(unheard)" })
    }
}

/// Reads bytes once, and lets go of those that were read.
struct Once<'a> {
    bytes: &'a [u8],
    at: usize,
    done: Done,
}

impl Read for Once<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = (&self.bytes[self.at..]).read(to)?;
        self.done.with(self.at..self.at + read);
        self.at += read;
        Ok(read)
    }
}

/// A piece of work for any thread.
pub type Task<'t> = Box<dyn FnOnce() -> TaskOutput + Send + 't>;

/// The result of a task: the caller that made the task has its type.
pub type TaskOutput = Box<dyn Any + Send>;

/// The receiver of the results of tasks.
pub type TakeOutputs<'t> = dyn FnMut(&mut dyn Iterator<Item = TaskOutput>) + 't;

/// The workers for several things at a time. A format has no threads: who calls it brings them.
pub trait Workers: Debug {
    /// The number of them.
    fn count(&self) -> usize;

    /// Does tasks as they come, at most a few ahead, and hands what they give to `take`, in their order.
    fn do_in_order<'t>(&self, tasks: &mut (dyn Iterator<Item = Task<'t>> + Send + '_), take: &mut TakeOutputs<'_>);
}

impl dyn Workers + '_ {
    /// `f` of every item, side by side. `take` gets the results in the items' order, while others are under way.
    pub fn map<T: Send, O: Send + 'static, R>(
        &self,
        items: impl Iterator<Item = T> + Send,
        f: impl Fn(T) -> O + Sync,
        take: impl FnOnce(&mut dyn Iterator<Item = O>) -> Result<R>,
    ) -> Result<R> {
        let f = &f;
        let mut tasks = items.map(|item| -> Task<'_> { Box::new(move || Box::new(f(item))) });
        let mut result = Err(Error::new("nobody took what was read"));
        let mut take = Some(take);
        self.do_in_order(&mut tasks, &mut |done| {
            if let Some(take) = take.take() {
                // The result of a task comes back as it is: always an `O`.
                result = take(&mut done.filter_map(|done| done.downcast().ok().map(|done| *done)));
            }
        });
        result
    }
}

/// The calling thread, and no other.
#[derive(Debug, Clone, Copy)]
pub struct Alone;

impl Workers for Alone {
    fn count(&self) -> usize {
        1
    }

    fn do_in_order<'t>(&self, tasks: &mut (dyn Iterator<Item = Task<'t>> + Send + '_), take: &mut TakeOutputs<'_>) {
        take(&mut tasks.map(|task| task()));
    }
}

/// Nests the spans of each thread by their times and sums them. Spans of the names in `by_sub`, and those requested by
/// name, are shown by their action, if they state it.
pub fn stacks(
    timeline: &Timeline,
    by_sub: &[&[u8]],
    options: &ReadOptions,
    warnings: &mut Warnings,
) -> Result<Profile> {
    let number = |name: &[u8]| timeline.names.find(name);
    let mut only: Vec<_> = options.only.iter().filter_map(|name| number(name.as_bytes())).collect();
    if only.is_empty() && !options.only.is_empty() {
        // No span has such a name: none is wanted.
        only.push(NO_NAME);
    }
    let by_sub = by_sub.iter().copied().chain(options.by_sub.iter().map(String::as_bytes));
    let by_sub: Vec<_> = by_sub.filter_map(number).collect();
    let by_name = !only.is_empty();
    let (first, last) = timeline.bounds();
    let time = |time: i64| u64::try_from(time).unwrap_or(0);
    let calls = options.calls_between(time(first), time(last))?;
    let mut stacked = timeline.stacks(calls, &only, |slice| {
        let says = slice.sub != NO_NAME && (by_name || by_sub.contains(&slice.name));
        if says { slice.sub } else { slice.name }
    });
    if stacked.overlaps > 0 {
        warnings.push(Warning::new(format!(
            "{} spans overlap another one of their thread without lying inside it: they begin stacks of their own",
            stacked.overlaps
        )));
    }
    stacked.profile.cut_to_time = true;
    Ok(stacked.profile)
}
