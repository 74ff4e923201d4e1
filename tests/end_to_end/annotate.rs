//! `annotate`: the machine code of real recordings, against what objdump and perf state about the same bytes.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod case;
use crate::support::objdump::{self, hex};
mod perf;

use case::{Case, is_jit};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn annotate(args: &[&str], recording: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.arg("annotate").args(args).arg("-i").arg(recording).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str], recording: &Path) -> Value {
    serde_json::from_str(&annotate(&[&["--format", "json"], args].concat(), recording)).unwrap()
}

fn php() -> PathBuf {
    fixture("php-recording/perf.data.zst")
}

/// Samples of a JSON object's `costs`, whatever event they are of.
fn samples(of: &Value) -> u64 {
    let costs = of["costs"].as_object();
    costs.map_or(0, |costs| costs.values().map(|cost| cost["samples"].as_u64().unwrap()).sum())
}

#[test]
fn the_samples_of_a_functions_instructions_are_those_of_the_function() {
    let all = json(&["--limit", "40"], &php());
    let listings = all["listings"].as_array().unwrap();
    assert!(listings.len() >= 20, "{}", listings.len());
    let hottest = listings.iter().find(|listing| listing["name"] == r"TRACE-8$App\Deep\mandel$5").unwrap();
    assert_eq!(samples(hottest), 198);
    let listed = listings.iter().filter(|listing| listing["instructions"].is_array());
    for listing in listed {
        let instructions = listing["instructions"].as_array().unwrap();
        assert_eq!(instructions.iter().map(samples).sum::<u64>(), samples(listing), "{}", listing["name"]);
        let bytes: usize =
            instructions.iter().map(|instruction| instruction["bytes"].as_str().unwrap().len() / 2).sum();
        assert_eq!(bytes as u64, listing["size"].as_u64().unwrap());
    }
}

/// Holds this many listings at least against objdump and perf; gives how many instructions have a source line.
fn hold_against_others(case: &Case, wanted: impl Fn(&Value) -> bool, least: usize) -> usize {
    let listings = case.listed(wanted);
    assert!(listings.len() >= least, "only {} are listed", listings.len());
    let instructions = objdump::compare(&listings);
    let compared = perf::compare(case, &listings);
    assert!(compared.listings >= listings.len() && compared.instructions > instructions / 2, "{compared:?}");
    println!("{instructions} instructions beside objdump, {compared:?} beside perf");
    compared.lines
}

#[test]
fn code_of_php_is_reported_as_by_objdump_and_perf() {
    hold_against_others(&Case::new("php-recording", None, &["TRACE|JIT"]), is_jit, 20);
}

#[test]
fn code_of_wasmtime_is_reported_as_by_objdump_and_perf() {
    hold_against_others(&Case::new("recording-wasmtime", None, &[]), is_jit, 2);
}

#[test]
fn code_of_node_is_reported_as_by_objdump_and_perf() {
    hold_against_others(&Case::new("annotate-node", None, &[]), is_jit, 10);
}

#[test]
fn code_of_java_is_reported_as_by_objdump_and_perf_with_its_lines() {
    let lines = hold_against_others(&Case::new("annotate-java", None, &["^L"]), is_jit, 10);
    assert!(lines > 1000, "{lines}");
}

#[test]
fn code_of_cpp_is_reported_as_by_objdump_and_perf_with_its_lines() {
    let case = Case::new("recording-cpp", Some("work-cpp"), &[]);
    let own = |listing: &Value| listing["module"] == "/tmp/demo/work-cpp";
    let lines = hold_against_others(&case, own, 3);
    assert!(lines > 100, "{lines}");
}

#[test]
fn code_of_rust_is_reported_as_by_objdump_and_perf_with_its_lines() {
    let case = Case::new("recording-rust", Some("work-rs"), &[]);
    let own = |listing: &Value| listing["module"] == "/tmp/demo/work-rs";
    let lines = hold_against_others(&case, own, 3);
    assert!(lines > 100, "{lines}");
}

#[test]
fn versions_of_one_name_can_be_reported_together() {
    let case = Case::new("annotate-node", None, &["--merge"]);
    let plain = Case::new("annotate-node", None, &[]);
    let total = |case: &Case| case.annotation["listings"].as_array().unwrap().iter().map(samples).sum::<u64>();
    assert_eq!(total(&case), total(&plain));
    let several = |listing: &&Value| listing["versions"].as_array().unwrap().len() > 1;
    let listings = case.annotation["listings"].as_array().unwrap();
    let merged: Vec<&Value> = listings.iter().filter(several).collect();
    assert!(!merged.is_empty());
    let by_line = merged.iter().filter(|listing| listing["source_lines"].is_array());
    for listing in by_line {
        let lines = listing["source_lines"].as_array().unwrap();
        assert_eq!(lines.iter().map(samples).sum::<u64>(), samples(listing), "{}", listing["name"]);
    }
    assert_eq!(plain.annotation["listings"].as_array().unwrap().iter().filter(several).count(), 0);
}

#[test]
fn costs_can_be_reported_by_source_line_alone() {
    let case = Case::new("recording-cpp", Some("work-cpp"), &["--by", "line"]);
    let listings = case.annotation["listings"].as_array().unwrap();
    let told: Vec<_> = listings.iter().filter(|listing| listing["source_lines"].is_array()).collect();
    assert!(told.len() >= 3);
    for listing in told {
        let lines = listing["source_lines"].as_array().unwrap();
        assert_eq!(lines.iter().map(samples).sum::<u64>(), samples(listing), "{}", listing["name"]);
    }
}

#[test]
fn the_text_shows_hot_lines_with_their_share_and_names_what_is_called() {
    let text = annotate(&["mandel"], &php());
    assert!(text.contains(r"1. TRACE-8$App\Deep\mandel$5"), "{text}");
    assert!(text.contains("instructions without samples"), "{text}");
    assert!(!text.contains('\x1b'), "no color in a file");
    let whole = annotate(&["mandel", "--whole"], &php());
    assert!(!whole.contains("without samples") && whole.lines().count() > text.lines().count());
}
