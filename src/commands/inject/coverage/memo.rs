//! A cache of what was found at each address of a stack. Consecutive samples share most of their stack, so most lookups
//! repeat.

use super::code_uses::{FramePlace, UseId};
use crate::model::lasting::Lasting;
use crate::model::{Addr, FrameAddr, Nanos, Pid};

/// Maximum number of slots. A table of this size fits into the CPU's cache.
const MOST: usize = 1 << 13;

/// The number of slots at the start. It is small because short recordings need few.
const FEW: usize = 1 << 6;

/// The key of a lookup: an address in user space, and whether it is an instruction pointer, a return address or a stack
/// word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoKey {
    addr: Addr,
    of: AddrKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddrKind {
    Ip,
    Return,
    Word,
}

/// What was found at an address of a stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct StackAnswer {
    /// The code that perf must be able to name: the code that contains the call and, if it differs, the code at the
    /// return address.
    pub(super) uses: [Option<UseId>; 2],
    pub(super) kind: FramePlace,
}

/// A hash table with one entry per slot, without probing: a new answer replaces the old one in its slot.
#[derive(Debug)]
pub(super) struct Memo {
    /// The length is a power of two.
    slots: Vec<MemoSlot>,
    /// Answers stored since the table last grew.
    came: usize,
}

#[derive(Debug, Clone)]
struct MemoSlot {
    pid: Pid,
    asked: MemoKey,
    /// The answer, and the time span in which it holds. In an unused slot the span is empty.
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
        asked: MemoKey::word(Addr(0)),
        found: Lasting {
            answer: StackAnswer { uses: [None; 2], kind: FramePlace::Elsewhere },
            holds: Nanos(0)..Nanos(0),
        },
    };
}

impl Memo {
    /// Returns the cached answer for this key. `None` if there is none that is valid at `time`.
    #[inline]
    pub(super) fn get(&self, pid: Pid, asked: MemoKey, time: Nanos) -> Option<&Lasting<StackAnswer>> {
        let MemoSlot { pid: of, asked: there, found } = &self.slots[self.place(pid, asked)];
        (*there == asked && *of == pid && found.holds.contains(&time)).then_some(found)
    }

    /// Stores an answer. If more answers were stored than the table has slots, first empties the table and doubles its
    /// size (up to [`MOST`]).
    pub(super) fn put(&mut self, pid: Pid, asked: MemoKey, found: Lasting<StackAnswer>) {
        self.came += 1;
        if self.came > self.slots.len() && self.slots.len() < MOST {
            *self = Self { slots: vec![MemoSlot::EMPTY; self.slots.len() * 2], came: 0 };
        }
        let place = self.place(pid, asked);
        self.slots[place] = MemoSlot { pid, asked, found };
    }

    /// The index of the slot for a key. Call addresses vary in all of their low bits, so multiplicative hashing spreads
    /// them well.
    #[inline]
    fn place(&self, pid: Pid, asked: MemoKey) -> usize {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (asked.addr.0 ^ u64::from(pid.0.cast_unsigned()) << 40).wrapping_mul(GOLDEN);
        (mixed >> 32) as usize & (self.slots.len() - 1)
    }
}

impl MemoKey {
    /// The key of a call chain's frame.
    #[inline]
    pub(super) fn frame(frame: FrameAddr) -> Self {
        match frame {
            FrameAddr::Ip(addr) => Self { addr, of: AddrKind::Ip },
            FrameAddr::Return(addr) => Self { addr, of: AddrKind::Return },
        }
    }

    /// The key of a word in a copied stack, which may be a return address.
    #[inline]
    pub(super) const fn word(addr: Addr) -> Self {
        Self { addr, of: AddrKind::Word }
    }
}
