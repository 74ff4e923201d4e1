//! The stack of the sample before: most of the next one, outermost, is the same.

use super::chain_words::ChainWords;
use crate::model::chains::ChainId;
use crate::model::process::CpuMode;
use crate::model::{FrameAddr, Nanos, Pid};
use crate::records::perf_data::Sample;

/// A frame that is looked up: the mode of the processor and the address.
pub(super) type ModeFrame = (CpuMode, FrameAddr);

/// A stack whose frames were looked up.
#[derive(Debug, Default)]
pub(super) struct PreviousStack<'data> {
    /// Outermost first.
    frames: Vec<KeptFrame>,
    sampled: Option<(Pid, Nanos)>,
    /// The words of its frames, if they are nothing else.
    words: Option<ChainWords<'data>>,
}

/// A frame of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptFrame {
    pub(super) frame: ModeFrame,
    /// The chain from the outermost frame to this one.
    pub(super) chain: ChainId,
    /// The time until which this frame and all frames outside of it have the same answer.
    pub(super) until: Nanos,
}

impl<'data> PreviousStack<'data> {
    /// The number of outermost frames that a stack shares with it. `frames` are innermost first.
    pub(super) fn shared_frames(&self, frames: &[ModeFrame], pid: Pid, time: Nanos) -> usize {
        if !self.is_before(pid, time) {
            return 0;
        }
        let same = |(kept, frame): &(&KeptFrame, &ModeFrame)| kept.frame == **frame && time < kept.until;
        self.frames.iter().zip(frames.iter().rev()).take_while(same).count()
    }

    /// The same by the words of a call chain alone, without a look at each. The frames that are not shared go into
    /// `frames`, innermost first. `None` if words do not decide.
    pub(super) fn shared_words(
        &self,
        sample: &Sample<'data>,
        pid: Pid,
        time: Nanos,
        frames: &mut Vec<ModeFrame>,
    ) -> Option<(ChainWords<'data>, usize)> {
        let words = self.words.filter(|_| self.is_before(pid, time))?;
        let kept = |same: usize| Some(self.frames.get(same - 1).filter(|kept| time < kept.until)?.frame);
        words.shared(sample.callchain, sample.context(), kept, frames)
    }

    /// Begins the stack of the next sample with the outermost frames that it shares. Returns the innermost of them.
    pub(super) fn begin(
        &mut self,
        shared: usize,
        (pid, time): (Pid, Nanos),
        words: Option<ChainWords<'data>>,
    ) -> Option<KeptFrame> {
        self.frames.truncate(shared);
        self.sampled = Some((pid, time));
        self.words = words;
        self.frames.last().copied()
    }

    /// Adds the next frame inwards.
    pub(super) fn push(&mut self, frame: KeptFrame) {
        self.frames.push(frame);
    }

    /// True if its sample is of the same process, and not later.
    fn is_before(&self, pid: Pid, time: Nanos) -> bool {
        self.sampled.is_some_and(|(of, from)| of == pid && from <= time)
    }
}
