//! doctor's remedies: none is printed that was in place already, that the runtime refuses, or that cannot change the
//! finding. Each is looked at in recordings in which something of it was in place, and in which it was not.

use super::scene::{JIT, PID, SAMPLES, START, Scene, at, doctor, dump, map};
use crate::support::bytes::Out;
use crate::support::perf_data::{CONTEXT_USER, Event, Mmap, More, PerfData, REGS_USER, STACK_USER, Stamp, USER, USUAL};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Adds a mapping record (`PERF_RECORD_MMAP2`) with this protection (`PROT_READ` is 1, `PROT_WRITE` 2, `PROT_EXEC` 4).
/// What isn't executable is marked as data, as `perf record -d` records it.
fn mmap2_protected(data: &mut PerfData, stamp: Stamp, map: Mmap, protection: u32) {
    const MMAP_DATA: u16 = 1 << 13;
    let mut body = Out::new(data.order);
    body.u32(stamp.pid).u32(stamp.tid).u64(map.addr).u64(map.len).u64(map.pgoff);
    body.u32(0).u32(0).u64(0).u64(0).u32(protection).u32(2).padded_text(map.path.as_bytes());
    data.stamped(10, if protection & 4 == 0 { USER | MMAP_DATA } else { USER }, body, stamp);
}

/// Whatever doctor says of a recording, ordinary imperfections included.
fn all_findings(scene: &Scene) -> Vec<Value> {
    findings_with(scene, &[])
}

fn findings_with(scene: &Scene, args: &[&str]) -> Vec<Value> {
    let path = scene.record();
    let output = doctor(&[&["--format", "json"], args].concat(), &path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |key: &str| list[0][key].as_array().unwrap().clone();
    [of("findings"), of("minor")].concat()
}

#[track_caller]
fn finding(scene: &Scene, problem: &str) -> Value {
    let all = all_findings(scene);
    all.iter().find(|finding| finding["problem"] == problem).unwrap_or_else(|| panic!("{all:#?}")).clone()
}

fn text<'a>(finding: &'a Value, key: &str) -> &'a str {
    finding[key].as_str().unwrap_or_default()
}

/// A process that runs this program, sampled in memory for JIT code.
fn sampled(program: &str, command: &[&str]) -> Scene {
    let mut scene = Scene::of(program);
    scene.samples(SAMPLES, &[&[at(0), at(2)], &[at(1), at(2)]]);
    scene.data.command(command);
    scene
}

/// What runs if a command is pasted into a shell.
struct Pasted {
    /// Variables for runtimes, as `NAME=VALUE`.
    variables: Vec<String>,
    /// `perf`, its options, and the program.
    words: Vec<String>,
}

impl Pasted {
    /// Runs a command where perf writes down what it is called with, and programs of these names print a version.
    fn run(command: &str, programs: &[&str]) -> Self {
        assert!(command.contains("jitgraft record "), "{command}");
        let dir = tempfile::tempdir().unwrap();
        let program = |name: &str, script: &str| {
            let path = dir.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        program(
            "perf",
            "case $1 in stat) echo 1,,cpu-clock:u,1,100.00,, ;; *) printf '%s\\0' perf \"$@\" > words; env > variables ;; esac",
        );
        for name in programs {
            program(name, "echo v99.0");
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_jitgraft"), dir.path().join("jitgraft")).unwrap();
        let mut shell = Command::new("/bin/bash");
        shell.args(["-c", command]).env_clear().current_dir(dir.path());
        shell.env("PATH", format!("{}:/usr/bin:/bin", dir.path().display()));
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let words = fs::read_to_string(dir.path().join("words")).unwrap();
        let variables = fs::read_to_string(dir.path().join("variables")).unwrap();
        let is_of_shell =
            |line: &&str| ["PATH=", "PWD=", "OLDPWD=", "SHLVL=", "_="].iter().any(|start| line.starts_with(start));
        Self {
            variables: variables.lines().filter(|line| !is_of_shell(line)).map(str::to_owned).collect(),
            words: words.trim_end_matches('\0').split('\0').map(str::to_owned).collect(),
        }
    }

    fn line(&self) -> String {
        [&self.variables[..], &self.words].concat().join(" ")
    }
}

/// The line that runs if the command of a finding is pasted.
fn pasted(found: &Value, programs: &[&str]) -> String {
    Pasted::run(text(found, "command"), programs).line()
}

/// Programs of runtimes with a switch that a command can have.
const PROGRAMS: &[&str] = &[
    "/opt/deno/deno",
    "/opt/bun/bin/bun",
    "/usr/bin/node",
    "/usr/lib/jvm/java-17-openjdk-amd64/bin/java",
    "/usr/lib/erlang/erts-13.1.5/bin/beam.smp",
    "/usr/bin/php8.2",
    "/usr/bin/wasmtime",
    "/usr/bin/rakudo-m",
    "/usr/share/dotnet/dotnet",
    "/usr/bin/mono",
    "/opt/julia/bin/julia",
    "/usr/bin/ruby4.0",
    "/usr/bin/pypy3",
    "/usr/bin/luajit",
    "/usr/bin/jsc",
    "/usr/bin/python3.13",
    "/usr/bin/lli",
    "/usr/bin/qmlscene",
];

/// Each runtime's command, as doctor corrects it, is one that lacks nothing: doctor asks for what it leaves instead.
#[test]
fn what_a_corrected_command_has_is_not_advised_again() {
    for program in PROGRAMS {
        let called = program.rsplit('/').next().unwrap();
        let scene = sampled(program, &["perf", "record", "-k", "mono", "-g", "--", called, "app"]);
        let command = text(&finding(&scene, "no-dump-or-map"), "command").to_owned();
        assert_eq!(command, format!("jitgraft record -- {called} app"), "{program}: what record adds is not repeated");
        // Variables are not in a recording, but for those that `env` sets.
        let Pasted { variables, words } = Pasted::run(&command, &[called]);
        let separator = words.iter().position(|word| word == "--").unwrap();
        let with_env = [&words[..=separator], &["env".to_owned()], &variables, &words[separator + 1..]].concat();
        let with_env: Vec<&str> = with_env.iter().map(|word| &word[..]).collect();
        let found = finding(&sampled(program, &with_env), "no-dump-or-map");
        assert_eq!(found["command"], Value::Null, "{program}: {command}\n{found:#}");
        assert!(text(&found, "cause").contains("the process ran with"), "{program}: {found:#}");
        assert!(!text(&found, "remedy").contains("run "), "{program}: {found:#}");
    }
}

#[test]
fn a_compiler_is_switched_on_that_goes_together_with_the_one_that_runs() {
    for (words, switch) in [
        (&["ruby4.0", "app.rb"][..], Some("--yjit-perf --yjit")),
        (&["ruby4.0", "--yjit", "app.rb"], Some("--yjit-perf --yjit")),
        (&["ruby4.0", "--zjit", "app.rb"], Some("--zjit-perf --zjit")),
        (&["ruby4.0", "--zjit-call-threshold=2", "app.rb"], Some("--zjit-perf --zjit --zjit-call-threshold=2")),
        (&["ruby4.0", "app.rb", "--zjit"], Some("--yjit-perf --yjit")),
        (&["ruby4.0", "--rjit", "app.rb"], None),
    ] {
        let command = [&["perf", "record", "-k", "mono", "-g", "--"], words].concat();
        let found = finding(&sampled("/usr/bin/ruby4.0", &command), "no-dump-or-map");
        match switch {
            Some(switch) => assert!(pasted(&found, &["ruby4.0"]).contains(switch), "{words:?}: {found:#}"),
            None => assert_eq!(found["command"], Value::Null, "{words:?}"),
        }
    }
    // Attached, the name of its memory shows which compiler it is.
    let mut scene = Scene::of("/usr/bin/ruby4.0");
    scene.map_file(0x7c00_0000_0000, "[anon:Ruby:rb_zjit_reserve_addr_space]");
    scene.samples(SAMPLES, &[&[0x7c00_0000_0010, 0x7c00_0000_0110]]);
    scene.data.command(&["perf", "record", "-g", "-p", "4711"]);
    let found = finding(&scene, "no-dump-or-map");
    assert!(text(&found, "remedy").contains("--zjit-perf") && !text(&found, "remedy").contains("yjit"), "{found:#}");
    assert_eq!(found["command"], Value::Null);
}

/// perf starts a process, which starts another one that runs a program of its own.
fn spawned(program: &str, command: &[&str], executes: bool) -> Scene {
    const CHILD: u32 = PID + 1;
    let mut scene = Scene::of(program);
    let name = program.rsplit('/').next().unwrap();
    scene.samples(2, &[&[0x40_0010, 0x40_0020]]);
    let stamp = Stamp::new(CHILD, START + 10);
    scene.data.fork(stamp, PID);
    if executes {
        scene.data.comm(Stamp::new(CHILD, START + 20), name, true);
        for (addr, path) in [(0x40_0000, program), (JIT, "//anon")] {
            scene.data.mmap2(Stamp::new(CHILD, START + 30), Mmap { addr, len: 0x10_0000, pgoff: 0, path });
        }
    }
    for number in 0..SAMPLES {
        scene.data.sample(Stamp::new(CHILD, START + 40 + number * 1_000_000), &[at(number % 2), at(2)]);
    }
    scene.data.command(command);
    scene
}

#[test]
fn options_do_not_reach_what_a_process_executes_and_variables_do() {
    for (program, option, variable) in [
        ("/usr/bin/python3.13", &["-X", "perf_jit"][..], "PYTHON_PERF_JIT_SUPPORT=1 perf"),
        ("/usr/bin/node", &["--perf-prof", "--interpreted-frames-native-stack"], "NODE_OPTIONS="),
        ("/usr/lib/jvm/java-17-openjdk-amd64/bin/java", &["-XX:+DumpPerfMapAtExit"], "JAVA_TOOL_OPTIONS="),
        ("/usr/bin/mono", &["--jitmap"], "MONO_ENV_OPTIONS="),
        ("/usr/bin/ruby4.0", &["--yjit-perf", "--yjit"], "RUBYOPT="),
    ] {
        let name = program.rsplit('/').next().unwrap();
        let command = [&["perf", "record", "-k", "mono", "-g", "--", name], option, &["app"]].concat();
        let found = finding(&spawned(program, &command, true), "no-dump-or-map");
        let (cause, remedy) = (text(&found, "cause"), text(&found, "remedy"));
        assert!(cause.contains("only reached the process that perf started"), "{found:#}");
        let name_of = variable.split(['=', ' ']).next().unwrap();
        assert!(remedy.contains(name_of), "{found:#}");
        assert!(pasted(&found, &[name]).starts_with(variable), "{found:#}");
        // A child that was only forked has its parent's options, and lacks its file.
        let found = finding(&spawned(program, &command, false), "no-dump-or-map");
        assert!(text(&found, "cause").contains("the process ran with"), "{found:#}");
        assert_eq!(found["command"], Value::Null, "{found:#}");
    }
    // What `env` set reached both.
    let command = ["perf", "record", "-g", "--", "env", "PYTHON_PERF_JIT_SUPPORT=1", "python3.13", "app.py"];
    let found = finding(&spawned("/usr/bin/python3.13", &command, true), "no-dump-or-map");
    assert!(text(&found, "cause").contains("the process ran with -X perf_jit"), "{found:#}");
    assert_eq!(found["command"], Value::Null);
    // `timeout` runs its command as it is.
    let command = ["perf", "record", "-g", "--", "timeout", "9", "node", "--perf-basic-prof", "app.js"];
    let found = finding(&spawned("/usr/bin/node", &command, true), "no-dump-or-map");
    assert!(text(&found, "cause").contains("the process ran with --perf-basic-prof"), "{found:#}");
}

#[test]
fn a_dump_that_was_never_mapped_was_not_lost_by_an_early_end() {
    let command = ["perf", "record", "-k", "mono", "-g", "--", "node", "--perf-prof", "app.js"];
    let name = format!("jit-{PID}.dump");
    let scene = sampled("/usr/bin/node", &command);
    scene.write(&name, "");
    let found = finding(&scene, "source-refused");
    assert!(text(&found, "remedy").contains("noexec") && !text(&found, "remedy").contains("_exit"), "{found:#}");
    assert!(text(&found, "remedy").contains("--perf-basic-prof"), "{found:#}");
    // The process's file is missing, and nobody can provide it.
    let found = finding(&sampled("/usr/bin/node", &command), "no-dump-or-map");
    assert!(text(&found, "remedy").contains("noexec") && !text(&found, "remedy").contains("bring"), "{found:#}");
    // One that was mapped was cut short.
    let mut scene = Scene::of("/usr/bin/node");
    scene.marker(&name);
    scene.samples(SAMPLES, &[&[at(0), at(2)]]);
    scene.data.command(&command);
    scene.write(&name, "");
    let found = finding(&scene, "source-refused");
    assert!(!text(&found, "remedy").contains("noexec") && text(&found, "remedy").contains("_exit"), "{found:#}");
    // A map is not mapped: it may be brought.
    let scene = sampled("/usr/bin/node", &["perf", "record", "-g", "--", "node", "--perf_basic_prof", "app.js"]);
    let found = finding(&scene, "no-dump-or-map");
    assert!(text(&found, "remedy").contains("copy /tmp/perf-4711.map"), "{found:#}");
}

#[test]
fn an_option_that_leaves_code_out_is_named_and_taken_out() {
    let scene = sampled(
        "/usr/bin/node",
        &["perf", "record", "-k", "mono", "-g", "--", "node", "--perf-basic-prof-only-functions", "app.js"],
    );
    scene.write(&format!("perf-{PID}.map"), map(JIT + 0x200, &["start_thread"]));
    let found = finding(&scene, "source-incomplete");
    assert!(text(&found, "cause").contains("which --perf-basic-prof-only-functions left out"), "{found:#}");
    let line = pasted(&found, &["node"]);
    assert!(line.contains("node --perf-prof --interpreted-frames-native-stack app.js"), "{line}: {found:#}");
    assert!(!text(&found, "remedy").contains("copy it after"), "{found:#}");
}

/// The switch that was on names compiled functions only; the command adds what names interpreted ones.
#[test]
fn a_flag_for_interpreted_functions_is_added_to_the_switch_that_was_on() {
    let flag = "--interpreted-frames-native-stack";
    for (command, added) in [
        (&["node", "--perf-basic-prof", "app.js"][..], format!("-- node {flag} --perf-basic-prof app.js")),
        (&["node", "--perf-prof", "app.js"], format!("-- node {flag} --perf-prof app.js")),
        // `env` would override a variable that is set before perf.
        (
            &["env", "NODE_OPTIONS=--perf-basic-prof", "node", "app.js"],
            format!("-- env NODE_OPTIONS=--perf-basic-prof {flag} node app.js"),
        ),
    ] {
        let mut scene = Scene::of("/usr/bin/node");
        scene.samples(SAMPLES, &[&[at(0), at(1)]]);
        scene.data.command(&[&["perf", "record", "-k", "mono", "-g", "--"], command].concat());
        scene.write(&format!("perf-{PID}.map"), map(JIT, &["Builtin:InterpreterEntryTrampoline", "start_thread"]));
        let found = finding(&scene, "interpreted");
        let line = pasted(&found, &["node"]);
        assert!(line.ends_with(&added), "{line}: {found:#}");
    }
}

/// A runtime may have several programs. What is recorded again is the one that ran, if a user can start it.
#[test]
fn the_program_that_ran_is_recorded_again() {
    for (program, started) in [
        ("/usr/sbin/php-fpm8.2", "php-fpm8.2"),
        ("/usr/bin/php", "php"),
        ("/usr/bin/nodejs", "nodejs"),
        ("/usr/bin/pypy3.9", "pypy3.9"),
        ("/usr/bin/mono-sgen", "mono-sgen"),
        ("/usr/lib/erlang/erts-13.1.5/bin/beam.smp", "erl"),
    ] {
        // perf attached to the process, so that the recording doesn't say how it was started.
        let found = finding(&sampled(program, &["perf", "record", "-g", "-p", "4711"]), "no-dump-or-map");
        assert!(text(&found, "remedy").contains(&format!("`jitgraft record -- {started} …`")), "{program}: {found:#}");
    }
}

/// Memory that a process shares with those that it forks is only listed for the process that mapped it.
#[test]
fn code_of_a_forked_process_is_its_parents_runtimes() {
    const CHILD: u32 = PID + 1;
    let mut scene = Scene::of("/usr/bin/php8.2");
    scene.map_file(0x7d00_0000_0000, "/usr/lib/x86_64-linux-gnu/libpcre2-8.so.0.11.2");
    scene.map_file(0x7c00_0000_0000, "/dev/zero (deleted)");
    scene.data.fork(Stamp::new(CHILD, START), PID);
    for number in 0..SAMPLES {
        let stamp = Stamp::new(CHILD, START + 10 + number * 1_000_000);
        scene.data.sample(stamp, &[0x7c00_0000_0010, 0x7c00_0000_0110]);
    }
    let found = finding(&scene, "no-dump-or-map");
    assert!(text(&found, "cause").contains(&format!("process {CHILD} (php8.2, PHP)")), "{found:#}");
}

/// A forked process has the mappings of all its ancestors, until it runs another program.
#[test]
fn a_dump_that_an_ancestor_mapped_was_written() {
    let command = ["perf", "record", "-k", "mono", "-g", "--", "node", "--perf-prof", "app.js"];
    let (child, grandchild) = (PID + 1, PID + 2);
    let mut scene = Scene::of("/usr/bin/node");
    scene.marker(&format!("jit-{PID}.dump"));
    scene.samples(2, &[&[0x40_0010, 0x40_0020]]);
    scene.data.fork(Stamp::new(child, START), PID);
    scene.data.fork(Stamp::new(grandchild, START + 10), child);
    for number in 0..SAMPLES {
        scene.data.sample(Stamp::new(grandchild, START + 20 + number * 1_000_000), &[at(0), at(2)]);
    }
    scene.data.command(&command);
    let found = finding(&scene, "dump-missing");
    assert!(text(&found, "cause").contains(&format!("jit-{PID}.dump is gone")), "{found:#}");
    assert!(!text(&found, "remedy").contains("noexec"), "{found:#}");
}

/// A forked process has no dump of its own to copy; its parent's is the one with the unwind data.
#[test]
fn the_dump_of_an_ancestor_counts_for_a_forked_process() {
    const STACK: u64 = 0x7ffc_0000_0000;
    let child = PID + 1;
    let sample_type = USUAL | REGS_USER | STACK_USER;
    let event = Event { sample_type, registers: 1 << 6 | 1 << 7 | 1 << 8, stack: 32, ..Event::usual() };
    let mut scene = Scene::with_event("/usr/bin/node", event);
    let name = format!("jit-{PID}.dump");
    scene.marker(&name);
    scene.data.fork(Stamp::new(child, START), PID);
    for number in 0..SAMPLES {
        let registers = [STACK, STACK, at(0)];
        let words = [STACK + 16, at(0), 3, at(0)];
        let more = More { registers: (2, &registers), stack: &words, ..More::default() };
        let stamp = Stamp::new(child, START + 10 + number * 1_000_000);
        scene.data.sample_with(0, USER, stamp, at(0), &[CONTEXT_USER, at(0)], &more);
    }
    let switches = ["--perf-prof", "--perf-prof-unwinding-info"];
    scene
        .data
        .command(&[&["perf", "record", "--call-graph", "dwarf", "--", "node"], &switches[..], &["a.js"]].concat());
    scene.write(&name, dump(&[("JS:*a /a.js:1:1", START - 5), ("b", START - 5)]));
    for found in all_findings(&scene) {
        let remedy = text(&found, "remedy");
        assert!(!remedy.contains("copy the process's jitdump") && !remedy.contains(&child.to_string()), "{found:#}");
    }
}

/// The map of a forked process is its own or that of the process that executed the program, depending on the runtime.
#[test]
fn both_maps_that_a_forked_process_may_have_are_named() {
    for (program, switch) in [
        ("/usr/bin/node", "--perf-basic-prof"),
        ("/usr/bin/mono", "--jitmap"),
        ("/usr/bin/luajit", "-jdump=m,luajit.dump"),
    ] {
        let name = program.rsplit('/').next().unwrap();
        let command = ["perf", "record", "-k", "mono", "-g", "--", name, switch, "app"];
        let found = finding(&spawned(program, &command, false), "no-dump-or-map");
        let remedy = text(&found, "remedy");
        let (own, parents) = (format!("/tmp/perf-{}.map", PID + 1), format!("/tmp/perf-{PID}.map"));
        match name {
            // The name of its file has no process ID, and the file is no jitdump, which would have been mapped.
            "luajit" => assert!(remedy.starts_with("copy ./luajit.dump "), "{found:#}"),
            _ => assert!(
                remedy.contains(&format!("copy {parents} (or, if the process wrote a file of its own, {own}) ")),
                "{found:#}"
            ),
        }
    }
}

/// Erlang's code has frame pointers with `+JPperf true` or `map`; copied stacks are no substitute.
#[test]
fn a_switch_that_keeps_frame_pointers_is_advised_before_copies() {
    let beam = "/usr/lib/erlang/erts-13.1.5/bin/beam.smp";
    for (words, expected) in [
        (&["erl", "+JPperf", "dump", "-noshell"][..], Some("-- erl +JPperf true -noshell")),
        (&["erl", "-noshell"], Some("-- erl +JPperf true -noshell")),
        (&["erl", "+JPperf", "true", "-noshell"], None),
    ] {
        let scene = sampled(beam, &[&["perf", "record", "-k", "mono", "-g", "--"], words].concat());
        scene.write(&format!("perf-{PID}.map"), map(JIT, &["$lists:a/1", "$lists:b/1", "$lists:c/1"]));
        let found = finding(&scene, "frame-pointers");
        let command = text(&found, "command");
        match expected {
            Some(end) => {
                let line = pasted(&found, &["erl"]);
                assert!(line.ends_with(end) && !line.contains("dwarf"), "{line}: {found:#}");
                assert!(!command.contains("+JPperf true"), "record adds it: {command}");
                assert!(text(&found, "remedy").contains("keep frame pointers"), "{found:#}");
            }
            None => assert!(!text(&found, "remedy").contains("+JPperf"), "{found:#}"),
        }
    }
}

/// Runtimes without any switch get a whole sentence that says so.
#[test]
fn what_cannot_be_named_is_said_in_a_sentence() {
    for (program, library, unnamed) in [
        ("/usr/bin/guile", "/usr/lib/x86_64-linux-gnu/libguile-3.0.so.1", "JIT code (Guile writes no perf map"),
        ("/usr/bin/sbcl", "/usr/lib/libzstd.so.1", "Lisp code (SBCL writes no perf map"),
        ("/usr/bin/python3.10", "/opt/taichi_python.cpython-310.so", "kernels (Taichi writes no perf map"),
        ("/usr/bin/python3.10", "/opt/pythonmonkey.so", "JavaScript code (PythonMonkey's SpiderMonkey"),
        ("/usr/bin/grep", "/usr/lib/libpcre2-8.so.0", "compiled regular expressions (PCRE2 writes no perf map"),
    ] {
        let mut scene = Scene::of(program);
        scene.map_file(0x7d00_0000_0000, library);
        scene.samples(SAMPLES, &[&[at(0), at(2)], &[at(1), at(2)]]);
        scene.data.command(&["perf", "record", "-k", "mono", "-g", "--", program, "x"]);
        let found = finding(&scene, "no-dump-or-map");
        let remedy = text(&found, "remedy");
        assert!(remedy.starts_with(&format!("there is no way to name {unnamed}")), "{library}: {found:#}");
        assert_eq!(found["command"], Value::Null, "{library}");
    }
}

/// Nothing keeps the symbols of the page that 32-bit processes have, so another recording would lack them, too.
#[test]
fn no_other_recording_is_advised_for_the_vdso_of_32_bit_processes() {
    let mut scene = Scene::of("/usr/bin/app");
    scene.map_file(0xf7f0_0000, "[vdso]");
    scene.samples(SAMPLES, &[&[0xf7f0_0100, 0xf7f0_0200]]);
    let all = all_findings(&scene);
    assert!(all.iter().all(|found| found["problem"] != "files-missing"), "{all:#?}");
    let found = finding(&scene, "vdso");
    assert!(text(&found, "remedy").contains("32-bit processes"), "{found:#}");
    assert!(!text(&found, "remedy").contains("record again"), "{found:#}");
}

/// Recordings of applications that contain their runtime, each known by one sign.
#[test]
fn an_application_shows_the_runtime_that_it_contains() {
    for (thread, runtime, variable) in [
        ("JITWorker", "Bun", "BUN_JSC_useJITDump=1"),
        ("Bun Pool 3", "Bun", "BUN_JSC_useJITDump=1"),
        ("V8 DefaultWorke", "deno", "DENO_V8_FLAGS="),
        // All versions read this variable.
        (".NET Tiered Com", ".NET", "COMPlus_PerfMapEnabled=1"),
    ] {
        let mut scene = sampled("/opt/app/server", &["perf", "record", "-k", "mono", "-g", "--", "./server"]);
        scene.data.comm(Stamp { tid: PID + 3, ..Stamp::new(PID, START + 7) }, thread, false);
        let found = finding(&scene, "no-dump-or-map");
        assert!(text(&found, "cause").contains(&format!("(server, {runtime})")), "{thread}: {found:#}");
        // Its own program takes no options of a runtime's.
        let line = pasted(&found, &["server"]);
        assert!(line.contains(variable) && line.ends_with("-- ./server"), "{thread}: {line}");
    }
    let scene = sampled("/opt/app/server", &["perf", "record", "-k", "mono", "-g", "--", "./server"]);
    let found = finding(&scene, "no-dump-or-map");
    assert!(text(&found, "cause").contains("(server) has"), "{found:#}");
}

#[test]
fn memory_that_has_a_name_is_its_runtimes() {
    let qml = "/memfd:JITCode:QtQml (deleted)";
    let libraries = ["/usr/lib/libQt5Qml.so.5.15.8", "/usr/lib/libpcre2-16.so.0.11.2"];
    let of = |memory: &str| {
        let mut scene = Scene::of("/usr/bin/app");
        for (number, library) in (1u64..).zip(libraries) {
            scene.map_file(0x7d00_0000_0000 + number * 0x100_0000, library);
        }
        scene.map_file(0x7c00_0000_0000, memory);
        scene.samples(SAMPLES, &[&[0x7c00_0000_0010, 0x7c00_0000_0110]]);
        scene.data.command(&["perf", "record", "-k", "mono", "-g", "--", "app"]);
        scene
    };
    let found = finding(&of(qml), "no-dump-or-map");
    assert!(text(&found, "cause").contains("(app, QML)"), "{found:#}");
    assert!(pasted(&found, &["app"]).starts_with("QV4_PROFILE_WRITE_PERF_MAP=1 perf record"), "{found:#}");
    // Other memory is that of regular expressions.
    let found = finding(&of("//anon"), "no-dump-or-map");
    assert!(text(&found, "cause").contains("(app, PCRE2)"), "{found:#}");
    assert_eq!(found["command"], Value::Null, "{found:#}");
    // With its map, its code is QML's, too.
    let scene = of(qml);
    scene.write(&format!("perf-{PID}.map"), map(0x7c00_0000_0000, &["fib", "start_thread"]));
    let said = String::from_utf8(doctor(&[], &scene.record()).stdout).unwrap();
    assert!(said.contains("(app), QML: 800 of 800 frames"), "{said}");
}

#[test]
fn of_two_runtimes_that_write_one_map_the_one_that_lost_its_names_is_told() {
    let recorded = |library: &str, names: &[&str]| {
        let mut scene = Scene::of("/usr/bin/python3.12");
        scene.map_file(0x7d00_0000_0000, library);
        // The interpreter is in its own library, whose functions a second map names.
        scene.samples(SAMPLES, &[&[at(3), at(9), at(3), at(4)], &[at(0), at(3), at(9), at(3), at(4)]]);
        scene.data.command(&["perf", "record", "-k", "mono", "-g", "--", "python3.12", "-X", "perf", "a.py"]);
        let names = [names, &["_PyEval_EvalFrameDefault", "main"]].concat();
        scene.write(&format!("perf-{PID}.map"), map(JIT, &names));
        scene
    };
    let java = ["int A.a()", "int A.b()", "int A.c()"];
    let found = finding(&recorded("/x/jre/lib/server/libjvm.so", &java), "source-overwritten");
    assert!(
        text(&found, "cause").contains("only the names from OpenJDK are left")
            && text(&found, "cause").contains("CPython"),
        "{found:#}"
    );
    let remedy = text(&found, "remedy");
    assert!(remedy.contains("-XX:+LogCompilation") && remedy.contains("perf_jit"), "{found:#}");
    assert!(!remedy.contains("DumpPerfMapAtExit") && found["command"] == Value::Null, "{found:#}");
    // Alone, Python is not overwritten.
    let all = all_findings(&recorded("/x/libother.so", &["py::f:/a.py", "py::g:/a.py", "py::h:/a.py"]));
    assert!(all.iter().all(|found| found["problem"] != "source-overwritten"), "{all:#?}");
}

#[test]
fn chains_that_lead_round_in_circles_are_broken_and_deep_ones_are_cut() {
    const CIRCLES: &[&[u64]] = &[&[0x5000_0000_1000, 0x5000_0000_2000], &[0x1234], &[1, 2, 3, 4, 5]];
    for circle in CIRCLES {
        let mut chain = vec![at(0), at(1)];
        chain.extend(circle.iter().cycle().take(125));
        let mut scene = Scene::of("/usr/bin/app");
        scene.samples(SAMPLES, &[&chain]);
        scene.write(&format!("perf-{PID}.map"), map(JIT, &["a", "b", "main"]));
        let found = finding(&scene, "frame-pointers");
        assert!(found["percent"].as_f64().unwrap() > 99.0, "{found:#}");
        assert!(all_findings(&scene).iter().all(|found| found["problem"] != "call-chains-cut"));
    }
    // From one object to the next: nothing repeats.
    let astray: Vec<u64> = [at(0)].into_iter().chain((0..126).map(|number| 0x5000_0000_0000 + number * 64)).collect();
    // Deep recursion, also of two functions in turn.
    let deep: Vec<u64> = [at(0), at(1)].into_iter().cycle().take(127).collect();
    for (chain, problem) in [(astray, "frame-pointers"), (deep, "call-chains-cut")] {
        let mut scene = Scene::of("/usr/bin/app");
        scene.samples(SAMPLES, &[&chain]);
        scene.write(&format!("perf-{PID}.map"), map(JIT, &["a", "b", "main"]));
        finding(&scene, problem);
    }
}

/// The remedy and the command for stacks that break off in JIT code.
fn broken(program: &str, library: Option<&str>, command: &[&str]) -> (String, String) {
    let mut scene = Scene::of(program);
    if let Some(library) = library {
        scene.map_file(0x7d00_0000_0000, library);
    }
    scene.samples(SAMPLES, &[&[at(0), 0x1234], &[at(1), 0x1235]]);
    scene.data.command(command);
    scene.write(&format!("perf-{PID}.map"), map(JIT, &["a", "b", "main"]));
    let found = finding(&scene, "frame-pointers");
    (text(&found, "remedy").to_owned(), text(&found, "command").to_owned())
}

#[test]
fn copies_of_stacks_are_advised_where_callers_of_jit_code_are_found_in_them() {
    let command = ["perf", "record", "-k", "mono", "-g", "--", "app"];
    for (program, library) in [
        ("/usr/bin/racket", None),
        ("/usr/bin/poly", None),
        ("/usr/bin/mono-sgen", None),
        ("/usr/bin/luajit", None),
        ("/usr/bin/python3.11", Some("/x/llvmlite/binding/libllvmlite.so")),
        ("/usr/bin/guile-3.0", None),
        ("/usr/bin/php8.2", Some("/usr/lib/php/20220829/opcache.so")),
        ("/opt/bun", None),
    ] {
        let (remedy, command) = broken(program, library, &command);
        assert!(remedy.contains("callers cannot be found") && command.is_empty(), "{program}: {remedy} {command}");
    }
    for program in ["/usr/bin/node", "/usr/bin/jsc", "/usr/bin/wasmtime", "/usr/bin/dotnet"] {
        let (remedy, command) = broken(program, None, &command);
        let line = Pasted::run(&command, &["app"]).line();
        assert!(remedy.contains("--call-graph dwarf") && line.contains("--call-graph dwarf"), "{program}: {remedy}");
    }
    // Trampolines of Python's map cannot be left, those of its dump can.
    let (remedy, _) = broken("/usr/bin/python3.13", None, &command);
    assert!(remedy.contains("--call-graph dwarf") && remedy.contains("perf_jit"), "{remedy}");
}

/// What was in place, and the words that doctor must not say then.
struct InPlace {
    scene: Scene,
    args: &'static [&'static str],
    problem: &'static str,
    says: &'static str,
    never: &'static [&'static str],
}

/// Samples with copies of stacks of these words, in which a frame pointer leads upwards from the first.
fn copied(words: &[u64]) -> Scene {
    const STACK: u64 = 0x7ffc_0000_0000;
    let event = Event {
        sample_type: USUAL | REGS_USER | STACK_USER,
        registers: 0x1c0,
        stack: 8 * words.len() as u32,
        ..Event::usual()
    };
    let mut scene = Scene::with_event("/usr/bin/app", event);
    for number in 0..SAMPLES {
        let more = More { registers: (2, &[STACK, STACK, at(0)]), stack: words, ..More::default() };
        let stamp = Stamp::new(PID, START + number * 1_000_000);
        scene.data.sample_with(0, USER, stamp, at(0), &[CONTEXT_USER, at(0)], &more);
    }
    scene.write(&format!("perf-{PID}.map"), map(JIT, &["a", "main"]));
    scene
}

#[test]
fn what_was_in_place_is_not_advised() {
    let incomplete = |program: &str, command: &[&str]| {
        let mut scene = Scene::of(program);
        scene.samples(SAMPLES, &[&[at(0), at(2)], &[at(7), at(2)]]);
        scene.data.command(command);
        scene.write(&format!("perf-{PID}.map"), map(JIT, &["int A.a()", "int A.b()", "start_thread"]));
        scene
    };
    let deep = |command: &[&str]| {
        let mut scene = Scene::with_event("/usr/bin/app", Event { max_stack: 32, ..Event::usual() });
        scene.samples(SAMPLES, &[&[at(0); 32]]);
        scene.data.command(command);
        scene.write(&format!("perf-{PID}.map"), map(JIT, &["a", "main"]));
        scene
    };
    let few = || {
        let mut scene = Scene::of("/usr/bin/app");
        scene.samples(10, &[&[at(0), at(1)]]);
        scene.write(&format!("perf-{PID}.map"), map(JIT, &["a", "main"]));
        scene
    };
    let kernel = || {
        let mut scene = Scene::of("/usr/bin/app");
        for number in 0..SAMPLES {
            let stamp = Stamp::new(PID, START + number * 1_000_000);
            scene.data.sample_of(0, 1, stamp, 0xffff_ffff_8000_1000, &[u64::MAX - 127, 0xffff_ffff_8000_1000]);
        }
        scene
    };
    let vdso = || {
        let mut scene = Scene::of("/usr/bin/app");
        scene.map_file(0x7ffd_0000_0000, "[vdso]");
        scene.data.string_feature(3, "elsewhere");
        scene.samples(SAMPLES, &[&[0x7ffd_0000_0100, 0x7ffd_0000_0200]]);
        scene
    };
    let at_exit = "-XX:+DumpPerfMapAtExit";
    let java = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java";
    const STACK: u64 = 0x7ffc_0000_0000;
    let words: Vec<u64> = (1..1500).flat_map(|frame| [STACK + 16 * frame, at(0)]).collect();
    let cases = [
        InPlace {
            scene: Scene::of("/usr/bin/app"),
            args: &[],
            problem: "no-samples",
            says: "longer",
            never: &["cpu-clock"],
        },
        InPlace { scene: few(), args: &[], problem: "few-samples", says: "record for longer", never: &[] },
        InPlace {
            scene: incomplete(
                java,
                &["perf", "record", "-k", "mono", "-g", "--", "java", "-XX:+UnlockDiagnosticVMOptions", at_exit, "A"],
            ),
            args: &[],
            problem: "source-incomplete",
            says: "LogCompilation",
            never: &["-XX:+DumpPerfMapAtExit", "jcmd"],
        },
        InPlace {
            scene: incomplete(java, &["perf", "record", "-k", "mono", "-g", "--", "java", "A"]),
            args: &[],
            problem: "source-incomplete",
            says: at_exit,
            never: &[],
        },
        InPlace {
            scene: incomplete("/usr/bin/mono-sgen", &["perf", "record", "-g", "--", "mono-sgen", "--jitmap", "a.exe"]),
            args: &[],
            problem: "source-incomplete",
            says: "copy the map after the process has ended",
            // Mono writes none.
            never: &["jitdump"],
        },
        InPlace {
            scene: deep(&["perf", "record", "--call-graph", "fp", "-e", "cpu-clock/max-stack=32/", "app"]),
            args: &[],
            problem: "call-chains-cut",
            says: "without max-stack=32",
            never: &["sysctl"],
        },
        InPlace {
            scene: deep(&["perf", "record", "-g", "app"]),
            args: &[],
            problem: "call-chains-cut",
            says: "sysctl",
            never: &["max-stack=32"],
        },
        InPlace { scene: copied(&words), args: &[], problem: "stacks-too-deep", says: "--max-stack 1024", never: &[] },
        InPlace {
            scene: copied(&words),
            args: &["--max-stack", "1024"],
            problem: "stacks-too-deep",
            says: "--max-stack 8192",
            never: &["--max-stack 1024"],
        },
        InPlace { scene: kernel(), args: &[], problem: "kernel-symbols", says: "--kallsyms", never: &[] },
        InPlace { scene: vdso(), args: &[], problem: "vdso", says: "jitgraft pack", never: &["--symfs", "deleted"] },
    ];
    for InPlace { scene, args, problem, says, never } in cases {
        let all = findings_with(&scene, args);
        let found =
            all.iter().find(|found| found["problem"] == problem).unwrap_or_else(|| panic!("{problem}: {all:#?}"));
        assert!(text(found, "remedy").contains(says), "{found:#}");
        for word in never {
            for key in ["cause", "remedy", "command"] {
                assert!(!text(found, key).contains(word), "{word}: {found:#}");
            }
        }
    }
}

/// Another recording with the clock alone brings no names.
#[test]
fn a_command_changes_what_its_finding_needs() {
    // Attached: no option reaches the process any more.
    let scene = sampled("/usr/bin/node", &["perf", "record", "-g", "-p", "4711"]);
    assert_eq!(finding(&scene, "no-dump-or-map")["command"], Value::Null);
    // All is given: what its dump lacks, another one lacks, too.
    let command = ["perf", "record", "-g", "--", "node", "--perf-prof", "--interpreted-frames-native-stack", "a.js"];
    let mut scene = Scene::of("/usr/bin/node");
    scene.marker(&format!("jit-{PID}.dump"));
    scene.samples(SAMPLES, &[&[at(0), at(2)], &[at(7), at(2)]]);
    scene.data.command(&command);
    scene.write(
        &format!("jit-{PID}.dump"),
        dump(&[("JS:*a /a.js:1:1", START - 5), ("b", START - 5), ("start_thread", START + 900_000_000)]),
    );
    let found = finding(&scene, "source-incomplete");
    assert_eq!(found["command"], Value::Null, "{found:#}");
    assert!(!text(&found, "remedy").contains("turn logging on"), "{found:#}");
}

#[test]
fn commands_for_callgrind_are_ones_that_a_shell_runs() {
    let said = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("runtimes").args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let list = said(&[]);
    let said = |name: &str| said(&[name]);
    for name in list.lines().filter_map(|line| line.split("  ").next()).filter(|name| !name.is_empty()) {
        let page = said(name);
        for line in page.lines().filter(|line| line.contains("valgrind ")) {
            let command = line.trim_start().strip_prefix("for callgrind").unwrap().trim();
            let mut words = command.split(' ').skip_while(|word| *word != "valgrind").skip(1);
            let program = words.find(|word| !word.starts_with("--")).unwrap();
            assert!(!program.contains('='), "{command}");
        }
        for line in page.lines().filter(|line| line.contains("perf record")) {
            assert!(!line.contains("'grep -P'"), "{line}");
        }
    }
    assert!(said("php").contains("-d opcache.jit=tracing -d opcache.file_update_protection=0 …"), "{}", said("php"));
    assert!(
        said("moarvm").contains("MVM_JIT_PERF_MAP=1 MVM_JIT_DUMP_BYTECODE=1 valgrind --tool=callgrind"),
        "{}",
        said("moarvm")
    );
    // Erlang's program is a script.
    assert!(said("erlang").contains("--trace-children=yes erl"), "{}", said("erlang"));
}

/// What `record` would run, with a program of this name that prints this version.
fn planned(version: &str, words: &[&str]) -> String {
    planned_with(&[(words[0], format!("#!/bin/sh\necho '{version}'\n").as_str())], words)
}

/// What `record` plans to run for these words, where these programs are the only ones.
fn planned_with(programs: &[(&str, &str)], words: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in programs.iter().chain(&[("perf", "#!/bin/sh\necho 1,,cpu-clock:u,1,100.00,,\n")]) {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(["record", "--dry-run", "--"]).args(words).env_clear().env("PATH", dir.path()).current_dir(dir.path());
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn what_is_recorded_anew_reaches_the_processes_that_it_executes() {
    let python = planned("Python 3.13.0", &["python3.13", "mp.py"]);
    assert!(
        python.starts_with("PYTHON_PERF_JIT_SUPPORT=1 perf record ") && python.ends_with("-- python3.13 mp.py\n"),
        "{python}"
    );
    // An option that was typed is handed on to nobody.
    let typed = planned("Python 3.13.0", &["python3.13", "-X", "perf_jit", "mp.py"]);
    assert!(typed.starts_with("PYTHON_PERF_JIT_SUPPORT=1 perf record "), "{typed}");
    let older = planned("Python 3.12.1", &["python3.12", "mp.py"]);
    assert!(older.starts_with("PYTHONPERFSUPPORT=1 perf record "), "{older}");
    // Isolated, it takes no notice of variables.
    for isolating in ["-I", "-E", "-sEu"] {
        let isolated = planned("Python 3.13.0", &["python3.13", isolating, "mp.py"]);
        assert!(isolated.starts_with("perf record ") && isolated.contains("-X perf_jit"), "{isolated}");
    }
    assert!(planned("Python 3.13.0", &["python3.13", "-c", "E"]).starts_with("PYTHON_PERF_JIT_SUPPORT=1"));
    let ruby = planned("ruby 4.0.0 (2025-12-25) +PRISM", &["ruby", "--zjit", "app.rb"]);
    assert!(ruby.contains("ruby --zjit-perf --zjit app.rb"), "{ruby}");
    let node = planned("v16.20.2", &["node", "--perf-basic-prof-only-functions", "app.js"]);
    assert!(node.contains("node --perf-prof --interpreted-frames-native-stack app.js"), "{node}");
    let qml = planned("", &["qmlscene", "app.qml"]);
    assert!(qml.starts_with("QV4_PROFILE_WRITE_PERF_MAP=1 perf record "), "{qml}");
}

#[test]
fn shared_memory_is_no_file_that_was_deleted() {
    for memory in ["/dev/shm/ZendAccelerator.4711 (deleted)", "/tmp/#8812 (deleted)"] {
        let mut scene = Scene::of("/usr/bin/php8.2");
        scene.map_file(0x7c00_0000_0000, memory);
        scene.samples(SAMPLES, &[&[0x7c00_0000_0010, 0x7c00_0000_0110]]);
        scene.data.command(&["perf", "record", "-k", "mono", "-g", "--", "php8.2", "app.php"]);
        let all = all_findings(&scene);
        assert!(all.iter().all(|found| found["problem"] != "files-missing"), "{memory}: {all:#?}");
        let found = finding(&scene, "no-dump-or-map");
        assert!(pasted(&found, &["php8.2"]).contains("opcache.jit_debug=48"), "{memory}: {found:#}");
    }
}

/// A map names all interpreted methods by the interpreter that they share: the switch that wrote it was received.
#[test]
fn interpreted_methods_are_no_sign_that_a_switch_was_not_received() {
    let java = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java";
    let mut scene = Scene::of(java);
    scene.samples(SAMPLES, &[&[at(0), at(2)], &[at(0), at(0), at(2)], &[at(1), at(2)]]);
    scene.data.command(&[
        "perf",
        "record",
        "-k",
        "mono",
        "-g",
        "--",
        java,
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:+DumpPerfMapAtExit",
        "A",
    ]);
    scene.write(&format!("perf-{PID}.map"), map(JIT, &["Interpreter", "int A.b()", "start_thread"]));
    let found = finding(&scene, "interpreted");
    assert!(!text(&found, "cause").contains("another process"), "{found:#}");
    assert!(text(&found, "remedy").contains("interpreted methods cannot be named"), "{found:#}");
    assert_eq!(found["command"], Value::Null, "{found:#}");
}

/// The emulator is C code: no switch of Erlang changes how it was compiled.
#[test]
fn a_switch_for_jit_code_is_not_advised_for_stacks_that_end_in_the_runtimes_own_program() {
    let beam = "/usr/lib/erlang/erts-13.1.5/bin/beam.smp";
    let command = ["perf", "record", "-k", "mono", "-g", "--", "erl", "-noshell"];
    for (chain, is_switch) in [(&[0x40_0010][..], false), (&[at(0), at(1)], true)] {
        let mut scene = Scene::of(beam);
        scene.samples(SAMPLES, &[chain]);
        scene.data.command(&command);
        scene.write(&format!("perf-{PID}.map"), map(JIT, &["$lists:a/1", "$lists:b/1", "$lists:c/1"]));
        let found = finding(&scene, "frame-pointers");
        let remedy = text(&found, "remedy");
        assert_eq!(remedy.contains("+JPperf"), is_switch, "{found:#}");
        assert_eq!(remedy.contains("--call-graph dwarf"), !is_switch, "{found:#}");
    }
}

/// `perf record -d` also lists memory that isn't executable. Chains that lead there are broken; no map lacks its code.
#[test]
fn data_is_not_unnamed_jit_code() {
    const HEAP: u64 = 0x2a38_9000;
    let recorded = |protection: u32, path: &str| {
        let mut scene = Scene::of("/usr/bin/node");
        let heap = Mmap { addr: HEAP, len: 0x10_0000, pgoff: 0, path };
        mmap2_protected(&mut scene.data, Stamp::new(PID, START - 10), heap, protection);
        scene.samples(SAMPLES, &[&[at(0), HEAP + 0x40], &[at(1), at(2)]]);
        scene.write(&format!("perf-{PID}.map"), map(JIT, &["a", "b", "start_thread"]));
        scene
    };
    const READ_WRITE: u32 = 3;
    const READ_WRITE_EXECUTE: u32 = 7;
    for path in ["[heap]", "//anon", "[anon:v8]", "[stack]"] {
        let data = recorded(READ_WRITE, path);
        let all = all_findings(&data);
        assert!(all.iter().all(|found| found["problem"] != "source-incomplete"), "{path}: {all:#?}");
        let inject = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
            .args(["inject", "-o"])
            .args([data.dir.path().join("new.data"), data.record()])
            .output()
            .unwrap();
        let said = String::from_utf8(inject.stderr).unwrap();
        assert!(said.contains("600 of 600 JIT frames"), "{path}: {said}");
        let code = finding(&recorded(READ_WRITE_EXECUTE, path), "source-incomplete");
        assert!(text(&code, "cause").contains("800"), "{path}: {code:#}");
        // Memory that is writable for a moment is still the code's.
        let mut toggled = recorded(READ_WRITE_EXECUTE, path);
        let again = Mmap { addr: HEAP, len: 0x1000, pgoff: 0, path };
        mmap2_protected(&mut toggled.data, Stamp::new(PID, START - 5), again, READ_WRITE);
        finding(&toggled, "source-incomplete");
    }
}

/// QEMU's name has digits of its own; Debian 12's QEMU refuses the option.
#[test]
fn an_option_that_the_version_refuses_is_not_planned() {
    for (says, has_it) in [
        ("qemu-x86_64 version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)", false),
        ("qemu-x86_64 version 8.2.2", true),
        ("qemu-x86_64 version 10.0.0", true),
    ] {
        let plan = planned(says, &["qemu-x86_64", "app"]);
        assert_eq!(plan.contains("-jitdump"), has_it, "{plan}");
        assert!(plan.ends_with(" app\n"), "{plan}");
    }
}

/// npm, pip's and Ruby's programs are scripts. The first line says what runs them, and a variable reaches it.
#[test]
fn a_script_is_run_by_what_its_first_line_says() {
    let python = "#!/bin/sh\necho Python 3.13.0\n";
    for (first_line, interpreter, expected) in [
        ("#!/usr/bin/env node", ("node", "#!/bin/sh\necho v20.1.0\n"), "NODE_OPTIONS="),
        ("#!/usr/bin/env -S node --no-warnings", ("node", "#!/bin/sh\necho v20.1.0\n"), "NODE_OPTIONS="),
        ("#! /usr/bin/env python3.13", ("python3.13", python), "PYTHON_PERF_JIT_SUPPORT=1 "),
        ("#!/usr/bin/env python3.12", ("python3.12", "#!/bin/sh\necho Python 3.12.4\n"), "PYTHONPERFSUPPORT=1 "),
        // It ignores variables, and no option on this command line reaches it.
        ("#!/usr/bin/env -S python3.13 -I", ("python3.13", python), "perf record"),
        ("#!/bin/sh", ("node", "#!/bin/sh\necho v20.1.0\n"), "perf record"),
        ("no script", ("node", "#!/bin/sh\necho v20.1.0\n"), "perf record"),
    ] {
        let plan = planned_with(&[("tool", format!("{first_line}\n\n").as_str()), interpreter], &["tool", "x"]);
        assert!(plan.starts_with(expected) && plan.ends_with("-- tool x\n"), "{first_line}: {plan}");
    }
}
