//! The flame graph page in a real browser, used by mouse and keyboard as a person would.

use crate::support::browser;
use crate::support::page;
use crate::support::runner;

use browser::Page;
use page::{Page as Svg, PageBox};
use runner::stdout;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The stacks that are searched, how often each ran, and how often functions are found in it.
const STACKS: &str = "main;parse;scan 30\nmain;parse;scanIdentifier;scan 20\nmain;check;Scanner::next 10\n\
                      main;check;infer 25\nmain;emit 15\n";

/// A flame graph in a browser.
struct Graph {
    page: Page,
    svg: Svg,
    /// The zoomed range: start and end in the unit of the profile.
    view: (u64, u64),
    _dir: TempDir,
}

impl Graph {
    /// The graph of folded stacks.
    fn of(stacks: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let input = dir.path().join("input.folded");
        fs::write(&input, stacks).unwrap();
        Self::of_file(&[], &input)
    }

    fn of_file(args: &[&str], input: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("graph.svg");
        let text = stdout(&[&["flamegraph", "--quiet", "--minwidth", "0"], args].concat(), input);
        fs::write(&file, &text).unwrap();
        let svg = Svg::parse(&text);
        let all = svg.facts["total"].as_u64().unwrap() * svg.facts["unit"].as_u64().unwrap();
        Self { page: Page::open(&file), svg, view: (0, all), _dir: dir }
    }

    fn named(&self, name: &str) -> PageBox {
        let boxes = self.svg.named(name);
        assert_eq!(boxes.len(), 1, "{name}: {boxes:?}");
        boxes[0].clone()
    }

    /// The middle of a box on the screen: rows are on the bar below, each as high as the page states.
    fn middle_of(&mut self, one: &PageBox) -> (f64, f64) {
        const MARGIN: f64 = 8.0;
        let [left, top, width, height] = self.page.edges_of(".scroll");
        let row = self.svg.facts["row"].as_f64().unwrap();
        let (start, end) = (one.start.max(self.view.0), (one.start + one.width).min(self.view.1));
        let middle = (start + end) as f64 / 2.0 - self.view.0 as f64;
        let share = middle / (self.view.1 - self.view.0) as f64;
        let x = left + MARGIN + share * (width - 2.0 * MARGIN);
        (x, top + height - MARGIN - (one.row as f64 + 0.5) * row)
    }

    fn point_at(&mut self, name: &str) {
        let one = self.named(name);
        let place = self.middle_of(&one);
        self.page.point_at(place);
    }

    fn click(&mut self, name: &str) {
        let one = self.named(name);
        let place = self.middle_of(&one);
        self.page.click(place);
        self.view = (one.start, one.start + one.width);
    }

    /// The text of the bar about the box that is pointed at.
    fn told(&mut self) -> (String, String) {
        let what = self.page.text("document.querySelector('.what').textContent");
        (what, self.page.text("document.querySelector('.much').textContent"))
    }

    fn found(&mut self) -> String {
        self.page.text("document.querySelector('output').textContent")
    }

    fn shows_all(&mut self) -> bool {
        self.page.evaluate("getComputedStyle(document.querySelector('.find button')).visibility") == "hidden"
    }

    /// Red, green and blue of a point of the window.
    fn color_at(&mut self, place: (f64, f64)) -> [u64; 3] {
        self.page.color_in("canvas", place)
    }
}

fn told(what: &str, much: &str) -> (String, String) {
    (what.to_owned(), much.to_owned())
}

/// The share of all samples in whose stack a function is that a test finds.
fn share(stacks: &str, finds: impl Fn(&str) -> bool) -> String {
    let rows = stacks.lines().map(|line| line.rsplit_once(' ').unwrap());
    let rows: Vec<(&str, f64)> = rows.map(|(stack, weight)| (stack, weight.parse().unwrap())).collect();
    let all: f64 = rows.iter().map(|(_, weight)| weight).sum();
    let found: f64 = rows.iter().filter(|(stack, _)| stack.split(';').any(&finds)).map(|(_, weight)| weight).sum();
    let names: std::collections::BTreeSet<&str> =
        stacks.lines().flat_map(|line| line.rsplit_once(' ').unwrap().0.split(';')).collect();
    let count = names.into_iter().filter(|name| finds(name)).count();
    format!("{count} {} · {:.2}%", if count == 1 { "match" } else { "matches" }, 100.0 * found / all)
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_search_shows_the_share_of_the_stacks_that_have_what_is_found() {
    let mut graph = Graph::of(STACKS);
    graph.page.press("/");
    graph.page.type_text("SCAN");
    assert_eq!(graph.found(), share(STACKS, |name| name.to_lowercase().contains("scan")));
    assert_eq!(graph.page.text("document.querySelector('output').title"), "60 samples");
    graph.page.click_on("input[type=checkbox]");
    graph.page.click_on("#search");
    graph.page.press_with(browser::page::CONTROL, "a");
    graph.page.type_text("^scan$");
    assert_eq!(graph.found(), share(STACKS, |name| name == "scan"));
    graph.page.press_with(browser::page::CONTROL, "a");
    graph.page.type_text("(");
    assert_eq!(graph.found(), "not a regular expression");
    graph.page.press("Escape");
    assert_eq!(graph.found(), "");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_found_box_is_drawn_in_another_color() {
    let mut graph = Graph::of(STACKS);
    let [scan, infer] = ["scanIdentifier", "infer"].map(|name| graph.named(name));
    let places = [scan, infer].map(|one| graph.middle_of(&one)).map(|(x, y)| (x - 60.0, y + 5.0));
    let before = places.map(|place| graph.color_at(place));
    graph.page.press_with(browser::page::CONTROL, "f");
    graph.page.type_text("identifier");
    let after = places.map(|place| graph.color_at(place));
    assert_eq!((after[0], after[1]), ([0xe6, 0, 0xe6], before[1]));
    assert_ne!(before[0], after[0]);
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn the_bar_reports_the_box_that_is_pointed_at() {
    let mut graph = Graph::of(STACKS);
    graph.point_at("parse");
    assert_eq!(graph.told(), told("parse", "50 samples · 50.00% of all · self 0 samples, 0.00%"));
    graph.point_at("infer");
    assert_eq!(graph.told(), told("infer", "25 samples · 25.00% of all · self 25 samples, 25.00%"));
    graph.page.point_at((700.0, 5.0));
    assert_eq!(graph.told(), told("", "Point at a box to read it, click to zoom in"));
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_click_zooms_in_and_escape_shows_everything_again() {
    let mut graph = Graph::of(STACKS);
    assert!(graph.shows_all());
    graph.click("check");
    assert!(!graph.shows_all());
    graph.point_at("infer");
    assert_eq!(graph.told(), told("infer", "25 samples · 25.00% of all · 71.43% of check · self 25 samples, 25.00%"));
    let left = graph.page.edges_of(".scroll")[0];
    let next = graph.named("Scanner::next");
    let place = (left + 12.0, graph.middle_of(&next).1);
    graph.page.point_at(place);
    assert_eq!(graph.told().0, "Scanner::next", "what is zoomed to begins at the left edge");
    graph.page.press("Escape");
    assert!(graph.shows_all());
    graph.click("emit");
    graph.page.click_on(".find button");
    assert!(graph.shows_all());
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_link_to_a_zoom_and_a_search_shows_the_same_after_it_is_loaded_anew() {
    let mut graph = Graph::of(STACKS);
    graph.click("parse");
    graph.page.press("/");
    graph.page.type_text("identifier");
    let address = graph.page.text("location.hash");
    graph.page.reload();
    assert_eq!(graph.page.text("location.hash"), address);
    assert_eq!(graph.found(), share(STACKS, |name| name == "scanIdentifier"));
    assert!(!graph.shows_all());
    graph.point_at("scanIdentifier");
    assert_eq!(
        graph.told(),
        told("scanIdentifier", "20 samples · 20.00% of all · 40.00% of parse · self 0 samples, 0.00%")
    );
    graph.page.evaluate("location.hash = ''");
    graph.page.wait_until("document.querySelector('input').value === ''");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn a_page_turns_dark_and_light_with_the_system() {
    let mut graph = Graph::of(STACKS);
    graph.page.prefer("light");
    graph.page.settle();
    let corner = (2.0, 200.0);
    assert_eq!(graph.color_at(corner), [0xff, 0xff, 0xff]);
    graph.page.prefer("dark");
    graph.page.settle();
    assert_eq!(graph.color_at(corner), [0x1b, 0x1d, 0x20]);
    assert_eq!(graph.page.text("getComputedStyle(document.body).backgroundColor"), "rgb(27, 29, 32)");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn hostile_names_stay_text() {
    let script = "</script><img src=x onerror=window.hit=1><svg onload=window.hit=1>]]>&quot";
    let turned = "\u{202e}desrever\u{2066} \u{1b}[31mred\u{7}";
    let mut graph = Graph::of(&format!("main;{script} 3\nmain;{turned} 3\n"));
    for name in [script, turned] {
        let one = graph.svg.boxes.iter().find(|one| one.name.contains(&name[3..7])).unwrap().clone();
        let place = graph.middle_of(&one);
        graph.page.point_at(place);
        assert_eq!(graph.told(), (one.name, "3 samples · 50.00% of all · self 3 samples, 50.00%".to_owned()));
        graph.page.click(place);
        graph.page.press("Escape");
    }
    assert_eq!(
        graph.page.evaluate("[window.hit === undefined, document.querySelectorAll('img').length]"),
        json!([true, 0])
    );
}

#[test]
fn graphs_of_every_sort_open_without_complaint() {
    let tiers = fixture("tiers-recording/perf.data.zst");
    let objects = fixture("tiers-recording");
    let debug = ["--debug-dir", objects.to_str().unwrap()];
    let other = fixture("folded-node/input.folded");
    let cases: [(&[&str], &Path); 4] = [
        (&debug, &tiers),
        (&["--inverted", debug[0], debug[1]], &tiers),
        (&["--flamechart", debug[0], debug[1]], &tiers),
        (&["--diff", other.to_str().unwrap()], &other),
    ];
    for (args, input) in cases {
        let mut graph = Graph::of_file(args, input);
        let drawn = graph.page.colors_of("canvas");
        assert!(drawn > 8, "{args:?}: {drawn} colors");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn complaints_of_a_page_are_seen() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("page.html");
    let html = "<script>console.log('heard'); setTimeout(() => { throw new Error('thrown'); })</script>\
                <img src='http://jitgraft.test/asked'><img src='file:///not/there'>";
    fs::write(&file, html).unwrap();
    let mut page = Page::open(&file);
    let complaints = page.complaints().join("\n");
    for seen in ["heard", "thrown", "request: http://jitgraft.test/asked", "file:///not/there"] {
        assert!(complaints.contains(seen), "{seen} in {complaints}");
    }
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn code_without_a_name_is_hatched_in_both_themes() {
    for scheme in ["light", "dark"] {
        let mut graph = Graph::of("main;f_[j] 10\nmain;[perf-7.map]_[j] 10\nmain;[libc.so.6] 10\n");
        graph.page.prefer(scheme);
        graph.page.settle();
        for (name, is_hatched) in [("f", false), ("[perf-7.map]", true), ("[libc.so.6]", true)] {
            let one = graph.named(name);
            let (x, y) = graph.middle_of(&one);
            let across = (0..12).map(|step| graph.color_at((x + 60.0 + f64::from(step), y)));
            let colors: std::collections::BTreeSet<[u64; 3]> = across.collect();
            assert_eq!(colors.len() > 1, is_hatched, "{scheme}: {name}: {colors:?}");
        }
        let swatches = "Array.from(document.querySelectorAll('.legend i'), (one) => getComputedStyle(one).backgroundImage).join('|')";
        assert_eq!(graph.page.text(swatches).matches("repeating-linear-gradient").count(), 2, "{scheme}");
    }
}

/// What the status line says first, and whether it is a live one.
fn status(graph: &mut Graph) -> String {
    assert_eq!(graph.page.text("document.querySelector('.what').closest('[aria-live]').ariaLive"), "polite");
    graph.told().0
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn boxes_are_reached_by_keyboard() {
    let mut graph = Graph::of(STACKS);
    graph.page.press("Tab");
    assert_eq!(status(&mut graph), "all");
    let mut seen = Vec::new();
    for key in ["ArrowUp", "ArrowUp", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"] {
        graph.page.press(key);
        seen.push(status(&mut graph));
    }
    assert_eq!(seen, ["main", "parse", "emit", "parse", "scan", "parse"]);
    graph.page.press("Enter");
    assert!(!graph.shows_all());
    assert_eq!(graph.page.evaluate("document.activeElement.classList.contains('scroll')"), true);
    graph.page.press("Escape");
    assert!(graph.shows_all());
    graph.page.press("w");
    assert!(!graph.shows_all());
    graph.page.press("-");
    assert!(graph.shows_all());
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn enter_goes_through_the_matches_of_a_search() {
    let mut graph = Graph::of(STACKS);
    graph.page.press("/");
    graph.page.type_text("scan");
    let mut seen = Vec::new();
    for held in [0, 0, 0, browser::page::SHIFT] {
        graph.page.press_with(held, "Enter");
        seen.push((status(&mut graph), graph.found().split(" · ").next().unwrap().to_owned()));
    }
    let names: Vec<&str> = seen.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!((names[0], names[3]), ("scan", names[1]), "{seen:?}");
    assert_eq!(seen[2].1, "box 3 of 4");
    assert!(names.iter().all(|name| name.to_lowercase().contains("scan")), "{seen:?}");
}

#[test]
#[ignore = "drives a browser: tests/run.sh --all"]
fn back_leads_out_of_a_zoom() {
    let mut graph = Graph::of(STACKS);
    graph.click("parse");
    let zoomed = graph.page.text("location.hash");
    graph.page.evaluate("history.back()");
    graph.page.wait_until("location.hash.length < 2");
    graph.page.settle();
    assert!(graph.shows_all());
    graph.page.evaluate("history.forward()");
    graph.page.wait_until(&format!("location.hash === {}", json!(zoomed)));
    graph.page.settle();
    assert!(!graph.shows_all());
}
