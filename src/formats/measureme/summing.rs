//! Calls of threads, summed by path, with what the numbers in the sums mean.

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

/// Sums, and what the numbers in them mean.
#[derive(Debug)]
pub(super) struct LabelledSums {
    pub(super) sums: CallSums,
    pub(super) labels: TextList,
    pub(super) threads: ThreadNumbers,
}

impl LabelledSums {
    /// The part for the events that begin in these pages.
    pub(super) fn of(profile: &MeasuremeFile<'_>, pages: Range<usize>, calls: CallOptions, done: &Done) -> Self {
        let mut summing = Summing::new(profile, calls);
        summing.backwards(profile, pages, done);
        summing.finish()
    }
}

/// Sums under way.
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

    /// Sums the events that begin in these pages, backwards.
    pub(super) fn backwards(&mut self, profile: &MeasuremeFile<'data>, pages: Range<usize>, done: &Done) {
        profile.backwards(pages, done, |event| {
            if let Payload::Interval { start, end } = event.payload {
                self.call(event.thread, event.id, Span { start, end });
            }
        });
    }

    /// Adds a call of a thread.
    #[inline]
    pub(super) fn call(&mut self, thread: u32, id: u64, span: Span) {
        let Self { sums, labels, threads } = self;
        let track = threads.number(thread, || sums.track());
        sums.call(track, labels.of(id), span);
    }

    pub(super) fn finish(self) -> LabelledSums {
        LabelledSums { sums: self.sums, labels: self.labels.texts.list().clone(), threads: self.threads }
    }
}

/// The threads in the order in which they are first seen.
#[derive(Debug, Default)]
pub(super) struct ThreadNumbers {
    numbers: FxHashMap<u32, usize>,
    ids: Vec<u32>,
    last: Option<(u32, usize)>,
}

impl ThreadNumbers {
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

    /// The numbers that other threads' places have here; those that are new come behind, in their order.
    pub(super) fn join(&mut self, others: &Self) -> Vec<usize> {
        let mut new = self.ids.len()..;
        others.ids.iter().map(|id| self.number(*id, || new.next().unwrap_or_default())).collect()
    }

    pub(super) fn tracks(&self, profile: &MeasuremeFile<'_>) -> Vec<Track> {
        let metadata = &profile.metadata;
        let comm = metadata.program().as_bytes();
        let pid = metadata.process_id.map(|pid| Pid(pid as i32));
        self.ids
            .iter()
            .map(|&id| Track { comm: comm.to_vec(), pid, tid: Some(Tid(id as i32)), ..Track::default() })
            .collect()
    }
}
