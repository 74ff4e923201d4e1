//! A recording of .NET whose hot code was compiled ahead of time, into a PE file: no map reports it. The name of each
//! method is found by a second reader of the file, which shares no code with `src/`; how it is spelled, .NET itself
//! states, which was made to compile the same methods when they ran.

use crate::support::second_readers::ready_to_run::{Second, fixture, library, plain};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

fn text(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error} (tests/run.sh installs it)"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_frame_in_the_image_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("perf.data");
    fs::write(&data, zstd::decode_all(&fs::read(fixture("perf.data.zst")).unwrap()[..]).unwrap()).unwrap();
    let data = data.to_str().unwrap();
    let maps = text("perf", &["script", "-i", data, "--show-mmap-events", "-F", "comm,ip"]);
    let map = maps.lines().find(|line| line.contains("MMAP") && line.ends_with("System.Web.HttpUtility.dll"));
    let start = map.unwrap().split_once("[0x").unwrap().1.split_once('(').unwrap().0;
    // Code of this file begins in its first page; it is one of a section that is loaded 0x20000 behind the beginning.
    let start = u64::from_str_radix(start, 16).unwrap() - 0x2_0000;
    let second = Second { bytes: library() }.methods();
    let root = fixture("root");
    let script = text(env!("CARGO_BIN_EXE_jitgraft"), &["script", data, "--symfs", root.to_str().unwrap()]);
    let frames = script.lines().filter(|line| line.ends_with("System.Web.HttpUtility.dll)"));
    let (mut count, mut methods) = (0, BTreeSet::new());
    for line in frames {
        let (addr, name) = line.trim().split_once(' ').unwrap();
        let addr = u64::from_str_radix(addr, 16).unwrap() - start;
        let method = second.iter().find(|method| (method.0..=method.1).contains(&addr));
        let (_, _, expected) = method.unwrap_or_else(|| panic!("no method at {addr:#x}: {line}"));
        assert_eq!(&plain(name), expected, "{line}");
        assert!(name.contains("[PreJIT]+0x"), "{line}");
        count += 1;
        methods.insert(expected);
    }
    assert_eq!((count, methods.len()), (836, 17));
}
