//! Turns copies of user stacks (`perf record --call-graph dwarf`) into call chains, on x86, Arm, RISC-V and s390x. Also
//! finds callers that are missing in call chains by frame pointers.
//!
//! How a frame's caller is found depends on the code of the frame:
//!
//! | code | caller found by |
//! |---|---|
//! | of a file or the vDSO | its `.eh_frame` or `.debug_frame`; without either, the frame pointer |
//! | JIT code | the unwind information in the jitdump; without it, the frame pointer |
//! | of a 32-bit Arm file without call frame information | its exception index ([`exidx`]) |
//! | in a prologue or epilogue, or without a frame, as its instructions show | the link register ([`link_register`]) |
//! | just called, as the call instruction proves | the link register ([`direct_call`]) |
//!
//! The frame pointer is trusted only for frames whose code has nothing better. If JIT code was called by native code,
//! that caller is unwound by its call frame information again. Unwinding always ends, because the stack pointer must
//! grow and the depth is limited.
//!
//! This crate has its own unwinder because stacks pass through JIT code, whose unwind rules depend on the process and
//! the time. These rules come from the same code map as the names. Tests compare the results for files with the crate
//! framehop, which supports only files.

pub mod cfi;
pub mod direct_call;
pub mod exidx;
pub mod frame_pointer;
pub mod link_register;
pub mod registers;
#[cfg(test)]
mod tests;

use super::address_space::MappedPlace;
use super::code_map::{Hit, HitKind};
use super::dso::DsoId;
use super::symbolizer::{Located, Symbolizer};
use super::symbols::images::Images;
use crate::model::abi::EM_AARCH64;
use crate::model::lasting::{Lasting, RecentAnswers};
use crate::model::process::CpuMode;
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use cfi::{FrameTable, Lost, Scratch, UnwindRow};
use direct_call::{Function, Functions};
use exidx::{ExidxRow, ExidxTable};
use frame_pointer::Stage;
use registers::{Machine, Registers};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::OnceLock;

/// The maximum number of frames in perf's call chains (`PERF_MAX_STACK_DEPTH`).
pub const MAX_DEPTH: usize = 127;

/// The copy of a thread's user stack in a sample.
#[derive(Debug, Clone, Copy)]
pub struct UserStack<'s> {
    /// The process that was sampled.
    pub pid: Pid,
    /// When the sample was taken, on the recording's clock.
    pub time: Nanos,
    /// The thread's user registers when the sample was taken.
    pub registers: &'s Registers,
    /// The bytes of the stack from the stack pointer upwards, as far as they were copied (`dyn_size`).
    pub bytes: &'s [u8],
}

/// In which process, when and on which machine the code of a stack was running.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The process in which the code runs.
    pub pid: Pid,
    /// The time of the sample, on the recording's clock.
    pub time: Nanos,
    /// The instruction set of the process.
    pub machine: Machine,
}

/// The frames found on a stack, innermost first.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct UnwoundChain {
    /// The instruction pointer, then return addresses. For a function that was interrupted by a signal, there is the
    /// address of the interruption instead of a return address.
    pub frames: Vec<FrameAddr>,
    /// True if the chain doesn't reach the thread's first function: the copy of the stack was too short, some rule or
    /// value was unknown, or the maximum depth was reached.
    pub truncated: bool,
    /// True if unwinding needed memory beyond the end of the copy. A longer copy would give a longer chain.
    pub copy_ended: bool,
}

/// Unwinds the stacks in one recording. All threads share it.
#[derive(Debug)]
pub struct Unwinder<'a> {
    symbolizer: Symbolizer<'a>,
    images: &'a Images<'a>,
    /// The call frame information of each DSO, by the DSO's number. Like `indexes` and `functions`, it is read when it
    /// is first needed.
    tables: Vec<OnceLock<Option<FrameTable<'a>>>>,
    /// The exception index of each DSO.
    indexes: Vec<OnceLock<Option<ExidxTable<'a>>>>,
    /// The functions of each DSO, with their code, to find direct calls in them.
    functions: Vec<OnceLock<Option<Functions<'a>>>>,
    max_depth: usize,
}

/// Unwind rules that have been looked up already. Each thread has its own.
#[derive(Debug, Default)]
pub struct Cache {
    /// The rules for an address in a process.
    known: RecentAnswers<(Pid, FrameAddr), KnownRules>,
    /// The call frame information for an offset in a file; `None` if there is none.
    in_files: FxHashMap<(DsoId, u64), Option<Rc<UnwindRow>>>,
    /// The call frame information for an offset in JIT code. The key is the number of the code, the address where it
    /// starts, and the offset.
    in_code: FxHashMap<(u32, u64, u64), Option<Rc<UnwindRow>>>,
    /// Memory for reading call frame information.
    scratch: Scratch,
}

/// The rules for a frame and, once it has been asked for, whether the return address is in the link register.
#[derive(Debug)]
struct KnownRules {
    rules: Rules,
    /// True if call frame information or the code says that the return address is in the link register. `None` if
    /// nobody has asked yet.
    is_in_link: Option<bool>,
}

/// How to get from a frame to the frame of its caller.
#[derive(Debug, Clone)]
enum Rules {
    /// By call frame information.
    Row(Rc<UnwindRow>),
    /// By the function's entry in the exception index of 32-bit Arm.
    Exidx {
        row: Rc<ExidxRow>,
        /// True if it is certain that the return address is in the link register.
        by_link: bool,
    },
    /// By the frame pointer, if the stage is [`Stage::Framed`]. In other stages, the return address is near the top of
    /// the stack or in the link register.
    FramePointer(Stage),
    /// There is no way: the address is in no known mapping or JIT code.
    Nowhere,
}

impl<'a> Unwinder<'a> {
    /// Creates an unwinder that follows at most `max_depth` frames per stack. perf's limit is [`MAX_DEPTH`].
    pub fn new(symbolizer: Symbolizer<'a>, images: &'a Images<'a>, max_depth: usize) -> Self {
        let dsos = symbolizer.spaces.dsos();
        let tables = dsos.iter().map(|_| OnceLock::new()).collect();
        let indexes = dsos.iter().map(|_| OnceLock::new()).collect();
        let functions = dsos.iter().map(|_| OnceLock::new()).collect();
        Self { symbolizer, images, tables, indexes, functions, max_depth }
    }

    /// Unwinds one stack. Replaces the contents of `chain` by the result, which is empty if the instruction pointer or
    /// the stack pointer isn't known.
    pub fn unwind(&self, stack: &UserStack<'_>, cache: &mut Cache, chain: &mut UnwoundChain) {
        /// More bytes than most stacks have (`ulimit -s` is 8 MiB). An address further above the stack pointer doesn't
        /// point into the stack.
        const LARGEST_STACK: usize = 16 << 20;
        chain.frames.clear();
        // A chain counts as truncated wherever it ends, unless it ends at the outermost frame.
        (chain.truncated, chain.copy_ended) = (true, false);
        let (Some(pc), Some(base)) = (stack.registers.pc(), stack.registers.sp()) else { return };
        let machine = stack.registers.machine();
        let moment = Moment { pid: stack.pid, time: stack.time, machine };
        // True once `read` has failed at an address that may be in the stack, but isn't in the copy.
        let copy_ended = Cell::new(false);
        let read = |addr: u64| {
            let offset = usize::try_from(addr.checked_sub(base)?).ok()?;
            let word = stack.bytes.get(offset..).and_then(|rest| machine.read(rest));
            if word.is_none() && offset < LARGEST_STACK {
                copy_ended.set(true);
            }
            word
        };
        let mut registers = *stack.registers;
        let mut frame = FrameAddr::Ip(Addr(pc));
        let mut rules = self.find_rules(moment, frame, cache);
        loop {
            chain.frames.push(frame);
            if chain.frames.len() >= self.max_depth {
                return;
            }
            let is_signal = matches!(&rules, Rules::Row(row) if row.is_signal);
            if is_signal && let Some(last) = chain.frames.last_mut() {
                // `frame` is the signal trampoline, to whose first instruction the signal handler returns. No call
                // instruction is before it, so its address must not be lowered by one for lookups, as that of a return
                // address would be.
                *last = FrameAddr::Ip(frame.raw());
            }
            let caller = match rules {
                Rules::Nowhere => return,
                Rules::Row(row) => row.caller(&registers, &read),
                Rules::Exidx { row, by_link } => self.caller_by_exidx(&row, by_link, moment, &registers, frame, &read),
                Rules::FramePointer(stage) => {
                    self.caller_by_frame_pointer(stage, moment, &registers, frame, &read).map(Some).ok_or(Lost)
                }
            };
            let caller = match caller {
                Ok(Some(caller)) => caller,
                Ok(None) => {
                    chain.truncated = false;
                    return;
                }
                Err(Lost) => {
                    chain.copy_ended = copy_ended.get();
                    return;
                }
            };
            let Some(pc) = caller.pc() else { return };
            if pc == 0 {
                // Some code marks the outermost frame by a return address of 0, instead of by an unwind rule, so the
                // chain is complete.
                chain.truncated = false;
                return;
            }
            // Stacks grow down, so the caller's frame must be further up. Otherwise, the address isn't that of a
            // caller.
            if !is_further_up(&registers, &caller, frame) {
                return;
            }
            // A function that was interrupted by a signal continues at the very instruction at `pc`. It made no call,
            // so `pc` must not be lowered by one for lookups.
            frame = if is_signal { FrameAddr::Ip(Addr(pc)) } else { FrameAddr::Return(Addr(pc)) };
            rules = self.find_rules(moment, frame, cache);
            // If no code is known at the address, it isn't a return address and is left out of the chain.
            if matches!(rules, Rules::Nowhere) {
                return;
            }
            registers = caller;
        }
    }

    /// The caller of the running function, if it is missing in a call chain by frame pointers because the return
    /// address is in the link register. `None` if neither call frame information nor the code itself proves that, or if
    /// the address in the link register is in no known code.
    ///
    /// `pc` is the instruction pointer and `link` the value of the link register. `next` is the frame after `pc` in the
    /// chain; `None` if there is none.
    pub fn leaf_caller(
        &self,
        moment: Moment,
        pc: Addr,
        link: u64,
        next: Option<Addr>,
        cache: &mut Cache,
    ) -> Option<Addr> {
        let caller = Addr(moment.machine.code_address(link));
        if caller.0 == 0 {
            return None;
        }
        // If call frame information or the code says that the function has made no frame yet, its caller can't be in
        // the chain. If `next` has the caller's address all the same, it is from an earlier call in a recursion.
        let mut is_missing = self.is_in_link(moment, FrameAddr::Ip(pc), cache);
        // If nothing says that the function has no frame, it may have one, and the chain then contains its caller. So
        // the call instruction is only examined if `next` isn't that caller already.
        if !is_missing && next != Some(caller) {
            is_missing = self.was_called_from(moment, pc, link);
        }
        if !is_missing || matches!(self.find_rules(moment, FrameAddr::Return(caller), cache), Rules::Nowhere) {
            return None;
        }
        Some(caller)
    }

    /// True if call frame information or the code itself proves that the return address of a frame is in the link
    /// register.
    fn is_in_link(&self, moment: Moment, frame: FrameAddr, cache: &mut Cache) -> bool {
        let key = (moment.pid, frame);
        if let Some(known) = cache.known.get(&key, moment.time)
            && let Some(is_in_link) = known.answer.is_in_link
        {
            return is_in_link;
        }
        let rules = self.find_rules(moment, frame, cache);
        let is_in_link = self.returns_by_link(moment, &rules, frame);
        // Thanks to `find_rules`, the rules are in the cache now. The answer is kept with them.
        if let Some(known) = cache.known.get_mut(&key, moment.time) {
            known.answer.is_in_link = Some(is_in_link);
        }
        is_in_link
    }

    /// True if the link register holds the address after a call instruction whose target is the running function, which
    /// contains `pc`. Both must be JIT code, or both in the same file.
    fn was_called_from(&self, moment: Moment, pc: Addr, link: u64) -> bool {
        let find_jit_code = |addr: u64| self.find_jit_function(moment, Addr(addr));
        if direct_call::proves_caller(moment.machine, pc.0, link, &find_jit_code) {
            return true;
        }
        let return_addr = moment.machine.code_address(link);
        let call_addr = Addr(return_addr.wrapping_sub(1));
        let Some((dso, running)) = self.find_in_file(moment, pc) else { return false };
        let Some((caller_dso, call)) = self.find_in_file(moment, call_addr) else { return false };
        if caller_dso != dso {
            return false;
        }
        let Some(functions) = self.functions(dso) else { return false };
        // The value of the link register as a link-time address: `call` plus one, with the bits that `code_address` has
        // cleared, such as Arm's Thumb bit.
        let link = call.wrapping_add(1) | link ^ return_addr;
        direct_call::proves_caller(moment.machine, running, link, &|addr| functions.find(addr))
    }

    /// The JIT code at an address, as a function of [`direct_call`]. `None` if there is none, or its bytes are unknown.
    fn find_jit_function(&self, moment: Moment, addr: Addr) -> Option<Function<'a>> {
        let hit = self.locate(moment, addr).answer.code?;
        let code = self.symbolizer.codes.code(hit.code).bytes?;
        Some(Function { start: addr.0.checked_sub(hit.offset)?, is_thumb: false, code })
    }

    /// The file mapped at an address, and the link-time address in that file. `None` if there is none.
    fn find_in_file(&self, moment: Moment, addr: Addr) -> Option<(DsoId, u64)> {
        let place = self.find_mapping(moment, addr)?;
        Some((place.dso, self.images.get(place.dso)?.vaddr(place.offset)?))
    }

    /// The functions of a file, which are read when they are first needed. `None` if it isn't found or has none.
    fn functions(&self, dso: DsoId) -> Option<&Functions<'a>> {
        let slot = self.functions.get(dso.0 as usize)?;
        slot.get_or_init(|| self.images.get(dso).and_then(Functions::from_image)).as_ref()
    }

    /// True if these rules, or the code of the frame itself, say that the return address is in the link register.
    fn returns_by_link(&self, moment: Moment, rules: &Rules, frame: FrameAddr) -> bool {
        match rules {
            Rules::Row(row) if row.returns_by_link(moment.machine) => true,
            // Within a prologue, the rules say that the return address has been saved. But `x29` is still the caller's,
            // so a chain by frame pointers lacks the caller, whose address is also still in the link register.
            Rules::Row(_) if moment.machine == Machine::Aarch64 => {
                let Some(place) = self.find_mapping(moment, frame.raw()) else { return false };
                self.file_stage(place, link_register::stage_if_half_framed) != Stage::Framed
            }
            // This was determined together with the rules, in `rules_without_row`.
            Rules::Exidx { by_link, .. } => *by_link,
            Rules::Row(_) | Rules::Nowhere => false,
            Rules::FramePointer(stage) => matches!(stage, Stage::InLink { .. }),
        }
    }

    /// How to get from a frame to the frame of its caller. JIT code comes before the file that is mapped there, and
    /// call frame information before everything else. Answers are kept in `cache` for as long as they hold.
    fn find_rules(&self, moment: Moment, frame: FrameAddr, cache: &mut Cache) -> Rules {
        let key = (moment.pid, frame);
        if let Some(known) = cache.known.get(&key, moment.time) {
            return known.answer.rules.clone();
        }
        let (addr, machine) = (frame.for_lookup(), moment.machine);
        let Lasting { answer: Located { code, mapping, .. }, holds } = self.locate(moment, addr);
        let rules = if let Some(hit) = code {
            match self.row_for_code(&hit, mapping, frame, machine, cache) {
                Some(row) => Rules::Row(row),
                None => Rules::FramePointer(self.jit_stage(&hit, frame, machine)),
            }
        } else if let Some(place) = mapping {
            match self.file_row(place, machine, cache) {
                Some(row) => Rules::Row(row),
                None => self.rules_without_row(place, frame, machine),
            }
        } else {
            Rules::Nowhere
        };
        let known = KnownRules { rules: rules.clone(), is_in_link: None };
        cache.known.insert(key, Lasting { answer: known, holds });
        rules
    }

    /// The call frame information for JIT code at an address. `place` is what is mapped there. `None` if there is none.
    fn row_for_code(
        &self,
        hit: &Hit,
        place: Option<MappedPlace>,
        frame: FrameAddr,
        machine: Machine,
        cache: &mut Cache,
    ) -> Option<Rc<UnwindRow>> {
        let row = self.code_row(hit, frame, machine, cache);
        if row.is_some() || hit.kind != HitKind::Untimed {
            return row;
        }
        // Untimed code that wins over a file is part of that file, such as a function of an executable without symbols
        // that a perf map names.
        self.file_row(place?, machine, cache)
    }

    /// The rules for code in a file, if the file's call frame information doesn't cover the address. Only the running
    /// function can be without a complete frame; its callers are all at a call.
    fn rules_without_row(&self, place: MappedPlace, frame: FrameAddr, machine: Machine) -> Rules {
        let is_running = matches!(frame, FrameAddr::Ip(_));
        match machine {
            Machine::Aarch64 if is_running => Rules::FramePointer(self.file_stage(place, link_register::stage_in_file)),
            Machine::Arm => match self.exidx_row(place) {
                Some((row, addr)) => {
                    let by_link = is_running && row.returns_by_link(addr);
                    Rules::Exidx { row: Rc::new(row), by_link }
                }
                None => Rules::FramePointer(Stage::Framed),
            },
            _ => Rules::FramePointer(Stage::Framed),
        }
    }

    /// The entry in a file's exception index for the function at `place`, and the link-time address of `place`.
    fn exidx_row(&self, place: MappedPlace) -> Option<(ExidxRow, u64)> {
        let image = self.images.get(place.dso)?;
        let table = self.indexes.get(place.dso.0 as usize)?;
        let table = table.get_or_init(|| ExidxTable::from_image(image)).as_ref()?;
        let addr = image.vaddr(place.offset)?;
        Some((table.row(addr)?, addr))
    }

    /// Finds the caller by frame pointer. If a direct call proves that the running function's return address is in the
    /// link register, but the frame record has another return address, the record belongs to the caller. The link
    /// register is then used instead.
    fn caller_by_frame_pointer(
        &self,
        stage: Stage,
        moment: Moment,
        registers: &Registers,
        frame: FrameAddr,
        read: &impl Fn(u64) -> Option<u64>,
    ) -> Option<Registers> {
        let caller = frame_pointer::caller(registers, stage, read);
        if let (FrameAddr::Ip(pc), Some(link)) = (frame, registers.link())
            && caller.and_then(|caller| caller.pc()) != Some(moment.machine.code_address(link))
            && self.was_called_from(moment, pc, link)
        {
            // `None`: how far the function has lowered the stack pointer isn't known.
            return frame_pointer::caller(registers, Stage::in_link(None), read);
        }
        caller
    }

    /// Finds the caller by the exception index, whose entries are valid only at calls. The running function may not
    /// have saved registers yet, or may have restored them. For the running function, tries first the entry and then
    /// the link register, and accepts a return address only if it follows a call instruction. `by_link` is true if it
    /// is certain that the return address is in the link register.
    fn caller_by_exidx(
        &self,
        row: &ExidxRow,
        by_link: bool,
        moment: Moment,
        registers: &Registers,
        frame: FrameAddr,
        read: &impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<Registers>, Lost> {
        // The frame is at a call, where its entry is valid.
        if matches!(frame, FrameAddr::Return(_)) {
            return row.caller(registers, read);
        }
        if !by_link
            && let Ok(Some(caller)) = row.caller(registers, read)
            && self.returns_after_call(moment, &caller)
        {
            return Ok(Some(caller));
        }
        // Before the prologue and after the epilogue, the stack pointer is the caller's: it is lowered by 0 bytes.
        let caller = frame_pointer::caller(registers, Stage::in_link(Some(0)), read).ok_or(Lost)?;
        // If it isn't certain that the link register has the return address, an address in the running function itself
        // isn't accepted: a call that the function made may have left it there.
        if (by_link || !self.returns_into(moment, &caller, row)) && self.returns_after_call(moment, &caller) {
            return Ok(Some(caller));
        }
        Err(Lost)
    }

    /// True if the return address is in the function that `row` describes. The return address is the instruction
    /// pointer in `caller`, the registers that the caller would have.
    fn returns_into(&self, moment: Moment, caller: &Registers, row: &ExidxRow) -> bool {
        let Some(pc) = caller.pc() else { return false };
        let Some(place) = self.find_mapping(moment, FrameAddr::Return(Addr(pc)).for_lookup()) else { return false };
        let Some((function, _)) = self.exidx_row(place) else { return false };
        function == *row
    }

    /// True if the return address follows a call instruction in 32-bit Arm code. The return address is the instruction
    /// pointer in `caller`, the registers that the caller would have.
    fn returns_after_call(&self, moment: Moment, caller: &Registers) -> bool {
        /// No call instruction is longer than this many bytes.
        const LONGEST_CALL: u64 = 4;
        let code_before_return = || {
            let place = self.find_mapping(moment, Addr(caller.pc()?.wrapping_sub(1)))?;
            let image = self.images.get(place.dso)?;
            // The return address as a link-time address. `place` is one byte before it.
            let return_addr = image.vaddr(place.offset)?.checked_add(1)?;
            image.loaded(return_addr.checked_sub(LONGEST_CALL)?..return_addr)
        };
        code_before_return().is_some_and(exidx::ends_in_call)
    }

    /// How much of its frame the AArch64 code at `place` in a file has set up. `find_stage` decides, given the code
    /// around `place` and the offset of `place` in it.
    fn file_stage(&self, place: MappedPlace, find_stage: fn(&[u8], u64) -> Stage) -> Stage {
        /// How many bytes of code before `place` are given to `find_stage`, if the file has them.
        const BEFORE: u64 = 64;
        /// How many bytes of code after `place` are given to `find_stage`.
        const AFTER: u64 = 1024;
        let Some(image) = self.images.get(place.dso) else { return Stage::Framed };
        let Some(addr) = image.vaddr(place.offset) else { return Stage::Framed };
        if image.machine() != EM_AARCH64 {
            return Stage::Framed;
        }
        let mut start = addr.saturating_sub(BEFORE);
        // `loaded` returns `None` if the file lacks the first byte of the range. Then the file's code begins less than
        // 64 bytes before `place`, and `find_stage` only gets the bytes from `place` on, as if the code began there.
        if image.loaded(start..addr).is_none() {
            start = addr;
        }
        // If the code ends less than 1024 bytes after `place`, `loaded` returns the bytes up to its end.
        match image.loaded(start..addr.saturating_add(AFTER)) {
            Some(code) => find_stage(code, addr - start),
            None => Stage::Framed,
        }
    }

    fn locate(&self, moment: Moment, addr: Addr) -> Lasting<Located> {
        self.symbolizer.locate_address(moment.pid, addr, Some(moment.time), CpuMode::User)
    }

    fn find_mapping(&self, moment: Moment, addr: Addr) -> Option<MappedPlace> {
        self.symbolizer.spaces.lookup(moment.pid, addr, moment.time, CpuMode::User)
    }

    /// The call frame information for an address in a file, which is read once per address. `None` if there is none.
    fn file_row(&self, place: MappedPlace, machine: Machine, cache: &mut Cache) -> Option<Rc<UnwindRow>> {
        let Cache { in_files, scratch, .. } = cache;
        let row = in_files.entry((place.dso, place.offset)).or_insert_with(|| {
            let image = self.images.get(place.dso)?;
            let slot = self.tables.get(place.dso.0 as usize)?;
            let table = slot.get_or_init(|| FrameTable::from_image(image)).as_ref()?;
            if table.machine() != machine {
                return None;
            }
            let link_time_addr = image.vaddr(place.offset)?;
            table.row(link_time_addr, scratch).map(Rc::new)
        });
        row.clone()
    }

    /// The call frame information that a jitdump has for an address in JIT code. `None` if there is none.
    fn code_row(&self, hit: &Hit, frame: FrameAddr, machine: Machine, cache: &mut Cache) -> Option<Rc<UnwindRow>> {
        let code = self.symbolizer.codes.code(hit.code);
        let unwind = code.unwind.as_ref()?;
        let addr = frame.for_lookup().0;
        let start = addr.checked_sub(hit.offset)?;
        let Cache { in_code, scratch, .. } = cache;
        // Code can be moved, and pointers in its call frame information are relative to it. So the start is in the key.
        let row = in_code.entry((hit.code.0, start, hit.offset)).or_insert_with(|| {
            let table = FrameTable::from_code(machine, unwind.eh_frame, start, code.size)?;
            table.row(addr, scratch).map(Rc::new)
        });
        row.clone()
    }

    /// How much of its frame JIT code has set up. Only the running function can be in its prologue or epilogue. Its
    /// callers are all at a call and have their frames.
    fn jit_stage(&self, hit: &Hit, frame: FrameAddr, machine: Machine) -> Stage {
        match (frame, machine, self.symbolizer.codes.code(hit.code).bytes) {
            (FrameAddr::Ip(_), Machine::X86_64, Some(bytes)) => frame_pointer::stage_x86_64(bytes, hit.offset),
            (FrameAddr::Ip(_), Machine::Aarch64, Some(bytes)) => link_register::stage_aarch64(bytes, hit.offset),
            _ => Stage::Framed,
        }
    }
}

/// True if the caller's frame is further up the stack than the callee's, as it must be because stacks grow down. In the
/// first step, the stack pointer may stay the same: a function on AArch64 that calls nothing may have no frame.
fn is_further_up(callee: &Registers, caller: &Registers, frame: FrameAddr) -> bool {
    match (callee.sp(), caller.sp()) {
        (Some(callee), Some(caller)) => caller > callee || (caller == callee && matches!(frame, FrameAddr::Ip(_))),
        _ => false,
    }
}
