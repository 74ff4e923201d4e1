//! The facts about processes in a recording: who was forked from whom, who replaced its image, who named a jitdump, and
//! on which clock. Every reader fills the fields that its format has; `sources` and `resolve` read them.

use super::backing::Backing;
use super::bpf::{BpfFunction, BpfFunctionId};
use super::recorded::Labels;
use super::recorded_symbols::RecordedSymbols;
use super::units::{Addr, Nanos, Pid, Tid};
use crate::model::backing::base_name;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Everything that is known about the processes of a recording. All lists are in time order.
#[derive(Debug, Default, Clone)]
pub struct Processes {
    /// One entry a process seen in any record.
    pub by_pid: BTreeMap<Pid, Process>,
    /// The places where a process mapped something that is named like a jitdump.
    pub markers: Vec<Marker>,
    /// The way times of the recording relate to other clocks.
    pub clock: Clock,
    /// e_machine of the recorded program, if the recording states (its ARCH feature).
    pub machine: Option<u16>,
    /// The kernel's release (its OSRELEASE feature), as `uname -r` states it.
    pub os_release: Option<Vec<u8>>,
    /// The command line that was recorded with (its CMDLINE feature), word by word.
    pub command: Vec<Vec<u8>>,
    /// Pieces of kernel code with names of their own, from KSYMBOL records, in time order.
    pub kernel_symbols: Vec<KernelSymbol>,
    /// The BPF programs in the recording, those of one program behind each other.
    pub bpf_functions: Vec<BpfFunction>,
    /// Symbols of files that the recording contains.
    pub recorded_symbols: RecordedSymbols,
    /// Samples that the recorder lost, by its own count.
    pub lost: u64,
    /// True if every process that has samples is reported for: the input is a recording, not a text or a file about one
    /// process.
    pub is_recording: bool,
    /// True if others may be reported for later.
    pub told: ProcessListState,
    /// The control groups by the numbers that samples have, as labels.
    pub cgroups: FxHashMap<u64, Labels>,
    /// Their paths.
    pub cgroup_paths: FxHashMap<u64, Box<[u8]>>,
    /// Events in the order of time; the state before the recording began is not reported.
    pub moments: Vec<Moment>,
}

/// The state of a list of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProcessListState {
    /// It has all processes.
    #[default]
    Whole,
    /// A text is named while it is read, and others may come. This one is that of its first frames without a name, if
    /// they are of one alone.
    Begun(Option<Pid>),
}

impl Processes {
    /// When the code of a BPF function was put where it was; `None` if it was there before the recording began.
    pub fn bpf_loaded(&self, function: BpfFunctionId) -> Option<Nanos> {
        let first = self.kernel_symbols.iter().find(|symbol| symbol.bpf == Some(function))?;
        (first.time > Nanos(0)).then_some(first.time)
    }
}

/// An event of a thread that a recording contains beside its samples: a name, a fork, an end, a loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub time: Nanos,
    /// The process.
    pub pid: Pid,
    /// The thread in it.
    pub tid: Tid,
    /// The kind.
    pub kind: MomentKind,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MomentKind {
    /// The thread got a name.
    Named(Arc<[u8]>),
    /// The process became another program, whose name this is.
    Executed(Arc<[u8]>),
    /// It made another process.
    Forked(Pid),
    /// The process ended.
    Exited,
    /// The recorder lost this many records.
    Lost(u64),
}

/// A KSYMBOL record: a BPF program or trampoline appeared in the kernel, or went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSymbol {
    /// When.
    pub time: Nanos,
    /// First address.
    pub addr: Addr,
    /// Length in bytes.
    pub len: u64,
    /// Its name, such as `bpf_prog_6deef7357e7b4530_sd_devices`.
    pub name: Vec<u8>,
    /// True if it went (`PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER`).
    pub unregistered: bool,
    /// Its code and source, if the recording holds them.
    pub bpf: Option<BpfFunctionId>,
}

/// One process.
#[derive(Debug, Default, Clone)]
pub struct Process {
    /// Its first thread's names from COMM records, in time order; see [`super::programs::Programs::name`].
    pub comms: Vec<(Nanos, Arc<[u8]>)>,
    /// Parent and time of the fork, if it was seen.
    pub forked: Option<(Pid, Nanos)>,
    /// When it replaced its image (exec); its former code is gone then.
    pub execs: Vec<Nanos>,
    /// When it ended.
    pub exited: Option<Nanos>,
    /// The pid as the process itself saw it, from a marker's file name or counted by NAMESPACES records.
    pub inner_pid: Option<Pid>,
    /// Its mappings, in time order (equal times in file order). Kernel and module maps are under pid -1.
    pub mappings: Vec<Mapping>,
    /// True if it mapped executable memory that no file backs (`//anon`, `[anon:…]`, memfd): a place for JIT code.
    pub has_jit_memory: bool,
}

impl Process {
    /// True if its JIT code was injected into the recording: it mapped an image of perf's (`jitted-PID-INDEX.so`) or of
    /// ours (`jitted-PID.so`, `jitted-PID.2.so`).
    pub fn is_injected(&self) -> bool {
        let injected = |path: &[u8]| {
            let name = base_name(path);
            let middle = name.strip_prefix(b"jitted-").and_then(|name| name.strip_suffix(b".so"));
            middle.is_some_and(|middle| middle.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.')))
        };
        self.mappings.iter().any(|map| injected(&map.path))
    }

    /// The first memory for JIT code that this program has and that processes forked from it share: not a copy, as
    /// `//anon` is after a fork, but the very same.
    pub fn shared_jit_memory(&self) -> Option<SharedMemory> {
        let since = self.execs.last().copied().unwrap_or_default();
        let shared = |map: &&Mapping| {
            let backing = map.backing();
            map.executable
                && map.time >= since
                && matches!(backing, Backing::SharedAnonymous | Backing::NamedShared | Backing::PosixShared)
                && map.file.is_some_and(|file| file.inode != 0)
        };
        let map = self.mappings.iter().find(shared)?;
        Some(SharedMemory { addr: map.addr, file: map.file? })
    }
}

/// Memory that several processes may have: what is mapped, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedMemory {
    /// Its first address.
    pub addr: Addr,
    /// The kernel's id of it: each such memory has an inode of its own.
    pub file: FileId,
}

/// A mapping of a file named `jit-PID.dump` (Bun: `jit-TID-PID.dump`), by which a runtime reports to perf of its dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The process that mapped it.
    pub pid: Pid,
    /// The thread that mapped it.
    pub tid: Tid,
    /// The path as recorded.
    pub path: PathBuf,
    /// When; 0 if it was mapped before the recording began.
    pub time: Nanos,
    /// The address of the mapping.
    pub addr: Addr,
    /// The file itself, if the recording gives it.
    pub file: Option<FileId>,
    /// The offset in the recording of the record that states it.
    pub offset: u64,
}

/// The recording's clock.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// `attr.clockid` if every event uses one and the same (`perf record -k`): 1 is CLOCK_MONOTONIC.
    pub clockid: Option<i32>,
    /// Reference times of the CLOCK_DATA feature: (wall clock, recording's clock), in nanoseconds.
    pub reference: Option<(Nanos, Nanos)>,
    /// How to convert the CPU's time-stamp counter, from the TIME_CONV record.
    pub tsc: Option<TscConversion>,
}

/// The fields of `struct perf_record_time_conv` (tools/lib/perf/include/perf/event.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TscConversion {
    /// `time_shift`
    pub shift: u64,
    /// `time_mult`
    pub mult: u64,
    /// `time_zero`
    pub zero: u64,
    /// `time_cycles`; 0 in the short form.
    pub cycles: u64,
    /// `time_mask`; 0 in the short form.
    pub mask: u64,
    /// `cap_user_time_zero`; true in the short form.
    pub cap_zero: bool,
    /// `cap_user_time_short`
    pub cap_short: bool,
}

/// An MMAP or MMAP2 record: from `time` on, the range shows this file (or anonymous memory).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// When; 0 if it was there before the recording began.
    pub time: Nanos,
    /// First address.
    pub addr: Addr,
    /// Length in bytes.
    pub len: u64,
    /// Offset in the file of the first byte.
    pub pgoff: u64,
    /// The file as recorded: a path, `[vdso]`, `//anon`, `[kernel.kallsyms]_text`, …
    pub path: Vec<u8>,
    /// The file's build ID, if the record or the recording's BUILD_ID feature has one.
    pub build_id: Option<BuildId>,
    /// The file itself, if the record gives it.
    pub file: Option<FileId>,
    /// True if it is executable code (no PERF_RECORD_MISC_MMAP_DATA, and PROT_EXEC where recorded).
    pub executable: bool,
    /// Privilege of the code in it: the record's `misc & PERF_RECORD_MISC_CPUMODE_MASK`.
    pub cpumode: CpuMode,
    /// The offset in the recording of the record that states it.
    pub offset: u64,
}

impl Mapping {
    /// The kind of its memory.
    pub fn backing(&self) -> Backing<'_> {
        Backing::of(&self.path)
    }
}

/// A file, whatever it is called: device and inode, as MMAP2 records and `/proc/PID/maps` have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// `maj` of the device.
    pub major: u32,
    /// `min` of the device.
    pub minor: u32,
    /// `ino`
    pub inode: u64,
}

/// A GNU build ID: at most 20 bytes are kept by perf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    bytes: [u8; 20],
    len: u8,
}

impl BuildId {
    /// From its bytes; those beyond the 20th are dropped, like perf. `None` if absent, or all are 0.
    pub fn new(id: &[u8]) -> Option<Self> {
        let len = id.len().min(20);
        let mut bytes = [0; 20];
        bytes[..len].copy_from_slice(&id[..len]);
        (bytes != [0; 20]).then_some(Self { bytes, len: len as u8 })
    }

    /// From hexadecimal digits; `None` if it is anything else, such as a build ID of Go.
    pub fn from_digits(text: &[u8]) -> Option<Self> {
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let (pairs, []) = text.as_chunks::<2>() else { return None };
        let bytes: Option<Vec<u8>> = pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect();
        Self::new(&bytes?)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for BuildId {
    /// Two hexadecimal digits a byte.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The running mode, or the owner of the code (`PERF_RECORD_MISC_*` in include/uapi/linux/perf_event.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum CpuMode {
    /// Not said.
    #[default]
    Unknown,
    /// The kernel.
    Kernel,
    /// A program.
    User,
    /// The hypervisor.
    Hypervisor,
    /// A guest's kernel.
    GuestKernel,
    /// A program in a guest.
    GuestUser,
}
