//! The spans as stacks.

use super::spans::FRAME;
use crate::error::{Result, Warning, Warnings};
use crate::formats::format::ReadOptions;
use crate::model::stacks::Profile;
use crate::model::timeline::{NO_NAME, Oddities, Timeline};

/// Nests the spans of each thread by their times and sums them. Interpreted calls (`frame`) are shown by the function;
/// so is every span asked for by name, if it says what it did.
pub fn stacks(timeline: &Timeline, options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let numbers = options.only.iter().filter_map(|name| timeline.names.find(name.as_bytes()));
    let mut only: Vec<_> = numbers.collect();
    if only.is_empty() && !options.only.is_empty() {
        // No span has such a name: none is wanted.
        only.push(NO_NAME);
    }
    let by_sub: Vec<_> = options.by_sub.iter().map(String::as_bytes).chain([FRAME]).collect();
    let by_sub: Vec<_> = by_sub.iter().filter_map(|name| timeline.names.find(name)).collect();
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

/// Says what does not nest as it should.
pub fn warn(timeline: &Timeline, warnings: &mut Warnings) {
    let Oddities { misplaced_ends, unmatched_ends, overlaps: _, late, timeless } = timeline.oddities;
    let unfinished = timeline.unfinished();
    let findings = [
        (unfinished, "spans never end (the program was killed?): they are taken to end with their thread"),
        (misplaced_ends, "ends close a span while others are open in it: those end there, too"),
        (unmatched_ends, "ends of spans that are not open are ignored"),
        (late, "events stand so far behind later ones of their thread that they could not be put in order"),
        (timeless, "events have no time (ts) and are ignored"),
    ];
    let said = findings.into_iter().filter(|(count, _)| *count > 0);
    warnings.extend(said.map(|(count, what)| Warning::new(format!("{count} {what}"))));
}
