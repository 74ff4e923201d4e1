//! Recordings of other machines, of a program whose functions are named after their callers (tests/programs/deep.c):
//! what stacks must be follows from the name of the innermost function alone.
//!
//! `fixtures/recording-machines` has a few of each; `tests/tools/machines/record.sh` makes them anew on emulated
//! machines, whose own perf is queried, too.

use crate::support::frames;
use crate::support::tool;

use frames::{Samples, parse};
use std::path::{Path, PathBuf};
use tool::run;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/recording-machines");
const FIELDS: &str = "comm,tid,time,ip,sym,dso";

/// The stacks of one recording, compared.
#[derive(Debug, Default, PartialEq, Eq)]
struct Score {
    /// Samples in `spin`, which functions at the inner end of the tree call, with one of these as the caller; and with
    /// another or none.
    callers: (usize, usize),
    /// Stacks of functions that are named after their callers, with all of these; those that end before; those in which
    /// one is missing or wrong.
    whole: usize,
    cut: usize,
    wrong: usize,
}

/// True if a function is one of those that call `spin`: `n_p_v_a`, `n_q_compare_p`, `n_i_handler_s`.
fn calls_spin(name: &str) -> bool {
    let is_one = |parts: &str, letters: &str| parts.len() == 1 && letters.contains(parts);
    match name.split('_').collect::<Vec<_>>()[..] {
        ["n", "q", "compare", last] | ["n", "i", "handler", last] => is_one(last, "pvabs"),
        ["n", first, second, last] => is_one(first, "pvb") && is_one(second, "pvabs") && is_one(last, "pvabs"),
        _ => false,
    }
}

/// The callers that a function's name gives, itself first: `n_p_a` was called by `n_p`, and that by `n`.
fn true_stack(innermost: &str) -> Vec<&str> {
    let mut stack = vec![innermost];
    while let Some((caller, _)) = stack[stack.len() - 1].rsplit_once('_') {
        stack.push(caller);
    }
    stack
}

fn score(samples: &Samples) -> Score {
    let mut score = Score::default();
    for stack in samples.values().flatten() {
        let is_named = |name: &&str| *name == "n" || name.starts_with("n_");
        if stack.first().is_some_and(|name| name == "spin") {
            let right = stack.get(1).is_some_and(|name| calls_spin(name));
            *(if right { &mut score.callers.0 } else { &mut score.callers.1 }) += 1;
        }
        let named: Vec<&str> = stack.iter().map(String::as_str).filter(is_named).collect();
        let Some(innermost) = named.first() else { continue };
        let whole = true_stack(innermost);
        match (whole.starts_with(&named), named.len() == whole.len()) {
            (true, true) => score.whole += 1,
            (true, false) if is_named(&stack.last().unwrap().as_str()) || through_others(stack) => score.cut += 1,
            _ => score.wrong += 1,
        }
    }
    score
}

/// True if a stack goes on behind its last named function in files that are not here: the C library's `qsort`, the
/// kernel's return from a signal.
fn through_others(stack: &[String]) -> bool {
    let last = stack.iter().rposition(|name| name.starts_with("n_"));
    last.is_some_and(|last| ["n_q_compare", "n_i_handler"].contains(&&stack[last][..]))
}

fn script(data: &Path, root: &Path) -> Samples {
    let (data, root) = (data.to_str().unwrap(), root.to_str().unwrap());
    parse(&run(env!("CARGO_BIN_EXE_jitgraft"), &["script", "-f", "-F", FIELDS, "--symfs", root, data], Path::new(".")))
}

/// The fixtures, unpacked: `MACHINE/programs/NAME` of `MACHINE.NAME.zst`, `MACHINE/HOW.perf.data` of
/// `MACHINE.HOW.perf.data.zst`.
fn fixtures() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(FIXTURES).unwrap() {
        let path = entry.unwrap().path();
        let Some(name) = path.file_name().unwrap().to_str().unwrap().strip_suffix(".zst") else { continue };
        let (machine, name) = name.split_once('.').unwrap();
        let root = dir.path().join(machine);
        std::fs::create_dir_all(root.join("programs")).unwrap();
        let to = if name.ends_with(".perf.data") { root.join(name) } else { root.join("programs").join(name) };
        std::fs::write(to, zstd::decode_all(std::fs::File::open(&path).unwrap()).unwrap()).unwrap();
    }
    dir
}

/// The root of a recording's machine, and the recording: `MACHINE.HOW`.
fn places(dir: &tempfile::TempDir, recording: &str) -> (PathBuf, PathBuf) {
    let (machine, how) = recording.split_once('.').unwrap();
    let root = dir.path().join(machine);
    let data = root.join(format!("{how}.perf.data"));
    (root, data)
}

fn score_of(recording: &str) -> Score {
    let dir = fixtures();
    let (root, data) = places(&dir, recording);
    score(&script(&data, &root))
}

#[test]
fn callers_in_the_link_register_are_found() {
    // A chain by frame pointers misses the caller of a function without a frame.
    for recording in ["aarch64.g", "aarch64.signed-g"] {
        let score = score_of(recording);
        assert!(score.callers.0 >= 20 && score.callers.1 == 0, "{recording}: {score:?}");
        assert!(score.whole >= 20 && (score.cut, score.wrong) == (0, 0), "{recording}: {score:?}");
    }
}

#[test]
fn copies_of_stacks_are_unwound_on_every_machine() {
    for recording in ["aarch64.copies", "arm.thumb-copies", "arm.exidx-copies", "i386.copies", "s390x.copies"] {
        let score = score_of(recording);
        assert!(score.callers.0 >= 15 && score.callers.1 == 0, "{recording}: {score:?}");
        assert!(score.whole >= 15 && score.wrong == 0 && score.cut * 2 <= score.whole, "{recording}: {score:?}");
    }
}

#[test]
fn callers_on_riscv64_are_found_without_call_frame_information() {
    // With frame pointers, which functions that call nothing save alone, and without any: the call itself proves the
    // caller.
    for (recording, least) in [("riscv64.copies", 12), ("riscv64.nofp-copies", 15)] {
        let score = score_of(recording);
        assert!(score.callers.0 >= least && (score.callers.1, score.wrong) == (0, 0), "{recording}: {score:?}");
    }
}

#[test]
fn callers_of_32_bit_arm_are_found_where_the_call_proves_them() {
    // The function saves the link register, so that its exception index doesn't show that the register still has the
    // address.
    let score = score_of("arm.saving-g");
    assert!(score.callers.0 >= 300 && score.callers.1 == 0, "{score:?}");
}

/// The messages of a command for a recording of the fixtures.
fn told(command: &[&str], recording: &str) -> String {
    let dir = fixtures();
    let (root, data) = places(&dir, recording);
    let arguments = [command, &["--symfs", root.to_str().unwrap(), "-f", "-i", data.to_str().unwrap()]].concat();
    run(env!("CARGO_BIN_EXE_jitgraft"), &arguments, Path::new("."))
}

/// The instructions that annotate lists of a function: address and text.
fn listed(recording: &str) -> Vec<(String, String)> {
    let json: serde_json::Value =
        serde_json::from_str(&told(&["annotate", "--format", "json", "^spin$"], recording)).unwrap();
    let instructions = json["listings"][0]["instructions"].as_array().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let address = |value: &serde_json::Value| text(value).trim_start_matches("0x").to_owned();
    instructions.iter().map(|line| (address(&line["address"]), text(&line["text"]))).collect()
}

/// objdump's text for all code of a program: the same.
fn dumped(objdump: &str, program: &str) -> Vec<(String, String)> {
    let dir = fixtures();
    let text = run(objdump, &["-d", "--no-show-raw-insn", program], dir.path());
    let line = |line: &str| {
        let (address, text) = line.split_once(":\t")?;
        let text = text.split(['<', ';', '@']).next()?.split_whitespace().collect::<Vec<_>>().join(" ");
        Some((address.trim().to_owned(), text))
    };
    text.lines().filter_map(line).collect()
}

fn check_listing(recording: &str, objdump: &str, program: &str) {
    let (ours, theirs) = (listed(recording), dumped(objdump, program));
    assert!(ours.len() > 10, "{ours:?}");
    // An index that is none, in padding: `lea 0x0(%esi,%eiz,1),%esi`.
    let is_padding = |address: &str| theirs.iter().any(|(at, text)| at == address && text.contains("%eiz"));
    let wrong: Vec<_> = ours.iter().filter(|line| !theirs.contains(line) && !is_padding(&line.0)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn annotate_decodes_what_the_file_is_for() {
    check_listing("i386.copies", "objdump", "i386/programs/deep-386");
}

#[test]
fn thumb_is_decoded_as_thumb() {
    let told = listed("arm.thumb-g");
    assert!(told.iter().any(|(_, text)| text.starts_with("bne.n ")), "{told:#?}");
    assert!(told.iter().all(|(_, text)| !text.starts_with(".inst")), "{told:#?}");
}

#[test]
fn doctor_does_not_advise_what_does_not_help_there() {
    let told = |recording| told(&["doctor"], recording).split_whitespace().collect::<Vec<_>>().join(" ");
    let thumb = told("arm.thumb-g");
    assert!(thumb.contains("jitgraft record ") && thumb.contains(" --call-graph dwarf -- "), "{thumb}");
    assert!(!thumb.contains("-fno-omit-frame-pointer"), "{thumb}");
}

/// Emulated machines record all of it anew, and their own perf shows what it makes of it: no stack that it has right
/// and we do not.
#[test]
#[ignore = "needs qemu: tests/run.sh --all"]
fn emulated_machines() {
    for machine in ["aarch64", "s390x"] {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines").join(machine);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/machines/record.sh");
        run("sh", &[script, machine, dir.to_str().unwrap()], Path::new("."));
        let mut recordings = 0;
        for entry in std::fs::read_dir(dir.join("out")).unwrap() {
            let recording = entry.unwrap().path();
            let Ok(theirs) = std::fs::read(recording.join("perf.txt")) else { continue };
            let ours = score(&script_of(&recording, &dir));
            let theirs = score(&parse(&String::from_utf8_lossy(&theirs)));
            let name = recording.file_name().unwrap().to_str().unwrap();
            recordings += 1;
            println!("{machine} {name}: {ours:?}, perf {theirs:?}");
            // The way back from a signal leads through the vdso, which only the machine itself has available.
            let whole = ours.whole + ours.cut;
            assert!(whole >= theirs.whole && ours.callers.0 >= theirs.callers.0, "{name}: {ours:?}, perf {theirs:?}");
            // By frame pointers, which these do not have.
            let without = ["deep-nofp", "deep-thumb", "deep-exidx", "deep-saving"];
            if name.ends_with("-g") && without.iter().any(|no| name.starts_with(no)) {
                assert!(name != "deep-saving-g" || ours.callers.0 >= 15 && ours.callers.1 == 0, "{name}: {ours:?}");
                continue;
            }
            assert!(ours.callers.1 == 0 && ours.wrong == 0, "{name}: {ours:?}, perf {theirs:?}");
            assert!(ours.callers.0 + ours.whole >= 15, "{name}: {ours:?}");
        }
        assert!(recordings >= 2, "{machine}");
    }
    check_listing("arm.thumb-g", "arm-linux-gnueabihf-objdump", "arm/programs/deep-thumb");
}

fn script_of(recording: &Path, dir: &Path) -> Samples {
    script(&recording.join("perf.data"), &dir.join("root"))
}
