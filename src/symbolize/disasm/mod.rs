//! Disassembles machine code: where each instruction starts, its text, and the address to which it refers.
//!
//! Code comes from untrusted files, and a dump may contain anything. It is therefore decoded by libraries, without
//! `unsafe` code of ours. Bytes that aren't an instruction are shown one by one as `.byte`, and decoding resumes after
//! them, as in objdump.

mod aarch64;
mod arm;
mod fields;
mod instruction;
mod x86;

pub use instruction::{Instruction, Syntax, Target, TargetKind};

use super::symbols::code_kinds::{CodeKind, code_kinds};
use super::symbols::image::Image;
use crate::model::abi::{EM_386, EM_AARCH64, EM_ARM, EM_X86_64};

/// The decoder for the code of one instruction set.
#[derive(Debug)]
pub enum Disassembler {
    /// 64-bit or 32-bit x86.
    X86(x86::X86),
    /// 64-bit Arm.
    Aarch64(aarch64::Aarch64),
    /// 32-bit Arm: Arm instructions, Thumb instructions, or data between them.
    Arm(arm::Arm),
    /// Any other machine. Its code is shown as bytes only.
    Unknown,
}

impl Disassembler {
    /// Selects the decoder for the ELF machine number `e_machine`.
    pub fn new(machine: u16, syntax: Syntax) -> Self {
        match machine {
            EM_X86_64 => Self::X86(x86::X86::new(64, syntax)),
            EM_386 => Self::X86(x86::X86::new(32, syntax)),
            EM_AARCH64 => Self::Aarch64(aarch64::Aarch64::default()),
            EM_ARM => Self::Arm(arm::Arm::new(CodeKind::Code)),
            _ => Self::Unknown,
        }
    }

    /// True if the machine's instructions can be decoded. Otherwise code is only shown as bytes.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// Disassembles code that runs at `addr`. Together, the results cover all bytes, in order.
    pub fn decode(&mut self, code: &[u8], addr: u64) -> Vec<Instruction> {
        match self {
            Self::X86(x86) => x86.decode(code, addr),
            Self::Aarch64(aarch64) => aarch64.decode(code, addr),
            Self::Arm(arm) => arm.decode(code, addr),
            Self::Unknown => fields::mark_undecoded(code),
        }
    }

    /// Disassembles `code`, a part of the file `image`. `addr` is the address that the file gives to the code, before
    /// the file is loaded. On 32-bit and 64-bit Arm, symbols in the file tell which parts are Arm code, Thumb code or
    /// data.
    pub fn decode_file(image: &Image, syntax: Syntax, code: &[u8], addr: u64) -> Vec<Instruction> {
        let machine = image.machine();
        if !matches!(machine, EM_ARM | EM_AARCH64) {
            return Self::new(machine, syntax).decode(code, addr);
        }
        let mut instructions = Vec::new();
        for (range, kind) in code_kinds(image, addr..addr.saturating_add(code.len() as u64)) {
            let (start, end) = ((range.start - addr) as usize, (range.end - addr) as usize);
            // The 32-bit decoder shows data as words, so it is used for data on 64-bit Arm, too. There is no Thumb code
            // on 64-bit Arm, so a part that a symbol marks as Thumb is decoded like any other code.
            let mut decoder = match (machine, kind) {
                (EM_AARCH64, CodeKind::Code | CodeKind::Thumb) => Self::new(machine, syntax),
                _ => Self::Arm(arm::Arm::new(kind)),
            };
            for mut instruction in decoder.decode(&code[start..end], range.start) {
                // The decoder's offsets count from the start of this part. The caller needs them from the start of
                // `code`.
                instruction.offset += start as u64;
                instructions.push(instruction);
            }
        }
        instructions
    }
}
