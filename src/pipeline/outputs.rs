//! The outputs of results if a profile has several events and a format holds one: each to an output of its own.

use super::job::Outcome;
use crate::analysis::quantity::{counted, grouped};
use crate::error::{Result, Warning};
use crate::io::{OutPath, Output, Run};
use crate::model::stacks::{Profile, Series};
use std::path::{Path, PathBuf};

/// Runs `write` for every event that has samples: the only one goes to `to`; of several, each to a file beside it
/// that carries the event's name (`out.svg`: `out.cycles.svg`), or, on standard output and the like, the first alone. All
/// outputs are begun before the first is written.
pub(crate) fn each_event(
    profile: &Profile,
    to: &OutPath,
    run: &Run,
    outcome: &mut Outcome,
    write: impl FnMut(usize, &mut Output) -> Result<()>,
) -> Result<()> {
    let series = || profile.series.iter().enumerate();
    let sampled = series().filter(|(_, series)| !series.rows.is_empty()).map(|(at, series)| (at, &series.name[..]));
    let mut events: Vec<(usize, &str)> = sampled.collect();
    // Without samples the writer reports it, or writes what an empty profile is in its format.
    if events.is_empty() {
        events.push((0, ""));
    }
    for &(at, _) in &events {
        profile.series.get(at).into_iter().for_each(|series| report_negative(series, outcome));
    }
    each_named(events, to, run, outcome, write)
}

/// Reports the weights below zero of an event whose output has none.
pub(crate) fn report_negative(series: &Series, outcome: &mut Outcome) {
    if series.negative.is_empty() {
        return;
    }
    let sum = series.negative.iter().fold(0u64, |sum, row| sum.saturating_add(row.weight));
    let (count, sum) = (counted(series.negative.len() as u64, "weight"), grouped(sum));
    let name = &series.name;
    outcome.warnings.push(Warning::new(format!("{name}: left out {count} below zero, -{sum} in all")));
}

/// The same of events of these names, each reported by its number.
pub(crate) fn each_named(
    mut events: Vec<(usize, &str)>,
    to: &OutPath,
    run: &Run,
    outcome: &mut Outcome,
    mut write: impl FnMut(usize, &mut Output) -> Result<()>,
) -> Result<()> {
    if let [(_, first), others @ ..] = &events[..]
        && !others.is_empty()
        && to.is_stream()
    {
        let others = others.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
        let message = format!("only {first} is written; --event NAME or -o FILE gives the others: {others}");
        outcome.warnings.push(Warning::new(message));
        events.truncate(1);
    }
    let path = |(_, name): &(usize, &str)| match to {
        OutPath::Path(path) if events.len() > 1 => OutPath::Path(of_event(path, name)),
        _ => to.clone(),
    };
    let paths: Vec<OutPath> = events.iter().map(path).collect();
    let outputs = paths.iter().map(|path| Output::create(path, run)).collect::<Result<Vec<Output>>>()?;
    for ((&(at, name), path), mut output) in events.iter().zip(&paths).zip(outputs) {
        write(at, &mut output)?;
        output.commit()?;
        if let (OutPath::Path(path), true) = (path, events.len() > 1) {
            outcome.summary.push(format!("{}: event {name}", path.display()));
        }
    }
    Ok(())
}

fn of_event(path: &Path, event: &str) -> PathBuf {
    /// File systems take names of up to 255 bytes.
    const LONGEST: usize = 100;
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let word: String = event.chars().take(LONGEST).map(plain).collect();
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

    #[test]
    fn the_event_goes_before_the_extension() {
        assert_eq!(of_event(Path::new("d/out.svg"), "cpu-clock:u"), Path::new("d/out.cpu-clock_u.svg"));
        assert_eq!(of_event(Path::new("out"), "a/b/"), Path::new("out.a_b_"));
        assert_eq!(of_event(Path::new("out"), &"/".repeat(1 << 20)), PathBuf::from(format!("out.{}", "_".repeat(100))));
    }
}
