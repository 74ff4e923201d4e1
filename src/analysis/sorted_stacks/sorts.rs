//! Self weight itself, by sort of code, as the marks behind names give it.

use super::keys;
use crate::analysis::category::Category;
use crate::analysis::label::{marked, unmarked};
use crate::model::stacks::FrameKind;
use crate::runtimes::{RuntimeSet, tier};
use rustc_hash::FxHashMap;

/// With what a mark ends.
const MARK_END: u8 = b']';

/// Kinds of code, with the weight of self time.
#[derive(Debug, Default)]
pub(super) struct Sorts {
    marked: FxHashMap<Category, u64>,
    /// Those that functions without a name give by what they are called after, [`unmarked`].
    unnamed: FxHashMap<Category, u64>,
    /// That of other names without a mark, if there is any.
    native: Option<u64>,
    /// Of JIT code, which its name gives more of.
    jit: FxHashMap<Box<[u8]>, Category>,
}

impl Sorts {
    /// Counts the last of these frames, the others as having none, by what none of them was counted before with.
    pub(super) fn count(&mut self, frames: &[u8], weight: u64) {
        let (mut told, mut is_leaf) = (0, false);
        for end in memchr::memchr_iter(MARK_END, frames).map(|at| at + 1) {
            let is_end = frames.get(end).is_none_or(|byte| *byte == keys::END);
            let start = memchr::memrchr(keys::END, &frames[..end]).map_or(0, |end| end + 1);
            let Some(frame) = Some(&frames[start..end]).filter(|_| is_end) else { continue };
            let sums = match self.marked_category(frame) {
                Some(category) => self.marked.entry(category),
                None => match Self::by_module(frame) {
                    Category::Native => continue,
                    category => self.unnamed.entry(category),
                },
            };
            (told, is_leaf) = (told + 1, end == frames.len());
            let own = sums.or_default();
            *own = own.saturating_add(if is_leaf { weight } else { 0 });
        }
        if !is_leaf {
            self.native = Some(self.native.unwrap_or(0).saturating_add(weight));
        } else if self.native.is_none() && told < frames.split(|byte| *byte == keys::END).count() {
            self.native = Some(0);
        }
    }

    /// The category that the mark of a frame gives.
    fn marked_category(&mut self, frame: &[u8]) -> Option<Category> {
        match marked(frame)? {
            (_, FrameKind::Jit) => Some(self.jit.get(frame).copied().unwrap_or_else(|| self.look_up(frame))),
            (_, kind) => Some(Category::of_kind(kind)),
        }
    }

    /// The category of a frame without a mark.
    fn by_module(frame: &[u8]) -> Category {
        Category::of_kind(unmarked(keys::name(frame).as_bytes()))
    }

    fn look_up(&mut self, frame: &[u8]) -> Category {
        let name = keys::name(frame);
        let tier = marked(name.as_bytes()).and_then(|(name, _)| tier(name, RuntimeSet::default()));
        self.jit.insert(frame.into(), Category::Jit(tier));
        Category::Jit(tier)
    }

    /// That of a frame; `None` if no frame is marked.
    pub(super) fn of(&mut self, frame: &[u8]) -> Option<Category> {
        (!self.marked.is_empty()).then(|| self.marked_category(frame).unwrap_or_else(|| Self::by_module(frame)))
    }

    /// The weight of each; nothing if no frame is marked.
    pub(super) fn own(self) -> FxHashMap<Category, u64> {
        let mut own = self.marked;
        if own.is_empty() {
            return own;
        }
        for (category, weight) in self.unnamed.into_iter().chain(self.native.map(|native| (Category::Native, native))) {
            let sum = own.entry(category).or_default();
            *sum = sum.saturating_add(weight);
        }
        own
    }
}
