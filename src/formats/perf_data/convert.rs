//! Converts events whose samples copy user registers and stack (`--call-graph dwarf`) to events with plain call chains.

use super::attr::{Event, EventAttr};
use super::kind;
use super::recording::Recording;
use super::sample::Fields;
use super::walk::{RawRecord, record};
use crate::bytes::byte_writer::ByteWriter;
use crate::bytes::cursor::Endian;
use crate::error::Result;
use linux_perf_event_reader::constants as abi;

/// The `PERF_SAMPLE_*` bits of the fields that the conversion removes from samples.
const REMOVED: u64 = abi::PERF_SAMPLE_REGS_USER | abi::PERF_SAMPLE_STACK_USER;

/// Byte offsets of fields in `struct perf_event_attr`.
const SAMPLE_TYPE: usize = 24;
const FLAGS: usize = 40;
const SAMPLE_REGS_USER: usize = 80;
const SAMPLE_STACK_USER: usize = 88;

/// True if samples of this event contain copies of the user stack.
pub fn copies_stacks(attr: &EventAttr) -> bool {
    attr.has_field(abi::PERF_SAMPLE_STACK_USER)
}

impl Recording {
    /// Changes the attrs of all events whose samples copy the user stack: they now say that samples have call chains,
    /// with frames of user space, but no user registers and no stack copies.
    pub fn convert_to_plain_chains(&mut self) {
        let endian = self.header.endian;
        for event in self.events.iter_mut().filter(|event| copies_stacks(&event.attr)) {
            convert_event(event, endian);
        }
    }
}

/// Changes the attr of one event, both its parsed fields and its bytes. The attr then says that samples have call
/// chains with frames of user space, but neither user registers nor copies of the user stack.
fn convert_event(Event { attr, attr_bytes, .. }: &mut Event, endian: Endian) {
    attr.sample_type = attr.sample_type & !REMOVED | abi::PERF_SAMPLE_CALLCHAIN;
    // With this flag, the attr would say that chains have no frames of user space, but the new chains have some.
    attr.flags &= !abi::ATTR_FLAG_BIT_EXCLUDE_CALLCHAIN_USER;
    attr.sample_regs_user = 0;
    attr.sample_stack_user = 0;
    // Big-endian machines store the flags, a C bit-field, with the first flag in the highest bit.
    let flags = if endian == Endian::Big { attr.flags.reverse_bits() } else { attr.flags };
    // Change the same four fields in the attr's bytes.
    for (offset, len, number) in
        [(SAMPLE_TYPE, 8, attr.sample_type), (FLAGS, 8, flags), (SAMPLE_REGS_USER, 8, 0), (SAMPLE_STACK_USER, 4, 0)]
    {
        if let Some(field) = attr_bytes.get_mut(offset..offset + len) {
            endian.put(number, field);
        }
    }
}

/// Encodes the HEADER_ATTR record of an event in pipe form again, after the event's attr was changed. The IDs of the
/// event are copied from `raw`, the recorded HEADER_ATTR. `None` if `raw` is shorter than the attr, or the result is
/// longer than a record can be.
pub fn attr_record(raw: &RawRecord<'_>, event: &Event) -> Option<Vec<u8>> {
    let ids = raw.bytes.get(8 + event.attr_bytes.len()..)?;
    record(kind::HEADER_ATTR, raw.misc, &[&event.attr_bytes, ids].concat(), raw.endian)
}

/// Copies a sample, replacing its call chain by `chain` (context markers included) and dropping user registers and
/// stack. `None` if the result is longer than a record can be. Fails if the record is too short for its fields.
pub fn with_chain(raw: &RawRecord<'_>, attr: &EventAttr, chain: &[u64]) -> Result<Option<Vec<u8>>> {
    let mut fields = Fields { body: raw.body(), attr };
    let start = fields.body.offset();
    let position = |fields: &Fields<'_, '_>| (fields.body.offset() - start) as usize;
    // Read the record field by field, to learn where the chain and the fields to drop begin and end.
    fields.skip_to_chain()?;
    let chain_start = position(&fields);
    fields.callchain()?;
    let chain_end = position(&fields);
    fields.raw()?;
    fields.branches()?;
    let registers_start = position(&fields);
    fields.registers(abi::PERF_SAMPLE_REGS_USER, attr.sample_regs_user)?;
    fields.user_stack()?;
    let stack_end = position(&fields);
    let body = &raw.bytes[8..]; // without the record's header
    Ok(encode_with_chain(raw, &body[..chain_start], chain, &[&body[chain_end..registers_start], &body[stack_end..]]))
}

/// Encodes a record like `raw`, but with another call chain. `before` are the bytes of the body before the chain's
/// length, `after` are pieces that follow the chain. `None` if the result is longer than a record can be.
pub(super) fn encode_with_chain(raw: &RawRecord<'_>, before: &[u8], chain: &[u64], after: &[&[u8]]) -> Option<Vec<u8>> {
    let mut new = ByteWriter::append_to(before.to_vec(), raw.endian);
    new.u64(chain.len() as u64);
    for &word in chain {
        new.u64(word);
    }
    for piece in after {
        new.bytes(piece);
    }
    record(raw.kind, raw.misc, &new.finish(), raw.endian)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::perf_data::Records;

    #[test]
    fn a_sample_keeps_all_but_the_stack() {
        let sample_type = abi::PERF_SAMPLE_IP | abi::PERF_SAMPLE_CALLCHAIN | REMOVED | abi::PERF_SAMPLE_WEIGHT;
        let attr = EventAttr { sample_type, sample_regs_user: 0b11, ..EventAttr::default() };
        // ip, a chain of one entry, registers (ABI and two values), stack (16 bytes, 8 of them copied), weight.
        let words = [0x10u64, 1, 0x20, 2, 7, 8, 16, 0xaaaa, 0xbbbb, 8, 99];
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let old = record(kind::SAMPLE, 2, &body, Endian::Little).unwrap();
        let raw = Records::new(&old, 0, Endian::Little).next().unwrap();
        let new = with_chain(&raw, &attr, &[1, 2, 3]).unwrap().unwrap();
        let words: Vec<u64> = new[8..].as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        assert_eq!(words, [0x10, 3, 1, 2, 3, 99]);
        assert_eq!((new[6], new.len()), (56, 56));
    }

    #[test]
    fn an_attr_states_what_its_samples_have() {
        let mut attr_bytes = vec![0xff; 104];
        let attr = EventAttr { sample_type: REMOVED | 1, flags: 1 << 22 | 1 << 18, ..EventAttr::default() };
        attr_bytes[..8].copy_from_slice(&[1, 0, 0, 0, 104, 0, 0, 0]);
        let mut event = Event { attr, attr_bytes, ids: Vec::new(), name: String::new() };
        convert_event(&mut event, Endian::Little);
        let parsed = EventAttr::parse(&event.attr_bytes, 0, Endian::Little).unwrap();
        assert_eq!(parsed.sample_type, abi::PERF_SAMPLE_CALLCHAIN | 1);
        assert_eq!((parsed.flags, parsed.sample_regs_user, parsed.sample_stack_user), (1 << 18, 0, 0));
    }
}
