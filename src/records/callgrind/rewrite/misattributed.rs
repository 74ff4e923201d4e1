//! Counts costs of JIT code that callgrind attributed to functions of known objects.
//!
//! callgrind begins a function only at a call. If an object's code *jumps* into JIT code (as V8's interpreter entry
//! does), the costs of the JIT code are in the object's function, at absolute addresses. They are counted but left
//! there: all other addresses in such a block are relative to the object, and without the object's file the two kinds
//! can't be distinguished with certainty.

use super::jit_functions::{Covered, JitFunctions};
use crate::bytes::digits::hex;
use crate::records::callgrind::grammar::{AddressText, BlockContext, BlockMemory, FunctionBlock, ItemKind, line_len};
use rustc_hash::{FxHashMap, FxHashSet};

/// Self costs of JIT code in functions of known objects, in the first event.
#[derive(Debug, Default)]
pub struct Misattributed {
    /// The self cost of each JIT function, by entry.
    costs: FxHashMap<usize, u64>,
    /// Entries that contain the start of a known object's function. Perf maps also list code that is part of the
    /// program (V8's embedded builtins), and such code is not misattributed.
    native_entries: FxHashSet<usize>,
}

impl Misattributed {
    /// The number of JIT functions with misattributed costs, and the sum of these costs.
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

    /// Looks for costs of JIT code in a function's block. `text` is the whole block, of a known object.
    pub(super) fn examine(
        &mut self,
        text: &[u8],
        context: BlockContext<'_>,
        every_line_moves: bool,
        jit: &dyn JitFunctions,
    ) {
        // The fast checks below expect the address in the first column.
        let Some(column @ 0) = context.columns.instr else { return };
        // A jump into JIT code is far, and therefore written as an absolute address. So most blocks needn't be decoded.
        let first = jit.find_range(0);
        let lowest_jit = if first.entry.is_some() { 0 } else { first.range.end };
        let mut covered = Covered { range: 0..0, entry: None };
        let is_jit = |addr| {
            if !covered.range.contains(&addr) {
                covered = jit.find_range(addr);
            }
            covered.entry.is_some()
        };
        if !any_full_address(skip_low_addresses(text, lowest_jit), is_jit) {
            return;
        }
        // A block that can't be decoded isn't counted here. Blocks of known objects are copied anyway.
        let (find_range, memory) = (&mut |addr| jit.find_range(addr).range, BlockMemory::default());
        let Some(block) = FunctionBlock::parse(text, context, every_line_moves, find_range, memory) else { return };
        let mut lowest = u64::MAX;
        for item in &block.items {
            let (Some(position), Some(cost)) = (item.position, item.self_cost()) else { continue };
            if let Some(entry) = jit.find(position.0[column]) {
                self.add(entry, cost);
            }
            let lowest_position = if let ItemKind::Lines(lines) = &item.kind { lines.lowest.0 } else { position };
            lowest = lowest.min(lowest_position.0[column]);
        }
        self.native_entries.extend(jit.find(lowest));
    }
}

/// Skips lines at the beginning of a text that cannot hold an address of `lowest` or above. JIT code usually has
/// addresses with more digits than those in objects, which can be tested for many bytes at once.
#[inline(never)] // When inlined, the compiler does not vectorize it.
fn skip_low_addresses(text: &[u8], lowest: u64) -> &[u8] {
    let digits = (67 - lowest.leading_zeros() as usize) / 4;
    if digits < LAST_DIGITS {
        return text;
    }
    let mut start = 0;
    // Looks for a line feed followed by `0x` and `digits` hexadecimal digits, at `AT_ONCE` offsets at a time.
    loop {
        let bytes_at = |offset: usize| text.get(start + offset..).and_then(<[u8]>::first_chunk::<AT_ONCE>);
        let (Some(line_feeds), Some(marks), Some(_)) = (bytes_at(0), bytes_at(2), bytes_at(digits + 2)) else { break };
        // For each offset, the smallest of the last digits. If the number is shorter, a blank is among them, which is
        // less than any digit.
        let mut least = [u8::MAX; AT_ONCE];
        for digits in (digits + 3 - LAST_DIGITS..digits + 3).filter_map(bytes_at) {
            for (least, digit) in least.iter_mut().zip(digits) {
                *least = (*least).min(*digit);
            }
        }
        let mut found = 0;
        for ((line_feed, mark), least) in line_feeds.iter().zip(marks).zip(&least) {
            found |= u8::from(*line_feed == b'\n') & u8::from(*mark == b'x') & u8::from(*least > b' ');
        }
        if found != 0 {
            break;
        }
        start += AT_ONCE;
    }
    &text[start..]
}

/// Number of bytes tested at once.
const AT_ONCE: usize = 64;

/// How many of an address's last digits are tested. Addresses in objects are rarely shorter than those of JIT code by
/// more digits than this.
const LAST_DIGITS: usize = 6;

/// True if `condition` holds for an absolute address at the start of any line but the first.
fn any_full_address(text: &[u8], mut condition: impl FnMut(u64) -> bool) -> bool {
    let mut rest = text;
    let mut previous: Option<AddressText> = None;
    while let Some(line) = rest.get(line_len(rest) + 1..) {
        rest = line;
        if !line.starts_with(b"0x") {
            continue;
        }
        let mut addr = previous.as_ref().and_then(|previous| previous.read_similar(line));
        if addr.is_none() {
            previous = AddressText::read(line);
            addr = parse_full_address(line);
        }
        if addr.is_some_and(&mut condition) {
            return true;
        }
    }
    false
}

fn parse_full_address(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"0x")?;
    let len = digits.iter().position(u8::is_ascii_whitespace)?;
    hex(&digits[..len])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_passed_over_up_to_the_first_address_that_is_not_low() {
        let low = "0x4001f0 12 345\n".repeat(50);
        let text = |line: &str, behind: usize| format!("fn=(1) 0x00007f0000001000\n{low}{line}{}", &low[..behind]);
        let left = |text: &str| skip_low_addresses(text.as_bytes(), 0x7f00_0000_1000).to_vec();
        for behind in [0, 16, 160] {
            // Up to one step's bytes may be left over.
            let none = left(&text("calls=1 0x7f0000001000 0\n", behind));
            assert!(none.len() < 2 * AT_ONCE, "{behind}");
            for found in ["0x7f0000001000 1 2\n", "0x00007f0000001000\n", "0xffffffffffffffff 1\n"] {
                let left = left(&text(found, behind));
                assert!(memchr::memmem::find(&left, format!("\n{found}").as_bytes()).is_some(), "{found} {behind}");
            }
        }
        let all = text("", 0);
        assert_eq!(
            skip_low_addresses(all.as_bytes(), 0x1000).len(),
            all.len(),
            "addresses as short as those of objects"
        );
        assert_eq!(skip_low_addresses(all.as_bytes(), 0).len(), all.len());
    }

    #[test]
    fn full_addresses_begin_lines() {
        let text =
            "fn=(1) 0x99\n0x1000000000 1 1\n0x1000000012 1 1\n+3 0x5 7\n0x10000000AB 1\n0x1000000100 1\n0x5\n0x7";
        let mut found = Vec::new();
        any_full_address(text.as_bytes(), |addr| {
            found.push(addr);
            false
        });
        assert_eq!(found, [0x10_0000_0000, 0x10_0000_0012, 0x10_0000_00ab, 0x10_0000_0100, 5]);
    }
}
