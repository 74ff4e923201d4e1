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
use crate::analysis::groups::Grouping;
use crate::analysis::pairing::align;
use crate::error::{Error, Result};
use crate::io::{Output, Run};
use crate::model::stacks::{Keep, Profile, Series};
use crate::pipeline::any::load;
use crate::pipeline::outputs::{commit, each_event_named};
use crate::pipeline::table::{Cell, Layout, Table};
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};
use list::FUNCTION;
use scene::{Report, Scene, whole};
use std::io::Write;
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
    let lines_above = if job.quiet { 0 } else { message_lines(&outcome, options.reader.style.width) };
    // Events with only negative weights aren't empty: tables show negative weights, too.
    let events: Vec<usize> = (0..profile.series.len()).filter(|&event| !profile.series[event].is_empty()).collect();
    let keys = if let Rows::Groups(keys) = &options.rows { keys } else { FUNCTION };
    if let Rows::Groups(keys) = &options.rows
        && !events.is_empty()
    {
        outcome.summary.extend(list::check_keys(&profile, keys)?);
    }
    let grouping = Grouping::new(&profile, keys, options.unnamed);
    let mut builder = ReportBuilder {
        profile: &profile,
        before: before.as_ref(),
        places: grouping.namesake_locations(&profile),
        grouping,
        options,
        lines_above,
        shows_stacks: false,
    };
    // If the output is a stream, it gets the tables of all events one after another. Otherwise, each event has a file
    // of its own.
    if events.len() > 1 && options.output.is_stream() {
        builder.write_all(&events, &run, &mut outcome)?;
    } else {
        let mut named: Vec<(usize, &str)> = events.iter().map(|&event| (event, &*profile.series[event].name)).collect();
        // Without samples, there is no event. A report on an event without a name gives an empty table.
        if named.is_empty() {
            named.push((0, ""));
        }
        each_event_named(named, &options.output, &run, &mut outcome, |event, out| {
            let report = builder.report(event)?.with_event(&profile, event, events.len() > 1, options.layout);
            write_reports(&[report], options, out)
        })?;
    }
    // Loading may have left a remark that the stacks are estimates. If all tables are of recorded calls, which don't
    // use stacks, the remark doesn't apply and is dropped.
    if !builder.shows_stacks {
        outcome.estimates.clear();
    }
    Ok(outcome)
}

/// A profile, and the options for the report about each of its events.
struct ReportBuilder<'a> {
    profile: &'a Profile,
    /// The earlier profile to compare with. `None` unless a comparison was requested.
    before: Option<&'a Profile>,
    options: &'a ReportOptions,
    /// What the rows of all tables stand for. Computed once, because a profile may have thousands of events.
    grouping: Grouping,
    /// For each frame part of `grouping`, the source location that distinguishes its function from others of the same
    /// name, as in [`Scene::places`].
    places: Vec<Option<String>>,
    /// The number of terminal lines that messages on stderr take. On a terminal, the table leaves room for them.
    lines_above: usize,
    /// True if any table was computed from stacks rather than from calls that the input states.
    shows_stacks: bool,
}

impl ReportBuilder<'_> {
    /// Makes the report for the event with this index. If there is no such event, the report is that of an event
    /// without samples.
    fn report(&mut self, event: usize) -> Result<Report> {
        let (profile, options, nothing) = (self.profile, self.options, Series::default());
        let series = profile.series.get(event).unwrap_or(&nothing);
        // A table about whole functions is made from the calls that the input states. A tree and groups by other keys
        // need stacks.
        let uses_calls = matches!(
            options.rows,
            Rows::Functions | Rows::Changes(_) | Rows::Callers(_) | Rows::Callees(_) | Rows::Cycles
        );
        let graph = if uses_calls { CallGraph::from_series(profile, series) } else { None };
        self.shows_stacks |= graph.is_none();
        let whole = whole(series, options.weight);
        let scene = Scene {
            profile,
            series,
            grouping: &self.grouping,
            places: &self.places,
            graph: graph.as_ref(),
            whole,
            options,
            lines_above: self.lines_above,
        };
        let report = match (&options.rows, self.before) {
            // Callers and callees are taken from the stated calls, if there are any, and otherwise from the stacks
            // (`tree`).
            (Rows::Callers(name) | Rows::Callees(name), _) if let Some(graph) = &graph => {
                calls::report(&scene, graph, name)?
            }
            (Rows::Cycles, _) => match &graph {
                Some(graph) => cycles::report(&scene, graph),
                None => {
                    let message = "cannot find cycles: the input does not say which functions call each other; only \
                                   callgrind profiles do";
                    return Err(Error::new(message));
                }
            },
            (Rows::Changes(_), Some(before)) => diff::report(&scene, before)?,
            (Rows::Tree | Rows::Callers(_) | Rows::Callees(_), _) => tree::report(&scene)?,
            (Rows::Groups(keys), _) => list::report(&scene, Some(keys))?,
            // A list of functions. (`Rows::Changes` doesn't get here: `before` is set for it.)
            _ => list::report(&scene, None)?,
        };
        let report = report.fitted(&scene);
        match options.selection.percent {
            // An empty table is an error, but not if profiles are compared: that no function has such a share is then a
            // valid answer.
            Some(limit) if report.table.rows.is_empty() && !series.is_empty() && self.before.is_none() => {
                Err(Error::new(format!("no row has {limit}% or more, so --percent-limit {limit} leaves nothing")))
            }
            _ => Ok(report),
        }
    }

    /// Writes the reports of all events to the output. In text, there is one table per event; in CSV and JSON, a single
    /// table. Events for which the filters leave nothing are omitted. If that is true of all events, it is an error.
    fn write_all(&mut self, events: &[usize], run: &Run, outcome: &mut Outcome) -> Result<()> {
        let mut reports = Vec::new();
        let mut first_error = None;
        for &event in events {
            match self.report(event) {
                Ok(report) => reports.push(report.with_event(self.profile, event, true, self.options.layout)),
                // A wrong flag is wrong for all events.
                Err(error) if error.is_usage() => return Err(error),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        if reports.is_empty()
            && let Some(error) = first_error
        {
            return Err(error);
        }
        let mut out = Output::create(&self.options.output, run)?;
        write_reports(&reports, self.options, &mut out)?;
        commit(out, outcome)
    }
}

/// The version of the JSON format, which each row states. It increases when a key is removed or changes its meaning.
const VERSION: u64 = 1;

/// Writes the reports of one or more events. In formats for programs (CSV, JSON) they form a single table. `reports`
/// must not be empty.
fn write_reports(reports: &[Report], options: &ReportOptions, out: &mut Output) -> Result<()> {
    if options.layout != Layout::Text {
        let mut all = Table { columns: reports[0].table.columns.clone(), ..Table::default() };
        all.rows = reports.iter().flat_map(|report| report.table.rows.iter().cloned()).collect();
        if options.layout == Layout::Json {
            all.insert_column(0, "version", &Cell::Count(VERSION));
        }
        return write_text(out, |out| all.write(options.layout, out));
    }
    for (index, report) in reports.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        report.write(options, out)?;
    }
    Ok(())
}

/// The number of terminal lines that the messages on stderr will take. The table must leave room for them.
fn message_lines(outcome: &Outcome, width: Option<usize>) -> usize {
    let warnings = outcome.warnings.iter().map(|warning| format!("warning: {warning}"));
    let lines = warnings.chain(outcome.summary.iter().cloned());
    lines.map(|line| width.map_or(1, |width| line.width().div_ceil(width.max(1)))).sum()
}
