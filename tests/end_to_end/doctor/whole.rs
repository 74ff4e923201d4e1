//! The problems of a recording as a whole, and the report about them.

use super::scene::{JIT, PID, SAMPLES, START, Scene, at, doctor, map, problems};
use crate::support::perf_data::{CALLCHAIN, CONTEXT_KERNEL, Event, KERNEL, Mmap, Stamp, USUAL};
use serde_json::Value;
use std::fs;

fn app(event: Event, samples: u64) -> Scene {
    let mut scene = Scene::with_event("/usr/bin/app", event);
    scene.samples(samples, &[&[at(0), at(1)]]);
    scene.write(&format!("perf-{PID}.map"), map(JIT, &["a", "main"]));
    scene
}

#[test]
fn without_samples_nothing_can_be_reported() {
    app(Event::usual(), 0).first("no-samples");
}

#[test]
fn a_few_samples_are_chance() {
    let (cause, remedy) = app(Event::usual(), 30).first("few-samples");
    assert!(cause.contains("only 30 samples"), "{cause}");
    // It was recorded as often as is advised.
    assert_eq!(remedy, "record for longer");
}

#[test]
fn samples_without_chains_are_reported_to_have_none() {
    let event = Event { sample_type: USUAL & !CALLCHAIN, ..Event::usual() };
    let (_, remedy) = app(event, SAMPLES).first("no-call-chains");
    assert!(remedy.contains("call chains"), "{remedy}");
}

#[test]
fn lost_samples_are_counted() {
    let mut scene = app(Event::usual(), SAMPLES);
    // PERF_RECORD_LOST_SAMPLES, with the trailer of other records.
    let body = [300u64, u64::from(PID) << 32 | u64::from(PID), 1];
    scene.data.record(13, 0, &body.map(u64::to_le_bytes).concat());
    let (cause, _) = scene.first("samples-lost");
    assert!(cause.contains("lost 300 samples"), "{cause}");
}

#[test]
fn a_recording_that_is_cut_or_unfinished_is_damaged() {
    let scene = app(Event::usual(), SAMPLES);
    let whole = fs::read(scene.record()).unwrap();
    let first = |bytes: &[u8]| {
        let path = scene.write("broken.data", bytes);
        let output = doctor(&["--format", "json"], &path);
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        let finding = &list[0]["findings"][0];
        (finding["problem"].as_str().unwrap().to_owned(), finding["cause"].as_str().unwrap().to_owned())
    };
    let (problem, cause) = first(&whole[..whole.len() / 2]);
    assert_eq!(problem, "recording-damaged");
    assert!(cause.contains("bytes of records are missing"), "{cause}");
    // A recorder that is killed has not written the size of the data, at 48.
    let killed = [&whole[..48], &[0; 8], &whole[56..]].concat();
    let (problem, cause) = first(&killed);
    assert_eq!(problem, "recording-damaged");
    assert!(cause.contains("killed"), "{cause}");
}

#[test]
fn findings_make_it_fail_only_where_that_is_requested() {
    let sound = app(Event::usual(), SAMPLES).record();
    let scene = app(Event::usual(), 30);
    let broken = scene.record();
    let code = |args: &[&str], path: &std::path::Path| doctor(args, path).status.code();
    assert_eq!(code(&["--exit-code"], &broken), Some(1));
    assert_eq!(code(&[], &broken), Some(0));
    let _ = sound;
    let scene = app(Event::usual(), SAMPLES);
    let sound = scene.record();
    assert_eq!(code(&["--exit-code"], &sound), Some(0));
    let said = String::from_utf8(doctor(&[], &sound).stdout).unwrap();
    assert!(said.contains("No problems found."), "{said}");
}

#[test]
fn every_key_of_the_json_is_there() {
    let scene = app(Event::usual(), SAMPLES);
    let output = doctor(&["--format", "json"], &scene.record());
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let one = &list[0];
    assert_eq!((&one["what"], &one["samples"], &one["frames"]), (&"recording".into(), &400.into(), &800.into()));
    assert_eq!((&one["named_frames"], &one["stacks"]["by"]), (&800.into(), &"call-chains".into()));
    let process = &one["processes"][0];
    assert_eq!((&process["pid"], &process["named_jit_frames"]), (&PID.into(), &800.into()));
    let source = &process["sources"][0];
    assert_eq!((&source["kind"], &source["state"]), (&"perf-map".into(), &"loaded".into()));
    assert_eq!((&source["codes"], &source["named_frames"], &source["torn"]), (&2.into(), &800.into(), &false.into()));
}

#[test]
fn names_do_nothing_to_a_terminal() {
    let mut scene = Scene::of("/usr/bin/no\u{1b}[31mde");
    scene.samples(SAMPLES, &[&[at(0), at(1)]]);
    let said = doctor(&[], &scene.record()).stdout;
    assert!(!said.contains(&0x1b), "{}", String::from_utf8_lossy(&said));
    assert_eq!(problems(&scene.findings())[0], "no-dump-or-map");
}

/// Samples in the kernel, which is claimed to be at this address.
fn kernel(at: u64) -> Scene {
    const ADDR: u64 = 0xffff_ffff_8000_1000;
    let mut scene = Scene::of("/usr/bin/app");
    scene.data = scene.data.without_records();
    scene.data.kernel_mmap(Stamp::default(), Mmap { addr: at, len: !at, pgoff: at, path: "[kernel.kallsyms]_text" });
    for number in 0..SAMPLES {
        let stamp = Stamp::new(PID, START + number * 1_000_000);
        scene.data.sample_of(0, KERNEL, stamp, ADDR, &[CONTEXT_KERNEL, ADDR]);
    }
    scene
}

#[test]
fn a_kernel_that_was_hidden_from_the_recorder_is_distinguished_from_one_of_another_machine() {
    let (_, remedy) = kernel(0).first("kernel-symbols");
    assert!(remedy.contains("kernel.kptr_restrict=0"), "{remedy}");
    let (_, remedy) = kernel(0xffff_ffff_8000_0000).first("kernel-symbols");
    assert!(remedy.contains("--kallsyms"), "{remedy}");
}
