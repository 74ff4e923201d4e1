//! A recording of one process, broken or not, in a directory of its own, and what doctor states about it.

use crate::support::bytes::Order;
use crate::support::jitdump::{JitDump, Load};
use crate::support::perf_data::{Event, Mmap, Mode, PerfData, Stamp};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The process.
pub(crate) const PID: u32 = 4711;

/// Its memory for JIT code.
pub(crate) const JIT: u64 = 0x7f00_0000_0000;

/// When the first sample is taken; the others follow each millisecond.
pub(crate) const START: u64 = 1_000_000_000_000;

/// As many samples as a sound recording has.
pub(crate) const SAMPLES: u64 = 400;

pub(crate) struct Scene {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) data: PerfData,
    stamp: Stamp,
}

impl Scene {
    /// A process that runs this program and has memory for JIT code.
    pub(crate) fn of(program: &str) -> Self {
        Self::with_event(program, Event::usual())
    }

    pub(crate) fn with_event(program: &str, event: Event) -> Self {
        let mut data = PerfData::new(Order::Little, event);
        data.recorded_here();
        let stamp = Stamp::new(PID, START - 1_000_000);
        let kernel = Mmap { addr: KERNEL, len: 0x100_0000, pgoff: KERNEL, path: "[kernel.kallsyms]_text" };
        data.kernel_mmap(Stamp::default(), kernel);
        data.comm(stamp, program.rsplit('/').next().unwrap(), true);
        data.mmap2(stamp, Mmap { addr: 0x40_0000, len: 0x10_0000, pgoff: 0, path: program });
        data.mmap2(stamp, Mmap { addr: JIT, len: 0x10_0000, pgoff: 0, path: "//anon" });
        Self { dir: tempfile::tempdir().unwrap(), data, stamp }
    }

    /// The file with that name beside the recording.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn map_file(&mut self, addr: u64, path: &str) {
        self.data.mmap2(self.stamp, Mmap { addr, len: 0x10_0000, pgoff: 0, path });
    }

    /// The process maps its dump, which is called so.
    pub(crate) fn marker(&mut self, name: &str) {
        self.map_file(0x7e00_0000_0000, self.dir.path().join(name).to_str().unwrap().to_owned().as_str());
    }

    /// This many samples of these chains in turn, innermost first.
    pub(crate) fn samples(&mut self, count: u64, chains: &[&[u64]]) {
        for number in 0..count {
            let chain = chains[number as usize % chains.len()];
            self.data.sample(Stamp::new(PID, START + number * 1_000_000), chain);
        }
    }

    /// As perf.data.
    pub(crate) fn record(&self) -> PathBuf {
        self.write("perf.data", self.data.clone().into_bytes(Mode::File))
    }

    /// The problems: the keys, what distorts most first.
    pub(crate) fn problems(&self) -> Vec<String> {
        problems(&self.findings())
    }

    pub(crate) fn findings(&self) -> Vec<Value> {
        let path = self.record();
        let output = doctor(&["--format", "json"], &path);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        list[0]["findings"].as_array().unwrap().clone()
    }

    /// The first finding must be this one: its cause and its remedy.
    #[track_caller]
    pub(crate) fn first(&self, problem: &str) -> (String, String) {
        let findings = self.findings();
        let first = findings.first().unwrap_or_else(|| panic!("no finding"));
        assert_eq!(first["problem"], problem, "{findings:#?}");
        let text = |key: &str| first[key].as_str().unwrap().to_owned();
        (text("cause"), text("remedy"))
    }
}

const KERNEL: u64 = 0xffff_ffff_8000_0000;

pub(crate) fn problems(findings: &[Value]) -> Vec<String> {
    findings.iter().map(|finding| finding["problem"].as_str().unwrap().to_owned()).collect()
}

/// Nothing of the machine that the tests run on is looked at but what is recorded.
pub(crate) fn doctor(args: &[&str], input: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.arg("doctor").args(args).arg(input).env("HOME", "/nonexistent").env_remove("JITDUMPDIR");
    command.output().unwrap()
}

/// A map of functions of 0x100 bytes, one behind the other, from an address on. The last is one that threads begin in.
pub(crate) fn map(from: u64, names: &[&str]) -> String {
    let line = |(at, name): (u64, &&str)| format!("{:x} 100 {name}\n", from + at * 0x100);
    (0..).zip(names).map(line).collect()
}

/// A dump of the same, each logged at one of these times, and a moment after the one before.
pub(crate) fn dump(names: &[(&str, u64)]) -> Vec<u8> {
    let mut dump = JitDump::new(PID);
    for (index, (name, time)) in (0..).zip(names) {
        let load = Load { tid: PID, addr: JIT + index * 0x100, index, name: name.as_bytes(), code: &[0x90; 0x100] };
        dump.load(*time + index, load);
    }
    dump.into_bytes()
}

/// A return address, or the innermost one, in the function of that number in [`map`] and [`dump`].
pub(crate) const fn at(function: u64) -> u64 {
    JIT + function * 0x100 + 0x10
}
