//! `inject --convert-callchain`: perf reads the plain chains, from a file and through a pipe, and they are the ones
//! that it unwinds itself: of a program with symbols, so that names are compared.

use std::path::Path;
use std::process::{Command, Stdio};

fn output(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; tests/run.sh installs it"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The functions of each sample, innermost first, from perf's text.
fn chains(data: &Path) -> Vec<Vec<String>> {
    let text = output(Command::new("perf").args(["script", "--no-inline", "-F", "comm,ip,sym", "-i"]).arg(data));
    let text = String::from_utf8_lossy(&text).into_owned();
    let samples = text.split("\n\n").filter(|sample| !sample.trim().is_empty());
    let name = |line: &str| line.trim_start().split_once(' ').map(|(_, name)| name.to_owned());
    samples.map(|sample| sample.lines().skip(1).filter_map(name).collect()).collect()
}

/// A program that keeps no frame pointers, and a recording of it with copies of its stacks, to a file or a pipe.
fn record(dir: &Path, to: &str) -> Vec<u8> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/deep.c");
    let compiler = ["-O2", "-g0", "-fno-ipa-icf", "-fomit-frame-pointer", "-o", "deep", source];
    output(Command::new("gcc").args(compiler).current_dir(dir));
    let record = ["record", "-q", "-e", "cpu-clock", "-F", "1999", "--call-graph", "dwarf,4096", "-o", to];
    output(Command::new("perf").args(record).args(["--", "./deep", "150"]).current_dir(dir))
}

/// Checks that the samples of the converted recording have the chains that perf unwinds of the other.
fn check(recorded: &Path, converted: &Path) {
    let (theirs, ours) = (chains(recorded), chains(converted));
    assert!(theirs.len() > 20 && theirs.len() == ours.len(), "{} and {}", theirs.len(), ours.len());
    // perf looks up the plain chain's return addresses as they stand, and those that it unwinds one byte before: a
    // name may differ only where a call is the last instruction of its function.
    let mut own = 0;
    let (mut same, mut all) = (0, 0);
    for (theirs, ours) in theirs.iter().zip(&ours) {
        let end = theirs.iter().rposition(|name| name != "[unknown]").map_or(0, |last| last + 1);
        assert!(ours.len() >= end, "{ours:?} is shorter than {theirs:?}");
        own += theirs.iter().filter(|name| *name == "n" || name.starts_with("n_")).count();
        all += end;
        // Of unwound addresses it also looks up the one before a function to which a signal handler returns.
        let alike = |theirs: &str, ours: &str| theirs == ours || (theirs, ours) == ("[unknown]", "__restore_rt");
        same += theirs[..end].iter().zip(ours).filter(|(theirs, ours)| alike(theirs, ours)).count();
    }
    assert!(own > 200, "only {own} frames in the program's functions");
    assert!(same * 1000 >= all * 995, "{same} of {all} frames are the same");
}

fn inject() -> Command {
    let mut inject = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    inject.args(["inject", "--quiet", "--convert-callchain"]);
    inject
}

#[test]
fn converted_chains_are_those_that_perf_unwinds() {
    let dir = tempfile::tempdir().unwrap();
    let [data, file] = ["perf.data", "file.data"].map(|name| dir.path().join(name));
    record(dir.path(), "perf.data");
    output(inject().arg("-i").arg(&data).arg("-o").arg(&file));
    check(&data, &file);
    let stacks = |data: &Path| output(Command::new("perf").args(["script", "-F", "comm,ip,sym", "-D", "-i"]).arg(data));
    assert!(String::from_utf8_lossy(&stacks(&data)).contains("ustack"));
    assert!(!String::from_utf8_lossy(&stacks(&file)).contains("ustack"));
}

#[test]
fn a_pipe_is_converted_to_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let [pipe, piped] = ["pipe.data", "piped.data"].map(|name| dir.path().join(name));
    std::fs::write(&pipe, record(dir.path(), "-")).unwrap();
    std::fs::write(&piped, output(inject().stdin(Stdio::from(std::fs::File::open(&pipe).unwrap())))).unwrap();
    check(&pipe, &piped);
}
