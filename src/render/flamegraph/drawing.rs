//! The content of a flame graph before layout: boxes with names and colors, title and legend.

use super::amount::{Amounts, percent};
use super::look::{Look, no_samples};
use crate::analysis::call_tree::{CallTree, Chart, Lane, MergedBox, PlacedBox, Spelling};
use crate::analysis::category::Category;
use crate::analysis::label::Annotate;
use crate::analysis::quantity::{counted, grouped};
use crate::analysis::significance::greatest_common_divisor;
use crate::contract::format::WriteOptions;
use crate::error::{Error, Result};
use crate::model::interner::Interner;
use crate::model::printable::{list_some, readable};
use crate::model::stacks::{Profile, Series, TRUNCATED, Unit, Weight};
use crate::model::tier::Tier;
use crate::render::palette::{Swatch, warm};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// The content of a flame graph, or of a chart over time.
#[derive(Debug)]
pub(super) struct Drawing {
    /// The title.
    pub(super) title: String,
    /// Facts about the profile, shown below the title.
    pub(super) facts: Vec<String>,
    /// A sentence that says why stacks are truncated, for the tooltips of the boxes that stand for missing callers.
    /// `None` if the reason is unknown.
    pub(super) truncation: Option<String>,
    /// The legend: colors and their meanings.
    pub(super) legend: Vec<(Swatch, String)>,
    /// The names of boxes, without control characters. [`PageBox::name`] is an index into this list.
    pub(super) names: Vec<String>,
    /// The boxes from left to right. Each box comes before those that are stacked on it. In a chart, the boxes of each
    /// thread are contiguous.
    pub(super) boxes: Vec<PageBox>,
    /// The number of rows of boxes.
    pub(super) rows: u32,
    /// The sum of all weights: the width of the whole picture, in the unit of the boxes' weights.
    pub(super) total: u64,
    /// The same sum in the earlier profile, scaled as [`Before::amount`] is. `None` unless two profiles are compared.
    pub(super) total_before: Option<u64>,
    /// How amounts are formatted.
    pub(super) amounts: Amounts,
    /// True if the horizontal axis is time, so that the position of a box shows when the function ran.
    pub(super) is_chart: bool,
}

/// A box of the picture. It stands for a function and everything that it called, for the whole graph, for the name of a
/// thread, or for a time in which the thread was idle ([`PageBox::swatch`] tells which).
#[derive(Debug)]
pub(super) struct PageBox {
    /// The number of the box's row, counted from 0 for the outermost functions.
    pub(super) row: u32,
    /// The left edge of the box: the sum of the weights to its left.
    pub(super) start: u64,
    /// The right edge: `start` plus the weight of the box.
    pub(super) end: u64,
    /// The weight of the function itself, without what it called. `None` if unknown: in a chart over time, and for the
    /// callers in a graph of reversed stacks.
    pub(super) own: Option<u64>,
    /// The index of the box's name in [`Drawing::names`].
    pub(super) name: u32,
    /// The meaning of the box's color.
    pub(super) swatch: Swatch,
    /// The weight of each tier of JIT code in the function, heaviest first. Empty unless there are several tiers.
    pub(super) shares: Vec<(Swatch, u64)>,
    /// The box's weight in the earlier profile. `None` unless two profiles are compared.
    pub(super) before: Option<Before>,
}

/// The weight of a box in the earlier profile of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Before {
    /// The weight. If profiles are compared by shares, it is scaled to the later profile's total.
    pub(super) amount: u64,
    /// True if both profiles are samples, and the two weights differ by no more than chance.
    pub(super) is_noise: bool,
}

/// Minimum width of a box in a flame graph, in percent of the picture's width, unless the user sets another one.
/// Narrower boxes aren't drawn.
const NARROWEST: f64 = 0.01;

/// Minimum width of a box in a chart, in percent of the picture's width. It is smaller than in flame graphs, because a
/// chart has many narrow boxes that become visible when zooming in.
const NARROWEST_IN_CHART: f64 = 0.001;

/// The names of boxes, each of them stored once and numbered.
#[derive(Debug, Default)]
pub(super) struct NameTable(Interner<String, u32>);

impl NameTable {
    pub(super) fn number(&mut self, name: &str) -> u32 {
        self.0.number(&*readable(without_suffix(name).as_bytes()))
    }

    /// Composes the name to show for a box, adds it to the table if it is new, and returns its number there. The root,
    /// which has no label, is called "all". If the label's name belongs to several functions, the location where its
    /// function starts is appended; `starts` has these locations by label. If the box stands for several unnamed frames
    /// in a row, their number is appended instead.
    pub(super) fn number_of(&mut self, tree: &CallTree, placed: &PlacedBox, starts: &[Option<String>]) -> u32 {
        let Some(label) = placed.label else { return self.number("all") };
        let name = without_suffix(tree.name(label));
        // How many frames in a row the box stands for, which is 1 for most boxes. If it differs from stack to stack,
        // the maximum.
        let frames = tree.longest_run(placed.node);
        if frames > 1 {
            return self.number(&format!("{name} (up to {} frames)", grouped(frames.into())));
        }
        match &starts[label as usize] {
            Some(start) => self.number(&format!("{name} ({start})")),
            None => self.number(name),
        }
    }
}

/// Removes the suffix that shows a function's kind of code (such as `_[j]`), because in pictures the color shows the
/// kind.
pub(super) fn without_suffix(name: &str) -> &str {
    let bare = name.strip_suffix(']').and_then(|name| name.strip_suffix(['k', 'w', 'i', 'j']));
    bare.and_then(|name| name.strip_suffix("_[")).unwrap_or(name)
}

fn spelling(profile: &Profile, options: &WriteOptions, look: &Look) -> Spelling {
    let by_category = Category::are_known(profile);
    let (by, annotate, shortening) = (options.by, options.annotate, options.shortening);
    Spelling { by, annotate, shortening, reversed: look.reversed, by_category, by_start: true, join_unnamed: true }
}

/// The call tree of one event by function. If the profile states kinds of code, a function has one node per kind. With
/// base functions (`look.base`), only the parts of stacks from these functions on are in the tree. Fails if there are
/// no samples, or if no base function occurs.
pub(super) fn function_tree(
    profile: &Profile,
    series: &Series,
    options: &WriteOptions,
    look: &Look,
) -> Result<CallTree> {
    let mut tree = CallTree::new(profile, series, options.weight, spelling(profile, options, look));
    if !look.base.is_empty() && tree.total() > 0 {
        // For an error that lists functions: take their names now, because `based_at` may leave an empty tree.
        let hottest = list_some(hottest_names(&tree).into_iter());
        tree = tree.based_at(&look.base);
        if tree.total() == 0 {
            let base = look.base.join(", ");
            return Err(Error::new(format!(
                "no function is named {base} (--base); functions in this input: {hottest}"
            )));
        }
    }
    if tree.total() == 0 { Err(no_samples(Some(series))) } else { Ok(tree) }
}

/// The names of all functions, those with the most self weight first.
fn hottest_names(tree: &CallTree) -> Vec<String> {
    let mut weights: FxHashMap<&str, u64> = FxHashMap::default();
    for (node, label) in tree.labeled_nodes() {
        let weight = weights.entry(without_suffix(tree.name(label))).or_default();
        *weight = weight.saturating_add(tree.self_weight(node));
    }
    let mut names: Vec<(&str, u64)> = weights.into_iter().collect();
    names.sort_unstable_by_key(|&(name, weight)| (Reverse(weight), name));
    names.into_iter().map(|(name, _)| name.to_owned()).collect()
}

/// The self weight of the whole tree by kind of code. Empty if the profile states no kinds.
fn self_weight_by_category(tree: &CallTree, reversed: bool) -> FxHashMap<Category, u64> {
    // The self weight by label. `None` for labels that don't occur in the tree, so that the legend omits their kinds.
    let mut by_label: Vec<Option<u64>> = vec![None; tree.label_count()];
    for (node, label) in tree.labeled_nodes() {
        let sum = by_label[label as usize].get_or_insert(0);
        if !reversed {
            *sum = sum.saturating_add(tree.self_weight(node));
        }
    }
    if reversed {
        // Reversed stacks start with their innermost frame, so the tree's outermost nodes are the functions that ran.
        // The whole weight of a stack is self weight of this function.
        for (node, label) in tree.outermost_nodes() {
            let sum = by_label[label as usize].get_or_insert(0);
            *sum = sum.saturating_add(tree.total_weight(node));
        }
    }
    let mut by_category: FxHashMap<Category, u64> = FxHashMap::default();
    for (label, sum) in (0..).zip(by_label) {
        if let (Some(category), Some(weight)) = (tree.category(label), sum) {
            let category_sum = by_category.entry(category).or_default();
            *category_sum = category_sum.saturating_add(weight);
        }
    }
    by_category
}

/// The self weight of a box; `None` if it is unknown. `weight_of_ends` is the weight of the stacks that end at the box:
/// the self weight, unless stacks are reversed. In reversed stacks, boxes next to the root are the functions that ran,
/// so all of their weight is self weight; boxes further out are callers, whose self weight is unknown.
pub(super) fn own_of_box(placed: &PlacedBox, weight_of_ends: u64, look: &Look) -> Option<u64> {
    if !look.reversed {
        return Some(weight_of_ends);
    }
    match placed.depth {
        // The root isn't a function.
        0 => Some(0),
        1 => Some(placed.end - placed.start),
        _ => None,
    }
}

/// The color of a box. `label` is its function (`None`: the root), and `tiers` has the function's tiers with their
/// weights, the heaviest first. If the profile states no kinds of code (`categories_known` is false), the function's
/// name chooses one of the warm colors of traditional flame graphs.
fn swatch(tree: &CallTree, label: Option<u32>, tiers: &[(Option<Tier>, u64)], categories_known: bool) -> Swatch {
    let Some(label) = label else { return Swatch::Owner };
    // Missing callers are not code of any kind.
    if is_truncation(tree, label) {
        return Swatch::Owner;
    }
    match tree.category(label) {
        Some(Category::Jit(_)) => Swatch::Code(Category::Jit(tiers.first().and_then(|(tier, _)| *tier))),
        Some(category) => Swatch::Code(category),
        // A label of a process or thread: only these have no category if the profile states any.
        None if categories_known => Swatch::Owner,
        None => warm(tree.name(label)),
    }
}

/// True if a label stands for the missing callers of truncated stacks.
fn is_truncation(tree: &CallTree, label: u32) -> bool {
    without_suffix(tree.name(label)).as_bytes() == TRUNCATED
}

/// The legend of a flame graph: the kinds of code, each with its share of the self weight. Leaves out kinds whose share
/// would be shown as zero.
fn legend(self_weights: &FxHashMap<Category, u64>, total: u64) -> Vec<(Swatch, String)> {
    // Shares are compared as texts, because rounding decides whether one is shown as zero.
    let zero = percent(0.0, 1.0);
    let mut legend = Vec::new();
    for category in Category::ALL {
        let Some(weight) = self_weights.get(&category) else { continue };
        let share = percent(*weight as f64, total as f64);
        if share != zero {
            legend.push((Swatch::Code(category), format!("{} {share}", category.name())));
        }
    }
    legend
}

impl Drawing {
    /// Draws the flame graph of one event, with equal stacks merged. If a function ran as several tiers, its box has
    /// the color of the heaviest one and shows the share of each.
    pub(super) fn flame(profile: &Profile, options: &WriteOptions, look: &Look) -> Result<Self> {
        let series = profile.series.get(options.series).ok_or_else(|| no_samples(None))?;
        let tree = function_tree(profile, series, options, look)?;
        let by_category = self_weight_by_category(&tree, look.reversed);
        let categories_known = !by_category.is_empty();
        let mut drawing = Self::empty(profile, series, options, look);
        drawing.total = tree.total();
        drawing.legend = legend(&by_category, drawing.total);
        drawing.facts = facts(profile, series, options.weight, &drawing.amounts.text(drawing.total));
        let mut names = NameTable::default();
        // For each label whose name belongs to several functions: where its function starts. Boxes show this after the
        // name, so that the functions can be told apart.
        let starts = tree.namesake_locations();
        for MergedBox { placed, own: weight_of_ends, tiers } in tree.boxes_merging_tiers(look.narrowest(drawing.total))
        {
            let name = names.number_of(&tree, &placed, &starts);
            let by_tier = tiers.heaviest_first();
            let swatch = swatch(&tree, placed.label, &by_tier, categories_known);
            let mut shares = Vec::new();
            if tiers.is_mixed() {
                shares.extend(by_tier.iter().map(|&(tier, weight)| (Swatch::Code(Category::Jit(tier)), weight)));
            }
            drawing.boxes.push(PageBox {
                row: placed.depth,
                start: placed.start,
                end: placed.end,
                own: own_of_box(&placed, weight_of_ends, look),
                name,
                swatch,
                shares,
                before: None,
            });
        }
        drawing.finish(names)
    }

    /// The chart of one event over time, with the threads one below the other.
    pub(super) fn chart(profile: &Profile, options: &WriteOptions, look: &Look) -> Result<Self> {
        let series = profile.series.get(options.series).ok_or_else(|| no_samples(None))?;
        // Names get no suffix for their kind of code: colors show the kind.
        let spelling = spelling(profile, &WriteOptions { annotate: Annotate::default(), ..options.clone() }, look);
        let chart = Chart::new(profile, series, options.weight, spelling);
        let mut drawing = Self::empty(profile, series, options, look);
        // Without times, the rows keep the order of the input, and positions on the horizontal axis are sums of
        // weights.
        drawing.is_chart = chart.begin.is_some();
        drawing.total = chart.length;
        drawing.facts =
            facts(profile, series, options.weight, &drawing.amounts.text(sum_weights(series, options.weight)));
        if chart.left_out > 0 {
            drawing.facts.push(format!("left out {} without a timestamp", counted(chart.left_out, "sample")));
        }
        // On a time axis, the width of a box is a time, even if the event counts something else.
        if chart.begin.is_some() {
            let time = Series { unit: Unit::Nanos, ..Series::default() };
            drawing.amounts = Amounts::new(&time, Weight::Period, None, None);
        }
        let mut names = NameTable::default();
        // For each label whose name belongs to several functions: where its function starts. Boxes show this after the
        // name, so that the functions can be told apart.
        let starts = chart.tree.namesake_locations();
        // The first thread belongs at the top. Row 0 is at the bottom, so the lanes of the last thread come first; in
        // an inverted picture, row 0 is at the top.
        let mut lanes: Vec<&Lane> = chart.lanes.iter().collect();
        if !look.inverted {
            lanes.reverse();
        }
        let min_width = look.narrowest(chart.length);
        // The number of the lane's first row.
        let mut row = 0;
        for lane in lanes {
            // The lane's first row, over the whole width of the picture, shows the thread's name.
            if !lane.name.is_empty() {
                let name = names.number(&lane.name);
                drawing.boxes.push(PageBox::from_left(row, chart.length, name, Swatch::Lane));
                row += 1;
            }
            for chart_box in lane.boxes.iter().filter(|chart_box| chart_box.end - chart_box.start >= min_width) {
                let name = match chart_box.label {
                    Some(_) => names.number_of(&chart.tree, chart_box, &starts),
                    None => names.number("idle"),
                };
                let swatch = match chart_box.label.map(|label| (label, chart.tree.category(label))) {
                    Some((label, _)) if is_truncation(&chart.tree, label) => Swatch::Owner,
                    Some((_, Some(category))) => Swatch::Code(category),
                    Some((label, None)) => warm(chart.tree.name(label)),
                    None => Swatch::Idle,
                };
                // `from_left` sets the fields that boxes of charts have in common; the start is replaced.
                let from_left = PageBox::from_left(row + chart_box.depth, chart_box.end, name, swatch);
                drawing.boxes.push(PageBox { start: chart_box.start, ..from_left });
            }
            // The next lane starts after the deepest row of this one.
            row += lane.boxes.iter().map(|chart_box| chart_box.depth + 1).max().unwrap_or(0);
        }
        drawing.legend = drawing.plain_legend();
        drawing.finish(names)
    }

    /// The drawing of one event with title and facts; the caller adds the boxes.
    pub(super) fn without_boxes(profile: &Profile, options: &WriteOptions, look: &Look) -> Result<Self> {
        let series = profile.series.get(options.series).ok_or_else(|| no_samples(None))?;
        let mut drawing = Self::empty(profile, series, options, look);
        let total = drawing.amounts.text(sum_weights(series, options.weight));
        drawing.facts = facts(profile, series, options.weight, &total);
        Ok(drawing)
    }

    /// A legend without shares: the kinds of code that occur among the boxes, and idle time if it occurs.
    fn plain_legend(&self) -> Vec<(Swatch, String)> {
        let mut legend = Vec::new();
        for category in Category::ALL {
            if self.has(Swatch::Code(category)) {
                legend.push((Swatch::Code(category), category.name().to_owned()));
            }
        }
        if self.has(Swatch::Idle) {
            legend.push((Swatch::Idle, "idle".to_owned()));
        }
        legend
    }

    /// True if a box has this color.
    fn has(&self, swatch: Swatch) -> bool {
        self.boxes.iter().any(|page_box| page_box.swatch == swatch)
    }

    /// A drawing with title and units only. The caller adds boxes, facts, legend and totals.
    fn empty(profile: &Profile, series: &Series, options: &WriteOptions, look: &Look) -> Self {
        Self {
            title: look.title.clone().unwrap_or_else(|| title(profile, look)),
            facts: Vec::new(),
            truncation: profile.about.truncation.clone(),
            legend: Vec::new(),
            names: Vec::new(),
            boxes: Vec::new(),
            rows: 0,
            total: 0,
            total_before: None,
            amounts: Amounts::new(series, options.weight, look.count_name.as_deref(), look.factor),
            is_chart: false,
        }
    }

    /// Adds the names, and counts the rows of boxes. Fails if there are no boxes.
    pub(super) fn finish(mut self, names: NameTable) -> Result<Self> {
        self.names = names.0.into_items();
        self.rows = self.boxes.iter().map(|page_box| page_box.row + 1).max().unwrap_or(0);
        if self.total == 0 || self.rows == 0 { Err(no_samples(None)) } else { Ok(self) }
    }

    /// The name of a box.
    pub(super) fn name(&self, page_box: &PageBox) -> &str {
        &self.names[page_box.name as usize]
    }

    /// The greatest common divisor of all amounts, by which the page's amounts are divided; 1 if all are 0. For
    /// example, if all samples have the same period, the page's amounts become numbers of samples, which are shorter.
    pub(super) fn common_unit(&self) -> u64 {
        let mut unit = greatest_common_divisor(self.total, self.total_before.unwrap_or(0));
        for page_box in &self.boxes {
            if unit == 1 {
                break;
            }
            let own = page_box.own.unwrap_or(0);
            let before = page_box.before.map_or(0, |before| before.amount);
            let shares = page_box.shares.iter().map(|(_, weight)| *weight);
            for amount in [page_box.start, page_box.end, own, before].into_iter().chain(shares) {
                unit = greatest_common_divisor(unit, amount);
            }
        }
        unit.max(1)
    }
}

impl PageBox {
    /// A box from the left edge (0) to `end`. `name` is the number of its name. Self weight, tiers and comparison are
    /// empty; callers set what they know.
    fn from_left(row: u32, end: u64, name: u32, swatch: Swatch) -> Self {
        Self { row, start: 0, end, own: None, name, swatch, shares: Vec::new(), before: None }
    }
}

impl Look {
    /// The minimum weight of a box that is drawn, in a picture with this total weight.
    pub(super) fn narrowest(&self, total: u64) -> u64 {
        let usual = if self.flame_chart { NARROWEST_IN_CHART } else { NARROWEST };
        (self.min_width.unwrap_or(usual) / 100.0 * total as f64).ceil() as u64
    }
}

/// The title: the recorded program. If it is unknown, the kind of picture and the name of the input.
fn title(profile: &Profile, look: &Look) -> String {
    let words: Vec<_> = profile.about.program().iter().map(|word| readable(word)).collect();
    let kind = match (look.flame_chart, look.inverted) {
        (true, _) => "Flame chart",
        (false, true) => "Icicle graph",
        (false, false) => "Flame graph",
    };
    if !words.is_empty() {
        return words.join(" ");
    }
    look.subject.as_ref().map_or(kind.to_owned(), |subject| format!("{kind} of {}", readable(subject.as_bytes())))
}

/// The sum of all rows of an event.
fn sum_weights(series: &Series, weight: Weight) -> u64 {
    series.rows.iter().fold(0u64, |sum, row| sum.saturating_add(weight.value(row)))
}

/// The facts below the title: the event and its total, the number of samples, the time span, the number of lost
/// samples, and the profile's notes. The event is left out if it is the unit of `total` anyway.
fn facts(profile: &Profile, series: &Series, weight: Weight, total: &str) -> Vec<String> {
    let event = readable(series.name.as_bytes()).into_owned();
    let mut facts = Vec::new();
    // A total such as `1,234 page-faults` already names the event.
    if !total.ends_with(&event) {
        facts.push(event);
    }
    facts.push(total.to_owned());
    let samples = sum_weights(series, Weight::Samples);
    let is_total_in_samples = matches!((&series.unit, weight), (Unit::Samples, _) | (_, Weight::Samples));
    // Only recordings state times of samples. Rows of other profiles may be sums, so the number of samples isn't known.
    if !is_total_in_samples && profile.about.sampled.is_some() {
        facts.push(format!("{} samples", grouped(samples)));
    }
    if let Some(sampled) = profile.about.sampled.filter(|sampled| sampled.duration() > 0) {
        let time = Series { unit: Unit::Nanos, ..Series::default() };
        let time = Amounts::new(&time, Weight::Period, None, None).text(sampled.duration());
        facts.push(format!("recorded for {time}"));
    }
    if profile.about.lost > 0 {
        facts.push(format!("{} lost", grouped(profile.about.lost)));
    }
    facts.extend(profile.about.notes.iter().chain(&profile.about.truncation).cloned());
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legend_has_no_kind_with_a_share_of_zero() {
        let weights = [(Category::Native, 99_999), (Category::Unknown, 1)].into_iter().collect();
        let texts = |total| legend(&weights, total).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(100_000), [format!("{} 100.00%", Category::Native.name())]);
        assert_eq!(texts(2).len(), 2);
    }
}
