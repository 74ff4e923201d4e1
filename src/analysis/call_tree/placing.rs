//! Builds call trees: finds or creates the node of each stack of a profile.

use super::{CallTree, FrameLabel, LabelStart, NO_LABEL, ROOT, Spelling};
use crate::analysis::category::Category;
use crate::analysis::label::{LabelStyle, is_java, is_unnamed, label, roots};
use crate::analysis::namesakes::Namesakes;
use crate::model::stacks::{Frame, FrameId, FunctionStart, Profile, Row, Series, StackId, TrackId, UNKNOWN, Weight};
use rustc_hash::FxHashMap;

/// Where a stack ends in the tree.
#[derive(Debug, Clone, Copy)]
struct StackPlace {
    node: u32,
    /// The number of frames in a row that the stack's last node stands for ([`Spelling::join_unnamed`]). 0 if the next
    /// frame must not be added to the node, whatever its label is.
    run: u32,
}

impl StackPlace {
    /// A place at a node that stands for a single frame. The next inner frame gets a node of its own, even if it is
    /// unnamed and has the same label.
    fn at(node: u32) -> Self {
        Self { node, run: 0 }
    }
}

/// Stored for a stack that hasn't been placed below any root.
const NO_ROOT: u32 = u32::MAX;

impl CallTree {
    /// Builds the call tree of one event.
    pub fn new(profile: &Profile, series: &Series, weight: Weight, spelling: Spelling) -> Self {
        let (mut tree, nodes) = TreeBuilder::new(profile, spelling).place(series.rows.iter());
        tree.own = vec![0; tree.nodes.len()];
        for (row, node) in series.rows.iter().zip(nodes) {
            let own = &mut tree.own[node as usize];
            *own = own.saturating_add(weight.value(row));
        }
        tree.sum();
        tree
    }

    /// Calls `stack` for each sample of an event in time order, with the sample's weight. Consecutive samples with
    /// equal stacks are merged into one call. Used for flame charts.
    pub fn in_time(
        profile: &Profile,
        series: &Series,
        weight: Weight,
        spelling: Spelling,
        mut stack: impl FnMut(&str, u64),
    ) {
        let mut rows: Vec<&Row> = series.rows.iter().collect();
        rows.sort_by_key(|row| row.time);
        let (tree, nodes) = TreeBuilder::new(profile, spelling).place(rows.iter().copied());
        // The current run of samples with the same stack: the stack's node, and the sum of their weights.
        let mut run: Option<(u32, u64)> = None;
        let mut line = String::new();
        for (row, node) in rows.into_iter().zip(nodes) {
            match &mut run {
                Some((run_node, sum)) if *run_node == node => *sum = sum.saturating_add(weight.value(row)),
                _ => {
                    if let Some((ended_node, sum)) = run.replace((node, weight.value(row))) {
                        tree.write_path(ended_node, &mut line);
                        stack(&line, sum);
                    }
                }
            }
        }
        if let Some((node, sum)) = run {
            tree.write_path(node, &mut line);
            stack(&line, sum);
        }
    }
}

impl LabelStart {
    /// Where the function of a frame starts. `None` if its file is unknown, or if the function has no name.
    fn from_frame(profile: &Profile, frame: &Frame) -> Option<Self> {
        let FunctionStart { file, line, column } = frame.start;
        let file = String::from_utf8_lossy(profile.name_of(file?)).into();
        (profile.name_of(frame.name) != UNKNOWN).then_some(Self { file, line, column })
    }
}

/// Finds or creates the [`CallTree`] node of each distinct stack of a profile.
pub(super) struct TreeBuilder<'a> {
    profile: &'a Profile,
    spelling: Spelling,
    /// The functions that share their name with others; their labels contain a source location. `None` if labels have
    /// the location in a field of its own ([`Spelling::by_start`]).
    namesakes: Option<Namesakes>,
    tree: CallTree,
    /// The label ID of each frame, in two lists: spelled without Java's naming rules, and with them. [`NO_LABEL`] if
    /// the label hasn't been needed yet.
    labels_by_frame: [Vec<u32>; 2],
    /// For each stack, the root below which it was placed last, and its place there. Empty if all stacks are placed in
    /// one pass: in a tree with a single root that isn't reversed.
    placed: Vec<(u32, StackPlace)>,
    /// For each root, the labels of the frames that identify the thread, and whether Java's naming rules apply. Tracks
    /// with the same labels share a root.
    roots: Vec<(Box<[u32]>, bool)>,
    /// The number of the root with these labels.
    root_by_labels: FxHashMap<Box<[u32]>, u32>,
    /// The number of the root for each track so far.
    root_by_track: FxHashMap<TrackId, u32>,
}

impl<'a> TreeBuilder<'a> {
    /// Starts with an empty tree. [`Self::place`] adds the stacks.
    pub(super) fn new(profile: &'a Profile, spelling: Spelling) -> Self {
        let no_labels = || vec![NO_LABEL; profile.frame_count()];
        Self {
            profile,
            spelling,
            namesakes: if spelling.by_start { None } else { Some(Namesakes::new(profile)) },
            tree: CallTree::new_empty(),
            labels_by_frame: [no_labels(), no_labels()],
            placed: Vec::new(),
            roots: Vec::new(),
            root_by_labels: FxHashMap::default(),
            root_by_track: FxHashMap::default(),
        }
    }

    /// Builds the tree and returns the node of each row. Weights aren't added yet. A root is the list of labels (such
    /// as process and thread) that come before the outermost frame. Rows are processed root by root, so that nodes need
    /// to be remembered for one root at a time only.
    pub(super) fn place<'r>(mut self, rows: impl Iterator<Item = &'r Row>) -> (CallTree, Vec<u32>) {
        // For each row: its root, its index, and its stack.
        let mut wanted: Vec<(u32, usize, Option<StackId>)> = Vec::new();
        for (index, row) in rows.enumerate() {
            wanted.push((self.root(row.track), index, row.stack));
        }
        if self.roots.len() == 1 && !self.spelling.reversed {
            // The only root has number 0.
            let nodes = self.hang_all(0, wanted.iter().map(|&(_, _, stack)| stack));
            return (self.tree, nodes);
        }
        self.placed = vec![(NO_ROOT, StackPlace::at(ROOT)); self.profile.stack_count()];
        wanted.sort_unstable_by_key(|&(root, index, _)| (root, index));
        let mut nodes = vec![ROOT; wanted.len()];
        for (root, index, stack) in wanted {
            nodes[index] =
                if self.spelling.reversed { self.hang_reversed(root, stack) } else { self.hang(root, stack) };
        }
        (self.tree, nodes)
    }

    /// The place of a stack below `root`; `None` if it hasn't been placed there yet. Only for stacks that are placed
    /// root by root: otherwise `placed` is empty.
    fn find_placed(&self, root: u32, stack: StackId) -> Option<StackPlace> {
        let (placed_root, place) = self.placed[stack.index()];
        (placed_root == root).then_some(place)
    }

    /// The number of the root that a track's stacks belong to: the list of labels, such as process and thread, that
    /// come before their outermost frames. Tracks with equal labels share a root.
    fn root(&mut self, id: TrackId) -> u32 {
        if let Some(&root) = self.root_by_track.get(&id) {
            return root;
        }
        let track = self.profile.track_of(id);
        let mut labels = Vec::new();
        for text in roots(track, self.spelling.by, self.spelling.annotate) {
            labels.push(self.tree.labels.intern(FrameLabel { text, start: None, category: None }));
        }
        let labels: Box<[u32]> = labels.into_boxed_slice();
        let new_root = self.roots.len() as u32;
        let root = *self.root_by_labels.entry(labels.clone()).or_insert(new_root);
        if root == new_root {
            self.roots.push((labels, is_java(&track.comm)));
        }
        self.root_by_track.insert(id, root);
        root
    }

    /// For a tree with a single root: adds these stacks and all their callers below it, and returns the node of each
    /// stack.
    fn hang_all(&mut self, root: u32, stacks: impl Iterator<Item = Option<StackId>> + Clone) -> Vec<u32> {
        let profile = self.profile;
        let mut wanted = vec![false; profile.stack_count()];
        stacks.clone().flatten().for_each(|stack| wanted[stack.index()] = true);
        // Mark the callers, too. A caller's stack ID is smaller than those of its callees, so one pass over the stacks
        // is enough, from the last to the first.
        for stack in (0..wanted.len()).rev() {
            let (caller, _) = profile.stack_of(StackId(stack as u32));
            if wanted[stack]
                && let Some(caller) = caller
            {
                wanted[caller.index()] = true;
            }
        }
        let root_node = self.hang_root(ROOT, root);
        // For each stack of the profile, its place. A stack that is neither one of `stacks` nor a caller of one has the
        // place `ROOT`.
        let mut places: Vec<StackPlace> = Vec::with_capacity(wanted.len());
        for ((parent, frame), is_wanted) in profile.stacks().zip(&wanted) {
            let parent_place = parent.map_or(StackPlace::at(root_node), |parent| places[parent.index()]);
            places.push(if *is_wanted { self.step(parent_place, frame, root) } else { StackPlace::at(ROOT) });
        }
        stacks.map(|stack| stack.map_or(root_node, |stack| places[stack.index()].node)).collect()
    }

    /// Adds the path of a stack to the tree, below the labels of `root`. Returns the node of the innermost frame. Only
    /// for trees with several roots: `placed` then has an element for each stack of the profile.
    fn hang(&mut self, root: u32, stack: Option<StackId>) -> u32 {
        // Go up from the stack to its nearest caller that already has a node below `root`. Then add the missing nodes
        // on the way down.
        let mut missing = Vec::new();
        let mut next = stack;
        let mut place = loop {
            let Some(id) = next else { break StackPlace::at(self.hang_root(ROOT, root)) };
            if let Some(placed) = self.find_placed(root, id) {
                break placed;
            }
            let (parent, frame) = self.profile.stack_of(id);
            missing.push((id, frame));
            next = parent;
        };
        for (stack, frame) in missing.into_iter().rev() {
            place = self.step(place, frame, root);
            self.placed[stack.index()] = (root, place);
        }
        place.node
    }

    /// Finds or creates the nodes of a stack in a reversed tree, in which paths go from the innermost frame to the
    /// outermost one. The labels of the thread or process (`root`) come last, after the outermost frame. Returns the
    /// node of the last label.
    fn hang_reversed(&mut self, root: u32, stack: Option<StackId>) -> u32 {
        if let Some(placed) = stack.and_then(|stack| self.find_placed(root, stack)) {
            return placed.node;
        }
        let mut place = StackPlace::at(ROOT);
        for frame in self.profile.frames_up(stack) {
            place = self.step(place, frame, root);
        }
        let node = self.hang_root(place.node, root);
        if let Some(stack) = stack {
            self.placed[stack.index()] = (root, StackPlace::at(node));
        }
        node
    }

    /// Adds the labels of `root` below a node, in reverse order if the tree is reversed. Returns the node of the last
    /// label.
    fn hang_root(&mut self, node: u32, root: u32) -> u32 {
        let (labels, _) = &self.roots[root as usize];
        let tree = &mut self.tree;
        if self.spelling.reversed {
            labels.iter().rev().fold(node, |node, &label| tree.child(node, label))
        } else {
            labels.iter().fold(node, |node, &label| tree.child(node, label))
        }
    }

    /// Adds the next frame of a stack to the tree. `place` is where the frames before it end: its callers or, in a
    /// reversed tree, its callees. Returns where the stack ends with this frame. Adds a node for the frame if there is
    /// none. With `join_unnamed`, an unnamed frame shares the node of the frame before it if both have the same label.
    fn step(&mut self, place: StackPlace, frame: FrameId, root: u32) -> StackPlace {
        let label = self.label_of(frame, root);
        let tree = &mut self.tree;
        if !self.spelling.join_unnamed || !is_unnamed(&tree.labels.items()[label as usize].text) {
            return StackPlace::at(tree.child(place.node, label));
        }
        // `run` is how many unnamed frames in a row the last node so far stands for; 0 if the last frame has a name.
        // `add_run` remembers the longest run of a node, which is shown with its label.
        let (_, last_label) = tree.nodes.get(place.node);
        if place.run > 0 && last_label == label {
            let run = place.run + 1;
            tree.add_run(place.node, run);
            return StackPlace { run, ..place };
        }
        StackPlace { node: tree.child(place.node, label), run: 1 }
    }

    /// The label ID of a frame. Each frame is spelled only once.
    fn label_of(&mut self, frame: FrameId, root: u32) -> u32 {
        // Whether Java's naming rules apply depends on the thread, and so on the root.
        let (_, java) = self.roots[root as usize];
        let (profile, spelling) = (self.profile, self.spelling);
        let label_id = &mut self.labels_by_frame[usize::from(java)][frame.index()];
        if *label_id == NO_LABEL {
            let frame = profile.frame_of(frame);
            let Spelling { annotate, shortening, .. } = spelling;
            let style = LabelStyle { java, annotate, shortening, namesakes: self.namesakes.as_ref() };
            *label_id = self.tree.labels.intern(FrameLabel {
                text: label(profile, frame, style),
                start: if spelling.by_start { LabelStart::from_frame(profile, frame) } else { None },
                category: spelling.by_category.then(|| Category::from_frame(frame)),
            });
        }
        *label_id
    }
}
