//! When a filter leaves no samples: says what it could have selected.

use crate::analysis::filter::Filter;
use crate::model::Nanos;
use crate::model::printable::readable;
use crate::model::stacks::{Profile, Row, Track};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The maximum number of values that are listed for a filter. Those with the most samples come first.
const SHOWN: usize = 8;

/// Explains why there are no samples. If the inputs can be read again, `unfiltered` returns all their samples, with the
/// properties that filters look at; otherwise `None`. `by_event` says whether the user chose events, and `names` are
/// the names of spans that the user chose. For events, no alternatives are listed: an event that is missing was
/// reported as an error before.
pub(super) fn explain(
    filter: &Filter,
    by_event: bool,
    names: &[String],
    unfiltered: impl FnOnce() -> Option<Profile>,
) -> String {
    if *filter == Filter::default() && !by_event && names.is_empty() {
        return "no samples were recorded".to_owned();
    }
    let mut alternatives = Vec::new();
    if let Some(profile) = unfiltered() {
        alternatives = list_alternatives(&profile, filter);
        if !names.is_empty() {
            // Spans became the frames of stacks, so functions in stacks are spans here.
            alternatives.extend(list_functions(&profile).map(|spans| format!("spans in this input: {spans}")));
        }
    }
    if alternatives.is_empty() {
        return "no samples: none were recorded, or none match the filters".to_owned();
    }
    format!("no samples match the filters; {}", alternatives.join("; "))
}

/// For each filter in use, a line with the values that it could have selected.
fn list_alternatives(profile: &Profile, filter: &Filter) -> Vec<String> {
    let comm = |track: &Track| readable(&track.comm).into_owned();
    let mut alternatives = Vec::new();
    let mut add = |what: &str, values: Option<String>| {
        let values = values.unwrap_or_else(|| "none are recorded".to_owned());
        alternatives.push(format!("{what} in this input: {values}"));
    };
    if !filter.comm.is_empty() {
        add("command names", list_values(profile, |track| Some(comm(track))));
    }
    if !filter.pid.is_empty() {
        add("processes", list_values(profile, |track| Some(format!("{} ({})", track.pid?.0, comm(track)))));
    }
    if !filter.tid.is_empty() {
        add("threads", list_values(profile, |track| Some(format!("{} ({})", track.tid?.0, comm(track)))));
    }
    if !filter.cpu.is_empty() {
        add("processors", list_values(profile, |track| Some(track.cpu?.to_string())));
    }
    if !filter.time.is_empty() {
        add("times", describe_times(profile));
    }
    alternatives
}

/// The values that samples have for a filter, those with the most samples first. `None` if samples have no such
/// property.
fn list_values(profile: &Profile, value_of: impl Fn(&Track) -> Option<String>) -> Option<String> {
    list_by_count(profile, |row| value_of(profile.track_of(row.track)))
}

/// The innermost functions of all stacks, those with the most samples first. `None` if there are no stacks.
fn list_functions(profile: &Profile) -> Option<String> {
    list_by_count(profile, |row| {
        let frame = profile.frames_up(row.stack).next()?;
        Some(readable(profile.name_of(profile.frame_of(frame).name)).into_owned())
    })
}

/// Lists the values that `value_of` returns for the rows, separated by commas, those with the most samples first.
/// Values beyond the first few are only counted. `None` if no row has a value.
fn list_by_count(profile: &Profile, value_of: impl Fn(&Row) -> Option<String>) -> Option<String> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for row in profile.series.iter().flat_map(|series| &series.rows) {
        if let Some(value) = value_of(row)
            && !value.is_empty()
        {
            *counts.entry(value).or_default() += row.count;
        }
    }
    if counts.is_empty() {
        return None;
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    let shown: Vec<&str> = counts.iter().take(SHOWN).map(|(value, _)| value.as_str()).collect();
    let more = match counts.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{}{more}", shown.join(", ")))
}

/// The time range of all samples, in words; `None` if they have no times.
fn describe_times(profile: &Profile) -> Option<String> {
    let times = || profile.series.iter().flat_map(|series| &series.rows).filter_map(|row| row.time);
    let first = times().min()?;
    let last = times().max()?;
    let seconds = |Nanos(time): Nanos| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    Some(format!("{} to {} s", seconds(first), seconds(last)))
}
