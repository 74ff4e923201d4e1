//! Active time: charges each moment to the one track that was running.
//!
//! Walks backwards in time through the starts and ends (edges) of all tracks' calls. The interval between two
//! consecutive edges belongs to the track of one of them, its owner. It is charged to the innermost open call on that
//! track, or to nothing if no call is open there. The sum therefore never exceeds the time from the first to the last
//! edge.
//!
//! ```text
//!   track 1   |--- a ------------------------------|
//!   track 2           |--- b ---|
//!   owner     none    2    2    1                       (of the next edge)
//! ```
//!
//! Of edges at the same time, ends come before starts; ends are in file order, and starts outermost first. If an end is
//! later than an end that the walk has already passed, it counts at the time of that one. (This happens because threads
//! that wait for the file's lock are written slightly late.)

use super::Owner;
use std::collections::BinaryHeap;

/// The track and the lane of the call that starts or ends at an edge.
pub(super) type Place = (usize, usize);

/// The state of the backward walk.
#[derive(Debug, Default)]
pub(super) struct Edges {
    owner: Owner,
    /// The starts of all open calls, the latest on top: time, number of the call in the order of opening, track and
    /// lane. Of equal times, the call that was opened last is on top.
    begins: BinaryHeap<(u64, u64, Place)>,
    /// The number of calls opened so far.
    opened: u64,
    /// Time, track and lane of the edge that was visited before the current one. As the walk goes backward, it is the
    /// next edge in time.
    last: Option<(u64, Place)>,
}

impl Edges {
    pub(super) fn new(owner: Owner) -> Self {
        Self { owner, ..Self::default() }
    }

    /// The latest start of an open call: time, track and lane. `None` if it is earlier than `time`.
    #[inline]
    pub(super) fn begin_from(&self, time: u64) -> Option<(u64, Place)> {
        self.begins.peek().filter(|(begin, ..)| *begin >= time).map(|&(begin, _, place)| (begin, place))
    }

    /// Visits the start that [`Edges::begin_from`] returned: the latest one of all open calls. Returns what
    /// [`Edges::pass`] returns.
    #[inline]
    pub(super) fn pass_begin(&mut self) -> Option<(u64, Place)> {
        let (begin, _, place) = self.begins.pop()?;
        self.pass(begin, place)
    }

    /// Adds the start of a call whose end has been visited.
    #[inline]
    pub(super) fn open(&mut self, start: u64, place: Place) {
        self.opened += 1;
        self.begins.push((start, self.opened, place));
    }

    /// Visits an edge, which is the start or the end of a call. Edges are visited from the latest to the earliest.
    /// Returns the length of the interval from this edge to the edge visited just before it, which is later in time.
    /// Also returns the track and lane to charge the interval to. `None` if the length is 0. After visiting the end of
    /// a call, [`open`](Self::open) the call, so that its start is visited, too.
    #[inline]
    pub(super) fn pass(&mut self, time: u64, place: Place) -> Option<(u64, Place)> {
        let (later_time, later_place) = self.last.unwrap_or((time, place));
        // The walk goes backwards, so this edge should be earlier than the one visited just before. If it is later, it
        // counts as being at the time of that one.
        self.last = Some((time.min(later_time), place));
        let interval = later_time.saturating_sub(time);
        let owner = if self.owner == Owner::Next { later_place } else { place };
        (interval > 0).then_some((interval, owner))
    }
}
