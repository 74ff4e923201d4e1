//! The previous sample's stack, whose outermost frames the next one usually shares.

use super::chain_words::ChainWords;
use crate::model::chains::ChainId;
use crate::model::process::CpuMode;
use crate::model::{FrameAddr, Nanos, Pid};
use crate::records::perf_data::Sample;

/// The key for looking up a frame: CPU mode and address.
pub(super) type ModeFrame = (CpuMode, FrameAddr);

/// The stack of the previous sample, with the results of looking up its frames.
#[derive(Debug, Default)]
pub(super) struct PreviousStack<'data> {
    /// Outermost first.
    frames: Vec<KeptFrame>,
    sampled: Option<(Pid, Nanos)>,
    /// The words of its call chain, if the stack consists of nothing else.
    words: Option<ChainWords<'data>>,
}

/// A frame of the previous stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptFrame {
    pub(super) frame: ModeFrame,
    /// The chain from the outermost frame to this one.
    pub(super) chain: ChainId,
    /// Until when the lookups of this frame and all outer ones are valid.
    pub(super) until: Nanos,
}

impl<'data> PreviousStack<'data> {
    /// The number of outermost frames that a stack has in common with the previous one. `frames` are innermost first.
    pub(super) fn shared_frames(&self, frames: &[ModeFrame], pid: Pid, time: Nanos) -> usize {
        if !self.is_before(pid, time) {
            return 0;
        }
        let outermost_first = self.frames.iter().zip(frames.iter().rev());
        outermost_first.take_while(|(kept, frame)| kept.frame == **frame && time < kept.until).count()
    }

    /// Like [`shared_frames`](Self::shared_frames), but compares only the words of the call chain without looking at
    /// each frame. Frames that aren't shared are added to `frames`, innermost first. `None` if comparing words isn't
    /// enough.
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

    /// Starts the next sample's stack with the outermost frames that it shares. Returns the innermost of these.
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

    /// Adds the next inner frame.
    pub(super) fn push(&mut self, frame: KeptFrame) {
        self.frames.push(frame);
    }

    /// True if the previous sample is from the same process and not later.
    fn is_before(&self, pid: Pid, time: Nanos) -> bool {
        self.sampled.is_some_and(|(previous_pid, previous_time)| previous_pid == pid && previous_time <= time)
    }
}
