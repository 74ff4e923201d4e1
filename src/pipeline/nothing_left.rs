//! Says what a filter that leaves no samples could have selected.

use crate::analysis::filter::Filter;
use crate::model::Nanos;
use crate::model::printable::readable;
use crate::model::stacks::{Profile, Track};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How many values to show per filter, those with the most samples first.
const SHOWN: usize = 8;

/// Explains why there are no samples. `unfiltered` returns all samples with as much detail as the filters look at, if
/// the inputs can be read again.
pub(super) fn why(filter: &Filter, by_event: bool, unfiltered: impl FnOnce() -> Option<Profile>) -> String {
    if *filter == Filter::default() && !by_event {
        return "no samples were recorded".to_owned();
    }
    let told = unfiltered().map(|profile| alternatives(&profile, filter)).unwrap_or_default();
    if told.is_empty() {
        return "no samples: none were recorded, or none match the filters".to_owned();
    }
    format!("no samples match the filters; {}", told.join("; "))
}

fn alternatives(profile: &Profile, filter: &Filter) -> Vec<String> {
    let text = |comm: &[u8]| readable(comm).into_owned();
    let who = |track: &Track, number: i32| format!("{number} ({})", text(&track.comm));
    let asked = [
        ("command names", filter.comm.is_empty(), listed(profile, |track| Some(text(&track.comm)))),
        ("processes", filter.pid.is_empty(), listed(profile, |track| Some(who(track, track.pid?.0)))),
        ("threads", filter.tid.is_empty(), listed(profile, |track| Some(who(track, track.tid?.0)))),
        ("processors", filter.cpu.is_empty(), listed(profile, |track| Some(track.cpu?.to_string()))),
        ("times", filter.time.is_empty(), times(profile)),
    ];
    let asked = asked.into_iter().filter(|(_, unused, _)| !unused);
    let absent = || "none are recorded".to_owned();
    asked.map(|(what, _, there)| format!("{what} in this input: {}", there.unwrap_or_else(absent))).collect()
}

/// The values that the samples have for a filter, those with the most samples first.
fn listed(profile: &Profile, of: impl Fn(&Track) -> Option<String>) -> Option<String> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for row in profile.series.iter().flat_map(|series| &series.rows) {
        let Some(value) = of(profile.track_of(row.track)) else { continue };
        *counts.entry(value).or_default() += row.count;
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    let shown: Vec<&str> = counts.iter().take(SHOWN).map(|(value, _)| value.as_str()).collect();
    let more = match counts.len().checked_sub(SHOWN) {
        None | Some(0) => String::new(),
        Some(more) => format!(" and {more} more"),
    };
    (!shown.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}

/// The time range of the samples.
fn times(profile: &Profile) -> Option<String> {
    let times = profile.series.iter().flat_map(|series| &series.rows).filter_map(|row| row.time);
    let (first, last) = times.fold((Nanos(u64::MAX), Nanos(0)), |(a, b), time| (a.min(time), b.max(time)));
    let seconds = |Nanos(time): Nanos| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    (first <= last).then(|| format!("{} to {} s", seconds(first), seconds(last)))
}
