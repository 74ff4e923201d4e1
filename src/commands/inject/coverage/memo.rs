//! The results for addresses of stacks, for those that repeat: most of a stack was in the stack before, too.

use super::code_uses::UseId;
use crate::model::lasting::Lasting;
use crate::model::{Addr, FrameAddr, Nanos, Pid};

/// The largest number of kept answers; a newer one takes the place of an older one. They must fit into a processor's
/// cache.
const MOST: usize = 1 << 13;

/// The initial number: short recordings have few.
const FEW: usize = 1 << 6;

/// An address of user space that is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    addr: Addr,
    of: AddrKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddrKind {
    Ip,
    Return,
    Word,
}

/// The result for such an address.
#[derive(Debug, Clone, Copy)]
pub(super) struct StackAnswer {
    /// The code that perf must know: that of the call, and that of the address behind it if it is another one.
    pub(super) uses: [Option<UseId>; 2],
    /// The kind of frame.
    pub(super) kind: FramePlace,
}

/// The place of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FramePlace {
    /// In code that the dumps and maps know.
    Known,
    /// In memory that no file backs, and in no code that is known.
    Unknown,
    /// The same, but where code is known of other times.
    OtherTime,
    /// In a file, or nowhere.
    Elsewhere,
}

/// The last answers.
#[derive(Debug)]
pub(super) struct Memo {
    /// A power of two.
    slots: Vec<MemoSlot>,
    /// The number of answers since there are this many slots.
    came: usize,
}

#[derive(Debug, Clone)]
struct MemoSlot {
    pid: Pid,
    asked: Asked,
    /// Holds never at first.
    found: Lasting<StackAnswer>,
}

impl Default for Memo {
    fn default() -> Self {
        Self { slots: vec![MemoSlot::EMPTY; FEW], came: 0 }
    }
}

impl MemoSlot {
    const EMPTY: Self = Self {
        pid: Pid(0),
        asked: Asked::word(Addr(0)),
        found: Lasting {
            answer: StackAnswer { uses: [None; 2], kind: FramePlace::Elsewhere },
            holds: Nanos(0)..Nanos(0),
        },
    };
}

impl Memo {
    /// The answer, if it is here and holds at this time.
    #[inline]
    pub(super) fn get(&self, pid: Pid, asked: Asked, time: Nanos) -> Option<&Lasting<StackAnswer>> {
        let MemoSlot { pid: of, asked: there, found } = &self.slots[self.place(pid, asked)];
        (*there == asked && *of == pid && found.holds.contains(&time)).then_some(found)
    }

    /// Keeps an answer.
    pub(super) fn put(&mut self, pid: Pid, asked: Asked, found: Lasting<StackAnswer>) {
        self.came += 1;
        if self.came > self.slots.len() && self.slots.len() < MOST {
            *self = Self { slots: vec![MemoSlot::EMPTY; self.slots.len() * 2], came: 0 };
        }
        let place = self.place(pid, asked);
        self.slots[place] = MemoSlot { pid, asked, found };
    }

    /// Addresses of calls differ in all of their lower bits.
    #[inline]
    fn place(&self, pid: Pid, asked: Asked) -> usize {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (asked.addr.0 ^ u64::from(pid.0.cast_unsigned()) << 40).wrapping_mul(GOLDEN);
        (mixed >> 32) as usize & (self.slots.len() - 1)
    }
}

impl Asked {
    /// A frame of a call chain.
    #[inline]
    pub(super) fn frame(frame: FrameAddr) -> Self {
        match frame {
            FrameAddr::Ip(addr) => Self { addr, of: AddrKind::Ip },
            FrameAddr::Return(addr) => Self { addr, of: AddrKind::Return },
        }
    }

    /// A word of a copied stack: any may be a return address.
    #[inline]
    pub(super) const fn word(addr: Addr) -> Self {
        Self { addr, of: AddrKind::Word }
    }
}
