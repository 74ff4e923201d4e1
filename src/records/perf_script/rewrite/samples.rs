//! Remembers whole samples that were named before. In programs that run in loops, most samples repeat.

use super::naming::Counts;
use super::state::Sample;
use crate::model::lasting::UNTIMED;
use crate::model::{Nanos, Pid, Tid};
use crate::records::perf_script::hash_text;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The new texts of samples by their old texts. Samples in which nothing was named are remembered too.
#[derive(Debug, Default)]
pub(super) struct SampleMemo {
    /// Indices into `samples`, by the hash of the old text. `None` if the text was seen once and not kept, because the
    /// memo already held [`MUCH_TEXT`] bytes.
    indices: FxHashMap<u64, Option<u32>>,
    samples: Vec<NamedSample>,
    texts: Vec<u8>,
    lookups: usize,
    hits: usize,
}

#[derive(Debug)]
struct NamedSample {
    owner: SampleOwner,
    /// Range of the old text in [`SampleMemo::texts`].
    before: Range<usize>,
    /// Range of the new text in [`SampleMemo::texts`]; `None` if the text stays the same.
    after: Option<Range<usize>>,
    counts: Counts,
    valid: Range<Nanos>,
}

/// The process to which a sample's frames belong, or the thread if the process is unknown. It decides which names
/// apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SampleOwner {
    Process(Pid),
    Thread(Option<Tid>),
}

/// The frames of a sample as text, with their owner and a hash of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frames<'a> {
    owner: SampleOwner,
    text: &'a [u8],
    hash: u64,
}

impl<'a> Frames<'a> {
    pub(super) fn new(sample: &Sample, text: &'a [u8]) -> Self {
        let owner = match sample.pid {
            Some(pid) => SampleOwner::Process(pid),
            None => SampleOwner::Thread(sample.tid),
        };
        Self { owner, text, hash: hash_text(text) }
    }
}

/// Limit in bytes for the texts in the memo up to which every sample is kept. Beyond it, only repeated samples are, so
/// that distinct ones need little memory.
const MUCH_TEXT: usize = 4 << 20;

/// Limit in bytes for the texts in the memo. A larger memo is emptied.
const MOST_TEXT: usize = 16 << 20;

/// Limit for the samples in the memo, with or without kept texts. A memo with more is emptied.
const MOST_SAMPLES: usize = 1 << 16;

/// Number of lookups after which [`SampleMemo::is_worthwhile`] starts to judge by the hits.
const TRIAL_LOOKUPS: usize = 1 << 13;

impl SampleMemo {
    /// True if at least an eighth of the lookups found a sample, or if there were too few lookups to judge.
    pub(super) fn is_worthwhile(&self) -> bool {
        self.lookups < TRIAL_LOOKUPS || self.hits >= self.lookups / 8
    }

    /// Looks up a sample by its frames and time. Returns the new text (`None` if it stays the same) and the sample's
    /// counts. `None` if nothing valid is remembered.
    pub(super) fn get(&mut self, frames: Frames<'_>, time: Option<Nanos>) -> Option<(Option<&[u8]>, &Counts)> {
        self.lookups += 1;
        let index = (*self.indices.get(&frames.hash)?)?;
        let sample = &self.samples[index as usize];
        let is_valid = sample.valid.contains(&time.unwrap_or(UNTIMED));
        if !is_valid || sample.owner != frames.owner || self.texts[sample.before.clone()] != *frames.text {
            return None;
        }
        self.hits += 1;
        Some((sample.after.clone().map(|after| &self.texts[after]), &sample.counts))
    }

    /// Remembers the new text of a sample, which is given in two pieces. `after` is `None` if the text stays the same.
    /// `valid` is the period in which the names are valid.
    pub(super) fn add(&mut self, frames: Frames<'_>, after: Option<[&[u8]; 2]>, counts: Counts, valid: Range<Nanos>) {
        if self.texts.len() > MOST_TEXT || self.indices.len() >= MOST_SAMPLES {
            *self = Self { lookups: self.lookups, hits: self.hits, ..Self::default() };
        }
        let is_new = !self.indices.contains_key(&frames.hash);
        if is_new && self.texts.len() > MUCH_TEXT {
            self.indices.insert(frames.hash, None);
            return;
        }
        let before = self.push_text(&[frames.text]);
        let after = after.map(|after| self.push_text(&after));
        // There are at most [`MOST_SAMPLES`] entries, so the index fits.
        self.indices.insert(frames.hash, Some(self.samples.len() as u32));
        self.samples.push(NamedSample { owner: frames.owner, before, after, counts, valid });
    }

    fn push_text(&mut self, pieces: &[&[u8]]) -> Range<usize> {
        let start = self.texts.len();
        for piece in pieces {
            self.texts.extend_from_slice(piece);
        }
        start..self.texts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lasting::ALWAYS;

    fn frames(text: &[u8]) -> Frames<'_> {
        Frames::new(&Sample { pid: Some(Pid(7)), tid: Some(Tid(7)), time: None }, text)
    }

    #[test]
    fn a_sample_is_known_by_its_owner_its_text_and_its_time() {
        let mut memo = SampleMemo::default();
        let counts = Counts { named: 3, ..Counts::default() };
        memo.add(frames(b"abc"), Some([b"a", b"xc"]), counts.clone(), Nanos(5)..Nanos(9));
        let known = Some((Some(&b"axc"[..]), &counts));
        assert_eq!(memo.get(frames(b"abc"), Some(Nanos(5))), known);
        assert_eq!(memo.get(frames(b"abc"), None), None);
        assert_eq!(memo.get(frames(b"abc"), Some(Nanos(9))), None);
        assert_eq!(memo.get(frames(b"abd"), None), None);
        assert_eq!(memo.get(Frames::new(&Sample { tid: Some(Tid(7)), ..Sample::default() }, b"abc"), None), None);
        let other = Frames { hash: frames(b"abc").hash, ..frames(b"abd") };
        assert_eq!(memo.get(other, None), None, "another text of the same hash");
        memo.add(frames(b"abc"), None, Counts::default(), ALWAYS);
        assert_eq!(memo.get(frames(b"abc"), None).unwrap().0, None, "the last one counts");
    }

    #[test]
    fn when_there_is_much_only_what_comes_twice_is_kept() {
        let mut memo = SampleMemo::default();
        let long = vec![b'x'; MUCH_TEXT];
        memo.add(frames(&long), Some([b"y", b""]), Counts::default(), ALWAYS);
        for is_known in [false, true] {
            memo.add(frames(b"a"), None, Counts::default(), ALWAYS);
            assert_eq!(memo.get(frames(b"a"), None).is_some(), is_known);
        }
    }

    #[test]
    fn its_memory_is_bounded() {
        let mut memo = SampleMemo::default();
        let text = |at: usize| [&at.to_le_bytes()[..], &vec![b'x'; 1 << 20]].concat();
        (0..80).for_each(|at| memo.add(frames(&text(at / 2)), None, Counts::default(), ALWAYS));
        assert!(memo.texts.len() <= MOST_TEXT + (1 << 21));
        (0..2 * MOST_SAMPLES).for_each(|at| memo.add(frames(&at.to_le_bytes()), None, Counts::default(), ALWAYS));
        assert!(memo.indices.len() <= MOST_SAMPLES && memo.samples.len() <= MOST_SAMPLES + 1);
    }

    #[test]
    fn repeats_are_not_looked_for_if_no_sample_repeats() {
        let mut memo = SampleMemo::default();
        (0..TRIAL_LOOKUPS).for_each(|at| _ = memo.get(frames(&at.to_le_bytes()), None));
        assert!(!memo.is_worthwhile());
    }
}
