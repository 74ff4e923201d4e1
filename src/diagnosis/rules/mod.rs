//! The possible findings: one file for each part of a recording that may be wrong.

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

/// All that is wrong, what distorts most first.
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

/// The findings about several processes of one runtime are one finding, of the process that it distorts most of.
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

/// True if a process did not receive the switch that the recorded command has: what helps it is another thing.
fn is_without_switch(problem: &Problem) -> bool {
    use OfProcess::{Interpreted, Silent};
    matches!(problem, Problem::OfProcess(_, Silent { elsewhere: Some(_), .. } | Interpreted { elsewhere: Some(_), .. }))
}

/// Without call chains, whatever else is reported is reported about innermost functions alone.
fn chains_first(found: &mut Vec<Finding>) {
    if let Some(at) = found.iter().position(|finding| matches!(finding.problem, Problem::NoCallChains)) {
        let chains = found.remove(at);
        found.insert(0, chains);
    }
}

/// Missing names of JIT code come before stacks that break off: what brings the names may mend the stacks, too. If a
/// runtime can write them, they come before stripped files, which nobody mends who records.
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

/// True if JIT code has no names for it: there is nothing that names it, or it cannot be used.
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

/// Takes out what only follows from something else that was found.
fn follow_from_others(found: &mut Vec<Finding>) {
    let significant = |finding: &&Finding| finding.is_significant();
    // Stacks that break off go on at addresses that are none.
    let broken = |finding: &Finding| {
        use OfProcess::{FramePointers, JvmFramePointers};
        matches!(finding.problem, Problem::OfProcess(_, FramePointers { .. } | JvmFramePointers { .. }))
    };
    let breaks = found.iter().filter(significant).any(broken);
    // If nothing reports a runtime's code, its interpreter is all that is seen.
    let lacking = found.iter().filter(significant).filter(|finding| lacks_names(&finding.problem));
    let unnamed: FxHashSet<_> =
        lacking.filter_map(|finding| finding.problem.process().map(|process| process.pid)).collect();
    found.retain(|finding| match &finding.problem {
        Problem::Nowhere { .. } => !breaks,
        Problem::OfProcess(process, OfProcess::Interpreted { .. }) => !unnamed.contains(&process.pid),
        _ => true,
    });
}
