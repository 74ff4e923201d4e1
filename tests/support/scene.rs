//! A temporary directory with a small recording, its jitdump, and other inputs, in which tests run the program.

use crate::support::bytes::Order;
use crate::support::jitdump::{JitDump, Load};
use crate::support::perf_data::{CONTEXT_USER, Event, Mmap, Mode, PerfData, Stamp, USER};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The recorded process.
pub(crate) const PID: u32 = 999_077;
/// The address of its JIT code.
pub(crate) const AT: u64 = 0x1_0000;
/// The content of the file `stacks`.
pub(crate) const STACKS: &str = "main;f 3\nmain;f;g 4\n";

/// Arguments for every command, on inputs of a [`Scene`].
pub(crate) const COMMANDS: &[&str] = &[
    "inject -i perf.data -o new.data",
    "callgrind callgrind.out --perf-map callgrind.map -o -",
    "collapse perf.data",
    "flamegraph perf.data",
    "report perf.data",
    "script perf.data",
    "script text",
    "stats trace.json",
    "export --to speedscope perf.data",
    "doctor perf.data",
    "formats",
    "inputs",
    "completions bash",
];

/// A temporary directory, removed when dropped.
pub(crate) struct Scene(tempfile::TempDir);

impl Scene {
    /// Makes a scene with one input of each kind. The recorded function is called `name`.
    pub(crate) fn with_function(name: &[u8]) -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        let dump = format!("jit-{PID}.dump");
        scene.write("stacks", STACKS);
        scene.write("perf.data", recording(&[AT], &scene.path(&dump)).into_bytes(Mode::File));
        scene.write(&dump, jitdump(name));
        scene.write("text", fs::read(fixture("script-layouts/default.txt")).unwrap());
        scene.write("trace.json", fs::read(fixture("trace-miri/input.json")).unwrap());
        let profile = fs::read(fixture("callgrind-jit/php-sepcallers.callgrind.zst")).unwrap();
        scene.write("callgrind.out", zstd::decode_all(&profile[..]).unwrap());
        scene.write("callgrind.map", fs::read(fixture("callgrind-jit/php-sepcallers.map")).unwrap());
        scene
    }

    /// Makes a scene with one input of each kind.
    pub(crate) fn new() -> Self {
        Self::with_function(b"dumped")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A command that runs the program in the directory. `words` are its arguments, separated by spaces.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.args(words.split(' ').filter(|word| !word.is_empty()));
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command.env("HOME", self.0.path()).env_remove("JITDUMPDIR").env_remove("JITGRAFT_OPTS");
        command
    }

    /// Runs the program and returns its output and messages.
    pub(crate) fn run(&self, words: &str) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs the program on a terminal, without colors. stdout and stderr are both in the output's stdout.
    pub(crate) fn on_terminal(&self, words: &str) -> Output {
        let mut script = Command::new("script");
        let program = env!("CARGO_BIN_EXE_jitgraft");
        script.args(["-qec", &format!("'{program}' {words}"), "/dev/null"]).current_dir(self.0.path());
        script.env("HOME", self.0.path()).env_remove("JITDUMPDIR").env_remove("JITGRAFT_OPTS");
        script
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .output()
            .expect("script (bsdutils) is needed: see tests/run.sh")
    }
}

/// The messages on stderr.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// A jitdump with one function at [`AT`].
pub(crate) fn jitdump(name: &[u8]) -> Vec<u8> {
    let mut dump = JitDump::new(PID);
    dump.load(10, Load { tid: PID, addr: AT, index: 0, name, code: &[0x90; 0x40] });
    dump.into_bytes()
}

/// A recording of a process with JIT code, sampled at these addresses. `marker` is the path of its jitdump.
pub(crate) fn recording(addresses: &[u64], marker: &Path) -> PerfData {
    let mut data = PerfData::new(Order::Little, Event::usual());
    data.comm(Stamp::new(PID, 1), "program", true);
    data.mmap2(Stamp::new(PID, 2), Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    data.mmap2(Stamp::new(PID, 3), Mmap { addr: 0x70_0000, len: 0x1000, pgoff: 0, path: marker.to_str().unwrap() });
    for (&addr, time) in addresses.iter().zip(20..) {
        data.sample_of(0, USER, Stamp::new(PID, time), addr, &[CONTEXT_USER, addr]);
    }
    data
}
