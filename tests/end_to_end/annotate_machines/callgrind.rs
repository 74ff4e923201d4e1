//! `annotate` of callgrind files: what every instruction cost, against a reader of the format of the tests' own,
//! callgrind_annotate and objdump.

use super::{annotate, hex, json, objdump};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = "#include <stdint.h>\n#include <stdlib.h>\n\
    __attribute__((noinline)) uint64_t hot(uint64_t n) {\n  uint64_t x = 1;\n  for (uint64_t i = 0; i < n; i++)\n    \
    x = x * 31 + (x >> 7);\n  return x;\n}\n\
    __attribute__((noinline)) int down(int n) { return n < 2 ? n : down(n - 1) + down(n - 2); }\n\
    int main(int count, char **words) { return (int)hot(100000) + down(12) + atoi(words[0]) == 7; }\n";

pub(super) fn tool(name: &str, arguments: &[&str], directory: &Path) -> String {
    let mut command = Command::new(name);
    let output = command.args(arguments).current_dir(directory).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{name} is needed: apt-get install gcc valgrind: {error}"));
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The program, compiled and counted.
pub(super) struct Counted {
    pub(super) dir: tempfile::TempDir,
    pub(super) file: PathBuf,
}

pub(super) fn counted() -> Counted {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("callgrind.out.77");
    fs::write(dir.path().join("program.c"), PROGRAM).unwrap();
    tool("gcc", &["-O1", "-g", "program.c", "-o", "program"], dir.path());
    let flags = ["--tool=callgrind", "--dump-instr=yes", "--cache-sim=yes", "--callgrind-out-file=callgrind.out.77"];
    tool("valgrind", &[&flags[..], &["./program"]].concat(), dir.path());
    Counted { dir, file }
}

/// Self costs by object and address, and the totals that the file gives.
#[derive(Default)]
pub(super) struct Costs {
    events: Vec<String>,
    by_address: BTreeMap<(String, u64), Vec<u64>>,
    totals: Vec<u64>,
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// Adds cost by cost.
fn add(sum: &mut Vec<u64>, costs: &[u64]) {
    sum.resize(sum.len().max(costs.len()), 0);
    sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
}

/// Reads a file of valgrind's with `positions: instr line`. The line after `calls=` and jumps is not a self cost.
fn read(text: &str) -> Costs {
    let (mut costs, mut objects) = (Costs::default(), HashMap::new());
    let (mut object, mut base, mut lines) = (String::new(), 0, text.lines());
    while let Some(line) = lines.next() {
        if let Some(events) = line.strip_prefix("events: ") {
            costs.events = events.split_whitespace().map(str::to_owned).collect();
        } else if let Some(totals) = line.strip_prefix("totals: ") {
            add(&mut costs.totals, &numbers(totals));
        } else if let Some((word, name)) = line.split_once("ob=").filter(|(word, _)| matches!(*word, "" | "c")) {
            let (id, name) = name.split_once(' ').unwrap_or((name, ""));
            let known = objects.entry(id.to_owned()).or_insert_with(|| name.to_owned());
            if word.is_empty() {
                object = known.clone();
            }
        } else if ["calls=", "jump=", "jcnd="].iter().any(|word| line.starts_with(word)) {
            lines.next();
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let mut words = line.split_whitespace();
            let place = words.next().unwrap();
            base = match place.split_at(1) {
                ("*", _) => base,
                ("+", more) => base + more.parse::<u64>().unwrap(),
                ("-", less) => base - less.parse::<u64>().unwrap(),
                _ => u64::from_str_radix(place.strip_prefix("0x").unwrap(), 16).unwrap(),
            };
            let own: Vec<u64> = words.skip(1).map(|word| word.parse().unwrap()).collect();
            add(costs.by_address.entry((object.clone(), base)).or_default(), &own);
        }
    }
    costs
}

impl Costs {
    fn sum(&self) -> Vec<u64> {
        let mut sum = Vec::new();
        self.by_address.values().for_each(|costs| add(&mut sum, costs));
        sum
    }
}

/// The cost, by the names of the events.
fn told(of: &Value, events: &[String]) -> Vec<u64> {
    let told = events.iter().map(|event| of["costs"][event]["weight"].as_u64().unwrap_or(0)).collect::<Vec<_>>();
    let end = told.iter().rposition(|cost| *cost > 0).map_or(0, |last| last + 1);
    told[..end].to_vec()
}

/// Zeros at the end are not written.
fn trimmed(costs: Option<&Vec<u64>>) -> Vec<u64> {
    let mut costs = costs.cloned().unwrap_or_default();
    while costs.last() == Some(&0) {
        costs.pop();
    }
    costs
}

pub(super) fn list<'a>(of: &'a Value, key: &str) -> &'a Vec<Value> {
    of[key].as_array().unwrap_or_else(|| panic!("{key}: {of:.300}"))
}

/// Holds each instruction of the listings against the costs of an object; gives how many have costs.
fn compare<'a>(listings: impl Iterator<Item = &'a Value>, object: &str, costs: &Costs) -> usize {
    let mut compared = 0;
    for listing in listings {
        let mut sum = Vec::new();
        for instruction in list(listing, "instructions") {
            let own = costs.by_address.get(&(object.to_owned(), hex(&instruction["address"])));
            let own = trimmed(own);
            assert_eq!(told(instruction, &costs.events), own, "{} {instruction}", listing["name"]);
            compared += usize::from(!own.is_empty());
            add(&mut sum, &own);
        }
        assert_eq!(told(listing, &costs.events), trimmed(Some(&sum)), "{}", listing["name"]);
    }
    compared
}

fn run(arguments: &[&str], file: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(arguments).arg(file).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn each_instruction_costs_what_the_file_states_and_all_cost_what_callgrind_annotate_states() {
    let Counted { dir, file } = counted();
    let costs = read(&fs::read_to_string(&file).unwrap());
    let all = json(&["."], &file);
    let events = list(&all, "events");
    let totals: Vec<u64> = events.iter().map(|event| event["weight"].as_u64().unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert!(names.starts_with(&["Ir", "Dr", "Dw"]), "{names:?}");
    assert_eq!(costs.totals, costs.sum());
    let known: Vec<u64> = costs.totals.iter().copied().filter(|total| *total > 0).collect();
    assert_eq!(totals, known);
    // Its functions, not its `PROGRAM TOTALS`: valgrind's `summary:` may have a few instructions that it booked
    // nowhere.
    let other = tool("callgrind_annotate", &["--auto=no", "--threshold=100", "callgrind.out.77"], dir.path());
    let rows = other.lines().filter(|line| line.contains(':') && !line.contains("PROGRAM"));
    let other = rows.filter_map(|row| row.split_whitespace().next()?.replace(',', "").parse::<u64>().ok());
    assert_eq!(totals[0], other.sum::<u64>());
    assert!(events.iter().all(|event| event["precision"] == "exact" && event.get("samples").is_none()));

    let mut functions = Vec::new();
    list(&all, "functions").iter().for_each(|function| add(&mut functions, &told(function, &costs.events)));
    assert_eq!(functions, trimmed(Some(&costs.totals)), "every cost is some function's");

    let own = dir.path().join("program").canonicalize().unwrap().to_str().unwrap().to_owned();
    let is_own = |listing: &&Value| listing["module"] == own.as_str() && listing.get("instructions").is_some();
    assert!(compare(list(&all, "listings").iter().filter(is_own), &own, &costs) > 40);
    let main = list(&all, "listings").iter().find(|listing| listing["name"] == "main").unwrap();
    let call = list(main, "instructions").iter().find(|one| one["target"]["function"] == "hot").unwrap();
    assert_eq!(call["costs"]["Ir"]["weight"], 1, "what a call cost inside is the callee's: {call}");
}

#[test]
fn instructions_are_objdumps_and_lines_those_of_the_source() {
    let Counted { dir, file } = counted();
    for name in ["hot", "down", "main"] {
        let all = json(&[&format!("^{name}$")], &file);
        let [listing] = &list(&all, "listings")[..] else { panic!("{name}: {all:.300}") };
        assert!(objdump::compare(&[listing]) > 5, "{name}");
        let flags = ["-d", "--no-show-raw-insn", &format!("--disassemble={name}"), "program"];
        let text = tool("objdump", &flags, dir.path());
        let rows = text.lines().filter_map(|line| line.split_once(":\t"));
        let theirs: Vec<(u64, String)> = rows
            .map(|(address, text)| (u64::from_str_radix(address.trim(), 16).unwrap(), objdump::normal(text)))
            .collect();
        let instructions = list(listing, "instructions");
        let ours: Vec<(u64, String)> = instructions
            .iter()
            .map(|one| (hex(&one["address"]), objdump::normal(one["text"].as_str().unwrap())))
            .collect();
        assert_eq!(ours, theirs, "{name}");
        if name == "hot" {
            let looped = instructions.iter().filter(|one| one["costs"]["Ir"]["weight"] == 100_000);
            let sources: Vec<&str> = looped.filter_map(|one| one["source"].as_str()).collect();
            assert!(sources.iter().any(|source| source.contains("x * 31")), "{sources:?}");
        }
    }
}

#[test]
fn a_missing_or_replaced_file_is_listed_with_its_costs() {
    let Counted { dir, file } = counted();
    let before = json(&["^hot$"], &file);
    let listing = &list(&before, "listings")[0];
    let code = list(listing, "instructions").iter().map(|one| one["bytes"].as_str().unwrap()).collect::<String>();
    let code: Vec<u8> =
        (0..code.len()).step_by(2).map(|at| u8::from_str_radix(&code[at..at + 2], 16).unwrap()).collect();
    let program = dir.path().join("program");
    let mut image = fs::read(&program).unwrap();
    let at = image.windows(code.len()).position(|window| window == code).unwrap();
    // Fillers of seven bytes.
    let fillers = [0x0f, 0x1f, 0x80, 0, 0, 0, 0].into_iter().cycle();
    image[at..at + code.len()].iter_mut().zip(fillers).for_each(|(byte, filler)| *byte = filler);
    fs::remove_file(&program).unwrap();
    for (image, why) in [(Some(&image), "not the code that ran"), (None, "its file is missing")] {
        image.iter().for_each(|image| fs::write(&program, image).unwrap());
        let all = json(&["^hot$"], &file);
        let listing = &list(&all, "listings")[0];
        assert!(listing["missing"].as_str().is_some_and(|said| said.contains(why)), "{listing}");
        assert_eq!((&all["events"], &listing["costs"]), (&before["events"], &before["listings"][0]["costs"]));
        image.iter().for_each(|_| fs::remove_file(&program).unwrap());
    }
}

/// The bytes of a file of `fixtures/callgrind-jit`.
pub(super) fn unpacked(name: &str) -> Vec<u8> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/callgrind-jit");
    zstd::decode_all(&fs::read(fixtures.join(name)).unwrap()[..]).unwrap()
}

/// A recording with its dump, where no file of the system is.
pub(super) fn jitted(name: &str, pid: u32) -> (tempfile::TempDir, PathBuf, Costs) {
    let (dir, profile) = (tempfile::tempdir().unwrap(), unpacked(&format!("{name}.callgrind.zst")));
    let file = dir.path().join(format!("callgrind.out.{pid}"));
    fs::write(&file, &profile).unwrap();
    fs::write(dir.path().join(format!("jit-{pid}.dump")), unpacked(&format!("{name}.dump.zst"))).unwrap();
    (dir, file, read(&String::from_utf8(profile).unwrap()))
}

#[test]
fn code_of_a_jit_is_that_of_its_dump_and_its_costs_are_exact() {
    let (dir, file, costs) = jitted("php-tracing", 560);
    let symfs = format!("--symfs={}", dir.path().display());
    let all = json(&[&symfs, "."], &file);
    assert_eq!(all["events"][0]["weight"].as_u64(), Some(costs.sum()[0]));
    let is_listed = |listing: &&Value| listing.get("instructions").is_some();
    let listed: Vec<&Value> = list(&all, "listings").iter().filter(is_listed).collect();
    assert!(listed.iter().all(|listing| listing["versions"][0]["category"] == "JIT"));
    assert!(compare(listed.iter().copied(), "???", &costs) > 300);
    assert!(objdump::compare(&listed) > 500);
    // Found by other means: see the table of the format's notes in fixtures/callgrind-jit.
    let of = |name: &str| list(&all, "functions").iter().find(|function| function["name"] == name).unwrap();
    assert_eq!(of("TRACE-2$collatz$3")["costs"]["Ir"]["weight"], 3_924_297);
    let missing: Vec<&Value> = list(&all, "listings").iter().filter(|listing| !is_listed(listing)).collect();
    assert!(missing.iter().all(|listing| !listing["missing"].as_str().unwrap().is_empty()));
    let mut sum = Vec::new();
    listed.iter().chain(&missing).for_each(|listing| add(&mut sum, &told(listing, &costs.events)));
    assert_eq!(sum, costs.sum());

    // The file with names, its object beside it, states the same.
    let named = dir.path().join("named.out");
    assert!(run(&["callgrind", "-o", named.to_str().unwrap()], &file).status.success());
    let again = json(&["^TRACE-2"], &named);
    let instructions = |of: &Value| {
        let listing = list(of, "listings").iter().find(|listing| listing["name"] == "TRACE-2$collatz$3").cloned();
        let row = |one: &Value| (one["address"].clone(), one["text"].clone(), one["costs"].clone());
        list(&listing.unwrap(), "instructions").iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(instructions(&again), instructions(&all));
}

#[test]
fn moarvms_raw_code_is_found_as_the_command_callgrind_finds_it() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/callgrind-jit");
    let (dir, open) = (tempfile::tempdir().unwrap(), |name: &str| fs::File::open(fixtures.join(name)).unwrap());
    let profile = zstd::decode_all(open("moarvm-blocking.callgrind.zst")).unwrap();
    let file = dir.path().join("callgrind.out.1799");
    fs::write(&file, &profile).unwrap();
    fs::copy(fixtures.join("moarvm-blocking.map"), dir.path().join("perf-1799.map")).unwrap();
    let symfs = format!("--symfs={}", dir.path().display());
    let names_only = json(&[&symfs, "."], &file);
    assert!(list(&names_only, "listings").iter().all(|listing| listing.get("instructions").is_none()));
    let tar = zstd::decode_all(open("moarvm-blocking.code.tar.zst")).unwrap();
    fs::write(dir.path().join("code.tar"), tar).unwrap();
    tool("tar", &["xf", "code.tar"], dir.path());
    let code = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    fs::rename(code, dir.path().join("moar-jit.1799")).unwrap();
    let all = json(&[&symfs, "."], &file);
    let is_listed = |listing: &&Value| listing.get("instructions").is_some();
    let listed: Vec<&Value> = list(&all, "listings").iter().filter(is_listed).collect();
    let costs = read(&String::from_utf8(profile).unwrap());
    assert!(listed.len() > 30, "{}", listed.len());
    assert!(compare(listed.into_iter(), "???", &costs) > 1000);
    assert_eq!(all["events"], names_only["events"]);
}

#[test]
fn texts_show_costs_and_no_samples() {
    let (dir, file, _) = jitted("php-tracing", 560);
    let symfs = format!("--symfs={}", dir.path().display());
    let text = annotate(&[&symfs], &file);
    assert!(text.starts_with("Ir: 12,910,604 Ir. Costs are exact, counted per instruction.\n"), "{text:.300}");
    assert!(text.contains("Ir 30.40% (3,924,297)") && text.contains("instructions without costs"), "{text:.900}");
    assert!(!text.contains("sample"));
    let by_line = annotate(&[&symfs, "--by", "line", "--merge"], &file);
    assert!(by_line.contains("3,924,297") && !by_line.contains("sample"), "{by_line:.600}");
}

#[test]
fn negative_costs_are_listed_with_their_signs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("callgrind.out.9997");
    let text = "version: 1\ncreator: other\npid: 9997\npositions: instr line\nevents: Ir Dr\n\nob=(1) ???\nfl=(1) ???\n\
        fn=(1) 0x0000000000001000\n0x1000 1 -10 4\n+4 1 3 -2\ncfn=(2) 0x0000000000001100\ncalls=2 0x1100 0\n* * -7 .\n\n\
        fn=(2)\n0x1100 0 -7 .\n0x1104 0 20\n\ntotals: 6 2\n";
    fs::write(&file, text).unwrap();
    fs::write(dir.path().join("perf-9997.map"), "1000 40 f\n1100 40 g\n").unwrap();
    let text = annotate(&[], &file);
    assert!(text.starts_with("Ir: 6 Ir. ") && text.contains("\nDr: 2 Dr. "), "{text}");
    for expected in ["Ir 216.67% (13)\n", "Ir -116.67% (-7) · Dr 100.00% (2)\n", "Ir -233.33% (-14) · Dr 100.00% (2)\n"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_profile_without_addresses_states_how_to_get_them_and_filters_of_samples_are_refused() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let output = run(&["annotate", "-i"], &fixtures.join("callgrind-small/input.callgrind"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("valgrind --tool=callgrind --dump-instr=yes"), "{said}");
    let (_dir, file, _) = jitted("php-tracing", 560);
    for (flags, word, status) in [(["--pid", "560"], "filter", 2), (["--event", "Dr"], "the input has Ir", 1)] {
        let output = run(&["annotate", flags[0], flags[1], "-i"], &file);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(status) && said.contains(word), "{said}");
    }
}
