//! Runs that do not come to their end: no room for what they write, no memory, or somebody ends them. An interrupted
//! run leaves the old output as it was, or the whole of the new one; a message shows why; nothing else is left behind.
//!
//! Moments are random; the number for each command is set by `JITGRAFT_KILLS` (tests/run.sh takes the usual few).

use crate::support;
use crate::support::limits;
use crate::support::scene;

use limits::loaded_kib;
use scene::{PID, Scene, said};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::random::Random;

/// Every command that writes a file, which is called `out`.
const WRITERS: &[&str] = &[
    "inject -i perf.data -o out",
    "inject --cache -i perf.data -o out",
    "callgrind callgrind.out --perf-map callgrind.map -o out",
    "collapse perf.data -o out",
    "flamegraph perf.data -o out",
    "report perf.data -o out",
    "script perf.data -o out",
    "script text -o out",
    "stats trace.json -o out",
    "export --to pprof perf.data -o out",
    "export --to firefox perf.data -o out",
    "export --to chrome trace.json -o out",
    "merge --to folded stacks stacks -o out",
    "doctor perf.data -o out",
    "annotate perf.data -o out",
    "view --no-open perf.data -o out",
];

/// A directory with inputs, an output of an earlier run, and a directory for temporary files.
fn scene() -> Scene {
    let scene = Scene::new();
    fs::create_dir(scene.path("tmp")).unwrap();
    scene.write("out", "old");
    scene
}

/// The program there, below a shell that has done something before.
fn under(scene: &Scene, before: &str, words: &str) -> Command {
    let mut command = Command::new("sh");
    let script = format!("{before} exec {} {words}", env!("CARGO_BIN_EXE_jitgraft"));
    command.args(["-c", &script]).current_dir(scene.path("")).stdin(Stdio::null());
    command.env("HOME", scene.path("")).env("TMPDIR", scene.path("tmp"));
    command.env_remove("JITDUMPDIR").env_remove("JITGRAFT_OPTS");
    command
}

/// All files below a directory.
fn content(directory: &Path) -> Files {
    let (mut content, mut left) = (BTreeMap::new(), vec![directory.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => left.push(entry.path()),
                kind if kind.is_symlink() => {}
                _ => drop(content.insert(entry.path(), fs::read(entry.path()).unwrap())),
            }
        }
    }
    content
}

/// All files of a scene, by their names in it.
type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The files that a whole run leaves. The scene is as it was then.
fn whole(scene: &Scene, words: &str) -> Files {
    let before = relative(scene);
    let output = under(scene, "", words).output().unwrap();
    assert!(output.status.success(), "{words}: {}", said(&output));
    let after = relative(scene);
    restore(scene, &before);
    after
}

fn restore(scene: &Scene, before: &Files) {
    for path in relative(scene).keys().filter(|path| !before.contains_key(*path)) {
        fs::remove_file(scene.path("").join(path)).unwrap();
    }
    let _ = fs::remove_dir_all(scene.path(".debug"));
    scene.write("out", "old");
}

/// The current files.
fn relative(scene: &Scene) -> Files {
    let named = |(path, bytes): (PathBuf, Vec<u8>)| (path.strip_prefix(scene.path("")).unwrap().to_owned(), bytes);
    content(&scene.path("")).into_iter().map(named).collect()
}

#[test]
fn an_output_that_may_not_become_larger_is_named_and_what_was_there_stays() {
    for words in WRITERS {
        let scene = scene();
        let before = relative(&scene);
        let output = under(&scene, "ulimit -f 0;", words).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}: {:?} {}", output.status, said(&output));
        let told = said(&output);
        let errors: Vec<_> = told.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "{words}: {told}");
        assert!(errors[0].contains("File too large"), "{words}: {told}");
        let image = format!("jitted-{PID}.so: cannot be written");
        let is_named = errors[0].contains("out: cannot be written") || errors[0].contains(&image);
        assert!(is_named, "{words} names no output: {told}");
        assert!(relative(&scene) == before, "{words} left {:?}", relative(&scene).keys());
    }
}

#[test]
fn a_device_without_room_is_named() {
    let scene = scene();
    for words in WRITERS {
        let (words, _) = words.split_once(" -o ").unwrap();
        for (output, name) in [("-o /dev/full", "/dev/full"), ("-o - > /dev/full", "(standard output)")] {
            let output = under(&scene, "", &format!("{words} {output}")).output().unwrap();
            let told = said(&output);
            assert_eq!(output.status.code(), Some(1), "{words}: {told}");
            let expected = format!("error: {name}: cannot be written: No space left on device");
            assert!(told.contains(&expected), "{words}: {told}");
        }
    }
}

#[test]
fn unpacking_names_the_place_without_room() {
    let scene = scene();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&fs::read(scene.path("perf.data")).unwrap()).unwrap();
    scene.write("perf.data.gz", packed.finish().unwrap());
    let output = under(&scene, "ulimit -f 0;", "collapse perf.data.gz").output().unwrap();
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let place = scene.path("tmp");
    assert!(told.contains(&format!("a temporary file in {} cannot be written", place.display())), "{told}");
    assert!(told.contains("set TMPDIR to another directory"), "{told}");
}

#[test]
fn a_page_that_cannot_be_written_leaves_no_directory() {
    let scene = scene();
    let output = under(&scene, "ulimit -f 0;", "view --no-open stacks").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(fs::read_dir(scene.path("tmp")).unwrap().count(), 0);
}

#[test]
fn memory_that_is_not_available_ends_every_command_in_order() {
    for words in WRITERS {
        let scene = scene();
        let (before, expected) = (relative(&scene), whole(&scene, words));
        for more in [4 << 10, 16 << 10, 48 << 10] {
            let limit = format!("ulimit -v {};", loaded_kib() + more);
            let output = under(&scene, &limit, &format!("--threads 1 {words}")).output().unwrap();
            let told = said(&output);
            if output.status.success() {
                assert!(relative(&scene)[Path::new("out")] == expected[Path::new("out")], "{words} is half done");
                break;
            }
            // If not even the program can be loaded, the loader prints the error.
            let code = output.status.code();
            assert!(code == Some(1) || code == Some(127), "{words}: {:?} {told}", output.status);
            assert!(!told.trim().is_empty(), "{words} says nothing");
            assert!(relative(&scene) == before, "{words} left {:?}: {told}", relative(&scene).keys());
        }
    }
}

/// The stack of the first thread grows while the program runs. That there is no room for it is an error like any other.
#[test]
fn no_limit_of_the_address_space_ends_the_program_by_a_signal() {
    let scene = scene();
    // With less than the first one, the kernel or the loader can't even start the program.
    let mut has_started = false;
    for more in (0..8 << 10).step_by(64) {
        let limit = format!("ulimit -v {};", loaded_kib() + more);
        let output = under(&scene, &limit, "--threads 1 flamegraph perf.data -o out").output().unwrap();
        let code = output.status.code();
        has_started |= matches!(code, Some(0 | 1));
        assert!(
            !has_started || matches!(code, Some(0 | 1 | 127)),
            "{more} KiB more: {:?} {}",
            output.status,
            said(&output)
        );
    }
    assert!(has_started);
}

/// The number of runs of each command are ended.
fn kills() -> u32 {
    std::env::var("JITGRAFT_KILLS").ok().map_or(6, |kills| kills.parse().unwrap())
}

/// Ends runs of every command at random moments.
fn end_at_random(signal: i32, random: &mut Random) {
    for words in WRITERS {
        let scene = scene();
        let (start, before) = (Instant::now(), relative(&scene));
        let expected = whole(&scene, words);
        let usual = start.elapsed();
        let wholes: Vec<&Vec<u8>> = expected.values().collect();
        for _ in 0..kills() {
            let mut child = under(&scene, "", words).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
            std::thread::sleep(usual.mul_f64(f64::from(random.below(1000) as u16) / 900.0));
            end(&child, signal);
            child.wait().unwrap();
            let after = relative(&scene);
            let out = &after[Path::new("out")];
            assert!(out == b"old" || *out == expected[Path::new("out")], "{words}: half an output");
            for (path, bytes) in &after {
                // Between two names, and between an image and the recording that refers to it, all of it is there.
                let is_whole = before.contains_key(path) || wholes.contains(&bytes);
                assert!(is_whole, "{words} left {} with {} bytes", path.display(), bytes.len());
            }
            restore(&scene, &before);
            assert_eq!(fs::read_dir(scene.path("tmp")).unwrap().count(), 0, "{words}");
        }
    }
}

fn end(child: &Child, signal: i32) {
    let words = [format!("-{signal}"), child.id().to_string()];
    // It may have come to its end.
    let _ = Command::new("kill").args(words).stderr(Stdio::null()).status().unwrap();
}

#[test]
fn killed_at_any_moment_nothing_is_half_there() {
    end_at_random(libc::SIGKILL, &mut Random(17));
}

#[test]
fn reported_to_end_at_any_moment_nothing_is_half_there() {
    end_at_random(libc::SIGTERM, &mut Random(18));
}

/// The signals by which somebody ends a program.
const ENDING: [i32; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Has a file system that has no files without a name, as some of networks and of sticks do; signals end it as usual.
#[expect(unsafe_code, reason = "between fork and exec")]
fn without_nameless_files(command: &mut Command) -> &mut Command {
    let jump = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let (load, equal, any_of, answer) = (0x20, 0x15, 0x45, 0x06);
    let (nr, flags) = (0, 16 + 8 * 2);
    let is_refused = libc::SECCOMP_RET_ERRNO | libc::EOPNOTSUPP as u32;
    let nameless = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;
    let mut filter = [
        jump(load, nr, 0, 0),
        jump(equal, libc::SYS_openat as u32, 0, 3),
        jump(load, flags, 0, 0),
        jump(any_of, nameless, 0, 1),
        jump(answer, is_refused, 0, 0),
        jump(answer, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let set = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: all calls take numbers, and a pointer to a program that outlives them; none allocates.
        let done = unsafe {
            // Tests in the background or under nohup(1) have them ignored.
            ENDING.iter().all(|signal| libc::signal(*signal, libc::SIG_DFL) != libc::SIG_ERR)
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
        };
        if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: what is run between fork and exec makes system calls only.
    unsafe { command.pre_exec(set) }
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_signal_removes_a_file_that_must_have_a_name() {
    for signal in ENDING {
        let scene = scene();
        let before = names(&scene.path(""));
        // More than is looked at before it is known what it is.
        let text = fs::read(scene.path("text")).unwrap();
        let text = text.repeat((1 << 20) / text.len());
        let mut command = scene.command("script - -o out");
        without_nameless_files(&mut command).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // There is more to come: the output is begun, and waited with.
        let mut input = child.stdin.take().unwrap();
        input.write_all(&text).unwrap();
        let start = Instant::now();
        while !names(&scene.path("")).iter().any(|name| name.starts_with(".jitgraft-")) {
            assert!(child.try_wait().unwrap().is_none(), "it did not wait");
            assert!(start.elapsed() < Duration::from_secs(60), "there is no output under way");
            std::thread::sleep(Duration::from_millis(10));
        }
        end(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(signal), "{}", said(&output));
        assert_eq!(names(&scene.path("")), before);
        assert_eq!(fs::read(scene.path("out")).unwrap(), b"old");
        drop(input);
    }
}

#[test]
fn outputs_are_the_same_if_a_file_must_have_a_name() {
    for words in WRITERS {
        let scene = scene();
        let expected = whole(&scene, words);
        let mut command = under(&scene, "", words);
        let output: Output = without_nameless_files(&mut command).output().unwrap();
        assert!(output.status.success(), "{words}: {}", said(&output));
        let after = relative(&scene);
        assert_eq!(after.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{words}");
        assert!(after[Path::new("out")] == expected[Path::new("out")], "{words}");
    }
}
