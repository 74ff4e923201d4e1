#![no_main]
//! Logs of engines: every sort, whatever the bytes look like, with the source lines of all code.

use jitgraft::formats::jit_logs::{JIT_LOGS, LogEventKind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for log in JIT_LOGS {
        let _ = (log.sniff)(bytes);
        let Ok(read) = (log.read)(bytes) else { continue };
        for (at, event) in read.events.iter().enumerate() {
            match event.kind {
                LogEventKind::Load(code) => {
                    let _ = read.texts.get(code.name);
                    assert!(code.addr.checked_add(code.size).is_some(), "{}: {code:?}", log.id);
                    let in_log = || bytes.get(code.positions()).unwrap_or_default();
                    let entry = code.place.map_or_else(in_log, |place| read.texts.get(place));
                    assert!(bytes.get(code.memory()).is_some(), "{}: {code:?}", log.id);
                    let map = read.positions.as_ref().map(|positions| positions.source_map(bytes, entry));
                    let calls = |map: &jitgraft::model::code::SourceMap<'_>| map.calls.len();
                    let known = map.as_ref().map_or(0, calls);
                    let lines = map.iter().flat_map(|map| &map.lines);
                    assert!(lines.into_iter().all(|line| line.inlined.is_none_or(|call| (call as usize) < known)));
                }
                LogEventKind::Move { load, .. } | LogEventKind::Unload { load, .. } => assert!(load < at, "{}", log.id),
            }
        }
    }
});
