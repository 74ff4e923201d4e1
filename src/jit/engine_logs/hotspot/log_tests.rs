//! Compares a real compilation log and code list with a second reader and with the JVM's own perf map.

use super::super::{CodeLog, LogEventKind, LogId};
use crate::second_readers::hotspot as slow;
use crate::test_effort::step;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

const PID: u32 = 12340;
const LOG: &str = "hotspot_pid12340.log";
const LIST: &str = "codelist-12340.txt";

/// How much earlier than its stamp code is assumed to exist, in nanoseconds: the accuracy of the log's times.
const EARLY: u64 = 2_000_000;

fn unpacked(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/hotspot-log").join(format!("{name}.zst"));
    zstd::decode_all(std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).unwrap()
}

fn read(bytes: &[u8]) -> CodeLog {
    let id = LogId::detect(&bytes[..bytes.len().min(4096)]).expect("the log is not known by its first bytes");
    (id.log().read)(bytes).unwrap()
}

/// Time, start address, size and name of each code range.
fn loads(log: &CodeLog) -> Vec<(Option<u64>, u64, u64, String)> {
    let events = log.events.iter().filter_map(|event| match event.kind {
        LogEventKind::Load(code) => {
            Some((event.time, code.addr, code.size, String::from_utf8(log.texts.get(code.name).to_vec()).unwrap()))
        }
        _ => None,
    });
    events.collect()
}

/// Methods in the JVM's own map: start address → (size, name). A line without parentheses is not a method.
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
    let known: HashSet<_> = logged.into_iter().map(|(_, at, size, name)| (at, size, name)).collect();
    assert!(listed.len() > 100);
    for (time, at, size, name) in listed {
        assert!(time.is_none() && known.contains(&(at, size, name.clone())), "{at:x} {size:x} {name}");
    }
    assert_eq!(read(&unpacked(LIST)).pid, Some(PID as i32));
}

/// Tries about 600 positions in a part of each log; a quick run 150.
#[test]
fn cut_and_changed_logs_name_nothing_else() {
    for (name, part) in [(LOG, 60_000), (LIST, 6_000)] {
        let whole = unpacked(name);
        let bytes = &whole[..part];
        let known: HashSet<_> = loads(&read(&whole)).into_iter().collect();
        for at in (0..bytes.len()).step_by(bytes.len() / 600 * step(4)) {
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
