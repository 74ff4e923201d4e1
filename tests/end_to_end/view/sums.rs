//! The sums that the page shows are those of `jitgraft report`, for every sort of input and with every filter.

use super::shown::Shown;
use serde_json::json;

/// One input of each sort: recordings of every runtime, and what other profilers write.
const INPUTS: [&str; 15] = [
    "tiers-recording/perf.data.zst",
    "recording-node/perf.data.zst",
    "recording-java/perf.data.zst",
    "recording-wasmtime/perf.data.zst",
    "recording-rust/perf.data.zst",
    "recording-cpp/perf.data.zst",
    "php-recording/perf.data.zst",
    "trace-miri/input.json",
    "measureme-rustc/profile.mm_profdata.zst",
    "folded-node/input.folded",
    "pprof-go/input.pb",
    "cpuprofile-node/input.cpuprofile",
    "firefox-samply/input.json",
    "speedscope-pyspy/input.speedscope.json",
    "script-layouts/whole.txt.zst",
];

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_page_of_each_sort_of_input_opens_without_complaint_and_has_the_sums_of_report() {
    for input in INPUTS {
        let mut shown = Shown::fixture(input);
        let event = event(&mut shown);
        shown.assert_as_reported(&["--event", &event]);
        let painted = shown.page.evaluate("jitgraft.page.painted");
        assert!(painted.as_u64().unwrap() > 0, "{input}: nothing was drawn");
    }
}

/// The event that is shown.
fn event(shown: &mut Shown) -> String {
    shown.page.text("jitgraft.page.event.name")
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn numbers_of_samples_are_summed_instead_of_weights() {
    for input in ["recording-wasmtime/perf.data.zst", "trace-miri/input.json"] {
        let mut shown = Shown::fixture(input);
        shown.page.evaluate("document.querySelector('#weight').value = 'samples'");
        shown.page.evaluate("document.querySelector('#weight').dispatchEvent(new Event('change'))");
        shown.page.settle();
        assert_eq!(shown.state("weight"), "samples");
        shown.assert_as_reported(&["--weight", "samples"]);
        shown.assert_reload_shows_the_same();
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn ranges_of_time_count_what_report_counts_with_time() {
    for input in ["recording-node/perf.data.zst", "recording-java/perf.data.zst", "recording-wasmtime/perf.data.zst"] {
        let mut shown = Shown::fixture(input);
        let length = shown.page.evaluate("Number(jitgraft.page.profile.time.last - jitgraft.page.profile.time.start)");
        let length = length.as_u64().unwrap();
        for ranges in [json!([[length / 7, length / 3]]), json!([[0, length / 9], [length / 4, length / 2]])] {
            shown.set(&json!({ "ranges": ranges }));
            let option = shown.page.text("document.querySelector('#time-option').textContent");
            let filters: Vec<&str> = option.split(' ').collect();
            shown.assert_as_reported(&filters);
        }
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn threads_count_what_report_counts_with_tid() {
    for input in ["recording-node/perf.data.zst", "recording-java/perf.data.zst"] {
        let mut shown = Shown::fixture(input);
        let tids = shown.page.evaluate("[...new Set(jitgraft.page.profile.tracks.map((track) => track.tid))]");
        for tid in tids.as_array().unwrap().iter().take(3) {
            let tracks = shown.page.evaluate(&format!(
                "jitgraft.page.profile.tracks.flatMap((track, number) => track.tid === {tid} ? [number] : [])"
            ));
            shown.set(&json!({ "tracks": tracks }));
            shown.assert_as_reported(&["--tid", &tid.to_string()]);
        }
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn tiers_apart_are_functions_by_themselves() {
    let mut shown = Shown::fixture("recording-node/perf.data.zst");
    let merged = shown.table().len();
    shown.set(&json!({ "mergeTiers": false }));
    let apart = shown.page.evaluate("jitgraft.page.groups().count");
    assert!(apart.as_u64().unwrap() >= merged as u64);
    shown.assert_reload_shows_the_same();
}
