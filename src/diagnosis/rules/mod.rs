//! Finds the problems of a recording. Each file checks another part of the recording.

mod files;
mod jit;
mod neighbours;
mod source_maps;
mod stacks;
mod whole;

pub(super) use files::is_packaged;

use super::context::DoctorContext;
use super::corrected;
use super::problem::{Finding, OfProcess, Problem};
use super::problem_texts::problem_text;
use rustc_hash::FxHashSet;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// All problems. Those that distort most of the recording come first.
pub(super) fn findings(context: DoctorContext<'_>, damage: Option<String>) -> Vec<Finding> {
    let mut found = whole::findings(context, damage);
    found.extend(jit::findings(context));
    found.extend(stacks::findings(context));
    found.extend(files::findings(context));
    found.extend(source_maps::findings(context));
    let mut found = merge_similar(found);
    found.sort_by(|one, other| other.percent.partial_cmp(&one.percent).unwrap_or(Ordering::Equal));
    remove_consequences(&mut found);
    move_names_up(&mut found);
    move_chains_up(&mut found);
    corrected::add(&mut found, context);
    found
}

/// Merges findings of the same kind about several processes of one runtime. The merged finding names the process that
/// is affected most.
fn merge_similar(found: Vec<Finding>) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::new();
    // The index in `merged` of each kind of finding: by problem, by runtime, and by whether a switch didn't reach the
    // process.
    let mut indexes: HashMap<(&str, &str, bool), usize> = HashMap::new();
    for finding in found {
        let Some(process) = finding.problem.process() else {
            merged.push(finding);
            continue;
        };
        let runtime = process.runtime.map_or("", |runtime| runtime.name);
        let key = (problem_text(&finding.problem).key, runtime, is_without_switch(&finding.problem));
        match indexes.entry(key) {
            Entry::Occupied(index) => merge_into(&mut merged[*index.get()], finding),
            Entry::Vacant(index) => {
                index.insert(merged.len());
                merged.push(finding);
            }
        }
    }
    merged
}

/// Adds `finding` to `sum`. The result is about the process of the finding with the higher percentage.
fn merge_into(sum: &mut Finding, mut finding: Finding) {
    let percent = (sum.percent + finding.percent).min(100.0);
    let samples = sum.samples + finding.samples;
    let frames = sum.frames + finding.frames;
    let count_others = |finding: &Finding| finding.problem.process().map_or(0, |process| process.others);
    let others = count_others(sum) + count_others(&finding) + 1;
    if finding.percent > sum.percent {
        std::mem::swap(sum, &mut finding);
    }
    sum.percent = percent;
    sum.samples = samples;
    sum.frames = frames;
    if let Problem::OfProcess(process, _) = &mut sum.problem {
        process.others = others;
    }
}

/// True if the recorded command has a switch that did not reach the process. Such a finding needs another remedy, so it
/// isn't merged with others.
fn is_without_switch(problem: &Problem) -> bool {
    use OfProcess::{Interpreted, Silent};
    matches!(problem, Problem::OfProcess(_, Silent { elsewhere: Some(_), .. } | Interpreted { elsewhere: Some(_), .. }))
}

/// Moves the finding about missing call chains to the front, because without call chains, all other findings are based
/// on innermost functions only.
fn move_chains_up(found: &mut Vec<Finding>) {
    if let Some(index) = found.iter().position(|finding| matches!(finding.problem, Problem::NoCallChains)) {
        let chains = found.remove(index);
        found.insert(0, chains);
    }
}

/// Moves findings about missing names of JIT code before those about stacks that break off, because the switch that
/// adds the names may also fix the stacks. If the runtime can write names, these findings also come before stripped
/// files, which the user usually can't fix.
fn move_names_up(found: &mut Vec<Finding>) {
    let Some(names) = found.iter().position(|finding| lacks_names(&finding.problem) && finding.is_significant()) else {
        return;
    };
    let runtime = found[names].problem.process().and_then(|process| process.runtime);
    let can_write_names = runtime.is_some_and(|runtime| !runtime.switches.is_empty());
    let target = found[..names].iter().position(|finding| match &finding.problem {
        Problem::Stripped { .. } | Problem::StrippedPackages { .. } | Problem::Symbolless { .. } => can_write_names,
        problem => problem.is_of_stacks(),
    });
    if let Some(target) = target {
        let finding = found.remove(names);
        found.insert(target, finding);
    }
}

/// True if the problem is that JIT code has no names, because no file names it or the file can't be used.
fn lacks_names(problem: &Problem) -> bool {
    let Problem::OfProcess(_, problem) = problem else { return false };
    matches!(
        problem,
        OfProcess::Silent { .. }
            | OfProcess::Missing { .. }
            | OfProcess::OtherProcess { .. }
            | OfProcess::Refused { .. }
            | OfProcess::Empty { .. }
            | OfProcess::Torn { .. }
            | OfProcess::OtherRun { .. }
            | OfProcess::Replaced { .. }
            | OfProcess::Overwritten { .. }
            | OfProcess::EndsEarly { .. }
    )
}

/// Removes findings that are only consequences of other findings.
fn remove_consequences(found: &mut Vec<Finding>) {
    use OfProcess::{FramePointers, JvmFramePointers};
    let mut has_broken_stacks = false;
    let mut unnamed_pids = FxHashSet::default();
    for finding in found.iter().filter(|finding| finding.is_significant()) {
        if let Problem::OfProcess(process, problem) = &finding.problem {
            has_broken_stacks |= matches!(problem, FramePointers { .. } | JvmFramePointers { .. });
            if lacks_names(&finding.problem) {
                unnamed_pids.insert(process.pid);
            }
        }
    }
    found.retain(|finding| match &finding.problem {
        // When a stack breaks off, the frames after that point are often addresses without any code.
        Problem::Nowhere { .. } => !has_broken_stacks,
        // If nothing reports a runtime's code, only its interpreter appears in the profile.
        Problem::OfProcess(process, OfProcess::Interpreted { .. }) => !unnamed_pids.contains(&process.pid),
        _ => true,
    });
}
