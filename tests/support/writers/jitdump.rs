//! Writes jitdumps: every kind of record, either byte order, headers of any length, and deliberate damage.

use super::bytes::{Order, Out};

/// The fields of a jitdump's header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) version: u32,
    /// In bytes, at least 40. Additional bytes are filled with `0xee`.
    pub(crate) total_size: u32,
    /// ELF's `e_machine`.
    pub(crate) machine: u32,
    pub(crate) pid: u32,
    pub(crate) timestamp: u64,
    /// If bit 0 is set, times are in ticks of the processor's counter (TSC).
    pub(crate) flags: u64,
}

impl Header {
    /// A header of version 1 with 40 bytes, for x86-64.
    pub(crate) fn of(pid: u32) -> Self {
        Self { version: 1, total_size: 40, machine: 62, pid, timestamp: 0, flags: 0 }
    }
}

/// A compiled function, for JIT_CODE_LOAD.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load<'a> {
    pub(crate) tid: u32,
    pub(crate) addr: u64,
    pub(crate) index: u64,
    pub(crate) name: &'a [u8],
    pub(crate) code: &'a [u8],
}

/// One line of a DEBUG_INFO record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) addr: u64,
    pub(crate) line: u32,
    pub(crate) discriminator: u32,
    pub(crate) file: &'a [u8],
}

/// Builds a jitdump record by record.
#[derive(Clone, Debug)]
pub(crate) struct JitDump {
    pub(crate) out: Out,
    pid: u32,
}

impl JitDump {
    /// Starts an ordinary little-endian jitdump for x86-64.
    pub(crate) fn new(pid: u32) -> Self {
        Self::with_header(Order::Little, Header::of(pid))
    }

    /// Starts a jitdump with any header.
    pub(crate) fn with_header(order: Order, header: Header) -> Self {
        let mut out = Out::new(order);
        out.u32(0x4a69_5444).u32(header.version).u32(header.total_size).u32(header.machine).u32(0);
        out.u32(header.pid).u64(header.timestamp).u64(header.flags);
        out.bytes.resize((header.total_size as usize).max(40), 0xee);
        Self { out, pid: header.pid }
    }

    /// Adds a JIT_CODE_LOAD record.
    pub(crate) fn load(&mut self, time: u64, load: Load) {
        let size = 56 + load.name.len() + 1 + load.code.len();
        self.prefix(0, size as u32, time);
        let out = self.out.u32(self.pid).u32(load.tid).u64(load.addr).u64(load.addr);
        out.u64(load.code.len() as u64).u64(load.index).raw(load.name).raw(&[0]).raw(load.code);
    }

    /// Adds a JIT_CODE_MOVE record.
    pub(crate) fn moved(&mut self, time: u64, index: u64, (from, to): (u64, u64), size: u64) {
        self.prefix(1, 64, time);
        self.out.u32(self.pid).u32(self.pid).u64(to).u64(from).u64(to).u64(size).u64(index);
    }

    /// Adds a JIT_CODE_DEBUG_INFO record for the code at `addr`.
    pub(crate) fn debug_info(&mut self, time: u64, addr: u64, lines: &[Line]) {
        let mut body = Out::new(self.out.order);
        body.u64(addr).u64(lines.len() as u64);
        for line in lines {
            body.u64(line.addr).u32(line.line).u32(line.discriminator).raw(line.file).raw(&[0]);
        }
        self.record(2, time, &body.bytes);
    }

    /// Adds a JIT_CODE_UNWINDING_INFO record, which holds `.eh_frame` followed by `.eh_frame_hdr`.
    pub(crate) fn unwinding(&mut self, time: u64, (eh_frame, eh_frame_hdr): (&[u8], &[u8]), mapped_size: u64) {
        let mut body = Out::new(self.out.order);
        body.u64((eh_frame.len() + eh_frame_hdr.len()) as u64).u64(eh_frame_hdr.len() as u64).u64(mapped_size);
        body.raw(eh_frame).raw(eh_frame_hdr);
        self.record(4, time, &body.bytes);
    }

    /// Adds a JIT_CODE_CLOSE record (16 bytes).
    pub(crate) fn close(&mut self, time: u64) {
        self.record(3, time, &[]);
    }

    /// Adds any record, with the correct size.
    pub(crate) fn record(&mut self, id: u32, time: u64, body: &[u8]) {
        self.lying_record(id, 16 + body.len() as u32, time, body);
    }

    /// Adds a record that claims a wrong size.
    pub(crate) fn lying_record(&mut self, id: u32, claimed_size: u32, time: u64, body: &[u8]) {
        self.prefix(id, claimed_size, time);
        self.out.raw(body);
    }

    fn prefix(&mut self, id: u32, size: u32, time: u64) {
        self.out.u32(id).u32(size).u64(time);
    }

    /// The contents of the file.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.out.bytes
    }
}
