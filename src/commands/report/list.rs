//! Lists functions or other groups of samples, heaviest first.

use super::header::percent;
use super::options::{Order, Selection};
use super::scene::{Report, Scene, base_name};
use crate::analysis::call_graph::CallGraph;
use crate::analysis::category::Category;
use crate::analysis::groups::{Group, Grouping, Key, Value, groups, kind};
use crate::analysis::tier_shares::TierShares;
use crate::error::{Error, Result};
use crate::model::printable::list_some;
use crate::model::stacks::Profile;
use crate::pipeline::table::{Cell, Table};
use std::cmp::Reverse;

/// The keys that group samples by function.
pub(super) const FUNCTION: &[Key] = &[Key::Module, Key::Function];

/// Lines with at least this many columns have room for source locations.
const WIDE: usize = 120;

/// Which columns a list of functions has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FunctionColumns {
    /// All columns, for programs, files and pipes.
    All,
    /// The columns that fit the width of a terminal. `samples` says whether there is a column for sample counts,
    /// `source` whether there is one for source locations.
    Fitted { samples: bool, source: bool },
}

/// Makes a table with a row for each group of samples that agree in `keys`. Without keys, each row is a function, with
/// its kind, tier and source.
pub(super) fn report(scene: &Scene<'_>, keys: Option<&Vec<Key>>) -> Result<Report> {
    let options = scene.options;
    let keys_used = keys.map_or(FUNCTION, |keys| keys);
    let grouping = scene.grouping;
    // If the input states calls, their graph has the exact cost of each function, but says nothing about other keys.
    let mut rows = match (scene.graph, keys) {
        (Some(graph), None) => functions(scene.profile, graph, grouping),
        _ => groups(scene.profile, scene.series, options.weight, grouping),
    };
    rows.sort_by(|a, b| compare(a, b, options.order, grouping));
    // The value that a group has for one of the keys. `None` if samples aren't grouped by this key.
    let value_of = |group: &Group, wanted: Key| {
        let mut keys_and_values = keys_used.iter().zip(group.values(grouping));
        keys_and_values.find(|(key, _)| **key == wanted).map(|(_, value)| value.text())
    };
    let selection = &options.selection;
    // True if a group's names, kind of code and tier match the filters.
    let is_selected = |group: &Group| {
        let (module, function) = (value_of(group, Key::Module), value_of(group, Key::Function));
        // The user may type the name as the table shows it. If several functions have the name, that includes a
        // location: `init (a.c)`.
        let full_name =
            place_of(group, scene.places).map(|place| format!("{} ({place})", function.unwrap_or_default()));
        let is_named = selection.matches(module, function)
            || full_name.is_some_and(|full_name| selection.matches(module, Some(&full_name)));
        is_named && selection.matches_code(group)
    };
    if selection.has_filters() && !rows.is_empty() && !rows.iter().any(is_selected) {
        return Err(explain_no_match(&rows, selection, value_of));
    }
    rows.retain(is_selected);
    // Unless the user set `--percent-limit`, functions of any weight are listed.
    let min_weight = scene.min_weight(0.0);
    rows.retain(|group| {
        let sum = if options.order == Order::Total { group.total } else { group.own };
        sum.weight.unsigned_abs() as f64 >= min_weight
    });
    let table = match keys {
        Some(keys) => group_table(&rows, grouping, keys, scene.places, scene),
        None => function_table(&rows, grouping, scene.places, scene),
    };
    Ok(Report::new(scene, scene.head(), table))
}

/// The error for filters that match no group. For each filter in use, the message lists some values that exist.
/// `value_of` returns the value that a group has for a key.
fn explain_no_match<'t>(
    groups: &[Group],
    selection: &Selection,
    value_of: impl Fn(&Group, Key) -> Option<&'t str>,
) -> Error {
    let Selection { symbol, symbols, modules, kinds, tiers, .. } = selection;
    let value_of = &value_of;
    let values = |key| groups.iter().filter_map(move |group| value_of(group, key)).map(str::to_owned);
    let categories = || groups.iter().flat_map(|group| group.categories.iter().map(|(category, _)| category));
    let mut alternatives = Vec::new();
    if symbol.is_some() || !symbols.is_empty() {
        alternatives.push(format!("functions in this input: {}", list_some(values(Key::Function))));
    }
    if !modules.is_empty() {
        alternatives.push(format!("modules in this input: {}", list_some(values(Key::Module))));
    }
    if !kinds.is_empty() {
        let kinds = categories().map(|category| category.without_tier().name().to_owned());
        alternatives.push(format!("kinds of code in this input: {}", list_some(kinds)));
    }
    if !tiers.is_empty() {
        let jit = categories().filter(|category| matches!(category, Category::Jit(_)));
        let tiers = jit.map(|category| category.name().to_owned());
        alternatives.push(format!("tiers in this input: {}", list_some(tiers)));
    }
    Error::new(format!("no rows match the filters; {}", alternatives.join("; ")))
}

/// The names of all functions, those with the most self weight first.
pub(super) fn hottest_functions(scene: &Scene<'_>, grouping: &Grouping) -> Vec<String> {
    let mut rows = match scene.graph {
        Some(graph) => functions(scene.profile, graph, grouping),
        None => groups(scene.profile, scene.series, scene.options.weight, grouping),
    };
    rows.sort_by(|a, b| compare(a, b, Order::Own, grouping));
    // The keys are module and function. The name is the value of the last one.
    rows.iter().filter_map(|group| Some(group.values(grouping).next_back()?.text().to_owned())).collect()
}

/// Converts the functions of a call graph to groups, except those without any cost.
pub(super) fn functions(profile: &Profile, graph: &CallGraph, grouping: &Grouping) -> Vec<Group> {
    let costs = graph.functions().iter().filter(|function| function.own != 0 || function.total != 0);
    costs.map(|function| Group::of_function(profile, grouping, function.frame, function.own, function.total)).collect()
}

/// Chooses the columns of a list of functions.
fn choose_columns(scene: &Scene<'_>) -> FunctionColumns {
    let reader = scene.options.reader;
    let source = reader.style.width.is_none_or(|width| width >= WIDE);
    if scene.is_fitted() { FunctionColumns::Fitted { samples: reader.samples, source } } else { FunctionColumns::All }
}

/// Compares two groups for sorting the rows of a table.
fn compare(a: &Group, b: &Group, order: Order, grouping: &Grouping) -> std::cmp::Ordering {
    let heaviest_first = |group: &Group| (Reverse(group.own.weight), Reverse(group.total.weight));
    let by_number = match order {
        Order::Own => heaviest_first(a).cmp(&heaviest_first(b)),
        Order::Total => b.total.weight.cmp(&a.total.weight).then_with(|| heaviest_first(a).cmp(&heaviest_first(b))),
        Order::Samples => b.own.count.cmp(&a.own.count).then_with(|| heaviest_first(a).cmp(&heaviest_first(b))),
        Order::Name => std::cmp::Ordering::Equal,
    };
    // Names are compared from the last key to the first: by function, then by module.
    by_number.then_with(|| a.values(grouping).rev().cmp(b.values(grouping).rev()))
}

/// The table of functions. `places` has, for each group ID (the frame part ID of [`Grouping`]), the source location
/// that distinguishes the group's function from others with the same name.
fn function_table(groups: &[Group], grouping: &Grouping, places: &[Option<String>], scene: &Scene<'_>) -> Table {
    let columns = choose_columns(scene);
    let mut names = vec!["self%", "total%"];
    match columns {
        FunctionColumns::All => {
            names.extend(["self", "total"]);
            names.extend(scene.count_column());
            names.extend(["kind", "tier", "module", "symbol", "source"]);
        }
        // A table for a terminal has only the columns that it has room for.
        FunctionColumns::Fitted { samples, source } => {
            names.extend(scene.count_column().filter(|_| samples));
            names.extend(["kind", "module", "symbol"]);
            names.extend(source.then_some("source"));
        }
    }
    let mut table = Table::new(&names);
    for group in groups {
        table.rows.push(function_row(group, grouping, place_of(group, places), scene, columns));
    }
    table
}

/// The location that distinguishes a group's function from others of the same name; `None` if there are no others.
fn place_of<'p>(group: &Group, places: &'p [Option<String>]) -> Option<&'p str> {
    places.get(group.frame? as usize)?.as_deref()
}

/// A function's name, with the location that distinguishes it from others of the same name.
fn name_cell(function: &Value, place: Option<&str>) -> Cell {
    match place {
        Some(place) => Cell::text(format!("{} ({place})", function.text())),
        None => cell(function),
    }
}

/// The source location of a group's function, as `file:line`. The column number is appended only if another function of
/// the same name starts on the same line. `place` is the location that tells the function from its namesakes.
fn source_cell(group: &Group, grouping: &Grouping, place: Option<&str>, scene: &Scene<'_>) -> Cell {
    let Some(source) = group.source(scene.profile) else { return Cell::None };
    // `place` only ends with a column if a line isn't enough to tell the namesakes apart. The column is that of the
    // function's start, so it is only appended if `source` is the line on which the function starts.
    if let Some(start) = group.frame.and_then(|part| grouping.function(part)).map(|function| function.start)
        && start.column > 0
        && source.ends_with(&format!(":{}", start.line))
        && place.is_some_and(|place| place.ends_with(&format!(":{}:{}", start.line, start.column)))
    {
        return Cell::text(format!("{source}:{}", start.column));
    }
    Cell::text(source)
}

/// The row of a function, in the order of the columns of [`function_table`]. `place` is the source location that
/// distinguishes the function from others with the same name; `None` if no other function has the name.
fn function_row(
    group: &Group,
    grouping: &Grouping,
    place: Option<&str>,
    scene: &Scene<'_>,
    columns: FunctionColumns,
) -> Vec<Cell> {
    let mut values = group.values(grouping);
    // This table is grouped by two keys, module and function ([`FUNCTION`]). So there are always two values.
    let (Some(module), Some(function)) = (values.next(), values.next()) else { return Vec::new() };
    let mut cells = Vec::with_capacity(10);
    cells.extend(shares(group, scene.whole));
    let source_cell = || source_cell(group, grouping, place, scene);
    match columns {
        FunctionColumns::All => {
            cells.extend(sums(group, scene));
            cells.extend([Cell::Word(kind(heaviest(group))), tiers(group), cell(module), cell(function)]);
            cells.push(source_cell());
        }
        FunctionColumns::Fitted { samples, source } => {
            if samples && scene.count_column().is_some() {
                cells.push(Cell::Count(group.own.count));
            }
            // A table that has room for the sources also has room for all kinds of a function's code.
            let kinds = short_kinds(group, if source { usize::MAX } else { 1 });
            // Without a column for the source, the name has to tell functions apart.
            let function = name_cell(function, place.filter(|_| !source));
            cells.extend([Cell::text(kinds), Cell::text(base_name(module.text())), function]);
            if source {
                cells.push(source_cell());
            }
        }
    }
    cells
}

/// The table of groups. `places` has, for each group ID (the frame part ID of [`Grouping`]), the source location that
/// distinguishes the group's function from others with the same name; `None` if no other function has the name. A table
/// that is fitted to a width has neither sums nor the directories of modules.
fn group_table(
    groups: &[Group],
    grouping: &Grouping,
    keys: &[Key],
    places: &[Option<String>],
    scene: &Scene<'_>,
) -> Table {
    let is_fitted = scene.is_fitted();
    let mut columns = vec!["self%", "total%"];
    if !is_fitted {
        columns.extend(["self", "total"]);
    }
    columns.extend(scene.count_column());
    columns.extend(keys.iter().map(|key| column(*key)));
    let mut table = Table::new(&columns);
    for group in groups {
        let mut cells = Vec::with_capacity(columns.len());
        cells.extend(shares(group, scene.whole));
        if !is_fitted {
            cells.extend(sums(group, scene));
        } else if scene.count_column().is_some() {
            cells.push(Cell::Count(group.own.count));
        }
        let place = place_of(group, places);
        for (key, value) in keys.iter().zip(group.values(grouping)) {
            cells.push(match key {
                Key::Module if is_fitted => Cell::text(base_name(value.text())),
                Key::Function => name_cell(value, place),
                _ => cell(value),
            });
        }
        table.rows.push(cells);
    }
    table
}

/// Checks that the profile has values of the grouping keys. Returns a remark about each key of which it has none. Fails
/// if it has no values of any of the keys, because all samples would then be one group without a name.
pub(super) fn check_keys(profile: &Profile, keys: &[Key]) -> Result<Vec<String>> {
    let mut lacking = Vec::new();
    for &key in keys {
        let has_values = match key {
            Key::Comm => profile.tracks().iter().any(|track| !track.comm.is_empty()),
            Key::Pid => profile.tracks().iter().any(|track| track.pid.is_some()),
            Key::Tid => profile.tracks().iter().any(|track| track.tid.is_some()),
            Key::Cpu => profile.tracks().iter().any(|track| track.cpu.is_some()),
            Key::Module => profile.frames().any(|(_, frame)| frame.module.is_some()),
            Key::Line => profile.frames().any(|(_, frame)| profile.place_of(frame).is_some()),
            Key::Function | Key::Kind | Key::Tier => true,
        };
        let values = match key {
            Key::Comm => "command names",
            Key::Pid => "process IDs",
            Key::Tid => "thread IDs",
            Key::Cpu => "CPU numbers",
            Key::Module => "modules",
            Key::Line => "source lines",
            Key::Function | Key::Kind | Key::Tier => column(key),
        };
        if !has_values {
            lacking.push(values);
        }
    }
    if lacking.len() == keys.len() {
        return Err(Error::new(format!("cannot group by {}, because the input has none", lacking.join(", "))));
    }
    Ok(lacking.into_iter().map(|values| format!("the input has no {values}, so their column is empty")).collect())
}

/// The column heading for a grouping key.
pub(super) fn column(key: Key) -> &'static str {
    match key {
        Key::Comm => "comm",
        Key::Pid => "pid",
        Key::Tid => "tid",
        Key::Cpu => "cpu",
        Key::Module => "module",
        Key::Function => "symbol",
        Key::Kind => "kind",
        Key::Tier => "tier",
        Key::Line => "source",
    }
}

/// The cells for the self and total weight of a group, as percentages of the weight `whole`.
fn shares(group: &Group, whole: i64) -> [Cell; 2] {
    [group.own, group.total].map(|sum| Cell::Percent(percent(sum.weight, whole)))
}

/// The cells for the self weight, the total weight, and the number of samples if there is a column for it.
fn sums(group: &Group, scene: &Scene<'_>) -> Vec<Cell> {
    let mut cells = vec![scene.weight(group.own.weight), scene.weight(group.total.weight)];
    cells.extend(scene.count_column().map(|_| Cell::Count(group.own.count)));
    cells
}

/// The cell for a group's value of a key.
pub(super) fn cell(value: &Value) -> Cell {
    match value {
        Value::None => Cell::None,
        Value::Number(number) => Cell::Signed(*number),
        Value::Text(text) => Cell::Text(text.clone()),
    }
}

/// The kind of code that has most of the function's weight.
pub(super) fn heaviest(group: &Group) -> Category {
    group.categories.iter().next().map_or(Category::Unknown, |(category, _)| category)
}

/// The tiers of the function's JIT code. If there are several tiers, each is shown with its share.
fn tiers(group: &Group) -> Cell {
    let mut shares = TierShares::default();
    let mut first_known = None;
    for (category, weight) in group.categories.iter() {
        if let Category::Jit(tier) = category {
            shares.add(tier, weight);
            first_known = first_known.or(tier);
        }
    }
    if shares.is_mixed() {
        return Cell::text(shares.text());
    }
    first_known.map_or(Cell::None, |tier| Cell::Word(tier.name()))
}

/// A short text with the kinds of the function's code, such as `optimized` or `optimized 75.00%, interpreted 25.00%`.
/// Of more than `most` kinds, only the heaviest are shown.
fn short_kinds(group: &Group, most: usize) -> String {
    let with_weight = group.categories.iter().filter(|(_, weight)| *weight > 0).count();
    if with_weight < 2 {
        return heaviest(group).name().to_owned();
    }
    let mut kinds = Vec::new();
    for (category, weight) in group.categories.iter().take(most.min(with_weight)) {
        let share = 100.0 * weight as f64 / group.own.weight.unsigned_abs().max(1) as f64;
        // If there are several kinds, none is shown as 0.00% or 100.00%, even if rounding would give that.
        kinds.push(format!("{} {:.2}%", category.name(), share.clamp(0.01, 99.99)));
    }
    kinds.join(", ")
}
