//! What the page shows of a recording in addition to its stacks: listings of hot code, compiled code, and findings. All
//! of it is collected while the recording's files are open.

use super::findings::{self, Findings};
use super::jit::CompiledCode;
use super::names::PageNames;
use crate::annotate::recording::hot_code;
use crate::annotate::{CodeOptions, HotCode};
use crate::error::Warnings;
use crate::model::Nanos;
use crate::model::stacks::Weight;
use crate::pipeline::Job;
use crate::pipeline::any::LoadOptions;
use crate::pipeline::recording::Examined;
use crate::symbolize::disasm::Syntax;
use crate::symbolize::symbols::SymbolOptions;
use std::path::PathBuf;

/// Options that request listings of the `limit` hottest code ranges.
pub(super) fn hottest(limit: usize) -> CodeOptions {
    CodeOptions {
        function: None,
        limit: Some(limit),
        // Without selection by name, each code range counts toward `limit`, and `codes` has no effect.
        by_name: false,
        codes: usize::MAX,
        weight: Weight::Period,
        syntax: Syntax::Att,
    }
}

/// Data of one recording that the page shows in addition to the profile.
#[derive(Debug)]
pub(super) struct RecordingData {
    /// The recording's path. It says which input the data belongs to.
    pub(super) path: PathBuf,
    pub(super) names: PageNames,
    /// The hottest code as instructions. `None` if no code was requested.
    pub(super) code: Option<HotCode>,
    /// All code that the runtimes of the recording's processes compiled.
    pub(super) compiled: CompiledCode,
    pub(super) findings: Findings,
}

impl RecordingData {
    /// Collects what the page shows about a recording besides its samples: the hottest code, all compiled code, and
    /// doctor's findings. `limit` is the maximum number of code ranges to list as instructions.
    pub(super) fn new(
        examined: &Examined<'_>,
        load: &LoadOptions,
        limit: usize,
        job: &Job,
        warnings: &mut Warnings,
    ) -> Self {
        let search = examined.resolution.search().clone();
        let symbols = SymbolOptions { search, ..load.recording().symbols };
        let names = PageNames::new(examined, load.jit_names.resolved, &symbols);
        let options = hottest(limit);
        let code = (limit > 0).then(|| hot_code(examined, &options, &symbols, job, warnings));
        let compiled = CompiledCode::new(examined, &names, job);
        let findings = findings::collect(examined);
        let path = examined.resolution.survey.path.to_owned();
        Self { path, names, code, compiled, findings }
    }

    /// Adds `shift` nanoseconds to all times, and marks the data as belonging to the input with this index.
    pub(super) fn move_to(&mut self, input: u32, shift: u64) {
        self.compiled.move_to(input, shift);
        let listings = self.code.iter_mut().flat_map(|code| &mut code.annotation.listings);
        for version in listings.flat_map(|listing| &mut listing.versions) {
            version.loaded = version.loaded.map(|time| Nanos(time.0 + shift));
        }
    }
}
