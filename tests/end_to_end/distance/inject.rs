//! `inject` of a recording of another machine: build IDs, call chains, and images for `perf --symfs`.

use super::support::bytes::Order;
use super::support::jitdump::{JitDump, Load};
use super::support::perf_data::{CONTEXT_USER, Event, Mmap, Mode, PerfData, Stamp, USER};
use super::{Elsewhere, jitgraft, printed, said};
use std::fs;
use std::process::Command;

fn perf(words: &[&str]) -> String {
    let output = Command::new("perf").args(words).env("HOME", "/nonexistent").output();
    let output = output.unwrap_or_else(|error| panic!("perf is needed: {error} (tests/run.sh installs it)"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A recording of the program that runs this test, as if it had run on a machine of this name.
fn recording(machine: &str, host: Option<&str>) -> PerfData {
    let program = std::env::current_exe().unwrap();
    let mut out = PerfData::new(Order::Little, Event::usual());
    let stamp = |time| Stamp::new(77, time);
    out.comm(stamp(1), "program", true);
    out.mmap2(stamp(2), Mmap { addr: 0x40_0000, len: 0x10_0000, pgoff: 0, path: program.to_str().unwrap() });
    for time in 4..7 {
        out.sample(stamp(time), &[0x40_1000]);
    }
    out.machine(machine);
    match host {
        Some(host) => out.string_feature(3, host),
        None => out.recorded_here(),
    }
    out
}

#[test]
fn build_ids_of_this_machine_are_not_written_into_a_recording_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    for (machine, host, is_here) in
        [("x86_64", None, true), ("aarch64", None, false), ("x86_64", Some("elsewhere"), false)]
    {
        fs::write(dir.path().join("perf.data"), recording(machine, host).into_bytes(Mode::File)).unwrap();
        for mode in ["-b", "-B", "--buildid-all", "--mmap2-buildid-all"] {
            let output = jitgraft(dir.path(), &format!("inject --strict {mode} -i perf.data -o out.data"));
            let list = perf(&["buildid-list", "-i", dir.path().join("out.data").to_str().unwrap()]);
            let has_id = list.lines().any(|line| line.ends_with(&program) && !line.starts_with(' '));
            assert_eq!(
                (has_id, output.status.success()),
                (is_here, is_here),
                "{machine} {mode}: {list}{}",
                said(&output)
            );
            let counted = format!("no build ID for 1 file ({program}: 3 frames)");
            assert_eq!(said(&output).contains(&counted), !is_here, "{}", said(&output));
        }
    }
}

#[test]
fn stacks_that_end_for_want_of_a_file_are_counted() {
    let elsewhere = Elsewhere::new("aarch64", "deep-nofp", "copies");
    let frames = |name: &str| {
        let text = printed(elsewhere.path(), &format!("script --symfs root -F ip,sym {name}"));
        text.lines().filter(|line| line.starts_with('\t')).count()
    };
    let without = jitgraft(elsewhere.path(), "inject --strict --convert-callchain perf.data -o without.data");
    assert_eq!(without.status.code(), Some(1));
    let told = said(&without);
    assert!(told.contains("stacks end early in") && told.contains("/programs/deep-nofp: "), "{told}");
    let with = jitgraft(elsewhere.path(), "inject --convert-callchain --symfs root perf.data -o with.data");
    assert!(!said(&with).contains("/programs/deep-nofp"), "{}", said(&with));
    let (with, without) = (frames("with.data"), frames("without.data"));
    assert!(with > without * 3 / 2, "{with} frames, {without} without the program");
}

#[test]
fn perf_finds_images_below_the_root_that_it_is_given() {
    const PID: u32 = 999_077;
    const AT: u64 = 0x1_0000;
    let dir = tempfile::tempdir().unwrap();
    let mut dump = JitDump::new(PID);
    dump.load(10, Load { tid: PID, addr: AT, index: 0, name: b"dumped", code: &[0x90; 0x40] });
    fs::write(dir.path().join(format!("jit-{PID}.dump")), dump.into_bytes()).unwrap();
    let mut data = PerfData::new(Order::Little, Event::usual());
    data.comm(Stamp::new(PID, 1), "program", true);
    data.mmap2(Stamp::new(PID, 2), Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    data.sample_of(0, USER, Stamp::new(PID, 20), AT + 4, &[CONTEXT_USER, AT + 4]);
    fs::write(dir.path().join("perf.data"), data.into_bytes(Mode::File)).unwrap();
    fs::create_dir_all(dir.path().join("root/jit")).unwrap();
    for (options, image) in [("", "root/jitted-999077.so"), ("--image-dir root/jit", "root/jit/jitted-999077.so")] {
        printed(dir.path(), &format!("inject --symfs root {options} perf.data -o out.data"));
        assert!(dir.path().join(image).is_file(), "{image}");
        let (data, root) = (dir.path().join("out.data"), dir.path().join("root"));
        let (data, root) = (data.to_str().unwrap(), root.to_str().unwrap());
        let text = perf(&["script", "-i", data, "--symfs", root, "-F", "ip,sym,dso"]);
        let recorded = image.strip_prefix("root").unwrap();
        assert!(text.contains(&format!("dumped ({recorded})")) || text.contains("dumped"), "{text}");
        assert!(printed(dir.path(), "script --symfs root -F ip,sym out.data").contains("dumped"));
        fs::remove_file(dir.path().join(image)).unwrap();
    }
    let output = jitgraft(dir.path(), "inject --symfs root --image-dir elsewhere perf.data -o out.data");
    assert!(said(&output).contains("is not below"), "{}", said(&output));
}
