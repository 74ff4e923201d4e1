//! The data of a recording beyond stacks, collected while its files are open.

use super::findings::{self, Findings};
use super::jit::Compiled;
use super::names::PageNames;
use crate::annotation::hot::hot_code;
use crate::annotation::{CodeOptions, HotCode};
use crate::error::Warnings;
use crate::model::Nanos;
use crate::model::stacks::Weight;
use crate::pipeline::Job;
use crate::pipeline::any::LoadOptions;
use crate::pipeline::recording::Examined;
use crate::resolve::disasm::Syntax;
use crate::resolve::symbols::SymbolOptions;
use std::path::PathBuf;

/// Asks for this many code ranges, the hottest.
pub(super) fn hottest(limit: usize) -> CodeOptions {
    CodeOptions {
        function: None,
        limit: Some(limit),
        by_name: false,
        codes: usize::MAX,
        weight: Weight::Period,
        syntax: Syntax::Att,
    }
}

/// One recording.
#[derive(Debug)]
pub(super) struct Recorded {
    /// The file.
    pub(super) path: PathBuf,
    /// The way it spells names.
    pub(super) names: PageNames,
    /// Its hottest code.
    pub(super) code: Option<HotCode>,
    /// The code that its runtimes compiled.
    pub(super) compiled: Compiled,
    /// The findings.
    pub(super) findings: Findings,
}

impl Recorded {
    /// Requests this many code ranges.
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
        let compiled = Compiled::new(examined, &names, job);
        let findings = findings::of(examined);
        let path = examined.resolution.survey.path.to_owned();
        Self { path, names, code, compiled, findings }
    }

    /// Moves all times to a clock that is ahead by `shift` nanoseconds, as those of input number `input`.
    pub(super) fn move_to(&mut self, input: u32, shift: u64) {
        self.compiled.move_to(input, shift);
        let listings = self.code.iter_mut().flat_map(|code| &mut code.annotation.listings);
        for version in listings.flat_map(|listing| &mut listing.versions) {
            version.loaded = version.loaded.map(|time| Nanos(time.0 + shift));
        }
    }
}
