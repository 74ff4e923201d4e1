//! Tells from machine code whether an address in a call chain can be a return address: if so, a call instruction ends
//! there.
//!
//! Chains also contain other addresses. A chain by frame pointers goes astray in code that uses the frame pointer for
//! something else: it then contains whatever is in the memory that the register points to, such as the functions in a
//! C++ object's table of virtual functions. Signal handlers and coroutines are made to return to the first byte of a
//! function that called nobody. An address in the kernel may be that of an instruction that an interrupt stopped. All
//! of these must be looked up as they are: the byte before belongs to another instruction, and often to another
//! function.
//!
//! Spec: Intel SDM volume 2, "CALL" and "Instruction Format"; Arm Architecture Reference Manual (DDI 0406), A8.8.25; Arm
//! A64 instruction set (DDI 0602), "Branches"; RISC-V Instruction Set Manual, "Unconditional Jumps"; z/Architecture
//! Principles of Operation, "Branch and Save".

use super::code_map::CallTest;
use super::symbols::image::Image;
use super::unwind::exidx;
use super::unwind::registers::Machine;
use object::Object;

/// The code of a file, in which calls are searched.
#[derive(Debug, Clone, Copy)]
pub struct CallFinder<'a> {
    image: &'a Image,
    machine: Machine,
}

impl<'a> CallFinder<'a> {
    /// Prepares to search the code of a file. `None` if calls on its machine aren't decoded.
    pub fn new(image: &'a Image) -> Option<Self> {
        // A ReadyToRun image has no ELF header. Those that are read are for 64-bit machines.
        let is_64 = image.object().map_or(true, |object| object.is_64());
        Some(Self { image, machine: Machine::from_elf(image.machine(), is_64)? })
    }

    /// False if certainly no call instruction ends at this link-time address. True if one may: the bytes before the
    /// address look like a call, or the file lacks the code.
    pub fn may_return_to(&self, addr: u64) -> bool {
        /// No call is longer than this many bytes. 32-bit Arm's calls by two instructions have 8.
        const LONGEST: u64 = 8;
        // The lowest bit is set in return addresses of Thumb code.
        let addr = if self.machine == Machine::Arm { addr & !1 } else { addr };
        if self.image.loaded(addr..addr.saturating_add(1)).is_none() {
            return true;
        }
        for len in (1..=LONGEST.min(addr)).rev() {
            // Near the start of a segment, fewer bytes are before the address.
            if let Some(code) = self.image.loaded(addr - len..addr)
                && code.len() as u64 == len
            {
                return may_end_in_call(self.machine, code, |distance| {
                    self.has_code(addr.wrapping_add_signed(distance))
                });
            }
        }
        // The address is the first of its segment, and code of another segment isn't before it.
        false
    }

    /// True if the file has a byte at this link-time address.
    fn has_code(&self, addr: u64) -> bool {
        let addr = if self.machine.is_64() { addr } else { addr & 0xffff_ffff };
        self.image.loaded(addr..addr.saturating_add(1)).is_some()
    }
}

/// The test for calls in JIT code of this machine (`e_machine` of ELF). `None` if calls on the machine aren't decoded.
pub fn find_call_test(machine: u16) -> Option<CallTest> {
    // JIT code calls code anywhere in memory.
    Some(match [true, false].iter().find_map(|&is_64| Machine::from_elf(machine, is_64))? {
        Machine::X86_64 | Machine::I386 => |code| ends_in_x86_call(code, |_| true),
        Machine::Aarch64 => |code| may_end_in_call(Machine::Aarch64, code, |_| true),
        Machine::Arm => ends_in_arm_call,
        Machine::Riscv64 => ends_in_riscv64_call,
        Machine::S390x => ends_in_s390x_call,
    })
}

/// True if a call instruction may end where this code ends, so that the address after it may be a return address. Code
/// isn't decoded from its start, so other instructions may look like a call. `has_code` says whether there is code at a
/// distance from the end.
fn may_end_in_call(machine: Machine, code: &[u8], has_code: impl Fn(i64) -> bool) -> bool {
    match machine {
        Machine::X86_64 | Machine::I386 => ends_in_x86_call(code, has_code),
        Machine::Aarch64 => code.last_chunk().is_some_and(|bytes| is_aarch64_call(u32::from_le_bytes(*bytes))),
        Machine::Arm => ends_in_arm_call(code),
        Machine::Riscv64 => ends_in_riscv64_call(code),
        Machine::S390x => ends_in_s390x_call(code),
    }
}

/// True if the code ends in an x86 call: `call` with a distance, or with the address in a register or in memory.
/// Instructions have any length, so a byte that looks like the opcode of a direct call may be part of another
/// instruction. The supposed distance then hardly ever leads to code of the same file (`has_code`).
fn ends_in_x86_call(code: &[u8], has_code: impl Fn(i64) -> bool) -> bool {
    /// The length in bytes of the longest indirect call without prefixes: opcode, ModRM, SIB, and a displacement of 32
    /// bits.
    const LONGEST: usize = 7;
    if let Some([0xe8, distance @ ..]) = code.last_chunk::<5>()
        && has_code(i32::from_le_bytes(*distance).into())
    {
        return true;
    }
    (2..=LONGEST.min(code.len())).any(|len| indirect_call_len(&code[code.len() - len..]) == Some(len))
}

/// The length of the indirect x86 call at the start of this code, without prefixes. `None` if there is none.
fn indirect_call_len(code: &[u8]) -> Option<usize> {
    let [0xff, modrm, after_modrm @ ..] = code else { return None };
    let (mode, operation, base) = (modrm >> 6, modrm >> 3 & 7, modrm & 7);
    // `ff` stands for several instructions; 2 is `call`.
    if operation != 2 {
        return None;
    }
    // In mode 3, the target is in a register, otherwise in memory. For memory, a base of 4 means that a SIB byte
    // follows, whose lowest bits state the base.
    let has_sib = mode != 3 && base == 4;
    let base = if has_sib { after_modrm.first()? & 7 } else { base };
    let displacement_len = match mode {
        // There is no base register, only an address of 32 bits.
        0 if base == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    // The opcode and the ModRM byte, then the SIB byte and the displacement, if any.
    Some(2 + usize::from(has_sib) + displacement_len)
}

/// True if the instruction is `bl`, `blr`, or a variant of `blr` that checks the pointer (`blraaz` …).
fn is_aarch64_call(word: u32) -> bool {
    let is_bl = word >> 26 == 0b10_0101;
    let is_blr = word & 0xffff_fc1f == 0xd63f_0000;
    // The mask ignores bit 24 (whether the check uses the value of a register or zero), bit 10 (which of two keys it
    // uses), and the numbers of the registers.
    let is_checked_blr = word & 0xfeff_f800 == 0xd63f_0800;
    is_bl || is_blr || is_checked_blr
}

/// True if the code ends in a Thumb or Arm call, or in the call of older Arm processors: `mov lr, pc`, followed by any
/// jump. `lr` is then the address after the jump, because `pc` reads as 8 bytes after the start of the instruction. It
/// isn't known whether the code is Arm or Thumb code, so a few Arm instructions are taken for a Thumb call.
fn ends_in_arm_call(code: &[u8]) -> bool {
    const MOV_LR_PC: u32 = 0xe1a0_e00f;
    let before_jump = code.len().checked_sub(8).and_then(|start| code[start..].first_chunk());
    let is_by_jump = before_jump.is_some_and(|bytes| u32::from_le_bytes(*bytes) == MOV_LR_PC);
    is_by_jump || exidx::ends_in_call(code)
}

/// True if the code ends in a RISC-V call: `c.jalr`, or a `jal` or `jalr` that leaves the return address in `ra` or in
/// the alternate link register `t0`.
fn ends_in_riscv64_call(code: &[u8]) -> bool {
    if let Some(bytes) = code.last_chunk() {
        let half = u16::from_le_bytes(*bytes);
        // `c.jalr` has 16 bits. With the register 0, they are `c.ebreak` instead.
        let has_register = half & 0x0f80 != 0;
        if half & 0xf07f == 0x9002 && has_register {
            return true;
        }
    }
    let Some(bytes) = code.last_chunk() else { return false };
    let word = u32::from_le_bytes(*bytes);
    let is_jal = word & 0x7f == 0x6f;
    let is_jalr = word & 0x707f == 0x67;
    // Register 1 is `ra`, and register 5 is `t0`.
    let link_register = word >> 7 & 31;
    (is_jal || is_jalr) && matches!(link_register, 1 | 5)
}

/// True if the code ends in an s390x call: `brasl`, `bras`, `bas` or `bal`, or a `basr`, `balr` or `bassm` whose target
/// register isn't 0. With register 0, these don't jump.
fn ends_in_s390x_call(code: &[u8]) -> bool {
    match code {
        // `brasl` and `bras`: the lower half of the second byte belongs to the opcode.
        [.., 0xc0, second, _, _, _, _] if second & 15 == 5 => true,
        [.., 0xa7, second, _, _] if second & 15 == 5 => true,
        // `bas` and `bal`.
        [.., 0x4d | 0x45, _, _, _] => true,
        // `basr`, `balr` and `bassm`: the lower half of the second byte is the target register.
        [.., 0x0d | 0x05 | 0x0c, registers] => registers & 15 != 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    /// Parses lines of bytes in hexadecimal, each followed by the instruction that they are.
    fn parse(lines: &str) -> Vec<(&str, Vec<u8>)> {
        let mut parsed = Vec::new();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (bytes, instruction) = line.split_once("  ").unwrap();
            let bytes = bytes.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
            parsed.push((instruction, bytes));
        }
        parsed
    }

    /// Checks that these instructions are calls, and the others are not, at the end of other code and alone. The bytes
    /// are from GNU as 2.40 and llvm-mc 14.
    fn check(machine: Machine, calls: &str, others: &str) {
        for (instructions, is_call) in [(parse(calls), true), (parse(others), false)] {
            for (instruction, bytes) in instructions {
                // There is code up to 4 KiB before and after the instruction.
                let has_code = |distance: i64| distance.abs() < 0x1000;
                assert_eq!(may_end_in_call(machine, &bytes, has_code), is_call, "{machine:?} {instruction}");
                let after_others = [&[0; 8], &bytes[..]].concat();
                assert_eq!(may_end_in_call(machine, &after_others, has_code), is_call, "{machine:?} {instruction}");
            }
        }
        assert!(!may_end_in_call(machine, &[], |_| true));
    }

    #[test]
    fn calls_of_x86() {
        let calls = "
            e8 5f 00 00 00  call 0x64
            e8 5f ff ff ff  call .-156
            ff d0  call *%rax
            41 ff d3  call *%r11
            ff 10  call *(%rax)
            41 ff 14 24  call *(%r12)
            ff 55 08  call *0x8(%rbp)
            ff 14 24  call *(%rsp)
            ff 54 24 10  call *0x10(%rsp)
            ff 93 00 10 00 00  call *0x1000(%rbx)
            ff 94 24 00 10 00 00  call *0x1000(%rsp)
            ff 14 c8  call *(%rax,%rcx,8)
            ff 14 cd 00 20 00 00  call *0x2000(,%rcx,8)
            ff 15 10 00 00 00  call *0x10(%rip)
            64 ff 14 25 10 00 00 00  call *%fs:0x10";
        let others = "
            c3  ret
            cc  int3
            90  nop
            66 2e 0f 1f 84 00 00 00 00 00  cs nopw 0x0(%rax,%rax,1)
            0f 0b  ud2
            e9 f0 fd ff ff  jmp, as at the end of a PLT stub
            ff e0  jmp *%rax
            ff 25 e2 2f 00 00  jmp *0x2fe2(%rip)
            ff 30  push (%rax)
            ff 15 10 00 00  call *0x10(%rip), without its last byte
            48 89 05 e8 2e 00 00 c3  mov %rax,0x2ee8(%rip); ret
            e8 5f 00 00 00 90  call 0x64; nop";
        check(Machine::X86_64, calls, others);
        check(Machine::I386, calls, others);
    }

    #[test]
    fn calls_of_machines_with_a_link_register() {
        let calls = "
            10 00 00 94  bl #64
            f0 ff ff 97  bl #-64
            00 01 3f d6  blr x8
            c0 03 3f d6  blr x30
            1f 09 3f d6  blraaz x8
            3f 0c 3f d6  blrabz x1
            09 09 3f d7  blraa x8, x9
            1f 0d 3f d7  blrab x8, sp";
        let others = "
            00 01 1f d6  br x8
            10 00 00 14  b #64
            c0 03 5f d6  ret
            09 09 1f d7  braa x8, x9
            1f 20 03 d5  nop
            5e 00 00 10  adr x30, #8
            20 00 20 d4  brk #0x1";
        check(Machine::Aarch64, calls, others);
        let calls = "
            10 00 00 eb  bl #64
            10 00 00 1b  blne #64
            10 00 00 fa  blx #64
            33 ff 2f e1  blx r3
            0f e0 a0 e1 13 ff 2f e1  mov lr, pc; bx r3
            0f e0 a0 e1 00 f0 93 e5  mov lr, pc; ldr pc, [r3]
            00 f0 20 f8  Thumb bl #64
            00 f0 20 e8  Thumb blx #64
            98 47  Thumb blx r3";
        let others = "
            1e ff 2f e1  bx lr
            0f e0 a0 e1  mov lr, pc
            10 00 00 ea  b #64
            00 00 a0 e1  mov r0, r0
            f0 00 f0 e7  udf #0
            70 47  Thumb bx lr
            00 f0 00 ba  Thumb b.w #1024
            00 bf  Thumb nop
            10 bd  Thumb pop {r4, pc}";
        check(Machine::Arm, calls, others);
        let calls = "
            ef 00 00 04  jal ra, 64
            ef 02 00 04  jal t0, 64
            e7 00 85 00  jalr ra, 8(a0)
            e7 82 02 00  jalr t0, 0(t0)
            02 95  c.jalr a0";
        let others = "
            6f 00 00 04  jal zero, 64
            67 80 00 00  jalr zero, 0(ra)
            82 80  c.jr ra
            02 90  c.ebreak
            73 00 10 00  ebreak
            01 00  c.nop
            81 a0  c.j 64
            00 00  unimp";
        check(Machine::Riscv64, calls, others);
        let calls = "
            c0 e5 00 00 00 20  brasl %r14, .+64
            a7 e5 00 20  bras %r14, .+64
            0d e1  basr %r14, %r1
            4d e0 10 08  bas %r14, 8(%r1)
            05 e1  balr %r14, %r1
            45 e0 10 08  bal %r14, 8(%r1)
            0c e1  bassm %r14, %r1";
        let others = "
            07 fe  br %r14
            a7 f4 00 20  j .+64
            c0 f4 00 00 00 20  jg .+64
            0d d0  basr %r13, 0, which only stores its address
            07 07  bcr 0, %r7
            eb 6f f0 30 00 04  lmg %r6, %r15, 48(%r15)";
        check(Machine::S390x, calls, others);
    }

    /// An independent reader, objdump, finds the ends of all instructions in the C library.
    #[test]
    fn all_calls_of_the_c_library_are_found() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path = maps.lines().find_map(|line| line.split_whitespace().nth(5).filter(|path| path.contains("libc.so")));
        let path = Path::new(path.unwrap());
        let image = Image::new(path, crate::io::map_file(path).unwrap()).unwrap();
        let finder = CallFinder::new(&image).unwrap();
        let output = Command::new("objdump").args(["-d", "--wide"]).arg(path).output().unwrap();
        let (mut calls, mut others, mut alike) = (0, 0, 0);
        let mut was_call = None;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let mut parts = line.trim_start().split('\t');
            let addr = parts.next().and_then(|addr| u64::from_str_radix(addr.strip_suffix(':')?, 16).ok());
            let (Some(addr), Some(_), Some(instruction)) = (addr, parts.next(), parts.next()) else {
                was_call = None;
                continue;
            };
            match was_call {
                Some(true) => {
                    assert!(finder.may_return_to(addr), "{addr:#x}");
                    calls += 1;
                }
                Some(false) => {
                    others += 1;
                    alike += u32::from(finder.may_return_to(addr));
                }
                None => {}
            }
            was_call =
                Some(["call", "bl", "jalr", "bras", "basr"].iter().any(|call| {
                    instruction.split_whitespace().any(|word| word == *call || word == format!("{call}l"))
                }));
        }
        assert!(calls > 5000 && others > 100_000, "{calls} {others}");
        assert!(alike * 1000 < others, "{alike} of {others} other instructions look like calls");
    }

    #[test]
    fn code_that_the_file_lacks_may_be_a_call() {
        let path = std::env::current_exe().unwrap();
        let image = Image::new(&path, crate::io::map_file(&path).unwrap()).unwrap();
        let finder = CallFinder::new(&image).unwrap();
        for missing in [u64::MAX, u64::MAX - 1, 1 << 60] {
            assert!(finder.may_return_to(missing), "{missing:#x}");
        }
        // Nothing is before the first byte of the file, so no call ends there.
        assert!(!finder.may_return_to(0));
    }
}
