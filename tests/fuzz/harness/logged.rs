//! Fuzz targets for other sources of names than dumps and maps: objects in a core dump's memory, and whole commands
//! with an engine's log or with the files of a guest. The targets of addresses are put in order here, so that bytes
//! decide the rest.

use super::commands::jitgraft;
use super::framed::Bytes;
use super::recordings;
use super::scene::PID;
use super::scratch::{Scratch, parts};
use crate::jit::engine_logs::{JIT_LOGS, LogEventKind, LogId};
use crate::test_writers::bytes::Order;
use crate::test_writers::perf_data::{self as writer, Event, Mmap, Mode, PerfData, Stamp};
use std::ffi::OsStr;

/// The start of the core's memory.
const MEMORY: u64 = 0x7000_0000_0000;

/// A core dump in which these objects are registered with GDB's JIT interface; behind them, the code.
fn core_of(objects: &[&[u8]], code: &[u8]) -> Vec<u8> {
    const DESCRIPTOR: u64 = 24;
    const ENTRY: u64 = 32;
    let entry = |number: usize| MEMORY + DESCRIPTOR + ENTRY * number as u64;
    let mut memory = Vec::new();
    let mut words = |words: &[u64]| words.iter().for_each(|word| memory.extend_from_slice(&word.to_le_bytes()));
    words(&[1, 0, entry(0)]);
    let mut at = entry(objects.len());
    for (number, object) in objects.iter().enumerate() {
        let next = if number + 1 < objects.len() { entry(number + 1) } else { 0 };
        words(&[next, number.checked_sub(1).map_or(0, entry), at, object.len() as u64]);
        at += object.len() as u64;
    }
    objects.iter().for_each(|object| memory.extend_from_slice(object));
    memory.extend_from_slice(code);

    // An ELF file of type core for x86-64, with one header of a segment that can be written.
    let mut core = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0\x3e\0\x01\0\0\0".to_vec();
    let size = memory.len() as u64;
    let mut words = |words: &[u64]| words.iter().for_each(|word| core.extend_from_slice(&word.to_le_bytes()));
    words(&[0, 64, 0, 64 << 32 | 56 << 48, 1]);
    words(&[1 | 6 << 32, 120, MEMORY, 0, size, size, 1]);
    core.extend_from_slice(&memory);
    core
}

/// One or two objects, and the code that they report. Their executable sections are where the code is.
pub(super) fn core(bytes: &[u8]) {
    let [first, second, code] = parts(bytes);
    let objects = [first, second];
    let objects = if second.is_empty() { &objects[..1] } else { &objects[..] };
    let core = core_of(objects, code);
    JIT_LOGS.iter().filter(|log| log.id == "core").for_each(|log| recordings::jit_log(log, &core));
}

/// The commands for a recording whose code a log names.
const COMMANDS: &[&[&str]] = &[
    &["collapse"],
    &["inject"],
    &["annotate"],
    &["report"],
    &["doctor"],
    &["view"],
    &["script"],
    &["flamegraph", "--style", "inferno"],
    &["annotate", "--by", "line", "--format", "json"],
    &["export", "--to", "pprof"],
    &["inject", "--all-functions"],
    &["annotate", "--format", "json"],
];

/// A recording of the code that a log reports, the log, a map, and a file of a guest that may be what its names mean.
pub(super) fn logged(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let (command, seed) = (bytes.byte(), bytes.byte());
    let [log, map, guest] = parts(bytes.0);
    let scratch = Scratch::new();
    let (input, out) = (scratch.put("perf.data", &recording(log, map, seed)), scratch.path("out"));
    let mut words: Vec<&OsStr> =
        COMMANDS[usize::from(command) % COMMANDS.len()].iter().copied().map(OsStr::new).collect();
    words.extend([OsStr::new("-i"), input.as_os_str(), OsStr::new("-o"), out.as_os_str()]);
    let nothing = scratch.path("nothing");
    std::fs::create_dir_all(&nothing).unwrap();
    if words[0] != "inject" {
        words.extend([OsStr::new("--symfs"), nothing.as_os_str()]);
    }
    let (log, map, guest) = (
        (!log.is_empty()).then(|| scratch.put("log", log)),
        (!map.is_empty()).then(|| scratch.put(&format!("perf-{PID}.map"), map)),
        (!guest.is_empty()).then(|| scratch.put("guest", guest)),
    );
    let log = log.map(|log| format!("{}@{PID}", log.display()));
    words.extend(log.iter().flat_map(|log| ["--jit-log".as_ref(), OsStr::new(log)]));
    words.extend(map.iter().flat_map(|map| ["--perf-map".as_ref(), map.as_os_str()]));
    words.extend(guest.iter().flat_map(|guest| ["--guest".as_ref(), guest.as_os_str()]));
    let _ = jitgraft(&words);
}

/// Samples in the code that the log and the map report, each called by the one before.
fn recording(log: &[u8], map: &[u8], seed: u8) -> Vec<u8> {
    const MOST: usize = 24;
    let read = LogId::detect(log).and_then(|id| (id.log().read)(log).ok());
    let events = read.iter().flat_map(|read| &read.events);
    let in_log = events.filter_map(|event| match event.kind {
        LogEventKind::Load(code) => Some((code.addr, code.size)),
        LogEventKind::Move { to, .. } => Some((to, 16)),
        LogEventKind::Unload { .. } => None,
    });
    let (entries, _) = crate::jit::perf_map::read(map);
    let code: Vec<_> =
        in_log.take(MOST).chain(entries.iter().take(MOST).map(|entry| (entry.start, entry.size))).collect();
    let mut data = PerfData::with_events(Order::Little, vec![Event::usual()]);
    data.command(&["program", "--flag"]);
    let mut stamp = Stamp::new(PID, 1_000_000);
    data.comm(stamp, "program", true);
    for page in code.iter().map(|(addr, _)| addr >> 12) {
        data.mmap2(stamp, Mmap { addr: page << 12, len: 1 << 12, pgoff: 0, path: "//anon" });
    }
    let mut chain = vec![writer::CONTEXT_USER];
    for (addr, size) in code {
        stamp.time += 1000 + u64::from(seed);
        let at = size.saturating_sub(1).min(u64::from(seed & 15));
        chain.insert(1, addr.saturating_add(at));
        data.sample(stamp, &chain);
    }
    data.into_bytes(Mode::File)
}
