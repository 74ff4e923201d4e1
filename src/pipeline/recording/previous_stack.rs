//! Keeps the stack of the previous sample, because the next sample usually has the same outermost frames.

use super::chain_words::ChainWords;
use crate::formats::perf_data::Sample;
use crate::model::chains::ChainId;
use crate::model::process::CpuMode;
use crate::model::{FrameAddr, Nanos, Pid};

/// What a frame is looked up by: CPU mode and address.
pub(super) type ModeFrame = (CpuMode, FrameAddr);

/// The stack of the previous sample, and what was found for its frames.
#[derive(Debug, Default)]
pub(super) struct PreviousStack<'data> {
    /// The frames, outermost first.
    frames: Vec<KeptFrame>,
    sampled: Option<(Pid, Nanos)>,
    /// The words of the sample's call chain, if these determine the whole stack; otherwise `None`.
    words: Option<ChainWords<'data>>,
}

/// A frame of the previous stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptFrame {
    pub(super) frame: ModeFrame,
    /// The ID of the chain that ends with this frame as the innermost one.
    pub(super) chain: ChainId,
    /// The time (exclusive) until which what was found for this frame and all outer ones is valid.
    pub(super) until: Nanos,
}

impl<'data> PreviousStack<'data> {
    /// How many outermost frames a sample's stack has in common with the previous one and needn't look up again.
    /// `frames` is that stack, innermost first.
    pub(super) fn shared_frames(&self, frames: &[ModeFrame], pid: Pid, time: Nanos) -> usize {
        if !self.is_before(pid, time) {
            return 0;
        }
        let outermost_first = self.frames.iter().zip(frames.iter().rev());
        outermost_first.take_while(|(kept, frame)| kept.frame == **frame && time < kept.until).count()
    }

    /// Like [`shared_frames`](Self::shared_frames), but faster, because it compares the words of call chains without
    /// examining each frame. Adds the frames that aren't shared to `frames`, innermost first. `None` if comparing words
    /// isn't enough.
    pub(super) fn shared_words(
        &self,
        sample: &Sample<'data>,
        pid: Pid,
        time: Nanos,
        frames: &mut Vec<ModeFrame>,
    ) -> Option<(ChainWords<'data>, usize)> {
        let words = self.words.filter(|_| self.is_before(pid, time))?;
        let kept_frame = |same: usize| {
            let kept = self.frames.get(same - 1)?;
            (time < kept.until).then_some(kept.frame)
        };
        words.compare(sample.callchain, sample.context(), kept_frame, frames)
    }

    /// Starts the next sample's stack: keeps the `shared` outermost frames. Returns the innermost of these, if any.
    pub(super) fn begin(
        &mut self,
        shared: usize,
        pid: Pid,
        time: Nanos,
        words: Option<ChainWords<'data>>,
    ) -> Option<KeptFrame> {
        self.frames.truncate(shared);
        self.sampled = Some((pid, time));
        self.words = words;
        self.frames.last().copied()
    }

    /// Adds the next frame on the inner side.
    pub(super) fn push(&mut self, frame: KeptFrame) {
        self.frames.push(frame);
    }

    /// True if the previous sample is from the same process and isn't later than `time`.
    fn is_before(&self, pid: Pid, time: Nanos) -> bool {
        self.sampled.is_some_and(|(previous_pid, previous_time)| previous_pid == pid && previous_time <= time)
    }
}
