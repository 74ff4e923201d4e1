//! Compares `jitgraft script` frame by frame with `perf script`.
//!
//! A recording is made on the spot. Others can be compared by naming them: `JITGRAFT_COMPARE=OURS[=PERFS],…`, where
//! PERFS is what perf shall read instead (the same recording after `perf inject --jit`).
//!
//! Where the two differ on purpose, the difference is of one of the kinds of [`Kind`], and counted.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::process::Command;

/// What comes of comparing a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The same function.
    Same,
    /// Another name of the same address: at the same distance from its start.
    Alias,
    /// Callers are looked up by the byte before the return address, so that a call at a function's end is not
    /// taken for one by the next function; perf looks up the return address itself.
    ReturnAddress,
    /// We have a name, perf has none (`(anonymous namespace)` of stripped files, short names, signal returns).
    OnlyWeKnow,
    /// perf stretches symbols over what follows them up to the next one; we name only what they cover.
    Stretched,
    /// perf leaves the names of linkage stubs as the linker has them.
    Stub,
    /// Spelled by another demangler: the same up to the first bracket.
    Spelling,
    /// perf drops a whole chain with one impossible address in it; we drop that address.
    ChainDropped,
    /// Anything else.
    Other,
}

/// The frames of samples by what stands before them; equal headers in the order of the text.
fn samples(text: &str) -> HashMap<String, VecDeque<Vec<(String, String)>>> {
    let mut samples: HashMap<String, VecDeque<Vec<(String, String)>>> = HashMap::new();
    let mut frames: Option<&mut Vec<(String, String)>> = None;
    for line in text.lines() {
        if let Some(line) = line.strip_prefix('\t') {
            let (_, rest) = line.trim_start().split_once(' ').unwrap_or(("", ""));
            let name = rest.rsplit_once(" (").map_or(rest, |(name, _)| name);
            let (name, offset) = name.rsplit_once("+0x").unwrap_or((name, ""));
            if let Some(frames) = &mut frames {
                frames.push((name.to_owned(), offset.to_owned()));
            }
        } else if !line.is_empty() {
            let header = line.split_whitespace().collect::<Vec<_>>().join(" ");
            let list = samples.entry(header).or_default();
            list.push_back(Vec::new());
            frames = list.back_mut();
        }
    }
    samples
}

fn kind(perf: &(String, String), ours: &(String, String), leaf: bool) -> Kind {
    let until_bracket = |name: &str| name.split(['<', '(', '[']).next().unwrap_or(name).to_owned();
    match (perf.0.as_str(), ours.0.as_str()) {
        (a, b) if a == b => Kind::Same,
        (_, _) if !leaf && perf.1 == "0" => Kind::ReturnAddress,
        ("[unknown]", _) => Kind::OnlyWeKnow,
        (_, "[unknown]") => Kind::Stretched,
        (a, _) if a.starts_with("_Z") && a.ends_with("@plt") => Kind::Stub,
        (a, b) if perf.1 == ours.1 && until_bracket(a) == until_bracket(b) => Kind::Spelling,
        (_, _) if perf.1 == ours.1 => Kind::Alias,
        _ => Kind::Other,
    }
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; tests/run.sh installs it"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn compare(ours: &Path, perfs: &Path) -> BTreeMap<Kind, u64> {
    let perf = output(Command::new("perf").args(["script", "--no-inline", "-i"]).arg(perfs));
    let mut jitgraft = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let own = output(jitgraft.args(["script", "--no-inline", "-q"]).arg(ours));
    let (perf, mut own) = (samples(&perf), samples(&own));
    let mut counts = BTreeMap::new();
    let mut examples: BTreeMap<String, u64> = BTreeMap::new();
    for (header, chains) in perf {
        let same = own.remove(&header).unwrap_or_else(|| panic!("{}: no sample {header}", ours.display()));
        assert_eq!(chains.len(), same.len(), "samples {header}");
        for (theirs, ours) in chains.iter().zip(&same) {
            if theirs.is_empty() && !ours.is_empty() {
                *counts.entry(Kind::ChainDropped).or_default() += ours.len() as u64;
                continue;
            }
            // Both print the innermost frame first: what only one of them unwound is at the end.
            for (at, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
                let kind = kind(theirs, ours, at == 0);
                *counts.entry(kind).or_default() += 1;
                if kind == Kind::Other {
                    *examples.entry(format!("{} | {}", theirs.0, ours.0)).or_default() += 1;
                }
            }
        }
    }
    assert!(own.is_empty(), "{}: samples that perf does not print: {:?}", ours.display(), own.keys().next());
    let other = counts.get(&Kind::Other).copied().unwrap_or(0);
    let judged = other + counts.get(&Kind::Same).copied().unwrap_or(0);
    println!("{}: {counts:?}", ours.display());
    assert!(judged > 0, "{}: nothing to compare", ours.display());
    assert!(other * 1000 <= judged, "{}: {counts:?}\n{examples:#?}", ours.display());
    counts
}

#[test]
fn frame_by_frame() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("perf.data");
    let busy = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; find /usr/lib -name 'lib*' | sort | tail -1";
    let mut record = Command::new("perf");
    record
        .args(["record", "-q", "-e", "cpu-clock", "-F", "1999", "-g", "-o"])
        .arg(&data)
        .args(["--", "sh", "-c", busy]);
    output(&mut record);
    let counts = compare(&data, &data);
    assert!(counts[&Kind::Same] > 300, "{counts:?}");
    for pair in std::env::var("JITGRAFT_COMPARE").iter().flat_map(|list| list.split(',')) {
        let (ours, perfs) = pair.split_once('=').unwrap_or((pair, pair));
        compare(Path::new(ours), Path::new(perfs));
    }
}
