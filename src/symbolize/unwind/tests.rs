//! Unwinds handmade stacks. The native code is the test binary itself; the JIT code lies in anonymous memory.

use super::registers::aarch64;
use super::registers::x86_64::{RBP, RIP, RSP};
use super::*;
use crate::model::Nanos;
use crate::model::code::{Code, Lines, OriginId, Unwind};
use crate::model::process::{Mapping, Process, Processes};
use crate::parallel::Pool;
use crate::symbolize::address_space::AddressSpaces;
use crate::symbolize::code_map::{CodeList, CodeMap};
use crate::symbolize::symbols::files::SearchOptions;

const JIT: u64 = 0x10_0000;
const STACK: u64 = 0x7000;

/// A process with executable memory at [`JIT`], from the file at `path`.
fn processes(path: &[u8]) -> Processes {
    let mapping = Mapping {
        time: Nanos(0),
        addr: Addr(JIT),
        len: 0x1_0000,
        pgoff: 0,
        path: path.into(),
        build_id: None,
        file: None,
        executable: true,
        cpumode: CpuMode::User,
        offset: 0,
    };
    let process = Process { mappings: vec![mapping], ..Process::default() };
    Processes { by_pid: [(Pid(1), process)].into(), ..Processes::default() }
}

fn jit_code<'data>(addr: u64, bytes: &'data [u8], unwind: Option<Unwind<'data>>) -> Code<'data> {
    Code {
        name: b"jit",
        addr: Addr(addr),
        size: bytes.len() as u64,
        bytes: Some(bytes),
        lines: Lines::default(),
        unwind,
        origin: OriginId(0),
    }
}

/// Leaks a value, so that it lives until the test program ends. The values in these tests borrow from each other.
fn kept<T>(thing: T) -> &'static T {
    Box::leak(Box::new(thing))
}

fn unwinder(codes: &[Code<'static>], max_depth: usize) -> Unwinder<'static> {
    unwinder_of(&processes(b"//anon"), Some(Nanos(1)), codes, max_depth)
}

/// Unwinds in process 1, which loaded `codes` at `time`.
fn unwinder_of(
    processes: &Processes,
    time: Option<Nanos>,
    codes: &[Code<'static>],
    max_depth: usize,
) -> Unwinder<'static> {
    let mut list = CodeList::default();
    for code in codes {
        list.load(Pid(1), time, code);
    }
    let spaces = kept(AddressSpaces::new(processes));
    let codes = kept(CodeMap::build(vec![list], processes, &Pool::new(None).unwrap()));
    let images = kept(Images::new(spaces.dsos().iter(), SearchOptions::default()));
    Unwinder::new(Symbolizer { spaces, codes }, images, max_depth)
}

fn unwind(codes: &[Code<'static>], registers: &Registers, words: &[u64], max_depth: usize) -> UnwoundChain {
    unwind_with(&unwinder(codes, max_depth), registers, words)
}

fn unwind_with(unwinder: &Unwinder<'_>, registers: &Registers, words: &[u64]) -> UnwoundChain {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut chain = UnwoundChain::default();
    let stack = UserStack { pid: Pid(1), time: Nanos(5), registers, bytes: &bytes };
    unwinder.unwind(&stack, &mut Cache::default(), &mut chain);
    chain
}

fn registers(machine: Machine, values: &[(u16, u64)]) -> Registers {
    let mut registers = Registers::new(machine);
    for &(register, value) in values {
        registers.set(register, value);
    }
    registers
}

fn x86_64(pc: u64, bp: u64) -> Registers {
    registers(Machine::X86_64, &[(RIP, pc), (RSP, STACK), (RBP, bp)])
}

fn addresses(chain: &UnwoundChain) -> Vec<u64> {
    chain.frames.iter().map(|frame| frame.raw().0).collect()
}

/// The code `push rbp; mov rbp, rsp; …; pop rbp; ret`.
const FRAMED: [u8; 16] =
    [0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x5d, 0xc3];

#[test]
fn jit_frames_by_frame_pointer_down_to_a_return_address_of_zero() {
    let stack = [0, 0, STACK + 32, JIT + 0x20, 0, 0];
    let chain = unwind(&[], &x86_64(JIT + 5, STACK + 16), &stack, MAX_DEPTH);
    assert_eq!(addresses(&chain), [JIT + 5, JIT + 0x20]);
    assert_eq!(chain.frames[1], FrameAddr::Return(Addr(JIT + 0x20)));
    assert!(!chain.truncated);
}

#[test]
fn a_leaf_that_has_no_frame_yet_keeps_its_caller() {
    let stack = [JIT + 0x40, 0, STACK + 32, JIT + 0x60, 0, 0];
    let codes = [jit_code(JIT, &FRAMED, None)];
    let at_entry = unwind(&codes, &x86_64(JIT, STACK + 16), &stack, MAX_DEPTH);
    assert_eq!(addresses(&at_entry), [JIT, JIT + 0x40, JIT + 0x60]);
    let at_return = unwind(&codes, &x86_64(JIT + 15, STACK + 16), &stack, MAX_DEPTH);
    assert_eq!(addresses(&at_return), [JIT + 15, JIT + 0x40, JIT + 0x60]);
    let inside = unwind(&codes, &x86_64(JIT + 6, STACK + 16), &stack, MAX_DEPTH);
    assert_eq!(addresses(&inside), [JIT + 6, JIT + 0x60]);
}

#[test]
fn code_without_times_counts_where_it_also_gives_the_name() {
    let stack = [JIT + 0x40, 0, STACK + 32, JIT + 0x60, 0, 0];
    for (path, time, is_used) in [
        (&b"//anon"[..], None, true),
        (b"/dev/shm/jit (deleted)", None, true),
        (b"/dev/shm/jit (deleted)", Some(Nanos(1)), true),
        (b"/no/such/file", None, true),
        // Logged before the file was mapped.
        (b"/no/such/file", Some(Nanos(1)), false),
    ] {
        let mut processes = processes(path);
        if !is_used {
            processes.by_pid.get_mut(&Pid(1)).unwrap().mappings[0].time = Nanos(2);
        }
        let codes = [jit_code(JIT, &FRAMED, None)];
        let chain = unwind_with(&unwinder_of(&processes, time, &codes, MAX_DEPTH), &x86_64(JIT, STACK + 16), &stack);
        // At its first instruction, a function has no frame yet. That is known only of JIT code with bytes.
        let expected: &[u64] = if is_used { &[JIT, JIT + 0x40, JIT + 0x60] } else { &[JIT, JIT + 0x60] };
        assert_eq!(addresses(&chain), expected, "{time:?} {}", String::from_utf8_lossy(path));
    }
}

#[test]
fn unwinding_information_of_the_dump_is_used_and_ends_the_chain() {
    // CFA = rsp + 24, return address at CFA - 8; no frame pointer.
    let code = kept([0x90; 16]);
    let cie = [
        &16_u32.to_le_bytes()[..], // length
        &[0; 4],                   // CIE
        b"\x01zR\0\x01\x78\x10",   // version, augmentation, code and data factor (-8), return register
        &[0x01, 0x1b],             // pc-relative, 4 bytes
        &[0x0c, 7, 24],            // DW_CFA_def_cfa rsp, 24
    ]
    .concat();
    let fde = |instructions: &[u8]| {
        let here = (code.len() + cie.len() + 8) as i32;
        let instructions = [&[0][..], instructions].concat();
        [&(12 + instructions.len() as u32).to_le_bytes()[..], &24_u32.to_le_bytes(), &(-here).to_le_bytes()]
            .concat()
            .into_iter()
            .chain(16_u32.to_le_bytes())
            .chain(instructions)
            .collect::<Vec<u8>>()
    };
    let eh_frame = |instructions: &[u8]| [&cie[..], &fde(instructions)].concat();
    let with = |eh_frame: &'static [u8]| Some(Unwind { eh_frame, eh_frame_hdr: &[], mapped_size: 0 });
    let saved: &'static [u8] = eh_frame(&[0x90, 1, 0]).leak(); // DW_CFA_offset RA, CFA - 8; nop
    let last: &'static [u8] = eh_frame(&[0x07, 16, 0]).leak(); // DW_CFA_undefined RA; nop
    let codes = [jit_code(JIT, code, with(saved)), jit_code(JIT + 0x40, code, with(last))];
    let chain = unwind(&codes, &x86_64(JIT + 5, 1), &[9, 9, JIT + 0x48, 9], MAX_DEPTH);
    assert_eq!(addresses(&chain), [JIT + 5, JIT + 0x48]);
    assert!(!chain.truncated);
}

#[test]
fn stacks_that_loop_or_leave_the_copy_end() {
    let looping = unwind(&[], &x86_64(JIT, STACK), &[STACK, JIT + 8], MAX_DEPTH);
    assert_eq!(addresses(&looping), [JIT, JIT + 8]);
    assert!(looping.truncated);
    let cut = unwind(&[], &x86_64(JIT, STACK + 16), &[0, 0, STACK + 64], MAX_DEPTH);
    assert_eq!((addresses(&cut), cut.truncated), (vec![JIT], true));
    let into_nothing = unwind(&[], &x86_64(JIT, STACK), &[STACK + 16, 0xdead], MAX_DEPTH);
    assert_eq!((addresses(&into_nothing), into_nothing.truncated), (vec![JIT], true));
    let unmapped = unwind(&[], &x86_64(0x66, STACK), &[STACK + 16, JIT], MAX_DEPTH);
    assert_eq!((addresses(&unmapped), unmapped.truncated), (vec![0x66], true));
    let deep: Vec<u64> = (0..400).flat_map(|frame| [STACK + 16 * (frame + 1), JIT + 8]).collect();
    let deep = unwind(&[], &x86_64(JIT, STACK), &deep, MAX_DEPTH);
    assert_eq!((deep.frames.len(), deep.truncated), (MAX_DEPTH, true));
}

#[test]
fn aarch64_frame_records_with_signed_return_addresses() {
    let signed = (JIT + 0x20) | (0xab << 48);
    let start = [(aarch64::PC, JIT + 4), (aarch64::SP, STACK), (aarch64::FP, STACK)];
    let stack = [STACK + 16, signed, 0, 0];
    let chain = unwind(&[], &registers(Machine::Aarch64, &start), &stack, MAX_DEPTH);
    assert_eq!(addresses(&chain), [JIT + 4, JIT + 0x20]);
    assert!(!chain.truncated);
}

#[test]
fn a_direct_call_proves_the_caller_of_jit_code_that_only_jumps_on() {
    const JUMPING: u64 = JIT + 0x40;
    const OUTER_CALLER: u64 = JIT + 0x60;
    /// The address after the call in the code at `JIT`.
    const BEHIND_CALL: u64 = JIT + 8;
    const BEHIND_NOP: u64 = JIT + 12;
    // The code: nop; bl JUMPING; nop; nop
    let calling = leaked_code(&[0xd503_201f, 0x9400_000f, 0xd503_201f, 0xd503_201f]);
    // The code: nop; br x2
    let jumping = leaked_code(&[0xd503_201f, 0xd61f_0040]);
    let codes = [jit_code(JIT, calling, None), jit_code(JUMPING, jumping, None)];
    let stack = [0, 0, STACK + 32, OUTER_CALLER, 0, 0];
    let unwind_with_link = |link| {
        let start = [(aarch64::PC, JUMPING), (aarch64::SP, STACK), (aarch64::FP, STACK + 16), (aarch64::LR, link)];
        addresses(&unwind(&codes, &registers(Machine::Aarch64, &start), &stack, MAX_DEPTH))
    };
    assert_eq!(unwind_with_link(BEHIND_CALL), [JUMPING, BEHIND_CALL, OUTER_CALLER]);
    assert_eq!(unwind_with_link(BEHIND_NOP), [JUMPING, OUTER_CALLER], "no call is there");
    let find_leaf_caller = |link, next| {
        let moment = Moment { pid: Pid(1), time: Nanos(5), machine: Machine::Aarch64 };
        let unwinder = unwinder(&codes, MAX_DEPTH);
        unwinder.leaf_caller(moment, Addr(JUMPING), link, Some(Addr(next)), &mut Cache::default())
    };
    assert_eq!(find_leaf_caller(BEHIND_CALL, OUTER_CALLER), Some(Addr(BEHIND_CALL)));
    assert_eq!(find_leaf_caller(BEHIND_CALL, BEHIND_CALL), None, "the chain has it");
    assert_eq!(find_leaf_caller(BEHIND_NOP, OUTER_CALLER), None);
}

/// Leaks code that consists of these AArch64 instructions.
fn leaked_code(instructions: &[u32]) -> &'static [u8] {
    instructions.iter().flat_map(|instruction| instruction.to_le_bytes()).collect::<Vec<u8>>().leak()
}
