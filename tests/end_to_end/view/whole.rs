//! The page as a whole: themes, links, the keyboard, hostile names.

use super::shown::Shown;
use serde_json::json;

const NODE: &str = "recording-node/perf.data.zst";

fn background(shown: &mut Shown) -> String {
    shown.page.text("getComputedStyle(document.body).backgroundColor")
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_page_is_dark_or_light_as_the_system_is_or_as_the_reader_states() {
    let mut shown = Shown::fixture(NODE);
    let mut seen = Vec::new();
    for scheme in ["light", "dark"] {
        shown.page.prefer(scheme);
        shown.page.settle();
        seen.push(background(&mut shown));
    }
    let [light, dark] = [seen[0].clone(), seen[1].clone()];
    assert_ne!(light, dark);
    for (theme, expected) in [("light", light), ("dark", dark.clone()), ("auto", dark)] {
        shown.set(&json!({ "theme": theme }));
        assert_eq!(background(&mut shown), expected, "{theme}");
        shown.reload();
        assert_eq!(background(&mut shown), expected, "{theme} after it is loaded anew");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_part_that_is_open_is_in_the_address() {
    let mut shown = Shown::fixture(NODE);
    let tabs = shown.page.evaluate("Array.from(document.querySelectorAll('[role=tab]'), (tab) => tab.id)");
    for tab in tabs.as_array().unwrap() {
        let tab = tab.as_str().unwrap();
        shown.page.click_on(&format!("#{tab}"));
        shown.reload();
        let part = tab.replace("tab-", "part-");
        assert_eq!(shown.page.text("document.querySelector('[role=tab][aria-selected=true]').id"), tab);
        let open = shown
            .page
            .evaluate("Array.from(document.querySelectorAll('[role=tabpanel]:not([hidden])'), (part) => part.id)");
        assert_eq!(open, json!([part]));
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_question_mark_shows_the_keys() {
    let mut shown = Shown::fixture(NODE);
    let is_open = |shown: &mut Shown| shown.page.evaluate("document.querySelector('#keys').open");
    // Too low for all keys.
    shown.page.resize((700, 400));
    for _ in 0..2 {
        assert_eq!(is_open(&mut shown), false);
        shown.page.press("?");
        assert_eq!(is_open(&mut shown), true);
        assert_eq!(shown.page.evaluate("document.querySelector('#keys').scrollTop"), 0);
        shown.page.click_on("#keys-close");
    }
    shown.page.click_on("#search");
    shown.page.type_text("?");
    assert_eq!(is_open(&mut shown), false, "in a text it is a character");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_tab_of_the_doctor_has_the_number_of_findings() {
    let mut shown = Shown::fixture(NODE).part("doctor");
    let findings = shown.page.evaluate("document.querySelectorAll('[data-sort=finding]').length");
    assert_eq!(shown.text_of("#tab-doctor .badge"), findings.to_string());
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn an_address_that_was_cut_or_made_up_shows_the_page_all_the_same() {
    let mut shown = Shown::fixture(NODE);
    let all = shown.table();
    for address in [
        "#ranges=%5B%5B1",
        "#ranges=[[9e99,-1]]&tracks=[999999]&selected=99999999&event=77",
        "#part=%22none%22&sort=%22none%22&zoom=[1,2,99999999]&sandwich=-4&focus=123456789",
        "#__proto__=1&constructor=2&search=%22%3Cimg%20src%3Dx%20onerror%3Dwindow.hit%3D1%3E%22",
        "#&&&==%%%",
    ] {
        shown.page.evaluate(&format!("location.hash = {}", json!(address)));
        shown.reload();
        assert_eq!(
            shown.page.evaluate("!!document.querySelector('#part-time') && window.hit === undefined"),
            true,
            "{address}"
        );
    }
    shown.page.evaluate("location.hash = ''");
    shown.reload();
    assert_eq!(shown.table(), all);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn hostile_names_stay_text_in_every_part() {
    let script = "</script><img src=x onerror=window.hit=1><svg onload=window.hit=1>]]>-->";
    let turned = "\u{202e}desrever\u{2066} \u{1b}[31mred\u{7}";
    let formula = "=HYPERLINK(\"http://x\")";
    let long = "x".repeat(1 << 20);
    let stacks =
        [script, turned, formula, &long, "__proto__", "{{data}}"].map(|name| format!("main;{name} 3\n")).concat();
    let mut shown = Shown::folded(&stacks);
    let tabs = shown.page.evaluate("Array.from(document.querySelectorAll('[role=tab]'), (tab) => tab.id)");
    for tab in tabs.as_array().unwrap() {
        shown.page.click_on(&format!("#{}", tab.as_str().unwrap()));
        let [left, top, width, height] = shown.page.edges_of("main");
        for step in 1..8 {
            let share = f64::from(step) / 8.0;
            shown.page.point_at((left + width * share, top + height.min(600.0) * share));
        }
    }
    assert_eq!(
        shown.page.evaluate("[window.hit === undefined, document.images.length, document.scripts.length]"),
        json!([true, 0, 2])
    );
    let (told, reported) = (shown.table(), shown.reported(&[]));
    assert!(
        told.contains_key(&(String::new(), "\\u{202e}desrever\\u{2066} \\x1b[31mred\\x07".to_owned())),
        "{:?}",
        told.keys()
    );
    assert_eq!((told.len(), told.values().map(|sums| sums.own).sum::<u64>()), (reported.len(), 18));
}
