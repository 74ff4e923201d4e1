//! `report`: the hottest functions of any input, as a table.

use crate::error::Result;
use crate::io::{InPath, OutPath, Run};
use crate::model::functions::{Function, functions};
use crate::model::stacks::{FrameKind, Keep, Profile, Series, Weight};
use crate::pipeline::any::{LoadOptions, load};
use crate::pipeline::outputs::each_event;
use crate::pipeline::table::{Cell, Layout, Table};
use crate::pipeline::{Job, Outcome};
use std::cmp::Reverse;

/// What to tell, and how.
#[derive(Debug)]
pub struct ReportOptions {
    /// What to read; several are merged.
    pub inputs: Vec<InPath>,
    /// Where to write.
    pub output: OutPath,
    /// How to read.
    pub load: LoadOptions,
    /// What to sum.
    pub weight: Weight,
    /// By what to sort.
    pub sort: Sort,
    /// How many rows at most.
    pub limit: Option<usize>,
    /// Text, CSV or JSON.
    pub layout: Layout,
}

/// By what rows are sorted; ties by the other weight, then by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Weight of its own, heaviest first.
    Own,
    /// Weight with callees, heaviest first.
    Total,
    /// Samples that end in it, most first.
    Samples,
    /// Module, then own weight.
    Module,
    /// Name.
    Symbol,
}

/// Reports.
pub fn run(options: &ReportOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    let profile = load(&options.inputs, Keep::Sums, &options.load, job, &mut outcome)?;
    each_event(&profile, &options.output, &run, &mut outcome, |at, out| match profile.series.get(at) {
        Some(series) => table(&profile, series, options).write(options.layout, out),
        None => Table::new(COLUMNS).write(options.layout, out),
    })?;
    Ok(outcome)
}

const COLUMNS: &[&str] = &["self%", "total%", "self", "total", "samples", "kind", "module", "symbol", "source"];

fn table(profile: &Profile, series: &Series, options: &ReportOptions) -> Table {
    let mut functions = functions(profile, series, options.weight);
    let module = |function: &Function| function.module.map_or(&b""[..], |module| profile.name_of(module));
    functions.sort_by(|a, b| {
        let heavy = |f: &Function| (Reverse(f.own), Reverse(f.total));
        let order = match options.sort {
            Sort::Own => heavy(a).cmp(&heavy(b)),
            Sort::Total => (Reverse(a.total), Reverse(a.own)).cmp(&(Reverse(b.total), Reverse(b.own))),
            Sort::Samples => Reverse(a.own_count).cmp(&Reverse(b.own_count)).then(heavy(a).cmp(&heavy(b))),
            Sort::Module => module(a).cmp(module(b)).then(heavy(a).cmp(&heavy(b))),
            Sort::Symbol => a.name.cmp(&b.name),
        };
        order.then_with(|| (&a.name, module(a)).cmp(&(&b.name, module(b))))
    });
    let whole = series.rows.iter().fold(0u64, |sum, row| sum.saturating_add(options.weight.of(row)));
    let mut table = Table::new(COLUMNS);
    for function in functions.iter().take(options.limit.unwrap_or(usize::MAX)) {
        table.rows.push(row(profile, function, whole));
    }
    table
}

fn row(profile: &Profile, function: &Function, whole: u64) -> Vec<Cell> {
    let percent = |part: u64| Cell::Percent(if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 });
    let text = |id| String::from_utf8_lossy(profile.name_of(id)).into_owned();
    let kind = match function.kind {
        FrameKind::User => "user",
        FrameKind::Kernel => "kernel",
        FrameKind::Jit => "jit",
        FrameKind::Inlined => "inlined",
        FrameKind::Unknown => "unknown",
    };
    let source = function.source.map(|(file, line)| match line {
        0 => text(file),
        line => format!("{}:{line}", text(file)),
    });
    vec![
        percent(function.own),
        percent(function.total),
        Cell::Count(function.own),
        Cell::Count(function.total),
        Cell::Count(function.own_count),
        Cell::Text(kind.to_owned()),
        Cell::Text(function.module.map_or_else(String::new, text)),
        Cell::Text(function.name.clone()),
        source.map_or(Cell::None, Cell::Text),
    ]
}
