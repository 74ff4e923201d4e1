//! A recording of BPF programs: what each of their frames must be called, and of which line it is, is found the slow
//! and obvious way in the bytes of the recording, by code that shares nothing with `src/`.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::objdump::{self, hex};
mod recorded;

use recorded::{Function, Recorded, Symbol};

/// The recording, unpacked.
fn fixture() -> (tempfile::TempDir, PathBuf, Recorded) {
    let packed = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-bpf/perf.data.zst"));
    let bytes = zstd::decode_all(&packed.unwrap()[..]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    std::fs::write(&file, &bytes).unwrap();
    (dir, file, Recorded::new(bytes))
}

fn jitgraft(args: &[&str], file: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let output = command.args(args).arg("-i").arg(file).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn json(args: &[&str], file: &Path) -> Value {
    serde_json::from_slice(&jitgraft(args, file).stdout).unwrap()
}

/// `NAME FILE:LINE` of a frame; without a line, `NAME`.
fn said(function: &Function, offset: u64) -> String {
    match function.line(offset) {
        Some(line) => format!("{} {}:{}", function.symbol, line.file.rsplit('/').next().unwrap(), line.number),
        None => function.symbol.clone(),
    }
}

/// The program's name in a line; the kernel has functions of its own with such names (`bpf_prog_load`).
fn program_in(line: &str) -> Option<String> {
    let (_, name) = line.split_once(" bpf_prog_")?;
    let is_hash = name.len() > 16 && name.bytes().take(16).all(|digit| digit.is_ascii_hexdigit());
    is_hash.then(|| format!("bpf_prog_{}", name.trim()))
}

/// Every frame of every sample, callers, too: those in BPF programs by name and line.
#[test]
fn frames_of_bpf_programs_have_the_lines_that_the_recording_holds() {
    let (_dir, file, recorded) = fixture();
    let mut expected = BTreeMap::<String, u64>::new();
    for sample in &recorded.samples {
        for (number, &addr) in sample.chain.iter().enumerate() {
            // For a caller, the byte before the return address.
            let looked_up = addr - u64::from(number > 0);
            if let Some((function, offset)) = recorded.function_at(looked_up, sample.time) {
                *expected.entry(said(&function, offset)).or_default() += 1;
            }
        }
    }
    let text = String::from_utf8(jitgraft(&["script", "-F", "comm,tid,time,ip,sym,srcline"], &file).stdout).unwrap();
    let (mut told, mut lines) = (BTreeMap::<String, u64>::new(), text.lines().peekable());
    while let Some(line) = lines.next() {
        let Some(name) = program_in(line) else { continue };
        let source = lines.next_if(|next| next.starts_with("  ")).unwrap_or_default().trim();
        let known = source.split_once(':').is_some_and(|(file, _)| file.ends_with(".bpf.c"));
        let source = if known { format!(" {source}") } else { String::new() };
        *told.entry(format!("{name}{source}")).or_default() += 1;
    }
    assert_eq!(told, expected);
    let with_line = expected.keys().filter(|frame| frame.contains(' ')).count();
    assert!(with_line > 12 && expected.len() > with_line, "{expected:#?}");
    // Programs' functions lay where others had lain before.
    let appeared = || recorded.symbols.iter().filter(|symbol| !symbol.gone && symbol.name.starts_with("bpf_prog_"));
    let overlap = |one: &Symbol, other: &Symbol| {
        one.name != other.name && (other.addr..other.addr + other.len).contains(&one.addr)
    };
    let reused = appeared().filter(|one| appeared().any(|other| overlap(one, other)));
    assert!(reused.count() > 1, "no address was used twice");
}

/// perf and we call each sample the same.
#[test]
fn names_are_those_of_perf() {
    let (dir, file, recorded) = fixture();
    let output = Command::new("perf").args(["script", "-F", "ip,sym", "-G", "-i"]).arg(&file).output();
    let output = output.unwrap_or_else(|error| panic!("perf is needed: {error} (tests/run.sh installs it)"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let perfs = text.lines().filter_map(program_in);
    let ours = recorded.samples.iter().filter_map(|sample| recorded.function_at(sample.chain[0], sample.time));
    let mut ours: Vec<String> = ours.map(|(function, _)| function.symbol).collect();
    let mut perfs: Vec<String> = perfs.collect();
    ours.sort();
    perfs.sort();
    assert_eq!(ours, perfs, "{dir:?}");
}

#[test]
fn annotate_shows_code_lines_and_samples_of_bpf_programs() {
    let (_dir, file, recorded) = fixture();
    let all = json(&["annotate", "--format", "json", "bpf_prog_[0-9a-f]{16}"], &file);
    let mut left = BTreeMap::<(String, u64), BTreeMap<u64, u64>>::new();
    for sample in &recorded.samples {
        if let Some((function, offset)) = recorded.function_at(sample.chain[0], sample.time) {
            *left.entry((function.symbol, function.addr)).or_default().entry(offset).or_default() += 1;
        }
    }
    let (mut with_lines, listings) = (0, all["listings"].as_array().unwrap());
    for listing in listings {
        let (name, addr) = (listing["name"].as_str().unwrap(), hex(&listing["address"]));
        let function = recorded.functions.iter().find(|function| function.symbol == name && function.addr == addr);
        let function = function.unwrap_or_else(|| panic!("{name} at {addr:#x}"));
        let version = &listing["versions"][0]["bpf"];
        assert_eq!(
            (version["program"].as_u64().unwrap(), version["function"].as_str()),
            (function.program.into(), function.name.as_deref())
        );
        let mut samples = left.remove(&(name.to_owned(), addr)).unwrap();
        let instructions = listing["instructions"].as_array().unwrap();
        let bytes: String = instructions.iter().map(|instruction| instruction["bytes"].as_str().unwrap()).collect();
        let expected: String = function.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(bytes, expected, "{name}");
        for instruction in instructions {
            let (offset, len) =
                (hex(&instruction["address"]) - addr, instruction["bytes"].as_str().unwrap().len() as u64 / 2);
            let line = function.line(offset);
            let file = instruction["file"].as_u64().map(|file| listing["files"][file as usize].as_str().unwrap());
            assert_eq!(file, line.map(|line| &line.file[..]), "{name}+{offset:#x}");
            assert_eq!(instruction["line"].as_u64(), line.map(|line| line.number.into()), "{name}+{offset:#x}");
            assert_eq!(instruction["source"].as_str(), line.map(|line| line.text.trim_end()), "{name}+{offset:#x}");
            with_lines += usize::from(line.is_some());
            let here: u64 = (offset..offset + len).filter_map(|offset| samples.remove(&offset)).sum();
            assert_eq!(instruction["costs"]["cpu-clock"]["samples"].as_u64().unwrap_or(0), here, "{name}+{offset:#x}");
        }
        assert!(samples.is_empty(), "{name}: {samples:?}");
    }
    assert!(left.is_empty(), "{:?}", left.keys());
    let instructions = objdump::compare(&listings.iter().collect::<Vec<_>>());
    assert!(with_lines > 150 && instructions > with_lines, "{with_lines} of {instructions}");
    let text = String::from_utf8(jitgraft(&["annotate", "mix_words"], &file).stdout).unwrap();
    assert!(text.contains("packets.bpf.c:17  sum ^= rotated(sum, 13);"), "{text}");
}

#[test]
fn report_and_doctor_speak_of_bpf_programs() {
    let (_dir, file, recorded) = fixture();
    let report = String::from_utf8(jitgraft(&["report"], &file).stdout).unwrap();
    let row = report.lines().find(|line| line.contains("_mix_words")).unwrap();
    assert!(row.trim_end().ends_with("/packets.bpf.c:16"), "{row}");
    let frames = |wanted: &dyn Fn(&Function, u64) -> bool| {
        let chains = recorded.samples.iter().flat_map(|sample| {
            let looked_up = sample.chain.iter().enumerate().map(|(number, addr)| addr - u64::from(number > 0));
            looked_up.filter_map(|addr| recorded.function_at(addr, sample.time))
        });
        chains.filter(|(function, offset)| wanted(function, *offset)).count()
    };
    let told = &json(&["doctor", "--format", "json"], &file)[0]["bpf"];
    assert_eq!(told["frames"], frames(&|_, _| true));
    assert_eq!(told["with_code"], frames(&|function, _| !function.bytes.is_empty()));
    assert_eq!(told["with_lines"], frames(&|function, offset| function.line(offset).is_some()));
    let said = String::from_utf8(jitgraft(&["doctor"], &file).stdout).unwrap();
    assert!(said.contains("BPF programs: "), "{said}");
}
