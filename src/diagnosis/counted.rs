//! Diagnoses a callgrind file: how much of its cost belongs to functions without a name, and why they have none.

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
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The diagnosis of a callgrind file.
#[derive(Debug)]
pub(crate) struct CountedDiagnosis {
    pub(super) file: PathBuf,
    pub(super) process: Who,
    /// The name of the first event, and its total cost.
    pub(super) event: String,
    pub(super) cost: u64,
    /// The cost of unnamed JIT code in two parts: `nameable` is what the sources that were found can name, `unnameable`
    /// is the rest.
    pub(super) nameable: u64,
    pub(super) unnameable: u64,
    pub(super) accounts: Vec<Account>,
    pub(super) findings: Vec<Finding>,
    pub(super) minor: Vec<Finding>,
}

impl CountedDiagnosis {
    /// Examines a callgrind file.
    pub(super) fn examine(path: &InPath, sources: &SourceOptions, job: &Job, outcome: &mut Outcome) -> Result<Self> {
        let coverage = Coverage::find(path, sources, job, &mut outcome.warnings)?;
        let profile = load(std::slice::from_ref(path), Keep::Sums, &LoadOptions::default(), job, outcome)?;
        let (cost, unnamed) = costs(&profile);
        let comm = String::from_utf8_lossy(&coverage.program).into_owned();
        let runtime = RuntimeSet::from_program(&coverage.program).first();
        let process =
            Who { pid: coverage.pid.unwrap_or(Pid(-1)), comm, runtime, others: 0, advice: None, too_old: None };
        let mut found: Vec<Finding> = find_unnamed_jit(&coverage, &process, &shown(path), cost);
        found.extend(find_unnamed_files(unnamed, cost));
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

/// The total cost of the first event, and for each file, the cost of its functions without a name.
fn costs(profile: &Profile) -> (u64, BTreeMap<Vec<u8>, u64>) {
    let mut whole = 0u64;
    let mut unnamed = BTreeMap::new();
    for row in profile.series.first().into_iter().flat_map(|series| &series.rows) {
        whole = whole.saturating_add(row.weight);
        let Some(leaf) = profile.frames_up(row.stack).next() else { continue };
        let leaf = profile.frame_of(leaf);
        let name = profile.name_of(leaf.name);
        let is_unnamed = name.starts_with(b"0x") || name.starts_with(b"[");
        if is_unnamed && let Some(module) = leaf.module {
            *unnamed.entry(profile.name_of(module).to_vec()).or_default() += row.weight;
        }
    }
    (whole, unnamed)
}

/// Findings about JIT code without names. `path` is the callgrind file, and `cost` the total cost of its first event.
fn find_unnamed_jit(coverage: &Coverage, process: &Who, path: &Path, cost: u64) -> Vec<Finding> {
    let finding = |problem, part: u64| {
        Finding::new(Problem::OfProcess(process.clone(), problem), percent(part as f64, cost), 0, 0)
    };
    let Coverage { nameable, unnameable, .. } = *coverage;
    let loaded = coverage.accounts.iter().find(|account| matches!(account.state, SourceState::Loaded { .. }));
    let mut found = Vec::new();
    if unnameable > 0 {
        let problem = match loaded {
            None => OfProcess::SilentUnderValgrind { path: path.to_owned() },
            Some(account) => {
                let source = SourceFile {
                    path: account.path.clone(),
                    kind: account.kind,
                    covered: nameable,
                    doubtful: 0,
                    frames: nameable + unnameable,
                };
                if nameable == 0 {
                    OfProcess::OtherRun { source }
                } else {
                    OfProcess::Incomplete { source, given: None, spoiler: None }
                }
            }
        };
        found.push(finding(problem, unnameable));
    }
    if nameable > 0 && loaded.is_some() {
        found.push(finding(OfProcess::NotNamedYet { path: path.to_owned() }, nameable));
    }
    if !coverage.has_instr && nameable + unnameable > 0 {
        // Count only half: even without instruction addresses, most functions get the right name.
        let part = (nameable + unnameable) / 2;
        found.push(finding(OfProcess::NoInstructions, part));
    }
    found
}

/// Findings about files whose functions have no names. `unnamed` has the cost of these functions by file, and `cost` is
/// the total.
fn find_unnamed_files(unnamed: BTreeMap<Vec<u8>, u64>, cost: u64) -> Vec<Finding> {
    let mut files: Vec<(Vec<u8>, u64)> = unnamed.into_iter().collect();
    files.sort_by_key(|(_, cost)| Reverse(*cost));
    let (mut packaged, mut packaged_cost) = (Vec::new(), 0);
    let (mut own, mut own_cost) = (Vec::new(), 0);
    for (path, file_cost) in files {
        let file = NamedFile { path: String::from_utf8_lossy(&path).into_owned(), build_id: None };
        if is_packaged(&path) {
            packaged.push(file);
            packaged_cost += file_cost;
        } else {
            own.push(file);
            own_cost += file_cost;
        }
    }
    let mut found = Vec::new();
    if packaged_cost > 0 {
        let problem = Problem::StrippedPackages { files: packaged };
        found.push(Finding::new(problem, percent(packaged_cost as f64, cost), 0, 0));
    }
    if own_cost > 0 {
        let problem = Problem::Stripped { files: own, by_go: false };
        found.push(Finding::new(problem, percent(own_cost as f64, cost), 0, 0));
    }
    found
}
