//! The flame graph page, read back by an XML parser: boxes, names, colors and what stands around them.

use crate::support::page;

use page::{Page, PageBox};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn run(args: &[&str], input: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let output = command.args(args).arg("--quiet").arg(input).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn flamegraph(args: &[&str], input: &Path) -> Page {
    Page::parse(&run(&[&["flamegraph"], args].concat(), input))
}

fn folded(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stacks");
    fs::write(&path, text).unwrap();
    (dir, path)
}

/// Every box is within a box of the row below, and boxes of a row do not overlap.
fn assert_nested(page: &Page) {
    let mut rows: BTreeMap<u64, Vec<&PageBox>> = BTreeMap::new();
    page.boxes.iter().for_each(|one| rows.entry(one.row).or_default().push(one));
    for (row, boxes) in &rows {
        let mut end = 0;
        for one in boxes {
            assert!(one.start >= end, "{one:?} overlaps its neighbour");
            end = one.start + one.width;
            let within = |below: &&&PageBox| below.start <= one.start && end <= below.start + below.width;
            assert!(*row == 0 || rows[&(row - 1)].iter().any(|below| within(&below)), "{one:?} stands on nothing");
        }
    }
}

/// The name of a box's function. A box of several unnamed frames also says how many these are.
fn function_of(one: &PageBox) -> String {
    one.name.split(" (up to ").next().unwrap().to_owned()
}

/// Self weight, by name: a box's width without those of the boxes on it.
fn own_by_name(page: &Page) -> BTreeMap<String, u64> {
    let mut own = BTreeMap::new();
    for one in &page.boxes {
        let inside = |above: &&PageBox| {
            above.row == one.row + 1 && above.start >= one.start && above.start + above.width <= one.start + one.width
        };
        let above: u64 = page.boxes.iter().filter(inside).map(|above| above.width).sum();
        *own.entry(function_of(one)).or_default() += one.width - above;
    }
    own.retain(|_, own| *own > 0);
    own
}

/// Self weight, by name, as the boxes state it.
fn stated_own(page: &Page) -> BTreeMap<String, u64> {
    let mut own = BTreeMap::new();
    for one in &page.boxes {
        *own.entry(function_of(one)).or_default() += one.own.unwrap_or(0);
    }
    own.retain(|_, own| *own > 0);
    own
}

#[test]
fn boxes_are_the_folded_stacks() {
    let input = fixture("folded-node/input.folded");
    let page = flamegraph(&["--minwidth", "0"], &input);
    assert_nested(&page);
    let mut own: BTreeMap<String, u64> = BTreeMap::new();
    for line in fs::read_to_string(&input).unwrap().lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        *own.entry(stack.rsplit(';').next().unwrap().to_owned()).or_default() += weight.parse::<u64>().unwrap();
    }
    assert_eq!(own_by_name(&page), own);
    assert_eq!(stated_own(&page), own);
    let total: u64 = own.values().sum();
    assert_eq!((page.boxes[0].name.as_str(), page.boxes[0].width), ("all", total));
}

#[test]
fn boxes_state_what_ran_in_the_function_itself() {
    let (_dir, input) = folded("main;f 3\nmain;f;g 4\nmain;f;narrow 1\nother;f 992\n");
    let own = |page: &Page| -> Vec<(String, Option<u64>)> {
        page.boxes.iter().map(|one| (one.name.clone(), one.own)).collect()
    };
    let expected = |boxes: &[(&str, Option<u64>)]| -> Vec<(String, Option<u64>)> {
        boxes.iter().map(|(name, own)| ((*name).to_owned(), *own)).collect()
    };
    // A box that is too narrow to be drawn isn't its caller's self weight.
    let merged =
        [("all", Some(0)), ("main", Some(0)), ("f", Some(3)), ("g", Some(4)), ("other", Some(0)), ("f", Some(992))];
    assert_eq!(own(&flamegraph(&["--minwidth", "0.2"], &input)), expected(&merged));
    assert_eq!(own(&flamegraph(&["--minwidth", "0.2", "--base", "f"], &input))[1], ("f".to_owned(), Some(995)));
    // In a reversed graph, only innermost functions have self weight. A caller's width is the weight of the calls that
    // it made.
    let reversed = own(&flamegraph(&["--reverse", "--minwidth", "0.2"], &input));
    assert_eq!(reversed[..3], expected(&[("all", Some(0)), ("f", Some(995)), ("main", None)]), "{reversed:?}");
    let chart = own(&flamegraph(&["--flamechart"], &fixture("php-recording/perf.data.zst")));
    assert!(chart.iter().all(|(_, own)| own.is_none()));
    for name in ["tiers-recording/perf.data.zst", "php-recording/perf.data.zst"] {
        let page = flamegraph(&["--minwidth", "0"], &fixture(name));
        assert_eq!(stated_own(&page), own_by_name(&page), "{name}");
    }
}

#[test]
fn the_root_is_at_the_bottom_and_at_the_top_of_an_icicle() {
    let (_dir, input) = folded("main;f 3\nmain;f;g 4\n");
    for (args, root_is_lower) in [(&[][..], true), (&["--inverted"], false)] {
        let page = flamegraph(args, &input);
        let mut strokes = page.strokes.clone();
        assert_eq!(strokes.len(), page.boxes.len());
        strokes.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (first, last) = (&strokes[0], &strokes[strokes.len() - 1]);
        assert_eq!(last.2 > first.2, root_is_lower, "{strokes:?}");
        assert_eq!(page.facts["inverted"], !root_is_lower);
    }
}

#[test]
fn a_function_of_a_recording_is_one_box_with_the_shares_of_its_tiers() {
    let input = fixture("tiers-recording/perf.data.zst");
    let objects = fixture("tiers-recording");
    let args = ["--debug-dir", objects.to_str().unwrap(), "--minwidth", "0"];
    let page = flamegraph(&args, &input);
    assert_nested(&page);
    assert!(page.boxes.iter().all(|one| !one.name.ends_with(']') || one.name.starts_with('[')), "tiers are no names");
    let mixed = |one: &&PageBox| one.shares.contains('o') && one.shares.contains('b') && one.letter == 'o';
    assert!(page.named("quicksort").into_iter().any(|one| mixed(&one)), "{:?}", page.named("quicksort"));
    assert_eq!(page.facts["title"], "./tiers tiers.lisp");
    let apart = flamegraph(&[&args[..], &["--no-merge-tiers"]].concat(), &input);
    for name in ["quicksort baseline", "quicksort optimized"] {
        assert!(!apart.named(name).is_empty(), "{name}");
    }
    let raw = flamegraph(&[&args[..], &["--jit-names", "raw"]].concat(), &input);
    assert!(!raw.named("quicksort [optimised]").is_empty());
    let total = |page: &Page| page.boxes[0].width;
    assert_eq!((total(&page), total(&apart)), (total(&raw), total(&raw)));
}

#[test]
fn colors_show_the_sort_of_code_and_the_legend_states_how_much_of_it_ran() {
    let page = flamegraph(&[], &fixture("php-recording/perf.data.zst"));
    let legend: Vec<&str> =
        page.facts["legend"].as_array().unwrap().iter().map(|entry| entry[1].as_str().unwrap()).collect();
    for sort in ["kernel", "native", "optimized"] {
        assert!(legend.iter().any(|entry| entry.starts_with(sort) && entry.ends_with('%')), "{legend:?}");
    }
    assert!(page.named("TRACE-8$App\\Deep\\mandel$5").iter().all(|one| one.letter == 'o'));
    let facts = page.facts["facts"].as_str().unwrap();
    assert!(facts.contains("samples · recorded for "), "{facts}");
}

#[test]
fn names_of_folded_stacks_stay_and_suffixes_are_colors() {
    let (_dir, input) = folded("app;JS:*push /a/b.js:1:1 5\napp;JS:~push /a/b.js:1:1 5\napp;read_[k] 1\n");
    let page = flamegraph(&[], &input);
    assert_eq!(page.named("JS:*push /a/b.js:1:1").len(), 1, "folded names are not merged unasked");
    assert_eq!(page.named("read")[0].letter, 'k');
    let (_dir, plain) = folded("app;f 5\napp;g 5\n");
    let page = flamegraph(&[], &plain);
    assert!(page.boxes[1..].iter().all(|one| one.letter.is_ascii_uppercase()), "warm colors by name");
    assert_eq!(page.facts["legend"], serde_json::json!([]));
}

#[test]
fn a_name_does_nothing_but_be_read() {
    let name = "evil\u{1b}[2J</script>]]><script>alert(1)</script>\u{202e}\u{7}&amp<\"'";
    let (_dir, input) = folded(&format!("main;{name} 5\n"));
    for args in [&[][..], &["--no-javascript"], &["--style", "inferno"]] {
        let svg = run(&[&["flamegraph"], args].concat(), &input);
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
        let document = roxmltree::Document::parse_with_options(&svg, options).unwrap();
        let scripts = document.descendants().filter(|node| node.tag_name().name() == "script").count();
        assert_eq!(scripts, usize::from(args != ["--no-javascript"]));
        assert!(!svg.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{args:?}");
    }
    let page = flamegraph(&["--title", name], &input);
    let shown = "evil\\x1b[2J</script>]]><script>alert(1)</script>\\u{202e}\\x07&amp<\"'";
    assert_eq!(page.named(shown).len(), 1, "{:?}", page.boxes);
}

#[test]
fn a_chart_runs_in_time_with_one_thread_below_the_other() {
    let input = fixture("php-recording/perf.data.zst");
    let page = flamegraph(&["--flamechart"], &input);
    assert_eq!((page.facts["chart"].as_bool(), page.facts["scale"].as_str()), (Some(true), Some("time")));
    let lanes: Vec<&PageBox> = page.boxes.iter().filter(|one| one.letter == 'l').collect();
    assert!(!lanes.is_empty() && lanes.iter().all(|lane| lane.name.starts_with("php-")), "{lanes:?}");
    let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
    for one in page.boxes.iter().filter(|one| one.letter != 'l') {
        let end = ends.entry(one.row).or_default();
        assert!(*end <= one.start, "{one:?} runs backwards");
        *end = one.start + one.width;
    }
}

#[test]
fn a_difference_shows_what_was_before() {
    let (_one, before) = folded("main;f 3001\nmain;f;g 4000\n");
    let (_two, after) = folded("main;f 3000\nmain;f;g 1000\nmain;h 7\n");
    let page = flamegraph(&["--diff", before.to_str().unwrap()], &after);
    assert_eq!((page.named("g")[0].width, page.named("g")[0].before.clone()), (1000, Some("4000".to_owned())));
    assert_eq!((page.named("g")[0].own, page.facts["before"].as_u64()), (Some(1000), Some(7001)));
    let legend = page.facts["legend"].to_string();
    assert!(legend.contains("less") && legend.contains("more"), "{legend}");
    assert!(page.facts["facts"].as_str().unwrap().contains("before 7,001 samples, −42.8%"), "{}", page.facts["facts"]);
}

#[test]
fn only_samples_change_by_chance() {
    let (_dir, stacks) = folded("main;f 300\nmain;f;g 100\n");
    let exact = fixture("callgrind-small/input.callgrind");
    for (input, args, varies) in
        [(&stacks, &["--sample-weight", "1"][..], true), (&stacks, &[], false), (&exact, &[], false)]
    {
        let page = flamegraph(&[&["--diff", input.to_str().unwrap()], args].concat(), input);
        for one in &page.boxes {
            assert_eq!(one.before.as_ref().unwrap().ends_with('~'), varies, "{input:?} {args:?}: {one:?}");
            assert_eq!(one.letter, '0', "nothing has changed: {one:?}");
        }
    }
}

#[test]
fn infernos_style_is_infernos_page_of_the_same_lines() {
    let input = fixture("folded-node/input.folded");
    let lines = fs::read_to_string(&input).unwrap();
    for (args, inverted) in
        [(&["--style", "inferno"][..], false), (&["--style", "inferno", "--inverted", "--colors", "js"], true)]
    {
        let mut options = inferno::flamegraph::Options::default();
        options.deterministic = true;
        if inverted {
            options.direction = inferno::flamegraph::Direction::Inverted;
            options.title = "Icicle Graph".to_owned();
            options.colors = "js".parse().unwrap();
        }
        let mut drawn = Vec::new();
        inferno::flamegraph::from_lines(&mut options, lines.lines(), &mut drawn).unwrap();
        assert!(run(&[&["flamegraph"], args].concat(), &input).as_bytes() == drawn, "{args:?}");
    }
}

#[test]
fn flags_of_infernos_page_choose_it_and_do_not_go_with_ours() {
    let (_dir, input) = folded("main;f 3\nmain;f;g 4\n");
    for flags in
        [&["--hash"][..], &["--colors", "hot"], &["--color-diffusion"], &["--bgcolors", "blue"], &["--pretty-xml"]]
    {
        let svg = run(&[&["flamegraph"], flags].concat(), &input);
        assert!(!svg.contains("data-b="), "{flags:?}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        let output = command.arg("flamegraph").args(flags).args(["--style", "page"]).arg(&input).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(flags[0]));
    }
}

#[test]
fn a_picture_without_script_states_by_itself_what_its_boxes_are() {
    let (_dir, input) = folded("main;f 3\nmain;f;g 4\n");
    let svg = run(&["flamegraph", "--no-javascript"], &input);
    assert!(
        !svg.contains("<script") && svg.contains("<title>g: 4 samples, 57.14%; self 4 samples, 57.14%</title>"),
        "{svg}"
    );
    assert!(svg.contains("<title>f: 7 samples, 100.00%; self 3 samples, 42.86%</title>"), "{svg}");
}

#[test]
fn texts_keep_the_functions_name() {
    let (_dir, input) = folded(&format!("main;{}::function_name;g 10\nmain;h 90\n", "very::long::path".repeat(4)));
    let page = flamegraph(&[], &input);
    assert!(page.texts.iter().any(|text| text == "function_name"), "{:?}", page.texts);
    let page = flamegraph(&["--truncate-text-left"], &input);
    assert!(page.texts.iter().any(|text| text.starts_with('…') && text.ends_with("function_name")), "{:?}", page.texts);
}

/// This many frames of a name, joined as in folded stacks.
fn frames(name: &str, count: usize) -> String {
    vec![name; count].join(";")
}

#[test]
fn unnamed_frames_in_a_row_are_one_box_that_says_how_many() {
    let (long, short) = (frames("[unknown]", 125), frames("[unknown]", 3));
    let library = frames("[libc.so.6]", 40);
    let text = format!(
        "main;[unknown];[libm.so.6] 1\nmain;{library};g;{library} 2\nmain;{long};f 5\nmain;{short};f 3\nmain;{short} 4\n\
         main;rec;rec;rec 6\n"
    );
    let (_dir, path) = folded(&text);
    let named = |page: &Page| {
        let boxes = page.boxes.iter().map(|one| (one.name.clone(), one.width, one.own.unwrap_or_default()));
        boxes.collect::<Vec<_>>()
    };
    let expect = |boxes: &[(&str, u64, u64)]| {
        boxes.iter().map(|(name, width, own)| ((*name).to_owned(), *width, *own)).collect::<Vec<_>>()
    };
    let page = flamegraph(&[], &path);
    assert_eq!(
        named(&page),
        expect(&[
            ("all", 21, 0),
            ("main", 21, 0),
            ("[libc.so.6] (up to 40 frames)", 2, 0),
            ("g", 2, 0),
            ("[libc.so.6] (up to 40 frames)", 2, 2),
            ("[unknown] (up to 125 frames)", 13, 4),
            ("[libm.so.6]", 1, 1),
            ("f", 8, 8),
            ("rec", 6, 0),
            ("rec", 6, 0),
            ("rec", 6, 6),
        ])
    );
    assert_nested(&page);
    // Upside down, the innermost run is the first.
    let reversed = flamegraph(&["--reverse"], &path);
    assert!(reversed.boxes.iter().all(|one| one.row < 7), "{:?}", reversed.boxes);
    let has = |name: &str, row: u64| reversed.boxes.iter().any(|one| one.name == name && one.row == row);
    assert!(has("[unknown] (up to 125 frames)", 2) && has("[unknown] (up to 3 frames)", 1), "{:?}", reversed.boxes);
    let chart = flamegraph(&["--flamechart"], &path);
    assert!(chart.boxes.iter().all(|one| one.row < 7), "{:?}", chart.boxes);
    let difference = flamegraph(&["--diff", path.to_str().unwrap()], &path);
    assert!(difference.boxes.iter().any(|one| one.name == "[unknown] (up to 125 frames)" && one.width == 13));
    // Everything else keeps each frame.
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(sorted(&run(&["collapse"], &path)), sorted(&text));
    let inferno = run(&["flamegraph", "--style", "inferno"], &path);
    assert!(inferno.matches("<title>[unknown] (").count() >= 125, "{inferno:.2000}");
}
