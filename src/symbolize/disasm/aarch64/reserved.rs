//! Recognizes words that look like an instruction but have a reserved value in some field. yaxpeax-arm doesn't check
//! these fields.
//!
//! Spec: Arm A64 instruction set (DDI 0602), "Data Processing -- Immediate", "Data Processing -- Register".

use super::super::fields::bits;

/// True if a word has the form of an instruction but isn't valid, because one of its fields has a reserved value.
pub(super) fn is_reserved(word: u32) -> bool {
    let is_32_bit = bits(word, 31, 1) == 0;
    // 32-bit instructions can't shift by 32 or more. The amount is in bits 10 to 15.
    let is_shift_too_large = is_32_bit && bits(word, 15, 1) == 1;
    match bits(word, 24, 5) {
        // Logical operations with a shifted register.
        0b0_1010 => is_shift_too_large,
        // Add and sub with a shifted register: the kind of shift is reserved, or the shift is too large.
        0b0_1011 if bits(word, 21, 1) == 0 => bits(word, 22, 2) == 3 || is_shift_too_large,
        // Add and sub with an extended register: bits that must be 0, and a shift, which is at most 4.
        0b0_1011 => bits(word, 22, 2) != 0 || bits(word, 10, 3) > 4,
        // Logical operations with an immediate: a pattern of 64 bits in a 32-bit instruction, or an invalid pattern.
        0b1_0010 if bits(word, 23, 1) == 0 => (is_32_bit && bits(word, 22, 1) == 1) || is_no_pattern(word),
        // movn, movz, movk: the shift is too large, or the opcode is reserved.
        0b1_0010 => (is_32_bit && bits(word, 22, 1) == 1) || bits(word, 29, 2) == 1,
        // sbfm, bfm, ubfm: two bits for the register size that must be equal, a reserved opcode, or bit numbers (in
        // bits 16 to 21 and 10 to 15) that are too large for a 32-bit register.
        0b1_0011 if bits(word, 23, 1) == 0 => {
            bits(word, 22, 1) != bits(word, 31, 1)
                || bits(word, 29, 2) == 3
                || (is_32_bit && bits(word, 21, 1) == 1)
                || is_shift_too_large
        }
        // Conditional select, conditional compare, and operations on one or two registers. Bit 21 must be 0 in all of
        // them; a conditional select has two more such bits.
        0b1_1010 => {
            let is_conditional_select = bits(word, 21, 3) == 0b100;
            let has_select_bit = bits(word, 29, 1) == 1 || bits(word, 11, 1) == 1;
            bits(word, 21, 1) == 1 || (is_conditional_select && has_select_bit)
        }
        _ => false,
    }
}

/// True if the immediate of a logical instruction is invalid. Such an immediate repeats a pattern of 2, 4, … or 64 bits
/// that has a run of ones. It is invalid if its fields give no size, or if all bits of the pattern would be ones.
fn is_no_pattern(word: u32) -> bool {
    let ones = bits(word, 10, 6);
    // The highest bit that is set here gives the size of the pattern: bit n means 2^n bits.
    let size_bits = bits(word, 22, 1) << 6 | !ones & 0x3f;
    let Some(size_log2) = size_bits.checked_ilog2().filter(|&log2| log2 > 0) else { return true };
    // The pattern has one more 1 than the lower bits of `ones` say. With this value, all bits would be 1.
    let all_ones = (1 << size_log2) - 1;
    ones & all_ones == all_ones
}
