//! Inputs that the fuzzer kept (tests/fuzz/corpus) go through their target once more: those that reached something new
//! when they were found, and those that once did harm. A quick run takes every fifteenth; what once did harm has a
//! test of its own beside the reader, too.

use super::{Run, TARGETS, archive};
use crate::test_effort::step;
use std::collections::BTreeSet;

#[test]
fn inputs_of_the_fuzzer_do_no_harm() {
    // Side by side, each target in its order: the longest are a few that run whole commands.
    let next = std::sync::Mutex::new(TARGETS.iter());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some((name, run)) = next.lock().unwrap().next() else { break };
                    replay(name, *run);
                }
            });
        }
    });
}

fn replay(target: &str, run: Run) {
    let inputs = archive::inputs(target);
    assert!(!inputs.is_empty(), "the corpus of {target} is empty");
    for (name, bytes) in inputs.into_iter().step_by(step(15)) {
        let done = std::panic::catch_unwind(|| run(&bytes));
        assert!(done.is_ok(), "{target} panicked at its input {name}");
    }
}

#[test]
fn every_corpus_is_of_a_target() {
    let of = |name: &str| name.strip_suffix(".tar.zst").map(str::to_owned);
    let files = std::fs::read_dir(archive::folder()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let corpora: BTreeSet<String> = names.filter_map(|name| of(&name)).collect();
    let targets = TARGETS.iter().map(|(name, _)| (*name).to_owned());
    assert_eq!(corpora, targets.collect());
}
