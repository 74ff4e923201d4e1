//! Recognizes AArch64 code whose return address is in the link register, judging by its instructions: before the
//! prologue has made a frame, after the epilogue, in functions without a frame, and in PLT stubs.
//!
//! Call chains by frame pointers miss the caller of such a function. Its `x29` still belongs to the caller and leads to
//! the caller's caller.
//!
//! From the next instruction on, both sides of each branch are followed until the code calls or leaves. If some path
//! saves the link register, or returns to the address in it, before anything changes it, then the register holds the
//! return address now. This can't differ between paths, so one path is enough, unless another path changes the register
//! first. If one does, or if no path shows anything, it isn't known where the return address is, and the function
//! counts as having its frame. Code that leaves only by jumps is therefore never recognized: interpreters enter and
//! leave their instruction handlers that way, and a register that no call has set may hold any old address.
//!
//! Encodings: Arm A64 instruction set (DDI 0602), "Loads and Stores", "Data Processing -- Immediate", "Branches".

use super::frame_pointer::Stage;
use std::ops::RangeInclusive;

/// How many instructions ahead are examined, on all paths together. This is more than for a prologue, because an
/// epilogue can be far away, for example after the loop of a function that calls nothing.
const MAX_AHEAD: usize = 128;
/// The maximum length of a prologue, in instructions. At most this many instructions before a position are searched for
/// the start of a prologue, and at most this many after it for its end.
const MAX_PROLOGUE: usize = 8;

const FP: u32 = 29;
const LINK: u32 = 30;
const SP: u32 = 31;

/// What an instruction does to the link register, the frame pointer `x29`, the stack pointer or the control flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Saves the link register on the stack, and lowers the stack pointer by this many bytes.
    SavesLink(i64),
    /// Makes `x29` point to the frame of this function.
    MakesFrame,
    /// Returns to the address in the link register.
    Returns,
    /// Always jumps, by this many instructions (negative: back).
    Jumps(i64),
    /// Jumps by this many instructions (negative: back) or continues with the next one, depending on a condition.
    Branches(i64),
    /// Calls, jumps to an address in a register, or raises an exception.
    Leaves,
    /// Adds this many bytes to the stack pointer; negative numbers lower it.
    MovesStack(i64),
    /// Sets the stack pointer to a value that isn't known.
    SetsStack,
    /// Changes neither the control flow nor the link register, `x29` or the stack pointer.
    Other,
    /// May change the link register or `x29` in some other way.
    Changes,
}

/// Returns `bits` bits of an instruction, from bit number `low` upwards.
fn field(word: u32, low: u32, bits: u32) -> u32 {
    word >> low & ((1 << bits) - 1)
}

fn signed_field(word: u32, low: u32, bits: u32) -> i64 {
    i64::from(((field(word, low, bits) << (32 - bits)).cast_signed()) >> (32 - bits))
}

impl Effect {
    /// What the instruction `word` does, as far as unwinding is concerned. The order of the tests matters: instructions
    /// that aren't matched by the first ones may be matched by a more general test below.
    pub(super) fn decode(word: u32) -> Self {
        let (rd, rn, rt2) = (field(word, 0, 5), field(word, 5, 5), field(word, 10, 5));
        match word {
            // `ret`, `retaa` and `retab`. `br x30` returns as well.
            0xd65f_03c0 | 0xd65f_0bff | 0xd65f_0fff | 0xd61f_03c0 => Self::Returns,
            // `paciasp`, `autiasp`, `pacibsp` and `autibsp` add or remove a signature in the link register. The address
            // in it stays the same.
            0xd503_233f | 0xd503_23bf | 0xd503_237f | 0xd503_23ff => Self::Other,
            // `b`.
            _ if field(word, 26, 6) == 0b00_0101 => Self::Jumps(signed_field(word, 0, 26)),
            // `tbz` and `tbnz`: conditional branches whose distance has 14 bits.
            _ if field(word, 25, 6) == 0b01_1011 => Self::Branches(signed_field(word, 5, 14)),
            // `b.cond`, `cbz` and `cbnz`: conditional branches whose distance has 19 bits.
            _ if field(word, 24, 8) == 0b0101_0100 || field(word, 25, 6) == 0b01_1010 => {
                Self::Branches(signed_field(word, 5, 19))
            }
            // System calls (`svc`) and hints such as `nop` change none of the registers that matter here.
            _ if word & 0xffe0_001f == 0xd400_0001 || word & 0xffff_f01f == 0xd503_201f => Self::Other,
            // All other branches, exceptions and system instructions, such as `bl`, `br` and `brk`.
            _ if field(word, 26, 3) == 0b101 => Self::Leaves,
            // Stores and loads of two 64-bit registers: `stp` and `ldp`. If `writes_base` is true, they also move the
            // base register.
            _ if field(word, 25, 7) == 0b101_0100 => {
                let offset = signed_field(word, 15, 7) * 8;
                let (is_load, writes_base) = (field(word, 22, 1) == 1, field(word, 23, 1) == 1);
                // How many bytes the instruction adds to the stack pointer.
                let moved = if rn == SP && writes_base { offset } else { 0 };
                let has = |register| rd == register || rt2 == register;
                match is_load {
                    false if has(LINK) => Self::SavesLink(-moved),
                    true if has(LINK) || has(FP) => Self::Changes,
                    _ if writes_base && (rn == FP || rn == LINK) => Self::Changes,
                    _ if moved != 0 => Self::MovesStack(moved),
                    _ => Self::Other,
                }
            }
            // Stores and loads of one 64-bit register that also move the base register: `str xt, [xn, #offset]!` and
            // `str xt, [xn], #offset`.
            _ if word & 0xffa0_0400 == 0xf800_0400 => {
                let is_load = field(word, 22, 1) == 1;
                let moved = if rn == SP { signed_field(word, 12, 9) } else { 0 };
                match is_load {
                    false if rd == LINK => Self::SavesLink(-moved),
                    true if rd == LINK || rd == FP => Self::Changes,
                    _ if rn == FP || rn == LINK => Self::Changes,
                    _ if moved != 0 => Self::MovesStack(moved),
                    _ => Self::Other,
                }
            }
            // A store of one 64-bit register that doesn't move the base register: `str xt, [xn, #offset]`.
            _ if field(word, 22, 10) == 0b11_1110_0100 && rd == LINK => Self::SavesLink(0),
            _ if field(word, 22, 10) == 0b11_1110_0100 => Self::Other,
            // An add or sub of a number whose result goes to the stack pointer or to `x29`, such as `mov x29, sp`.
            _ if word & 0xbf80_0000 == 0x9100_0000 && (rd == SP || rd == FP) => {
                let number = i64::from(field(word, 10, 12)) << (12 * field(word, 22, 1));
                let subtracts = field(word, 30, 1) == 1;
                match (rd, rn) {
                    (SP, SP) => Self::MovesStack(if subtracts { -number } else { number }),
                    (SP, _) => Self::SetsStack,
                    (_, SP) if !subtracts => Self::MakesFrame,
                    _ => Self::Changes,
                }
            }
            // An add or sub of a register whose result goes to the stack pointer, as for arrays of variable length.
            _ if word & 0xbfe0_0000 == 0x8b20_0000 && rd == SP => Self::SetsStack,
            // Most other instructions have their destination in the lowest five bits.
            _ if rd == FP || rd == LINK => Self::Changes,
            // Loads of two registers have a second destination.
            _ if field(word, 27, 3) == 0b101 && field(word, 26, 1) == 0 && (rt2 == FP || rt2 == LINK) => Self::Changes,
            _ => Self::Other,
        }
    }
}

/// A position in code: the instruction that will be executed next.
#[derive(Debug, Clone, Copy)]
struct Position<'c> {
    code: &'c [[u8; 4]],
    /// The index of this instruction in `code`.
    index: usize,
}

/// What the instructions just before a position have done, back to the nearest one that can't be in a prologue.
struct Prologue {
    /// How many bytes the instructions have lowered the stack pointer, all together.
    lowered: i64,
    /// True if one of the instructions has saved the link register.
    saved_link: bool,
}

impl<'c> Position<'c> {
    /// The position of the instruction at this byte offset. `None` if no instruction starts there.
    fn new(code: &'c [u8], offset: u64) -> Option<Self> {
        if !offset.is_multiple_of(4) {
            return None;
        }
        let (code, _) = code.as_chunks();
        let index = usize::try_from(offset / 4).ok()?;
        (index < code.len()).then_some(Self { code, index })
    }

    fn word(&self, index: usize) -> Option<u32> {
        self.code.get(index).map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn effect(&self, index: usize) -> Option<Effect> {
        self.word(index).map(Effect::decode)
    }

    /// What the instructions just before the position have done. Looks back as long as they may be part of a prologue,
    /// but not over more than [`MAX_PROLOGUE`] instructions.
    fn prologue(&self) -> Prologue {
        let mut prologue = Prologue { lowered: 0, saved_link: false };
        for index in (self.index.saturating_sub(MAX_PROLOGUE)..self.index).rev() {
            match self.effect(index) {
                Some(Effect::Other) => {}
                Some(Effect::MovesStack(by)) if by < 0 => prologue.lowered -= by,
                // Here, a positive number lowers the stack pointer.
                Some(Effect::SavesLink(by)) => {
                    prologue.lowered += by;
                    prologue.saved_link = true;
                }
                // Anything else isn't part of a prologue, such as an instruction that raises the stack pointer.
                _ => break,
            }
        }
        prologue
    }

    /// The stage of a function whose link register still holds the return address. If a prologue has begun, it may have
    /// lowered the stack pointer already.
    fn stage_in_prologue(&self) -> Stage {
        Stage::in_link(Some(self.prologue().lowered))
    }

    /// True inside a prologue that has saved the link register and sets `x29` next. Then `x29` doesn't point to the
    /// frame of this function yet.
    fn is_half_framed(&self) -> bool {
        let end = self.code.len().min(self.index + MAX_PROLOGUE);
        let mut effects = (self.index..end).map_while(|index| self.effect(index));
        effects.find(|effect| *effect != Effect::Other) == Some(Effect::MakesFrame) && self.prologue().saved_link
    }

    /// How much of its frame the function has set up. Follows all paths from this position. Each ends where it saves
    /// the link register, returns to the address in it, may change it or `x29`, or calls or leaves. If any path ends in
    /// such a change, the function counts as having its frame, whatever the other paths do. Otherwise, one path that
    /// saves the link register or returns is enough: the register holds the return address now. If there is no such
    /// path either, the function counts as having its frame.
    fn stage(&self) -> Stage {
        if self.is_half_framed() {
            return self.stage_in_prologue();
        }
        // The paths that are still to be followed: the index of the next instruction, and how many bytes the stack
        // pointer has been raised on the way from this position (`None` if unknown). When a function returns, its stack
        // pointer is the caller's again. So if a path raises it by 32 bytes before it returns, the stack pointer is 32
        // bytes below the caller's at this position.
        let mut paths = vec![(self.index, Some(0))];
        let mut visited = Vec::new();
        // The stage according to the first path that proves that the return address is in the link register; `None`
        // until there is one.
        let mut stage_in_link = None;
        while let Some((index, raised)) = paths.pop() {
            if visited.len() >= MAX_AHEAD || visited.contains(&index) {
                continue;
            }
            visited.push(index);
            let jump = |distance: i64| Some((index.checked_add_signed(isize::try_from(distance).ok()?)?, raised));
            match self.effect(index) {
                Some(Effect::Returns) => _ = stage_in_link.get_or_insert(Stage::in_link(raised)),
                // The link register is saved further ahead, so this position is in the prologue. The instructions
                // before it show how far the prologue has already lowered the stack pointer.
                Some(Effect::SavesLink(_)) => _ = stage_in_link.get_or_insert_with(|| self.stage_in_prologue()),
                Some(Effect::MakesFrame | Effect::Changes) => return Stage::Framed,
                Some(Effect::MovesStack(by)) => paths.push((index + 1, raised.map(|sum| sum + by))),
                Some(Effect::SetsStack) => paths.push((index + 1, None)),
                Some(Effect::Other) => paths.push((index + 1, raised)),
                Some(Effect::Jumps(distance)) => paths.extend(jump(distance)),
                Some(Effect::Branches(distance)) => {
                    paths.extend(jump(distance));
                    paths.push((index + 1, raised));
                }
                // The path ends here: after a call, the link register has another value. At `None`, the known code
                // ends.
                Some(Effect::Leaves) | None => {}
            }
        }
        stage_in_link.unwrap_or(Stage::Framed)
    }

    /// True inside a PLT stub: `[bti c]; adrp x16; ldr x17, [x16, #n]; add x16, x16, #n; [autia1716]; br x17`. A stub
    /// changes only `x16` and `x17`.
    fn is_in_stub(&self) -> bool {
        // The position may be a few instructions after the stub's `adrp`, or at the `bti` before it.
        let candidates = (self.index.saturating_sub(5)..=self.index + 1).rev();
        let mut stubs = candidates.filter_map(|adrp| self.stub_range(adrp));
        stubs.any(|stub| stub.contains(&self.index))
    }

    /// The indices of all instructions of the PLT stub that has its `adrp` at this index. `None` if there is no such
    /// stub.
    fn stub_range(&self, adrp: usize) -> Option<RangeInclusive<usize>> {
        const BTI_C: u32 = 0xd503_245f;
        const AUTIA1716: u32 = 0xd503_219f;
        // A stub has `adrp x16; ldr x17, [x16, #n]; add x16, x16, #n`, perhaps `autia1716`, and a jump.
        let is_stub = self.word(adrp)? & 0x9f00_001f == 0x9000_0010
            && self.word(adrp + 1)? & 0xffc0_03ff == 0xf940_0211
            && self.word(adrp + 2)? & 0xffc0_03ff == 0x9100_0210;
        let jump = if self.word(adrp + 3)? == AUTIA1716 { adrp + 4 } else { adrp + 3 };
        // The jump is `br x17`, or `braa x17, x16`, which also checks a signature.
        if !is_stub || !matches!(self.word(jump)?, 0xd61f_0220 | 0xd71f_0a30) {
            return None;
        }
        let has_bti = adrp > 0 && self.word(adrp - 1) == Some(BTI_C);
        let start = if has_bti { adrp - 1 } else { adrp };
        Some(start..=jump)
    }
}

/// How far a function of JIT code has set up its stack frame before the instruction at `offset`, judging by the
/// instructions.
pub(crate) fn stage_aarch64(code: &[u8], offset: u64) -> Stage {
    match Position::new(code, offset) {
        Some(position) => position.stage(),
        None => Stage::Framed,
    }
}

/// Like [`stage_aarch64`], for code in a file, which may also be a PLT stub. A stub has no stack frame.
pub(crate) fn stage_in_file(code: &[u8], offset: u64) -> Stage {
    match Position::new(code, offset) {
        Some(position) if position.is_in_stub() => position.stage_in_prologue(),
        Some(position) => position.stage(),
        None => Stage::Framed,
    }
}

/// Like [`stage_in_file`], but only recognizes the inside of a prologue: code that has saved the link register and
/// hasn't set `x29` yet. All other code counts as having its frame. Used where call frame information tells the rest.
pub(crate) fn stage_if_half_framed(code: &[u8], offset: u64) -> Stage {
    match Position::new(code, offset) {
        Some(position) if position.is_half_framed() => position.stage_in_prologue(),
        _ => Stage::Framed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(words: &[u32], stage: fn(&[u8], u64) -> Stage) -> Vec<Stage> {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        (0..words.len() as u64).map(|at| stage(&code, at * 4)).collect()
    }

    fn in_link(lowered: i64) -> Stage {
        Stage::in_link(Some(lowered))
    }

    #[test]
    fn a_function_with_a_frame() {
        // The code: sub sp, sp, #32; stp x29, x30, [sp, #16]; add x29, sp, #16; bl; ldp x29, x30, [sp, #16]; add sp,
        // sp, #32; ret
        let java = [0xd100_83ff, 0xa901_7bfd, 0x9100_43fd, 0x9400_0010, 0xa941_7bfd, 0x9100_83ff, 0xd65f_03c0];
        let framed = Stage::Framed;
        let expected = [in_link(0), in_link(32), in_link(32), framed, framed, in_link(32), in_link(0)];
        assert_eq!(stages(&java, stage_aarch64), expected);
        // The code: paciasp; stp x29, x30, [sp, #-16]!; mov x29, sp; nop; ldp x29, x30, [sp], #16; autiasp; ret
        let signed = [0xd503_233f, 0xa9bf_7bfd, 0x9100_03fd, 0xd503_201f, 0xa8c1_7bfd, 0xd503_23bf, 0xd65f_03c0];
        let expected = [in_link(0), in_link(0), in_link(16), framed, framed, in_link(0), in_link(0)];
        assert_eq!(stages(&signed, stage_aarch64), expected);
    }

    #[test]
    fn a_leaf_that_loops_and_one_that_cannot_be_reported() {
        // The code: mul x0, x0, x1; subs w2, w2, #1; b.ne; ret
        let leaf = [0x9b01_7c00, 0x7100_0442, 0x54ff_ffc1, 0xd65f_03c0];
        assert_eq!(stages(&leaf, stage_aarch64), [in_link(0); 4]);
        // V8's check whether code was deoptimized: tbz w16, #0, over; ldr x17; br x17; stp x29, x30, [sp, #-16]!
        let entry = [0x3600_0070, 0x5800_0011, 0xd61f_0220, 0xa9bf_7bfd];
        assert_eq!(stages(&entry, stage_aarch64), [in_link(0), Stage::Framed, Stage::Framed, in_link(0)]);
        // An interpreter's jump to its next handler: nop; br x3. Below: mov x30, x1; ret
        assert_eq!(stages(&[0xd503_201f, 0xd61f_0060], stage_aarch64), [Stage::Framed; 2]);
        assert_eq!(stages(&[0xaa01_03fe, 0xd65f_03c0], stage_aarch64), [Stage::Framed, in_link(0)]);
        // The code: mov x29, sp without saving the link register first; b to itself; ldr x30, [x20], #8
        assert_eq!(stages(&[0x9100_03fd, 0x1400_0000, 0xf840_869e], stage_aarch64), [Stage::Framed; 3]);
        assert_eq!(stage_aarch64(&[0; 3], 0), Stage::Framed);
        assert_eq!(stage_aarch64(&[0xc0, 3, 0x5f, 0xd6], 2), Stage::Framed);
    }

    #[test]
    fn stubs_of_files_only() {
        // The code: bti c; adrp x16; ldr x17, [x16, #8]; add x16, x16, #8; br x17; nop
        let stub = [0xd503_245f, 0x9000_0110, 0xf940_0611, 0x9100_2210, 0xd61f_0220, 0xd503_201f];
        let found = stages(&stub, stage_in_file);
        assert_eq!(found[..5], [in_link(0); 5]);
        assert_eq!(found[5], Stage::Framed);
        assert_eq!(stages(&stub, stage_aarch64), [Stage::Framed; 6]);
        // The PLT's first stub begins with stp x16, x30, [sp, #-16]!
        let first = [0xa9bf_7bf0, 0x9000_0110, 0xf940_0611, 0x9100_2210, 0xd61f_0220];
        assert_eq!(stages(&first, stage_in_file), [in_link(0), in_link(16), in_link(16), in_link(16), in_link(16)]);
    }
}
