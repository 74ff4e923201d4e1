//! Compares the names that perf prints of an injected recording with a brute-force look-up, for any recording:
//!
//! ```text
//! perf script --no-inline --ns -F pid,tid,time,ip,sym,dso -i OUT > out.txt
//! cargo run --release --features tools --example check -- PERF.DATA out.txt [absolute] [before=TXT] PID=jit-PID.dump … PID=perf-PID.map …
//! ```
//!
//! PERF.DATA is the recording before it was injected. `absolute`: the text has run-time addresses (newer perf prints
//! them), which are taken instead of the recording's own: needed with copies of user stacks. `before`: the same text
//! of PERF.DATA, with which the stacks are compared: what became worse, and what is new.
//! Prints a line of numbers each, and what is wrong.

#[path = "../support/truth.rs"]
mod truth;

use std::collections::{BTreeMap, HashMap};
use std::process::ExitCode;
use truth::{Printed, Recording, Truth, judge, judge_printed, read_script};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [data, text, options @ ..] = args.as_slice() else {
        eprintln!("usage: check PERF.DATA SCRIPT.TXT [absolute] [before=TXT] PID=DUMP|MAP …");
        return ExitCode::from(2);
    };
    let recording = recording(data);
    let mut truth = Truth::default();
    let mut before = None;
    for (key, path) in options.iter().filter_map(|option| option.split_once('=')) {
        if key == "before" {
            before = Some(read_script(&read(path)));
            continue;
        }
        let pid = key.parse().unwrap_or_else(|_| panic!("not a process: {key}"));
        let add = if path.ends_with(".map") { Truth::add_map } else { Truth::add_dump };
        add(&mut truth, pid, &read(path));
    }
    truth.add_recording(&recording);
    truth.settle();
    let printed = read_script(&read(text));
    let absolute = options.iter().any(|option| option == "absolute");
    let verdict = if absolute { judge_printed(&truth, &printed) } else { judge(&truth, &recording, &printed) };
    println!(
        "samples {} user {} unresolved {} unresolved_jit {} covered {} right {}",
        printed.len(),
        verdict.user,
        verdict.unresolved,
        verdict.unresolved_jit,
        verdict.covered,
        verdict.right
    );
    if let Some(before) = before {
        let addressed = |text| if absolute { text } else { with_addresses_of(&recording, text) };
        println!("{}", Change::between(&truth, &addressed(before), &addressed(printed)));
    }
    verdict.wrong.iter().for_each(|wrong| println!("wrong: {wrong}"));
    ExitCode::SUCCESS
}

fn read(path: &str) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn recording(path: &str) -> Recording {
    if !std::path::Path::new(path).is_dir() {
        return Recording::read(&read(path));
    }
    let part = |nth: usize| std::fs::read(format!("{path}/data.{nth}")).ok();
    let more: Vec<Vec<u8>> = (0..).map_while(part).collect();
    Recording::read_parts(&read(&format!("{path}/data")), &more)
}

/// Puts the recording's own addresses in the place of those that perf 6.1 prints, which are relative to files.
/// Without copies of user stacks only: else stacks are longer than the recording's chains.
fn with_addresses_of(recording: &Recording, printed: Vec<Printed>) -> Vec<Printed> {
    let addrs: HashMap<_, &[u64]> = recording.samples.iter().map(|one| (one.key(), one.addrs.as_slice())).collect();
    let absolute = |mut sample: Printed| {
        let own = addrs.get(&sample.key()).filter(|own| own.len() == sample.frames.len())?;
        sample.frames.iter_mut().zip(*own).for_each(|(frame, addr)| frame.0 = *addr);
        Some(sample)
    };
    printed.into_iter().filter_map(absolute).collect()
}

/// The way the stacks changed: frame by frame from the innermost one, as far as the addresses are the same.
#[derive(Debug, Default)]
struct Change {
    numbers: BTreeMap<&'static str, u64>,
    /// The places of the new frames without a name.
    unnamed_in: BTreeMap<String, u64>,
    examples: Vec<String>,
}

impl Change {
    fn between(truth: &Truth, before: &[Printed], after: &[Printed]) -> Self {
        let mut this = Self::default();
        let mut old: HashMap<_, Vec<&Printed>> = HashMap::new();
        before.iter().for_each(|sample| old.entry(sample.key()).or_default().push(sample));
        for new in after {
            // More than one sample of a moment: in the order in which they are printed.
            match old.get_mut(&new.key()).filter(|samples| !samples.is_empty()) {
                Some(samples) => this.sample(truth, samples.remove(0), new),
                None => this.count("new_samples", 1),
            }
        }
        this.count("lost_samples", old.values().map(|samples| samples.len() as u64).sum());
        this
    }

    fn count(&mut self, what: &'static str, much: u64) {
        *self.numbers.entry(what).or_default() += much;
    }

    fn example(&mut self, what: &str, sample: &Printed, frame: &(u64, Vec<u8>, Vec<u8>)) {
        if self.examples.len() < 40 {
            let [name, dso] = [&frame.1, &frame.2].map(|text| String::from_utf8_lossy(text));
            let Printed { pid, time, .. } = sample;
            self.examples.push(format!("{what}: pid {pid} time {time} addr {:x} {name:?} ({dso})", frame.0));
        }
    }

    fn sample(&mut self, truth: &Truth, old: &Printed, new: &Printed) {
        let unknown = b"[unknown]";
        let both = old.frames.iter().zip(&new.frames);
        let same = both.take_while(|(old, new)| old.0 == new.0).count();
        for (old_frame, frame) in old.frames.iter().zip(&new.frames).take(same) {
            let covered = truth.name(new.pid, frame.0, new.time).is_some();
            if old_frame.1 == frame.1 || old_frame.1 == unknown || covered {
                continue;
            }
            let what = if frame.1 == unknown { "names_lost" } else { "names_changed" };
            self.count(what, 1);
            self.example(what, old, old_frame);
        }
        let gone = &old.frames[same..];
        if !gone.is_empty() {
            self.count(if same == new.frames.len() { "stacks_shorter" } else { "stacks_other" }, 1);
            let named = gone.iter().filter(|frame| frame.1 != unknown);
            self.count("named_frames_gone", named.clone().count() as u64);
            named.clone().take(1).for_each(|frame| self.example("gone", old, frame));
        }
        for frame in &new.frames[same..] {
            self.count("frames_added", 1);
            if frame.1 == unknown {
                self.count("added_unnamed", 1);
                *self.unnamed_in.entry(String::from_utf8_lossy(&frame.2).into_owned()).or_default() += 1;
                if truth.name(new.pid, frame.0, new.time).is_some() {
                    self.count("added_unnamed_covered", 1);
                    self.example("covered", new, frame);
                }
            }
        }
        self.count("stacks_longer", u64::from(gone.is_empty() && new.frames.len() > same));
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "change:")?;
        self.numbers.iter().try_for_each(|(what, much)| write!(out, " {what} {much}"))?;
        self.unnamed_in.iter().try_for_each(|(file, much)| write!(out, "\nadded without a name: {much} in {file}"))?;
        self.examples.iter().try_for_each(|example| write!(out, "\n{example}"))
    }
}
