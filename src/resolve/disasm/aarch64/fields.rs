//! The fields of an instruction.

/// The bits of a word from `low` on, `count` of them.
pub(super) fn bits(word: u32, low: u32, count: u32) -> u32 {
    (word >> low) & ((1 << count) - 1)
}

/// The same as a number with a sign.
pub(super) fn signed(word: u32, low: u32, count: u32) -> i64 {
    i64::from((bits(word, low, count) << (32 - count)) as i32 >> (32 - count))
}
