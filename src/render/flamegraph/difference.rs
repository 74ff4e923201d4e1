//! The flame graph of the difference between two profiles. Its boxes are those of the later profile, colored by whether
//! they grew or shrank since the earlier one.

use super::amount::percent;
use super::drawing::{Before, Drawing, NameTable, PageBox, function_tree, own_of_box};
use super::look::{Difference, Look, no_samples};
use crate::analysis::call_tree::CallTree;
use crate::analysis::comparison::{Comparison, Evidence};
use crate::analysis::groups::Sum;
use crate::analysis::namesakes::StartPlace;
use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::model::stacks::{Profile, Series, Weight};
use crate::render::palette::{STEPS, Swatch};
use rustc_hash::FxHashMap;

/// One event of the earlier or the later profile.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// The index of the event in `profile.series`.
    pub series: usize,
}

/// Two call trees of the same event in the same profile. They have the same nodes, so that each node has a weight and a
/// number of samples.
struct CountedTrees {
    /// The tree whose weights the picture shows: the weights or the numbers of samples, as the user chose.
    tree: CallTree,
    /// The tree whose weights are numbers of samples. These numbers tell whether a change may be chance.
    samples: CallTree,
}

impl CountedTrees {
    fn new(side: Side<'_>, options: &WriteOptions, look: &Look, difference: Difference) -> Result<Self> {
        let series = side.event()?;
        let count_samples = WriteOptions { weight: Weight::Samples, ..options.clone() };
        let samples = build_tree(side.profile, series, &count_samples, look, difference)?;
        let tree = build_tree(side.profile, series, options, look, difference)?;
        Ok(Self { tree, samples })
    }

    /// The total weight and the number of samples of a node. Both are 0 if there is no node.
    fn sum(&self, node: Option<u32>) -> Sum {
        let Some(node) = node else { return Sum::default() };
        let weight = i64::try_from(self.tree.total_weight(node)).unwrap_or(i64::MAX);
        Sum { weight, count: self.samples.total_weight(node) }
    }
}

/// The call tree of one event. A function has one node per call path, which is shared by all tiers of the function,
/// because the function may run in other tiers in the other profile.
fn build_tree(
    profile: &Profile,
    series: &Series,
    options: &WriteOptions,
    look: &Look,
    difference: Difference,
) -> Result<CallTree> {
    let tree = function_tree(profile, series, options, look)?;
    let tree = if difference.strip_hex { tree.rename(replace_hex) } else { tree };
    Ok(tree.merging_tiers())
}

impl<'a> Side<'a> {
    fn event(&self) -> Result<&'a Series> {
        self.profile.series.get(self.series).ok_or_else(|| no_samples(None))
    }
}

impl Drawing {
    /// The boxes of the later profile, colored by comparison with the earlier one.
    pub(super) fn difference(
        before: Side<'_>,
        after: Side<'_>,
        options: &WriteOptions,
        look: &Look,
        difference: Difference,
    ) -> Result<Self> {
        let after_options = WriteOptions { series: after.series, ..options.clone() };
        let mut drawing = Self::without_boxes(after.profile, &after_options, look)?;
        let old = CountedTrees::new(before, options, look, difference)?;
        let new = CountedTrees::new(after, options, look, difference)?;
        let (total, total_before) = (new.tree.total(), old.tree.total());
        // The factor for amounts of the earlier profile. Neither total is zero here, because `CountedTrees::new` fails
        // for an empty tree.
        let scale = if difference.normalize { total as f64 / total_before as f64 } else { 1.0 };
        drawing.total = total;
        // Boxes show scaled amounts of the earlier profile; the facts below the title show its own total.
        drawing.total_before = Some(scaled(total_before, scale));
        let mut comparison = Comparison::new(before.event()?, after.event()?, options.weight, difference.compare);
        (comparison.before, comparison.after) = (old.sum(Some(ROOT)), new.sum(Some(ROOT)));
        let old_nodes = counterparts(&old.tree, &new.tree);
        let mut names = NameTable::default();
        // For each label whose name belongs to several functions: where its function starts. Boxes show this after the
        // name, so that the functions can be told apart.
        let starts = new.tree.namesake_locations();
        for placed in new.tree.boxes(look.narrowest(total)) {
            let old_node = old_nodes[placed.node as usize];
            let amount_before = old_node.map_or(0, |node| scaled(old.tree.total_weight(node), scale));
            let amount = placed.end - placed.start;
            let is_change = match comparison.evidence {
                Evidence::Samples => comparison.change(old.sum(old_node), new.sum(Some(placed.node))).is_real(),
                // Exact amounts don't vary by chance, and if nothing is known about samples, chance can't be ruled out.
                // In both cases, show every change.
                Evidence::Exact | Evidence::Nothing => amount_before != amount,
            };
            let is_noise = comparison.evidence == Evidence::Samples && !is_change;
            let color_step = if is_change { step(amount_before, amount) } else { 0 };
            drawing.boxes.push(PageBox {
                row: placed.depth,
                start: placed.start,
                end: placed.end,
                own: own_of_box(&placed, new.tree.self_weight(placed.node), look),
                name: names.number_of(&new.tree, &placed, &starts),
                swatch: Swatch::Change(if look.negate { -color_step } else { color_step }),
                // Trees of differences merge tiers, so there are no shares.
                shares: Vec::new(),
                before: Some(Before { amount: amount_before, is_noise }),
            });
        }
        drawing.legend = legend(comparison.evidence, look.negate);
        drawing.add_facts_of_difference(&old.tree, &old_nodes, comparison.evidence);
        drawing.finish(names)
    }

    /// Adds the facts below the title that compare two profiles: their totals, and what occurs only in the earlier one.
    /// `before` is the earlier call tree. `old_nodes` has the node of the earlier tree for each node of the later one.
    fn add_facts_of_difference(&mut self, before: &CallTree, old_nodes: &[Option<u32>], evidence: Evidence) {
        let total_before = before.total();
        let before_text = self.amounts.text(total_before);
        self.facts.push(format!("before {before_text}{}", change(total_before, self.total)));
        if evidence == Evidence::Nothing {
            self.facts.push("changes may be noise: the number of samples is unknown".to_owned());
        }
        let gone = sum_gone(before, old_nodes);
        if gone > 0 {
            let share = percent(gone as f64, total_before as f64);
            self.facts.push(format!("{share} of the earlier profile is in calls that no longer occur"));
        }
    }
}

/// The root node of a call tree, which stands for the whole profile.
const ROOT: u32 = 0;

/// Multiplies an amount of the earlier profile by the factor that makes the two profiles comparable.
fn scaled(amount: u64, scale: f64) -> u64 {
    (amount as f64 * scale).round() as u64
}

/// The color step for a change, from −[`STEPS`] (all gone) to [`STEPS`] (all new). It must only be called if there is a
/// change, because it never returns 0, which means "no change".
fn step(before: u64, after: u64) -> i8 {
    let (before, after) = (before as f64, after as f64);
    // From -1 (all gone) to 1 (all new).
    let relative_change = (after - before) / after.max(before).max(1.0);
    let steps = (relative_change.abs() * f64::from(STEPS)).ceil().max(1.0);
    if relative_change < 0.0 { -(steps as i8) } else { steps as i8 }
}

/// Formats the relative change from `before` (not 0) to `after` as the continuation of a text, for example `, +12.3%`.
fn change(before: u64, after: u64) -> String {
    let change = 100.0 * (after as f64 - before as f64) / before as f64;
    let sign = if change < 0.0 { '−' } else { '+' };
    format!(", {sign}{:.1}%", change.abs())
}

/// The legend of a difference: the color of each kind of change.
fn legend(evidence: Evidence, negate: bool) -> Vec<(Swatch, String)> {
    let middle = if evidence == Evidence::Samples { "within noise" } else { "the same" };
    let texts = [(-STEPS, "much less"), (-1, "less"), (0, middle), (1, "more"), (STEPS, "much more, or new")];
    texts.map(|(step, text)| (Swatch::Change(if negate { -step } else { step }), text.to_owned())).to_vec()
}

/// For each node of the later tree, the earlier tree's node for the same function, called through the same functions.
/// `None` if the earlier tree has no such node.
fn counterparts(before: &CallTree, after: &CallTree) -> Vec<Option<u32>> {
    // The nodes of the earlier tree, by the caller's node and the function's name and start.
    let mut children: FxHashMap<(u32, &str, Option<StartPlace<'_>>), u32> = FxHashMap::default();
    for (node, label) in before.labeled_nodes() {
        // Nodes with the same caller, name and start are code of different kinds. Of these, the first is taken.
        children.entry((before.parent_node(node), before.name(label), before.start(label))).or_insert(node);
    }
    let mut old_nodes = vec![None; after.node_count()];
    old_nodes[ROOT as usize] = Some(ROOT);
    // Nodes come after their callers, so the caller's counterpart is known when a node is visited.
    for (node, label) in after.labeled_nodes() {
        if let Some(parent) = old_nodes[after.parent_node(node) as usize] {
            old_nodes[node as usize] = children.get(&(parent, after.name(label), after.start(label))).copied();
        }
    }
    old_nodes
}

/// The weight of calls that occur only in the earlier profile, whose call tree is `before`. `old_nodes` has the nodes
/// of this tree that also occur in the later one. If a call is below another one that no longer occurs, it isn't added,
/// because the total weight of the outer call includes it.
fn sum_gone(before: &CallTree, old_nodes: &[Option<u32>]) -> u64 {
    let mut still_occurs = vec![false; before.node_count()];
    for node in old_nodes.iter().flatten() {
        still_occurs[*node as usize] = true;
    }
    let mut gone = 0;
    for (node, _) in before.labeled_nodes() {
        if !still_occurs[node as usize] && still_occurs[before.parent_node(node) as usize] {
            gone += before.total_weight(node);
        }
    }
    gone
}

/// Replaces every hexadecimal number (`0x1a2b`) in a name by `0x…`.
fn replace_hex(name: &str) -> String {
    let mut parts = name.split("0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    // Each further part begins with the digits that followed a `0x`.
    for part in parts {
        text += "0x…";
        text += part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::{Row, profile_of};

    fn profile(stacks: &[(&str, u64)]) -> Profile {
        let mut profile = profile_of(stacks);
        profile.series[0].rows.iter_mut().for_each(|row| row.count = row.weight);
        // A row with no weight of its own that stands for one sample.
        let one = Row { weight: 0, count: 1, ..profile.series[0].rows[0] };
        profile.series[0].rows.push(one);
        profile
    }

    fn difference(look: &Look, difference: Difference) -> (Drawing, Vec<String>) {
        let before = profile(&[("a;f", 1000), ("a;g", 1000), ("a;gone", 500), ("a;0x12", 1000)]);
        let after = profile(&[("a;f", 3000), ("a;g", 1010), ("a;new", 400), ("a;0x34", 600)]);
        let (before, after) = (Side { profile: &before, series: 0 }, Side { profile: &after, series: 0 });
        let drawing = Drawing::difference(before, after, &WriteOptions::default(), look, difference).unwrap();
        let describe = |one: &PageBox| {
            let was = one.before.unwrap();
            let Swatch::Change(step) = one.swatch else { panic!("{one:?}") };
            format!("{} {}→{} {step}", drawing.names[one.name as usize], was.amount, one.end - one.start)
        };
        let described = drawing.boxes.iter().map(describe).collect();
        (drawing, described)
    }

    #[test]
    fn boxes_show_what_they_were_and_are_colored_by_what_is_more_than_chance() {
        let (drawing, described) = difference(&Look::default(), Difference::default());
        assert_eq!(
            described,
            ["all 3500→5010 0", "a 3500→5010 0", "0x34 0→600 4", "f 1000→3000 3", "g 1000→1010 1", "new 0→400 4"]
        );
        let facts = drawing.facts.join(" · ");
        assert!(
            facts.contains("before 3,500 samples, +43.1%")
                && facts.contains("42.86% of the earlier profile is in calls"),
            "{facts}"
        );
    }

    #[test]
    fn numbers_in_names_and_lengths_of_runs_can_be_left_out_of_account() {
        let options = Difference { normalize: true, strip_hex: true, ..Difference::default() };
        let (_, described) = difference(&Look::default(), options);
        for expected in ["0x… 1431→600 -3", "all 5010→5010 0"] {
            assert!(described.contains(&expected.to_owned()), "{expected}: {described:?}");
        }
        let (_, negated) = difference(&Look { negate: true, ..Look::default() }, Difference::default());
        assert!(negated.contains(&"f 1000→3000 -3".to_owned()), "{negated:?}");
        assert_eq!(replace_hex("f<0x1fg, 0xAb>"), "f<0x…g, 0x…>");
    }
}
