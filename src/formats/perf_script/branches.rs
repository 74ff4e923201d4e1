//! Writes the branch stack of a sample (`-F brstack`, `-F brstacksym`) like perf 6.1 (`perf_sample__fprintf_brstack` in
//! tools/perf/builtin-script.c):
//!
//! ```text
//!  0x402ce1/0x4028bf/P/-/-/37/CALL
//! work+0x9/leaf+0x0/M/-/-/0/
//! ```
//!
//! The fields are: from, to, (M)ispredicted or (P)redicted, X if in a transaction, A if the branch aborted one, cycles
//! since the previous branch, type. Newer versions of perf append whether the branch was speculative.

use super::output_fields::put;
use super::write::{Fields, Line};

/// A taken branch.
#[derive(Debug, Clone, Copy)]
pub struct BranchLine<'a> {
    /// The branch instruction, printed like a frame.
    pub from: Line<'a>,
    /// The target of the branch, printed like a frame.
    pub to: Line<'a>,
    /// The flags of `struct perf_branch_entry`, as one word.
    pub flags: u64,
}

/// Names of the branch types `PERF_BR_*` in include/uapi/linux/perf_event.h, by number. For other types, nothing is
/// printed.
const TYPES: [&str; 15] = [
    "",
    "COND",
    "UNCOND",
    "IND",
    "CALL",
    "IND_CALL",
    "RET",
    "SYSCALL",
    "SYSRET",
    "COND_CALL",
    "COND_RET",
    "ERET",
    "IRQ",
    "SERROR",
    "NO_TX",
];
/// The branch type which says that the actual type is in another field. The names of that field's values
/// (`PERF_BR_NEW_*`) are [`EXTENDED_TYPES`].
const EXTENDED: u64 = 15;
const EXTENDED_TYPES: [&str; 8] =
    ["FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARCH_1", "ARCH_2", "ARCH_3", "ARCH_4", "ARCH_5"];

/// How the two ends of a branch are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchEnds {
    /// As addresses (`brstack`).
    Addresses,
    /// As symbols with offsets (`brstacksym`).
    Symbols,
}

/// Appends a branch to `out`: its two ends, then its flags, each followed by a slash.
pub fn write_branch(out: &mut Vec<u8>, fields: Fields, ends: BranchEnds, line: &BranchLine<'_>) {
    // As in perf, a blank precedes a branch that is printed with addresses, but not one that is printed with symbols.
    if ends == BranchEnds::Addresses {
        out.push(b' ');
    }
    for end in [&line.from, &line.to] {
        match (ends, end.symbol) {
            (BranchEnds::Addresses, _) => put(out, format_args!("{:#x}", end.addr)),
            (BranchEnds::Symbols, Some(symbol)) => {
                out.extend_from_slice(symbol);
                put(out, format_args!("+{:#x}", end.offset));
            }
            (BranchEnds::Symbols, None) => out.extend_from_slice(b"[unknown]"),
        }
        if fields.dso {
            out.push(b'(');
            out.extend_from_slice(end.dso.unwrap_or(b"[unknown]"));
            out.push(b')');
        }
        out.push(b'/');
    }
    // Bits of `struct perf_branch_entry`: mispred, predicted, in_tx, abort, then 16 bits of cycles.
    let is_set = |bit: u32| line.flags >> bit & 1 == 1;
    let predicted = match (is_set(0), is_set(1)) {
        (true, _) => 'M',
        (false, true) => 'P',
        (false, false) => '-',
    };
    let transaction = if is_set(2) { 'X' } else { '-' };
    let abort = if is_set(3) { 'A' } else { '-' };
    let cycles = line.flags >> 4 & 0xffff;
    put(out, format_args!("{predicted}/{transaction}/{abort}/{cycles}/{} ", type_name(line.flags)));
}

/// The name of the branch's type, which is in bits 20 to 23 of the flags or, if it is extended, in bits 26 to 29.
fn type_name(flags: u64) -> &'static str {
    let (kind, extended_kind) = (flags >> 20 & 0xf, flags >> 26 & 0xf);
    let name = if kind == EXTENDED { EXTENDED_TYPES.get(extended_kind as usize) } else { TYPES.get(kind as usize) };
    name.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(fields: &str, ends: BranchEnds, flags: u64) -> String {
        let end = |addr, symbol: Option<&'static [u8]>| Line {
            addr,
            symbol,
            offset: 9,
            dso: symbol.map(|_| &b"/bin/a"[..]),
            file_offset: None,
            inlined: false,
            source: None,
        };
        let mut out = Vec::new();
        let line = BranchLine { from: end(0x10, Some(b"f")), to: end(0x20, None), flags };
        write_branch(&mut out, fields.parse().unwrap(), ends, &line);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn addresses_functions_and_flags() {
        assert_eq!(text("comm", BranchEnds::Addresses, 2 | 37 << 4), " 0x10/0x20/P/-/-/37/ ");
        assert_eq!(text("comm", BranchEnds::Symbols, 1 | 4 << 20), "f+0x9/[unknown]/M/-/-/0/CALL ");
        assert_eq!(text("comm,dso", BranchEnds::Symbols, 0b1100), "f+0x9(/bin/a)/[unknown]([unknown])/-/X/A/0/ ");
        assert_eq!(text("comm", BranchEnds::Addresses, 15 << 20 | 1 << 26), " 0x10/0x20/-/-/-/0/FAULT_DATA ");
    }
}
