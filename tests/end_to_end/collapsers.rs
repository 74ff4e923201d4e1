//! Texts of other systems' profilers, held against inferno's collapsers, which share no code with the readers.
//!
//! The readers know more than one line a stack holds (modules, threads, two events), and keep what inferno drops:
//! samples of a function that called others, equal neighbors, threads that wait. Both outputs must be equal.

use inferno::collapse::{Collapse, dtrace, ghcprof, sample, vtune, xctrace};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn sums(folded: &str, spelled: impl Fn(&str) -> Option<String>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let Some(stack) = spelled(stack) else { continue };
        *sums.entry(stack).or_insert(0) += weight.parse::<u64>().unwrap();
    }
    sums
}

fn ours(file: &Path, arguments: &[&str], spelled: impl Fn(&str) -> Option<String>) -> BTreeMap<String, u64> {
    let output =
        Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("collapse").args(arguments).arg(file).output().unwrap();
    sums(std::str::from_utf8(&output.stdout).unwrap(), spelled)
}

fn infernos(file: &Path, folder: &mut impl Collapse) -> BTreeMap<String, u64> {
    let (bytes, mut out) = (std::fs::read(file).unwrap(), Vec::new());
    folder.collapse(&bytes[..], &mut out).unwrap();
    // Modules precede their functions there.
    let function = |frame: &str| frame.rsplit('`').next().unwrap().to_owned();
    let spelled = |stack: &str| Some(stack.split(';').map(function).collect::<Vec<_>>().join(";"));
    sums(std::str::from_utf8(&out).unwrap(), spelled)
}

/// The stack without the name of the process above it.
fn below_comm(stack: &str) -> Option<String> {
    stack.split_once(';').map(|(_, below)| below.to_owned())
}

#[test]
fn stacks_of_dtrace_are_what_inferno_reads() {
    let file = fixture("dtrace-ustack/input.dtrace.txt");
    let mut folder = dtrace::Folder::from({
        let mut options = dtrace::Options::default();
        options.nthreads = 1;
        options
    });
    // inferno takes the key for a frame, addresses for names, and what looks like C++'s arguments away.
    let mut theirs = BTreeMap::new();
    for (stack, weight) in infernos(&file, &mut folder) {
        let stack = stack.replace("0x7f3a1234", "[unknown]").rsplit_once(';').unwrap().0.to_owned();
        theirs.insert(stack, weight);
    }
    assert_eq!(ours(&file, &[], below_comm), theirs);
}

#[test]
fn times_of_vtune_are_those_of_inferno_and_finer() {
    let file = fixture("vtune-topdown/input.csv");
    let theirs = infernos(&file, &mut vtune::Folder::default());
    let own = ours(&file, &[], |stack| Some(stack.to_owned()));
    let millis = own.iter().map(|(stack, nanos)| (stack.clone(), (nanos + 500_000) / 1_000_000));
    assert_eq!(millis.filter(|(_, millis)| *millis > 0).collect::<BTreeMap<_, _>>(), theirs);
}

#[test]
fn ticks_and_bytes_of_ghc_are_those_of_inferno() {
    let file = fixture("ghcprof-ticks/input.prof");
    for (source, event, unit) in [(ghcprof::Source::Ticks, "time", 1_000_000), (ghcprof::Source::Bytes, "alloc", 1)] {
        let mut options = ghcprof::Options::default();
        options.source = source;
        let theirs = infernos(&file, &mut ghcprof::Folder::from(options));
        let own = ours(&file, &["--event", event], |stack| Some(stack.to_owned()));
        // There, modules precede names, with a point.
        let name = |frame: &str| frame.rsplit('.').next().unwrap().to_owned();
        let spelled = theirs
            .into_iter()
            .filter(|(_, weight)| *weight > 0)
            .map(|(stack, weight)| (stack.split(';').map(name).collect::<Vec<_>>().join(";"), weight * unit));
        assert_eq!(own, spelled.collect(), "{event}");
    }
}

#[test]
fn samples_of_instruments_are_those_of_inferno() {
    let file = fixture("xctrace-instruments/input.xml");
    let theirs = infernos(&file, &mut xctrace::Folder::default());
    let mut theirs: BTreeMap<_, _> =
        theirs.into_iter().map(|(stack, weight)| (stack.replace("0x102af5fa4", "[unknown]"), weight)).collect();
    // A row that refers to a tagged backtrace is none to inferno.
    *theirs.get_mut("start;main;[unknown]").unwrap() += 1;
    // Neither is one without a backtrace.
    theirs.insert("[unknown]".to_owned(), 1);
    assert_eq!(ours(&file, &["--weight", "samples"], below_comm), theirs);
}

#[test]
fn samples_of_macos_are_those_of_inferno_and_those_that_it_drops() {
    let file = fixture("sample-macos/input.sample.txt");
    let theirs = infernos(&file, &mut sample::Folder::default());
    let own = ours(&file, &["--annotate", "tid"], below_comm);
    let kept = theirs.keys().map(|stack| below_comm(stack).unwrap().replace("???", "[node]"));
    assert!(kept.clone().all(|stack| own.contains_key(&stack)), "{own:?} {theirs:?}");
    assert_eq!((own.values().sum::<u64>(), theirs.values().sum::<u64>()), (25, 8), "inferno changed: {theirs:?}");
}
