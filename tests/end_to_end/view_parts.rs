//! The page's data of machine code, compilations and findings, unpacked by code that shares nothing with what packs it,
//! against what `annotate`, `doctor` and the dump itself give.

use data_encoding::BASE64;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

fn php(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/php-recording").join(name)
}

fn jitgraft(args: &[&str], input: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(args).arg(input).env("HOME", "/nonexistent").env("TMPDIR", std::env::temp_dir());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The content of a page.
struct Data {
    sections: Value,
    columns: BTreeMap<String, Vec<u8>>,
}

impl Data {
    fn of(args: &[&str], input: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("page.html");
        jitgraft(&[&["view", "--no-open", "-o", page.to_str().unwrap()], args].concat(), input);
        let html = fs::read_to_string(page).unwrap();
        let (_, rest) = html.split_once("<script id=\"data\" type=\"text/plain\">").unwrap();
        let packed = BASE64.decode(rest.split_once('<').unwrap().0.as_bytes()).unwrap();
        let mut block = Vec::new();
        flate2::read::DeflateDecoder::new(&packed[..]).read_to_end(&mut block).unwrap();
        let (len, rest) = block.split_at(4);
        let (head, mut rest) = rest.split_at(u32::from_le_bytes(len.try_into().unwrap()) as usize);
        let head: Value = serde_json::from_slice(head).unwrap();
        let mut columns = BTreeMap::new();
        for column in head["columns"].as_array().unwrap() {
            let (own, behind) = rest.split_at(column["bytes"].as_u64().unwrap() as usize);
            columns.insert(column["name"].as_str().unwrap().to_owned(), own.to_vec());
            rest = behind;
        }
        Self { sections: head["sections"].clone(), columns }
    }

    fn numbers(&self, column: &str) -> Vec<u64> {
        let (mut numbers, mut number, mut shift) = (Vec::new(), 0u64, 0);
        for byte in &self.columns[column] {
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                numbers.push(number);
                (number, shift) = (0, 0);
            }
        }
        numbers
    }

    fn deltas(&self, column: &str) -> Vec<u64> {
        let unzigzag = |number: u64| (number >> 1) as i64 ^ -((number & 1) as i64);
        let sum = |sum: &mut i64, number: u64| {
            *sum += unzigzag(number);
            Some(*sum as u64)
        };
        self.numbers(column).into_iter().scan(0, sum).collect()
    }

    fn texts(&self, column: &str) -> Vec<String> {
        std::str::from_utf8(&self.columns[column]).unwrap().split('\n').map(str::to_owned).collect()
    }
}

/// An instruction by the address of its function's first byte and its own distance from there: what was sampled at it.
type Costs = BTreeMap<(String, u64), (u64, u64)>;

#[test]
fn the_spots_of_the_page_add_up_to_what_annotate_reports_each_instruction() {
    let input = php("perf.data.zst");
    let page = Data::of(&["--code", "40"], &input);
    let text = jitgraft(&["annotate", "--limit", "40", "--format", "json", "-i"], &input);
    let told: Value = serde_json::from_str(&text).unwrap();
    let mut expected = Costs::new();
    for listing in told["listings"].as_array().unwrap() {
        let Some(instructions) = listing["instructions"].as_array() else { continue };
        let start = listing["address"].as_str().unwrap().trim_start_matches("0x").to_owned();
        let mut offset = 0;
        for instruction in instructions {
            if let Some(cost) = instruction["costs"].get("cpu-clock") {
                let cost = (cost["samples"].as_u64().unwrap(), cost["weight"].as_u64().unwrap());
                expected.insert((start.clone(), offset), cost);
            }
            offset += instruction["bytes"].as_str().unwrap().len() as u64 / 2;
        }
    }
    let (addresses, counts) = (page.texts("code/listing.address"), page.numbers("code/listing.instructions"));
    let (texts, lens) = (page.numbers("code/text"), page.numbers("code/texts.len"));
    let mut places = Vec::new();
    for (address, count) in addresses.iter().zip(counts) {
        let mut offset = 0;
        for _ in 0..count {
            let text = texts[places.len()] as usize;
            places.push((address.clone(), offset));
            offset += lens[text];
        }
    }
    let mut summed = Costs::new();
    let rows = page.numbers("profile/rows.0.count").into_iter().zip(page.numbers("profile/rows.0.weight"));
    for (instruction, (count, weight)) in
        page.deltas("profile/rows.0.instruction").into_iter().zip(rows).filter(|(instruction, _)| *instruction > 0)
    {
        let sum = summed.entry(places[instruction as usize - 1].clone()).or_default();
        *sum = (sum.0 + count, sum.1 + weight);
    }
    assert!(expected.len() > 50, "{}", expected.len());
    assert_eq!(summed, expected);
}

/// Loads of a dump: how many, and their bytes; by the layout of the format alone.
fn loads(dump: &[u8]) -> (u64, u64) {
    let word = |at: usize| u32::from_le_bytes(dump[at..at + 4].try_into().unwrap());
    let (mut at, mut sum) = (word(8) as usize, (0, 0));
    while at + 16 <= dump.len() {
        if word(at) == 0 {
            sum.0 += 1;
            sum.1 += u64::from_le_bytes(dump[at + 40..at + 48].try_into().unwrap());
        }
        at += word(at + 4) as usize;
    }
    sum
}

#[test]
fn every_load_of_a_dump_is_a_compilation_with_its_time_and_size() {
    let page = Data::of(&["--code", "0"], &php("perf.data.zst"));
    assert_eq!(page.sections["code"], Value::Null);
    let (count, bytes) = loads(&fs::read(php("jit-31795.dump")).unwrap());
    let told = page.numbers("jit/bytes");
    assert!(count > 50, "{count}");
    assert_eq!((told.len() as u64, told.iter().sum::<u64>()), (count, bytes));
    assert!(page.deltas("jit/time").is_sorted());
    assert_eq!(page.sections["jit"]["codes"], count);
    assert_eq!(page.sections["jit"]["untimed"].as_array().unwrap().len(), 0);
}

#[test]
fn the_page_shows_what_doctor_shows_and_which_frames_it_is_about() {
    let input = php("perf.data.zst");
    let page = Data::of(&[], &input);
    let mut told = page.sections["findings"][0].clone();
    for key in ["findings", "minor"] {
        for finding in told[key].as_array_mut().unwrap() {
            assert!(finding.as_object_mut().unwrap().remove("show").is_some(), "{finding}");
        }
    }
    let expected: Value = serde_json::from_str(&jitgraft(&["doctor", "--format", "json"], &input)).unwrap();
    assert!(!expected[0]["findings"].as_array().unwrap().is_empty());
    assert_eq!(told, expected[0]);
}

#[test]
fn calls_that_a_compiler_expanded_are_reported_as_annotate_shows_them() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["perf.data", "hotspot_pid12340.log"] {
        let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/hotspot-log").join(format!("{name}.zst"));
        fs::write(dir.path().join(name), zstd::decode_all(&fs::read(packed).unwrap()[..]).unwrap()).unwrap();
    }
    let input = dir.path().join("perf.data");
    let page = Data::of(&["--code", "40"], &input);
    let text = jitgraft(&["annotate", "--limit", "1000", "--format", "json", "-i"], &input);
    let told: Value = serde_json::from_str(&text).unwrap();
    let versions =
        told["listings"].as_array().unwrap().iter().flat_map(|listing| listing["versions"].as_array().unwrap());
    let line = |call: &Value| {
        let indent = "  ".repeat(call["depth"].as_u64().unwrap() as usize);
        format!("{indent}@ {} {}", call["bytecode"], call["function"].as_str().unwrap())
    };
    let tree =
        |version: &Value| version["inlined_calls"].as_array().into_iter().flatten().map(line).collect::<Vec<_>>();
    let expected: Vec<Vec<String>> = versions.map(tree).collect();
    let mut lines = page.texts("code/expanded").into_iter();
    let counts = page.numbers("code/listing.expanded").into_iter();
    let own = counts.map(|count| lines.by_ref().take(count as usize).collect::<Vec<_>>());
    let own: Vec<Vec<String>> = own.filter(|lines| !lines.is_empty()).collect();
    assert!(own.len() > 7, "{}", own.len());
    for lines in &own {
        assert!(expected.contains(lines), "{lines:?}");
    }
    assert_eq!(lines.next(), None);
}
