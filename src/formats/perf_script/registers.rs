//! Writes the registers of a sample (`-F iregs`, `-F uregs`) like perf 6.1 (`perf_sample__fprintf_regs` in
//! tools/perf/builtin-script.c):
//!
//! ```text
//!  ABI:2    AX:0x1a54    BX:0x7f3c55e181b0␣
//! ```

use super::output_fields::put;
use crate::model::abi::{EM_386, EM_AARCH64, EM_X86_64};

/// The registers of a sample.
#[derive(Debug, Clone, Copy)]
pub struct RegisterLine<'a> {
    /// ELF `e_machine` of the CPU, which decides the names of the registers.
    pub machine: u16,
    /// `PERF_SAMPLE_REGS_ABI_*`: 0 none, 1 32-bit, 2 64-bit. For 0, nothing is printed.
    pub abi: u64,
    /// Bit N is set if register number N (`PERF_REG_*`) was recorded.
    pub mask: u64,
    /// Values of the recorded registers, lowest number first.
    pub values: &'a [u64],
}

/// Register names by number: `PERF_REG_X86_*` in arch/x86/include/uapi/asm/perf_regs.h.
const X86: [&str; 24] = [
    "AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "DS", "ES", "FS", "GS", "R8", "R9",
    "R10", "R11", "R12", "R13", "R14", "R15",
];

/// Names of the registers from number 29 on: `PERF_REG_ARM64_*` in arch/arm64/include/uapi/asm/perf_regs.h. Lower
/// numbers are x0, x1, ….
const ARM64: [&str; 4] = ["x29", "lr", "sp", "pc"];

/// Appends a sample's registers as one line, without the line break.
pub fn write_registers(out: &mut Vec<u8>, line: &RegisterLine<'_>) {
    if line.abi == 0 {
        return;
    }
    put(out, format_args!(" ABI:{} ", line.abi));
    let bits = (0..64u8).filter(|bit| line.mask >> bit & 1 != 0);
    for (bit, value) in bits.zip(line.values) {
        put(out, format_args!("{:>5}:{value:#x} ", register_name(line.machine, bit)));
    }
}

/// The name that perf prints for a register. `bit` is the register's number in perf's masks.
fn register_name(machine: u16, bit: u8) -> String {
    let index = usize::from(bit);
    let named = match machine {
        EM_386 | EM_X86_64 => X86.get(index),
        EM_AARCH64 => index.checked_sub(29).and_then(|index| ARM64.get(index)),
        _ => None,
    };
    match (named, machine) {
        (Some(name), _) => (*name).to_owned(),
        // Each XMM register has two numbers, one per 64 bits.
        (None, EM_386 | EM_X86_64) if bit >= 32 => format!("XMM{}", (bit - 32) / 2),
        (None, EM_AARCH64) if bit < 29 => format!("x{bit}"),
        _ => format!("R{bit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(machine: u16, mask: u64, values: &[u64]) -> String {
        let mut out = Vec::new();
        write_registers(&mut out, &RegisterLine { machine, abi: 2, mask, values });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_processor_has_its_names() {
        assert_eq!(text(EM_X86_64, 0x1_0101, &[0x1a54, 0, 7]), " ABI:2    AX:0x1a54    IP:0x0    R8:0x7 ");
        assert_eq!(text(EM_AARCH64, 1 | 3 << 29, &[1, 2, 3]), " ABI:2    x0:0x1   x29:0x2    lr:0x3 ");
        assert_eq!(text(22, 2, &[1, 2]), " ABI:2    R1:0x1 ");
    }
}
