//! Finds callers by frame pointer. For code without call frame information, which is mostly JIT code.
//!
//! ```text
//! x86-64   rbp → saved rbp, return address     after `push rbp; mov rbp, rsp`
//! x86      ebp → saved ebp, return address     after `push ebp; mov ebp, esp`
//! AArch64  x29 → saved x29, saved x30          after `stp x29, x30, [sp, #-N]!; mov x29, sp`
//! RISC-V   below s0: saved ra, saved s0        after `sd ra, N-8(sp); sd s0, N-16(sp); addi s0, sp, N`
//!          below s0: saved s0                  in functions that call nothing, after `sd s0, N-8(sp); addi s0, sp, N`
//! ```
//!
//! The running function may be in its prologue or epilogue. Its frame pointer is then still the caller's, and following
//! it would skip the caller. If the bytes of the code are known, the instruction to be executed next shows this.

use super::registers::{Machine, Registers};

/// How much of its frame the running function has set up, as far as its code shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The function has no frame. The return address is on top of the stack.
    NoFrame,
    /// The caller's frame pointer has been pushed. It is on top of the stack, followed by the return address.
    Pushed,
    /// The return address is still in the link register.
    InLink {
        /// How many bytes the stack pointer has been lowered since the call: it is that far below the caller's. `None`
        /// if that is uncertain.
        lowered: Option<u64>,
    },
    /// The frame is complete. The frame pointer is the function's own.
    Framed,
}

impl Stage {
    /// The stage of a function whose return address is in the link register. `lowered` is how many bytes the stack
    /// pointer is below the caller's; `None` if unknown. A negative number would mean above the caller's, which can't
    /// be, so it counts as unknown, too.
    pub(super) fn in_link(lowered: Option<i64>) -> Self {
        Self::InLink { lowered: lowered.and_then(|lowered| u64::try_from(lowered).ok()) }
    }
}

/// A prologue is only looked for in this many bytes from the start of JIT code. It needn't be at the very start: V8's
/// code first checks whether it was deoptimized.
const PROLOGUE_WITHIN: usize = 64;

/// How much of its frame x86-64 code has set up before the instruction at `offset`, judging by its instructions. At a
/// `ret`, and up to the prologue (`push rbp; mov rbp, rsp`), there is none. Between the two instructions of the
/// prologue, `rbp` has been pushed. In all other cases, the frame is assumed to be complete.
pub(crate) fn stage_x86_64(code: &[u8], offset: u64) -> Stage {
    /// The opcode of `push rbp`.
    const PUSH: u8 = 0x55;
    /// The opcodes of `ret`, without and with a number of bytes to pop.
    const RET: [u8; 2] = [0xc3, 0xc2];
    let Some(offset) = usize::try_from(offset).ok().filter(|&offset| offset < code.len()) else {
        return Stage::Framed;
    };
    if RET.contains(&code[offset]) {
        return Stage::NoFrame;
    }
    // A prologue is `push rbp`, then `mov rbp, rsp`, which has two encodings.
    let head = &code[..code.len().min(PROLOGUE_WITHIN)];
    let prologue = head.windows(4).position(|four| matches!(four, [PUSH, 0x48, 0x89, 0xe5] | [PUSH, 0x48, 0x8b, 0xec]));
    match prologue {
        Some(push) if offset <= push => Stage::NoFrame,
        Some(push) if offset == push + 1 => Stage::Pushed,
        _ => Stage::Framed,
    }
}

/// Finds the caller of a function. `stage` says how much of its frame the function has set up. Returns the caller's
/// instruction pointer and stack pointer, and its frame pointer if that is known; all other registers are unknown.
/// `read` reads the word at an address of the stack. `None` if the return address isn't known, for example because the
/// frame pointer doesn't point into the known part of the stack.
pub fn caller(registers: &Registers, stage: Stage, read: &impl Fn(u64) -> Option<u64>) -> Option<Registers> {
    let machine = registers.machine();
    let sp = registers.sp()?;
    let word = u64::from(machine.word());
    let mut caller = Registers::new(machine);
    // The caller's frame pointer if it is known, the return address, and the address where the known part of the frame
    // ends. This address is the caller's stack pointer, or lower than it if the function may have saved more registers.
    let (fp, return_addr, frame_end) = match (machine, stage) {
        // The return address is on top of the stack. After `push rbp` (`Pushed`), the caller's `rbp` is on top, and the
        // return address follows it.
        (Machine::X86_64, Stage::NoFrame) => (registers.fp(), read(sp)?, sp.checked_add(8)?),
        (Machine::X86_64, Stage::Pushed) => (read(sp), read(sp.checked_add(8)?)?, sp.checked_add(16)?),
        // The frame pointer is still the caller's, and the stack pointer is `lowered` bytes below the caller's. A link
        // register of 0 holds no return address.
        (_, Stage::InLink { lowered }) => {
            (registers.fp(), registers.link().filter(|&link| link != 0)?, sp.checked_add(lowered.unwrap_or(0))?)
        }
        // The frame pointer points to the caller's frame pointer, which the return address follows.
        (Machine::X86_64 | Machine::I386 | Machine::Aarch64, _) => {
            let fp = registers.fp().filter(|&fp| fp >= sp && fp.is_multiple_of(word))?;
            (read(fp), read(fp.checked_add(word)?)?, fp.checked_add(2 * word)?)
        }
        // The frame pointer points to the end of the frame. The word before it is the return address, and the one
        // before that is the caller's frame pointer.
        (Machine::Riscv64, _) => {
            let fp = registers.fp().filter(|&fp| fp > sp && fp.is_multiple_of(word))?;
            let upper = read(fp.checked_sub(word)?)?;
            let lower = read(fp.checked_sub(2 * word)?);
            // A function that calls nothing saves only the frame pointer, and saves it where other functions save the
            // return address, which is then still in the link register. If the value there points further up the stack,
            // it is such a frame pointer.
            let is_saved_fp = upper > fp && upper.is_multiple_of(word) && read(upper - word).is_some();
            if is_saved_fp { (Some(upper), registers.link()?, fp) } else { (lower, upper, fp) }
        }
        // On Arm and s390x, functions have no frame pointer, or one that doesn't lead to their caller's frame.
        (Machine::Arm | Machine::S390x, _) => return None,
    };
    caller.set(machine.pc(), machine.code_address(return_addr));
    match stage {
        // In these stages, all that the function has put on the stack is known, so `frame_end` is exact.
        Stage::InLink { lowered: Some(_) } | Stage::NoFrame | Stage::Pushed => caller.set(machine.sp(), frame_end),
        Stage::InLink { lowered: None } | Stage::Framed => caller.set_low_sp(frame_end),
    }
    if let Some(fp) = fp {
        caller.set(machine.fp(), fp);
    }
    Some(caller)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolize::unwind::registers::riscv64;
    use crate::symbolize::unwind::registers::x86_64::{RBP, RIP, RSP};

    #[test]
    fn the_code_shows_the_stage() {
        // The code: test cl,1; push rbp; mov rbp,rsp; nop; pop rbp; ret
        let code = [0xf6, 0xc1, 1, 0x55, 0x48, 0x89, 0xe5, 0x90, 0x5d, 0xc3];
        let stages: Vec<Stage> = [0, 3, 4, 7, 8, 9, 10].iter().map(|&offset| stage_x86_64(&code, offset)).collect();
        use Stage::{Framed, NoFrame, Pushed};
        assert_eq!(stages, [NoFrame, NoFrame, Pushed, Framed, Framed, NoFrame, Framed]);
    }

    #[test]
    fn only_what_the_frame_record_holds_is_known_of_the_caller() {
        let mut registers = Registers::new(Machine::X86_64);
        for (register, value) in [(RIP, 1), (RSP, 0x100), (RBP, 0x120), (3, 5)] {
            registers.set(register, value);
        }
        let read = |addr: u64| (addr < 0x200).then_some(addr + 1);
        let framed = caller(&registers, Stage::Framed, &read).unwrap();
        assert_eq!((framed.pc(), framed.sp(), framed.fp()), (Some(0x129), Some(0x130), Some(0x121)));
        assert_eq!(framed.get(3), None);
        let bare = caller(&registers, Stage::NoFrame, &read).unwrap();
        assert_eq!((bare.pc(), bare.sp(), bare.fp()), (Some(0x101), Some(0x108), Some(0x120)));
        registers.set(RBP, 0x80);
        assert_eq!(caller(&registers, Stage::Framed, &read), None);
    }

    #[test]
    fn a_function_of_riscv_that_calls_nothing_saves_the_frame_pointer_alone() {
        let mut registers = Registers::new(Machine::Riscv64);
        for (register, value) in [(riscv64::PC, 1), (riscv64::SP, 0x100), (riscv64::FP, 0x110), (riscv64::RA, 0x5555)] {
            registers.set(register, value);
        }
        // The word at 0x108 is the caller's frame pointer. The caller has saved both registers.
        let stack = |addr: u64| match addr {
            0x108 => Some(0x140),
            0x130 => Some(0x180),
            0x138 => Some(0x7777),
            0x100..0x200 => Some(0),
            _ => None,
        };
        let leaf = caller(&registers, Stage::Framed, &stack).unwrap();
        assert_eq!((leaf.pc(), leaf.sp(), leaf.fp()), (Some(0x5555), Some(0x110), Some(0x140)));
        let next = caller(&leaf, Stage::Framed, &stack).unwrap();
        assert_eq!((next.pc(), next.sp(), next.fp()), (Some(0x7777), Some(0x140), Some(0x180)));
    }
}
