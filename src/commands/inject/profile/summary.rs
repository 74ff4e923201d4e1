//! What was done, in figures.

use super::answers::AddressCounts;
use crate::commands::inject::options::InjectOptions;
use crate::model::frame_counts::FrameCounts;
use crate::pipeline::Outcome;
use crate::sources::{Kind, Loaded, SourceState};

/// Tells it.
pub(super) fn tell(loaded: &Loaded<'_>, counts: &AddressCounts, options: &InjectOptions, outcome: &mut Outcome) {
    outcome.warnings.extend(counts.warnings());
    let AddressCounts { asked, named, .. } = *counts;
    outcome.frames += FrameCounts { jit: asked, jit_unnamed: asked - named, ..FrameCounts::default() };
    let (dumps, maps) = (count_loaded(loaded, Kind::JitDump), count_loaded(loaded, Kind::PerfMap));
    let (functions, processes) = (loaded.map.code_count(), loaded.map.pids().count());
    let summary = &mut outcome.summary;
    summary.push(format!(
        "{functions} functions of {processes} processes loaded from {dumps} jitdumps and {maps} perf maps"
    ));
    summary.extend(loaded.remarks());
    let to = options.output.shown();
    summary.push(match asked {
        0 => format!("{}: no address in a place of JIT code lacks a name", to.display()),
        _ => {
            let percent = named as f64 * 100.0 / asked as f64;
            format!("{}: {named} of {asked} addresses without a name have one now ({percent:.1} %)", to.display())
        }
    });
}

fn count_loaded(loaded: &Loaded<'_>, kind: Kind) -> usize {
    let is_loaded = |state: &SourceState| matches!(state, SourceState::Loaded { .. });
    loaded.accounts.iter().filter(|account| account.kind == kind && is_loaded(&account.state)).count()
}
