//! Active time: which track was the one that ran.
//!
//! All start and end of all tracks, walked backwards. Each stretch between two neighboring edges is given to the owner
//! of one of them and charged to the innermost call that was open on that track; if none was, to nobody. So the sum
//! never exceeds the time from the first edge to the last.
//!
//! ```text
//!   track 1   |--- a ------------------------------|
//!   track 2           |--- b ---|
//!   owner     nobody  2    2    1                       (of the next edge)
//! ```
//!
//! At equal times ends come before begins, ends in file order, begins outermost first. An end later than one that was
//! already walked (threads that wait for the lock of the file are written a little late) counts at that one's time.

use super::Owner;
use std::collections::BinaryHeap;

/// The track and lane of an edge.
pub(super) type Place = (usize, usize);

/// The walk backwards through the edges.
#[derive(Debug, Default)]
pub(super) struct Edges {
    owner: Owner,
    /// The starts of all open calls: the latest begins first, and of equal ones the one opened last.
    begins: BinaryHeap<(u64, u64, Place)>,
    opened: u64,
    /// Time and place of the edge walked last.
    last: Option<(u64, Place)>,
}

impl Edges {
    pub(super) fn new(owner: Owner) -> Self {
        Self { owner, ..Self::default() }
    }

    /// The latest begin of an open call, if it is not before `time`.
    #[inline]
    pub(super) fn begin_from(&self, time: u64) -> Option<(u64, Place)> {
        self.begins.peek().filter(|(begin, ..)| *begin >= time).map(|&(begin, _, place)| (begin, place))
    }

    /// Walks over the start that [`Edges::begin_from`] named. Gives the stretch behind it and the place to charge.
    #[inline]
    pub(super) fn pass_begin(&mut self) -> Option<(u64, Place)> {
        let (begin, _, place) = self.begins.pop()?;
        self.pass(begin, place)
    }

    /// Remembers the start of a call opened at a place.
    #[inline]
    pub(super) fn open(&mut self, start: u64, place: Place) {
        self.opened += 1;
        self.begins.push((start, self.opened, place));
    }

    /// Walks over an edge: the end of a call at a place before the call is opened there, or a start. Gives the stretch
    /// behind it and the place to charge.
    #[inline]
    pub(super) fn pass(&mut self, time: u64, place: Place) -> Option<(u64, Place)> {
        let (later, later_place) = self.last.unwrap_or((time, place));
        self.last = Some((time.min(later), place));
        let stretch = later.saturating_sub(time);
        let owner = if self.owner == Owner::Next { later_place } else { place };
        (stretch > 0).then_some((stretch, owner))
    }
}
