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
    /// The number of other processes of the same runtime the same is reported about.
    pub others: u64,
    /// The ways to make its runtime write names that this process does not refuse; `None` if there are none.
    pub advice: Option<String>,
    /// Why there are none: its version has none.
    pub too_old: Option<String>,
}

/// A dump or map.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The path, found or expected.
    pub path: PathBuf,
    /// Its kind.
    pub kind: Kind,
    /// The number of frames that it names.
    pub covered: u64,
    /// The number of these that may be of other code that was there: its times are not exact.
    pub doubtful: u64,
    /// The number of frames of its process are in memory for JIT code, named or not.
    pub frames: u64,
}

/// Something that is wrong.
#[derive(Debug, Clone)]
pub enum Problem {
    /// With what a process ran, or left to name it.
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
        /// True if a process with these files ran in a container.
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
    /// The kernel's page of functions for programs has no names: it is no file.
    Vdso {
        /// True if this is the machine.
        is_here: bool,
    },
    /// JavaScript ran that was generated, and no source map states from what.
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

/// Something that is wrong with what a process ran, or left to name it.
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
        /// The word.
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
    /// A dump or map of another process is next to the recording, and none of this process does.
    OtherProcess {
        /// The file.
        path: PathBuf,
        /// Its kind.
        kind: Kind,
        /// The process that it is of, by its name or header.
        of: Pid,
        /// The number of such files that report code where this process ran code without a name: if it is one of them,
        /// it may be this process's by another number. 0 if none does.
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
        /// The time the last sample of the process that it ends, in nanoseconds.
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
        /// The version before the one that can report its functions, where the files give it.
        too_old: Option<String>,
        /// The word of the recorded command line that gives interpreted functions names of their own.
        switched_on: Option<String>,
        /// The switch in the recorded command line, which did not reach the process: another one executed it.
        elsewhere: Option<&'static Switch>,
        /// True if call chains were recorded, which do not lead through code without frame pointers.
        by_chains: bool,
    },
    /// The JVM's compiled methods do not keep the frame pointer.
    JvmFramePointers {
        /// True if its options are known.
        is_known: bool,
    },
    /// Stacks break off in code that does not keep the frame pointer. The process is the one with most of them.
    FramePointers {
        /// The files they break off in, those with most first; none if it is JIT code.
        files: Vec<String>,
        /// True if most of them break off in JIT code.
        in_jit: bool,
        /// How the callers of that are found in copies of stacks.
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
        /// The dump that contains how to leave it, as far as the recorded command requests one.
        dump: UnwindingDump,
        /// True if the files that they stop in are here as they ran.
        are_here: bool,
    },
}

/// What is known of a dump that contains how to leave JIT code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnwindingDump {
    /// It was not requested.
    NotRequested,
    /// It was requested, and is not here.
    NotHere,
    /// It is here.
    Here,
}

/// A file and what finds it.
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
    /// The part of the recording it distorts, in percent: a sample counts by the part of its frames that have no name,
    /// wholly if its stack breaks off, and by half if only its outer end that is cut.
    pub percent: f64,
    /// The number of samples that it touches.
    pub samples: u64,
    /// The number of frames that have no name for it.
    pub frames: u64,
    /// The recorded command with what it lacked, for a shell, if that would mend it.
    pub command: Option<String>,
}

impl Finding {
    /// One without a command.
    pub(super) fn new(problem: Problem, percent: f64, samples: u64, frames: u64) -> Self {
        Self { problem, percent, samples, frames, command: None }
    }
}
