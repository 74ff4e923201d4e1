//! Adds up stacks from text by sorting them.
//!
//! Most stacks of a long text are distinct, and a tree of all frames would mostly contain frames that are too narrow to
//! draw. In sorted order, stacks with common outermost frames are adjacent. Sums and the boxes of a flame graph then
//! take a single pass over neighbors, and frames that no neighbor shares needn't be examined.
//!
//! | file | contents |
//! |---|---|
//! | `keys` | encodes stacks as bytes that sort by frames |
//! | `run` | sorted stacks with their weights, and the sorting |
//! | `merge` | merges several runs |
//! | `boxes` | lays out stacks as the boxes of a flame graph |
//! | `sorts` | self weights by category, according to marks after names |

mod boxes;
mod keys;
mod merge;
mod run;
mod sorts;

pub use boxes::{Boxes, StackBox};
pub use run::{Run, Unsorted, shared_len};

/// Sorted runs of stacks. They are merged whenever they get large, so that memory grows with the number of distinct
/// stacks rather than with the number of all stacks.
#[derive(Debug)]
pub struct Runs {
    runs: Vec<Run>,
    /// The total size in bytes at which runs are merged.
    most: usize,
}

/// The minimum of `most`: runs that are smaller in total aren't merged.
const MOST: usize = 16 << 20;

impl Default for Runs {
    fn default() -> Self {
        Self { runs: Vec::new(), most: MOST }
    }
}

impl Runs {
    /// Adds a run.
    pub fn push(&mut self, run: Run) {
        self.runs.push(run);
        let before = self.size();
        if before < self.most {
            return;
        }
        self.runs = vec![merge::merged(&self.runs)];
        let after = self.size();
        // If nearly all stacks are distinct, merging saves little memory and has to process all of them again, so do it
        // less often.
        let factor = if after > before / 2 { 16 } else { 2 };
        self.most = MOST.max(after * factor);
    }

    fn size(&self) -> usize {
        self.runs.iter().map(Run::size).sum()
    }

    /// True if it contains no stacks.
    pub fn is_empty(&self) -> bool {
        self.runs.iter().all(Run::is_empty)
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.runs.iter().fold(0, |sum, run| sum.saturating_add(run.total()))
    }

    /// Calls `each` for every distinct stack in key order, with: the number of bytes that its key has in common with
    /// the previous key, the key, and its weight.
    fn each(&self, each: impl FnMut(usize, &[u8], u64)) {
        merge::each(&self.runs, each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use std::collections::BTreeMap;

    fn all(runs: &Runs) -> Vec<(Vec<u8>, u64)> {
        let (mut all, mut before) = (Vec::new(), Vec::new());
        runs.each(|shared, key, weight| {
            assert_eq!(run::shared_len(&before, key), shared);
            before = key.to_vec();
            all.push((before.clone(), weight));
        });
        all
    }

    proptest::proptest! {
        /// Holds however stacks are divided into runs, and whether or not runs have been merged.
        #[test]
        fn each_stack_comes_once_with_its_sum(texts in vec(vec(("[ab]{1,4}", 0..9u64), 0..20), 0..9), most in 0..200usize) {
            let (mut runs, mut unsorted) = (Runs { most, ..Runs::default() }, Unsorted::default());
            let mut sums: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
            for text in texts {
                for (stack, weight) in text {
                    *sums.entry(stack.clone().into_bytes()).or_default() += weight;
                    unsorted.push(stack.as_bytes(), weight);
                }
                runs.push(unsorted.sorted());
            }
            proptest::prop_assert_eq!(runs.total(), sums.values().sum::<u64>());
            proptest::prop_assert_eq!(runs.is_empty(), sums.is_empty());
            proptest::prop_assert_eq!(all(&runs), sums.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn memory_grows_with_stacks_that_differ() {
        let (mut runs, mut unsorted) = (Runs { most: 100, ..Runs::default() }, Unsorted::default());
        for _ in 0..1000 {
            unsorted.push(b"main;f", 1);
            unsorted.push(b"main;g", 1);
            runs.push(unsorted.sorted());
            // A limit below `MOST` only has an effect until the first merge.
            runs.most = 100;
        }
        assert!(runs.size() < 200, "{runs:?}");
        let weights: Vec<u64> = all(&runs).into_iter().map(|(_, weight)| weight).collect();
        assert_eq!(weights, [1000, 1000]);
    }

    #[test]
    fn weights_that_are_too_large_for_a_sum_stay_the_largest() {
        let (mut runs, mut unsorted) = (Runs::default(), Unsorted::default());
        for weight in [u64::MAX, 1] {
            unsorted.push(b"a", weight);
            unsorted.push(b"a", weight);
            runs.push(unsorted.sorted());
        }
        assert_eq!((runs.total(), all(&runs)), (u64::MAX, vec![(b"a".to_vec(), u64::MAX)]));
    }
}
