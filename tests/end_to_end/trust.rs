//! The promises of this program to users who run it on a stranger's files (SECURITY.md), line by line.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory with a recording and its dump.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        // A file in a directory that others may not go through belongs to nobody else.
        fs::set_permissions(scene.0.path(), Permissions::from_mode(0o755)).unwrap();
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tiers-recording");
        for entry in fs::read_dir(recorded).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.starts_with("jit-") || name.starts_with("perf") {
                scene.write(name, &fs::read(&path).unwrap());
            }
        }
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).unwrap();
    }

    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().mode() & 0o7777
    }

    /// The only file whose name start and end so.
    fn only(&self, start: &str, end: &str) -> String {
        let names = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.starts_with(start) && name.ends_with(end)).collect();
        assert_eq!(names.len(), 1, "{start}*{end}: {names:?}");
        names.remove(0)
    }

    /// Runs the program there with a shell's words; new files may be read by all if nothing else is reported.
    fn run(&self, words: &str) -> Output {
        let script = format!("umask 022; exec {} {words}", env!("CARGO_BIN_EXE_jitgraft"));
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(self.0.path()).env("HOME", self.0.path()).stdin(Stdio::null());
        command.output().unwrap()
    }

    fn done(&self, words: &str) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[test]
fn an_injected_recording_is_no_more_readable_than_its_input() {
    for (input, expected) in [(0o600, 0o600), (0o640, 0o640), (0o644, 0o644), (0o666, 0o644), (0o400, 0o600)] {
        let scene = Scene::new();
        scene.set_mode("perf.data.zst", input);
        scene.done("inject -i perf.data.zst -o out.data");
        assert_eq!(scene.mode("out.data"), expected, "of {input:o}");
    }
    let scene = Scene::new();
    scene.done("inject -o out.data < perf.data.zst");
    assert_eq!(scene.mode("out.data"), 0o644, "a file on standard input is known");
    fs::remove_file(scene.path("out.data")).unwrap();
    let piped = "inject -i - -o out.data";
    let script = format!("umask 022; cat perf.data.zst | {} {piped}", env!("CARGO_BIN_EXE_jitgraft"));
    assert!(Command::new("sh").args(["-c", &script]).current_dir(scene.0.path()).status().unwrap().success());
    assert_eq!(scene.mode("out.data"), 0o600, "whose data came through a pipe is not known");
}

#[test]
fn images_are_no_more_readable_than_what_their_code_comes_from() {
    for (dump, expected) in [(0o600, 0o600), (0o755, 0o644)] {
        let scene = Scene::new();
        scene.set_mode(&scene.only("jit-", ".dump"), dump);
        scene.done("inject -i perf.data.zst -o out.data --cache");
        assert_eq!(scene.mode(&scene.only("jitted-", ".so")), expected);
        let mut cached = walk(&scene.path(".debug"));
        cached.retain(|path| path.ends_with("elf"));
        assert_eq!(cached.len(), 1);
        assert_eq!(fs::metadata(&cached[0]).unwrap().mode() & 0o777, expected, "its copy in the cache");
    }
}

/// All files below a directory.
fn walk(directory: &Path) -> Vec<PathBuf> {
    let (mut files, mut left) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let to = if entry.file_type().unwrap().is_dir() { &mut left } else { &mut files };
            to.push(entry.path());
        }
    }
    files
}

#[test]
fn texts_and_pictures_follow_the_umask_and_what_is_replaced_keeps_its_mode() {
    let scene = Scene::new();
    scene.set_mode("perf.data.zst", 0o600);
    scene.done("flamegraph perf.data.zst -o new.svg");
    assert_eq!(scene.mode("new.svg"), 0o644);
    for mode in [0o600, 0o666, 0o751] {
        for (command, file) in [("flamegraph perf.data.zst", "old.svg"), ("inject -i perf.data.zst", "old.data")] {
            scene.write(file, b"old");
            scene.set_mode(file, mode);
            scene.done(&format!("{command} -o {file}"));
            assert_eq!(scene.mode(file), mode, "{command}");
            assert!(fs::metadata(scene.path(file)).unwrap().len() > 1000);
        }
    }
}

#[test]
fn a_replaced_file_keeps_its_owner_unless_anybody_may_have_put_it_there() {
    const NOBODY: u32 = 65534;
    let scene = Scene::new();
    scene.write("old.svg", b"old");
    if std::os::unix::fs::chown(scene.path("old.svg"), Some(NOBODY), Some(NOBODY)).is_err() {
        // Users who may not give files away replace them by their own.
        scene.done("flamegraph perf.data.zst -o old.svg");
        assert_eq!(fs::metadata(scene.path("old.svg")).unwrap().uid(), fs::metadata(scene.0.path()).unwrap().uid());
        return;
    }
    let owner = || fs::metadata(scene.path("old.svg")).map(|about| (about.uid(), about.gid())).unwrap();
    scene.done("flamegraph perf.data.zst -o old.svg");
    assert_eq!(owner(), (NOBODY, NOBODY));
    scene.set_mode("old.svg", 0o666);
    fs::set_permissions(scene.0.path(), Permissions::from_mode(0o1777)).unwrap();
    scene.done("flamegraph perf.data.zst -o old.svg");
    assert_ne!(owner(), (NOBODY, NOBODY), "as in /tmp");
    assert_eq!(scene.mode("old.svg"), 0o644);
}

#[test]
fn a_link_beside_the_input_is_not_followed() {
    let scene = Scene::new();
    let dump = scene.only("jit-", ".dump");
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("secret");
    fs::rename(scene.path(&dump), &target).unwrap();
    std::os::unix::fs::symlink(&target, scene.path(&dump)).unwrap();
    let output = scene.run("inject -i perf.data.zst -o out.data");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is a symbolic link; pass its target with --jitdump"), "{said}");
    assert_eq!(said.matches("is a symbolic link").count(), 1, "it is told once: {said}");
    assert!(said.contains("No dumps, maps or logs of JIT code were loaded"), "{said}");
    let output = scene.run(&format!("inject -i perf.data.zst -o out.data --jitdump {}", target.display()));
    assert!(String::from_utf8_lossy(&output.stderr).contains("from 1 jitdump"), "what the user names is meant");
}

#[test]
fn a_false_dump_is_refused_and_its_content_is_not_in_the_message() {
    let scene = Scene::new();
    let dump = scene.only("jit-", ".dump");
    scene.write(&dump, b"hunter2: my password");
    for words in ["inject -i perf.data.zst -o out.data", "collapse perf.data.zst", "doctor perf.data.zst"] {
        let output = scene.run(words);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("is not a jitdump"), "{words}: {said}");
        assert!(!said.contains("hunter2") && !said.contains("68, 75, 6e, 74"), "{words}: {said}");
    }
}

#[test]
fn a_dump_that_ends_in_gigabytes_of_nothing_names_what_it_names() {
    let scene = Scene::new();
    let dump = scene.path(&scene.only("jit-", ".dump"));
    let whole = scene.done("collapse perf.data.zst");
    fs::File::options().write(true).open(&dump).unwrap().set_len(4 << 30).unwrap();
    let output = scene.run("collapse perf.data.zst");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), whole, "what is in front of the hole is there");
}

/// Distinct stacks, many.
fn many_stacks(scene: &Scene) {
    let lines = (0..150_000).map(|number| format!("main;function_{number};leaf_{} 1\n", number * 7));
    scene.write("many.folded", lines.collect::<String>().as_bytes());
}

#[test]
fn memory_that_is_not_available_ends_in_one_line_and_leaves_the_output_alone() {
    let scene = Scene::new();
    many_stacks(&scene);
    scene.write("old.svg", b"old");
    let jitgraft = env!("CARGO_BIN_EXE_jitgraft");
    for (limit, words) in [("--max-memory 24M", ""), ("", "prlimit --data=24000000 "), ("", "prlimit --as=60000000 ")] {
        let script = format!("exec {words}{jitgraft} --threads 1 {limit} flamegraph --reverse many.folded -o old.svg");
        let output = Command::new("sh").args(["-c", &script]).current_dir(scene.0.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{script}: {said}");
        assert!(said.starts_with("error: out of memory: ") && said.lines().count() == 1, "{script}: {said}");
        assert_eq!(fs::read(scene.path("old.svg")).unwrap(), b"old");
    }
    let left = fs::read_dir(scene.0.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with(".jitgraft"));
    assert_eq!(left.count(), 0, "nothing is left behind");
}

#[test]
fn an_input_that_becomes_shorter_while_it_is_read_is_named() {
    let scene = Scene::new();
    let packed = fs::read(scene.path("perf.data.zst")).unwrap();
    scene.write("perf.data", &zstd::decode_all(&packed[..]).unwrap());
    assert!(Command::new("mkfifo").arg(scene.path("out")).status().unwrap().success());
    // The recording is mapped when the program waits for a reader of its output.
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(["inject", "-i", "perf.data", "-o", "out"]).current_dir(scene.0.path());
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let of_child = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap_or_default();
    let waits = || of_child("maps").contains("/perf.data") && of_child("stat").contains(") S ");
    let mut seen = 0;
    while seen < 5 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        seen = if waits() { seen + 1 } else { 0 };
    }
    fs::File::options().write(true).open(scene.path("perf.data")).unwrap().set_len(0).unwrap();
    let reader = fs::File::open(scene.path("out")).unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains("/perf.data became shorter while it was read"), "{said}");
    drop(reader);
}

#[test]
fn a_pipe_that_never_ends_is_refused_by_its_start() {
    let scene = Scene::new();
    for (source, said) in [("yes", "in an unknown format"), ("yes | gzip -c", "in an unknown format")] {
        let script = format!("{source} | {} collapse", env!("CARGO_BIN_EXE_jitgraft"));
        let output = Command::new("sh").args(["-c", &script]).current_dir(scene.0.path()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{source}: {told}");
        assert!(told.contains(said), "{source}: {told}");
    }
}

#[test]
fn a_first_line_may_be_as_long_as_it_likes() {
    let scene = Scene::new();
    let deep = format!("main{} 3\nmain;f 4\n", ";a_function_of_the_program".repeat(50_000));
    scene.write("deep.folded", deep.as_bytes());
    assert!(deep.len() > 1 << 20);
    let folded = scene.done("collapse deep.folded");
    assert!(folded == deep || folded.lines().rev().eq(deep.lines()), "all of it is there");
    assert_eq!(scene.done("collapse < deep.folded"), folded);
    let script = format!("cat deep.folded | {} collapse", env!("CARGO_BIN_EXE_jitgraft"));
    let piped = Command::new("sh").args(["-c", &script]).current_dir(scene.0.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&piped.stdout), folded, "through a pipe");
}
