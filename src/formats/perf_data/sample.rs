//! Parses SAMPLE records. The event's `sample_type` decides which fields a sample has.
//!
//! The fields come in the order of `perf_output_sample` in kernel/events/core.c, which include/uapi/linux/perf_event.h
//! repeats above `PERF_RECORD_SAMPLE`. Nothing is copied: call chains, branches and registers borrow the record's bytes
//! and are decoded when iterated.

use super::attr::EventAttr;
use super::record::cpumode;
use super::walk::RawRecord;
use super::words::Words;
use crate::bytes::cursor::Cursor;
use crate::error::Result;
use crate::model::process::CpuMode;
use crate::model::{Addr, FrameAddr, Nanos, Pid, Tid};
use linux_perf_event_reader::constants as abi;

/// `PERF_FORMAT_LOST`: each counter value is followed by its number of lost samples (since Linux 6.0).
const PERF_FORMAT_LOST: u64 = 1 << 4;
/// `PERF_SAMPLE_BRANCH_COUNTERS`: the branch stack is followed by one word of counters per branch (since Linux 6.8).
const PERF_SAMPLE_BRANCH_COUNTERS: u64 = 1 << 19;

/// The `sample_type` bits of the fields at the start of a sample, each of which takes one 64-bit word.
const FIRST_WORDS: u64 = abi::PERF_SAMPLE_IDENTIFIER
    | abi::PERF_SAMPLE_IP
    | abi::PERF_SAMPLE_TID
    | abi::PERF_SAMPLE_TIME
    | abi::PERF_SAMPLE_ADDR
    | abi::PERF_SAMPLE_ID
    | abi::PERF_SAMPLE_STREAM_ID
    | abi::PERF_SAMPLE_CPU
    | abi::PERF_SAMPLE_PERIOD;

/// The `sample_type` bits of all fields up to and including the call chain.
const UP_TO_CALLCHAIN: u64 = FIRST_WORDS | abi::PERF_SAMPLE_READ | abi::PERF_SAMPLE_CALLCHAIN;

/// A parsed sample. Fields that the event doesn't record are `None`, or an empty list.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample<'data> {
    /// Index into [`super::Recording::events`].
    pub event: usize,
    /// Whether the sample hit user, kernel, hypervisor or guest code.
    pub cpumode: CpuMode,
    /// ID of the event, from the IDENTIFIER field or else from ID.
    pub id: Option<u64>,
    /// The instruction pointer.
    pub ip: Option<Addr>,
    /// Process ID and thread ID.
    pub pid_tid: Option<(Pid, Tid)>,
    /// When the sample was taken, on the recording's clock.
    pub time: Option<Nanos>,
    /// The ADDR field: for most events, the address of the data that the instruction accessed.
    pub addr: Option<Addr>,
    /// ID of the event as opened, before `inherit` copied it to a child thread.
    pub stream_id: Option<u64>,
    /// The CPU that took the sample.
    pub cpu: Option<u32>,
    /// How much the sample counts for: the events or nanoseconds since the previous sample.
    pub period: Option<u64>,
    /// Counter values (PERF_SAMPLE_READ).
    pub read: Option<ReadValues<'data>>,
    /// The call chain as recorded: addresses from the leaf outwards, mixed with `PERF_CONTEXT_*` markers. See
    /// [`Sample::frames`].
    pub callchain: Words<'data>,
    /// If the user part of the call chain follows in a later record, the number by which that record refers to the
    /// sample ([`super::DeferredChains`]). `None` if the chain is complete.
    pub cookie: Option<u64>,
    /// Fields of a tracepoint, or whatever else the event stores as raw data.
    pub raw: Option<&'data [u8]>,
    /// The branch stack: the last taken branches, newest first.
    pub branches: Option<Branches<'data>>,
    /// User-space registers.
    pub user_regs: Option<Registers<'data>>,
    /// A copy of the top of the user stack.
    pub user_stack: Option<StackCopy<'data>>,
    /// The WEIGHT field, or the three parts of WEIGHT_STRUCT packed in one word.
    pub weight: Option<u64>,
    /// Where the accessed data came from (`union perf_mem_data_src`).
    pub data_src: Option<u64>,
    /// Flags of the hardware transaction, if the sample hit one.
    pub transaction: Option<u64>,
    /// Registers at the interrupt, whether in user space or in the kernel.
    pub intr_regs: Option<Registers<'data>>,
    /// Physical address of the accessed data.
    pub phys_addr: Option<u64>,
    /// ID of the control group.
    pub cgroup: Option<u64>,
    /// Size in bytes of the page that holds the data address.
    pub data_page_size: Option<u64>,
    /// Size in bytes of the page that holds the instruction.
    pub code_page_size: Option<u64>,
    /// AUX trace data (for example Intel PT) from just before the sample.
    pub aux: Option<&'data [u8]>,
}

/// A set of register values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers<'data> {
    /// `PERF_SAMPLE_REGS_ABI_*`: 0 no registers, 1 32-bit, 2 64-bit.
    pub abi: u64,
    /// Bit N is set if register number N (`PERF_REG_*`) is present.
    pub mask: u64,
    /// The values of the registers in `mask`, lowest number first.
    pub values: Words<'data>,
}

/// A copy of the top of the user stack, starting at the stack pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackCopy<'data> {
    /// The bytes that were copied. The unused rest of the recorder's buffer is left out.
    pub bytes: &'data [u8],
    /// Size in bytes of the buffer that the recorder reserved for the copy.
    pub room: u64,
}

/// The counter values of a sample (PERF_SAMPLE_READ).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadValues<'data> {
    /// Nanoseconds for which the event was enabled.
    pub time_enabled: Option<u64>,
    /// Nanoseconds for which the event was counting. Less than `time_enabled` if counters had to be shared.
    pub time_running: Option<u64>,
    /// The value of the sample's event, if perf didn't read a group of events together (PERF_FORMAT_GROUP); `None` if
    /// the values are in `group`.
    single: Option<ReadValue>,
    /// The values of a group of events, leader first: for each event its value, then its ID if `has_id` is true, then
    /// its number of lost samples if `has_lost` is true. Empty if `single` is set.
    group: Words<'data>,
    has_id: bool,
    has_lost: bool,
}

/// The value of one counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadValue {
    /// The counter's value.
    pub value: u64,
    /// ID of the event that the counter belongs to.
    pub id: Option<u64>,
    /// Number of lost samples of this event.
    pub lost: Option<u64>,
}

impl ReadValues<'_> {
    /// The event's own value, or the values of its whole group, leader first.
    pub fn values(self) -> Vec<ReadValue> {
        let mut values = Vec::from_iter(self.single);
        let mut words = self.group.iter();
        while let Some(value) = words.next() {
            let id = if self.has_id { words.next() } else { None };
            let lost = if self.has_lost { words.next() } else { None };
            values.push(ReadValue { value, id, lost });
        }
        values
    }
}

/// The branch stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branches<'data> {
    /// Index of the newest branch in the hardware's ring buffer, if recorded.
    pub hw_idx: Option<u64>,
    /// Three words per branch: from, to, flags.
    words: Words<'data>,
}

/// A taken branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Address of the branch instruction.
    pub from: Addr,
    /// Address of the branch's target.
    pub to: Addr,
    /// Bits of `struct perf_branch_entry`: mispredicted, cycles, type, …
    pub flags: u64,
}

impl<'data> Branches<'data> {
    /// Makes a branch stack without `hw_idx` from its recorded words: three (from, to, flags) per branch.
    pub fn new(words: Words<'data>) -> Self {
        Self { hw_idx: None, words }
    }

    /// Yields the newest branch first.
    pub fn iter(self) -> impl Iterator<Item = Branch> + use<'data> {
        let mut words = self.words.iter();
        std::iter::from_fn(move || {
            let (from, to) = (Addr(words.next()?), Addr(words.next()?));
            Some(Branch { from, to, flags: words.next()? })
        })
    }
}

impl<'data> Sample<'data> {
    /// Parses a SAMPLE record of the event with this attr. `event` is the event's index. The error names the field for
    /// which the record is too short.
    pub(super) fn parse(raw: &RawRecord<'data>, event: usize, attr: &EventAttr) -> Result<Self> {
        let mut fields = Fields { body: raw.body(), attr };
        let identifier = fields.word(abi::PERF_SAMPLE_IDENTIFIER, "identifier")?;
        let ip = fields.word(abi::PERF_SAMPLE_IP, "ip")?.map(Addr);
        let pid_tid = fields.halves(abi::PERF_SAMPLE_TID, "pid and tid")?;
        let time = fields.word(abi::PERF_SAMPLE_TIME, "time")?.map(Nanos);
        let addr = fields.word(abi::PERF_SAMPLE_ADDR, "addr")?.map(Addr);
        let id = fields.word(abi::PERF_SAMPLE_ID, "id")?;
        // Each call reads the next field of the record. Rust evaluates the fields of a struct expression in the order
        // written, so they must be written in the kernel's order.
        let mut sample = Self {
            event,
            cpumode: cpumode(raw.misc),
            id: identifier.or(id),
            ip,
            pid_tid: pid_tid.map(|(pid, tid)| (Pid(pid.cast_signed()), Tid(tid.cast_signed()))),
            time,
            addr,
            stream_id: fields.word(abi::PERF_SAMPLE_STREAM_ID, "stream_id")?,
            cpu: fields.halves(abi::PERF_SAMPLE_CPU, "cpu")?.map(|(cpu, _)| cpu),
            period: fields.word(abi::PERF_SAMPLE_PERIOD, "period")?,
            read: fields.read()?,
            callchain: fields.callchain()?,
            ..Self::default()
        };
        // If the user part of the chain was deferred, a cookie takes its place. It identifies the later record with
        // that part.
        sample.take_cookie();
        // Most events have no fields after the call chain; their samples are complete.
        if attr.sample_type & !UP_TO_CALLCHAIN != 0 {
            sample.read_fields_after_chain(&mut fields)?;
        }
        Ok(sample)
    }

    /// Reads the fields that follow the call chain, in the kernel's order.
    fn read_fields_after_chain(&mut self, fields: &mut Fields<'data, '_>) -> Result<()> {
        self.raw = fields.raw()?;
        self.branches = fields.branches()?;
        self.user_regs = fields.registers(abi::PERF_SAMPLE_REGS_USER, fields.attr.sample_regs_user)?;
        self.user_stack = fields.user_stack()?;
        // A sample has the weight in one of two forms, never both. Either is one word.
        self.weight = fields.word(abi::PERF_SAMPLE_WEIGHT | abi::PERF_SAMPLE_WEIGHT_STRUCT, "weight")?;
        self.data_src = fields.word(abi::PERF_SAMPLE_DATA_SRC, "data_src")?;
        self.transaction = fields.word(abi::PERF_SAMPLE_TRANSACTION, "transaction")?;
        self.intr_regs = fields.registers(abi::PERF_SAMPLE_REGS_INTR, fields.attr.sample_regs_intr)?;
        self.phys_addr = fields.word(abi::PERF_SAMPLE_PHYS_ADDR, "phys_addr")?;
        self.cgroup = fields.word(abi::PERF_SAMPLE_CGROUP, "cgroup")?;
        self.data_page_size = fields.word(abi::PERF_SAMPLE_DATA_PAGE_SIZE, "data_page_size")?;
        self.code_page_size = fields.word(abi::PERF_SAMPLE_CODE_PAGE_SIZE, "code_page_size")?;
        self.aux = fields.aux()?;
        Ok(())
    }

    /// If the user part of the chain is deferred (it follows in a later record), the chain ends with a marker and a
    /// cookie. Removes the two from `callchain`, and stores the cookie in the field `cookie`.
    #[inline]
    fn take_cookie(&mut self) {
        let Some(before) = self.callchain.len().checked_sub(2) else { return };
        if self.callchain.get(before) == Some(USER_DEFERRED) {
            self.cookie = self.callchain.get(before + 1);
            self.callchain = self.callchain.first(before);
        }
    }

    /// The frames that the recorder found, leaf first, each with the CPU mode of its code. Context markers are left
    /// out. The first address after a marker is an instruction pointer; the others are return addresses. If the call
    /// chain has no addresses, the only frame is `ip`.
    #[inline]
    pub fn frames(&self) -> impl Iterator<Item = (CpuMode, FrameAddr)> + use<'data> {
        let only_address = if self.callchain.iter().all(is_marker) { self.ip } else { None };
        let only_frame = only_address.map(|ip| (self.cpumode, FrameAddr::Ip(ip)));
        only_frame.into_iter().chain(self.chain().map(|(_, mode, frame)| (mode, frame)))
    }

    /// The frames of the call chain; unlike [`Self::frames`], empty if there is no chain.
    #[inline]
    pub fn chain_frames(&self) -> impl Iterator<Item = (CpuMode, FrameAddr)> + use<'data> {
        self.chain().map(|(_, mode, frame)| (mode, frame))
    }

    /// Length of the call chain as the kernel counts it: every word except the kernel's own markers. A word that cannot
    /// be an address counts too.
    pub fn chain_len(&self) -> usize {
        self.callchain.iter().filter(|&word| !is_known_marker(word)).count()
    }

    /// The frames of the call chain, each with its index in `callchain` (markers have an index too).
    #[inline]
    pub(super) fn chain(&self) -> ChainFrames<'data> {
        ChainFrames { words: self.callchain, index: 0, context: self.context() }
    }

    /// The state in which a walk along the call chain starts: addresses before the first marker have the sample's own
    /// CPU mode.
    #[inline]
    pub fn context(&self) -> ChainContext {
        ChainContext { mode: self.cpumode, is_first: true }
    }
}

/// State of a walk along a call chain: the CPU mode that the last context marker set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainContext {
    /// The CPU mode of the next addresses.
    mode: CpuMode,
    /// True if the next frame is the first one after a marker (or at the start of the chain). Such a frame is an
    /// instruction pointer, not a return address.
    is_first: bool,
}

impl ChainContext {
    /// The state at the start of a call chain without a sample: the mode is unknown.
    pub const NONE: Self = Self { mode: CpuMode::Unknown, is_first: true };

    /// Takes the next word of a call chain: returns the frame and its CPU mode if the word is an address, `None` if it
    /// is a marker. A marker that isn't known leaves the mode as it is.
    #[inline]
    pub fn step(&mut self, word: u64) -> Option<(CpuMode, FrameAddr)> {
        if is_marker(word) {
            *self = Self { mode: mode_of_marker(word).unwrap_or(self.mode), is_first: true };
            return None;
        }
        let addr = Addr(word);
        let is_first = std::mem::replace(&mut self.is_first, false);
        Some((self.mode, if is_first { FrameAddr::Ip(addr) } else { FrameAddr::Return(addr) }))
    }
}

/// Iterator over the frames of a call chain. Half of the time to read a recording is spent here.
pub(super) struct ChainFrames<'data> {
    words: Words<'data>,
    /// Index of the next word.
    index: usize,
    context: ChainContext,
}

impl Iterator for ChainFrames<'_> {
    type Item = (usize, CpuMode, FrameAddr);

    /// The next address of the call chain: its index in the chain, its CPU mode, and the address as a frame.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let index = self.index;
            let word = self.words.get(index)?;
            self.index += 1;
            // `None`: the word is a context marker, which sets the mode of the addresses after it.
            if let Some((mode, frame)) = self.context.step(word) {
                return Some((index, mode, frame));
            }
        }
    }
}

/// `PERF_CONTEXT_USER_DEFERRED` (since Linux 6.18): the user part of the chain comes in a later record. The word after
/// this marker is a cookie; the later record has the same one.
pub const USER_DEFERRED: u64 = -640i64 as u64;

/// True if a word is in the range reserved for context markers, at or above `PERF_CONTEXT_MAX`. No address is that
/// high.
#[inline]
pub fn is_marker(word: u64) -> bool {
    word >= abi::PERF_CONTEXT_MAX
}

/// True if a word is a context marker that the kernel is known to write. A word that is only in the range of the
/// markers isn't enough.
#[inline]
pub(super) fn is_known_marker(word: u64) -> bool {
    mode_of_marker(word).is_some() || word == USER_DEFERRED
}

/// The CPU mode that a context marker announces for the addresses after it; `None` if the word isn't such a marker.
#[inline]
fn mode_of_marker(word: u64) -> Option<CpuMode> {
    match word {
        abi::PERF_CONTEXT_HV => Some(CpuMode::Hypervisor),
        abi::PERF_CONTEXT_KERNEL => Some(CpuMode::Kernel),
        abi::PERF_CONTEXT_USER => Some(CpuMode::User),
        abi::PERF_CONTEXT_GUEST_KERNEL => Some(CpuMode::GuestKernel),
        abi::PERF_CONTEXT_GUEST | abi::PERF_CONTEXT_GUEST_USER => Some(CpuMode::GuestUser),
        _ => None,
    }
}

/// Reads the body of a SAMPLE record field by field.
pub(super) struct Fields<'data, 'attr> {
    pub(super) body: Cursor<'data>,
    pub(super) attr: &'attr EventAttr,
}

impl<'data> Fields<'data, '_> {
    /// Reads a field of one word; `None` if the event's samples don't have it. `bit` is its bit in `sample_type`;
    /// `field` names it in error messages.
    #[inline]
    pub(super) fn word(&mut self, bit: u64, field: &str) -> Result<Option<u64>> {
        self.word_unless_zero(self.attr.sample_type & bit, field)
    }

    /// Skips the fields before the call chain.
    pub(super) fn skip_to_chain(&mut self) -> Result<()> {
        for _ in 0..(self.attr.sample_type & FIRST_WORDS).count_ones() {
            self.body.u64("a field before the call chain")?;
        }
        self.read()?;
        Ok(())
    }

    /// Reads a field of two 32-bit numbers; `None` if the event's samples don't have it.
    #[inline]
    fn halves(&mut self, bit: u64, field: &str) -> Result<Option<(u32, u32)>> {
        if !self.attr.has_field(bit) {
            return Ok(None);
        }
        Ok(Some((self.body.u32(field)?, self.body.u32(field)?)))
    }

    #[inline]
    fn words(&mut self, count: u64, field: &str) -> Result<Words<'data>> {
        let bytes = self.body.bytes(count.saturating_mul(8), field)?;
        Ok(Words::new(bytes, self.body.endian()))
    }

    /// Reads the counter values, `struct read_format`. Its fields depend on `attr.read_format`.
    pub(super) fn read(&mut self) -> Result<Option<ReadValues<'data>>> {
        if !self.attr.has_field(abi::PERF_SAMPLE_READ) {
            return Ok(None);
        }
        let format = self.attr.read_format;
        let (has_id, has_lost) = (format & abi::PERF_FORMAT_ID != 0, format & PERF_FORMAT_LOST != 0);
        let is_group = format & abi::PERF_FORMAT_GROUP != 0;
        // For a group the first word is the number of events; otherwise it is the value of the only event.
        let first = self.body.u64("read value")?;
        let time_enabled = self.word_unless_zero(format & abi::PERF_FORMAT_TOTAL_TIME_ENABLED, "time_enabled")?;
        let time_running = self.word_unless_zero(format & abi::PERF_FORMAT_TOTAL_TIME_RUNNING, "time_running")?;
        // An empty list, for events that don't read a group.
        let (mut single, mut group) = (None, self.words(0, "read values")?);
        if is_group {
            let words_per_event = 1 + u64::from(has_id) + u64::from(has_lost);
            group = self.words(first.saturating_mul(words_per_event), "read values")?;
        } else {
            let id = self.word_unless_zero(format & abi::PERF_FORMAT_ID, "read id")?;
            single = Some(ReadValue {
                value: first,
                id,
                lost: self.word_unless_zero(format & PERF_FORMAT_LOST, "read lost")?,
            });
        }
        Ok(Some(ReadValues { time_enabled, time_running, single, group, has_id, has_lost }))
    }

    /// `presence` is the bit that says whether the next word is in the record, already masked by the caller. Reads the
    /// word if the bit isn't 0. `field` names the word in error messages.
    #[inline]
    fn word_unless_zero(&mut self, presence: u64, field: &str) -> Result<Option<u64>> {
        if presence == 0 { Ok(None) } else { self.body.u64(field).map(Some) }
    }

    /// Reads the call chain with its markers; it is empty if the event's samples don't have this field.
    pub(super) fn callchain(&mut self) -> Result<Words<'data>> {
        if !self.attr.has_field(abi::PERF_SAMPLE_CALLCHAIN) {
            return Ok(Words::new(&[], self.body.endian()));
        }
        let count = self.body.u64("length of the call chain")?;
        self.words(count, "call chain")
    }

    pub(super) fn raw(&mut self) -> Result<Option<&'data [u8]>> {
        if !self.attr.has_field(abi::PERF_SAMPLE_RAW) {
            return Ok(None);
        }
        let size = self.body.u32("size of the raw data")?;
        self.body.bytes(size.into(), "raw data").map(Some)
    }

    /// Reads the field with recorded branches; `None` if the event's samples don't have this field.
    pub(super) fn branches(&mut self) -> Result<Option<Branches<'data>>> {
        if !self.attr.has_field(abi::PERF_SAMPLE_BRANCH_STACK) {
            return Ok(None);
        }
        let count = self.body.u64("number of branches")?;
        let hw_idx =
            self.word_unless_zero(self.attr.branch_sample_type & abi::PERF_SAMPLE_BRANCH_HW_INDEX, "hw_idx")?;
        let words = self.words(count.saturating_mul(3), "branches")?;
        if self.attr.branch_sample_type & PERF_SAMPLE_BRANCH_COUNTERS != 0 {
            self.words(count, "branch counters")?;
        }
        Ok(Some(Branches { hw_idx, words }))
    }

    /// Reads a field with register values; `None` if the event's samples don't have this field. `bit` selects the
    /// field, and `mask` says which registers it holds.
    pub(super) fn registers(&mut self, bit: u64, mask: u64) -> Result<Option<Registers<'data>>> {
        if !self.attr.has_field(bit) {
            return Ok(None);
        }
        let abi = self.body.u64("register abi")?;
        // An ABI of 0 means that there are no registers: a kernel thread, for example, has no user registers.
        let mask = if abi == 0 { 0 } else { mask };
        let values = self.words(mask.count_ones().into(), "registers")?;
        Ok(Some(Registers { abi, mask, values }))
    }

    /// Reads the field with a copy of the user-space stack; `None` if the event's samples don't have this field.
    pub(super) fn user_stack(&mut self) -> Result<Option<StackCopy<'data>>> {
        if !self.attr.has_field(abi::PERF_SAMPLE_STACK_USER) {
            return Ok(None);
        }
        // The copy takes as many bytes as the recorder reserved. `dyn_size` says how many of them it filled.
        let room = self.body.u64("size of the stack copy")?;
        let bytes = self.body.bytes(room, "stack copy")?;
        // The kernel writes no `dyn_size` after an empty copy.
        if room == 0 {
            return Ok(Some(StackCopy { bytes, room }));
        }
        let copied = self.body.u64("dyn_size of the stack copy")?;
        let copied = usize::try_from(copied).unwrap_or(usize::MAX).min(bytes.len());
        Ok(Some(StackCopy { bytes: &bytes[..copied], room }))
    }

    fn aux(&mut self) -> Result<Option<&'data [u8]>> {
        if !self.attr.has_field(abi::PERF_SAMPLE_AUX) {
            return Ok(None);
        }
        let size = self.body.u64("size of the AUX data")?;
        self.body.bytes(size, "AUX data").map(Some)
    }
}
