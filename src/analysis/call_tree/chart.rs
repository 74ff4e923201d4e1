//! Lays out stacks over time, thread by thread, as a flame chart.
//!
//! A sample shows what its thread was running at that time. Its box covers the time since the thread's previous sample,
//! but not more than the usual time between samples (or than the sample's own weight, if the unit is time). A gap of up
//! to one and a half times that length still belongs to the box, because timers are sometimes late. If the gap is
//! longer, the thread was idle for the rest of it, within the functions that both samples have in common:
//!
//! ```text
//! samples        z  y  y           x
//!                a  a  a           a
//! boxes        [z ][y   ][ idle ][x ]
//!              [a                   ]
//! ```

use super::placing::TreeBuilder;
use super::{CallTree, PlacedBox, ROOT, Spelling};
use crate::analysis::label::{RootFrame, roots};
use crate::model::stacks::{Profile, Row, Series, Unit, Weight};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A flame chart: the boxes of all threads over a common time axis.
#[derive(Debug)]
pub struct Chart {
    /// The call tree that has the labels of the boxes.
    pub tree: CallTree,
    /// One lane per thread: the busiest first, equally busy ones by process and thread ID.
    pub lanes: Vec<Lane>,
    /// The time at the left end of the axis, in nanoseconds on the profile's clock. `None` if the rows have no times:
    /// they are then laid out one after the other, each as wide as its weight.
    pub begin: Option<u64>,
    /// The length of the axis in nanoseconds; without times, in units of weight.
    pub length: u64,
    /// The number of samples that were left out: those without a time, if other samples have times.
    pub left_out: u64,
}

/// The boxes of one thread.
#[derive(Debug)]
pub struct Lane {
    /// The thread's name and IDs; empty if unknown.
    pub name: String,
    /// The boxes from left to right, parents before their children. `start` and `end` are relative to the start of the
    /// axis; `depth` is 0 for the thread's outermost function. Idle time is a box without a label.
    pub boxes: Vec<PlacedBox>,
}

/// The part of the axis that a row of the profile covers.
#[derive(Debug, Clone, Copy)]
struct RowExtent {
    /// The node of the row's stack in the call tree.
    node: u32,
    /// Start and end in nanoseconds or, if rows have no times, in units of weight.
    start: u64,
    end: u64,
}

/// The assumed distance between samples if it can't be measured: one millisecond, in nanoseconds.
const USUAL: u64 = 1_000_000;

impl Chart {
    /// Lays out the samples of one event in lanes of boxes, from left to right in order of time. If no sample has a
    /// time, the samples follow each other in the order of the profile.
    pub fn new(profile: &Profile, series: &Series, weight: Weight, spelling: Spelling) -> Self {
        let timed = series.rows.iter().any(|row| row.time.is_some());
        let mut by_lane: BTreeMap<LaneKey, Vec<&Row>> = BTreeMap::new();
        let mut left_out: u64 = 0;
        for row in &series.rows {
            if timed && row.time.is_none() {
                left_out = left_out.saturating_add(row.count);
                continue;
            }
            by_lane.entry(LaneKey::new(profile, row)).or_default().push(row);
        }
        for rows in by_lane.values_mut() {
            rows.sort_by_key(|row| row.time);
        }
        let rows = by_lane.values().flatten().copied();
        let (tree, nodes) = TreeBuilder::new(profile, spelling).place(rows);
        let usual = usual_distance(by_lane.values());
        let weight_is_time = series.unit == Unit::Nanos && weight == Weight::Period;
        // One node per row, in the order of the rows: lane by lane.
        let mut nodes = nodes.into_iter();
        let mut extents_by_lane: Vec<(&LaneKey, Vec<RowExtent>)> = Vec::new();
        // If rows have no times, they are laid out one after the other, and this is where the next row starts.
        let mut next_start = 0;
        for (key, rows) in &by_lane {
            let mut extents: Vec<RowExtent> = Vec::with_capacity(rows.len());
            for (row, node) in rows.iter().zip(nodes.by_ref().take(rows.len())) {
                if timed {
                    let time = row.time.map_or(0, |time| time.0);
                    // The sample stands for this many nanoseconds before `time`: for its weight if weights are times,
                    // otherwise for the usual distance between samples.
                    let covers = if weight_is_time { row.weight.max(1) } else { usual };
                    let previous_end = extents.last().map_or(0, |extent| extent.end);
                    extents.push(RowExtent::in_time(node, time, covers, previous_end));
                } else {
                    let end = next_start + weight.value(row);
                    extents.push(RowExtent { node, start: next_start, end });
                    next_start = end;
                }
            }
            extents_by_lane.push((key, extents));
        }
        // The busiest lane comes first. The sort is stable, so that equally busy lanes stay in the order of their keys.
        extents_by_lane.sort_by_cached_key(|(_, extents)| {
            let busy: u64 = extents.iter().map(|extent| extent.end - extent.start).sum();
            Reverse(busy)
        });
        let all_extents = || extents_by_lane.iter().flat_map(|(_, extents)| extents);
        let begin = all_extents().map(|extent| extent.start).min().unwrap_or(0);
        let length = all_extents().map(|extent| extent.end).max().unwrap_or(0) - begin;
        let mut lanes = Vec::new();
        for (key, extents) in &extents_by_lane {
            lanes.push(Lane { name: key.name.clone(), boxes: boxes(&tree, key.roots, extents, begin) });
        }
        Self { tree, lanes, begin: timed.then_some(begin), length, left_out }
    }
}

impl RowExtent {
    /// The range of a sample that was taken at `time` and stands for at most `covers` nanoseconds before that time.
    /// `previous_end` is the end of the range of the thread's previous sample; 0 if there is none.
    fn in_time(node: u32, time: u64, covers: u64, previous_end: u64) -> Self {
        // Timers are sometimes late. If the gap since the previous sample is only slightly longer than `covers`, the
        // thread wasn't idle, so this sample's range starts where the previous one ends.
        let follows = previous_end > 0 && time.saturating_sub(previous_end) <= covers.saturating_add(covers / 2);
        let start = if follows { previous_end } else { time.saturating_sub(covers).max(previous_end) };
        Self { node, start, end: time.max(previous_end) }
    }
}

/// Identifies a lane, that is, a thread. Equally busy lanes are sorted by this.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LaneKey {
    pid: Option<i32>,
    tid: Option<i32>,
    name: String,
    /// The number of outermost frames that only identify the thread.
    roots: usize,
}

impl LaneKey {
    fn new(profile: &Profile, row: &Row) -> Self {
        let track = profile.track_of(row.track);
        let name = roots(track, RootFrame::Tid, super::Annotate::default()).concat();
        // Stacks in the tree start with the thread's name, if it has one.
        let roots = roots(track, RootFrame::Comm, super::Annotate::default()).len();
        Self { pid: track.pid.map(|pid| pid.0), tid: track.tid.map(|tid| tid.0), name, roots }
    }
}

/// The median time between consecutive samples of a thread, in nanoseconds; [`USUAL`] if no thread has samples at two
/// different times.
fn usual_distance<'a>(lanes: impl Iterator<Item = &'a Vec<&'a Row>>) -> u64 {
    let mut distances: Vec<u64> = Vec::new();
    for rows in lanes {
        let times: Vec<u64> = rows.iter().filter_map(|row| row.time).map(|time| time.0).collect();
        let lane_distances = times.windows(2).map(|pair| pair[1] - pair[0]);
        distances.extend(lane_distances.filter(|distance| *distance > 0));
    }
    if distances.is_empty() {
        return USUAL;
    }
    let middle = distances.len() / 2;
    let (_shorter, median, _longer) = distances.select_nth_unstable(middle);
    *median
}

/// Lays out the boxes of a thread. Consecutive samples with common callers share the boxes of these callers. The first
/// `roots` frames of each stack only identify the thread, and get no boxes.
fn boxes(tree: &CallTree, roots: usize, extents: &[RowExtent], begin: u64) -> Vec<PlacedBox> {
    let mut boxes: Vec<PlacedBox> = Vec::new();
    // The boxes of the previous sample's stack, as indexes in `boxes`, outermost first.
    let mut open: Vec<usize> = Vec::new();
    let mut path = Vec::new();
    let mut last_end = extents.first().map_or(0, |extent| extent.start);
    for extent in extents {
        path.clear();
        let mut node = extent.node;
        while node != ROOT {
            path.push(node);
            node = tree.parent(node);
        }
        path.reverse();
        path.drain(..roots.min(path.len()));
        // The number of outer frames that this sample has in common with the previous one. Their boxes go on; those of
        // the inner frames ended with the previous sample.
        let shared = open.iter().zip(&path).take_while(|(index, node)| boxes[**index].node == **node).count();
        open.truncate(shared);
        let start = extent.start - begin;
        let end = extent.end - begin;
        if last_end < extent.start {
            // The thread was idle between the two samples. This is drawn above the functions that both have in common.
            boxes.push(PlacedBox {
                node: ROOT,
                label: None,
                depth: shared as u32,
                start: last_end - begin,
                end: start,
            });
        }
        for &node in &path[shared..] {
            let (_, label) = tree.nodes.get(node);
            let depth = open.len() as u32;
            open.push(boxes.len());
            boxes.push(PlacedBox { node, label: Some(label), depth, start, end });
        }
        // The functions of this sample, including those shared with the previous one, run to the end of this sample.
        for &index in &open {
            boxes[index].end = end;
        }
        last_end = extent.end;
    }
    boxes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::{Frame, FrameKind, Track};
    use crate::model::{Nanos, Pid, Tid};

    /// Builds a profile of samples given as (thread, time in milliseconds, stack), in this order.
    fn profile(samples: &[(i32, u64, &str)], unit: Unit) -> Profile {
        let mut profile = Profile::new();
        let series = profile.series_named("e", unit);
        for &(tid, time, names) in samples {
            let (pid, tid) = (Some(Pid(7)), Some(Tid(tid)));
            let track = profile.track(Track { comm: b"p".to_vec(), pid, tid, ..Track::default() });
            let mut stack = None;
            for name in names.split(';') {
                let name = profile.name(name.as_bytes());
                let frame = profile.frame(Frame::new(name, FrameKind::User));
                stack = Some(profile.stack(stack, frame));
            }
            profile.push(series, Row { track, stack, weight: 10, count: 1, time: Some(Nanos(time)) });
        }
        profile
    }

    fn lanes(profile: &Profile) -> Vec<String> {
        let chart = Chart::new(profile, &profile.series[0], Weight::Period, Spelling::default());
        let told = |lane: &Lane| {
            let one = |placed: &PlacedBox| {
                let name = placed.label.map_or("idle", |label| chart.tree.name(label));
                format!("{}{name} {}-{}", "^".repeat(placed.depth as usize), placed.start, placed.end)
            };
            let boxes: Vec<String> = lane.boxes.iter().map(one).collect();
            format!("{}: {}", lane.name, boxes.join(", "))
        };
        chart.lanes.iter().map(told).collect()
    }

    #[test]
    fn boxes_run_from_left_to_right_and_idle_time_is_reported() {
        let samples =
            [(7, 130, "a;z"), (7, 110, "a;x"), (7, 120, "a;x"), (7, 190, "a;x"), (8, 190, "b"), (8, 203, "b")];
        assert_eq!(
            lanes(&profile(&samples, Unit::Nanos)),
            ["p-7/7: a 0-90, ^x 0-20, ^z 20-30, ^idle 30-80, ^x 80-90", "p-7/8: b 80-103"]
        );
    }

    #[test]
    fn weights_that_are_not_time_cover_the_usual_distance() {
        let samples = [(7, 1_000, "a"), (7, 2_000, "a"), (7, 3_000, "b"), (7, 9_000, "b")];
        assert_eq!(
            lanes(&profile(&samples, Unit::Named("cycles".to_owned()))),
            ["p-7/7: a 0-2000, b 2000-9000, ^idle 3000-8000"]
        );
    }

    #[test]
    fn without_times_rows_are_in_their_order() {
        let mut profile = profile(&[(7, 1, "z"), (7, 2, "a"), (7, 3, "a")], Unit::Samples);
        profile.series[0].rows.iter_mut().for_each(|row| row.time = None);
        assert_eq!(lanes(&profile), ["p-7/7: z 0-10, a 10-30"]);
    }
}
