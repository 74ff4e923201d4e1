//! The table of functions: its rows are those of `jitgraft report`, in the order asked for, by mouse and keyboard.

use super::shown::Shown;
use crate::support::effort::is_thorough;
use serde_json::json;

const NODE: &str = "recording-node/perf.data.zst";

/// States calls, with cycles and levels of recursion.
const CALLS: &str = "callgrind-jit/php-tracing.callgrind.zst";

/// A callgrind file in which threads are kept separate.
const THREADS: &str = "callgrind-jit/node-septhreads.callgrind.zst";

fn table_of(input: &str) -> Shown {
    Shown::fixture(input).part("functions")
}

/// The names in the rows that are in view.
fn names(shown: &mut Shown) -> Vec<String> {
    let names = shown.page.evaluate(
        "Array.from(document.querySelectorAll('#functions-grid [data-row] .name'), (cell) => cell.title || cell.textContent)",
    );
    names.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// The lines of the table's copy, without its head.
fn copied(shown: &mut Shown) -> Vec<String> {
    let text = shown.copied_by("#functions-copy");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_copy_of_the_table_is_what_report_prints() {
    let sampled = [NODE, "recording-java/perf.data.zst", "tiers-recording/perf.data.zst", "pprof-go/input.pb"];
    // Each is a page in a browser.
    let sampled = if is_thorough() { &sampled[..] } else { &sampled[..1] };
    for input in sampled.iter().copied().chain([CALLS]) {
        let mut shown = table_of(input);
        let event = shown.page.text("jitgraft.page.event.name");
        let reported = shown.report(&["--format", "csv", "--event", &event]);
        let reported: Vec<&str> = reported.lines().collect();
        let copied = copied(&mut shown);
        for (copied, reported) in copied.iter().zip(&reported) {
            assert_eq!(copied, reported, "{input}");
        }
        assert_eq!(copied.len(), reported.len(), "{input}");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn columns_sort_as_report_does() {
    let mut shown = table_of(NODE);
    for (column, key) in [("self", "self"), ("total", "total"), ("samples", "samples"), ("name", "name")] {
        shown.page.click_on(&format!("#sort-{column}"));
        if shown.state("sort") != column {
            shown.page.click_on(&format!("#sort-{column}"));
        }
        let reported = shown.report(&["--format", "csv", "--sort", key]);
        let copied = copied(&mut shown);
        let reported: Vec<&str> = reported.lines().collect();
        assert_eq!(copied[..20], reported[..20], "{column}");
        let sorted = shown.page.text("document.querySelector('[aria-sort]:not([aria-sort=none])').dataset.column");
        assert_eq!(sorted, column);
    }
    shown.page.click_on("#sort-name");
    assert_eq!(shown.state("sort"), "-name", "a second click turns the order round");
    shown.assert_reload_shows_the_same();
    assert_eq!(shown.state("sort"), "-name");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_table_is_walked_by_keyboard() {
    let mut shown = table_of(NODE);
    let rows = names(&mut shown);
    shown.page.evaluate("document.querySelector('#functions-grid').focus()");
    for key in ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "Enter"] {
        shown.page.press(key);
    }
    let selected = shown.page.text("jitgraft.page.profile.functions.name[jitgraft.page.store.state.selected]");
    assert_eq!(selected, rows[1]);
    assert_eq!(shown.page.text("document.querySelector('#functions-grid [aria-selected=true] .name').title"), rows[1]);
    shown.page.press("End");
    shown.page.press("Enter");
    let last = shown.page.evaluate("jitgraft.page.groups().of[jitgraft.page.store.state.selected]");
    let row = shown.page.text("document.querySelector('#functions-grid .cursor').dataset.group");
    assert_eq!(row, last.to_string());
    shown.page.press("Home");
    assert_eq!(names(&mut shown)[0], rows[0]);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_search_leaves_the_functions_that_are_found() {
    let mut shown = table_of(NODE);
    shown.page.click_on("#search");
    shown.page.type_text("sort");
    let found = names(&mut shown);
    assert!(!found.is_empty() && found.iter().all(|name| name.to_lowercase().contains("sort")), "{found:?}");
    let reported = shown.report(&["--format", "csv", "--symbol", "(?i)sort"]);
    assert_eq!(copied(&mut shown).len(), reported.lines().count());
    shown.assert_reload_shows_the_same();
    assert_eq!(names(&mut shown), found);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_shift_enter_shows_the_callers_and_callees() {
    let mut shown = table_of(NODE);
    shown.page.evaluate("document.querySelector('#functions-grid').focus()");
    shown.page.press("ArrowDown");
    shown.page.press_with(crate::support::browser::page::SHIFT, "Enter");
    assert_eq!(shown.state("part"), json!("flame"));
    assert_eq!(shown.state("sandwich"), shown.state("selected"));
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn names_that_are_formulas_are_text_in_the_copy() {
    let mut shown = Shown::folded("main;=1+1 3\nmain;@SUM(A1);say \"no\", twice 2\n").part("functions");
    let reported = shown.report(&["--format", "csv"]);
    let copied = copied(&mut shown);
    assert!(copied.iter().any(|line| line.contains(",'=1+1,")), "{copied:?}");
    assert_eq!(copied, reported.lines().collect::<Vec<_>>());
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_printed_table_is_on_white_and_has_more_rows_than_the_window() {
    let mut shown = table_of(NODE);
    shown.set(&json!({ "theme": "dark" }));
    let rows = "document.querySelectorAll('#functions-grid [data-row]').length";
    let in_view = shown.page.evaluate(rows).as_u64().unwrap();
    shown.page.evaluate("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(shown.page.text("document.documentElement.dataset.theme"), "light");
    assert!(shown.page.evaluate(rows).as_u64().unwrap() > in_view);
    shown.page.evaluate("dispatchEvent(new Event('afterprint'))");
    shown.page.settle();
    assert_eq!(shown.page.text("document.documentElement.dataset.theme"), "dark");
    assert_eq!(shown.page.evaluate(rows).as_u64().unwrap(), in_view);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn callers_and_callees_of_stated_calls_are_those_that_report_shows() {
    let mut shown = table_of(CALLS);
    // The function that most functions call.
    let seen = shown.page.evaluate(
        "(() => {
            const { page } = jitgraft, stated = page.stated(), groups = page.groups(), callers = new Map();
            for (const { callee } of stated.edges) callers.set(callee, (callers.get(callee) ?? 0) + 1);
            const [group] = [...callers].sort((a, b) => b[1] - a[1])[0];
            const name = (of) => page.profile.functions.name[groups.first[of]];
            page.store.set({ sandwich: groups.first[group], part: 'flame' });
            const { callers: up, callees: down } = page.sandwich();
            const rows = (tree) => Array.from(tree.group, (of, node) => [name(of), tree.total[node]]).slice(2);
            return { name: name(group), total: up.total[1], callers: rows(up), callees: rows(down) };
        })()",
    );
    let name = seen["name"].as_str().unwrap();
    for flag in ["callers", "callees"] {
        let reported = shown.report(&[&format!("--{flag}"), name, "--format", "json"]);
        let reported: Vec<serde_json::Value> = serde_json::from_str(&reported).unwrap();
        assert_eq!(reported.iter().filter(|row| row["depth"] == 0).count(), 1, "{name}");
        let rows = reported.iter().filter(|row| row["depth"] == 1 && row["total"] != 0);
        let mut expected: Vec<_> =
            rows.map(|row| (row["total"].as_u64().unwrap(), row["symbol"].to_string())).collect();
        let rows = seen[flag].as_array().unwrap().iter();
        let mut rows: Vec<_> = rows.map(|row| (row[1].as_u64().unwrap(), row[0].to_string())).collect();
        expected.sort();
        rows.sort();
        assert_eq!(rows, expected, "{flag} of {name}");
        assert_eq!(seen["total"], reported[0]["total"]);
    }
    assert!(seen["callers"].as_array().unwrap().len() > 10);
    shown.page.settle();
    assert!(shown.text_of("#facts").contains("stacks are estimated"));
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn tables_of_some_threads_are_made_of_the_calls_of_these() {
    let mut shown = table_of(THREADS);
    let threads = shown.page.evaluate("jitgraft.page.profile.tracks.map((track) => track.tid)");
    let threads: Vec<u64> = threads.as_array().unwrap().iter().map(|tid| tid.as_u64().unwrap()).collect();
    assert!(threads.len() > 2, "{threads:?}");
    for chosen in [vec![0], vec![1], vec![0, 2]] {
        shown.set(&json!({ "tracks": chosen, "part": "functions" }));
        let rows = shown.page.evaluate(
            "(() => {
                const { page } = jitgraft, { self, total } = page.sums(), { name } = page.profile.functions;
                const groups = page.groups().first, rows = Array.from(groups, (of, group) => [name[of], self[group], total[group]]);
                return rows.filter(([, self, total]) => self > 0 || total > 0);
            })()",
        );
        let tids: Vec<String> = chosen.iter().map(|track| threads[*track].to_string()).collect();
        let reported = shown.report(&["--tid", &tids.join(","), "--format", "json"]);
        let reported: Vec<serde_json::Value> = serde_json::from_str(&reported).unwrap();
        let row = |name: &str, costs: [u64; 2]| (name.to_owned(), costs);
        let mut expected: Vec<_> = reported
            .iter()
            .map(|of| row(of["symbol"].as_str().unwrap(), ["self", "total"].map(|column| of[column].as_u64().unwrap())))
            .filter(|(_, costs)| *costs != [0, 0])
            .collect();
        let mut seen: Vec<_> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|of| row(of[0].as_str().unwrap(), [1, 2].map(|at| of[at].as_u64().unwrap())))
            .collect();
        expected.sort();
        seen.sort();
        assert!(!seen.is_empty() && seen == expected, "{tids:?}: {seen:?} instead of {expected:?}");
    }
}
