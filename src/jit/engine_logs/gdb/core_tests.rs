//! Compares a real core dump with the output of nm and addr2line.

use super::super::{CodeLog, JIT_LOGS, JitLog, LogCode, LogEventKind};
use crate::second_readers::gdb_core::{CORE, Core, DESCRIPTOR, by_addr2line, functions, unpacked};
use std::collections::BTreeSet;

fn core_log() -> &'static JitLog {
    JIT_LOGS.iter().find(|log| log.id == "core").unwrap()
}

fn codes(log: &CodeLog) -> impl Iterator<Item = (&LogCode, String)> {
    log.events.iter().map(|event| match &event.kind {
        LogEventKind::Load(code) => (code, String::from_utf8_lossy(log.texts.get(code.name)).into_owned()),
        other => panic!("{other:?}"),
    })
}

/// The frames at an address according to our reader.
fn by_us(log: &CodeLog, core: &[u8], addr: u64) -> Vec<String> {
    let (code, name) = codes(log).find(|(code, _)| (code.addr..code.addr + code.size).contains(&addr)).unwrap();
    let map = log.line_decoder.as_ref().unwrap().source_map(core, log.texts.get(code.position_key.unwrap()));
    let line = map.line_at(addr - code.addr).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (mut calls, mut place) = (Vec::new(), format!("{}:{}", text(line.file), line.line));
    for call in map.calls_around(line) {
        calls.push(format!("{} {place}", text(&call.function)));
        place = format!("{}:{}", text(call.file), call.line);
    }
    calls.push(format!("{name} {place}"));
    calls
}

/// Functions from the core dump have the address, size and name that nm prints for them.
#[test]
fn every_function_is_called_and_placed_as_nm_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let expected: BTreeSet<_> =
        functions(dir.path()).into_iter().map(|function| (function.addr, function.size, function.name)).collect();
    assert_eq!(expected.len(), 3, "spin, fib and step; what was unregistered is gone: {expected:?}");
    let core = unpacked(CORE);
    let log = (core_log().read)(&core).unwrap();
    assert_eq!(codes(&log).map(|(code, name)| (code.addr, code.size, name)).collect::<BTreeSet<_>>(), expected);
    // 62 is `EM_X86_64`.
    assert_eq!((log.pid, log.machine, log.torn, log.skipped.count()), (Some(24209), Some(62), false, 0));
}

#[test]
fn every_byte_of_code_has_the_lines_and_inlined_calls_that_addr2line_finds() {
    let dir = tempfile::tempdir().unwrap();
    let core = unpacked(CORE);
    let log = (core_log().read)(&core).unwrap();
    let (mut compared, mut inlined) = (0, 0);
    for function in functions(dir.path()) {
        for addr in function.addr..function.addr + function.size {
            let expected = by_addr2line(&function, addr, dir.path());
            assert_eq!(by_us(&log, &core, addr), expected, "at {addr:#x}");
            compared += 1;
            inlined += usize::from(expected.len() > 1);
        }
    }
    assert!(compared > 150 && inlined > 50, "{compared} {inlined}");
}

#[test]
fn code_is_that_of_the_objects() {
    let core = unpacked(CORE);
    let log = (core_log().read)(&core).unwrap();
    let objects = Core(core.clone()).objects();
    for (code, name) in codes(&log) {
        let bytes = &core[code.memory()];
        assert_eq!(bytes.len() as u64, code.size);
        let is_in = |object: &Vec<u8>| object.windows(bytes.len()).any(|window| window == bytes);
        assert!(objects.iter().any(is_in), "{name}");
    }
}

#[test]
fn damaged_cores_do_no_harm() {
    let core = unpacked(CORE);
    let read_all = |bytes: &[u8]| {
        let Ok(log) = (core_log().read)(bytes) else { return };
        for (code, _) in codes(&log) {
            assert!(code.addr.checked_add(code.size).is_some());
            let (Some(positions), Some(key)) = (&log.line_decoder, code.position_key) else { continue };
            let map = positions.source_map(bytes, log.texts.get(key));
            assert!(map.lines.iter().all(|line| line.inlined.is_none_or(|call| (call as usize) < map.calls.len())));
        }
    };
    // Damages only headers, notes, the descriptor and the objects; the rest is memory that doesn't matter.
    let reader = Core(core.clone());
    let objects = reader.objects();
    let start = |object: &Vec<u8>| core.windows(object.len()).position(|window| window == &object[..]).unwrap();
    let mut places: Vec<usize> = (0..850).collect();
    places.extend(reader.offset(DESCRIPTOR)..reader.offset(DESCRIPTOR) + 24);
    objects.iter().for_each(|object| places.extend((start(object) - 64..start(object) + object.len()).step_by(3)));
    for at in places {
        read_all(&core[..at]);
        let mut changed = core.clone();
        changed[at] ^= 0x15;
        read_all(&changed);
    }
}
