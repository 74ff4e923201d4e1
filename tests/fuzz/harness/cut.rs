//! Files cut anywhere, and files with any one byte changed: no panic, nothing good lost, no half output.

use super::commands::jitgraft;
use super::scratch::Scratch;
use crate::test_writers::bytes::Order;
use crate::test_writers::jitdump::{JitDump, Load};
use crate::test_writers::perf_data::{Event, Mmap, Mode, PerfData, Stamp};
use std::ffi::OsStr;
use std::fs;

const PID: u32 = 77;
/// Where the code is.
const CODE: u64 = 0x1_0000;
const SAMPLES: u64 = 3;

/// A directory with a dump and a map of process 77, and its recording.
fn recording() -> (Scratch, PerfData) {
    let scratch = Scratch::new();
    let code = &[0x90; 0x40];
    let mut dump = JitDump::new(PID);
    dump.load(10, Load { tid: PID, addr: CODE, index: 0, name: b"first", code });
    dump.load(11, Load { tid: PID, addr: CODE + 0x100, index: 1, name: b"second", code });
    let dump = scratch.put("jit-77.dump", &dump.into_bytes());
    scratch.put("perf-77.map", format!("{CODE:x} 40 mapped\n{:x} 10 more\n", CODE + 0x200).as_bytes());
    let mut recording = PerfData::new(Order::Little, Event::usual());
    recording.comm(Stamp::new(PID, 1), "program", true);
    recording.mmap2(Stamp::new(PID, 2), Mmap { addr: CODE, len: 0x1_0000, pgoff: 0, path: "//anon" });
    recording.mmap2(Stamp::new(PID, 3), Mmap { addr: 0x70_0000, len: 0x1000, pgoff: 0, path: dump.to_str().unwrap() });
    recording.sample(Stamp::new(PID, 20), &[CODE]);
    recording.auxtrace(&[0xaa; 16]);
    recording.fork(Stamp::new(78, 21), PID);
    recording.sample(Stamp::new(PID, 30), &[CODE + 0x100]);
    recording.finished_round();
    recording.sample(Stamp::new(78, 40), &[CODE + 0x200]);
    (scratch, recording)
}

/// Every so many bytes are tried.
fn step() -> usize {
    crate::test_effort::step(10)
}

/// Injects in this process. True if it was done.
fn inject(scratch: &Scratch) -> bool {
    let (input, output) = (scratch.path("perf.data"), scratch.path("out.data"));
    let _ = fs::remove_file(&output);
    let _ = fs::remove_file(scratch.path("jitted-77.so"));
    let words = ["inject".as_ref(), "-i".as_ref(), input.as_os_str(), OsStr::new("-o"), output.as_os_str()];
    let done = jitgraft(&words).is_ok();
    assert_eq!(output.exists(), done, "output and result disagree");
    let entries = fs::read_dir(scratch.path("")).unwrap();
    for entry in entries {
        let name = entry.unwrap().file_name();
        assert!(!name.to_str().unwrap().starts_with('.'), "a temporary file stays");
    }
    done
}

/// The whole records of a stream: kinds and numbers.
fn samples(mut records: &[u8]) -> u64 {
    let mut count = 0;
    while records.len() >= 8 {
        let size = usize::from(u16::from_le_bytes([records[6], records[7]]));
        let payload = if records[0] == 71 && records.len() >= 16 { usize::from(records[8]) } else { 0 };
        let Some(rest) = records.get((size + payload).max(8)..) else { break };
        count += u64::from(records[0] == 9);
        records = rest;
    }
    count
}

/// The records of a file; in a pipe all follow a header of 16 bytes.
fn records(file: &[u8]) -> &[u8] {
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    if word(8) == 16 { &file[16..] } else { &file[word(40)..file.len().min(word(40) + word(48))] }
}

#[test]
fn every_prefix_of_a_recording_keeps_its_whole_samples() {
    let (dir, recording) = recording();
    for mode in [Mode::File, Mode::Pipe] {
        let whole = recording.clone().into_bytes(mode);
        let start = whole.len() - records(&whole).len();
        let mut most = 0;
        for len in (0..=whole.len()).rev().step_by(step()) {
            fs::write(dir.path("perf.data"), &whole[..len]).unwrap();
            let done = inject(&dir);
            let word = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
            // In a file, the header and the attrs must be there; a pipe states them by and by.
            let begun = if mode == Mode::File { word(40) } else { start };
            assert!(done || len < begun + 256, "{mode:?}: {len} of {} bytes are refused", whole.len());
            if done && len >= begun {
                let end = if mode == Mode::File { word(40) + word(48) } else { whole.len() };
                let expected = samples(&whole[begun..len.min(end)]);
                let out = fs::read(dir.path("out.data")).unwrap();
                assert_eq!(samples(records(&out)), expected, "{mode:?}: {len} bytes");
                most = most.max(expected);
            }
        }
        assert_eq!(most, SAMPLES);
    }
}

#[test]
fn any_changed_byte_of_a_recording_is_survived() {
    let (dir, recording) = recording();
    for mode in [Mode::File, Mode::Pipe] {
        let whole = recording.clone().into_bytes(mode);
        let (mut tried, mut done) = (0, 0);
        for at in (0..whole.len()).step_by(step()) {
            for change in [0xff, 0x01] {
                tried += 1;
                let mut changed = whole.clone();
                changed[at] ^= change;
                fs::write(dir.path("perf.data"), &changed).unwrap();
                done += usize::from(inject(&dir));
            }
        }
        assert!(done * 10 > tried * 9, "{mode:?}: {done} of {tried} were read");
    }
}

#[test]
fn no_cut_or_change_of_dump_or_map_stops_the_recording() {
    let (dir, recording) = recording();
    fs::write(dir.path("perf.data"), recording.into_bytes(Mode::File)).unwrap();
    for name in ["jit-77.dump", "perf-77.map"] {
        let path = dir.path(name);
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(step()) {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            for bytes in [&whole[..at], &changed] {
                fs::write(&path, bytes).unwrap();
                assert!(inject(&dir), "{name} at {at:#x}");
                let out = fs::read(dir.path("out.data")).unwrap();
                assert_eq!(samples(records(&out)), SAMPLES, "{name} at {at:#x}");
            }
        }
        fs::write(&path, whole).unwrap();
    }
}
