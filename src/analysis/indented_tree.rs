//! Reads call trees from text with one function per line, where indentation shows the depth.

use super::named_frames::{NamedFrames, StatedFrame};
use crate::model::stacks::{Profile, Row, StackId, TrackId};

/// Turns lines of an indented call tree into stacks.
#[derive(Debug, Default)]
pub struct IndentedTree {
    named: NamedFrames,
    /// The stacks of the previous line and of its callers, by depth.
    open: Vec<StackId>,
}

impl IndentedTree {
    /// Reads the next line: a function in a module, at this depth (0 for outermost). Returns its stack, or `None` if
    /// the line is more than one level deeper than the previous one, so that its caller is missing.
    pub fn at(&mut self, depth: usize, function: &[u8], module: &[u8], profile: &mut Profile) -> Option<StackId> {
        self.at_frame(depth, StatedFrame { function, module, ..StatedFrame::default() }, profile)
    }

    /// Like [`Self::at`], for a line that says more about its function than name and module: returns the line's stack,
    /// or `None` if the line is more than one level deeper than the previous one.
    pub fn at_frame(&mut self, depth: usize, stated: StatedFrame<'_>, profile: &mut Profile) -> Option<StackId> {
        let frame = self.named.frame(profile, stated);
        // `open` has the stacks of the previous line and its callers. If it is too short, the caller of this line is
        // missing.
        if depth > self.open.len() {
            return None;
        }
        self.open.truncate(depth);
        let stack = profile.stack(self.open.last().copied(), frame);
        self.open.push(stack);
        Some(stack)
    }
}

/// Computes self weights from inclusive weights, by subtracting the weights of callees.
#[derive(Debug, Default)]
pub struct OwnWeights {
    /// The previous line's function and its callers, outermost first.
    open: Vec<OpenNode>,
}

/// A function whose callees aren't all known yet.
#[derive(Debug)]
struct OpenNode {
    /// The depth of the function's line; 0 for outermost.
    depth: usize,
    stack: Option<StackId>,
    track: TrackId,
    /// The function's inclusive weight, minus the inclusive weights of the callees read so far.
    own: u64,
}

impl OwnWeights {
    /// Adds the next function in the order of lines, with its inclusive weight in `row`.
    pub fn next(&mut self, depth: usize, row: Row, profile: &mut Profile, series: usize) {
        self.end(depth, profile, series);
        if let Some(caller) = self.open.last_mut() {
            caller.own = caller.own.saturating_sub(row.weight);
        }
        self.open.push(OpenNode { depth, stack: row.stack, track: row.track, own: row.weight });
    }

    /// Completes all open functions at this depth or deeper: no callee of theirs follows, so their self weights are
    /// known and are added to the profile as rows.
    pub fn end(&mut self, depth: usize, profile: &mut Profile, series: usize) {
        while let Some(OpenNode { stack, track, own, .. }) = self.open.pop_if(|open| open.depth >= depth) {
            if own > 0 {
                profile.push(series, Row { track, stack, weight: own, count: own, time: None });
            }
        }
    }
}
