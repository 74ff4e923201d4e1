//! Finds out from direct calls who called the running function, on machines where a call leaves the return address in
//! the link register.
//!
//! Code without call frame information doesn't always show whether the link register still holds the return address.
//! Examples are JIT code that leaves by jumps, C code on RISC-V, and 32-bit Arm, where the exception index is valid
//! only at calls. Now suppose that the link register holds the address after a direct call of the running function, and
//! that this call is in another function. Then the running function has called nothing since: every call leaves a
//! different address in the register, and after a return from a call the register holds an address in the function that
//! continues.
//!
//! This proof has a gap on 32-bit Arm, where a function may return without using the link register (`pop {pc}`). The
//! register then keeps the address that the function's own calls left there. The proof is therefore rejected if the
//! running function may have called the function that contains the address in the register.
//!
//! Spec: Arm Architecture Reference Manual (DDI 0406), A8.8.18 and A8.8.25; Arm A64 instruction set (DDI 0602),
//! "Branches"; RISC-V Instruction Set Manual, 2.5.

use super::link_register::Effect;
use super::registers::Machine;
use crate::symbolize::symbols::image::Image;
use object::{Object, ObjectSymbol, SymbolKind};

/// A function with its machine code.
#[derive(Debug, Clone, Copy)]
pub struct Function<'a> {
    /// The function's first address.
    pub start: u64,
    /// True if the function is Thumb code of 32-bit Arm.
    pub is_thumb: bool,
    /// The bytes of the function's instructions.
    pub code: &'a [u8],
}

/// The functions that the symbols of a file describe, by link-time address.
#[derive(Debug)]
pub struct Functions<'a> {
    /// The functions, sorted by start address.
    list: Vec<Function<'a>>,
}

/// A branch or call instruction, with the address to which it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Branch {
    Call(u64),
    Jump(u64),
    /// A call of a function whose address is in a register.
    CallRegister,
}

impl Branch {
    /// The address to which the branch goes; `None` if that depends on a register.
    fn target(self) -> Option<u64> {
        match self {
            Self::Call(target) | Self::Jump(target) => Some(target),
            Self::CallRegister => None,
        }
    }
}

impl<'a> Functions<'a> {
    /// Reads the functions of a file. `None` for machines whose files always have call frame information, so that
    /// nothing needs to be proved, and for files that can't be parsed.
    pub fn from_image(image: &'a Image) -> Option<Self> {
        let object = image.object().ok()?;
        let machine = Machine::from_elf(image.machine(), object.is_64())?;
        if !matches!(machine, Machine::Arm | Machine::Riscv64) || !object.is_little_endian() {
            return None;
        }
        // On Arm, the lowest bit of a function's address is set for Thumb code.
        let thumb_bit = u64::from(machine == Machine::Arm);
        let mut list = Vec::new();
        for symbol in object.symbols().chain(object.dynamic_symbols()) {
            if symbol.kind() != SymbolKind::Text || !symbol.is_definition() {
                continue;
            }
            let start = symbol.address() & !thumb_bit;
            let Some(end) = start.checked_add(symbol.size()) else { continue };
            if let Some(code) = image.loaded(start..end) {
                list.push(Function { start, is_thumb: symbol.address() & thumb_bit == 1, code });
            }
        }
        Some(Self::new(list))
    }

    /// Sorts the functions. Of several at the same address, only the shortest is kept.
    fn new(mut list: Vec<Function<'a>>) -> Self {
        list.sort_by_key(|function| (function.start, function.code.len()));
        list.dedup_by_key(|function| function.start);
        Self { list }
    }

    /// The function that contains a link-time address; `None` if there is none.
    pub fn find(&self, addr: u64) -> Option<Function<'a>> {
        let last = self.list.partition_point(|function| function.start <= addr).checked_sub(1)?;
        self.list.get(last).filter(|function| function.contains(addr)).copied()
    }
}

/// True if the link register proves who called the running function: it holds the address after a direct call that
/// leads to the running function; see the [module documentation](self).
///
/// `running` is an address in the running function. `link` is the link register's value, including Arm's Thumb bit.
/// `find` returns the function that contains an address.
pub(crate) fn proves_caller<'a>(
    machine: Machine,
    running: u64,
    link: u64,
    find: &impl Fn(u64) -> Option<Function<'a>>,
) -> bool {
    let return_addr = machine.code_address(link);
    let Some(caller) = return_addr.checked_sub(1).and_then(find) else { return false };
    let Some(Branch::Call(target)) = caller.branch_before(machine, return_addr) else { return false };
    let Some(callee) = find(running) else { return false };
    // If the function calls itself, the address in the link register may be from a call that the running function made,
    // which proves nothing.
    if callee.start == caller.start {
        return false;
    }
    match machine {
        // The call must be in the instruction set to which the link register returns (Thumb if its lowest bit is set),
        // and must lead directly to the function. Calls through stubs of the linker aren't followed.
        Machine::Arm => {
            // 32-bit Arm can return without using the link register, which then still holds the address of an older
            // call. So if the running function may have called `caller`, the address may be left over from a call that
            // `caller` made then.
            let is_call = caller.is_thumb == (link & 1 == 1) && target == callee.start;
            is_call && !may_call(&callee, &caller, find)
        }
        // On other machines, functions return by jumping to the link register. After a return, it holds an address in
        // the running function itself, and that was excluded above. So no older call can be mistaken for the last one.
        // Calls through stubs are followed.
        _ => reaches_by_jumps(machine, target, &callee, find),
    }
}

/// True if the code at `addr` is in the function `to`, or gets to `to` by jumps alone: through linker stubs, or
/// functions that end by calling another one. On RISC-V, jumps aren't decoded, so only the first case is found.
fn reaches_by_jumps<'a>(
    machine: Machine,
    addr: u64,
    to: &Function<'_>,
    find: &impl Fn(u64) -> Option<Function<'a>>,
) -> bool {
    /// How many functions are searched for jumps, on all paths together.
    const MAX_FUNCTIONS: usize = 32;
    let mut waiting = vec![addr];
    let mut passed = Vec::new();
    while let Some(addr) = waiting.pop() {
        if to.contains(addr) {
            return true;
        }
        let Some(function) = find(addr) else { continue };
        if passed.len() >= MAX_FUNCTIONS || passed.contains(&function.start) {
            continue;
        }
        passed.push(function.start);
        for branch in function.branches(machine, addr) {
            if let Branch::Jump(target) = branch
                && !function.contains(target)
            {
                waiting.push(target);
            }
        }
    }
    false
}

/// True if the 32-bit Arm function `from` may have called `to`, directly or through other functions. `to` may then have
/// returned without using the link register. Calls in `from` itself whose target isn't known may lead to `to`. In the
/// functions that `from` calls, such calls are ignored.
fn may_call<'a>(from: &Function<'a>, to: &Function<'_>, find: &impl Fn(u64) -> Option<Function<'a>>) -> bool {
    /// How many functions are examined. A longer chain of calls from `from` to `to` is rare.
    const MAX_FUNCTIONS: usize = 64;
    let find_by_start = |addr| find(addr).filter(|function| function.start == addr);
    let is_unknown_call = |branch: &Branch| match branch {
        Branch::CallRegister => true,
        Branch::Call(target) => find_by_start(*target).is_none(),
        Branch::Jump(_) => false,
    };
    if from.branches(Machine::Arm, from.start).iter().any(is_unknown_call) {
        return true;
    }
    // The functions that `from` reaches by calls and jumps. Those before index `next` have been examined.
    let mut reached = vec![*from];
    let mut next = 0;
    while next < reached.len().min(MAX_FUNCTIONS) {
        let function = reached[next];
        for target in function.branches(Machine::Arm, function.start).into_iter().filter_map(Branch::target) {
            if let Some(callee) = find_by_start(target)
                && reached.iter().all(|known| known.start != callee.start)
            {
                reached.push(callee);
            }
        }
        next += 1;
    }
    reached.iter().any(|function| function.start == to.start)
}

impl Function<'_> {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.code.len() as u64)
    }

    fn contains(&self, addr: u64) -> bool {
        (self.start..self.end()).contains(&addr)
    }

    /// The branch instruction that ends just before address `end`; `None` if there is none.
    fn branch_before(&self, machine: Machine, end: u64) -> Option<Branch> {
        let code = self.code.get(..usize::try_from(end.checked_sub(self.start)?).ok()?)?;
        match machine {
            Machine::Riscv64 => decode_riscv64(code, end),
            Machine::Aarch64 => decode_aarch64(code, end),
            Machine::Arm if self.is_thumb => decode_thumb(code, end),
            Machine::Arm => decode_arm(code, end),
            Machine::X86_64 | Machine::I386 | Machine::S390x => None,
        }
    }

    /// All branches that can be decoded from address `from` to the end of the function. Data between instructions is
    /// decoded as if it were code.
    fn branches(&self, machine: Machine, from: u64) -> Vec<Branch> {
        let mut branches = Vec::new();
        let mut offset = (from - self.start) as usize;
        while let Some(first) = self.code.get(offset..).and_then(|rest| rest.first_chunk()) {
            // A Thumb instruction has 4 bytes instead of 2 if its first five bits are 11101 or higher.
            let is_wide = !self.is_thumb || u16::from_le_bytes(*first) >> 11 >= 0b1_1101;
            offset += if is_wide { 4 } else { 2 };
            branches.extend(self.branch_before(machine, self.start.wrapping_add(offset as u64)));
        }
        branches
    }
}

/// The lowest `bits` bits of a number, as a signed number.
fn sign_extend(number: u32, bits: u32) -> i64 {
    i64::from((number << (32 - bits)).cast_signed() >> (32 - bits))
}

fn bit(number: u32, index: u32) -> u32 {
    number >> index & 1
}

/// Decodes `bl`, `blx` or `b`, if it is the last instruction in the Arm code `code`. `end` is the address after the
/// code. `None` if the last instruction is another one.
fn decode_arm(code: &[u8], end: u64) -> Option<Branch> {
    let word = u32::from_le_bytes(*code.last_chunk()?);
    // Distances count from 8 bytes after the instruction's start, which is 4 bytes after its end.
    let target = Machine::Arm.plus(end, sign_extend(word, 24) * 4 + 4);
    // `word >> 28` is the instruction's condition; the next four bits tell branches from other instructions. With a
    // condition of 15, the instruction is one of those that have no condition.
    match (word >> 28, word >> 24 & 15) {
        // `blx` calls Thumb code, which may start 2 bytes after a multiple of 4. Bit 24 says whether it does.
        (15, 0b1010 | 0b1011) => Some(Branch::Call(Machine::Arm.plus(target, 2 * i64::from(bit(word, 24))))),
        (15, _) => None,
        (_, 0b1011) => Some(Branch::Call(target)),
        (_, 0b1010) => Some(Branch::Jump(target)),
        // `blx register` calls a function whose address is only known when the code runs.
        _ if word & 0x0fff_fff0 == 0x012f_ff30 => Some(Branch::CallRegister),
        _ => None,
    }
}

/// Decodes `bl`, `blx` or `b.w`, if it is the last instruction in the Thumb code `code`. `end` is the address after the
/// code. `None` if the last instruction is another one.
fn decode_thumb(code: &[u8], end: u64) -> Option<Branch> {
    // `first` and `second` are the last two halfwords. A branch to an address consists of both, a call of a register
    // (`blx register`) only of the second. If there is only one halfword, `first` is 0, which starts no branch.
    let second = u32::from(u16::from_le_bytes(*code.last_chunk()?));
    let first = match code.len().checked_sub(4) {
        Some(start) => u32::from(u16::from_le_bytes(*code[start..].first_chunk()?)),
        None => 0,
    };
    // `kind` tells `b.w` (1001), `blx` (1100) and `bl` (1101) apart.
    let (sign, kind) = (bit(first, 10), second >> 12 & 0b1101);
    if first & 0xf800 != 0xf000 || ![0b1001, 0b1100, 0b1101].contains(&kind) {
        let is_blx_register = second & 0xff87 == 0x4780;
        return if is_blx_register { Some(Branch::CallRegister) } else { None };
    }
    // Bits 23 and 22 of the distance are stored inverted, and inverted again if the distance is negative.
    let (bit_23, bit_22) = (1 ^ bit(second, 13) ^ sign, 1 ^ bit(second, 11) ^ sign);
    let distance = sign << 24 | bit_23 << 23 | bit_22 << 22 | (first & 0x3ff) << 12 | (second & 0x7ff) << 1;
    // `blx` calls Arm code, so its distance counts from a multiple of 4.
    let from = if kind == 0b1100 { end & !3 } else { end };
    let target = Machine::Arm.plus(from, sign_extend(distance, 25));
    Some(if kind == 0b1001 { Branch::Jump(target) } else { Branch::Call(target) })
}

/// Like [`decode_arm`], for AArch64: `bl`, and jumps such as `b`, `b.cond`, `cbz` and `tbz`.
fn decode_aarch64(code: &[u8], end: u64) -> Option<Branch> {
    let word = u32::from_le_bytes(*code.last_chunk()?);
    let target = |instructions: i64| (end - 4).wrapping_add_signed(4 * instructions);
    match Effect::decode(word) {
        Effect::Jumps(distance) | Effect::Branches(distance) => Some(Branch::Jump(target(distance))),
        // `bl`.
        Effect::Leaves if word >> 26 == 0b10_0101 => Some(Branch::Call(target(sign_extend(word, 26)))),
        _ => None,
    }
}

/// Decodes a call if the RISC-V code `code` ends with one: `jal ra` or, for distant functions, `auipc ra; jalr ra, ra`.
/// `end` is the address after the code. `None` if the code ends with another instruction.
fn decode_riscv64(code: &[u8], end: u64) -> Option<Branch> {
    // The opcodes of `jal` and `auipc` with `ra` (register 1) as the destination, and that of `jalr` with `ra` as
    // destination and base.
    const JAL_RA: u32 = 0x6f | 1 << 7;
    const JALR_RA_RA: u32 = 0x67 | 1 << 7 | 1 << 15;
    const AUIPC_RA: u32 = 0x17 | 1 << 7;
    let word = u32::from_le_bytes(*code.last_chunk()?);
    if word & 0xfff == JAL_RA {
        // The instruction holds bits 20, 10 to 1, 11 and 19 to 12 of the distance, in this order.
        let distance = bit(word, 31) << 20 | (word & 0xf_f000) | bit(word, 20) << 11 | (word >> 20 & 0x7fe);
        return Some(Branch::Call((end - 4).wrapping_add_signed(sign_extend(distance, 21))));
    }
    // A distant call consists of the last instruction and the one before it.
    let previous = u32::from_le_bytes(*code.get(..code.len().checked_sub(4)?)?.last_chunk()?);
    if word & 0xf_ffff != JALR_RA_RA || previous & 0xfff != AUIPC_RA {
        return None;
    }
    // `auipc` has the distance's upper 20 bits, `jalr` adds the lower 12.
    let distance = i64::from((previous & 0xffff_f000).cast_signed()) + sign_extend(word >> 20, 12);
    Some(Branch::Call((end - 8).wrapping_add_signed(distance)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_branches() {
        // Thumb code, one case per line: at 0x10000: bl 1b098; at 0x10002: blx 1b098; at 0x10000: bl 10000; b.w 10004;
        // blx r3
        assert_eq!(decode_thumb(&[0x0b, 0xf0, 0x4a, 0xf8], 0x10004), Some(Branch::Call(0x1b098)));
        assert_eq!(decode_thumb(&[0x0b, 0xf0, 0x4a, 0xe8], 0x10006), Some(Branch::Call(0x1b098)));
        assert_eq!(decode_thumb(&[0xff, 0xf7, 0xfe, 0xff], 0x10004), Some(Branch::Call(0x10000)));
        assert_eq!(decode_thumb(&[0, 0xf0, 0, 0xb8], 0x10004), Some(Branch::Jump(0x10004)));
        assert_eq!(decode_thumb(&[0, 0xbf, 0x98, 0x47], 0x10004), Some(Branch::CallRegister));
        // Arm code at 0x10000, one case per line: bl 10048; blx 10048; b 10048; blx r3; bx lr
        assert_eq!(decode_arm(&[0x10, 0, 0, 0xeb], 0x10004), Some(Branch::Call(0x10048)));
        assert_eq!(decode_arm(&[0x10, 0, 0, 0xfa], 0x10004), Some(Branch::Call(0x10048)));
        assert_eq!(decode_arm(&[0x10, 0, 0, 0xea], 0x10004), Some(Branch::Jump(0x10048)));
        assert_eq!(decode_arm(&[0x33, 0xff, 0x2f, 0xe1], 0x10004), Some(Branch::CallRegister));
        assert_eq!(decode_arm(&[0x1e, 0xff, 0x2f, 0xe1], 0x10004), None);
        // RISC-V code, one case per line: jal 81c at 0x852; auipc ra, -1; jalr -0x40(ra) at 0x2000; jalr t1, t3
        assert_eq!(decode_riscv64(&[0xef, 0xf0, 0xbf, 0xfc], 0x856), Some(Branch::Call(0x81c)));
        assert_eq!(
            decode_riscv64(&[0x97, 0xf0, 0xff, 0xff, 0xe7, 0x80, 0x00, 0xfc], 0x2008),
            Some(Branch::Call(0xfc0))
        );
        assert_eq!(decode_riscv64(&[0, 0, 0, 0, 0x67, 0x03, 0x0e, 0], 0x698), None);
    }

    /// True if the link register proves the caller. Each entry of `words` is a function of four instructions. The first
    /// function is at 0x8000, and they follow each other.
    fn is_proven(machine: Machine, words: &[[u32; 4]], running: u64, link: u64) -> bool {
        let code: Vec<u8> = words.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        let function = |(at, code)| Function { start: 0x8000 + 16 * at as u64, is_thumb: false, code };
        let functions = Functions::new(code.chunks(16).enumerate().map(function).collect());
        proves_caller(machine, running, link, &|addr| functions.find(addr))
    }

    const NOP: u32 = 0xe320_f000;
    const POP_PC: u32 = 0xe8bd_8010;
    const BLX_R3: u32 = 0xe12f_ff33;

    /// The instruction `bl`, as the second word of a function. It calls the function this many functions further on.
    const fn bl(functions: i32) -> u32 {
        0xeb00_0000 | (functions * 4 - 3).cast_unsigned() & 0xff_ffff
    }

    #[test]
    fn the_function_behind_a_direct_call_was_called_there() {
        let called = [[NOP, bl(1), NOP, POP_PC], [NOP, NOP, NOP, POP_PC], [NOP; 4]];
        let is_proven = |running, link| is_proven(Machine::Arm, &called, running, link);
        assert!(is_proven(0x8014, 0x8008));
        assert!(!is_proven(0x8024, 0x8008), "another function runs");
        assert!(!is_proven(0x8014, 0x800c), "no call is there");
        assert!(!is_proven(0x8014, 0x8009), "this is not Thumb code");
        assert!(!is_proven(0x9000, 0x8008) && !is_proven(0x8014, 0));
    }

    #[test]
    fn a_call_that_may_have_returned_proves_nothing() {
        let is_proven = |words: &[[u32; 4]], running, link| is_proven(Machine::Arm, words, running, link);
        assert!(!is_proven(&[[NOP, bl(0), NOP, POP_PC]], 0x8000, 0x8008), "recursive");
        // Three functions: the first calls the second, the second the third, and the third the first.
        let each_other = [[NOP, bl(1), NOP, POP_PC], [NOP, bl(1), NOP, POP_PC], [NOP, bl(-2), NOP, POP_PC]];
        assert!(!is_proven(&each_other, 0x8000, 0x8028));
        let by_register = [[NOP, bl(1), NOP, POP_PC], [NOP, BLX_R3, NOP, POP_PC]];
        assert!(!is_proven(&by_register, 0x8018, 0x8008));
        let through_another = [[NOP, bl(1), NOP, POP_PC], [NOP, bl(9), NOP, POP_PC]];
        assert!(!is_proven(&through_another, 0x8018, 0x8008), "of another file");
    }

    #[test]
    fn a_call_of_a_function_that_jumps_on() {
        // Instructions: nop; ret; br x2; then bl, b and cbz x0, which lead from the second word to the third function.
        let (nop, ret, br, bl, b, cbz) = (0xd503_201f, 0xd65f_03c0, 0xd61f_0040, 0x9400_0007, 0x1400_0003, 0xb400_0060);
        let is_proven = |second| {
            let words = [[nop, bl - 4, nop, ret], second, [nop, nop, nop, ret]];
            is_proven(Machine::Aarch64, &words, 0x8024, 0x8008)
        };
        assert!(is_proven([nop, b, nop, ret]) && is_proven([nop, cbz, nop, ret]));
        assert!(
            !is_proven([nop, nop, nop, ret]) && !is_proven([b, nop, nop, br]),
            "it jumps to the end of its own code"
        );
        let called = [[nop, bl, nop, ret], [nop; 4], [nop, nop, nop, ret]];
        assert!(super::tests::is_proven(Machine::Aarch64, &called, 0x8024, 0x8008));
        assert!(!super::tests::is_proven(Machine::Aarch64, &called, 0x8008, 0x8008), "it goes on in the caller");
    }
}
