//! The possible problems of a recording, as data. The texts about each are in `problem_texts`.

use crate::model::{Addr, Pid};
use crate::resolve::symbols::no_elf::NoElf;
use crate::runtimes::{Callers, Runtime, Switch};
use crate::sources::Kind;
use std::path::PathBuf;

/// A process, as people know it.
#[derive(Debug, Clone)]
pub struct Who {
    /// Its number in the recording.
    pub pid: Pid,
    /// Its name.
    pub comm: String,
    /// Its runtime, if it runs one.
    pub runtime: Option<&'static Runtime>,
    /// The number of other processes of the same runtime for which the same problem is reported.
    pub others: u64,
    /// How to make the runtime write names, except for ways that this process can't use; `None` if there is no way.
    pub advice: Option<String>,
    /// A message that the runtime's version is too old to write names; `None` if it isn't or the version is unknown.
    pub too_old: Option<String>,
}

/// A file with names of JIT code (a jitdump, perf map, log or placed ELF object), and how much it covers.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The path, found or expected.
    pub path: PathBuf,
    /// Its kind.
    pub kind: Kind,
    /// The number of frames that it names.
    pub covered: u64,
    /// How many of these may have the wrong name, because the file's times are inexact and other code was at the
    /// address about then.
    pub doubtful: u64,
    /// The number of frames of the process in memory for JIT code, named or not.
    pub frames: u64,
}

/// Something that is wrong.
#[derive(Debug, Clone)]
pub enum Problem {
    /// A problem of one process: with the code that it ran, or with the files that name the code.
    OfProcess(Who, OfProcess),
    /// Nothing was sampled.
    NoSamples {
        /// True if processes were recorded that did nothing, and the event counts everywhere.
        is_clock: bool,
    },
    /// Too little was sampled to show anything.
    FewSamples {
        /// The number of samples.
        samples: u64,
        /// The requested number of samples per second; `None` if it was something else.
        frequency: Option<u64>,
    },
    /// The recording ends before it should.
    Damaged {
        /// The unreadable part, and its place.
        why: String,
    },
    /// The recorder did not keep up.
    Lost {
        /// The number of samples that it lost.
        lost: u64,
        /// The number of bytes that were copied of each stack.
        copied: u32,
    },
    /// Only the innermost frames were recorded.
    NoCallChains,
    /// Stacks have more frames than the kernel may record.
    ChainsCut {
        /// The limit.
        limit: u16,
        /// True if the recorded command set it.
        is_chosen: bool,
    },
    /// Stacks have more frames than are unwound.
    TooDeep {
        /// How many are.
        limit: usize,
    },
    /// Copies of stacks are too short.
    CopiesShort {
        /// The number of bytes that were copied.
        bytes: u32,
    },
    /// Stacks were copied on a machine whose stacks cannot be unwound.
    NoUnwinder {
        /// The machine (`e_machine`).
        machine: u16,
    },
    /// Files that ran are not here.
    FilesGone {
        /// Those with most frames first.
        files: Vec<NamedFile>,
        /// True if other files of the recording are here, in the version that ran: this is the machine, and the files
        /// were deleted or moved.
        same_machine: bool,
        /// A process with these files that ran in a container, if there is one.
        container: Option<Pid>,
    },
    /// Files are here in another version than the one that ran.
    OtherVersion {
        /// Those with most frames first.
        files: Vec<NamedFile>,
    },
    /// Code is mapped from files of a format without symbols that could be read.
    NotElf {
        /// Those with most frames first.
        files: Vec<NamedFile>,
        /// Their kind.
        what: NoElf,
        /// The runtime that made them, if their process runs one.
        runtime: Option<&'static Runtime>,
    },
    /// The user's own programs have no symbols.
    Stripped {
        /// Those with most frames first.
        files: Vec<NamedFile>,
        /// True if Go made them.
        by_go: bool,
    },
    /// Packaged programs and libraries have no symbols.
    StrippedPackages {
        /// Those with most frames first.
        files: Vec<NamedFile>,
    },
    /// Files have symbols, but none at these addresses.
    Symbolless {
        /// Those with most frames first.
        files: Vec<NamedFile>,
    },
    /// The kernel's functions have no names.
    Kernel {
        /// True if the recorder could not even see where the kernel is.
        hidden: bool,
        /// True if symbols were given that are not of this kernel.
        is_given: bool,
    },
    /// Functions in the vDSO, the kernel's code in every process, have no names, because it is not a file.
    Vdso {
        /// True if this is the machine of the recording.
        is_here: bool,
    },
    /// Generated JavaScript ran, and no source map says what it was generated from.
    MapMissing {
        /// The script, as the engine names it.
        script: String,
    },
    /// A script's source map can't be used.
    MapMisfit {
        /// The script, as the engine names it.
        script: String,
        /// The map.
        map: String,
        /// Why not.
        why: String,
    },
    /// Code of a virtual machine's guest.
    Guest,
    /// Addresses where nothing was mapped.
    Nowhere {
        /// One of them.
        example: Option<Addr>,
    },
}

/// Something that is wrong with the code that a process ran, or with the files that name the code.
#[derive(Debug, Clone)]
pub enum OfProcess {
    /// A dump's times are of another clock than the recording's.
    Clock {
        /// The dump.
        source: SourceFile,
        /// By how much its times may be wrong, in nanoseconds; `None` if they could not be used at all.
        error: Option<u64>,
        /// True if the recording has the clock of jitdumps already.
        is_monotonic: bool,
    },
    /// A log's times are not the recording's, and other code was there about the same time.
    Doubtful {
        /// The log.
        source: SourceFile,
        /// The error of its times, in nanoseconds; `None` if it is unknown.
        error: Option<u64>,
        /// True if perf started the program, with the clock of jitdumps: more is not known of a log.
        is_best: bool,
    },
    /// A runtime wrote nothing that names its code, or its file is not here.
    Silent {
        /// The process's number in its own namespace, if that differs: it ran in a container.
        inner: Option<Pid>,
        /// The switch that it received by the recorded command line.
        given: Option<&'static Switch>,
        /// A switch from the recorded command line that went to another process, not to this one.
        elsewhere: Option<&'static Switch>,
        /// True if it should have mapped a dump, and did not.
        unmapped: bool,
    },
    /// A program ran under valgrind, and its runtime wrote nothing that names its code.
    SilentUnderValgrind {
        /// The callgrind file.
        path: PathBuf,
    },
    /// A file that names the JIT code of a callgrind file is there, but was not put into it.
    NotNamedYet {
        /// The callgrind file.
        path: PathBuf,
    },
    /// A callgrind file has no instruction addresses.
    NoInstructions,
    /// A running process was configured to write a dump or map, and did not.
    NotWritten {
        /// The switch (an option or variable) that told the runtime to write it.
        word: String,
        /// The file that it should have written.
        leaves: &'static str,
    },
    /// A dump was written, and is not to be found.
    Missing {
        /// The path.
        path: PathBuf,
        /// The process's number in its own namespace, if that differs: it ran in a container.
        inner: Option<Pid>,
    },
    /// A dump or map of another process is next to the recording, but none of this process.
    OtherProcess {
        /// The file.
        path: PathBuf,
        /// Its kind.
        kind: Kind,
        /// The process that it belongs to, according to the file's name or header.
        of: Pid,
        /// How many such files report code at the addresses of this process's unnamed code; 0 if none does. Such a file
        /// may be of this process, written under another process number.
        fits: usize,
    },
    /// A dump or map is there, but cannot be used.
    Refused {
        /// The path.
        path: PathBuf,
        /// Its kind.
        kind: Kind,
        /// Why it is not used.
        why: String,
        /// True if it is a dump that the process never mapped.
        unmapped: bool,
    },
    /// A dump or map reports no code at all.
    Empty {
        /// The file.
        source: SourceFile,
    },
    /// Records or lines of a dump or map are damaged, or its end is missing.
    Torn {
        /// The file.
        source: SourceFile,
        /// The number of unusable records or lines.
        skipped: u64,
        /// True if it ends in the middle of one.
        at_end: bool,
    },
    /// A dump or map reports memory that this process does not have: it is of another run.
    OtherRun {
        /// The file.
        source: SourceFile,
    },
    /// A process replaced its program, and the file of the last one replaced the file that the one before had written.
    Replaced {
        /// The file.
        source: SourceFile,
    },
    /// A dump's last record is older than the code without a name.
    EndsEarly {
        /// The dump.
        source: SourceFile,
        /// How long before the last sample of the process the dump ends, in nanoseconds.
        before: u64,
    },
    /// A dump or map is sound, but code ran that it does not report.
    Incomplete {
        /// The file.
        source: SourceFile,
        /// The switch that the process received.
        given: Option<&'static Switch>,
        /// The option in its command line that leaves code out.
        spoiler: Option<&'static str>,
    },
    /// Two runtimes of a process wrote the same map, and the last one replaced what the other one had written.
    Overwritten {
        /// The file.
        source: SourceFile,
        /// The runtime whose names are in it.
        by: &'static Runtime,
        /// The ways to make either of them write another file.
        ways: String,
    },
    /// `perf inject` or `jitgraft inject` put names into images that are gone.
    ImagesGone {
        /// One of them.
        path: PathBuf,
        /// The number.
        count: usize,
    },
    /// A runtime interpreted what the program did, and only its interpreter has a name.
    Interpreted {
        /// The runtime's version, if it is too old to name interpreted functions; `None` if it isn't, or is unknown.
        too_old: Option<String>,
        /// The option that makes the runtime name interpreted functions, if the process received it.
        switched_on: Option<String>,
        /// A switch in the recorded command line that went to another process, not to this one.
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
    /// Stacks break off in code that does not keep the frame pointer. The process is the one with most of them.
    FramePointers {
        /// The files where stacks break off, most stacks first; empty if it is JIT code.
        files: Vec<String>,
        /// True if most of them break off in JIT code.
        in_jit: bool,
        /// Whether copied stacks (`perf record --call-graph dwarf`) would show the callers of the JIT code.
        callers: Callers,
        /// The machine that the code is for (`e_machine`).
        machine: u16,
        /// True if most of them break off in programs that Go's compiler made, without C code.
        in_go: bool,
    },
    /// Copied stacks cannot be unwound to their end. The process is the one with most of them.
    NotUnwound {
        /// The files that they stop in, those with most first.
        files: Vec<String>,
        /// True if most of them stop in JIT code.
        in_jit: bool,
        /// What is known of the jitdump with the unwinding information for the JIT code.
        dump: UnwindingDump,
        /// True if the files where they stop are on this machine, in the version that ran.
        are_here: bool,
    },
}

/// What is known of a jitdump that contains unwinding information for JIT code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnwindingDump {
    /// It was not requested.
    NotRequested,
    /// It was requested, and is not here.
    NotHere,
    /// It is here.
    Here,
}

/// A file of the recording, and what identifies it.
#[derive(Debug, Clone)]
pub struct NamedFile {
    /// Its path as recorded.
    pub path: String,
    /// Its build ID, in hexadecimal digits.
    pub build_id: Option<String>,
}

impl Problem {
    /// The process of the finding, if it has one.
    pub fn process(&self) -> Option<&Who> {
        if let Self::OfProcess(process, _) = self { Some(process) } else { None }
    }

    /// True if it is about stacks that end too soon.
    pub fn is_of_stacks(&self) -> bool {
        use OfProcess::{FramePointers, JvmFramePointers, NotUnwound};
        matches!(self, Self::OfProcess(_, JvmFramePointers { .. } | FramePointers { .. } | NotUnwound { .. }))
    }
}

/// A problem, and how much it matters.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The problem.
    pub problem: Problem,
    /// The part of the recording that it distorts, in percent. A sample counts by the share of its frames that have no
    /// name; fully if its stack breaks off, and half if only the outer end is cut.
    pub percent: f64,
    /// The number of samples that it touches.
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
