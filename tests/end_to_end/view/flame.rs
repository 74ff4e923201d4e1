//! The flame graph of the page: boxes, search, zoom, callers and callees, focus, what is hidden, text.

use super::picture::Page as Picture;
use super::shown::Shown;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// `scan` is called by three functions, and by itself.
const STACKS: &str = "main;check;infer 250\nmain;check;scan;next 101\nmain;emit 150\nmain;parse;identifier;scan 200\n\
                      main;parse;scan 180\nmain;parse;scan;scan;next 119\n";

fn graph() -> Shown {
    Shown::folded(STACKS).part("flame")
}

/// The middle of the widest box of a name in a graph.
fn place_in(shown: &mut Shown, graph: &str, name: &str) -> (f64, f64) {
    let place = shown.page.evaluate(&format!("document.getElementById('{graph}').view.placeOf({})", json!(name)));
    assert!(place.is_object(), "no box of {name} is drawn in {graph}");
    (place["x"].as_f64().unwrap(), place["y"].as_f64().unwrap())
}

fn place(shown: &mut Shown, name: &str) -> (f64, f64) {
    place_in(shown, "flame", name)
}

/// The text of a box's tooltip.
fn tip(shown: &mut Shown, graph: &str, name: &str) -> String {
    let place = place_in(shown, graph, name);
    shown.page.point_at(place);
    shown.text_of(&format!("#{graph}-tip"))
}

fn choose(shown: &mut Shown, name: &str, item: &str) {
    let place = place(shown, name);
    shown.page.menu_at(place);
    shown.page.click_on(&format!("#menu-{item}"));
}

/// Stacks and their weights.
fn rows(folded: &str) -> Vec<(Vec<&str>, u64)> {
    folded
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(stack, weight)| (stack.split(';').collect(), weight.parse().unwrap()))
        .collect()
}

/// What the search says: how many functions a test finds, and the share of the stacks in which one is.
fn matched(folded: &str, finds: impl Fn(&str) -> bool) -> String {
    let rows = rows(folded);
    let names: std::collections::BTreeSet<&str> = rows.iter().flat_map(|(stack, _)| stack.iter().copied()).collect();
    let count = names.into_iter().filter(|name| finds(name)).count();
    format!("{count} {} · {}", if count == 1 { "match" } else { "matches" }, share(folded, finds))
}

/// The share of the stacks in which a function is that a test finds, as the page gives it.
fn share(folded: &str, finds: impl Fn(&str) -> bool) -> String {
    let rows = rows(folded);
    let all: u64 = rows.iter().map(|(_, weight)| weight).sum();
    let found: u64 =
        rows.iter().filter(|(stack, _)| stack.iter().any(|name| finds(name))).map(|(_, weight)| weight).sum();
    format!("{:.2}%", 100.0 * found as f64 / all as f64)
}

/// The weight of everything that the graph shows, and by name that of its boxes below the root.
fn total(shown: &mut Shown) -> Value {
    shown.page.evaluate("jitgraft.page.tree().total[0]")
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_search_shows_the_share_of_the_stacks_that_have_what_is_found() {
    let mut shown = graph();
    shown.page.press("/");
    shown.page.type_text("SCAN");
    assert_eq!(shown.text_of("#search-matched"), matched(STACKS, |name| name == "scan"));
    shown.page.click_on("#search-regex");
    shown.set(&json!({ "search": "^(infer|emit)$" }));
    let expected = matched(STACKS, |name| ["infer", "emit"].contains(&name));
    assert_eq!(shown.text_of("#search-matched"), expected);
    shown.reload();
    assert_eq!(shown.text_of("#search-matched"), expected);
    shown.set(&json!({ "search": "(" }));
    assert_eq!(shown.text_of("#search-matched"), "not a regular expression");
    shown.set(&json!({ "search": "nothing of this name", "regex": false }));
    assert_eq!(shown.text_of("#search-matched"), "no matches");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_search_in_a_recording_finds_what_is_in_its_stacks() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/folded-node/input.folded");
    let mut shown = Shown::fixture("folded-node/input.folded").part("flame");
    let folded = fs::read_to_string(path).unwrap();
    for text in ["Builtins_", "regexp", "node", "[perf-15670.map]"] {
        shown.set(&json!({ "search": text }));
        let expected = share(&folded, |name| name.to_lowercase().contains(&text.to_lowercase()));
        let told = shown.text_of("#search-matched");
        assert!(told.ends_with(&format!(" · {expected}")), "{text}: {told}");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_box_shows_what_report_reports_its_function() {
    let mut shown = graph();
    for (name, own) in
        [("check", "351 samples"), ("infer", "250 samples"), ("parse", "499 samples"), ("main", "1,000 samples")]
    {
        let told = tip(&mut shown, "flame", name);
        assert!(told.starts_with(name) && told.contains(own), "{name}: {told}");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_click_zooms_in_and_a_link_to_it_shows_the_same() {
    let mut shown = graph();
    let before = place(&mut shown, "infer");
    let check = place(&mut shown, "check");
    shown.page.click(check);
    let zoomed = place(&mut shown, "infer");
    assert_ne!(before, zoomed);
    assert_eq!(
        shown.page.evaluate("jitgraft.page.profile.functions.name[jitgraft.page.store.state.selected]"),
        "check"
    );
    shown.reload();
    assert_eq!(place(&mut shown, "infer"), zoomed);
    shown.page.click_on("#flame-reset");
    assert_eq!(place(&mut shown, "infer"), before);
    let check = place(&mut shown, "check");
    shown.page.click(check);
    shown.page.press("Escape");
    assert_eq!(place(&mut shown, "infer"), before);
    assert_eq!(shown.state("zoom"), json!([]));
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_graph_is_walked_by_keyboard() {
    let mut shown = graph();
    shown.page.evaluate("document.querySelector('#flame').focus()");
    let mut told = Vec::new();
    for key in ["Home", "ArrowUp", "ArrowUp", "ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowDown"] {
        shown.page.press(key);
        told.push(shown.text_of("#flame-told").split(',').next().unwrap().to_owned());
    }
    assert_eq!(told[1..], ["main", "parse", "emit", "check", "infer", "check"]);
    shown.page.press("Enter");
    assert_eq!(shown.state("zoom").as_array().unwrap().len(), 2);
    shown.page.press("Escape");
    shown.page.press("s");
    assert!(shown.state("sandwich").is_number());
    shown.page.press("Escape");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn callers_and_callees_are_those_of_report() {
    let mut shown = graph();
    choose(&mut shown, "scan", "sandwich");
    for (graph, option) in [("callers", "--callers"), ("callees", "--callees")] {
        let reported: Vec<Value> = serde_json::from_str(&shown.report(&["--format", "json", option, "scan"])).unwrap();
        let mut reported: Vec<Value> =
            reported.iter().map(|row| json!([row["depth"], row["symbol"], row["total"], row["self"]])).collect();
        let shown = shown.page.evaluate(&format!(
            "{{ const {{ page }} = jitgraft, tree = page.sandwich().{graph}, groups = page.groups(); \
             Array.from(tree.total.slice(1), (total, at) => [tree.depth[at + 1] - 1, \
             page.profile.functions.name[groups.first[tree.group[at + 1]]], total, \
             '{graph}' === 'callees' ? tree.own[at + 1] : 0]).filter((row) => row[2] > 0) }}"
        ));
        let mut shown = shown.as_array().unwrap().clone();
        if graph == "callers" {
            reported.iter_mut().for_each(|row| row[3] = json!(0));
        }
        let key = |row: &Value| row.to_string();
        shown.sort_by_key(key);
        reported.sort_by_key(key);
        assert_eq!(shown, reported, "{graph}");
    }
    for _ in 0..2 {
        for (graph, name, amount) in
            [("flame-callers", "parse", "299 samples"), ("flame-callees", "next", "119 samples")]
        {
            let told = tip(&mut shown, graph, name);
            assert!(told.contains(amount), "{name}: {told}");
        }
        shown.reload();
    }
}

/// The names of the boxes in a row, from left to right; row 0 has the root.
fn row_of(shown: &mut Shown, row: u32) -> Value {
    shown.page.evaluate(&format!(
        "{{ const {{ boxes, picture }} = document.getElementById('flame').view; \
         Array.from(boxes.node.slice(boxes.first[{row}], boxes.first[{row} + 1]), (node) => picture.nameOf(node)) }}"
    ))
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_graph_begins_as_the_picture_of_flamegraph_does() {
    let mut shown = Shown::folded("[truncated];f 90\nmain;b 5\nmain;c 9\nmain;a 2\nZed 1\n_start 7\n").part("flame");
    assert_eq!(row_of(&mut shown, 1), json!(["Zed", "_start", "main", "[truncated]"]));
    assert_eq!(row_of(&mut shown, 2), json!(["a", "b", "c", "f"]));
    let (root, callee) = (place(&mut shown, "main"), place(&mut shown, "b"));
    assert!(root.1 > callee.1, "roots are at the bottom: {root:?} {callee:?}");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_graph_of_a_recording_has_the_boxes_of_the_picture_of_flamegraph() {
    let mut shown = Shown::fixture("tiers-recording/perf.data.zst").part("flame");
    let picture = Picture::parse(&shown.output(&["flamegraph"]));
    let total = picture.boxes[0].width as f64;
    for row in 1..6 {
        // Narrow boxes are left out on either side.
        let wide = picture.boxes.iter().filter(|of| of.row == row && of.width as f64 > total / 200.0);
        let drawn: Vec<Value> = wide.map(|of| json!([of.name, of.start, of.width])).collect();
        let boxes = format!(
            "{{ const {{ boxes, picture }} = document.getElementById('flame').view; \
             Array.from(boxes.node.keys()).slice(boxes.first[{row}], boxes.first[{row} + 1]).map((at) => \
             [picture.nameOf(boxes.node[at]), boxes.start[at], boxes.end[at] - boxes.start[at]]).filter(([, , width]) => width > {total} / 200) }}"
        );
        assert_eq!(shown.page.evaluate(&boxes), json!(drawn), "row {row}");
        assert!(!drawn.is_empty(), "row {row}");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_call_tree_opens_row_by_row_with_the_sums_of_the_graph() {
    let mut shown = Shown::folded(STACKS).part("tree");
    let rows = |shown: &mut Shown| {
        let rows = "Array.from(document.querySelectorAll('.tree-row'), (row) => \
                    [row.children[4].lastChild.textContent, row.children[1].textContent])";
        shown.page.evaluate(rows)
    };
    let closed = json!([["main", "100.00%"], ["parse", "49.90%"], ["check", "35.10%"], ["emit", "15.00%"]]);
    assert_eq!(rows(&mut shown), closed);
    shown.page.evaluate("document.querySelector('#tree-rows').focus()");
    for key in ["Home", "ArrowDown", "ArrowRight"] {
        shown.page.press(key);
    }
    let opened = json!([
        ["main", "100.00%"],
        ["parse", "49.90%"],
        ["scan", "29.90%"],
        ["identifier", "20.00%"],
        ["check", "35.10%"],
        ["emit", "15.00%"]
    ]);
    assert_eq!(rows(&mut shown), opened);
    shown.page.press("ArrowLeft");
    assert_eq!(rows(&mut shown), closed);
    shown.page.press("Enter");
    let selected = shown.state("selected");
    assert_eq!(shown.page.text(&format!("jitgraft.page.profile.functions.name[{selected}]")), "parse");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_focus_leaves_the_stacks_through_a_function() {
    let mut shown = graph();
    choose(&mut shown, "scan", "focus");
    let table = shown.reported(&["--symbol", "^scan$"]);
    assert_eq!(total(&mut shown), table[&(String::new(), "scan".to_owned())].total);
    shown.page.click_on("#flame-kept button");
    assert_eq!(total(&mut shown), 1000);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_hidden_function_counts_for_its_callers() {
    let mut shown = graph();
    choose(&mut shown, "parse", "hide-function");
    assert_eq!(total(&mut shown), 1000);
    assert!(
        tip(&mut shown, "flame", "scan").contains("299 samples"),
        "scan was called by parse, and is called by main"
    );
    let copied = shown.copied_by("#flame-copy");
    assert!(!copied.contains("parse") && copied.contains("main;scan 180\n"), "{copied}");
    shown.reload();
    assert_eq!(shown.copied_by("#flame-copy"), copied);
    shown.page.click_on("#flame-kept button");
    assert_eq!(shown.copied_by("#flame-copy"), STACKS);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_graph_as_text_is_what_was_folded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/folded-node/expected.folded");
    let mut shown = Shown::fixture("folded-node/input.folded").part("flame");
    let mut lines: Vec<String> = fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    let copied = shown.copied_by("#flame-copy");
    let mut copied: Vec<&str> = copied.lines().collect();
    copied.sort_unstable();
    assert_eq!(copied, lines);
}

/// A run of unnamed frames is one box. As text, it has all of its frames.
#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_graph_as_text_has_every_unnamed_frame() {
    const STACKS: &str = "main;[unknown] 5\nmain;[unknown];[unknown];[unknown];leaf 40\nmain;[unknown];[unknown];work 30\n\
                          main;other;[unknown] 20\n";
    let mut shown = Shown::folded(STACKS).part("flame");
    assert_eq!(shown.copied_by("#flame-copy"), STACKS);
    let run = "[unknown] (up to 3 frames)";
    choose(&mut shown, run, "zoom");
    assert_eq!(shown.copied_by("#flame-copy"), STACKS.replace("main;other;[unknown] 20\n", ""));
    // What is searched for is the name, not what the box adds to it.
    choose(&mut shown, run, "search");
    assert_eq!(shown.state("search"), "[unknown]");
    let mut reversed = Shown::folded(STACKS).part("flame");
    reversed.set(&json!({"direction": "bottomup"}));
    assert_eq!(
        reversed.copied_by("#flame-copy"),
        "[unknown];main 5\n[unknown];other;main 20\nleaf;[unknown];[unknown];[unknown];main 40\nwork;[unknown];[unknown];main 30\n"
    );
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_graph_from_its_ends_on_has_reports_own_sums_in_its_first_row() {
    let mut shown = Shown::fixture("recording-node/perf.data.zst").part("flame");
    shown.page.evaluate(
        "{ const list = document.querySelector('#flame-direction'); list.value = 'bottomup'; list.dispatchEvent(new Event('change')) }",
    );
    shown.page.settle();
    let row = shown.page.evaluate(
        "{ const { page } = jitgraft, tree = page.tree(), groups = page.groups(), { name, module } = page.profile.functions; \
         Array.from(tree.total).flatMap((total, at) => tree.depth[at] === 1 && total > 0 ? \
         [[module[groups.first[tree.group[at]]], name[groups.first[tree.group[at]]], total]] : []) }",
    );
    let reported = shown.reported(&[]);
    let mut expected: Vec<Value> = reported
        .iter()
        .filter(|(_, sums)| sums.own > 0)
        .map(|((module, name), sums)| json!([module, name, sums.own]))
        .collect();
    let mut row = row.as_array().unwrap().clone();
    let key = |row: &Value| row.to_string();
    row.sort_by_key(key);
    expected.sort_by_key(key);
    assert_eq!(row, expected);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_graph_follows_a_range_of_time() {
    let mut shown = Shown::fixture("recording-java/perf.data.zst").part("flame");
    let length = shown.page.evaluate("Number(jitgraft.page.profile.time.last - jitgraft.page.profile.time.start)");
    let length = length.as_u64().unwrap();
    shown.set(&json!({ "ranges": [[length / 4, length / 2]] }));
    let option = shown.text_of("#time-option");
    let filters: Vec<&str> = option.split(' ').collect();
    let own: u64 = shown.reported(&filters).values().map(|sums| sums.own).sum();
    assert_eq!(total(&mut shown), own);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn pictures_of_time_line_up_with_the_lanes_above() {
    let mut shown = Shown::fixture("php-recording/perf.data.zst").part("flame");
    shown.set(&json!({ "order": "time" }));
    let edges = shown.page.evaluate(
        "{ const { view } = document.getElementById('flame'), { lanes, profile } = jitgraft.page; \
         [view.left + view.scroll.getBoundingClientRect().left - lanes.left, view.width - lanes.width, view.view.start] }",
    );
    assert_eq!(edges, json!([0, 0, 0]));
    let mut chosen = Vec::new();
    for surface in ["#time-axis", "#jit-chart-samples"] {
        shown.set(&json!({ "part": "jit", "ranges": [] }));
        let [left, top, width, height] = shown.page.edges_of(surface);
        let lanes = shown.page.evaluate("[jitgraft.page.lanes.left, jitgraft.page.lanes.width]");
        let at = |share: f64| (lanes[0].as_f64().unwrap() + share * lanes[1].as_f64().unwrap(), top + height / 2.0);
        assert!(left <= at(0.0).0 && at(1.0).0 <= left + width, "{surface}: {left} {width} {lanes}");
        shown.page.drag(at(0.25), at(0.5));
        chosen.push(shown.state("ranges"));
    }
    assert_eq!(chosen[0], chosen[1]);
    assert_eq!(chosen[0].as_array().unwrap().len(), 1);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_function_without_self_time_leads_to_the_code_of_its_callees() {
    let mut shown = Shown::fixture("php-recording/perf.data.zst").part("code");
    let caller = shown.page.evaluate(
        "{ const { page } = jitgraft, { self, total } = page.sums(), { first } = page.groups(); \
         first[total.reduce((best, sum, group) => self[group] === 0 && sum > (total[best] ?? 0) ? group : best, -1)] }",
    );
    shown.set(&json!({ "selected": caller }));
    let callee = shown.text_of("#code-callees button");
    shown.page.click_on("#code-callees button");
    assert_eq!(shown.text_of("#code-head h2"), callee);
    assert_ne!(shown.page.evaluate("document.querySelector('#code-machine .instruction')"), Value::Null);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn every_way_to_draw_a_graph_draws_one_without_complaint() {
    for input in ["recording-java/perf.data.zst", "trace-miri/input.json", "measureme-rustc/profile.mm_profdata.zst"] {
        let mut shown = Shown::fixture(input).part("flame");
        for (direction, order) in
            [("icicle", "merged"), ("flame", "merged"), ("bottomup", "merged"), ("icicle", "time"), ("flame", "time")]
        {
            shown.set(&json!({ "direction": direction, "order": order }));
            let colors = shown.page.colors_of("#flame-canvas");
            assert!(colors > 8, "{input} {direction} {order}: {colors} colors");
            shown.page.prefer("dark");
            shown.page.settle();
            assert_ne!(shown.page.color_in("#flame-canvas", (2.0, 880.0)), [255, 255, 255]);
            shown.page.prefer("light");
        }
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn code_without_a_name_is_hatched_and_the_page_states_how_much_there_is() {
    // Nothing shows that the dump next to the recording is from this run, so no trace has a name.
    let mut shown = Shown::fixture("recording-luajit/perf.data.zst").part("flame");
    let rows = shown.report(&["--group-by", "kind", "--format", "json"]);
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let share = rows.iter().find(|row| row["kind"] == "JIT, unnamed").unwrap()["self%"].as_f64().unwrap();
    assert!(share > 50.0, "{share}");
    let entry = "[data-category='JIT, unnamed']";
    assert_eq!(shown.text_of(entry), format!("JIT, unnamed {share:.2}%"));
    let swatch = format!("getComputedStyle(document.querySelector(\"{entry} i\")).backgroundImage");
    assert!(shown.page.text(&swatch).starts_with("repeating-linear-gradient"));
    let (x, y) = place(&mut shown, "[perf-26632.map]");
    let right = (0..12).map(|step| shown.page.color_in("#flame-canvas", (x + f64::from(step), y - 5.0)));
    let colors: std::collections::BTreeSet<[u64; 3]> = right.collect();
    assert!(colors.len() > 2, "{colors:?}");
    let header = shown.report(&[]);
    let header = header.lines().find(|line| line.contains("in JIT code")).unwrap().to_owned();
    let mut shown = shown.part("doctor");
    let said = shown.text_of(".doctor .innermost");
    assert_eq!(said.split_once(": ").unwrap().1, header.trim_start_matches("# "));
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn unnamed_frames_in_a_row_are_one_box_that_says_how_many() {
    let run = |name: &str, count: usize| vec![name; count].join(";");
    let stacks = format!(
        "main;{};f 5\nmain;{};f 3\nmain;{};g 4\n",
        run("[unknown]", 125),
        run("[unknown]", 3),
        run("[a.so]", 20)
    );
    let mut shown = Shown::folded(&stacks).part("flame");
    let rows = |shown: &mut Shown| (1..4).map(|row| row_of(shown, row)).collect::<Vec<_>>();
    let expected = json!([["main"], ["[a.so] (up to 20 frames)", "[unknown] (up to 125 frames)"], ["g", "f"]]);
    assert_eq!(json!(rows(&mut shown)), expected);
    // From the innermost functions, it is the same.
    shown.set(&json!({ "direction": "bottomup" }));
    assert_eq!(row_of(&mut shown, 2), json!(["[unknown] (up to 125 frames)", "[a.so] (up to 20 frames)"]));
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_pointer_may_come_before_the_graph_is_drawn() {
    let mut shown = graph().part("functions");
    shown.reload();
    let errors = shown.page.evaluate(
        "(() => { const errors = []; addEventListener('error', ({ message }) => errors.push(message)); \
         jitgraft.page.store.set({ part: 'flame' }); \
         for (const type of ['mousemove', 'click', 'contextmenu', 'mouseleave']) \
         document.getElementById('flame').dispatchEvent(new MouseEvent(type, { clientX: 300, clientY: 300 })); \
         return errors })()",
    );
    assert_eq!(errors, json!([]));
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_root_stays_in_sight_if_the_window_or_the_graph_gets_lower() {
    let deep: Vec<String> = (0..60).map(|depth| format!("f{depth}")).collect();
    let mut shown = Shown::folded(&format!("{} 5\nmain 5\n", deep.join(";"))).part("flame");
    let below = |shown: &mut Shown| {
        shown.page.settle();
        shown.page.settle();
        let room = "(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)";
        shown.page.evaluate(&format!("{room}(document.getElementById('flame'))")).as_f64().unwrap()
    };
    for size in [(1000, 600), (1000, 560), (400, 500)] {
        shown.page.resize(size);
        assert!(below(&mut shown) <= 1.0, "{size:?}");
    }
    shown.set(&json!({ "hiddenFunctions": [3, 4] }));
    assert!(below(&mut shown) <= 1.0);
}
