//! Constants of Linux's ABI that several modules need: ELF machines (`e_machine`, include/uapi/linux/elf-em.h), and
//! memory protection and mapping flags (include/uapi/asm-generic/mman-common.h).

/// 32-bit x86
pub const EM_386: u16 = 3;
/// 32-bit MIPS
pub const EM_MIPS: u16 = 8;
/// 32-bit PowerPC
pub const EM_PPC: u16 = 20;
/// 64-bit PowerPC
pub const EM_PPC64: u16 = 21;
/// IBM's z/Architecture
pub const EM_S390: u16 = 22;
/// 32-bit Arm
pub const EM_ARM: u16 = 40;
/// 64-bit SPARC
pub const EM_SPARCV9: u16 = 43;
/// x86-64
pub const EM_X86_64: u16 = 62;
/// 64-bit Arm
pub const EM_AARCH64: u16 = 183;
/// RISC-V of either width
pub const EM_RISCV: u16 = 243;
/// LoongArch
pub const EM_LOONGARCH: u16 = 258;

/// ELF's `e_machine` of the machine that this jitgraft was built for. Perf maps don't say which machine their code is
/// for; most likely it is this one.
pub const HOST_MACHINE: u16 = if cfg!(target_arch = "aarch64") {
    EM_AARCH64
} else if cfg!(target_arch = "x86") {
    EM_386
} else if cfg!(target_arch = "arm") {
    EM_ARM
} else if cfg!(any(target_arch = "riscv64", target_arch = "riscv32")) {
    EM_RISCV
} else if cfg!(target_arch = "powerpc64") {
    EM_PPC64
} else if cfg!(target_arch = "s390x") {
    EM_S390
} else if cfg!(target_arch = "loongarch64") {
    EM_LOONGARCH
} else {
    EM_X86_64
};

/// The common name of a machine, given ELF's `e_machine`.
pub fn machine_name(machine: u16) -> String {
    let name = match machine {
        EM_386 => "i386",
        EM_MIPS => "MIPS",
        EM_PPC => "PowerPC",
        EM_PPC64 => "64-bit PowerPC",
        EM_S390 => "s390x",
        EM_ARM => "32-bit Arm",
        EM_SPARCV9 => "64-bit SPARC",
        EM_X86_64 => "x86-64",
        EM_AARCH64 => "aarch64",
        EM_RISCV => "RISC-V",
        EM_LOONGARCH => "LoongArch",
        _ => return format!("machine {machine}"),
    };
    name.to_owned()
}

/// Memory protection: readable.
pub(crate) const PROT_READ: u32 = 1;
/// Memory protection: executable.
pub const PROT_EXEC: u32 = 4;
/// Mapping flag: writes to the memory don't reach the file.
pub const MAP_PRIVATE: u32 = 2;
/// The protection that mappings of code from files usually have.
pub const PROT_READ_EXEC: u32 = PROT_READ | PROT_EXEC;
