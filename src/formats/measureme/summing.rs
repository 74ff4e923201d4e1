//! Sums the calls of threads by call path.

use super::event::Payload;
use super::profile::MeasuremeFile;
use super::strings::Labels;
use crate::analysis::timeline::{CallOptions, CallSums, Span};
use crate::contract::spans::Done;
use crate::model::stacks::Track;
use crate::model::texts::TextList;
use crate::model::{Pid, Tid};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The sums, and the labels and threads that the numbers in them stand for.
#[derive(Debug)]
pub(super) struct LabelledSums {
    pub(super) sums: CallSums,
    pub(super) labels: TextList,
    pub(super) threads: ThreadNumbers,
}

impl LabelledSums {
    /// Sums the events that start in these pages.
    pub(super) fn new(profile: &MeasuremeFile<'_>, pages: Range<usize>, calls: CallOptions, done: &Done) -> Self {
        let mut summing = Summing::new(profile, calls);
        summing.add_reversed(profile, pages, done);
        summing.finish()
    }
}

/// Sums that are being computed.
pub(super) struct Summing<'s, 'data> {
    pub(super) sums: CallSums,
    labels: Labels<'s, 'data>,
    threads: ThreadNumbers,
}

impl<'s, 'data> Summing<'s, 'data> {
    pub(super) fn new(profile: &'s MeasuremeFile<'data>, calls: CallOptions) -> Self {
        let (sums, labels) = (CallSums::new(calls), Labels::new(&profile.strings));
        Self { sums, labels, threads: ThreadNumbers::default() }
    }

    /// Adds the events that start in these pages, in reverse order.
    pub(super) fn add_reversed(&mut self, profile: &MeasuremeFile<'data>, pages: Range<usize>, done: &Done) {
        profile.for_each_event_reversed(pages, done, |event| {
            if let Payload::Interval { start, end } = event.payload {
                self.call(event.thread, event.id, Span { start, end });
            }
        });
    }

    /// Adds a call in a thread; `id` is the string ID of its label.
    #[inline]
    pub(super) fn call(&mut self, thread: u32, id: u64, span: Span) {
        let Self { sums, labels, threads } = self;
        let track = threads.number(thread, || sums.track());
        sums.call(track, labels.number(id), span);
    }

    pub(super) fn finish(self) -> LabelledSums {
        LabelledSums { sums: self.sums, labels: self.labels.texts.list().clone(), threads: self.threads }
    }
}

/// Numbers threads in the order of their first use.
#[derive(Debug, Default)]
pub(super) struct ThreadNumbers {
    numbers: FxHashMap<u32, usize>,
    ids: Vec<u32>,
    /// The thread that was asked for last, and its number.
    last: Option<(u32, usize)>,
}

impl ThreadNumbers {
    /// The number of a thread. `new` provides the number of a thread that is new.
    #[inline]
    pub(super) fn number(&mut self, id: u32, new: impl FnOnce() -> usize) -> usize {
        match self.last {
            Some((last, number)) if last == id => number,
            _ => {
                let number = *self.numbers.entry(id).or_insert_with(|| {
                    self.ids.push(id);
                    new()
                });
                self.last = Some((id, number));
                number
            }
        }
    }

    /// Adds the threads of `others`; new threads get the next numbers. Returns the number that each thread of `others`
    /// has here, in the order of its number there.
    pub(super) fn join(&mut self, others: &Self) -> Vec<usize> {
        let mut new = self.ids.len()..;
        others.ids.iter().map(|id| self.number(*id, || new.next().unwrap_or_default())).collect()
    }

    /// The threads, by number.
    pub(super) fn tracks(&self, profile: &MeasuremeFile<'_>) -> Vec<Track> {
        let metadata = &profile.metadata;
        let comm = metadata.program().as_bytes();
        let pid = metadata.process_id.map(|pid| Pid(pid as i32));
        let mut tracks = Vec::with_capacity(self.ids.len());
        for id in &self.ids {
            tracks.push(Track { comm: comm.to_vec(), pid, tid: Some(Tid(*id as i32)), ..Track::default() });
        }
        tracks
    }
}
