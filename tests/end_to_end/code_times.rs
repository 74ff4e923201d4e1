//! Code that ran where other code was logged later has no name: programs that use one place of memory twice, recorded
//! by perf, which states itself what was sampled when.

use crate::support::tool;

use std::path::Path;
use std::process::Command;
use tool::run;

/// The number of samples in the code before it was logged, and since.
struct Sampled {
    before: u64,
    since: u64,
}

/// Records the program, and counts by perf's own listing.
fn record(between: &str, dir: &Path) -> Sampled {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/reload.c");
    run("gcc", &["-O1", "-o", "reload", source], dir);
    let record = ["record", "-q", "-k", "mono", "-e", "cpu-clock:u", "-F", "2000", "-g", "-o", "perf.data"];
    let said = run("perf", &[&record[..], &["./reload", between]].concat(), dir);
    let words: Vec<&str> = said.split_whitespace().collect();
    let hex = |word: &str| u64::from_str_radix(word, 16).unwrap();
    let (start, size, logged) = (hex(words[0]), hex(words[1]), words[2].parse::<u64>().unwrap());
    let listed = run("perf", &["script", "-i", "perf.data", "-G", "--ns", "-F", "time,ip"], dir);
    let (mut before, mut since) = (0, 0);
    for line in listed.lines() {
        let (time, ip) = line.trim().split_once(':').unwrap();
        let (seconds, nanos) = time.split_once('.').unwrap();
        let time = seconds.parse::<u64>().unwrap() * 1_000_000_000 + nanos.parse::<u64>().unwrap();
        if (start..start + size).contains(&hex(ip.trim())) {
            *(if time < logged { &mut before } else { &mut since }) += 1;
        }
    }
    assert!(before > 50 && since > 50, "{between}: {before} before, {since} since");
    Sampled { before, since }
}

fn check(between: &str) {
    let dir = tempfile::tempdir().unwrap();
    let sampled = record(between, dir.path());
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
        .args(["collapse", "--annotate", "jit", "--weight", "samples", "perf.data"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let (folded, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let named = folded.lines().filter(|line| line.contains(";logged_[j] "));
    let named: u64 = named.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert_eq!(named, sampled.since, "{between}\n{folded}");
    let counted = format!("{} JIT frames were sampled before their code was logged", sampled.before);
    assert!(said.contains(&counted), "{between}: {counted}?\n{said}");
    // perf shows the same for the injected recording.
    let inject = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
        .args(["inject", "-q", "-i", "perf.data", "-o", "injected.data"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(inject.status.success(), "{}", String::from_utf8_lossy(&inject.stderr));
    let shown = run("perf", &["script", "-i", "injected.data", "-G", "-F", "ip,sym"], dir.path());
    let shown = shown.lines().filter(|line| line.trim().ends_with(" logged")).count() as u64;
    assert_eq!(shown, sampled.since, "{between}, injected");
}

#[test]
fn memory_that_is_mapped_anew_is_not_named_by_what_comes_there() {
    check("remap");
}

#[test]
fn code_that_is_replaced_in_place_is_not_named_by_what_replaces_it() {
    check("rewrite");
}

#[test]
fn code_before_an_exec_is_not_named_by_a_dump_of_the_program_behind_it() {
    check("exec");
}

#[test]
fn code_before_an_exec_is_not_named_by_a_map_of_the_program_behind_it() {
    check("exec-map");
}
