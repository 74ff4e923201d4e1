//! Draws jumps as lines next to the code. Jumps that overlap get separate lanes, shorter jumps closer to the code.

use std::collections::BTreeMap;

/// The maximum number of lanes (columns for vertical lines). Jumps that don't fit are counted.
const LANES: usize = 6;

/// A jump between two of the shown rows, given by their indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Jump {
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Jump {
    fn span(self) -> (usize, usize) {
        (self.from.min(self.to), self.from.max(self.to))
    }
}

/// The lines and arrows that show jumps, as text.
#[derive(Debug)]
pub(super) struct Drawing {
    /// One string per row; all have the same width.
    pub(super) rows: Vec<String>,
    /// The number of jumps that aren't drawn because they overlap too many others.
    pub(super) left_out: u64,
}

/// Draws the jumps between this many rows. Jumps that overlap are drawn in lanes side by side, of which there are at
/// most [`LANES`]. If there is no lane left for a jump, it isn't drawn, only counted.
pub(super) fn draw(rows: usize, jumps: &[Jump]) -> Drawing {
    // Short jumps come first, so that they are next to the code.
    let mut sorted = jumps.to_vec();
    sorted.sort_by_key(|jump| {
        let (top, bottom) = jump.span();
        (bottom - top, top)
    });
    let mut lanes: Vec<Lane> = Vec::new();
    let mut left_out = 0;
    for jump in sorted {
        let free = lanes.iter().position(|lane| lane.is_free(jump));
        match free {
            Some(lane) => lanes[lane].add(jump),
            None if lanes.len() < LANES => {
                let mut lane = Lane::default();
                lane.add(jump);
                lanes.push(lane);
            }
            None => left_out += 1,
        }
    }
    let width = if lanes.is_empty() { 0 } else { lanes.len() + 1 };
    let mut grid = vec![vec![' '; width]; rows];
    for (index, lane) in lanes.iter().enumerate() {
        // Lane 0 is drawn on the right, next to the code.
        let column = lanes.len() - 1 - index;
        for jump in lane.jumps.values() {
            put(&mut grid, *jump, column);
        }
    }
    Drawing { rows: grid.into_iter().map(String::from_iter).collect(), left_out }
}

/// The jumps in one lane, sorted by their first row. No two of them share a row. A function may have a hundred thousand
/// jumps, so the lane must find out without looking at each of them whether there is room for another one.
#[derive(Default)]
struct Lane {
    jumps: BTreeMap<usize, Jump>,
}

impl Lane {
    /// True if no jump of the lane has a row in common with this one.
    fn is_free(&self, jump: Jump) -> bool {
        let (top, bottom) = jump.span();
        // Of the jumps that start at or above `bottom`, the last one reaches lowest, because jumps don't overlap.
        match self.jumps.range(..=bottom).next_back() {
            Some((_, last)) => last.span().1 < top,
            None => true,
        }
    }

    fn add(&mut self, jump: Jump) {
        self.jumps.insert(jump.span().0, jump);
    }
}

/// Draws a jump into the grid of characters, and joins it with lines that it crosses. `column` is the jump's lane. The
/// last column of the grid has the arrowheads, next to the code. A jump from a row to itself is drawn as `↻`.
fn put(grid: &mut [Vec<char>], jump: Jump, column: usize) {
    let (top, bottom) = jump.span();
    for row in grid.iter_mut().take(bottom).skip(top + 1) {
        row[column] = if row[column] == '─' { '┼' } else { '│' };
    }
    // In the first and the last row of the jump, draw a corner and a line from it to the code.
    for (index, corner) in [(top, '╭'), (bottom, '╰')] {
        let Some(row) = grid.get_mut(index) else { continue };
        row[column] = corner;
        let end = row.len() - 1;
        for cell in &mut row[column + 1..end] {
            *cell = match cell {
                '│' | '┼' => '┼',
                '╭' => '┬',
                '╰' => '┴',
                _ => '─',
            };
        }
        // If another jump leads to this row, keep its arrowhead.
        if row[end] != '▶' {
            row[end] = if index == jump.to { '▶' } else { '─' };
        }
    }
    if top == bottom
        && let Some(row) = grid.get_mut(top)
    {
        row[column] = '↻';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_jumps_are_nearer_to_the_code() {
        let jumps = [Jump { from: 0, to: 4 }, Jump { from: 3, to: 1 }];
        assert_eq!(draw(6, &jumps).rows, ["╭──", "│╭▶", "││ ", "│╰─", "╰─▶", "   "]);
    }

    #[test]
    fn jumps_that_do_not_meet_share_a_lane() {
        let jumps = [Jump { from: 0, to: 1 }, Jump { from: 2, to: 3 }];
        assert_eq!(draw(4, &jumps).rows, ["╭─", "╰▶", "╭─", "╰▶"]);
        assert_eq!(draw(2, &[]).rows, ["", ""]);
    }

    #[test]
    fn jumps_that_need_more_lanes_are_counted() {
        let jumps: Vec<Jump> = (0..20).map(|at| Jump { from: at, to: 40 - at }).collect();
        let Drawing { rows, left_out } = draw(41, &jumps);
        assert_eq!(left_out, 20 - LANES as u64);
        assert!(rows.iter().all(|row| row.chars().count() == LANES + 1));
    }
}
