//! `record` with a perf that is a script: what it is called with, what comes back from it, and what is brought to the
//! recording. With a real perf and real runtimes: `tests/end_to_end/runtimes.rs`.

use crate::support::php_recording;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// A directory with programs: `perf`, which does this for `record`, and some that have the names of runtimes.
struct Place {
    dir: tempfile::TempDir,
}

/// Measure by a machine with and without processor cycles.
const CYCLES: &str = "1234,,cycles:u,100,100.00,,\\n0.4,msec,cpu-clock:u,400,100.00,,";
const CLOCK_ONLY: &str = "<not supported>,,cycles:u,0,100.00,,\\n0.4,msec,cpu-clock:u,400,100.00,,";

/// Writes down its words, a NUL behind each, and the variables that runtimes read.
const WRITE_DOWN: &str =
    "printf '%s\\0' perf \"$@\" > words; env | grep -E '^(NODE_OPTIONS|BUN_JSC)' | sort > variables";

impl Place {
    fn new(counted: &str, record: &str) -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        place.program("perf", &format!("case $1 in stat) printf '{counted}\\n' >&2 ;; *) {record} ;; esac"));
        for (name, says) in [("node", "v20.1.0"), ("python3", "Python 3.11.9"), ("php", "PHP 8.2.1"), ("app", "")] {
            place.program(name, &format!("echo {says}"));
        }
        place
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        let path = format!("{}:/usr/bin:/bin", self.path().display());
        command.arg("record").args(args).current_dir(self.path()).env("PATH", path).env("HOME", "/nonexistent");
        for name in ["NODE_OPTIONS", "JITGRAFT_OPTS", "JITDUMPDIR"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn words(&self) -> Vec<String> {
        let words = fs::read_to_string(self.path().join("words")).unwrap();
        words.strip_suffix('\0').unwrap().split('\0').map(str::to_owned).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_command_that_is_shown_is_the_one_that_runs() {
    for args in [
        &["--", "node", "a b.js", "it's", "$(touch pwned)", "\u{1b}[2J"][..],
        &["-F", "99", "--call-graph", "dwarf,4096", "-e", "cpu-clock:u", "--", "python3", "x.py"],
        &["--runtime", "node", "--all-user", "--", "app", "--perf-prof"],
        &["node", "-e", "1"],
    ] {
        let place = Place::new(CYCLES, WRITE_DOWN);
        let dry = place.run(&[&["--dry-run"], args].concat());
        assert!(dry.status.success(), "{}", text(&dry.stderr));
        assert!(!place.path().join("words").exists(), "nothing ran");
        let shown = text(&dry.stdout);
        assert_eq!(shown.lines().count(), 1, "{shown}");
        assert!(!shown.trim_end().chars().any(char::is_control), "{shown:?}");
        let ran = place.run(args);
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        assert!(text(&ran.stderr).contains(shown.trim_end()), "{}", text(&ran.stderr));
        let (words, variables) = (place.words(), fs::read(place.path().join("variables")).unwrap());
        // Pasted into a shell, it is the same.
        let mut bash = Command::new("bash");
        bash.args(["-c", &shown])
            .current_dir(place.path())
            .env("PATH", format!("{}:/usr/bin:/bin", place.path().display()));
        assert!(bash.env_remove("NODE_OPTIONS").status().unwrap().success());
        assert_eq!((place.words(), fs::read(place.path().join("variables")).unwrap()), (words, variables));
        assert!(!place.path().join("pwned").exists());
    }
}

#[test]
fn missing_parts_are_added_to_flags_or_variables() {
    let place = Place::new(CYCLES, WRITE_DOWN);
    let line = |args: &[&str]| text(&place.run(&[&["--dry-run"], args].concat()).stdout).trim_end().to_owned();
    assert_eq!(
        line(&["--", "node", "app.js"]),
        "perf record -k mono -F 999 -e cycles -o perf.data -g -- node --perf-prof --interpreted-frames-native-stack app.js"
    );
    assert_eq!(
        line(&["-o", "run.data", "-k", "raw", "-g", "--", "node", "--perf-basic-prof", "app.js"]),
        "perf record -k raw -g -F 999 -e cycles -o run.data -- node --perf-basic-prof app.js"
    );
    let mut with_options = place.command(&["--dry-run", "--runtime", "node", "--", "app"]);
    let output = with_options.env("NODE_OPTIONS", "-r ./secret").output().unwrap();
    assert_eq!(
        text(&output.stdout).trim_end(),
        "NODE_OPTIONS=\"$NODE_OPTIONS --perf-prof --interpreted-frames-native-stack\" perf record -k mono -F 999 -e cycles -o \
         perf.data -g -- app"
    );
    let mut runs = place.command(&["--runtime", "node", "--", "app"]);
    assert!(runs.env("NODE_OPTIONS", "-r ./secret").status().unwrap().success());
    let variables = fs::read_to_string(place.path().join("variables")).unwrap();
    assert_eq!(variables, "NODE_OPTIONS=-r ./secret --perf-prof --interpreted-frames-native-stack\n");
    assert!(line(&["-a", "--", "sleep", "1"]).starts_with("perf record -a -k mono "), "system-wide");
}

#[test]
fn an_impossible_recording_is_reported_before_it_runs() {
    let said = |counted: &str, args: &[&str]| {
        let output = Place::new(counted, "exit 9").run(args);
        (output.status.code(), text(&output.stderr))
    };
    let (status, old) = said(CLOCK_ONLY, &["--", "python3", "x.py"]);
    assert!(old.contains("CPython 3.11 cannot write names for perf; 3.12 is the first version that can"), "{old}");
    assert!(old.contains("cannot count processor cycles") && old.contains("-e cpu-clock"), "{old}");
    assert_eq!(status, Some(9), "it runs all the same");
    let (_, unknown) = said(CYCLES, &["--", "app"]);
    assert!(unknown.contains("app is not a known runtime") && unknown.contains("--runtime"), "{unknown}");
    let place = Place::new(CYCLES, "");
    place.program("jruby", "");
    let jruby = text(&place.run(&["--dry-run", "--", "jruby", "x.rb"]).stderr);
    assert!(jruby.contains("jruby starts OpenJDK; to name the code that OpenJDK runs, add --runtime jruby"), "{jruby}");
    for (typed, replaced) in [("--call-graph=fp", "--call-graph fp"), ("-g", "-g")] {
        let (_, php) = said(CYCLES, &[typed, "--runtime", "php", "--", "app"]);
        assert!(php.contains(&format!("so --call-graph dwarf replaces {replaced}")), "{php}");
    }
    let (_, copies) = said(CYCLES, &["--call-graph=dwarf,4096", "--runtime", "php", "--", "app"]);
    assert!(!copies.contains("replaces"), "{copies}");
    let (_, php) = said(CYCLES, &["--runtime", "php", "--", "app"]);
    assert!(php.contains("PHP has no environment variable that makes it write names"), "{php}");
    let (status, nothing) = said("Error: no permission", &["--", "app"]);
    assert!(status == Some(1) && nothing.contains("perf cannot count any event here"), "{nothing}");
    let (status, missing) = said(CYCLES, &["--", "no-such-program"]);
    assert!(status == Some(1) && missing.contains("no such program"), "{missing}");
    let place = Place::new(CYCLES, "");
    for name in ["app.js", "Main.java", "tool"] {
        fs::write(place.path().join(name), "1\n").unwrap();
    }
    for (file, remedy) in [
        ("app.js", "jitgraft record -- node app.js"),
        ("./app.js", "jitgraft record -- node ./app.js"),
        ("Main.java", "jitgraft record -- java Main.java"),
        ("tool", "use ./tool"),
        ("./tool", "chmod +x ./tool"),
    ] {
        let output = place.run(&["--", file]);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(remedy), "{file}: {said}");
    }
    let (status, runtime) = said(CYCLES, &["--runtime", "perl", "--", "app"]);
    assert!(status == Some(2) && runtime.contains("no runtime named perl"), "{runtime}");
    let place = Place::new(CYCLES, "");
    let output = place.command(&["--", "app"]).env("PATH", "/nonexistent").output().unwrap();
    assert!(text(&output.stderr).contains("perf is not installed"), "{}", text(&output.stderr));
}

#[test]
fn status_and_signals_pass_through() {
    assert_eq!(Place::new(CYCLES, "exit 7").run(&["--", "app"]).status.code(), Some(7));
    assert_eq!(Place::new(CYCLES, "kill -KILL $$").run(&["--", "app"]).status.signal(), Some(9));
    for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("USR2", 12)] {
        let place = Place::new(CYCLES, &format!("trap 'exit 42' {name}; touch ready; while :; do sleep 0.05; done"));
        // Some of them may be ignored when the tests run, which is inherited.
        let own = place.command(&["--", "app"]);
        let mut command = Command::new("env");
        command.arg("--default-signal").arg(own.get_program()).args(own.get_args()).current_dir(place.path());
        command.env("PATH", format!("{}:/usr/bin:/bin", place.path().display()));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        while !place.path().join("ready").exists() {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(10));
        }
        let sent = Command::new("kill").args([&format!("-{number}"), &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(child.wait().unwrap().code(), Some(42), "{name}");
    }
}

#[test]
fn the_program_is_limited_by_nothing_of_ours() {
    let place = Place::new(CYCLES, "{ ulimit -d; trap; } > limits; grep SigIgn /proc/self/status >> limits");
    assert!(place.run(&["--max-memory", "1G", "--", "app"]).status.success());
    let limits = fs::read_to_string(place.path().join("limits")).unwrap();
    let own = Command::new("sh").args(["-c", "ulimit -d"]).output().unwrap();
    assert_eq!(limits.lines().next(), Some(text(&own.stdout).trim_end()), "{limits}");
    let ignored = limits.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    let xfsz = u64::from_str_radix(ignored, 16).unwrap() & (1 << 24);
    assert_eq!(xfsz, 0, "SIGXFSZ is not ignored: {limits}");
}

/// A recording of PHP that is "made" in a directory of its own while its dump appears in the current one.
#[test]
fn dumps_end_up_beside_the_recording_and_are_used_there() {
    let place = Place::new(CYCLES, "cp made.data \"$out\"; cp --preserve=timestamps left.dump \"$dump\"");
    let recording = zstd::decode_all(fs::File::open(php_recording::recording()).unwrap()).unwrap();
    fs::write(place.path().join("made.data"), recording).unwrap();
    fs::copy(php_recording::dump(), place.path().join("left.dump")).unwrap();
    let written = SystemTime::now() - Duration::from_secs(1234);
    fs::File::options().append(true).open(place.path().join("left.dump")).unwrap().set_modified(written).unwrap();
    fs::create_dir(place.path().join("run")).unwrap();
    let record = || {
        let mut command = place.command(&["-o", "run/perf.data", "--", "php", "x.php"]);
        command.env("out", "run/perf.data").env("dump", php_recording::dump_name()).output().unwrap()
    };
    let output = record();
    let kept = place.path().join("run").join(php_recording::dump_name());
    assert!(text(&output.stderr).contains("to run/jit-"), "{}", text(&output.stderr));
    assert_eq!(fs::read(&kept).unwrap(), fs::read(php_recording::dump()).unwrap());
    let age = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(age(&kept), age(&place.path().join("left.dump")));
    // Without the one in the current directory, the copy is used without a flag.
    fs::remove_file(place.path().join(php_recording::dump_name())).unwrap();
    let mut report = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    report.args(["report", "--symfs", "/dev", "perf.data"]).current_dir(place.path().join("run"));
    let listed = text(&report.env("HOME", "/nonexistent").output().unwrap().stdout);
    assert!(listed.contains("TRACE-"), "{listed}");
}

/// LuaJIT's dump has no PID in its name.
#[test]
fn a_file_with_a_fixed_name_that_is_refused_is_mentioned() {
    let place = Place::new(CYCLES, "cp made.data \"$out\"; mkfifo luajit.dump");
    place.program("luajit", "echo LuaJIT 2.1.0");
    let recording = zstd::decode_all(fs::File::open(php_recording::recording()).unwrap()).unwrap();
    fs::write(place.path().join("made.data"), recording).unwrap();
    fs::create_dir(place.path().join("run")).unwrap();
    let mut command = place.command(&["-o", "run/perf.data", "--", "luajit", "x.lua"]);
    let output = command.env("out", "run/perf.data").output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("luajit.dump: is not a regular file"), "{said}");
    assert!(!place.path().join("run/luajit.dump").exists());
}

/// perf renames an existing recording before it notices that it may not record all processes.
#[test]
fn a_recording_that_is_not_permitted_pushes_none_aside() {
    let place = Place::new(CYCLES, "");
    place.program(
        "perf",
        &format!(
            "case \"$*\" in 'stat -a '*) echo 'No permission' >&2 ;; stat*) printf '{CYCLES}\\n' >&2 ;; *) mv perf.data \
             perf.data.old ;; esac"
        ),
    );
    let write = |name: &str| fs::write(place.path().join(name), name).unwrap();
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap_or_default();
    let write_both = || ["perf.data", "perf.data.old"].into_iter().for_each(write);
    write_both();
    for args in [&[][..], &["-a"], &["-a", "--", "app"], &["-F", "99"]] {
        let output = place.run(args);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("all processes is not permitted"), "{args:?}: {said}");
        assert!(said.contains("jitgraft record -- COMMAND"), "{args:?}: {said}");
        assert_eq!(["perf.data", "perf.data.old"].map(read), ["perf.data", "perf.data.old"], "{args:?}");
    }
    // A program may be recorded. What gets lost is said before.
    for (args, loses) in [(&["--", "app"][..], true), (&["-o", "other.data", "--", "app"], false)] {
        write_both();
        let said = text(&place.run(args).stderr);
        assert_eq!(said.contains("replaces the existing perf.data.old"), loses, "{args:?}: {said}");
    }
    fs::remove_file(place.path().join("perf.data.old")).unwrap();
    write("perf.data");
    let said = text(&place.run(&["--", "app"]).stderr);
    assert!(!said.contains("replaces the existing"), "nothing is lost: {said}");
}
