//! Stacks that break off, or are cut.

use super::scene::{JIT, PID, SAMPLES, START, Scene, at, doctor, map};
use crate::support::perf_data::{CONTEXT_USER, Event, More, REGS_USER, STACK_USER, Stamp, USER, USUAL};

#[test]
fn a_jvm_without_frame_pointers_is_reported_its_own_switch() {
    let mut scene = Scene::of("/usr/lib/jvm/bin/java");
    scene.samples(SAMPLES, &[&[at(0), 0x1234], &[at(1), at(2)]]);
    scene.write(&format!("perf-{PID}.map"), map(JIT, &["int A.a()", "int A.b()", "start_thread"]));
    let (cause, remedy) = scene.first("jvm-frame-pointers");
    assert!(cause.contains("end early"), "{cause}");
    assert!(remedy.contains("-XX:+PreserveFramePointer"), "{remedy}");
}

#[test]
fn a_jvm_that_was_started_with_frame_pointers_is_not_reported_to_be() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/hotspot-log/perf.data.zst");
    let told = doctor(&["--format", "json"], recording.as_ref()).stdout;
    let told = String::from_utf8(told).unwrap();
    assert!(told.contains("\"frame-pointers\""), "{told}");
    assert!(!told.contains("jvm-frame-pointers"), "{told}");
}

#[test]
fn stacks_that_break_off_are_a_finding_even_where_all_frames_have_names() {
    let mut scene = Scene::of("/usr/bin/app");
    scene.samples(SAMPLES, &[&[at(0), at(1)], &[at(1)], &[at(0), at(1), at(2)]]);
    scene.write(&format!("perf-{PID}.map"), map(JIT, &["a", "b", "main"]));
    let (cause, remedy) = scene.first("frame-pointers");
    assert!(cause.contains("JIT code"), "{cause}");
    // Whose it is is unknown, and with it how it is left.
    assert!(remedy.contains("their callers cannot be found"), "{remedy}");
}

#[test]
fn some_broken_stacks_are_ordinary() {
    let mut scene = Scene::of("/usr/bin/app");
    let (whole, broken) = (&[at(0), at(1)][..], &[at(0), 0x1234][..]);
    scene.samples(SAMPLES, &[whole, whole, whole, whole, whole, whole, whole, whole, whole, broken]);
    scene.write(&format!("perf-{PID}.map"), map(JIT, &["a", "main"]));
    assert_eq!(scene.problems(), [""; 0]);
}

fn deep(event: Event, frames: usize) -> Scene {
    let mut scene = Scene::with_event("/usr/bin/app", event);
    let chain = vec![at(0); frames];
    scene.samples(SAMPLES, &[&chain]);
    scene.write(&format!("perf-{PID}.map"), map(JIT, &["a", "main"]));
    scene
}

#[test]
fn chains_as_long_as_the_kernel_allows_are_cut() {
    let (cause, remedy) = deep(Event::usual(), 127).first("call-chains-cut");
    assert!(cause.contains("127 frames"), "{cause}");
    assert!(remedy.contains("kernel.perf_event_max_stack"), "{remedy}");
    let (cause, _) = deep(Event { max_stack: 32, ..Event::usual() }, 32).first("call-chains-cut");
    assert!(cause.contains("32 frames"), "{cause}");
}

/// Registers of x86-64 by their numbers in `perf_regs.h`: bp 6, sp 7, ip 8.
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// Samples with copies of stacks of these words, in which a frame pointer leads upwards from the first.
fn copied(words: &[u64], room: u32) -> Scene {
    copied_of("/usr/bin/app", words, room)
}

fn copied_of(program: &str, words: &[u64], room: u32) -> Scene {
    const STACK: u64 = 0x7ffc_0000_0000;
    let sample_type = USUAL | REGS_USER | STACK_USER;
    let event = Event { sample_type, registers: REGISTERS, stack: room, ..Event::usual() };
    let mut scene = Scene::with_event(program, event);
    for number in 0..SAMPLES {
        let registers = [STACK, STACK, at(0)];
        let more = More { registers: (2, &registers), stack: words, ..More::default() };
        let stamp = Stamp::new(PID, START + number * 1_000_000);
        scene.data.sample_with(0, USER, stamp, at(0), &[CONTEXT_USER, at(0)], &more);
    }
    scene.write(&format!("perf-{PID}.map"), map(JIT, &["a", "main"]));
    scene
}

#[test]
fn copies_that_end_before_the_stack_does_are_too_short() {
    const STACK: u64 = 0x7ffc_0000_0000;
    // The second frame's own frame pointer leads beyond what was copied.
    let words = [STACK + 16, at(0), STACK + 4096, at(0)];
    let (cause, remedy) = copied(&words, 32).first("stack-copies-short");
    assert!(cause.contains("32 bytes"), "{cause}");
    assert!(remedy.contains("--call-graph dwarf,65528"), "{remedy}");
}

/// Whatever else the command has stays, and a recording that needs larger copies and a switch gets both.
#[test]
fn the_command_for_short_copies_makes_the_largest_ones() {
    const STACK: u64 = 0x7ffc_0000_0000;
    let words = [STACK + 16, at(0), STACK + 4096, at(0)];
    for (options, expected) in [
        (&["--call-graph", "dwarf,32"][..], "jitgraft record --call-graph dwarf,65528 -- /usr/bin/app x"),
        (&["-k", "mono", "--call-graph=dwarf,32"], "jitgraft record --call-graph dwarf,65528 -- /usr/bin/app x"),
        (
            &["-F", "99", "--call-graph", "dwarf", "-m", "4M"],
            "jitgraft record -F 99 -m 4M --call-graph dwarf,65528 -- /usr/bin/app x",
        ),
    ] {
        let mut scene = copied(&words, 32);
        scene.data.command(&[&["perf", "record"], options, &["--", "/usr/bin/app", "x"]].concat());
        let findings = scene.findings();
        let found = findings.iter().find(|found| found["problem"] == "stack-copies-short").unwrap();
        let command = found["command"].as_str().unwrap_or_else(|| panic!("{found:#}"));
        let sorted = |line: &str| {
            let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            words.sort();
            words
        };
        assert_eq!(sorted(command), sorted(expected), "{options:?}");
        assert!(command.ends_with("-- /usr/bin/app x"), "{command}");
    }
    // The event has its own setting, which no option replaces.
    let mut scene = copied(&words, 32);
    scene.data.command(&["perf", "record", "-k", "mono", "-e", "cpu-clock/call-graph=dwarf,stack-size=32/", "app"]);
    let findings = scene.findings();
    let found = findings.iter().find(|found| found["problem"] == "stack-copies-short").unwrap();
    assert!(found["command"].is_null(), "{found:#}");
}

#[test]
fn stacks_that_nobody_can_leave_are_not_unwound() {
    const STACK: u64 = 0x7ffc_0000_0000;
    // The frame pointer of the second frame is none.
    let words = [STACK + 16, at(0), 3, at(0)];
    let (cause, _) = copied(&words, 32).first("not-unwound");
    assert!(cause.contains("JIT code"), "{cause}");
}

/// Copies of stacks end in Erlang's code, which has no unwinding data, but can keep frame pointers.
#[test]
fn copies_that_end_in_code_with_frame_pointers_lead_back_to_chains() {
    const STACK: u64 = 0x7ffc_0000_0000;
    let words = [STACK + 16, at(0), 3, at(0)];
    for (program, wants_chains) in
        [("/usr/lib/erlang/erts-13.1.5/bin/beam.smp", true), ("/usr/bin/luajit", false), ("/usr/bin/app", false)]
    {
        let (_, remedy) = copied_of(program, &words, 32).first("not-unwound");
        assert_eq!(remedy.contains("jitgraft record") && remedy.contains("+JPperf true"), wants_chains, "{remedy}");
    }
}

/// Trampolines of Python's map cannot be left; since 3.13 there is a dump that tells how.
#[test]
fn copies_of_stacks_lead_through_pythons_functions_only_with_a_dump() {
    const STACK: u64 = 0x7ffc_0000_0000;
    let words = [STACK + 16, at(0), 3, at(0)];
    for (program, command) in [
        ("/usr/bin/python3.12", None),
        // `record` copies the stacks of this runtime without being asked.
        ("/usr/bin/python3.13", Some("jitgraft record -- /usr/bin/python3.13 a.py")),
    ] {
        let mut scene = copied_of(program, &words, 32);
        scene.data.command(&["perf", "record", "-k", "mono", "--call-graph", "dwarf", "--", program, "a.py"]);
        let findings = scene.findings();
        let found = findings.iter().find(|found| found["problem"] == "not-unwound").unwrap();
        match command {
            None => assert!(found["command"].is_null(), "{found:#}"),
            // `record` sets the variable for the dump.
            Some(command) => {
                assert_eq!(found["command"], command, "{found:#}");
                assert!(found["remedy"].as_str().unwrap().contains("jit-PID.dump"), "{found:#}");
            }
        }
    }
}

/// Chains that break off in the interpreter: copies lead through it, and would not through the functions of a map.
#[test]
fn a_map_of_pythons_functions_is_not_advised_for_stacks_that_end_in_its_interpreter() {
    let dir = tempfile::tempdir().unwrap();
    let (source, python) = (dir.path().join("code.s"), dir.path().join("python3.12"));
    let functions = ["_PyEval_EvalFrameDefault", "_PyFunction_Vectorcall"];
    let code: String = functions.iter().map(|name| format!(".globl {name}\n{name}: .fill 256,1,0x90\n")).collect();
    std::fs::write(&source, format!(".text\n{code}")).unwrap();
    let mut gcc = std::process::Command::new("gcc");
    gcc.args(["-shared", "-nostdlib", "-Wl,-Ttext=0x1000", "-o"]).arg(&python).arg(&source);
    assert!(gcc.status().expect("gcc is needed: see tests/run.sh").success());
    let mut scene = Scene::of(python.to_str().unwrap());
    scene.samples(SAMPLES, &[&[0x40_1010, 0x40_1110]]);
    scene.data.command(&["perf", "record", "-k", "mono", "-g", "--", "python3.12", "a.py"]);
    let findings = scene.findings();
    let found = findings.iter().find(|found| found["problem"] == "frame-pointers");
    let command = found.unwrap_or_else(|| panic!("{findings:#?}"))["command"].as_str().unwrap();
    assert!(command.contains("--call-graph dwarf") && !command.contains("PYTHONPERFSUPPORT"), "{command}");
}

/// An option that Go's compiler does not have is not advised.
#[test]
fn programs_made_by_go_keep_frame_pointers() {
    let packed = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/go-program/hot.zst"));
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("hot");
    std::fs::write(&program, zstd::decode_all(&packed[..]).unwrap()).unwrap();
    let mut scene = Scene::of(program.to_str().unwrap());
    scene.samples(SAMPLES, &[&[0x45_7de6, 0x45_7c92]]);
    scene.data.command(&["perf", "record", "-k", "mono", "-g", "--", "./hot"]);
    let findings = scene.findings();
    let found = findings.iter().find(|found| found["problem"] == "frame-pointers");
    let found = found.unwrap_or_else(|| panic!("{findings:#?}"));
    let remedy = found["remedy"].as_str().unwrap();
    assert!(remedy.contains("Go has no option") && !remedy.contains("-fno-omit-frame-pointer"), "{remedy}");
    assert!(found["command"].is_null(), "{found:#}");
}

#[test]
fn stacks_of_more_frames_than_are_unwound_are_too_deep() {
    const STACK: u64 = 0x7ffc_0000_0000;
    let words: Vec<u64> = (1..200).flat_map(|frame| [STACK + 16 * frame, at(0)]).collect();
    let (_, remedy) = copied(&words, 8 * words.len() as u32).first("stacks-too-deep");
    assert!(remedy.contains("--max-stack"), "{remedy}");
}
