//! Functions and chains against `perf script`, frame by frame, and against programs whose stacks are known.
//!
//! Recordings are made here, by the installed perf, of a program whose functions are named after their callers. To
//! compare any other recordings, give them in `JITGRAFT_RECORDINGS`, separated by colons: they must agree, too.
//! `OURS=THEIRS` gives perf another file of the same samples: an injected one. `JITGRAFT_PERF` is the perf to
//! ask, `JITGRAFT_OPTION` an option for both: `--no-demangle`, where they spell names in two ways.

use crate::support::frames;
use crate::support::tool;

use frames::{Agreement, Samples, parse};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tool::run;

/// Issue: at least 99.9 % of frames are the same function.
const ENOUGH: f64 = 0.999;
const FIELDS: [&str; 2] = ["-F", "comm,tid,time,ip,sym,dso"];

fn samples(program: &str, input: &[&str], dir: &Path) -> Samples {
    let option = std::env::var("JITGRAFT_OPTION");
    let option: Vec<&str> = option.iter().map(String::as_str).collect();
    let arguments = [&["script", "--no-inline"], &option[..], &FIELDS[..], input].concat();
    parse(&run(program, &arguments, dir))
}

/// Our samples, perf's, and how far they agree.
fn compare(data: &Path, theirs: &Path, dir: &Path) -> (Samples, Samples, Agreement) {
    let ours = samples(env!("CARGO_BIN_EXE_jitgraft"), &[data.to_str().unwrap()], dir);
    let perf = std::env::var("JITGRAFT_PERF").unwrap_or_else(|_| "perf".to_owned());
    let theirs = samples(&perf, &["-i", theirs.to_str().unwrap()], dir);
    let agreement = Agreement::new(&ours, &theirs);
    (ours, theirs, agreement)
}

/// The program, built with these flags and recorded.
fn record(flags: &[&str], call_graph: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/deep.c");
    run("gcc", &[&["-O2", "-g0", "-fno-ipa-icf", "-o", "deep", source], flags].concat(), dir.path());
    let record = ["record", "-q", "-e", "cpu-clock:u", "-F", "4000", "--call-graph", call_graph, "-o", "perf.data"];
    run("perf", &[&record[..], &["--", "./deep", "150"]].concat(), dir.path());
    let data = dir.path().join("perf.data");
    (dir, data)
}

/// Copies of user stacks that hold the program's stack to its end on any x86-64 machine: a signal frame holds all
/// registers of the processor, 1 KiB without AVX-512, 3 KiB with it, 11 KiB with AMX; the kernel gives programs the
/// size.
fn whole_stacks() -> String {
    const AT_MINSIGSTKSZ: u64 = 51;
    let auxiliary = std::fs::read("/proc/self/auxv").unwrap();
    let words: Vec<u64> = auxiliary.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    let signal_frame = words.chunks_exact(2).find(|entry| entry[0] == AT_MINSIGSTKSZ).map(|entry| entry[1]);
    // Kernels before 5.14 do not give it, and know no registers as large as AMX's.
    format!("dwarf,{}", 4096 + signal_frame.unwrap_or(8192).next_multiple_of(8))
}

/// The callers that a function's name gives: `n_p_a` was called by `n_p`, and that by `n`.
fn true_stack(innermost: &str) -> Vec<&str> {
    let mut stack = vec![innermost];
    while let Some((caller, _)) = stack[stack.len() - 1].rsplit_once('_') {
        stack.push(caller);
    }
    stack
}

/// Counts samples in which a function that is named after its callers was running, after checking that those, and
/// only those, are in its stack, and that it goes on to the outermost function.
///
/// One sample in 50,000 falls on a `ret` behind a `leave`. There gcc still states that the caller's frame pointer is in
/// the stack, where it no longer is: a caller that needs it is the last, for perf, too. Only stacks that perf cuts in
/// the same place may be cut.
fn check_true_stacks(samples: &Samples, theirs: &Samples) -> usize {
    let (mut checked, mut cut) = (0, 0);
    for (key, stack) in samples.iter().flat_map(|(key, stacks)| stacks.iter().map(move |stack| (key, stack))) {
        let named: Vec<&str> =
            stack.iter().map(String::as_str).filter(|name| *name == "n" || name.starts_with("n_")).collect();
        let Some(innermost) = named.first() else { continue };
        let whole = true_stack(innermost);
        checked += 1;
        if whole.starts_with(&named) && named.len() == stack.len() && named.len() < whole.len() {
            assert!(theirs.get(key).is_some_and(|stacks| stacks.contains(stack)), "perf does not cut {stack:#?}");
            cut += 1;
            continue;
        }
        assert_eq!(named, whole, "whole stack: {stack:#?}");
        assert!(stack.iter().any(|name| name == "main") && stack.last().unwrap() == "_start", "{stack:#?}");
    }
    // A recording has about 800 such samples: by chance one of them is cut.
    assert!(cut <= 1 + checked / 1000, "{cut} of {checked} stacks are cut");
    checked
}

#[test]
fn unwound_stacks_are_the_true_ones_and_perfs() {
    let (dir, data) = record(&["-fomit-frame-pointer"], &whole_stacks());
    let (ours, theirs, mut agreement) = compare(&data, &data, dir.path());
    // perf looks up one byte before the function to which a signal handler returns, where nothing is.
    agreement.explain("__restore_rt", "[unknown]");
    let checked = check_true_stacks(&ours, &theirs);
    assert!(checked > 50, "only {checked} samples in the program's functions");
    assert!(agreement.missing == 0 && agreement.shorter == 0 && agreement.share() >= ENOUGH, "{agreement}");
    let names: Vec<&String> = ours.values().flatten().flatten().collect();
    for through in ["n_q_compare", "n_i_handler", "__restore_rt"] {
        assert!(names.iter().any(|name| name.starts_with(through)), "no stack goes through {through}");
    }
}

#[test]
fn frame_pointer_chains_are_perfs() {
    let (dir, data) = record(&["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"], "fp");
    // Signal handlers return to the first byte of a function.
    let returns = |program: &str, options: &[&str]| -> BTreeSet<String> {
        let text = run(program, &[&["script", "-F", "ip,sym,symoff"], options].concat(), dir.path());
        let symbols = text.lines().filter_map(|line| line.split_whitespace().nth(1));
        symbols.filter(|symbol| symbol.starts_with("__restore_rt")).map(ToOwned::to_owned).collect()
    };
    // Now and then a sample falls on the second instruction of that function, too.
    let theirs = returns("perf", &["-i", "perf.data"]);
    assert!(theirs.contains("__restore_rt+0x0"), "{theirs:?}");
    assert_eq!(returns(env!("CARGO_BIN_EXE_jitgraft"), &["perf.data"]), theirs);
    let (ours, _, agreement) = compare(&data, &data, dir.path());
    assert!(ours.len() > 50, "only {} samples", ours.len());
    assert!(agreement.missing == 0 && agreement.longer == 0 && agreement.shorter == 0, "{agreement}");
    assert!(agreement.share() >= ENOUGH, "{agreement}");
}

/// The program's source says what each address is: `stray` makes the frame pointer lead to a function's address, which
/// nobody called; `calls_last` ends with a call that never returns, so that its return address is the next function's.
#[test]
fn addresses_in_chains_that_no_call_precedes_are_looked_up_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/astray.c");
    let frames = ["-O1", "-g", "-no-pie", "-fno-pie", "-fno-omit-frame-pointer", "-mno-red-zone"];
    let layout =
        ["-fno-toplevel-reorder", "-fno-optimize-sibling-calls", "-falign-functions=1", "-fcf-protection=none"];
    run("gcc", &[&["-o", "astray", source], &frames[..], &layout[..]].concat(), dir.path());
    let record = ["record", "-q", "-e", "cpu-clock:u", "-F", "4000", "--call-graph", "fp", "-o", "perf.data"];
    run("perf", &[&record[..], &["--", "./astray", "40"]].concat(), dir.path());
    let print = |fields: &str| run(env!("CARGO_BIN_EXE_jitgraft"), &["script", "-F", fields, "perf.data"], dir.path());
    let text = print("ip,sym,symoff");
    let (mut entered, mut returned) = (BTreeSet::new(), 0);
    for sample in text.split("\n\n") {
        let frames: Vec<&str> = sample.lines().filter(|line| line.starts_with('\t')).collect();
        let name = |index: usize| frames.get(index).and_then(|frame| frame.split_whitespace().nth(1)).unwrap_or("");
        // Before `stray` has changed the frame pointer, the chain leads to the caller of `main`.
        if name(0).starts_with("stray+") && frames.len() == 2 && !name(1).starts_with("__libc_start") {
            entered.insert(name(1));
        } else if name(0).starts_with("never_returns+") {
            assert!(name(1).starts_with("calls_last+0x") && name(2).starts_with("main+0x"), "{sample}");
            returned += 1;
        }
    }
    assert_eq!(entered, BTreeSet::from(["atoi@plt+0x0", "entered+0x0", "qsort@plt+0x0"]), "{text}");
    assert!(returned > 10, "{returned} samples");
    // The line is also that of the function itself.
    let code = std::fs::read_to_string(source).unwrap();
    let line = code.lines().position(|line| line.contains("void entered(void)")).unwrap() + 1;
    assert!(print("ip,sym,srcline").contains(&format!("astray.c:{line}\n")), "no frame is in line {line}");
}

/// `perf record -d` records where data is mapped, so that addresses in it have names, too.
#[test]
fn addresses_in_data_are_named_after_the_variable_as_in_perf() {
    let dir = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/astray_in_data.c");
    run("gcc", &["-O1", "-g", "-fno-omit-frame-pointer", "-mno-red-zone", "-o", "astray", source], dir.path());
    let record = ["record", "-q", "-d", "-e", "cpu-clock:u", "-F", "4000", "--call-graph", "fp", "-o", "perf.data"];
    run("perf", &[&record[..], &["--", "./astray", "40"]].concat(), dir.path());
    let second_frames = |program: &str, options: &[&str]| -> BTreeSet<String> {
        let text = run(program, &[&["script", "-F", "ip,sym,symoff"], options].concat(), dir.path());
        let mut second = BTreeSet::new();
        for sample in text.split("\n\n") {
            let frames: Vec<&str> = sample.lines().filter(|line| line.starts_with('\t')).map(str::trim).collect();
            if let [innermost, frame] = frames[..]
                && innermost.contains(" stray+")
            {
                second.insert(frame.split_once(' ').unwrap().1.to_owned());
            }
        }
        second
    };
    let ours = second_frames(env!("CARGO_BIN_EXE_jitgraft"), &["perf.data"]);
    for variable in ["constant+0x7", "filled+0x0", "filled+0xc", "zeroed+0x14", "[unknown]"] {
        assert!(ours.contains(variable), "{variable}: {ours:?}");
    }
    assert_eq!(ours, second_frames("perf", &["-i", "perf.data"]));
}

/// native → written code → native → written code, each way in and out of it whole.
#[test]
fn chains_go_through_jit_code_and_back() {
    for call_graph in ["fp", "dwarf,4096"] {
        let dir = tempfile::tempdir().unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/jit.c");
        // Unoptimized, all functions have frame pointers.
        let how = if call_graph == "fp" { ["-O0", "-fno-omit-frame-pointer"] } else { ["-O2", "-fomit-frame-pointer"] };
        run("gcc", &[&["-g0", "-o", "jit", source], &how[..]].concat(), dir.path());
        let record = ["record", "-q", "-e", "cpu-clock:u", "-F", "4000", "--call-graph", call_graph, "-o", "perf.data"];
        run("perf", &[&record[..], &["--", "./jit", "."]].concat(), dir.path());
        let maps = dir.path().to_str().unwrap();
        let ours = samples(env!("CARGO_BIN_EXE_jitgraft"), &["--perf-map", maps, "perf.data"], dir.path());
        let (mut in_native, mut in_jit) = (0, 0);
        for stack in ours.values().flatten() {
            let Some(main) = stack.iter().position(|name| name == "main") else { continue };
            let names: Vec<&str> = stack[..main].iter().map(String::as_str).collect();
            let outwards = match names[..] {
                ["native_leaf", "native_between", ref outwards @ ..] => {
                    in_native += 1;
                    outwards
                }
                ["jit_spin", "jit_inner", "native_between", ref outwards @ ..] => {
                    in_jit += 1;
                    outwards
                }
                _ => continue,
            };
            assert_eq!(outwards, ["jit_outer", "native_entry"], "{call_graph}: {stack:#?}");
        }
        let known = ours.values().flatten().filter(|stack| stack.len() > 1).count();
        assert!(in_native > 50 && in_jit > 20, "{call_graph}: {in_native} and {in_jit} of {known}");
        assert!((in_native + in_jit) * 10 > known * 9, "{call_graph}: {in_native} and {in_jit} of {known}");
    }
}

#[test]
fn recordings_that_are_given_agree() {
    let Some(given) = std::env::var_os("JITGRAFT_RECORDINGS") else { return };
    let mut bad = Vec::new();
    for pair in std::env::split_paths(&given) {
        let pair = pair.to_str().unwrap().to_owned();
        let (data, theirs) = pair.split_once('=').unwrap_or((&pair, &pair));
        let (data, theirs) = (Path::new(data), Path::new(theirs));
        let (_, _, agreement) = compare(data, theirs, data.parent().unwrap_or(Path::new(".")));
        println!("{}: {agreement}", data.display());
        if agreement.missing > 0 || agreement.share() < ENOUGH {
            bad.push(pair);
        }
    }
    assert!(bad.is_empty(), "these do not agree: {bad:?}");
}

#[test]
fn the_comparison_sees_differences() {
    let text = |frames: &str| parse(&format!("a b 7 1.5: \n\t 1 x::y<z (w)>+0x1 (/d)\n{frames}\n"));
    let same = Agreement::new(&text("\t 2 main (/d)\n"), &text("\t 2 main+0x4 (/d)\n"));
    assert_eq!((same.samples, same.same, same.share()), (1, 2, 1.0));
    let other = Agreement::new(&text("\t 2 main (/d)\n"), &text("\t 2 other (/d)\n\t 3 [unknown] ([unknown])\n"));
    assert_eq!((other.same, other.different.len(), other.shorter), (1, 1, 0));
    let deleted = Agreement::new(&text(""), &text("\t 2 [unknown] (/dev/zero (deleted))\n"));
    assert_eq!(deleted.shorter, 0);
    let stub = |name: &str| Agreement::new(&text("\t 2 [unknown] (/d)\n"), &text(&format!("\t 2 {name}+0x0 (/d)\n")));
    assert_eq!((stub("@plt").shorter, stub("qsort@plt").shorter), (0, 1));
    let ours =
        Agreement::new(&text("\t 2 main (/d)\n\t 3 memcpy@plt (/d)\n"), &text("\t 2 main (/d)\n\t 3 @plt (/d)\n"));
    assert_eq!((ours.longer, ours.shorter), (0, 0));
    let ours = Agreement::new(&text("\t 2 main (/d)\n\t 3 memcpy@plt (/d)\n"), &text("\t 2 main (/d)\n"));
    assert_eq!((ours.longer, ours.shorter), (1, 0));
    let shorter = Agreement::new(&text(""), &text("\t 2 f (inlined)\n"));
    assert_eq!((shorter.shorter, shorter.longer), (1, 0));
    assert_eq!(Agreement::new(&Samples::new(), &text("")).missing, 1);
}
