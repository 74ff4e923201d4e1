//! What is private stays so: directories of inputs, and the modes of outputs.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const FOLDED: &str = "own;x 2\n";

/// A directory that everybody may enter.
fn open_directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    dir
}

fn make_directory(path: &Path, mode: u32) -> PathBuf {
    fs::create_dir(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    path.to_owned()
}

fn write(path: &Path, bytes: impl AsRef<[u8]>, mode: u32) -> PathBuf {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    path.to_owned()
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Runs the program with an umask of 022; a run that waits for a pipe is ended.
fn run(directory: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 022; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_jitgraft")]);
    let began = Instant::now();
    let output = Command::new("timeout")
        .env("HOME", directory)
        .arg("60")
        .args(command_line(&command))
        .args(args)
        .current_dir(directory)
        .output();
    assert!(began.elapsed() < Duration::from_secs(60), "{args:?} waits");
    output.unwrap()
}

fn command_line(command: &Command) -> Vec<std::ffi::OsString> {
    std::iter::once(command.get_program()).chain(command.get_args()).map(ToOwned::to_owned).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn what_lies_in_a_directory_is_opened_only_if_it_is_a_file_and_the_rest_is_done() {
    let dir = open_directory();
    let inputs = make_directory(&dir.path().join("in"), 0o755);
    write(&inputs.join("own.folded"), FOLDED, 0o644);
    let nested = make_directory(&inputs.join("nested"), 0o755);
    write(&nested.join("more.folded"), "own;x 3\n", 0o644);
    make_pipe(&inputs.join("pipe.folded"));
    symlink("/dev/zero", inputs.join("zero.folded")).unwrap();
    symlink("nowhere", inputs.join("lost.folded")).unwrap();
    // A link of one's own in one's own directory is one's own.
    symlink("nested/more.folded", inputs.join("linked.folded")).unwrap();
    let output = run(dir.path(), &["merge", "in", "-o", "out.folded"]);
    assert_eq!(fs::read_to_string(dir.path().join("out.folded")).unwrap(), "own;x 8\n");
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    for (name, why) in [("pipe", "is not a regular file"), ("zero", "is not a regular file"), ("lost", "No such file")]
    {
        let line = said.lines().find(|line| line.contains(&format!("{name}.folded")));
        assert!(line.is_some_and(|line| line.contains(why)), "{name}: {said}");
    }
    let list = format!("{}\n{}\n", inputs.join("pipe.folded").display(), inputs.join("own.folded").display());
    write(&dir.path().join("list"), list, 0o644);
    let listed = run(dir.path(), &["merge", "@list"]);
    assert_eq!((listed.status.code(), &listed.stdout[..]), (Some(1), FOLDED.as_bytes()));
}

#[test]
fn a_strangers_link_in_a_directory_or_a_list_is_not_followed() {
    if !is_root() {
        return;
    }
    let dir = open_directory();
    let private = make_directory(&dir.path().join("private"), 0o700);
    write(&private.join("p.folded"), "daemon;very_private_name 3\n", 0o600);
    let inputs = make_directory(&dir.path().join("in"), 0o755);
    write(&inputs.join("own.folded"), FOLDED, 0o644);
    symlink(private.join("p.folded"), inputs.join("a.folded")).unwrap();
    symlink(&private, inputs.join("sub")).unwrap();
    for name in ["a.folded", "sub", ""] {
        std::os::unix::fs::lchown(inputs.join(name), Some(65534), Some(65534)).unwrap();
    }
    write(&dir.path().join("list"), "in/a.folded\nin/sub/p.folded\nin/own.folded\n", 0o644);
    for from in ["in", "@list"] {
        let output = run(dir.path(), &["merge", from]);
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), FOLDED.as_bytes()), "{from}");
        let said = stderr(&output);
        assert!(said.contains("a.folded: ") && said.contains("not followed"), "{said}");
        assert!(!said.contains("very_private_name"), "{said}");
    }
    // What is typed is typed.
    let typed = run(dir.path(), &["merge", "in/a.folded"]);
    assert!(String::from_utf8_lossy(&typed.stdout).contains("very_private_name"));
}

/// The files that a command has made in a directory, with their modes.
fn modes(directory: &Path) -> Vec<(String, u32)> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().mode() & 0o777)
    };
    let mut modes: Vec<_> = fs::read_dir(directory).unwrap().map(entry).collect();
    modes.sort();
    modes
}

#[test]
fn an_output_that_repeats_its_inputs_is_as_private_as_they_are() {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tiers-recording");
    let repeating: &[&[&str]] = &[
        &["inject", "-q", "INPUT", "-o", "OUT/a.data"],
        &["merge", "-q", "INPUT", "INPUT", "-o", "OUT/a.folded"],
        &["merge", "-q", "--to", "pprof", "INPUT", "-o", "OUT/a.pb.gz"],
        &["annotate", "-q", ".", "INPUT", "-o", "OUT/a.json"],
        &["annotate", "-q", ".", "INPUT", "-o", "OUT/a.txt"],
        &["view", "-q", "INPUT", "-o", "OUT/a.html"],
        &["pack", "-q", "INPUT", "-o", "OUT/a.tar.zst"],
    ];
    let summaries: &[&[&str]] = &[
        &["collapse", "-q", "INPUT", "-o", "OUT/a.folded"],
        &["flamegraph", "-q", "INPUT", "-o", "OUT/a.svg"],
        &["report", "-q", "INPUT", "-o", "OUT/a.txt"],
        &["doctor", "-q", "INPUT", "-o", "OUT/a.txt"],
        &["export", "-q", "--to", "firefox", "INPUT", "-o", "OUT/a.json"],
        &["export", "-q", "--to", "json", "INPUT", "-o", "OUT/a.json"],
    ];
    // The mode of the directory of the recording, its own, and that of an output that repeats it.
    for (of_directory, of_file, expected) in [(0o755, 0o644, 0o644), (0o700, 0o644, 0o600), (0o755, 0o600, 0o600)] {
        let dir = open_directory();
        let place = make_directory(&dir.path().join("in"), of_directory);
        for entry in fs::read_dir(&recording).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with("jit-") {
                write(&place.join(name), fs::read(entry.path()).unwrap(), 0o644);
            }
        }
        let input = write(&place.join("perf.data.zst"), fs::read(recording.join("perf.data.zst")).unwrap(), of_file);
        for (commands, expected) in [(repeating, expected), (summaries, 0o644)] {
            for command in commands {
                let out = make_directory(&dir.path().join("out"), 0o755);
                let fill =
                    |word: &&str| word.replace("INPUT", input.to_str().unwrap()).replace("OUT", out.to_str().unwrap());
                let args: Vec<String> = command.iter().map(fill).collect();
                run(dir.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
                let made = modes(&out);
                let main = made.iter().find(|(name, _)| name.starts_with("a."));
                let expected = if command[0] == "pack" { 0o600 } else { expected };
                assert_eq!(main.map(|(_, mode)| *mode), Some(expected), "{command:?} {of_directory:o}: {made:?}");
                fs::remove_dir_all(out).unwrap();
            }
        }
    }
}

#[test]
fn a_callgrind_profile_with_names_and_its_object_are_as_private_as_the_profile() {
    for (mode, of_map, expected) in [(0o644, 0o644, 0o644), (0o600, 0o644, 0o600), (0o644, 0o600, 0o600)] {
        let dir = open_directory();
        let profile = "# callgrind format\nversion: 1\npid: 77\ncmd: php a.php\npositions: instr line\nevents: Ir\n\n\
            ob=???\nfl=(1) ???\nfn=(2) 0x0000000010200900\n0x10200900 0 600\n";
        write(&dir.path().join("callgrind.out.77"), profile, mode);
        write(&dir.path().join("perf-77.map"), "10200900 100 JIT$hot\n", of_map);
        let output = run(dir.path(), &["callgrind", "-q", "callgrind.out.77"]);
        let written: Vec<u32> = modes(dir.path())
            .into_iter()
            .filter(|(name, _)| name.ends_with(".jit") || name.ends_with(".elf"))
            .map(|(_, mode)| mode)
            .collect();
        assert_eq!(written, [expected; 2], "{mode:o} {of_map:o}: {}", stderr(&output));
    }
}
