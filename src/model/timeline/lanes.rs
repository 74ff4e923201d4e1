//! Which interval lies in which: one track's open intervals, and lanes for those that only overlap.
//!
//! Intervals come by descending ends, as if time ran backwards, so that a caller comes before what it called:
//!
//! ```text
//!   |---- a ----------------------|      order: a, c, b, d
//!     |-- b --|   |----- c ----|         b and c lie in a;
//!         |------- d ----|               d overlaps both b and c: it goes to a lane of its own
//! ```

/// A stretch of time; `start <= end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its begin.
    pub start: u64,
    /// Its end.
    pub end: u64,
}

impl Span {
    /// How long it is.
    pub fn duration(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// The open intervals of one track, each with something of the caller's.
#[derive(Debug)]
pub struct Lanes<T> {
    lanes: Vec<Vec<(Span, T)>>,
    overlaps: u64,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self { lanes: vec![Vec::new()], overlaps: 0 }
    }
}

impl<T> Lanes<T> {
    /// The lane for the next interval: the first one whose innermost open interval contains it, else an empty one. What
    /// is over by then is given to `closed`, innermost first.
    #[inline]
    pub fn place(&mut self, span: Span, mut closed: impl FnMut(T)) -> usize {
        let mut empty = None;
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            loop {
                match lane.last() {
                    None => {
                        empty = empty.or(Some(number));
                        break;
                    }
                    Some((top, _)) if top.contains(span) => return number,
                    // It begins where this one ends, or later: this one is before it.
                    Some((top, _)) if top.start >= span.end => {
                        let over = lane.pop();
                        over.into_iter().for_each(|(_, over)| closed(over));
                    }
                    Some(_) => break,
                }
            }
        }
        self.lane_beside(empty)
    }

    fn lane_beside(&mut self, empty: Option<usize>) -> usize {
        self.overlaps += u64::from(self.lanes.iter().any(|lane| !lane.is_empty()));
        empty.unwrap_or_else(|| {
            self.lanes.push(Vec::new());
            self.lanes.len() - 1
        })
    }

    /// The innermost open interval of a lane.
    #[inline]
    pub fn top(&mut self, lane: usize) -> Option<&mut (Span, T)> {
        self.lanes[lane].last_mut()
    }

    /// Opens an interval in the lane that [`Lanes::place`] gave for it.
    #[inline]
    pub fn open(&mut self, lane: usize, span: Span, value: T) {
        self.lanes[lane].push((span, value));
    }

    /// Closes the innermost open interval of a lane.
    pub fn close(&mut self, lane: usize) -> Option<T> {
        self.lanes[lane].pop().map(|(_, value)| value)
    }

    /// The open intervals, outermost first, if all of them lie in one another.
    pub fn chain(&self) -> Option<&[(Span, T)]> {
        let [first, others @ ..] = &self.lanes[..] else { return None };
        others.iter().all(Vec::is_empty).then_some(first)
    }

    /// How many intervals are open in a lane.
    pub fn depth(&self, lane: usize) -> usize {
        self.lanes[lane].len()
    }

    /// Closes everything, innermost first.
    pub fn finish(&mut self, mut closed: impl FnMut(T)) {
        for lane in &mut self.lanes {
            while let Some((_, value)) = lane.pop() {
                closed(value);
            }
        }
    }

    /// How many intervals began on a lane of their own because they overlapped an open one.
    pub fn overlaps(&self) -> u64 {
        self.overlaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
