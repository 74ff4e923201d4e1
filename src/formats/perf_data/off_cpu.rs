//! Samples of `perf record --off-cpu` since perf 6.16: all information is in the raw data.
//!
//! The regular process, thread and period fields describe whatever ran when the sample was written. The raw data:
//!
//! ```text
//! u32 pid, u32 tid, u64 period, u64 nr, u64 ips[nr], u64 cgroup, padding
//! ```
//!
//! Layout: `off_cpu_write` in tools/perf/util/bpf_off_cpu.c. Before 6.16 the chain was in the sample as usual.

use super::attr::Event;
use super::sample::Sample;
use super::words::Words;
use crate::bytes::cursor::{Cursor, Endian};
use crate::error::Result;
use crate::model::{Addr, Pid, Tid};
use linux_perf_event_reader::constants as abi;

/// Offset in bytes of the first call chain entry in the raw data: after pid, tid, period and nr.
pub(super) const CHAIN_OFFSET: usize = 4 + 4 + 8 + 8;

impl Event {
    /// True if the event's samples have process, thread, period and call chain in their raw data: it is the output of a
    /// BPF program that is called `offcpu-time`, maybe with modifiers (`offcpu-time:u`).
    pub fn is_off_cpu_raw(&self) -> bool {
        self.attr.is_bpf_output()
            && self.attr.has_field(abi::PERF_SAMPLE_RAW)
            && !self.attr.has_field(abi::PERF_SAMPLE_CALLCHAIN)
            && self.name.split(':').next() == Some("offcpu-time")
    }

    /// True if the event's samples have call chains, as a field or in their raw data.
    pub fn has_call_chains(&self) -> bool {
        self.attr.has_field(abi::PERF_SAMPLE_CALLCHAIN) || self.is_off_cpu_raw()
    }
}

impl<'data> Sample<'data> {
    /// Takes process, thread, period, call chain and control group from the raw data. The raw data has no instruction
    /// pointer, so `ip` becomes the first address of the chain, or 0 if the chain is empty. `base` is the record's file
    /// offset, for errors.
    pub(super) fn take_off_cpu(&mut self, base: u64, endian: Endian) -> Result<()> {
        let mut body = Cursor::new(self.raw.unwrap_or_default(), base, endian);
        let (pid, tid) = (body.u32("off-cpu pid")?, body.u32("off-cpu tid")?);
        self.pid_tid = Some((Pid(pid.cast_signed()), Tid(tid.cast_signed())));
        self.period = Some(body.u64("off-cpu period")?);
        let count = body.u64("length of the off-cpu call chain")?;
        self.callchain = Words::new(body.bytes(count.saturating_mul(8), "off-cpu call chain")?, endian);
        self.cgroup = Some(body.u64("off-cpu cgroup")?);
        // The frames, not the words: the first word of the chain may be a context marker, which is no address.
        let first = self.chain().next();
        self.ip = Some(first.map_or(Addr(0), |(_, _, frame)| frame.raw()));
        Ok(())
    }
}
