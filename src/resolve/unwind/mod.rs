//! User stack copies to call chains (`perf record --call-graph dwarf`), for x86, Arm, RISC-V and s390x; and callers that
//! call chains by frame pointers miss.
//!
//! Each frame is left by what is known of its code:
//!
//! | code | by |
//! |---|---|
//! | of a file, or the vdso | its `.eh_frame` or `.debug_frame`; without either, the frame pointer |
//! | from a JIT compiler | the dump's unwinding information; without it, the frame pointer |
//! | of a file of 32-bit Arm without either | its exception index ([`exidx`]) |
//! | without a frame yet or again, where the instructions show it | the link register ([`link_register`]) |
//! | just called, where the call itself proves it | the link register ([`direct_call`]) |
//!
//! A frame pointer is believed only for the one frame whose code has nothing better: native code above JIT code is
//! again unwound by its call frame information. Unwinding always ends: the stack pointer must grow, and there is a
//! greatest depth.
//!
//! The unwinder is ours because stacks go through JIT code whose rules come and go with time and process, from the same
//! code map that names them; the crate framehop, which knows modules only, judges the images in the tests.

pub mod cfi;
pub mod direct_call;
pub mod exidx;
pub mod frame_pointer;
pub mod link_register;
pub mod registers;
#[cfg(test)]
mod tests;

use super::address_space::{AddressSpaces, Place};
use super::code_map::{CodeMap, Hit, How};
use super::dso::{DsoId, DsoKind};
use super::symbols::images::Images;
use crate::model::abi::EM_AARCH64;
use crate::model::lasting::{ALWAYS, Lasting, both};
use crate::model::process::CpuMode;
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use cfi::{FrameTable, Lost, Scratch, UnwindRow};
use direct_call::{Function, Functions};
use exidx::{ExidxRow, ExidxTable};
use frame_pointer::Stage;
use registers::{Machine, Registers};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::OnceLock;

/// perf's own greatest depth (`PERF_MAX_STACK_DEPTH`).
pub const MAX_DEPTH: usize = 127;

/// The copy of a thread's stack in a sample.
#[derive(Debug, Clone, Copy)]
pub struct UserStack<'s> {
    /// The process.
    pub pid: Pid,
    /// When.
    pub time: Nanos,
    /// Its registers.
    pub registers: &'s Registers,
    /// The stack from the stack pointer on, as far as it was copied (`dyn_size`).
    pub bytes: &'s [u8],
}

/// The time and process of the code that is requested.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The process.
    pub pid: Pid,
    /// When.
    pub time: Nanos,
    /// The machine of its code.
    pub machine: Machine,
}

/// The frames of a stack, innermost first.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct UnwoundChain {
    /// Instruction pointer, then return addresses; an interrupted function's address above a signal handler.
    pub frames: Vec<FrameAddr>,
    /// True if it ends before the thread's first function: the copy was too short, something was not known, or it is
    /// too deep.
    pub truncated: bool,
    /// True if it ends where the copy does: a longer one would have held more.
    pub copy_ended: bool,
}

/// Unwinds stacks of one recording; shared by all threads.
#[derive(Debug)]
pub struct Unwinder<'a> {
    spaces: &'a AddressSpaces,
    codes: &'a CodeMap<'a>,
    images: &'a Images<'a>,
    tables: Vec<OnceLock<Option<FrameTable<'a>>>>,
    indexes: Vec<OnceLock<Option<ExidxTable<'a>>>>,
    functions: Vec<OnceLock<Option<Functions<'a>>>>,
    max_depth: usize,
}

/// The rules that one thread has looked up.
#[derive(Debug, Default)]
pub struct Cache {
    /// The rule for an address of a process, and how long it stays so.
    known: FxHashMap<(Pid, FrameAddr), (Rules, Range<Nanos>)>,
    /// True if the function at an address of a process returns by the link register, and how long that stays so.
    in_link: FxHashMap<(Pid, FrameAddr), (bool, Range<Nanos>)>,
    in_files: FxHashMap<(DsoId, u64), Option<Rc<UnwindRow>>>,
    in_code: FxHashMap<(u32, u64, u64), Option<Rc<UnwindRow>>>,
    scratch: Scratch,
}

/// The rules for the code of a frame.
#[derive(Debug, Clone)]
enum Rules {
    Row(Rc<UnwindRow>),
    /// By the exception index of 32-bit Arm, and whether the link register surely has the return address.
    Exidx(Rc<ExidxRow>, bool),
    FramePointer(Stage),
    /// No code is known to be there.
    Nowhere,
}

impl<'a> Unwinder<'a> {
    /// `max_depth` frames at most, usually [`MAX_DEPTH`].
    pub fn new(spaces: &'a AddressSpaces, codes: &'a CodeMap<'a>, images: &'a Images<'a>, max_depth: usize) -> Self {
        let tables = spaces.dsos().iter().map(|_| OnceLock::new()).collect();
        let indexes = spaces.dsos().iter().map(|_| OnceLock::new()).collect();
        let functions = spaces.dsos().iter().map(|_| OnceLock::new()).collect();
        Self { spaces, codes, images, tables, indexes, functions, max_depth }
    }

    /// The chain of one stack, into `chain`, which is emptied first.
    pub fn unwind(&self, stack: &UserStack<'_>, cache: &mut Cache, chain: &mut UnwoundChain) {
        /// More than most stacks may have (`ulimit -s` is 8 MiB): a pointer beyond is not a pointer into the stack.
        const DEEPEST: usize = 16 << 20;
        chain.frames.clear();
        (chain.truncated, chain.copy_ended) = (true, false);
        let (Some(pc), Some(base)) = (stack.registers.pc(), stack.registers.sp()) else { return };
        let (machine, ran_out) = (stack.registers.machine(), Cell::new(false));
        let moment = Moment { pid: stack.pid, time: stack.time, machine };
        let read = |addr: u64| {
            let at = usize::try_from(addr.checked_sub(base)?).ok()?;
            let word = stack.bytes.get(at..).and_then(|rest| machine.read(rest));
            ran_out.set(ran_out.get() || word.is_none() && at < DEEPEST);
            word
        };
        let mut registers = *stack.registers;
        let mut frame = FrameAddr::Ip(Addr(pc));
        let mut rules = self.rules(moment, frame, cache);
        loop {
            chain.frames.push(frame);
            if chain.frames.len() >= self.max_depth {
                return;
            }
            if let Rules::Row(row) = &rules
                && row.is_signal
                && let Some(last) = chain.frames.last_mut()
            {
                // The handler returns to the first instruction of the signal frame's code: nothing there called it.
                *last = FrameAddr::Ip(frame.raw());
            }
            let (caller, interrupted) = match rules {
                Rules::Nowhere => return,
                Rules::Row(row) => (row.caller(&registers, &read), row.is_signal),
                Rules::Exidx(row, by_link) => (self.by_index(&row, by_link, moment, &registers, frame, &read), false),
                Rules::FramePointer(stage) => {
                    (self.by_frame_pointer(stage, moment, &registers, frame, &read).map(Some).ok_or(Lost), false)
                }
            };
            let caller = match caller {
                Ok(Some(caller)) => caller,
                Ok(None) => {
                    chain.truncated = false;
                    return;
                }
                Err(Lost) => {
                    chain.copy_ended = ran_out.get();
                    return;
                }
            };
            let Some(pc) = caller.pc() else { return };
            if pc == 0 {
                // If nothing states that there is no caller, the return address does: it was never one.
                chain.truncated = false;
                return;
            }
            if !progresses(&registers, &caller, frame) {
                return;
            }
            frame = if interrupted { FrameAddr::Ip(Addr(pc)) } else { FrameAddr::Return(Addr(pc)) };
            rules = self.rules(moment, frame, cache);
            if matches!(rules, Rules::Nowhere) {
                return;
            }
            registers = caller;
        }
    }

    /// The caller of a function that was running, if its return address is still, or again, in the link register: a
    /// call chain by frame pointers misses it. Taken only where the call frame information or the code itself states
    /// it.
    ///
    /// `moment` has the machine that the process's code is of; `link` is the register's value, `next` the chain's next frame.
    pub fn leaf_caller(
        &self,
        moment: Moment,
        pc: Addr,
        link: u64,
        next: Option<Addr>,
        cache: &mut Cache,
    ) -> Option<Addr> {
        let frame = FrameAddr::Ip(pc);
        let key = (moment.pid, frame);
        let in_link = match cache.in_link.get(&key).filter(|(_, holds)| holds.contains(&moment.time)) {
            Some((in_link, _)) => *in_link,
            None => {
                let rules = self.rules(moment, frame, cache);
                let in_link = self.returns_by_link(moment, &rules, frame);
                let holds = cache.known.get(&key).map_or(ALWAYS, |(_, holds)| holds.clone());
                cache.in_link.insert(key, (in_link, holds));
                in_link
            }
        };
        let caller = Addr(moment.machine.plain(link));
        let mut is_code = || !matches!(self.rules(moment, FrameAddr::Return(caller), cache), Rules::Nowhere);
        let is_missing = || in_link || next != Some(caller) && self.was_called_from(moment, pc, link);
        (caller.0 != 0 && is_missing() && is_code()).then_some(caller)
    }

    /// True if the link register holds the address behind a direct call of the function that is running.
    fn was_called_from(&self, moment: Moment, pc: Addr, link: u64) -> bool {
        let in_jit = |addr: u64| {
            let addr = Addr(addr);
            let hit = self.code(moment, addr, self.place(moment, addr).answer).answer?;
            let code = self.codes.code(hit.code).bytes?;
            Some(Function { start: addr.0.checked_sub(hit.offset)?, is_thumb: false, code })
        };
        let linked = |addr: Addr| {
            let place = self.place(moment, addr).answer?;
            Some((place.dso, self.images.get(place.dso)?.vaddr(place.offset)?))
        };
        if direct_call::proves(moment.machine, pc.0, link, &in_jit) {
            return true;
        }
        let returns = moment.machine.plain(link);
        let before = linked(Addr(returns.wrapping_sub(1)));
        let Some(((dso, running), (other, before))) = linked(pc).zip(before) else { return false };
        let functions = self.functions(dso).filter(|_| dso == other);
        let link = before.wrapping_add(1) | link ^ returns;
        functions
            .is_some_and(|functions| direct_call::proves(moment.machine, running, link, &|addr| functions.at(addr)))
    }

    fn functions(&self, dso: DsoId) -> Option<&Functions<'a>> {
        let slot = self.functions.get(dso.0 as usize)?;
        slot.get_or_init(|| self.images.get(dso).and_then(Functions::of_image)).as_ref()
    }

    fn returns_by_link(&self, moment: Moment, rules: &Rules, frame: FrameAddr) -> bool {
        match rules {
            Rules::Row(row) if row.returns_by_link(moment.machine) => true,
            Rules::Row(_) if moment.machine == Machine::Aarch64 => {
                let place = self.place(moment, frame.raw()).answer;
                place.is_some_and(|place| self.file_stage(place, link_register::half_framed) != Stage::Framed)
            }
            Rules::Exidx(_, by_link) => *by_link,
            Rules::Row(_) | Rules::Nowhere => false,
            Rules::FramePointer(stage) => matches!(stage, Stage::InLink { .. }),
        }
    }

    /// How to leave a frame.
    fn rules(&self, moment: Moment, frame: FrameAddr, cache: &mut Cache) -> Rules {
        if let Some((rules, holds)) = cache.known.get(&(moment.pid, frame))
            && holds.contains(&moment.time)
        {
            return rules.clone();
        }
        let (addr, machine) = (frame.for_lookup(), moment.machine);
        let Lasting { answer: place, holds: mapped } = self.place(moment, addr);
        let Lasting { answer: hit, holds: known } = self.code(moment, addr, place);
        let rules = match (hit, place) {
            (Some(hit), _) => {
                let row = self.code_row(&hit, frame, machine, cache);
                row.map_or_else(|| Rules::FramePointer(self.stage(&hit, frame, machine)), Rules::Row)
            }
            (None, None) => Rules::Nowhere,
            (None, Some(place)) => match self.file_row(place, machine, cache) {
                Some(row) => Rules::Row(row),
                None => self.without_row(place, frame, machine),
            },
        };
        cache.known.insert((moment.pid, frame), (rules.clone(), both(mapped, known)));
        rules
    }

    /// How to leave a frame in a file that has no call frame information for it.
    fn without_row(&self, place: Place, frame: FrameAddr, machine: Machine) -> Rules {
        let running = matches!(frame, FrameAddr::Ip(_));
        match machine {
            Machine::Aarch64 if running => Rules::FramePointer(self.file_stage(place, link_register::stage_of_file)),
            Machine::Arm => self.exidx_row(place, running).unwrap_or(Rules::FramePointer(Stage::Framed)),
            _ => Rules::FramePointer(Stage::Framed),
        }
    }

    fn exidx_row(&self, place: Place, running: bool) -> Option<Rules> {
        let image = self.images.get(place.dso)?;
        let table = self.indexes.get(place.dso.0 as usize)?;
        let table = table.get_or_init(|| ExidxTable::of_image(image)).as_ref()?;
        let addr = image.vaddr(place.offset)?;
        let row = table.row(addr)?;
        let by_link = running && row.returns_by_link(addr);
        Some(Rules::Exidx(Rc::new(row), by_link))
    }

    /// Leaves a frame of code without rules. If the call proves that the return address is in the link register and the frame
    /// record has another one, that record is the caller's.
    fn by_frame_pointer(
        &self,
        stage: Stage,
        moment: Moment,
        registers: &Registers,
        frame: FrameAddr,
        read: &impl Fn(u64) -> Option<u64>,
    ) -> Option<Registers> {
        let caller = frame_pointer::caller(registers, stage, read);
        let by_record = caller.and_then(|caller| caller.pc());
        let link = registers.link().filter(|&link| by_record != Some(moment.machine.plain(link)));
        match (frame, link) {
            (FrameAddr::Ip(pc), Some(link)) if self.was_called_from(moment, pc, link) => {
                frame_pointer::caller(registers, Stage::in_link(None), read)
            }
            _ => caller,
        }
    }

    /// Leaves a frame by the index, which holds behind calls: the function that was running may not have saved yet, or
    /// no longer have, what the index states. A value that is not a return address is not taken for one.
    fn by_index(
        &self,
        row: &ExidxRow,
        by_link: bool,
        moment: Moment,
        registers: &Registers,
        frame: FrameAddr,
        read: &impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<Registers>, Lost> {
        if matches!(frame, FrameAddr::Return(_)) {
            return row.caller(registers, read);
        }
        // Calls of the function itself left an address of its own.
        let is_own = |caller: &Registers| caller.pc().is_some_and(|pc| self.is_in_function(moment, Addr(pc), row));
        let link =
            || frame_pointer::caller(registers, Stage::in_link(Some(0)), read).filter(|to| by_link || !is_own(to));
        let is_behind_call = |caller: &Registers| caller.pc().is_some_and(|pc| self.is_behind_call(moment, Addr(pc)));
        let by_row = || if by_link { None } else { row.caller(registers, read).ok().flatten() };
        by_row().filter(is_behind_call).or_else(|| link().filter(is_behind_call)).map(Some).ok_or(Lost)
    }

    /// True if a return address is in the function of a row.
    fn is_in_function(&self, moment: Moment, addr: Addr, row: &ExidxRow) -> bool {
        let place = self.place(moment, FrameAddr::Return(addr).for_lookup()).answer;
        let other = place.and_then(|place| self.exidx_row(place, false));
        matches!(other, Some(Rules::Exidx(other, _)) if *other == *row)
    }

    /// True if an address in code of 32-bit Arm can be one that a call returns to.
    fn is_behind_call(&self, moment: Moment, addr: Addr) -> bool {
        let Some(place) = self.place(moment, Addr(addr.0.wrapping_sub(1))).answer else { return false };
        let Some(image) = self.images.get(place.dso) else { return false };
        let end = image.vaddr(place.offset).and_then(|at| at.checked_add(1));
        let code = end.and_then(|end| image.loaded(end.checked_sub(4)?..end));
        code.is_some_and(exidx::ends_in_call)
    }

    /// The stage at a place in a file, by its code.
    fn file_stage(&self, place: Place, stage: fn(&[u8], u64) -> Stage) -> Stage {
        /// So much before it is looked at, of code that is no longer than that.
        const BEFORE: u64 = 64;
        const BEHIND: u64 = 1024;
        let code = || {
            let image = self.images.get(place.dso).filter(|image| image.machine() == EM_AARCH64)?;
            let at = image.vaddr(place.offset)?;
            let start = if image.loaded(at.saturating_sub(BEFORE)..at).is_some() { at - BEFORE.min(at) } else { at };
            Some((image.loaded(start..at.saturating_add(BEHIND))?, at - start))
        };
        code().map_or(Stage::Framed, |(code, offset)| stage(code, offset))
    }

    fn place(&self, moment: Moment, addr: Addr) -> Lasting<Option<Place>> {
        match self.spaces.lookup(moment.pid, addr, moment.time, CpuMode::User) {
            Some(place) if place.until > moment.time => {
                Lasting { answer: Some(place), holds: moment.time..place.until }
            }
            _ => self.spaces.user_lasting(moment.pid, addr, moment.time),
        }
    }

    /// The JIT code at an address, unless a file that was mapped there hides it.
    fn code(&self, moment: Moment, addr: Addr, place: Option<Place>) -> Lasting<Option<Hit>> {
        if self.codes.is_empty() {
            return Lasting { answer: None, holds: ALWAYS };
        }
        let mut code = self.codes.lookup_lasting(moment.pid, addr, moment.time);
        if let Some(place) = place {
            let anonymous = self.spaces.dsos().get(place.dso).kind == DsoKind::Anonymous;
            let wins =
                |hit: &Hit| anonymous || hit.how == How::Live && self.codes.segment(hit.segment).from >= place.mapped;
            code.answer = code.answer.filter(wins);
        }
        code
    }

    fn file_row(&self, place: Place, machine: Machine, cache: &mut Cache) -> Option<Rc<UnwindRow>> {
        let Cache { in_files, scratch, .. } = cache;
        let row = in_files.entry((place.dso, place.offset)).or_insert_with(|| {
            let image = self.images.get(place.dso)?;
            let slot = self.tables.get(place.dso.0 as usize)?;
            let table = slot.get_or_init(|| FrameTable::of_image(image)).as_ref()?;
            let row = (table.machine() == machine).then(|| table.row(image.vaddr(place.offset)?, scratch));
            row.flatten().map(Rc::new)
        });
        row.clone()
    }

    fn code_row(&self, hit: &Hit, frame: FrameAddr, machine: Machine, cache: &mut Cache) -> Option<Rc<UnwindRow>> {
        let code = self.codes.code(hit.code);
        let unwind = code.unwind.as_ref()?;
        let addr = frame.for_lookup().0;
        let start = addr.checked_sub(hit.offset)?;
        let Cache { in_code, scratch, .. } = cache;
        let row = in_code.entry((hit.code.0, start, hit.offset)).or_insert_with(|| {
            let table = FrameTable::of_code(machine, unwind.eh_frame, start, code.size)?;
            table.row(addr, scratch).map(Rc::new)
        });
        row.clone()
    }

    /// Only the function that was running can be outside its frame: those above it follow a call.
    fn stage(&self, hit: &Hit, frame: FrameAddr, machine: Machine) -> Stage {
        match (frame, machine, self.codes.code(hit.code).bytes) {
            (FrameAddr::Ip(_), Machine::X86_64, Some(bytes)) => frame_pointer::stage_x86_64(bytes, hit.offset),
            (FrameAddr::Ip(_), Machine::Aarch64, Some(bytes)) => link_register::stage_aarch64(bytes, hit.offset),
            _ => Stage::Framed,
        }
    }
}

/// True if the caller's frame lies above: stacks grow down. A function of AArch64 that saves nothing has no frame, so
/// the first step may leave the stack pointer alone.
fn progresses(callee: &Registers, caller: &Registers, frame: FrameAddr) -> bool {
    match (callee.sp(), caller.sp()) {
        (Some(callee), Some(caller)) => caller > callee || caller == callee && matches!(frame, FrameAddr::Ip(_)),
        _ => false,
    }
}
