//! `inject --relocate`: what it writes is right for perf, and for hotspot, which takes every file for one loaded once.

use super::perf::{perf, script};
use super::rewriting::{Case, PLAN};
use super::support::bytes::Order;
use super::support::generated::{Plan, name};
use super::support::perf_data::{Event, Mmap, Mode, PerfData, Stamp};
use super::truth::{Recording, read_script};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// hotspot's reader, a program of its own.
fn perfparser() -> PathBuf {
    let libraries = fs::read_dir("/usr/lib").unwrap().map(|entry| entry.unwrap().path().join("libexec"));
    let mut places = libraries.chain([PathBuf::from("/usr/libexec")]).map(|place| place.join("hotspot-perfparser"));
    places.find(|program| program.exists()).expect("hotspot is needed (tests/run.sh installs it)")
}

/// The result of hotspot's reader for a recording: for each sample process, time, and the names of the frames in
/// images.
///
/// Its output is a magic of 16 bytes, then messages: their length (little-endian), their type, and what Qt's data
/// streams make of the rest (big-endian). Those of interest here define strings, locations and symbols by number; a
/// sample has locations, a location's parent is its function, and that has the symbol.
fn parsed(data: &Path) -> Vec<(u32, u64, Vec<String>)> {
    let mut command = Command::new(perfparser());
    let output = command.arg("--input").arg(data).env("DEBUGINFOD_URLS", "").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stdout.starts_with(b"QPERFSTREAM"), "{output:?}");
    let mut rest = &output.stdout[16..];
    let (mut strings, mut parents, mut symbols, mut samples) =
        (HashMap::new(), HashMap::new(), HashMap::new(), Vec::new());
    while let Some((len, behind)) = rest.split_first_chunk() {
        let (message, next) = behind.split_at(u32::from_le_bytes(*len) as usize);
        rest = next;
        let word = |at: usize| u32::from_be_bytes(message[at..at + 4].try_into().unwrap());
        match message[0] {
            // number, address, file, process, line, column, parent
            3 => drop(parents.insert(word(1), word(29))),
            // number, name, binary
            4 => drop(symbols.insert(word(1), (word(5), word(9)))),
            // number, length, bytes
            5 => drop(strings.insert(word(1), String::from_utf8_lossy(&message[9..9 + word(5) as usize]).into_owned())),
            // process, thread, time, processor, number of frames, their locations
            13 => {
                let frames: Vec<u32> = (0..word(21) as usize).map(|frame| word(25 + 4 * frame)).collect();
                samples.push((word(1), u64::from(word(9)) << 32 | u64::from(word(13)), frames));
            }
            _ => {}
        }
    }
    let name = |location: u32| {
        let (name, binary) = symbols.get(parents.get(&location)?)?;
        strings.get(binary).filter(|binary| binary.starts_with("jitted-"))?;
        strings.get(name).cloned()
    };
    let named = |frames: Vec<u32>| frames.into_iter().filter_map(name).collect();
    samples.into_iter().map(|(pid, time, frames)| (pid, time, named(frames))).collect()
}

#[test]
fn hotspot_shows_what_ran_though_addresses_were_used_again_and_code_moved() {
    let case = Case::new(PLAN);
    case.inject(&["--relocate", "-i", "perf.data", "-o", "out.data"]);
    let samples = parsed(&case.path("out.data"));
    let truth = case.made.truth.iter().map(|sample| {
        let names = sample.frames.iter().map(|frame| name(frame.function)).collect();
        (sample.pid, sample.time, names)
    });
    let mut truth: Vec<(u32, u64, Vec<String>)> = truth.collect();
    truth.sort_by_key(|sample| sample.1);
    assert_eq!(samples.len(), truth.len());
    for (shown, truth) in samples.iter().zip(&truth) {
        assert_eq!(shown, truth);
    }
}

#[test]
fn perf_names_relocated_code_as_it_does_where_the_code_was() {
    let case = Case::new(PLAN);
    case.inject(&["--relocate", "-i", "perf.data", "-o", "out.data"]);
    case.assert_true("out.data");
    let maps = perf(&["script", "--show-mmap-events"], &case.path("out.data"));
    let images = String::from_utf8_lossy(&maps.out)
        .lines()
        .filter(|line| line.contains("PERF_RECORD_MMAP2") && line.contains("/jitted-"))
        .count();
    assert_eq!(images, PLAN.processes as usize, "each image is mapped once, as a whole");
}

#[test]
fn pipes_and_the_other_byte_order_are_relocated_too() {
    let case = Case::new(Plan { order: Order::Big, mode: Mode::Pipe, ..PLAN });
    case.inject(&["--relocate", "-i", "perf.data", "-o", "out.data"]);
    case.assert_true("out.data");
}

#[test]
fn relocation_is_the_same_for_any_number_of_threads() {
    let case = Case::new(Plan { samples: 40_000, ..PLAN });
    case.inject(&["--relocate", "--threads", "1", "-i", "perf.data", "-o", "one.data"]);
    case.inject(&["--relocate", "--threads", "3", "-i", "perf.data", "-o", "three.data"]);
    assert!(fs::read(case.path("one.data")).unwrap() == fs::read(case.path("three.data")).unwrap());
    let printed = read_script(&script(&case.path("one.data")).out);
    assert_eq!(printed.len(), case.made.truth.len());
}

#[test]
fn a_program_that_is_mapped_again_is_reported_where_it_was_first() {
    let dir = tempfile::tempdir().unwrap();
    let stamp = |time| Stamp::new(77, time);
    let mut made = PerfData::new(Order::Little, Event::usual());
    made.comm(stamp(1), "node", true);
    for (time, addr, pgoff, path) in [
        (2, 0x40_0000, 0x1000, "/opt/node"),
        (3, 0x60_0000, 0x8000, "/opt/other"),
        (4, 0x7f00_0000_0000, 0x2000, "/opt/node"),
        (5, 0x7f00_0010_0000, 0x2000, "//anon"),
    ] {
        made.mmap2(stamp(time), Mmap { addr, len: 0x4000, pgoff, path });
    }
    // The second word is what a call at the very end of the first mapping returns to.
    made.sample(stamp(10), &[0x7f00_0000_0123, 0x7f00_0000_3000, 0x60_0010, 0x7f00_0010_0123]);
    // Now something else is where the file was first.
    made.mmap2(stamp(20), Mmap { addr: 0x40_2000, len: 0x1000, pgoff: 0, path: "/opt/other" });
    made.sample(stamp(30), &[0x7f00_0000_0123, 0x7f00_0000_1123]);
    fs::write(dir.path().join("perf.data"), made.into_bytes(Mode::File)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let args = ["inject", "--relocate", "-i", "perf.data", "-o", "out.data"];
    assert!(command.args(args).current_dir(dir.path()).status().unwrap().success());
    let written = Recording::read(&fs::read(dir.path().join("out.data")).unwrap());
    let chains: Vec<_> = written.samples.iter().map(|sample| sample.addrs.clone()).collect();
    let first = vec![0x40_1123, 0x40_4000, 0x60_0010, 0x7f00_0010_0123];
    assert_eq!(chains, [first, vec![0x40_1123, 0x7f00_0000_1123]]);
}
