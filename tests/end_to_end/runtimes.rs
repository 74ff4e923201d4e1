//! Runtimes, recorded live: what perf shows of their code after `jitgraft inject`. `tests/run.sh --all` runs these.

use crate::support::tool;

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tool::run;

/// At least so much of the frames in JIT code has a name: a few samples fall between load and announcement.
const NAMED: f64 = 0.95;

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Records the command, injects, and checks what perf prints: JIT code has names, these among them.
fn check(command: &[&str], dir: &Path, wanted: &[&str]) {
    let record = ["record", "-q", "-k", "mono", "-e", "cpu-clock:u", "-F", "2000", "-g", "-o", "perf.data", "--"];
    run("perf", &[&record[..], command].concat(), dir);
    run(env!("CARGO_BIN_EXE_jitgraft"), &["inject", "-i", "perf.data", "-o", "perf.jit.data"], dir);
    let text = run("perf", &["script", "--no-inline", "-F", "ip,sym,dso", "-i", "perf.jit.data"], dir);
    let frames: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let named = frames.iter().filter(|frame| frame.contains("/jitted-") && !frame.contains("[unknown]")).count();
    let nameless = frames.iter().filter(|frame| frame.contains("[unknown] (//anon)")).count();
    assert!(named > 100 && named as f64 >= NAMED * (named + nameless) as f64, "{named} named, {nameless} nameless");
    for name in wanted {
        assert!(frames.iter().any(|frame| frame.contains(name)), "no frame is named {name}");
    }
}

#[test]
#[ignore = "needs node: tests/run.sh --all"]
fn code_of_node_has_names() {
    let dir = tempfile::tempdir().unwrap();
    let source = program("work.js");
    let node = ["node", "--perf-prof", "--interpreted-frames-native-stack", source.to_str().unwrap()];
    check(&node, dir.path(), &["JS:*fibonacci", "JS:*byNumber", "ArrayTimSort"]);
}

#[test]
#[ignore = "needs javac: tests/run.sh --all"]
fn code_of_java_has_names() {
    let dir = tempfile::tempdir().unwrap();
    run("javac", &["-d", ".", program("Work.java").to_str().unwrap()], dir.path());
    let flags = ["-XX:+PreserveFramePointer", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"];
    let java = [&["java"], &flags[..], &["-cp", ".", "Work"]].concat();
    check(&java, dir.path(), &["Work.fibonacci", "TimSort", "Interpreter"]);
    // java cannot be determined to write its map elsewhere.
    let pids = run("perf", &["script", "-F", "pid", "-i", "perf.data"], dir.path());
    std::fs::remove_file(format!("/tmp/perf-{}.map", pids.split_whitespace().next().unwrap())).unwrap();
}

/// The frames of methods are those that the JVM's own map, written at the end, calls so; the interpreter, stubs and
/// adapters are in no log.
#[test]
#[ignore = "needs javac: tests/run.sh --all"]
fn code_of_java_has_names_and_tiers_by_its_compilation_log_without_a_map() {
    let dir = tempfile::tempdir().unwrap();
    run("javac", &["-d", ".", program("Work.java").to_str().unwrap()], dir.path());
    let record =
        ["record", "-q", "-k", "mono", "-e", "cpu-clock:u", "-F", "2000", "-g", "-o", "perf.data", "--", "java"];
    let log = [
        "-XX:+PreserveFramePointer",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:+LogCompilation",
        "-XX:+DumpPerfMapAtExit",
    ];
    run("perf", &[&record[..], &log, &["-cp", ".", "Work"]].concat(), dir.path());
    let pids = run("perf", &["script", "-F", "pid", "-i", "perf.data"], dir.path());
    let map = format!("/tmp/perf-{}.map", pids.split_whitespace().next().unwrap());
    let own = std::fs::read_to_string(&map).unwrap();
    std::fs::remove_file(&map).unwrap();
    let own: std::collections::HashSet<&str> = own.lines().filter_map(|line| line.splitn(3, ' ').nth(2)).collect();
    run(env!("CARGO_BIN_EXE_jitgraft"), &["inject", "-i", "perf.data", "-o", "perf.jit.data"], dir.path());
    let text = run("perf", &["script", "--no-inline", "-F", "ip,sym", "-i", "perf.jit.data"], dir.path());
    let names = text.lines().filter_map(|line| line.trim().split_once(' ').map(|(_, name)| name.trim()));
    let frames: Vec<&str> = names.collect();
    let logged: Vec<&str> =
        frames.iter().filter_map(|frame| frame.strip_suffix(" [c1]").or(frame.strip_suffix(" [c2]"))).collect();
    let known = logged.iter().filter(|name| own.contains(*name)).count();
    // A few were freed before the map was written.
    assert!(logged.len() > 100 && known * 100 >= logged.len() * 95, "{known} of {} are in the JVM's map", logged.len());
    for name in ["int Work.fibonacci(int) [c2]", "java.util.TimSort."] {
        assert!(frames.iter().any(|frame| frame.contains(name)), "no frame is named {name}");
    }
}

#[test]
#[ignore = "needs node, javac, php, php-fpm8.2, cgi-fcgi, python3 and root: tests/run.sh --all"]
fn names_are_found_wherever_a_process_lived_and_are_those_that_another_look_up_finds() {
    let places = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/places.sh");
    let cells = [
        ("normal forked", "php-fpm-map"),
        ("live killed", "php-fpm-map"),
        ("container dead-container", "node-map"),
        ("two-containers all", "java-map"),
    ];
    for (situations, runtime) in cells {
        let output = Command::new(&places)
            .arg(env!("CARGO_BIN_EXE_jitgraft"))
            .arg(runtime)
            .env("SITUATIONS", situations)
            // The script stops processes. Where no shell controls jobs, the kernel hangs up on all processes of a group
            // in which some are stopped; that must not be the tests' own.
            .process_group(0)
            .output();
        let output = output.unwrap_or_else(|error| panic!("{}: {error}", places.display()));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let judged = said.lines().filter(|line| line.starts_with(runtime)).count();
        assert_eq!(judged, situations.split(' ').count(), "{said}");
    }
}

/// The commands that are printed for callgrind work as they are printed.
#[test]
#[ignore = "needs valgrind, php, rakudo, node and erlang: tests/run.sh --all"]
fn the_commands_for_callgrind_bring_the_names() {
    for (runtime, arguments, file, text) in [
        (
            "php",
            "hot.php",
            "hot.php",
            "<?php function hot($n) { $s = 0; for ($i = 0; $i < $n; $i++) $s = ($s * 3 + $i) % 1000003; return $s; } echo hot(200000);",
        ),
        (
            "moarvm",
            "hot.raku",
            "hot.raku",
            "sub fib(int $n) { $n < 2 ?? $n !! fib($n - 1) + fib($n - 2) }\nsay fib(18);",
        ),
        (
            "node",
            "hot.js",
            "hot.js",
            "let s = 0; for (let i = 0; i < 300000; i++) s = (s * 3 + i) % 1000003; console.log(s)",
        ),
        ("erlang", "-noshell -eval 'lists:sum(lists:seq(1,100000)),init:stop().'", "unused", ""),
    ] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(file), text).unwrap();
        // PHP doesn't compile files that were written within the last two seconds (opcache.file_update_protection).
        let written = std::fs::File::options().append(true).open(dir.path().join(file)).unwrap();
        written.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(60)).unwrap();
        let page = run(env!("CARGO_BIN_EXE_jitgraft"), &["runtimes", runtime], dir.path());
        let line = page.lines().find_map(|line| line.trim_start().strip_prefix("for callgrind")).unwrap();
        let command = line.trim().replace('…', arguments);
        run("sh", &["-c", &command], dir.path());
        // A launcher has a file of its own.
        let files = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let profiles = files.filter(|path| path.to_string_lossy().contains("callgrind.out."));
        let named = |path: &PathBuf| {
            let said = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("callgrind").arg(path).output().unwrap();
            let said = String::from_utf8_lossy(&said.stderr).into_owned();
            said.contains(": named ") && !said.contains(": named 0 functions")
        };
        assert!(profiles.into_iter().any(|path| named(&path)), "{command}");
    }
}
