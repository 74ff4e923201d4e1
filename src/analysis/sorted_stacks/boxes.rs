//! Lays out sorted stacks as the boxes of a flame graph, in one pass over them.

use super::sorts::Sorts;
use super::{Runs, keys};
use crate::analysis::category::Category;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;

/// The boxes of a flame graph, and the self weights of all stacks, including those too narrow to draw.
#[derive(Debug)]
pub struct Boxes {
    /// Parents come before their children; siblings are sorted by name. The first box is the root.
    pub boxes: Vec<StackBox>,
    /// The names of all boxes, one after the other, in the form that frames have in sort keys.
    names: Vec<u8>,
    /// The self weight of each category; empty if no name in the input has a mark such as `_[k]`.
    pub own: FxHashMap<Category, u64>,
}

/// A box of a flame graph.
#[derive(Debug, Clone)]
pub struct StackBox {
    /// The number of boxes between this one and the root; 0 for the root.
    pub depth: u32,
    /// The left edge: the weight of everything to the left of the box.
    pub start: u64,
    /// The right edge: `start` plus the box's weight.
    pub end: u64,
    /// The self weight: that of the stacks that end with this frame.
    pub own: u64,
    /// The category according to the mark after the name; `None` if no name in the input has a mark.
    pub category: Option<Category>,
    name: Range<usize>,
}

impl Boxes {
    /// Lays out all boxes that weigh at least `narrow`.
    pub fn of(runs: &Runs, narrow: u64) -> Self {
        let mut pile = Pile::new(runs.total(), narrow.max(1));
        runs.each(|shared, key, weight| pile.push(shared, key, weight));
        pile.finished()
    }

    /// The name of a box; `None` for the root.
    pub fn name(&self, of: &StackBox) -> Option<Cow<'_, str>> {
        (of.depth > 0).then(|| keys::name(&self.names[of.name.clone()]))
    }
}

/// The state of the pass: boxes that may still grow, because the next stack may share these frames.
struct Pile {
    narrow: u64,
    /// The growing boxes, the root first.
    open: Vec<OpenBox>,
    boxes: Vec<StackBox>,
    names: Vec<u8>,
    sorts: Sorts,
    /// The previous stack. Its frames become boxes when the next stack shows which of them are shared.
    last: Vec<u8>,
    weight: Option<u64>,
}

struct OpenBox {
    /// Where the frame's name ends in the stack's key.
    end: usize,
    /// The index of the box in `boxes`.
    at: usize,
    total: u64,
    own: u64,
    /// The left edge of the next box on top of this one.
    next: u64,
}

impl Pile {
    fn new(total: u64, narrow: u64) -> Self {
        let all = StackBox { depth: 0, start: 0, end: total, own: 0, category: None, name: 0..0 };
        let open = vec![OpenBox { end: 0, at: 0, total: 0, own: 0, next: 0 }];
        let (boxes, names) = (vec![all], Vec::new());
        Self { narrow, open, boxes, names, sorts: Sorts::default(), last: Vec::new(), weight: None }
    }

    /// Takes the next stack. Its key has the first `shared` bytes in common with the previous one.
    fn push(&mut self, shared: usize, key: &[u8], weight: u64) {
        let frames = self.weight.and_then(|_| shared_frames(&self.last, key, shared));
        self.place(frames);
        self.sorts.count(&key[frames.map_or(0, |end| end + 1)..], weight);
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
        self.weight = Some(weight);
    }

    /// Adds the boxes of the previous stack. `shared` is where the last frame that it shares with the next stack ends;
    /// `None` if they share no frame.
    fn place(&mut self, shared: Option<usize>) {
        let Some(weight) = self.weight.take() else { return };
        // Frames that no other stack shares are exactly as wide as this stack. If that is too narrow, they get no
        // boxes.
        self.open_up_to(if weight < self.narrow { shared } else { Some(self.last.len()) });
        let (is_own, top) = (self.top_end() == Some(self.last.len()), self.top());
        top.total = top.total.saturating_add(weight);
        if is_own {
            top.own = top.own.saturating_add(weight);
        } else {
            top.next = top.next.saturating_add(weight);
        }
        while self.top_end() > shared {
            self.close();
        }
    }

    fn top(&mut self) -> &mut OpenBox {
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    /// Where the topmost growing box's name ends in the stack's key; `None` if only the root is growing.
    fn top_end(&self) -> Option<usize> {
        self.open[1..].last().map(|open| open.end)
    }

    /// Opens boxes for those frames of the previous stack that end at or before `end`.
    fn open_up_to(&mut self, end: Option<usize>) {
        let Some(last_end) = end.filter(|_| end > self.top_end()) else { return };
        let first = self.top_end().map_or(0, |end| end + 1);
        let ends = memchr::memchr_iter(keys::END, &self.last[first..last_end]).map(|len| first + len);
        let mut start = first;
        for end in ends.chain([last_end]) {
            let below = &self.open[self.open.len() - 1];
            let (name, at) = (self.names.len(), below.next);
            self.names.extend_from_slice(&self.last[start..end]);
            let depth = self.open.len() as u32;
            self.open.push(OpenBox { end, at: self.boxes.len(), total: 0, own: 0, next: at });
            let name = name..self.names.len();
            self.boxes.push(StackBox { depth, start: at, end: at, own: 0, category: None, name });
            start = end + 1;
        }
    }

    /// Completes the topmost box, and removes it if it is too narrow. All boxes on top of it were removed before in
    /// that case.
    fn close(&mut self) {
        let Some(OpenBox { at, total, own, .. }) = self.open.pop() else { return };
        let one = &mut self.boxes[at];
        one.end = one.start.saturating_add(total);
        one.own = own;
        let end = one.end;
        if total < self.narrow {
            self.names.truncate(one.name.start);
            self.boxes.truncate(at);
        }
        let below = self.top();
        below.total = below.total.saturating_add(total);
        below.next = end;
    }

    fn finished(mut self) -> Boxes {
        self.place(None);
        for one in &mut self.boxes[1..] {
            one.category = self.sorts.of(&self.names[one.name.clone()]);
        }
        Boxes { boxes: self.boxes, names: self.names, own: self.sorts.own() }
    }
}

/// Given that two stacks have `shared` bytes in common, returns where the last frame that they share ends. `None` if
/// they share no frame.
fn shared_frames(one: &[u8], other: &[u8], shared: usize) -> Option<usize> {
    let ends = |stack: &[u8]| stack.get(shared).is_none_or(|byte| *byte == keys::END);
    if ends(one) && ends(other) { Some(shared) } else { memchr::memrchr(keys::END, &other[..shared]) }
}

#[cfg(test)]
mod tests {
    use super::super::Unsorted;
    use super::*;

    fn boxes(stacks: &[(&str, u64)], narrow: u64) -> Vec<String> {
        let (mut runs, mut unsorted) = (Runs::default(), Unsorted::default());
        stacks.iter().for_each(|(stack, weight)| unsorted.push(stack.as_bytes(), *weight));
        runs.push(unsorted.sorted());
        let boxes = Boxes::of(&runs, narrow);
        let told = |one: &StackBox| {
            let name = boxes.name(one).unwrap_or("all".into());
            format!("{}{name} {}-{}", " ".repeat(one.depth as usize), one.start, one.end)
        };
        boxes.boxes.iter().map(told).collect()
    }

    #[test]
    fn a_box_is_on_its_caller_and_siblings_by_name() {
        let stacks = [("b;y", 10), ("a", 1), ("b;x", 4), ("a;z", 2), ("b", 100), ("a b;c", 3)];
        let wanted = ["all 0-120", " a 0-3", "  z 0-2", " a b 3-6", "  c 3-6", " b 6-120", "  x 6-10", "  y 10-20"];
        assert_eq!(boxes(&stacks, 0), wanted);
    }

    #[test]
    fn a_narrow_box_leaves_its_place_free() {
        let stacks = [("b;y", 10), ("a;z", 1), ("a;y", 1), ("b;x", 4), ("c", 7)];
        assert_eq!(boxes(&stacks, 5), ["all 0-23", " b 2-16", "  y 6-16", " c 16-23"]);
    }

    #[test]
    fn the_self_weight_is_that_of_stacks_that_end_in_the_box() {
        let (mut runs, mut unsorted) = (Runs::default(), Unsorted::default());
        for (stack, weight) in [("a", 1), ("a;b", 2), ("a;b;c", 40), ("a;narrow", 4), (";", 8)] {
            unsorted.push(stack.as_bytes(), weight);
        }
        runs.push(unsorted.sorted());
        let boxes = Boxes::of(&runs, 5);
        let own: Vec<_> = boxes.boxes.iter().map(|one| (boxes.name(one), one.own)).collect();
        let expected = [(None, 0), (Some(""), 0), (Some(""), 8), (Some("a"), 1), (Some("b"), 2), (Some("c"), 40)];
        assert_eq!(own, expected.map(|(name, own)| (name.map(Cow::from), own)));
    }

    #[test]
    fn empty_names_are_names() {
        assert_eq!(
            boxes(&[(";a", 1), ("a;", 2), (";", 4)], 0),
            ["all 0-7", "  0-5", "   0-4", "  a 4-5", " a 5-7", "   5-7"]
        );
    }

    #[test]
    fn marks_show_what_ran_itself() {
        let own = |stacks: &[(&str, u64)]| {
            let (mut runs, mut unsorted) = (Runs::default(), Unsorted::default());
            stacks.iter().for_each(|(stack, weight)| unsorted.push(stack.as_bytes(), *weight));
            runs.push(unsorted.sorted());
            let mut own: Vec<_> = Boxes::of(&runs, 0).own.into_iter().collect();
            own.sort();
            own
        };
        assert_eq!(own(&[("a;b]", 1), ("a;_[k]b", 2)]), []);
        let mixed = own(&[("a", 1), ("a;f_[i];g_[k]", 2), ("a;f_[i];h", 4), ("a;i_[j]", 8)]);
        let (kernel, native) = ((Category::Kernel, 2), (Category::Native, 5));
        assert_eq!(mixed, [kernel, native, (Category::Inlined, 0), (Category::Jit(None), 8)]);
        let unnamed = own(&[("[perf-7.map]_[j]", 1), ("[libc.so.6];[unknown]", 2), ("a;[libc.so.6]", 4), ("b]", 8)]);
        let natives = [(Category::Native, 8), (Category::NativeUnnamed, 4)];
        assert_eq!(unnamed, [natives[0], natives[1], (Category::JitUnnamed, 1), (Category::Unknown, 2)]);
        assert_eq!(own(&[("[libc.so.6]", 1)]), []);
        assert_eq!(own(&[("_[k];a;b_[k]", 1)]), [(Category::Kernel, 1), (Category::Native, 0)]);
        assert_eq!(own(&[("a_[k]", 1), ("a_[k];b_[k]", 1)]), [(Category::Kernel, 2)]);
    }
}
