//! `report --diff`: the functions whose share changed since an earlier profile, and whether the change exceeds sampling
//! noise. Measured (not sampled) profiles have no noise, so their amounts are compared instead of shares.

use super::header::{describe_event, percent};
use super::list::{FUNCTION, cell, functions, heaviest};
use super::options::Order;
use super::scene::{Report, Scene, base_name, series_of};
use crate::analysis::call_graph::CallGraph;
use crate::analysis::comparison::{Change, Comparison, Evidence};
use crate::analysis::groups::{Group, Grouping, Sum, Value, groups};
use crate::analysis::namesakes::{StartPlace, namesake_locations};
use crate::analysis::quantity::{counted, grouped, quantity, row_word};
use crate::analysis::significance::THRESHOLD;
use crate::error::Result;
use crate::model::printable::readable;
use crate::model::stacks::{Profile, Series};
use crate::pipeline::table::{Cell, Table};
use rustc_hash::FxHashMap;

/// A function of one or both profiles, with its costs before and after.
#[derive(Debug, Clone)]
struct ChangedFunction {
    module: Value,
    function: Value,
    start: Option<Start>,
    /// The function's weight and number of samples in the earlier profile. They are totals with callees if rows are
    /// sorted by total weight, and self weights otherwise.
    before: Sum,
    /// Like `before`, in the later profile.
    after: Sum,
}

/// The source location where a function starts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Start {
    file: Box<[u8]>,
    line: u32,
    column: u32,
}

impl Start {
    fn place(&self) -> StartPlace<'_> {
        StartPlace { file: &self.file, line: self.line, column: self.column }
    }
}

/// Lists the functions, most changed first. Sampled profiles are compared by share, measured ones by amount.
pub(super) fn report(scene: &Scene<'_>, before: &Profile) -> Result<Report> {
    let options = scene.options;
    let old_series = series_of(before, &scene.series.name)?;
    let comparison = Comparison::new(old_series, scene.series, options.weight, options.compare);
    let mut changes = collect_changes(scene, before, old_series);
    let selection = &options.selection;
    changes.retain(|change| selection.matches(Some(change.module.text()), Some(change.function.text())));
    let min_weight = selection.percent.unwrap_or(0.0);
    // `--percent-limit` compares absolute values. Shares can be negative, where memory was freed or the total is
    // negative.
    changes.retain(|change| {
        change.share_before(&comparison).abs().max(change.share_after(&comparison).abs()) >= min_weight
    });
    // `evidence` says whether the weights are sampled, exactly measured, or from an unknown number of samples.
    changes.sort_by(|a, b| {
        let names = |change: &ChangedFunction| (change.function.clone(), change.module.clone());
        let order = match comparison.evidence {
            Evidence::Exact => b.difference().unsigned_abs().cmp(&a.difference().unsigned_abs()),
            _ => b.delta(&comparison).abs().total_cmp(&a.delta(&comparison).abs()),
        };
        order.then_with(|| names(a).cmp(&names(b)))
    });
    let mut table = Table::new(&columns(scene, comparison.evidence));
    let mut changed = 0;
    for (row, change) in changes.iter().enumerate() {
        let kind = comparison.change(change.before, change.after);
        changed += usize::from(kind.is_real());
        if matches!(kind, Change::Noise | Change::Same) {
            table.faint.insert(row);
        }
        table.rows.push(cells(scene, change, kind, &comparison));
    }
    let mut head = vec![
        format!("before: {}", describe_event(before, old_series, options.weight)),
        format!("after:  {}", describe_event(scene.profile, scene.series, options.weight)),
    ];
    let function_count = counted(changes.len() as u64, "function");
    match comparison.evidence {
        Evidence::Samples => {
            head.push(format!(
                "{changed} of {function_count} changed by more than sampling noise ({THRESHOLD} standard deviations)"
            ));
        }
        Evidence::Exact => {
            head.extend(warn_of_other_total(scene, &comparison));
            head.push(format!(
                "{changed} of {function_count} changed (measured, not sampled, so every change is real)"
            ));
        }
        Evidence::Nothing => head.push(
            "cannot tell changes from noise: the number of samples is unknown (state the weight of one sample with \
             --sample-weight N)"
                .to_owned(),
        ),
    }
    Ok(Report::new(scene, head, table))
}

/// A line above the table that warns that the two profiles have different totals, so that equal shares are different
/// amounts. `None` if the totals are the same.
fn warn_of_other_total(scene: &Scene<'_>, comparison: &Comparison) -> Option<String> {
    if comparison.before.weight == comparison.after.weight {
        return None;
    }
    let growth = comparison.growth()?;
    let describe = |sum: Sum| {
        let sign = if sum.weight < 0 { "-" } else { "" };
        let amount = sum.weight.unsigned_abs();
        let amount = match row_word(scene.profile, scene.series) {
            // An event of recorded calls has no unit. Its name says what was counted.
            None => format!("{} {}", grouped(amount), readable(scene.series.name.as_bytes())),
            Some(_) => quantity(amount, &scene.series.unit, scene.options.weight),
        };
        format!("{sign}{amount}")
    };
    Some(format!(
        "the runs differ in length: {} before, {} after ({growth:+.2}%); amounts are compared, not shares",
        describe(comparison.before),
        describe(comparison.after)
    ))
}

/// The headings of all columns.
fn columns(scene: &Scene<'_>, evidence: Evidence) -> Vec<&'static str> {
    let mut columns = vec!["before%", "after%"];
    match evidence {
        Evidence::Exact => columns.extend(["before", "after", "difference"]),
        _ => columns.push("delta"),
    }
    columns.push("change");
    if let Some(counts) = count_columns(scene) {
        columns.extend(counts);
    }
    columns.extend(["module", "symbol"]);
    columns
}

/// The headings of the columns with numbers of samples; `None` if there are no such columns.
fn count_columns(scene: &Scene<'_>) -> Option<[&'static str; 2]> {
    match scene.count_column() {
        _ if scene.is_fitted() => None,
        Some("spans") => Some(["spans before", "spans after"]),
        Some(_) => Some(["samples before", "samples after"]),
        None => None,
    }
}

/// The row of a function, in the order of [`columns`]. `kind` says whether its change is real or may be noise.
fn cells(scene: &Scene<'_>, change: &ChangedFunction, kind: Change, comparison: &Comparison) -> Vec<Cell> {
    let mut cells = vec![Cell::Percent(change.share_before(comparison)), Cell::Percent(change.share_after(comparison))];
    match comparison.evidence {
        Evidence::Exact => cells.extend([
            scene.weight(change.before.weight),
            scene.weight(change.after.weight),
            scene.weight(change.difference()),
        ]),
        _ => cells.push(Cell::Points(change.delta(comparison))),
    }
    cells.push(match kind {
        Change::Unjudged => Cell::None,
        kind => Cell::Word(kind.word()),
    });
    if count_columns(scene).is_some() {
        cells.extend([change.before.count, change.after.count].map(Cell::Count));
    }
    cells.extend([&change.module, &change.function].map(cell));
    cells
}

impl ChangedFunction {
    /// The function's percentage of the earlier profile's total.
    fn share_before(&self, comparison: &Comparison) -> f64 {
        percent(self.before.weight, comparison.before.weight)
    }

    /// The function's percentage of the later profile's total.
    fn share_after(&self, comparison: &Comparison) -> f64 {
        percent(self.after.weight, comparison.after.weight)
    }

    /// The change of the function's share, in percentage points.
    fn delta(&self, comparison: &Comparison) -> f64 {
        self.share_after(comparison) - self.share_before(comparison)
    }

    /// How much the function's weight grew, limited to what fits the type.
    fn difference(&self) -> i64 {
        let difference = i128::from(self.after.weight) - i128::from(self.before.weight);
        difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// Pairs the functions of both profiles by module, name and start. In the earlier profile, functions already have the
/// names of their partners in the later one ([`align`](crate::analysis::pairing::align)).
fn collect_changes(scene: &Scene<'_>, before: &Profile, old_series: &Series) -> Vec<ChangedFunction> {
    let mut changes: Vec<ChangedFunction> = Vec::new();
    // For each function that is in `changes`, its index there.
    let mut indexes: FxHashMap<(Value, Value, Option<Start>), usize> = FxHashMap::default();
    for (profile, series, is_after) in [(before, old_series, false), (scene.profile, scene.series, true)] {
        let grouping = Grouping::new(profile, FUNCTION, scene.options.unnamed);
        let groups = match CallGraph::from_series(profile, series) {
            Some(graph) => functions(profile, &graph, &grouping),
            None => groups(profile, series, scene.options.weight, &grouping),
        };
        for group in groups {
            let (module, function) = module_and_function(&grouping, &group);
            let start = start_of(profile, &grouping, &group);
            let index = *indexes.entry((module.clone(), function.clone(), start.clone())).or_insert(changes.len());
            if index == changes.len() {
                let (before, after) = (Sum::default(), Sum::default());
                changes.push(ChangedFunction { module, function, start, before, after });
            }
            let change = &mut changes[index];
            let sum = if scene.options.order == Order::Total { group.total } else { group.own };
            if is_after {
                change.after += sum;
            } else {
                change.before += sum;
            }
        }
    }
    changes.retain(|change| !change.before.is_zero() || !change.after.is_zero());
    add_places_to_namesakes(&mut changes);
    changes
}

/// The source location where a group's function starts. `None` if it is unknown.
fn start_of(profile: &Profile, grouping: &Grouping, group: &Group) -> Option<Start> {
    let start = grouping.function(group.frame?)?.start;
    let file = profile.name_of(start.file?).into();
    Some(Start { file, line: start.line, column: start.column })
}

/// If several functions have the same name, appends to each function's name the source location where the function
/// starts, as flame graphs do.
fn add_places_to_namesakes(changes: &mut [ChangedFunction]) {
    let functions = changes.iter().map(|change| (change.function.text(), change.start.as_ref().map(Start::place)));
    // `place` is `None` if the function's name is unique, or if it is unknown where the function starts.
    for (index, place) in namesake_locations(functions).into_iter().enumerate() {
        if let Some(place) = place {
            let function = &mut changes[index].function;
            *function = Value::Text(format!("{} ({place})", function.text()).into());
        }
    }
}

/// The module and function name by which functions are paired. Only the file name of a module counts, because a program
/// may have moved to another directory. JIT code has the module `[JIT]`, because the names of its files contain the
/// process ID.
fn module_and_function(grouping: &Grouping, group: &Group) -> (Value, Value) {
    let mut values = group.values(grouping);
    let (Some(module), Some(function)) = (values.next(), values.next()) else { return (Value::None, Value::None) };
    let module = match (heaviest(group), module) {
        (category, _) if category.is_jit() => Value::Text("[JIT]".into()),
        (_, Value::Text(path)) => Value::Text(base_name(path).into()),
        (_, other) => other.clone(),
    };
    (module, function.clone())
}
