//! Costs of named code that callgrind has booked on functions of known objects.
//!
//! callgrind begins a function at a call only. Where an object's code *jumps* into code made at run time (V8's
//! interpreter entry does), that code's costs are in the object's function, at their absolute addresses. They are
//! counted, and left where they are: all other addresses of such a block count from the start of its object, and
//! without that object's file nothing distinguishes the two kinds for sure.

use super::jit_functions::{Covered, JitFunctions};
use crate::bytes::digits::hex;
use crate::records::callgrind::grammar::{BlockContext, FunctionBlock, ItemKind, lines};
use rustc_hash::{FxHashMap, FxHashSet};

/// The costs that were found on functions of known objects, of the first event.
#[derive(Debug, Default)]
pub struct Misattributed {
    /// Self cost by entry.
    costs: FxHashMap<usize, u64>,
    /// Entries in which functions of known objects begin: maps list code that is part of the program, too (V8's
    /// embedded builtins), and such code is where it belongs.
    native_entries: FxHashSet<usize>,
}

impl Misattributed {
    /// The number of entries that have costs in functions of known objects, and how much.
    pub fn total(&self) -> (usize, u64) {
        let misattributed = self.costs.iter().filter(|(entry, _)| !self.native_entries.contains(entry));
        misattributed.fold((0, 0), |(count, sum), (_, cost)| (count + 1, sum.saturating_add(*cost)))
    }

    pub(super) fn append(&mut self, other: Self) {
        for (entry, cost) in other.costs {
            self.add(entry, cost);
        }
        self.native_entries.extend(other.native_entries);
    }

    fn add(&mut self, entry: usize, cost: u64) {
        let sum = self.costs.entry(entry).or_default();
        *sum = sum.saturating_add(cost);
    }

    /// Looks through the block of a function of a known object.
    pub(super) fn look(
        &mut self,
        text: &[u8],
        context: BlockContext<'_>,
        every_line_moves: bool,
        jit: &dyn JitFunctions,
    ) {
        let Some(column) = context.columns.instr else { return };
        // A jump that far is written in full, so most blocks need no decoding.
        let mut covered = Covered { range: 0..0, entry: None };
        let mut is_jit = |addr| {
            if !covered.range.contains(&addr) {
                covered = jit.around(addr);
            }
            covered.entry.is_some()
        };
        if !(column == 0 && any_full_address(text, &mut is_jit)) {
            return;
        }
        // A block that cannot be decoded is passed on untouched, like every block of this kind.
        let stretch_of = &mut |addr| jit.around(addr).range;
        let Some(block) = FunctionBlock::parse(text, context, every_line_moves, stretch_of) else { return };
        let mut lowest = u64::MAX;
        for item in &block.items {
            let (Some(position), Some(cost)) = (item.position, item.self_cost()) else { continue };
            if let Some(entry) = jit.at(position.0[column]) {
                self.add(entry, cost);
            }
            let addr = if let ItemKind::Lines(lines) = &item.kind { lines.lowest.0 } else { position };
            lowest = lowest.min(addr.0[column]);
        }
        self.native_entries.extend(jit.at(lowest));
    }
}

/// True if one of the addresses at the beginnings of lines that are not relative to others is such.
fn any_full_address(text: &[u8], is_such: &mut impl FnMut(u64) -> bool) -> bool {
    lines(text).skip(1).any(|(_, line)| full_address(line).is_some_and(&mut *is_such))
}

fn full_address(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"0x")?;
    hex(digits.split(u8::is_ascii_whitespace).next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_addresses_begin_lines() {
        let found = |text: &str| {
            let mut told = Vec::new();
            any_full_address(text.as_bytes(), &mut |addr| {
                told.push(addr);
                false
            });
            told
        };
        let text =
            "fn=(1) 0x99\n0x1000000000 1 1\n0x1000000012 1 1\n+3 0x5 7\n0x10000000AB 1\n0x1000000100 1\n0x5\n0x7";
        assert_eq!(found(text), [0x10_0000_0000, 0x10_0000_0012, 0x10_0000_00ab, 0x10_0000_0100, 5, 7]);
    }
}
