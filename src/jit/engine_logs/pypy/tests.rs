use super::source_location::SourceLocation;
use super::*;
use crate::jit::engine_logs::{LogClock, LogCode, LogEventKind};
use crate::model::code::{InlinedCall, SourceMap};

/// A helper, a loop that calls a function, and a bridge out of that function.
const BACKEND: &str = "\
[10] {jit-backend-dump
BACKEND x86_64
SYS_EXECUTABLE pypy3
CODE_DUMP @1000 +0  0102030405060708090A0B0C0D0E0F1011121314
[11] jit-backend-dump}
[20] {jit-backend
[21] {jit-backend-dump
CODE_DUMP @2000 +0  000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F
[22] jit-backend-dump}
[23] {jit-backend-addr
Loop 1 (f;/a/w.py:3-5~#16 FOR_ITER) has address 0x2018 to 0x2028 (bootstrap 0x2010)
       gc table: 0x2000
       function: 0x2010
         resops: 0x2018
       failures: 0x2028
            end: 0x2030
[24] jit-backend-addr}
[25] jit-backend}
";
const LOOP: &str = "\
[26] {jit-log-opt-loop
# Loop 1 (f;/a/w.py:3-5~#16 FOR_ITER) : loop with 7 ops
[p0, p1]
+24: label(p0, p1)
debug_merge_point(0, 0, 'f;/a/w.py:3-6~#18 LOAD_FAST')
+28: i1 = int_add(i0, 1)
+30: enter_portal_frame(14, 1)
debug_merge_point(1, 1, 'g;/a/w.py:10-11~#0 LOAD_FAST')
+30: guard_true(i1, descr=<Guard0x77>) [p0]
+32: i2 = int_add(i1, 1)
+36: leave_portal_frame(14)
+36: jump(p0)
+40: --end of the loop--
[27] jit-log-opt-loop}
";
const BRIDGE: &str = "\
[30] {jit-backend
[31] {jit-backend-dump
CODE_DUMP @3000 +0  808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9F
[32] jit-backend-dump}
[33] {jit-backend-addr
bridge out of Guard 0x77 has address 0x3008 to 0x3018
       gc table: 0x3000
    jump target: 0x3008
            end: 0x3020
[34] jit-backend-addr}
[35] {jit-backend-dump
CODE_DUMP @2020 +0  DDEEFF00
[36] jit-backend-dump}
[37] jit-backend}
";
const BRIDGE_OPERATIONS: &str = "\
[40] {jit-log-opt-bridge
# bridge out of Guard 0x77 with 3 ops
[p0]
+10: i1 = int_add(i0, 1)
debug_merge_point(1, 1, 'g;/a/w.py:10-12~#4 RETURN_VALUE')
+12: i2 = int_add(i1, 1)
+14: leave_portal_frame(14)
+16: jump(p0)
[41] jit-log-opt-bridge}
";

fn whole() -> String {
    [BACKEND, LOOP, BRIDGE, BRIDGE_OPERATIONS].concat()
}

fn codes(log: &CodeLog) -> Vec<(String, LogCode)> {
    let code = |kind| match kind {
        LogEventKind::Load(code) => (String::from_utf8_lossy(log.texts.get(code.name)).into_owned(), code),
        other => panic!("{other:?}"),
    };
    log.events.iter().map(|event| code(event.kind)).collect()
}

fn names(text: &str) -> Vec<String> {
    codes(&read(text.as_bytes()).unwrap()).into_iter().map(|(name, _)| name).collect()
}

fn source_map<'a>(log: &'a CodeLog, text: &'a str, code: &LogCode) -> SourceMap<'a> {
    log.line_decoder.as_ref().unwrap().source_map(text.as_bytes(), &text.as_bytes()[code.line_range()])
}

/// Offset, line, and inlined call of each line entry.
fn lines(map: &SourceMap<'_>) -> Vec<(u64, u32, Option<u32>)> {
    map.lines.iter().map(|line| (line.offset, line.line, line.inlined)).collect()
}

#[test]
fn loops_and_bridges_have_places_times_and_machine_code() {
    let text = whole();
    let log = read(text.as_bytes()).unwrap();
    let codes = codes(&log);
    let named: Vec<_> = codes.iter().map(|(name, code)| (&name[..], code.addr, code.size)).collect();
    let expected = [
        ("PyPy helper", 0x1000, 20),
        ("f w.py:5 #16 FOR_ITER", 0x2010, 0x20),
        ("f w.py:6 #18 LOAD_FAST bridge", 0x3008, 0x18),
    ];
    assert_eq!(named, expected);
    assert_eq!((log.clock, log.machine, log.torn), (LogClock::Ticks, Some(62), false));
    assert_eq!(log.events.iter().map(|event| event.time).collect::<Vec<_>>(), [Some(0x10), Some(0x23), Some(0x33)]);
    let bytes = log.texts.get(codes[1].1.bytes.unwrap());
    assert_eq!(bytes[..0x10], *(0x10..0x20).collect::<Vec<u8>>());
    assert_eq!(bytes[0x10..0x15], [0xdd, 0xee, 0xff, 0, 0x24], "patched when the bridge was made");
}

#[test]
fn calls_that_were_traced_through_are_inlined_until_they_are_left() {
    let text = whole();
    let log = read(text.as_bytes()).unwrap();
    let map = source_map(&log, &text, &codes(&log)[1].1);
    let call = InlinedCall { function: b"g".into(), file: b"/a/w.py", line: 6, column: 0, parent: None };
    assert_eq!(map.calls, [call]);
    assert_eq!(lines(&map), [(0, 5, None), (12, 6, None), (14, 11, Some(0)), (20, 6, None)]);
}

#[test]
fn a_bridge_begins_in_the_calls_around_its_guard() {
    let text = whole();
    let log = read(text.as_bytes()).unwrap();
    let map = source_map(&log, &text, &codes(&log)[2].1);
    assert_eq!(map.calls.len(), 1);
    assert_eq!((&map.calls[0].function[..], map.calls[0].line), (&b"g"[..], 6));
    assert_eq!(lines(&map), [(0, 11, Some(0)), (4, 12, Some(0)), (6, 6, None)]);
}

#[test]
fn a_bridge_whose_operations_were_not_logged_is_of_parts_that_its_patch_is_in() {
    let text = [BACKEND, BRIDGE].concat();
    assert_eq!(names(&text), ["PyPy helper", "f w.py:5 #16 FOR_ITER", "f w.py:5 #16 FOR_ITER bridge"]);
    let log = read(text.as_bytes()).unwrap();
    let map = source_map(&log, &text, &codes(&log)[1].1);
    assert_eq!(lines(&map), [(0, 5, None)]);
    let alone = BRIDGE.replace("CODE_DUMP @2020", "CODE_DUMP @9020");
    assert_eq!(names(&alone), ["bridge out of Guard 0x77", "PyPy helper"]);
}

#[test]
fn newer_logs_show_the_thread() {
    let threads: String = whole()
        .lines()
        .map(|line| match line.starts_with("[") && !line.starts_with("[p") {
            true => format!("0# {line}\n"),
            false => format!("{line}\n"),
        })
        .collect();
    assert!(sniff(threads.as_bytes()));
    assert_eq!(names(&threads), names(&whole()));
}

#[test]
fn every_form_of_place() {
    let name = |text: &str| String::from_utf8(SourceLocation::parse(text.as_bytes()).name()).unwrap();
    assert_eq!(name("fib;/tmp/a:b/work.py:3-5~#16 FOR_ITER"), "fib work.py:5 #16 FOR_ITER");
    assert_eq!(name("<lambda>;<builtin>/app.py:54~#8 FOR_ITER"), "<lambda> app.py:54 #8 FOR_ITER");
    assert_eq!(name("<code object gen, file \"/tmp/work.py\", line 36> <generator>"), "gen work.py:36 <generator>");
    assert_eq!(name("<code object gen. file '/tmp/work.py'. line 36> #24 FOR_ITER"), "gen work.py:36 #24 FOR_ITER");
    assert_eq!(name("StrDict.foreach"), "StrDict.foreach");
    assert_eq!(name("f;w.py:x~#1 A"), "f;w.py:x~#1 A");
}

#[test]
fn code_over_code_has_the_later_name() {
    let again = BACKEND.replace("Loop 1 (f", "Loop 2 (h");
    let text = [BACKEND, &again].concat();
    let named = names(&text);
    assert_eq!(named[2..], ["PyPy helper", "h w.py:5 #16 FOR_ITER"]);
}

#[test]
fn a_log_without_addresses_states_what_to_switch_on() {
    let error = read(LOOP.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("PYPYLOG=jit-backend"), "{error}");
    assert!(sniff(LOOP.as_bytes()) && !sniff(b"7f00 10 f\n"));
}

#[test]
fn every_prefix_and_every_flipped_byte_is_read() {
    let text = whole();
    let check = |bytes: &[u8]| {
        let Ok(log) = read(bytes) else { return };
        for event in &log.events {
            let LogEventKind::Load(code) = event.kind else { continue };
            assert!(code.addr.checked_add(code.size).is_some());
            let map =
                log.line_decoder.as_ref().unwrap().source_map(bytes, bytes.get(code.line_range()).unwrap_or_default());
            assert!(map.lines.iter().all(|line| line.inlined.is_none_or(|call| (call as usize) < map.calls.len())));
        }
    };
    for at in 0..text.len() {
        check(&text.as_bytes()[..at]);
        let mut bent = text.clone().into_bytes();
        bent[at] ^= 0x15;
        check(&bent);
    }
}
