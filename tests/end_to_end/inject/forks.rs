//! Code that is inherited over any number of forks.

use super::odd::{AT, Odd, PID, load};
use super::support::jitdump::JitDump;
use super::support::perf_data::{Mmap, Mode, Stamp};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The address of a library, mapped before the first fork.
const LIBRARY: u64 = 0x40_0000;

/// A process that is forked from one that is forked from one, and so on; then a sample in JIT code and one in a
/// library, which only the first of them has loaded.
fn forked(generations: u32) -> Odd {
    let mut dump = JitDump::new(PID);
    dump.load(10, load(b"inherited", AT, 0));
    let mut odd = Odd::new("jit-77.dump").file("jit-77.dump", &dump.into_bytes());
    odd.recording.mmap2(Stamp::new(PID, 4), Mmap { addr: LIBRARY, len: 0x1000, pgoff: 0, path: "/lib/absent.so" });
    for child in PID + 1..=PID + generations {
        odd.recording.fork(Stamp::new(child, 20), child - 1);
    }
    odd.sample(PID + generations, 30, AT + 4).sample(PID + generations, 31, LIBRARY + 4)
}

#[test]
fn code_is_inherited_over_any_number_of_forks() {
    for generations in [31, 40, 300, 3000] {
        let (names, warnings) = forked(generations).inject(&[]);
        assert_eq!((names, warnings), (vec!["inherited".to_owned(), "[unknown]".to_owned()], vec![]), "{generations}");
    }
}

#[test]
fn mappings_are_inherited_over_any_number_of_forks() {
    for generations in [31, 40, 300, 3000] {
        let odd = forked(generations);
        let input = odd.dir.path().join("perf.data");
        fs::write(&input, odd.recording.into_bytes(Mode::File)).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("collapse").arg(&input).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, "program;[absent.so] 1000000\nprogram;inherited 1000000\n", "{generations}");
    }
}

#[test]
fn processes_that_are_forked_from_each_other_are_reported_and_do_no_harm() {
    let mut odd = forked(1);
    odd.recording.fork(Stamp::new(PID, 20), PID + 1);
    let (names, warnings) = odd.inject(&[]);
    assert_eq!(names, ["inherited", "[unknown]"]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("1 record skipped: process 77 is recorded as forked from process 78"), "{warnings:?}");
}

/// Runs a job on a recording: all that it prints.
fn printed(job: &[&str], input: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let output = command.args(job).arg(input).env("HOME", "/nonexistent").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    text + &String::from_utf8(output.stdout).unwrap()
}

#[test]
fn messages_call_a_process_after_the_program_that_it_ran_at_last() {
    let mut odd = Odd::new("library.so");
    // The records of two processors: what env did follows what node did later.
    odd.recording.comm(Stamp::new(PID, 8), "node", true);
    odd.recording.mmap2(Stamp::new(PID, 9), Mmap { addr: LIBRARY, len: 0x1000, pgoff: 0, path: "/usr/bin/node" });
    odd.recording.comm(Stamp::new(PID, 6), "env", true);
    odd.recording.mmap2(Stamp::new(PID, 7), Mmap { addr: LIBRARY, len: 0x1000, pgoff: 0, path: "/usr/bin/env" });
    let mut odd = odd.map(10, "//anon").sample(PID, 15, AT + 4);
    odd.recording.fork(Stamp::new(PID + 1, 20), PID);
    let odd = odd.sample(PID + 1, 30, AT + 4);
    let input = odd.dir.path().join("perf.data");
    fs::write(&input, odd.recording.into_bytes(Mode::File)).unwrap();
    let output = odd.dir.path().join("out.data");
    let injected = printed(&["inject", "-o", output.to_str().unwrap(), "-i"], &input);
    let doctor = printed(&["doctor"], &input);
    for pid in [PID, PID + 1] {
        assert!(injected.contains(&format!("process {pid} (node): 1 frame that no dump")), "{injected}");
        assert!(doctor.contains(&format!("Process {pid} (node), Node.js: 0 of 1 frame")), "{doctor}");
    }
    assert!(doctor.contains(&format!("JIT code of process {PID} and 1 more (node, Node.js) has no names")), "{doctor}");
    assert!(!doctor.contains("(env"), "{doctor}");
}
