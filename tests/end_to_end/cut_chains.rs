//! Call chains that the kernel cut, because it may record no more frames: every output shows that there were more.

use crate::support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::bytes::Order;
use support::perf_data::{
    CALLCHAIN, CONTEXT_KERNEL, CONTEXT_USER, Event, ID, Mmap, Mode, PerfData, Stamp, USER, USUAL,
};

const PID: u32 = 999_077;
/// Its memory for JIT code: functions of 0x100 bytes, one behind the other.
const JIT: u64 = 0x7f00_0000_0000;
const NAMES: &[&str] = &["leaf", "f", "g", "_start"];
/// An address in the kernel without a symbol.
const KERNEL: u64 = 0xffff_ffff_8123_4567;

/// A return address, or the innermost one, in a function.
fn at(name: &str) -> u64 {
    JIT + 0x10 + 0x100 * NAMES.iter().position(|known| *known == name).unwrap() as u64
}

/// A recording in a directory of its own.
struct Scene {
    dir: tempfile::TempDir,
    data: PerfData,
    time: u64,
}

impl Scene {
    /// With events whose chains may have this many frames; 0 is the machine's own limit.
    fn with_limits(limits: &[u16]) -> Self {
        let event = |(&max_stack, (name, id)): (&u16, (&'static str, u64))| Event {
            name,
            max_stack,
            sample_type: USUAL | ID,
            ids: vec![id],
            ..Event::usual()
        };
        let events = limits.iter().zip([("cpu-clock", 1), ("task-clock", 2)]).map(event).collect();
        let mut data = PerfData::with_events(Order::Little, events);
        data.comm(Stamp::new(PID, 1), "app", true);
        data.mmap2(Stamp::new(PID, 2), Mmap { addr: JIT, len: 0x10_0000, pgoff: 0, path: "//anon" });
        let dir = tempfile::tempdir().unwrap();
        let line = |name: &&str| format!("{:x} 100 {name}\n", at(name) - 0x10);
        let map: String = NAMES.iter().map(line).collect();
        fs::write(dir.path().join(format!("perf-{PID}.map")), map).unwrap();
        Self { dir, data, time: 1_000_000_000 }
    }

    /// A sample of an event with this chain, marks and all.
    fn sample(&mut self, event: usize, chain: &[u64]) {
        self.time += 1_000_000;
        let stamp = Stamp { id: event as u64 + 1, ..Stamp::new(PID, self.time) };
        self.data.sample_of(event, USER, stamp, at("leaf"), chain);
    }

    fn record(&self) -> PathBuf {
        self.write("perf.data", &self.data.clone().into_bytes(Mode::File))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn run(&self, words: &str, input: &Path) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.args(words.split(' ')).arg(input).current_dir(self.dir.path()).env("HOME", self.dir.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The number of samples that have each stack.
    fn folded(&self, words: &str, input: &Path) -> BTreeMap<String, u64> {
        let text = self.run(format!("collapse --weight samples {words}").trim(), input);
        let line = |line: &str| {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            (stack.to_owned(), count.parse().unwrap())
        };
        text.lines().map(line).collect()
    }
}

fn stacks<const N: usize>(expected: [(&str, u64); N]) -> BTreeMap<String, u64> {
    expected.into_iter().map(|(stack, count)| (stack.to_owned(), count)).collect()
}

/// An event that may record four frames: two chains that are cut, and two that are not.
fn of_four() -> Scene {
    let mut scene = Scene::with_limits(&[4]);
    let [leaf, f, g, start] = ["leaf", "f", "g", "_start"].map(at);
    scene.sample(0, &[CONTEXT_USER, leaf, f, g, f]);
    scene.sample(0, &[CONTEXT_KERNEL, KERNEL, CONTEXT_USER, leaf, f, g]);
    scene.sample(0, &[CONTEXT_USER, leaf, f, g, start]);
    scene.sample(0, &[CONTEXT_USER, leaf, f, g]);
    scene
}

/// The stacks of [`of_four`].
fn four() -> BTreeMap<String, u64> {
    stacks([
        ("app;[truncated];f;g;f;leaf", 1),
        ("app;[truncated];g;f;leaf;[unknown]", 1),
        ("app;_start;g;f;leaf", 1),
        ("app;g;f;leaf", 1),
    ])
}

#[test]
fn chains_as_long_as_they_may_be_are_cut_unless_they_end_where_threads_begin() {
    let scene = of_four();
    assert_eq!(scene.folded("", &scene.record()), four());
}

#[test]
fn every_export_shows_that_a_chain_was_cut() {
    let scene = of_four();
    let input = scene.record();
    for (format, file) in [("firefox", "a.json"), ("speedscope", "b.json"), ("pprof", "c.pb.gz")] {
        scene.run(&format!("export --to {format} --jit-names raw -o {file}"), &input);
        let read_back = scene.folded("", &scene.dir.path().join(file));
        let cut: u64 =
            read_back.iter().filter(|(stack, _)| stack.contains("[truncated];")).map(|(_, count)| count).sum();
        let whole: Vec<&String> = read_back.keys().filter(|stack| stack.contains("_start;g;f;leaf")).collect();
        assert_eq!((cut, whole.len()), (2, 1), "{format}: {read_back:#?}");
        assert!(!whole[0].contains("[truncated]"), "{format}: {whole:?}");
    }
    for words in ["flamegraph", "report", "export --to csv"] {
        assert!(scene.run(words, &input).contains("[truncated]"), "{words}");
    }
}

#[test]
fn perf_has_no_such_mark_and_neither_has_its_text() {
    let scene = of_four();
    let text = scene.run("script", &scene.record());
    assert!(!text.contains("truncated"), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with('\t')).count(), 4 + 4 + 4 + 3);
}

#[test]
fn a_request_for_fewer_frames_gets_no_more() {
    let scene = of_four();
    let short = stacks([("app;f;leaf", 3), ("app;leaf;[unknown]", 1)]);
    assert_eq!(scene.folded("--max-stack 2", &scene.record()), short);
    assert_eq!(scene.folded("--max-stack 4", &scene.record()), four());
}

#[test]
fn each_event_has_a_limit_of_its_own_and_that_of_the_machine_is_127() {
    let mut scene = Scene::with_limits(&[4, 0]);
    let [leaf, f, g] = ["leaf", "f", "g"].map(at);
    scene.sample(0, &[CONTEXT_USER, leaf, f, g, f]);
    scene.sample(1, &[CONTEXT_USER, leaf, f, g, f]);
    let deep = |frames: usize| [&[CONTEXT_USER, leaf][..], &vec![f; frames - 1]].concat();
    scene.sample(1, &deep(126));
    scene.sample(1, &deep(127));
    let input = scene.record();
    assert_eq!(scene.folded("--event cpu-clock", &input), stacks([("app;[truncated];f;g;f;leaf", 1)]));
    let callers = |count: usize| vec!["f"; count].join(";");
    let expected = [
        ("app;f;g;f;leaf", 1),
        (&*format!("app;{};leaf", callers(125)), 1),
        (&*format!("app;[truncated];{};leaf", callers(126)), 1),
    ];
    assert_eq!(scene.folded("--event task-clock", &input), stacks(expected));
}

/// The kernel counts what it finds on a stack even if that is not an address.
#[test]
fn a_frame_that_looks_like_a_mark_counts_as_a_frame() {
    let mut scene = Scene::with_limits(&[4]);
    let [leaf, f] = ["leaf", "f"].map(at);
    scene.sample(0, &[CONTEXT_USER, leaf, f, u64::MAX, f]);
    assert_eq!(scene.folded("", &scene.record()).keys().next().unwrap(), "app;[truncated];f;f;leaf");
}

#[test]
fn events_without_call_chains_have_no_chains_that_are_cut() {
    let mut scene = Scene::with_limits(&[1]);
    scene.data =
        PerfData::new(Order::Little, Event { sample_type: USUAL & !CALLCHAIN, max_stack: 1, ..Event::usual() });
    scene.data.comm(Stamp::new(PID, 1), "app", true);
    scene.data.mmap2(Stamp::new(PID, 2), Mmap { addr: JIT, len: 0x10_0000, pgoff: 0, path: "//anon" });
    scene.sample(0, &[]);
    assert_eq!(scene.folded("", &scene.record()), stacks([("app;leaf", 1)]));
}

#[test]
fn doctor_counts_the_chains_that_are_shown_as_cut() {
    let mut scene = Scene::with_limits(&[4]);
    let [leaf, f, g, start] = ["leaf", "f", "g", "_start"].map(at);
    for number in 0..400 {
        let outermost = if number % 4 == 0 { f } else { start };
        scene.sample(0, &[CONTEXT_USER, leaf, f, g, outermost]);
    }
    let input = scene.record();
    let shown: u64 = scene
        .folded("", &input)
        .iter()
        .filter(|(stack, _)| stack.contains("[truncated]"))
        .map(|(_, count)| count)
        .sum();
    let told: Value = serde_json::from_str(&scene.run("doctor --format json", &input)).unwrap();
    let finding = &told[0]["findings"][0];
    assert_eq!((&finding["problem"], &finding["samples"]), (&"call-chains-cut".into(), &100.into()), "{told:#}");
    assert_eq!(shown, 100);
    // The chains that end where threads begin are whole: that is all there is to state.
    assert_eq!(told[0]["findings"].as_array().unwrap().len(), 1, "{told:#}");
}

/// The sentence about truncated stacks that a command prints on standard error; empty if it prints none.
fn sentence(scene: &Scene, words: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(words.split(' ')).arg(scene.record()).current_dir(scene.dir.path()).env("HOME", scene.dir.path());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{words}: {said}");
    said.lines().find(|line| line.contains("stacks marked [truncated]")).unwrap_or_default().to_owned()
}

#[test]
fn every_output_says_why_stacks_are_cut() {
    const FILE: u64 = 0x40_0000;
    let [leaf, f, g] = ["leaf", "f", "g"].map(at);
    for (chain, why) in [
        // Nothing is mapped there: the kernel followed registers that are no frame pointers.
        ([leaf, f, 0x1234, 0x5678], "their JIT code keeps no frame pointers"),
        ([leaf, 0x1000, 0x2000, 0x1000], "their JIT code keeps no frame pointers"),
        ([leaf, FILE + 0x10, 0x1234, 0x5678], "jitgraft record --call-graph dwarf"),
        ([leaf, f, g, f], "at most 4 frames"),
    ] {
        let mut scene = Scene::with_limits(&[4]);
        let file = Mmap { addr: FILE, len: 0x1000, pgoff: 0, path: "/nowhere/app" };
        scene.data.mmap2(Stamp::new(PID, 3), file);
        for _ in 0..3 {
            scene.sample(0, &[&[CONTEXT_USER], &chain[..]].concat());
        }
        scene.sample(0, &[CONTEXT_USER, leaf, at("_start")]);
        for words in ["report", "collapse", "flamegraph", "flamegraph --style inferno", "export --to csv"] {
            let said = sentence(&scene, words);
            assert!(said.contains("(75.0% of samples)") && said.contains(why), "{words} {chain:x?}: {said}");
        }
        let quiet = sentence(&scene, "report -q");
        assert_eq!(quiet, "");
        // The picture says it below its title, and at the box.
        for words in ["flamegraph", "flamegraph --no-javascript"] {
            let picture = scene.run(words, &scene.record());
            let document = roxmltree::Document::parse(&picture).unwrap();
            let texts = |tag: &str| {
                let nodes = document.descendants().filter(|node| node.has_tag_name(tag));
                nodes.filter_map(|node| node.text()).map(str::to_owned).collect::<Vec<_>>()
            };
            assert!(texts("text").iter().any(|text| text.contains(why)), "{words}: {picture:.3000}");
            let tips = if words == "flamegraph" { texts("metadata") } else { texts("title") };
            let is_said = |tip: &String| tip.contains("[truncated]") && tip.contains(why);
            assert!(tips.iter().any(is_said), "{words}: {tips:?}");
        }
    }
    // Whole stacks, and a few that are cut, get no such sentence.
    let mut scene = Scene::with_limits(&[4]);
    for _ in 0..200 {
        scene.sample(0, &[CONTEXT_USER, leaf, f, g, at("_start")]);
    }
    scene.sample(0, &[CONTEXT_USER, leaf, f, g, f]);
    assert_eq!(sentence(&scene, "report"), "");
}
