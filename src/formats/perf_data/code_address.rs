//! Finds the code addresses in a record, for commands that change them.

use super::attr::EventAttr;
use super::recording::Recording;
use super::sample::{Fields, Sample};
use super::walk::RawRecord;
use super::{kind, off_cpu};
use crate::error::Result;
use crate::model::FrameAddr;
use crate::model::process::CpuMode;
use linux_perf_event_reader::constants as abi;

/// A word of a record that holds a code address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeAddress {
    /// Offset of the word in bytes, from the start of the record.
    pub offset: usize,
    /// Whether the code belongs to user space, to the kernel or to a guest.
    pub mode: CpuMode,
    /// The address as recorded.
    pub frame: FrameAddr,
}

/// Length of a record's header in bytes.
const HEADER: usize = 8;
/// Length of a word in bytes.
const WORD: usize = 8;
/// Length of a branch in bytes: three words (from, to, flags).
const BRANCH: usize = 3 * WORD;

impl Recording {
    /// The code addresses of a sample or a deferred call chain: ip, call chain and branches. Addresses in registers and
    /// stack copies are not included. Fails like [`Recording::sample`].
    pub fn code_addresses(&self, raw: &RawRecord<'_>) -> Result<Vec<CodeAddress>> {
        if raw.kind == kind::CALLCHAIN_DEFERRED {
            // `chain_sample` returns `None` only for records without a call chain, and this one has a chain.
            let Some(sample) = self.chain_sample(raw).transpose()? else { return Ok(Vec::new()) };
            let before_chain = HEADER + WORD + WORD; // the cookie and the length of the chain
            return Ok(chain_addresses(&sample, before_chain).collect());
        }
        let sample = self.sample(raw)?;
        let event = &self.events[sample.event];
        // Samples of `perf record --off-cpu` have their call chain in the raw data, not in the usual field.
        if event.is_off_cpu_raw() {
            return off_cpu_addresses(raw, &sample, &event.attr);
        }
        addresses(raw, &sample, &event.attr)
    }
}

/// Finds all code addresses in a sample: the instruction pointer, the call chain, and branches. Each comes with its
/// offset in the record.
fn addresses(raw: &RawRecord<'_>, sample: &Sample<'_>, attr: &EventAttr) -> Result<Vec<CodeAddress>> {
    let mut fields = Fields { body: raw.body(), attr };
    // The offset in the record of the field that is read next.
    let position = |fields: &Fields<'_, '_>| (fields.body.offset() - raw.offset) as usize;
    let mut found = Vec::new();
    if let Some(ip) = sample.ip {
        // Of all fields, only IDENTIFIER can precede the instruction pointer.
        let offset = if attr.has_field(abi::PERF_SAMPLE_IDENTIFIER) { HEADER + WORD } else { HEADER };
        found.push(CodeAddress { offset, mode: sample.cpumode, frame: FrameAddr::Ip(ip) });
    }
    fields.skip_to_chain()?;
    // The chain's length, one word, precedes its addresses.
    found.extend(chain_addresses(sample, position(&fields) + WORD));
    // Skip the chain and the raw data by reading them. The branch stack directly follows them.
    fields.callchain()?;
    fields.raw()?;
    found.extend(branch_addresses(sample, position(&fields)));
    Ok(found)
}

/// The addresses of the sample's call chain. `first_offset` is the offset of the chain's first word in the record.
fn chain_addresses(sample: &Sample<'_>, first_offset: usize) -> impl Iterator<Item = CodeAddress> {
    sample.chain().map(move |(index, mode, frame)| CodeAddress { offset: first_offset + index * WORD, mode, frame })
}

/// The addresses of an off-CPU sample: those of the call chain in its raw data. The ip field of the record is always 0,
/// so it isn't an address.
fn off_cpu_addresses(raw: &RawRecord<'_>, sample: &Sample<'_>, attr: &EventAttr) -> Result<Vec<CodeAddress>> {
    /// Length in bytes of the number that precedes the raw data and states their size.
    const SIZE_FIELD: usize = 4;
    let mut fields = Fields { body: raw.body(), attr };
    // Off-CPU samples have no call chain field, so the raw data field begins where the chain would be.
    fields.skip_to_chain()?;
    let raw_field = (fields.body.offset() - raw.offset) as usize;
    Ok(chain_addresses(sample, raw_field + SIZE_FIELD + off_cpu::CHAIN_OFFSET).collect())
}

/// The addresses of the branch stack: source and target of each branch. `start` is the offset of the branch stack in
/// the record.
fn branch_addresses(sample: &Sample<'_>, start: usize) -> Vec<CodeAddress> {
    let Some(branches) = sample.branches else { return Vec::new() };
    // The branch stack starts with the number of branches and, if it was recorded, `hw_idx`.
    let mut branch_offset = if branches.hw_idx.is_some() { start + 2 * WORD } else { start + WORD };
    let mut found = Vec::new();
    for branch in branches.iter() {
        for (offset, addr) in [(branch_offset, branch.from), (branch_offset + WORD, branch.to)] {
            // A branch doesn't contain the CPU mode of its two addresses. Kernel addresses are in the upper half.
            let mode = if addr.0 >> 63 == 0 { CpuMode::User } else { CpuMode::Kernel };
            found.push(CodeAddress { offset, mode, frame: FrameAddr::Ip(addr) });
        }
        branch_offset += BRANCH;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::cursor::Endian;
    use crate::formats::perf_data::{Records, record};
    use crate::model::Addr;

    #[test]
    fn every_code_address_is_where_it_states() {
        let sample_type = abi::PERF_SAMPLE_IDENTIFIER
            | abi::PERF_SAMPLE_IP
            | abi::PERF_SAMPLE_TID
            | abi::PERF_SAMPLE_CALLCHAIN
            | abi::PERF_SAMPLE_RAW
            | abi::PERF_SAMPLE_BRANCH_STACK;
        let branch_sample_type = abi::PERF_SAMPLE_BRANCH_HW_INDEX;
        let attr = EventAttr { sample_type, branch_sample_type, ..EventAttr::default() };
        let kernel = abi::PERF_CONTEXT_KERNEL;
        // The raw data: a 4-byte size and 4 bytes.
        let chain = [kernel, 0xffff_0001, abi::PERF_CONTEXT_USER, 0x1000, 0x2000];
        let words = [&[1, 0x1000, 0x5_0000_0005, 5], &chain[..], &[4, 1, 0, 0x3000, 0xffff_8000_0000_4000, 0]].concat();
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let bytes = record(kind::SAMPLE, 2, &body, Endian::Little).unwrap();
        let raw = Records::new(&bytes, 0x600, Endian::Little).next().unwrap();
        let found = addresses(&raw, &Sample::parse(&raw, 0, &attr).unwrap(), &attr).unwrap();
        for CodeAddress { offset, frame, .. } in &found {
            assert_eq!(bytes[*offset..offset + 8], frame.raw().0.to_le_bytes(), "{frame:?}");
        }
        let user: Vec<_> = found.iter().filter(|code| code.mode == CpuMode::User).map(|code| code.frame).collect();
        let [ip, caller, branch] = [0x1000, 0x2000, 0x3000].map(Addr);
        assert_eq!(user, [FrameAddr::Ip(ip), FrameAddr::Ip(ip), FrameAddr::Return(caller), FrameAddr::Ip(branch)]);
        assert_eq!(found.len(), 6);
    }
}
