//! What frames were found to be, for those that come again: most of a stack was in the stack before, too.

use super::code_uses::UseId;
use crate::model::lasting::Lasting;
use crate::model::{FrameAddr, Nanos, Pid};
use std::ops::Range;

/// So many answers are kept; a newer one takes the place of an older one. They shall fit into a processor's cache.
const SLOTS: usize = 1 << 13;

/// What a frame of user space is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FrameAnswer {
    /// The code that perf is to be told of: that of the call, and that of the address behind it if it is another one.
    pub(super) uses: [Option<UseId>; 2],
    pub(super) kind: FramePlace,
}

/// Where a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum FramePlace {
    /// In code that the dumps and maps know.
    Known,
    /// In memory that no file backs, and in no code that is known.
    Unknown,
    /// In a file, or nowhere.
    #[default]
    Elsewhere,
}

/// The last answers.
#[derive(Debug)]
pub(super) struct Memo {
    slots: Vec<Slot>,
}

#[derive(Debug, Clone)]
struct Slot {
    addr: u64,
    pid: Pid,
    is_return: bool,
    answer: FrameAnswer,
    /// Empty at first.
    holds: Range<Nanos>,
}

impl Default for Memo {
    fn default() -> Self {
        let empty =
            Slot { addr: 0, pid: Pid(0), is_return: false, answer: FrameAnswer::default(), holds: Nanos(0)..Nanos(0) };
        Self { slots: vec![empty; SLOTS] }
    }
}

impl Memo {
    /// The answer for a frame, if it is here and holds at this time.
    #[inline]
    pub(super) fn get(&self, pid: Pid, frame: FrameAddr, time: Nanos) -> Option<FrameAnswer> {
        let (addr, is_return) = key(frame);
        let slot = &self.slots[place(pid, addr)];
        let same = slot.addr == addr && slot.pid == pid && slot.is_return == is_return;
        (same && slot.holds.start <= time && time < slot.holds.end).then_some(slot.answer)
    }

    /// Keeps an answer.
    pub(super) fn put(&mut self, pid: Pid, frame: FrameAddr, Lasting { answer, holds }: Lasting<FrameAnswer>) {
        let (addr, is_return) = key(frame);
        self.slots[place(pid, addr)] = Slot { addr, pid, is_return, answer, holds };
    }
}

fn key(frame: FrameAddr) -> (u64, bool) {
    (frame.raw().0, matches!(frame, FrameAddr::Return(_)))
}

/// Addresses of calls differ in all of their lower bits.
#[inline]
fn place(pid: Pid, addr: u64) -> usize {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (addr ^ u64::from(pid.0.cast_unsigned()) << 40).wrapping_mul(GOLDEN);
    (mixed >> (u64::BITS - SLOTS.trailing_zeros())) as usize
}
