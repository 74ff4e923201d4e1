//! `annotate` of machines other than this one, its page, and callgrind files: what is listed is what objdump states
//! about the same bytes.

use crate::support;

mod aarch64;
mod callgrind;
mod calls;
use crate::support::objdump::{self, hex};

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::bytes::Order;
use support::jitdump::{Header, JitDump, Line, Load};
use support::perf_data::{CONTEXT_USER, Event, Mmap, Mode, PerfData, Stamp, USER};

const PID: u32 = 999_078;
const AT: u64 = 0x5_4000;

/// A directory with a recording of one function of a machine, with samples at these offsets in its code.
fn recording(machine: (u16, &str), code: &[u8], sampled: &[u64]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (dump, data) = (dir.path().join(format!("jit-{PID}.dump")), dir.path().join("perf.data"));
    std::fs::write(&dump, jitdump(machine.0, code)).unwrap();
    let mut recording = PerfData::new(Order::Little, Event::usual());
    recording.machine(machine.1);
    recording.comm(Stamp::new(PID, 1), "program", true);
    recording.mmap2(Stamp::new(PID, 2), Mmap { addr: AT, len: 0x10_0000, pgoff: 0, path: "//anon" });
    let marker = dump.to_str().unwrap();
    recording.mmap2(Stamp::new(PID, 3), Mmap { addr: 0x70_0000, len: 0x1000, pgoff: 0, path: marker });
    for (&offset, time) in sampled.iter().zip(20..) {
        recording.sample_of(0, USER, Stamp::new(PID, time), AT + offset, &[CONTEXT_USER, AT + offset]);
    }
    std::fs::write(&data, recording.into_bytes(Mode::File)).unwrap();
    (dir, data)
}

fn jitdump(machine: u16, code: &[u8]) -> Vec<u8> {
    let mut dump = JitDump::with_header(Order::Little, Header { machine: machine.into(), ..Header::of(PID) });
    let line = |addr, line| Line { addr, line, discriminator: 0, file: b"<loop>.js" };
    dump.debug_info(9, AT, &[line(AT, 7), line(AT + 8, 8)]);
    dump.load(10, Load { tid: PID, addr: AT, index: 0, name: b"hot<&>", code });
    dump.into_bytes()
}

fn annotate(args: &[&str], recording: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.arg("annotate").args(args).arg("-i").arg(recording).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str], recording: &Path) -> Value {
    serde_json::from_str(&annotate(&[&["--format", "json"], args].concat(), recording)).unwrap()
}
