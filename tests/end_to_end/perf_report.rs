//! `report` against `perf report`: the same functions of the same modules have the same share.
//!
//! Recordings are made here, by the installed perf. To compare any other ones, give them in `JITGRAFT_RECORDINGS`,
//! separated by colons: injected ones, for perf is to know the names. `JITGRAFT_PERF` is the perf to ask,
//! `JITGRAFT_OPTION` an option for both: `--no-demangle`, where they spell names in two ways.

use crate::support::tool;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tool::run;

/// A row of perf's table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    comm: String,
    dso: String,
    symbol: String,
}

/// The share of each row. An unnamed function is not a row: perf writes its address.
type Shares = BTreeMap<Key, f64>;

/// Rows of fewer per cent are not compared.
const LEAST: f64 = 0.5;

/// A character that is in no name.
const SEPARATOR: char = '\x01';

fn option() -> Option<String> {
    std::env::var("JITGRAFT_OPTION").ok()
}

/// perf's report of the first event: `90090090<sep>comm<sep>dso<sep>[.] symbol`. Percentages are worked out from
/// periods: a function that was compiled several times has several rows, each of which perf rounds.
fn theirs(data: &str, dir: &Path) -> Shares {
    let perf = std::env::var("JITGRAFT_PERF").unwrap_or_else(|_| "perf".to_owned());
    let separator = SEPARATOR.to_string();
    let mut arguments = vec!["report", "-i", data, "--stdio", "--no-children", "--no-inline", "-g", "none"];
    arguments.extend(["-F", "period,comm,dso,sym", "-t", &separator]);
    let option = option();
    arguments.extend(option.as_deref());
    let text = run(&perf, &arguments, dir);
    let (mut whole, mut rows) = (None, Vec::new());
    for line in text.lines() {
        let sum = line.strip_prefix("# Event count (approx.): ").map(|sum| sum.trim().parse::<f64>().unwrap());
        if sum.is_some_and(|sum| whole.replace(sum).is_some()) {
            break;
        }
        let cells: Vec<&str> = line.split(SEPARATOR).map(str::trim).collect();
        let ([period, comm, dso, symbol], false) = (&cells[..], line.starts_with('#')) else { continue };
        // The mark before the name gives the level: `[.] `, `[k] `.
        let symbol = symbol.split_once("] ").map_or(*symbol, |(_, symbol)| symbol).to_owned();
        let share = 100.0 * period.parse::<f64>().unwrap() / whole.unwrap();
        rows.push((Key { comm: (*comm).to_owned(), dso: (*dso).to_owned(), symbol }, share));
    }
    summed(rows.into_iter())
}

fn ours(data: &str, dir: &Path) -> Shares {
    let mut arguments = vec!["report", "--sort", "comm,dso,sym", "--no-inline", "--addrs", "--format", "json", data];
    let option = option();
    arguments.extend(option.as_deref());
    let text = run(env!("CARGO_BIN_EXE_jitgraft"), &arguments, dir);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let rows = rows.iter().map(|row| {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let module = text("module");
        let dso = module.rsplit('/').next().unwrap().to_owned();
        (Key { comm: text("comm"), dso, symbol: text("symbol") }, row["self%"].as_f64().unwrap())
    });
    summed(rows)
}

/// Two files of one name, in two directories, are one.
fn summed(rows: impl Iterator<Item = (Key, f64)>) -> Shares {
    let mut shares = Shares::new();
    let named = rows.filter(|(key, _)| !key.symbol.starts_with("0x"));
    named.for_each(|(key, share)| *shares.entry(key).or_default() += share);
    shares
}

/// Rows of either that the other does not have, or has with another share.
fn differences(ours: &Shares, theirs: &Shares) -> Vec<String> {
    let heavy = ours.iter().chain(theirs).filter(|(_, share)| **share >= LEAST).map(|(key, _)| key);
    let keys: BTreeSet<&Key> = heavy.collect();
    let share = |shares: &Shares, key: &Key| shares.get(key).copied().unwrap_or(0.0);
    let differs = |key: &&Key| (share(ours, key) - share(theirs, key)).abs() > 0.01;
    let told = |key: &Key| format!("{key:?}: {:.2} here, {:.2} there", share(ours, key), share(theirs, key));
    keys.into_iter().filter(differs).map(told).collect()
}

/// The number of functions that were compared, and what differs.
fn compared(data: &Path, dir: &Path) -> (usize, Vec<String>) {
    let data = data.to_str().unwrap();
    let (ours, theirs) = (ours(data, dir), theirs(data, dir));
    let different = differences(&ours, &theirs);
    let compared = ours.values().filter(|share| **share >= LEAST).count();
    println!("{data}: {compared} named functions of {LEAST} % or more, {} differ", different.len());
    (compared, different)
}

fn agrees(data: &Path, dir: &Path) {
    let (compared, different) = compared(data, dir);
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(compared > 0, "no function was compared");
}

/// A program of `tests/programs`, built and recorded with its arguments.
fn record(name: &str, arguments: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let programs = format!("{}/tests/programs", env!("CARGO_MANIFEST_DIR"));
    let source = format!("{programs}/{name}.c");
    let frames = ["-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];
    run("gcc", &[&["-O2", "-o", name, &source], &frames[..]].concat(), dir.path());
    let record = ["record", "-q", "-k", "mono", "-e", "cpu-clock:u", "-F", "4000", "-g", "-o", "perf.data", "--"];
    let program = format!("./{name}");
    run("perf", &[&record[..], &[&program], arguments].concat(), dir.path());
    dir
}

#[test]
fn native_functions_have_the_share_that_perf_shows() {
    let dir = record("deep", &["150"]);
    agrees(&dir.path().join("perf.data"), dir.path());
}

#[test]
fn injected_jit_functions_have_the_share_that_perf_shows() {
    let script = format!("{}/tests/programs/tiers.lisp", env!("CARGO_MANIFEST_DIR"));
    let dir = record("tiers", &[&script]);
    let ours = env!("CARGO_BIN_EXE_jitgraft");
    run(ours, &["inject", "-i", "perf.data", "-o", "injected.data"], dir.path());
    agrees(&dir.path().join("injected.data"), dir.path());
}

#[test]
fn recordings_that_are_named_agree() {
    let recordings = std::env::var("JITGRAFT_RECORDINGS").unwrap_or_default();
    let mut wrong = Vec::new();
    for data in recordings.split(':').filter(|data| !data.is_empty()) {
        let (compared, different) = compared(Path::new(data), Path::new("."));
        assert!(compared > 0, "{data}: no function");
        wrong.extend(different.into_iter().map(|different| format!("{data}: {different}")));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
