//! Names of JIT code stay whole and readable in every output, and lists of another kernel name nothing.

use crate::support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::bytes::Order;
use support::perf_data::{CONTEXT_KERNEL, CONTEXT_USER, Event, KERNEL, Mmap, Mode, PerfData, Stamp, USER};
use tempfile::TempDir;

const PID: u32 = 999_131;
const AT: u64 = 0x1_0000;

/// Functions of a map, 16 bytes each, from `AT` on: as the runtime wrote them, and in folded stacks.
const FUNCTIONS: [(&str, &str); 8] = [
    ("RegExp:(a+)+b", "RegExp:(a+)+b"),
    ("RegExp:(x|y)", "RegExp:(x|y)"),
    ("JS:*f /d (1)/a.js:1:1", "JS:*f /d (1)/a.js:1:1"),
    ("JS:*f /d (2)/a.js:1:1", "JS:*f /d (2)/a.js:1:1"),
    ("LA/B;::call(I)V", "LA/B:::call(I)V"),
    ("_ZN3foo3barEi", "foo::bar"),
    ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
    ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
];

fn command(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(arguments).current_dir(dir).env("HOME", dir).env_remove("JITGRAFT_OPTS").stdin(Stdio::null());
    command.output().unwrap()
}

fn run(dir: &Path, arguments: &[&str]) -> String {
    let output = command(dir, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A recording with a sample in each of the functions, one after the other, and their map.
fn recorded() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut data = PerfData::new(Order::Little, Event::usual());
    data.comm(Stamp::new(PID, 1), "java", true);
    data.mmap2(Stamp::new(PID, 2), Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    let mut map = String::new();
    for (at, (name, _)) in (0..).zip(FUNCTIONS) {
        let addr = AT + 16 * at;
        map += &format!("{addr:x} 10 {name}\n");
        data.sample_of(0, USER, Stamp::new(PID, 1_000 * (at + 1)), addr + 4, &[CONTEXT_USER, addr + 4]);
    }
    fs::write(dir.path().join("perf.data"), data.into_bytes(Mode::File)).unwrap();
    fs::write(dir.path().join(format!("perf-{PID}.map")), map).unwrap();
    dir
}

const MAP: [&str; 2] = ["--perf-map", "."];

/// The functions' names, demangled: as `report` shows them.
fn shown() -> Vec<String> {
    let name = |(raw, folded): (&str, &str)| if raw.starts_with('_') { folded } else { raw }.to_owned();
    FUNCTIONS.map(name).to_vec()
}

#[test]
fn folded_stacks_hold_whole_names() {
    let dir = recorded();
    let mut expected: Vec<String> = FUNCTIONS.iter().map(|(_, folded)| format!("java;{folded}")).collect();
    expected.sort();
    for arguments in [&["collapse"][..], &["export", "--to", "folded"]] {
        let text = run(dir.path(), &[arguments, &MAP, &["perf.data"]].concat());
        let lines: Vec<&str> = text.lines().map(|line| line.rsplit_once(' ').unwrap().0).collect();
        assert_eq!(lines, expected, "{arguments:?}");
    }
}

#[test]
fn the_functions_of_csv_are_those_of_report() {
    let dir = recorded();
    let report =
        run(dir.path(), &[&["report", "--format", "csv", "--group-by", "function"][..], &MAP, &["perf.data"]].concat());
    let csv = run(dir.path(), &[&["export", "--to", "csv"][..], &MAP, &["perf.data"]].concat());
    for name in shown() {
        assert!(report.lines().any(|line| line.ends_with(&format!(",{name}"))), "{name}: {report}");
        assert!(csv.lines().any(|line| line.contains(&format!(",1,{name},"))), "{name}: {csv}");
    }
}

#[test]
fn every_output_has_all_functions_by_their_whole_names() {
    let dir = recorded();
    for arguments in [
        &["script"][..],
        &["export", "--to", "speedscope", "--jit-names", "raw"],
        &["export", "--to", "json", "--jit-names", "raw"],
        &["export", "--to", "firefox", "--jit-names", "raw"],
        &["flamegraph", "--jit-names", "raw"],
        &["flamegraph", "--flamechart", "--jit-names", "raw"],
    ] {
        let text = run(dir.path(), &[arguments, &MAP, &["perf.data"]].concat());
        for name in shown() {
            let folded = name.replace(';', ":");
            assert!(text.contains(&name) || text.contains(&folded), "{arguments:?}: no {name}");
        }
        assert!(!text.contains("_ZN3foo3barEi"), "{arguments:?}");
    }
}

#[test]
fn infernos_style_cuts_names_as_inferno_does() {
    let dir = recorded();
    let arguments = ["flamegraph", "--style", "inferno", "perf.data"];
    let page = run(dir.path(), &[&arguments[..], &MAP].concat());
    assert!(page.contains("<title>RegExp: (") && !page.contains("RegExp:(x|y)"), "{page}");
}

#[test]
fn mangled_names_stay_mangled_if_asked_to() {
    let dir = recorded();
    for command in ["collapse", "script", "report"] {
        let text = run(dir.path(), &[&[command, "--no-demangle"][..], &MAP, &["perf.data"]].concat());
        for (raw, _) in FUNCTIONS.iter().filter(|(raw, _)| raw.starts_with('_')) {
            assert!(text.contains(raw), "{command}: no {raw} in {text}");
        }
    }
}

#[test]
fn a_text_of_perf_script_gets_readable_names() {
    let dir = recorded();
    let at = AT + 16 * 5 + 4;
    let text = format!("java {PID} 0.000010:          1 cycles: \n\t{at:16x} [unknown] (/tmp/perf-{PID}.map)\n\n");
    fs::write(dir.path().join("text"), text).unwrap();
    assert!(run(dir.path(), &["script", "--perf-map", ".", "text"]).contains(" foo::bar+0x4 ("));
    let raw = run(dir.path(), &["script", "--no-demangle", "--perf-map", ".", "text"]);
    assert!(raw.contains(" _ZN3foo3barEi+0x4 ("), "{raw}");
}

/// x of each function's box in a picture of inferno's.
fn boxes(svg: &str) -> Vec<(String, f64)> {
    let boxes = svg.split("<g><title>").skip(1).map(|part| {
        let (title, rest) = part.split_once("</title>").unwrap();
        let x = rest.split_once(" x=\"").unwrap().1.split_once(['%', '"']).unwrap().0;
        (title.split(" (").next().unwrap().to_owned(), x.parse().unwrap())
    });
    boxes.collect()
}

#[test]
fn infernos_flame_chart_runs_from_left_to_right() {
    let dir = recorded();
    let arguments = ["flamegraph", "--style", "inferno", "--flamechart", "--weight", "samples", "perf.data"];
    let boxes = boxes(&run(dir.path(), &[&arguments[..], &MAP].concat()));
    let x = |name: &str| boxes.iter().find(|(title, _)| title == name).unwrap_or_else(|| panic!("{name}: {boxes:?}")).1;
    assert!(x("foo::bar") < x("mycrate::foo") && x("mycrate::foo") < x("core::fmt::write"), "{boxes:?}");
}

#[test]
fn no_limit_is_the_same_in_all_commands() {
    let dir = recorded();
    let stacks = (0..60).map(|at| format!("main;f{at} {}\n", at + 1)).collect::<String>();
    fs::write(dir.path().join("stacks"), stacks).unwrap();
    for (arguments, all) in [(&["report", "stacks"][..], 61), (&["annotate", "-i", "perf.data", "--perf-map", "."], 8)]
    {
        let limited = |limit: &str| run(dir.path(), &[arguments, &["--limit", limit]].concat());
        assert_eq!(limited("0"), limited("1000"), "{arguments:?}");
        assert!(limited("0").lines().count() >= all, "{arguments:?}: {}", limited("0"));
    }
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/trace-miri/input.json");
    let stats = |limit: &str| run(dir.path(), &["stats", "--all", "--limit", limit, trace.to_str().unwrap()]);
    assert_eq!(stats("0"), stats("1000"));
    assert!(stats("0").lines().count() > stats("1").lines().count());
}

/// A recording with samples at 0, 10, …, 1000 microseconds, which gives its first and last.
fn spread() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (first, last) = (5_000_000_000_u64, 5_001_000_000_u64);
    let mut data = PerfData::new(Order::Little, Event::usual());
    data.comm(Stamp::new(PID, 1), "program", true);
    (0..=100).for_each(|at| data.sample(Stamp::new(PID, first + at * 10_000), &[AT + at]));
    data.feature(21, [first.to_le_bytes(), last.to_le_bytes()].concat());
    fs::write(dir.path().join("perf.data"), data.into_bytes(Mode::File)).unwrap();
    dir
}

#[test]
fn stretches_of_time_are_perfs() {
    let dir = spread();
    let addresses = |text: &str| -> Vec<String> {
        let words = text.lines().filter_map(|line| line.split_whitespace().next());
        words.filter(|word| u64::from_str_radix(word, 16).is_ok()).map(ToOwned::to_owned).collect()
    };
    for time in [
        "5.0001,5.0002",
        "5.0001,5.0002 5.0005,5.0006",
        ",5.0001",
        "5.0009,",
        "10%-20%",
        "10%-20%,40%-50%",
        "10%-20%, 40%-50%",
        "20%-30%,5%-10%",
        "0%-10%,10%-20%",
        "90%-100%",
        "10%",
        "10%/2",
        "10%/2,10%/3",
        "33%/3",
        "10%/10",
        "12.5%-37.5%",
    ] {
        let theirs = Command::new("perf")
            .args(["script", "-i", "perf.data", "-F", "ip", "-G", "--time", time])
            .current_dir(dir.path())
            .output()
            .expect("perf is needed: tests/run.sh installs it");
        let theirs = addresses(&String::from_utf8_lossy(&theirs.stdout));
        let ours = addresses(&run(dir.path(), &["script", "-F", "ip", "-G", "--time", time, "perf.data"]));
        assert!(!theirs.is_empty(), "{time}: perf prints nothing");
        assert_eq!(ours, theirs, "{time}");
    }
    for time in ["1,2,3", "10%,20%", "a,b", "110%", "10%/11", "2,1"] {
        let output = command(dir.path(), &["script", "--time", time, "perf.data"]);
        assert_eq!(output.status.code(), Some(2), "{time}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_list_of_another_kernel_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let (text, len) = (0xffff_ffff_8100_0000_u64, 0x1_0000_u64);
    let recording = |len: u64, with_module: bool| {
        let mut data = PerfData::new(Order::Little, Event::usual());
        data.kernel_build_id(&[7; 20]);
        data.kernel_mmap(Stamp::default(), Mmap { addr: text, len, pgoff: text, path: "[kernel.kallsyms]_text" });
        if with_module {
            let map = Mmap { addr: text + len, len: 0x1000, pgoff: 0, path: "/lib/modules/6.1.0/kernel/m.ko" };
            data.kernel_mmap(Stamp::default(), map);
        }
        data.comm(Stamp::new(PID, 1), "program", true);
        data.sample_of(0, KERNEL, Stamp::new(PID, 1000), text + 0x104, &[CONTEXT_KERNEL, text + 0x104]);
        fs::write(dir.path().join("perf.data"), data.into_bytes(Mode::File)).unwrap();
    };
    let symbol = |at: u64, symbol: &str| format!("{:x} {symbol}\n", text + at);
    let list =
        symbol(0, "T _text") + &symbol(0x100, "t do_it") + &symbol(len, "T _etext") + &symbol(2 * len, "D _edata");
    let cached = dir.path().join(".debug/[kernel.kallsyms]").join("07".repeat(20));
    fs::create_dir_all(&cached).unwrap();
    fs::write(cached.join("kallsyms"), &list).unwrap();
    fs::write(dir.path().join("list"), &list).unwrap();
    let elsewhere = dir.path().join(".debug/[kernel.kallsyms]").join("08".repeat(20));
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("kallsyms"), &list).unwrap();
    let names = |arguments: &[&str]| {
        let output = command(dir.path(), &[&["collapse", "perf.data"][..], arguments].concat());
        let (named, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        (named.contains("do_it"), said)
    };
    let given = ["--kallsyms", "list"];
    // The end is _etext, _edata, or not recorded; or that of the range up to the next module.
    for (end, with_module) in [(len, false), (2 * len, false), (!text, false), (3 * len, true)] {
        recording(end, with_module);
        for arguments in [&[][..], &given] {
            let (named, said) = names(arguments);
            assert!(named && !said.contains("different kernel"), "{end:x} {arguments:?}: {said}");
        }
    }
    recording(len + 8, false);
    for arguments in [&[][..], &given] {
        let (named, said) = names(arguments);
        assert!(!named && said.contains("the symbol list is from a different kernel"), "{arguments:?}: {said}");
    }
    // Another build ID is another kernel, wherever that ends.
    recording(len, false);
    fs::remove_file(cached.join("kallsyms")).unwrap();
    let (named, said) = names(&["--kallsyms", elsewhere.join("kallsyms").to_str().unwrap()]);
    assert!(!named && said.contains("build ID in its path is not that of the recorded kernel"), "{said}");
}
