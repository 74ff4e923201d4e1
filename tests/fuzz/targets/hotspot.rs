#![no_main]
//! HotSpot's compilation log, with the inlining of each task, and its code list.

use jitgraft::formats::jit_logs::{LogEventKind, LogId};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(id) = LogId::detect(bytes).filter(|id| id.log().id.starts_with("hotspot-")) else { return };
    let Ok(log) = (id.log().read)(bytes) else { return };
    let mut names = 0;
    for (at, event) in log.events.iter().enumerate() {
        match event.kind {
            LogEventKind::Load(code) => {
                assert!(code.addr.checked_add(code.size).is_some());
                names += log.texts.get(code.name).len();
                let entry = &bytes[code.positions()];
                let calls = log.positions.as_ref().map_or_else(Vec::new, |positions| positions.expanded(entry));
                assert!(calls.len() <= entry.len() / b"<parse>".len());
            }
            LogEventKind::Unload { load, .. } | LogEventKind::Move { load, .. } => assert!(load < at),
        }
    }
    // The longest spelling of a type is `boolean, ` for `Z`, an array's dimension `[]` for `[`.
    assert!(names <= 16 * bytes.len());
});
