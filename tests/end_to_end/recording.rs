//! A real recording with JIT code, from the command line: names, filters, forms of input, threads.

use crate::support::effort::is_thorough;
use crate::support::php_recording;

use php_recording::{PID, dump, dump_name, recording};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/php-recording").join(name)
}

/// The recording and its dump, unpacked into a directory of their own.
fn unpacked() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let packed = fs::read(recording()).unwrap();
    let data = dir.path().join("perf.data");
    fs::write(&data, zstd::decode_all(&packed[..]).unwrap()).unwrap();
    fs::copy(dump(), dir.path().join(dump_name())).unwrap();
    (dir, data)
}

fn run(args: &[&str], inputs: &[&Path], stdin: Option<&[u8]>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(args).args(inputs).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn().unwrap();
    if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), stdin) {
        // A program that has seen enough closes the pipe.
        let _ = pipe.write_all(bytes);
    }
    child.wait_with_output().unwrap()
}

fn text(args: &[&str], input: &Path) -> String {
    let output = run(args, &[input], None);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Samples by innermost JIT function, from folded stacks with `_[j]`.
fn leaves(folded: &str) -> BTreeMap<String, u64> {
    let mut leaves = BTreeMap::new();
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        if let Some(name) = stack.rsplit(';').next().and_then(|leaf| leaf.strip_suffix("_[j]"))
            // The name of its memory is that of no function.
            && !name.starts_with('[')
        {
            *leaves.entry(name.to_owned()).or_default() += count.parse::<u64>().unwrap();
        }
    }
    leaves
}

#[test]
fn jit_functions_are_those_that_perf_names() {
    let expected = fs::read_to_string(fixture("leaves.tsv")).unwrap();
    let expected: BTreeMap<String, u64> = expected
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(count, name)| (name.to_owned(), count.parse().unwrap()))
        .collect();
    let folded = text(&["collapse", "--weight", "samples", "--annotate", "jit"], &recording());
    assert_eq!(leaves(&folded), expected);
}

#[test]
fn script_prints_a_packed_recording_as_it_prints_a_plain_one() {
    let (dir, data) = unpacked();
    let packed = dir.path().join("packed.data");
    fs::copy(recording(), &packed).unwrap();
    let args = ["script", "--no-inline"];
    let plain = text(&args, &data);
    assert!(plain.lines().count() > 1000, "{plain}");
    assert_eq!(text(&args, &packed), plain);
    let piped = run(&args, &[], Some(&fs::read(&packed).unwrap()));
    assert_eq!(String::from_utf8_lossy(&piped.stdout).lines().count(), plain.lines().count());
}

#[test]
fn a_file_a_packed_file_and_a_pipe_are_the_same() {
    let (dir, data) = unpacked();
    let dump = dir.path().join(dump_name());
    let args = ["collapse", "--jitdump", dump.to_str().unwrap()];
    let plain = text(&args, &data);
    assert_eq!(text(&args, &recording()), plain);
    let piped = run(&args, &[], Some(&fs::read(&data).unwrap()));
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), plain);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (_dir, data) = unpacked();
    for args in [
        &["collapse"][..],
        &["script"],
        &["flamegraph", "--flamechart"],
        &["export", "--to", "speedscope"],
        &["export", "--to", "firefox"],
        &["export", "--to", "json"],
        &["report", "--sort", "total"],
    ] {
        let one = text(&[args, &["--threads", "1"]].concat(), &data);
        assert_eq!(text(&[args, &["--threads", "7"]].concat(), &data), one, "{args:?}");
    }
}

#[test]
fn filters_keep_what_they_state() {
    let (_dir, data) = unpacked();
    let total = |args: &[&str]| -> u64 {
        let folded = text(&[&["collapse", "--weight", "samples"], args].concat(), &data);
        folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    };
    let all = total(&[]);
    assert_eq!(total(&["--pid", PID, "--comm", "php"]), all);
    let nobody = run(&["collapse", "--pid", "1,2"], &[&data], None);
    assert_eq!((nobody.status.code(), &nobody.stdout[..]), (Some(1), &b""[..]));
    assert_eq!(total(&["--event", "cpu-clock"]), all);
    let halves = (total(&["--time", "0%-50%"]), total(&["--time", "50%-100%"]));
    assert!(halves.0 > all / 4 && halves.1 > all / 4 && (all..=all + 1).contains(&(halves.0 + halves.1)), "{halves:?}");
    let by_pid = text(&["collapse", "--by", "pid"], &data);
    assert!(by_pid.lines().all(|line| line.starts_with(&format!("php-{PID};"))), "{by_pid}");
}

#[test]
fn script_text_is_read_back_to_the_same_stacks() {
    let (dir, data) = unpacked();
    let script = dir.path().join("script.txt");
    fs::write(&script, text(&["script", "--no-inline"], &data)).unwrap();
    let leaf = |args: &[&str], input: &Path| leaves(&text(&[&["collapse", "--annotate", "jit"], args].concat(), input));
    assert_eq!(leaf(&[], &script), leaf(&["--no-inline"], &data));
}

#[test]
fn damaged_recordings_are_errors_or_warnings() {
    let (dir, data) = unpacked();
    let bytes = fs::read(&data).unwrap();
    let damaged = dir.path().join("damaged.data");
    let said = |bytes: &[u8]| {
        fs::write(&damaged, bytes).unwrap();
        // Without the build IDs at the end of the file, the libraries of this machine would be read, too.
        let arguments = ["collapse", "--threads", "1", "--kallsyms", "/dev/null", "--no-inline"];
        let output = run(&arguments, &[&damaged], None);
        // A panic is status 101, a signal none.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (works, cut) = said(&bytes[..bytes.len() / 2]);
    assert!(works && cut.contains("damaged.data"), "{cut}");
    for at in (0..bytes.len()).step_by(bytes.len() / if is_thorough() { 25 } else { 6 }) {
        let mut changed = bytes.clone();
        changed[at] ^= 0xff;
        said(&changed);
        said(&bytes[..at]);
    }
}
