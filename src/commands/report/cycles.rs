//! `report --cycles`: recursive cycles of functions, for inputs that state calls and their costs.
//!
//! The inclusive cost of a function in a cycle contains that of the other functions. So, as in KCachegrind, the cost of
//! a whole cycle is the sum of its functions' self costs plus the costs of all calls that leave the cycle.

use super::list::cell;
use super::scene::{Report, Scene, base_name};
use crate::analysis::call_graph::{CallGraph, GraphFunction};
use crate::analysis::groups::{Grouping, Value};
use crate::analysis::quantity::counted;
use crate::model::stacks::FrameId;
use crate::pipeline::table::{Cell, Layout, Table};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Functions that call each other, directly or through others. A function that only calls itself is not a cycle.
struct Cycle<'a> {
    /// The sum of the functions' self costs.
    own: i64,
    /// `own`, plus the costs of all calls that leave the cycle.
    total: i64,
    /// The functions of the cycle, costliest first.
    functions: Vec<&'a GraphFunction>,
}

/// Lists the cycles, costliest first, each followed by its functions.
pub(super) fn report(scene: &Scene<'_>, graph: &CallGraph) -> Report {
    let grouping = scene.grouping;
    let min_weight = scene.min_weight(0.0);
    let mut cycles = cycles(graph);
    cycles.retain(|cycle| cycle.total.unsigned_abs() as f64 >= min_weight);
    if scene.options.layout != Layout::Text {
        return Report::new(scene, Vec::new(), plain_table(&cycles, grouping, scene));
    }
    let mut head = scene.head();
    head.push(match cycles.len() {
        0 => "no functions call each other in a cycle".to_owned(),
        count => format!("{} of functions that call each other", counted(count as u64, "cycle")),
    });
    Report::new(scene, head, text_table(&cycles, grouping, scene))
}

/// The table for people: with short module names, and the functions drawn as branches below their cycle.
fn text_table(cycles: &[Cycle<'_>], grouping: &Grouping, scene: &Scene<'_>) -> Table {
    let mut table = Table::new(&["total%", "self%", "functions", "module", "symbol"]);
    for (number, cycle) in (1..).zip(cycles) {
        table.rows.push(vec![
            scene.share(cycle.total),
            scene.share(cycle.own),
            Cell::Count(cycle.functions.len() as u64),
            Cell::text(""),
            Cell::text(format!("<cycle {number}>")),
        ]);
        for (index, function) in cycle.functions.iter().enumerate() {
            let names = grouping.frame_values(grouping.frame_part_ids()[function.frame.index()]);
            let module = names.first().map_or("", Value::text);
            let name = names.get(1).map_or("", Value::text);
            let branch = if index + 1 == cycle.functions.len() { "└ " } else { "├ " };
            table.rows.push(vec![
                scene.share(function.total),
                scene.share(function.own),
                Cell::None,
                Cell::text(base_name(module)),
                Cell::branch(branch.to_owned(), name.to_owned()),
            ]);
        }
    }
    table
}

/// The table for programs (CSV and JSON). A cycle has depth 0, and its functions have depth 1.
fn plain_table(cycles: &[Cycle<'_>], grouping: &Grouping, scene: &Scene<'_>) -> Table {
    let mut table =
        Table::new(&["depth", "total%", "self%", "total", "self", "functions", "module", "symbol", "source"]);
    for (number, cycle) in (1..).zip(cycles) {
        table.rows.push(vec![
            Cell::Count(0),
            scene.share(cycle.total),
            scene.share(cycle.own),
            Cell::Signed(cycle.total),
            Cell::Signed(cycle.own),
            Cell::Count(cycle.functions.len() as u64),
            Cell::text(""),
            Cell::text(format!("<cycle {number}>")),
            Cell::None,
        ]);
        for function in &cycle.functions {
            let names = grouping.frame_values(grouping.frame_part_ids()[function.frame.index()]);
            let mut cells = vec![Cell::Count(1), scene.share(function.total), scene.share(function.own)];
            cells.extend([Cell::Signed(function.total), Cell::Signed(function.own), Cell::None]);
            cells.extend(names.iter().map(cell));
            cells.push(scene.source(function.frame));
            table.rows.push(cells);
        }
    }
    table
}

/// The recursive cycles of a call graph, costliest first.
fn cycles(graph: &CallGraph) -> Vec<Cycle<'_>> {
    // `numbers` has the number of each function's cycle, or `None` if the function is in no cycle.
    let (functions, numbers) = (graph.functions(), graph.cycles());
    let mut cycles: FxHashMap<u32, Cycle<'_>> = FxHashMap::default();
    let mut cycle_of: FxHashMap<FrameId, u32> = FxHashMap::default();
    for (function, number) in functions.iter().zip(numbers) {
        let Some(number) = number else { continue };
        cycle_of.insert(function.frame, number);
        let cycle = cycles.entry(number).or_insert(Cycle { own: 0, total: 0, functions: Vec::new() });
        cycle.own = cycle.own.saturating_add(function.own);
        cycle.functions.push(function);
    }
    // The total of a cycle is its own cost and that of the calls that leave it. Calls within the cycle don't count:
    // they only pass on the same costs.
    cycles.values_mut().for_each(|cycle| cycle.total = cycle.own);
    for edge in graph.edges() {
        let Some(caller_cycle) = cycle_of.get(&edge.caller) else { continue };
        let leaves_cycle = cycle_of.get(&edge.callee) != Some(caller_cycle);
        if leaves_cycle && let Some(cycle) = cycles.get_mut(caller_cycle) {
            cycle.total = cycle.total.saturating_add(edge.cost);
        }
    }
    // A function that only calls itself isn't listed as a cycle.
    let mut cycles: Vec<Cycle<'_>> = cycles.into_values().filter(|cycle| cycle.functions.len() > 1).collect();
    cycles.sort_by_key(|cycle| {
        let first_frame = cycle.functions.iter().map(|function| function.frame.index()).min();
        (Reverse(cycle.total), first_frame)
    });
    for cycle in &mut cycles {
        cycle.functions.sort_by_key(|function| (Reverse(function.total), function.frame.index()));
    }
    cycles
}
