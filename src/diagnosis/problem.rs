//! The possible problems of a recording, as data. `problem_texts` has the texts about each problem.

use crate::model::{Addr, Pid};
use crate::resolve::symbols::no_elf::NoElf;
use crate::runtimes::{Callers, Runtime, Switch};
use crate::sources::Kind;
use std::path::PathBuf;

/// A process, with facts that help the user to recognize it.
#[derive(Debug, Clone)]
pub struct Who {
    /// The process ID in the recording.
    pub pid: Pid,
    /// The process name.
    pub comm: String,
    /// The runtime of the process. `None` if it runs no runtime that jitgraft knows.
    pub runtime: Option<&'static Runtime>,
    /// The number of other processes of the same runtime for which the same problem is reported.
    pub others: u64,
    /// Instructions for making the runtime write names, without those that this process can't use. `None` if there are
    /// none.
    pub advice: Option<String>,
    /// A message that the runtime's version is too old to write names; `None` if the version is new enough or unknown.
    pub too_old: Option<String>,
}

/// A file with names of JIT code (a jitdump, perf map, log or placed ELF object), and how much it covers.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The file's path. The file may be missing.
    pub path: PathBuf,
    /// The kind of file.
    pub kind: Kind,
    /// The number of frames that the file names.
    pub covered: u64,
    /// The number of frames that may have the wrong name, because the file's times are inexact and the address was
    /// reused at about the time of the sample.
    pub doubtful: u64,
    /// The number of the process's frames that are in memory for JIT code, named or not.
    pub frames: u64,
}

/// A possible problem of a recording.
#[derive(Debug, Clone)]
pub enum Problem {
    /// A problem of one process: with the code that it ran, or with the files that name the code.
    OfProcess(Who, OfProcess),
    /// The recording has no samples.
    NoSamples {
        /// True if one of the recorded events is a clock. A clock counts whenever code runs, so the recorded processes
        /// must have been idle.
        is_clock: bool,
    },
    /// There are too few samples to show anything.
    FewSamples {
        /// The number of samples.
        samples: u64,
        /// The requested number of samples per second; `None` if a sampling period was requested instead.
        frequency: Option<u64>,
    },
    /// The recording is truncated or damaged.
    Damaged {
        /// The part of the recording that could not be read, and where it is.
        why: String,
    },
    /// perf could not keep up and lost samples.
    Lost {
        /// The number of lost samples.
        lost: u64,
        /// The number of bytes that perf copied of each stack.
        copied: u32,
    },
    /// perf recorded no call chains, only the innermost function of each sample.
    NoCallChains,
    /// Stacks have more frames than the kernel may record.
    ChainsCut {
        /// The kernel's maximum number of frames per stack.
        limit: u16,
        /// True if the recorded command set the limit.
        is_chosen: bool,
    },
    /// Stacks have more frames than jitgraft unwinds.
    TooDeep {
        /// jitgraft's maximum number of frames per stack.
        limit: usize,
    },
    /// Stacks were only partly copied, because they are larger than the requested copy size.
    CopiesShort {
        /// The number of bytes that were copied of each stack.
        bytes: u32,
    },
    /// Stacks were copied on a machine type that jitgraft can't unwind.
    NoUnwinder {
        /// The machine type (`e_machine` of ELF).
        machine: u16,
    },
    /// Files whose code ran are missing on this machine.
    FilesGone {
        /// The missing files. Those with most frames come first.
        files: Vec<NamedFile>,
        /// True if other files of the recording exist here in the version that ran. This is then the recorded machine,
        /// and the missing files were deleted or moved.
        same_machine: bool,
        /// A process that ran in a container and used these files. `None` if there is none.
        container: Option<Pid>,
    },
    /// Files exist here, but in another version than the one that ran.
    OtherVersion {
        /// The files. Those with most frames come first.
        files: Vec<NamedFile>,
    },
    /// Code is mapped from files that aren't ELF files and have no symbols that jitgraft could read.
    NotElf {
        /// The files. Those with most frames come first.
        files: Vec<NamedFile>,
        /// What kind of files they are.
        what: NoElf,
        /// The runtime that generated the files. `None` if their process runs no known runtime.
        runtime: Option<&'static Runtime>,
    },
    /// Programs that the user has built have no symbols.
    Stripped {
        /// The files. Those with most frames come first.
        files: Vec<NamedFile>,
        /// True if Go's compiler made the files.
        by_go: bool,
    },
    /// Programs and libraries from packages have no symbols.
    StrippedPackages {
        /// The files. Those with most frames come first.
        files: Vec<NamedFile>,
    },
    /// Files have symbols, but none at the sampled addresses.
    Symbolless {
        /// The files. Those with most frames come first.
        files: Vec<NamedFile>,
    },
    /// The kernel's functions have no names.
    Kernel {
        /// True if perf wasn't even allowed to see the kernel's addresses.
        hidden: bool,
        /// True if the user gave symbols that belong to another kernel.
        is_given: bool,
    },
    /// Functions in the vDSO have no names. The vDSO is code that the kernel maps into every process; no file contains
    /// it.
    Vdso {
        /// True if the recording was made on this machine.
        is_here: bool,
    },
    /// Generated JavaScript ran, and there is no source map for it.
    MapMissing {
        /// The script, as the engine names it.
        script: String,
    },
    /// A script's source map can't be used.
    MapMisfit {
        /// The script, as the engine names it.
        script: String,
        /// The path of the source map.
        map: String,
        /// Why the source map can't be used.
        why: String,
    },
    /// Samples are in the guest of a virtual machine, whose code isn't known.
    Guest,
    /// Samples have addresses where nothing was mapped.
    Nowhere {
        /// An address where nothing was mapped. `None` if no such address is known.
        example: Option<Addr>,
    },
}

/// A problem with the code that a process ran, or with the files that name the code.
#[derive(Debug, Clone)]
pub enum OfProcess {
    /// The times in a jitdump come from another clock than the recording's.
    Clock {
        /// The jitdump with times of another clock.
        source: SourceFile,
        /// The possible error of the jitdump's times, in nanoseconds; `None` if they could not be used at all.
        error: Option<u64>,
        /// True if the recording already uses the clock of jitdumps (`CLOCK_MONOTONIC`).
        is_monotonic: bool,
    },
    /// A log's times are not on the recording's clock, and addresses were reused at about the time of the samples.
    Doubtful {
        /// The log whose times don't match the recording's.
        source: SourceFile,
        /// The possible error of the log's times, in nanoseconds; `None` if unknown.
        error: Option<u64>,
        /// True if perf started the program and used the clock of jitdumps. A log's times can't be matched to the
        /// recording any better.
        is_best: bool,
    },
    /// A runtime wrote no file that names its code, or the file is missing.
    Silent {
        /// The process ID in the process's own PID namespace. `None` if it is the same: it only differs in containers.
        inner: Option<Pid>,
        /// The switch that the recorded command line passed to the process. `None` if there is none.
        given: Option<&'static Switch>,
        /// A switch in the recorded command line that reached another process but not this one. `None` if there is
        /// none.
        elsewhere: Option<&'static Switch>,
        /// True if the process should have mapped a jitdump but didn't.
        unmapped: bool,
    },
    /// A program ran under valgrind, and its runtime wrote nothing that names its code.
    SilentUnderValgrind {
        /// The callgrind file.
        path: PathBuf,
    },
    /// A file that names the JIT code of a callgrind file exists, but its names have not been added to the file.
    NotNamedYet {
        /// The callgrind file.
        path: PathBuf,
    },
    /// A callgrind file has no instruction addresses.
    NoInstructions,
    /// A running process was configured to write a jitdump or perf map, but didn't.
    NotWritten {
        /// The option or environment variable that told the runtime to write the file.
        word: String,
        /// The name of the file that the process should have written.
        leaves: &'static str,
    },
    /// A jitdump was written, but is missing.
    Missing {
        /// The path of the jitdump.
        path: PathBuf,
        /// The process ID in the process's own PID namespace. `None` if it is the same: it only differs in containers.
        inner: Option<Pid>,
    },
    /// A jitdump or perf map of another process is next to the recording, but none of this process.
    OtherProcess {
        /// The path of the other process's file.
        path: PathBuf,
        /// The kind of file.
        kind: Kind,
        /// The process that it belongs to, according to the file's name or header.
        of: Pid,
        /// The number of files of other processes that report code at the addresses of this process's unnamed code.
        /// They may belong to this process, under another process ID.
        fits: usize,
    },
    /// A jitdump or perf map exists but can't be used.
    Refused {
        /// The path of the file.
        path: PathBuf,
        /// The kind of file.
        kind: Kind,
        /// Why the file can't be used.
        why: String,
        /// True if the file is a jitdump that the process never mapped.
        unmapped: bool,
    },
    /// A jitdump or perf map reports no code at all.
    Empty {
        /// The empty file.
        source: SourceFile,
    },
    /// A jitdump or perf map is damaged or truncated.
    Torn {
        /// The damaged or truncated file.
        source: SourceFile,
        /// The number of unusable records or lines.
        skipped: u64,
        /// True if the file ends in the middle of a record or line.
        at_end: bool,
    },
    /// A jitdump or perf map reports memory that this process doesn't have, so it belongs to another run.
    OtherRun {
        /// The file that belongs to another run.
        source: SourceFile,
    },
    /// A process replaced its program (`exec`), and the new program's file overwrote the file of the previous program.
    Replaced {
        /// The file of the new program.
        source: SourceFile,
    },
    /// The last record of a jitdump is older than code that has no name.
    EndsEarly {
        /// The jitdump that ends too early.
        source: SourceFile,
        /// The time between the end of the jitdump and the last sample of the process, in nanoseconds.
        before: u64,
    },
    /// A jitdump or perf map is intact, but doesn't report all code that ran.
    Incomplete {
        /// The incomplete file.
        source: SourceFile,
        /// The switch that the process received.
        given: Option<&'static Switch>,
        /// An option in the process's command line that makes the runtime omit code from the file.
        spoiler: Option<&'static str>,
    },
    /// Two runtimes of a process wrote the same perf map, and the second one overwrote the names of the first.
    Overwritten {
        /// The perf map that both runtimes wrote.
        source: SourceFile,
        /// The runtime whose names are in the file.
        by: &'static Runtime,
        /// Instructions for making one of the runtimes write another file.
        ways: String,
    },
    /// `perf inject` or `jitgraft inject` moved the names into ELF images, which are missing.
    ImagesGone {
        /// The path of one of the images.
        path: PathBuf,
        /// The number of missing images.
        count: usize,
    },
    /// A runtime interpreted the program, so that only functions of its interpreter have names.
    Interpreted {
        /// A message that the runtime's version is too old to name interpreted functions; `None` if it is new enough or
        /// unknown.
        too_old: Option<String>,
        /// The option that makes the runtime name interpreted functions. `None` if the process didn't receive it.
        switched_on: Option<String>,
        /// A switch in the recorded command line that reached another process but not this one. `None` if there is
        /// none.
        elsewhere: Option<&'static Switch>,
        /// True if `switched_on` had no effect, because the code keeps no frame pointers and stacks were recorded as
        /// call chains, which cannot get past such code.
        by_chains: bool,
    },
    /// The JVM's compiled methods do not keep the frame pointer.
    JvmFramePointers {
        /// True if the JVM's options are known.
        is_known: bool,
    },
    /// Stacks break off in code that doesn't keep the frame pointer. The finding's process has most of these stacks.
    FramePointers {
        /// The files where stacks break off. Those with most stacks come first. Empty if stacks break off in JIT code.
        files: Vec<String>,
        /// True if most of the stacks that break off do so in JIT code.
        in_jit: bool,
        /// Whether copied stacks (`perf record --call-graph dwarf`) would show the callers of the JIT code.
        callers: Callers,
        /// The machine type of the code (`e_machine` of ELF).
        machine: u16,
        /// True if most of the stacks that break off do so in programs that Go's compiler made, without C code.
        in_go: bool,
    },
    /// Copied stacks can't be unwound to their end. The finding's process has most of these stacks.
    NotUnwound {
        /// The files in which unwinding stops. Those with most stacks come first.
        files: Vec<String>,
        /// True if most of the stacks that can't be unwound end in JIT code.
        in_jit: bool,
        /// What is known of the jitdump with the unwinding information for the JIT code.
        dump: UnwindingDump,
        /// True if the files in which unwinding stops exist on this machine in the version that ran.
        are_here: bool,
    },
}

/// What is known of a jitdump that contains unwinding information for JIT code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnwindingDump {
    /// The recorded command didn't request the jitdump.
    NotRequested,
    /// The jitdump was requested but is missing.
    NotHere,
    /// The jitdump exists.
    Here,
}

/// A file of the recording, with its build ID.
#[derive(Debug, Clone)]
pub struct NamedFile {
    /// The file's path as recorded.
    pub path: String,
    /// The file's build ID in hexadecimal digits; `None` if it wasn't recorded.
    pub build_id: Option<String>,
}

impl Problem {
    /// The process that the problem belongs to. `None` if it isn't a problem of a single process.
    pub fn process(&self) -> Option<&Who> {
        if let Self::OfProcess(process, _) = self { Some(process) } else { None }
    }

    /// True if the problem is about stacks that end too early.
    pub fn is_of_stacks(&self) -> bool {
        use OfProcess::{FramePointers, JvmFramePointers, NotUnwound};
        matches!(self, Self::OfProcess(_, JvmFramePointers { .. } | FramePointers { .. } | NotUnwound { .. }))
    }
}

/// A problem, and how much it matters.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The problem that was found.
    pub problem: Problem,
    /// The percentage of the recording that the problem distorts. A sample counts fully if its stack breaks off, and
    /// half if only its outermost frames are missing. Otherwise it counts by the share of its frames that have no name.
    pub percent: f64,
    /// The number of samples that the problem affects.
    pub samples: u64,
    /// The number of frames that have no name because of the problem.
    pub frames: u64,
    /// The recorded command with the missing options added, for a shell, if that would solve the problem.
    pub command: Option<String>,
}

impl Finding {
    /// Creates a finding without a command.
    pub(super) fn new(problem: Problem, percent: f64, samples: u64, frames: u64) -> Self {
        Self { problem, percent, samples, frames, command: None }
    }
}
