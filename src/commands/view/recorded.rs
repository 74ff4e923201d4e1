//! The data of a recording beyond stacks, collected while its files are open.

use super::findings::{self, Findings};
use super::jit::Compiled;
use super::names::PageNames;
use crate::annotation::hot::hot_code;
use crate::annotation::{CodeOptions, HotCode};
use crate::error::Warnings;
use crate::model::stacks::Weight;
use crate::pipeline::Job;
use crate::pipeline::any::LoadOptions;
use crate::pipeline::recording::Examined;
use crate::resolve::disasm::Syntax;
use crate::resolve::symbols::SymbolOptions;

/// One recording.
#[derive(Debug)]
pub(super) struct Recorded {
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
        let options = CodeOptions {
            function: None,
            limit: Some(limit),
            by_name: false,
            codes: usize::MAX,
            weight: Weight::Period,
            syntax: Syntax::Att,
        };
        let code = (limit > 0).then(|| hot_code(examined, &options, &symbols, job, warnings));
        let compiled = Compiled::new(examined, &names, job);
        let findings = findings::of(examined);
        Self { names, code, compiled, findings }
    }
}
