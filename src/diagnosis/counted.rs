//! Diagnoses a callgrind file: which part of its cost has no name, and why?

use super::problem::{Finding, NamedFile, OfProcess, Problem, SourceFile, Who};
use super::rules::is_packaged;
use super::tally::percent;
use crate::error::Result;
use crate::io::InPath;
use crate::model::Pid;
use crate::model::stacks::{Keep, Profile};
use crate::pipeline::any::{LoadOptions, load};
use crate::pipeline::callgrind::Coverage;
use crate::pipeline::open::shown;
use crate::pipeline::{Job, Outcome};
use crate::runtimes::RuntimeSet;
use crate::sources::{Account, SourceOptions, SourceState};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The diagnosis of a callgrind file.
#[derive(Debug)]
pub(crate) struct CountedDiagnosis {
    pub(super) file: PathBuf,
    pub(super) process: Who,
    /// The name of the first event, and its total cost.
    pub(super) event: String,
    pub(super) cost: u64,
    /// The cost of unnamed JIT code, in two parts: what the files found can name, and what they can't.
    pub(super) nameable: u64,
    pub(super) unnameable: u64,
    pub(super) accounts: Vec<Account>,
    pub(super) findings: Vec<Finding>,
    pub(super) minor: Vec<Finding>,
}

impl CountedDiagnosis {
    pub(super) fn of(path: &InPath, sources: &SourceOptions, job: &Job, outcome: &mut Outcome) -> Result<Self> {
        let coverage = Coverage::of(path, sources, job, &mut outcome.warnings)?;
        let profile = load(std::slice::from_ref(path), Keep::Sums, &LoadOptions::default(), job, outcome)?;
        let (cost, unnamed) = costs(&profile);
        let comm = String::from_utf8_lossy(&coverage.program).into_owned();
        let runtime = RuntimeSet::of_program(&coverage.program).first();
        let process =
            Who { pid: coverage.pid.unwrap_or(Pid(-1)), comm, runtime, others: 0, advice: None, too_old: None };
        let mut found: Vec<Finding> = of_jit(&coverage, &process, &shown(path), cost);
        found.extend(of_files(unnamed, cost));
        found.sort_by(|one, other| other.percent.total_cmp(&one.percent));
        let (findings, minor) = found.into_iter().partition(Finding::is_significant);
        Ok(Self {
            file: shown(path),
            process,
            event: String::from_utf8_lossy(&coverage.event).into_owned(),
            cost,
            nameable: coverage.nameable,
            unnameable: coverage.unnameable,
            accounts: coverage.accounts,
            findings,
            minor,
        })
    }
}

/// The total cost of the first event, and the cost of each file's functions without a name.
fn costs(profile: &Profile) -> (u64, BTreeMap<Vec<u8>, u64>) {
    let (mut whole, mut unnamed) = (0u64, BTreeMap::new());
    for row in profile.series.first().into_iter().flat_map(|series| &series.rows) {
        whole = whole.saturating_add(row.weight);
        let Some(leaf) = profile.frames_up(row.stack).next().map(|frame| *profile.frame_of(frame)) else { continue };
        let name = profile.name_of(leaf.name);
        if let (Some(module), true) = (leaf.module, name.starts_with(b"0x") || name.starts_with(b"[")) {
            *unnamed.entry(profile.name_of(module).to_vec()).or_default() += row.weight;
        }
    }
    (whole, unnamed)
}

fn of_jit(coverage: &Coverage, process: &Who, path: &std::path::Path, cost: u64) -> Vec<Finding> {
    let finding = |problem, part: u64| {
        Finding::new(Problem::OfProcess(process.clone(), problem), percent(part as f64, cost), 0, 0)
    };
    let Coverage { nameable, unnameable, .. } = *coverage;
    let loaded = coverage.accounts.iter().find(|account| matches!(account.state, SourceState::Loaded { .. }));
    let mut found = Vec::new();
    match loaded {
        None if unnameable > 0 => {
            found.push(finding(OfProcess::SilentUnderValgrind { path: path.to_owned() }, unnameable));
        }
        None => {}
        Some(account) => {
            let source = SourceFile {
                path: account.path.clone(),
                kind: account.kind,
                covered: nameable,
                doubtful: 0,
                frames: nameable + unnameable,
            };
            let other_run = nameable == 0 && unnameable > 0;
            let problem = if other_run {
                OfProcess::OtherRun { source }
            } else {
                OfProcess::Incomplete { source, given: None, spoiler: None }
            };
            found.extend((unnameable > 0).then(|| finding(problem, unnameable)));
            let not_yet = OfProcess::NotNamedYet { path: path.to_owned() };
            found.extend((nameable > 0).then(|| finding(not_yet, nameable)));
        }
    }
    if !coverage.has_instr && nameable + unnameable > 0 {
        // Even without instruction addresses, most functions get the right name.
        let part = (nameable + unnameable) / 2;
        found.push(finding(OfProcess::NoInstructions, part));
    }
    found
}

fn of_files(unnamed: BTreeMap<Vec<u8>, u64>, cost: u64) -> Vec<Finding> {
    let (packaged, own): (Vec<_>, Vec<_>) = unnamed.into_iter().partition(|(path, _)| is_packaged(path));
    let group = |mut files: Vec<(Vec<u8>, u64)>, problem: fn(Vec<NamedFile>) -> Problem| {
        files.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        let sum: u64 = files.iter().map(|(_, cost)| cost).sum();
        let file =
            |(path, _): &(Vec<u8>, u64)| NamedFile { path: String::from_utf8_lossy(path).into_owned(), build_id: None };
        let problem = problem(files.iter().map(file).collect());
        (sum > 0).then(|| Finding::new(problem, percent(sum as f64, cost), 0, 0))
    };
    let packaged = group(packaged, |files| Problem::StrippedPackages { files });
    packaged.into_iter().chain(group(own, |files| Problem::Stripped { files, by_go: false })).collect()
}
