//! Disassembles AArch64 code with yaxpeax-arm, in objdump's spelling.
//!
//! The library spells numbers and some aliases differently, so `spelling.rs` rewrites its text. `system.rs` formats the
//! few instructions for which the library's text is incomplete or wrong.

mod reserved;
mod spelling;
mod system;

use super::fields::{bits, bytes_text, signed_bits};
use super::instruction::{Instruction, Target, TargetKind};
use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::InstDecoder;

/// Every AArch64 instruction has this many bytes.
const LENGTH: usize = 4;

/// The decoder for AArch64 code.
#[derive(Debug, Default)]
pub struct Aarch64 {
    decoder: InstDecoder,
}

impl Aarch64 {
    pub(super) fn decode(&self, code: &[u8], addr: u64) -> Vec<Instruction> {
        let chunks = code.chunks(LENGTH).enumerate();
        chunks.map(|(index, bytes)| self.instruction((index * LENGTH) as u64, bytes, addr)).collect()
    }

    /// Decodes one instruction. `addr` is the address of the code, `offset` the instruction's distance from its start.
    /// `bytes` are the four bytes of the instruction. At the end of the code, they may be fewer; then they are shown as
    /// data.
    fn instruction(&self, offset: u64, bytes: &[u8], addr: u64) -> Instruction {
        let len = bytes.len() as u64;
        let Ok(bytes) = <[u8; LENGTH]>::try_from(bytes) else {
            return Instruction { offset, len, text: bytes_text(bytes), target: None };
        };
        let word = u32::from_le_bytes(bytes);
        let target = target(word, addr.wrapping_add(offset));
        let text = system::instruction(word).or_else(|| self.library_text(word, &bytes, target));
        // objdump shows `.inst` for words that are not a known instruction.
        let text = text.unwrap_or_else(|| format!(".inst  {word:#010x}"));
        Instruction { offset, len, text, target }
    }

    /// The text of an instruction in objdump's spelling. `word` and `bytes` are both the instruction, as a number and
    /// as it is in memory. `None` if it isn't a valid instruction, or not one that the library knows.
    fn library_text(&self, word: u32, bytes: &[u8], target: Option<Target>) -> Option<String> {
        if reserved::is_reserved(word) {
            return None;
        }
        let text = self.decoder.decode(&mut U8Reader::new(bytes)).ok()?.to_string();
        // The library reports some invalid instructions only in its text.
        if text.starts_with("invalid") {
            return None;
        }
        Some(spelling::respell(&text, word, target.map(|target| target.addr)))
    }
}

/// The address to which the instruction `word` at `addr` refers: the target of a direct branch, or an operand relative
/// to the instruction. `None` for other instructions.
fn target(word: u32, addr: u64) -> Option<Target> {
    let (kind, distance) = match word {
        _ if bits(word, 26, 6) == 0b00_0101 => (TargetKind::Jump, signed_bits(word, 0, 26) * 4), // b
        _ if bits(word, 26, 6) == 0b10_0101 => (TargetKind::Call, signed_bits(word, 0, 26) * 4), // bl
        _ if bits(word, 24, 8) == 0b0101_0100 => (TargetKind::Jump, signed_bits(word, 5, 19) * 4), // b.cond
        _ if bits(word, 25, 6) == 0b01_1010 => (TargetKind::Jump, signed_bits(word, 5, 19) * 4), // cbz, cbnz
        _ if bits(word, 25, 6) == 0b01_1011 => (TargetKind::Jump, signed_bits(word, 5, 14) * 4), // tbz, tbnz
        _ if bits(word, 27, 3) == 0b011 && bits(word, 24, 2) == 0 => (TargetKind::Memory, signed_bits(word, 5, 19) * 4), // ldr
        _ if bits(word, 24, 5) == 0b1_0000 => return Some(computed_address(word, addr)), // adr, adrp
        _ => return None,
    };
    Some(Target { addr: addr.wrapping_add_signed(distance), kind })
}

/// What `adr` or `adrp` at `addr` computes: the address of a byte, or of a 4 KiB page.
fn computed_address(word: u32, addr: u64) -> Target {
    let distance = signed_bits(word, 5, 19) << 2 | i64::from(bits(word, 29, 2));
    let is_page = bits(word, 31, 1) == 1;
    // adrp counts pages, from the page that contains the instruction.
    let (base, distance) = if is_page { (addr & !0xfff, distance << 12) } else { (addr, distance) };
    Target { addr: base.wrapping_add_signed(distance), kind: TargetKind::Memory }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::abi::EM_AARCH64;
    use crate::symbolize::disasm::{Disassembler, Syntax};

    fn text(word: u32) -> String {
        let lines = Disassembler::new(EM_AARCH64, Syntax::Att).decode(&word.to_le_bytes(), 0x27400);
        assert_eq!((lines.len(), lines[0].len), (1, 4));
        lines[0].text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Instructions as words, and the text that objdump (binutils 2.40) shows for each.
    const KNOWN: &[(u32, &str)] = &[
        (0xaa15_03e2, "mov x2, x21"),
        (0xf947_3400, "ldr x0, [x0, #3688]"),
        (0xa9be_7bfd, "stp x29, x30, [sp, #-32]!"),
        (0xa8c2_7bfd, "ldp x29, x30, [sp], #32"),
        (0x3100_041f, "cmn w0, #0x1"),
        (0x72a0_0de1, "movk w1, #0x6f, lsl #16"),
        (0xd37c_ef39, "lsl x25, x25, #4"),
        (0x1400_0003, "b 2740c"),
        (0x9400_3492, "bl 34648"),
        (0x54ff_ffa2, "b.cs 273f4"),
        (0x3400_01c6, "cbz w6, 27438"),
        (0x36ff_fe60, "tbz w0, #31, 273cc"),
        (0xd000_0bd3, "adrp x19, 1a1000"),
        (0x1a81_2013, "csel w19, w0, w1, cs"),
        (0x7a40_2300, "ccmp w24, w0, #0x0, cs"),
        (0x3876_c821, "ldrb w1, [x1, w22, sxtw]"),
        (0x8b3b_4ebb, "add x27, x21, w27, uxtw #3"),
        (0xeb22_42bf, "cmp x21, w2, uxtw"),
        (0x8b22_63e0, "add x0, sp, x2"),
        (0xd53b_4401, "mrs x1, fpcr"),
        (0xd51b_4415, "msr fpcr, x21"),
        (0xd53b_d040, "mrs x0, tpidr_el0"),
        (0xd503_245f, "bti c"),
        (0xd503_201f, "nop"),
        (0xd50b_7423, "dc zva, x3"),
        (0xd50b_7521, "ic ivau, x1"),
        (0x4e20_9801, "cmeq v1.16b, v0.16b, #0"),
        (0x1e6e_1001, "fmov d1, #1.000000000000000000e+00"),
        (0x4e08_0400, "dup v0.2d, v0.d[0]"),
        (0x2f20_a400, "uxtl v0.2d, v0.2s"),
        (0x1e18_c003, "fcvtzs w3, s0, #16"),
        (0, "udf #0"),
        (0xd65f_03c0, "ret"),
        (0xe400_e000, ".inst 0xe400e000"),
        // These words have reserved values in some field.
        (0xed84_e91e, ".inst 0xed84e91e"),
        (0xb2f1_4c94, ".inst 0xb2f14c94"),
        (0x52e6_b438, ".inst 0x52e6b438"),
        (0x524f_853f, ".inst 0x524f853f"),
        (0x6aa8_b9e0, ".inst 0x6aa8b9e0"),
        (0x0aaa_af81, ".inst 0x0aaaaf81"),
        (0xeb25_f8a1, ".inst 0xeb25f8a1"),
        (0x0b2f_59b5, ".inst 0x0b2f59b5"),
        (0x9aa9_d600, ".inst 0x9aa9d600"),
    ];

    #[test]
    fn instructions_are_spelled_as_objdump_spells_them() {
        let wrong: Vec<_> =
            KNOWN.iter().map(|(word, known)| (text(*word), *known)).filter(|(own, known)| own != known).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn addresses_in_instructions_are_those_of_the_place_where_the_code_lies() {
        let at = |word| target(word, 0x7f00_0000_0ffc).map(|target| (target.addr, target.kind));
        assert_eq!(at(0x97ff_ffff), Some((0x7f00_0000_0ff8, TargetKind::Call)));
        assert_eq!(at(0x5400_0020), Some((0x7f00_0000_1000, TargetKind::Jump)));
        assert_eq!(at(0x3000_0000), Some((0x7f00_0000_0ffd, TargetKind::Memory)));
        assert_eq!(at(0xb000_0000), Some((0x7f00_0000_1000, TargetKind::Memory)));
        assert_eq!(at(0xd503_201f), None);
    }

    #[test]
    fn bytes_behind_the_last_whole_instruction_are_reported_as_such() {
        let lines = Disassembler::new(EM_AARCH64, Syntax::Att).decode(&[0x1f, 0x20, 3, 0xd5, 7, 8], 0);
        let told: Vec<_> = lines.iter().map(|line| (line.offset, line.len, line.text.trim())).collect();
        assert_eq!(told, [(0, 4, "nop"), (4, 2, ".byte  0x07,0x08")]);
    }
}
