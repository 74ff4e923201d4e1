//! Self weights by category of code, according to the marks after names (`_[k]`).

use super::keys;
use crate::analysis::category::Category;
use crate::analysis::label::{marked, unmarked};
use crate::model::stacks::FrameKind;
use crate::runtimes::{RuntimeSet, tier};
use rustc_hash::FxHashMap;

/// The last byte of a mark such as `_[k]`.
const MARK_END: u8 = b']';

/// Sums of self weight by category of code.
#[derive(Debug, Default)]
pub(super) struct Sorts {
    marked: FxHashMap<Category, u64>,
    /// Weights of unnamed functions without a mark, by the category that their module determines ([`unmarked`]).
    unnamed: FxHashMap<Category, u64>,
    /// The weight of all other names without a mark, which are native code; `None` if there are no such names.
    native: Option<u64>,
    /// A cache of the categories of JIT functions by label, because determining the tier takes time.
    jit: FxHashMap<Box<[u8]>, Category>,
}

impl Sorts {
    /// Takes the frames of a stack that it doesn't share with the previous stack. The weight is added to the category
    /// of the innermost frame. Categories of the others get an entry with weight 0.
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

    /// The category of a frame with a mark such as `_[k]`; `None` if it has no mark.
    fn marked_category(&mut self, frame: &[u8]) -> Option<Category> {
        match marked(frame)? {
            (_, FrameKind::Jit) => Some(self.jit.get(frame).copied().unwrap_or_else(|| self.look_up(frame))),
            (_, kind) => Some(Category::of_kind(kind)),
        }
    }

    /// The category of a frame without a mark. Unnamed functions are labeled with their module, which determines it.
    fn by_module(frame: &[u8]) -> Category {
        Category::of_kind(unmarked(keys::name(frame).as_bytes()))
    }

    fn look_up(&mut self, frame: &[u8]) -> Category {
        let name = keys::name(frame);
        let tier = marked(name.as_bytes()).and_then(|(name, _)| tier(name, RuntimeSet::default()));
        self.jit.insert(frame.into(), Category::Jit(tier));
        Category::Jit(tier)
    }

    /// The category of a frame, by its mark or, without one, by its module. `None` if no frame of the input has a mark,
    /// because the input then doesn't distinguish kinds of code.
    pub(super) fn of(&mut self, frame: &[u8]) -> Option<Category> {
        (!self.marked.is_empty()).then(|| self.marked_category(frame).unwrap_or_else(|| Self::by_module(frame)))
    }

    /// The self weight of each category; empty if no frame in the input has a mark.
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
