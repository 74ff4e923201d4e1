//! A recording of code that was registered with GDB's JIT interface, and the core dump that its process left. The names
//! of addresses are found by a second reader, which shares no code with `src/`: it finds the descriptor by its symbol's
//! address, and has the objects read by nm and addr2line.

use crate::support::second_readers::gdb_core::{CORE, functions, output, run, unpacked};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

/// The recording and, under this name, the core, in a directory of their own.
fn directory(core: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("perf.data"), unpacked("perf.data")).unwrap();
    if !core.is_empty() {
        fs::write(dir.path().join(core), unpacked(CORE)).unwrap();
    }
    dir
}

fn jitgraft(arguments: &[&str], dir: &Path) -> String {
    run(env!("CARGO_BIN_EXE_jitgraft"), arguments, dir)
}

/// Stacks without the frames of the program itself, which has no symbols here, and how many samples have them.
fn stacks(folded: &str) -> BTreeMap<Vec<String>, u64> {
    let mut stacks = BTreeMap::new();
    for row in folded.lines() {
        let (stack, count) = row.rsplit_once(' ').unwrap();
        let own = stack.split(';').filter(|frame| matches!(*frame, "spin" | "twice" | "mix" | "fib" | "step"));
        *stacks.entry(own.map(str::to_owned).collect()).or_default() += count.parse::<u64>().unwrap();
    }
    stacks
}

#[test]
fn a_core_beside_the_recording_names_every_sample_and_unwinds_its_stack() {
    let dir = directory(CORE);
    let shown = run("perf", &["script", "-i", "perf.data", "-F", "ip,sym"], dir.path());
    assert!(!shown.contains("spin") && !shown.contains("step"), "perf alone names nothing");
    let known = functions(dir.path());
    let sampled = shown.lines().filter_map(|line| u64::from_str_radix(line.split_whitespace().next()?, 16).ok());
    let is_in = |addr: &u64| known.iter().any(|known| (known.addr..known.addr + known.size).contains(addr));
    let in_code = sampled.filter(is_in).count() as u64;
    assert!(in_code > 400, "{in_code}");

    let folded = jitgraft(&["collapse", "--weight", "samples", "perf.data"], dir.path());
    let stacks = stacks(&folded);
    let named: u64 = stacks.iter().filter(|(stack, _)| !stack.is_empty()).map(|(_, count)| count).sum();
    assert_eq!(named, in_code);
    for stack in stacks.keys().filter(|stack| !stack.is_empty()) {
        // Without the objects' unwinding information the callers of code without frame pointers would be lost.
        let is_whole = match stack[0].as_str() {
            "spin" => stack[1..].iter().all(|call| call == "twice" || call == "mix"),
            "fib" => stack[1..].iter().all(|call| call == "step"),
            _ => false,
        };
        assert!(is_whole, "{stack:?}");
    }
    assert!(stacks.keys().any(|stack| *stack == ["spin", "twice", "mix"]), "{stacks:?}");
    assert!(stacks.keys().any(|stack| stack.len() > 10), "{stacks:?}");
}

#[test]
fn a_core_shows_itself_whose_it_is() {
    let plain = directory("core");
    let named = jitgraft(&["collapse", "perf.data"], plain.path());
    assert!(named.contains("spin"), "{named}");
    let systemd = directory("core.register.0.d5a7c0e1b2f34c5d8e9f0a1b2c3d4e5f.24209.1700000000000000");
    assert_eq!(jitgraft(&["collapse", "perf.data"], systemd.path()), named);
    let given = directory("");
    let elsewhere = directory("what");
    let core = elsewhere.path().join("what");
    let core = core.to_str().unwrap();
    assert!(!jitgraft(&["collapse", "perf.data"], given.path()).contains("spin"));
    assert_eq!(jitgraft(&["collapse", "--jit-log", core, "perf.data"], given.path()), named);
}

#[test]
fn a_core_of_another_run_is_not_used_and_said() {
    let dir = directory("");
    let mut core = unpacked(CORE);
    // The program's own mapping, as the list of files has it, is of another file.
    let name = b"/register\0";
    let places: Vec<usize> = (0..core.len() - name.len()).filter(|at| core[*at..].starts_with(name)).collect();
    places.iter().for_each(|at| core[at + 1] = b'R');
    fs::write(dir.path().join(CORE), &core).unwrap();
    let output = output(env!("CARGO_BIN_EXE_jitgraft"), &["collapse", "perf.data"], dir.path());
    assert!(!String::from_utf8_lossy(&output.stdout).contains("spin"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("different file mapped than the recorded one"), "{said}");
}

#[test]
fn a_map_of_the_process_comes_before_its_core() {
    let dir = directory(CORE);
    let spin = functions(dir.path()).into_iter().find(|function| function.name == "spin").unwrap();
    let map = format!("{:x} {:x} by_the_map\n", spin.addr, spin.size);
    fs::write(dir.path().join("perf-24209.map"), map).unwrap();
    let folded = jitgraft(&["collapse", "perf.data"], dir.path());
    assert!(folded.contains("by_the_map") && !folded.contains("spin"), "{folded}");
    assert!(folded.contains("step"), "the core names what the map does not have: {folded}");
}

#[test]
fn annotate_shows_the_code_that_the_core_has() {
    let dir = directory(CORE);
    let listing = jitgraft(&["annotate", "^step$", "perf.data"], dir.path());
    assert!(listing.contains("ret") && listing.contains("fib.c"), "{listing}");
}

#[test]
fn inject_writes_names_for_perf() {
    let dir = directory(CORE);
    jitgraft(&["inject", "-i", "perf.data", "-o", "perf.jit.data"], dir.path());
    let shown = run("perf", &["script", "--no-inline", "-i", "perf.jit.data", "-F", "ip,sym"], dir.path());
    let named = shown.lines().filter(|line| line.contains("spin") || line.contains("step")).count();
    assert!(named > 400, "{named}");
}

/// Ends when its owner does.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_memory_of_a_process_that_still_runs_names_its_code() {
    let dir = tempfile::tempdir().unwrap();
    let source = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-gdb-jit").join(name);
    let [register, spin, fib] = ["register.c", "spin.c", "fib.c"].map(|name| source(name).display().to_string());
    run("gcc", &["-O1", "-o", "register", &register], dir.path());
    run("gcc", &["-O1", "-g", "-fno-pic", "-fcf-protection=none", "-c", &spin, &fib], dir.path());
    let started = Command::new("./register").args(["spin.o", "fib.o", "100000000"]).current_dir(dir.path()).spawn();
    let running = Running(started.unwrap());
    let pid = running.0.id().to_string();
    let record = ["record", "-q", "-k", "mono", "-e", "cpu-clock", "-F", "499", "-o", "perf.data", "-p", &pid, "--"];
    run("perf", &[&record[..], &["sleep", "0.5"]].concat(), dir.path());
    let output = output(env!("CARGO_BIN_EXE_jitgraft"), &["collapse", "perf.data"], dir.path());
    let (folded, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(folded.contains(";spin ") && folded.contains("step"), "{folded}{said}");
    assert!(said.contains(&format!("/proc/{pid}/mem: used for process {pid}")), "{said}");
    drop(running);
    let folded = jitgraft(&["collapse", "perf.data"], dir.path());
    // As a frame of its own: the kernel has functions whose names contain it.
    let is_named = folded.lines().any(|line| line.rsplit_once(' ').is_some_and(|(stack, _)| stack.ends_with(";spin")));
    assert!(!is_named, "it has ended: {folded}");
}
