//! The costs that are shown for a callgrind file are those that the file states: against callgrind_annotate and the
//! independent reader, for the fixtures and for programs that are recorded here.

use super::super::{RECORDINGS, fixture, tool};
use super::{Model, Node, read_as_defined as read};
use crate::support::effort::{is_thorough, step};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Threads that do most of the work, callees with many callers, and functions that call each other in circles.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
static volatile unsigned long sink;
void leaf(int n) { for (int i = 0; i < n; i++) sink += i; }
void odd(int n);
void even(int n) { leaf(5); if (n) odd(n - 1); }
void odd(int n) { leaf(9); if (n) even(n - 1); }
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
void shared(int n) { for (int i = 0; i < n; i++) leaf(50); }
void one(int n) { shared(n); }
void two(int n) { shared(2 * n); leaf(n); }
void *heavy(void *arg) { one(3000); two(500); return arg; }
void *light(void *arg) { two(300); even(40); return arg; }
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, i ? light : heavy, 0);
    one(200); even(60); sink += fib(12);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return printf("%lu\n", sink) < 0;
}
"#;

/// The way the program is recorded.
const OPTIONS: &[(&str, &[&str])] = &[
    ("plain", &[]),
    ("instructions", &["--dump-instr=yes", "--cache-sim=yes"]),
    ("recursion", &["--separate-recs=1"]),
    ("threads", &["--separate-threads=yes", "--combine-dumps=yes"]),
];

/// A callgrind file on disk.
struct Recorded {
    name: &'static str,
    path: PathBuf,
    model: Model,
    text: String,
}

impl Recorded {
    fn new(name: &'static str, path: PathBuf) -> Self {
        let bytes = std::fs::read(&path).unwrap();
        Self { name, path, model: read(&bytes), text: String::from_utf8_lossy(&bytes).into_owned() }
    }

    /// The first event, which reports show.
    fn event(&self) -> &str {
        let line = self.text.lines().find_map(|line| line.strip_prefix("events:")).unwrap();
        line.split_whitespace().next().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let event = ["--event", self.event(), "--format", "json"];
        let arguments = [arguments, &event, &[self.path.to_str().unwrap()]].concat();
        let output = jitgraft(&arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{}: {arguments:?}: {error}", self.name))
    }
}

fn jitgraft(arguments: &[&str]) -> std::process::Output {
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn fixtures(dir: &Path) -> Vec<Recorded> {
    let write = |name: &&'static str| {
        let path = dir.join(format!("{name}.callgrind"));
        std::fs::write(&path, fixture(&format!("{name}.callgrind"))).unwrap();
        Recorded::new(name, path)
    };
    // Every second one has a runtime of each kind; callgrind_annotate takes a second for each.
    RECORDINGS.iter().chain(&["php-noinstr"]).step_by(step(2)).map(write).collect()
}

fn recorded_here(dir: &Path) -> Vec<Recorded> {
    let write = |(name, bytes): &(&'static str, Vec<u8>)| {
        let path = dir.join(format!("{name}.out"));
        std::fs::write(&path, bytes).unwrap();
        Recorded::new(name, path)
    };
    OUTPUTS.iter().map(write).collect()
}

/// What valgrind writes about the program, by the way it is recorded. Made once for all tests: it takes seconds.
static OUTPUTS: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("program.c"), PROGRAM).unwrap();
    let [source, program] = ["program.c", "program"].map(|name| dir.join(name).to_str().unwrap().to_owned());
    tool("gcc", &["-O0", "-g", "-pthread", "-o", &program, &source]);
    let record = |&(name, options): &(&'static str, &[&str])| {
        let path = dir.join(format!("{name}.out"));
        let out = format!("--callgrind-out-file={}", path.display());
        // It warns of caches that it doesn't know.
        let output =
            Command::new("valgrind").args(["-q", "--tool=callgrind", &out]).args(options).arg(&program).output();
        let output = output.unwrap_or_else(|error| panic!("valgrind is needed: {error}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (name, std::fs::read(path).unwrap())
    };
    OPTIONS.iter().map(record).collect()
});

fn first(costs: &[u64]) -> u64 {
    costs.first().copied().unwrap_or(0)
}

/// A function as the tables call it: nothing is reported about what is not known.
fn shown((object, file, name): &Node) -> Node {
    let known = |text: &str| if text == "???" { String::new() } else { text.to_owned() };
    (known(object), known(file), name.clone())
}

fn function_of(row: &Value) -> Node {
    let text = |column: &str| row[column].as_str().unwrap_or_default().to_owned();
    (text("module"), text("source"), text("symbol"))
}

/// Self and inclusive cost of each function of the first event, and the functions that are called.
fn stated(model: &Model) -> (BTreeMap<Node, [u64; 2]>, BTreeSet<Node>) {
    let mut costs: BTreeMap<Node, [u64; 3]> = BTreeMap::new();
    for (node, own) in &model.nodes {
        costs.entry(shown(node)).or_default()[0] += first(own);
    }
    let mut called = BTreeSet::new();
    for ((caller, callee), (_, cost)) in &model.edges {
        costs.entry(shown(caller)).or_default()[1] += first(cost);
        costs.entry(shown(callee)).or_default()[2] += first(cost);
        called.insert(shown(callee));
    }
    let total = |node: &Node, [own, out, into]: [u64; 3]| if called.contains(node) { into } else { own + out };
    let of = costs.into_iter().map(|(node, costs)| (node.clone(), [costs[0], total(&node, costs)]));
    (of.filter(|(_, costs)| *costs != [0, 0]).collect(), called)
}

/// `file:function`, as callgrind_annotate has it.
fn annotate_name((_, file, name): &Node) -> String {
    format!("{}:{name}", if file.is_empty() { "???" } else { file })
}

/// Inclusive costs by `file:function`, as callgrind_annotate has them.
fn annotated(recorded: &Recorded) -> BTreeMap<String, u64> {
    let (show, sort) = (format!("--show={}", recorded.event()), format!("--sort={}", recorded.event()));
    // It takes the cost of calls that an earlier part counted for a self cost.
    let path = recorded.path.with_extension("counted");
    std::fs::write(&path, recorded.text.replace("\ncalls=0 ", "\ncalls=1 ")).unwrap();
    let arguments = ["--threshold=100", "--auto=no", "--inclusive=yes", &show, &sort, path.to_str().unwrap()];
    // From the root directory it cuts nothing off the names of files.
    let output = Command::new("callgrind_annotate").args(arguments).current_dir("/").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut costs = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((number, name)) = line.split_once("%)  ") else { continue };
        let digits: String = number.split('(').next().unwrap().chars().filter(char::is_ascii_digit).collect();
        let name = name.trim();
        costs.insert(name.rsplit_once(" [").map_or(name, |(name, _)| name).to_owned(), digits.parse().unwrap());
    }
    costs
}

#[test]
fn every_function_costs_what_callgrind_annotate_states() {
    let dir = tempfile::tempdir().unwrap();
    let (mut functions, mut annotated_functions) = (0, 0);
    for recorded in fixtures(dir.path()).into_iter().chain(recorded_here(dir.path())) {
        let (stated, called) = stated(&recorded.model);
        let mut seen: BTreeMap<Node, [u64; 2]> = BTreeMap::new();
        for row in recorded.json(&["report"]) {
            let costs = ["self", "total"].map(|column| row[column].as_u64().unwrap());
            let sums = seen.entry(function_of(&row)).or_default();
            *sums = [sums[0] + costs[0], sums[1] + costs[1]];
        }
        let differ: Vec<_> = stated.iter().filter(|(node, costs)| seen.get(node) != Some(costs)).collect();
        assert!(differ.is_empty() && seen.len() == stated.len(), "{}: {differ:?}", recorded.name);
        functions += stated.len();
        // It identifies functions by file and name. It has the parts of a function that no call leads to for several.
        let mut by_name: BTreeMap<String, Vec<&Node>> = BTreeMap::new();
        for node in stated.keys() {
            by_name.entry(annotate_name(node)).or_default().push(node);
        }
        let others = annotated(&recorded);
        for (name, nodes) in by_name.iter().filter(|(_, nodes)| nodes.iter().all(|node| called.contains(*node))) {
            let total: u64 = nodes.iter().map(|node| seen[*node][1]).sum();
            if total > 0 && !name.contains(" [") {
                assert_eq!(others.get(name), Some(&total), "{}: {name}", recorded.name);
                annotated_functions += 1;
            }
        }
    }
    let least = if is_thorough() { (14_000, 10_000) } else { (5_000, 3_000) };
    assert!(functions > least.0 && annotated_functions > least.1, "{functions} {annotated_functions}");
}

/// Number and cost of the calls between two functions.
fn calls(model: &Model) -> BTreeMap<(Node, Node), (u64, u64)> {
    let mut calls: BTreeMap<(Node, Node), (u64, u64)> = BTreeMap::new();
    for ((caller, callee), (count, cost)) in &model.edges {
        let sums = calls.entry((shown(caller), shown(callee))).or_default();
        *sums = (sums.0 + count, sums.1 + first(cost));
    }
    calls
}

#[test]
fn callers_and_callees_and_exported_calls_are_those_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for recorded in fixtures(dir.path()).into_iter().chain(recorded_here(dir.path())) {
        let stated_calls = calls(&recorded.model);
        let exported = dir.path().join("exported.callgrind");
        let paths = [exported.to_str().unwrap(), recorded.path.to_str().unwrap()];
        jitgraft(&["export", "--to", "callgrind", "-o", paths[0], paths[1]]);
        assert!(calls(&read(&std::fs::read(&exported).unwrap())) == stated_calls, "{}", recorded.name);
        let (functions, _) = stated(&recorded.model);
        let mut heaviest: Vec<_> = functions.iter().map(|(node, costs)| (costs[1], &node.2)).collect();
        heaviest.sort_unstable_by(|a, b| b.cmp(a));
        for (_, name) in heaviest.iter().take(2) {
            for (flag, is_caller) in [("--callers", false), ("--callees", true)] {
                let mut seen: BTreeMap<(Node, Node), (u64, u64)> = BTreeMap::new();
                let mut function = Node::default();
                for row in recorded.json(&["report", flag, name]) {
                    let other = function_of(&row);
                    if row["depth"] == 0 {
                        function = other;
                        continue;
                    }
                    let ends = if is_caller { (function.clone(), other) } else { (other, function.clone()) };
                    let sums = seen.entry(ends).or_default();
                    let [count, cost] = ["calls", "total"].map(|column| row[column].as_u64().unwrap());
                    *sums = (sums.0 + count, sums.1 + cost);
                }
                let of =
                    |(caller, callee): &(Node, Node)| if is_caller { caller.2 == **name } else { callee.2 == **name };
                let expected: BTreeMap<_, _> = stated_calls
                    .iter()
                    .filter(|(ends, _)| of(ends))
                    .map(|(ends, sums)| (ends.clone(), *sums))
                    .collect();
                assert_eq!(seen, expected, "{}: {flag} {name}", recorded.name);
                compared += seen.len();
            }
        }
    }
    assert!(compared > if is_thorough() { 500 } else { 200 }, "{compared}");
}

/// The inclusive cost of each function in folded stacks; recursion counts once.
fn folded_totals(folded: &str) -> BTreeMap<&str, u64> {
    let mut totals = BTreeMap::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        for name in stack.split(';').collect::<BTreeSet<_>>() {
            *totals.entry(name).or_default() += weight.parse::<u64>().unwrap();
        }
    }
    totals
}

#[test]
fn stacks_cost_what_calls_do_and_threads_have_their_own_roots() {
    let dir = tempfile::tempdir().unwrap();
    for recorded in recorded_here(dir.path()) {
        let path = recorded.path.to_str().unwrap();
        let output = jitgraft(&["collapse", "--event", recorded.event(), path]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("stacks are estimated from the calls between functions"), "{said}");
        let folded = String::from_utf8(output.stdout).unwrap();
        // Each line begins with the program's name.
        let stacks: String = folded.lines().map(|line| format!("{}\n", line.split_once(';').unwrap().1)).collect();
        let of_threads = ["heavy", "light"].map(|name| stacks.lines().filter(|line| line.contains(name)).count());
        assert!(of_threads.iter().all(|count| *count > 0), "{}: {stacks}", recorded.name);
        // A few instructions of a new thread are booked on the call that made it.
        let is_mixed = |stack: &str| stack.contains("main;") && (stack.contains("heavy") || stack.contains("light"));
        let lines = || stacks.lines().map(|line| line.rsplit_once(' ').unwrap());
        let weight = |of: &dyn Fn(&str) -> bool| -> u64 {
            lines().filter(|(stack, _)| of(stack)).map(|(_, weight)| weight.parse::<u64>().unwrap()).sum()
        };
        let (mixed, all) = (weight(&is_mixed), weight(&|_| true));
        assert!(mixed * 1000 <= all, "{}: {mixed} of {all}", recorded.name);
        let totals = folded_totals(&stacks);
        let (stated, called) = stated(&recorded.model);
        let whole: u64 = stated.values().map(|costs| costs[0]).sum();
        assert_eq!(
            stacks.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum::<u64>(),
            whole
        );
        let same_name = |name: &str| stated.keys().filter(|node| node.2 == name).count();
        for (node, costs) in stated.iter().filter(|(node, _)| called.contains(*node) && same_name(&node.2) == 1) {
            // Levels of recursion are the function itself in stacks; where they aren't distinguished, it is unknown. A
            // thread begins in clone, whose calls account for nothing.
            let is_recursive = node.2.contains('\'') || ["odd", "even", "fib"].contains(&&*node.2);
            if is_recursive && recorded.name == "recursion" || node.2.contains('\'') || node.2.contains("clone") {
                continue;
            }
            let total = totals.get(&*node.2).copied().unwrap_or(0);
            assert!(
                total.abs_diff(costs[1]) * 100 <= whole,
                "{}: {} {total} {costs:?} of {whole}",
                recorded.name,
                node.2
            );
        }
    }
}

#[test]
fn a_thread_that_is_distinguished_is_counted_alone_and_tables_are_not_estimate() {
    let dir = tempfile::tempdir().unwrap();
    let recorded = recorded_here(dir.path()).into_iter().find(|recorded| recorded.name == "threads").unwrap();
    let part = recorded.text.split("\npart: ").find(|part| part.contains("\nthread: 2\n")).unwrap();
    let totals = part.lines().find_map(|line| line.strip_prefix("totals: ")).unwrap().parse::<u64>().unwrap();
    let rows = recorded.json(&["report", "--tid", "2"]);
    assert_eq!(rows.iter().map(|row| row["self"].as_u64().unwrap()).sum::<u64>(), totals);
    assert!(rows.iter().any(|row| row["symbol"] == "heavy") && !rows.iter().any(|row| row["symbol"] == "main"));
    let said = |arguments: &[&str]| {
        let output = jitgraft(&[arguments, &[recorded.path.to_str().unwrap()]].concat());
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    for exact in [&["report"][..], &["report", "--callers", "shared"], &["report", "--callees", "shared"]] {
        assert!(!said(exact).contains("estimate"), "{exact:?}");
    }
    for estimate in [&["report", "--tree"][..], &["report", "--group-by", "dso"], &["export", "--to", "firefox"]] {
        assert!(said(estimate).contains("stacks are estimated from the calls between functions"), "{estimate:?}");
    }
    // Two inputs are summed.
    let path = recorded.path.to_str().unwrap();
    let twice = jitgraft(&["report", "--format", "json", path, path]);
    let twice: Vec<Value> = serde_json::from_slice(&twice.stdout).unwrap();
    let total = |rows: &[Value]| rows.iter().find(|row| row["symbol"] == "shared").unwrap()["total"].as_u64().unwrap();
    assert_eq!(total(&twice), 2 * total(&recorded.json(&["report"])));
}

/// All functions that calls lead to from this one.
fn reached<'a>(from: &'a Node, callees: &BTreeMap<&'a Node, BTreeSet<&'a Node>>) -> BTreeSet<&'a Node> {
    let (mut reached, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(node) = waiting.pop() {
        let new = callees.get(node).into_iter().flatten().filter(|callee| reached.insert(**callee));
        waiting.extend(new.copied().collect::<Vec<_>>());
    }
    reached
}

#[test]
fn cycles_are_the_functions_that_reach_each_other_and_cost_what_leaves_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for recorded in fixtures(dir.path()).into_iter().chain(recorded_here(dir.path())) {
        let (calls, functions) = (calls(&recorded.model), stated(&recorded.model).0);
        // Each function is requested all that it reaches.
        if calls.len() > 1500 {
            continue;
        }
        let mut callees: BTreeMap<&Node, BTreeSet<&Node>> = BTreeMap::new();
        calls.keys().for_each(|(caller, callee)| {
            callees.entry(caller).or_default().insert(callee);
        });
        let reaches: BTreeMap<&Node, BTreeSet<&Node>> =
            callees.keys().map(|node| (*node, reached(node, &callees))).collect();
        let each_other = |a: &Node, b: &Node| {
            let leads = |from: &Node, to: &Node| reaches.get(from).is_some_and(|reached| reached.contains(to));
            leads(a, b) && leads(b, a)
        };
        let mut expected = BTreeSet::new();
        for node in reaches.keys() {
            let members: BTreeSet<&Node> = reaches.keys().filter(|other| each_other(node, other)).copied().collect();
            let own: u64 = members.iter().filter_map(|member| functions.get(*member)).map(|costs| costs[0]).sum();
            let leaving = calls.iter().filter(|((a, b), _)| members.contains(a) && !members.contains(b));
            let total = own + leaving.map(|(_, (_, cost))| cost).sum::<u64>();
            if members.len() > 1 {
                expected.insert((own, total, members.into_iter().cloned().collect::<BTreeSet<Node>>()));
            }
        }
        let mut seen: Vec<(u64, u64, BTreeSet<Node>)> = Vec::new();
        for row in recorded.json(&["report", "--cycles"]) {
            let cost = |column: &str| row[column].as_u64().unwrap();
            match cost("depth") {
                0 => seen.push((cost("self"), cost("total"), BTreeSet::new())),
                _ => assert!(seen.last_mut().unwrap().2.insert(function_of(&row)), "{}: twice", recorded.name),
            }
        }
        assert!(seen.is_sorted_by_key(|cycle| std::cmp::Reverse(cycle.1)), "{}", recorded.name);
        compared += seen.len();
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expected, "{}", recorded.name);
    }
    assert!(compared >= 4, "{compared}");
}
