//! SAMPLE records: which fields one has, and in which order, is `sample_type`'s matter.
//!
//! The order is that of `perf_output_sample` in kernel/events/core.c, also given in include/uapi/linux/perf_event.h
//! above `PERF_RECORD_SAMPLE`. Nothing is copied: lists are read from the record when asked for.

use super::attr::EventAttr;
use super::record::cpumode;
use super::walk::RawRecord;
use super::words::Words;
use crate::bytes::cursor::Cursor;
use crate::error::Result;
use crate::model::process::CpuMode;
use crate::model::{Addr, FrameAddr, Nanos, Pid, Tid};
use linux_perf_event_reader::constants as abi;

/// `PERF_FORMAT_LOST`: a count of lost samples behind each value (since Linux 6.0).
const PERF_FORMAT_LOST: u64 = 1 << 4;
/// `PERF_SAMPLE_BRANCH_COUNTERS`: a word of counters for each branch (since Linux 6.8).
const PERF_SAMPLE_BRANCH_COUNTERS: u64 = 1 << 19;

/// The fields of a sample that come first, a word each.
const FIRST_WORDS: u64 = abi::PERF_SAMPLE_IDENTIFIER
    | abi::PERF_SAMPLE_IP
    | abi::PERF_SAMPLE_TID
    | abi::PERF_SAMPLE_TIME
    | abi::PERF_SAMPLE_ADDR
    | abi::PERF_SAMPLE_ID
    | abi::PERF_SAMPLE_STREAM_ID
    | abi::PERF_SAMPLE_CPU
    | abi::PERF_SAMPLE_PERIOD;

/// The fields of a sample up to its call chain.
const UP_TO_CALLCHAIN: u64 = FIRST_WORDS | abi::PERF_SAMPLE_READ | abi::PERF_SAMPLE_CALLCHAIN;

/// A sample. A field is `None` (a list is empty) if the event does not have it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample<'data> {
    /// The event: index into [`super::Recording::events`].
    pub event: usize,
    /// The mode.
    pub cpumode: CpuMode,
    /// The event's id, from IDENTIFIER or ID.
    pub id: Option<u64>,
    /// The instruction pointer.
    pub ip: Option<Addr>,
    /// Process and thread.
    pub pid_tid: Option<(Pid, Tid)>,
    /// When.
    pub time: Option<Nanos>,
    /// The data address, or what else the event gives there.
    pub addr: Option<Addr>,
    /// The id of the event before inheritance.
    pub stream_id: Option<u64>,
    /// The processor.
    pub cpu: Option<u32>,
    /// The weight of the sample.
    pub period: Option<u64>,
    /// Counter values.
    pub read: Option<ReadValues<'data>>,
    /// Addresses from the leaf outwards, with `PERF_CONTEXT_*` marks; see [`Sample::frames`].
    pub callchain: Words<'data>,
    /// The number by which a later record completes the call chain ([`super::DeferredChains`]).
    pub cookie: Option<u64>,
    /// A tracepoint's fields, or what else the event gives there.
    pub raw: Option<&'data [u8]>,
    /// The last branches, newest first.
    pub branches: Option<Branches<'data>>,
    /// Registers of user space.
    pub user_regs: Option<Registers<'data>>,
    /// A copy of the top of the user stack.
    pub user_stack: Option<StackCopy<'data>>,
    /// WEIGHT, or the three parts of WEIGHT_STRUCT as one word.
    pub weight: Option<u64>,
    /// The source of the data.
    pub data_src: Option<u64>,
    /// Transactional memory.
    pub transaction: Option<u64>,
    /// Registers at the interrupt.
    pub intr_regs: Option<Registers<'data>>,
    /// The physical data address.
    pub phys_addr: Option<u64>,
    /// The control group.
    pub cgroup: Option<u64>,
    /// The page size of the data address.
    pub data_page_size: Option<u64>,
    /// The page size of the instruction address.
    pub code_page_size: Option<u64>,
    /// Trace data up to the sample.
    pub aux: Option<&'data [u8]>,
}

/// Registers of a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers<'data> {
    /// `PERF_SAMPLE_REGS_ABI_*`: 0 none, 1 32-bit, 2 64-bit.
    pub abi: u64,
    /// The registers: bit for each `PERF_REG_*` number.
    pub mask: u64,
    /// Their values, lowest number first.
    pub values: Words<'data>,
}

/// A copy of the top of the user stack, starting at the stack pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackCopy<'data> {
    /// The copied bytes; may be followed by bytes that could not be read and are not here.
    pub bytes: &'data [u8],
    /// The number of bytes that the recorder had set aside.
    pub room: u64,
}

/// The values of READ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadValues<'data> {
    /// Nanoseconds for which the event was enabled.
    pub time_enabled: Option<u64>,
    /// Nanoseconds for which it really counted.
    pub time_running: Option<u64>,
    /// `None` in a group, whose values are in `group`.
    single: Option<ReadValue>,
    group: Words<'data>,
    has_id: bool,
    has_lost: bool,
}

/// One counter of READ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadValue {
    /// Its value.
    pub value: u64,
    /// The event's id.
    pub id: Option<u64>,
    /// Samples that were lost.
    pub lost: Option<u64>,
}

impl ReadValues<'_> {
    /// The event's own value, or those of its whole group, leader first.
    pub fn values(self) -> Vec<ReadValue> {
        let mut words = self.group.iter();
        let extra = |has: bool, words: &mut dyn Iterator<Item = u64>| if has { words.next() } else { None };
        let next = || {
            let value = words.next()?;
            let id = extra(self.has_id, &mut words);
            Some(ReadValue { value, id, lost: extra(self.has_lost, &mut words) })
        };
        self.single.into_iter().chain(std::iter::from_fn(next)).collect()
    }
}

/// The branch stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branches<'data> {
    /// Position in the hardware's ring, if recorded.
    pub hw_idx: Option<u64>,
    words: Words<'data>,
}

/// A taken branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// The branch instruction.
    pub from: Addr,
    /// The target.
    pub to: Addr,
    /// Bits of `struct perf_branch_entry`: mispredicted, cycles, type, …
    pub flags: u64,
}

impl<'data> Branches<'data> {
    /// Branches of three words each.
    pub fn new(words: Words<'data>) -> Self {
        Self { hw_idx: None, words }
    }

    /// Newest first.
    pub fn iter(self) -> impl Iterator<Item = Branch> + use<'data> {
        let mut words = self.words.iter();
        std::iter::from_fn(move || {
            let (from, to) = (Addr(words.next()?), Addr(words.next()?));
            Some(Branch { from, to, flags: words.next()? })
        })
    }
}

impl<'data> Sample<'data> {
    /// Parses a sample of the event with this attr. `Err` names the field that it is too short for.
    pub(super) fn parse(raw: &RawRecord<'data>, event: usize, attr: &EventAttr) -> Result<Self> {
        let mut fields = Fields { body: raw.body(), attr };
        let identifier = fields.word(abi::PERF_SAMPLE_IDENTIFIER, "identifier")?;
        let ip = fields.word(abi::PERF_SAMPLE_IP, "ip")?.map(Addr);
        let pid_tid = fields.halves(abi::PERF_SAMPLE_TID, "pid and tid")?;
        let time = fields.word(abi::PERF_SAMPLE_TIME, "time")?.map(Nanos);
        let addr = fields.word(abi::PERF_SAMPLE_ADDR, "addr")?.map(Addr);
        let id = fields.word(abi::PERF_SAMPLE_ID, "id")?;
        // A struct expression evaluates its fields as written: this is the kernel's order.
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
        sample.take_cookie();
        // Most samples have nothing behind their call chain.
        if attr.sample_type & !UP_TO_CALLCHAIN != 0 {
            sample.read_rest(&mut fields)?;
        }
        Ok(sample)
    }

    /// Reads what follows the call chain.
    fn read_rest(&mut self, fields: &mut Fields<'data, '_>) -> Result<()> {
        self.raw = fields.raw()?;
        self.branches = fields.branches()?;
        self.user_regs = fields.registers(abi::PERF_SAMPLE_REGS_USER, fields.attr.sample_regs_user)?;
        self.user_stack = fields.user_stack()?;
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

    /// Takes what is no frame off the call chain, if the user's part is deferred.
    #[inline]
    fn take_cookie(&mut self) {
        let Some(before) = self.callchain.len().checked_sub(2) else { return };
        if self.callchain.get(before) == Some(USER_DEFERRED) {
            self.cookie = self.callchain.get(before + 1);
            self.callchain = self.callchain.first(before);
        }
    }

    /// The frames that the recorder itself found, leaf first, each with whose code it is. Context marks are taken
    /// out; the first address of each context is where it was interrupted, the others are return addresses.
    /// Without a call chain, the ip alone.
    #[inline]
    pub fn frames(&self) -> impl Iterator<Item = (CpuMode, FrameAddr)> + use<'data> {
        let alone = if self.callchain.iter().all(is_context) { self.ip } else { None };
        let alone = alone.map(|ip| (self.cpumode, FrameAddr::Ip(ip)));
        alone.into_iter().chain(self.chain().map(|(_, mode, frame)| (mode, frame)))
    }

    /// The frames of the call chain, without the sampled address; empty if there is no chain.
    #[inline]
    pub fn chain_frames(&self) -> impl Iterator<Item = (CpuMode, FrameAddr)> + use<'data> {
        self.chain().map(|(_, mode, frame)| (mode, frame))
    }

    /// The number of frames of the call chain the kernel counted: all words but its own marks. A value found on a stack
    /// is counted even if it cannot be an address.
    pub fn chain_len(&self) -> usize {
        self.callchain.iter().filter(|&word| !is_mark(word)).count()
    }

    /// The frames of the call chain, each with its index in the list, which has context marks, too.
    #[inline]
    pub(super) fn chain(&self) -> ChainFrames<'data> {
        ChainFrames { words: self.callchain, index: 0, context: self.context() }
    }

    /// The context of the first word of the call chain.
    #[inline]
    pub fn context(&self) -> ChainContext {
        ChainContext { mode: self.cpumode, is_first: true }
    }
}

/// The context that words of a call chain give the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainContext {
    mode: CpuMode,
    /// True if the next frame is the first of its context.
    is_first: bool,
}

impl ChainContext {
    /// That of no word.
    pub const NONE: Self = Self { mode: CpuMode::Unknown, is_first: true };

    /// Goes over a word: the frame that it is, and whose code that is in; `None` for a mark.
    #[inline]
    pub fn step(&mut self, word: u64) -> Option<(CpuMode, FrameAddr)> {
        if is_context(word) {
            *self = Self { mode: context(word).unwrap_or(self.mode), is_first: true };
            return None;
        }
        let addr = Addr(word);
        let is_first = std::mem::replace(&mut self.is_first, false);
        Some((self.mode, if is_first { FrameAddr::Ip(addr) } else { FrameAddr::Return(addr) }))
    }
}

/// Goes through a call chain: half of all the time that a recording takes is spent here.
pub(super) struct ChainFrames<'data> {
    words: Words<'data>,
    /// The index of the next word.
    index: usize,
    context: ChainContext,
}

impl Iterator for ChainFrames<'_> {
    type Item = (usize, CpuMode, FrameAddr);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let index = self.index;
            let word = self.words.get(index)?;
            self.index += 1;
            if let Some((mode, frame)) = self.context.step(word) {
                return Some((index, mode, frame));
            }
        }
    }
}

/// `PERF_CONTEXT_USER_DEFERRED` (since Linux 6.18): the user's part is reported later, under the number that follows.
pub const USER_DEFERRED: u64 = -640i64 as u64;

/// True if a word of a call chain is in the range of the marks, above `PERF_CONTEXT_MAX`: no address is.
#[inline]
pub fn is_context(word: u64) -> bool {
    word >= abi::PERF_CONTEXT_MAX
}

/// True if a word of a call chain is a mark that the kernel makes.
#[inline]
pub(super) fn is_mark(word: u64) -> bool {
    context(word).is_some() || word == USER_DEFERRED
}

#[inline]
fn context(mark: u64) -> Option<CpuMode> {
    match mark {
        abi::PERF_CONTEXT_HV => Some(CpuMode::Hypervisor),
        abi::PERF_CONTEXT_KERNEL => Some(CpuMode::Kernel),
        abi::PERF_CONTEXT_USER => Some(CpuMode::User),
        abi::PERF_CONTEXT_GUEST_KERNEL => Some(CpuMode::GuestKernel),
        abi::PERF_CONTEXT_GUEST | abi::PERF_CONTEXT_GUEST_USER => Some(CpuMode::GuestUser),
        _ => None,
    }
}

/// The body of a sample, read field by field.
pub(super) struct Fields<'data, 'attr> {
    pub(super) body: Cursor<'data>,
    pub(super) attr: &'attr EventAttr,
}

impl<'data> Fields<'data, '_> {
    #[inline]
    pub(super) fn word(&mut self, bit: u64, field: &str) -> Result<Option<u64>> {
        self.optional(self.attr.sample_type & bit, field)
    }

    /// Reads over what precedes the call chain.
    pub(super) fn skip_to_chain(&mut self) -> Result<()> {
        for _ in 0..(self.attr.sample_type & FIRST_WORDS).count_ones() {
            self.body.u64("a field before the call chain")?;
        }
        self.read()?;
        Ok(())
    }

    #[inline]
    fn halves(&mut self, bit: u64, field: &str) -> Result<Option<(u32, u32)>> {
        if !self.attr.samples(bit) {
            return Ok(None);
        }
        Ok(Some((self.body.u32(field)?, self.body.u32(field)?)))
    }

    #[inline]
    fn words(&mut self, count: u64, field: &str) -> Result<Words<'data>> {
        let bytes = self.body.bytes(count.saturating_mul(8), field)?;
        Ok(Words::new(bytes, self.body.endian()))
    }

    /// `struct read_format`
    pub(super) fn read(&mut self) -> Result<Option<ReadValues<'data>>> {
        if !self.attr.samples(abi::PERF_SAMPLE_READ) {
            return Ok(None);
        }
        let format = self.attr.read_format;
        let (has_id, has_lost) = (format & abi::PERF_FORMAT_ID != 0, format & PERF_FORMAT_LOST != 0);
        let is_group = format & abi::PERF_FORMAT_GROUP != 0;
        // The first word is the number of values in a group, else the value itself.
        let first = self.body.u64("read value")?;
        let time_enabled = self.optional(format & abi::PERF_FORMAT_TOTAL_TIME_ENABLED, "time_enabled")?;
        let time_running = self.optional(format & abi::PERF_FORMAT_TOTAL_TIME_RUNNING, "time_running")?;
        let (mut single, mut group) = (None, self.words(0, "read values")?);
        if is_group {
            let words = 1 + u64::from(has_id) + u64::from(has_lost);
            group = self.words(first.saturating_mul(words), "read values")?;
        } else {
            let id = self.optional(format & abi::PERF_FORMAT_ID, "read id")?;
            single = Some(ReadValue { value: first, id, lost: self.optional(format & PERF_FORMAT_LOST, "read lost")? });
        }
        Ok(Some(ReadValues { time_enabled, time_running, single, group, has_id, has_lost }))
    }

    /// A word that is there if the bit is set.
    #[inline]
    fn optional(&mut self, bit: u64, field: &str) -> Result<Option<u64>> {
        if bit == 0 { Ok(None) } else { self.body.u64(field).map(Some) }
    }

    pub(super) fn callchain(&mut self) -> Result<Words<'data>> {
        if !self.attr.samples(abi::PERF_SAMPLE_CALLCHAIN) {
            return Ok(Words::new(&[], self.body.endian()));
        }
        let count = self.body.u64("length of the call chain")?;
        self.words(count, "call chain")
    }

    pub(super) fn raw(&mut self) -> Result<Option<&'data [u8]>> {
        if !self.attr.samples(abi::PERF_SAMPLE_RAW) {
            return Ok(None);
        }
        let size = self.body.u32("size of the raw data")?;
        self.body.bytes(size.into(), "raw data").map(Some)
    }

    pub(super) fn branches(&mut self) -> Result<Option<Branches<'data>>> {
        if !self.attr.samples(abi::PERF_SAMPLE_BRANCH_STACK) {
            return Ok(None);
        }
        let count = self.body.u64("number of branches")?;
        let hw_idx = self.optional(self.attr.branch_sample_type & abi::PERF_SAMPLE_BRANCH_HW_INDEX, "hw_idx")?;
        let words = self.words(count.saturating_mul(3), "branches")?;
        if self.attr.branch_sample_type & PERF_SAMPLE_BRANCH_COUNTERS != 0 {
            self.words(count, "branch counters")?;
        }
        Ok(Some(Branches { hw_idx, words }))
    }

    pub(super) fn registers(&mut self, bit: u64, mask: u64) -> Result<Option<Registers<'data>>> {
        if !self.attr.samples(bit) {
            return Ok(None);
        }
        let abi = self.body.u64("register abi")?;
        // A kernel thread has none.
        let mask = if abi == 0 { 0 } else { mask };
        let values = self.words(mask.count_ones().into(), "registers")?;
        Ok(Some(Registers { abi, mask, values }))
    }

    pub(super) fn user_stack(&mut self) -> Result<Option<StackCopy<'data>>> {
        if !self.attr.samples(abi::PERF_SAMPLE_STACK_USER) {
            return Ok(None);
        }
        let room = self.body.u64("size of the stack copy")?;
        let bytes = self.body.bytes(room, "stack copy")?;
        if room == 0 {
            return Ok(Some(StackCopy { bytes, room }));
        }
        let copied = self.body.u64("dyn_size of the stack copy")?;
        let copied = usize::try_from(copied).unwrap_or(usize::MAX).min(bytes.len());
        Ok(Some(StackCopy { bytes: &bytes[..copied], room }))
    }

    fn aux(&mut self) -> Result<Option<&'data [u8]>> {
        if !self.attr.samples(abi::PERF_SAMPLE_AUX) {
            return Ok(None);
        }
        let size = self.body.u64("size of the AUX data")?;
        self.body.bytes(size, "AUX data").map(Some)
    }
}
