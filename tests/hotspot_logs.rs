//! HotSpot's compilation log and code list, beside a real recording: every name against a look-up that shares no code
//! with jitgraft, and against the perf map that the same JVM wrote meanwhile.

use jitgraft::records::jit_logs::{CodeLog, LogEventKind, LogId};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::{Command, Stdio};

#[path = "inject/perf.rs"]
#[expect(dead_code, reason = "other tests ask perf for more")]
mod perf;
#[path = "hotspot_logs/slow.rs"]
mod slow;
#[path = "inject/truth.rs"]
#[expect(dead_code, reason = "other tests ask for more")]
mod truth;

use slow::{Compiled, Inlined};

const PID: u32 = 12340;
const LOG: &str = "hotspot_pid12340.log";
const LIST: &str = "codelist-12340.txt";

/// So much earlier than its stamp code is taken to be there: the log's times are not better.
const EARLY: u64 = 2_000_000;

fn unpacked(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/hotspot-log").join(format!("{name}.zst"));
    zstd::decode_all(std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).unwrap()
}

fn read(bytes: &[u8]) -> CodeLog {
    let id = LogId::detect(&bytes[..bytes.len().min(4096)]).expect("the log is not known by its first bytes");
    (id.log().read)(bytes).unwrap()
}

/// Name, first address and size of each code range, with its time.
fn loads(log: &CodeLog) -> Vec<(Option<u64>, u64, u64, String)> {
    let events = log.events.iter().filter_map(|event| match event.kind {
        LogEventKind::Load(code) => {
            Some((event.time, code.addr, code.size, String::from_utf8(log.texts.get(code.name).to_vec()).unwrap()))
        }
        _ => None,
    });
    events.collect()
}

/// A directory with the recording and such files of the fixture.
fn directory(names: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in [&["perf.data"], names].concat() {
        std::fs::write(dir.path().join(name), unpacked(name)).unwrap();
    }
    dir
}

fn jitgraft(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let output = command.args(args).current_dir(dir).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Methods of the JVM's own map, by their first address: size and name. A line without arguments is not a method.
fn mapped() -> BTreeMap<u64, (u64, String)> {
    let map = String::from_utf8(unpacked("jcmd.map")).unwrap();
    let lines = map.lines().map(|line| line.splitn(3, ' ').collect::<Vec<_>>());
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap();
    let entry = |words: Vec<&str>| (number(words[0]), (number(words[1]), words[2].to_owned()));
    let is_method = |name: &str| name.ends_with(')') && !name.starts_with("StubRoutines (");
    lines.map(entry).filter(|(_, (_, name))| is_method(name)).collect()
}

fn unmarked(name: &str) -> &str {
    [" [c1]", " [c2]"].iter().find_map(|mark| name.strip_suffix(mark)).unwrap_or(name)
}

#[test]
fn the_log_is_read_as_by_a_second_reader() {
    let bytes = unpacked(LOG);
    let log = read(&bytes);
    let slow = slow::read(&String::from_utf8(bytes).unwrap());
    let expected: Vec<_> = slow
        .methods
        .iter()
        .map(|method| (Some(method.stamp.saturating_sub(EARLY)), method.start, method.size, method.name.clone()))
        .collect();
    assert!(expected.len() > 500, "{}", expected.len());
    assert_eq!(loads(&log), expected);
    assert_eq!((log.pid, log.torn, log.skipped.count()), (Some(PID as i32), false, 0));
}

#[test]
fn at_one_moment_the_log_has_just_what_the_jvms_own_map_has() {
    let map = mapped();
    let loads = loads(&read(&unpacked(LOG)));
    let mut live: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    let mut best = 0;
    for (_, start, size, name) in loads {
        let gone: Vec<u64> =
            live.iter().filter(|(at, (len, _))| **at < start + size && start < **at + len).map(|(at, _)| *at).collect();
        gone.iter().for_each(|at| drop(live.remove(at)));
        live.insert(start, (size, unmarked(&name).to_owned()));
        best = best.max(map.iter().filter(|(start, entry)| live.get(start) == Some(entry)).count());
    }
    assert!(map.len() > 100);
    assert_eq!(best, map.len(), "methods of the map, at the moment at which the most are as the log has them");
}

#[test]
fn the_code_list_shows_names_places_and_tiers_as_the_log_does() {
    let listed = loads(&read(&unpacked(LIST)));
    let logged = loads(&read(&unpacked(LOG)));
    let known: std::collections::HashSet<_> = logged.into_iter().map(|(_, at, size, name)| (at, size, name)).collect();
    assert!(listed.len() > 100);
    for (time, at, size, name) in listed {
        assert!(time.is_none() && known.contains(&(at, size, name.clone())), "{at:x} {size:x} {name}");
    }
    assert_eq!(read(&unpacked(LIST)).pid, Some(PID as i32));
}

/// The code by place and time according to the slow reader, on the recording's clock.
fn truth(recording: &[u8]) -> truth::Truth {
    let log = slow::read(&String::from_utf8(unpacked(LOG)).unwrap());
    let mut truth = truth::Truth::default();
    let shift = slow::clock_shift(recording) + i128::from(log.began);
    let mut there: Vec<&Compiled> = Vec::new();
    for method in &log.methods {
        let time = (i128::from(method.stamp) - i128::from(EARLY) + shift) as u64;
        let (gone, kept): (Vec<_>, Vec<_>) =
            there.into_iter().partition(|old: &&Compiled| old.shares_memory_with(method));
        there = kept;
        for old in gone {
            truth.add_code(PID, time, (old.start, old.start + old.size), None);
        }
        truth.add_code(PID, time, (method.start, method.start + method.size), Some(method.name.as_bytes()));
        there.push(method);
    }
    truth
}

#[test]
fn every_frame_in_logged_code_has_the_name_of_parts_that_was_there_then() {
    let dir = directory(&[LOG]);
    jitgraft(dir.path(), &["inject", "-i", "perf.data", "-o", "out.data"]);
    let recording = unpacked("perf.data");
    let mut truth = truth(&recording);
    let recording = truth::Recording::read(&recording);
    truth.add_recording(&recording);
    truth.settle();
    let printed = truth::read_script(&perf::script(&dir.path().join("out.data")).out);
    let verdict = truth::judge(&truth, &recording, &printed);
    println!("{verdict:?}");
    assert!(verdict.covered > 500, "{verdict:?}");
    assert_eq!(verdict.right, verdict.covered, "{:?}", verdict.wrong);
    // perf alone has no name for any of them.
    let before = truth::read_script(&perf::script(&dir.path().join("perf.data")).out);
    assert_eq!(truth::judge(&truth, &recording, &before).right, 0);
}

#[test]
fn a_log_that_was_not_asked_for_is_used_and_doctor_reports_it() {
    let dir = directory(&[LOG]);
    let said: Value =
        serde_json::from_str(&jitgraft(dir.path(), &["doctor", "--format", "json", "perf.data"])).unwrap();
    let sources = said.to_string();
    assert!(sources.contains("hotspot-log") && sources.contains(LOG), "{sources}");
    let text = jitgraft(dir.path(), &["doctor", "perf.data"]);
    assert!(text.contains("HotSpot compilation log") && text.contains("names "), "{text}");
}

#[test]
fn readable_names_show_the_compiler_by_a_word_and_merged_ones_not_at_all() {
    let dir = directory(&[LOG]);
    let folded = |args: &[&str]| jitgraft(dir.path(), &[&["collapse", "-i", "perf.data"], args].concat());
    let pretty = folded(&["--jit-names", "pretty"]);
    assert!(pretty.contains(";Reload$Hot.große c1") && pretty.contains(";java.util.HashMap.merge c2"), "{pretty}");
    let merged = folded(&["--merge-tiers"]);
    assert!(merged.contains(";Reload$Hot.große") && !merged.contains(" c1") && !merged.contains(" c2"), "{merged}");
}

#[test]
fn inlined_calls_are_listed_beside_a_function_as_a_second_reader_finds_them() {
    let dir = directory(&[LOG]);
    let told: Value = serde_json::from_str(&jitgraft(
        dir.path(),
        &["annotate", "--format", "json", "--limit", "200", "-i", "perf.data"],
    ))
    .unwrap();
    let log = slow::read(&String::from_utf8(unpacked(LOG)).unwrap());
    let mut by_place: HashMap<(u64, u64), Vec<&Compiled>> = HashMap::new();
    for method in &log.methods {
        by_place.entry((method.start, method.size)).or_default().push(method);
    }
    let (mut compared, mut calls) = (0, 0);
    for listing in told["listings"].as_array().unwrap() {
        for version in listing["versions"].as_array().unwrap() {
            let Some(addr) = version["address"].as_str().filter(|_| listing["missing"].is_string()) else { continue };
            let addr = u64::from_str_radix(addr.trim_start_matches("0x"), 16).unwrap();
            let own = &by_place[&(addr, version["size"].as_u64().unwrap())];
            let told =
                version["inlined_calls"].as_array().map_or_else(Vec::new, |calls| calls.iter().map(inlined).collect());
            assert!(own.iter().any(|method| log.inlined(method.id) == told), "{}: {told:?}", listing["name"]);
            compared += 1;
            calls += told.len();
        }
    }
    println!("{compared} codes, {calls} calls");
    assert!(compared > 30 && calls > 60, "{compared} codes, {calls} calls");
    let text = jitgraft(dir.path(), &["annotate", "--limit", "30", "-i", "perf.data"]);
    assert!(text.contains("compiled with ") && text.contains("@ "), "{text:.3000}");
}

fn inlined(call: &Value) -> Inlined {
    let number = |key: &str| call[key].as_u64().unwrap() as usize;
    Inlined {
        depth: number("depth"),
        bytecode: number("bytecode"),
        name: call["function"].as_str().unwrap().to_owned(),
    }
}

/// Some 600 places of a part of each.
#[test]
fn cut_and_changed_logs_name_nothing_else() {
    for (name, part) in [(LOG, 60_000), (LIST, 6_000)] {
        let whole = unpacked(name);
        let bytes = &whole[..part];
        let known: std::collections::HashSet<_> = loads(&read(&whole)).into_iter().collect();
        for at in (0..bytes.len()).step_by(bytes.len() / 600) {
            if let Some(id) = LogId::detect(&bytes[..at]) {
                let loads = (id.log().read)(&bytes[..at]).map(|log| loads(&log)).unwrap_or_default();
                assert!(loads.iter().all(|load| known.contains(load)), "{name} cut at {at}");
            }
            let mut changed = bytes.to_vec();
            changed[at] ^= 0x55;
            let Some(id) = LogId::detect(&changed[..4096]) else { continue };
            let Ok(log) = (id.log().read)(&changed) else { continue };
            let bytes_of_names: usize = log
                .events
                .iter()
                .map(|event| match event.kind {
                    LogEventKind::Load(code) => log.texts.get(code.name).len(),
                    _ => 0,
                })
                .sum();
            assert!(log.events.len() * 100 < bytes.len() && bytes_of_names < bytes.len(), "{name} changed at {at}");
        }
    }
}

#[test]
fn a_log_and_a_map_together_name_methods_by_time_and_the_rest_by_the_map() {
    let dir = directory(&[LOG]);
    std::fs::create_dir(dir.path().join("maps")).unwrap();
    std::fs::write(dir.path().join("maps/jcmd.map"), unpacked("jcmd.map")).unwrap();
    let named = |args: &[&str]| {
        let args = [&["collapse", "--jit-names", "pretty", "-i", "perf.data"], args].concat();
        let folded = jitgraft(dir.path(), &args);
        let interpreted = folded.lines().filter(|line| line.split(';').any(|frame| frame == "Interpreter")).count();
        (interpreted, folded.contains(";java.util.HashMap.merge c2"))
    };
    assert_eq!(named(&[]), (0, true));
    let (interpreted, timed) = named(&["--perf-map", "maps/jcmd.map@12340", "--jit-log", LOG]);
    assert!(interpreted > 10 && timed, "{interpreted} {timed}");
    // Beside the recording both are found.
    std::fs::rename(dir.path().join("maps/jcmd.map"), dir.path().join("perf-12340.map")).unwrap();
    assert_eq!(named(&[]), (interpreted, timed));
}
