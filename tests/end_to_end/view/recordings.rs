//! Several recordings in one page: each starts at its own zero, in lanes of its own, and a range that is dragged over
//! these counts in that recording alone.

use super::shown::{Shown, Sums, Table};
use serde_json::json;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The start of lanes, from the left edge of the list, the room beside them, and the height of one.
const GUTTER: f64 = 200.0;
const RIGHT: f64 = 24.0;
const LANE: f64 = 22.0;

/// Two recordings of one program, both with process 7, of eight and four seconds, whose clocks are far apart.
struct Two {
    dir: TempDir,
}

impl Two {
    fn new() -> Self {
        let two = Self { dir: tempfile::tempdir().unwrap() };
        for (path, start, samples) in [(two.path("one"), 5_000, 80), (two.path("two"), 100, 40)] {
            std::fs::create_dir(path.parent().unwrap()).unwrap();
            std::fs::write(path, samples_from(start, samples)).unwrap();
        }
        two
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name).join("samples.txt")
    }

    fn page(&self) -> Shown {
        Shown::with(&self.path("two"), &[], &[self.path("one").to_str().unwrap()])
    }
}

/// Samples of two threads, ten a second, as `perf script` prints them.
fn samples_from(start: u32, count: u32) -> String {
    let sample = |at: u32| {
        let (tid, function) = if at.is_multiple_of(3) { (8, "idle_work") } else { (7, "hot_work") };
        let time = format!("{}.{}00000", start + at / 10, at % 10);
        format!("prog 7/{tid} [000] {time}: {} cycles: \n\t  4010 {function}+0x1 (/bin/prog)\n\n", 1000 + at)
    };
    (0..count).map(sample).collect()
}

/// A point over a lane: the share of the time that is shown.
fn place(shown: &mut Shown, share: f64, lane: usize) -> (f64, f64) {
    let [left, top, width, _] = shown.page.edges_of("#time-lanes");
    (left + GUTTER + share * (width - GUTTER - RIGHT), top + (lane as f64 + 0.5) * LANE)
}

fn drag(shown: &mut Shown, lane: usize, from: f64, to: f64) {
    let (from, to) = (place(shown, from, lane), place(shown, to, lane));
    shown.page.drag(from, to);
}

/// The words with which `jitgraft report` counts the same.
fn option(shown: &mut Shown) -> Vec<String> {
    let text = shown.text_of("#time-option");
    text.split_whitespace().map(str::to_owned).collect()
}

fn added(one: &Table, other: &Table) -> Table {
    let mut sum = one.clone();
    for (key, more) in other {
        let of: &mut Sums = sum.entry(key.clone()).or_default();
        (of.own, of.total, of.samples) = (of.own + more.own, of.total + more.total, of.samples + more.samples);
    }
    sum
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn each_recording_starts_at_its_own_zero_in_lanes_of_its_own() {
    let mut shown = Two::new().page();
    let lanes = shown.page.evaluate(
        "Array.from(document.querySelectorAll('.lane'), (lane) => [lane.dataset.kind, lane.querySelector('.lane-name').textContent])",
    );
    let threads = |name: &str| [json!(["recording", name]), json!(["thread", "prog"]), json!(["thread", "prog"])];
    assert_eq!(lanes, json!([threads("one/samples.txt"), threads("two/samples.txt")].concat()));
    let extents = shown.page.evaluate(
        "{ const { profile } = jitgraft.page, rows = profile.rows(0); [0, 1].map((input) => { \
         const times = Array.from(rows.time).filter((_, row) => profile.tracks[rows.track[row]].input === input); \
         return [Math.min(...times), Math.max(...times)] }) }",
    );
    assert_eq!(extents, json!([[0, 7_900_000_000u64], [0, 3_900_000_000u64]]));
    let facts = shown.text_of("#facts");
    assert!(facts.contains("2 recordings, each shown from its own start"), "{facts}");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_range_over_the_lanes_of_a_recording_counts_in_it_alone() {
    let two = Two::new();
    let mut shown = two.page();
    let all = shown.table();
    // The second recording lasts half as long.
    for (lane, name, from, to) in [(3, "two", 0.1, 0.3), (0, "one", 0.4, 0.9), (5, "two", 0.05, 0.2)] {
        drag(&mut shown, lane, from, to);
        let option = option(&mut shown);
        let path = two.path(name);
        assert_eq!((option[0].as_str(), option[1].as_str()), (path.to_str().unwrap(), "--time"), "{option:?}");
        let words: Vec<&str> = option[1..].iter().map(String::as_str).collect();
        shown.against(&path).assert_as_reported(&words);
        let told = shown.text_of("#time-told");
        assert!(told.ends_with(&format!(", {name}/samples.txt")), "{told}");
    }
    shown.assert_reload_shows_the_same();
    shown.page.click_on("#time-clear");
    assert_eq!(shown.table(), all, "without a range all recordings count");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_range_over_the_axis_counts_in_each_recording_from_its_start() {
    let two = Two::new();
    let mut shown = two.page();
    shown.set(&json!({ "ranges": [[1_000_000_000u64, 2_500_000_000u64]] }));
    assert!(option(&mut shown).is_empty(), "no option counts this");
    let told = shown.text_of("#time-told");
    assert!(told.ends_with("of each recording"), "{told}");
    let table = shown.table();
    let of = |shown: &mut Shown, name: &str, time: &str| shown.against(&two.path(name)).reported(&["--time", time]);
    let one = of(&mut shown, "one", "5001,5002.4");
    let other = of(&mut shown, "two", "101,102.4");
    assert_eq!(table, added(&one, &other));
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn threads_of_one_recording_stay_chosen_when_a_range_is_dragged_over_it() {
    let two = Two::new();
    let mut shown = two.page();
    shown.page.click_on("[data-lane='4'] .lane-name");
    let chosen = shown.state("tracks");
    drag(&mut shown, 3, 0.1, 0.3);
    assert_eq!(shown.state("tracks"), chosen);
    drag(&mut shown, 0, 0.1, 0.3);
    assert_ne!(shown.state("tracks"), chosen, "over another recording they are not");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn recordings_of_addresses_are_all_named_and_have_their_compilations_at_their_own_times() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let [first, second] = ["php-recording", "tiers-recording"].map(|name| fixtures.join(name).join("perf.data.zst"));
    let dirs = [&first, &second].map(|recording| recording.parent().unwrap().to_str().unwrap());
    let arguments = dirs.iter().flat_map(|dir| ["--debug-dir", dir]).collect::<Vec<_>>();
    let mut shown = Shown::with(&second, &arguments, &[first.to_str().unwrap()]);
    let lanes = shown.page.evaluate("document.querySelectorAll('.lane[data-kind=recording]').length");
    assert_eq!(lanes, 2, "the one that lacks the event that is shown, too");
    let title = shown.page.text("document.title");
    for (input, recording) in [&first, &second].into_iter().enumerate() {
        assert!(title.contains(recording.to_str().unwrap()), "{title}");
        let tracks = format!(
            "Array.from(jitgraft.page.profile.tracks.keys()).filter((track) => jitgraft.page.profile.tracks[track].input === {input})"
        );
        let tracks = shown.page.evaluate(&tracks);
        // The two were recorded with different events.
        shown.set(&json!({ "tracks": tracks, "part": "jit", "event": input }));
        let mut alone = Shown::of(recording, &arguments).part("jit");
        for facts in ["#jit-facts", "#jit-warm", "#jit-tiers"] {
            assert_eq!(shown.text_of(facts), alone.text_of(facts), "{facts} of {recording:?}");
        }
    }
}
