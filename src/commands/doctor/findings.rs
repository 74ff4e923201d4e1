//! The account of one recording: its processes with JIT code, and its frames without a name by cause.

use super::advice::{self, DoctorContext};
use super::causes::{Cause, Examiner, Status};
use super::examined::Examined;
use crate::error::Result;
use crate::model::Pid;
use crate::model::programs::Programs;
use crate::model::runtimes::Runtime;
use crate::pipeline::table::Cell;
use crate::resolve::symbols::files::SearchOptions;
use crate::sources::Account;
use linux_perf_event_reader::constants as abi;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The columns of CSV and JSON.
pub(super) const COLUMNS: &[&str] = &["file", "frames", "percent", "cause", "advice"];

/// How many findings of one sort are told one by one.
const SHOWN: usize = 10;

/// What was found in one recording.
#[derive(Debug)]
pub(super) struct Findings {
    file: PathBuf,
    samples: u64,
    frames: u64,
    named: u64,
    /// How the recorder was asked to get stacks.
    stacks: &'static str,
    processes: Vec<ProcessFindings>,
    /// Heaviest first.
    unnamed: Vec<Finding>,
    /// What concerns the recording as a whole.
    remarks: Vec<String>,
}

/// A process with JIT code, or with dumps or maps.
#[derive(Debug)]
struct ProcessFindings {
    pid: Pid,
    comm: String,
    runtime: Option<&'static Runtime>,
    named: u64,
    unnamed: u64,
    sources: Vec<String>,
}

#[derive(Debug)]
struct Finding {
    frames: u64,
    cause: String,
    advice: String,
}

/// What is counted while the samples are gone through.
#[derive(Debug, Default)]
struct FrameTally {
    frames: u64,
    named: u64,
    causes: FxHashMap<Cause, u64>,
    /// Named frames of JIT code.
    jit: BTreeMap<Pid, u64>,
    truncated: u64,
    /// Stacks whose outermost frame is at an address where nothing was mapped.
    lost: u64,
}

impl Findings {
    pub(super) fn new(file: &Path, examined: &Examined<'_>, search: &SearchOptions) -> Self {
        let statuses = Examiner::new(examined, search).places();
        let tally = FrameTally::new(examined, &statuses);
        let events = &examined.resolution.survey.recording.events;
        let any = |field| events.iter().any(|event| event.attr.samples(field));
        let (dwarf, chains) = (any(abi::PERF_SAMPLE_STACK_USER), any(abi::PERF_SAMPLE_CALLCHAIN));
        let stacks = match (dwarf, chains) {
            (true, _) => "stack copies (--call-graph dwarf)",
            (false, true) => "call chains by frame pointer",
            (false, false) => "no call chains",
        };
        let programs = &Programs::new(&examined.resolution.survey.processes);
        let asked = DoctorContext { examined, programs, dwarf };
        let mut unnamed: Vec<(Cause, u64)> = tally.causes.iter().map(|(&cause, &frames)| (cause, frames)).collect();
        unnamed.sort_unstable_by_key(|&(cause, frames)| (Reverse(frames), cause));
        let finding = |(cause, frames)| Finding {
            frames,
            cause: advice::cause(cause, asked),
            advice: advice::advice(cause, asked),
        };
        Self {
            file: file.to_owned(),
            samples: examined.samples.count(),
            frames: tally.frames,
            named: tally.named,
            stacks,
            processes: processes(asked, &tally),
            unnamed: unnamed.into_iter().map(finding).collect(),
            remarks: remarks(&tally, asked, chains),
        }
    }

    /// For people.
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<()> {
        let percent = share(self.named, self.frames);
        let (file, samples, frames, named) = (self.file.display(), self.samples, self.frames, self.named);
        writeln!(
            out,
            "{file}: {samples} samples, {}; {named} of {frames} frames have a name ({percent:.2}%)",
            self.stacks
        )?;
        for remark in &self.remarks {
            writeln!(out, "  {remark}")?;
        }
        for process in &self.processes {
            process.write(out)?;
        }
        for (advice, findings) in self.by_advice() {
            writeln!(out)?;
            for finding in findings.iter().take(SHOWN) {
                let percent = share(finding.frames, self.frames);
                writeln!(out, "{:>10}  {percent:>6.2}%  {}", finding.frames, finding.cause)?;
            }
            if let Some(rest) = findings.get(SHOWN..).filter(|rest| !rest.is_empty()) {
                let frames: u64 = rest.iter().map(|finding| finding.frames).sum();
                writeln!(out, "{frames:>10}  {:>6.2}%  {} more like these", share(frames, self.frames), rest.len())?;
            }
            writeln!(out, "  → {advice}")?;
        }
        Ok(())
    }

    /// What can be mended in the same way stands together, the heaviest first.
    fn by_advice(&self) -> Vec<(&str, Vec<&Finding>)> {
        let mut groups: Vec<(&str, Vec<&Finding>)> = Vec::new();
        for finding in &self.unnamed {
            match groups.iter_mut().find(|(advice, _)| *advice == finding.advice) {
                Some((_, group)) => group.push(finding),
                None => groups.push((&finding.advice, vec![finding])),
            }
        }
        groups.sort_by_key(|(_, group)| Reverse(group.iter().map(|finding| finding.frames).sum::<u64>()));
        groups
    }

    /// For programs.
    pub(super) fn rows(&self) -> impl Iterator<Item = Vec<Cell>> + '_ {
        self.unnamed.iter().map(|finding| {
            vec![
                Cell::Text(self.file.display().to_string()),
                Cell::Count(finding.frames),
                Cell::Percent(share(finding.frames, self.frames)),
                Cell::Text(finding.cause.clone()),
                Cell::Text(finding.advice.clone()),
            ]
        })
    }
}

impl ProcessFindings {
    fn write(&self, out: &mut dyn Write) -> Result<()> {
        let runtime = self.runtime.map_or("no known runtime", |runtime| runtime.name);
        let whole = self.named + self.unnamed;
        let (pid, comm, named) = (self.pid, &self.comm, self.named);
        writeln!(out, "\nProcess {pid} ({comm}), {runtime}: {named} of {whole} frames of JIT code have a name")?;
        for source in &self.sources {
            writeln!(out, "  {source}")?;
        }
        Ok(())
    }
}

impl FrameTally {
    fn new(examined: &Examined<'_>, statuses: &[Status]) -> Self {
        let samples = examined.samples;
        let mut tally = Self::default();
        for row in &samples.rows {
            let pid = samples.tracks.items()[row.track as usize].pid.unwrap_or_default();
            let mut outermost = None;
            for place in samples.chains.up(row.chain) {
                let status = statuses[place.0 as usize];
                tally.add(pid, status, row.count);
                outermost = Some(status);
            }
            if matches!(outermost, Some(Status::Unnamed(Cause::Nowhere(_)))) {
                tally.lost += row.count;
            }
        }
        tally
    }

    fn add(&mut self, pid: Pid, status: Status, count: u64) {
        let cause = match status {
            Status::Truncated => {
                self.truncated += count;
                return;
            }
            Status::Named { jit } => {
                self.frames += count;
                self.named += count;
                if jit {
                    *self.jit.entry(pid).or_default() += count;
                }
                return;
            }
            // What no file backs is one place for all threads; an address that is nowhere is nowhere in all processes.
            Status::Unnamed(Cause::Nowhere(_)) => Cause::Nowhere(pid),
            Status::Unnamed(cause) => cause,
        };
        self.frames += count;
        *self.causes.entry(cause).or_default() += count;
    }
}

fn processes(asked: DoctorContext<'_>, tally: &FrameTally) -> Vec<ProcessFindings> {
    let examined = asked.examined;
    let mut wanted: BTreeMap<Pid, u64> = tally.jit.keys().map(|&pid| (pid, 0)).collect();
    wanted.extend(examined.accounts().iter().map(|account| (account.pid, 0)));
    wanted.extend(tally.causes.iter().filter_map(|(&cause, &frames)| match cause {
        Cause::Memory(pid) => Some((pid, frames)),
        _ => None,
    }));
    let about = |(pid, unnamed): (Pid, u64)| {
        let accounts = examined.accounts().iter().filter(|account: &&Account| account.pid == pid);
        ProcessFindings {
            pid,
            comm: asked.programs.name(pid).into_owned(),
            runtime: asked.runtime(pid),
            named: tally.jit.get(&pid).copied().unwrap_or(0),
            unnamed,
            sources: accounts.map(advice::source).collect(),
        }
    };
    wanted.into_iter().map(about).collect()
}

/// What concerns no single frame.
fn remarks(tally: &FrameTally, asked: DoctorContext<'_>, chains: bool) -> Vec<String> {
    let samples = asked.examined.samples.count();
    let mut remarks = Vec::new();
    if !chains {
        remarks.push("no call chains were recorded: perf record -g, or --call-graph dwarf".to_owned());
    }
    if tally.truncated > 0 {
        let percent = share(tally.truncated, samples);
        remarks.push(format!(
            "{} stacks ({percent:.1}%) end before their outermost frame is known: copies of more bytes hold more of them \
             (--call-graph dwarf,65528)",
            tally.truncated
        ));
    }
    if tally.lost > 0 && !asked.dwarf {
        let percent = share(tally.lost, samples);
        remarks.push(format!(
            "{} stacks ({percent:.1}%) end at an address where nothing was mapped: code without frame pointers breaks \
             the chain; record with --call-graph dwarf, or build with -fno-omit-frame-pointer",
            tally.lost
        ));
    }
    remarks
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
