//! Reads call trees that a text lists line by line, each function with its depth.

use super::named_frames::{NamedFrames, StatedFrame};
use crate::model::stacks::{Profile, Row, StackId, TrackId};

/// Turns lines into stacks.
#[derive(Debug, Default)]
pub struct IndentedTree {
    named: NamedFrames,
    open: Vec<StackId>,
}

impl IndentedTree {
    /// The stack for a line: a function in a module, at a depth that starts at 0. `None` if the previous line is too
    /// far up in the tree to be its caller.
    pub fn at(&mut self, depth: usize, function: &[u8], module: &[u8], profile: &mut Profile) -> Option<StackId> {
        let frame = self.named.frame(profile, StatedFrame { function, module, ..StatedFrame::default() });
        if depth > self.open.len() {
            return None;
        }
        self.open.truncate(depth);
        let stack = profile.stack(self.open.last().copied(), frame);
        self.open.push(stack);
        Some(stack)
    }
}

/// Computes self weights from inclusive weights by subtracting those of the callees.
#[derive(Debug, Default)]
pub struct OwnWeights {
    open: Vec<OpenNode>,
}

#[derive(Debug)]
struct OpenNode {
    depth: usize,
    stack: Option<StackId>,
    track: TrackId,
    own: u64,
}

impl OwnWeights {
    /// Takes the next function, with its inclusive weight.
    pub fn next(&mut self, depth: usize, row: Row, profile: &mut Profile, series: usize) {
        self.end(depth, profile, series);
        if let Some(caller) = self.open.last_mut() {
            caller.own = caller.own.saturating_sub(row.weight);
        }
        self.open.push(OpenNode { depth, stack: row.stack, track: row.track, own: row.weight });
    }

    /// Ends all functions at this depth or deeper, and adds their self weights to the profile.
    pub fn end(&mut self, depth: usize, profile: &mut Profile, series: usize) {
        while let Some(OpenNode { stack, track, own, .. }) = self.open.pop_if(|open| open.depth >= depth) {
            if own > 0 {
                profile.push(series, Row { track, stack, weight: own, count: own, time: None });
            }
        }
    }
}
