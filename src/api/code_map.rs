//! JIT code by process, address and time.

use super::profile::Frame;
use super::stored_lines::{PlacedCall, StoredLines};
use crate::error::{Error, ErrorKind, Result, Warning, Warnings};
use crate::io::{self, InPath};
use crate::jit::jitdump::{self, JitDump};
use crate::jit::{self, GivenFile, Kind, SourceOptions, SourceState};
use crate::model::code::{Code, Lines, OriginId};
use crate::model::process::{CpuMode, Process, Processes, TscConversion};
use crate::model::stacks::FrameKind;
use crate::model::tier::Tier;
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use crate::parallel::Pool;
use crate::runtimes::{RuntimeSet, tier};
use crate::symbolize::address_space::AddressSpaces;
use crate::symbolize::code_map::{self, CodeId, CodeList, Hit};
use crate::symbolize::symbolizer::Symbolizer;
use std::io::Read;
use std::path::{Path, PathBuf};

/// JIT code by process, address and time: what a jitdump, a perf map, a runtime's log or the caller reports.
///
/// It has copies of what it needs, so the files and bytes that it was made from may change or be removed afterwards. It
/// can be shared between threads.
///
/// Times are on the clock of the sources. Runtimes should use `CLOCK_MONOTONIC`, in nanoseconds. If a jitdump's header
/// says that its times are values of the CPU's time-stamp counter, they aren't converted. Code is in memory from the
/// time at which it was loaded until other code overwrites it. Entries of perf maps have no time and count at any time,
/// but only where no code with a time is known at that time.
///
/// The times of a recording are on the clock of jitdumps if it was made with `perf record -k mono`.
/// [`load`](crate::load()) converts times where it can; a code map doesn't.
///
/// ```
/// use jitgraft::{Addr, CodeMap, Nanos, Pid};
///
/// let bytes = std::fs::read("src/api/examples/jit-77.dump")?;
/// let code_map = CodeMap::from_jitdump(&bytes)?;
///
/// let name_at = |time| {
///     let hit = code_map.lookup(Pid(77), Addr(0x1_0010), Some(Nanos(time)))?;
///     Some(format!("{}+{:#x}", hit.frame(), hit.offset()))
/// };
/// assert_eq!(name_at(50), None); // before any code was loaded there
/// assert_eq!(name_at(150).as_deref(), Some("first+0x10"));
/// assert_eq!(name_at(250).as_deref(), Some("second+0x10"));
///
/// let hit = code_map.lookup(Pid(77), Addr(0x1_0010), Some(Nanos(150))).unwrap();
/// assert_eq!((hit.frame().file, hit.frame().line), (Some(&b"first.js"[..]), Some(12)));
/// // A return address is the one after a call, which may be the last instruction of a function:
/// assert!(code_map.lookup_return_address(Pid(77), Addr(0x1_0040), None).is_some());
/// # fn is_shared<T: Send + Sync + 'static>(_: &T) {}
/// # is_shared(&code_map);
/// # Ok::<(), jitgraft::Error>(())
/// ```
///
/// # Which look-up for which frame
///
/// The innermost frame of a stack is at the instruction that was to run next, and so is the first one outside of the
/// kernel's frames: [`lookup`](Self::lookup). All other frames are at return addresses:
/// [`lookup_return_address`](Self::lookup_return_address).
///
/// ```
/// use jitgraft::{CodeMap, FrameKind, LoadOptions, for_each_sample};
///
/// let code_map = CodeMap::from_files(["src/api/examples/jit-77.dump"])?;
/// // Inlined calls would be more frames at the same address.
/// let options = LoadOptions::new().addresses(true).inlined_calls(false);
/// let mut named = Vec::new();
/// for_each_sample("src/api/examples/perf.data", &options, |sample| {
///     let Some(pid) = sample.pid else { return Ok(()) };
///     let mut is_return_address = false;
///     for frame in sample.frames() {
///         let Some(address) = frame.address else { continue };
///         let hit = if is_return_address {
///             code_map.lookup_return_address(pid, address, sample.time)
///         } else {
///             code_map.lookup(pid, address, sample.time)
///         };
///         named.extend(hit.map(|hit| format!("{}+{:#x}", hit.frame(), hit.offset())));
///         is_return_address = frame.kind != FrameKind::Kernel;
///     }
///     Ok(())
/// })?;
/// assert_eq!(named[..4], ["first+0x10", "main+0x20", "second+0x10", "main+0x20"]);
/// # Ok::<(), jitgraft::Error>(())
/// ```
///
/// # Processes in containers
///
/// A runtime in a container writes the process ID that it has there into its jitdump and into the names of its files:
/// often 1. Recordings have the ID outside. The map can't know that these are the same process, so state it:
/// [`CodeMapBuilder::jitdump_of`] and [`perf_map_bytes`](CodeMapBuilder::perf_map_bytes) take the ID that you will look
/// up. `load` finds it out from the recording.
#[derive(Debug)]
pub struct CodeMap {
    /// Finds code by process, address and time. It contains no lines (they are in `lines`) and no names (they are in
    /// `names`), except for those endings of names on which the search itself depends.
    index: code_map::CodeMap<'static>,
    /// The names of all code, one after the other.
    names: Vec<u8>,
    /// For each piece of code, where its name ends in `names`.
    name_ends: Vec<usize>,
    /// For each piece of code, its source lines.
    lines: Vec<Option<Box<StoredLines>>>,
    warnings: Vec<Warning>,
}

/// The end of the name that Erlang gives to the header before a function. [`Symbolizer::locate`] treats return
/// addresses directly after such a header in its own way, so the index keeps this part of names.
const HEADER_SUFFIX: &[u8] = b"-CodeInfoPrologue";

impl CodeMap {
    /// Reads a jitdump. Its header says which process it is of. Fails if the header is damaged; records that are
    /// damaged are left out and counted in [`warnings`](Self::warnings).
    pub fn from_jitdump(bytes: &[u8]) -> Result<Self> {
        Self::builder().jitdump_bytes(bytes)?.build()
    }

    /// Reads a perf map of this process.
    pub fn from_perf_map(bytes: &[u8], pid: Pid) -> Result<Self> {
        Self::builder().perf_map_bytes(bytes, pid).build()
    }

    /// Reads jitdumps and perf maps, which are told apart by their contents. The name of a perf map, `perf-PID.map`,
    /// says which process it is of, and so does the header of a jitdump.
    ///
    /// Fails with [`ErrorKind::Untrusted`] if a file belongs neither to root nor to the current user. If you trust it
    /// nevertheless, read it yourself and pass its bytes.
    pub fn from_files<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self> {
        let mut builder = Self::builder();
        for path in paths {
            builder = builder.file(path.as_ref())?;
        }
        builder.build()
    }

    /// Starts a map of sources of all kinds, to be added one by one.
    pub fn builder() -> CodeMapBuilder {
        CodeMapBuilder::default()
    }

    /// The code at an address of a process at a time; `None` if none is known there. Without a time, the last code that
    /// was at the address.
    pub fn lookup(&self, pid: Pid, address: Addr, time: Option<Nanos>) -> Option<CodeHit<'_>> {
        self.look_up_frame(pid, FrameAddr::Ip(address), time)
    }

    /// Like [`lookup`](Self::lookup), for the address to which a call returns: finds the code that contains the call.
    pub fn lookup_return_address(&self, pid: Pid, address: Addr, time: Option<Nanos>) -> Option<CodeHit<'_>> {
        self.look_up_frame(pid, FrameAddr::Return(address), time)
    }

    /// What was skipped or suspicious in the sources. Messages may name [flags of the
    /// program](Error#flags-in-messages).
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The number of pieces of code, including those that are overwritten.
    pub fn len(&self) -> usize {
        self.name_ends.len()
    }

    /// True if there is no code.
    pub fn is_empty(&self) -> bool {
        self.name_ends.is_empty()
    }

    /// The processes that have loaded code, in ascending order. Children that only inherited code aren't included.
    pub fn processes(&self) -> impl Iterator<Item = Pid> + '_ {
        self.index.pids()
    }

    fn look_up_frame(&self, pid: Pid, frame: FrameAddr, time: Option<Nanos>) -> Option<CodeHit<'_>> {
        let symbolizer = Symbolizer { spaces: &AddressSpaces::default(), codes: &self.index };
        let located = symbolizer.locate(pid, frame, time, CpuMode::User).answer;
        let hit = located.code?;
        let back = frame.raw().0 - located.addr.0;
        Some(CodeHit { map: self, hit, back })
    }

    /// Makes a map from one of the internal type. The internal map borrows names and lines from its sources, so this
    /// copies them.
    fn from_borrowed(map: &code_map::CodeMap<'_>, warnings: &Warnings) -> Self {
        let (mut names, mut name_ends, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        for id in 0..map.code_count() {
            let code = map.code(CodeId(id as u32));
            names.extend_from_slice(code.name);
            name_ends.push(names.len());
            lines.push(StoredLines::copy(&code.lines).map(Box::new));
        }
        let index = map.with_code(|id| {
            let Code { name, addr, size, origin, .. } = map.code(id);
            // Names and lines are stored outside of the index (`names`, `lines`). It only keeps the ending of names on
            // which the search depends.
            let name = if name.ends_with(HEADER_SUFFIX) { HEADER_SUFFIX } else { b"" };
            Code { name, addr, size, bytes: None, lines: Lines::default(), unwind: None, origin }
        });
        Self { index, names, name_ends, lines, warnings: warnings.iter().cloned().collect() }
    }

    /// Makes a map of the internal type, which borrows its names and lines from this one.
    pub(super) fn to_borrowed(&self) -> code_map::CodeMap<'_> {
        self.index.with_code(|id| {
            let name = self.name(id);
            Code { name, lines: self.lines(id), ..self.index.code(id) }
        })
    }

    fn name(&self, id: CodeId) -> &[u8] {
        let index = id.0 as usize;
        let start = index.checked_sub(1).map_or(0, |previous| self.name_ends[previous]);
        &self.names[start..self.name_ends[index]]
    }

    fn lines(&self, id: CodeId) -> Lines<'_> {
        self.lines[id.0 as usize].as_ref().map_or_else(Lines::default, |lines| lines.to_lines(self.name(id)))
    }
}

/// The code at an address ([`CodeMap::lookup`]).
#[derive(Debug, Clone, Copy)]
pub struct CodeHit<'a> {
    map: &'a CodeMap,
    hit: Hit,
    /// How many bytes the looked-up address is before the one that the caller passed: 1 for most return addresses,
    /// since the call is before them.
    back: u64,
}

impl<'a> CodeHit<'a> {
    /// The name that the runtime gave the code. It need not be UTF-8.
    pub fn name(&self) -> &'a [u8] {
        self.map.name(self.hit.code)
    }

    /// The offset of the address from the start of the code, in bytes. For a return address, it is that of the return
    /// address itself, which equals [`size`](Self::size) if the call is the last instruction.
    pub fn offset(&self) -> u64 {
        self.hit.offset + self.back
    }

    /// The address at which the code was loaded. If the runtime moved the code later, it isn't there any more.
    pub fn loaded_at(&self) -> Addr {
        self.map.index.code(self.hit.code).addr
    }

    /// The size of the code, in bytes.
    pub fn size(&self) -> u64 {
        self.map.index.code(self.hit.code).size
    }

    /// True if the code has a time, so that other code may have been at the address before or after it. False for an
    /// entry of a perf map.
    pub fn is_timed(&self) -> bool {
        self.hit.kind.is_timed()
    }

    /// The compiler of the runtime, or its interpreter. `None` if the name doesn't show it. For example, V8's names do:
    /// `JS:*parse` is [`Tier::Optimized`].
    pub fn tier(&self) -> Option<Tier> {
        tier(self.name(), RuntimeSet::default())
    }

    /// The function that was compiled, with its name and tier, and with the source file and line as far as they are
    /// known. If a call was inlined at the address, the line is that of the call; see [`frames`](Self::frames). For a
    /// return address, the line is that of the call that returns there. The frame has no module and no address.
    pub fn frame(&self) -> Frame<'a> {
        // The outermost call, which comes last, is the function that was compiled.
        let calls = self.calls();
        self.frame_of(calls.last())
    }

    /// The functions at the address: inlined calls, from the innermost outwards, then the function that was compiled.
    pub fn frames(&self) -> Vec<Frame<'a>> {
        let calls = self.calls();
        if calls.is_empty() {
            vec![self.frame_of(None)]
        } else {
            calls.iter().map(|call| self.frame_of(Some(call))).collect()
        }
    }

    /// The functions at the address with their source lines, from the innermost outwards. Empty if no line is known.
    fn calls(&self) -> Vec<PlacedCall<'a>> {
        match &self.map.lines[self.hit.code.0 as usize] {
            Some(lines) => lines.calls_at(self.name(), self.hit.offset),
            None => Vec::new(),
        }
    }

    /// The frame of one of the functions at the address: `call` is the function that was compiled or an inlined one,
    /// with its source line. If no line is known at the address, `call` is `None`, which stands for the function that
    /// was compiled.
    fn frame_of(&self, call: Option<&PlacedCall<'a>>) -> Frame<'a> {
        let name = call.and_then(|call| call.inlined).unwrap_or(self.name());
        Frame {
            file: call.map(|call| call.file).filter(|file| !file.is_empty()),
            line: call.map(|call| call.line).filter(|line| *line > 0),
            tier: self.tier(),
            ..Frame::new(name).with_kind(FrameKind::Jit)
        }
    }
}

/// A function that a JIT compiler has put into memory, as an agent in the process sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct JitFunction<'a> {
    /// The process.
    pub pid: Pid,
    /// The address of the code.
    pub address: Addr,
    /// The size of the code in bytes.
    pub size: u64,
    /// The function's name.
    pub name: &'a [u8],
    /// When the code was loaded; `None` if unknown.
    pub loaded: Option<Nanos>,
    /// When the code was unloaded; `None` if it is still loaded. Ignored if `loaded` is `None`.
    pub unloaded: Option<Nanos>,
}

impl<'a> JitFunction<'a> {
    /// A function at an address, loaded at an unknown time.
    pub fn new(pid: Pid, address: Addr, size: u64, name: &'a [u8]) -> Self {
        Self { pid, address, size, name, loaded: None, unloaded: None }
    }

    /// Sets when the code was loaded.
    #[must_use]
    pub fn loaded(self, time: Nanos) -> Self {
        Self { loaded: Some(time), ..self }
    }

    /// Sets when the code was unloaded.
    #[must_use]
    pub fn unloaded(self, time: Nanos) -> Self {
        Self { unloaded: Some(time), ..self }
    }
}

/// Makes a [`CodeMap`] of several sources.
///
/// If two sources describe the same address at the same time, the later one wins.
///
/// ```
/// use jitgraft::{Addr, CodeMap, JitFunction, Nanos, Pid};
///
/// let code_map = CodeMap::builder()
///     .perf_map_bytes(b"5000 40 from the map\n", Pid(7))
///     .function(JitFunction::new(Pid(7), Addr(0x1000), 16, b"one").loaded(Nanos(10)))
///     .function(JitFunction::new(Pid(7), Addr(0x1000), 16, b"two").loaded(Nanos(20)).unloaded(Nanos(30)))
///     .fork(Pid(7), Pid(8), Nanos(15)) // process 8 begins with the code of process 7
///     .build()?;
/// let name = |pid, address, time| code_map.lookup(pid, Addr(address), Some(Nanos(time))).map(|hit| hit.name());
/// assert_eq!([5, 15, 25, 35].map(|time| name(Pid(7), 0x1000, time)), [None, Some(&b"one"[..]), Some(b"two"), None]);
/// assert_eq!([name(Pid(8), 0x1000, 25), name(Pid(7), 0x5000, 25)], [Some(&b"one"[..]), Some(b"from the map")]);
/// # Ok::<(), jitgraft::Error>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct CodeMapBuilder {
    /// Files that the caller named.
    files: SourceOptions,
    bytes: Vec<InMemory>,
    functions: Vec<OwnedFunction>,
    /// The processes that forked or called exec, as far as the caller said so.
    processes: Processes,
}

/// A jitdump or perf map in memory.
#[derive(Debug)]
struct InMemory {
    kind: Kind,
    pid: Pid,
    bytes: Vec<u8>,
}

/// A [`JitFunction`] that owns its name.
#[derive(Debug)]
struct OwnedFunction {
    pid: Pid,
    address: Addr,
    size: u64,
    name: Vec<u8>,
    loaded: Option<Nanos>,
    unloaded: Option<Nanos>,
}

impl CodeMapBuilder {
    /// Adds a jitdump or perf map as [`CodeMap::from_files`] does. A runtime's log or a directory of such files is
    /// added by [`jit_log`](Self::jit_log). Owners are checked by [`build`](Self::build).
    pub fn file(mut self, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let Some(file) = io::open_stream(&InPath::Path(path.clone()))? else {
            return Err(Error::new("is a directory").with_kind(ErrorKind::InvalidArgument).in_file(&path));
        };
        let mut head = Vec::new();
        file.take(HEAD).read_to_end(&mut head)?;
        if jitdump::sniff(&head) {
            self.files.jitdump.push(GivenFile::from(path));
            return Ok(self);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let digits = name.strip_prefix("perf-").and_then(|name| name.strip_suffix(".map"));
        let Some(pid) = digits.and_then(|digits| digits.parse().ok()) else {
            return Err(Error::new("is neither a jitdump nor named like a perf map (perf-PID.map)")
                .with_kind(ErrorKind::UnknownFormat)
                .in_file(&path));
        };
        self.files.perf_map.push(GivenFile { path, pid: Some(Pid(pid)) });
        Ok(self)
    }

    /// Adds a jitdump whose code belongs to this process, whatever its header says
    /// ([why](CodeMap#processes-in-containers)).
    pub fn jitdump_of(mut self, path: impl Into<PathBuf>, pid: Pid) -> Self {
        self.files.jitdump.push(GivenFile { path: path.into(), pid: Some(pid) });
        self
    }

    /// Like [`jitdump_of`](Self::jitdump_of), for a jitdump in memory. Fails if its header is damaged.
    ///
    /// ```
    /// use jitgraft::{Addr, CodeMap, Pid};
    ///
    /// let bytes = std::fs::read("src/api/examples/jit-77.dump")?;
    /// let code_map = CodeMap::builder().jitdump_bytes_of(&bytes, Pid(4711))?.build()?;
    /// assert!(code_map.lookup(Pid(4711), Addr(0x1_0010), None).is_some());
    /// assert!(code_map.lookup(Pid(77), Addr(0x1_0010), None).is_none());
    /// assert!(code_map.warnings().is_empty());
    /// # let by_path = CodeMap::builder().jitdump_of("src/api/examples/jit-77.dump", Pid(4711)).build()?;
    /// # assert_eq!(by_path.processes().collect::<Vec<_>>(), [Pid(4711)]);
    /// # assert!(by_path.warnings().is_empty());
    /// # Ok::<(), jitgraft::Error>(())
    /// ```
    pub fn jitdump_bytes_of(mut self, bytes: &[u8], pid: Pid) -> Result<Self> {
        JitDump::parse(bytes)?;
        self.bytes.push(InMemory { kind: Kind::JitDump, pid, bytes: bytes.to_vec() });
        Ok(self)
    }

    /// Adds the log of a runtime, such as V8's or HotSpot's, or a directory of such logs, whose code belongs to this
    /// process.
    pub fn jit_log(mut self, path: impl Into<PathBuf>, pid: Pid) -> Self {
        self.files.jit_log.push(GivenFile { path: path.into(), pid: Some(pid) });
        self
    }

    /// Adds a jitdump in memory. Its header says which process it belongs to. Fails if the header is damaged.
    pub fn jitdump_bytes(self, bytes: &[u8]) -> Result<Self> {
        let pid = Pid(JitDump::parse(bytes)?.header.pid);
        self.jitdump_bytes_of(bytes, pid)
    }

    /// Adds a perf map of this process in memory.
    pub fn perf_map_bytes(mut self, bytes: &[u8], pid: Pid) -> Self {
        self.bytes.push(InMemory { kind: Kind::PerfMap, pid, bytes: bytes.to_vec() });
        self
    }

    /// Adds a function that the caller knows of.
    pub fn function(mut self, function: JitFunction<'_>) -> Self {
        let JitFunction { pid, address, size, name, loaded, unloaded } = function;
        self.functions.push(OwnedFunction { pid, address, size, name: name.to_vec(), loaded, unloaded });
        self
    }

    /// States that a process was forked: until it calls exec, it has the code that its parent had then.
    pub fn fork(mut self, parent: Pid, child: Pid, time: Nanos) -> Self {
        self.processes.by_pid.entry(parent).or_default();
        self.processes.by_pid.entry(child).or_default().forked = Some((parent, time));
        self
    }

    /// States that a process called exec, which discards the code that it had.
    pub fn exec(mut self, pid: Pid, time: Nanos) -> Self {
        let Process { execs, .. } = self.processes.by_pid.entry(pid).or_default();
        execs.push(time);
        execs.sort_unstable();
        self
    }

    /// Reads all sources and builds the map. Fails if a file can't be used at all, for example because of its owner
    /// ([`CodeMap::from_files`]). If only a part of a file is damaged, [`CodeMap::warnings`] says so.
    pub fn build(self) -> Result<CodeMap> {
        let Self { files, bytes, functions, mut processes } = self;
        // Callers of `lookup` pass times on the clock of the sources, so no time may be converted. State that the
        // recording's clock is the one that jitdumps should use, and convert values of the time-stamp counter to
        // themselves.
        processes.clock.clockid = Some(MONOTONIC);
        processes.clock.tsc = Some(UNCONVERTED);
        let (pool, mut warnings) = (Pool::new(None)?, Warnings::new());
        // Only use files that the caller named. If `find` got processes, it would also look for the files that runtimes
        // usually write for each of them.
        let mut found =
            jit::find(&Processes { clock: processes.clock, ..Processes::default() }, &files, None, &mut warnings);
        for InMemory { kind, pid, bytes } in bytes {
            let name = if kind == Kind::JitDump { format!("jit-{pid}.dump") } else { format!("perf-{pid}.map") };
            found.add_bytes(name.into(), kind, pid, bytes);
        }
        let added_functions = list_functions(&functions);
        let loaded = found.load_with(vec![added_functions], &processes, &pool, &mut warnings);
        // `load_with` leaves out files that it refuses to read. If the caller named such a file, this is an error.
        let named_files = files.jitdump.iter().chain(&files.perf_map).chain(&files.jit_log);
        for path in named_files.map(|file| &file.path) {
            for account in loaded.accounts.iter().filter(|account| account.path == *path) {
                if let SourceState::Refused { why, reason } = &account.state {
                    return Err(Error::new(why.clone()).with_refusal(*reason).in_file(path));
                }
            }
        }
        Ok(CodeMap::from_borrowed(&loaded.map, &warnings))
    }
}

/// How many bytes at the start of a file show whether it is a jitdump.
const HEAD: u64 = 64;

/// `CLOCK_MONOTONIC` of Linux's time.h.
const MONOTONIC: i32 = 1;

/// A conversion that leaves values of the time-stamp counter as they are.
const UNCONVERTED: TscConversion =
    TscConversion { shift: 0, mult: 1, zero: 0, cycles: 0, mask: 0, cap_zero: true, cap_short: false };

/// Converts the functions to a source of JIT code like any other: a list of code that is loaded and unloaded.
fn list_functions(functions: &[OwnedFunction]) -> CodeList<'_> {
    let mut list = CodeList::default();
    for OwnedFunction { pid, address, size, name, loaded, unloaded } in functions {
        let code = Code {
            name,
            addr: *address,
            size: *size,
            bytes: None,
            lines: Lines::default(),
            unwind: None,
            // The code comes from no file, so its origin is a number that no file has.
            origin: OriginId(u32::MAX),
        };
        let load = list.load(*pid, *loaded, &code);
        if unloaded.is_some() {
            list.unload(*pid, *unloaded, load, *address);
        }
    }
    list
}
