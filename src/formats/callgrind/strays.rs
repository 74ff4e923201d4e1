//! Costs of named code that callgrind has booked on functions of known objects.
//!
//! callgrind begins a function at a call only. Where an object's code *jumps* into code made at run time (V8's
//! interpreter entry does), that code's costs stand in the object's function, at their absolute addresses. They are
//! counted, and left where they are: all other addresses of such a block count from the start of its object, and
//! without that object's file nothing tells the two kinds apart for sure.

use super::Grafts;
use super::block::{Block, Kind, first_cost};
use super::index::State;
use super::line::hex;
use rustc_hash::{FxHashMap, FxHashSet};

/// What was found, of the first event.
#[derive(Debug, Default)]
pub struct Strays {
    /// Self cost by entry.
    costs: FxHashMap<usize, u64>,
    /// Entries in which functions of known objects begin: maps list code that is part of the program, too (V8's
    /// embedded builtins), and such code is where it belongs.
    at_home: FxHashSet<usize>,
}

impl Strays {
    /// How many pieces of code have costs in functions of known objects, and how much.
    pub fn found(&self) -> (usize, u64) {
        let away = self.costs.iter().filter(|(entry, _)| !self.at_home.contains(entry));
        away.fold((0, 0), |(count, sum), (_, cost)| (count + 1, sum.saturating_add(*cost)))
    }

    pub(super) fn append(&mut self, other: Self) {
        for (entry, cost) in other.costs {
            self.add(entry, cost);
        }
        self.at_home.extend(other.at_home);
    }

    fn add(&mut self, entry: usize, cost: u64) {
        let sum = self.costs.entry(entry).or_default();
        *sum = sum.saturating_add(cost);
    }

    /// Looks through the block of a function of a known object.
    pub(super) fn look(&mut self, text: &[u8], state: State<'_>, every_line_moves: bool, grafts: &dyn Grafts) {
        let Some(column) = state.columns.instr else { return };
        // A jump that far is written in full, so most blocks need no decoding.
        if !(column == 0 && full_addresses(text).any(|addr| grafts.at(addr).is_some())) {
            return;
        }
        // One that cannot be decoded is passed on untouched, like every block of this kind.
        let Some(block) = Block::parse(text, state, every_line_moves) else { return };
        let costs = block.items.iter().filter_map(|item| match (item.position, &item.kind) {
            (Some(position), Kind::Cost(costs)) => Some((position.0[column], first_cost(costs))),
            _ => None,
        });
        let mut lowest = u64::MAX;
        for (addr, cost) in costs {
            lowest = lowest.min(addr);
            if let Some(entry) = grafts.at(addr) {
                self.add(entry, cost);
            }
        }
        self.at_home.extend(grafts.at(lowest));
    }
}

/// The addresses at the beginnings of lines that are not relative to others.
fn full_addresses(text: &[u8]) -> impl Iterator<Item = u64> {
    const MARK: &[u8] = b"\n0x";
    memchr::memmem::find_iter(text, MARK).filter_map(|at| {
        let digits = &text[at + MARK.len()..];
        let len = digits.iter().position(u8::is_ascii_whitespace)?;
        hex(&digits[..len])
    })
}
