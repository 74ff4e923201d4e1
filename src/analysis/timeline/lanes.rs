//! Rebuilds the nesting of a track's intervals. Intervals that overlap without being nested go to different lanes.
//!
//! Intervals come in the order of descending ends, as if time ran backwards, so that callers precede callees:
//!
//! ```text
//!   |---- a ----------------------|      order: a, c, b, d
//!     |-- b --|   |----- c ----|         b and c are nested in a;
//!         |------- d ----|               d overlaps both b and c and goes to another lane
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An interval of time; `start <= end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// When the interval starts.
    pub start: u64,
    /// When the interval ends.
    pub end: u64,
}

impl Span {
    /// The time from start to end.
    pub fn duration(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// The open intervals of a track by lane. Each has a value that the caller attached to it.
#[derive(Debug)]
pub struct Lanes<T> {
    /// For each lane, its open intervals, outermost first.
    lanes: Vec<Vec<(Span, T)>>,
    innermost: Innermost,
    /// Lanes that have become empty, lowest first. Some of them may be in use again, so their intervals must be
    /// checked.
    empty: BinaryHeap<Reverse<usize>>,
    /// The number of lanes that have open intervals.
    used: usize,
    /// The number of intervals that got another lane because they overlapped an open one.
    overlaps: u64,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        let (innermost, empty) = (Innermost::default(), BinaryHeap::from([Reverse(0)]));
        Self { lanes: vec![Vec::new()], innermost, empty, used: 0, overlaps: 0 }
    }
}

/// A search tree over the lanes, with the starts of their innermost intervals. It finds the lanes that matter for a new
/// interval without looking at all. It is stored as an array: lane N is node `lanes` + N, and the parent of node N is
/// node N / 2.
#[derive(Debug)]
struct Innermost {
    /// The number of leaves (lanes in use or not), which is a power of two.
    lanes: usize,
    /// For each node, the earliest and the latest start of all lanes below it.
    begins: Vec<(u64, u64)>,
}

/// Stands for lanes without open intervals. With the latest possible "earliest start" and the earliest possible "latest
/// start", such lanes never change the values of the nodes above them.
const NO_BEGIN: (u64, u64) = (u64::MAX, 0);

impl Default for Innermost {
    fn default() -> Self {
        Self { lanes: 1, begins: vec![NO_BEGIN; 2] }
    }
}

impl Innermost {
    /// Sets the start of the innermost open interval of a lane (`None` if none is open), and updates the nodes above
    /// the lane in the search tree: each has the earliest and the latest start of the lanes below it.
    #[inline]
    fn set(&mut self, lane: usize, begin: Option<u64>) {
        let mut node = self.lanes + lane;
        self.begins[node] = begin.map_or(NO_BEGIN, |begin| (begin, begin));
        while node > 1 {
            node /= 2;
            let ((first, last), (other_first, other_last)) = (self.begins[2 * node], self.begins[2 * node + 1]);
            self.begins[node] = (first.min(other_first), last.max(other_last));
        }
    }

    /// Doubles the number of lanes, and rebuilds the search tree over them.
    fn grow(&mut self) {
        // The tree is an array, and its second half has the leaves: the start of each lane's innermost interval. A leaf
        // has this start twice, as the earliest and as the latest.
        let leaves = self.begins.split_off(self.lanes);
        let lanes = 2 * self.lanes;
        *self = Self { lanes, begins: vec![NO_BEGIN; 2 * lanes] };
        for (lane, leaf) in leaves.into_iter().enumerate() {
            let (begin, _) = leaf;
            if leaf != NO_BEGIN {
                self.set(lane, Some(begin));
            }
        }
    }

    /// The first lane at or after `lane` whose innermost interval may contain `span` or may start after its end. `None`
    /// if there is no such lane.
    #[inline]
    fn next(&self, lane: usize, span: Span) -> Option<usize> {
        // True if a lane below a node may fit: its innermost interval may contain `span`, or may start after its end.
        let may_have = |node: usize| {
            let (first, last) = self.begins[node];
            first <= span.start || last >= span.end
        };
        if lane >= self.lanes {
            return None;
        }
        // In the tree, lane N is node `self.lanes` + N, and the parent of node N is node N / 2.
        let mut node = self.lanes + lane;
        while !may_have(node) {
            // Go to the next subtree on the right. From a right child (an odd number), go up first. At the right edge
            // of the tree, this goes up beyond the root, to 0.
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        // Go down to the leftmost lane that may fit.
        while node < self.lanes {
            node *= 2;
            node += usize::from(!may_have(node));
        }
        Some(node - self.lanes)
    }
}

impl<T> Lanes<T> {
    /// Chooses a lane for the next interval: the first one whose innermost open interval contains it, otherwise an
    /// empty one. On the way there, intervals that start at or after the new one's end are closed, innermost first;
    /// `closed` gets their values.
    #[inline]
    pub fn place(&mut self, span: Span, mut closed: impl FnMut(T)) -> usize {
        let mut from = 0;
        while let Some(lane) = self.innermost.next(from, span).filter(|lane| *lane < self.lanes.len()) {
            loop {
                match self.lanes[lane].last() {
                    Some((top, _)) if top.contains(span) => return lane,
                    // The innermost interval starts at or after the new one's end. Since ends only become earlier,
                    // nothing can be nested in it any more, so it is closed.
                    Some((top, _)) if top.start >= span.end => self.close(lane).into_iter().for_each(&mut closed),
                    _ => break,
                }
            }
            from = lane + 1;
        }
        // The innermost intervals that are still open neither contain the new one nor start after it. So they overlap
        // it.
        self.overlaps += u64::from(self.used > 0);
        self.find_empty_lane()
    }

    /// Finds the first empty lane, or adds one.
    fn find_empty_lane(&mut self) -> usize {
        // `empty` may have lanes in which an interval was opened after they became empty. Remove these.
        while let Some(&Reverse(lane)) = self.empty.peek() {
            if self.lanes[lane].is_empty() {
                return lane;
            }
            self.empty.pop();
        }
        self.lanes.push(Vec::new());
        if self.lanes.len() > self.innermost.lanes {
            self.innermost.grow();
        }
        let lane = self.lanes.len() - 1;
        // Until the caller opens an interval in it, the lane is empty.
        self.empty.push(Reverse(lane));
        lane
    }

    /// The innermost open interval of a lane and its value; `None` if the lane is empty.
    #[inline]
    pub fn top(&mut self, lane: usize) -> Option<&mut (Span, T)> {
        self.lanes[lane].last_mut()
    }

    /// Opens an interval. `lane` must be what [`Lanes::place`] returned for it.
    #[inline]
    pub fn open(&mut self, lane: usize, span: Span, value: T) {
        self.used += usize::from(self.lanes[lane].is_empty());
        self.lanes[lane].push((span, value));
        self.innermost.set(lane, Some(span.start));
    }

    /// Closes the innermost open interval of a lane and returns its value; `None` if the lane is empty.
    pub fn close(&mut self, lane: usize) -> Option<T> {
        let (_, value) = self.lanes[lane].pop()?;
        let next = self.lanes[lane].last().map(|(span, _)| span.start);
        self.innermost.set(lane, next);
        if next.is_none() {
            self.used -= 1;
            self.empty.push(Reverse(lane));
        }
        Some(value)
    }

    /// The number of open intervals in a lane.
    pub fn depth(&self, lane: usize) -> usize {
        self.lanes[lane].len()
    }

    /// Closes all intervals, innermost first. `closed` gets their values.
    pub fn finish(&mut self, mut closed: impl FnMut(T)) {
        for lane in 0..self.lanes.len() {
            while let Some(value) = self.close(lane) {
                closed(value);
            }
        }
    }

    /// The number of intervals that overlapped an open one without being nested in it, and therefore got another lane.
    pub fn overlaps(&self) -> u64 {
        self.overlaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    /// The naive implementation, which examines lane after lane: returns the first lane in which the span is nested in
    /// the innermost open interval, or else the first empty one. Spans come in the order of descending ends. So an
    /// interval that starts when the span ends or later is over (as time runs backwards): it is removed, and its value
    /// is added to `closed`.
    fn place_slowly(lanes: &mut [Vec<(Span, usize)>], span: Span, closed: &mut Vec<usize>) -> usize {
        for (number, lane) in lanes.iter_mut().enumerate() {
            while let Some((top, name)) = lane.last().copied() {
                if top.contains(span) {
                    return number;
                }
                if top.start < span.end {
                    break;
                }
                lane.pop();
                closed.push(name);
            }
        }
        lanes.iter().position(Vec::is_empty).unwrap()
    }

    proptest! {
        #[test]
        fn lanes_are_found_as_by_looking_at_each(
            mut spans in proptest::collection::vec((0..40u64, 0..40u64, 0..9usize), 1..60),
        ) {
            spans.sort_by_key(|(start, len, _)| Reverse(start + len));
            let (mut lanes, mut slow) = (Lanes::default(), vec![Vec::new(); 60]);
            let (mut closed, mut slowly_closed) = (Vec::new(), Vec::new());
            for (name, (start, len, lane)) in spans.into_iter().enumerate() {
                let span = Span { start, end: start + len };
                let overlapped = lanes.overlaps();
                let found = lanes.place(span, |over| closed.push(over));
                assert_eq!(found, place_slowly(&mut slow, span, &mut slowly_closed));
                let beside = slow[found].is_empty() && slow.iter().any(|lane| !lane.is_empty());
                assert_eq!(lanes.overlaps() - overlapped, u64::from(beside));
                lanes.open(found, span, name);
                slow[found].push((span, name));
                // Closes an interval from outside, as is done for active time.
                if lane < lanes.lanes.len() && name % 3 == 0 {
                    assert_eq!(lanes.close(lane), slow[lane].pop().map(|(_, name)| name));
                }
                assert_eq!(closed, slowly_closed);
            }
        }
    }

    #[test]
    fn overlapping_intervals_get_lanes_and_are_counted() {
        let mut lanes = Lanes::default();
        let mut closed = Vec::new();
        let mut put = |name, start, end| {
            let span = Span { start, end };
            let lane = lanes.place(span, |over| closed.push(over));
            let parent = lanes.top(lane).map(|(_, name)| *name);
            lanes.open(lane, span, name);
            (lane, parent)
        };
        assert_eq!(put("a", 0, 30), (0, None));
        assert_eq!(put("c", 16, 28), (0, Some("a")));
        assert_eq!(put("d", 8, 24), (1, None));
        assert_eq!(put("e", 17, 18), (0, Some("c")));
        assert_eq!(put("b", 2, 10), (0, Some("a")));
        assert_eq!(put("z", 2, 2), (0, Some("b")));
        assert_eq!(lanes.overlaps(), 1);
        lanes.finish(|over| closed.push(over));
        assert_eq!(closed, ["e", "c", "z", "b", "a", "d"]);
    }
}
