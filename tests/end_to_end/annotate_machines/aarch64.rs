//! Code of aarch64 against the cross binutils' objdump.

use super::{AT, json, recording};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const MACHINE: (u16, &str) = (183, "aarch64");

fn compiled() -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/aarch64-code/code.bin.zst");
    zstd::decode_all(fs::File::open(file).unwrap()).unwrap()
}

/// objdump's text of each instruction, by its address.
fn objdump(code: &[u8]) -> BTreeMap<u64, String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("code");
    fs::write(&file, code).unwrap();
    let mut command = Command::new("aarch64-linux-gnu-objdump");
    command.args(["-D", "-b", "binary", "-m", "aarch64", "--no-show-raw-insn", &format!("--adjust-vma={AT}")]);
    let output = command.arg(&file).output();
    let output = output.expect("aarch64-linux-gnu-objdump is needed: apt-get install binutils-aarch64-linux-gnu");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().filter_map(|line| {
        let (address, text) = line.split_once(":\t")?;
        Some((u64::from_str_radix(address.trim(), 16).ok()?, normal(text)))
    });
    rows.collect()
}

/// Without what objdump states about it, and with single blanks. Without symbols it writes `0x` before what branches
/// lead to.
fn normal(text: &str) -> String {
    let text = text.split(" //").next().unwrap().split("\t//").next().unwrap().split(" ;").next().unwrap();
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.rsplit_once(" 0x")
        .filter(|_| !text.starts_with(".inst"))
        .map_or(text.clone(), |(stem, to)| format!("{stem} {to}"))
}

/// Ours, by their addresses.
fn listed(code: &[u8]) -> BTreeMap<u64, String> {
    let (_dir, data) = recording(MACHINE, code, &[0]);
    let all = json(&[], &data);
    let instructions = all["listings"][0]["instructions"].as_array().unwrap().clone();
    let address =
        |of: &Value| u64::from_str_radix(of["address"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
    instructions.iter().map(|one| (address(one), normal(one["text"].as_str().unwrap()))).collect()
}

#[test]
fn compiled_code_is_spelled_as_objdump_spells_it() {
    let code = compiled();
    let (own, other) = (listed(&code), objdump(&code));
    assert_eq!(own.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    let differ: Vec<_> = own.iter().filter(|(address, text)| other[address] != **text).collect();
    let shown: Vec<_> = differ.iter().take(20).map(|(address, text)| (text, &other[address])).collect();
    assert!(differ.is_empty(), "{} of {}: {shown:#?}", differ.len(), own.len());
    assert!(own.len() > 1000, "{}", own.len());
}

/// Any 32 bits: whatever they are, each is one line, in its place.
#[test]
fn strange_words_are_reported_one_by_one() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = (0..50_000).flat_map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 32) as u32).to_le_bytes()
    });
    let code: Vec<u8> = words.collect();
    let lines = listed(&code);
    assert!(lines.keys().copied().eq((0..50_000).map(|at| AT + 4 * at)));
    assert!(lines.values().all(|text| !text.is_empty()));
}

#[test]
fn jumps_within_a_function_lead_to_its_instructions() {
    let (_dir, data) = recording(MACHINE, &compiled(), &[0, 4]);
    let all = json(&[], &data);
    let listing = &all["listings"][0];
    let inside = |one: &&Value| one["target"]["kind"] == "jump" && one["target"]["function"] == "hot<&>";
    let jumps = listing["instructions"].as_array().unwrap().iter().filter(inside).count();
    assert!(jumps > 50, "{jumps}");
    assert_eq!(listing["instructions"][1]["costs"]["cpu-clock"]["samples"], 1);
}
