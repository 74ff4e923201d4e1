//! Diagnoses a recording.

use super::bpf::BpfFrames;
use super::causes::Cause;
use super::context::{DoctorContext, RecordedStacks};
use super::finding::Finding;
use super::origin::Origin;
use super::places;
use super::process::ExaminedProcess;
use super::rules;
use super::source::SourceFile;
use super::tally::Tally;
use crate::analysis::code_shares::CodeShares;
use crate::io;
use crate::jit::Account;
use crate::model::Pid;
use crate::model::frame_counts::FrameCounts;
use crate::model::programs::Programs;
use crate::pipeline::recording::Examined;
use crate::runtimes::ProcessRuntimes;
use crate::symbolize::symbols::files::SearchOptions;
use linux_perf_event_reader::constants as abi;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The diagnosis of a recording.
#[derive(Debug)]
pub(crate) struct Diagnosis {
    pub(super) file: PathBuf,
    pub(super) origin: Origin,
    /// The names of the recorded events.
    pub(super) events: Vec<String>,
    pub(super) stacks: RecordedStacks,
    /// The number of samples.
    pub(super) samples: u64,
    /// The number of frames in the stacks of all samples.
    pub(super) frames: u64,
    /// The number of frames with a name, in the stacks of all samples.
    pub(super) named: u64,
    /// For each event, how its samples are divided by the kind of code that they were taken in: JIT code, named JIT
    /// code and so on.
    pub(super) shares: Vec<CodeShares>,
    pub(super) processes: Vec<ProcessDiagnosis>,
    pub(super) bpf: BpfFrames,
    /// The problems whose impact is at least the threshold of their kind. Those with the largest impact come first,
    /// with exceptions (see `rules`).
    pub(crate) findings: Vec<Finding>,
    /// The problems below the threshold of their kind: they hardly matter, or every recording has a bit of them.
    pub(crate) minor: Vec<Finding>,
}

/// A process that has or may have JIT code (see [`describe_processes`]), and the counts of its JIT frames.
#[derive(Debug)]
pub(super) struct ProcessDiagnosis {
    pub(super) process: ExaminedProcess,
    /// The number of JIT frames with a name.
    pub(super) named: u64,
    /// The number of JIT frames without a name: those in executable memory that no file backs.
    pub(super) unnamed: u64,
    /// The files that may name JIT code of the process. For each: whether and how it was used, and how many frames it
    /// names.
    pub(super) sources: Vec<(Account, SourceFile)>,
}

impl Diagnosis {
    /// Makes the diagnosis: counts what the rules need, applies them, and describes the recording and its processes.
    /// `file` is the path of the recording, `search` says where to look for ELF files, and `damage` describes the part
    /// of the recording that could not be read.
    pub(super) fn new(file: &Path, examined: &Examined<'_>, search: &SearchOptions, damage: Option<String>) -> Self {
        let tally = &Tally::new(examined, &places::collect_facts(examined, search));
        let recorded = &examined.resolution.survey.processes;
        let stacks = recorded_stacks(examined);
        let origin = Origin::from_survey(examined.resolution.survey);
        let context = DoctorContext {
            examined,
            tally,
            programs: &Programs::new(recorded),
            runtimes: &RefCell::new(ProcessRuntimes::new(recorded)),
            stacks,
            origin: &origin,
            directory: io::companion_directory(file).filter(|_| io::is_there(file)),
            runtime_cache: &RefCell::default(),
        };
        let (mut findings, mut minor): (Vec<Finding>, Vec<Finding>) =
            rules::findings(context, damage).into_iter().partition(Finding::is_significant);
        // When names are missing, the summaries of other commands tell users to run `doctor`. So `doctor` then reports
        // at least one cause, even if it is minor.
        if findings.is_empty() && examined.frame_counts().lacks_names() && !minor.is_empty() {
            findings.push(minor.remove(0));
        }
        let FrameCounts { frames, unnamed, .. } = examined.frame_counts();
        let processes = describe_processes(context);
        Self {
            file: file.to_owned(),
            origin,
            events: examined.resolution.survey.recording.events.iter().map(|event| event.name.clone()).collect(),
            stacks,
            samples: tally.samples,
            frames,
            named: frames - unnamed,
            shares: examined.code_shares(),
            processes,
            bpf: BpfFrames::count(examined),
            findings,
            minor,
        }
    }
}

/// How perf recorded stacks, according to the attributes of the recorded events.
fn recorded_stacks(examined: &Examined<'_>) -> RecordedStacks {
    let events = &examined.resolution.survey.recording.events;
    if events.iter().any(|event| event.attr.has_field(abi::PERF_SAMPLE_STACK_USER)) {
        let sizes = events.iter().map(|event| event.attr.sample_stack_user);
        RecordedStacks::Copies(sizes.max().unwrap_or_default())
    } else if events.iter().any(|event| event.attr.has_field(abi::PERF_SAMPLE_CALLCHAIN)) {
        RecordedStacks::Chains
    } else {
        RecordedStacks::None
    }
}

/// Describes all processes that have or may have JIT code: those for which a file with names was found, those with
/// named JIT code, and those with unnamed code in memory that no file backs.
fn describe_processes(context: DoctorContext<'_>) -> Vec<ProcessDiagnosis> {
    let mut pids: BTreeSet<Pid> = context.examined.accounts().iter().map(|account| account.pid).collect();
    for (pid, process) in &context.tally.processes {
        if process.named > 0 {
            pids.insert(*pid);
        }
    }
    for cause in context.tally.causes.keys() {
        if let Cause::Memory(pid) = cause {
            pids.insert(*pid);
        }
    }
    pids.into_iter().map(|pid| describe_process(pid, context)).collect()
}

/// Describes a process: how many of its JIT frames have a name, and which sources of names it has.
fn describe_process(pid: Pid, context: DoctorContext<'_>) -> ProcessDiagnosis {
    let tally = context.tally.processes.get(&pid);
    let accounts = context.accounts(pid);
    ProcessDiagnosis {
        process: context.process(pid),
        named: tally.map_or(0, |process| process.named),
        unnamed: tally.map_or(0, |process| process.unnamed),
        sources: accounts.map(|(number, account)| (account.clone(), context.source_file(number, account))).collect(),
    }
}
