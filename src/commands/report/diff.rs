//! The functions that changed since another recording: shares before and after, and whether the change is more than
//! sampling noise.

use super::header::{percent, sampled};
use super::list::{FUNCTION, cell, functions, heaviest};
use super::options::Order;
use super::scene::{Report, Scene, base_name, series_of, whole};
use crate::analysis::call_graph::CallGraph;
use crate::analysis::groups::{Group, Grouping, Sum, Value, groups};
use crate::analysis::quantity::counted;
use crate::analysis::significance::{Share, THRESHOLD, count_of_one_sample, is_significant};
use crate::error::Result;
use crate::model::stacks::{Profile, Series};
use crate::pipeline::table::{Cell, Table};
use rustc_hash::FxHashMap;

/// One side of the comparison: its whole, and what one sample counts in it.
#[derive(Debug, Clone, Copy)]
struct ComparedSide {
    whole: Sum,
    one: u64,
}

/// A function in both recordings.
#[derive(Debug, Clone)]
struct ChangedFunction {
    module: Value,
    function: Value,
    before: Sum,
    after: Sum,
}

/// Functions, those first whose share changed most.
pub(super) fn report(scene: &Scene<'_>, before: &Profile) -> Result<Report> {
    let old_series = series_of(before, &scene.series.name)?;
    let (old, new) = (ComparedSide::new(scene, old_series), ComparedSide::new(scene, scene.series));
    let mut changes = changes(scene, before, old_series);
    let selection = &scene.options.selection;
    changes.retain(|change| selection.takes(Some(change.module.text()), Some(change.function.text())));
    let least = scene.options.selection.percent.unwrap_or(0.0);
    changes.retain(|change| old.percent(change.before).max(new.percent(change.after)) >= least);
    let delta = |change: &ChangedFunction| new.percent(change.after) - old.percent(change.before);
    changes.sort_by(|a, b| {
        let called = |change: &ChangedFunction| (change.function.clone(), change.module.clone());
        delta(b).abs().total_cmp(&delta(a).abs()).then_with(|| called(a).cmp(&called(b)))
    });
    let mut table = Table::new(if scene.is_on_terminal() { TERMINAL } else { COLUMNS });
    let mut significant = 0;
    for (row, change) in changes.iter().enumerate() {
        let verdict = verdict(change, old, new);
        significant += usize::from(verdict != NOISE);
        if verdict == NOISE {
            table.faint.insert(row);
        }
        table.rows.push(cells(scene, change, delta(change), verdict, old, new));
    }
    let head = vec![
        format!("before: {}", sampled(before, old_series, scene.options.weight)),
        format!("after:  {}", sampled(scene.profile, scene.series, scene.options.weight)),
        format!(
            "{} of {} changed by more than sampling noise ({THRESHOLD} standard deviations)",
            significant,
            counted(changes.len() as u64, "function")
        ),
    ];
    Ok(Report::new(scene, head, table))
}

const COLUMNS: &[&str] =
    &["before%", "after%", "delta", "change", "samples before", "samples after", "module", "symbol"];
const TERMINAL: &[&str] = &["before%", "after%", "delta", "change", "module", "symbol"];

/// The word for a change that sampling alone would make.
const NOISE: &str = "noise";

/// The kind of change.
fn verdict(change: &ChangedFunction, old: ComparedSide, new: ComparedSide) -> &'static str {
    match (change.before.count, change.after.count) {
        _ if !is_significant(old.share(change.before), new.share(change.after)) => NOISE,
        (0, _) => "new",
        (_, 0) => "gone",
        _ if new.percent(change.after) > old.percent(change.before) => "more",
        _ => "less",
    }
}

fn cells(
    scene: &Scene<'_>,
    change: &ChangedFunction,
    delta: f64,
    told: &'static str,
    old: ComparedSide,
    new: ComparedSide,
) -> Vec<Cell> {
    let mut cells = vec![
        Cell::Percent(old.percent(change.before)),
        Cell::Percent(new.percent(change.after)),
        Cell::Points(delta),
        Cell::Word(told),
    ];
    if !scene.is_on_terminal() {
        cells.extend([change.before.count, change.after.count].map(Cell::Count));
    }
    cells.extend([&change.module, &change.function].map(cell));
    cells
}

impl ComparedSide {
    fn new(scene: &Scene<'_>, series: &Series) -> Self {
        let count = series.rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.count));
        let whole = Sum { weight: whole(series, scene.options.weight), count };
        Self { whole, one: count_of_one_sample(series) }
    }

    fn percent(&self, sum: Sum) -> f64 {
        percent(sum.weight, self.whole.weight)
    }

    fn share(&self, sum: Sum) -> Share {
        Share { part: sum.count / self.one, whole: self.whole.count / self.one }
    }
}

/// The functions of both, put together by module and name.
fn changes(scene: &Scene<'_>, before: &Profile, old_series: &Series) -> Vec<ChangedFunction> {
    let mut changes: Vec<ChangedFunction> = Vec::new();
    let mut places: FxHashMap<(Value, Value), usize> = FxHashMap::default();
    for (profile, series, is_after) in [(before, old_series, false), (scene.profile, scene.series, true)] {
        let grouping = Grouping::new(profile, FUNCTION, scene.options.unnamed);
        let groups = match CallGraph::of(profile, series) {
            Some(graph) => functions(profile, &graph, &grouping),
            None => groups(profile, series, scene.options.weight, &grouping),
        };
        for group in groups {
            let (module, function) = called(&grouping, &group);
            let none = ChangedFunction {
                module: module.clone(),
                function: function.clone(),
                before: Sum::default(),
                after: Sum::default(),
            };
            let at = *places.entry((module, function)).or_insert(changes.len());
            if at == changes.len() {
                changes.push(none);
            }
            let sum = if scene.options.order == Order::Total { group.total } else { group.own };
            let side = if is_after { &mut changes[at].after } else { &mut changes[at].before };
            *side += sum;
        }
    }
    changes.retain(|change| !change.before.is_zero() || !change.after.is_zero());
    changes
}

/// Module and function, as they are called in every recording: a program may have moved to another directory, and the
/// files that hold JIT code are called after the process.
fn called(grouping: &Grouping, group: &Group) -> (Value, Value) {
    let mut values = group.values(grouping);
    let (Some(module), Some(function)) = (values.next(), values.next()) else { return (Value::None, Value::None) };
    let module = match (heaviest(group), module) {
        (category, _) if category.is_jit() => Value::Text("[JIT]".into()),
        (_, Value::Text(path)) => Value::Text(base_name(path).into()),
        (_, other) => other.clone(),
    };
    (module, function.clone())
}
