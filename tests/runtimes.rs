//! Runtimes, recorded live: what perf shows of their code after `jitgraft inject`. `tests/run.sh --all` runs these.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// At least so much of the frames in JIT code has a name: a few samples fall between load and announcement.
const NAMED: f64 = 0.95;

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

fn run(program: &str, arguments: &[&str], dir: &Path) -> String {
    let output = Command::new(program).args(arguments).current_dir(dir).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error} (tests/run.sh --all installs it)"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
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
    // java cannot be told to write its map elsewhere.
    let pids = run("perf", &["script", "-F", "pid", "-i", "perf.data"], dir.path());
    std::fs::remove_file(format!("/tmp/perf-{}.map", pids.split_whitespace().next().unwrap())).unwrap();
}
