//! Copies the objects that a running process has registered with GDB's JIT interface from its memory, without stopping
//! it.
//!
//! The process continues to run, so a list may change while it is read. The copy is read like a core dump, where a
//! damaged list just ends.

use super::live::{LiveProcess, MapsLine};
use crate::bytes::cursor::Endian;
use crate::error::{Error, Result};
use crate::io::{open_system_file, read_system_file};
use crate::jit::engine_logs::gdb::{Memory, SnapshotProcess, snapshot};
use crate::model::Pid;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The memory of a running process, read from `/proc/PID/mem`.
struct ProcessMemory(File);

impl Memory for ProcessMemory {
    fn endian(&self) -> Endian {
        if cfg!(target_endian = "little") { Endian::Little } else { Endian::Big }
    }

    fn read(&self, addr: u64, into: &mut [u8]) -> bool {
        self.0.read_exact_at(into, addr).is_ok()
    }
}

/// The ELF objects with JIT code that a running process has registered with GDB's JIT interface, copied from its
/// memory.
#[derive(Debug)]
pub(super) struct CopiedObjects {
    /// Where the objects were read from, to show to users.
    pub(super) path: PathBuf,
    /// The copied memory, in the format of a core dump.
    pub(super) core: Vec<u8>,
}

/// Copies the ELF objects that a running process has registered with GDB's JIT interface. `None` if there are none, if
/// the process has exited, or if its program isn't a 64-bit ELF file. Fails if the user may not trace the process.
pub(super) fn copy_registered_objects(live: &LiveProcess, pid: Pid) -> Option<Result<CopiedObjects>> {
    let process_dir = live.root.parent()?;
    let maps = read_system_file(&process_dir.join("maps")).ok()?;
    let mem = process_dir.join("mem");
    let data_ranges = writable_file_ranges(&String::from_utf8_lossy(&maps));
    let machine = read_machine(process_dir)?;
    let memory = match open_system_file(&mem) {
        Ok(file) => ProcessMemory(file),
        // The process has exited since its mappings were read.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            let why = "cannot read the process's memory, which may contain code registered with GDB's JIT interface";
            return Some(Err(Error::new(why).because(error)));
        }
    };
    // A core dump states the ID that the process has in its own PID namespace.
    let process = SnapshotProcess { pid: live.inner.unwrap_or(pid).0, machine };
    let core = snapshot(&memory, &data_ranges, process)?;
    Some(Ok(CopiedObjects { path: mem, core }))
}

/// The address ranges of a process's writable file mappings. The descriptor of GDB's JIT interface is in one of them,
/// because it is an initialized variable.
fn writable_file_ranges(maps: &str) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    for line in maps.lines() {
        let is_writable = line.split(' ').nth(1).is_some_and(|permissions| permissions.starts_with("rw"));
        if is_writable
            && let Some(line) = MapsLine::parse(line)
            && line.inode != 0
        {
            ranges.push(line.start..line.end);
        }
    }
    ranges
}

/// The machine (`e_machine`) of a running program; `None` unless its file is a 64-bit ELF file.
fn read_machine(process_dir: &Path) -> Option<u16> {
    let mut head = [0; 20];
    open_system_file(&process_dir.join("exe")).ok()?.read_exact_at(&mut head, 0).ok()?;
    if !head.starts_with(b"\x7fELF\x02") {
        return None;
    }
    let endian = if head[5] == 1 { Endian::Little } else { Endian::Big };
    Some(endian.u16([head[18], head[19]]))
}
