//! Code without a name: every output shows what sort of code it is, and every command states the same of how much there
//! is.

use crate::support;
use crate::support::page;
use crate::support::scene;

use page::Page;
use scene::{Scene, said};
use serde_json::Value;
use std::collections::BTreeMap;
use support::bytes::Order;
use support::perf_data::{CONTEXT_KERNEL, CONTEXT_USER, Event, KERNEL, Mmap, Mode, PerfData, Stamp, USER};

const NODE: u32 = 999_077;
const OTHER: u32 = 999_088;
const JIT: u64 = 0x1_0000;
const FILE: u64 = 0x40_0000;
const NOWHERE: u64 = 0x7000_0000;
const IN_KERNEL: u64 = 0xffff_ffff_8100_0000;

/// The kind of a sample's innermost frame, by the word for it, and the number of such samples.
const SORTS: [(&str, u64); 6] = [
    ("JIT", 3),
    ("JIT, unnamed", 5),
    ("unnamed code (no file)", 7),
    ("native, unnamed", 11),
    ("unknown", 2),
    ("kernel", 13),
];

/// 3 samples in functions with a name of 41, 8 in JIT code, 7 in memory without a file of a process that is not known to
/// compile code.
const SAID: &str = "7.32% in functions with a name; 19.51% in JIT code, 37.50% of it named; \
                    17.07% in unnamed code (no file) (by innermost frame)";

/// Two processes: one runs node, and a map has one of its functions; one runs a program that is not there.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.write(&format!("perf-{NODE}.map"), format!("{JIT:x} 100 LazyCompile:*hot /x.js:1:1\n"));
    let mut data = PerfData::new(Order::Little, Event::usual());
    for (pid, comm, path) in [(NODE, "node", "/nowhere/bin/node"), (OTHER, "program", "/nowhere/program")] {
        data.comm(Stamp::new(pid, 1), comm, true);
        data.mmap2(Stamp::new(pid, 2), Mmap { addr: FILE, len: 0x1000, pgoff: 0, path });
        data.mmap2(Stamp::new(pid, 3), Mmap { addr: JIT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    }
    let mut time = 10;
    for (sort, count) in SORTS {
        for _ in 0..count {
            time += 1;
            let (pid, at) = match sort {
                "JIT" => (NODE, JIT + 8),
                "JIT, unnamed" => (NODE, JIT + 0x800),
                "unnamed code (no file)" => (OTHER, JIT + 0x800),
                "native, unnamed" => (OTHER, FILE + 0x10),
                "unknown" => (OTHER, NOWHERE),
                _ => (NODE, IN_KERNEL),
            };
            let caller = JIT + 0x10;
            match sort {
                // Its caller is JIT code: it counts by its innermost frame all the same.
                "kernel" => {
                    let chain = [CONTEXT_KERNEL, at, CONTEXT_USER, caller];
                    data.sample_of(0, KERNEL, Stamp::new(pid, time), at, &chain);
                }
                _ => data.sample_of(0, USER, Stamp::new(pid, time), at, &[CONTEXT_USER, at]),
            }
        }
    }
    scene.write("perf.data", data.into_bytes(Mode::File));
    scene
}

fn stdout(scene: &Scene, words: &str) -> String {
    let output = scene.run(words);
    assert!(output.status.success(), "{words}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn json(scene: &Scene, words: &str) -> Value {
    serde_json::from_str(&stdout(scene, words)).unwrap()
}

fn wanted() -> BTreeMap<String, u64> {
    SORTS.iter().map(|&(sort, count)| (sort.to_owned(), count)).collect()
}

#[test]
fn every_command_states_the_same_of_how_much_is_in_jit_code_and_how_much_has_a_name() {
    let scene = scene();
    let header = stdout(&scene, "report perf.data");
    assert!(header.contains(&format!("# {SAID}\n")), "{header}");
    for command in [
        "report perf.data",
        "collapse perf.data -o a.folded",
        "flamegraph perf.data -o a.svg",
        "view perf.data --no-open -o a.html",
        "export --to json perf.data -o a.json",
        "merge perf.data -o b.folded",
    ] {
        let output = scene.run(command);
        assert!(said(&output).lines().any(|line| line == format!("cpu-clock: {SAID}")), "{command}: {}", said(&output));
    }
    let doctor = stdout(&scene, "doctor perf.data");
    assert!(doctor.lines().any(|line| line == format!("cpu-clock: {SAID}")), "{doctor}");
    assert!(doctor.contains("16 of 54 frames have a name"), "{doctor}");
    assert!(doctor.contains("0 of 7 frames of unnamed code (no file) have a name"), "{doctor}");
    let innermost = &json(&scene, "doctor --format json perf.data")[0]["innermost"][0];
    let period = 1_000_000;
    for (key, samples) in [("weight", 41), ("named", 3), ("jit", 8), ("named_jit", 3), ("no_file", 7)] {
        assert_eq!(innermost[key], samples * period, "{key}: {innermost}");
    }
    assert_eq!(innermost["said"], SAID);
}

#[test]
fn tables_group_code_without_a_name_by_what_it_is() {
    let scene = scene();
    let rows = json(&scene, "report --format json --group-by kind perf.data");
    let kinds = |column: &str, kind: &str| -> BTreeMap<String, u64> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| (row[kind].as_str().unwrap().to_owned(), row[column].as_u64().unwrap())).collect()
    };
    assert_eq!(kinds("samples", "kind"), wanted());
    let text = stdout(&scene, "report --format csv perf.data");
    assert!(text.contains("\"native, unnamed\"") && text.contains("\"JIT, unnamed\""), "{text}");
    let csv = stdout(&scene, "export --to csv perf.data");
    let count = |cell: &str| csv.lines().filter(|line| line.contains(cell)).count() as u64;
    for (sort, samples) in SORTS {
        let cell = if sort.contains(',') { format!(",\"{sort}\",") } else { format!(",{sort},") };
        assert_eq!(count(&cell), samples, "{sort}: {csv}");
    }
}

/// The samples of JSON, by the kind of their last frame.
#[test]
fn exports_hold_the_sort_of_code_and_are_read_back_with_it() {
    let scene = scene();
    let keys = [
        ("jit", "JIT"),
        ("jit-unnamed", "JIT, unnamed"),
        ("no-file", "unnamed code (no file)"),
        ("user-unnamed", "native, unnamed"),
        ("unknown", "unknown"),
        ("kernel", "kernel"),
    ];
    let keys: BTreeMap<&str, &str> = keys.into_iter().collect();
    let told = json(&scene, "export --to json perf.data");
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for stack in told["events"][0]["stacks"].as_array().unwrap() {
        let leaf = stack["frames"].as_array().unwrap().last().unwrap().as_u64().unwrap();
        let kind = told["frames"][leaf as usize]["kind"].as_str().unwrap();
        *sums.entry(keys[kind].to_owned()).or_default() += stack["count"].as_u64().unwrap();
    }
    assert_eq!(sums, wanted());
    let firefox = json(&scene, "export --to firefox perf.data");
    let names: Vec<&str> =
        firefox["meta"]["categories"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for thread in firefox["threads"].as_array().unwrap() {
        let samples = &thread["samples"]["stack"];
        let tables = if thread["stackTable"].is_null() { &firefox["shared"] } else { thread };
        for stack in samples.as_array().unwrap() {
            let frame = tables["stackTable"]["frame"][stack.as_u64().unwrap() as usize].as_u64().unwrap();
            let category = tables["frameTable"]["category"][frame as usize].as_u64().unwrap();
            *sums.entry(names[category as usize].to_lowercase()).or_default() += 1;
        }
    }
    let lowered = |(sort, count): (String, u64)| (sort.to_lowercase(), count);
    assert_eq!(sums, wanted().into_iter().map(lowered).collect());
    stdout(&scene, "export --to firefox perf.data -o b.firefox.json");
    let rows = json(&scene, "report --format json --group-by kind b.firefox.json");
    let rows = rows.as_array().unwrap().iter();
    let sums = rows.map(|row| (row["kind"].as_str().unwrap().to_owned(), row["samples"].as_u64().unwrap()));
    assert_eq!(sums.collect::<BTreeMap<_, _>>(), wanted());
}

#[test]
fn folded_stacks_stay_as_they_are_and_show_what_they_can() {
    let scene = scene();
    let plain = stdout(&scene, "collapse perf.data");
    for line in
        [format!("node;[perf-{NODE}.map]"), format!("program;[perf-{OTHER}.map]"), "program;[program]".to_owned()]
    {
        assert!(plain.lines().any(|folded| folded.rsplit_once(' ').unwrap().0 == line), "{line}: {plain}");
    }
    stdout(&scene, "collapse --annotate jit,kernel perf.data -o marked.folded");
    let rows = json(&scene, "report --format json --group-by kind marked.folded");
    let period = 1_000_000;
    let of = |row: &Value| (row["kind"].as_str().unwrap().to_owned(), row["self"].as_u64().unwrap() / period);
    assert_eq!(
        rows.as_array().unwrap().iter().map(of).filter(|(_, own)| *own > 0).collect::<BTreeMap<_, _>>(),
        wanted()
    );
    // The same of folded text that is sorted as text, and not read as a profile.
    let page = Page::parse(&stdout(&scene, "flamegraph marked.folded"));
    let legend = page.facts["legend"].to_string();
    for share in ["JIT, unnamed 12.20", "unnamed code (no file) 17.07", "native, unnamed 26.83", "unknown 4.88"] {
        assert!(legend.contains(share), "{share}: {legend}");
    }
}

#[test]
fn a_flame_graph_hatches_code_without_a_name() {
    let scene = scene();
    let svg = stdout(&scene, "flamegraph perf.data");
    let page = Page::parse(&svg);
    let legend: BTreeMap<String, String> =
        serde_json::from_value::<Vec<(String, String)>>(page.facts["legend"].clone())
            .unwrap()
            .into_iter()
            .map(|(letter, text)| (text, letter))
            .collect();
    let shares = ["JIT 7.32%", "JIT, unnamed 12.20%", "unnamed code (no file) 17.07%", "native, unnamed 26.83%"];
    let wanted: Vec<String> = shares.into_iter().chain(["unknown 4.88%", "kernel 31.71%"]).map(str::to_owned).collect();
    for text in &wanted {
        assert!(legend.contains_key(text), "{text}: {legend:?}");
    }
    assert_eq!(legend.len(), wanted.len(), "{legend:?}");
    let document = roxmltree::Document::parse(&svg).unwrap();
    let patterns: Vec<&str> = document
        .descendants()
        .filter(|node| node.tag_name().name() == "pattern")
        .filter_map(|node| node.attribute("id"))
        .collect();
    for (text, letter) in &legend {
        let is_hatched = text.contains("unnamed") || text.contains("unknown");
        let rule = format!("path.c{letter}0{{stroke:url(#h{letter}0) #");
        assert_eq!(svg.contains(&rule), is_hatched, "{text}");
        assert_eq!(patterns.contains(&format!("h{letter}0").as_str()), is_hatched, "{text}: {patterns:?}");
    }
}
