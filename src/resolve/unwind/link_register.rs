//! Recognizes, from the instructions, AArch64 code whose return address is in the link register: before the prologue
//! has made a frame, after the epilogue, in functions without a frame, and in PLT stubs.
//!
//! Call chains by frame pointers miss the caller of such a function, because `x29` still belongs to the caller and
//! leads to the caller's caller.
//!
//! Starting at the next instruction, both sides of each branch are followed until the code calls or leaves. If some
//! path saves the link register, or returns to it, before anything changes it, then the register holds the return
//! address now. That is the same for all paths, so one path suffices. The answer is "unknown" if any path first loads
//! the register, or if no path shows anything. Code that leaves only by jumps therefore stays unknown: interpreters
//! enter and leave their instruction handlers that way, and a register that no call has set may hold any old address.
//!
//! Encodings: Arm A64 instruction set (DDI 0602), "Loads and Stores", "Data Processing -- Immediate", "Branches".

use super::frame_pointer::Stage;

/// How many instructions are examined ahead. Epilogues can be further away than prologues, for example after a leaf
/// function's loop.
const AHEAD: usize = 128;
/// How many instructions are examined backwards for a prologue.
const BEHIND: usize = 8;

const FP: u32 = 29;
const LINK: u32 = 30;
const SP: u32 = 31;

/// What an instruction does to the link register, the frame pointer, the stack pointer or the control flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// Saves the link register, and lowers the stack pointer by this many bytes.
    SavesLink(i64),
    /// Makes `x29` point to this function's frame.
    MakesFrame,
    /// Returns to the address in the link register.
    Returns,
    /// Always jumps, by this many instructions.
    Jumps(i64),
    /// Jumps by this many instructions, or continues with the next one.
    Branches(i64),
    /// Calls, jumps to an address in a register, or raises an exception.
    Leaves,
    /// Adds this many bytes to the stack pointer.
    MovesStack(i64),
    /// Sets the stack pointer to an unknown value.
    SetsStack,
    /// Affects neither control flow nor the link register, `x29` or stack pointer.
    Other,
    /// May change the link register or `x29`.
    Changes,
}

fn field(word: u32, at: u32, bits: u32) -> u32 {
    word >> at & ((1 << bits) - 1)
}

fn signed(word: u32, at: u32, bits: u32) -> i64 {
    i64::from(((field(word, at, bits) << (32 - bits)).cast_signed()) >> (32 - bits))
}

pub(super) fn does(word: u32) -> Does {
    let (rd, rn, rt2) = (field(word, 0, 5), field(word, 5, 5), field(word, 10, 5));
    let by_stack = rn == SP;
    match word {
        // ret, retaa, retab; br x30 returns, too
        0xd65f_03c0 | 0xd65f_0bff | 0xd65f_0fff | 0xd61f_03c0 => Does::Returns,
        // paciasp, autiasp, pacibsp, autibsp: add or remove a signature, but the address stays the same
        0xd503_233f | 0xd503_23bf | 0xd503_237f | 0xd503_23ff => Does::Other,
        _ if field(word, 26, 6) == 0b00_0101 => Does::Jumps(signed(word, 0, 26)),
        // tbz, tbnz; below: b.cond, cbz, cbnz
        _ if field(word, 25, 6) == 0b01_1011 => Does::Branches(signed(word, 5, 14)),
        _ if field(word, 24, 8) == 0b0101_0100 || field(word, 25, 6) == 0b01_1010 => {
            Does::Branches(signed(word, 5, 19))
        }
        // svc, nop and similar
        _ if word & 0xffe0_001f == 0xd400_0001 || word & 0xffff_f01f == 0xd503_201f => Does::Other,
        // All other branches, exceptions and system instructions: bl, blr, br, brk, …
        _ if field(word, 26, 3) == 0b101 => Does::Leaves,
        // stp, ldp of 64-bit registers: post-indexed (1), with offset (2) or pre-indexed (3)
        _ if field(word, 25, 7) == 0b101_0100 => {
            let (offset, loads, moves) = (signed(word, 15, 7) * 8, field(word, 22, 1) == 1, field(word, 23, 1) == 1);
            let moved = if by_stack && moves { offset } else { 0 };
            let has = |register| rd == register || rt2 == register;
            match loads {
                false if has(LINK) => Does::SavesLink(-moved),
                true if has(LINK) || has(FP) => Does::Changes,
                _ if moves && (rn == FP || rn == LINK) => Does::Changes,
                _ if moved != 0 => Does::MovesStack(moved),
                _ => Does::Other,
            }
        }
        // str, ldr of a 64-bit register, post-indexed or pre-indexed
        _ if word & 0xffa0_0400 == 0xf800_0400 => {
            let (offset, loads) = (signed(word, 12, 9), field(word, 22, 1) == 1);
            let moved = if by_stack { offset } else { 0 };
            match loads {
                false if rd == LINK => Does::SavesLink(-moved),
                true if rd == LINK || rd == FP => Does::Changes,
                _ if rn == FP || rn == LINK => Does::Changes,
                _ if moved != 0 => Does::MovesStack(moved),
                _ => Does::Other,
            }
        }
        // str xt, [xn, #offset]
        _ if field(word, 22, 10) == 0b11_1110_0100 => {
            if rd == LINK {
                Does::SavesLink(0)
            } else {
                Does::Other
            }
        }
        // add, sub with an immediate, 64 bits
        _ if word & 0xbf80_0000 == 0x9100_0000 && (rd == SP || rd == FP) => {
            let number = i64::from(field(word, 10, 12)) << (12 * field(word, 22, 1));
            let subtracts = field(word, 30, 1) == 1;
            match (rd, rn) {
                (SP, SP) => Does::MovesStack(if subtracts { -number } else { number }),
                (SP, _) => Does::SetsStack,
                (_, SP) if !subtracts => Does::MakesFrame,
                _ => Does::Changes,
            }
        }
        // add, sub with an extended register
        _ if word & 0xbfe0_0000 == 0x8b20_0000 && rd == SP => Does::SetsStack,
        // The register is in the field that holds the destination in most instructions; below, in the second
        // destination of a load.
        _ if rd == FP || rd == LINK => Does::Changes,
        _ if field(word, 27, 3) == 0b101 && field(word, 26, 1) == 0 && (rt2 == FP || rt2 == LINK) => Does::Changes,
        _ => Does::Other,
    }
}

/// The code around an instruction.
#[derive(Debug, Clone, Copy)]
struct Around<'c> {
    code: &'c [[u8; 4]],
    /// The index of the next instruction to run.
    at: usize,
}

impl<'c> Around<'c> {
    fn new(code: &'c [u8], offset: u64) -> Option<Self> {
        let (code, _) = code.as_chunks();
        let at = usize::try_from(offset / 4).ok().filter(|&at| offset.is_multiple_of(4) && at < code.len())?;
        Some(Self { code, at })
    }

    fn does(&self, at: usize) -> Option<Does> {
        self.code.get(at).map(|bytes| does(u32::from_le_bytes(*bytes)))
    }

    /// How many bytes the straight-line code before the instruction has lowered the stack pointer, and whether that
    /// code has saved the link register.
    fn behind(&self) -> (i64, bool) {
        let (mut lowered, mut saved) = (0, false);
        for at in (self.at.saturating_sub(BEHIND)..self.at).rev() {
            match self.does(at) {
                Some(Does::Other) => {}
                Some(Does::MovesStack(by)) if by < 0 => lowered -= by,
                Some(Does::SavesLink(by)) => {
                    lowered += by;
                    saved = true;
                }
                _ => break,
            }
        }
        (lowered, saved)
    }

    /// True in the middle of a prologue: the link register was saved, but `x29` is not set yet.
    fn is_half_made(&self) -> bool {
        let mut ahead = (self.at..self.code.len().min(self.at + BEHIND)).map_while(|at| self.does(at));
        ahead.find(|does| *does != Does::Other) == Some(Does::MakesFrame) && self.behind().1
    }

    fn stage(&self) -> Stage {
        if self.is_half_made() {
            return Stage::in_link(Some(self.behind().0));
        }
        // The paths still to be followed, each with how many bytes it has raised the stack pointer (`None` if unknown).
        let (mut ways, mut seen, mut found) = (vec![(self.at, Some(0))], Vec::new(), None);
        while let Some((at, raised)) = ways.pop() {
            if seen.len() >= AHEAD || seen.contains(&at) {
                continue;
            }
            seen.push(at);
            let to = |distance: i64| Some((at.checked_add_signed(isize::try_from(distance).ok()?)?, raised));
            match self.does(at) {
                Some(Does::Returns) => _ = found.get_or_insert(raised),
                // The prologue may have lowered the stack pointer already.
                Some(Does::SavesLink(_)) => _ = found.get_or_insert_with(|| Some(self.behind().0)),
                Some(Does::MakesFrame | Does::Changes) => return Stage::Framed,
                Some(Does::MovesStack(by)) => ways.push((at + 1, raised.map(|sum| sum + by))),
                Some(Does::SetsStack) => ways.push((at + 1, None)),
                Some(Does::Other) => ways.push((at + 1, raised)),
                Some(Does::Jumps(distance)) => ways.extend(to(distance)),
                Some(Does::Branches(distance)) => {
                    ways.extend(to(distance));
                    ways.push((at + 1, raised));
                }
                Some(Does::Leaves) | None => {}
            }
        }
        found.map_or(Stage::Framed, Stage::in_link)
    }

    /// True inside a PLT stub: `[bti c]; adrp x16; ldr x17, [x16, #n]; add x16, x16, #n; [autia1716]; br x17`. A stub
    /// changes no other registers.
    fn is_stub(&self) -> bool {
        let word = |at: usize| self.code.get(at).map(|bytes| u32::from_le_bytes(*bytes));
        let is_adrp = |word: u32| word & 0x9f00_001f == 0x9000_0010;
        let from = (self.at.saturating_sub(5)..=self.at + 1).rev();
        let mut starts = from.filter(|&at| word(at).is_some_and(is_adrp));
        starts.any(|adrp| {
            let (Some(load), Some(add)) = (word(adrp + 1), word(adrp + 2)) else { return false };
            let (at, authenticates) = (adrp + 3, |word: u32| word == 0xd503_219f);
            let jump = if word(at).is_some_and(authenticates) { at + 1 } else { at };
            let has_mark = adrp.checked_sub(1).and_then(word) == Some(0xd503_245f);
            let start = if has_mark { adrp - 1 } else { adrp };
            load & 0xffc0_03ff == 0xf940_0211
                && add & 0xffc0_03ff == 0x9100_0210
                && matches!(word(jump), Some(0xd61f_0220 | 0xd71f_0a30))
                && (start..=jump).contains(&self.at)
        })
    }
}

/// How much of its frame JIT code has set up at `offset`, according to its instructions.
pub(crate) fn stage_aarch64(code: &[u8], offset: u64) -> Stage {
    Around::new(code, offset).map_or(Stage::Framed, |around| around.stage())
}

/// Like [`stage_aarch64`], for code of a file, which may also be a PLT stub.
pub(crate) fn stage_of_file(code: &[u8], offset: u64) -> Stage {
    let Some(around) = Around::new(code, offset) else { return Stage::Framed };
    if around.is_stub() { Stage::in_link(Some(around.behind().0)) } else { around.stage() }
}

/// Recognizes only code that has saved the link register but hasn't set `x29` yet. Everything else counts as framed.
pub(crate) fn half_framed(code: &[u8], offset: u64) -> Stage {
    let around = Around::new(code, offset).filter(Around::is_half_made);
    around.map_or(Stage::Framed, |around| Stage::in_link(Some(around.behind().0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(words: &[u32], stage: fn(&[u8], u64) -> Stage) -> Vec<Stage> {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        (0..words.len() as u64).map(|at| stage(&code, at * 4)).collect()
    }

    fn in_link(above: i64) -> Stage {
        Stage::in_link(Some(above))
    }

    #[test]
    fn a_function_with_a_frame() {
        // sub sp, sp, #32; stp x29, x30, [sp, #16]; add x29, sp, #16; bl; ldp x29, x30, [sp, #16]; add sp, sp, #32; ret
        let java = [0xd100_83ff, 0xa901_7bfd, 0x9100_43fd, 0x9400_0010, 0xa941_7bfd, 0x9100_83ff, 0xd65f_03c0];
        let framed = Stage::Framed;
        let expected = [in_link(0), in_link(32), in_link(32), framed, framed, in_link(32), in_link(0)];
        assert_eq!(stages(&java, stage_aarch64), expected);
        // paciasp; stp x29, x30, [sp, #-16]!; mov x29, sp; nop; ldp x29, x30, [sp], #16; autiasp; ret
        let signed = [0xd503_233f, 0xa9bf_7bfd, 0x9100_03fd, 0xd503_201f, 0xa8c1_7bfd, 0xd503_23bf, 0xd65f_03c0];
        let expected = [in_link(0), in_link(0), in_link(16), framed, framed, in_link(0), in_link(0)];
        assert_eq!(stages(&signed, stage_aarch64), expected);
    }

    #[test]
    fn a_leaf_that_loops_and_one_that_cannot_be_reported() {
        // mul x0, x0, x1; subs w2, w2, #1; b.ne; ret
        let leaf = [0x9b01_7c00, 0x7100_0442, 0x54ff_ffc1, 0xd65f_03c0];
        assert_eq!(stages(&leaf, stage_aarch64), [in_link(0); 4]);
        // V8's check whether code was deoptimized: tbz w16, #0, over; ldr x17; br x17; stp x29, x30, [sp, #-16]!
        let entry = [0x3600_0070, 0x5800_0011, 0xd61f_0220, 0xa9bf_7bfd];
        assert_eq!(stages(&entry, stage_aarch64), [in_link(0), Stage::Framed, Stage::Framed, in_link(0)]);
        // An interpreter's jump to its next handler: nop; br x3. Below: mov x30, x1; ret
        assert_eq!(stages(&[0xd503_201f, 0xd61f_0060], stage_aarch64), [Stage::Framed; 2]);
        assert_eq!(stages(&[0xaa01_03fe, 0xd65f_03c0], stage_aarch64), [Stage::Framed, in_link(0)]);
        // mov x29, sp without saving the link register first; b to itself; ldr x30, [x20], #8
        assert_eq!(stages(&[0x9100_03fd, 0x1400_0000, 0xf840_869e], stage_aarch64), [Stage::Framed; 3]);
        assert_eq!(stage_aarch64(&[0; 3], 0), Stage::Framed);
        assert_eq!(stage_aarch64(&[0xc0, 3, 0x5f, 0xd6], 2), Stage::Framed);
    }

    #[test]
    fn stubs_of_files_only() {
        // bti c; adrp x16; ldr x17, [x16, #8]; add x16, x16, #8; br x17; nop
        let stub = [0xd503_245f, 0x9000_0110, 0xf940_0611, 0x9100_2210, 0xd61f_0220, 0xd503_201f];
        let told = stages(&stub, stage_of_file);
        assert_eq!(told[..5], [in_link(0); 5]);
        assert_eq!(told[5], Stage::Framed);
        assert_eq!(stages(&stub, stage_aarch64), [Stage::Framed; 6]);
        // The PLT's first stub begins with stp x16, x30, [sp, #-16]!
        let first = [0xa9bf_7bf0, 0x9000_0110, 0xf940_0611, 0x9100_2210, 0xd61f_0220];
        assert_eq!(stages(&first, stage_of_file), [in_link(0), in_link(16), in_link(16), in_link(16), in_link(16)]);
    }
}
