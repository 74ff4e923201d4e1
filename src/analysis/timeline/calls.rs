//! Adds up the self time of calls, by call path and track.

use super::active::Edges;
use super::lanes::{Lanes, Span};
use super::sampling::{Carry, Rest, Sampling};
use super::{CallOptions, Clock};
use crate::model::Nanos;
use crate::model::prefix_tree::PrefixTree;
use crate::model::stacks::{Counting, Frame, FrameKind, Profile, Row, StackId, Track, Unit};
use crate::model::texts::TextList;
use rustc_hash::FxHashMap;

/// The name of a function, as an index into the reader's list of names.
pub type Label = u32;

/// The name under which outermost calls shorter than [`CallOptions::min_duration`] are added up. They have no caller to
/// which their time could be added.
const SHORTER: &[u8] = b"[shorter]";

/// The label that stands for [`SHORTER`]. It isn't in the reader's list of names.
const SHORTER_LABEL: Label = Label::MAX;

/// Adds up the self time of calls. Calls must be added in the order of descending ends, callers before callees.
#[derive(Debug)]
pub struct CallSums {
    options: CallOptions,
    /// The tracks, by number.
    tracks: Vec<OneTrack>,
    /// For active time ([`Clock::Active`]): the starts and ends of calls on all tracks.
    edges: Option<Edges>,
    tree: SpanTree,
    /// The intervals in which calls themselves ran; `None` if they weren't asked for or if there are too many.
    self_times: Option<SelfTimes>,
}

/// A list of intervals in which calls themselves ran rather than their callees, up to a maximum length.
#[derive(Debug)]
struct SelfTimes {
    /// The maximum length of `list`.
    most: usize,
    list: Vec<SelfTime>,
}

/// An interval in which a call itself ran rather than its callees. `calls` is 1 in one of the call's intervals and 0 in
/// the others, so that the sum over all intervals is the number of calls.
#[derive(Debug, Clone, Copy)]
struct SelfTime {
    /// The call's node in the tree of call paths.
    node: u32,
    start: u64,
    end: u64,
    calls: u64,
}

/// The state of a track while its calls are added.
#[derive(Debug)]
struct OneTrack {
    /// The open calls. Calls that overlap without nesting are in different lanes.
    lanes: Lanes<OpenSpan>,
    /// The track's node in the tree of call paths.
    root: u32,
    /// The weight of calls that sampling skipped since the last one that it kept.
    carry: Carry,
}

/// An open call: its node in the tree of call paths, and its self time so far.
#[derive(Debug, Clone, Copy)]
struct OpenSpan {
    node: u32,
    self_time: u64,
    /// False if the call is so short that its time counts for its caller or, if there is none, for [`SHORTER`].
    counts: bool,
    /// When the call started.
    start: u64,
    /// The call's self time from this time on, until the call's end, is in the list of intervals already. The time
    /// moves backward, because calls are processed from the latest to the earliest.
    recorded_from: u64,
}

/// All call paths. The top level has the tracks, the levels below have functions.
#[derive(Debug, Default)]
struct SpanTree {
    /// A path without a parent stands for a track: its label is the number of the track. All other labels are
    /// functions.
    paths: PrefixTree<Label>,
    /// The sums of each call path, by its ID in `paths`.
    sums: Vec<PathSum>,
}

/// The self time and the number of calls of a call path.
#[derive(Debug, Clone, Copy, Default)]
struct PathSum {
    weight: u64,
    calls: u64,
}

impl SelfTimes {
    /// Adds an interval of self time, unless `self_times` is `None`. If there are then more intervals than the maximum,
    /// drops all of them and sets `self_times` to `None`: the profile's rows are then sums per call path.
    #[inline]
    fn push(self_times: &mut Option<Self>, interval: SelfTime) {
        let Some(Self { most, list }) = self_times else { return };
        if interval.start < interval.end || interval.calls > 0 {
            list.push(interval);
        }
        if list.len() > *most {
            *self_times = None;
        }
    }
}

impl SpanTree {
    /// Finds the path that extends `parent` by a label, or adds it.
    #[inline]
    fn child(&mut self, parent: Option<u32>, label: Label) -> u32 {
        let path = self.paths.child(parent, label);
        if path as usize == self.sums.len() {
            self.sums.push(PathSum::default());
        }
        path
    }

    fn add(&mut self, path: u32, weight: u64, calls: u64) {
        let sum = &mut self.sums[path as usize];
        sum.weight += weight;
        sum.calls += calls;
    }

    /// Adds a call that was closed to the sums of its node, and its earliest interval to `self_times`, which has the
    /// later ones already. With sampling, only some calls are counted. Each of them also gets the weight of the calls
    /// that were skipped since the last counted one.
    #[inline]
    fn close(&mut self, open: OpenSpan, sampling: Sampling, carry: &mut Carry, self_times: &mut Option<SelfTimes>) {
        let calls = u64::from(open.counts);
        SelfTimes::push(self_times, SelfTime { node: open.node, start: open.start, end: open.recorded_from, calls });
        if !open.counts {
            // This call was too short, so it was merged into its caller or into `[shorter]`, the sum of short calls
            // without a caller. It doesn't count as a call, so sampling neither keeps nor skips it: all of its time is
            // added.
            self.add(open.node, open.self_time, 0);
        } else if sampling == Sampling::All {
            self.add(open.node, open.self_time, 1);
        } else if let Some((weight, calls)) = sampling.take(carry, open.node, open.self_time) {
            self.add(open.node, weight, calls);
        }
    }
}

impl CallSums {
    /// Creates sums without any calls.
    pub fn new(options: CallOptions) -> Self {
        let edges = match options.clock {
            Clock::Wall => None,
            Clock::Active(owner) => Some(Edges::new(owner)),
        };
        // Intervals aren't available if calls are sampled, because a kept call stands for others. Nor for active time,
        // in which a call consists of too many pieces.
        let can_list = options.clock == Clock::Wall && options.sampling == Sampling::All;
        let self_times = options.timed.filter(|_| can_list).map(|most| SelfTimes { most, list: Vec::new() });
        Self { options, tracks: Vec::new(), edges, tree: SpanTree::default(), self_times }
    }

    /// Adds a track and returns its number. Tracks are numbered from 0.
    pub fn track(&mut self) -> usize {
        let root = self.tree.child(None, self.tracks.len() as u32);
        self.tracks.push(OneTrack { lanes: Lanes::default(), root, carry: Carry::default() });
        self.tracks.len() - 1
    }

    /// Adds a call on a track. Calls must be added in the order of descending ends, across all tracks. Short calls
    /// ([`CallOptions::min_duration`]) are merged into their callers.
    #[inline]
    pub fn call(&mut self, track: usize, label: Label, mut span: Span) {
        if let Some(within) = self.options.within {
            let cut = Span { start: span.start.max(within.start), end: span.end.min(within.end) };
            // Skip a call that is outside of the requested time range.
            if cut.start > cut.end {
                return;
            }
            span = cut;
        }
        if self.edges.is_some() {
            self.pass_begins(track, span);
        }
        let Self { options, tracks, edges, tree, self_times, .. } = self;
        let OneTrack { lanes, root, carry } = &mut tracks[track];
        // Choose a lane for the call: calls of a track that overlap without nesting are in different lanes. On the way,
        // calls that start after this one's end are closed. The innermost call that is still open in the chosen lane is
        // this call's caller.
        let lane = lanes.place(span, |closed| tree.close(closed, options.sampling, carry, self_times));
        let duration = span.duration();
        let root = *root;
        let is_short = duration < options.min_duration;
        let is_merged_into_caller = is_short && lanes.top(lane).is_some();
        let node = match lanes.top(lane) {
            Some((_, caller)) if is_short => caller.node,
            Some((_, caller)) => tree.child(Some(caller.node), label),
            None if is_short => tree.child(Some(root), SHORTER_LABEL),
            None => tree.child(Some(root), label),
        };
        let self_time = match edges {
            None => {
                // A call has its whole duration as self time at first, from which its callees take theirs.
                if let Some((_, caller)) = lanes.top(lane) {
                    caller.self_time = caller.self_time.saturating_sub(duration);
                    // A short call counts as its caller's time and doesn't interrupt the caller. Any other call does:
                    // the caller itself ran from the end of that call to `recorded_from`. (Its time from
                    // `recorded_from` on is in the list already, because calls are added from the last to the first.)
                    if !is_short {
                        let interval =
                            SelfTime { node: caller.node, start: span.end, end: caller.recorded_from, calls: 0 };
                        SelfTimes::push(self_times, interval);
                        caller.recorded_from = span.start;
                    }
                }
                duration
            }
            // For active time, a call's self time is 0 at first, and grows by the intervals in which it was active.
            // `pass` returns the interval between this call's end and the start or end that was visited just before it
            // (a later one), with the call to which the interval is charged.
            Some(edges) => {
                let interval = edges.pass(span.end, (track, lane));
                charge(tracks, interval);
                edges.open(span.start, (track, lane));
                0
            }
        };
        // The self time of a call that was merged into its caller is in the caller's interval, so nothing is left to
        // record for it.
        let recorded_from = if is_merged_into_caller { span.start } else { span.end };
        let open = OpenSpan { node, self_time, counts: !is_short, start: span.start, recorded_from };
        tracks[track].lanes.open(lane, span, open);
    }

    /// For active time: prepares for adding the call `next`. Visits all starts at or after its end, and closes the
    /// calls that begin there. Does nothing for wall time.
    fn pass_begins(&mut self, track: usize, next: Span) {
        let Self { options, tracks, edges, tree, self_times, .. } = self;
        let Some(edges) = edges else { return };
        while let Some((begin, (begin_track, lane))) = edges.begin_from(next.end) {
            // A call of length zero at the start of its caller ends where the caller starts. The caller must stay open,
            // so that the call is nested in it.
            let is_caller = begin_track == track && begin == next.start;
            if is_caller {
                break;
            }
            // From this start to the start or end that was visited before it, one call was active. It gets that time.
            let interval = edges.pass_begin();
            charge(tracks, interval);
            let OneTrack { lanes, carry, .. } = &mut tracks[begin_track];
            if let Some(closed) = lanes.close(lane) {
                tree.close(closed, options.sampling, carry, self_times);
            }
        }
    }

    /// The number of calls that overlap another call of their track without being nested in it.
    pub fn overlaps(&self) -> u64 {
        self.tracks.iter().map(|track| track.lanes.overlaps()).sum()
    }

    /// Ends the calls that are still open on all tracks.
    fn close_all(&mut self) {
        for OneTrack { lanes, carry, .. } in &mut self.tracks {
            lanes.finish(|closed| self.tree.close(closed, self.options.sampling, carry, &mut self.self_times));
        }
    }

    /// Ends the calls that are still open, and converts the sums of all calls to a profile. `tracks` has the thread of
    /// each track number, and `labels` the function name of each label. `series` is the name of the profile's event,
    /// and `unit` the unit of its weights.
    pub fn into_profile(mut self, tracks: &[Track], labels: &TextList, series: &str, unit: Unit) -> Profile {
        // Calls are added from the last end to the first. For active time, `pass_begins` visits the starts that come
        // after the end of the call that it is given. Give it an invented call that ends at time 0, so that it visits
        // all remaining starts. No call becomes the caller of the invented call, because that is on a track that
        // doesn't exist (`usize::MAX`).
        self.pass_begins(usize::MAX, Span { start: 0, end: 0 });
        // For wall time, `pass_begins` does nothing, and calls are still open.
        self.close_all();
        // With sampling, `carry` has the weight of the calls that were skipped after the track's last kept one. It goes
        // to the node of the track's last call.
        for OneTrack { carry, .. } in &mut self.tracks {
            if let Some(Rest { node, weight, calls }) = carry.into_rest() {
                self.tree.add(node, weight, calls);
            }
        }
        let self_times = self.self_times.map(|SelfTimes { list, .. }| list);
        let mut profile = self.tree.into_profile(tracks, labels, series, unit, self_times);
        if self.options.sampling == Sampling::All {
            profile.series.iter_mut().for_each(|series| series.counting = Counting::Exact);
        }
        profile
    }
}

/// For active time: adds an interval to the self time of the call that was active in it. `interval` has the interval's
/// length, and the track and lane whose innermost open call was active; `None` adds nothing.
fn charge(tracks: &mut [OneTrack], interval: Option<(u64, super::active::Place)>) {
    let Some((time, (track, lane))) = interval else { return };
    if let Some((_, open)) = tracks[track].lanes.top(lane) {
        open.self_time += time;
    }
}

/// The stack and the track that a call path becomes in a profile.
#[derive(Clone, Copy)]
struct PathStack {
    /// `None` for a path that only stands for a track.
    stack: Option<StackId>,
    /// The number of the track.
    track: u32,
}

impl SpanTree {
    /// Converts the call paths to a profile. It has one row per path that has self time or calls or, if `self_times` is
    /// given, one row per interval in that list. The other parameters are those of [`CallSums::into_profile`].
    fn into_profile(
        self,
        tracks: &[Track],
        labels: &TextList,
        series: &str,
        unit: Unit,
        self_times: Option<Vec<SelfTime>>,
    ) -> Profile {
        let mut profile = Profile::new();
        let mut frames = FxHashMap::default();
        // The stack and track that each path becomes, by path ID. Parents come before their children.
        let mut stacks: Vec<PathStack> = Vec::with_capacity(self.sums.len());
        let track_of = |number: u32| tracks.get(number as usize).cloned().unwrap_or_default();
        let series = profile.series_named(series, unit);
        for ((parent, label), PathSum { weight, calls }) in self.paths.iter().zip(self.sums) {
            let Some(parent) = parent else {
                // The path stands for a track, and its label is the number of that track.
                stacks.push(PathStack { stack: None, track: label });
                continue;
            };
            let PathStack { stack: caller, track } = stacks[parent as usize];
            let frame = *frames.entry(label).or_insert_with(|| {
                // The only label without an entry in `labels` is `SHORTER_LABEL`.
                let name = labels.get(label as usize).unwrap_or(SHORTER);
                let name = profile.name(name);
                profile.frame(Frame::new(name, FrameKind::User))
            });
            let stack = profile.stack(caller, frame);
            stacks.push(PathStack { stack: Some(stack), track });
            if self_times.is_none() && (weight > 0 || calls > 0) {
                let (track, stack) = (profile.track(track_of(track)), Some(stack));
                profile.push(series, Row { track, stack, weight, count: calls, time: None });
            }
        }
        profile.rows_have_durations = self_times.is_some();
        for SelfTime { node, start, end, calls } in self_times.into_iter().flatten() {
            let PathStack { stack, track } = stacks[node as usize];
            let track = profile.track(track_of(track));
            profile.push(series, Row { track, stack, weight: end - start, count: calls, time: Some(Nanos(start)) });
        }
        profile
    }
}

#[cfg(test)]
mod tests {
    use super::super::Owner;
    use super::*;

    /// Adds up calls given as (track, label, start, end) in file order. Returns one line per call path, sorted.
    fn sums(options: CallOptions, calls: &[(usize, u32, u64, u64)]) -> Vec<String> {
        let mut sums = CallSums::new(options);
        for _ in 0..=calls.iter().map(|call| call.0).max().unwrap() {
            sums.track();
        }
        for &(track, label, start, end) in calls.iter().rev() {
            sums.call(track, label, Span { start, end });
        }
        let tracks: Vec<_> = (0..3).map(|n| Track { comm: vec![b'0' + n], ..Track::default() }).collect();
        let profile = sums.into_profile(&tracks, &["a", "b", "c", "d"].into_iter().collect(), "wall", Unit::Nanos);
        let mut lines: Vec<_> = profile.series[0]
            .rows
            .iter()
            .map(|row| {
                let mut names: Vec<_> = profile.frames_up(row.stack).collect();
                names.reverse();
                let names = names
                    .iter()
                    .map(|frame| String::from_utf8_lossy(profile.name_of(profile.frame_of(*frame).name)).into_owned());
                let comm = String::from_utf8_lossy(&profile.track_of(row.track).comm).into_owned();
                format!("{comm}:{} {} {}", names.collect::<Vec<_>>().join(";"), row.weight, row.count)
            })
            .collect();
        lines.sort();
        lines
    }

    const NESTED: &[(usize, u32, u64, u64)] = &[(0, 2, 3, 4), (0, 1, 2, 6), (0, 1, 7, 8), (0, 0, 0, 10)];

    #[test]
    fn wall_time_is_each_tracks_own() {
        assert_eq!(sums(CallOptions::default(), NESTED), ["0:a 5 1", "0:a;b 4 2", "0:a;b;c 1 1"]);
    }

    #[test]
    fn short_calls_are_their_callers_time() {
        let options = CallOptions { min_duration: 2, ..CallOptions::default() };
        assert_eq!(sums(options, NESTED), ["0:a 6 1", "0:a;b 4 1"]);
        assert_eq!(sums(options, &[(0, 0, 5, 6), (0, 1, 7, 9)]), ["0:[shorter] 1 0", "0:b 2 1"]);
        let active = CallOptions { clock: Clock::Active(Owner::Next), ..options };
        assert_eq!(sums(active, NESTED), ["0:a 6 1", "0:a;b 4 1"]);
    }

    #[test]
    fn active_time_belongs_to_one_track_at_a_time() {
        let calls = [(1, 1, 4, 8), (0, 0, 0, 20), (1, 2, 22, 24)];
        let next = CallOptions { clock: Clock::Active(Owner::Next), ..CallOptions::default() };
        // 0-4 ends with a start on track 1, where no call is open; so does 20-22.
        assert_eq!(sums(next, &calls), ["0:a 12 1", "1:b 4 1", "1:c 2 1"]);
        let previous = CallOptions { clock: Clock::Active(Owner::Previous), ..CallOptions::default() };
        assert_eq!(sums(previous, &calls), ["0:a 4 1", "1:b 4 1", "1:c 2 1"]);
    }

    #[test]
    fn overlaps_on_one_track_never_wrap() {
        let overlapping = [(0, 0, 0, 10), (0, 1, 5, 15)];
        assert_eq!(sums(CallOptions::default(), &overlapping), ["0:a 10 1", "0:b 10 1"]);
        let active = CallOptions { clock: Clock::Active(Owner::Next), ..CallOptions::default() };
        assert_eq!(sums(active, &overlapping), ["0:a 5 1", "0:b 5 1"]);
    }

    #[test]
    fn calls_with_times_show_when_they_ran_themselves_and_sum_up_to_the_same() {
        let timed = CallOptions { timed: Some(7), ..CallOptions::default() };
        let times = ["0:a 1 0", "0:a 2 0", "0:a 2 1", "0:a;b 1 1", "0:a;b 1 1", "0:a;b 2 0", "0:a;b;c 1 1"];
        assert_eq!(sums(timed, NESTED), times);
        // If there are more intervals than the limit, each row is a sum.
        let fewer = CallOptions { timed: Some(6), ..CallOptions::default() };
        assert_eq!(sums(fewer, NESTED), sums(CallOptions::default(), NESTED));
        let overlapping = [(0, 0, 0, 10), (0, 1, 5, 15)];
        assert_eq!(sums(timed, &overlapping), ["0:a 10 1", "0:b 10 1"]);
        assert_eq!(sums(CallOptions { min_duration: 2, ..timed }, NESTED), ["0:a 2 1", "0:a 4 0", "0:a;b 4 1"]);
    }

    #[test]
    fn sampling_keeps_the_total() {
        let options = CallOptions { sampling: Sampling::Calls(3), ..CallOptions::default() };
        assert_eq!(sums(options, NESTED), ["0:a 5 1", "0:a;b 5 3"]);
    }
}
