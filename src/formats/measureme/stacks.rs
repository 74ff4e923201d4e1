//! The events as stacks: one pass backwards.

use super::event::Payload;
use super::labels::Labels;
use super::profile::MeasuremeFile;
use crate::error::{Result, Warning, Warnings};
use crate::formats::format::ReadOptions;
use crate::formats::spans::SpanInput;
use crate::model::stacks::{Profile as Stacks, Track, Unit};
use crate::model::timeline::{CallSums, Clock, Span};
use crate::model::{Pid, Tid};
use rustc_hash::FxHashMap;

/// Sums the intervals of each (virtual) thread by call path. Instants and numbers take no time and are left out.
pub(super) fn stacks(input: SpanInput<'_>, options: &ReadOptions, warnings: &mut Warnings) -> Result<Stacks> {
    let (bytes, done) = input.bytes.into_whole()?;
    let profile = MeasuremeFile::open(&bytes)?;
    let mut sums = CallSums::new(options.calls_between(0, profile.last_time())?);
    let mut labels = Labels::new(profile.strings());
    let mut threads = ThreadNumbers::default();
    profile.backwards(
        |event| {
            if let Payload::Interval { start, end } = event.payload {
                let track = threads.number(event.thread, || sums.track());
                sums.call(track, labels.of(event.id), Span { start, end });
            }
        },
        |range| done.with(range),
    );
    warn(&profile, &sums, options, warnings);
    let tracks = threads.tracks(&profile);
    let (series, unit) = profile.metadata().unit();
    let series = match options.calls.clock {
        Clock::Active(_) if unit == Unit::Nanos => "active-time",
        _ => series,
    };
    let mut stacks = sums.into_profile(&tracks, labels.texts(), series, unit);
    stacks.cut_to_time = true;
    warnings.extend(profile.into_skipped().into_warning());
    Ok(stacks)
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

    pub(super) fn tracks(&self, profile: &MeasuremeFile<'_>) -> Vec<Track> {
        let metadata = profile.metadata();
        let comm = metadata.program().as_bytes();
        let pid = metadata.process_id.map(|pid| Pid(pid as i32));
        self.ids
            .iter()
            .map(|&id| Track { comm: comm.to_vec(), pid, tid: Some(Tid(id as i32)), ..Track::default() })
            .collect()
    }
}

fn warn(profile: &MeasuremeFile<'_>, sums: &CallSums, options: &ReadOptions, warnings: &mut Warnings) {
    if profile.names_are_lost() {
        warnings.push(Warning::new(
            "there is no string table (the recorded process was killed?): functions are shown as fn# and a number",
        ));
    }
    let overlaps = sums.overlaps();
    if overlaps > 0 {
        let what = match options.calls.clock {
            Clock::Wall => "their wall times are not each thread's own",
            Clock::Active(_) => "active times are an estimate",
        };
        warnings.push(Warning::new(format!(
            "{overlaps} calls overlap another call of their thread id without lying inside it (several threads recorded under one id?): they begin stacks of their own, and {what}"
        )));
    }
}
