//! A disassembled instruction.

/// The assembler syntax in which instructions are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Syntax {
    /// AT&T: source first, `%` before registers. This is what perf and objdump show.
    #[default]
    Att,
    /// Intel: destination first.
    Intel,
}

/// One instruction, or bytes that aren't an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The distance of the instruction from the start of the code, in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub len: u64,
    /// The instruction in objdump's spelling. For a direct branch, it ends with the target address.
    pub text: String,
    /// The address to which the instruction refers, such as the target of a branch or load. `None` if it refers to
    /// none.
    pub target: Option<Target>,
}

/// An address to which an instruction refers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The address in memory, if the code runs at the address that was given to the disassembler. For an immediate, the
    /// number itself.
    pub addr: u64,
    /// What the instruction does with the address.
    pub kind: TargetKind,
}

/// What an instruction does with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// A jump to the address, always or conditionally.
    Jump,
    /// A call of the function at the address.
    Call,
    /// Memory at a fixed distance from the instruction, which the instruction reads or writes, or whose address it
    /// computes.
    Memory,
    /// A 64-bit number in the instruction. It may be an address that another instruction calls or reads.
    Immediate,
}
