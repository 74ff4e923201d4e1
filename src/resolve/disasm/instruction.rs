//! The syntax of a code range.

/// The way operands are spelled.
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
    /// Its text, spelled as objdump does. The address of a direct branch is at its end.
    pub text: String,
    /// The address that it names: the target of a branch or of a load.
    pub target: Option<Target>,
}

/// An address in an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The address, where the code is at the address that it was decoded for.
    pub addr: u64,
    /// Its target.
    pub kind: TargetKind,
}

/// The use that an instruction makes of an address.
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
