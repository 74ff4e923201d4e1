//! What a piece of code is told in.

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
