//! objdump's listing of the bytes that annotate listed, instruction by instruction.

use serde_json::Value;
use std::fs;
use std::process::Command;

/// Compares every listing of x86-64 code: same addresses, same bytes, same text by [`normal`]. Gives how many
/// instructions were compared.
pub(super) fn compare(annotation: &Value) -> usize {
    let listings = annotation["listings"].as_array().unwrap();
    let listed = listings.iter().filter(|listing| listing["instructions"].is_array());
    listed.map(compare_listing).sum()
}

fn compare_listing(listing: &Value) -> usize {
    let ours = listing["instructions"].as_array().unwrap();
    let text = |instruction: &Value, key: &str| instruction[key].as_str().unwrap().to_owned();
    let bytes: String = ours.iter().map(|instruction| text(instruction, "bytes")).collect();
    let theirs = objdump(&from_hex(&bytes), listing["address"].as_str().unwrap());
    let ours: Vec<Listed> = ours
        .iter()
        .map(|instruction| Listed {
            address: text(instruction, "address").trim_start_matches("0x").to_owned(),
            bytes: text(instruction, "bytes"),
            text: normal(&text(instruction, "text")),
        })
        .collect();
    let differ = ours.iter().zip(&theirs).filter(|(own, other)| own != other);
    let differ: Vec<String> = differ.map(|(own, other)| format!("{own:?} is {other:?}")).take(20).collect();
    assert!(differ.is_empty(), "in {}:\n{}", listing["name"], differ.join("\n"));
    assert_eq!(ours.len(), theirs.len());
    ours.len()
}

#[derive(Debug, PartialEq, Eq)]
struct Listed {
    address: String,
    bytes: String,
    text: String,
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn objdump(code: &[u8], address: &str) -> Vec<Listed> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("code");
    fs::write(&file, code).unwrap();
    let mut command = Command::new("objdump");
    command.args(["-D", "-w", "-b", "binary", "-m", "i386:x86-64", "--insn-width=16"]);
    let output = command.arg(format!("--adjust-vma={address}")).arg(&file).output();
    let output = output.expect("objdump is needed: apt-get install binutils");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().filter_map(|line| {
        let (address, rest) = line.split_once(":\t")?;
        let (bytes, text) = rest.split_once('\t').unwrap_or((rest, ""));
        let bytes = bytes.split_whitespace().collect();
        Some(Listed { address: address.trim().to_owned(), bytes, text: normal(text) })
    });
    rows.collect()
}

/// What both decoders mean alike and spell otherwise.
fn normal(text: &str) -> String {
    // objdump tells the address behind `#`, and what has a name in `<>`.
    let text = text.split(" #").next().unwrap_or(text).split(" <").next().unwrap_or(text);
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Branches' addresses have no prefix where objdump knows a symbol, and one where it knows none.
    let is_branch = text.starts_with('j') || text.starts_with("call") || text.starts_with("loop");
    if is_branch { text.replace(" 0x", " ") } else { text }
}
