//! JIT code in memory of every sort that no file backs, with names only, in recordings with copies of user stacks.

use super::odd::{AT, Odd, PID};
use super::perf::script;
use super::support::perf_data::{Event, More, REGS_USER, STACK_USER, Stamp, USER, USUAL};
use super::truth::read_script;

/// `PERF_REG_X86_AX` to `IP`, and `R8` to `R15`: what perf records with `--call-graph dwarf`.
const REGISTERS: u64 = 0xff_01ff;
const BP: usize = 6;
const SP: usize = 7;
const IP: usize = 8;

/// A function that keeps no frame pointer, as MoarVM's do not: what the register points at is not a frame.
fn sample_without_a_frame_pointer(odd: &mut Odd) {
    const STACK: u64 = 0x7fff_0000_0000;
    let mut registers = [0; 17];
    (registers[BP], registers[SP], registers[IP]) = (STACK + 16, STACK, AT + 4);
    let stack = [1, 2, STACK + 32, 0x12_3456, 3, 4];
    let more = More { registers: (2, &registers), stack: &stack, ..More::default() };
    odd.recording.sample_with(0, USER, Stamp::new(PID, 20), AT + 4, &[], &more);
}

/// The frames that perf shows for it.
fn frames(path: &str) -> Vec<String> {
    let event =
        Event { sample_type: USUAL | REGS_USER | STACK_USER, registers: REGISTERS, stack: 8192, ..Event::usual() };
    let map = format!("{AT:x} 40 named\n");
    let mut odd = Odd::with_event("library.so", event).file("perf-77.map", map.as_bytes()).map(4, path);
    sample_without_a_frame_pointer(&mut odd);
    let (dir, warnings) = odd.inject_into(&[]);
    assert_eq!(warnings, [""; 0]);
    let printed = read_script(&script(&dir.path().join("out.data")).out).remove(0);
    printed.frames.into_iter().map(|(_, name, ..)| String::from_utf8_lossy(&name).into_owned()).collect()
}

#[test]
fn names_alone_make_no_caller_whatever_the_memory_is_called() {
    let paths = [
        "//anon",
        "[anon:JIT code]",
        "[anon_shmem:JIT code]",
        "/memfd:doublemapper (deleted)",
        "/dev/zero (deleted)",
        "/SYSV0000002a (deleted)",
        "/anon_hugepage (deleted)",
    ];
    for path in paths {
        assert_eq!(frames(path), ["named"], "{path}");
    }
}
