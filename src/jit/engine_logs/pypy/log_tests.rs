//! Tests the machine code of a real log, and damages it in many places.

use super::super::{JIT_LOGS, JitLog, LogEventKind};
use crate::test_effort::step;
use std::collections::BTreeMap;
use std::fs;

const LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/recording-pypy/pypy-11175.log");

fn pypy() -> &'static JitLog {
    JIT_LOGS.iter().find(|log| log.id == "pypy-log").unwrap()
}

/// The machine code of the log's loops, assembled independently from the dumps and patches.
fn code_of(log: &str, start: u64, end: u64) -> Vec<u8> {
    let mut memory = BTreeMap::new();
    for dump in log.lines().filter_map(|line| line.strip_prefix("CODE_DUMP @")) {
        let (addr, rest) = dump.split_once(' ').unwrap();
        let addr = u64::from_str_radix(addr, 16).unwrap();
        let digits = rest.rsplit(' ').next().unwrap();
        let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
        memory.extend((0..digits.len() / 2).map(|at| (addr + at as u64, byte(at))));
    }
    (start..end).map(|addr| memory[&addr]).collect()
}

#[test]
fn machine_code_is_what_was_dumped_with_what_was_patched_later() {
    let text = fs::read_to_string(LOG).unwrap();
    let log = (pypy().read)(text.as_bytes()).unwrap();
    let mut checked = 0;
    for event in &log.events {
        let LogEventKind::Load(code) = event.kind else { panic!("{event:?}") };
        let bytes = log.texts.get(code.bytes.unwrap());
        assert_eq!(bytes, code_of(&text, code.addr, code.addr + code.size), "{:#x}", code.addr);
        checked += 1;
    }
    assert_eq!(checked, 3 + 20, "loops, bridges and the backend's helpers");
}

#[test]
fn damaged_logs_do_no_harm() {
    let bytes = fs::read(LOG).unwrap();
    let read = |bytes: &[u8]| {
        let _ = (pypy().sniff)(&bytes[..bytes.len().min(4096)]);
        let Ok(log) = (pypy().read)(bytes) else { return };
        for event in &log.events {
            let LogEventKind::Load(code) = event.kind else { continue };
            assert!(code.addr.checked_add(code.size).is_some());
            let entry = bytes.get(code.line_range()).unwrap_or_default();
            let map = log.line_decoder.as_ref().unwrap().source_map(bytes, entry);
            assert!(map.lines.is_sorted_by_key(|line| line.offset));
            assert!(map.lines.iter().all(|line| line.inlined.is_none_or(|call| (call as usize) < map.calls.len())));
        }
    };
    // About 300 positions, evenly spread, or 75 in a quick run. The unit tests try all positions of a small log.
    for at in (0..bytes.len()).step_by(bytes.len() / 300 * step(4)) {
        read(&bytes[..at]);
        let mut changed = bytes.clone();
        changed[at] ^= 0x15;
        read(&changed);
    }
}
