//! Finds the problems of a recording. There is one file per part of a recording that may be wrong.

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

/// All problems, those that distort the recording most first.
pub(super) fn findings(context: DoctorContext<'_>, damage: Option<String>) -> Vec<Finding> {
    let mut found = whole::findings(context, damage);
    found.extend(jit::findings(context));
    found.extend(stacks::findings(context));
    found.extend(files::findings(context));
    found.extend(source_maps::findings(context));
    let mut found = added_up(found);
    found.sort_by(|one, other| other.percent.partial_cmp(&one.percent).unwrap_or(Ordering::Equal));
    follow_from_others(&mut found);
    names_first(&mut found);
    chains_first(&mut found);
    corrected::add(&mut found, context);
    found
}

/// Merges findings of the same kind about several processes of one runtime. The merged finding names the process that
/// is affected most.
fn added_up(found: Vec<Finding>) -> Vec<Finding> {
    let mut sums: Vec<Finding> = Vec::new();
    let mut places: HashMap<(&str, &str, bool), usize> = HashMap::new();
    for mut finding in found {
        let runtime = finding.problem.process().map(|process| process.runtime.map_or("", |runtime| runtime.name));
        let key = problem_text(&finding.problem).key;
        let lacks_switch = is_without_switch(&finding.problem);
        let place = runtime.map(|runtime| *places.entry((key, runtime, lacks_switch)).or_insert(sums.len()));
        let Some(sum) = place.and_then(|place| sums.get_mut(place)) else {
            sums.push(finding);
            continue;
        };
        let (percent, samples) = ((sum.percent + finding.percent).min(100.0), sum.samples + finding.samples);
        let frames = sum.frames + finding.frames;
        let others = |finding: &Finding| finding.problem.process().map_or(0, |process| process.others);
        let others = others(sum) + others(&finding) + 1;
        if finding.percent > sum.percent {
            std::mem::swap(sum, &mut finding);
        }
        (sum.percent, sum.samples, sum.frames) = (percent, samples, frames);
        if let Problem::OfProcess(process, _) = &mut sum.problem {
            process.others = others;
        }
    }
    sums
}

/// True if the recorded command has a switch that did not reach the process. Such findings are not merged with others,
/// because they need another remedy.
fn is_without_switch(problem: &Problem) -> bool {
    use OfProcess::{Interpreted, Silent};
    matches!(problem, Problem::OfProcess(_, Silent { elsewhere: Some(_), .. } | Interpreted { elsewhere: Some(_), .. }))
}

/// Moves missing call chains to the front, because all other findings are then based on innermost functions only.
fn chains_first(found: &mut Vec<Finding>) {
    if let Some(at) = found.iter().position(|finding| matches!(finding.problem, Problem::NoCallChains)) {
        let chains = found.remove(at);
        found.insert(0, chains);
    }
}

/// Moves missing names of JIT code before stacks that break off, because the switch that adds the names may also fix
/// the stacks. If the runtime can write names, they also come before stripped files, which the user usually can't fix.
fn names_first(found: &mut Vec<Finding>) {
    let lacks = |finding: &Finding| lacks_names(&finding.problem) && finding.is_significant();
    let Some(at) = found.iter().position(lacks) else { return };
    let runtime = found[at].problem.process().and_then(|process| process.runtime);
    let can_be_told = runtime.is_some_and(|runtime| !runtime.switches.is_empty());
    let yields = |finding: &Finding| match &finding.problem {
        Problem::Stripped { .. } | Problem::StrippedPackages { .. } | Problem::Symbolless { .. } => can_be_told,
        problem => problem.is_of_stacks(),
    };
    if let Some(to) = found[..at].iter().position(yields) {
        let first = found.remove(at);
        found.insert(to, first);
    }
}

/// True if JIT code has no names, because no file names it or the file can't be used.
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
fn follow_from_others(found: &mut Vec<Finding>) {
    let significant = |finding: &&Finding| finding.is_significant();
    // A stack that breaks off is often continued at addresses that aren't code.
    let broken = |finding: &Finding| {
        use OfProcess::{FramePointers, JvmFramePointers};
        matches!(finding.problem, Problem::OfProcess(_, FramePointers { .. } | JvmFramePointers { .. }))
    };
    let breaks = found.iter().filter(significant).any(broken);
    // If nothing reports a runtime's code, only its interpreter appears in the profile.
    let lacking = found.iter().filter(significant).filter(|finding| lacks_names(&finding.problem));
    let unnamed: FxHashSet<_> =
        lacking.filter_map(|finding| finding.problem.process().map(|process| process.pid)).collect();
    found.retain(|finding| match &finding.problem {
        Problem::Nowhere { .. } => !breaks,
        Problem::OfProcess(process, OfProcess::Interpreted { .. }) => !unnamed.contains(&process.pid),
        _ => true,
    });
}
