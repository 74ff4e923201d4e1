//! `report --callers` and `--callees` for inputs that state calls and their costs, such as callgrind's. Such inputs
//! have no whole stacks, so the table has only one level of callers or callees.

use super::list::cell;
use super::options::Rows;
use super::scene::{Report, Scene, base_name};
use super::tree::{DEFAULT_PERCENT, find_functions, head};
use crate::analysis::call_graph::{CallGraph, Edge, GraphFunction};
use crate::analysis::groups::{Grouping, Value};
use crate::error::Result;
use crate::model::stacks::FrameId;
use crate::pipeline::table::{Cell, Layout, Table};
use std::cmp::Reverse;

/// The data needed to list a function with its callers or callees.
struct CallReport<'a> {
    scene: &'a Scene<'a>,
    graph: &'a CallGraph,
    grouping: &'a Grouping,
    /// True to list callers, false to list callees.
    lists_callers: bool,
}

/// A row of the table: the function itself, or one of its calls.
struct CallLine {
    /// 0 for the function, 1 for a caller or callee.
    depth: u64,
    frame: FrameId,
    /// The cost of the function including its callees, or the cost of the call.
    total: i64,
    /// The self cost of the function. `None` if the row is a call.
    own: Option<i64>,
    /// How often the function was called, or how often the call was made.
    calls: u64,
    /// The branch of the tree (`├ ` or `└ `) drawn before the name; empty for the function itself.
    branch: &'static str,
}

/// Lists the functions that [`find_functions`] finds by `name`, each with its callers or callees.
pub(super) fn report(scene: &Scene<'_>, graph: &CallGraph, name: &str) -> Result<Report> {
    let grouping = scene.grouping;
    // The ID that a function shares with all functions of the same module and name.
    let group_of = |function: &GraphFunction| grouping.frame_part_ids()[function.frame.index()];
    let wanted = find_functions(scene, grouping, graph.functions().iter().map(group_of), name)?;
    let lists_callers = matches!(scene.options.rows, Rows::Callers(_));
    let report = CallReport { scene, graph, grouping, lists_callers };
    let mut functions: Vec<&GraphFunction> = graph.functions().iter().collect();
    functions.retain(|function| wanted.contains(&group_of(function)));
    functions.sort_by_key(|function| Reverse(function.total));
    let is_text = scene.options.layout == Layout::Text;
    // Percentages that limit the list are of the listed functions, not of the whole event.
    let whole = functions.iter().fold(0i64, |sum, function| sum.saturating_add(function.total));
    let min_weight = scene.min_weight_of(if is_text { DEFAULT_PERCENT } else { 0.0 }, whole);
    let lines: Vec<CallLine> = functions.into_iter().flat_map(|function| report.lines(function, min_weight)).collect();
    if !is_text {
        return Ok(Report::new(scene, Vec::new(), report.plain_table(&lines)));
    }
    Ok(Report::new(scene, head(scene), report.text_table(&lines)))
}

impl CallReport<'_> {
    /// The row of the function itself, and the rows of its calls, heaviest first. Calls that cost less than
    /// `min_weight` are left out.
    fn lines(&self, function: &GraphFunction, min_weight: f64) -> Vec<CallLine> {
        let GraphFunction { frame, own, total, .. } = *function;
        let mut calls = 0u64;
        // The calls to list, each with its caller or callee, the function at the other end.
        let mut listed_calls: Vec<(FrameId, &Edge)> = Vec::new();
        for edge in self.graph.edges() {
            // Count all calls that other functions, or the function itself, make to this function. Its own row shows
            // that number, even if the rows below are its callees.
            if edge.callee == frame {
                calls = calls.saturating_add(edge.count);
            }
            let (this_end, other_end) =
                if self.lists_callers { (edge.callee, edge.caller) } else { (edge.caller, edge.callee) };
            if this_end == frame && edge.cost.unsigned_abs() as f64 >= min_weight {
                listed_calls.push((other_end, edge));
            }
        }
        // The calls that cost most come first. Equal costs are ordered by function, then by module.
        listed_calls.sort_by(|(a, a_edge), (b, b_edge)| {
            let by_name = || self.names(*a).iter().rev().cmp(self.names(*b).iter().rev());
            b_edge.cost.cmp(&a_edge.cost).then_with(by_name)
        });
        let mut lines = vec![CallLine { depth: 0, frame, total, own: Some(own), calls, branch: "" }];
        for (index, (other_end, edge)) in listed_calls.iter().enumerate() {
            lines.push(CallLine {
                depth: 1,
                frame: *other_end,
                total: edge.cost,
                own: None,
                calls: edge.count,
                branch: if index + 1 == listed_calls.len() { "└ " } else { "├ " },
            });
        }
        lines
    }

    /// The module and the name of a function.
    fn names(&self, frame: FrameId) -> &[Value] {
        self.grouping.frame_values(self.grouping.frame_part_ids()[frame.index()])
    }

    /// The table for people: with short module names, and the calls drawn as branches below the function.
    fn text_table(&self, lines: &[CallLine]) -> Table {
        let mut table = Table::new(&["total%", "calls", "module", "symbol"]);
        for line in lines {
            let names = self.names(line.frame);
            let module = names.first().map_or("", Value::text);
            let name = names.get(1).map_or("", Value::text);
            table.rows.push(vec![
                self.scene.share(line.total),
                Cell::Count(line.calls),
                Cell::text(base_name(module)),
                Cell::branch(line.branch.to_owned(), name.to_owned()),
            ]);
        }
        table
    }

    /// The table for programs (CSV and JSON).
    fn plain_table(&self, lines: &[CallLine]) -> Table {
        let mut table =
            Table::new(&["depth", "total%", "self%", "total", "self", "calls", "module", "symbol", "source"]);
        for line in lines {
            let (own_share, own) = match line.own {
                Some(own) => (self.scene.share(own), Cell::Signed(own)),
                None => (Cell::None, Cell::None),
            };
            let mut cells = vec![Cell::Count(line.depth), self.scene.share(line.total), own_share];
            cells.extend([Cell::Signed(line.total), own, Cell::Count(line.calls)]);
            cells.extend(self.names(line.frame).iter().map(cell));
            cells.push(self.scene.source(line.frame));
            table.rows.push(cells);
        }
        table
    }
}
