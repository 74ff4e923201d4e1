//! Writes one output per event, for formats that can only contain one.

use super::job::Outcome;
use crate::analysis::quantity::{counted, grouped};
use crate::error::{Result, Warning};
use crate::io::{OutPath, Output, Run};
use crate::model::stacks::{Profile, Series};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::{Path, PathBuf};

/// Completes an output. If it is a new file, its path becomes part of the outcome, so that it is printed at the end.
pub(crate) fn commit(output: Output, outcome: &mut Outcome) -> Result<()> {
    let path = output.new_path().map(Path::to_owned);
    output.commit()?;
    outcome.written.extend(path);
    Ok(())
}

/// Calls `write` for every event with samples. If there is only one, it is written to `to`. Each of several is written
/// to a file next to it that has the event's name (`out.cycles.svg` for `out.svg`); on standard output, only the first
/// is written. Outputs are created before the first is written, up to a maximum number of open files.
pub(crate) fn each_event(
    profile: &Profile,
    to: &OutPath,
    run: &Run,
    outcome: &mut Outcome,
    write: impl FnMut(usize, &mut Output) -> Result<()>,
) -> Result<()> {
    let mut events: Vec<(usize, &str)> = Vec::new();
    for (index, series) in profile.series.iter().enumerate() {
        if !series.rows.is_empty() {
            events.push((index, &series.name));
        }
    }
    // If no event has samples, the writer is called for event 0. It writes an empty profile, or fails and says that
    // there are no samples.
    if events.is_empty() {
        events.push((0, ""));
    }
    profile.series.iter().for_each(|series| report_negative(series, outcome));
    each_event_named(events, to, run, outcome, write)
}

/// Warns if an event has negative weights, which the output can't contain.
pub(crate) fn report_negative(series: &Series, outcome: &mut Outcome) {
    if series.negative.is_empty() {
        return;
    }
    let count = counted(series.negative.len() as u64, "negative weight");
    let sum = grouped(series.negative.iter().fold(0u64, |sum, row| sum.saturating_add(row.weight)));
    let name = &series.name;
    outcome.warnings.push(Warning::new(format!(
        "{name}: left out {count} (-{sum} in total), because this format cannot store negative weights"
    )));
}

/// Calls `write` for each of these events (pairs of index and name), with the event's index and its own output. Each of
/// several events gets a file of its own, as in [`each_event`]; a stream only gets the first event.
pub(crate) fn each_event_named(
    mut events: Vec<(usize, &str)>,
    to: &OutPath,
    run: &Run,
    outcome: &mut Outcome,
    mut write: impl FnMut(usize, &mut Output) -> Result<()>,
) -> Result<()> {
    // A stream can only take one output, so only the first event is written.
    if let [(_, first), others @ ..] = &events[..]
        && !others.is_empty()
        && to.is_stream()
    {
        let others = others.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
        let message =
            format!("only the event {first} was written; use --event NAME or -o FILE for the others: {others}");
        outcome.warnings.push(Warning::new(message));
        events.truncate(1);
    }
    let mut event_outputs = Vec::new();
    let words = distinct_words(events.iter().map(|(_, name)| *name));
    for (&(index, name), word) in events.iter().zip(&words) {
        let path = match to {
            OutPath::Path(path) if events.len() > 1 => OutPath::Path(event_path(path, word)),
            _ => to.clone(),
        };
        event_outputs.push(EventOutput { index, name, path });
    }
    for chunk in event_outputs.chunks(MOST_OPEN) {
        // Open all outputs of the chunk before any is written, so that nothing is written if one of the paths can't be
        // used.
        let outputs = chunk.iter().map(|event| Output::create(&event.path, run)).collect::<Result<Vec<Output>>>()?;
        for (event, mut output) in chunk.iter().zip(outputs) {
            write(event.index, &mut output)?;
            match &event.path {
                // The names of these files are made up here, so the summary states them.
                OutPath::Path(path) if events.len() > 1 => {
                    output.commit()?;
                    outcome.summary.push(format!("wrote {} (event {})", path.display(), event.name));
                }
                _ => commit(output, outcome)?,
            }
        }
    }
    Ok(())
}

/// The maximum number of outputs that are open at once, because each has a file and a buffer.
const MOST_OPEN: usize = 32;

/// An event, and where it is written.
struct EventOutput<'n> {
    /// The index of the event in the profile.
    index: usize,
    name: &'n str,
    path: OutPath,
}

/// Converts event names to distinct words that are valid in file names. If several become the same word, a number is
/// appended to all but the first (`word`, `word-2`, `word-3`).
fn distinct_words<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut taken = FxHashSet::default();
    // For each word, how many numbers have been tried after it. If many events have the same name, each goes on from
    // there, rather than trying all numbers again.
    let mut tried_by_word = FxHashMap::<String, usize>::default();
    let mut distinct = Vec::new();
    for name in names {
        let word = word(name);
        let tried = tried_by_word.entry(word.clone()).or_insert(0);
        let mut unique = word.clone();
        // `word-2` may be taken by another event whose own name becomes that word.
        while !taken.insert(unique.clone()) {
            *tried += 1;
            unique = format!("{word}-{}", *tried + 1);
        }
        distinct.push(unique);
    }
    distinct
}

/// The name of an event as a word that is valid in file names.
fn word(event: &str) -> String {
    /// The maximum length of a word. File systems limit names to 255 bytes.
    const LONGEST: usize = 100;
    let replace_special = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    event.chars().take(LONGEST).map(replace_special).collect()
}

/// Inserts an event's word into a path, before the extension.
fn event_path(path: &Path, word: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(word);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_effort::step;

    #[test]
    fn the_event_goes_before_the_extension() {
        assert_eq!(event_path(Path::new("d/out.svg"), &word("cpu-clock:u")), Path::new("d/out.cpu-clock_u.svg"));
        assert_eq!(event_path(Path::new("out"), &word("a/b/")), Path::new("out.a_b_"));
        assert_eq!(word(&"/".repeat(1 << 20)), "_".repeat(100));
    }

    #[test]
    fn no_two_events_have_one_file() {
        let words = |names: &[&str]| distinct_words(names.iter().copied());
        assert_eq!(words(&["a/b", "a:b", "a_b-2", "a.b", "a b"]), ["a_b", "a_b-2", "a_b-2-2", "a.b", "a_b-3"]);
        let many: Vec<String> = (0..100_000 / step(10)).map(|at| format!("{}{at}", "é".repeat(100))).collect();
        let words = distinct_words(many.iter().map(String::as_str));
        assert!(
            words.iter().collect::<FxHashSet<_>>().len() == words.len() && words.iter().all(|word| word.len() < 110)
        );
    }
}
