//! `inject --convert-callchain`: perf reads the plain chains, from a file and through a pipe, and they are the ones
//! that it unwinds itself.

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

#[test]
fn converted_chains_are_those_that_perf_unwinds() {
    let dir = tempfile::tempdir().unwrap();
    let [data, file, pipe, piped] =
        ["perf.data", "file.data", "pipe.data", "piped.data"].map(|name| dir.path().join(name));
    let busy = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";
    let record = |to: &Path| {
        let mut record = Command::new("perf");
        record.args(["record", "-q", "-e", "cpu-clock", "-F", "999", "--call-graph", "dwarf,4096", "-o"]).arg(to);
        output(record.args(["--", "sh", "-c", busy]))
    };
    record(&data);
    let inject = |from: &Path, to: &Path| {
        let mut inject = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        inject.args(["inject", "--quiet", "--convert-callchain", "-i"]).arg(from).arg("-o").arg(to);
        output(&mut inject)
    };
    inject(&data, &file);
    let (theirs, ours) = (chains(&data), chains(&file));
    assert!(theirs.len() > 20 && theirs.len() == ours.len(), "{} and {}", theirs.len(), ours.len());
    // Callers are compared over the shorter chain; a return address may be the first of another function to perf.
    let frames = theirs.iter().zip(&ours).flat_map(|(a, b)| a.iter().zip(b));
    let (same, all) = frames.fold((0, 0), |(same, all), (a, b)| (same + u32::from(a == b), all + 1));
    assert!(all > 50 && same * 100 >= all * 95, "{same} of {all} frames are the same");
    let stacks = |data: &Path| output(Command::new("perf").args(["script", "-F", "comm,ip,sym", "-D", "-i"]).arg(data));
    assert!(String::from_utf8_lossy(&stacks(&data)).contains("ustack"));
    assert!(!String::from_utf8_lossy(&stacks(&file)).contains("ustack"));

    std::fs::write(&pipe, record(Path::new("-"))).unwrap();
    let mut inject = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    inject.args(["inject", "--quiet", "--convert-callchain"]).stdin(Stdio::from(std::fs::File::open(&pipe).unwrap()));
    std::fs::write(&piped, output(&mut inject)).unwrap();
    let (theirs, ours) = (chains(&pipe), chains(&piped));
    assert!(ours.len() > 20 && theirs.len() == ours.len(), "{} and {}", theirs.len(), ours.len());
}
