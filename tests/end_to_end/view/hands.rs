//! The page for those who use the keyboard or a reader of the screen: the focus is never lost, Escape and Back lead
//! back, a search is walked through, and every element says what it is.

use super::shown::Shown;
use crate::support::browser::page::{CONTROL, SHIFT};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const NODE: &str = "recording-node/perf.data.zst";
const TIERS: &str = "tiers-recording/perf.data.zst";
const PHP: &str = "php-recording/perf.data.zst";
const CALLS: &str = "callgrind-jit/php-tracing.callgrind.zst";

/// A hundred functions below one that is called by two.
fn many() -> String {
    let line = |n: u32| format!("main;run;find_{n:03} {}\nmain;other;run;leaf_{n:03} {}\n", 500 - n, 900 - n);
    (0..120).map(line).collect()
}

/// The ID of the focused element, or of the nearest element around it that has an ID; `BODY` if nothing is focused.
fn focused(shown: &mut Shown) -> String {
    let at = "(() => { const at = document.activeElement; if (!at || at === document.body || !at.checkVisibility()) return 'BODY'; \
              return at.id || at.closest('[id]').id })()";
    shown.page.text(at)
}

/// Waits for two pictures: what was disabled or hidden loses the focus with the next one.
fn wait(shown: &mut Shown) {
    for _ in 0..3 {
        shown.page.settle();
    }
}

fn focus(shown: &mut Shown, selector: &str) {
    shown.page.evaluate(&format!("document.querySelector({}).focus()", json!(selector)));
    wait(shown);
}

fn press(shown: &mut Shown, keys: &[&str]) {
    for key in keys {
        match key.strip_prefix("Shift+") {
            Some(key) => shown.page.press_with(SHIFT, key),
            None => shown.page.press(key),
        }
    }
    wait(shown);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_focus_is_never_lost() {
    for input in [None, Some(NODE), Some(PHP), Some(CALLS)] {
        let mut shown = input.map_or_else(|| Shown::folded(&many()), Shown::fixture).part("flame");
        // A place, and what is pressed there.
        let steps: &[(&str, &[&str])] = &[
            ("#flame", &["Home", "ArrowUp", "s"]),
            ("#flame-callees", &["Escape"]),
            ("#flame", &["Home", "ArrowUp", "ArrowUp", "h"]),
            ("#flame-kept button", &["Enter"]),
            ("#flame", &["Home", "ArrowUp", "f"]),
            ("#flame-kept button", &["Enter"]),
            ("#flame", &["Home", "ArrowUp", "ArrowUp", "Enter"]),
            ("#flame-reset", &["Enter"]),
            ("#flame", &["Home", "ArrowUp", "l"]),
            ("#functions-grid", &["ArrowDown", "Shift+Enter"]),
            ("#flame-callees", &["Escape"]),
            ("#tab-flame", &["ArrowRight"]),
            ("#search", &["/", "x", "Enter", "Escape", "Escape"]),
            ("#tab-functions", &["ArrowRight"]),
            ("#tree-rows", &["ArrowDown", "Enter"]),
            ("#keys-open", &["Enter", "Escape"]),
        ];
        for (place, keys) in steps {
            if *place == "#flame-reset"
                && shown.page.evaluate("document.querySelector('#flame-reset').disabled") == true
            {
                continue;
            }
            focus(&mut shown, place);
            press(&mut shown, keys);
            assert_ne!(focused(&mut shown), "BODY", "{input:?}: {place} {keys:?}");
        }
    }
    let mut shown = Shown::fixture(PHP);
    for (part, place, keys) in [
        ("code", "#code-list tr[tabindex='0']", &["ArrowDown", "Enter"][..]),
        ("code", "#code-all", &["Enter"]),
        ("doctor", "#part-doctor", &["PageDown"]),
        ("jit", "#jit-functions button", &["Enter"]),
        ("flame", "#time-range", &["1", "Enter", "Escape"]),
    ] {
        shown.set(&json!({ "part": part }));
        wait(&mut shown);
        focus(&mut shown, place);
        press(&mut shown, keys);
        assert_ne!(focused(&mut shown), "BODY", "{part}: {place} {keys:?}");
    }
    focus(&mut shown, "#time-lanes");
    press(&mut shown, &["ArrowRight"]);
    for button in ["#time-zoom", "#time-whole", "#time-clear"] {
        focus(&mut shown, button);
        press(&mut shown, &["Enter"]);
        assert_ne!(focused(&mut shown), "BODY", "{button}");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn escape_and_back_lead_from_callers_and_callees_to_where_one_was() {
    for input in [None, Some(TIERS)] {
        let mut shown = input.map_or_else(|| Shown::folded(&many()), Shown::fixture).part("flame");
        for leave in ["Escape", "back"] {
            focus(&mut shown, "#flame");
            press(&mut shown, &["Home", "ArrowUp", "ArrowUp", "s"]);
            assert_eq!(focused(&mut shown), "flame-callees");
            assert_ne!(shown.state("sandwich"), Value::Null);
            press(&mut shown, &["ArrowDown", "ArrowUp"]);
            match leave {
                "back" => shown.page.evaluate("history.back()"),
                key => {
                    shown.page.press(key);
                    Value::Null
                }
            };
            shown.page.wait_until("jitgraft.page.store.state.sandwich === null");
            wait(&mut shown);
            assert_eq!(focused(&mut shown), "flame", "{leave}");
            press(&mut shown, &["ArrowUp"]);
            assert_ne!(shown.text_of("#flame-told"), "");
        }
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn back_and_forward_go_through_what_was_looked_at() {
    let mut shown = Shown::fixture(NODE);
    let mut seen = vec![shown.page.text("location.hash")];
    for changes in [
        json!({ "part": "functions" }),
        json!({ "part": "tree" }),
        json!({ "part": "flame", "zoom": [shown.page.evaluate("jitgraft.page.profile.nodeFunction[0]")] }),
        json!({ "direction": "icicle" }),
        json!({ "sandwich": 3 }),
    ] {
        shown.set(&changes);
        // Letters of a search are no steps of their own.
        shown.set(&json!({ "search": "a" }));
        shown.set(&json!({ "search": "ab" }));
        seen.push(shown.page.text("location.hash"));
    }
    for (way, steps) in [("back", -1_i32), ("forward", 1)] {
        let mut order: Vec<&String> = seen.iter().collect();
        if steps < 0 {
            order.reverse();
        }
        for address in &order[1..] {
            shown.page.evaluate(&format!("history.{way}()"));
            let plain = |text: &str| text.replace('#', "");
            shown.page.wait_until(&format!("location.hash.replace('#', '') === {}", json!(plain(address))));
            shown.page.settle();
        }
    }
    assert_eq!(shown.state("sandwich"), json!(3));
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_search_begins_at_the_first_match_and_enter_goes_through_them() {
    for (input, text) in [(None, "find_"), (Some(NODE), "sort"), (Some(CALLS), "php")] {
        let mut shown = input.map_or_else(|| Shown::folded(&many()), Shown::fixture).part("functions");
        focus(&mut shown, "#functions-grid");
        press(&mut shown, &["End", "Enter", "/"]);
        shown.page.type_text(text);
        wait(&mut shown);
        assert_eq!(shown.page.evaluate("document.querySelector('.functions-scroll').scrollTop"), 0);
        let rows = shown.page.evaluate("Number(document.querySelector('#functions-grid').ariaRowCount) - 1");
        let told = shown.text_of("#search-matched");
        let count = rows.as_u64().unwrap();
        assert!(told.starts_with(&format!("{count} match")), "{told}: {count}");
        for part in ["functions", "tree", "flame"] {
            shown.set(&json!({ "part": part, "selected": null }));
            focus(&mut shown, "#search");
            let mut places = Vec::new();
            for (key, at) in [("Enter", 1), ("Enter", 2), ("Shift+Enter", 1)] {
                press(&mut shown, &[key]);
                let told = shown.text_of("#search-matched");
                let all: u64 = told.split(' ').nth(3).unwrap().replace(',', "").parse().unwrap();
                let expected = if all < at { 1 } else { at };
                assert!(
                    told.contains(&format!(" {expected} of ")) && told.contains("match"),
                    "{input:?} {part}: {told}"
                );
                assert_eq!(focused(&mut shown), "search");
                let name = match part {
                    "functions" => shown.text_of("#functions-grid .cursor .name"),
                    // A row above a match is open from then on.
                    "tree" => shown.text_of(".tree-row.cursor").replace(['▸', '▾'], ""),
                    _ => shown.text_of("#flame-told"),
                };
                assert!(name.to_lowercase().contains(text), "{input:?} {part}: {name}");
                places.push(name);
            }
            assert_eq!(places[0], places[2], "{part}");
        }
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_inverted_tree_shows_what_functions_ran_themselves() {
    for input in [None, Some(NODE), Some(TIERS)] {
        let mut shown = input.map_or_else(|| Shown::folded(&many()), Shown::fixture).part("tree");
        shown.page.evaluate("{ const list = document.querySelector('#tree-kind'); list.value = 'bottomup'; list.dispatchEvent(new Event('change')) }");
        wait(&mut shown);
        let rows = "Array.from(document.querySelectorAll('.tree-row'), (row) => [row.ariaLevel, ...Array.from(row.children, (cell) => cell.textContent)])";
        let rows = shown.page.evaluate(rows);
        for row in rows.as_array().unwrap() {
            if row[0] == "1" {
                assert_eq!((&row[1], &row[2]), (&row[3], &row[4]), "{row}");
            } else {
                assert_eq!((&row[3], &row[4]), (&json!(""), &json!("")), "{row}");
            }
        }
        let hottest = shown.page.text("(() => { const { page } = jitgraft, { self } = page.sums(); let best = 0; self.forEach((sum, group) => { if (sum > self[best]) best = group }); return page.profile.functions.name[page.groups().first[best]] })()");
        assert!(rows[0][5].as_str().unwrap().ends_with(&hottest), "{rows}");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_tooltip_has_the_self_time_also_if_there_is_none() {
    let mut shown = Shown::folded("main;a;b 30\nmain;a 10\nmain;c 60\n").part("flame");
    for (name, own) in
        [("main", "self 0 samples, 0.00%"), ("a", "self 10 samples, 10.00%"), ("b", "self 30 samples, 30.00%")]
    {
        let place = shown.page.evaluate(&format!("document.getElementById('flame').view.placeOf({})", json!(name)));
        shown.page.point_at((place["x"].as_f64().unwrap(), place["y"].as_f64().unwrap()));
        let told = shown.text_of("#flame-tip");
        assert!(told.contains(own), "{name}: {told}");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn tiers_are_merged_only_where_there_are_some() {
    for (input, has) in [(None, false), (Some(CALLS), false), (Some("pprof-go/input.pb"), false), (Some(TIERS), true)] {
        let mut shown = input.map_or_else(|| Shown::folded(&many()), Shown::fixture).part("flame");
        assert_eq!(
            shown.page.evaluate("document.querySelector('#flame-merge-tiers') !== null"),
            json!(has),
            "{input:?}"
        );
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_page_that_compares_opens_with_the_difference() {
    let dir = tempfile::tempdir().unwrap();
    let [before, after] = ["before.folded", "after.folded"].map(|name| dir.path().join(name));
    fs::write(&before, "main;a 301\nmain;b 199\n").unwrap();
    fs::write(&after, "main;a 703\nmain;c 211\n").unwrap();
    let mut shown = Shown::with(&after, &[], &["--diff", before.to_str().unwrap(), "--sample-weight", "1"]);
    let open = "document.querySelector('[role=tab][aria-selected=true]').id";
    assert_eq!(shown.page.text(open), "tab-difference");
    shown.page.click_on("#tab-functions");
    shown.reload();
    assert_eq!(shown.page.text(open), "tab-functions");
    focus(&mut shown, "#tab-functions");
    shown.page.evaluate("jitgraft.page.store.set({ part: 'difference' })");
    focus(&mut shown, "#difference-flame");
    press(&mut shown, &["ArrowUp", "ArrowUp", "Enter", "Escape"]);
    assert_eq!(focused(&mut shown), "difference-flame");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_range_that_is_none_is_an_error_until_it_is_left() {
    let invalid = "document.querySelector('#time-range').ariaInvalid === 'true'";
    let mut shown = Shown::fixture(NODE);
    for leave in ["Escape", "Tab", "typed", "dragged"] {
        focus(&mut shown, "#time-range");
        shown.page.press_with(CONTROL, "a");
        shown.page.type_text("nonsense");
        press(&mut shown, &["Enter"]);
        assert_eq!(shown.page.evaluate(invalid), true, "{leave}");
        assert!(shown.text_of("#time-told").contains("not a range"), "{leave}");
        match leave {
            "typed" => {
                shown.page.press_with(CONTROL, "a");
                shown.page.type_text("0.1-0.2");
                shown.page.press("Enter");
            }
            "dragged" => shown.set(&json!({ "ranges": [[1_000_000, 90_000_000]] })),
            key => shown.page.press(key),
        }
        wait(&mut shown);
        assert_eq!(shown.page.evaluate(invalid), false, "{leave}");
        assert!(!shown.text_of("#time-told").contains("not a range"), "{leave}");
        assert_ne!(shown.page.evaluate("document.querySelector('#time-range').value"), "nonsense", "{leave}");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_time_is_zoomed_and_moved_by_letters() {
    let mut shown = Shown::fixture(NODE);
    let view = |shown: &mut Shown, key: &str| {
        focus(shown, "#time-lanes");
        press(shown, &[key]);
        shown.state("timeView")
    };
    let near = view(&mut shown, "w");
    let right = view(&mut shown, "d");
    assert!(near[0].as_u64() < right[0].as_u64() && near[1].as_u64() < right[1].as_u64(), "{near} {right}");
    assert_eq!(view(&mut shown, "a"), near);
    assert_eq!(view(&mut shown, "s"), json!([]));
    let keys = shown.page.text("document.querySelector('#keys').textContent");
    for word in ["W S", "A D", "Drag", "Ctrl+wheel", "Right click", "Enter, Shift+Enter"] {
        assert!(keys.contains(word), "{word}: {keys}");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn every_part_says_why_it_is_empty() {
    let mut shown = Shown::fixture(NODE);
    for part in ["flame", "functions", "tree"] {
        shown.set(&json!({ "part": part, "ranges": [[0, 1]], "tracks": [3], "search": "" }));
        wait(&mut shown);
        let said = shown.page.text("document.querySelector('[role=tabpanel]:not([hidden])').innerText");
        assert!(said.contains("No samples in the selected time and threads."), "{part}: {said}");
    }
    shown.set(&json!({ "part": "functions", "ranges": [], "tracks": [], "search": "there is none" }));
    wait(&mut shown);
    let said = shown.page.text("document.querySelector('[role=tabpanel]:not([hidden])').innerText");
    assert!(said.contains("No function matches") && said.contains("no matches"), "{said}");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn every_stop_of_the_tabulator_shows_that_it_has_the_focus() {
    let mut shown = Shown::fixture(PHP);
    let tabs = shown.page.evaluate("Array.from(document.querySelectorAll('[role=tab]'), (tab) => tab.id)");
    for tab in tabs.as_array().unwrap() {
        shown.page.click_on(&format!("#{}", tab.as_str().unwrap()));
        focus(&mut shown, "#keys-open");
        for _ in 0..40 {
            shown.page.press("Tab");
            wait(&mut shown);
            let seen = shown.page.evaluate(
                "(() => { const at = document.activeElement; if (at === document.body) return 'end'; \
                 const marks = [at, ...at.querySelectorAll('.cursor, .active')]; \
                 const isSeen = marks.some((mark) => getComputedStyle(mark).outlineStyle !== 'none'); \
                 return isSeen ? '' : at.outerHTML.slice(0, 200) })()",
            );
            if seen == "end" {
                break;
            }
            assert_eq!(seen, "", "{tab}");
        }
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn nothing_is_wider_than_a_narrow_window() {
    for input in [None, Some(NODE), Some(PHP), Some(CALLS)] {
        let mut shown = input.map_or_else(|| Shown::folded(&many()), Shown::fixture);
        shown.page.resize((400, 800));
        let tabs = shown.page.evaluate("Array.from(document.querySelectorAll('[role=tab]'), (tab) => tab.id)");
        for tab in tabs.as_array().unwrap() {
            shown.page.click_on(&format!("#{}", tab.as_str().unwrap()));
            wait(&mut shown);
            let width = shown.page.evaluate("document.documentElement.scrollWidth").as_u64().unwrap();
            assert!(width <= 400, "{input:?} {tab}: {width}");
        }
        let name = shown.page.evaluate(
            "(jitgraft.page.store.set({ part: 'tree' }), new Promise((drawn) => setTimeout(() => drawn(document.querySelector('.tree-name').getBoundingClientRect().width), 200)))",
        );
        assert!(name.as_f64().unwrap() > 150.0, "{input:?}: {name}");
    }
}

/// The script of axe-core, as npm has it.
fn axe() -> String {
    let dir = tempfile::tempdir().unwrap();
    let installed = Command::new("npm")
        .args(["install", "--no-save", "--no-audit", "--no-fund", "axe-core@4"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    fs::read_to_string(dir.path().join("node_modules/axe-core/axe.min.js")).unwrap()
}

/// What axe-core finds serious or critical in a page as it is now.
fn serious(page: &mut crate::support::browser::Page) -> Value {
    page.evaluate(
        "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations \
         .filter(({ impact }) => impact === 'serious' || impact === 'critical') \
         .map(({ id, nodes }) => [id, nodes.length, nodes[0].html.slice(0, 200), nodes[0].failureSummary]))",
    )
}

#[test]
#[ignore = "needs npm (axe-core) and a browser: tests/run.sh --all"]
fn axe_core_finds_nothing_serious() {
    let axe = axe();
    let fixture = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    for input in [NODE, PHP, TIERS, CALLS, "folded-node/input.folded", "trace-miri/input.json"] {
        let folded = fixture("folded-node/input.folded");
        let mut pages = vec![Shown::fixture(input)];
        if input.ends_with("folded") {
            pages.push(Shown::with(&folded, &[], &["--diff", folded.to_str().unwrap(), "--sample-weight", "1"]));
        }
        for shown in &mut pages {
            shown.page.evaluate(&format!("{axe}; 0"));
            let tabs = shown.page.evaluate("Array.from(document.querySelectorAll('[role=tab]'), (tab) => tab.id)");
            for (scheme, size) in [("light", (1400, 900)), ("dark", (400, 900))] {
                shown.page.prefer(scheme);
                shown.page.resize(size);
                for tab in tabs.as_array().unwrap() {
                    let part = tab.as_str().unwrap().trim_start_matches("tab-").to_owned();
                    for more in
                        [json!({}), json!({ "search": "a", "selected": 1 }), json!({ "tracks": [0], "sandwich": 1 })]
                    {
                        let mut state =
                            json!({ "part": part, "search": "", "selected": null, "tracks": [], "sandwich": null });
                        state.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                        shown.set(&state);
                        wait(shown);
                        assert_eq!(serious(&mut shown.page), json!([]), "{input} {tab} {scheme} {size:?} {more}");
                    }
                }
            }
        }
    }
}

#[test]
#[ignore = "needs npm (axe-core) and a browser: tests/run.sh --all"]
fn axe_core_finds_nothing_serious_in_a_picture() {
    let axe = axe();
    for (name, arguments) in
        [(TIERS, &[][..]), (TIERS, &["--flamechart"]), (PHP, &["--inverted"]), (NODE, &["--reverse"])]
    {
        let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("graph.svg");
        let debug = ["flamegraph", "--quiet", "--debug-dir", path.parent().unwrap().to_str().unwrap()];
        fs::write(&file, crate::support::runner::stdout(&[&debug[..], arguments].concat(), &path)).unwrap();
        let mut page = crate::support::browser::Page::open(&file);
        page.evaluate(&format!("{axe}; 0"));
        for scheme in ["light", "dark"] {
            page.prefer(scheme);
            page.settle();
            assert_eq!(serious(&mut page), json!([]), "{name} {arguments:?} {scheme}");
        }
    }
}
