//! Aligns the clocks of several recordings that are shown on one page.
//!
//! The clocks of two machines are unrelated, and so are the clocks of one machine before and after a reboot. But a page
//! has only one time axis. So the times of each recording are shifted: all recordings then start when the one with the
//! latest start does, which is time zero of the page.

use super::recording::RecordingData;
use crate::io::InPath;
use crate::model::Nanos;
use crate::model::about::TimeExtent;
use crate::model::printable::readable;
use crate::model::stacks::Profile;
use crate::pipeline::open::shown;
use crate::render::viewer::PageRecording;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// Shifts the times of several recordings so that all start at the same time, and describes the recordings for the
/// page. Returns an empty list if there is only one; its times don't change.
pub(super) fn align(inputs: &[InPath], profile: &mut Profile, recorded: &mut [RecordingData]) -> Vec<PageRecording> {
    let paths: Vec<PathBuf> = inputs.iter().map(shown).collect();
    if paths.len() < 2 {
        return Vec::new();
    }
    let extents = extents(profile, paths.len());
    // Times are unsigned, so shift all to the latest start: no shift is negative.
    let latest = extents.iter().flatten().map(|extent| extent.first).max().unwrap_or_default();
    let mut shifts = Vec::with_capacity(extents.len());
    for extent in &extents {
        shifts.push(match extent {
            Some(extent) => latest.0 - extent.first.0,
            None => 0,
        });
    }
    move_rows(profile, &shifts);
    let mut inputs_by_path: FxHashMap<&Path, usize> = FxHashMap::default();
    for (input, path) in paths.iter().enumerate() {
        // The same file may be given twice. Its data then belong to the first of the two inputs.
        inputs_by_path.entry(path).or_insert(input);
    }
    for recording in recorded {
        let input = inputs_by_path.get(&*recording.path).copied().unwrap_or(0);
        recording.move_to(input as u32, shifts[input]);
    }
    let tails = count_tails(&paths);
    let mut recordings = Vec::with_capacity(paths.len());
    for (path, extent) in paths.iter().zip(extents) {
        recordings.push(PageRecording {
            name: readable_path(distinct_tail(path, &tails)),
            path: readable_path(path),
            extent,
        });
    }
    recordings
}

fn readable_path(path: &Path) -> String {
    readable(path.as_os_str().as_encoded_bytes()).into_owned()
}

/// A note that explains the time axis. `None` unless there are several recordings with times.
pub(super) fn note(recordings: &[PageRecording], profile: &Profile) -> Option<String> {
    let are_timed = recordings.len() > 1 && profile.has_times();
    are_timed.then(|| {
        let count = recordings.len();
        format!("{count} recordings, each shown from its own start; drag over a lane to select only in its recording")
    })
}

/// For each input, the time of its first sample and the end of its last one. `None` if the input has no times.
fn extents(profile: &Profile, inputs: usize) -> Vec<Option<TimeExtent>> {
    let mut extents = vec![None; inputs];
    for row in profile.series.iter().flat_map(|series| &series.rows) {
        let (Some(input), Some(first)) = (profile.track_of(row.track).input, row.time) else { continue };
        // In some profiles, each row is an interval that starts at `time`, and the weight is its length.
        let last = Nanos(first.0.saturating_add(if profile.rows_have_durations { row.weight } else { 0 }));
        let extent = extents[input as usize].get_or_insert(TimeExtent { first, last });
        *extent = TimeExtent { first: extent.first.min(first), last: extent.last.max(last) };
    }
    extents
}

/// Adds to the time of each row the shift of its input, in nanoseconds.
fn move_rows(profile: &mut Profile, shifts: &[u64]) {
    let mut by_track = Vec::new();
    for track in profile.tracks() {
        by_track.push(track.input.map_or(0, |input| shifts[input as usize]));
    }
    for row in profile.series.iter_mut().flat_map(|series| &mut series.rows) {
        row.time = row.time.map(|time| Nanos(time.0.saturating_add(by_track[row.track.index()])));
    }
}

/// The shortest trailing part of a path, in whole components, that distinguishes it from all other paths.
fn distinct_tail<'p>(path: &'p Path, all: &FxHashMap<&Path, usize>) -> &'p Path {
    tails(path).find(|tail| all.get(tail) == Some(&1)).unwrap_or(path)
}

/// Counts for each tail how many paths end in it. The tails of `a/b` are `b` and `a/b`.
fn count_tails(paths: &[PathBuf]) -> FxHashMap<&Path, usize> {
    let mut counts = FxHashMap::default();
    for tail in paths.iter().flat_map(|path| tails(path)) {
        *counts.entry(tail).or_default() += 1;
    }
    counts
}

/// All tails of a path: its last component, its last two components, and so on.
fn tails(path: &Path) -> impl Iterator<Item = &Path> {
    let tails = path.ancestors().filter_map(|ancestor| path.strip_prefix(ancestor.parent()?).ok());
    tails.filter(|tail| !tail.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_named_by_as_much_of_its_path_as_distinguishes_it() {
        let paths = ["/a/x/perf.data", "/a/y/perf.data", "other.data", "same", "same"].map(PathBuf::from);
        let tails = count_tails(&paths);
        let names = paths.each_ref().map(|path| distinct_tail(path, &tails).to_str().unwrap());
        assert_eq!(names, ["x/perf.data", "y/perf.data", "other.data", "same", "same"]);
    }
}
