//! perf.data whose sizes are right, whatever is in its records: mutations of whole files mostly break the frame.
//!
//! ```text
//! u8  order, pipe, packed, events      u8 × events  sample_type, by its place in the list below
//! u8  features, each: bit u8, len u8, bytes      then records, each: kind u8, misc u8, len u8, bytes
//! ```

use super::recordings::perf_data;
use crate::test_writers::bytes::{Order, Out};
use crate::test_writers::perf_data::{self as writer, Event, Mode, PerfData, USUAL};

/// The contents of samples: the usual, all that is known, and some between.
const SAMPLE_TYPES: [u64; 8] = [
    USUAL,
    USUAL | writer::IDENTIFIER | writer::ID | writer::CPU | writer::ADDR,
    USUAL | writer::READ | writer::STREAM_ID,
    USUAL | writer::REGS_USER | writer::STACK_USER,
    USUAL | writer::BRANCH_STACK,
    USUAL
        | writer::IDENTIFIER
        | writer::READ
        | writer::BRANCH_STACK
        | writer::REGS_USER
        | writer::STACK_USER
        | writer::REGS_INTR,
    writer::IP | writer::TID,
    0,
];

/// Kinds of records that perf writes itself: 64 to 84.
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;
/// The feature that shows how they are packed.
const COMPRESSION: u8 = 27;

/// An input that is read from its front.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    /// Zero behind the end.
    pub(super) fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Fewer at the end.
    pub(super) fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads what [`recording`] makes of the bytes.
pub(super) fn framed(bytes: &[u8]) {
    perf_data(&recording(bytes));
}

/// The recording that the bytes stand for.
pub(super) fn recording(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = Bytes(bytes);
    let how = bytes.byte();
    let order = if how & 1 == 0 { Order::Little } else { Order::Big };
    let mode = if how & 2 == 0 { Mode::File } else { Mode::Pipe };
    let events = (0..=how >> 6).map(|at| event(at, bytes.byte())).collect();
    let mut data = PerfData::with_events(order, events);
    for _ in 0..bytes.byte() % 16 {
        let (bit, len) = (bytes.byte() % 33, bytes.byte());
        data.feature(bit, bytes.take(len.into()).to_vec());
    }
    match how >> 2 & 3 {
        0 | 3 => records(&mut data, &mut bytes),
        1 => packed(&mut data, bytes, COMPRESSED, order),
        _ => packed(&mut data, bytes, COMPRESSED2, order),
    }
    data.into_bytes(mode)
}

fn event(at: u8, which: u8) -> Event {
    let (registers, stack) = (0x00ff_0fff, 64);
    let sample_type = SAMPLE_TYPES[usize::from(which & 7)];
    let read_format = u64::from(which >> 3);
    Event { sample_type, ids: vec![u64::from(at)], read_format, registers, stack, ..Event::usual() }
}

fn records(data: &mut PerfData, bytes: &mut Bytes<'_>) {
    while !bytes.is_empty() {
        let (kind, misc, len) = (bytes.byte(), bytes.byte(), bytes.byte());
        let mut body = bytes.take(len.into()).to_vec();
        body.resize(body.len().next_multiple_of(8), 0);
        data.record(u32::from(kind % 100), u16::from(misc) << 8 | u16::from(misc), &body);
    }
}

/// The same records, packed: a few of them in each that is written.
fn packed(data: &mut PerfData, mut bytes: Bytes<'_>, kind: u32, order: Order) {
    let mut plain = PerfData::new(order, Event::usual());
    let front = plain.clone().into_bytes(Mode::Pipe).len();
    records(&mut plain, &mut bytes);
    let plain = plain.into_bytes(Mode::Pipe);
    let mut feature = Out::new(order);
    feature.u32(1).u32(1).u32(1).u32(3).u32(1 << 20); // version, zstd, level, ratio, mmap_len
    data.feature(COMPRESSION, feature.bytes);
    for piece in plain[front..].chunks(1000) {
        let mut body = zstd::encode_all(piece, 1).unwrap();
        if kind == COMPRESSED2 {
            let mut sized = Out::new(order);
            body = sized.u64(body.len() as u64).raw(&body).bytes.clone();
        }
        body.resize(body.len().next_multiple_of(8), 0);
        data.record(kind, 0, &body);
    }
}
