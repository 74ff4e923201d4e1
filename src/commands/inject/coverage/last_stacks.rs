//! The last call chain of each thread, and what is known of its frames: a stack mostly differs from the one before it
//! in its innermost frames only.
//!
//! ```text
//! the one before   main · run · loop · parse · next · peek
//! this one         main · run · loop · parse · scan
//!                  └───── known already ────┘
//! ```
//!
//! What the frames in common use is noted when they go, with the first and the last sample that had them: that is
//! as much as is known of a use. So they cost a comparison of words.

use super::code_uses::{CodeUse, CodeUses, UseId};
use super::memo::FramePlace;
use crate::bytes::cursor::Endian;
use crate::commands::inject::survey::record_order::RecordOrder;
use crate::model::lasting::{ALWAYS, both};
use crate::model::{Nanos, Pid, Tid};
use crate::records::perf_data::{ChainContext, Words};
use std::ops::Range;

/// The chains of so many threads are kept at a time.
const THREADS: usize = 32;

/// The last call chains.
#[derive(Debug)]
pub(super) struct LastStacks<'r>([Option<LastStack<'r>>; THREADS]);

/// The last call chain of a thread.
#[derive(Debug)]
pub(super) struct LastStack<'r> {
    thread: (Pid, Tid),
    /// The sample that has it.
    order: RecordOrder,
    chain: Words<'r>,
    /// What is known of the words of the chain: of the outermost first.
    known: Vec<KnownWord>,
    /// When all of that is so.
    holds: Range<Nanos>,
    /// How many words there are of each [`WordKind`].
    counts: [u32; WordKind::COUNT],
}

/// What is known of a word of a chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownWord {
    /// What the words inside of it say of it.
    pub(super) context: ChainContext,
    pub(super) kind: WordKind,
    /// The code that perf is to be told of.
    pub(super) uses: [Option<UseId>; 2],
    /// The first of the samples in a row that had it.
    pub(super) since: RecordOrder,
}

/// What a word of a chain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordKind {
    /// A mark of the kernel.
    Mark,
    /// No address and no mark: it makes perf drop the chain.
    Bad,
    /// A frame in code that the dumps and maps know.
    Known,
    /// A frame in memory that no file backs, and in no code that is known.
    Unknown,
    /// The same, but where code is known of other times.
    OtherTime,
    /// A frame in a file, in the kernel, or nowhere.
    Elsewhere,
}

impl Default for LastStacks<'_> {
    fn default() -> Self {
        Self([const { None }; THREADS])
    }
}

impl<'r> LastStacks<'r> {
    /// Takes out the last stack of a thread, or an empty one. What another thread has left in its place is noted.
    pub(super) fn take(&mut self, thread: (Pid, Tid), uses: &mut CodeUses) -> LastStack<'r> {
        let mut there = self.place(thread.1).take();
        if let Some(other) = there.as_mut().filter(|there| there.thread != thread) {
            other.cut(0, uses);
            there = None;
        }
        there.unwrap_or_else(|| LastStack::new(thread))
    }

    /// Puts it back.
    pub(super) fn put(&mut self, stack: LastStack<'r>) {
        let (_, tid) = stack.thread;
        *self.place(tid) = Some(stack);
    }

    /// Notes what all stacks use.
    pub(super) fn finish(self, uses: &mut CodeUses) {
        self.0.into_iter().flatten().for_each(|mut stack| stack.cut(0, uses));
    }

    fn place(&mut self, tid: Tid) -> &mut Option<LastStack<'r>> {
        &mut self.0[tid.0.cast_unsigned() as usize % THREADS]
    }
}

impl<'r> LastStack<'r> {
    fn new(thread: (Pid, Tid)) -> Self {
        let chain = Words::new(&[], Endian::Little);
        let (order, known, counts) = Default::default();
        Self { thread, order, chain, known, holds: ALWAYS, counts }
    }

    /// Goes on to another chain of the thread: how many of its outermost words are known. They are the same, and what
    /// was found of them holds at its time.
    pub(super) fn begin(
        &mut self,
        chain: Words<'r>,
        order: RecordOrder,
        time: Option<Nanos>,
        uses: &mut CodeUses,
    ) -> usize {
        // Of samples that are not in order nobody knows which of them are the first and the last.
        let holds = time.is_some_and(|time| self.holds.contains(&time)) && self.order <= order;
        let same = if holds { self.chain.same_at_end(chain) } else { 0 };
        self.cut(same, uses);
        self.known.resize(chain.len(), KnownWord::NONE);
        same
    }

    /// Whether the innermost of so many known words means behind other words what it meant before. If not, it is known
    /// no longer.
    pub(super) fn stays(&mut self, same: usize, context: ChainContext, uses: &mut CodeUses) -> bool {
        let word = self.known[same - 1];
        let stays = word.context == context;
        if !stays {
            self.forget(word, uses);
        }
        stays
    }

    /// What was found of a word, counted from the outermost, and when that is so.
    #[inline]
    pub(super) fn learn(&mut self, at: usize, word: KnownWord, holds: &Range<Nanos>) {
        self.holds = both(self.holds.clone(), holds.clone());
        self.counts[word.kind as usize] += 1;
        self.known[at] = word;
    }

    /// All words are known.
    pub(super) fn end(&mut self, chain: Words<'r>, order: RecordOrder) {
        (self.chain, self.order) = (chain, order);
    }

    /// The code that its words use. A loop: as an iterator of iterators it takes ten times as long.
    pub(super) fn uses(&self) -> Box<[UseId]> {
        let mut all = Vec::with_capacity(self.known.len());
        for word in &self.known {
            let [code, behind] = word.uses;
            if let Some(id) = code {
                all.push(id);
            }
            if let Some(id) = behind {
                all.push(id);
            }
        }
        all.into_boxed_slice()
    }

    /// When all that is known of it is so.
    pub(super) fn holds(&self) -> Range<Nanos> {
        self.holds.clone()
    }

    /// How many words of a kind there are.
    pub(super) fn count(&self, kind: WordKind) -> u32 {
        self.counts[kind as usize]
    }

    /// Leaves only so many of the outermost words, and notes what the others used.
    fn cut(&mut self, left: usize, uses: &mut CodeUses) {
        while self.known.len() > left
            && let Some(word) = self.known.pop()
        {
            self.forget(word, uses);
        }
        if left == 0 {
            self.holds = ALWAYS;
        }
    }

    #[inline]
    fn forget(&mut self, word: KnownWord, uses: &mut CodeUses) {
        let of = CodeUse { first: word.since, last: self.order };
        word.uses.into_iter().flatten().for_each(|id| uses.note_again(id, of));
        self.counts[word.kind as usize] -= 1;
    }
}

impl KnownWord {
    const NONE: Self = Self {
        context: ChainContext::NONE,
        kind: WordKind::Mark,
        uses: [None; 2],
        since: RecordOrder { time: Nanos(0), offset: 0 },
    };
}

impl WordKind {
    const COUNT: usize = Self::Elsewhere as usize + 1;
}

impl From<FramePlace> for WordKind {
    #[inline]
    fn from(place: FramePlace) -> Self {
        match place {
            FramePlace::Known => Self::Known,
            FramePlace::Unknown => Self::Unknown,
            FramePlace::OtherTime => Self::OtherTime,
            FramePlace::Elsewhere => Self::Elsewhere,
        }
    }
}
