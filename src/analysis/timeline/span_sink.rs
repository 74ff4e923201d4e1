//! Spans that stay spans: from a reader, past somebody's choice, to a writer.
//!
//! ```text
//! reader ── SpanHead ──→ sink wants it? ── SpanRecord ──→ sink ──→ SpanWriter
//! ```
//!
//! A reader gives a [`SpanSink`] of one span after the other. To find all that a file states about a span costs time;
//! it is spent on those only that the sink wants.

use super::slices::{NO_NAME, NameNo, Slice, SliceKind, Timeline, UNFINISHED};
use crate::error::Result;
use crate::model::stacks::Track;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt::Debug;

/// The facts about a whole file that are known before its spans are reported.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpanFile<'a> {
    /// The earliest begin, in nanoseconds.
    pub first: i64,
    /// The latest end.
    pub last: i64,
    /// When its time 0 was, in nanoseconds since 1970; `None` if its times are to be taken as they are.
    pub since_1970: Option<u64>,
    /// Number and name of the process, where the file reports one only, and not as an event.
    pub process: Option<(i64, &'a str)>,
    /// The threads, unless they are only met on the way.
    pub threads: &'a [Track],
}

/// The part of a span that decides whether it is selected.
#[derive(Debug, Clone, Copy)]
pub struct SpanHead<'a> {
    /// The number of its thread within the file.
    pub thread_no: u32,
    /// Its thread.
    pub thread: &'a Track,
    /// The number of its name within the file.
    pub name_no: NameNo,
    /// Its name; empty if it has none.
    pub name: &'a [u8],
    /// The action, if the span states it and may be named after it.
    pub sub: Option<&'a [u8]>,
    /// When it begins, in nanoseconds.
    pub start: i64,
    /// The duration; [`UNFINISHED`] if it never ended, `None` for an instant.
    pub duration: Option<i64>,
}

impl SpanHead<'_> {
    /// When it ended; an instant or an unfinished span when it began.
    pub fn end(&self) -> i64 {
        self.start.saturating_add(self.duration.unwrap_or(0)).max(self.start)
    }
}

/// All that a file states about a span, as a writer gets it.
#[derive(Debug, Clone)]
pub struct SpanRecord<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its category.
    pub cat: Option<&'a [u8]>,
    /// When it begins, in nanoseconds.
    pub start: i64,
    /// The duration; [`UNFINISHED`] if it never ended, `None` for an instant.
    pub duration: Option<i64>,
    /// The process.
    pub pid: NumberOrName<'a>,
    /// The thread.
    pub tid: NumberOrName<'a>,
    /// The track that it is on beside its thread's own.
    pub id: Option<SpanId<'a>>,
    /// Its arguments.
    pub args: Arguments<'a>,
}

impl<'a> SpanRecord<'a> {
    /// The choice by the head alone.
    pub fn of(head: &SpanHead<'a>) -> Self {
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

/// A process or thread: some files have names in place of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NumberOrName<'a> {
    /// By number.
    Number(i64),
    /// By name.
    Name(Cow<'a, [u8]>),
}

/// The id of a track, in JSON's spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanId<'a> {
    /// The number, or the text without its quotes.
    pub text: &'a [u8],
    /// True if it is a text.
    pub is_text: bool,
    /// True if it holds within its process only.
    pub is_local: bool,
    /// The scope within which it holds: the same id in two scopes is two.
    pub scope: Option<&'a [u8]>,
}

/// The arguments of a span.
#[derive(Debug, Clone, Copy)]
pub enum Arguments<'a> {
    /// Names and texts.
    Texts(&'a [(&'a [u8], &'a [u8])]),
    /// A JSON object, braces included; empty for none.
    Json(&'a [u8]),
}

/// A part of a file beside its spans.
#[derive(Debug, Clone, Copy)]
pub struct OtherEvent<'a> {
    /// Its kind.
    pub kind: OtherKind,
    /// When it was, in nanoseconds.
    pub time: Option<i64>,
    /// The event as a trace's JSON object.
    pub json: &'a [u8],
}

/// The kind of an event that is not a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherKind {
    /// It shows what a process or thread is called, or where it is shown.
    Metadata,
    /// Numbers that change over time.
    Counter,
    /// Something else.
    Unknown,
}

/// The receiver of spans.
pub trait SpanSink: Debug {
    /// A file begins. Events that are not spans may have come before.
    fn file(&mut self, file: &SpanFile<'_>) -> Result<()>;
    /// True if this span is wanted. Asked once of each, before the span is reported.
    fn wants(&mut self, head: &SpanHead<'_>) -> bool;
    /// A span that is wanted. Callers come before what they called.
    fn span(&mut self, head: &SpanHead<'_>, record: &SpanRecord<'_>) -> Result<()>;
    /// An event that is not a span.
    fn other(&mut self, event: &OtherEvent<'_>) -> Result<()>;
}

/// Writes spans one after the other.
pub trait SpanWriter: Debug {
    /// A span or an instant.
    fn span(&mut self, record: &SpanRecord<'_>) -> Result<()>;
    /// The name of a process.
    fn process_name(&mut self, pid: i64, name: &str) -> Result<()>;
    /// The name of a thread.
    fn thread_name(&mut self, pid: i64, tid: i64, name: &str) -> Result<()>;
    /// Something that is not a span.
    fn other(&mut self, event: &OtherEvent<'_>) -> Result<()>;
    /// The end.
    fn finish(&mut self) -> Result<()>;
}

/// Reports one span to a sink.
pub type TellSpan<'t> = dyn FnMut(&SpanRecord<'_>) -> Result<()> + 't;

impl Timeline {
    /// Reports a sink of the spans in order of time, of equal begins the outer one first. `complete` gets what the
    /// timeline has about each that is wanted, and reports it with whatever else the file states.
    pub fn tell(
        &mut self,
        sink: &mut dyn SpanSink,
        mut complete: impl FnMut(&Slice, SpanRecord<'_>, &mut TellSpan<'_>) -> Result<()>,
    ) -> Result<()> {
        self.sort();
        let (first, last) = self.bounds();
        sink.file(&SpanFile { first, last, threads: &self.tracks, ..SpanFile::default() })?;
        for at in self.wanted(sink) {
            let slice = &self.slices[at as usize];
            let head = self.head(slice);
            complete(slice, SpanRecord::of(&head), &mut |record| sink.span(&head, record))?;
        }
        Ok(())
    }

    /// Positions of the slices that a sink wants, in the order in which they are reported.
    fn wanted(&self, sink: &mut dyn SpanSink) -> Vec<u32> {
        let slices = (0..).zip(&self.slices);
        let mut wanted: Vec<u32> =
            slices.filter(|(_, slice)| sink.wants(&self.head(slice))).map(|(at, _)| at).collect();
        let end = |slice: &Slice| if slice.duration == UNFINISHED { i64::MAX } else { slice.end() };
        wanted.sort_by_key(|&at| {
            let slice = &self.slices[at as usize];
            (slice.start, Reverse(end(slice)))
        });
        wanted
    }

    fn head(&self, slice: &Slice) -> SpanHead<'_> {
        SpanHead {
            thread_no: slice.track,
            thread: &self.tracks[slice.track as usize],
            name_no: slice.name,
            name: self.names.text(slice.name),
            sub: (slice.sub != NO_NAME).then(|| self.names.text(slice.sub)),
            start: slice.start,
            duration: (slice.kind != SliceKind::Instant).then_some(slice.duration),
        }
    }
}
