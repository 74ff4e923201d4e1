//! Reads perf script's text as sums of folded lines, for outputs that need nothing else.
//!
//! When a worker has collected many stacks, it writes them as lines and sorts these. However many distinct stacks there
//! are, a worker's tables therefore stay small, and merging the results of workers only means merging sorted lines.

use super::stacks::{ScriptText, each_block};
use super::{HEAD, NamedBlock};
use crate::analysis::sorted_stacks::{Run, Runs, Speller, Unsorted};
use crate::contract::format::WriteOptions;
use crate::error::{Result, Skipped};
use crate::io::{InPath, Stream};
use crate::model::stacks::{Keep, Profile, Series, Unit};
use crate::pipeline::open::shown;
use crate::pipeline::{Job, Outcome};
use crate::records::perf_script::Layout;
use crate::records::perf_script::read::{PartReader, Readable};
use crate::sources::SourceOptions;
use std::sync::Mutex;

/// The folded lines of one event, with their sums.
#[derive(Debug)]
pub(crate) struct EventSums {
    pub(crate) name: String,
    unit: Unit,
    /// Where the event first appeared: the offset of the block, and the index among all events that the worker had seen
    /// by then.
    first: (u64, usize),
    /// The sorted lines of the event.
    pub(crate) lines: Runs,
}

/// The number of stacks (including their callers) at which a worker writes its stacks as lines. With this limit, a
/// worker's tables fit in the CPU's cache.
const MANY_STACKS: usize = 1 << 15;

/// The same limit if stacks repeat often: keeping them then saves work.
const MOST_STACKS: usize = 1 << 20;

/// A worker with more names than this starts with an empty reader, so that the names don't fill the memory.
const MOST_NAMES: usize = 1 << 16;

/// Reads perf script's text, names its frames of JIT code, and adds up the lines of each event. Events are in order of
/// appearance.
pub(crate) fn read_sums(
    mut input: Stream,
    path: &InPath,
    options: &WriteOptions,
    sources: &SourceOptions,
    readable: Readable,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Vec<EventSums>> {
    let layout = Layout::detect(input.peek_all(HEAD)?);
    let new_reader = || PartReader::new(Keep::Sums, layout.clone()).with_readable_names(readable);
    let readers: Mutex<Vec<SumReader>> = Mutex::default();
    let mut events = Vec::new();
    let mut all_skipped = Skipped::new("line");
    let read_block = |block: &NamedBlock| {
        // The lock is only poisoned if another worker panicked. The thread scope reports that panic.
        let reader = readers.lock().ok().and_then(|mut readers| readers.pop());
        let mut reader = reader.unwrap_or_else(|| SumReader::new(new_reader(), options));
        let skipped = reader.read(block);
        let spelled = if reader.is_full() { reader.spell(options) } else { Vec::new() };
        if reader.reader.profile().name_count() <= MOST_NAMES || spelled.is_empty() {
            let _ = readers.lock().map(|mut readers| readers.push(reader));
        }
        (spelled, skipped)
    };
    let text = ScriptText { input, layout: &layout, path, sources };
    each_block(text, job, outcome, &read_block, &mut |(spelled, skipped)| {
        all_skipped.append(skipped);
        for event in spelled {
            add(&mut events, event);
        }
    })?;
    let rest = job.pool.map(readers.into_inner().unwrap_or_default(), |mut reader| reader.spell(options));
    for event in rest.into_iter().flatten() {
        add(&mut events, event);
    }
    all_skipped.report(&shown(path), &mut outcome.warnings);
    Ok(sort_and_name(events))
}

/// The lines of an event that a worker has written.
struct SpelledEvent {
    name: String,
    unit: Unit,
    first: (u64, usize),
    lines: Run,
}

fn add(events: &mut Vec<EventSums>, new: SpelledEvent) {
    let known = events.iter_mut().find(|event| event.name == new.name && event.unit == new.unit);
    match known {
        Some(event) => {
            event.first = event.first.min(new.first);
            event.lines.push(new.lines);
        }
        None => {
            let mut lines = Runs::default();
            lines.push(new.lines);
            events.push(EventSums { name: new.name, unit: new.unit, first: new.first, lines });
        }
    }
}

/// Puts events in order of appearance. If several have the same name but different units, they get the names that they
/// would have in a profile.
fn sort_and_name(mut events: Vec<EventSums>) -> Vec<EventSums> {
    events.sort_by_key(|event| event.first);
    let mut names = Profile::new();
    for event in &mut events {
        let series = names.series_of((&event.name, &event.unit));
        event.name.clone_from(&names.series[series].name);
    }
    events
}

struct SumReader {
    reader: PartReader,
    speller: Speller,
    sorting: Unsorted,
    /// Where each event first appeared: the offset of the block, and the event's index.
    firsts: Vec<(u64, usize)>,
    /// When there are more stacks than this, it is checked whether they repeat.
    many: usize,
}

impl SumReader {
    fn new(reader: PartReader, options: &WriteOptions) -> Self {
        let speller = Speller::new(options.by, options.annotate, options.tidied);
        Self { reader, speller, sorting: Unsorted::default(), firsts: Vec::new(), many: MANY_STACKS }
    }

    fn read(&mut self, block: &NamedBlock) -> Skipped {
        let skipped = self.reader.read(&block.bytes, &block.facts).moved(block.at);
        for at in self.firsts.len()..self.reader.profile().series.len() {
            self.firsts.push((block.at, at));
        }
        skipped
    }

    /// True if the worker should write its stacks as lines: it has many, and few of them repeat.
    fn is_full(&mut self) -> bool {
        let profile = self.reader.profile();
        while profile.stack_count() > self.many {
            let mut sums = 0;
            let mut samples = 0u64;
            for row in profile.series.iter().flat_map(|series| &series.rows) {
                sums += 1;
                samples = samples.saturating_add(row.count);
            }
            if self.many == MOST_STACKS || samples.saturating_sub(sums) < sums / 4 {
                return true;
            }
            self.many *= 2;
        }
        false
    }

    /// Writes the stacks that were read since the last call as sorted lines, for each event.
    fn spell(&mut self, options: &WriteOptions) -> Vec<SpelledEvent> {
        let profile = self.reader.profile();
        let mut spelled = Vec::new();
        for (series, &first) in profile.series.iter().zip(&self.firsts) {
            if series.rows.is_empty() {
                continue;
            }
            self.speller.spell(profile, &series.rows, options.weight, &mut self.sorting);
            let name = given_name(&profile.series, series).to_owned();
            spelled.push(SpelledEvent { name, unit: series.unit.clone(), first, lines: self.sorting.sorted() });
        }
        self.reader.forget_rows();
        spelled
    }
}

/// The name of an event without the unit that was appended to make it unique. Which of several events gets the unit
/// must be decided for all workers together.
fn given_name<'s>(all: &'s [Series], series: &'s Series) -> &'s str {
    if let Some(name) = series.name.strip_suffix(')')
        && let Some(name) = name.strip_suffix(series.unit.name())
        && let Some(name) = name.strip_suffix(" (")
        && all.iter().any(|other| other.name == name)
    {
        return name;
    }
    &series.name
}

#[cfg(test)]
mod tests {
    use super::super::stacks;
    use super::*;
    use crate::analysis::label::{Annotate, By};
    use crate::formats::folded;
    use crate::parallel::Pool;
    use std::fmt::Write;
    use std::io::Cursor;
    use std::num::NonZeroUsize;
    use std::path::PathBuf;

    fn job(threads: usize) -> Job {
        Job { pool: Pool::new(NonZeroUsize::new(threads)).unwrap(), ..Job::quiet().unwrap() }
    }

    /// A text with several blocks: more stacks than a worker keeps, events that appear late (with and without periods),
    /// several threads, names that folded stacks spell differently, and invalid lines.
    fn text() -> String {
        let mut text = String::new();
        for sample in 0..20_000u32 {
            let (comm, tid) = [("app", 7), ("java", 8), ("a b", 9)][(sample % 7 % 3) as usize];
            let event = match sample {
                5_000.. if sample % 3 == 0 => "7 late:u:",
                6_000.. if sample % 5 == 0 => "cycles:",
                _ if sample % 2 == 0 => "3 cycles:",
                _ => "cpu-clock:",
            };
            writeln!(text, "{comm} {tid} {}.000001: {event} ", sample / 10).unwrap();
            // Only few stacks repeat.
            let mut seed = if sample % 8 == 7 { sample - 7 } else { sample };
            for frame in 0..12 {
                seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                let name = ["f", "Lorg/a/B;::call(I)V", "g(int)", "a;b", "[unknown]"][(seed >> 16) as usize % 5];
                let object = ["/bin/app", "[kernel.kallsyms]", "/tmp/perf-7.map"][(seed >> 20) as usize % 3];
                let number = if name == "f" { frame * 1000 + (seed >> 24) % 100 } else { 0 };
                writeln!(text, "\t    55d0 {name}{number}+0x1f ({object})").unwrap();
            }
            text += if sample % 1_000 == 999 { "no sample\n\n" } else { "\n" };
        }
        text
    }

    fn streamed(text: &str) -> (Stream, InPath) {
        (Stream::new(Box::new(Cursor::new(text.to_owned().into_bytes()))), InPath::Path(PathBuf::from("script.txt")))
    }

    #[test]
    fn lines_are_those_of_the_profile() {
        let (text, sources) = (text(), SourceOptions::default());
        let annotate = Annotate { jit: true, tid: true, ..Annotate::default() };
        for (threads, options) in
            [(1, WriteOptions::default()), (3, WriteOptions { by: By::Tid, annotate, ..WriteOptions::default() })]
        {
            let (job, mut outcome, mut also) = (job(threads), Outcome::default(), Outcome::default());
            let (input, path) = streamed(&text);
            let profile =
                stacks::read_stacks(input, &path, Keep::Sums, &sources, |_| None, &job, &mut outcome).unwrap();
            let (input, path) = streamed(&text);
            let events = read_sums(input, &path, &options, &sources, |_| None, &job, &mut also).unwrap();
            assert_eq!(events.len(), 4);
            assert_eq!(format!("{:?}", outcome.warnings), format!("{:?}", also.warnings));
            for (series, event) in events.iter().enumerate() {
                assert_eq!(event.name, profile.series[series].name);
                let (mut lines, mut wanted) = (Vec::new(), Vec::new());
                folded::write_lines(&event.lines, &mut lines).unwrap();
                folded::write(&profile, &WriteOptions { series, ..options.clone() }, &mut wanted).unwrap();
                assert!(lines == wanted, "{}: {} and {} bytes", event.name, lines.len(), wanted.len());
            }
        }
    }
}
