//! The time part: the brush by mouse and keyboard, ranges as text, threads by mouse and keyboard, the heat map.

use super::shown::Shown;
use crate::support::browser::page::{CONTROL, SHIFT};
use serde_json::json;

const NODE: &str = "recording-node/perf.data.zst";

/// The start of lanes, from the left edge of the list.
const GUTTER: f64 = 200.0;

/// The room beside them.
const RIGHT: f64 = 24.0;

/// A point of the lanes: the share of the time that is shown, and pixels below the upper edge.
fn place(shown: &mut Shown, share: f64, below: f64) -> (f64, f64) {
    let [left, top, width, _] = shown.page.edges_of("#time-lanes");
    (left + GUTTER + share * (width - GUTTER - RIGHT), top + below)
}

/// The `--time` that the page gives for what it counts.
fn option(shown: &mut Shown) -> Vec<String> {
    let option = shown.page.text("document.querySelector('#time-option').textContent");
    option.split_whitespace().map(str::to_owned).collect()
}

fn assert_as_reported(shown: &mut Shown) {
    let option = option(shown);
    assert_eq!(option.first().map(String::as_str), Some("--time"), "{option:?}");
    shown.assert_as_reported(&option.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_brush_with_the_mouse_counts_what_report_counts() {
    let mut shown = Shown::fixture(NODE);
    let all = shown.table();
    let (from, to) = (place(&mut shown, 0.2, 10.0), place(&mut shown, 0.45, 10.0));
    shown.page.drag(from, to);
    assert_as_reported(&mut shown);
    let one = shown.table();
    assert_ne!(all, one);
    shown.page.held = CONTROL;
    let (from, to) = (place(&mut shown, 0.7, 10.0), place(&mut shown, 0.9, 10.0));
    shown.page.drag(from, to);
    shown.page.held = 0;
    assert_eq!(shown.state("ranges").as_array().unwrap().len(), 2, "Ctrl adds a range");
    assert_as_reported(&mut shown);
    shown.assert_reload_shows_the_same();
    assert_as_reported(&mut shown);
    shown.page.click_on("#time-clear");
    assert_eq!(shown.table(), all);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_brush_chooses_times_as_round_as_a_pixel_allows() {
    let mut shown = Shown::fixture(NODE);
    let (from, to) = (place(&mut shown, 0.213, 10.0), place(&mut shown, 0.457, 10.0));
    shown.page.drag(from, to);
    let range = shown.page.text("document.querySelector('#time-range').value");
    // A pixel is some 0.28 ms: ends are whole fifths of a millisecond.
    for end in range.split('-') {
        assert!(end.len() <= "0.1234".len(), "{range}");
    }
    assert!(range.contains('-'), "{range}");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn in_a_low_window_the_time_part_leaves_room_for_the_flame_graph() {
    let mut shown = Shown::fixture(NODE);
    let all = shown.page.edges_of("#part-time")[3];
    shown.page.resize((900, 700));
    shown.page.settle();
    let [_, top, _, height] = shown.page.edges_of("#flame");
    assert!(top < 350.0 && height > 300.0, "{top} {height}");
    assert!(shown.page.edges_of("#part-time")[3] < all);
    shown.page.click_on("#time-fold");
    shown.page.settle();
    assert!(shown.page.edges_of("#flame")[1] > top, "all rows are there again");
    assert_eq!(shown.state("timeRows"), "all");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_brush_with_the_keyboard_counts_what_report_counts() {
    let mut shown = Shown::fixture(NODE);
    let all = shown.table();
    shown.page.evaluate("document.querySelector('#time-lanes').focus()");
    for (held, key) in [(0, "ArrowRight"), (0, "ArrowRight"), (SHIFT, "ArrowRight"), (CONTROL, "ArrowLeft")] {
        shown.page.press_with(held, key);
        assert_as_reported(&mut shown);
    }
    shown.page.press("Escape");
    assert_eq!(shown.table(), all);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn ranges_can_be_typed() {
    let mut shown = Shown::fixture(NODE);
    shown.page.click_on("#time-range");
    shown.page.type_text("0.01-0.05, 0.1-");
    shown.page.press("Enter");
    assert_eq!(shown.state("ranges").as_array().unwrap().len(), 2);
    assert_as_reported(&mut shown);
    shown.page.press_with(CONTROL, "a");
    shown.page.type_text("nonsense");
    shown.page.press("Enter");
    assert_eq!(shown.page.text("document.querySelector('#time-range').ariaInvalid"), "true");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_thread_that_is_clicked_is_the_only_one_that_counts() {
    let mut shown = Shown::fixture("recording-java/perf.data.zst");
    let all = shown.table();
    let lane = ".lane[data-kind=thread]";
    shown.page.click_on(&format!("{lane} .lane-name"));
    let tids = shown
        .page
        .evaluate("jitgraft.page.store.state.tracks.map((number) => jitgraft.page.profile.tracks[number].tid)");
    let tid = tids[0].as_u64().unwrap().to_string();
    assert!(tids.as_array().unwrap().iter().all(|other| other == &tids[0]), "{tids}");
    shown.assert_as_reported(&["--tid", &tid]);
    shown.assert_reload_shows_the_same();
    shown.page.evaluate("document.querySelector('#time-lanes').focus()");
    shown.page.press("End");
    shown.page.press("Enter");
    assert_ne!(shown.table(), all);
    shown.page.press_with(CONTROL, "a");
    assert_eq!(shown.table(), all);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn threads_and_ranges_count_together() {
    let mut shown = Shown::fixture("recording-java/perf.data.zst");
    let (from, to) = (place(&mut shown, 0.1, 10.0), place(&mut shown, 0.6, 10.0));
    shown.page.drag(from, to);
    let [track, tid] = ["number", "track.tid"].map(|what| {
        shown.page.evaluate(&format!("jitgraft.page.profile.tracks.map((track, number) => [track.comm, {what}]).find(([comm]) => comm === 'worker')[1]"))
    });
    shown.set(&json!({ "tracks": [track] }));
    let tid = tid.to_string();
    let filters = [option(&mut shown), vec!["--tid".to_owned(), tid]].concat();
    shown.assert_as_reported(&filters.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn zooming_into_time_changes_no_sums() {
    let mut shown = Shown::fixture(NODE);
    let all = shown.table();
    shown.page.held = CONTROL;
    let middle = place(&mut shown, 0.5, 10.0);
    shown.page.wheel(middle, -120.0);
    shown.page.held = 0;
    assert_eq!(shown.state("timeView").as_array().unwrap().len(), 2);
    assert_eq!(shown.table(), all);
    shown.page.click_on("#time-whole");
    assert_eq!(shown.state("timeView"), json!([]));
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_range_of_calls_has_as_much_of_them_as_report_cuts_out() {
    for input in ["trace-miri/input.json", "measureme-rustc/profile.mm_profdata.zst"] {
        let mut shown = Shown::fixture(input);
        let rows = "jitgraft.page.profile.rows(0)";
        let end =
            shown.page.evaluate(&format!("Math.max(...{rows}.time.map((time, row) => time + {rows}.weight[row]))"));
        let end = end.as_u64().unwrap();
        for (from, to) in [(end / 5, end / 2), (0, end / 3), (end / 2, end)] {
            shown.set(&json!({ "ranges": [[from, to]] }));
            let option = option(&mut shown);
            let reported = shown.reported(&option.iter().map(String::as_str).collect::<Vec<_>>());
            // A call counts where it begins to run itself; report counts it in every range that it lasts into.
            let weights = |table: super::shown::Table| {
                let all = table.into_iter().map(|(name, sums)| (name, sums.own, sums.total));
                all.filter(|(_, own, total)| own + total > 0).collect::<Vec<_>>()
            };
            assert_eq!(weights(shown.table()), weights(reported), "{input} {option:?}");
        }
    }
}

/// Samples of two threads, ten a second for eight seconds: the last is at 7.9.
fn samples_of_eight_seconds() -> String {
    let sample = |at: u32| {
        let (tid, function) = if at.is_multiple_of(3) { (8, "idle_work") } else { (7, "hot_work") };
        let time = format!("{}.{}00000", 100 + at / 10, at % 10);
        format!("prog 7/{tid} [000] {time}: 1000 cycles: \n\t  4010 {function}+0x1 (/bin/prog)\n\n")
    };
    (0..80).map(sample).collect()
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_cell_of_the_heat_map_counts_what_report_counts() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("samples.txt");
    std::fs::write(&input, samples_of_eight_seconds()).unwrap();
    let mut shown = Shown::of(&input, &[]);
    let all = shown.table();
    let [left, top, width, height] = shown.page.edges_of("#time-heat");
    // The third column's foot, where a sample of each second's begin is.
    let column = (width - GUTTER - RIGHT) / 7.9;
    shown.page.click((left + GUTTER + 2.5 * column, top + height - 1.0));
    let ranges = shown.state("ranges");
    assert_eq!(ranges, json!([[2_000_000_000u64, 2_020_000_000u64]]));
    assert_as_reported(&mut shown);
    shown.page.click_on("#time-clear");
    assert_eq!(shown.table(), all);
    shown.page.click_on(".lane .lane-name");
    assert_eq!(option(&mut shown), ["--tid", "7"]);
    shown.assert_as_reported(&["--tid", "7"]);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_range_that_begins_between_two_units_of_time_is_reported_in_whole_ones() {
    let mut shown = Shown::fixture(NODE);
    let rows = "jitgraft.page.profile.rows(0).time";
    let [from, to] = [5, 50].map(|row| shown.page.evaluate(&format!("{rows}[{row}]")).as_f64().unwrap());
    shown.set(&json!({ "ranges": [[from - 0.5, to + 0.5]] }));
    assert_as_reported(&mut shown);
}
