//! Machine code → instructions: where each begins, what it states, which addresses it names.
//!
//! The bytes are strangers': a dump may hold anything, so they go through libraries without `unsafe` contracts of ours,
//! and what is not an instruction is reported byte by byte (`.byte`), as by objdump, which goes on at the next one.

mod aarch64;
mod arm;
mod fields;
mod instruction;
mod x86;

pub use instruction::{Instruction, Syntax, Target, TargetKind};

use super::symbols::code_kinds::{CodeKind, code_kinds};
use super::symbols::image::Image;
use crate::model::abi::{EM_386, EM_AARCH64, EM_ARM, EM_X86_64};

/// Decodes the code of one machine.
#[derive(Debug)]
pub enum Disassembler {
    /// x86, of 64 or 32 bits.
    X86(x86::X86),
    /// Arm, of 64 bits.
    Aarch64(aarch64::Aarch64),
    /// Arm, of 32 bits: instructions of Arm or of Thumb, or numbers among them.
    Arm(arm::Arm),
    /// Any other: its bytes are shown as they are.
    Unknown,
}

impl Disassembler {
    /// For a machine by its `e_machine`.
    pub fn new(machine: u16, syntax: Syntax) -> Self {
        match machine {
            EM_X86_64 => Self::X86(x86::X86::new(64, syntax)),
            EM_386 => Self::X86(x86::X86::new(32, syntax)),
            EM_AARCH64 => Self::Aarch64(aarch64::Aarch64::default()),
            EM_ARM => Self::Arm(arm::Arm::new(CodeKind::Code)),
            _ => Self::Unknown,
        }
    }

    /// True if it gives more than bytes.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// The instructions of a code range that lies at `addr`. Together they are all of its bytes, in order.
    pub fn decode(&mut self, code: &[u8], addr: u64) -> Vec<Instruction> {
        match self {
            Self::X86(x86) => x86.decode(code, addr),
            Self::Aarch64(aarch64) => aarch64.decode(code, addr),
            Self::Arm(arm) => arm.decode(code, addr),
            Self::Unknown => fields::undecoded(code),
        }
    }

    /// The instructions of code of a file that is linked for `addr`.
    pub fn decode_file(image: &Image, syntax: Syntax, code: &[u8], addr: u64) -> Vec<Instruction> {
        let machine = image.machine();
        if !matches!(machine, EM_ARM | EM_AARCH64) {
            return Self::new(machine, syntax).decode(code, addr);
        }
        let mut instructions = Vec::new();
        for (range, kind) in code_kinds(image, addr..addr.saturating_add(code.len() as u64)) {
            let (from, to) = ((range.start - addr) as usize, (range.end - addr) as usize);
            let mut decoder = match (machine, kind) {
                (EM_AARCH64, CodeKind::Code | CodeKind::Thumb) => Self::new(machine, syntax),
                _ => Self::Arm(arm::Arm::new(kind)),
            };
            let part = decoder.decode(&code[from..to], range.start).into_iter();
            let placed = |part: Instruction| Instruction { offset: part.offset + from as u64, ..part };
            instructions.extend(part.map(placed));
        }
        instructions
    }
}
