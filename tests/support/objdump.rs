//! Compares the listings of `jitgraft annotate` with objdump's disassembly of the same bytes.

use serde_json::Value;
use std::fs;
use std::process::Command;

/// Parses an address in JSON, such as `"0x1f"`.
pub(crate) fn hex(text: &Value) -> u64 {
    u64::from_str_radix(text.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// Compares listings of x86-64 code with objdump: addresses, bytes, and the text after [`normal`]. Returns the number
/// of compared instructions.
pub(crate) fn compare(listings: &[&Value]) -> usize {
    listings.iter().map(|listing| compare_listing(listing)).sum()
}

fn compare_listing(listing: &Value) -> usize {
    let ours = listing["instructions"].as_array().unwrap();
    let text = |instruction: &Value, key: &str| instruction[key].as_str().unwrap().to_owned();
    let bytes: String = ours.iter().map(|instruction| text(instruction, "bytes")).collect();
    let theirs = objdump(&from_hex(&bytes), listing["address"].as_str().unwrap());
    let ours: Vec<Listed> = ours
        .iter()
        .map(|instruction| Listed {
            address: hex(&instruction["address"]),
            bytes: text(instruction, "bytes"),
            text: normal(&text(instruction, "text")),
        })
        .collect();
    let differ = differences(&ours, &theirs, |listed| listed.address, |listed| listed.text == UNDECODED);
    let differ: Vec<String> = differ.iter().map(|(own, other)| format!("{own:x?} is {other:x?}")).take(20).collect();
    assert!(differ.is_empty(), "in {}:\n{}", listing["name"], differ.join("\n"));
    ours.len()
}

/// Stands for bytes that are no instruction, in texts from [`normal`].
pub(crate) const UNDECODED: &str = ".byte";

/// The differences between two listings. After bytes that are no instruction, decoders may continue at different places
/// until they meet again, because versions of binutils skip different numbers of bytes. Differences there don't count.
pub(crate) fn differences<'a, T: PartialEq>(
    ours: &'a [T],
    theirs: &'a [T],
    place: impl Fn(&T) -> u64,
    is_undecoded: impl Fn(&T) -> bool,
) -> Vec<(Option<&'a T>, Option<&'a T>)> {
    let (mut left, mut right, mut differ, mut is_lost) = (0, 0, Vec::new(), false);
    loop {
        let (own, other) = (ours.get(left), theirs.get(right));
        let (from, to) = match (own, other) {
            (None, None) => return differ,
            _ => (own.map_or(u64::MAX, &place), other.map_or(u64::MAX, &place)),
        };
        let is_odd = own.is_some_and(&is_undecoded) || other.is_some_and(&is_undecoded);
        is_lost = is_odd || is_lost && from != to;
        if own != other && !is_lost {
            differ.push((own, other));
        }
        left += usize::from(from <= to);
        right += usize::from(to <= from);
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Listed {
    address: u64,
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
    command.args(["-D", "-z", "-w", "-b", "binary", "-m", "i386:x86-64", "--insn-width=16"]);
    let output = command.arg(format!("--adjust-vma={address}")).arg(&file).output();
    let output = output.expect("objdump is needed: apt-get install binutils");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().filter_map(|line| {
        let (address, rest) = line.split_once(":\t")?;
        let (bytes, text) = rest.split_once('\t').unwrap_or((rest, ""));
        let bytes = bytes.split_whitespace().collect();
        Some(Listed { address: u64::from_str_radix(address.trim(), 16).ok()?, bytes, text: normal(text) })
    });
    rows.collect()
}

/// Prefixes without effect, which are common in padding.
const IDLE_PREFIXES: &[&str] = &["data16", "cs", "ds", "es", "ss", "addr32"];

/// Brings an instruction into one form, in places where the two decoders spell the same thing differently.
pub(crate) fn normal(text: &str) -> String {
    // objdump adds the address after `#`, and the symbol in `<>`.
    let text = text.split(" #").next().unwrap_or(text).split(" <").next().unwrap_or(text);
    let mut words: Vec<&str> = text.split_whitespace().collect();
    while words.len() > 1 && (IDLE_PREFIXES.contains(&words[0]) || words[0].starts_with("rex")) {
        words.remove(0);
    }
    match words[..] {
        [] => return String::new(),
        // objdump has two spellings for bytes that are no instruction.
        ["(bad)" | ".byte", ..] => return UNDECODED.to_owned(),
        _ => {}
    }
    // Our listing leaves out the segment registers of string instructions.
    let text = words.join(" ").replace("(%dx)", "%dx").replace("%ds:(%r", "(%r").replace("%es:(%rdi)", "(%rdi)");
    // objdump prints branch targets without `0x` if it has a symbol, otherwise with it.
    if is_branch(&text) { text.replace(" 0x", " ") } else { without_shift_by_one(&text) }
}

/// Removes the operand of shifts by one: binutils 2.40 leaves it out, 2.41 prints `$1`, and we print `$0x1`.
fn without_shift_by_one(text: &str) -> String {
    const SHIFTS: &[&str] = &["shl", "shr", "sal", "sar", "rol", "ror", "rcl", "rcr"];
    let is_shift = SHIFTS.iter().any(|shift| text.starts_with(shift));
    let operands = text.split_once(' ').filter(|_| is_shift);
    let by_one = operands.and_then(|(shift, rest)| {
        let place = rest.strip_prefix("$0x1,").or_else(|| rest.strip_prefix("$1,"))?;
        // Shifts of two registers (`shld`) have a third operand, and keep it.
        let is_one = place.starts_with(|c: char| c == '%' && !place.contains(',')) || place.ends_with(')');
        is_one.then(|| format!("{shift} {place}"))
    });
    by_one.unwrap_or_else(|| text.to_owned())
}

pub(crate) fn is_branch(text: &str) -> bool {
    let text = text.strip_prefix("bnd ").or_else(|| text.strip_prefix("notrack ")).unwrap_or(text);
    text.starts_with('j') || text.starts_with("call") || text.starts_with("loop")
}
