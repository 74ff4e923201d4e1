//! Machine code → instructions: where each begins, what it says, which addresses it names.
//!
//! The bytes are strangers': a dump may hold anything, so they go through libraries without `unsafe` contracts of
//! ours, and what is no instruction is told byte by byte (`.byte`), as by objdump, which goes on at the next one.

mod unknown;
mod x86;

use crate::model::abi::{EM_386, EM_X86_64};

/// How operands are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Syntax {
    /// Source first, `%` before registers: what perf and objdump show.
    #[default]
    Att,
    /// Destination first.
    Intel,
}

/// One instruction, or a byte that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes from the start of the code.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// What it says, spelled as objdump does. The address of a direct branch stands at its end.
    pub text: String,
    /// The address that it names: of a branch, or of what it loads.
    pub target: Option<Target>,
}

/// An address in an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The address, where the code is at the address that it was decoded for.
    pub addr: u64,
    /// What becomes of it.
    pub kind: TargetKind,
}

/// What an instruction does with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// Goes on there, always or on a condition.
    Jump,
    /// Calls what is there.
    Call,
    /// Reads, writes or computes it, relative to the instruction itself.
    Memory,
    /// Has it as a number of 64 bits, to be called or read by another instruction.
    Immediate,
}

/// Decodes the code of one machine.
#[derive(Debug)]
pub enum Disassembler {
    /// x86, of 64 or 32 bits.
    X86(x86::X86),
    /// Any other: its bytes are shown as they are.
    Unknown,
}

impl Disassembler {
    /// For a machine by its `e_machine`.
    pub fn new(machine: u16, syntax: Syntax) -> Self {
        match machine {
            EM_X86_64 => Self::X86(x86::X86::new(64, syntax)),
            EM_386 => Self::X86(x86::X86::new(32, syntax)),
            _ => Self::Unknown,
        }
    }

    /// Whether it tells more than bytes.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// The instructions of a piece of code that lies at `addr`. Together they are all of its bytes, in order.
    pub fn decode(&mut self, code: &[u8], addr: u64) -> Vec<Instruction> {
        match self {
            Self::X86(x86) => x86.decode(code, addr),
            Self::Unknown => unknown::decode(code),
        }
    }
}
