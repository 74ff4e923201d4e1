//! Go's own `pprof -proto` merges the same profiles: what both state must be equal.

use super::{Dir, merge, stderr};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn go(args: &[&str], directory: &Path) -> String {
    let output = Command::new("go").args(args).current_dir(directory).output();
    let output = output.unwrap_or_else(|error| panic!("go: {error}; tests/run.sh --all installs it"));
    assert!(output.status.success(), "go {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The output of `pprof -raw` for a profile: its head, and the sums by stack of each type of values.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    time: String,
    duration: String,
    period: String,
    sums: BTreeMap<String, BTreeMap<String, i64>>,
    builds: Vec<String>,
}

fn told(profile: &Path, directory: &Path) -> Told {
    let raw = go(&["tool", "pprof", "-raw", profile.to_str().unwrap()], directory);
    let line =
        |start: &str| raw.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default().trim().to_owned();
    let (_, samples) = raw.split_once("Samples:\n").unwrap();
    let (samples, rest) = samples.split_once("Locations\n").unwrap();
    let (locations, mappings) = rest.split_once("Mappings\n").unwrap();
    let names = functions(locations);
    let mut lines = samples.lines();
    let types: Vec<_> = lines.next().unwrap().split_whitespace().map(|name| name.replace("[dflt]", "")).collect();
    let mut sums: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    // Lines of labels have no colon behind numbers alone.
    let is_sample = |line: &&str| line.split_once(": ").is_some_and(|(values, _)| !values.contains('['));
    for line in lines.filter(|line| line.contains(": ") && !line.contains(":[")).filter(is_sample) {
        let (values, ids) = line.split_once(": ").unwrap();
        let stack: Vec<_> = ids.split_whitespace().map(|id| names[id].as_str()).collect();
        for (kind, value) in types.iter().zip(values.split_whitespace()) {
            let value: i64 = value.parse().unwrap();
            if value > 0 {
                *sums.entry(kind.clone()).or_default().entry(stack.join(";")).or_default() += value;
            }
        }
    }
    let builds = mappings.lines().filter_map(|line| Some(line.split_whitespace().nth(2)?.to_owned())).collect();
    Told { time: line("Time: "), duration: line("Duration: "), period: line("Period: "), sums, builds }
}

/// The functions of each location, innermost first.
fn functions(locations: &str) -> BTreeMap<&str, String> {
    let (mut names, mut last) = (BTreeMap::new(), "");
    for line in locations.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let name = match words[..] {
            [id, address, ..] if id.ends_with(':') && address.starts_with("0x") => {
                last = id.trim_end_matches(':');
                words.iter().skip(2).find(|word| !word.starts_with("M="))
            }
            _ => words.first(),
        };
        let all: &mut String = names.entry(last).or_default();
        if !all.is_empty() {
            all.push(';');
        }
        all.push_str(name.unwrap());
    }
    names
}

#[test]
#[ignore = "needs go: tests/run.sh --all"]
fn gos_own_tool_merges_to_the_same() {
    let dir = Dir::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/pprof-go/app.go");
    go(&["build", "-trimpath", "-o", dir.path("app").to_str().unwrap(), source], dir.0.path());
    let runs: Vec<PathBuf> = ["a", "b", "c"].iter().map(|name| dir.path(name)).collect();
    for run in &runs {
        std::fs::create_dir(run).unwrap();
        assert!(Command::new(dir.path("app")).current_dir(run).output().unwrap().status.success());
    }
    for profile in ["cpu.pb.gz", "heap.pb.gz"] {
        let inputs: Vec<PathBuf> = runs.iter().map(|run| run.join(profile)).collect();
        let paths: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
        let (theirs, ours) = (dir.path("theirs.pb.gz"), dir.path("ours.pb.gz"));
        let output = format!("-output={}", theirs.display());
        let words = paths.iter().map(|path| path.to_str().unwrap());
        go(&["tool", "pprof", "-proto", &output].into_iter().chain(words).collect::<Vec<_>>(), dir.0.path());
        let merged = merge(&["-o", ours.to_str().unwrap()], &paths);
        assert!(merged.status.success(), "{}", stderr(&merged));
        assert_eq!(told(&ours, dir.0.path()), told(&theirs, dir.0.path()), "{profile}");
    }
}
