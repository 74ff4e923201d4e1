//! Finds the problems of a recording. Each file in this folder looks for one area of problems.

mod files;
mod interpreted;
mod jit;
mod neighbors;
mod source_maps;
mod stacks;
mod whole;

pub(super) use files::{NamedFile, is_packaged, stripped, stripped_packages};
pub(super) use interpreted::{Attempt, interpreted};
pub(super) use jit::{no_dump_or_map, report_missing_dump, source_incomplete, source_of_other_run};
pub(super) use stacks::jvm_frame_pointers;

use super::context::DoctorContext;
use super::correction;
use super::finding::Finding;
use super::kind::FindingKind;
use rustc_hash::FxHashSet;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Finds all problems of the recording, and lists those that affect the largest part of it first. There are two
/// exceptions to this order: a problem whose solution may solve others is moved before them (`move_names_up`), and
/// missing call chains always come first (`move_chains_up`). `damage` describes the part of the recording that could
/// not be read.
pub(super) fn findings(context: DoctorContext<'_>, damage: Option<String>) -> Vec<Finding> {
    let mut found = whole::findings(context, damage);
    found.extend(jit::findings(context));
    found.extend(interpreted::findings(context));
    found.extend(stacks::findings(context));
    found.extend(files::findings(context));
    found.extend(source_maps::findings(context));
    let mut found = merge_similar(found);
    found.sort_by(|one, other| other.share.impact.partial_cmp(&one.share.impact).unwrap_or(Ordering::Equal));
    remove_consequences(&mut found);
    move_names_up(&mut found);
    move_chains_up(&mut found);
    // Last, because each command takes all findings that remain into account.
    correction::add_commands(&mut found, context);
    found
}

/// Merges findings of the same kind about several processes of the same runtime into one finding.
fn merge_similar(found: Vec<Finding>) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::new();
    // The indexes in `merged`, by kind of finding, runtime, and whether a switch reached only another process: with
    // such a switch, the remedy is another one, so these findings stay separate.
    let mut indexes: HashMap<(FindingKind, &str, bool), usize> = HashMap::new();
    for finding in found {
        let Some(process) = &finding.process else {
            merged.push(finding);
            continue;
        };
        let runtime = process.runtime.map_or("", |runtime| runtime.name);
        match indexes.entry((finding.kind, runtime, finding.lost_switch.is_some())) {
            Entry::Occupied(index) => merged[*index.get()].merge(finding),
            Entry::Vacant(index) => {
                index.insert(merged.len());
                merged.push(finding);
            }
        }
    }
    merged
}

/// Moves the finding about missing call chains to the front: without call chains, all other findings are based on the
/// innermost functions only.
fn move_chains_up(found: &mut Vec<Finding>) {
    if let Some(index) = found.iter().position(|finding| finding.kind == FindingKind::NoCallChains) {
        let chains = found.remove(index);
        found.insert(0, chains);
    }
}

/// Moves the first finding about missing names of JIT code before those about stacks that break off, because the switch
/// that adds the names may also fix the stacks. If the runtime can write names, the finding also comes before those
/// about stripped files, which the user usually can't fix.
fn move_names_up(found: &mut Vec<Finding>) {
    let lacks_names = |finding: &Finding| finding.kind.is_about_names() && finding.is_significant();
    let Some(index) = found.iter().position(lacks_names) else { return };
    let runtime = found[index].process.as_ref().and_then(|process| process.runtime);
    let can_write_names = runtime.is_some_and(|runtime| !runtime.switches.is_empty());
    let comes_after =
        |finding: &Finding| finding.kind.is_about_stacks() || (can_write_names && finding.kind.is_about_symbols());
    if let Some(target) = found[..index].iter().position(comes_after) {
        let finding = found.remove(index);
        found.insert(target, finding);
    }
}

/// Removes findings that are only consequences of other findings, so that users don't look for a second cause. Minor
/// findings aren't a reason to remove others.
fn remove_consequences(found: &mut Vec<Finding>) {
    let mut has_broken_chains = false;
    let mut unnamed_pids = FxHashSet::default();
    for finding in found.iter().filter(|finding| finding.is_significant()) {
        has_broken_chains |= matches!(finding.kind, FindingKind::FramePointers | FindingKind::JvmFramePointers);
        if finding.kind.is_about_names() {
            unnamed_pids.extend(finding.process.as_ref().map(|process| process.pid));
        }
    }
    found.retain(|finding| match (finding.kind, &finding.process) {
        // Where a stack breaks off for lack of frame pointers, its outermost frames are often arbitrary addresses.
        // These aren't a problem of their own.
        (FindingKind::Nowhere, _) => !has_broken_chains,
        // If the JIT code of a process has no names, only the functions of its runtime's interpreter do. That doesn't
        // mean that the process interpreted most of the time.
        (FindingKind::Interpreted, Some(process)) => !unnamed_pids.contains(&process.pid),
        _ => true,
    });
}
