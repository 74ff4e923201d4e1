//! The time part: the brush by mouse and keyboard, ranges as text, threads by mouse and keyboard, the heat map.

use crate::browser::page::{CONTROL, SHIFT};
use crate::shown::Shown;
use serde_json::json;

const NODE: &str = "recording-node/perf.data.zst";

/// Where lanes begin, from the left edge of the list.
const GUTTER: f64 = 200.0;

/// A point of the lanes: the share of the time that is shown, and pixels below the upper edge.
fn place(shown: &mut Shown, share: f64, below: f64) -> (f64, f64) {
    let [left, top, width, _] = shown.page.edges_of("#time-lanes");
    (left + GUTTER + share * (width - GUTTER - 10.0), top + below)
}

/// The `--time` that the page tells for what it counts.
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
