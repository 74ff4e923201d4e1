//! Reads bit fields of instructions, and formats bytes that aren't instructions.

use super::instruction::Instruction;
use std::fmt::Write;

/// How many bytes of undecoded code are shown on a line. Machines whose instructions all have the same size usually
/// have 4 bytes per instruction.
const BYTES_PER_LINE: usize = 4;

/// Returns `count` bits of a word; `low` is the number of the lowest one.
pub(super) fn bits(word: u32, low: u32, count: u32) -> u32 {
    (word >> low) & ((1 << count) - 1)
}

/// Returns `count` bits of a word as a signed number; `low` is the number of the lowest bit.
pub(super) fn signed_bits(word: u32, low: u32, count: u32) -> i64 {
    i64::from((bits(word, low, count) << (32 - count)) as i32 >> (32 - count))
}

/// Presents code of an unsupported machine as hexadecimal bytes, [`BYTES_PER_LINE`] bytes per line.
pub(super) fn mark_undecoded(code: &[u8]) -> Vec<Instruction> {
    let mut lines = Vec::new();
    for (number, bytes) in code.chunks(BYTES_PER_LINE).enumerate() {
        lines.push(Instruction {
            offset: (number * BYTES_PER_LINE) as u64,
            len: bytes.len() as u64,
            text: bytes_text(bytes),
            target: None,
        });
    }
    lines
}

/// Formats data bytes, for example as `.byte  0x12,0x34`.
pub(super) fn bytes_text(bytes: &[u8]) -> String {
    let mut text = String::from(".byte  ");
    for (index, byte) in bytes.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{byte:#04x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::symbolize::disasm::{Disassembler, Syntax};

    #[test]
    fn code_of_unknown_machines_is_reported_in_bytes() {
        let mut disassembler = Disassembler::new(0xffff, Syntax::Att);
        assert!(!disassembler.is_known());
        let lines = disassembler.decode(&[0x12, 0, 0xff, 4, 5], 0x1000);
        let texts: Vec<_> = lines.iter().map(|line| (line.offset, line.len, &line.text[..])).collect();
        assert_eq!(texts, [(0, 4, ".byte  0x12,0x00,0xff,0x04"), (4, 1, ".byte  0x05")]);
    }
}
