//! `annotate`: the machine code of real recordings, against what objdump and perf say of the same bytes.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[path = "annotate/objdump.rs"]
mod objdump;

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

#[test]
fn jit_code_is_decoded_as_objdump_decodes_it() {
    let all = json(&["TRACE|JIT", "--limit", "40"], &php());
    let compared = objdump::compare(&all);
    assert!(compared > 1000, "only {compared} instructions were compared");
}

#[test]
fn the_text_shows_hot_lines_with_their_share_and_names_what_is_called() {
    let text = annotate(&["mandel"], &php());
    assert!(text.contains(r"1. TRACE-8$App\Deep\mandel$5"), "{text}");
    assert!(text.contains("instructions without samples"), "{text}");
    assert!(!text.contains('\x1b'), "no colour in a file");
    let whole = annotate(&["mandel", "--whole"], &php());
    assert!(!whole.contains("without samples") && whole.lines().count() > text.lines().count());
}
