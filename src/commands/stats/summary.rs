//! Summaries of measureme profiles by label: of one profile, the sum of several, the difference of two, and the
//! variation between runs.

use super::options::Compare;
use super::tables::{ARTIFACTS, TitledTables, formats_with};
use crate::analysis::timeline::{LabelSummary, LabelTotals, Tally};
use crate::error::{Error, Result, Warnings};
use crate::io::InPath;
use crate::pipeline::open::{Opened, shown};
use crate::pipeline::spans::read_spans;
use crate::pipeline::table::{Cell, Table};
use crate::pipeline::{Job, Outcome};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Sums the totals of all inputs by label, and the sizes of their artifacts by name. Returns the tables of the sums.
/// `first` is the first input, already open.
pub(super) fn merge(first: Opened, inputs: &[InPath], job: &Job, outcome: &mut Outcome) -> Result<TitledTables> {
    let mut first = Some(first);
    let mut merged = LabelSummary::default();
    for path in inputs {
        let summary = summarize_input(path, first.take(), job, outcome)?;
        for (label, totals) in summary.labels {
            add(merged.labels.entry(label).or_default(), &totals);
        }
        for (name, size) in summary.artifacts {
            *merged.artifacts.entry(name).or_default() += size;
        }
        merged.total = merged.total.saturating_add(summary.total);
    }
    Ok(tables(&merged))
}

/// Compares the inputs: the difference of two, or the variation between any number of runs. Fails if a difference was
/// requested and there aren't two inputs.
pub(super) fn compare(compare: Compare, inputs: &[InPath], job: &Job, outcome: &mut Outcome) -> Result<TitledTables> {
    if compare == Compare::Diff && inputs.len() != 2 {
        return Err(Error::usage(format!("--diff compares two inputs, not {}", inputs.len())));
    }
    let mut summaries = Vec::with_capacity(inputs.len());
    for path in inputs {
        summaries.push(summarize_input(path, None, job, outcome)?);
    }
    match &summaries[..] {
        [base, changed] if compare == Compare::Diff => Ok(diff(base, changed)),
        runs => Ok(variation(runs)),
    }
}

/// Reads one input and summarizes it by label. Fails if the input's format has no labels. `opened` is the input if it
/// is already open.
fn summarize_input(path: &InPath, opened: Option<Opened>, job: &Job, outcome: &mut Outcome) -> Result<LabelSummary> {
    let mut warnings = Warnings::new();
    let summary = opened.map_or_else(|| Opened::open(path, job), Ok).and_then(|opened| {
        let format = opened.format();
        match format.read.spans().and_then(|readers| readers.summary) {
            Some(summarize) => read_spans(opened, job, |input| summarize(input, &mut warnings)),
            None => {
                let error = Error::new(format!(
                    "{} cannot be summarized by label; only these can: {}",
                    format.name,
                    formats_with(|readers| readers.summary.is_some())
                ));
                Err(error.with_remedy(Some("jitgraft report --diff BEFORE AFTER compares any two profiles".to_owned())))
            }
        }
    });
    outcome.warnings.append(warnings.in_file(&shown(path)));
    summary.map_err(|error| error.in_file(&shown(path)))
}

/// Adds the totals of a label to a sum.
fn add(sum: &mut LabelTotals, item: &LabelTotals) {
    sum.self_time += item.self_time;
    sum.time += item.time;
    sum.count += item.count;
    sum.cache_hits += item.cache_hits;
    sum.cache_misses += item.cache_misses;
    sum.blocked += item.blocked;
    sum.load += item.load;
    sum.hash += item.hash;
}

/// The columns of a table of labels. Times are in the recording's unit.
const COLUMNS: &[&str] =
    &["item", "self", "self%", "time", "count", "cache_hits", "cache_misses", "blocked", "incr_load", "incr_hash"];

/// The tables of a summary: labels by self time, and sizes of artifacts.
fn tables(summary: &LabelSummary) -> TitledTables {
    let percent = |part: i64| match summary.total {
        0 => Cell::None,
        total => Cell::Percent(part as f64 * 100.0 / total as f64),
    };
    let mut items: Vec<_> = summary.labels.iter().collect();
    items.sort_by_key(|(_, item)| Reverse(item.self_time));
    let mut table = Table::new(COLUMNS);
    let mut all = LabelTotals::default();
    for (label, item) in items {
        add(&mut all, item);
        table.rows.push(row(label, item, percent(item.self_time)));
    }
    let total = i64::try_from(summary.total).unwrap_or(i64::MAX);
    // The total time is that from the first to the last event of each thread. It is more than the self time of all
    // labels, because it includes time that no event covers.
    let total_row = LabelTotals { time: total, ..all };
    table.rows.insert(0, row(b"TOTAL", &total_row, percent(total_row.self_time)));
    let mut tables = vec![("summary".to_owned(), table)];
    let mut artifacts: Vec<_> = summary.artifacts.iter().collect();
    artifacts.sort_by_key(|(_, size)| Reverse(**size));
    let mut table = Table::new(&["artifact", "bytes"]);
    table.rows.extend(artifacts.iter().map(|(name, size)| vec![text(name), Cell::Count(**size)]));
    tables.push((ARTIFACTS.to_owned(), table));
    tables
}

fn text(label: &[u8]) -> Cell {
    Cell::text(String::from_utf8_lossy(label).into_owned())
}

/// The row of a label, in the order of [`COLUMNS`]. `percent` is its share of the total.
fn row(label: &[u8], item: &LabelTotals, percent: Cell) -> Vec<Cell> {
    vec![
        text(label),
        Cell::Signed(item.self_time),
        percent,
        Cell::Signed(item.time),
        Cell::Count(item.count),
        Cell::Count(item.cache_hits),
        Cell::Count(item.cache_misses),
        Cell::Signed(item.blocked),
        Cell::Signed(item.load),
        Cell::Signed(item.hash),
    ]
}

/// The tables of changes from one summary to another: labels, sorted by how much their self time changed, and sizes of
/// artifacts. Labels without a change are left out.
fn diff(base: &LabelSummary, changed: &LabelSummary) -> TitledTables {
    vec![("change".to_owned(), label_changes(base, changed)), (ARTIFACTS.to_owned(), artifact_changes(base, changed))]
}

/// The table of labels whose totals differ between two summaries, the largest change of self time first.
fn label_changes(base: &LabelSummary, changed: &LabelSummary) -> Table {
    let none = LabelTotals::default();
    let labels: BTreeSet<_> = base.labels.keys().chain(changed.labels.keys()).collect();
    let mut changes = Vec::new();
    for label in labels {
        let old = base.labels.get(label).unwrap_or(&none);
        let new = changed.labels.get(label).unwrap_or(&none);
        if old != new {
            changes.push((label, old, new));
        }
    }
    changes.sort_by_key(|(_, old, new)| Reverse((new.self_time - old.self_time).unsigned_abs()));
    let mut table = Table::new(COLUMNS);
    table.rows.push(difference(b"TOTAL", &total_times(base), &total_times(changed)));
    for (label, old, new) in changes {
        table.rows.push(difference(label, old, new));
    }
    table
}

/// The self time and time of all labels together. The other totals of labels (counts, cache hits and so on) are not
/// added up.
fn total_times(summary: &LabelSummary) -> LabelTotals {
    LabelTotals {
        self_time: summary.labels.values().map(|item| item.self_time).sum(),
        time: i64::try_from(summary.total).unwrap_or(i64::MAX),
        ..LabelTotals::default()
    }
}

/// The table of the sizes of all artifacts in two summaries. An artifact that a summary lacks has size 0 there.
fn artifact_changes(base: &LabelSummary, changed: &LabelSummary) -> Table {
    let names: BTreeSet<_> = base.artifacts.keys().chain(changed.artifacts.keys()).collect();
    let mut table = Table::new(&["artifact", "bytes"]);
    for name in names {
        let old = base.artifacts.get(name).copied().unwrap_or(0);
        let new = changed.artifacts.get(name).copied().unwrap_or(0);
        table.rows.push(vec![text(name), change(old, new)]);
    }
    table
}

/// The difference of two counts.
fn change(old: u64, new: u64) -> Cell {
    Cell::Signed(new.wrapping_sub(old).cast_signed())
}

/// The row with the changes of a label, in the order of [`COLUMNS`]. The percentage is the growth of its self time.
fn difference(label: &[u8], old: &LabelTotals, new: &LabelTotals) -> Vec<Cell> {
    let percent = match old.self_time {
        0 => Cell::None,
        time => Cell::Percent((new.self_time - time) as f64 * 100.0 / time as f64),
    };
    vec![
        text(label),
        Cell::Signed(new.self_time - old.self_time),
        percent,
        Cell::Signed(new.time - old.time),
        change(old.count, new.count),
        change(old.cache_hits, new.cache_hits),
        change(old.cache_misses, new.cache_misses),
        Cell::Signed(new.blocked - old.blocked),
        Cell::Signed(new.load - old.load),
        Cell::Signed(new.hash - old.hash),
    ]
}

/// What several runs say about one label, which is measureme's name for what was measured, such as a query.
#[derive(Default)]
struct LabelRuns {
    /// The label's self time in each run.
    self_times: Tally,
    /// How often the label occurred in all runs.
    count: u64,
}

/// A table that shows how much the self time of each label varies between runs of the same program.
fn variation(runs: &[LabelSummary]) -> TitledTables {
    let mut by_label = BTreeMap::<&[u8], LabelRuns>::new();
    for (label, item) in runs.iter().flat_map(|run| &run.labels) {
        let sum = by_label.entry(label).or_default();
        sum.self_times.add(item.self_time);
        sum.count += item.count;
    }
    let mut labels: Vec<(&[u8], LabelRuns)> = by_label.into_iter().collect();
    labels.sort_by_key(|(_, runs)| Reverse(runs.self_times.sum));
    let mut table =
        Table::new(&["item", "runs", "count", "self_avg", "self_min", "self_max", "self_stddev", "spread%"]);
    for (label, LabelRuns { self_times, count }) in labels {
        let optional = |number: Option<i64>| number.map_or(Cell::None, Cell::Signed);
        // The spread is the distance between the extremes, as a percentage of the mean.
        let spread = match self_times.mean() {
            Some(mean) if mean > 0 => Cell::Percent((self_times.max - self_times.min) as f64 * 100.0 / mean as f64),
            _ => Cell::None,
        };
        table.rows.push(vec![
            text(label),
            // The number of runs that have the label.
            Cell::Count(self_times.count),
            Cell::Count(count),
            optional(self_times.mean()),
            Cell::Signed(self_times.min),
            Cell::Signed(self_times.max),
            optional(self_times.deviation()),
            spread,
        ]);
    }
    vec![("runs".to_owned(), table)]
}
