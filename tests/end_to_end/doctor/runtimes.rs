//! Each runtime of the table, recorded without its switch: doctor names it, what to switch on and what that leaves; a
//! file of that name is found then. Programs, libraries and what is mapped are those of recordings that were made of
//! these runtimes, and of the documentation where one was not to be had (Julia).

use super::scene::{JIT, PID, SAMPLES, START, Scene, at, dump, map};
use crate::support::jitdump::{JitDump, Load};
use std::fs;
use std::path::Path;
use std::process::Command;

const NAMES: &[&str] = &["hot", "warm", "start_thread"];

/// A runtime as it is recorded.
struct Recorded {
    runtime: &'static str,
    program: &'static str,
    libraries: &'static [&'static str],
    /// Words for the ways to get names. Doctor advises one of them; `jitgraft runtimes` explains all.
    advice: &'static [&'static str],
}

/// Those whose code is in memory that no file backs.
const RECORDED: &[Recorded] = &[
    Recorded {
        runtime: "numba",
        program: "/usr/bin/python3.11",
        libraries: &["/x/llvmlite/binding/libllvmlite.so"],
        advice: &["gcore PID", "./core.PID"],
    },
    Recorded {
        runtime: "JAX",
        program: "/usr/bin/python3.11",
        libraries: &["/x/jaxlib/libjax_common.so"],
        advice: &["gcore PID", "./core.PID"],
    },
    Recorded {
        runtime: "Taichi",
        program: "/usr/bin/python3.11",
        libraries: &["/x/taichi/_lib/core/taichi_python.cpython-311-x86_64-linux-gnu.so"],
        advice: &["no perf map or jitdump"],
    },
    Recorded {
        runtime: "chDB",
        program: "/usr/bin/python3.11",
        libraries: &["/x/chdb/_chdb.abi3.so"],
        advice: &["no perf map or jitdump"],
    },
    Recorded {
        runtime: "mini-racer",
        program: "/usr/bin/python3.11",
        libraries: &["/x/py_mini_racer/libmini_racer.so"],
        advice: &["init_mini_racer", "--perf-prof"],
    },
    Recorded {
        runtime: "PythonMonkey",
        program: "/usr/bin/python3.11",
        libraries: &["/x/pythonmonkey/pythonmonkey.so"],
        advice: &["--enable-perf"],
    },
    Recorded {
        runtime: "Lupa",
        program: "/usr/bin/python3.11",
        libraries: &["/x/lupa/luajit21.cpython-311-x86_64-linux-gnu.so"],
        advice: &["luajit.dump"],
    },
    Recorded {
        runtime: "PCRE2",
        program: "/usr/bin/grep",
        libraries: &["/usr/lib/x86_64-linux-gnu/libpcre2-8.so.0.11.2"],
        advice: &["no perf map or jitdump"],
    },
    Recorded {
        runtime: "deno",
        program: "/opt/deno/deno",
        libraries: &[],
        advice: &["--v8-flags=--perf-prof,--interpreted-frames-native-stack", "./jit-PID.dump"],
    },
    Recorded {
        runtime: "Bun",
        program: "/opt/bun/bin/bun",
        libraries: &[],
        advice: &["BUN_JSC_useJITDump=1", "BUN_JSC_jitDumpDirectory=DIR", "DIR/jit-TID-PID.dump"],
    },
    Recorded {
        runtime: "Node.js",
        program: "/usr/bin/node",
        libraries: &["/usr/lib/x86_64-linux-gnu/libnode.so.108"],
        advice: &["--perf-prof", "./jit-PID.dump", "--perf-basic-prof", "/tmp/perf-PID.map"],
    },
    Recorded {
        runtime: "Chromium",
        program: "/usr/lib/chromium/chromium",
        libraries: &["/usr/lib/x86_64-linux-gnu/libffi.so.8.1.2"],
        advice: &["--no-sandbox", "--js-flags=", "--interpreted-frames-native-stack", "./jit-PID.dump"],
    },
    Recorded {
        runtime: "QtWebEngine",
        program: "/usr/lib/x86_64-linux-gnu/qt6/libexec/QtWebEngineProcess",
        libraries: &[
            "/usr/lib/x86_64-linux-gnu/libQt6WebEngineCore.so.6",
            "/usr/lib/x86_64-linux-gnu/libpcre2-16.so.0",
        ],
        advice: &["QTWEBENGINE_CHROMIUM_FLAGS='--no-sandbox --js-flags=--perf-basic-prof", "/tmp/perf-PID.map"],
    },
    Recorded {
        runtime: "QML",
        program: "/usr/lib/qt5/bin/qmlscene",
        libraries: &["/usr/lib/x86_64-linux-gnu/libQt5Qml.so.5.15.8"],
        advice: &["QV4_PROFILE_WRITE_PERF_MAP=1", "/tmp/perf-PID.map"],
    },
    Recorded {
        runtime: "Firefox",
        program: "/usr/lib/firefox-esr/firefox-esr",
        libraries: &["/usr/lib/firefox-esr/libxul.so"],
        advice: &["--enable-perf", "builds from distributions are not", "PERF_SPEW_DIR=DIR", "DIR/jit-PID.dump"],
    },
    Recorded {
        runtime: "SpiderMonkey",
        program: "/usr/bin/gjs-console",
        libraries: &["/usr/lib/x86_64-linux-gnu/libmozjs-102.so.102.15.1"],
        advice: &["run gjs with", "libmozjs was built with --enable-perf", "DIR/jit-PID.dump"],
    },
    Recorded {
        runtime: "OpenJDK",
        program: "/usr/lib/jvm/java-17-openjdk-amd64/bin/java",
        libraries: &["/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"],
        advice: &["-XX:+DumpPerfMapAtExit", "/tmp/perf-PID.map", "jcmd PID Compiler.perfmap", "libperf-jvmti.so"],
    },
    Recorded {
        runtime: "Erlang",
        program: "/usr/lib/erlang/erts-13.1.5/bin/beam.smp",
        libraries: &[],
        advice: &["+JPperf true", "/tmp/perf-PID.map"],
    },
    Recorded {
        runtime: "PHP",
        program: "/usr/bin/php8.2",
        libraries: &["/usr/lib/php/20220829/opcache.so"],
        advice: &["opcache.jit_debug=48", "/tmp/jit-PID.dump", "/tmp/perf-PID.map"],
    },
    Recorded {
        runtime: "PostgreSQL",
        program: "/usr/lib/postgresql/15/bin/postgres",
        libraries: &["/usr/lib/postgresql/15/lib/llvmjit.so", "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"],
        advice: &["jit_profiling_support = on", "llvm-IR-jit-*/jit-PID.dump"],
    },
    Recorded {
        runtime: "Wasmtime",
        program: "/usr/bin/python3.12",
        libraries: &["/usr/lib/python3/dist-packages/wasmtime/linux-x86_64/_libwasmtime.so"],
        advice: &["--profile=jitdump", "./jit-PID.dump", "--profile=perfmap"],
    },
    Recorded {
        runtime: "Wasmer",
        program: "/usr/bin/python3.10",
        libraries: &["/usr/lib/python3/dist-packages/wasmer/wasmer.cpython-310-x86_64-linux-gnu.so"],
        advice: &["--profiler=perfmap", "/tmp/perf-PID.map"],
    },
    Recorded {
        runtime: "MoarVM",
        program: "/usr/bin/rakudo-m",
        libraries: &["/usr/lib/x86_64-linux-gnu/libmoar.so.2022.12"],
        advice: &["MVM_JIT_PERF_MAP=1", "/tmp/perf-PID.map"],
    },
    Recorded {
        runtime: ".NET",
        program: "/usr/share/dotnet/dotnet",
        libraries: &["/usr/share/dotnet/shared/Microsoft.NETCore.App/3.1.23/libcoreclr.so"],
        advice: &["COMPlus_PerfMapEnabled=1", "/tmp/perf-PID.map"],
    },
    Recorded {
        runtime: "Mono",
        program: "/usr/bin/mono-sgen",
        libraries: &[],
        advice: &["--jitmap", "/tmp/perf-PID.map"],
    },
    Recorded {
        runtime: "Julia",
        program: "/opt/julia/bin/julia",
        libraries: &["/opt/julia/lib/libjulia.so.1.11", "/opt/julia/lib/julia/libLLVM-16jl.so"],
        advice: &["ENABLE_JITPROFILING=1", "jit-PID.dump"],
    },
    Recorded {
        runtime: "Ruby",
        program: "/usr/bin/ruby3.3",
        libraries: &["/usr/lib/x86_64-linux-gnu/libruby-3.3.so.3.3.0"],
        advice: &["ruby (3.3 or newer) with --yjit-perf --yjit", "if it was built with YJIT", "/tmp/perf-PID.map"],
    },
    Recorded {
        runtime: "PyPy",
        program: "/usr/bin/pypy3.9",
        libraries: &["/usr/lib/x86_64-linux-gnu/libpypy3.9-c.so"],
        advice: &[],
    },
    Recorded {
        runtime: "LuaJIT",
        program: "/usr/bin/luajit-2.1.0-beta3",
        libraries: &[],
        advice: &["-jdump=m,luajit.dump", "-DLUAJIT_USE_PERFTOOLS", "/tmp/perf-PID.map"],
    },
    Recorded {
        runtime: "JavaScriptCore",
        program: "/usr/bin/jsc",
        libraries: &["/usr/lib/x86_64-linux-gnu/libjavascriptcoregtk-4.0.so.18.28.11"],
        advice: &["JSC_useJITDump=1", "JSC_jitDumpDirectory=DIR", "DIR/jit-PID.dump"],
    },
    Recorded {
        runtime: "JavaScriptCore",
        program: "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/WebKitWebProcess",
        libraries: &["/usr/lib/x86_64-linux-gnu/libjavascriptcoregtk-4.1.so.0.10.1"],
        advice: &["JSC_useJITDump=1", "DIR/jit-PID.dump"],
    },
    Recorded {
        runtime: "CPython",
        program: "/usr/bin/python3.13",
        libraries: &[],
        advice: &["-X perf", "/tmp/perf-PID.map", "-X perf_jit", "/tmp/jit-PID.dump"],
    },
    Recorded {
        runtime: "QEMU",
        program: "/usr/bin/qemu-aarch64",
        libraries: &[],
        advice: &["8 or newer", "-jitdump", "./jit-PID.dump", "-perfmap", "/tmp/perf-PID.map"],
    },
    Recorded {
        runtime: "Guile",
        program: "/usr/bin/guile-3.0",
        libraries: &["/usr/lib/x86_64-linux-gnu/libguile-3.0.so.1.5.0"],
        advice: &["writes no perf map or jitdump", "only interprets"],
    },
    Recorded {
        runtime: "SBCL",
        program: "/usr/bin/sbcl",
        libraries: &[],
        advice: &["writes no perf map or jitdump", "sb-sprof"],
    },
    Recorded {
        runtime: "LLVM",
        program: "/usr/lib/llvm-14/bin/lli",
        libraries: &["/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"],
        advice: &["--jit-kind=mcjit", "createPerfJITEventListener", "/tmp/.debug/jit/llvm-IR-jit-*/jit-PID.dump"],
    },
];

/// The runtime, sampled in memory for JIT code.
fn scene(recorded: &Recorded) -> Scene {
    let mut scene = Scene::of(recorded.program);
    for (number, library) in (1u64..).zip(recorded.libraries) {
        scene.map_file(0x7d00_0000_0000 + number * 0x100_0000, library);
    }
    scene.samples(SAMPLES, &[&[at(0), at(2)], &[at(1), at(2)]]);
    scene
}

/// What `jitgraft runtimes` prints.
fn runtimes(name: Option<&str>) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("runtimes").args(name).output().unwrap();
    assert!(output.status.success(), "{name:?} is not in the table");
    String::from_utf8(output.stdout).unwrap()
}

/// The files that a runtime leaves, by `jitgraft runtimes NAME`.
fn left_files(name: &str) -> Vec<String> {
    let text = runtimes(Some(name));
    let rows = text.lines().filter_map(|line| line.trim().strip_prefix("writes "));
    rows.flat_map(|row| row.split(',')).map(|path| path.trim().to_owned()).collect()
}

/// Its content shows who wrote it, if its name has another number, too.
fn file(path: &str) -> Vec<u8> {
    if path.ends_with(".map") {
        return map(JIT, NAMES).into_bytes();
    }
    dump(&NAMES.iter().map(|name| (*name, START - 5)).collect::<Vec<_>>())
}

#[test]
fn each_runtime_without_its_switch_is_named_with_what_to_switch_on_and_what_that_leaves() {
    for recorded in RECORDED {
        let (cause, remedy) = scene(recorded).first("no-dump-or-map");
        let comm = recorded.program.rsplit('/').next().unwrap();
        let who = format!("process {PID} ({comm}, {})", recorded.runtime);
        assert!(cause.contains(&who), "{cause}");
        let page = runtimes(Some(recorded.runtime));
        for word in recorded.advice {
            let is_told = remedy.contains(word) || page.contains(word);
            assert!(is_told, "{}: {word} is neither in {remedy} nor in {page}", recorded.runtime);
        }
        let is_advised = recorded.advice.iter().any(|word| remedy.contains(word));
        assert!(is_advised || recorded.advice.is_empty(), "{}: {remedy}", recorded.runtime);
    }
}

#[test]
fn the_files_of_each_switch_are_found_beside_the_recording_and_name_everything() {
    for recorded in RECORDED {
        let left = left_files(recorded.runtime);
        // Engines' logs are read in tests of their own.
        for path in left.iter().filter(|path| path.ends_with("PID.dump") || path.ends_with("PID.map")) {
            let mut scene = scene(recorded);
            let name = path.rsplit('/').next().unwrap();
            let name = name.replace("TID", "4712").replace("PID", &PID.to_string());
            // A number of a thread in its name is recognized by the marker alone.
            if path.contains("TID") {
                scene.marker(&name);
            }
            scene.write(&name, file(path));
            assert_eq!(scene.problems(), [""; 0], "{}: {name}", recorded.runtime);
        }
    }
}

#[test]
fn every_runtime_of_the_table_is_tried() {
    let list = runtimes(None);
    let names: Vec<&str> =
        list.lines().filter_map(|line| line.split("  ").next()).filter(|name| !name.is_empty()).collect();
    assert!(names.len() > 20, "{list}");
    for name in names {
        let is_recorded = RECORDED.iter().any(|recorded| recorded.runtime == name);
        assert!(is_recorded, "{name}: no recording");
    }
}

/// A program whose samples are in a file that is not ELF, which is in a directory of the test.
fn in_a_file(program: &str, library: &str, name: &str, bytes: &[u8]) -> (tempfile::TempDir, Scene) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    let mut scene = Scene::of(program);
    scene.map_file(0x7d00_0000_0000, library);
    scene.map_file(0x5000_0000, path.to_str().unwrap());
    scene.samples(SAMPLES, &[&[0x5000_0100, 0x5000_0200]]);
    (dir, scene)
}

#[test]
fn files_of_code_that_are_not_elf_are_reported_to_be_that_and_not_another_version() {
    // The core's magic is LCBS, PE's is MZ.
    let core = [b"LCBS".repeat(64), vec![0; 0x1000]].concat();
    let (_dir, scene) = in_a_file("/usr/bin/sbcl", "/usr/lib/x86_64-linux-gnu/libzstd.so.1", "sbcl.core", &core);
    let (cause, remedy) = scene.first("not-elf");
    assert!(cause.contains("sbcl.core is not an ELF file"), "{cause}");
    assert!(remedy.contains("sb-sprof"), "{remedy}");
    let runtime = "/usr/share/dotnet/libcoreclr.so";
    let pe = [b"MZ".to_vec(), vec![0; 0x1000]].concat();
    let (_dir, scene) = in_a_file("/usr/share/dotnet/dotnet", runtime, "System.Private.CoreLib.dll", &pe);
    let (cause, remedy) = scene.first("not-elf");
    assert!(cause.contains("System.Private.CoreLib.dll is not an ELF file"), "{cause}");
    assert!(remedy.contains("DOTNET_ReadyToRun=0"), "{remedy}");
}

/// A library without any symbol, as distributions have them.
fn stripped(dir: &Path, name: &str) -> String {
    let (source, library) = (dir.join("code.s"), dir.join(name));
    fs::write(&source, ".text\n.fill 512,1,0x90\n").unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-nostdlib", "-s", "-o"]).arg(&library).arg(&source);
    assert!(gcc.status().expect("gcc is needed: see tests/run.sh").success());
    library.to_str().unwrap().to_owned()
}

#[test]
fn a_stripped_runtime_that_has_no_jit_code_is_reported_to_interpret() {
    let dir = tempfile::tempdir().unwrap();
    for (name, program, library, words) in [
        ("Ruby", "/usr/bin/ruby3.1", "libruby-3.1.so.3.1.2", "--yjit --yjit-perf"),
        ("CPython", "/usr/bin/python3.11", "libpython3.11.so.1.0", "-X perf (3.12 or newer"),
    ] {
        let library = stripped(dir.path(), library);
        let mut scene = Scene::of(program);
        scene.map_file(0x5000_0000, &library);
        scene.samples(SAMPLES, &[&[0x5000_1010, 0x5000_1020]]);
        let findings = scene.findings();
        let found = findings.iter().find(|finding| finding["problem"] == "interpreted");
        let found = found.unwrap_or_else(|| panic!("{name}: {findings:#?}"));
        assert!(found["cause"].as_str().unwrap().contains("in its interpreter"), "{found}");
        assert!(found["remedy"].as_str().unwrap().contains(words), "{found}");
        // If it has JIT code, JIT code is missing.
        scene.samples(SAMPLES, &[&[at(0), at(2)]]);
        assert!(!scene.problems().contains(&"interpreted".to_owned()), "{name}");
    }
}

#[test]
fn twins_are_both_reported() {
    let scene = scene(RECORDED.iter().find(|recorded| recorded.runtime == "Node.js").unwrap());
    for number in [98, 99] {
        let mut dump = JitDump::new(number);
        for (index, name) in (0..).zip(NAMES) {
            let code = &[0x90; 0x100];
            let load = Load { tid: number, addr: JIT + index * 0x100, index, name: name.as_bytes(), code };
            dump.load(START - 5 + index, load);
        }
        scene.write(&format!("jit-{number}.dump"), dump.into_bytes());
    }
    let (_, remedy) = scene.first("source-of-other-process");
    assert!(remedy.contains("the file's addresses match the unnamed code, as do those of 1 more file"), "{remedy}");
}
