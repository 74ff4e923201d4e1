//! `annotate` of callgrind files: the calls beside instructions and lines, and inclusive costs, against a reader of the
//! tests' own and callgrind_annotate.

use super::callgrind::{Counted, counted, list, tool, unpacked};
use super::{annotate, hex, json};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Number and first cost of calls.
type Sums = (u64, u64);

/// Calls by object and address of the instruction, and `file:function` of the callee.
#[derive(Default)]
struct Stated {
    calls: BTreeMap<(String, u64, String), Sums>,
    /// The IDs of callees by `file:function`: functions of several objects may have one name.
    callees: BTreeMap<String, BTreeSet<String>>,
    /// The IDs of functions that have self costs; others are not listed.
    own: BTreeSet<String>,
}

impl Stated {
    /// Functions that something called and that are listed, whatever object they are of.
    fn called(&self) -> BTreeSet<&String> {
        self.callees.iter().filter(|(_, ids)| ids.is_subset(&self.own)).map(|(name, _)| name).collect()
    }
}

/// The id of a function in a file.
fn id(value: &str) -> String {
    value.split_inclusive(')').next().filter(|id| id.starts_with('(')).unwrap_or(value).to_owned()
}

/// The name of an ID; `(1) name` defines it.
fn named(ids: &mut BTreeMap<(char, String), String>, space: char, text: &str) -> String {
    let Some((id, name)) = text.strip_prefix('(').and_then(|text| text.split_once(')')) else { return text.to_owned() };
    if !name.is_empty() {
        ids.insert((space, id.to_owned()), name.trim_start().to_owned());
    }
    ids[&(space, id.to_owned())].clone()
}

/// Reads a file of valgrind's with `positions: instr line`.
fn stated(text: &str) -> Stated {
    let (mut stated, mut ids, mut base) = (Stated::default(), BTreeMap::new(), 0);
    let (mut object, mut file, mut called_file, mut callee) = (String::new(), String::new(), None, String::new());
    let (mut fl, mut count, mut function) = (String::new(), None, String::new());
    for line in text.lines() {
        let (key, value) = line.split_once('=').unwrap_or_default();
        match key {
            "ob" => object = named(&mut ids, 'o', value),
            "fl" => {
                fl = named(&mut ids, 'f', value);
                file.clone_from(&fl);
            }
            "fi" | "fe" => file = named(&mut ids, 'f', value),
            "jfi" => _ = named(&mut ids, 'f', value),
            "cob" => _ = named(&mut ids, 'o', value),
            "cfi" => called_file = Some(named(&mut ids, 'f', value)),
            "fn" | "jfn" => {
                named(&mut ids, 'n', value);
                if key == "fn" {
                    function = id(value);
                    file.clone_from(&fl);
                }
            }
            "cfn" => {
                let file = called_file.take().unwrap_or_else(|| file.clone());
                callee = format!("{file}:{}", named(&mut ids, 'n', value));
                stated.callees.entry(callee.clone()).or_default().insert(id(value));
            }
            "calls" => count = Some(value.split_whitespace().next().unwrap().parse::<u64>().unwrap()),
            "jump" | "jcnd" => count = Some(0),
            _ if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) => {
                let mut words = line.split_whitespace();
                let place = words.next().unwrap();
                let addr = match place.split_at(1) {
                    ("*", _) => base,
                    ("+", more) => base + more.parse::<u64>().unwrap(),
                    ("-", less) => base - less.parse::<u64>().unwrap(),
                    _ => u64::from_str_radix(place.strip_prefix("0x").unwrap(), 16).unwrap(),
                };
                let cost: u64 = words.nth(1).map_or(0, |cost| cost.parse().unwrap());
                match count.take() {
                    None => {
                        base = addr;
                        stated.own.insert(function.clone());
                    }
                    Some(0) => {}
                    Some(count) => {
                        let sums = stated.calls.entry((object.clone(), addr, callee.clone())).or_default();
                        *sums = (sums.0 + count, sums.1 + cost);
                    }
                }
            }
            _ => {}
        }
    }
    stated
}

fn weight(of: &Value, event: &str) -> u64 {
    of["costs"][event]["weight"].as_u64().unwrap_or(0)
}

/// `file:function`, as callgrind_annotate has it.
fn function(of: &Value, name: &str) -> String {
    format!("{}:{}", of["file"].as_str().unwrap_or("???"), of[name].as_str().unwrap())
}

fn add(sums: &mut Sums, calls: &Value) {
    *sums = (sums.0 + calls["count"].as_u64().unwrap(), sums.1 + weight(calls, "Ir"));
}

/// The calls of the instructions of all listings, by object, address and callee. JIT code is in no object.
fn listed(all: &Value) -> BTreeMap<(String, u64, String), Sums> {
    let mut found: BTreeMap<_, Sums> = BTreeMap::new();
    for listing in list(all, "listings") {
        let object = listing["module"].as_str().unwrap_or("???");
        for instruction in listing["instructions"].as_array().into_iter().flatten() {
            for calls in instruction["calls"].as_array().into_iter().flatten() {
                let key = (object.to_owned(), hex(&instruction["address"]), function(calls, "function"));
                add(found.entry(key).or_default(), calls);
            }
        }
    }
    found
}

/// Costs by `file:function`, as callgrind_annotate has them.
fn inclusive(file: &Path) -> BTreeMap<String, u64> {
    // It takes the cost of calls that an earlier part counted for a self cost.
    let text = fs::read_to_string(file).unwrap().replace("\ncalls=0 ", "\ncalls=1 ");
    let file = file.with_extension("counted");
    fs::write(&file, text).unwrap();
    // From the root directory it cuts nothing off the names of files.
    let flags = ["--threshold=100", "--auto=no", "--inclusive=yes", "--show=Ir", file.to_str().unwrap()];
    let mut costs = BTreeMap::new();
    for line in tool("callgrind_annotate", &flags, Path::new("/")).lines() {
        let Some((number, name)) = line.split_once("%)  ") else { continue };
        let digits: String = number.split('(').next().unwrap().chars().filter(char::is_ascii_digit).collect();
        let name = name.trim();
        costs.insert(name.rsplit_once(" [").map_or(name, |(name, _)| name).to_owned(), digits.parse().unwrap());
    }
    costs
}

/// Holds the inclusive costs of the functions that something called against callgrind_annotate's; gives how many.
fn compare_inclusive(all: &Value, stated: &Stated, file: &Path) -> usize {
    let called = stated.called();
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    for listing in list(all, "listings") {
        for inclusive in listing["inclusive"].as_array().into_iter().flatten() {
            *ours.entry(function(inclusive, "name")).or_default() += weight(inclusive, "Ir");
        }
    }
    let mut theirs = inclusive(file);
    theirs.retain(|name, cost| called.contains(name) && *cost > 0);
    ours.retain(|name, cost| called.contains(name) && *cost > 0);
    for (name, cost) in &ours {
        assert_eq!(theirs.get(name), Some(cost), "{name}");
    }
    assert_eq!(theirs.len(), ours.len());
    ours.len()
}

#[test]
fn instructions_and_functions_have_the_calls_that_the_file_states() {
    let Counted { dir, file } = counted();
    let stated = stated(&fs::read_to_string(&file).unwrap());
    let all = json(&["."], &file);
    let (found, program) = (listed(&all), dir.path().join("program").canonicalize().unwrap());
    let is_own = |(object, ..): &&(String, u64, String)| object == program.to_str().unwrap();
    let own = |all: &BTreeMap<(String, u64, String), Sums>| -> BTreeMap<_, Sums> {
        all.iter().filter(|(key, _)| is_own(key)).map(|(key, sums)| (key.clone(), *sums)).collect()
    };
    assert_eq!(own(&found), own(&stated.calls));
    assert!(own(&found).len() > 5 && found.len() > 100, "{} {}", own(&found).len(), found.len());
    assert!(found.iter().all(|(key, sums)| stated.calls.get(key) == Some(sums)));
    assert!(compare_inclusive(&all, &stated, &file) > 50);
    // Recursion is stated once for all of its levels that callgrind doesn't give apart, by what it calls them.
    let down = list(&all, "listings").iter().find(|listing| listing["name"] == "down").unwrap();
    let names: Vec<_> = list(down, "inclusive").iter().map(|level| level["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["down", "down'2"]);
}

/// The calls that callgrind_annotate shows below the source lines of the program, by the line's text and the callee.
fn beside_lines(dir: &Path, file: &Path) -> BTreeMap<(String, String), Sums> {
    let (include, file) = (format!("--include={}", dir.display()), file.to_str().unwrap());
    let flags = ["--threshold=100", "--auto=yes", "--show=Ir", &include, file];
    let text = tool("callgrind_annotate", &flags, Path::new("/"));
    let (mut found, mut source) = (BTreeMap::new(), None);
    for line in text.lines() {
        if line.contains("-- Auto-annotated source: ") {
            source = line.ends_with("program.c").then(String::new);
        }
        let Some(current) = &mut source else { continue };
        let Some((number, rest)) = line.split_once("%)  ") else { continue };
        let cost = number.split(" (").next().unwrap().replace(',', "").trim().parse().unwrap();
        match rest.strip_prefix("=> ") {
            Some(call) => {
                let (callee, count) = call.rsplit_once(" (").unwrap();
                let count = count.trim_end_matches("x)").replace(',', "").parse().unwrap();
                assert!(found.insert((current.clone(), callee.to_owned()), (count, cost)).is_none(), "{line}");
            }
            None => *current = rest.trim().to_owned(),
        }
    }
    found
}

#[test]
fn source_lines_have_the_calls_that_callgrind_annotate_shows() {
    let Counted { dir, file } = counted();
    let mut theirs = beside_lines(dir.path(), &file);
    assert!(theirs.len() >= 3, "{theirs:?}");
    // For a line that belongs to two functions, here to two levels of recursion, it shows the calls of one.
    let calls = stated(&fs::read_to_string(&file).unwrap()).calls;
    let levels = calls.iter().filter(|((_, _, callee), _)| callee.ends_with(":down'2"));
    let levels = levels.fold((0, 0), |all: Sums, (_, sums)| (all.0 + sums.0, all.1 + sums.1));
    let of_line = theirs.iter_mut().find(|((_, callee), _)| callee.ends_with(":down'2")).unwrap().1;
    assert!(of_line.0 < levels.0);
    *of_line = levels;
    let mut ours: BTreeMap<(String, String), Sums> = BTreeMap::new();
    for listing in list(&json(&["--by", "line", "."], &file), "listings") {
        for line in listing["source_lines"].as_array().into_iter().flatten() {
            let name = line["file"].as_u64().map(|file| listing["files"][file as usize].as_str().unwrap());
            for calls in line["calls"].as_array().into_iter().flatten() {
                if name.is_some_and(|name| name.ends_with("program.c")) {
                    let source = line["source"].as_str().unwrap().trim().to_owned();
                    add(ours.entry((source, function(calls, "function"))).or_default(), calls);
                }
            }
        }
    }
    assert_eq!(ours, theirs);
    // Text and page state the same.
    let text = annotate(&["--by", "line", "^main$"], &file);
    let page = annotate(&["--format", "html", "^main$"], &file);
    for ((_, callee), (count, cost)) in theirs.iter().filter(|((source, _), _)| source.starts_with("int main")) {
        let is_said = |line: &str, mark: &str| {
            let digits: String = line.chars().filter(|c| *c != ',').collect();
            digits.contains(&format!("{mark} {callee} ({count}x) · Ir ")) && digits.contains(&format!("({cost})"))
        };
        assert!(text.lines().any(|line| is_said(line, "=>")), "{callee}: {text}");
        assert!(page.replace("&#39;", "'").lines().any(|line| is_said(line, "=&gt;")), "{callee}: {page}");
    }
    let levels = annotate(&["^down$"], &file);
    assert!(levels.contains("   inclusive: ") && levels.contains(":down'2 · Ir "), "{levels:.900}");
}

#[test]
fn recordings_of_runtimes_have_the_inclusive_costs_that_callgrind_annotate_shows() {
    let mut all_compared = 0;
    for name in ["php-tracing", "php-combine-parts", "node-septhreads", "openjdk-perfmap", "cpython-perfjit"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("callgrind.out.999001");
        fs::write(&file, unpacked(&format!("{name}.callgrind.zst"))).unwrap();
        let stated = stated(&fs::read_to_string(&file).unwrap());
        let symfs = format!("--symfs={}", dir.path().display());
        let all = json(&[&symfs, "."], &file);
        let compared = compare_inclusive(&all, &stated, &file);
        assert!(compared >= 10, "{name}: {compared}");
        all_compared += compared;
    }
    assert!(all_compared > 500, "{all_compared}");
}

#[test]
fn calls_of_jit_code_are_beside_its_instructions_under_the_names_of_the_dump() {
    let (dir, file, _) = super::callgrind::jitted("php-tracing", 560);
    let symfs = format!("--symfs={}", dir.path().display());
    let all = json(&[&symfs, "."], &file);
    let stated = stated(&fs::read_to_string(&file).unwrap());
    let mut compared = 0;
    for ((object, addr, _), sums) in listed(&all) {
        let same = stated.calls.iter().filter(|((of, at, _), _)| (of, *at) == (&object, addr));
        let same = same.fold((0, 0), |all: Sums, (_, sums)| (all.0 + sums.0, all.1 + sums.1));
        // An instruction may call several.
        assert!(sums.0 <= same.0 && sums.1 <= same.1, "{object} {addr:#x} {sums:?} {same:?}");
        compared += usize::from(sums == same);
    }
    assert!(compared > 5, "{compared}");
    let calls = list(&all, "listings").iter().flat_map(|listing| listing["instructions"].as_array()).flatten();
    let calls = calls.flat_map(|one| one["calls"].as_array()).flatten();
    assert!(calls.clone().count() > 5 && calls.clone().all(|calls| calls["count"].as_u64().unwrap() > 0));
}
