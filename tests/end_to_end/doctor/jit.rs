//! Names of JIT code that are missing, each for one reason.

use super::scene::{JIT, PID, SAMPLES, START, Scene, at, doctor, dump, map};
use crate::support::jitdump::{JitDump, Load};
use crate::support::perf_data::{Mmap, Stamp};

/// Names of the samples' functions.
const NAMES: &[&str] = &["JS:*hot /a.js:1:1", "JS:*warm /a.js:2:1", "start_thread"];

/// A program whose samples are in the first two functions of [`NAMES`], in turn.
fn node() -> Scene {
    let mut scene = Scene::of("/usr/bin/node");
    scene.samples(SAMPLES, &[&[at(0), at(2)], &[at(1), at(2)]]);
    scene
}

fn named_map() -> String {
    format!("perf-{PID}.map")
}

fn named_dump() -> String {
    format!("jit-{PID}.dump")
}

/// A scene in which the process has mapped its jitdump.
fn marked() -> Scene {
    let mut scene = Scene::of("/usr/bin/node");
    scene.marker(&named_dump());
    scene.samples(SAMPLES, &[&[at(0), at(2)], &[at(1), at(2)]]);
    scene
}

fn times(time: u64) -> Vec<(&'static str, u64)> {
    NAMES.iter().map(|name| (*name, time)).collect()
}

#[test]
fn a_recording_with_its_map_or_dump_is_sound() {
    let scene = node();
    scene.write(&named_map(), map(JIT, NAMES));
    assert_eq!(scene.problems(), [""; 0]);
    let scene = marked();
    scene.write(&named_dump(), dump(&times(START - 5)));
    assert_eq!(scene.problems(), [""; 0]);
}

#[test]
fn a_runtime_that_wrote_nothing_is_reported_what_to_switch_on() {
    let (cause, remedy) = node().first("no-dump-or-map");
    assert!(cause.contains("process 4711 (node, Node.js)"), "{cause}");
    assert!(remedy.contains("--perf-prof"), "{remedy}");
}

#[test]
fn files_of_a_container_are_looked_for_in_the_container() {
    let mut scene = Scene::of("/usr/bin/node");
    scene.data.namespaces(crate::support::perf_data::Stamp::new(1, 0), 10);
    scene.map_file(0x7e00_0000_0000, "/tmp/jit-1.dump");
    scene.samples(SAMPLES, &[&[at(0), at(2)]]);
    // Unless such a file is on this machine, of whomever.
    if !std::path::Path::new("/tmp/jit-1.dump").exists() {
        let (_, remedy) = scene.first("dump-missing");
        assert!(remedy.contains("/proc/4711/root/tmp/jit-1.dump"), "{remedy}");
    }
}

#[test]
fn a_dump_that_ends_in_a_record_is_reported_to_be_cut() {
    let scene = marked();
    let whole = dump(&times(START - 5));
    // The first function is whole, of the second half of the header is there.
    scene.write(&named_dump(), &whole[..40 + (56 + NAMES[0].len() + 1 + 0x100) + 30]);
    let (cause, remedy) = scene.first("source-torn");
    assert!(
        cause.contains("is truncated in the middle of a record") && cause.contains("names 200 of 800 JIT frames"),
        "{cause}"
    );
    assert!(remedy.contains("copy the whole dump again"), "{remedy}");
}

#[test]
fn a_map_that_ends_in_a_line_is_reported_to_be_cut() {
    let scene = node();
    let whole = map(JIT, NAMES);
    let first = whole.find('\n').unwrap() + 1;
    scene.write(&named_map(), &whole[..first + 9]);
    let (cause, _) = scene.first("source-torn");
    assert!(cause.contains("is truncated in the middle of a line"), "{cause}");
}

#[test]
fn a_dump_that_ends_before_the_samples_is_reported_to_end_early() {
    let mut scene = Scene::of("/usr/bin/node");
    scene.marker(&named_dump());
    scene.samples(SAMPLES / 2, &[&[at(0), at(2)]]);
    // Code that is compiled later is not in the dump.
    for number in SAMPLES / 2..SAMPLES {
        let stamp = crate::support::perf_data::Stamp::new(PID, START + number * 1_000_000);
        scene.data.sample(stamp, &[at(9), at(2)]);
    }
    scene.write(&named_dump(), dump(&times(START + 100_000_000)));
    let (cause, _) = scene.first("dump-ends-early");
    assert!(cause.contains("0.3 s before"), "{cause}");
}

#[test]
fn a_sound_map_that_lacks_code_is_reported_to_be_of_another_moment() {
    let mut scene = Scene::of("/usr/lib/jvm/bin/java");
    scene.samples(SAMPLES, &[&[at(0), at(2)], &[at(7), at(2)]]);
    scene.write(&named_map(), map(JIT, NAMES));
    let (_, remedy) = scene.first("source-incomplete");
    assert!(remedy.contains("DumpPerfMapAtExit"), "{remedy}");
}

#[test]
fn a_map_of_another_run_is_known_by_its_addresses() {
    let scene = node();
    scene.write(&named_map(), map(JIT + 0x5000_0000, NAMES));
    let (cause, _) = scene.first("source-of-other-run");
    assert!(cause.contains("its addresses don't match the process's JIT code"), "{cause}");
}

#[test]
fn a_map_without_a_line_and_a_dump_without_a_record_are_empty() {
    let scene = node();
    scene.write(&named_map(), "");
    scene.first("source-empty");
    let scene = marked();
    scene.write(&named_dump(), dump(&[]));
    let (_, remedy) = scene.first("source-empty");
    assert!(remedy.contains("_exit"), "{remedy}");
}

#[test]
fn a_file_of_another_number_beside_the_recording_is_used_offered_or_refused_by_what_it_holds() {
    let scene = marked();
    let other = scene.write("perf-99.map", map(JIT, NAMES));
    let (cause, remedy) = scene.first("source-of-other-process");
    assert!(cause.contains("is from process 99"), "{cause}");
    assert!(remedy.contains(&format!("--perf-map {}@{PID}", other.display())), "{remedy}");
    // Its times are this process's.
    let scene = marked();
    scene.write("jit-99.dump", dump(&times(START - 5)));
    assert_eq!(scene.problems(), [""; 0]);
    let scene = node();
    scene.write("jit-99.dump", dump(&times(START - 900_000_000_000)));
    let (cause, _) = scene.first("source-refused");
    assert!(cause.contains("from another run") && cause.contains("jit-99.dump"), "{cause}");
    // One that does not fit is a stray: what is reported is what is missing.
    let scene = marked();
    scene.write("perf-98.map", map(0x1000, NAMES));
    scene.first("dump-missing");
    let scene = node();
    scene.write("perf-98.map", map(0x1000, NAMES));
    scene.first("no-dump-or-map");
}

#[test]
fn another_clock_is_a_finding_where_names_may_be_wrong_for_it() {
    let event = crate::support::perf_data::Event { clockid: None, ..crate::support::perf_data::Event::usual() };
    let recorded = |dump: Vec<u8>| {
        let mut scene = Scene::with_event("/usr/bin/node", event.clone());
        scene.marker(&named_dump());
        scene.samples(SAMPLES, &[&[at(0), at(2)], &[at(1), at(2)]]);
        scene.write(&named_dump(), dump);
        scene
    };
    // All code stays where it is: no name is wrong for that.
    assert_eq!(recorded(dump(&times(77))).problems(), [""; 0]);
    // Two functions take turns at one address.
    let names: Vec<_> =
        (0..SAMPLES).map(|n| (["JS:*hot /a.js:1:1", "JS:*cold /a.js:9:1"][n as usize % 2], n * 1_000_000)).collect();
    let mut turns = JitDump::new(PID);
    for (index, (name, time)) in (0..).zip(names) {
        for (function, name) in [(0, name), (1, NAMES[1]), (2, NAMES[2])] {
            let load =
                Load { tid: PID, addr: JIT + function * 0x100, index, name: name.as_bytes(), code: &[0x90; 0x100] };
            turns.load(77 + time + function, load);
        }
    }
    let (_, remedy) = recorded(turns.into_bytes()).first("clock");
    assert!(remedy.contains("-k mono"), "{remedy}");
}

#[test]
fn code_that_a_virtual_machine_only_interprets_is_reported() {
    let mut scene = Scene::of("/usr/lib/jvm/bin/java");
    scene.samples(SAMPLES, &[&[at(0), at(0), at(1)]]);
    scene.write(&named_map(), map(JIT, &["Interpreter", "start_thread"]));
    let (_, remedy) = scene.first("interpreted");
    assert!(remedy.contains("-Xint"), "{remedy}");
    // Outer frames of a program whose hot methods are compiled are interpreted, too.
    let mut scene = Scene::of("/usr/lib/jvm/bin/java");
    scene.samples(SAMPLES, &[&[at(2), at(0), at(0), at(1)]]);
    scene.write(&named_map(), map(JIT, &["Interpreter", "start_thread", "int A.hot()"]));
    assert_eq!(scene.problems(), [""; 0]);
}

#[test]
fn flags_of_the_recorded_command_are_not_advised_again() {
    let switch = "--interpreted-frames-native-stack";
    let mut scene = Scene::of("/usr/bin/node");
    scene.samples(SAMPLES, &[&[at(0), at(1)]]);
    scene.write(&named_map(), map(JIT, &["Builtin:InterpreterEntryTrampoline", "start_thread"]));
    let (_, remedy) = scene.first("interpreted");
    assert!(remedy.starts_with("also run node with --interpreted-frames-native-stack"), "{remedy}");
    scene.data.command(&["perf", "record", "node", "--perf-basic-prof", switch, "a.js"]);
    let (_, remedy) = scene.first("interpreted");
    assert!(remedy.starts_with("--interpreted-frames-native-stack was on"), "{remedy}");
}

#[test]
fn a_command_that_brings_no_names_is_not_advised_for_them() {
    let first = |command: &[&str]| {
        let mut scene = Scene::of("/usr/bin/nvim");
        scene.map_file(0x7d00_0000_0000, "/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2.1.0");
        scene.samples(SAMPLES, &[&[at(0), at(2)]]);
        scene.data.command(command);
        scene.findings().swap_remove(0)
    };
    // The editor takes no option of LuaJIT's, nor does LuaJIT read a variable.
    let finding = first(&["perf", "record", "--", "nvim", "-l", "a.lua"]);
    assert_eq!((&finding["problem"], &finding["command"]), (&"no-dump-or-map".into(), &serde_json::Value::Null));
    assert!(finding["remedy"].as_str().unwrap().contains("require('jit.dump')"), "{finding}");
    let finding = first(&["perf", "record", "--", "luajit", "a.lua"]);
    assert_eq!(finding["command"], "jitgraft record -- luajit a.lua", "{finding}");
    assert!(finding["remedy"].as_str().unwrap().contains("-jdump=m,luajit.dump"), "{finding}");
    // Distributions' builds of SpiderMonkey do nothing with its variables.
    let mut scene = Scene::of("/usr/bin/gjs-console");
    scene.map_file(0x7d00_0000_0000, "/usr/lib/x86_64-linux-gnu/libmozjs-102.so.102.15.1");
    scene.samples(SAMPLES, &[&[at(0), at(2)]]);
    scene.data.command(&["perf", "record", "--", "gjs", "a.js"]);
    let finding = scene.findings().swap_remove(0);
    assert_eq!((&finding["problem"], &finding["command"]), (&"no-dump-or-map".into(), &serde_json::Value::Null));
    assert!(finding["remedy"].as_str().unwrap().contains("those of distributions are not"), "{finding}");
    // Older versions of QEMU stop at its flag.
    let mut scene = Scene::of("/usr/bin/qemu-aarch64");
    scene.samples(SAMPLES, &[&[at(0), at(2)]]);
    scene.data.command(&["perf", "record", "--", "qemu-aarch64", "a.out"]);
    let finding = scene.findings().swap_remove(0);
    assert_eq!((&finding["problem"], &finding["command"]), (&"no-dump-or-map".into(), &serde_json::Value::Null));
    // A running process takes no option any more.
    let finding = first(&["perf", "record", "-p", "4711", "--", "luajit", "a.lua"]);
    assert_eq!(finding["command"], serde_json::Value::Null, "{finding}");
}

#[test]
fn the_map_of_the_interpreter_is_not_blamed_for_what_a_compiler_in_it_lacks() {
    let mut scene = Scene::of("/usr/bin/python3.12");
    scene.map_file(0x7d00_0000_0000, "/x/llvmlite/binding/libllvmlite.so");
    scene.samples(SAMPLES, &[&[at(5), at(0), at(2)], &[at(6), at(2)]]);
    scene.data.command(&["perf", "record", "-g", "--", "python3.12", "-X", "perf", "a.py"]);
    scene.write(&named_map(), map(JIT, &["py::f:/a.py", "py::g:/a.py", "start_thread"]));
    let (cause, remedy) = scene.first("no-dump-or-map");
    assert!(cause.contains("python3.12, numba") && remedy.contains("gcore PID"), "{cause} {remedy}");
}

#[test]
fn an_empty_log_is_not_what_a_process_was_configured_to_write() {
    let mut scene = node();
    scene.data.command(&["perf", "record", "node", "--perf-basic-prof", "a.js"]);
    let log = scene.write(&format!("isolate-0x1-{PID}-v8.log"), "v8-version,11,3,244,8,-node.38,0\n");
    let (cause, remedy) = scene.first("no-dump-or-map");
    assert!(cause.contains("the process ran with --perf-basic-prof"), "{cause}");
    assert!(remedy.contains(&format!("/tmp/perf-{PID}.map")), "{remedy}");
    // A log of another kind of events contains nothing.
    scene.data.command(&["perf", "record", "node", "--log-code", "a.js"]);
    let (cause, _) = scene.first("source-empty");
    assert!(cause.contains(log.file_name().unwrap().to_str().unwrap()), "{cause}");
}

#[test]
fn a_remark_about_a_source_is_printed_with_it() {
    let mut scene = Scene::of("/usr/bin/qemu-aarch64");
    scene.samples(SAMPLES, &[&[at(0), at(1)]]);
    scene.write(&named_map(), map(JIT, &["guest-0x400280", "guest-0x400284"]));
    let path = scene.record();
    let said = |args: &[&str]| String::from_utf8(doctor(args, &path).stdout).unwrap();
    let list: serde_json::Value = serde_json::from_str(&said(&["--format", "json"])).unwrap();
    let remark = list[0]["processes"][0]["sources"][0]["remark"].as_str().unwrap();
    assert!(remark.contains("addresses in an emulated program; pass that program with --guest FILE"), "{remark}");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&said(&[])).contains(&words(remark)), "{}", said(&[]));
}

#[test]
fn images_that_were_injected_and_are_gone_are_to_be_injected_again() {
    let mut scene = Scene::of("/usr/bin/node");
    let image = scene.dir.path().join("jitted-4711-3.so");
    scene.map_file(JIT, image.to_str().unwrap());
    scene.samples(SAMPLES, &[&[at(0), at(2)]]);
    let (cause, remedy) = scene.first("injected-images-gone");
    assert!(cause.contains("jitted-4711-3.so"), "{cause}");
    assert!(remedy.contains("jitgraft inject"), "{remedy}");
}

#[test]
fn a_program_that_was_replaced_by_another_lost_its_map_to_that_one() {
    let mut scene = Scene::of("/usr/bin/node");
    scene.samples(SAMPLES, &[&[at(0), at(2)], &[at(1), at(2)]]);
    let exec = START + SAMPLES * 1_000_000;
    let stamp = Stamp::new(PID, exec);
    scene.data.comm(stamp, "node", true);
    scene.data.mmap2(stamp, Mmap { addr: 0x40_0000, len: 0x10_0000, pgoff: 0, path: "/usr/bin/node" });
    scene.data.mmap2(stamp, Mmap { addr: JIT, len: 0x10_0000, pgoff: 0, path: "//anon" });
    for number in 1..=SAMPLES / 2 {
        scene.data.sample(Stamp::new(PID, exec + number * 1_000_000), &[at(0), at(2)]);
    }
    scene.write(&named_map(), map(JIT, NAMES));
    let (cause, _) = scene.first("source-replaced");
    assert!(cause.contains("only has the names of the last program"), "{cause}");
}

#[test]
fn a_problem_of_many_processes_of_a_runtime_is_one_finding() {
    /// Above all process IDs that Linux gives out, so that none of these processes is running.
    const FIRST: u32 = 5_000_000;
    let mut scene = Scene::of("/usr/bin/node");
    scene.samples(SAMPLES, &[&[0x40_0010, 0x40_0020]]);
    for pid in FIRST..FIRST + 150 {
        let stamp = Stamp::new(pid, START + u64::from(pid));
        scene.data.comm(stamp, "node", true);
        scene.data.mmap2(stamp, Mmap { addr: 0x40_0000, len: 0x10_0000, pgoff: 0, path: "/usr/bin/node" });
        scene.data.mmap2(stamp, Mmap { addr: JIT, len: 0x10_0000, pgoff: 0, path: "//anon" });
        scene.data.sample(Stamp::new(pid, START + u64::from(pid) + 1), &[at(0), at(2)]);
    }
    let silent: Vec<_> =
        scene.findings().into_iter().filter(|finding| finding["problem"] == "no-dump-or-map").collect();
    assert_eq!(silent.len(), 1, "{silent:#?}");
    assert_eq!((&silent[0]["processes"], &silent[0]["samples"]), (&150.into(), &150.into()));
    // 150 of 550 samples, none of which is worth a finding by itself.
    assert!((silent[0]["percent"].as_f64().unwrap() - 100.0 * 150.0 / 550.0).abs() < 0.1, "{silent:#?}");
    let text = String::from_utf8(doctor(&[], &scene.record()).stdout).unwrap();
    assert!(text.contains("and 149 more (node, Node.js)") && text.lines().count() < 60, "{text}");
}
