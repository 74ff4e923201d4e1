//! The content of a picture, before it is known where on a page: boxes, their names and colors, title and legend.

use super::amount::{Amounts, percent};
use super::look::{Look, nothing};
use crate::analysis::call_tree::{CallTree, Chart, Spelling};
use crate::analysis::category::Category;
use crate::analysis::label::Annotate;
use crate::analysis::quantity::grouped;
use crate::analysis::significance::greatest_common_divisor;
use crate::analysis::sorted_stacks::{Boxes, Runs};
use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::model::interner::Interner;
use crate::model::printable::readable;
use crate::model::stacks::{Profile, Series, Unit, Weight};
use crate::model::tier::Tier;
use crate::render::palette::{Swatch, warm};
use rustc_hash::FxHashMap;

/// A picture's content.
#[derive(Debug)]
pub(super) struct Drawing {
    /// The first line.
    pub(super) title: String,
    /// The facts about the profile, one each.
    pub(super) facts: Vec<String>,
    /// The meanings of colors.
    pub(super) legend: Vec<(Swatch, String)>,
    /// Printable, by number.
    pub(super) names: Vec<String>,
    /// From left to right, each before those above it; those of each thread of a chart together.
    pub(super) boxes: Vec<PageBox>,
    /// The number of rows of boxes.
    pub(super) rows: u32,
    /// The whole, in the unit of the boxes.
    pub(super) total: u64,
    /// The way amounts are reported.
    pub(super) amounts: Amounts,
    /// True if boxes are where their time was.
    pub(super) is_chart: bool,
}

/// A box.
#[derive(Debug)]
pub(super) struct PageBox {
    /// The number of rows that are below it.
    pub(super) row: u32,
    /// The amount of all that is left of it.
    pub(super) start: u64,
    /// `start` and its own amount.
    pub(super) end: u64,
    /// Its name's number.
    pub(super) name: u32,
    /// The meaning of its color.
    pub(super) swatch: Swatch,
    /// The tiers of its function, if there are several, the heaviest first.
    pub(super) shares: Vec<(Swatch, u64)>,
    /// Its weight before, in a difference.
    pub(super) before: Option<Before>,
}

/// The weight of a box before, in a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Before {
    /// Its amount.
    pub(super) amount: u64,
    /// True if the change is more than chance.
    pub(super) significant: bool,
}

/// A picture of everything gets narrower boxes than this percentage only if asked for.
const NARROWEST: f64 = 0.01;

/// A chart has many more, which zooming brings out.
const NARROWEST_IN_CHART: f64 = 0.001;

/// Numbers the names that are used, each once.
#[derive(Debug, Default)]
pub(super) struct NameTable(Interner<String, u32>);

impl NameTable {
    pub(super) fn number(&mut self, name: &str) -> u32 {
        self.0.number(&*readable(without_suffix(name).as_bytes()))
    }

    /// The number of a box's name: with the place where the function starts, if others are called like it.
    pub(super) fn number_of(&mut self, tree: &CallTree, label: Option<u32>, starts: &[Option<String>]) -> u32 {
        let Some(label) = label else { return self.number("all") };
        let name = without_suffix(tree.name(label));
        match &starts[label as usize] {
            Some(start) => self.number(&format!("{name} ({start})")),
            None => self.number(name),
        }
    }
}

/// A name without the suffix that shows what sort of code it is: that is recognized by the color.
pub(super) fn without_suffix(name: &str) -> &str {
    let bare = name.strip_suffix(']').and_then(|name| name.strip_suffix(['k', 'w', 'i', 'j']));
    bare.and_then(|name| name.strip_suffix("_[")).unwrap_or(name)
}

fn spelling(profile: &Profile, options: &WriteOptions, look: &Look) -> Spelling {
    let by_category = Category::are_known(profile);
    let (by, annotate, tidied) = (options.by, options.annotate, options.tidied);
    Spelling { by, annotate, tidied, reversed: look.reversed, by_category, by_start: true }
}

/// The tree of one event by functions, with a node for each sort of code where that is known: for comparisons.
pub(super) fn tree_of_functions(
    profile: &Profile,
    series: &Series,
    options: &WriteOptions,
    look: &Look,
) -> Result<CallTree> {
    tree_of(profile, series, options, look, spelling(profile, options, look))
}

fn tree_of(
    profile: &Profile,
    series: &Series,
    options: &WriteOptions,
    look: &Look,
    spelling: Spelling,
) -> Result<CallTree> {
    let mut tree = CallTree::new(profile, series, options.weight, spelling);
    if !look.base.is_empty() {
        tree = tree.based_at(&look.base);
    }
    if tree.total() == 0 { Err(nothing()) } else { Ok(tree) }
}

/// Self weight by kind of code; empty if none is known. What ran is the innermost frame, with which reversed stacks
/// begin.
fn own_by_category(tree: &CallTree, reversed: bool) -> FxHashMap<Category, u64> {
    let mut by_label = vec![None; tree.label_count()];
    for (node, label) in tree.labelled_nodes() {
        *by_label[label as usize].get_or_insert(0) += if reversed { 0 } else { tree.own_of(node) };
    }
    for (node, label) in tree.outermost_nodes().filter(|_| reversed) {
        *by_label[label as usize].get_or_insert(0) += tree.total_of(node);
    }
    let mut own: FxHashMap<Category, u64> = FxHashMap::default();
    for (label, sum) in (0..).zip(by_label) {
        if let Some((category, sum)) = tree.category(label).zip(sum) {
            *own.entry(category).or_default() += sum;
        }
    }
    own
}

/// The color of a box, by its label and what is known of its tiers.
fn swatch(tree: &CallTree, label: Option<u32>, tiers: &[(Option<Tier>, u64)], are_known: bool) -> Swatch {
    let Some(label) = label else { return Swatch::Whose };
    match tree.category(label) {
        Some(Category::Jit(_)) => Swatch::Code(Category::Jit(tiers.first().and_then(|(tier, _)| *tier))),
        Some(category) => Swatch::Code(category),
        None if are_known => Swatch::Whose,
        None => warm(tree.name(label)),
    }
}

/// The sorts of code that there are, with their share of self weight.
fn legend(own: &FxHashMap<Category, u64>, total: u64) -> Vec<(Swatch, String)> {
    let seen = Category::ALL.into_iter().filter_map(|category| Some((category, *own.get(&category)?)));
    let told = |(category, own): (Category, u64)| {
        (Swatch::Code(category), format!("{} {}", category.name(), percent(own as f64, total as f64)))
    };
    seen.map(told).collect()
}

impl Drawing {
    /// The flame graph of the merged stacks of one event.
    pub(super) fn flame(profile: &Profile, options: &WriteOptions, look: &Look) -> Result<Self> {
        let series = profile.series.get(options.series).ok_or_else(nothing)?;
        let tree = tree_of(profile, series, options, look, spelling(profile, options, look))?;
        let own = own_by_category(&tree, look.reversed);
        let mut drawing = Self::empty(profile, series, options, look);
        drawing.total = tree.total();
        drawing.legend = legend(&own, drawing.total);
        drawing.facts = facts(profile, series, options.weight, &drawing.amounts.text(drawing.total));
        let (mut names, starts) = (NameTable::default(), tree.places_of_namesakes());
        let mut numbers: FxHashMap<Option<u32>, u32> = FxHashMap::default();
        for (placed, shares) in tree.boxes_merging_tiers(look.narrowest(drawing.total)) {
            let number = || names.number_of(&tree, placed.label, &starts);
            let tiers = shares.heaviest_first();
            let swatch = swatch(&tree, placed.label, &tiers, !own.is_empty());
            let shares = if shares.is_mixed() { tiers } else { Vec::new() };
            drawing.boxes.push(PageBox {
                row: placed.depth,
                start: placed.start,
                end: placed.end,
                name: *numbers.entry(placed.label).or_insert_with(number),
                swatch,
                shares: shares.into_iter().map(|(tier, weight)| (Swatch::Code(Category::Jit(tier)), weight)).collect(),
                before: None,
            });
        }
        drawing.finished(names)
    }

    /// The same of stacks that were summed by sorting them.
    pub(super) fn of_sorted(runs: &Runs, options: &WriteOptions, look: &Look) -> Result<Self> {
        let (mut profile, total) = (Profile::new(), runs.total());
        let series = profile.series_named("samples", Unit::Samples);
        let mut drawing = Self::empty(&profile, &profile.series[series], options, look);
        drawing.total = total;
        drawing.facts = facts(&profile, &profile.series[series], options.weight, &drawing.amounts.text(total));
        let boxes = Boxes::of(runs, look.narrowest(total));
        drawing.legend = legend(&boxes.own, total);
        let mut names = NameTable::default();
        for one in &boxes.boxes {
            let name = boxes.name(one);
            let swatch = match (&name, one.category) {
                (None, _) => Swatch::Whose,
                (_, Some(category)) => Swatch::Code(category),
                (Some(name), None) => warm(name),
            };
            let number = names.number(name.as_deref().unwrap_or("all"));
            drawing.boxes.push(PageBox { start: one.start, ..PageBox::plain(one.depth, one.end, number, swatch) });
        }
        drawing.finished(names)
    }

    /// The chart of one event in order of time, a thread below the other.
    pub(super) fn chart(profile: &Profile, options: &WriteOptions, look: &Look) -> Result<Self> {
        let series = profile.series.get(options.series).ok_or_else(nothing)?;
        let spelling = spelling(profile, &WriteOptions { annotate: Annotate::default(), ..options.clone() }, look);
        let chart = Chart::new(profile, series, options.weight, spelling);
        let mut drawing = Self::empty(profile, series, options, look);
        // Rows without times are in their order: where a box begins is not time then.
        drawing.is_chart = chart.begin.is_some();
        drawing.total = chart.length;
        let sum = series.rows.iter().fold(0u64, |sum, row| sum.saturating_add(options.weight.of(row)));
        drawing.facts = facts(profile, series, options.weight, &drawing.amounts.text(sum));
        if chart.left_out > 0 {
            drawing.facts.push(format!("{} samples without a time left out", grouped(chart.left_out)));
        }
        if chart.begin.is_some() {
            let time = Series { unit: Unit::Nanos, ..Series::default() };
            drawing.amounts = Amounts::of(&time, Weight::Period, None, None);
        }
        let (mut names, starts) = (NameTable::default(), chart.tree.places_of_namesakes());
        let narrow = look.narrowest(chart.length);
        // The first thread is the topmost: rows are counted from below unless the picture is inverted.
        let order: Vec<_> =
            if look.inverted { chart.lanes.iter().collect() } else { chart.lanes.iter().rev().collect() };
        let mut row = 0;
        for lane in order {
            let height = lane.boxes.iter().map(|placed| placed.depth + 1).max().unwrap_or(0);
            let named = u32::from(!lane.name.is_empty());
            // The name is at the outermost functions.
            if named > 0 {
                drawing.boxes.push(PageBox::plain(row, chart.length, names.number(&lane.name), Swatch::Lane));
            }
            for placed in lane.boxes.iter().filter(|placed| placed.end - placed.start >= narrow) {
                let name = placed.label.map_or("idle", |label| chart.tree.name(label));
                let swatch = match placed.label {
                    Some(label) => chart.tree.category(label).map_or_else(|| warm(name), Swatch::Code),
                    None => Swatch::Idle,
                };
                let number = match placed.label {
                    Some(_) => names.number_of(&chart.tree, placed.label, &starts),
                    None => names.number(name),
                };
                drawing.boxes.push(PageBox {
                    start: placed.start,
                    ..PageBox::plain(row + named + placed.depth, placed.end, number, swatch)
                });
            }
            row += height + named;
        }
        drawing.legend = drawing.seen();
        drawing.finished(names)
    }

    /// Title and facts of one event, without boxes.
    pub(super) fn flame_facts(profile: &Profile, options: &WriteOptions, look: &Look) -> Result<Self> {
        let series = profile.series.get(options.series).ok_or_else(nothing)?;
        let mut drawing = Self::empty(profile, series, options, look);
        let total = series.rows.iter().fold(0u64, |sum, row| sum.saturating_add(options.weight.of(row)));
        drawing.facts = facts(profile, series, options.weight, &drawing.amounts.text(total));
        Ok(drawing)
    }

    /// The sorts of code that boxes are of.
    fn seen(&self) -> Vec<(Swatch, String)> {
        let seen = |category: &Category| self.boxes.iter().any(|one| one.swatch == Swatch::Code(*category));
        let seen = Category::ALL.into_iter().filter(seen);
        let seen = seen.map(|category| (Swatch::Code(category), category.name().to_owned()));
        let idle = self.boxes.iter().any(|one| one.swatch == Swatch::Idle);
        seen.chain(idle.then(|| (Swatch::Idle, "idle".to_owned()))).collect()
    }

    pub(super) fn empty(profile: &Profile, series: &Series, options: &WriteOptions, look: &Look) -> Self {
        Self {
            title: look.title.clone().unwrap_or_else(|| title(profile, look)),
            facts: Vec::new(),
            legend: Vec::new(),
            names: Vec::new(),
            boxes: Vec::new(),
            rows: 0,
            total: 0,
            amounts: Amounts::of(series, options.weight, look.count_name.as_deref(), look.factor),
            is_chart: false,
        }
    }

    pub(super) fn finished(mut self, names: NameTable) -> Result<Self> {
        self.names = names.0.into_items();
        self.rows = self.boxes.iter().map(|one| one.row + 1).max().unwrap_or(0);
        if self.total == 0 || self.rows == 0 { Err(nothing()) } else { Ok(self) }
    }

    /// The greatest that all amounts are multiples of: a profile of equal periods is counted in samples then.
    pub(super) fn common_unit(&self) -> u64 {
        let of_box = |one: &PageBox| {
            let shares = one.shares.iter().fold(0, |unit, (_, weight)| greatest_common_divisor(unit, *weight));
            greatest_common_divisor(
                greatest_common_divisor(greatest_common_divisor(one.start, one.end), shares),
                one.before.map_or(0, |before| before.amount),
            )
        };
        self.boxes
            .iter()
            .fold(self.total, |unit, one| if unit == 1 { 1 } else { greatest_common_divisor(unit, of_box(one)) })
            .max(1)
    }
}

impl PageBox {
    fn plain(row: u32, end: u64, name: u32, swatch: Swatch) -> Self {
        Self { row, start: 0, end, name, swatch, shares: Vec::new(), before: None }
    }
}

impl Look {
    /// The least amount that gets a box.
    pub(super) fn narrowest(&self, total: u64) -> u64 {
        let usual = if self.flame_chart { NARROWEST_IN_CHART } else { NARROWEST };
        (self.min_width.unwrap_or(usual) / 100.0 * total as f64).ceil() as u64
    }
}

/// The program that was recorded, or else the kind of picture and what it is of.
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

/// The event, how much of it there is, in how many samples and over which time.
fn facts(profile: &Profile, series: &Series, weight: Weight, total: &str) -> Vec<String> {
    let event = readable(series.name.as_bytes()).into_owned();
    let mut facts = Vec::new();
    if !total.ends_with(&event) {
        facts.push(event);
    }
    facts.push(total.to_owned());
    let samples = series.rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.count));
    let are_sums = matches!((&series.unit, weight), (Unit::Samples, _) | (_, Weight::Samples));
    if !are_sums && profile.about.sampled.is_some() {
        facts.push(format!("{} samples", grouped(samples)));
    }
    if let Some(sampled) = profile.about.sampled.filter(|sampled| sampled.duration() > 0) {
        let time = Series { unit: Unit::Nanos, ..Series::default() };
        let time = Amounts::of(&time, Weight::Period, None, None).text(sampled.duration());
        facts.push(format!("recorded for {time}"));
    }
    if profile.about.lost > 0 {
        facts.push(format!("{} lost", grouped(profile.about.lost)));
    }
    facts.extend(profile.about.notes.iter().cloned());
    facts
}
