use super::V8_LOG;
use crate::jit::engine_logs::{CodeLog, LogEventKind};

const LOG: &[u8] = b"v8-version,11,3,244,8,-node.38,0\n";

fn read(text: &[u8]) -> CodeLog {
    (V8_LOG.read)(&[LOG, text].concat()).unwrap()
}

/// (time in µs, name, address, size) of each load event.
fn loads(log: &CodeLog) -> Vec<(u64, String, u64, u64)> {
    let load = |event: &crate::jit::engine_logs::LogEvent| match event.kind {
        LogEventKind::Load(code) => {
            let name = String::from_utf8_lossy(log.texts.get(code.name)).into_owned();
            Some((event.time.unwrap() / 1000, name, code.addr, code.size))
        }
        _ => None,
    };
    log.events.iter().filter_map(load).collect()
}

fn names(text: &[u8]) -> Vec<String> {
    loads(&read(text)).into_iter().map(|(_, name, ..)| name).collect()
}

#[test]
fn names_are_those_of_the_engines_own_dump() {
    let text = "code-creation,Builtin,2,32464,0x18c4000,768,DeoptimizationEntry_Eager\n\
        code-creation,BytecodeHandler,0,32470,0x18c4340,772,LdaSmi.Wide\n\
        code-creation,RegExp,3,1295046,0x7fb35800ab80,2204,(\\\\w+)\\\\s*=[;\\x2C]?\n\
        code-creation,JS,13,206481,0x7f9a6c026500,696,middle /tmp/small.js:5:16,0x29296bbd1190,*\n\
        code-creation,JS,12,206481,0x7f9a6c026500,696,get sq /o\\x2Cdd \\xe9 \\ud83d\\ude00/x\\\\y.js:3:48,0x29,+'\n\
        code-creation,Eval,2,184535,0x7f9a6c0228c0,888, :1:1,0x29296bbd0e70,~\n\
        code-creation,LazyCompile,11,1,0x52f4cc0,1264, node:internal/x:9:36,0x1966f13ccba0,^\n\
        code-creation,JS,4,91950,0x2c3585fea840,192,wasm-function[7],0x2fcf2360,\n\
        code-creation,JS,4,134274,0x2c3585fea900,128,wasm-function[7],0x2fcf2360,*\n\
        code-creation,JS,4,134275,0x2c3585feaa00,128,fib,0x2fcf2361,*\n\
        code-creation,Stub,7,217604,0x7fd8fa7e3600,216,js-to-wasm:i:i\n";
    let expected = [
        "Builtin:DeoptimizationEntry_Eager",
        "BytecodeHandler:LdaSmi.Wide",
        "RegExp:(\\w+)\\s*=[;,]?",
        "JS:*middle /tmp/small.js:5:16",
        "JS:+'get sq /o,dd é 😀/x\\y.js:3:48",
        "Eval:~ :1:1",
        "LazyCompile:^ node:internal/x:9:36",
        "JS:wasm-function[7]-7-liftoff",
        "JS:wasm-function[7]-7-turbofan",
        "JS:fib-turbofan",
        "Stub:js-to-wasm:i:i",
    ];
    assert_eq!(names(text.as_bytes()), expected);
}

#[test]
fn a_name_with_commas_and_line_feeds_goes_up_to_the_fields_of_the_function() {
    let text = "code-creation,JS,2,1,0x10,8,we,ird\\name \"x\"\n😀é /tmp/w.js:9:36,0x14fd62dd10c0,~\n\
        code-creation,JS,2,2,0x20,8,cut\n\
        code-creation,JS,2,3,0x30,8,two\n\nlines :1:1,0x14fd62dd10c0,^\n";
    assert_eq!(
        names(text.as_bytes()),
        ["JS:~we,ird\\name \"x\"\n😀é /tmp/w.js:9:36", "JS:cut", "JS:^two\n\nlines :1:1"],
    );
}

#[test]
fn bytecode_and_functions_of_the_program_are_not_machine_code() {
    let text = b"code-creation,Builtin,3,1,0x10,8,B\n\
        code-creation,JS,3,2,0x20,8,f /a.js:1:1,0x5,~\n\
        code-creation,JS,10,3,0x30,8,f /a.js:1:1,0x5,~\n\
        code-creation,Callback,-2,4,0x40,1,get x\n\
        code-creation,JS,12,5,0x50,0,f /a.js:1:1,0x5,*\n";
    let log = read(text);
    assert_eq!(loads(&log).iter().map(|load| load.2).collect::<Vec<_>>(), [0x10, 0x20]);
    assert_eq!(log.skipped.count(), 0);
}

#[test]
fn moved_code_is_at_both_places_from_the_line_before_on() {
    let text = b"code-creation,JS,13,5,0x100,16,f /a.js:1:1,0x5,*\ntick,0x1,9,0,0x0,6\n\
        code-move,0x100,0x200\ncode-move,0x200,0x300\ncode-move,0x700,0x800\ncode-delete,0x300\n";
    let log = read(text);
    let at: Vec<_> = loads(&log).into_iter().map(|(time, _, addr, _)| (time, addr)).collect();
    assert_eq!(at, [(5, 0x100), (9, 0x200), (9, 0x300)]);
    assert!(matches!(log.events[3].kind, LogEventKind::Unload { load: 2, addr: 0x300 }));
}

/// Offsets in the script: `inner` is on line 2, `middle` on line 3, with calls of `inner` at offsets 30 and 36.
const INLINING: &[u8] = b"code-creation,JS,10,1,0x1000,41,inner /a.js:2:15,0xa0,~\n\
    script-source,81,/a.js,1\\n// \\xfc\\x2C \\ud83d\\ude00: two\\nthree\\n\n\
    code-source-info,0x1000,81,2,17,C0O2,,\n\
    code-creation,JS,10,2,0x2000,41,middle /a.js:3:1,0xb0,~\n\
    code-source-info,0x2000,81,18,23,C0O18,,\n\
    sfi-move,0xa0,0xc0\n\
    code-creation,JS,13,3,0x5000,696,outer /a.js:1:1,0xd0,*\n\
    code-source-info,0x5000,81,0,1,C0O0C39O18I0C53O2I1C72O5I1C80O17C900O1,F0O1F1O19I0,S0xb0S0xc0\n";

#[test]
fn inlined_calls_are_reported_with_their_lines_and_the_outer_code_s_mark() {
    let log = read(INLINING);
    let file = [LOG, INLINING].concat();
    let LogEventKind::Load(code) = log.events[0].kind else { panic!() };
    let map = log.line_decoder.as_ref().unwrap().source_map(&file, &file[code.line_range()]);
    let shown = |offset: u64| {
        let line = map.line_at(offset).unwrap();
        let calls =
            map.calls_around(line).map(|call| (String::from_utf8_lossy(&call.function).into_owned(), call.line));
        ((line.line, line.discriminator), calls.collect::<Vec<_>>())
    };
    let middle = ("JS:*middle /a.js:3:1".to_owned(), 1);
    let inner = ("JS:*inner /a.js:2:15".to_owned(), 3);
    assert_eq!(shown(0), ((1, 1), vec![]));
    assert_eq!(shown(40), ((3, 3), vec![middle.clone()]));
    assert_eq!(shown(60), ((2, 1), vec![inner.clone(), middle.clone()]));
    assert_eq!(shown(72), ((2, 4), vec![inner, middle]));
    assert_eq!(shown(695), ((3, 2), vec![]), "what lies behind the code is left out");
    assert!(map.lines.iter().all(|line| line.file == b"/a.js"));
}

#[test]
fn a_function_that_the_log_does_not_report_is_inlined_all_the_same() {
    let text = b"code-creation,JS,13,3,0x5000,696,outer /a.js:1:1,0xd0,*\n\
        code-source-info,0x5000,81,0,1,C0O0C39O18I0,F0O1,S0xee\n";
    let (log, file) = (read(text), [LOG, text].concat());
    let LogEventKind::Load(code) = log.events[0].kind else { panic!() };
    let map = log.line_decoder.as_ref().unwrap().source_map(&file, &file[code.line_range()]);
    assert_eq!(*map.calls[0].function, *b"(unknown)");
    assert_eq!((map.lines[1].line, map.lines[1].file), (0, &b""[..]), "nor is there the script");
}

#[test]
fn a_position_in_a_call_that_is_not_listed_shows_nothing() {
    let text = b"code-creation,JS,13,3,0x5000,696,outer /a.js:1:1,0xd0,*\n\
        code-source-info,0x5000,81,0,1,C0O0C39O18I1C45O19I0,F0O1,S0xee\ncode-move,0x5000,0xfffffffffffffff0\n";
    let (log, file) = (read(text), [LOG, text].concat());
    let LogEventKind::Load(code) = log.events[0].kind else { panic!() };
    let map = log.line_decoder.as_ref().unwrap().source_map(&file, &file[code.line_range()]);
    assert_eq!(map.lines.iter().map(|line| line.offset).collect::<Vec<_>>(), [0, 45]);
    assert_eq!(log.events.len(), 1, "nor is code believed to have moved beyond the end of memory");
}

#[test]
fn damage_is_counted_and_its_place_is_reported() {
    let text = b"code-creation,JS,13,x,0x10,8,f,0x1,*\ncode-creation,JS,13,1,0xffffffffffffffff,8,f,0x1,*\n\
        code-move,0x10\ngarb age\n\ncode-source-info,0x10,1,2,3\nheap-capacity,7\ncode-creation,JS,13,1,0x10,8,g,0x1,*\n\
        code-creation,JS,13,1,0x20,8,torn";
    let log = read(text);
    assert_eq!(loads(&log).len(), 1);
    assert_eq!((log.skipped.count(), log.torn), (5, true));
    let said = log.skipped.into_warning().unwrap();
    assert_eq!(said.offset, Some(LOG.len() as u64));
    assert_eq!(said.message, "5 lines skipped; the first one: the record has no valid timestamp (code-creation)");
}

#[test]
fn every_prefix_and_every_flipped_byte_is_read_with_its_positions() {
    let file = [LOG, INLINING].concat();
    let read = |file: &[u8]| {
        let log = (V8_LOG.read)(file).unwrap();
        assert!(log.events.len() <= 4);
        for event in &log.events {
            let LogEventKind::Load(code) = event.kind else { continue };
            let map = log.line_decoder.as_ref().unwrap().source_map(file, &file[code.line_range()]);
            assert!(map.lines.len() <= 8 && map.calls.len() <= 4);
        }
    };
    for at in 0..file.len() {
        read(&file[..at]);
        for bit in 0..8 {
            let mut bent = file.clone();
            bent[at] ^= 1 << bit;
            read(&bent);
        }
    }
}
