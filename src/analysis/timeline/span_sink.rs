//! Passes time spans from a reader to a writer without converting them to stacks; a sink selects spans on the way.
//!
//! ```text
//! reader ── SpanHead ──→ sink wants it? ── SpanRecord ──→ sink ──→ SpanWriter
//! ```
//!
//! A reader offers each span to a [`SpanSink`] as a [`SpanHead`]. Only if the sink wants it does the reader collect
//! everything that the file says about the span, because that takes time.

use super::slices::{NO_NAME, NameNumber, Slice, SliceKind, Timeline, UNFINISHED};
use crate::error::Result;
use crate::model::stacks::Track;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt::Debug;

/// What is known about a file before its spans are read.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpanFile<'a> {
    /// The start of the file's first span, in nanoseconds.
    pub first: i64,
    /// The end of the file's last span, in nanoseconds.
    pub last: i64,
    /// The wall-clock time of the file's time 0, in nanoseconds since 1970. `None` means that times are passed on
    /// unchanged.
    pub since_1970: Option<u64>,
    /// ID and name of the file's only process, for formats whose events don't contain the process.
    pub process: Option<(i64, &'a str)>,
    /// The threads of the file; empty if threads only become known while reading.
    pub threads: &'a [Track],
}

/// What is known about a span before all of it is read. Filters select spans by this.
#[derive(Debug, Clone, Copy)]
pub struct SpanHead<'a> {
    /// The number of the thread within the file.
    pub thread_no: u32,
    /// The thread that the span runs on.
    pub thread: &'a Track,
    /// The number of the name within the file.
    pub name_no: NameNumber,
    /// The span's name; empty if it has none.
    pub name: &'a [u8],
    /// The action that the span's arguments state; `None` if they state none, or if the format never names spans after
    /// their action.
    pub action: Option<&'a [u8]>,
    /// The start in nanoseconds.
    pub start: i64,
    /// The duration in nanoseconds; [`UNFINISHED`] if the span never ended, `None` for an instant.
    pub duration: Option<i64>,
}

impl SpanHead<'_> {
    /// When the span ended. For instants and unfinished spans, when it started.
    pub fn end(&self) -> i64 {
        self.start.saturating_add(self.duration.unwrap_or(0)).max(self.start)
    }
}

/// Everything that a file says about a span.
#[derive(Debug, Clone)]
pub struct SpanRecord<'a> {
    /// The span's name; empty if it has none.
    pub name: &'a [u8],
    /// The span's category; `None` if it has none.
    pub cat: Option<&'a [u8]>,
    /// The start in nanoseconds.
    pub start: i64,
    /// The duration in nanoseconds; [`UNFINISHED`] if the span never ended, `None` for an instant.
    pub duration: Option<i64>,
    /// The process of the span.
    pub pid: NumberOrName<'a>,
    /// The thread of the span.
    pub tid: NumberOrName<'a>,
    /// The ID of the span's track; `None` if the span is on its thread's own track.
    pub id: Option<SpanId<'a>>,
    /// The span's arguments.
    pub args: Arguments<'a>,
}

impl<'a> SpanRecord<'a> {
    /// Creates a record with what the head contains and nothing else.
    pub fn from_head(head: &SpanHead<'a>) -> Self {
        let &SpanHead { thread, name, start, duration, .. } = head;
        Self {
            name,
            cat: None,
            start,
            duration,
            pid: NumberOrName::Number(thread.pid.map_or(0, |pid| i64::from(pid.0))),
            tid: NumberOrName::Number(thread.tid.map_or(0, |tid| i64::from(tid.0))),
            id: None,
            args: Arguments::Texts(&[]),
        }
    }
}

/// A process or thread: its ID or, in files without IDs, its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NumberOrName<'a> {
    Number(i64),
    Name(Cow<'a, [u8]>),
}

/// The ID of an async track, as the JSON of a trace has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanId<'a> {
    /// The number, or the string without its quotes.
    pub text: &'a [u8],
    /// True if the ID is a string in JSON, false if it is a number.
    pub is_text: bool,
    /// True if the ID is only unique within its process.
    pub is_local: bool,
    /// The scope of the ID, if the file states one. Equal IDs in different scopes are different tracks.
    pub scope: Option<&'a [u8]>,
}

/// The arguments of a span.
#[derive(Debug, Clone, Copy)]
pub enum Arguments<'a> {
    /// Pairs of an argument's name and its value, both as text.
    Texts(&'a [(&'a [u8], &'a [u8])]),
    /// A JSON object with its braces, as in the file; empty if there are no arguments.
    Json(&'a [u8]),
}

/// An event of a trace that isn't a span, such as a counter.
#[derive(Debug, Clone, Copy)]
pub struct OtherEvent<'a> {
    /// The kind of event.
    pub kind: OtherKind,
    /// The event's time in nanoseconds; `None` if it has none.
    pub time: Option<i64>,
    /// The JSON object of the event, as in the file.
    pub json: &'a [u8],
}

/// The kind of an event that isn't a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherKind {
    /// Names a process or thread, or says how to show it.
    Metadata,
    /// A value that changes over time.
    Counter,
    /// An event of any other kind.
    Unknown,
}

/// Selects spans and receives those that it selected.
pub trait SpanSink: Debug {
    /// Called at the start of a file. Events that aren't spans may come before this.
    fn file(&mut self, file: &SpanFile<'_>) -> Result<()>;
    /// True if the sink wants this span. Called once for each span.
    fn wants(&mut self, head: &SpanHead<'_>) -> bool;
    /// Receives a span for which [`wants`](Self::wants) returned true. Callers come before callees.
    fn span(&mut self, head: &SpanHead<'_>, record: &SpanRecord<'_>) -> Result<()>;
    /// Receives an event that isn't a span.
    fn other(&mut self, event: &OtherEvent<'_>) -> Result<()>;
}

/// Writes spans one after the other.
pub trait SpanWriter: Debug {
    /// Writes a span or an instant.
    fn span(&mut self, record: &SpanRecord<'_>) -> Result<()>;
    /// Writes the name of a process.
    fn process_name(&mut self, pid: i64, name: &str) -> Result<()>;
    /// Writes the name of a thread.
    fn thread_name(&mut self, pid: i64, tid: i64, name: &str) -> Result<()>;
    /// Writes an event that isn't a span.
    fn other(&mut self, event: &OtherEvent<'_>) -> Result<()>;
    /// Completes the output.
    fn finish(&mut self) -> Result<()>;
}

/// A callback that passes a complete span to a sink.
pub type EmitSpan<'t> = dyn FnMut(&SpanRecord<'_>) -> Result<()> + 't;

impl Timeline {
    /// Passes the timeline's spans to a sink, by start time and outer spans first. For each span that the sink wants,
    /// `complete` gets the slice, a record of what the timeline knows about the span, and the sink's callback.
    /// `complete` adds what else the file says about the span to the record, and passes it to the callback.
    pub fn emit(
        &mut self,
        sink: &mut dyn SpanSink,
        mut complete: impl FnMut(&Slice, SpanRecord<'_>, &mut EmitSpan<'_>) -> Result<()>,
    ) -> Result<()> {
        self.sort();
        let (first, last) = self.bounds();
        sink.file(&SpanFile { first, last, threads: &self.tracks, ..SpanFile::default() })?;
        for index in self.find_wanted(sink) {
            let slice = &self.slices[index as usize];
            let head = self.head(slice);
            let mut pass_on = |record: &SpanRecord<'_>| sink.span(&head, record);
            complete(slice, SpanRecord::from_head(&head), &mut pass_on)?;
        }
        Ok(())
    }

    /// The indexes of the slices that the sink wants, in output order.
    fn find_wanted(&self, sink: &mut dyn SpanSink) -> Vec<u32> {
        let mut wanted: Vec<u32> = Vec::new();
        for (index, slice) in (0..).zip(&self.slices) {
            if sink.wants(&self.head(slice)) {
                wanted.push(index);
            }
        }
        wanted.sort_by_key(|&index| {
            let slice = &self.slices[index as usize];
            let end = if slice.duration == UNFINISHED { i64::MAX } else { slice.end() };
            (slice.start, Reverse(end))
        });
        wanted
    }

    /// The head of a slice, by which the sink decides whether it wants the slice.
    fn head(&self, slice: &Slice) -> SpanHead<'_> {
        SpanHead {
            thread_no: slice.track,
            thread: &self.tracks[slice.track as usize],
            name_no: slice.name,
            name: self.names.text(slice.name),
            action: (slice.action != NO_NAME).then(|| self.names.text(slice.action)),
            start: slice.start,
            duration: (slice.kind != SliceKind::Instant).then_some(slice.duration),
        }
    }
}
