//! One truth, all writers: the facts that each writer of the table states about a recording, read back by code that
//! shares nothing with it, is what all the others state: totals in the event's unit, numbers of samples, self and total
//! weight of every function, and one spelling of what has no name. `cargo test --test end_to_end truth -- --nocapture`
//! prints the table.

mod about;
mod callgrind;
mod case;
mod chrome;
mod csv;
mod firefox;
mod flamegraph;
mod json;
mod otlp;
#[cfg(feature = "tables")]
mod parquet;
mod pprof;
mod readers;
mod speedscope;
mod told;

use crate::support::effort::step;
use crate::support::runner::formats;
use case::{Case, cases};
use readers::{Reader, reader_of};
use told::{Told, Weights, difference};

/// The statement of a writer about every event of a case, with periods and, if asked, with numbers of samples as
/// weights.
struct Said {
    writer: &'static str,
    reader: &'static Reader,
    periods: Vec<Told>,
    samples: Vec<Told>,
}

/// Formats that hold one event: a recording of several becomes several files.
const ONE_EVENT: [&str; 4] = ["firefox", "chrome", "folded", "flamegraph"];

fn say(case: &Case, writer: &str, names: &[String], with_samples: bool) -> Said {
    let reader = reader_of(writer).unwrap_or_else(|| panic!("{writer} has no reader in readers.rs"));
    let writer = reader.writer;
    let read = |weight: &str, event: &[&str]| {
        let arguments = [reader.arguments, &["--jit-names", "raw", "--weight", weight], event].concat();
        let mut told = (reader.read)(&case.run(&arguments), names);
        let threads = reader.thread_roots && case.has_threads;
        let stacks = told.iter_mut().flat_map(|told| &mut told.stacks).filter(|_| threads);
        stacks.for_each(|stack| _ = stack.frames.drain(..1.min(stack.frames.len())));
        told
    };
    let all = |weight: &str| -> Vec<Told> {
        if ONE_EVENT.contains(&writer) {
            return names.iter().flat_map(|name| read(weight, &["--event", name])).collect();
        }
        read(weight, &[])
    };
    let periods = all("period");
    let samples = if with_samples && !reader.both { all("samples") } else { Vec::new() };
    assert_eq!(periods.len(), names.len(), "{}: {writer}: events", case.name);
    Said { writer, reader, periods, samples }
}

/// The differences between the text about an event and the JSON, whose every number is known.
fn differences(said: &Said, plain: &Said, event: usize, is_recording: bool) -> Vec<String> {
    let (told, wanted) = (&said.periods[event], &plain.periods[event]);
    let mut found = Vec::new();
    let mut compare = |what: &str, got: u64, want: u64| {
        if got != want {
            found.push(format!("{what} {got} instead of {want}"));
        }
    };
    compare("total", told.total(), wanted.total());
    // By the flag that makes weights of them, and beside the weights, where the format has room for both.
    if let Some(samples) = said.samples.get(event) {
        compare("samples", samples.total(), wanted.samples.unwrap());
    }
    if let Some(count) = told.samples {
        compare("samples told", count, wanted.samples.unwrap());
    }
    // Lines are rows of their own where a format has them.
    if let Some(rows) = told.rows.filter(|_| is_recording) {
        compare("entries", rows, wanted.rows.unwrap());
    }
    if told.unit.as_ref().is_some_and(|unit| Some(unit) != wanted.unit.as_ref()) {
        found.push(format!("unit {:?} instead of {:?}", told.unit, wanted.unit));
    }
    let weights = |told: &Told| if said.reader.by_module { told.by_function() } else { told.by_label() };
    let (got, want): (Weights, Weights) = (weights(told), weights(wanted));
    found.extend(difference("self", &got.own, &want.own));
    found.extend(difference("total", &got.total, &want.total));
    // Other inputs name their functions as they like.
    let nameless = got.total.keys().find(|name| is_recording && (name.starts_with("0x") || name.is_empty()));
    found.extend(nameless.map(|name| format!("{name:?} is no name")));
    found
}

/// A line of the table, whether each writer is equal there, and how those differ that are not.
struct Line {
    head: String,
    cells: Vec<(&'static str, bool)>,
    wrong: Vec<String>,
}

/// What is compared of a case, the `number`th. A quick run tries half of the writers with each, by turns, and numbers of
/// samples with every fifth.
fn lines(case: &Case, number: usize) -> Vec<Line> {
    let formats = formats();
    let stated = case.calls();
    let with_samples = number.is_multiple_of(step(5));
    let mut all: Vec<Said> = Vec::new();
    for (at, format) in formats.iter().filter(|format| format.is_written).enumerate() {
        if format.name == "json" || stated.is_some() || (number + at).is_multiple_of(step(2)) {
            all.push(say(case, &format.name, &case.events, with_samples));
        }
    }
    let plain = all.iter().find(|said| said.writer == "json").expect("the JSON is a writer");
    let line = |(event, name): (usize, &String)| {
        let told = &plain.periods[event];
        let (samples, unit) = (told.samples.unwrap(), told.unit.as_deref().unwrap_or_default());
        let head = format!("{:<18} {name:<13} {:>11} {unit:<12} {samples:>9}", case.name, told.total());
        let mut line = Line { head, cells: Vec::new(), wrong: Vec::new() };
        if let Some(&perf) = case.perf_says.get(name).filter(|perf| **perf != (samples, told.total())) {
            line.wrong.push(format!("{}, {name}: perf says {perf:?}", case.name));
        }
        for said in &all {
            let mut found = differences(said, plain, event, case.is_recording());
            // Calls that an input states are written as they are; the stacks made of them are an estimate.
            if let Some(stated) = stated.as_ref().filter(|_| said.writer == "callgrind") {
                found.retain(|what| !what.starts_with("total of"));
                let [got, want] = [&said.periods, stated].map(|all| all[event].by_function());
                found.extend(difference("self", &got.own, &want.own));
                found.extend(difference("total", &got.total, &want.total));
            }
            line.cells.push((said.writer, found.is_empty()));
            line.wrong.extend(found.into_iter().map(|what| format!("{}, {name}, {}: {what}", case.name, said.writer)));
        }
        line
    };
    case.events.iter().enumerate().map(line).collect()
}

#[test]
fn every_writer_states_the_same_of_every_recording() {
    let cases = cases();
    assert!(cases.iter().filter(|case| !case.perf_says.is_empty()).count() >= 5);
    let lines: Vec<Line> = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for (at, case) in cases.iter().enumerate() {
            running.push(scope.spawn(move || lines(case, at)));
        }
        running.into_iter().flat_map(|lines| lines.join().unwrap()).collect()
    });
    for Line { head, cells, .. } in &lines {
        let cells = cells.iter().map(|(writer, equal)| format!("{writer} {}", if *equal { "=" } else { "≠" }));
        println!("{head}  {}", cells.collect::<Vec<_>>().join("  "));
    }
    let wrong: Vec<String> = lines.into_iter().flat_map(|line| line.wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
