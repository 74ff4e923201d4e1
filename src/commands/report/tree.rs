//! Call trees: all calls, the callers of a function, or its callees.
//!
//! In text, a function that is its parent's only child is printed below the parent without indentation. Branches are
//! drawn only where a parent has several children.

use super::header::{percent, wrap};
use super::list::{cell, hottest_functions};
use super::options::{Limit, Rows};
use super::scene::{Report, Scene, base_name};
use crate::analysis::groups::{GroupTree, Grouping, Roots, Value};
use crate::analysis::quantity::counted;
use crate::error::{Error, Result};
use crate::model::printable::list_some;
use crate::pipeline::table::{Cell, Layout, Table};
use rustc_hash::FxHashSet;
use std::cmp::Reverse;

/// By default, text output leaves out calls below this percentage of the total. perf report uses the same value for its
/// call chains.
pub(super) const DEFAULT_PERCENT: f64 = 0.5;

/// On a terminal, a run of functions, each of which is the only child of the one before, is folded into one row with
/// their number (`⋮ 5 frames`). A run must have at least this many functions.
const MIN_FOLDED: usize = 3;

/// Maximum number of levels of branches that are drawn before a name. Deeper rows would leave no room for the name.
const DEEPEST: usize = 16;

/// A call tree, and the data needed to print it.
struct TreeReport<'a> {
    scene: &'a Scene<'a>,
    grouping: &'a Grouping,
    tree: GroupTree,
    /// The children of each node, heaviest first. The last element is the list of roots.
    children: Vec<Vec<u32>>,
    /// For each group: the source location that distinguishes it from other groups with the same name. `None` if the
    /// name is unique.
    places: Vec<Option<String>>,
}

/// A row of the printed tree.
enum TreeLine {
    /// A single node.
    Node {
        node: u32,
        /// The branches drawn before the name.
        branches: String,
    },
    /// Several nodes, each the only child of the one before. The row only shows how many they are.
    Folded {
        nodes: usize,
        /// The branches drawn before the number.
        branches: String,
    },
}

/// A node that is still to be printed.
struct PendingNode {
    node: u32,
    /// The branches to draw before the node's name.
    branches: String,
    /// The branches to draw before each of its children. The branch of the child itself is added to them if there are
    /// several children.
    branches_below: String,
}

/// Builds the tree that the user requested: all calls, or the callers or callees of a function.
pub(super) fn report(scene: &Scene<'_>) -> Result<Report> {
    let grouping = scene.grouping;
    let groups = match &scene.options.rows {
        Rows::Callers(name) | Rows::Callees(name) => {
            find_functions(scene, grouping, 0..grouping.frame_parts() as u32, name)?
        }
        _ => FxHashSet::default(),
    };
    let roots = match &scene.options.rows {
        Rows::Callers(_) => Roots::Callers(&groups),
        Rows::Callees(_) => Roots::Callees(&groups),
        _ => Roots::Stacks,
    };
    let tree = GroupTree::new(scene.profile, scene.series, scene.options.weight, grouping, roots);
    let tree = TreeReport::new(scene, grouping, tree);
    if scene.options.layout != Layout::Text {
        return Ok(Report::new(scene, Vec::new(), tree.plain_table()));
    }
    Ok(tree.fit(head(scene)))
}

/// The lines above a tree.
pub(super) fn head(scene: &Scene<'_>) -> Vec<String> {
    let mut head = scene.head();
    let mut of_function = String::new();
    match &scene.options.rows {
        Rows::Callers(name) => {
            head.push(format!("{name}, with its callers below"));
            of_function = format!(" of {name}");
        }
        Rows::Callees(name) => {
            head.push(format!("{name}, with its callees below"));
            of_function = format!(" of {name}");
        }
        _ => {}
    }
    if scene.options.selection.percent.is_none() {
        head.push(format!("rows below {DEFAULT_PERCENT}%{of_function} are left out (show all with --percent-limit 0)"));
    }
    head
}

/// Finds the functions that the user means by `wanted`. `groups` has the IDs (frame part IDs of `grouping`) of the
/// functions to search, and the result has those of the functions that match. The first of these rules that finds any
/// decides:
///
/// * the name with the location that tells it from its namesakes, as tables show it (`init (a.c)`),
/// * the exact name,
/// * names that contain `wanted` as a whole word,
/// * names that contain it anywhere.
///
/// If there are none, the error lists names that differ only in case or, failing that, the costliest functions.
pub(super) fn find_functions(
    scene: &Scene<'_>,
    grouping: &Grouping,
    groups: impl Iterator<Item = u32> + Clone,
    wanted: &str,
) -> Result<FxHashSet<u32>> {
    let name = |group: u32| grouping.frame_values(group).last().map_or("", Value::text);
    let places = grouping.namesake_locations(scene.profile);
    // True if the user typed the name with the location that distinguishes the group's function from others.
    let is_named_with_place = |group: &u32| match &places[*group as usize] {
        Some(place) => {
            let location = wanted.strip_prefix(name(*group)).and_then(|rest| rest.strip_prefix(" ("));
            location.and_then(|location| location.strip_suffix(")")) == Some(place.as_str())
        }
        None => false,
    };
    let found: FxHashSet<u32> = groups.clone().filter(is_named_with_place).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let rules: [fn(&str, &str) -> bool; 3] =
        [|name, wanted| name == wanted, has_word, |name, wanted| name.contains(wanted)];
    for matches in rules {
        let found: FxHashSet<u32> = groups.clone().filter(|group| matches(name(*group), wanted)).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let lower = wanted.to_lowercase();
    let mut similar: Vec<&str> = groups.map(name).filter(|name| name.to_lowercase().contains(&lower)).collect();
    similar.sort_unstable();
    let alternatives = if similar.is_empty() {
        format!("functions in this input: {}", list_some(hottest_functions(scene, grouping).into_iter()))
    } else {
        format!("did you mean: {}", list_some(similar.into_iter().map(str::to_owned)))
    };
    Err(Error::new(format!("no function named {wanted}; {alternatives}")))
}

/// True if `wanted` is in the name as a whole word.
fn has_word(name: &str, wanted: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    name.match_indices(wanted).any(|(start, _)| {
        let before = &name[..start];
        let after = &name[start + wanted.len()..];
        !before.ends_with(in_word) && !after.starts_with(in_word)
    })
}

impl<'a> TreeReport<'a> {
    /// Prepares a tree for printing: sorts the children of each node by weight, the heaviest first, then by name.
    fn new(scene: &'a Scene<'a>, grouping: &'a Grouping, tree: GroupTree) -> Self {
        // The roots are listed as the children of an additional node.
        let root_list = tree.len();
        let mut children = vec![Vec::new(); root_list + 1];
        for node in 0..tree.len() as u32 {
            children[tree.parent(node).map_or(root_list, |parent| parent as usize)].push(node);
        }
        let key = |node: &u32| {
            (Reverse(tree.total(*node).weight.unsigned_abs()), grouping.frame_values(tree.part(*node)).last())
        };
        for list in &mut children {
            list.sort_by(|a, b| key(a).cmp(&key(b)));
        }
        let places = grouping.namesake_locations(scene.profile);
        Self { scene, grouping, tree, children, places }
    }

    /// The children of a node (for `None`, the roots) that weigh at least `min_weight`, heaviest first.
    fn children(&self, node: Option<u32>, min_weight: f64) -> impl Iterator<Item = u32> + Clone + '_ {
        let siblings = &self.children[node.map_or(self.tree.len(), |node| node as usize)];
        // The requested function is always shown, however small its weight is.
        let min_weight = if node.is_none() && self.starts_at_function() { 0.0 } else { min_weight };
        // The list is sorted by weight, so it ends at the first node that is too light.
        siblings
            .iter()
            .copied()
            .take_while(move |node| self.weight(*node) > 0 && self.weight(*node) as f64 >= min_weight)
    }

    fn weight(&self, node: u32) -> u64 {
        self.tree.total(node).weight.unsigned_abs()
    }

    /// True if the tree's roots are the function that the user requested. Otherwise they are the outermost frames.
    fn starts_at_function(&self) -> bool {
        matches!(self.scene.options.rows, Rows::Callers(_) | Rows::Callees(_))
    }

    /// The minimum weight of nodes that are shown. It is a percentage of the total or, if a function was requested, of
    /// that function's weight.
    fn min_weight(&self, default_percent: f64) -> f64 {
        if !self.starts_at_function() {
            return self.scene.min_weight(default_percent);
        }
        let roots = &self.children[self.tree.len()];
        let whole = roots.iter().fold(0u64, |sum, root| sum.saturating_add(self.weight(*root)));
        self.scene.min_weight_of(default_percent, i64::try_from(whole).unwrap_or(i64::MAX))
    }

    /// Makes the report. If its table has too many rows, raises the minimum weight of the rows as far as necessary:
    /// cutting off the last rows would lose heavy ones. `head` are the lines above the table.
    fn fit(&self, head: Vec<String>) -> Report {
        let scene = self.scene;
        let head = wrap(head, scene.options.reader.style.width);
        let min_weight = self.min_weight(DEFAULT_PERCENT);
        let row_limit = scene.row_limit(head.len());
        let fold = scene.is_on_terminal() && scene.options.selection.limit == Limit::Fitting;
        let mut lines = self.lines(min_weight, fold);
        let node_count: usize = lines.iter().map(TreeLine::nodes).sum();
        if lines.len() > row_limit {
            let mut weights: Vec<u64> = (0..self.tree.len() as u32).map(|node| self.weight(node)).collect();
            weights.sort_unstable();
            weights.dedup();
            // `weights` are the weights of all nodes. Find the lowest one that, as the minimum weight, leaves few
            // enough rows.
            let first_fitting = weights.partition_point(|&weight| self.lines(weight as f64, fold).len() > row_limit);
            let smallest = weights.get(first_fitting).map_or(f64::INFINITY, |&weight| (weight as f64).max(min_weight));
            lines = self.lines(smallest, fold);
        }
        let shown_count: usize = lines.iter().map(TreeLine::nodes).sum();
        let left_out = if scene.tells_what_is_left_out() { node_count - shown_count } else { 0 };
        Report { head, table: self.table(&lines), left_out }
    }

    /// The rows of all nodes with at least this weight, parents before children. With `fold`, long runs of nodes with
    /// only one child become a single row.
    fn lines(&self, min_weight: f64, fold: bool) -> Vec<TreeLine> {
        let mut lines = Vec::new();
        let mut pending = Vec::new();
        self.push_children(None, "", min_weight, &mut pending);
        while let Some(PendingNode { node, branches, branches_below }) = pending.pop() {
            // For an only child, no branch is drawn, so the branches before its name are those before its children.
            let is_only_child = branches == branches_below;
            let may_fold = fold && is_only_child && self.may_fold(node);
            let run = if may_fold { self.find_run(node, min_weight) } else { Vec::new() };
            // The children of `last` come next: it is the last node of a folded run, or the node itself.
            let last = match run.last() {
                Some(&last) if run.len() >= MIN_FOLDED => {
                    lines.push(TreeLine::Folded { nodes: run.len(), branches });
                    last
                }
                _ => {
                    lines.push(TreeLine::Node { node, branches });
                    node
                }
            };
            self.push_children(Some(last), &branches_below, min_weight, &mut pending);
        }
        lines
    }

    /// True if the node may be folded into a row that only shows a number of nodes. The function that the user
    /// requested and its direct callers or callees are always shown by name.
    fn may_fold(&self, node: u32) -> bool {
        !self.starts_at_function() || self.tree.parent(node).is_some_and(|parent| self.tree.parent(parent).is_some())
    }

    /// The run of nodes that starts at `node`: it and its descendants, as long as each has only one child and almost no
    /// self weight. The first descendant with several children or none isn't part of the run, so that it is shown by
    /// name.
    fn find_run(&self, node: u32, min_weight: f64) -> Vec<u32> {
        let mut run = Vec::new();
        let mut current = node;
        while let Some(child) = self.only_child(current, min_weight) {
            run.push(current);
            current = child;
        }
        run
    }

    /// The child of a node that has exactly one child and almost no self weight. `None` for other nodes.
    fn only_child(&self, node: u32, min_weight: f64) -> Option<u32> {
        if percent(self.tree.own(node).weight, self.scene.whole) >= DEFAULT_PERCENT {
            return None;
        }
        let mut children = self.children(Some(node), min_weight);
        let child = children.next()?;
        children.next().is_none().then_some(child)
    }

    /// Pushes a node's children (for `None`, the roots) onto `pending`, so that the heaviest is popped first. An only
    /// child is drawn behind `branches`. If there are several children, each gets one more level of branches.
    fn push_children(&self, node: Option<u32>, branches: &str, min_weight: f64, pending: &mut Vec<PendingNode>) {
        let children: Vec<u32> = self.children(node, min_weight).collect();
        if let [only] = children[..] {
            pending.push(PendingNode {
                node: only,
                branches: branches.to_owned(),
                branches_below: branches.to_owned(),
            });
            return;
        }
        for (index, &child) in children.iter().enumerate().rev() {
            let (before_name, before_children) =
                if index + 1 == children.len() { ("└ ", "  ") } else { ("├ ", "│ ") };
            pending.push(PendingNode {
                node: child,
                branches: add_level(branches, before_name),
                branches_below: add_level(branches, before_children),
            });
        }
    }

    /// The table for people. A tree of callers has no column for self weight, which would be misleading: a caller's
    /// node has the weight of the stacks in which that caller is outermost, not the weight of the caller's own code.
    fn table(&self, lines: &[TreeLine]) -> Table {
        let shows_callers = matches!(self.scene.options.rows, Rows::Callers(_));
        let columns: &[&'static str] =
            if shows_callers { &["total%", "module", "symbol"] } else { &["total%", "self%", "module", "symbol"] };
        let mut table = Table::new(columns);
        for line in lines {
            let (total_and_self, module, name, branches) = match line {
                TreeLine::Node { node, branches } => {
                    let (module, name) = (self.module(*node), self.name(*node));
                    (self.total_and_self(*node), Cell::text(base_name(module.text())), name, branches)
                }
                TreeLine::Folded { nodes, branches } => {
                    let name = format!("⋮ {}", counted(*nodes as u64, "frame"));
                    ([Cell::Empty, Cell::Empty], Cell::None, name, branches)
                }
            };
            let mut row: Vec<Cell> = total_and_self.into_iter().take(if shows_callers { 1 } else { 2 }).collect();
            row.extend([module, Cell::branch(branches.clone(), name)]);
            table.rows.push(row);
        }
        table
    }

    /// The table for programs (CSV and JSON): all nodes with their depth, parents before children.
    fn plain_table(&self) -> Table {
        let mut table = Table::new(&["depth", "total%", "self%", "total", "self", "samples", "module", "symbol"]);
        let min_weight = self.min_weight(0.0);
        // `todo` is a stack, so siblings are pushed lightest first: the heaviest is then printed first.
        let mut todo: Vec<(u64, u32)> = self.children(None, min_weight).map(|node| (0, node)).collect();
        todo.reverse();
        while let Some((depth, node)) = todo.pop() {
            let (own, total) = (self.tree.own(node), self.tree.total(node));
            let mut cells = vec![Cell::Count(depth)];
            cells.extend(self.total_and_self(node));
            cells.extend([self.scene.weight(total.weight), self.scene.weight(own.weight), Cell::Count(total.count)]);
            cells.extend([cell(self.module(node)), Cell::text(self.name(node))]);
            table.rows.push(cells);
            let first_child = todo.len();
            todo.extend(self.children(Some(node), min_weight).map(|child| (depth + 1, child)));
            todo[first_child..].reverse();
        }
        table
    }

    /// The total and the self weight of a node, as percentages.
    fn total_and_self(&self, node: u32) -> [Cell; 2] {
        [self.tree.total(node), self.tree.own(node)].map(|sum| self.scene.share(sum.weight))
    }

    /// The module of a node's function.
    fn module(&self, node: u32) -> &Value {
        self.module_and_name(node)[0]
    }

    /// The name of a node's function, with the location where it starts if other functions have the same name.
    fn name(&self, node: u32) -> String {
        let [_, name] = self.module_and_name(node);
        match &self.places[self.tree.part(node) as usize] {
            Some(place) => format!("{} ({place})", name.text()),
            None => name.text().to_owned(),
        }
    }

    /// The module and the name of a node's function.
    fn module_and_name(&self, node: u32) -> [&Value; 2] {
        match self.grouping.frame_values(self.tree.part(node)) {
            [module, function] => [module, function],
            _ => [&Value::None; 2],
        }
    }
}

/// Appends one level to the branches drawn before a name. Each level has two characters. If there are more than
/// [`DEEPEST`] levels, the outermost ones are replaced by `…`.
fn add_level(branches: &str, level: &str) -> String {
    let levels = format!("{branches}{level}");
    let chars = levels.chars().count();
    if chars <= 2 * DEEPEST {
        levels
    } else {
        // `… ` takes the place of one level.
        format!("… {}", levels.chars().skip(chars - 2 * DEEPEST + 2).collect::<String>())
    }
}

impl TreeLine {
    /// The number of nodes that the row stands for.
    fn nodes(&self) -> usize {
        match self {
            Self::Node { .. } => 1,
            Self::Folded { nodes, .. } => *nodes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_not_part_of_another() {
        assert!(
            has_word("push list.js:10:5", "push") && has_word("a::push(int)", "push") && has_word("A.push", "push")
        );
        assert!(!has_word("pushAll", "push") && !has_word("_push", "push"));
    }

    #[test]
    fn many_levels_keep_the_last_ones() {
        let lines = (0..40).fold(String::new(), |lines, _| add_level(&lines, "│ "));
        assert_eq!(lines.chars().count(), 2 * DEEPEST);
        assert!(lines.starts_with("… │ "));
    }
}
