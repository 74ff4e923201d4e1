//! The code that was traced through: a tree of merge points, each with the one around it.

/// A merge point of the log, in the calls around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MergePoint {
    /// The place of its text in the log.
    pub(super) text: (u64, u64),
    /// The number of calls that were traced through to get here.
    pub(super) depth: u32,
    /// The merge point of the caller.
    pub(super) caller: Option<MergePointId>,
}

/// A merge point, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MergePointId(u32);

/// All merge points of a log.
#[derive(Debug, Default)]
pub(super) struct MergePoints(Vec<MergePoint>);

impl MergePoints {
    /// Adds one that follows `last`.
    pub(super) fn push(&mut self, text: (u64, u64), depth: u32, last: Option<MergePointId>) -> Option<MergePointId> {
        let caller = self.around(last, depth);
        let id = u32::try_from(self.0.len()).ok()?;
        self.0.push(MergePoint { text, depth, caller });
        Some(MergePointId(id))
    }

    /// The innermost of a merge point and its callers that is less deep than `depth`.
    pub(super) fn around(&self, mut at: Option<MergePointId>, depth: u32) -> Option<MergePointId> {
        while let Some(id) = at {
            let point = self.get(id);
            if point.depth < depth {
                return at;
            }
            at = point.caller;
        }
        None
    }

    pub(super) fn get(&self, id: MergePointId) -> &MergePoint {
        &self.0[id.0 as usize]
    }

    /// From the innermost to the outermost.
    pub(super) fn chain(&self, at: Option<MergePointId>) -> impl Iterator<Item = &MergePoint> {
        std::iter::successors(at, |&id| self.get(id).caller).map(|id| self.get(id))
    }
}
