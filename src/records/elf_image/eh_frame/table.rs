//! `.eh_frame_hdr`: a table of (code, FDE) sorted by code, for binary search. LSB Core 5.0, 10.6.2.

use gimli::constants::{DW_EH_PE_datarel, DW_EH_PE_pcrel, DW_EH_PE_sdata4, DW_EH_PE_udata4};
use gimli::{Endianity, RunTimeEndian};

/// The length of the section with this many entries.
pub(super) fn length(entries: usize) -> u64 {
    12 + 8 * entries as u64
}

/// The section that will be at address `at`, over an `.eh_frame` at `eh_frame`.
pub(super) fn encode(mut table: Vec<(u32, u32)>, endian: RunTimeEndian, at: u64, eh_frame: u64) -> Vec<u8> {
    table.sort_unstable();
    // The binary search wants one entry an address; of several the last dumped is in force.
    table.reverse();
    table.dedup_by_key(|&mut (pc, _)| pc);
    table.reverse();
    let mut out = vec![
        1, // version
        DW_EH_PE_pcrel.0 | DW_EH_PE_sdata4.0,
        DW_EH_PE_udata4.0,
        DW_EH_PE_datarel.0 | DW_EH_PE_sdata4.0,
    ];
    let mut word = |value: u32| {
        let mut bytes = [0; 4];
        endian.write_u32(&mut bytes, value);
        out.extend_from_slice(&bytes);
    };
    word((eh_frame as u32).wrapping_sub(at as u32 + 4));
    word(table.len() as u32);
    for (pc, fde) in table {
        word(pc.wrapping_sub(at as u32));
        word(fde.wrapping_sub(at as u32));
    }
    out
}
