//! A disassembled instruction.

/// The assembler syntax of operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Syntax {
    /// AT&T: source first, `%` before registers. This is what perf and objdump show.
    #[default]
    Att,
    /// Intel: destination first.
    Intel,
}

/// One instruction, or bytes that aren't one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The distance from the start of the code, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// The text, in objdump's spelling. The address of a direct branch is at the end.
    pub text: String,
    /// The address that the instruction refers to: the target of a branch, or of a load.
    pub target: Option<Target>,
}

/// An address in an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The address, based on where the code runs.
    pub addr: u64,
    /// How the instruction uses the address.
    pub kind: TargetKind,
}

/// How an instruction uses an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// Jumps to it, always or conditionally.
    Jump,
    /// Calls it.
    Call,
    /// Reads, writes or computes it, relative to the instruction itself.
    Memory,
    /// Contains it as a 64-bit immediate, which another instruction may call or read.
    Immediate,
}
