//! What a recording says about its processes: forks, execs, mappings, jitdump markers, and the clock. Readers fill in
//! the fields that their format has. `jit` and `symbolize` use them.

use super::bpf::{BpfFunction, BpfFunctionId};
use super::mapping_kind::MappingKind;
use super::recorded::Labels;
use super::recorded_symbols::RecordedSymbols;
use super::units::{Addr, Nanos, Pid, Tid};
use crate::model::code_file::image_process;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Everything known about the processes of a recording. All lists are sorted by time.
#[derive(Debug, Default, Clone)]
pub struct Processes {
    /// All processes that any record mentions.
    pub by_pid: BTreeMap<Pid, Process>,
    /// Mappings of files that are named like a jitdump. They say which process wrote which jitdump.
    pub markers: Vec<Marker>,
    /// How the recording's times relate to other clocks.
    pub clock: Clock,
    /// ELF's `e_machine` of the recorded program, if the recording states it (ARCH feature).
    pub machine: Option<u16>,
    /// The kernel release, as `uname -r` prints it (OSRELEASE feature).
    pub os_release: Option<Vec<u8>>,
    /// perf's command line, word by word (CMDLINE feature).
    pub command: Vec<Vec<u8>>,
    /// Kernel symbols that appeared or disappeared during the recording (KSYMBOL records), by time.
    pub kernel_symbols: Vec<KernelSymbol>,
    /// Functions of the BPF programs that the recording contains; functions of one program are adjacent.
    pub bpf_functions: Vec<BpfFunction>,
    /// Symbols of files, if the recording contains them.
    pub recorded_symbols: RecordedSymbols,
    /// The number of samples that were lost, according to perf.
    pub lost: u64,
    /// True if the input mentions every process that has samples, as a recording does. False for text, and for files
    /// about a single process.
    pub is_recording: bool,
    /// Whether more processes may still be added.
    pub list_state: ProcessListState,
    /// The labels to give to samples, by the control group ID in the sample.
    pub cgroups: FxHashMap<u64, Labels>,
    /// The path of each control group, by the ID that samples contain.
    pub cgroup_paths: FxHashMap<u64, Box<[u8]>>,
    /// Events other than samples, by time. Forks and names from before the recording began, which perf writes down
    /// without a time, aren't included.
    pub moments: Vec<Moment>,
}

/// Whether a list of processes is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProcessListState {
    /// All processes of the input are known.
    #[default]
    Complete,
    /// More processes may follow, because the input is text that is symbolized while it is read, part by part. Contains
    /// the process of the first unnamed frames: files from the user that state no process ID belong to it. `None` if
    /// there were no unnamed frames yet, or if those in the first part that has any are of several processes.
    Partial(Option<Pid>),
}

impl Processes {
    /// The time at which a BPF function was loaded; `None` if that was before the recording began.
    pub fn bpf_loaded(&self, function: BpfFunctionId) -> Option<Nanos> {
        let first = self.kernel_symbols.iter().find(|symbol| symbol.bpf == Some(function))?;
        (first.time > Nanos(0)).then_some(first.time)
    }
}

/// An event other than a sample: a rename, fork, exit or loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// The time on the recording's clock.
    pub time: Nanos,
    /// The process ID.
    pub pid: Pid,
    /// The thread ID.
    pub tid: Tid,
    /// What happened.
    pub kind: MomentKind,
}

/// The kind of an event other than a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MomentKind {
    /// The thread got this name.
    Named(Arc<[u8]>),
    /// The process called exec and got this name.
    Executed(Arc<[u8]>),
    /// The process forked this child.
    Forked(Pid),
    /// The process exited.
    Exited,
    /// perf lost this many records.
    Lost(u64),
}

/// A KSYMBOL record: a BPF program or trampoline appeared in the kernel, or disappeared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSymbol {
    /// When the symbol appeared or disappeared, on the recording's clock.
    pub time: Nanos,
    /// The start address of the symbol.
    pub addr: Addr,
    /// The symbol's length in bytes.
    pub len: u64,
    /// The symbol, such as `bpf_prog_6deef7357e7b4530_sd_devices`.
    pub name: Vec<u8>,
    /// True if the symbol disappeared (`PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER`).
    pub unregistered: bool,
    /// The code and source of the BPF function, if the recording contains them.
    pub bpf: Option<BpfFunctionId>,
}

/// What a recording says about one process.
#[derive(Debug, Default, Clone)]
pub struct Process {
    /// The names of the process's first thread from COMM records, by time. See [`super::programs::Programs::name`].
    pub comms: Vec<(Nanos, Arc<[u8]>)>,
    /// The parent process and the time of the fork, if recorded.
    pub forked: Option<(Pid, Nanos)>,
    /// The times at which the process called exec, which discards the code that it had before.
    pub execs: Vec<Nanos>,
    /// When the process exited; `None` if that wasn't recorded.
    pub exited: Option<Nanos>,
    /// The process ID in the process's own PID namespace, from the file name of its jitdump or from NAMESPACES records;
    /// `None` if unknown.
    pub inner_pid: Option<Pid>,
    /// The process's mappings by time; mappings at the same time are in file order. Mappings of the kernel and its
    /// modules belong to PID -1.
    pub mappings: Vec<Mapping>,
    /// True if the process mapped executable memory without a file (`//anon`, `[anon:…]`, memfd), where JIT code may
    /// be.
    pub has_jit_memory: bool,
}

impl Process {
    /// True if the recording already contains injected JIT code: the process mapped an ELF image from perf
    /// (`jitted-PID-INDEX.so`) or from jitgraft (`jitted-PID.so`, `jitted-PID.2.so`).
    pub fn is_injected(&self) -> bool {
        self.mappings.iter().any(|map| matches!(image_process(&map.path), Some(Some(_))))
    }

    /// The first shared memory that the process mapped as executable since its last exec, such as `/dev/zero`: JIT code
    /// in it is also visible in processes that are forked later. Memory that a fork copies, such as `//anon`, doesn't
    /// count. `None` if there is no shared memory.
    pub fn shared_jit_memory(&self) -> Option<SharedMemory> {
        // Without an exec, all mappings count (time 0).
        let last_exec = self.execs.last().copied().unwrap_or_default();
        for mapping in self.mappings.iter().filter(|mapping| mapping.executable && mapping.time >= last_exec) {
            let is_shared = matches!(
                mapping.kind(),
                MappingKind::SharedAnonymous | MappingKind::NamedShared | MappingKind::PosixShared
            );
            // Without an inode, the memory can't be recognized in another process.
            if let Some(file) = mapping.file
                && is_shared
                && file.inode != 0
            {
                return Some(SharedMemory { addr: mapping.addr, file });
            }
        }
        None
    }
}

/// Memory that several processes may share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedMemory {
    /// The start address of the memory.
    pub addr: Addr,
    /// The device and inode that identify the memory: each shared memory has its own inode.
    pub file: FileId,
}

/// A mapping of a file named `jit-PID.dump` (Bun: `jit-TID-PID.dump`). Runtimes map their jitdump for the sole purpose
/// that recordings mention it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The process that mapped the file.
    pub pid: Pid,
    /// The thread that mapped the file.
    pub tid: Tid,
    /// The file's path, as recorded.
    pub path: PathBuf,
    /// When the file was mapped, on the recording's clock; 0 if before the recording began.
    pub time: Nanos,
    /// The address at which the file was mapped.
    pub addr: Addr,
    /// The file's device and inode, if recorded.
    pub file: Option<FileId>,
    /// The offset in the recording of the record that reports the mapping.
    pub offset: u64,
}

/// The recording's clock, and how it relates to others.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// The clock that all events use, as in `attr.clockid` (`perf record -k`); 1 is CLOCK_MONOTONIC. `None` if none was
    /// chosen or events differ.
    pub clockid: Option<i32>,
    /// One moment on the wall clock and on the recording's clock, in this order, each in nanoseconds (CLOCK_DATA
    /// feature).
    pub reference: Option<(Nanos, Nanos)>,
    /// How to convert the CPU's time-stamp counter to the recording's clock (TIME_CONV record).
    pub tsc: Option<TscConversion>,
}

/// The fields of `struct perf_record_time_conv` (tools/lib/perf/include/perf/event.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TscConversion {
    /// The field `time_shift`.
    pub shift: u64,
    /// The field `time_mult`.
    pub mult: u64,
    /// The field `time_zero`.
    pub zero: u64,
    /// The field `time_cycles`; 0 if the record has the short form.
    pub cycles: u64,
    /// The field `time_mask`; 0 if the record has the short form.
    pub mask: u64,
    /// The field `cap_user_time_zero`; true if the record has the short form.
    pub cap_zero: bool,
    /// The field `cap_user_time_short`.
    pub cap_short: bool,
}

/// An MMAP or MMAP2 record: from `time` on, this file or anonymous memory is mapped at the address range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// When the file was mapped, on the recording's clock; 0 if before the recording began.
    pub time: Nanos,
    /// The start address.
    pub addr: Addr,
    /// Length in bytes.
    pub len: u64,
    /// The file offset at which the mapping starts.
    pub pgoff: u64,
    /// The path as recorded: a file, `[vdso]`, `//anon`, `[kernel.kallsyms]_text`, …
    pub path: Vec<u8>,
    /// The build ID, from the record or the recording's BUILD_ID feature.
    pub build_id: Option<BuildId>,
    /// The file's device and inode, if recorded.
    pub file: Option<FileId>,
    /// True if the mapping contains executable code (no PERF_RECORD_MISC_MMAP_DATA, and PROT_EXEC where protection is
    /// recorded).
    pub executable: bool,
    /// Whether this is code of the kernel, a user-space program or a virtual machine: the record's `misc &
    /// PERF_RECORD_MISC_CPUMODE_MASK`.
    pub cpumode: CpuMode,
    /// Offset of the record in the recording.
    pub offset: u64,
}

impl Mapping {
    /// What backs the mapping, according to its path.
    pub fn kind(&self) -> MappingKind<'_> {
        MappingKind::from_path(&self.path)
    }
}

/// Identifies a file independently of its path: device and inode, as in MMAP2 records and `/proc/PID/maps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// Major device number (`maj`).
    pub major: u32,
    /// Minor device number (`min`).
    pub minor: u32,
    /// Inode number (`ino`).
    pub inode: u64,
}

/// A GNU build ID. Like in perf, bytes beyond the 20th are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    bytes: [u8; 20],
    len: u8,
}

impl BuildId {
    /// Creates a build ID from its bytes, dropping those beyond the 20th like perf. `None` if it is empty or all zero.
    pub fn new(id: &[u8]) -> Option<Self> {
        let len = id.len().min(20);
        let mut bytes = [0; 20];
        bytes[..len].copy_from_slice(&id[..len]);
        (bytes != [0; 20]).then_some(Self { bytes, len: len as u8 })
    }

    /// Parses hexadecimal digits, two per byte. `None` for anything else, such as a Go build ID.
    pub fn from_digits(text: &[u8]) -> Option<Self> {
        let (pairs, []) = text.as_chunks::<2>() else { return None };
        let mut bytes = Vec::with_capacity(pairs.len());
        for &[high, low] in pairs {
            let (high, low) = (char::from(high).to_digit(16)?, char::from(low).to_digit(16)?);
            bytes.push((high << 4 | low) as u8);
        }
        Self::new(&bytes)
    }

    /// The bytes of the ID.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for BuildId {
    /// Writes two hexadecimal digits per byte.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Whether a sample or code belongs to the kernel, a user-space program or a virtual machine (`PERF_RECORD_MISC_*` in
/// include/uapi/linux/perf_event.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum CpuMode {
    /// The recording doesn't say.
    #[default]
    Unknown,
    /// The kernel of the host.
    Kernel,
    /// A user-space program on the host.
    User,
    /// The hypervisor.
    Hypervisor,
    /// The kernel of a virtual machine.
    GuestKernel,
    /// A user-space program in a virtual machine.
    GuestUser,
}
