//! Copies the objects that a running process has registered with GDB's JIT interface from its memory, without stopping
//! it.
//!
//! The process continues to run, so a list may change while it is read. The copy is read like a core dump, where a
//! damaged list just ends.

use super::live::{LiveProcess, maps_line};
use crate::bytes::cursor::Endian;
use crate::error::{Error, Result};
use crate::io::{of_system, open_of_system};
use crate::model::Pid;
use crate::records::jit_logs::gdb::{Memory, SnapshotProcess, snapshot};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// `/proc/PID/mem`
struct ProcessMemory(File);

impl Memory for ProcessMemory {
    fn endian(&self) -> Endian {
        if cfg!(target_endian = "little") { Endian::Little } else { Endian::Big }
    }

    fn read(&self, addr: u64, into: &mut [u8]) -> bool {
        self.0.read_exact_at(into, addr).is_ok()
    }
}

/// Objects copied from a process.
#[derive(Debug)]
pub(super) struct CopiedObjects {
    /// Where they were read from.
    pub(super) path: PathBuf,
    /// The copy, in the form of a core dump.
    pub(super) core: Vec<u8>,
}

/// The objects that a process has registered; `None` if there are none. Fails if the user may not trace the process.
pub(super) fn registered(live: &LiveProcess, pid: Pid) -> Option<Result<CopiedObjects>> {
    let own = live.root.parent()?;
    let (maps, mem) = (of_system(&own.join("maps")).ok()?, own.join("mem"));
    let data = data_of_files(&String::from_utf8_lossy(&maps));
    let machine = machine(own)?;
    let memory = match open_of_system(&mem) {
        Ok(file) => ProcessMemory(file),
        // The process has exited meanwhile.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            let why = "cannot read its memory, which may contain code registered with GDB's JIT interface";
            return Some(Err(Error::new(why).because(error)));
        }
    };
    let of = SnapshotProcess { pid: live.inner.unwrap_or(pid).0, machine };
    snapshot(&memory, &data, of).map(|core| Ok(CopiedObjects { path: mem, core }))
}

/// Writable file mappings. They contain the descriptor of GDB's JIT interface, which is an initialized variable.
fn data_of_files(maps: &str) -> Vec<Range<u64>> {
    let is_writable = |line: &&str| line.split(' ').nth(1).is_some_and(|rights| rights.starts_with("rw"));
    let files = maps.lines().filter(is_writable).filter_map(maps_line).filter(|line| line.inode != 0);
    files.map(|line| line.start..line.end).collect()
}

/// `e_machine` of the program; `None` unless it is a 64-bit ELF file.
fn machine(own: &std::path::Path) -> Option<u16> {
    let mut head = [0; 20];
    open_of_system(&own.join("exe")).ok()?.read_exact_at(&mut head, 0).ok()?;
    let endian = if head[5] == 1 { Endian::Little } else { Endian::Big };
    head.starts_with(b"\x7fELF\x02").then(|| endian.u16([head[18], head[19]]))
}
