//! The README's first command, on a machine that has neither the program that was recorded nor its runtime: what it
//! draws has names, and the right ones.
//!
//! The recording is of `programs/tiers.c`, whose compiled code lies where other functions were before. That names are
//! right shows in the calls: `programs/tiers.lisp` shows which function calls which.

use crate::support::page;

use page::{Page, PageBox};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// At least so much of all frames has a name.
const NAMED: f64 = 0.95;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The output of a program; it must succeed, and finds no files of ours at home.
fn run(program: &str, arguments: &[&str], dir: &Path) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(dir).env("HOME", dir).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error} (tests/run.sh installs it)"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs what the README's first command runs after building. It leaves `perf.jit.data` and `flame.svg`.
fn run_the_readme() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("fixtures"), dir.path().join("fixtures")).unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let line = readme.lines().find(|line| line.starts_with("cargo build --release && "));
    for command in line.expect("the README has the command").split(" && ").skip(1) {
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(words[0], "target/release/jitgraft");
        run(env!("CARGO_BIN_EXE_jitgraft"), &words[1..], dir.path());
    }
    dir
}

/// The weights of a picture's boxes with and without a name.
fn named_and_nameless(svg: &str) -> (u64, u64) {
    let (nameless, named): (Vec<PageBox>, Vec<PageBox>) =
        Page::parse(svg).boxes.into_iter().partition(|one| one.name.starts_with('['));
    let weight = |boxes: Vec<PageBox>| boxes.iter().map(|one| one.width).sum();
    (weight(named), weight(nameless))
}

/// Each function of the recorded program, with all that may be above it in a stack.
fn reachable() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("tests/programs/tiers.lisp")).unwrap();
    let text: String = text.lines().map(|line| line.split(';').next().unwrap().to_owned() + "\n").collect();
    let name = |text: &str| text.split([' ', ')', '\n']).next().unwrap().to_owned();
    let bodies: Vec<(String, &str)> = text.split("(define (").skip(1).map(|body| (name(body), body)).collect();
    let callees = |body: &str| body.split('(').skip(1).map(name).collect::<BTreeSet<_>>();
    let mut calls: BTreeMap<_, _> = bodies.into_iter().map(|(function, body)| (function, callees(body))).collect();
    for _ in 0..calls.len() {
        let before = calls.clone();
        for callees in calls.values_mut() {
            let further: Vec<_> = callees.iter().filter_map(|callee| before.get(callee)).flatten().cloned().collect();
            callees.extend(further);
        }
    }
    calls
}

/// Checks folded stacks: a function of the program is above none that does not call it, at least through others.
/// Returns how many pairs were checked, and the tiers that were seen.
fn check_calls(folded: &str) -> (usize, BTreeSet<&str>) {
    let (reachable, mut pairs, mut tiers) = (reachable(), 0, BTreeSet::new());
    for line in folded.lines() {
        let (stack, _) = line.rsplit_once(' ').unwrap();
        let own = stack.split(';').filter_map(|frame| frame.strip_suffix(']')?.split_once(" ["));
        let own: Vec<(&str, &str)> = own.collect();
        for pair in own.windows(2) {
            let [(caller, _), (callee, _)] = [pair[0], pair[1]];
            assert!(reachable[caller].contains(callee), "{caller} does not call {callee}: {line}");
        }
        pairs += own.len().saturating_sub(1);
        tiers.extend(own.iter().map(|(_, tier)| *tier));
    }
    (pairs, tiers)
}

#[test]
fn the_readmes_first_command_draws_names() {
    let dir = run_the_readme();
    let (named, nameless) = named_and_nameless(&fs::read_to_string(dir.path().join("flame.svg")).unwrap());
    assert!(named > 0 && named as f64 >= NAMED * (named + nameless) as f64, "{named} named, {nameless} nameless");
}

#[test]
fn the_readmes_picture_is_what_its_first_command_draws() {
    let dir = run_the_readme();
    let (drawn, kept) = (fs::read_to_string(dir.path().join("flame.svg")).unwrap(), root().join(".github/flame.svg"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&kept, &drawn).unwrap();
    }
    assert!(drawn == fs::read_to_string(kept).unwrap(), ".github/flame.svg is old: UPDATE_GOLDEN=1 draws it again");
}

/// The rules of a picture's style for the colors of boxes, by their selectors.
fn colors(svg: &str) -> BTreeMap<&str, &str> {
    let style = svg.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).unwrap();
    let rules = style.split('}').filter_map(|rule| rule.trim_start().split_once('{'));
    rules.filter(|(selector, _)| selector.starts_with("path.c") || selector.starts_with("text.c")).collect()
}

#[test]
fn the_picture_of_node_has_the_colors_of_today() {
    let dir = run_the_readme();
    let [today, node] =
        [dir.path().join("flame.svg"), root().join("docs/node.svg")].map(|file| fs::read_to_string(file).unwrap());
    let (today, node) = (colors(&today), colors(&node));
    let both: Vec<&&str> = today.keys().filter(|selector| node.contains_key(*selector)).collect();
    assert!(both.len() > 10, "{both:?}");
    for selector in both {
        assert_eq!(node[selector], today[selector], "{selector}: draw docs/node.svg again as docs/runtimes.md says");
    }
}

#[test]
fn the_names_of_the_first_picture_are_the_right_ones() {
    let dir = run_the_readme();
    let folded = run(env!("CARGO_BIN_EXE_jitgraft"), &["collapse", "perf.jit.data"], dir.path());
    let (pairs, tiers) = check_calls(&folded);
    assert!(pairs > 1000, "only {pairs} calls");
    assert_eq!(tiers, BTreeSet::from(["interpreted", "baseline", "optimised"]));
}

#[test]
fn a_new_recording_of_the_program_is_drawn_alike() {
    let dir = tempfile::tempdir().unwrap();
    let [source, program] = ["tiers.c", "tiers.lisp"].map(|name| root().join("tests/programs").join(name));
    let flags = ["-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", "tiers"];
    run("gcc", &[&flags[..], &[source.to_str().unwrap()]].concat(), dir.path());
    let record = ["record", "-q", "-k", "mono", "-e", "cpu-clock:u", "-F", "20000", "-g", "-o", "perf.data", "./tiers"];
    let results = run("perf", &[&record[..], &[program.to_str().unwrap()]].concat(), dir.path());
    assert_eq!(results.lines().filter(|line| ["92", "1710"].contains(line)).count(), 32, "{results}");
    let folded = run(env!("CARGO_BIN_EXE_jitgraft"), &["collapse", "perf.data"], dir.path());
    let (pairs, tiers) = check_calls(&folded);
    assert!(pairs > 1000 && tiers.len() == 3, "{pairs} calls, {tiers:?}");
    run(env!("CARGO_BIN_EXE_jitgraft"), &["flamegraph", "perf.data", "-o", "flame.svg"], dir.path());
    let (named, nameless) = named_and_nameless(&fs::read_to_string(dir.path().join("flame.svg")).unwrap());
    assert!(named as f64 >= NAMED * (named + nameless) as f64, "{named} named, {nameless} nameless");
}

#[test]
fn a_wrong_name_is_seen() {
    assert_eq!(check_calls("tiers;sort [interpreted];interpret;quicksort [baseline] 1\n").0, 1);
    let wrong = "tiers;quicksort [optimised];neighbours [baseline] 1\n";
    assert!(std::panic::catch_unwind(|| check_calls(wrong)).is_err());
}
