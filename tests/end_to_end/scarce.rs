//! The program with few resources: threads, stack, address space. It does the same with less, or ends with a line that
//! shows why; it never aborts.

use crate::support::effort::step;
use crate::support::limits;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Each command with an input of its own kind; `-o` where the output is not text.
const COMMANDS: [&str; 16] = [
    "report php/perf.data.zst",
    "collapse php/perf.data.zst",
    "flamegraph php/perf.data.zst -o /dev/stdout",
    "export --to pprof php/perf.data.zst -o /dev/stdout",
    "export --to firefox php/perf.data.zst -o /dev/stdout",
    "doctor php/perf.data.zst",
    "script php/perf.data.zst",
    "annotate php/perf.data.zst",
    "view --no-open php/perf.data.zst -o /dev/stdout",
    "inject php/perf.data.zst -o /dev/stdout",
    "merge stacks stacks -o /dev/stdout",
    "callgrind callgrind.out -o /dev/stdout",
    "stats trace.json",
    "report trace.json",
    "runtimes",
    "formats",
];

/// Files that anybody may read, and a copy of the program that anybody may run.
fn scene() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let open = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        open(path.parent().unwrap());
        fs::write(&path, bytes).unwrap();
        open(&path);
    };
    let fixture = |name: &str| fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)).unwrap();
    write("jitgraft", &fs::read(env!("CARGO_BIN_EXE_jitgraft")).unwrap());
    write("php/perf.data.zst", &fixture("php-recording/perf.data.zst"));
    write("php/jit-31795.dump", &fixture("php-recording/jit-31795.dump"));
    write("stacks", "a;b;c 7\na;b 1\na;d 2\n".repeat(100_000 / step(5)).as_bytes());
    write("callgrind.out", b"# callgrind format\nversion: 1\npid: 7\nevents: Ir\n\nfl=(1) a.c\nfn=(1) main\n1 10\n");
    write("perf-7.map", b"1000 10 f\n");
    let span =
        |n: usize| format!(r#"{{"name":"span {}","ph":"X","ts":{n},"dur":{},"pid":7,"tid":7}}"#, n % 9, 2000 - 2 * n);
    write("trace.json", format!("[{}]", (0..1000).map(span).collect::<Vec<_>>().join(",\n")).as_bytes());
    // inject leaves images there.
    fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    dir
}

/// Runs a command under limits that a shell sets; as `nobody`, where that is possible: root has as many threads as it
/// wants.
fn under(dir: &Path, limits: &str, words: &str) -> Output {
    let script = format!("{limits} exec ./jitgraft {words}");
    let mut command = match unprivileged() {
        Some(words) => {
            let mut command = Command::new("setpriv");
            command.args(words).arg("bash");
            command
        }
        None => Command::new("bash"),
    };
    command.args(["-c", &script]).current_dir(dir).env("HOME", dir).output().unwrap()
}

fn unprivileged() -> Option<[&'static str; 3]> {
    let words = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let changes = Command::new("setpriv").args(words).arg("true").status().is_ok_and(|status| status.success());
    changes.then_some(words)
}

/// Each command ends as without the limits, and writes the same.
fn does_the_same_under(all_limits: &[String]) {
    let scene = scene();
    for words in COMMANDS {
        let free = under(scene.path(), "", words);
        assert!(free.status.success(), "{words}: {}", String::from_utf8_lossy(&free.stderr));
        for limits in all_limits {
            let limited = under(scene.path(), limits, words);
            let said = String::from_utf8_lossy(&limited.stderr);
            assert_eq!(limited.status.code(), free.status.code(), "{limits} {words}: {:?} {said}", limited.status);
            assert!(limited.stdout == free.stdout, "{limits} {words}: another output");
        }
    }
}

/// Was an error where no thread can start, a panic where fewer can than there are processors.
#[test]
fn fewer_threads_do_the_same() {
    let all_limits: Vec<String> = (1..=4).step_by(step(2)).map(|threads| format!("ulimit -u {threads};")).collect();
    does_the_same_under(&all_limits);
}

/// Was an abort before anything was read.
#[test]
fn a_small_stack_does_the_same() {
    does_the_same_under(&["ulimit -s 64;".to_owned()]);
}

#[test]
fn a_small_address_space_is_an_error_that_reports_it() {
    let scene = scene();
    let mut ends = Vec::new();
    for more in [6_000, 12_000, 24_000, 60_000, 200_000].into_iter().step_by(step(2)) {
        let limits = format!("ulimit -v {};", limits::loaded_kib() + more);
        for words in COMMANDS {
            let output = under(scene.path(), &limits, words);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(output.status.code(), Some(0 | 1)), "{limits} {words}: {:?} {said}", output.status);
            assert!(output.status.success() || said.contains("error: "), "{limits} {words}: {said}");
            ends.push(output.status.success());
        }
    }
    assert!(ends.contains(&true) && ends.contains(&false), "the limits are not between too little and enough");
}
