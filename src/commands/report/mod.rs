//! `report` shows as a table where the time went: by function, by groups of samples, as a call tree, or as changes
//! since an earlier profile.

mod calls;
mod cycles;
mod diff;
mod header;
mod list;
mod options;
mod scene;
mod tree;

pub use options::{Limit, Order, Reader, ReportOptions, Rows, Selection};

use crate::analysis::call_graph::CallGraph;
use crate::analysis::pairing::align;
use crate::error::{Error, Result};
use crate::io::Run;
use crate::model::stacks::{Keep, Series};
use crate::pipeline::any::load;
use crate::pipeline::outputs::each_event;
use crate::pipeline::table::Layout;
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};
use scene::{Scene, whole};
use unicode_width::UnicodeWidthStr;

/// Writes the table for each event.
pub fn run(options: &ReportOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    let profile = load(&options.inputs, Keep::Sums, &options.load, job, &mut outcome)?;
    let before = match &options.rows {
        Rows::Changes(before) => {
            let before = load(std::slice::from_ref(before), Keep::Sums, &options.load, job, &mut outcome)?;
            Some(align(&before, &profile, options.compare.exact_names))
        }
        _ => None,
    };
    let nothing = Series::default();
    let said = if job.quiet { 0 } else { lines_said(&outcome, options.reader.style.width) };
    let mut shows_stacks = false;
    each_event(&profile, &options.output, &run, &mut outcome, |at, out| {
        let series = profile.series.get(at).unwrap_or(&nothing);
        let uses_calls = matches!(
            options.rows,
            Rows::Functions | Rows::Changes(_) | Rows::Callers(_) | Rows::Callees(_) | Rows::Cycles
        );
        let graph = uses_calls.then(|| CallGraph::of(&profile, series)).flatten();
        shows_stacks |= graph.is_none();
        let whole = whole(series, options.weight);
        let scene = Scene { profile: &profile, series, graph: graph.as_ref(), whole, options, said };
        let part = match (&options.rows, &before) {
            (Rows::Callers(name) | Rows::Callees(name), _) if let Some(graph) = &graph => {
                calls::report(&scene, graph, name)?
            }
            (Rows::Cycles, _) => match &graph {
                Some(graph) => cycles::report(&scene, graph),
                None => {
                    return Err(Error::new("states no calls, which cycles are made of: only callgrind's profiles do"));
                }
            },
            (Rows::Changes(_), Some(before)) => diff::report(&scene, before)?,
            (Rows::Tree | Rows::Callers(_) | Rows::Callees(_), _) => tree::report(&scene)?,
            (Rows::Groups(keys), _) => list::report(&scene, Some(keys))?,
            _ => list::report(&scene, None)?,
        };
        let part = part.fitted(options);
        match options.layout {
            Layout::Text => part.write(options, out),
            Layout::Csv | Layout::Json => write_text(out, |out| part.write(options, out)),
        }
    })?;
    if !shows_stacks {
        outcome.estimates.clear();
    }
    Ok(outcome)
}

/// How many terminal lines the messages on stderr will take. The table must leave room for them.
fn lines_said(outcome: &Outcome, width: Option<usize>) -> usize {
    let warnings = outcome.warnings.iter().map(|warning| format!("warning: {warning}"));
    let said = warnings.chain(outcome.summary.iter().cloned());
    said.map(|line| width.map_or(1, |width| line.width().div_ceil(width.max(1)))).sum()
}
