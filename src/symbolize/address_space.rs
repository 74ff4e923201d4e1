//! The mappings of each process over time. They are built once from a recording and then only read, by any number of
//! threads.
//!
//! A recording reports when memory is mapped, but not when it is unmapped. A mapping therefore lasts until a later one
//! covers it (only the overlapping part ends) or until the process execs. The history of an address space is a set of
//! disjoint rectangles, address × time:
//!
//! ```text
//! address ↑  ┌─────────────┬─────────────
//!            │ libc        │ node (exec)
//!            ├──────┬──────┤
//!            │ anon │ JIT  │
//!            └──────┴──────┴─────────────→ time
//! ```
//!
//! Some programs move their own code to huge pages: they map anonymous memory over part of it and copy the code back
//! (`node --use-largepages`, ClickHouse, HHVM, Intel's iodlr). The code is still the file's, so the file's rectangle
//! continues. Memory over a library is ambiguous: the library may have been unmapped, which isn't recorded, and a JIT
//! compiler may have been given its addresses. Such memory counts as the library's code only if it covers whole huge
//! pages of an executable mapping or all of one, and any JIT code known to be there takes precedence.
//!
//! A forked child has rectangles only for its own mappings. For everything else, what its parent had mapped at the fork
//! is stored once per child, including what the parent itself had inherited. The maps of different children share their
//! equal parts ([`SharedRanges`]).

use super::dso::{Dso, DsoId, DsoKind, Dsos};
use crate::model::ancestry::{Ancestry, ForkEvent};
use crate::model::lasting::{ALWAYS, Lasting, QuietPeriod, intersect};
use crate::model::mapping_kind::{self, MappingKind};
use crate::model::process::{CpuMode, Mapping, Process, Processes};
use crate::model::ranges::{Entry, OrderedRanges, RangeMap, Ranks, SharedRanges, Span};
use crate::model::{Addr, Nanos, Pid};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;

/// The process ID that perf writes into MMAP records of the kernel and its modules.
const KERNEL_PID: Pid = Pid(-1);

/// What was mapped at an address of a process at some time. Returned by [`AddressSpaces::lookup`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedPlace {
    /// The file or other memory that was mapped at the address.
    pub dso: DsoId,
    /// The requested address, relative to the file: address − start of the mapping + page offset of the mapping. In
    /// anonymous memory, in the kernel and its modules, and in simpleperf's files of JIT code, it is the requested
    /// address itself.
    pub offset: u64,
    /// When the memory was mapped, on the recording's clock.
    pub mapped: Nanos,
    /// The time up to which a lookup of the same address gives the same answer, exclusive. Equal to the requested time
    /// if it isn't known how long the answer holds; the answer must then not be reused for another time.
    pub until: Nanos,
    /// True if anonymous memory was mapped over a library and is most likely the library's own code, moved to huge
    /// pages. JIT code that is known to be there wins over the library.
    pub is_remapped: bool,
}

/// Where a known kernel symbol (`_text` or `_stext`) was in the recorded boot. Each boot loads the kernel at a random
/// address. This symbol's address tells how far recorded addresses are from those in a symbol list or kernel image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelReference {
    /// The name of the symbol: `_text` or `_stext`.
    pub symbol: Vec<u8>,
    /// The symbol's address in the recorded boot.
    pub addr: Addr,
    /// Where the kernel's mapping ends, exclusive: the address of `_edata` or `_etext`. `None` if the recorder found
    /// neither.
    pub end: Option<Addr>,
    /// Addresses above `end` that may be the kernel's, too: the code that runs only while it starts (`.init.text`)
    /// follows its data. Empty if `end` is unknown.
    pub beyond_end: Range<u64>,
}

/// How far above the end of the kernel's mapping its initialization code may be, in bytes. In between are its read-only
/// and its initialized data.
const MAX_DISTANCE_OF_INIT_CODE: u64 = 1 << 26;

/// The mappings of all processes and of the kernel, over time.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    dsos: Dsos,
    /// The address spaces by process and realm. Those of the kernels are under [`KERNEL_PID`].
    spaces: FxHashMap<(Pid, Realm), Space>,
    /// Where the kernel was loaded; see [`Self::kernel_reference()`].
    kernel_reference: Option<KernelReference>,
    /// The MMAP records of memory to which programs moved their own code; see [`Self::own_text()`].
    own_text: Vec<u64>,
    /// For each forked process, what its parent had mapped at the fork.
    inherited: FxHashMap<Pid, SharedRanges<VisiblePart>>,
    /// The forks and execs of processes. They tell how long inherited mappings stay valid: until the child calls exec.
    ancestry: Ancestry,
    /// When each process was replacing its program by another one (exec): periods in the order of time. During such a
    /// period, a sample's user registers are still those of the previous program. See [`exec_periods`].
    executing: FxHashMap<Pid, Vec<Range<Nanos>>>,
}

/// Which address space an address belongs to. There are four kinds: that of a process and that of the kernel, each on
/// the recorded machine itself or in a virtual machine on it (a guest). The same number is a different address in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Realm {
    User,
    Kernel,
    GuestUser,
    GuestKernel,
}

/// The mappings of one address space over time.
#[derive(Debug, Default)]
struct Space {
    /// What was mapped where and when: rectangles that don't overlap, ordered by start time.
    regions: OrderedRanges<MappedRegion>,
}

/// A range of addresses and a range of times in which one DSO was mapped there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MappedRegion {
    start: u64,
    /// One past the last address. This fits into 64 bits, because no mapping reaches the last byte of the address
    /// space.
    end: u64,
    from: Nanos,
    until: Nanos,
    dso: DsoId,
    /// The address relative to the file at `start`; see [`MappedPlace::offset`].
    offset: u64,
    is_remapped: bool,
}

impl AddressSpaces {
    /// Collects the DSOs of inputs that name files but don't say where they were mapped. There are no mappings, and
    /// lookups find nothing. Equal DSOs are stored once.
    pub fn from_files(files: impl Iterator<Item = Dso>) -> Self {
        let mut spaces = Self::default();
        for file in files {
            spaces.dsos.intern(file);
        }
        spaces
    }

    /// Builds the address spaces from the mappings, forks and execs of a recording.
    pub fn new(processes: &Processes) -> Self {
        let mut spaces = Self { ancestry: Ancestry::new(processes), ..Self::default() };
        let mut builders: BTreeMap<(Pid, Realm), SpaceBuilder> = BTreeMap::new();
        for (&pid, process) in &processes.by_pid {
            let mut previous: Option<(&Mapping, DsoId)> = None;
            for mapping in &process.mappings {
                let realm = Realm::from_mapping(pid, mapping);
                let dso = match previous {
                    // Most mappings have the same DSO as the one before. Comparing the two saves a hash lookup.
                    Some((previous, dso)) if is_same_dso(previous, mapping, pid) => dso,
                    _ => spaces.dsos.intern(to_dso(mapping, realm)),
                };
                previous = Some((mapping, dso));
                if spaces.kernel_reference.is_none() && realm == Realm::Kernel {
                    spaces.kernel_reference = read_kernel_reference(mapping);
                }
                let builder = builders.entry((realm.pid(pid), realm)).or_default();
                // An exec ends what the process itself had mapped. What the kernel or a guest has mapped stays.
                if realm == Realm::User {
                    builder.replay_execs(mapping.time, process);
                }
                let is_moved_text = builder.add_mapping(mapping, dso, &spaces.dsos);
                if is_moved_text {
                    // The memory holds the program's own code. `own_text` lists the records of such mappings by their
                    // byte offset in the recording, which is `mapping.offset`.
                    spaces.own_text.push(mapping.offset);
                }
            }
        }
        // The kernel's end can only be checked now that all its modules are known: an end at which a module starts
        // isn't the kernel's own; see `starts_module`.
        if let Some(reference) = &mut spaces.kernel_reference {
            reference.end = reference.end.filter(|&end| !starts_module(processes, end));
            reference.beyond_end = beyond_end(processes, reference.end);
        }
        spaces.add_kernel_symbols(processes, builders.entry((KERNEL_PID, Realm::Kernel)).or_default());
        for ((pid, realm), mut builder) in builders {
            // Execs after the process's last mapping end what was mapped, too.
            if realm == Realm::User
                && let Some(process) = processes.by_pid.get(&pid)
            {
                builder.replay_execs(Nanos(u64::MAX), process);
            }
            spaces.spaces.insert((pid, realm), Space::new(builder.finish()));
        }
        for (&pid, process) in processes.by_pid.iter().filter(|(_, process)| !process.execs.is_empty()) {
            spaces.executing.insert(pid, exec_periods(process));
        }
        spaces.inherit(processes);
        spaces
    }

    /// Computes what each forked process inherited, by replaying the history of its parent up to the fork. Called after
    /// the mappings of all processes have been added. The forks are replayed in the order of time, for two reasons: a
    /// parent that forks several times is replayed only once, from each of its forks to the next; and if the parent was
    /// forked, too, what it inherited is already known.
    fn inherit(&mut self, processes: &Processes) {
        let mut ranks = Ranks::default();
        let mut replays = FxHashMap::default();
        for ForkEvent { child, parent, at: fork_time } in self.ancestry.forks() {
            let replay = replays.entry(parent).or_insert_with(|| ParentReplay {
                forked: self.ancestry.forked(parent),
                execs: processes.by_pid.get(&parent).map_or(&[][..], |process| &process.execs),
                regions: self.spaces.get(&(parent, Realm::User)).map_or(&[][..], |space| space.regions.as_slice()),
                mapped: SharedRanges::default(),
            });
            replay.advance(fork_time, self.inherited.get(&parent), &mut ranks);
            if !replay.mapped.is_empty() {
                self.inherited.insert(child, replay.mapped.clone());
            }
        }
    }

    /// Returns the mapping that contains `addr` at `time`, or `None` if none is known. For an address of an unknown
    /// mode, looks in the process first, and then in the kernel.
    pub fn lookup(&self, pid: Pid, addr: Addr, time: Nanos, mode: CpuMode) -> Option<MappedPlace> {
        match mode {
            CpuMode::User => self.lookup_user(pid, addr, time),
            CpuMode::Kernel => self.lookup_kernel(addr, time),
            CpuMode::GuestKernel => self.lookup_in_realm(KERNEL_PID, Realm::GuestKernel, addr, time),
            CpuMode::GuestUser => self.lookup_in_realm(pid, Realm::GuestUser, addr, time),
            // perf records no mappings of hypervisors.
            CpuMode::Hypervisor => None,
            CpuMode::Unknown => self.lookup_user(pid, addr, time).or_else(|| self.lookup_kernel(addr, time)),
        }
    }

    /// What is at an address in the kernel or its modules at `time`. Initialization code beyond the end of the kernel's
    /// mapping counts as part of the mapping.
    fn lookup_kernel(&self, addr: Addr, time: Nanos) -> Option<MappedPlace> {
        let space = self.spaces.get(&(KERNEL_PID, Realm::Kernel))?;
        if let Some(place) = space.find(addr, time) {
            return Some(place);
        }
        let reference = self.kernel_reference.as_ref()?;
        if !reference.beyond_end.contains(&addr.0) {
            return None;
        }
        // In the kernel, offsets are addresses. The answer is only known to hold at `time`, because a BPF program may be
        // loaded here later.
        Some(MappedPlace { offset: addr.0, until: time, ..space.find(reference.addr, time)? })
    }

    /// What is mapped at a user-space address at `time`, and the period around `time` in which that stays the same.
    pub fn user_lasting(&self, pid: Pid, addr: Addr, time: Nanos) -> Lasting<Option<MappedPlace>> {
        let same_mapping = match self.spaces.get(&(pid, Realm::User)) {
            Some(space) => space.quiet_period(addr, time),
            None => ALWAYS,
        };
        // During an exec, the answer comes from the previous program, so the answer may change where such an exec
        // period begins or ends. The periods are sorted by time. Only the last one that began by `time` and the first
        // later one can be the nearest to `time`.
        let mut same_exec = QuietPeriod::new(time);
        let periods = self.executing.get(&pid).map_or(&[][..], Vec::as_slice);
        let begun = periods.partition_point(|period| period.start <= time);
        let nearest = begun.saturating_sub(1)..periods.len().min(begun + 1);
        for period in &periods[nearest] {
            // `cut` shortens `same_exec`, so that neither end of the exec period is inside it.
            same_exec.cut(period.clone());
        }
        // Inherited mappings count only from the fork to the next exec of the process.
        let holds = intersect(intersect(self.ancestry.inherited_code_period(pid, time), same_mapping), same_exec.range);
        Lasting { answer: self.lookup_user(pid, addr, time), holds }
    }

    /// The MMAP records that report nothing new, because the mapped memory holds the program's own code, which the
    /// program moved there. Each record is given by its byte offset in the recording. Lookups in such memory return the
    /// program's file.
    pub fn own_text(&self) -> &[u64] {
        &self.own_text
    }

    /// All DSOs that are mapped anywhere.
    pub fn dsos(&self) -> &Dsos {
        &self.dsos
    }

    /// Where the kernel was loaded, if the recording states it.
    pub fn kernel_reference(&self) -> Option<&KernelReference> {
        self.kernel_reference.as_ref()
    }

    #[inline]
    fn lookup_in_realm(&self, pid: Pid, realm: Realm, addr: Addr, time: Nanos) -> Option<MappedPlace> {
        self.spaces.get(&(pid, realm))?.find(addr, time)
    }

    /// What is mapped at a user-space address at `time`. While the process is in an exec, that is what the previous
    /// program had mapped, unless the new program has already mapped something there.
    fn lookup_user(&self, pid: Pid, addr: Addr, time: Nanos) -> Option<MappedPlace> {
        if let Some(place) = self.find_mapping(pid, addr, time) {
            return Some(place);
        }
        let periods = self.executing.get(&pid)?;
        let begun = periods.partition_point(|period| period.start <= time);
        // The exec that is going on at `time`. If there is none, nothing is mapped at the address.
        let exec = periods[..begun].last().filter(|period| period.contains(&time))?;
        let before_exec = Nanos(exec.start.0.checked_sub(1)?);
        // The new program may map something here at any time, so this answer is only known to hold at `time`.
        Some(MappedPlace { until: time, ..self.find_mapping(pid, addr, before_exec)? })
    }

    /// The mapping at this address and time, made by the process itself or else inherited from its parent.
    fn find_mapping(&self, pid: Pid, addr: Addr, time: Nanos) -> Option<MappedPlace> {
        if let Some(place) = self.lookup_in_realm(pid, Realm::User, addr, time) {
            return Some(place);
        }
        let Entry { start, skipped, value: inherited, .. } = self.inherited.get(&pid)?.get(addr.0)?;
        // An exec after the fork ended what the process had inherited.
        if !self.ancestry.inherits(pid, Some(time)) {
            return None;
        }
        // `skipped` is the number of bytes that the mapping has lost at its start because something else was mapped
        // over them.
        let offset = inherited.offset.wrapping_add(skipped).wrapping_add(addr.0 - start);
        let VisiblePart { from: mapped, dso, is_remapped, .. } = inherited;
        // `until` is `time` because it isn't known here how long the process keeps the inherited mapping: until its own
        // exec or its own mapping at this address.
        Some(MappedPlace { dso, offset, mapped, until: time, is_remapped })
    }

    /// Adds kernel code that was registered while the kernel was running, such as BPF programs, to the kernel's address
    /// space, which `builder` builds. Where such code is unregistered, nothing is mapped from then on.
    fn add_kernel_symbols(&mut self, processes: &Processes, builder: &mut SpaceBuilder) {
        for symbol in &processes.kernel_symbols {
            let end = symbol.addr.0.saturating_add(symbol.len);
            builder.clear(symbol.addr.0..end, symbol.time);
            if !symbol.unregistered {
                let kind = DsoKind::KernelSymbol(symbol.bpf);
                let dso = self.dsos.intern(Dso { path: symbol.name.clone(), build_id: None, file: None, kind });
                // Unlike in the kernel itself, the offset in such code counts from the start of its symbol.
                let part = VisiblePart { from: symbol.time, dso, offset: 0, is_remapped: false };
                builder.live.insert_into_gap(symbol.addr.0..end, part);
            }
        }
    }
}

impl Realm {
    /// The realm in which a mapping of process `pid` was made. The CPU mode of the mapping's record decides. In other
    /// modes than those below, everything belongs to user space, except the mappings of [`KERNEL_PID`].
    fn from_mapping(pid: Pid, mapping: &Mapping) -> Self {
        match mapping.cpumode {
            CpuMode::Kernel => Self::Kernel,
            CpuMode::GuestKernel => Self::GuestKernel,
            CpuMode::GuestUser => Self::GuestUser,
            _ if pid == KERNEL_PID => Self::Kernel,
            _ => Self::User,
        }
    }

    /// The process ID under which mappings of this realm are stored. For the kernel, which all processes share, it is
    /// [`KERNEL_PID`] instead of `pid`.
    fn pid(self, pid: Pid) -> Pid {
        match self {
            Self::User | Self::GuestUser => pid,
            Self::Kernel | Self::GuestKernel => KERNEL_PID,
        }
    }
}

/// Reads the address of the kernel's reference symbol from a mapping. perf records the kernel's mapping under the name
/// `[kernel.kallsyms]_text`, with the address of `_text` as its page offset. `None` if this isn't such a mapping.
fn read_kernel_reference(mapping: &Mapping) -> Option<KernelReference> {
    let (_, symbol) = mapping_kind::split_reference_symbol(&mapping.path);
    if !mapping.kind().is_kernel() || symbol.is_empty() {
        return None;
    }
    let end = mapping.addr.0.checked_add(mapping.len).filter(|&end| end != u64::MAX).map(Addr);
    Some(KernelReference { symbol: symbol.to_vec(), addr: Addr(mapping.pgoff), end, beyond_end: 0..0 })
}

/// The periods in which a process was replacing its program, in the order of time. A period begins with the exec, which
/// replaces the memory. The kernel then maps the new program and at last the vDSO, and prepares the stack. The period
/// ends with the next mapping, which is the first that the new program makes itself. Until then, the user registers in
/// samples are those of the previous program, which called `execve`. Execs without a vDSO mapping have no period.
fn exec_periods(process: &Process) -> Vec<Range<Nanos>> {
    /// A period ends at the latest this many nanoseconds after the vDSO was mapped, because the new program may never
    /// map anything. The kernel doesn't take longer than this to prepare the stack.
    const MAX_PREPARATION: u64 = 10_000_000;
    let mut mapped: Vec<Nanos> = process.mappings.iter().map(|mapping| mapping.time).collect();
    mapped.sort_unstable();
    let vdsos = process.mappings.iter().filter(|mapping| mapping.kind() == MappingKind::Vdso);
    let mut vdso_times: Vec<Nanos> = vdsos.map(|mapping| mapping.time).collect();
    vdso_times.sort_unstable();
    let mut periods = Vec::new();
    for (index, &exec) in process.execs.iter().enumerate() {
        let next_exec = process.execs.get(index + 1).copied().unwrap_or(Nanos(u64::MAX));
        if let Some(&vdso) = vdso_times.get(vdso_times.partition_point(|time| *time < exec))
            && vdso < next_exec
        {
            let limit = next_exec.min(Nanos(vdso.0.saturating_add(MAX_PREPARATION)));
            let first_own_mapping = mapped.get(mapped.partition_point(|time| *time <= vdso)).copied();
            periods.push(exec..first_own_mapping.unwrap_or(limit).min(limit));
        }
    }
    periods
}

/// True if a kernel module's mapping starts at `addr`. If perf doesn't find the kernel's end, it extends the kernel's
/// mapping to the next module. An end at which a module starts is therefore not the kernel's real end.
fn starts_module(processes: &Processes, addr: Addr) -> bool {
    let mappings = processes.by_pid.get(&KERNEL_PID).map_or(&[][..], |process| &process.mappings);
    mappings.iter().any(|mapping| mapping.addr == addr && !mapping.kind().is_kernel())
}

/// The addresses above the end of the kernel's mapping that may be the kernel's, too. They end where the first module
/// starts, if there is one.
fn beyond_end(processes: &Processes, end: Option<Addr>) -> Range<u64> {
    let Some(Addr(end)) = end else { return 0..0 };
    let mappings = processes.by_pid.get(&KERNEL_PID).map_or(&[][..], |process| &process.mappings);
    let starts = mappings.iter().map(|mapping| mapping.addr.0).filter(|&start| start >= end);
    let next_module = starts.min().unwrap_or(u64::MAX);
    end..next_module.min(end.saturating_add(MAX_DISTANCE_OF_INIT_CODE))
}

/// True if two mappings of process `pid` certainly have the same DSO. If false, they may still have the same one: the
/// caller then builds the DSO and looks it up.
fn is_same_dso(one: &Mapping, other: &Mapping, pid: Pid) -> bool {
    let realm = Realm::from_mapping(pid, other);
    let is_same_file = one.path == other.path && one.build_id == other.build_id && one.file == other.file;
    // Memory with the same path may be code or data, depending on its protection.
    if !is_same_file || one.executable != other.executable || Realm::from_mapping(pid, one) != realm {
        return false;
    }
    // A vDSO with the same path may be a 32-bit or a 64-bit one, depending on its address.
    let is_vdso = realm == Realm::User && other.kind() == MappingKind::Vdso;
    !is_vdso
}

/// What is mapped by a mapping in this realm. The kind depends on the path and, for the vDSO and for data, also on
/// where and how it is mapped.
fn to_dso(mapping: &Mapping, realm: Realm) -> Dso {
    // All memory of a 32-bit process lies below this address. So a vDSO below it is that of a 32-bit process.
    const FOUR_GIGABYTES: u64 = 1 << 32;
    let kind = match realm {
        Realm::User if mapping.kind() == MappingKind::Vdso && mapping.addr.0 < FOUR_GIGABYTES => DsoKind::Vdso32,
        // Shared memory (`/dev/shm`) usually isn't a program or library. But if the file has a build ID, a linker made
        // it.
        Realm::User if mapping.kind() == MappingKind::PosixShared && mapping.build_id.is_some() => DsoKind::File,
        Realm::User => match Dso::kind_of_user_path(&mapping.path) {
            DsoKind::Anonymous if !mapping.executable => DsoKind::Data,
            kind => kind,
        },
        Realm::Kernel if mapping.kind().is_kernel() => DsoKind::Kernel,
        Realm::Kernel => DsoKind::Module,
        Realm::GuestUser | Realm::GuestKernel => DsoKind::Guest,
    };
    // A build ID tells different builds of a file apart, and anonymous memory has none. If a recording gives it a build
    // ID anyway, that is dropped, so that all memory with the same name shares one DSO.
    let build_id = mapping.build_id.filter(|_| !kind.is_memory());
    // Device and inode tell whether a file found here is the recorded one. Memory such as memfd has them as well, but
    // there is no file to compare with.
    let file = mapping.file.filter(|_| kind == DsoKind::File);
    Dso { path: mapping.path.clone(), build_id, file, kind }
}

/// True if the mapped file is a program or library, made by a linker. False for the files to which JIT compilers write
/// code: these are deleted and have no build ID.
fn is_linked_file(dso: DsoId, dsos: &Dsos) -> bool {
    let Dso { path, kind, build_id, .. } = dsos.get(dso);
    *kind == DsoKind::File && (build_id.is_some() || !MappingKind::from_path(path).is_deleted())
}

/// Replays the mappings and execs of one process, or of a kernel, in time order, to collect its regions.
#[derive(Debug, Default)]
struct SpaceBuilder {
    /// The parts of mappings that are visible at the current moment of the replay.
    live: RangeMap<VisiblePart>,
    /// Parts of mappings that are no longer visible, each with its period.
    done: Vec<MappedRegion>,
    /// How many of the process's execs have been replayed.
    execs: usize,
    /// The program's own file: the first file that was mapped as executable since the last exec. `None` if there is
    /// none yet.
    program: Option<DsoId>,
    /// The executable mappings of files since the last exec, as they were made, even if other mappings cover them now.
    texts: FxHashSet<TextMapping>,
    /// For each file, the addresses in any of its mappings in `texts`.
    text_addresses: FxHashMap<DsoId, RangeMap<()>>,
}

/// The maximum number of mapped parts that are compared with a new mapping. A mapping over more parts counts as a new
/// one: no program's code consists of so many, and without a limit, thousands of mappings over thousands of parts would
/// take hours.
const MAX_PARTS: usize = 256;

/// An executable mapping of a file.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextMapping {
    addresses: Range<u64>,
    dso: DsoId,
}

/// The part of a mapping that is still visible because no later mapping covers it.
#[derive(Debug, Clone, Copy)]
struct VisiblePart {
    /// When the mapping was made.
    from: Nanos,
    dso: DsoId,
    /// The address relative to the file at the start of the mapping, even if that part of it isn't visible any more.
    /// [`Entry::offset`] is for the start of the visible part.
    offset: u64,
    /// True for anonymous memory that most likely holds a library's own code; see [`MappedPlace::is_remapped`].
    is_remapped: bool,
}

/// The size in bytes of the huge pages to which programs move their code.
const HUGE_PAGE: u64 = 2 << 20;

impl Entry<VisiblePart> {
    /// The address relative to the file at the start of this visible part.
    fn offset(&self) -> u64 {
        self.value.offset.wrapping_add(self.skipped)
    }

    /// True if this part and a mapping of `dso` at `start` with this offset are pieces of one image: the file's first
    /// byte would be at the same address for both.
    fn continues_in(&self, dso: DsoId, start: u64, offset: u64) -> bool {
        self.value.dso == dso && self.offset().wrapping_sub(self.start) == offset.wrapping_sub(start)
    }
}

impl SpaceBuilder {
    /// Replays the process's execs up to and including `time`. Each ends all mappings.
    fn replay_execs(&mut self, time: Nanos, process: &Process) {
        while let Some(&exec) = process.execs.get(self.execs)
            && exec <= time
        {
            self.execs += 1;
            self.program = None;
            self.texts.clear();
            self.text_addresses.clear();
            self.done.extend(self.live.drain().map(|entry| MappedRegion::new(entry, exec)));
        }
    }

    /// Replays one mapping, after which `dso` is mapped in its range. Returns true if the mapping reports nothing new:
    /// its memory holds the program's own code, which the program moved there. The program's file then stays mapped
    /// instead of `dso`. To recognize such memory, what was mapped in the range before is replaced only at the end.
    fn add_mapping(&mut self, mapping: &Mapping, dso: DsoId, dsos: &Dsos) -> bool {
        let kind = dsos.get(dso).kind;
        let range = mapping.addr.0..mapping.addr.0.saturating_add(mapping.len);
        // In anonymous memory, the kernel, its modules and simpleperf's files, offsets are addresses; see
        // `MappedPlace::offset`.
        let is_absolute = kind.is_memory()
            || matches!(kind, DsoKind::Kernel | DsoKind::Module)
            || mapping_kind::simpleperf_jit_cache(&mapping.path).is_some();
        let offset = if is_absolute { range.start } else { mapping.pgoff };
        // Executable mappings are noted before repeated mappings are skipped below. A loader may first map the whole
        // file as data; the file's code is then mapped already, but not yet noted.
        if kind == DsoKind::File && mapping.executable {
            self.program.get_or_insert(dso);
            if is_linked_file(dso, dsos) {
                self.texts.insert(TextMapping { addresses: range.clone(), dso });
                self.text_addresses.entry(dso).or_default().insert(range.clone(), (), |_| {});
            }
        }
        // The kernel reports a mapping again each time it grows or its protection changes. If all of its range is
        // already mapped to the same part of the same DSO, nothing is changed. Otherwise, thousands of such records
        // would split the mapping into small pieces.
        let is_repeatable = kind.is_memory() || kind == DsoKind::File;
        if is_repeatable && self.is_mapped(range.clone(), dso, offset) {
            return false;
        }
        // Runtimes make their code writable for a moment, and executable again before it runs. So executable memory
        // stays code, even if a record now says that it is only data.
        if kind == DsoKind::Data && self.is_executable_memory(range.clone(), dso, dsos) {
            return false;
        }
        if kind.is_memory() && self.continue_moved_text(&range, mapping.time, dsos) {
            // Memory over the program's own file certainly holds the program's code. Memory over a library
            // (`is_remapped`) may also be JIT code, so its record isn't reported as the program's own code.
            return self.live.get(range.start).is_some_and(|entry| !entry.value.is_remapped);
        }
        let is_deleted = kind == DsoKind::File && MappingKind::from_path(&mapping.path).is_deleted();
        if is_deleted && self.continue_text_in_deleted_file(&range, dsos) {
            return true;
        }
        if kind == DsoKind::File {
            self.fill_hole(range.start, dso, offset, dsos);
        }
        self.clear(range.clone(), mapping.time);
        let part = VisiblePart { from: mapping.time, dso, offset, is_remapped: false };
        self.live.insert_into_gap(range, part);
        false
    }

    /// True if `dso` is already mapped in the whole range, in at most [`MAX_PARTS`] parts, and a mapping with this
    /// offset at the start of the range would show the same bytes at the same addresses.
    fn is_mapped(&self, range: Range<u64>, dso: DsoId, offset: u64) -> bool {
        // The range is covered up to this address.
        let mut covered = range.start;
        for entry in self.live.overlapping(range.clone()).take(MAX_PARTS) {
            // There is a gap before this entry, or the entry has other bytes than the mapping would show.
            if entry.start > covered || !entry.continues_in(dso, range.start, offset) {
                return false;
            }
            covered = entry.end;
        }
        covered >= range.end
    }

    /// True if executable memory with the same name as `data` covers the whole range, in at most [`MAX_PARTS`] parts.
    fn is_executable_memory(&self, range: Range<u64>, data: DsoId, dsos: &Dsos) -> bool {
        // The range is covered up to this address.
        let mut covered = range.start;
        for entry in self.live.overlapping(range.clone()).take(MAX_PARTS) {
            let Dso { kind, path, .. } = dsos.get(entry.value.dso);
            if entry.start > covered || *kind != DsoKind::Anonymous || *path != dsos.get(data).path {
                return false;
            }
            covered = entry.end;
        }
        covered >= range.end
    }

    /// Checks whether anonymous memory that is being mapped over `range` holds the code of the file that was mapped
    /// there before. If so, keeps the file mapped there and returns true. The memory must be within an executable
    /// mapping of the file: over the file's data, it is other memory, such as a program's zeroed data (`.bss`). If the
    /// file is the program's own, that is enough. For a library, it must also cover a whole executable mapping or whole
    /// huge pages of one, and even then it is only likely to hold the code. The library's mapping is then replaced by
    /// one that is marked as remapped.
    fn continue_moved_text(&mut self, range: &Range<u64>, time: Nanos, dsos: &Dsos) -> bool {
        let Some(first) = self.live.get(range.start) else { return false };
        let dso = first.value.dso;
        let offset = first.offset().wrapping_add(range.start - first.start);
        if !is_linked_file(dso, dsos) || !self.is_mapped(range.clone(), dso, offset) {
            return false;
        }
        if self.program == Some(dso) {
            // `is_text`: executable mappings of the file cover the whole range.
            return self.is_text(range, dso);
        }
        let is_huge_pages = range.start.is_multiple_of(HUGE_PAGE) && range.end.is_multiple_of(HUGE_PAGE);
        // The range is compared with the library's mappings as they were made, not with what is visible of them now. A
        // recording doesn't tell when a library is unmapped. Pieces of it then stay visible between later mappings, and
        // memory that covers just such a piece doesn't hold the library's code.
        let is_whole_mapping = self.texts.contains(&TextMapping { addresses: range.clone(), dso });
        let is_moved_text = is_whole_mapping || (is_huge_pages && self.is_text(range, dso));
        if !is_moved_text {
            return false;
        }
        self.clear(range.clone(), time);
        self.live.insert_into_gap(range.clone(), VisiblePart { from: time, dso, offset, is_remapped: true });
        true
    }

    /// True if executable mappings of the file, as they were made, cover the whole range, in at most [`MAX_PARTS`]
    /// parts.
    fn is_text(&self, range: &Range<u64>, dso: DsoId) -> bool {
        let Some(addresses) = self.text_addresses.get(&dso) else { return false };
        // The range is covered up to this address.
        let mut covered = range.start;
        for entry in addresses.overlapping(range.clone()).take(MAX_PARTS) {
            if entry.start > covered {
                return false;
            }
            covered = entry.end;
        }
        covered >= range.end
    }

    /// Checks whether a deleted file that is being mapped over `range` holds the program's own code. If so, keeps the
    /// program's mapping and returns true. libhugetlbfs copies code to such files. They consist of huge pages and may
    /// therefore extend beyond the code, up to the end of the last page.
    fn continue_text_in_deleted_file(&self, range: &Range<u64>, dsos: &Dsos) -> bool {
        let Some(first) = self.live.get(range.start) else { return false };
        let dso = first.value.dso;
        // `is_linked_file` means that a linker made the file, not a JIT compiler.
        if self.program != Some(dso) || !is_linked_file(dso, dsos) {
            return false;
        }
        let is_huge_pages = range.start.is_multiple_of(HUGE_PAGE) && range.end.is_multiple_of(HUGE_PAGE);
        // From the start of the range to `end`, the program's file must be mapped. The rest of the last huge page may
        // lie beyond the end of the code.
        let end = if is_huge_pages { range.end.min(first.end) } else { range.end };
        let beyond_code = range.end - end;
        if beyond_code >= HUGE_PAGE {
            return false;
        }
        let offset = first.offset().wrapping_add(range.start - first.start);
        self.is_mapped(range.start..end, dso, offset)
    }

    /// Called for a newly mapped part of a file: fills the hole between this part and the next lower part of the file,
    /// if the hole consists of anonymous memory. The file then counts as mapped in the hole, too. Such holes occur if
    /// recording starts after a program moved its code, because only the final mappings are reported. `start` is the
    /// address of the part above the hole, `offset` its offset in the file.
    fn fill_hole(&mut self, start: u64, dso: DsoId, offset: u64, dsos: &Dsos) {
        if !is_linked_file(dso, dsos) {
            return;
        }
        let part_ending_at = |end: u64| self.live.get(end.checked_sub(1)?).filter(|entry| entry.end == end);
        // The hole may consist of several mappings of anonymous memory.
        let mut hole_start = start;
        while let Some(entry) = part_ending_at(hole_start)
            && dsos.get(entry.value.dso).kind.is_memory()
        {
            hole_start = entry.start;
        }
        let is_hole = hole_start < start;
        let Some(below) = part_ending_at(hole_start) else { return };
        // `continues_in`: the parts below and above the hole are pieces of the same file, at the right distance.
        if !is_hole || !below.continues_in(dso, start, offset) {
            return;
        }
        let hole_offset = below.offset().wrapping_add(hole_start - below.start);
        let part = VisiblePart { from: below.value.from, dso, offset: hole_offset, is_remapped: false };
        // The anonymous memory isn't recorded as a region: the file counts as mapped here from the start.
        self.live.clear(hole_start..start, |_| {});
        self.live.insert_into_gap(hole_start..start, part);
    }

    /// Ends the mappings in `range` at `time`. The parts of a mapping outside of the range stay.
    fn clear(&mut self, range: Range<u64>, time: Nanos) {
        self.live.clear(range, |entry| {
            // A mapping that was replaced at the very time it was made was never visible.
            if entry.value.from < time {
                self.done.push(MappedRegion::new(entry, time));
            }
        });
    }

    /// The regions of the whole history, in no particular order. What is mapped now stays mapped to the end of time.
    fn finish(mut self) -> Vec<MappedRegion> {
        self.done.extend(self.live.drain().map(|entry| MappedRegion::new(entry, Nanos(u64::MAX))));
        self.done
    }
}

/// Replays the history of a process that forked others. Knows what is mapped in it at the current moment of the replay,
/// both its own mappings and inherited ones.
#[derive(Debug)]
struct ParentReplay<'a> {
    /// When the process was forked; `None` if it wasn't, or once the fork has been replayed.
    forked: Option<Nanos>,
    /// The times of execs that are still to be replayed.
    execs: &'a [Nanos],
    /// The process's own mappings that are still to be replayed.
    regions: &'a [MappedRegion],
    /// What is mapped in the process now. Children share it, so clones are cheap.
    mapped: SharedRanges<VisiblePart>,
}

impl ParentReplay<'_> {
    /// Replays the process's fork, execs and mappings up to and including the time `until`. `inherited` is what its own
    /// parent had mapped when it forked the process; `None` if that is unknown. `ranks` balances the trees in which
    /// mappings are stored.
    fn advance(&mut self, until: Nanos, inherited: Option<&SharedRanges<VisiblePart>>, ranks: &mut Ranks) {
        loop {
            let exec = self.execs.first().copied();
            let next_mapping = self.regions.first().map(|region| region.from);
            let Some(next) = [self.forked, exec, next_mapping].into_iter().flatten().min() else { return };
            // Later events are replayed when `advance` is called for a later fork.
            if next > until {
                return;
            }
            // At the same time, a fork comes before an exec, and an exec before a mapping.
            if self.forked == Some(next) {
                self.replay_fork(inherited, ranks);
            } else if exec == Some(next) {
                self.replay_exec();
            } else {
                self.replay_mapping(ranks);
            }
        }
    }

    /// Adds the mappings inherited from the parent. Where the process has mapped something itself, its own mapping
    /// stays.
    fn replay_fork(&mut self, inherited: Option<&SharedRanges<VisiblePart>>, ranks: &mut Ranks) {
        self.forked = None;
        let own = std::mem::replace(&mut self.mapped, inherited.cloned().unwrap_or_default());
        self.mapped.overlay(&own, ranks);
    }

    /// Replays the next exec: unmaps everything.
    fn replay_exec(&mut self) {
        self.execs = &self.execs[1..];
        self.mapped = SharedRanges::default();
    }

    /// Maps the next region. The time when the region ended isn't needed: another region or an exec ended it, and is
    /// replayed, too.
    fn replay_mapping(&mut self, ranks: &mut Ranks) {
        let MappedRegion { start, end, from, dso, offset, is_remapped, .. } = self.regions[0];
        self.regions = &self.regions[1..];
        self.mapped.insert(start..end, VisiblePart { from, dso, offset, is_remapped }, ranks);
    }
}

impl MappedRegion {
    /// The region of `entry`, a visible part of a mapping. It lasts from when the mapping was made to `until`.
    fn new(entry: Entry<VisiblePart>, until: Nanos) -> Self {
        let VisiblePart { from, dso, is_remapped, .. } = entry.value;
        Self { start: entry.start, end: entry.end, from, until, dso, offset: entry.offset(), is_remapped }
    }
}

impl Span for MappedRegion {
    fn range(&self) -> Range<u64> {
        self.start..self.end
    }
}

impl Space {
    fn new(mut regions: Vec<MappedRegion>) -> Self {
        regions.sort_unstable_by_key(|region| (region.from, region.start));
        Self { regions: OrderedRanges::for_addresses(regions) }
    }

    /// What was mapped at `addr` at `time`; `None` if nothing was.
    #[inline]
    fn find(&self, addr: Addr, time: Nanos) -> Option<MappedPlace> {
        // Regions are sorted by the time when they began, and at most one of them is at an address at a time. So only
        // one can be the answer: of those that had begun by `time`, the last one that contains the address.
        let begun = self.regions.position(|region| region.from <= time);
        let region = self.regions.as_slice()[self.regions.last_at(addr.0, begun)?];
        if region.until <= time {
            return None;
        }
        let offset = region.offset.wrapping_add(addr.0 - region.start);
        let MappedRegion { dso, from: mapped, until, is_remapped, .. } = region;
        Some(MappedPlace { dso, offset, mapped, until, is_remapped })
    }

    /// The longest period around `time` in which no mapping of this address space begins or ends at `addr`.
    fn quiet_period(&self, addr: Addr, time: Nanos) -> Range<Nanos> {
        let mut quiet = QuietPeriod::new(time);
        // Only the last region at `addr` that had begun by `time` and the first one that begins later can limit the
        // period.
        let begun = self.regions.position(|region| region.from <= time);
        let last = self.regions.last_at(addr.0, begun);
        let next = self.regions.first_at(addr.0, begun);
        for index in last.into_iter().chain(next) {
            let region = &self.regions.as_slice()[index];
            quiet.cut(region.from..region.until);
        }
        quiet.range
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::process::KernelSymbol;

    fn mapping(time: u64, addr: u64, len: u64, path: &str) -> Mapping {
        Mapping {
            time: Nanos(time),
            addr: Addr(addr),
            len,
            pgoff: 0x1000,
            path: path.into(),
            build_id: None,
            file: None,
            executable: true,
            cpumode: CpuMode::User,
            offset: 0,
        }
    }

    fn processes(list: Vec<(i32, Process)>) -> Processes {
        let by_pid = list.into_iter().map(|(pid, process)| (Pid(pid), process)).collect();
        Processes { by_pid, ..Processes::default() }
    }

    fn at(spaces: &AddressSpaces, pid: i32, addr: u64, time: u64) -> Option<(String, u64)> {
        let place = spaces.lookup(Pid(pid), Addr(addr), Nanos(time), CpuMode::User)?;
        let path = String::from_utf8_lossy(&spaces.dsos().get(place.dso).path).into_owned();
        Some((path, place.offset))
    }

    /// Checks that a lookup gives the same answer for as long as the first lookup says.
    fn assert_lasting(spaces: &AddressSpaces, addrs: &[u64], times: u64) {
        let mode = CpuMode::User;
        for (pid, &addr) in (0..=8).flat_map(|pid| addrs.iter().map(move |addr| (Pid(pid), addr))) {
            for at in 0..times {
                let Lasting { answer, holds } = spaces.user_lasting(pid, Addr(addr), Nanos(at));
                assert!(holds.contains(&Nanos(at)));
                let what = |place: MappedPlace| (place.dso, place.offset, place.mapped);
                for other in [holds.start.0, at, holds.end.0.min(times) - 1] {
                    let again = spaces.lookup(pid, Addr(addr), Nanos(other), mode);
                    assert_eq!(again.map(what), answer.map(what), "{pid}, {addr:#x}, {at} as {other}");
                }
            }
        }
    }

    fn hit(path: &str, offset: u64) -> Option<(String, u64)> {
        Some((path.to_owned(), offset))
    }

    #[test]
    fn while_a_program_is_executed_addresses_are_those_of_the_one_before() {
        let mappings = vec![
            mapping(0, 0x1000, 0x1000, "/old"),
            mapping(0, 0x8000, 0x1000, "/libc"),
            mapping(20, 0x1000, 0x1000, "/new"),
            mapping(30, 0x7000, 0x1000, "[vdso]"),
            mapping(40, 0x9000, 0x1000, "/lib"),
        ];
        let first = Process { mappings, execs: vec![Nanos(10)], ..Process::default() };
        // This child inherited the mapping of `/libc` from its parent.
        let static_program = vec![mapping(20, 0x1000, 0x1000, "/new"), mapping(30, 0x7000, 0x1000, "[vdso]")];
        let mappings = [&static_program[..], &[mapping(40, 0x9000, 0x1000, "/lib")]].concat();
        let forked = Some((Pid(7), Nanos(5)));
        // A program that maps nothing itself runs after a while.
        let alone = Process { mappings: static_program, execs: vec![Nanos(10)], forked, ..Process::default() };
        let child = Process { mappings, execs: vec![Nanos(10)], forked, ..Process::default() };
        // Without a vDSO mapping, it is unknown how long replacing the program takes.
        let mappings = vec![mapping(0, 0x8000, 0x1000, "/libc"), mapping(20, 0x1000, 0x1000, "/new")];
        let other = Process { mappings, execs: vec![Nanos(10)], ..Process::default() };
        let spaces = AddressSpaces::new(&processes(vec![(7, first), (8, child), (6, other), (5, alone)]));
        for (time, expected) in [(39, hit("/libc", 0x1010)), (10_000_029, hit("/libc", 0x1010)), (10_000_030, None)] {
            assert_eq!(at(&spaces, 5, 0x8010, time), expected, "{time}");
        }
        for pid in [7, 8] {
            assert_eq!(at(&spaces, pid, 0x8010, 9), hit("/libc", 0x1010), "{pid}");
            assert_eq!(at(&spaces, pid, 0x8010, 10), hit("/libc", 0x1010), "{pid}");
            assert_eq!(at(&spaces, pid, 0x8010, 39), hit("/libc", 0x1010), "{pid}");
            assert_eq!(at(&spaces, pid, 0x1010, 29), hit("/new", 0x1010), "{pid}");
            assert_eq!(at(&spaces, pid, 0x8010, 40), None, "{pid}");
        }
        assert_eq!(at(&spaces, 6, 0x8010, 10), None);
        assert_lasting(&spaces, &[0x1010, 0x7010, 0x8010], 50);
    }

    #[test]
    fn a_later_mapping_cuts_an_older_one() {
        let mappings = vec![mapping(0, 0x1000, 0x9000, "/a"), mapping(5, 0x3000, 0x1000, "/b")];
        let spaces = AddressSpaces::new(&processes(vec![(7, Process { mappings, ..Process::default() })]));
        assert_eq!(at(&spaces, 7, 0x3000, 4), hit("/a", 0x3000));
        assert_eq!(at(&spaces, 7, 0x3000, 5), hit("/b", 0x1000));
        assert_eq!(at(&spaces, 7, 0x2fff, 9), hit("/a", 0x2fff));
        assert_eq!(at(&spaces, 7, 0x4001, 9), hit("/a", 0x4001));
        assert_eq!(at(&spaces, 7, 0xa000, 9), None);
        assert_eq!(at(&spaces, 8, 0x3000, 9), None);
        assert_lasting(&spaces, &[0xfff, 0x1000, 0x2fff, 0x3000, 0x4000, 0xa000], 12);
    }

    #[test]
    fn a_child_has_its_parents_maps_until_it_execs() {
        let parent = Process {
            mappings: vec![mapping(0, 0x1000, 0x1000, "/old"), mapping(20, 0x1000, 0x1000, "/new")],
            ..Process::default()
        };
        let child = Process {
            forked: Some((Pid(1), Nanos(10))),
            execs: vec![Nanos(30)],
            mappings: vec![mapping(15, 0x5000, 0x1000, "/own"), mapping(31, 0x8000, 0x1000, "/sh")],
            ..Process::default()
        };
        let spaces = AddressSpaces::new(&processes(vec![(1, parent), (2, child)]));
        assert_eq!(at(&spaces, 1, 0x1000, 25), hit("/new", 0x1000));
        assert_eq!(at(&spaces, 2, 0x1000, 25), hit("/old", 0x1000));
        assert_eq!(at(&spaces, 2, 0x5000, 25), hit("/own", 0x1000));
        assert_eq!(at(&spaces, 2, 0x5000, 35), None);
        assert_eq!(at(&spaces, 2, 0x1000, 35), None);
        assert_eq!(at(&spaces, 2, 0x8000, 35), hit("/sh", 0x1000));
        assert_lasting(&spaces, &[0x1000, 0x5000, 0x8000], 40);
        assert_eq!(spaces.user_lasting(Pid(2), Addr(0x1000), Nanos(25)).holds, Nanos(10)..Nanos(30));
    }

    #[test]
    fn processes_that_fork_each_other_end() {
        let of = |parent| Process { forked: Some((Pid(parent), Nanos(3))), ..Process::default() };
        let spaces = AddressSpaces::new(&processes(vec![(1, of(2)), (2, of(1))]));
        assert_eq!(at(&spaces, 1, 0x1000, 25), None);
    }

    #[test]
    fn growing_anonymous_memory_is_one_region_and_jit_files_lie_in_it() {
        let mut mappings = vec![mapping(0, 0x10_0000, 0x10_0000, "//anon")];
        for n in 0..100 {
            mappings.push(mapping(n, 0x10_0000 + n * 0x100, 0x100, "/tmp/jitted-1.so"));
        }
        mappings.push(mapping(200, 0x18_0000, 0x8_0000, "//anon"));
        let spaces = AddressSpaces::new(&processes(vec![(1, Process { mappings, ..Process::default() })]));
        assert_eq!(at(&spaces, 1, 0x10_0101, 300), hit("/tmp/jitted-1.so", 0x1001));
        assert_eq!(at(&spaces, 1, 0x10_6400, 300).map(|hit| hit.0), Some("//anon".into()));
        assert_eq!(
            spaces.spaces[&(Pid(1), Realm::User)].regions.as_slice().iter().filter(|r| r.from.0 == 200).count(),
            0
        );
    }

    fn mapped_at(time: u64, addr: u64, len: u64, pgoff: u64, path: &str) -> Mapping {
        Mapping { pgoff, ..mapping(time, addr, len, path) }
    }

    fn spaces_of(mappings: Vec<Mapping>, execs: Vec<Nanos>) -> AddressSpaces {
        AddressSpaces::new(&processes(vec![(1, Process { mappings, execs, ..Process::default() })]))
    }

    #[test]
    fn text_that_its_program_moves_to_memory_stays_the_files() {
        let program = mapped_at(1, 0x40_0000, 0x80_0000, 0x1000, "/bin/node");
        // First two parts of the code are moved, then both at once. Memory that extends beyond the code is something
        // else.
        let moved = [(2, 0x40_1000, 0x1000), (3, 0x40_2000, 0x3000), (4, 0x40_1000, 0x4000), (5, 0xbf_f000, 0x2000)];
        let anon = moved.map(|(time, addr, len)| mapping(time, addr, len, "//anon"));
        let mappings = [vec![program], anon.to_vec()].concat();
        let spaces = spaces_of(mappings.clone(), Vec::new());
        assert_eq!(at(&spaces, 1, 0x40_1010, 9), hit("/bin/node", 0x2010));
        assert_eq!(at(&spaces, 1, 0x40_4fff, 9), hit("/bin/node", 0x5fff));
        assert_eq!(at(&spaces, 1, 0xbf_f000, 9).map(|hit| hit.0), Some("//anon".into()));
        // After an exec, anonymous memory no longer counts as code of the previous program's file.
        let spaces = spaces_of(mappings, vec![Nanos(2)]);
        assert_eq!(at(&spaces, 1, 0x40_1010, 9).map(|hit| hit.0), Some("//anon".into()));
    }

    #[test]
    fn text_that_its_program_moves_to_a_deleted_file_stays_the_programs() {
        let program = mapped_at(1, 0x40_0000, 0x9000, 0, "/bin/p");
        let library = mapped_at(1, 0x7000_0000, 0x9000, 0, "/lib/l.so");
        for (path, addr, len, stays) in [
            ("/dev/hugepages/libhugetlbfs.tmp.x (deleted)", 0x40_0000, 0x20_0000, true),
            ("/tmp/x (deleted)", 0x40_1000, 0x8000, true),
            // More than the last huge page, or not in whole huge pages.
            ("/dev/hugepages/x (deleted)", 0x40_0000, 0x40_0000, false),
            ("/tmp/x (deleted)", 0x40_1000, 0x9000, false),
            ("/tmp/x", 0x40_1000, 0x1000, false),
            // A library may have been unmapped, which isn't recorded.
            ("/tmp/x (deleted)", 0x7000_1000, 0x1000, false),
        ] {
            let moved = mapping(2, addr, len, path);
            let spaces = spaces_of(vec![program.clone(), library.clone(), moved], Vec::new());
            let found = at(&spaces, 1, addr + 0x10, 9).map(|hit| hit.0);
            let before = if addr < 0x7000_0000 { "/bin/p" } else { "/lib/l.so" };
            assert_eq!(found, Some((if stays { before } else { path }).into()), "{path} at {addr:#x}, {len:#x} bytes");
        }
    }

    #[test]
    fn memory_over_a_library_is_its_text_in_whole_huge_pages_only() {
        let program = mapped_at(1, 0x40_0000, 0x1000, 0, "/bin/p");
        let library = mapped_at(1, 0x7000_0000, 0x60_0000, 0x1000, "/lib/l.so");
        let huge = mapping(2, 0x7020_0000, 0x20_0000, "//anon");
        let small = mapping(3, 0x7040_0000, 0x1000, "//anon");
        let spaces = spaces_of(vec![program, library, huge, small], Vec::new());
        assert_eq!(at(&spaces, 1, 0x7020_0010, 9), hit("/lib/l.so", 0x20_1010));
        assert!(spaces.lookup(Pid(1), Addr(0x7020_0010), Nanos(9), CpuMode::User).unwrap().is_remapped);
        assert_eq!(at(&spaces, 1, 0x7040_0010, 9).map(|hit| hit.0), Some("//anon".into()));
    }

    /// `perf record -d` and `--call-graph dwarf` also record mappings without code, such as that of /etc/ld.so.cache.
    #[test]
    fn memory_over_data_or_over_remains_of_a_library_is_not_its_text() {
        let program = mapped_at(1, 0x40_0000, 0x1000, 0, "/bin/p");
        let text = mapped_at(2, 0x7000_0000, 0xb000, 0, "/lib/l.so");
        let huge_text = mapped_at(2, 0x7000_0000, 0x40_0000, 0, "/lib/l.so");
        let as_data = |mapping: &Mapping| Mapping { executable: false, ..mapping.clone() };
        let over_the_end = mapping(3, 0x7000_1000, 0xa000, "//anon");
        let over_the_start = mapping(3, 0x6fff_f000, 0x2000, "//anon");
        for (before, addr, len, is_text) in [
            (vec![text.clone()], 0x7000_0000, 0xb000, true),
            (vec![as_data(&text)], 0x7000_0000, 0xb000, false),
            (vec![text.clone()], 0x7000_0000, 0x1000, false),
            (vec![text.clone(), over_the_end.clone()], 0x7000_0000, 0x1000, false),
            (vec![as_data(&text), over_the_end], 0x7000_0000, 0x1000, false),
            (vec![text.clone(), over_the_start], 0x7000_1000, 0xa000, false),
            (vec![huge_text.clone()], 0x7000_0000, 0x20_0000, true),
            (vec![as_data(&huge_text)], 0x7000_0000, 0x20_0000, false),
            // A library is first mapped as data and then, at the same place, its text as code.
            (vec![as_data(&huge_text), text.clone()], 0x7000_0000, 0xb000, true),
        ] {
            let case = format!("{} mappings, then {len:#x} bytes at {addr:#x}", before.len());
            let mappings = [vec![program.clone()], before, vec![mapping(4, addr, len, "//anon")]].concat();
            let found = at(&spaces_of(mappings, Vec::new()), 1, addr + 0x10, 9).map(|hit| hit.0);
            assert_eq!(found, Some(if is_text { "/lib/l.so" } else { "//anon" }.into()), "{case}");
        }
    }

    /// With `perf record -d`, a loader's first mapping of the whole program is recorded, and so is the memory for zeroed
    /// data (`.bss`), which is mapped over its end.
    #[test]
    fn memory_over_a_programs_data_is_not_its_text() {
        let whole = Mapping { executable: false, ..mapped_at(1, 0x40_0000, 0x9000, 0, "/bin/p") };
        let text = mapped_at(2, 0x40_1000, 0x2000, 0x1000, "/bin/p");
        let more_text = mapped_at(2, 0x40_3000, 0x2000, 0x3000, "/bin/p");
        for (addr, len, is_text) in [
            (0x40_7000, 0x2000, false),
            (0x40_0000, 0x1000, false),
            (0x40_4000, 0x2000, false),
            (0x40_1000, 0x2000, true),
            (0x40_2000, 0x1000, true),
            (0x40_1000, 0x4000, true),
        ] {
            let memory = mapping(3, addr, len, "//anon");
            let spaces = spaces_of(vec![whole.clone(), text.clone(), more_text.clone(), memory], Vec::new());
            let found = at(&spaces, 1, addr + 0x10, 9).map(|hit| hit.0);
            assert_eq!(found, Some(if is_text { "/bin/p" } else { "//anon" }.into()), "{len:#x} bytes at {addr:#x}");
        }
    }

    #[test]
    fn memory_that_fills_a_hole_in_a_files_text_is_that_text() {
        let before = mapped_at(0, 0x40_0000, 0x1000, 0x1000, "/bin/node");
        let memory = mapping(0, 0x40_1000, 0x2000, "//anon");
        let behind = mapped_at(0, 0x40_3000, 0x1000, 0x4000, "/bin/node");
        let other = mapped_at(0, 0x40_3000, 0x1000, 0x3000, "/bin/node");
        let spaces = spaces_of(vec![before.clone(), memory.clone(), behind], Vec::new());
        assert_eq!(at(&spaces, 1, 0x40_2010, 9), hit("/bin/node", 0x3010));
        let spaces = spaces_of(vec![before, memory, other], Vec::new());
        assert_eq!(at(&spaces, 1, 0x40_2010, 9).map(|hit| hit.0), Some("//anon".into()));
    }

    #[test]
    fn a_file_that_is_mapped_again_is_the_same_mapping() {
        let first = mapped_at(1, 0x1000, 0x2000, 0x5000, "/tmp/code (deleted)");
        let again = mapped_at(7, 0x2000, 0x1000, 0x6000, "/tmp/code (deleted)");
        let elsewhere = mapped_at(8, 0x2000, 0x1000, 0x7000, "/tmp/code (deleted)");
        let spaces = spaces_of(vec![first.clone(), again], Vec::new());
        let mapped =
            |spaces: &AddressSpaces| spaces.lookup(Pid(1), Addr(0x2010), Nanos(9), CpuMode::User).unwrap().mapped;
        assert_eq!(mapped(&spaces), Nanos(1));
        assert_eq!(mapped(&spaces_of(vec![first, elsewhere], Vec::new())), Nanos(8));
    }

    #[test]
    fn programs_of_32_bits_have_a_vdso_of_their_own() {
        let wide = mapping(0, 0x7fff_0000_0000, 0x1000, "[vdso]");
        let narrow = mapping(0, 0xf7f0_0000, 0x1000, "[vdso]");
        let list = [(1, wide), (2, narrow)];
        let process = |mapping| Process { mappings: vec![mapping], ..Process::default() };
        let spaces = AddressSpaces::new(&processes(list.map(|(pid, mapping)| (pid, process(mapping))).into()));
        let kinds: Vec<DsoKind> = spaces.dsos().iter().map(|(_, dso)| dso.kind).collect();
        assert_eq!(kinds, [DsoKind::Vdso, DsoKind::Vdso32]);
    }

    /// The mapping of a kernel, as perf records it.
    fn kernel_mapping() -> Mapping {
        Mapping {
            pgoff: 0xffff_0000,
            cpumode: CpuMode::Kernel,
            ..mapping(0, 0xffff_0000, 0x8000, "[kernel.kallsyms]_text")
        }
    }

    #[test]
    fn the_kernels_initialization_code_lies_beyond_its_mapping() {
        let kernel = kernel_mapping();
        let module = Mapping { cpumode: CpuMode::Kernel, ..mapping(0, 0x1_0010_0000, 0x8000, "[ext4]") };
        let found = |mappings: &[&Mapping], addr| {
            let mappings = mappings.iter().map(|mapping| (*mapping).clone()).collect();
            let all = processes(vec![(-1, Process { mappings, ..Process::default() })]);
            let spaces = AddressSpaces::new(&all);
            let place = spaces.lookup(Pid(77), Addr(addr), Nanos(1), CpuMode::Kernel)?;
            Some((spaces.dsos().get(place.dso).kind, place.offset))
        };
        let both = [&kernel, &module];
        assert_eq!(found(&both, 0x1_0000_0000), Some((DsoKind::Kernel, 0x1_0000_0000)));
        assert_eq!(found(&both, 0x1_0010_0000), Some((DsoKind::Module, 0x1_0010_0000)));
        assert_eq!(found(&both, 0x1_0010_8000), None, "after the first module");
        assert_eq!(found(&[&kernel], 0x1_0010_8000), Some((DsoKind::Kernel, 0x1_0010_8000)));
        assert_eq!(found(&[&kernel], 0x1_0800_0000), None, "too far away");
        assert_eq!(found(&both, 0xfffe_0000), None, "before the kernel");
    }

    #[test]
    fn the_kernel_is_everybodys_and_its_programs_come_and_go() {
        let mut all = processes(vec![(-1, Process { mappings: vec![kernel_mapping()], ..Process::default() })]);
        let symbol = |time, unregistered| KernelSymbol {
            time: Nanos(time),
            addr: Addr(0xffff_1000),
            len: 0x100,
            name: b"bpf_prog_1".into(),
            unregistered,
            bpf: None,
        };
        all.kernel_symbols = vec![symbol(5, false), symbol(9, true)];
        let spaces = AddressSpaces::new(&all);
        let kind = |time| {
            let place = spaces.lookup(Pid(77), Addr(0xffff_1001), Nanos(time), CpuMode::Kernel)?;
            Some((spaces.dsos().get(place.dso).kind, place.offset))
        };
        assert_eq!(kind(1), Some((DsoKind::Kernel, 0xffff_1001)));
        assert_eq!(kind(5), Some((DsoKind::KernelSymbol(None), 1)));
        assert_eq!(kind(9), None);
    }
}
