//! The registers of one frame, by DWARF number, each known or not.

/// Register numbers of DWARF for x86-64 (psABI, "DWARF Register Number Mapping").
pub mod x86_64 {
    /// `rbp`
    pub const RBP: u16 = 6;
    /// `rsp`
    pub const RSP: u16 = 7;
    /// The return address: as a register, the instruction pointer.
    pub const RIP: u16 = 16;
    /// perf's registers (`PERF_REG_X86_*`, arch/x86/include/uapi/asm/perf_regs.h) as DWARF's: AX BX CX DX SI DI BP SP
    /// IP, flags and segments, which have no use here, R8 to R15.
    pub(super) const OF_PERF: [Option<u16>; 24] = {
        let mut all = [None; 24];
        let first = [0, 3, 2, 1, 4, 5, RBP, RSP, RIP];
        let mut at = 0;
        while at < first.len() {
            all[at] = Some(first[at]);
            at += 1;
        }
        let mut high = 8;
        while high < 16 {
            all[high as usize + 8] = Some(high);
            high += 1;
        }
        all
    };
}

/// Register numbers of DWARF for AArch64 (aadwarf64); perf uses the same (`PERF_REG_ARM64_*`).
pub mod aarch64 {
    /// `x29`, the frame pointer.
    pub const FP: u16 = 29;
    /// `x30`, the link register.
    pub const LR: u16 = 30;
    /// `sp`
    pub const SP: u16 = 31;
    /// `pc`
    pub const PC: u16 = 32;
}

/// Machines whose stacks can be unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// AArch64.
    Aarch64,
}

impl Machine {
    /// By `e_machine`.
    pub fn new(machine: u16) -> Option<Self> {
        match object::elf::Machine(machine) {
            object::elf::EM_X86_64 => Some(Self::X86_64),
            object::elf::EM_AARCH64 => Some(Self::Aarch64),
            _ => None,
        }
    }

    pub(super) fn pc(self) -> u16 {
        match self {
            Self::X86_64 => x86_64::RIP,
            Self::Aarch64 => aarch64::PC,
        }
    }

    pub(super) fn sp(self) -> u16 {
        match self {
            Self::X86_64 => x86_64::RSP,
            Self::Aarch64 => aarch64::SP,
        }
    }

    pub(super) fn fp(self) -> u16 {
        match self {
            Self::X86_64 => x86_64::RBP,
            Self::Aarch64 => aarch64::FP,
        }
    }

    /// An address that a program uses, without the signature or tag that AArch64 puts into its upper bits.
    pub(super) fn plain(self, addr: u64) -> u64 {
        match self {
            Self::X86_64 => addr,
            Self::Aarch64 => addr & 0x0000_ffff_ffff_ffff,
        }
    }
}

/// The registers of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    machine: Machine,
    values: [u64; Self::COUNT],
    known: u64,
}

impl Registers {
    const COUNT: usize = 33;

    /// None known yet.
    pub fn new(machine: Machine) -> Self {
        Self { machine, values: [0; Self::COUNT], known: 0 }
    }

    /// The user registers of a sample: `mask` is `sample_regs_user`, `values` has one entry for each of its bits, in
    /// ascending order.
    pub fn from_perf(machine: Machine, mask: u64, values: impl IntoIterator<Item = u64>) -> Self {
        let mut registers = Self::new(machine);
        let bits = (0..64).filter(|bit| mask >> bit & 1 == 1);
        for (bit, value) in bits.zip(values) {
            let register = match machine {
                Machine::X86_64 => x86_64::OF_PERF.get(bit as usize).copied().flatten(),
                Machine::Aarch64 => u16::try_from(bit).ok(),
            };
            if let Some(register) = register {
                registers.set(register, value);
            }
        }
        registers
    }

    /// Of which machine they are.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// The value of one, if known.
    pub fn get(&self, register: u16) -> Option<u64> {
        let index = usize::from(register);
        (index < Self::COUNT && self.known >> index & 1 == 1).then(|| self.values[index])
    }

    /// Makes one known. Numbers of other registers (vectors, flags) are ignored.
    pub fn set(&mut self, register: u16, value: u64) {
        let index = usize::from(register);
        if index < Self::COUNT {
            self.values[index] = value;
            self.known |= 1 << index;
        }
    }

    /// Makes one unknown.
    pub fn forget(&mut self, register: u16) {
        if usize::from(register) < Self::COUNT {
            self.known &= !(1 << register);
        }
    }

    /// The instruction pointer.
    pub fn pc(&self) -> Option<u64> {
        self.get(self.machine.pc())
    }

    /// The stack pointer.
    pub fn sp(&self) -> Option<u64> {
        self.get(self.machine.sp())
    }

    /// The frame pointer, or what the compiler used that register for.
    pub fn fp(&self) -> Option<u64> {
        self.get(self.machine.fp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perfs_order_becomes_dwarfs() {
        // AX, BX, BP, SP, IP, FLAGS, R8, R15
        let mask = 1 | 1 << 1 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 16 | 1 << 23;
        let registers = Registers::from_perf(Machine::X86_64, mask, [10, 11, 12, 13, 14, 15, 16, 17]);
        assert_eq!((registers.get(0), registers.get(3)), (Some(10), Some(11)));
        assert_eq!((registers.fp(), registers.sp(), registers.pc()), (Some(12), Some(13), Some(14)));
        assert_eq!((registers.get(8), registers.get(15), registers.get(9)), (Some(16), Some(17), None));
        let arm = Registers::from_perf(Machine::Aarch64, 1 << 29 | 1 << 31 | 1 << 32, [1, 2, 3]);
        assert_eq!((arm.fp(), arm.sp(), arm.pc()), (Some(1), Some(2), Some(3)));
    }
}
