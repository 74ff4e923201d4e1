//! `report --callers` and `--callees` for inputs that state calls and their costs, such as callgrind's. Whole stacks
//! are unknown there, so the table has only one level.

use super::list::{FUNCTION, cell};
use super::options::Rows;
use super::scene::{Report, Scene, base_name};
use super::tree::{USUAL_PERCENT, called, head};
use crate::analysis::call_graph::{CallGraph, Edge, GraphFunction};
use crate::analysis::groups::{Grouping, Value};
use crate::error::Result;
use crate::model::stacks::FrameId;
use crate::pipeline::table::{Cell, Layout, Table};
use std::cmp::Reverse;

/// What is needed to list a function with its callers or callees.
struct Called<'a> {
    scene: &'a Scene<'a>,
    graph: &'a CallGraph,
    grouping: &'a Grouping,
    /// List callers; otherwise callees.
    callers: bool,
}

/// A row of the table: the function itself, or one of its calls.
struct CallLine {
    depth: u64,
    frame: FrameId,
    total: i64,
    /// The self cost of the function. `None` for calls.
    own: Option<i64>,
    calls: u64,
    /// The branch (`├ ` or `└ `) drawn before the name.
    lines: &'static str,
}

/// Lists the functions with that name, each with its callers or callees.
pub(super) fn report(scene: &Scene<'_>, graph: &CallGraph, name: &str) -> Result<Report> {
    let grouping = &Grouping::new(scene.profile, FUNCTION, scene.options.unnamed);
    let part = |function: &GraphFunction| grouping.of_frames()[function.frame.index()];
    let wanted = called(grouping, graph.functions().iter().map(part), name)?;
    let callers = matches!(scene.options.rows, Rows::Callers(_));
    let called = Called { scene, graph, grouping, callers };
    let mut functions: Vec<&GraphFunction> =
        graph.functions().iter().filter(|function| wanted.contains(&part(function))).collect();
    functions.sort_by_key(|function| Reverse(function.total));
    let is_text = scene.options.layout == Layout::Text;
    let whole = functions.iter().fold(0i64, |sum, function| sum.saturating_add(function.total));
    let least = scene.least_of(if is_text { USUAL_PERCENT } else { 0.0 }, whole);
    let lines: Vec<CallLine> = functions.into_iter().flat_map(|function| called.lines(function, least)).collect();
    if !is_text {
        return Ok(Report::new(scene, Vec::new(), called.plain(&lines)));
    }
    Ok(Report::new(scene, head(scene), called.text(&lines)))
}

impl Called<'_> {
    /// The function's own row and the rows of its calls, heaviest first. Calls that cost less than `least` are left
    /// out.
    fn lines(&self, function: &GraphFunction, least: f64) -> Vec<CallLine> {
        let GraphFunction { frame, own, total, .. } = *function;
        let edges = self.graph.edges();
        let calls =
            edges.iter().filter(|edge| edge.callee == frame).fold(0u64, |sum, edge| sum.saturating_add(edge.count));
        let end = |edge: &Edge| if self.callers { (edge.callee, edge.caller) } else { (edge.caller, edge.callee) };
        let mut others: Vec<&Edge> =
            edges.iter().filter(|edge| end(edge).0 == frame && edge.cost.unsigned_abs() as f64 >= least).collect();
        let names = |edge: &Edge| self.names(end(edge).1);
        others.sort_by(|a, b| b.cost.cmp(&a.cost).then_with(|| names(a).iter().rev().cmp(names(b).iter().rev())));
        let last = others.len().saturating_sub(1);
        let line = |(at, edge): (usize, &&Edge)| CallLine {
            depth: 1,
            frame: end(edge).1,
            total: edge.cost,
            own: None,
            calls: edge.count,
            lines: if at == last { "└ " } else { "├ " },
        };
        let first = CallLine { depth: 0, frame, total, own: Some(own), calls, lines: "" };
        std::iter::once(first).chain(others.iter().enumerate().map(line)).collect()
    }

    /// The module and the name of a function.
    fn names(&self, frame: FrameId) -> &[Value] {
        self.grouping.frame_values(self.grouping.of_frames()[frame.index()])
    }

    fn text(&self, lines: &[CallLine]) -> Table {
        let mut table = Table::new(&["total%", "calls", "module", "symbol"]);
        table.rows.extend(lines.iter().map(|line| {
            let [module, name] = [0, 1].map(|at| self.names(line.frame).get(at).map_or("", Value::text));
            let symbol = Cell::branch(line.lines.to_owned(), name.to_owned());
            vec![self.scene.share(line.total), Cell::Count(line.calls), Cell::text(base_name(module)), symbol]
        }));
        table
    }

    fn plain(&self, lines: &[CallLine]) -> Table {
        let mut table =
            Table::new(&["depth", "total%", "self%", "total", "self", "calls", "module", "symbol", "source"]);
        table.rows.extend(lines.iter().map(|line| {
            let own = line.own.map_or([Cell::None, Cell::None], |own| [self.scene.share(own), Cell::Signed(own)]);
            let [own_share, own] = own;
            let mut cells = vec![Cell::Count(line.depth), self.scene.share(line.total), own_share];
            cells.extend([Cell::Signed(line.total), own, Cell::Count(line.calls)]);
            cells.extend(self.names(line.frame).iter().map(cell));
            cells.push(self.scene.source(line.frame));
            cells
        }));
        table
    }
}
