//! Diagnoses a callgrind file: how much of its cost belongs to functions without a name, and why they have none.

use super::finding::{Finding, PROCESS, Share};
use super::kind::FindingKind;
use super::process::ExaminedProcess;
use super::rules::{NamedFile, is_packaged, no_dump_or_map, source_incomplete, source_of_other_run};
use super::rules::{stripped, stripped_packages};
use super::source::{SourceFile, cost_coverage};
use super::tally::percent;
use super::wording::printable_path;
use crate::error::Result;
use crate::io::InPath;
use crate::jit::{Account, SourceOptions, SourceState};
use crate::model::Pid;
use crate::model::stacks::{Keep, Profile};
use crate::pipeline::any::{LoadOptions, load};
use crate::pipeline::callgrind::Coverage;
use crate::pipeline::open::shown;
use crate::pipeline::{Job, Outcome};
use crate::runtimes::RuntimeSet;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The diagnosis of a callgrind file.
#[derive(Debug)]
pub(crate) struct CountedDiagnosis {
    pub(super) file: PathBuf,
    pub(super) process: ExaminedProcess,
    /// The name of the first event, such as `Ir`.
    pub(super) event: String,
    /// The total cost of the first event.
    pub(super) cost: u64,
    /// The cost of unnamed JIT code for which a loaded source has names, so that `jitgraft callgrind` can name it.
    pub(super) nameable: u64,
    /// The cost of unnamed JIT code for which no loaded source has a name.
    pub(super) unnameable: u64,
    /// The files that may name the process's JIT code, each with whether and how it was used.
    pub(super) accounts: Vec<Account>,
    /// The problems whose impact is at least the threshold of their kind.
    pub(super) findings: Vec<Finding>,
    /// The problems below the threshold of their kind.
    pub(super) minor: Vec<Finding>,
}

impl CountedDiagnosis {
    /// Examines a callgrind file: determines which costs in JIT code could be named (`Coverage`), and which files have
    /// unnamed functions (`Costs`). Collects the findings about JIT code and files, the worst first.
    pub(super) fn examine(path: &InPath, sources: &SourceOptions, job: &Job, outcome: &mut Outcome) -> Result<Self> {
        let coverage = Coverage::find(path, sources, job, &mut outcome.warnings)?;
        let profile = load(std::slice::from_ref(path), Keep::Sums, &LoadOptions::default(), job, outcome)?;
        let costs = Costs::new(&profile);
        let cost = costs.total;
        let comm = String::from_utf8_lossy(&coverage.program).into_owned();
        let runtime = RuntimeSet::from_program(&coverage.program).first();
        let process = ExaminedProcess {
            // If the callgrind file states no process ID, use -1, as perf does for unknown processes.
            pid: coverage.pid.unwrap_or(Pid(-1)),
            comm,
            runtime,
            others: 0,
            // A callgrind file doesn't show which switches the process could have used, so there is no advice on them.
            advice: None,
            settable_switch: None,
            too_old: None,
        };
        let mut found: Vec<Finding> = find_unnamed_jit(&coverage, &process, &shown(path), cost);
        found.extend(find_unnamed_files(costs));
        found.sort_by(|one, other| other.share.impact.total_cmp(&one.share.impact));
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

/// Costs of the first event in a callgrind file.
#[derive(Default)]
struct Costs {
    total: u64,
    /// The cost of functions without a name, by the path of the program or library that contains them.
    unnamed: BTreeMap<Vec<u8>, u64>,
}

impl Costs {
    /// Sums the costs of the first event: all of them, and those of unnamed functions by the file that contains them.
    fn new(profile: &Profile) -> Self {
        let mut costs = Self::default();
        let Some(series) = profile.series.first() else { return costs };
        for row in &series.rows {
            costs.total = costs.total.saturating_add(row.weight);
            // The innermost frame is that of the function to which the cost belongs.
            let Some(leaf) = profile.frames_up(row.stack).next() else { continue };
            let leaf = profile.frame_of(leaf);
            let name = profile.name_of(leaf.name);
            // Callgrind writes an address (`0x…`) in place of a missing name. Our reader writes a word in brackets,
            // such as `[unknown]`.
            let is_unnamed = name.starts_with(b"0x") || name.starts_with(b"[");
            // Unnamed functions without a file only count in `total`: `find_unnamed_files` has nothing to report for
            // them.
            if is_unnamed && let Some(module) = leaf.module {
                *costs.unnamed.entry(profile.name_of(module).to_vec()).or_default() += row.weight;
            }
        }
        costs
    }
}

/// Finds problems with the names of JIT code. `path` is the callgrind file, and `cost` the total cost of its first
/// event. `coverage` splits the cost of unnamed JIT code into `nameable`, for which a loaded file has names, and
/// `unnameable`. The finding about `unnameable` depends on whether a file was loaded, and whether it names anything.
fn find_unnamed_jit(coverage: &Coverage, process: &ExaminedProcess, path: &Path, cost: u64) -> Vec<Finding> {
    let share = |part: u64| Share::from_percent(percent(part as f64, cost));
    let Coverage { nameable, unnameable, .. } = *coverage;
    let loaded = coverage.accounts.iter().find(|account| matches!(account.state, SourceState::Loaded { .. }));
    let mut found = Vec::new();
    if unnameable > 0 {
        // There is no file, or the file names none of the code that ran (so it is probably from another run), or it
        // names only a part of the code.
        found.push(match loaded {
            None => report_silence(process, share(unnameable), path),
            Some(account) if nameable == 0 => {
                source_of_other_run(process, share(unnameable), &account.path, account.kind)
            }
            Some(account) => report_gaps(process, share(unnameable), account, coverage),
        });
    }
    if nameable > 0
        && let Some(account) = loaded
    {
        let finding = Finding::new(
            FindingKind::NotNamedYet,
            share(nameable),
            format!(
                "the names of the JIT code of {PROCESS} are in {}. jitgraft finds them there, but KCachegrind and \
                 callgrind_annotate need them in the callgrind file",
                printable_path(&account.path)
            ),
            format!("jitgraft callgrind {}", printable_path(path)),
        );
        found.push(finding.with_process(process));
    }
    if !coverage.has_instr && nameable + unnameable > 0 {
        let finding = Finding::new(
            FindingKind::NoInstructionAddresses,
            // The finding concerns all unnamed JIT code, but only half of its cost counts: even without instruction
            // addresses, most functions get the right name.
            Share { impact: share((nameable + unnameable) / 2).percent, ..share(nameable + unnameable) },
            format!(
                "the callgrind file has no instruction addresses, so only the entry points of JIT code of {PROCESS} are \
                 known"
            ),
            "run the program again with valgrind --tool=callgrind --dump-instr=yes",
        );
        found.push(finding.with_process(process));
    }
    found
}

/// Reports that the loaded dump or map (`account`) names only a part of the JIT code that ran. `coverage` says how much
/// of the code's cost it names.
fn report_gaps(process: &ExaminedProcess, share: Share, account: &Account, coverage: &Coverage) -> Finding {
    let Coverage { nameable, unnameable, .. } = *coverage;
    // Callgrind files have costs instead of samples, so costs take the place of counts of frames.
    let source = SourceFile {
        path: account.path.clone(),
        kind: account.kind,
        covered: nameable,
        // Callgrind files have no times, so names can't be checked against them.
        doubtful: 0,
        frames: nameable + unnameable,
    };
    let named = cost_coverage(nameable, nameable + unnameable);
    // `None`: it is unknown which switch made the process write the file.
    source_incomplete(process, share, &source, &named, None)
}

/// Reports that no dump or map was found, so nothing names the JIT code. `path` is the callgrind file, which the remedy
/// mentions.
fn report_silence(process: &ExaminedProcess, share: Share, path: &Path) -> Finding {
    let pid = process.printable_pid();
    let why = format!("there is no perf-{pid}.map or jit-{pid}.dump next to the file or in /tmp");
    let command = match process.runtime.and_then(|runtime| runtime.valgrind) {
        Some(command) => format!("{command} …"),
        None => {
            "valgrind --tool=callgrind --dump-instr=yes PROGRAM, with the option that makes its runtime write a perf \
             map or jitdump"
                .to_owned()
        }
    };
    let remedy = format!(
        "run the program again with {command}; then run jitgraft callgrind on the new file instead of {}",
        printable_path(path)
    );
    no_dump_or_map(process, share, &why, remedy)
}

/// Reports programs and libraries whose functions have no names. Those from packages and the user's own builds are two
/// findings, because the remedies differ.
fn find_unnamed_files(costs: Costs) -> Vec<Finding> {
    let mut files: Vec<(Vec<u8>, u64)> = costs.unnamed.into_iter().collect();
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
    let share = |part: u64| Share::from_percent(percent(part as f64, costs.total));
    let mut found = Vec::new();
    if packaged_cost > 0 {
        found.push(stripped_packages(&packaged, share(packaged_cost)));
    }
    if own_cost > 0 {
        found.push(stripped(&own, share(own_cost)));
    }
    found
}
