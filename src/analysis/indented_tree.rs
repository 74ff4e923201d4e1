//! Call trees that a text gives line by line, each function with its depth: what was at that depth before has ended.

use super::named_frames::{NamedFrames, StatedFrame};
use crate::model::stacks::{Profile, Row, StackId, TrackId};

/// The stack of each line.
#[derive(Debug, Default)]
pub struct IndentedTree {
    named: NamedFrames,
    open: Vec<StackId>,
}

impl IndentedTree {
    /// The stack of a function of a module at that depth, from 0; `None` if the line before leaves no caller for it.
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

/// Weights that are reported with what was called: a function has for its own what its callees leave.
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
    /// The next function, with its weight and that of all it called.
    pub fn next(&mut self, depth: usize, row: Row, profile: &mut Profile, series: usize) {
        self.end(depth, profile, series);
        if let Some(caller) = self.open.last_mut() {
            caller.own = caller.own.saturating_sub(row.weight);
        }
        self.open.push(OpenNode { depth, stack: row.stack, track: row.track, own: row.weight });
    }

    /// Ends all functions of that depth and deeper.
    pub fn end(&mut self, depth: usize, profile: &mut Profile, series: usize) {
        while let Some(OpenNode { stack, track, own, .. }) = self.open.pop_if(|open| open.depth >= depth) {
            if own > 0 {
                profile.push(series, Row { track, stack, weight: own, count: own, time: None });
            }
        }
    }
}
