//! Recognizes words that look like an instruction but have a reserved value in some field. yaxpeax-arm doesn't check
//! these fields.
//!
//! Spec: Arm A64 instruction set (DDI 0602), "Data Processing -- Immediate", "Data Processing -- Register".

use super::super::fields::bits;

/// True if a word has the form of an instruction but isn't valid, because one of its fields has a reserved value.
pub(super) fn is_reserved(word: u32) -> bool {
    let (wide, shift_of_32) = (bits(word, 31, 1) == 1, bits(word, 15, 1) == 1);
    match bits(word, 24, 5) {
        // Logical operations with a shifted register; the two lines below: add and sub with a shifted or an extended
        // register.
        0b0_1010 => !wide && shift_of_32,
        0b0_1011 if bits(word, 21, 1) == 0 => bits(word, 22, 2) == 3 || !wide && shift_of_32,
        0b0_1011 => bits(word, 22, 2) != 0 || bits(word, 10, 3) > 4,
        // Logical operations with an immediate.
        0b1_0010 if bits(word, 23, 1) == 0 => !wide && bits(word, 22, 1) == 1 || is_no_pattern(word),
        // movn, movz, movk: the shift is too large, or the opcode is reserved.
        0b1_0010 => !wide && bits(word, 22, 1) == 1 || bits(word, 29, 2) == 1,
        // sbfm, bfm, ubfm
        0b1_0011 if bits(word, 23, 1) == 0 => {
            bits(word, 22, 1) != bits(word, 31, 1)
                || bits(word, 29, 2) == 3
                || !wide && (bits(word, 21, 1) == 1 || shift_of_32)
        }
        // Conditional select, conditional compare, and operations on one or two registers.
        0b1_1010 => {
            let is_choice = bits(word, 21, 3) == 0b100;
            bits(word, 21, 1) == 1 || is_choice && (bits(word, 29, 1) == 1 || bits(word, 11, 1) == 1)
        }
        _ => false,
    }
}

/// True if the immediate of a logical instruction is invalid, because all bits of its repeated pattern would be ones.
fn is_no_pattern(word: u32) -> bool {
    let (ones, element) = (bits(word, 10, 6), bits(word, 22, 1) << 6 | !bits(word, 10, 6) & 0x3f);
    let Some(len) = element.checked_ilog2().filter(|&len| len > 0) else { return true };
    let all = (1 << len) - 1;
    ones & all == all
}
