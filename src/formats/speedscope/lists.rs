//! Two ways to write the stacks of a thread: as a list of frames for each stack, or as the differences between
//! consecutive stacks.
//!
//! Lists can get huge: for N nested spans, each with self time, they have N²/2 entries.

use crate::model::stacks::{FrameId, Profile, Row, StackId};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

/// The stacks of rows as lists, outermost frame first.
pub(super) struct StackLists<'a> {
    pub(super) profile: &'a Profile,
    pub(super) rows: Vec<&'a Row>,
}

/// The stacks of rows as differences: the frames that close and open between consecutive rows.
pub(super) struct Changes<'a> {
    pub(super) lists: StackLists<'a>,
    /// The weight of each row.
    pub(super) weights: Vec<u64>,
    /// The time at which the first row starts, in the same unit as `weights`.
    pub(super) start: u64,
}

#[derive(Serialize)]
struct OpenOrClose {
    r#type: &'static str,
    frame: u32,
    at: u64,
}

/// For each stack of the profile, the number of its frames.
pub(super) struct Depths(Vec<u32>);

/// If the stacks of a profile have fewer frames than this in total, each stack is written as the list of its frames,
/// even if the changes between stacks would be shorter.
const LONG: u64 = 1 << 22;

/// A frame that opens or closes takes about as much JSON text as this many frames in a list.
const FRAMES_OF_A_CHANGE: u64 = 8;

impl Depths {
    pub(super) fn new(profile: &Profile) -> Self {
        let mut depths: Vec<u32> = Vec::with_capacity(profile.stack_count());
        for stack in 0..profile.stack_count() as u32 {
            let (caller, _) = profile.stack_of(StackId(stack));
            // Callers have smaller IDs than their callees, so the caller's depth is known.
            depths.push(caller.map_or(0, |caller| depths[caller.index()]) + 1);
        }
        Self(depths)
    }

    fn depth(&self, stack: Option<StackId>) -> u64 {
        stack.map_or(0, |stack| self.0[stack.index()].into())
    }

    /// True if the lists of all frames of each sample are so long that the changes between consecutive stacks should be
    /// written instead: the lists are long by themselves, and their text is also longer than that of the changes.
    pub(super) fn lists_are_long(&self, lists: &StackLists<'_>) -> bool {
        let listed_frames = lists.rows.iter().fold(0u64, |sum, row| sum.saturating_add(self.depth(row.stack)));
        if listed_frames < LONG {
            return false;
        }
        let (mut changes, mut previous) = (0u64, None);
        for row in &lists.rows {
            changes += compare(lists.profile, previous, row.stack, |_| {}, |_| {});
            previous = row.stack;
        }
        // A change takes as much text as this many frames of a list.
        changes.saturating_mul(FRAMES_OF_A_CHANGE) < listed_frames
    }
}

impl Serialize for StackLists<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows.iter().map(|row| {
            let mut frames: Vec<u32> = self.profile.frames_up(row.stack).map(|frame| frame.0).collect();
            frames.reverse();
            frames
        }))
    }
}

impl Serialize for Changes<'_> {
    /// Writes the changes between consecutive stacks: first the frames that close, innermost first, then those that
    /// open, outermost first.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let (mut previous, mut now) = (None, self.start);
        let rows = self.lists.rows.iter().map(|row| row.stack).zip(&self.weights);
        // The empty stack at the end closes all frames.
        for (stack, weight) in rows.chain([(None, &0)]) {
            let (mut closed, mut opened) = (Vec::new(), Vec::new());
            compare(self.lists.profile, previous, stack, |frame| closed.push(frame), |frame| opened.push(frame));
            for frame in closed {
                list.serialize_element(&OpenOrClose { r#type: "C", frame: frame.0, at: now })?;
            }
            for frame in opened.into_iter().rev() {
                list.serialize_element(&OpenOrClose { r#type: "O", frame: frame.0, at: now })?;
            }
            (previous, now) = (stack, now.saturating_add(*weight));
        }
        list.end()
    }
}

/// Calls `close` and `open` with the frames that close and open between two consecutive stacks, innermost first.
/// Returns the number of these frames.
fn compare(
    profile: &Profile,
    mut before: Option<StackId>,
    mut after: Option<StackId>,
    mut close: impl FnMut(FrameId),
    mut open: impl FnMut(FrameId),
) -> u64 {
    let mut count = 0;
    // Shorten both stacks until they are the same. The one with the larger ID can't be a caller of the other, because
    // callers have smaller IDs than their callees. So its innermost frame isn't in the other stack. The empty stack,
    // `None`, is smaller than all IDs.
    while before != after {
        if before > after {
            let Some(stack) = before else { break };
            let (caller, frame) = profile.stack_of(stack);
            close(frame);
            before = caller;
        } else {
            let Some(stack) = after else { break };
            let (caller, frame) = profile.stack_of(stack);
            open(frame);
            after = caller;
        }
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::super::{read, write};
    use crate::contract::format::{ReadOptions, WriteOptions};
    use crate::error::Warnings;
    use crate::model::stacks::{Frame, FrameKind, Profile, Row, Track, Unit};

    /// A profile with this many nested spans, each of which has self time.
    fn nested(spans: u32) -> Profile {
        let mut profile = Profile::new();
        let track = profile.track(Track::default());
        let series = profile.series_named("wall-time", Unit::Nanos);
        let mut stack = None;
        for span in 0..spans {
            let name = profile.name(format!("f{}", span % 7).as_bytes());
            let frame = profile.frame(Frame::new(name, FrameKind::User));
            stack = Some(profile.stack(stack, frame));
            profile.push(series, Row { track, stack, weight: u64::from(span) + 1, count: 1, time: None });
        }
        profile
    }

    #[test]
    fn spans_in_spans_are_written_by_what_changes_and_read_back() {
        const SPANS: u32 = 20_000;
        let profile = nested(SPANS);
        let mut out = Vec::new();
        write(&profile, &WriteOptions::default(), &mut out).unwrap();
        // As lists, these would be 200 million numbers.
        assert!(out.len() < 100 * SPANS as usize, "{} bytes", out.len());
        let again = read(&out, &ReadOptions::default(), &mut Warnings::new()).unwrap();
        assert_eq!(again.stack_count(), SPANS as usize);
        let weight = |profile: &Profile| profile.series[0].rows.iter().map(|row| row.weight).sum::<u64>();
        assert_eq!(weight(&again), weight(&profile));
        let deepest = again.series[0].rows.iter().map(|row| row.stack).max().unwrap();
        assert_eq!(again.frames_up(deepest).count(), SPANS as usize);
    }

    #[test]
    fn few_frames_are_lists() {
        let mut out = Vec::new();
        write(&nested(3), &WriteOptions::default(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r#""samples":[[0],[0,1],[0,1,2]],"weights":[1,2,3]"#), "{text}");
    }
}
