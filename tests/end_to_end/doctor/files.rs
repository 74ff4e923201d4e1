//! Files that ran, and are not here as they ran.

use super::scene::{JIT, PID, SAMPLES, START, Scene, at, map};
use crate::support::perf_data::{Mmap, Stamp};
use std::path::Path;
use std::process::Command;

const BASE: u64 = 0x40_0000;

/// A library with two functions of 256 bytes each, `hot` and `main`, whose code begins where the file does, as perf
/// reports it: at 0x1000.
fn build(dir: &Path, name: &str, more: &[&str]) -> String {
    build_with("hot", dir, name, more)
}

/// Builds a program whose first function has the name `hot`.
fn build_with(hot: &str, dir: &Path, name: &str, more: &[&str]) -> String {
    let (source, program) = (dir.join("app.s"), dir.join(name));
    let function =
        |name: &str| format!(".globl {name}\n.type {name},@function\n{name}: .fill 256,1,0x90\n.size {name},256\n");
    std::fs::write(&source, format!(".text\n{}{}", function(hot), function("main"))).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-nostdlib", "-Wl,--build-id"]).args(more).arg("-o").arg(&program).arg(&source);
    assert!(gcc.status().unwrap().success());
    program.to_str().unwrap().to_owned()
}

fn recorded(program: &str) -> Scene {
    let mut scene = Scene::of(program);
    scene.samples(SAMPLES, &[&[BASE + 0x1010, BASE + 0x1110]]);
    scene
}

#[test]
fn a_program_that_is_here_is_sound() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(recorded(&build(dir.path(), "app", &[])).problems(), [""; 0]);
}

#[test]
fn an_own_program_that_was_stripped_is_to_be_built_with_symbols() {
    let dir = tempfile::tempdir().unwrap();
    // Symbols for linking are symbols, too: what has none was stripped of all.
    let hidden = dir.path().join("hidden.map");
    std::fs::write(&hidden, "{ local: *; };").unwrap();
    let program = build(dir.path(), "app", &["-s", &format!("-Wl,--version-script={}", hidden.display())]);
    let (cause, remedy) = recorded(&program).first("stripped");
    assert!(cause.contains("app"), "{cause}");
    assert!(remedy.contains("build with -g") && !remedy.contains("dbgsym"), "{remedy}");
}

#[test]
fn a_program_that_was_deleted_is_distinguished_from_one_of_another_machine() {
    let dir = tempfile::tempdir().unwrap();
    let program = build(dir.path(), "app", &[]);
    let scene = recorded(&program);
    std::fs::remove_file(&program).unwrap();
    let (_, remedy) = scene.first("files-missing");
    assert!(remedy.contains("jitgraft pack"), "{remedy}");
    // A library that is here shows that it is this machine.
    let library = build(dir.path(), "lib.so", &[]);
    let mut scene = Scene::of(&program);
    scene.map_file(0x90_0000, &library);
    scene.samples(SAMPLES, &[&[BASE + 0x1010, 0x90_1110]]);
    let (cause, _) = scene.first("files-missing");
    assert!(cause.contains("deleted or moved since"), "{cause}");
    let (cause, _) = recorded("/x/app (deleted)").first("files-missing");
    assert!(cause.contains("deleted or replaced while running"), "{cause}");
}

#[test]
fn a_program_that_was_built_anew_is_of_another_version() {
    let dir = tempfile::tempdir().unwrap();
    let program = build(dir.path(), "app", &[]);
    let mut scene = recorded(&program);
    // The BUILD_ID feature: pid -1, 20 bytes of another build's, and the path.
    let path = [program.as_bytes(), &[0]].concat();
    let body = [&u32::MAX.to_le_bytes()[..], &[7; 20], &[20, 0, 0, 0], &path].concat();
    let head = [&67u32.to_le_bytes()[..], &(2u16 | 1 << 15).to_le_bytes(), &(8 + body.len() as u16).to_le_bytes()];
    scene.data.feature(2, [head.concat(), body].concat());
    let (_, remedy) = scene.first("other-version");
    assert!(remedy.contains("debuginfod-find executable 0707"), "{remedy}");
}

#[test]
fn a_program_of_another_inode_is_reported_where_no_build_id_shows_more() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let program = build(dir.path(), "app", &["-Wl,--build-id=none"]);
    let recorded = || {
        let data = std::fs::metadata(&program).unwrap();
        let device = (rustix::fs::major(data.dev()), rustix::fs::minor(data.dev()));
        let mut scene = Scene::of("/usr/bin/env");
        let map = Mmap { addr: 0x90_0000, len: 0x10_0000, pgoff: 0, path: &program };
        scene.data.mmap2_of(Stamp::new(PID, START - 500_000), map, device, data.ino());
        scene.samples(SAMPLES, &[&[0x90_1010, 0x90_1110]]);
        scene
    };
    let said = |scene: &Scene| {
        let record = scene.record();
        // The program was built long before: the recording is the last half second.
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
        std::fs::File::options().write(true).open(&record).unwrap().set_modified(later).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("collapse").arg(&record).output().unwrap();
        let (text, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(text.contains("env;main;hot "), "{text}{said}");
        said.matches("its inode differs").count()
    };
    let scene = recorded();
    assert_eq!(said(&scene), 0);
    // The old one stays, so that its number is not given again.
    std::fs::rename(&program, dir.path().join("old")).unwrap();
    build(dir.path(), "app", &["-Wl,--build-id=none"]);
    assert_eq!(said(&scene), 1);
    assert_eq!(said(&recorded()), 0);
}

#[test]
fn an_interpreter_that_is_all_that_is_seen_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let program = build_with("_PyEval_EvalFrameDefault", dir.path(), "python3.11", &[]);
    let (cause, remedy) = recorded(&program).first("interpreted");
    assert!(cause.contains("CPython 3.11 gave interpreted functions no names"), "{cause}");
    assert!(remedy.contains("-X perf (3.12 or newer"), "{remedy}");
}

/// The headers of a PE image of .NET.
fn assembly() -> Vec<u8> {
    let mut image = vec![0; 0x400];
    image[..2].copy_from_slice(b"MZ");
    image[0x3c] = 0x80;
    image[0x80..0x84].copy_from_slice(b"PE\0\0");
    image[0x98..0x9a].copy_from_slice(&0x20bu16.to_le_bytes());
    image[0x98 + 112 + 8 * 14] = 8;
    image
}

#[test]
fn files_that_are_not_elf_are_reported_to_be_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (cause, remedy) = recorded(&write("System.Private.CoreLib.dll", &assembly())).first("not-elf");
    assert!(cause.contains("CoreLib.dll is not an ELF file but a .NET PE image"), "{cause}");
    assert!(remedy.contains("DOTNET_ReadyToRun=0"), "{remedy}");
    let (cause, _) = recorded(&write("sbcl.core", b"LCBS\0\0\0\0")).first("not-elf");
    assert!(cause.contains("sbcl.core is not an ELF file but an SBCL core"), "{cause}");
    let (cause, _) = recorded(&write("code.bin", &[0x90; 0x1000])).first("not-elf");
    assert!(cause.contains("code.bin is not an ELF file but a file in an unknown format"), "{cause}");
    // The other jobs state it, too.
    let scene = recorded(&write("sbcl.core", b"LCBS\0\0\0\0"));
    let collapse = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("collapse").arg(scene.record()).output().unwrap();
    let said = String::from_utf8_lossy(&collapse.stderr);
    assert!(said.contains("sbcl.core: is not an ELF file but an SBCL core, so there are no symbols to read"), "{said}");
}

/// Whoever types `jitgraft < perf.data` or `cat perf.data | jitgraft` is where the files are: the current directory is
/// standard input's, for every command.
#[test]
fn files_beside_standard_input_are_those_of_the_current_directory() {
    let mut scene = Scene::of("/usr/bin/node");
    scene.samples(SAMPLES, &[&[at(0), at(1)]]);
    let recording = scene.record();
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.args(words).current_dir(scene.dir.path()).stdin(std::fs::File::open(&recording).unwrap());
        command.env("HOME", "/nonexistent").env_remove("JITDUMPDIR").output().unwrap()
    };
    let commands: [&[&str]; 4] = [&["collapse"], &["script", "-"], &["report", "--to", "csv"], &["doctor", "-"]];
    let nameless = commands.map(|words| run(words).stdout);
    scene.write(&format!("perf-{PID}.map"), map(JIT, &["first_in_the_map", "start_thread"]));
    for (words, before) in commands.iter().zip(nameless) {
        let named = String::from_utf8(run(words).stdout).unwrap();
        let expected = if words[0] == "doctor" { "800 of 800 frames" } else { "first_in_the_map" };
        assert!(named.contains(expected), "{words:?}: {named}");
        assert!(!String::from_utf8(before).unwrap().contains(expected), "{words:?}");
    }
    let injected = run(&["inject", "-o", "new.data"]);
    let said = String::from_utf8(injected.stderr).unwrap();
    assert!(injected.status.success() && said.contains("800 of 800 JIT frames"), "{said}");
}

/// A variable reaches all processes, but `python -I` ignores it. Whether a child was started like that isn't recorded;
/// that it mapped no dump is.
#[test]
fn a_variable_that_had_no_effect_is_not_said_to_have_been_on() {
    const CHILD: u32 = PID + 1;
    let dir = tempfile::tempdir().unwrap();
    let program = build_with("_PyEval_EvalFrameDefault", dir.path(), "python3.13", &[]);
    for (variable, has_dump, is_ignored) in [
        ("PYTHON_PERF_JIT_SUPPORT=1", false, true),
        ("PYTHON_PERF_JIT_SUPPORT=1", true, false),
        // A map isn't mapped, so nothing shows whether it was written.
        ("PYTHONPERFSUPPORT=1", false, false),
    ] {
        let mut scene = Scene::of("/usr/bin/make");
        scene.samples(2, &[&[0x50_0010, 0x50_0020]]);
        scene.data.fork(Stamp::new(CHILD, START + 10), PID);
        scene.data.comm(Stamp::new(CHILD, START + 20), "python3.13", true);
        let map = Mmap { addr: BASE, len: 0x10_0000, pgoff: 0, path: &program };
        scene.data.mmap2(Stamp::new(CHILD, START + 30), map);
        if has_dump {
            let path = format!("/tmp/jit-{CHILD}.dump");
            let map = Mmap { addr: 0x7e00_0000_0000, len: 0x1000, pgoff: 0, path: &path };
            scene.data.mmap2(Stamp::new(CHILD, START + 35), map);
        }
        for number in 0..SAMPLES {
            let stamp = Stamp::new(CHILD, START + 40 + number * 1_000_000);
            scene.data.sample(stamp, &[BASE + 0x1010, BASE + 0x1110]);
        }
        scene.data.command(&["perf", "record", "-k", "mono", "-g", "--", "env", variable, "make"]);
        let findings = scene.findings();
        let found = findings.iter().find(|found| found["problem"] == "interpreted");
        let found = found.unwrap_or_else(|| panic!("{findings:#?}"));
        let remedy = found["remedy"].as_str().unwrap();
        let is_explained = remedy.contains("-X perf_jit") && remedy.contains("-E or -I") && remedy.contains("noexec");
        assert_eq!(is_explained, is_ignored, "{variable}: {found:#}");
        assert!(!is_ignored || found["command"].is_null(), "{found:#}");
    }
}
