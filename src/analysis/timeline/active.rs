//! Active time: charges each moment to the one track that was running.
//!
//! Walks backwards through the starts and ends of all tracks' calls. The interval between two consecutive edges belongs
//! to the track of one of them (the owner), and is charged to the innermost open call on that track, or to nothing if
//! no call is open. The sum therefore never exceeds the time from the first to the last edge.
//!
//! ```text
//!   track 1   |--- a ------------------------------|
//!   track 2           |--- b ---|
//!   owner     none    2    2    1                       (of the next edge)
//! ```
//!
//! At the same time, ends come before starts; ends are in file order and starts outermost first. An end that is later
//! than one already passed counts at the time of that one. (Threads that wait for the file's lock are written slightly
//! late.)

use super::Owner;
use std::collections::BinaryHeap;

/// Track and lane of an edge.
pub(super) type Place = (usize, usize);

/// The state of the walk.
#[derive(Debug, Default)]
pub(super) struct Edges {
    owner: Owner,
    /// Starts of all open calls. The latest comes first; among equal ones, the one opened last.
    begins: BinaryHeap<(u64, u64, Place)>,
    opened: u64,
    /// Time and place of the previous edge, that is, the next later one.
    last: Option<(u64, Place)>,
}

impl Edges {
    pub(super) fn new(owner: Owner) -> Self {
        Self { owner, ..Self::default() }
    }

    /// The latest start of an open call, if it is not before `time`.
    #[inline]
    pub(super) fn begin_from(&self, time: u64) -> Option<(u64, Place)> {
        self.begins.peek().filter(|(begin, ..)| *begin >= time).map(|&(begin, _, place)| (begin, place))
    }

    /// Passes the start that [`Edges::begin_from`] returned. Returns the length of the interval after it, and the place
    /// to charge.
    #[inline]
    pub(super) fn pass_begin(&mut self) -> Option<(u64, Place)> {
        let (begin, _, place) = self.begins.pop()?;
        self.pass(begin, place)
    }

    /// Remembers the start of a call that was opened.
    #[inline]
    pub(super) fn open(&mut self, start: u64, place: Place) {
        self.opened += 1;
        self.begins.push((start, self.opened, place));
    }

    /// Passes an edge: a start, or the end of a call that is opened afterwards. Returns the length of the interval
    /// after it, and the place to charge; `None` if its length is 0.
    #[inline]
    pub(super) fn pass(&mut self, time: u64, place: Place) -> Option<(u64, Place)> {
        let (later, later_place) = self.last.unwrap_or((time, place));
        self.last = Some((time.min(later), place));
        let stretch = later.saturating_sub(time);
        let owner = if self.owner == Owner::Next { later_place } else { place };
        (stretch > 0).then_some((stretch, owner))
    }
}
