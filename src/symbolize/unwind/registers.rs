//! The registers of one frame, by DWARF number. The value of each is known or unknown.

use crate::model::abi::{EM_386, EM_AARCH64, EM_ARM, EM_RISCV, EM_S390, EM_X86_64};
use gimli::RunTimeEndian;

/// DWARF register numbers of x86-64 (psABI, "DWARF Register Number Mapping").
pub mod x86_64 {
    /// The frame pointer, `rbp`.
    pub const RBP: u16 = 6;
    /// The stack pointer, `rsp`.
    pub const RSP: u16 = 7;
    /// The instruction pointer. DWARF calls this register the return address.
    pub const RIP: u16 = 16;
    /// The DWARF number of each register by perf's number (`PERF_REG_X86_*`, arch/x86/include/uapi/asm/perf_regs.h): AX
    /// BX CX DX SI DI BP SP IP, then flags and segments, which aren't needed and have `None`, then R8 to R15.
    pub(super) const OF_PERF: [Option<u16>; 24] = {
        let mut all = [None; 24];
        let first = [0, 3, 2, 1, 4, 5, RBP, RSP, RIP];
        let mut index = 0;
        while index < first.len() {
            all[index] = Some(first[index]);
            index += 1;
        }
        let mut high = 8;
        while high < 16 {
            all[high as usize + 8] = Some(high);
            high += 1;
        }
        all
    };
}

/// DWARF register numbers of AArch64 (aadwarf64). perf uses the same ones (`PERF_REG_ARM64_*`).
pub mod aarch64 {
    /// `x29`, the frame pointer.
    pub const FP: u16 = 29;
    /// `x30`, the link register.
    pub const LR: u16 = 30;
    /// The stack pointer, `sp`.
    pub const SP: u16 = 31;
    /// The instruction pointer, `pc`.
    pub const PC: u16 = 32;
}

/// DWARF register numbers of 32-bit x86, as Linux uses them (i386 psABI).
pub mod i386 {
    /// The frame pointer, `ebp`.
    pub const EBP: u16 = 5;
    /// The stack pointer, `esp`.
    pub const ESP: u16 = 4;
    /// The instruction pointer. DWARF calls this register the return address.
    pub const EIP: u16 = 8;
    /// The DWARF number of each register by perf's number: AX BX CX DX SI DI BP SP IP. perf numbers them as on x86-64,
    /// but a 32-bit process has only these.
    pub(super) const OF_PERF: [u16; 9] = [0, 3, 1, 2, 6, 7, EBP, ESP, EIP];
}

/// DWARF register numbers of 32-bit Arm (aadwarf32). perf uses the same ones (`PERF_REG_ARM_*`), and so does a 64-bit
/// kernel for the first 16 registers of a 32-bit process (arch/arm64/kernel/perf_regs.c).
pub mod arm {
    /// The stack pointer, `sp`.
    pub const SP: u16 = 13;
    /// `lr`, the link register.
    pub const LR: u16 = 14;
    /// The instruction pointer, `pc`.
    pub const PC: u16 = 15;
    /// `r11`, which is the frame pointer in functions that keep one.
    pub const FP: u16 = 11;
}

/// DWARF register numbers of RISC-V (riscv-elf-psabi), for `x0` to `x31`.
pub mod riscv64 {
    /// `ra`, the link register.
    pub const RA: u16 = 1;
    /// The stack pointer, `sp`.
    pub const SP: u16 = 2;
    /// `s0`, the frame pointer.
    pub const FP: u16 = 8;
    /// The instruction pointer, which has no DWARF number. No other register has this number here.
    pub const PC: u16 = 32;
}

/// DWARF register numbers of s390x (ELF ABI, s390x supplement), for `r0` to `r15`.
pub mod s390x {
    /// `r14`, the link register.
    pub const LR: u16 = 14;
    /// `r15`, the stack pointer.
    pub const SP: u16 = 15;
    /// `r11`, which is the frame pointer in functions that keep one.
    pub const FP: u16 = 11;
    /// The instruction pointer: the address in the program status word. DWARF's number for it is 65, but no unwind rule
    /// uses that.
    pub const PC: u16 = 32;
    /// perf's number for the program counter (`PERF_REG_S390_PC`).
    pub(super) const PERF_PC: u64 = 33;
    /// perf's number for the first floating-point register (`PERF_REG_S390_FP0`).
    pub(super) const PERF_F0: u64 = 16;
    /// The DWARF numbers of the floating-point registers `f0` to `f15`.
    pub(super) const F_OF_PERF: [u16; 16] = [16, 20, 17, 21, 18, 22, 19, 23, 24, 28, 25, 29, 26, 30, 27, 31];
}

/// The instruction sets whose stacks can be unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Machine {
    X86_64,
    Aarch64,
    /// 32-bit x86.
    I386,
    /// 32-bit Arm, Thumb included.
    Arm,
    /// 64-bit RISC-V.
    Riscv64,
    S390x,
}

/// `PERF_SAMPLE_REGS_ABI_32`: the sample's registers are those of a 32-bit process.
const ABI_32: u64 = 1;
/// `PERF_SAMPLE_REGS_ABI_64`: the sample's registers are those of a 64-bit process.
const ABI_64: u64 = 2;

impl Machine {
    /// The instruction set of a sampled process. `machine` is the recording's `e_machine`, `abi` the ABI of the
    /// sample's registers (`PERF_SAMPLE_REGS_ABI_*`). The ABI is needed because 64-bit kernels also run 32-bit
    /// processes. `None` if stacks of such a process can't be unwound.
    pub fn from_sample(machine: u16, abi: u64) -> Option<Self> {
        match (machine, abi) {
            (EM_X86_64, ABI_64) => Some(Self::X86_64),
            (EM_X86_64 | EM_386, ABI_32) => Some(Self::I386),
            (EM_AARCH64, ABI_64) => Some(Self::Aarch64),
            (EM_AARCH64 | EM_ARM, ABI_32) => Some(Self::Arm),
            (EM_RISCV, ABI_64) => Some(Self::Riscv64),
            (EM_S390, ABI_64) => Some(Self::S390x),
            _ => None,
        }
    }

    /// The instruction set of the code in a file, from `e_machine` and class of the ELF file. `None` if its stacks
    /// can't be unwound.
    pub fn from_elf(machine: u16, is_64: bool) -> Option<Self> {
        match machine {
            EM_386 | EM_ARM => Self::from_sample(machine, ABI_32).filter(|_| !is_64),
            _ => Self::from_sample(machine, ABI_64).filter(|_| is_64),
        }
    }

    /// True if stacks in a recording with this `e_machine` can be unwound, at least those of some processes.
    pub fn is_any_known(machine: u16) -> bool {
        [ABI_32, ABI_64].iter().any(|&abi| Self::from_sample(machine, abi).is_some())
    }

    /// True if registers have 64 bits.
    pub fn is_64(self) -> bool {
        !matches!(self, Self::I386 | Self::Arm)
    }

    /// The size of a pointer and of a register in memory, in bytes.
    pub fn word(self) -> u8 {
        if self.is_64() { 8 } else { 4 }
    }

    /// The byte order of numbers in memory.
    pub fn endian(self) -> RunTimeEndian {
        if self == Self::S390x { RunTimeEndian::Big } else { RunTimeEndian::Little }
    }

    pub(super) fn pc(self) -> u16 {
        self.special_registers().0
    }

    pub(super) fn sp(self) -> u16 {
        self.special_registers().1
    }

    pub(super) fn fp(self) -> u16 {
        self.special_registers().2
    }

    /// The DWARF numbers of the instruction pointer, the stack pointer and the frame pointer.
    fn special_registers(self) -> (u16, u16, u16) {
        match self {
            Self::X86_64 => (x86_64::RIP, x86_64::RSP, x86_64::RBP),
            Self::Aarch64 => (aarch64::PC, aarch64::SP, aarch64::FP),
            Self::I386 => (i386::EIP, i386::ESP, i386::EBP),
            Self::Arm => (arm::PC, arm::SP, arm::FP),
            Self::Riscv64 => (riscv64::PC, riscv64::SP, riscv64::FP),
            Self::S390x => (s390x::PC, s390x::SP, s390x::FP),
        }
    }

    /// The DWARF number of the register in which a call leaves the return address. `None` on machines where a call
    /// pushes it.
    pub(super) fn link(self) -> Option<u16> {
        match self {
            Self::X86_64 | Self::I386 => None,
            Self::Aarch64 => Some(aarch64::LR),
            Self::Arm => Some(arm::LR),
            Self::Riscv64 => Some(riscv64::RA),
            Self::S390x => Some(s390x::LR),
        }
    }

    /// Clears the bits of a code address that don't belong to the address: AArch64's signature or tag in the upper
    /// bits, and Arm's Thumb bit, which is the lowest one.
    pub fn code_address(self, addr: u64) -> u64 {
        match self {
            Self::X86_64 | Self::Riscv64 | Self::S390x => addr,
            Self::Aarch64 => addr & 0x0000_ffff_ffff_ffff,
            Self::I386 => addr & 0xffff_ffff,
            Self::Arm => addr & 0xffff_fffe,
        }
    }

    /// Adds a distance to an address. The result wraps at the machine's register size.
    pub(super) fn plus(self, addr: u64, distance: i64) -> u64 {
        let sum = addr.wrapping_add_signed(distance);
        if self.is_64() { sum } else { sum & 0xffff_ffff }
    }

    /// Reads a word of the size of a register from the start of `bytes`. `None` if there are fewer bytes.
    pub(super) fn read(self, bytes: &[u8]) -> Option<u64> {
        Some(match (self.is_64(), self.endian()) {
            (true, RunTimeEndian::Little) => u64::from_le_bytes(*bytes.first_chunk()?),
            (true, RunTimeEndian::Big) => u64::from_be_bytes(*bytes.first_chunk()?),
            (false, RunTimeEndian::Little) => u32::from_le_bytes(*bytes.first_chunk()?).into(),
            (false, RunTimeEndian::Big) => u32::from_be_bytes(*bytes.first_chunk()?).into(),
        })
    }

    /// Translates perf's number of a register to DWARF's. `None` for registers that aren't needed to unwind.
    fn dwarf_register(self, number: u64) -> Option<u16> {
        let same_number = u16::try_from(number).ok();
        match self {
            Self::X86_64 => x86_64::OF_PERF.get(number as usize).copied().flatten(),
            Self::I386 => i386::OF_PERF.get(number as usize).copied(),
            Self::Aarch64 => same_number,
            // For 32-bit Arm, the kernel reports stack pointer, link register and instruction pointer under AArch64's
            // numbers, too.
            Self::Arm => match same_number? {
                aarch64::SP => Some(arm::SP),
                aarch64::LR => Some(arm::LR),
                aarch64::PC => Some(arm::PC),
                number => Some(number).filter(|&number| number <= arm::PC),
            },
            // perf's register 0 is the instruction pointer.
            Self::Riscv64 if number == 0 => Some(riscv64::PC),
            Self::Riscv64 => same_number.filter(|&number| number < riscv64::PC),
            Self::S390x if number == s390x::PERF_PC => Some(s390x::PC),
            // Floating-point registers are needed, because functions that call nothing may save general registers in
            // them instead of on the stack.
            Self::S390x if (s390x::PERF_F0..s390x::PERF_F0 + 16).contains(&number) => {
                Some(s390x::F_OF_PERF[(number - s390x::PERF_F0) as usize])
            }
            Self::S390x => same_number.filter(|&number| number <= s390x::SP),
        }
    }
}

/// The registers of one frame, each known or unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    machine: Machine,
    /// The values by DWARF register number.
    values: [u64; Self::COUNT],
    /// A bit for each register, set if its value is known.
    known: u64,
    /// True if the stack pointer is only a lower bound; see [`Self::sp_is_low()`].
    sp_is_low: bool,
}

impl Registers {
    const COUNT: usize = 33;

    /// Creates the registers of a frame, all of them unknown.
    pub fn new(machine: Machine) -> Self {
        Self { machine, values: [0; Self::COUNT], known: 0, sp_is_low: false }
    }

    /// Reads the user registers of a sample. `mask` is the event's `sample_regs_user`. `values` has one value for each
    /// bit that is set in `mask`, in ascending order of the bits.
    pub fn from_perf(machine: Machine, mask: u64, values: impl IntoIterator<Item = u64>) -> Self {
        let mut registers = Self::new(machine);
        let bits = (0..64).filter(|bit| mask >> bit & 1 == 1);
        for (bit, value) in bits.zip(values) {
            if let Some(register) = machine.dwarf_register(bit) {
                registers.set(register, value);
            }
        }
        registers
    }

    /// The instruction set whose registers these are.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// The value of the register with this DWARF number; `None` if it is unknown.
    pub fn get(&self, register: u16) -> Option<u64> {
        let index = usize::from(register);
        (index < Self::COUNT && self.known >> index & 1 == 1).then(|| self.values[index])
    }

    /// Sets the register with this DWARF number. Ignores registers that aren't tracked (vectors, flags).
    pub fn set(&mut self, register: u16, value: u64) {
        let index = usize::from(register);
        if index < Self::COUNT {
            self.values[index] = value;
            self.known |= 1 << index;
            self.sp_is_low &= register != self.machine.sp();
        }
    }

    /// Makes the value of the register with this DWARF number unknown.
    pub fn forget(&mut self, register: u16) {
        if usize::from(register) < Self::COUNT {
            self.known &= !(1 << register);
        }
    }

    /// The value of the instruction pointer; `None` if unknown.
    pub fn pc(&self) -> Option<u64> {
        self.get(self.machine.pc())
    }

    /// The value of the stack pointer; `None` if unknown.
    pub fn sp(&self) -> Option<u64> {
        self.get(self.machine.sp())
    }

    /// The value of the link register; `None` if it is unknown or the machine has no such register.
    pub fn link(&self) -> Option<u64> {
        self.get(self.machine.link()?)
    }

    /// True if the real value of the stack pointer may be higher than [`Self::sp`]. This is so if the callee was
    /// unwound by its frame pointer, because it may have saved registers above its frame record.
    pub fn sp_is_low(&self) -> bool {
        self.sp_is_low
    }

    /// Sets the stack pointer to a lower bound, such as the end of the callee's frame record; see
    /// [`Self::sp_is_low()`].
    pub(super) fn set_low_sp(&mut self, value: u64) {
        self.set(self.machine.sp(), value);
        self.sp_is_low = true;
    }

    /// The value of the frame pointer register; `None` if unknown. Code without a frame pointer uses it for something
    /// else.
    pub fn fp(&self) -> Option<u64> {
        self.get(self.machine.fp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perfs_order_becomes_dwarfs() {
        // The mask has AX, BX, BP, SP, IP, FLAGS, R8 and R15.
        let mask = 1 | 1 << 1 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 16 | 1 << 23;
        let registers = Registers::from_perf(Machine::X86_64, mask, [10, 11, 12, 13, 14, 15, 16, 17]);
        assert_eq!((registers.get(0), registers.get(3)), (Some(10), Some(11)));
        assert_eq!((registers.fp(), registers.sp(), registers.pc()), (Some(12), Some(13), Some(14)));
        assert_eq!((registers.get(8), registers.get(15), registers.get(9)), (Some(16), Some(17), None));
        let arm = Registers::from_perf(Machine::Aarch64, 1 << 29 | 1 << 31 | 1 << 32, [1, 2, 3]);
        assert_eq!((arm.fp(), arm.sp(), arm.pc()), (Some(1), Some(2), Some(3)));
        let riscv = Registers::from_perf(Machine::Riscv64, 0b111 | 1 << 8, [1, 2, 3, 4]);
        assert_eq!((riscv.pc(), riscv.link(), riscv.sp(), riscv.fp()), (Some(1), Some(2), Some(3), Some(4)));
        let s390x = Registers::from_perf(Machine::S390x, 0b11 << 14 | 1 << 18 | 0b11 << 32, [1, 2, 5, 3, 4]);
        assert_eq!(s390x.get(17), Some(5), "f2");
        assert_eq!((s390x.link(), s390x.sp(), s390x.pc()), (Some(1), Some(2), Some(4)));
    }

    #[test]
    fn a_32_bit_process_on_a_64_bit_kernel_has_its_own_registers() {
        let i386 = Machine::from_sample(EM_X86_64, ABI_32).unwrap();
        let registers = Registers::from_perf(i386, 0b1_1100_0010, [3, 6, 7, 8]);
        assert_eq!((registers.get(3), registers.fp()), (Some(3), Some(6)));
        assert_eq!((registers.sp(), registers.pc()), (Some(7), Some(8)));
        // For a 32-bit Arm process, a 64-bit kernel reports these registers under the numbers for 64-bit processes as
        // well.
        let arm = Machine::from_sample(EM_AARCH64, ABI_32).unwrap();
        let registers = Registers::from_perf(arm, 0b111 << 13 | 0b111 << 30, [1, 2, 3, 2, 1, 3]);
        assert_eq!((registers.sp(), registers.link(), registers.pc()), (Some(1), Some(2), Some(3)));
        assert_eq!(Registers::from_perf(arm, 1 << 30, [7]).link(), Some(7));
        assert_eq!((arm.code_address(0x1_0000_8001), arm.word()), (0x8000, 4));
        assert_eq!(Machine::from_sample(EM_S390, ABI_32), None);
        assert_eq!((Machine::from_elf(EM_X86_64, false), Machine::from_elf(EM_AARCH64, false)), (None, None));
    }
}
