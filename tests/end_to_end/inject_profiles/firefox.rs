//! Firefox Profiler's profiles, as samply writes them.

use super::recorded::Recorded;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The names of JIT code in our plain JSON, by address.
fn names_by_export(recorded: &Recorded) -> BTreeMap<u64, BTreeSet<String>> {
    let whole: Value = serde_json::from_slice(&recorded.read("whole.json")).unwrap();
    let mut names: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for frame in whole["frames"].as_array().unwrap().iter().filter(|frame| frame["kind"] == "jit") {
        let address = address_of(frame["address"].as_str().unwrap()).unwrap();
        names.entry(address).or_default().insert(frame["name"].as_str().unwrap().to_owned());
    }
    names
}

/// A profile of a recording as samply's is whose perf maps and dumps are gone: what is in JIT code is in no library and
/// called after its address, of which return addresses lose one. Made of our plain JSON.
fn bare(recorded: &Recorded) -> Value {
    recorded.jitgraft(&["export", "--jit-names", "raw", "perf.data", "-o", "whole.json"]);
    let whole: Value = serde_json::from_slice(&recorded.read("whole.json")).unwrap();
    let mut threads: BTreeMap<(i64, i64), Thread> = BTreeMap::new();
    for stack in whole["events"][0]["stacks"].as_array().unwrap() {
        let (pid, tid) = (stack["pid"].as_i64().unwrap(), stack["tid"].as_i64().unwrap());
        let frames = stack["frames"].as_array().unwrap();
        let frame = |at: &Value| whole["frames"][at.as_u64().unwrap() as usize].clone();
        let thread = threads.entry((pid, tid)).or_default();
        thread.sample(&frames.iter().map(frame).collect::<Vec<_>>());
    }
    let threads: Vec<Value> = threads.into_iter().map(|((pid, tid), thread)| thread.into_json(pid, tid)).collect();
    json!({"meta": {"preprocessedProfileVersion": 55, "interval": 1.0, "categories": []}, "libs": [{"name": "a", "path": "/a"}],
        "threads": threads})
}

/// Tables under way.
#[derive(Default)]
struct Thread {
    strings: Vec<String>,
    functions: Vec<(usize, i64)>,
    /// Functions, or frames, each its own.
    frames: Vec<usize>,
    stacks: Vec<(Option<usize>, usize)>,
    samples: Vec<Option<usize>>,
}

fn place<T: PartialEq>(list: &mut Vec<T>, one: T) -> usize {
    list.iter().position(|other| *other == one).unwrap_or_else(|| {
        list.push(one);
        list.len() - 1
    })
}

impl Thread {
    /// The outermost frame first.
    fn sample(&mut self, frames: &[Value]) {
        let mut stack = None;
        for (depth, frame) in frames.iter().enumerate() {
            let is_leaf = depth + 1 == frames.len();
            let addr = frame["address"].as_str().map_or(0, |addr| u64::from_str_radix(&addr[2..], 16).unwrap());
            let (name, resource) = match frame["kind"].as_str() {
                Some("jit") => (format!("{:#x}", addr - u64::from(!is_leaf)), -1),
                _ => (frame["name"].as_str().unwrap().to_owned(), 0),
            };
            let function = (place(&mut self.strings, name), resource);
            let function = place(&mut self.functions, function);
            let frame = place(&mut self.frames, function);
            stack = Some(place(&mut self.stacks, (stack, frame)));
        }
        self.samples.push(stack);
    }

    fn into_json(self, pid: i64, tid: i64) -> Value {
        let (functions, frames) = (&self.functions, &self.frames);
        let none = |count: usize| vec![Value::Null; count];
        json!({
            "name": "thread", "pid": pid.to_string(), "tid": tid.to_string(), "stringArray": self.strings,
            "samples": {"length": self.samples.len(), "stack": self.samples, "time": vec![0.5; self.samples.len()]},
            "stackTable": {"length": self.stacks.len(), "prefix": self.stacks.iter().map(|stack| stack.0).collect::<Vec<_>>(),
                "frame": self.stacks.iter().map(|stack| stack.1).collect::<Vec<_>>()},
            "frameTable": {"length": frames.len(), "func": frames, "address": vec![-1; frames.len()],
                "line": none(frames.len()), "column": none(frames.len())},
            "funcTable": {"length": functions.len(), "name": functions.iter().map(|function| function.0).collect::<Vec<_>>(),
                "resource": functions.iter().map(|function| function.1).collect::<Vec<_>>(),
                "fileName": none(functions.len()), "lineNumber": none(functions.len())},
            "resourceTable": {"length": 1, "lib": [0], "name": [0]},
        })
    }
}

fn number(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

/// The name of the function of a frame.
fn name_of(thread: &Value, frame: usize) -> &str {
    let name = &thread["funcTable"]["name"][number(&thread["frameTable"]["func"][frame])];
    thread["stringArray"][number(name)].as_str().unwrap()
}

fn address_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("0x")?, 16).ok()
}

/// Whatever is not a name, a file, a line or the function of a frame is what it was.
fn assert_only_named(before: &Value, after: &Value) {
    let blanked = |profile: &Value| {
        let mut profile = profile.clone();
        for thread in profile["threads"].as_array_mut().unwrap() {
            for (table, column) in
                [("funcTable", "name"), ("funcTable", "fileName"), ("frameTable", "func"), ("frameTable", "line")]
            {
                let column = thread[table][column].as_array_mut().unwrap();
                *column = vec![Value::Null; column.len()];
            }
            thread["stringArray"] = Value::Null;
        }
        profile
    };
    assert_eq!(blanked(before), blanked(after));
    let threads = |profile: &'_ Value| profile["threads"].as_array().unwrap().clone();
    for (before, after) in threads(before).iter().zip(&threads(after)) {
        let strings = |thread: &Value| thread["stringArray"].as_array().unwrap().clone();
        assert!(strings(after).starts_with(&strings(before)));
    }
}

/// Every frame that was an address has the name that is shown there; how many there are.
fn assert_named(before: &Value, after: &Value, recorded: &Recorded) -> usize {
    let (by_export, by_perf) = (names_by_export(recorded), recorded.names_by_perf());
    let mut checked = 0;
    for (old, new) in before["threads"].as_array().unwrap().iter().zip(after["threads"].as_array().unwrap()) {
        let mut rows: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for frame in 0..old["frameTable"]["func"].as_array().unwrap().len() {
            let (old, name) = (name_of(old, frame), name_of(new, frame));
            let Some(address) = address_of(old) else {
                assert_eq!(old, name);
                continue;
            };
            let exported = |address: u64| by_export.get(&address).is_some_and(|shown| shown.contains(name));
            assert!(exported(address) || exported(address + 1), "{address:#x}: {name}");
            let shown = by_perf.get(&address).or(by_perf.get(&(address + 1)));
            assert!(shown.is_none_or(|shown| shown.contains(name)), "{address:#x}: {name}, perf: {shown:?}");
            rows.entry(name).or_default().insert(number(&new["frameTable"]["func"][frame]));
            checked += 1;
        }
        assert!(rows.values().all(|rows| rows.len() == 1), "a function is one row: {rows:?}");
    }
    checked
}

#[test]
fn functions_have_the_names_that_perf_shows_after_inject() {
    for recorded in Recorded::all() {
        let bare = bare(&recorded);
        recorded.write("bare.json", bare.to_string().as_bytes());
        let said = recorded.jitgraft(&["inject", "-i", "bare.json", "-o", "injected.json"]);
        let injected: Value = serde_json::from_slice(&recorded.read("injected.json")).unwrap();
        assert_only_named(&bare, &injected);
        let checked = assert_named(&bare, &injected, &recorded);
        assert!(checked > 3 && said.contains("(100.0%)"), "{checked}: {said}");
        let said = recorded.jitgraft(&["inject", "-i", "injected.json", "-o", "twice.json"]);
        assert!(recorded.read("twice.json") == recorded.read("injected.json"), "{said}");
    }
}

/// The last entry of a perf map at an address.
pub(crate) fn in_map(map: &str, address: u64) -> Option<&str> {
    let covers = |line: &&str| {
        let mut words = line.split(' ');
        let mut hex = || u64::from_str_radix(words.next().unwrap(), 16).unwrap();
        let (start, size) = (hex(), hex());
        (start..start + size).contains(&address)
    };
    map.lines().rfind(covers).and_then(|line| line.splitn(3, ' ').nth(2))
}

#[test]
fn a_profile_saved_by_samply_gets_the_names_of_the_map() {
    let recorded = Recorded::all().find(|recorded| recorded.names.ends_with(".map")).unwrap();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/recording-node/samply.json.gz");
    recorded.write("samply.json.gz", &std::fs::read(fixture).unwrap());
    recorded.jitgraft(&["inject", "-i", "samply.json.gz", "-o", "named.json.gz"]);
    let unpacked = |name: &str| -> Value {
        serde_json::from_reader(flate2::read::GzDecoder::new(&recorded.read(name)[..])).unwrap()
    };
    let (before, after) = (unpacked("samply.json.gz"), unpacked("named.json.gz"));
    assert_only_named(&before, &after);
    let map = String::from_utf8(recorded.read(recorded.names)).unwrap();
    let mut named = 0;
    for (old, new) in before["threads"].as_array().unwrap().iter().zip(after["threads"].as_array().unwrap()) {
        for frame in 0..old["frameTable"]["func"].as_array().unwrap().len() {
            let (name, new) = (name_of(old, frame), name_of(new, frame));
            let resource = &old["funcTable"]["resource"][number(&old["frameTable"]["func"][frame])];
            let address = address_of(name).filter(|_| resource.as_i64() == Some(-1));
            let expected = address.and_then(|address| in_map(&map, address));
            named += usize::from(expected.is_some());
            assert_eq!(new, expected.unwrap_or(name));
        }
    }
    assert!(named > 50, "{named}");
}
