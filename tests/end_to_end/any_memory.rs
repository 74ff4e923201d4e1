//! Maps and dumps name code in memory of any kind: programs that put code there, recorded by perf, which lists itself
//! where the samples are.

use crate::support::effort::is_thorough;
use crate::support::tool::run;
use std::path::Path;
use std::process::Command;

/// Records the program; how many samples are in its code.
fn record(kind: &str, log: &str, dir: &Path) -> u64 {
    let record = ["record", "-q", "-k", "mono", "-e", "cpu-clock:u", "-F", "1000", "-g", "-o", "perf.data"];
    let said = run("perf", &[&record[..], &["./any_memory", kind, log]].concat(), dir);
    let words: Vec<&str> = said.split_whitespace().collect();
    let hex = |word: &str| u64::from_str_radix(word, 16).unwrap();
    let (start, size) = (hex(words[0]), hex(words[1]));
    let listed = run("perf", &["script", "-i", "perf.data", "-G", "-F", "ip"], dir);
    listed.lines().filter(|line| (start..start + size).contains(&hex(line.trim()))).count() as u64
}

fn count_named(dir: &Path, input: &str) -> u64 {
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft"))
        .args(["collapse", "-q", "--weight", "samples", input])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let folded = String::from_utf8_lossy(&output.stdout).into_owned();
    let named =
        folded.lines().filter(|line| line.rsplit_once(' ').is_some_and(|(stack, _)| stack.ends_with(";logged")));
    named.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

#[test]
fn code_is_named_wherever_it_lies() {
    const KINDS: [&str; 10] =
        ["shm", "named-shm", "unlinked", "toggled", "tmpfile", "memfd", "cache", "moved", "data", "bss"];
    let dir = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/any_memory.c");
    run("gcc", &["-O1", "-o", "any_memory", source], dir.path());
    let mut wrong = Vec::new();
    // A quick run tries one of the two logs with each kind of memory.
    let all = KINDS.iter().flat_map(|kind| [(kind, "map"), (kind, "dump")]).enumerate();
    let tried = all.filter(|(at, _)| at % 4 == 0 || at % 4 == 3 || is_thorough());
    for (_, (kind, log)) in tried {
        let sampled = record(kind, log, dir.path());
        let named = count_named(dir.path(), "perf.data");
        if sampled < 5 || named != sampled {
            wrong.push(format!("{kind}, {log}: {named} of {sampled}"));
        }
        let left = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        for file in left.filter(|file| file.file_name().to_string_lossy().starts_with("jitgraft-test-")) {
            std::fs::remove_file(file.path()).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
