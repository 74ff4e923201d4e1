//! Derives a call tree from another one: merges tiers, renames functions, or starts at certain functions.

use super::{CallTree, FrameLabel, ROOT};

impl CallTree {
    /// A tree in which JIT functions of the same name share a node, whatever their tier.
    pub fn merging_tiers(&self) -> Self {
        self.relabel(FrameLabel::without_tier)
    }

    /// A copy of the tree in which `name` has replaced every label. Siblings whose labels become equal are merged.
    pub fn rename(&self, name: impl Fn(&str) -> String) -> Self {
        self.relabel(|label| FrameLabel { text: name(&label.text), ..label.clone() })
    }

    /// A copy of the tree with the labels that `label` returns. Siblings whose labels become equal are merged.
    fn relabel(&self, label: impl Fn(&FrameLabel) -> FrameLabel) -> Self {
        let mut tree = Self::new_empty();
        let new_labels: Vec<u32> = self.labels.items().iter().map(|old| tree.labels.intern(label(old))).collect();
        self.rehang(tree, |tree, parent, old| Some(tree.child(parent.unwrap_or(ROOT), new_labels[old as usize])))
    }

    /// A tree whose outermost frames are calls to `functions`, with their callees. If a stack contains several of these
    /// functions, it starts at the outermost one; stacks without any are left out.
    pub fn based_at(&self, functions: &[String]) -> Self {
        let mut tree = Self::new_empty();
        let new_labels: Vec<u32> = self.labels.items().iter().map(|old| tree.labels.intern(old.clone())).collect();
        self.rehang(tree, |tree, parent, old| {
            let label = new_labels[old as usize];
            if let Some(parent) = parent {
                return Some(tree.child(parent, label));
            }
            // No caller of this node was kept. So it is only kept if it is one of the functions with which stacks
            // begin.
            let is_base = functions.contains(&self.labels.items()[old as usize].text);
            if is_base { Some(tree.child(ROOT, label)) } else { None }
        })
    }

    /// Builds a tree by moving every node of this one to `tree`, which must be empty except for labels. Parents are
    /// moved before their children. `place` gets the tree being built, the new node of the parent (`None` if the parent
    /// is the root or was left out), and the label of the node to move. It returns the new node, or `None` to leave the
    /// node out.
    fn rehang(&self, mut tree: Self, mut place: impl FnMut(&mut Self, Option<u32>, u32) -> Option<u32>) -> Self {
        let mut new_nodes: Vec<Option<u32>> = vec![None; self.nodes.len()];
        // Several nodes may become one, so the new tree has at most as many nodes as this one.
        tree.own = vec![0; self.nodes.len()];
        for (node, label) in self.labeled_nodes() {
            let parent = new_nodes[self.parent(node) as usize];
            let new_node = place(&mut tree, parent, label);
            new_nodes[node as usize] = new_node;
            if let Some(new_node) = new_node {
                let own = &mut tree.own[new_node as usize];
                *own = own.saturating_add(self.own[node as usize]);
                if let Some(frames) = self.runs.get(&node) {
                    tree.add_run(new_node, *frames);
                }
            }
        }
        tree.own.truncate(tree.nodes.len());
        tree.sum();
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PlacedBox, Spelling};
    use super::*;
    use crate::model::stacks::{Frame, FrameKind, Profile, Row, Track, Unit, Weight, profile_of};
    use crate::model::tier::Tier;

    fn lines(tree: &CallTree) -> Vec<String> {
        let mut lines = Vec::new();
        tree.stacks::<()>(0, |stack, weight| {
            lines.push(format!("{stack} {weight}"));
            Ok(())
        })
        .unwrap();
        lines
    }

    fn stretches(boxes: &[PlacedBox]) -> impl Iterator<Item = (u64, u64)> {
        boxes.iter().map(|placed| (placed.start, placed.end))
    }

    #[test]
    fn the_tiers_of_a_function_are_one_node_with_their_shares() {
        let mut profile = Profile::new();
        let track = profile.track(Track::default());
        let series = profile.series_named("cycles", Unit::Samples);
        for (tier, kind, above, weight) in [
            (Some(Tier::Interpreted), FrameKind::Jit, "g", 10),
            (Some(Tier::Optimized), FrameKind::Jit, "g", 30),
            (None, FrameKind::User, "g", 5),
        ] {
            let name = profile.name(b"f");
            let frame = profile.frame(Frame { tier, ..Frame::new(name, kind) });
            let stack = profile.stack(None, frame);
            let name = profile.name(above.as_bytes());
            let frame = profile.frame(Frame::new(name, FrameKind::User));
            let stack = Some(profile.stack(Some(stack), frame));
            profile.push(series, Row { track, stack, weight, count: 1, time: None });
        }
        let spelling = Spelling { by_category: true, ..Spelling::default() };
        let tree = CallTree::new(&profile, &profile.series[0], Weight::Period, spelling);
        let merged = tree.merging_tiers();
        assert_eq!(lines(&merged), ["f;g 5", "f;g 40"], "native code of that name is no tier of it");
        assert_eq!(merged.total(), 45);
        let boxes = tree.boxes_merging_tiers(0);
        let extents: Vec<(u64, u64)> = boxes.iter().map(|one| (one.placed.start, one.placed.end)).collect();
        assert!(extents.into_iter().eq(stretches(&merged.boxes(0))));
        // The functions above ran themselves: native code above native code, and above code of both tiers.
        let own: Vec<u64> = boxes.iter().map(|one| one.own).collect();
        let merged_own: Vec<u64> = merged.boxes(0).iter().map(|placed| merged.self_weight(placed.node)).collect();
        assert_eq!(own, merged_own);
        assert_eq!(own.iter().sum::<u64>(), 45);
        let told: Vec<String> = boxes.iter().map(|one| one.tiers.text()).filter(|told| !told.is_empty()).collect();
        assert_eq!(told, ["optimized 75.00%, interpreted 25.00%"]);
    }

    #[test]
    fn a_tree_begins_at_a_function() {
        let profile = profile_of(&[("a;f;x", 1), ("b;f;y;f", 2), ("c", 4), ("f", 8)]);
        let tree = CallTree::new(&profile, &profile.series[0], Weight::Period, Spelling::default());
        assert_eq!(lines(&tree.based_at(&["f".to_owned()])), ["f 8", "f;x 1", "f;y;f 2"]);
        assert_eq!(lines(&tree.rename(|name| name.replace('b', "a"))), ["a;f;x 1", "a;f;y;f 2", "c 4", "f 8"]);
    }
}
