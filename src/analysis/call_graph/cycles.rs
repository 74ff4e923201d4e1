//! Finds cycles of functions that call each other (R. Tarjan, "Depth-first search and linear graph algorithms", 1972).

use crate::model::lists::Lists;

/// Stands for a number that isn't known yet. In [`Search::low`], the function hasn't been visited; in
/// [`Search::cycle`], its cycle isn't complete.
const NONE_YET: u32 = u32::MAX;

/// Returns a cycle number for each function (Tarjan's algorithm for strongly connected components). Functions have the
/// same number if each calls the other, directly or not. A function outside of any cycle has a number to itself.
pub(super) fn cycles(callees: &Lists<u32>) -> Vec<u32> {
    let count = callees.count();
    let mut search =
        Search { cycle: vec![NONE_YET; count], low: vec![NONE_YET; count], open: Vec::new(), entered: 0, cycles: 0 };
    // The functions being visited, from caller to callee, each with the index of its next callee. This takes the place
    // of recursive calls, which could be too deep.
    let mut path: Vec<(u32, usize)> = Vec::new();
    for first in 0..count as u32 {
        if search.low[first as usize] == NONE_YET {
            path.push((search.enter(first), 0));
        }
        while let Some((function, next)) = path.last_mut() {
            let caller = *function;
            let Some(&callee) = callees[caller as usize].get(*next) else {
                // All callees of this function have been visited, so its own visit ends.
                path.pop();
                let above = path.last().map(|(function, _)| *function);
                search.leave(caller, above);
                continue;
            };
            *next += 1;
            // `NONE_YET` in `low`: the callee hasn't been visited yet.
            if search.low[callee as usize] == NONE_YET {
                path.push((search.enter(callee), 0));
            } else if search.cycle[callee as usize] == NONE_YET {
                // The callee's cycle isn't complete, so the caller may belong to it. (If the cycle were complete, no
                // function in it could get back to the caller.)
                search.lower(caller, callee);
            }
        }
    }
    search.cycle
}

struct Search {
    /// The number of each function's cycle.
    cycle: Vec<u32>,
    /// For each function, the position in the visiting order of the earliest function that is known to be in the same
    /// cycle.
    low: Vec<u32>,
    /// Visited functions whose cycle isn't complete yet: function ID and position in the visiting order.
    open: Vec<(u32, u32)>,
    /// The number of functions that have been visited.
    entered: u32,
    /// The number of cycles that are complete.
    cycles: u32,
}

impl Search {
    /// Begins the visit of a function, and returns the function.
    fn enter(&mut self, function: u32) -> u32 {
        self.low[function as usize] = self.entered;
        self.open.push((function, self.entered));
        self.entered += 1;
        function
    }

    /// Lowers the caller's `low` to that of the callee. If the callee can get back to a function that was visited
    /// earlier and isn't finished, the caller can do so through the callee. Then all three are in one cycle.
    fn lower(&mut self, caller: u32, callee: u32) {
        self.low[caller as usize] = self.low[caller as usize].min(self.low[callee as usize]);
    }

    /// Finishes the visit of a function, whose callees have all been visited. If the function is the first visited one
    /// of a cycle, all functions of the cycle get the same number. `above` is the caller from which the function was
    /// visited; `None` if a search began with the function.
    fn leave(&mut self, function: u32, above: Option<u32>) {
        let low = self.low[function as usize];
        // `open` is in visiting order, so this finds the earliest function in the same cycle. If that is `function`
        // itself, the cycle consists of it and all functions after it in `open`.
        let first = self.open.partition_point(|(_, entered)| *entered < low);
        if self.open.get(first).is_some_and(|(first, _)| *first == function) {
            self.open.drain(first..).for_each(|(function, _)| self.cycle[function as usize] = self.cycles);
            self.cycles += 1;
        }
        if let Some(above) = above {
            self.lower(above, function);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn functions_of_a_cycle_reach_each_other(calls in prop::collection::vec((0u32..9, 0u32..9), 0..20)) {
            let found = cycles(&Lists::new(9, calls.iter().copied()));
            let mut reaches = [[false; 9]; 9];
            (0..9).for_each(|at| reaches[at][at] = true);
            for _ in 0..9 {
                for &(caller, callee) in &calls {
                    (0..9).for_each(|to| reaches[caller as usize][to] |= reaches[callee as usize][to]);
                }
            }
            for (a, b) in (0..9).flat_map(|a| (0..9).map(move |b| (a, b))) {
                prop_assert_eq!(found[a] == found[b], reaches[a][b] && reaches[b][a]);
            }
        }
    }
}
