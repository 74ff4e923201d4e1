//! Remembers what became of whole samples, by the text of their frames. Programs often have the same call chain many
//! times, and comparing two texts takes a fraction of the time of reading their lines.

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;
use std::ops::Range;

/// The lines of a sample's frames, as one text: all that follows the sample's header, up to the empty line that ends
/// the sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct FramesText<'t> {
    text: &'t [u8],
    /// Offset of the text in its block.
    start: usize,
    hash: u64,
}

impl<'t> FramesText<'t> {
    /// The frames that begin at the offset `start` of a block.
    pub(super) fn new(text: &'t [u8], start: usize) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(text);
        Self { text, start, hash: hasher.finish() }
    }

    /// Where the text is in its block.
    pub(super) fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// Offset of the empty line that ends the sample.
    pub(super) fn end_of_sample(&self) -> usize {
        // The line feed of the last frame isn't part of the text.
        self.start + self.text.len() + 1
    }
}

/// What is remembered of each distinct text: a value, and a text that belongs to it.
///
/// A text is only remembered when it occurs for the second time. Otherwise, all texts of a program that never repeats
/// a call chain would be copied for nothing.
#[derive(Debug)]
pub(super) struct SampleMemo<V> {
    /// What is remembered, by the hash of the text of the frames. Of two texts with the same hash, the last one is
    /// remembered. `None` if the hash has occurred only once.
    samples: FxHashMap<u64, Option<Remembered<V>>>,
    /// All texts that are remembered, one after the other.
    texts: Vec<u8>,
}

#[derive(Debug)]
struct Remembered<V> {
    /// Range of the text of the frames in [`SampleMemo::texts`].
    frames: Range<usize>,
    value: V,
    /// Range of the text that belongs to the value.
    text: Range<usize>,
}

/// Limit in bytes for the texts of a memo. A memo that has reached it is emptied.
const MAX_TEXT: usize = 8 << 20;

/// Limit for the samples in a memo, for texts in which samples hardly ever repeat. A memo that has reached it is
/// emptied.
const MAX_SAMPLES: usize = 1 << 16;

impl<V> Default for SampleMemo<V> {
    fn default() -> Self {
        Self { samples: FxHashMap::default(), texts: Vec::new() }
    }
}

impl<V> SampleMemo<V> {
    /// The value and the text that were stored for a sample with these frames; `None` if there are none.
    pub(super) fn get(&self, frames: &FramesText<'_>) -> Option<(&V, &[u8])> {
        let known = self.samples.get(&frames.hash)?.as_ref()?;
        if self.texts[known.frames.clone()] != *frames.text {
            return None;
        }
        Some((&known.value, &self.texts[known.text.clone()]))
    }

    /// Stores what became of a sample with these frames: a value, and a text, which is passed in two parts. When the
    /// frames occur for the first time, only their hash is stored, because most texts of frames never occur again.
    pub(super) fn add(&mut self, frames: &FramesText<'_>, value: V, text: [&[u8]; 2]) {
        if self.texts.len() > MAX_TEXT || self.samples.len() >= MAX_SAMPLES {
            self.clear();
        }
        // `None` in `samples`: the frames occurred once, and only their hash was stored.
        let Some(known) = self.samples.get_mut(&frames.hash) else {
            self.samples.insert(frames.hash, None);
            return;
        };
        let start = self.texts.len();
        self.texts.extend_from_slice(frames.text);
        let frames_end = self.texts.len();
        for part in text {
            self.texts.extend_from_slice(part);
        }
        *known = Some(Remembered { frames: start..frames_end, value, text: frames_end..self.texts.len() });
    }

    /// Forgets all samples.
    pub(super) fn clear(&mut self) {
        self.samples.clear();
        self.texts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(text: &[u8]) -> FramesText<'_> {
        FramesText::new(text, 0)
    }

    #[test]
    fn a_sample_is_known_when_it_came_twice() {
        let mut memo = SampleMemo::default();
        for is_known in [false, false, true] {
            assert_eq!(memo.get(&frames(b"a")), is_known.then_some((&7, &b"xy"[..])));
            memo.add(&frames(b"a"), 7, [b"x", b"y"]);
        }
    }

    #[test]
    fn another_text_with_the_same_hash_is_not_taken_for_it() {
        let mut memo = SampleMemo::default();
        let other = FramesText { hash: frames(b"a").hash, ..frames(b"b") };
        memo.add(&frames(b"a"), 7, [b"", b""]);
        memo.add(&frames(b"a"), 7, [b"", b""]);
        assert!(memo.get(&other).is_none());
        memo.add(&other, 8, [b"", b""]);
        assert_eq!((memo.get(&frames(b"a")), memo.get(&other)), (None, Some((&8, &b""[..]))));
    }

    #[test]
    fn its_memory_is_bounded() {
        let mut memo = SampleMemo::default();
        let long = |n: usize| [&n.to_le_bytes()[..], &vec![b'x'; 1 << 20]].concat();
        for n in 0..80 {
            memo.add(&frames(&long(n / 2)), (), [b"", b""]);
        }
        assert!(memo.texts.len() <= MAX_TEXT + (2 << 20));
        for n in 0..2 * MAX_SAMPLES {
            memo.add(&frames(&n.to_le_bytes()), (), [b"", b""]);
        }
        assert!(memo.samples.len() <= MAX_SAMPLES);
    }
}
