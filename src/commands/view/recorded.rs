//! What a recording tells beyond stacks, asked for while its files are open.

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
    /// How it spells names.
    pub(super) names: PageNames,
    /// Its hottest code.
    pub(super) code: Option<HotCode>,
    /// What its runtimes compiled.
    pub(super) compiled: Compiled,
    /// What is wrong with it.
    pub(super) findings: Findings,
}

impl Recorded {
    /// Asks for so many pieces of code.
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
