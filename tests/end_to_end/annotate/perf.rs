//! The output of `perf annotate --stdio` for a recording (injected, where there is JIT code), beside listings of ours.

use super::case::{Case, base};
use super::objdump::{self, UNDECODED, is_branch, normal};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// One function of one event, as perf lists it.
struct Listed {
    file: String,
    event: String,
    samples: u64,
    rows: Vec<Row>,
}

struct Row {
    percent: f64,
    address: u64,
    text: String,
}

/// An instruction in a form that both sides can be brought to.
#[derive(Debug)]
struct Told {
    offset: u64,
    percent: f64,
    text: String,
}

impl PartialEq for Told {
    /// perf rounds to two digits.
    fn eq(&self, other: &Self) -> bool {
        (self.offset, &self.text) == (other.offset, &other.text) && (self.percent - other.percent).abs() <= 0.0051
    }
}

/// The number of listings and instructions that were found equal.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) listings: usize,
    pub(super) instructions: usize,
    /// Instructions whose source line was compared and is known.
    pub(super) lines: usize,
}

/// Compares these listings with what perf gives: samples, places, shares and text of each instruction, and the source
/// line with what addr2line states about perf's file.
pub(super) fn compare(case: &Case, listings: &[&Value]) -> Compared {
    let perf = annotate(case);
    let mut compared = Compared::default();
    for listing in listings {
        for event in listing["costs"].as_object().unwrap().keys() {
            let (differs, theirs) = nearest(listing, event, &perf);
            assert!(differs.is_empty(), "{} of {}:\n{}", event, listing["name"], differs.join("\n"));
            compared.listings += 1;
            compared.instructions += theirs.rows.len();
            compared.lines += lines(case, listing, theirs);
        }
    }
    compared
}

/// perf's listing that differs least, among those of this many samples, and how it differs.
fn nearest<'a>(listing: &Value, event: &str, perf: &'a [Listed]) -> (Vec<String>, &'a Listed) {
    let samples = listing["costs"][event]["samples"].as_u64().unwrap();
    let same = perf.iter().filter(|other| other.event == event && other.samples == samples && !other.rows.is_empty());
    let all = same.map(|other| (differences(listing, event, other), other));
    all.min_by_key(|(differs, _)| differs.len())
        .unwrap_or_else(|| panic!("perf lists nothing with {samples} samples of {event} for {}", listing["name"]))
}

fn differences(listing: &Value, event: &str, theirs: &Listed) -> Vec<String> {
    let (start, size) = (base(listing), listing["size"].as_u64().unwrap());
    let their_start = theirs.rows[0].address;
    let weight = |of: &Value| of["costs"][event]["weight"].as_u64().unwrap_or(0) as f64;
    let whole = weight(listing);
    let offsets: BTreeSet<u64> = theirs.rows.iter().map(|row| row.address - their_start).collect();
    let ours = listing["instructions"].as_array().unwrap().iter().filter_map(|instruction| {
        let offset = super::hex(&instruction["address"]) - start;
        // objdump leaves out what is nothing but zeros.
        let is_zero = instruction["bytes"].as_str().unwrap().bytes().all(|digit| digit == b'0');
        let text = branch_within(&normal(instruction["text"].as_str().unwrap()), start, size);
        let percent = 100.0 * weight(instruction) / whole;
        (offsets.contains(&offset) || !is_zero).then_some(Told { offset, percent, text })
    });
    let ours: Vec<_> = ours.collect();
    let theirs = theirs.rows.iter().map(|row| Told {
        offset: row.address - their_start,
        percent: row.percent,
        text: branch_within(&normal(&row.text), their_start, size),
    });
    let theirs: Vec<_> = theirs.collect();
    let differ = objdump::differences(&ours, &theirs, |told| told.offset, |told| told.text == UNDECODED);
    differ.iter().map(|(own, other)| format!("{own:x?} is {other:x?}")).take(20).collect()
}

/// Compares source lines; gives how many instructions have one.
fn lines(case: &Case, listing: &Value, theirs: &Listed) -> usize {
    let Some(file) = file(case, &theirs.file) else { return 0 };
    let mut command = Command::new("addr2line");
    command.arg("-e").arg(file).args(theirs.rows.iter().map(|row| format!("{:#x}", row.address)));
    let output = command.output().expect("addr2line is needed: apt-get install binutils");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut known = 0;
    let start = base(listing);
    let instructions = listing["instructions"].as_array().unwrap();
    for (row, told) in theirs.rows.iter().zip(told.lines()) {
        let offset = row.address - theirs.rows[0].address;
        let Some(own) = instructions.iter().find(|own| super::hex(&own["address"]) == start + offset) else { continue };
        let own = own["line"].as_u64().map(|line| {
            let file = listing["files"][own["file"].as_u64().unwrap() as usize].as_str().unwrap();
            format!("{file}:{line}")
        });
        let told = told.split(" (discriminator").next().unwrap();
        let told = Some(told.to_owned()).filter(|told| !told.ends_with(":?") && !told.ends_with(":0"));
        assert_eq!(own, told, "line of {:#x} in {}", row.address, listing["name"]);
        known += usize::from(own.is_some());
    }
    known
}

/// The file that perf took the code from, if it is one of the fixture's.
fn file(case: &Case, name: &str) -> Option<PathBuf> {
    let program = case.symfs.as_ref().map(|root| root.join("tmp/demo").join(name));
    program.into_iter().chain([case.path().join(name)]).find(|path| path.is_file())
}

/// Everything that perf lists.
fn annotate(case: &Case) -> Vec<Listed> {
    let mut command = Command::new("perf");
    command.current_dir(case.path()).env("DEBUGINFOD_URLS", "");
    command.args(["annotate", "--stdio", "-f", "--no-source"]);
    match &case.symfs {
        Some(root) => _ = command.args(["-i", "perf.data", "--symfs"]).arg(root),
        None => {
            case.jitgraft(&["inject", "-i", "perf.data", "-o", "perf.jit.data"]);
            command.args(["-i", "perf.jit.data"]);
        }
    }
    command.arg("--dsos").arg(case.own_files().join(","));
    let output = command.output().expect("perf is needed: apt-get install linux-perf");
    parse(&String::from_utf8_lossy(&output.stdout))
}

fn parse(text: &str) -> Vec<Listed> {
    let mut all: Vec<Listed> = Vec::new();
    for line in text.lines() {
        if let Some(new) = head(line) {
            all.push(new);
        } else if let (Some(last), Some(row)) = (all.last_mut(), row(line)) {
            last.rows.push(row);
        }
    }
    all
}

/// ` Percent | Source code & Disassembly of FILE for EVENT (8 samples, percent: local period)`
fn head(line: &str) -> Option<Listed> {
    let (_, of) = line.split_once("Source code & Disassembly of ")?;
    let (file, rest) = of.rsplit_once(" for ")?;
    let (event, rest) = rest.split_once(" (")?;
    let samples = rest.split_once(" samples")?.0.parse().ok()?;
    Some(Listed { file: file.to_owned(), event: event.to_owned(), samples, rows: Vec::new() })
}

/// `    0.51 :   292d:   jge    19a0 <JIT$$leave_function+0x820>`
fn row(line: &str) -> Option<Row> {
    let (percent, rest) = line.split_once(" :")?;
    let percent = percent.trim().parse().ok()?;
    let (address, text) = rest.trim_start().split_once(':')?;
    Some(Row { percent, address: u64::from_str_radix(address, 16).ok()?, text: text.to_owned() })
}

/// An image's addresses are not those of the process: branches are recognized by where they go in the function, and
/// what is read beside the code not at all.
fn branch_within(text: &str, base: u64, size: u64) -> String {
    let target = text.rsplit_once(' ').filter(|_| is_branch(text));
    let target = target.and_then(|(word, operand)| Some((word, u64::from_str_radix(operand, 16).ok()?)));
    match target.map(|(word, target)| (word, target.wrapping_sub(base))) {
        Some((word, inside)) if inside < size => format!("{word} +{inside:x}"),
        Some((word, _)) => format!("{word} elsewhere"),
        None => text.to_owned(),
    }
}
