//! Compares what is read from a real .NET image with the results of another reader and with .NET's own spelling.

use super::ReadyToRun;
use crate::second_readers::ready_to_run::{Second, fixture, library, plain};
use crate::test_effort::step;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

#[test]
fn every_method_is_called_as_a_second_reader_calls_it() {
    let image = ReadyToRun::read(&library()).unwrap();
    assert_eq!(image.machine, 62, "x86-64");
    let by_start: BTreeMap<u64, (u64, String)> = image
        .methods
        .iter()
        .map(|method| (method.start, (method.end, plain(&String::from_utf8_lossy(&method.name)))))
        .collect();
    let second = Second { bytes: library() }.methods();
    assert_eq!(second.len(), 69);
    for (start, end, name) in &second {
        assert_eq!(by_start.get(start), Some(&(*end, name.clone())), "at {start:#x}");
    }
    // All other pieces of code are exception handlers. They have the name of the method before them.
    let entries: BTreeSet<u64> = second.iter().map(|method| method.0).collect();
    for (start, (_, name)) in by_start.iter().filter(|(start, _)| !entries.contains(start)) {
        let before = second.iter().filter(|method| method.0 < *start).max().unwrap();
        assert_eq!(name, &before.2, "at {start:#x}");
    }
}

#[test]
fn methods_are_spelled_as_dot_net_spells_them() {
    let image = ReadyToRun::read(&library()).unwrap();
    let names: BTreeSet<String> =
        image.methods.iter().map(|method| String::from_utf8_lossy(&method.name).replace("[PreJIT]", "")).collect();
    let own = fs::read_to_string(fixture("jit-names.txt")).unwrap();
    assert_eq!(own.lines().count(), 18);
    for line in own.lines() {
        assert!(names.contains(line.strip_suffix("[Optimized]").unwrap()), "{line}");
    }
}

/// Which bytes of the file the reader needs, besides those at the start: .NET's header, the ReadyToRun header, the
/// metadata and the lists of methods.
const PARTS: [std::ops::Range<usize>; 3] = [0xca0..0x123c, 0x2520..0x4208, 0x6ef4..0x6feb];

/// A small copy of the image with only the parts that the reader needs. Each part is a section of its own.
fn small_image() -> Vec<u8> {
    const SECTION_TABLE: usize = 0x188;
    let whole = library();
    let second = Second { bytes: whole.clone() };
    let pe = second.number(0x3c, 4);
    assert_eq!(pe + 24 + second.number(pe + 20, 2), SECTION_TABLE, "where the table of sections is");
    let mut small = whole[..0x400].to_vec();
    small[pe + 6] = PARTS.len() as u8;
    for (index, part) in PARTS.into_iter().enumerate() {
        // All parts come from the section that starts at 0x800 in the file and at 0x20800 in memory.
        let (rva, size, offset) = (part.start + 0x2_0000, part.len(), small.len());
        for (field, value) in [(8, size), (12, rva), (16, size), (20, offset)] {
            let at = SECTION_TABLE + 40 * index + field;
            small[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
        }
        small.extend_from_slice(&whole[part]);
    }
    small
}

#[test]
fn an_image_is_read_whatever_is_cut_off_and_whichever_byte_is_wrong() {
    let small = small_image();
    let methods = |bytes: &[u8]| ReadyToRun::read(bytes).map_or(Vec::new(), |image| image.methods);
    let all = methods(&small);
    assert_eq!(all, methods(&library()));
    let check = |at: usize| {
        assert!(methods(&small[..at]).len() <= all.len(), "{at} bytes");
        let mut bent = small.clone();
        bent[at] ^= 0xff;
        assert!(methods(&bent).len() <= small.len() / 8, "byte {at:#x}");
    };
    let workers = std::thread::available_parallelism().unwrap().get();
    std::thread::scope(|scope| {
        for first in 0..workers {
            let check = &check;
            let len = small.len();
            scope.spawn(move || (first..len).step_by(workers * step(4)).for_each(check));
        }
    });
}
