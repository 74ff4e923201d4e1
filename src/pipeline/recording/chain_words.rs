//! Compares the words (64-bit values) of a call chain with those of the previous sample's. Their outermost words are
//! usually the same, and so are the frames that these words stand for.

use crate::formats::perf_data::{ChainContext, Words, is_context};
use crate::model::FrameAddr;
use crate::model::process::CpuMode;

/// The words of a sample's call chain, if they determine the sample's whole stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainWords<'data> {
    words: Words<'data>,
    /// How many of the outermost words follow the last context mark. Each of these words is a frame.
    after_marks: usize,
}

impl<'data> ChainWords<'data> {
    pub(super) fn new(words: Words<'data>) -> Self {
        let last_mark = words.iter().rev().position(is_context);
        Self { words, after_marks: last_mark.unwrap_or(words.len()) }
    }

    /// Compares another sample's call chain, `words`, with this one. Returns it in prepared form, with the number of
    /// outermost frames that both have in common. Its other frames are added to `inner`, innermost first. `kept(n)`
    /// must return the innermost of this chain's `n` outermost frames, or `None` if what was found for that frame isn't
    /// valid any more. Returns `None` if it isn't certain that there are common frames.
    pub(super) fn compare(
        &self,
        words: Words<'data>,
        mut context: ChainContext,
        kept: impl FnOnce(usize) -> Option<(CpuMode, FrameAddr)>,
        inner: &mut Vec<(CpuMode, FrameAddr)>,
    ) -> Option<(Self, usize)> {
        let same = self.words.same_at_end(words).min(self.after_marks);
        if same == 0 {
            return None;
        }
        let innermost_common = kept(same)?;
        let others = words.len() - same;
        let mut after_marks = words.len();
        for (index, word) in words.iter().take(others).enumerate() {
            match context.step(word) {
                Some(frame) => inner.push(frame),
                None => after_marks = words.len() - index - 1,
            }
        }
        // After different inner words, the first common word may mean something else: an instruction instead of a
        // return address. Words on its outer side always mean the same.
        let first_common = context.step(words.get(others)?);
        (first_common == Some(innermost_common)).then_some((Self { words, after_marks }, same))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::cursor::Endian;
    use linux_perf_event_reader::constants as abi;
    use proptest::prelude::{Strategy, prop, prop_assert_eq, prop_oneof, proptest};
    use proptest::sample::select;

    const MARKS: [u64; 3] = [abi::PERF_CONTEXT_USER, abi::PERF_CONTEXT_KERNEL, u64::MAX];

    fn word() -> impl Strategy<Value = u64> {
        prop_oneof![4 => 1..4u64, 1 => select(&MARKS[..])]
    }

    fn frames(words: Words<'_>) -> Vec<(CpuMode, FrameAddr)> {
        let mut context = ChainContext::NONE;
        words.iter().filter_map(|word| context.step(word)).collect()
    }

    proptest! {
        #[test]
        fn shared_and_other_parts_are_all_frames(
            chains in prop::collection::vec((0..6usize, prop::collection::vec(word(), 0..5)), 1..20),
        ) {
            let mut words: Vec<u64> = Vec::new();
            let mut all: Vec<Vec<u8>> = Vec::new();
            for (less, more) in chains {
                words.drain(..less.min(words.len()));
                words.splice(..0, more);
                all.push(words.iter().flat_map(|word| word.to_le_bytes()).collect());
            }
            let mut last: Option<(ChainWords<'_>, Vec<(CpuMode, FrameAddr)>)> = None;
            for bytes in &all {
                let words = Words::new(bytes, Endian::Little);
                let (whole, mut inner) = (frames(words), Vec::new());
                let shared = last.as_ref().and_then(|(chain, frames)| {
                    let kept = |same: usize| frames.get(frames.len() - same).copied();
                    let (chain, same) = chain.compare(words, ChainContext::NONE, kept, &mut inner)?;
                    inner.extend(&frames[frames.len() - same..]);
                    Some(chain)
                });
                if let Some(chain) = shared {
                    prop_assert_eq!(&inner, &whole);
                    prop_assert_eq!(chain.after_marks, ChainWords::new(words).after_marks);
                }
                last = Some((shared.unwrap_or_else(|| ChainWords::new(words)), whole));
            }
        }
    }

    #[test]
    fn a_callers_frames_are_known_again() {
        let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let (one, other) = (bytes(&[MARKS[0], 7, 2, 1]), bytes(&[MARKS[1], 9, MARKS[0], 8, 3, 2, 1]));
        let [one, other] = [&one, &other].map(|bytes| Words::new(bytes, Endian::Little));
        let (of_one, mut inner) = (frames(one), Vec::new());
        let kept = |same: usize| Some(of_one[of_one.len() - same]);
        let (_, same) = ChainWords::new(one).compare(other, ChainContext::NONE, kept, &mut inner).unwrap();
        assert_eq!((same, inner.len()), (2, 3));
        // The address of an interrupted instruction is not a return address.
        let kept = |same: usize| Some(of_one[of_one.len() - same]);
        assert!(ChainWords::new(one).compare(other, ChainContext::NONE, |_| kept(3), &mut inner).is_none());
    }
}
