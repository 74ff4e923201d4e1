//! Ends the program in an orderly way when it can't continue: memory runs out, or a mapped input is truncated. Either
//! way, it prints one line and exits with status 1. Unfinished outputs have no name yet, so files that they would
//! replace are untouched. If an unfinished output needed a temporary name (`io::hidden`), it is removed, as it
//! also is when a signal ends the program.
//!
//! The program's own memory is limited from the start (`RLIMIT_DATA`, setrlimit(2)). Otherwise a file that decompresses
//! to more than the machine's memory would make the kernel kill other programs first. Mapped inputs don't count. Inputs
//! are mapped although they might be truncated, because reading them instead would lose what mapping gains.
//!
//! Unsafe code here doesn't allocate, lock or unwind. An allocator can't rely on any of these, and signal handlers must
//! not use them (signal-safety(7)).

use super::hidden::{self, TemporaryKind};
use super::typed::read_system_text;
use crate::error::{Error, Result};
use libc::{c_int, c_void, siginfo_t};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The limit for the program's own memory. Mapped files don't count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of the available memory: that of the machine or of the program's control group, whichever is less.
    Share(u8),
}

impl Default for MemoryLimit {
    fn default() -> Self {
        Self::Share(90)
    }
}

impl FromStr for MemoryLimit {
    type Err = Error;

    /// Parses `4G`, `512M`, `64K`, a number of bytes, or a percentage such as `50%`. Units are powers of 1,024.
    fn from_str(text: &str) -> Result<Self> {
        let invalid = || Error::new("must be a size such as 4G or 512M, or a percentage such as 50%");
        if let Some(digits) = text.strip_suffix('%') {
            let share = digits.parse().ok().filter(|share| (1..=100).contains(share));
            return share.map(Self::Share).ok_or_else(invalid);
        }
        let digit_count = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(digit_count);
        let unit_bytes: u64 = match unit.to_ascii_uppercase().as_str() {
            "" | "B" => 1,
            "K" | "KB" | "KIB" => 1 << 10,
            "M" | "MB" | "MIB" => 1 << 20,
            "G" | "GB" | "GIB" => 1 << 30,
            "T" | "TB" | "TIB" => 1 << 40,
            _ => return Err(invalid()),
        };
        let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_bytes));
        bytes.filter(|bytes| *bytes > 0).map(Self::Bytes).ok_or_else(invalid)
    }
}

/// Limits this process's own memory from now on; mapped files don't count. If the limit is a percentage of the
/// available memory and that is unknown, does nothing.
pub fn limit_memory(limit: MemoryLimit) -> Result<()> {
    let most = match limit {
        MemoryLimit::Bytes(bytes) => Some(bytes),
        MemoryLimit::Share(share) => available().map(|bytes| bytes / 100 * u64::from(share)),
    };
    let Some(most) = most else { return Ok(()) };
    let old = getrlimit(Resource::Data);
    // Never raise a limit that is already lower.
    let current = match old.current {
        Some(limit) => limit.min(most),
        None => most,
    };
    let new = Rlimit { current: Some(current), maximum: old.maximum };
    // Only the first call stores the limit that the program was started with. Later calls find the one that it has set.
    OLD_LIMIT.get_or_init(|| old);
    setrlimit(Resource::Data, new)
        .map_err(|error| Error::new("cannot limit memory").because(std::io::Error::from(error)))
}

/// The memory limit that this program was started with; unset until [`limit_memory`] replaces it.
static OLD_LIMIT: OnceLock<Rlimit> = OnceLock::new();

/// Calls `start`, which starts another program. While it runs, this program's memory limit and its action for SIGXFSZ
/// are those that it was started with, because the other program inherits them.
#[expect(unsafe_code, reason = "a signal's action is set")]
pub(crate) fn with_original_settings<T>(start: impl FnOnce() -> T) -> T {
    let lowered_limit = getrlimit(Resource::Data);
    // This can't fail: only the soft limit was lowered, and a process may raise it again up to the hard limit.
    let _ = OLD_LIMIT.get().map(|old| setrlimit(Resource::Data, *old));
    // SAFETY: the default action, and ignoring a signal, run no code of this program.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
    let started = start();
    // SAFETY: ignoring a signal runs no code of this program.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let _ = OLD_LIMIT.get().map(|_| setrlimit(Resource::Data, lowered_limit));
    started
}

/// The process ID of the child to which signals are passed on; 0 before the child has been started.
static SIGNAL_TARGET: AtomicI32 = AtomicI32::new(0);

/// The last signal that arrived before the child was started, to be passed on later; 0 if there was none.
static EARLY_SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The signals to pass on: those that end a program, and SIGUSR2, which makes perf write a part of its recording.
const PASSED_ON: [c_int; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR2];

/// While this value exists, signals that would end this program are passed on to the child process that it waits for
/// instead.
#[derive(Debug)]
pub struct PassedSignals(());

impl PassedSignals {
    /// Starts catching signals. Signals that were already ignored when this program was started, as by nohup(1), stay
    /// ignored.
    pub fn begin() -> Self {
        let handler = on_passed as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        set_actions(&PASSED_ON, |old| old != libc::SIG_IGN, handler, libc::SA_SIGINFO | libc::SA_RESTART);
        Self(())
    }

    /// From now on, passes signals on to the child with this process ID. If signals have arrived since
    /// [`begin`](Self::begin), passes on the last of them now.
    #[expect(unsafe_code, reason = "a signal is sent")]
    pub fn pass_to(&self, child: u32) {
        let child = child.cast_signed();
        SIGNAL_TARGET.store(child, Ordering::SeqCst);
        // From here on, the signal handler itself passes signals on. Before, it only stored the last one.
        let early = EARLY_SIGNAL.swap(0, Ordering::SeqCst);
        if early != 0 {
            // SAFETY: kill(2) gets the process ID of a child that nobody has waited for yet, so the ID hasn't been
            // reused.
            unsafe { libc::kill(child, early) };
        }
    }
}

impl Drop for PassedSignals {
    fn drop(&mut self) {
        SIGNAL_TARGET.store(0, Ordering::SeqCst);
        set_actions(&PASSED_ON, |old| old != libc::SIG_IGN, libc::SIG_DFL, 0);
        leave_nothing_behind();
    }
}

/// Installs a handler for each signal whose current action `is_replaced` accepts. `handler` is the address of an
/// async-signal-safe function (signal-safety(7)), or SIG_DFL.
#[expect(unsafe_code, reason = "signals' actions are set")]
fn set_actions(signals: &[c_int], is_replaced: impl Fn(usize) -> bool, handler: usize, flags: c_int) {
    for &signal in signals {
        // SAFETY: all-zero bytes are a valid `sigaction` with no flags and an empty mask, and both pointers are valid.
        // The handlers are functions in this file, or the default action, which runs no code of this program.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            if is_replaced(action.sa_sigaction) {
                (action.sa_sigaction, action.sa_flags) = (handler, flags);
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
    }
}

/// Signal handler: passes the signal on to the child, or remembers it until the child has been started.
#[expect(unsafe_code, reason = "a signal is sent, and its details are behind a pointer")]
extern "C" fn on_passed(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // The kernel sent this signal for a key such as Ctrl-C, and has sent it to the child, too. So don't pass it on.
    // SAFETY: with SA_SIGINFO, the kernel passes a valid pointer.
    if unsafe { (*info).si_code } == SI_KERNEL {
        return;
    }
    match SIGNAL_TARGET.load(Ordering::SeqCst) {
        0 => EARLY_SIGNAL.store(signal, Ordering::SeqCst),
        // SAFETY: signal handlers may call kill(2). The number is the process ID of a child that nobody has waited for
        // yet, or that has only just exited, so that its ID hasn't been reused.
        child => drop(unsafe { libc::kill(child, signal) }),
    }
}

/// `si_code` of signals that the kernel sent (asm-generic/siginfo.h).
const SI_KERNEL: c_int = 0x80;

/// Ends this program by the same signal that ended another program, so that the caller sees the same status.
#[expect(unsafe_code, reason = "a signal's action is set, and it is sent")]
pub fn end_by(signal: i32) -> ! {
    // SAFETY: the default action runs no code of this program. raise(3) sends the signal to this thread.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    // The signal didn't end this process, as some don't. Exit with the status that a shell would report.
    std::process::exit(128 + signal)
}

/// The memory that this process may use, in bytes: that of the machine, or the limit of its control groups if that is
/// less. `None` if unknown.
fn available() -> Option<u64> {
    let machine = read_system_text(Path::new("/proc/meminfo")).ok().and_then(|text| {
        // The line is, for example, `MemTotal:       16309432 kB`.
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        total.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
    });
    let groups = read_system_text(Path::new("/proc/self/cgroup")).unwrap_or_default();
    machine.into_iter().chain(groups.lines().filter_map(group_memory_limit)).min()
}

/// The lowest memory limit, in bytes, of a control group and its ancestors. `line` is from /proc/self/cgroup: `0::/a/b`
/// (version 2) or `9:memory:/a/b` (version 1). `None` if there is no limit.
fn group_memory_limit(line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':');
    // Skip the first field, a number.
    let (controllers, group) = (fields.nth(1)?, fields.next()?);
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        // A group of version 1 for other resources, such as CPU time.
        _ => return None,
    };
    // A group without a limit has no number in its file.
    let read_limit = |group: &Path| {
        let path = Path::new(root).join(group.strip_prefix("/").unwrap_or(group)).join(file);
        read_system_text(&path).ok()?.trim().parse::<u64>().ok()
    };
    Path::new(group).ancestors().filter_map(read_limit).min()
}

/// The system's allocator, but if an allocation fails, the program prints an error and exits.
#[derive(Debug)]
pub struct GuardedAllocator;

// SAFETY: every call is passed on unchanged to the system's allocator, which fulfills the contract. Its result is
// returned unchanged; if that is null, the process ends.
#[expect(unsafe_code, reason = "only an allocator sees that there is no memory")]
unsafe impl GlobalAlloc for GuardedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfills the contract of the system's allocator.
        check_allocation(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfills the contract of the system's allocator.
        check_allocation(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller fulfills the contract of the system's allocator.
        check_allocation(unsafe { System.realloc(old, layout, size) }, size)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfills the contract of the system's allocator.
        unsafe { System.dealloc(old, layout) }
    }
}

/// Returns the memory that the system's allocator has allocated. If the allocation failed, so that `memory` is null,
/// prints an error and ends the process.
fn check_allocation(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        // There is no memory left, so the message must be composed without allocating.
        let mut digits = itoa::Buffer::new();
        let size = digits.format(size).as_bytes();
        let start = &b"error: out of memory: cannot allocate "[..];
        let end = &b" more bytes (--max-memory sets the limit)\n"[..];
        exit_with_error(&[start, size, end]);
    }
    memory
}

/// True once [`watch_mapped_files`] was called.
static ARE_MAPS_WATCHED: AtomicBool = AtomicBool::new(false);

/// True if files that others can truncate may be mapped, because [`watch_mapped_files`] was called.
pub(super) fn are_maps_watched() -> bool {
    ARE_MAPS_WATCHED.load(Ordering::Relaxed)
}

/// True if standard output was closed when the program was started.
static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// True if standard output was closed when the program was started (`>&-`). Before `main`, the standard library opens
/// /dev/null in its place, and everything written there would be lost without an error.
pub fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// Checks whether standard output is closed, before the standard library opens /dev/null in its place. Not in programs
/// that only use the library.
#[cfg(feature = "cli")]
#[expect(unsafe_code, reason = "nothing that is safe is run so early")]
// SAFETY: this section is a list of functions that the loader calls one after the other before `main`. This function
// doesn't allocate or lock, and doesn't depend on anything that is initialized later.
#[unsafe(link_section = ".init_array")]
#[used]
static LOOK_AT_STDOUT: extern "C" fn() = {
    extern "C" fn look() {
        // SAFETY: fcntl(2) with F_GETFD changes nothing. It fails if the descriptor isn't open.
        let is_closed = unsafe { libc::fcntl(1, libc::F_GETFD) } == -1;
        STDOUT_WAS_CLOSED.store(is_closed, Ordering::Relaxed);
    }
    look
};

/// Removes unfinished files with temporary names, prints the parts of an error message, and ends the process with
/// status 1. Doesn't allocate or lock.
#[expect(unsafe_code, reason = "the standard library's ways to write and to exit may allocate and lock")]
fn exit_with_error(parts: &[&[u8]]) -> ! {
    remove_hidden();
    for part in parts {
        // SAFETY: pointer and length are those of a slice. Write errors are ignored.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: _exit(2) runs no further code of this process.
    unsafe { libc::_exit(1) }
}

/// From now on, if a mapped file is truncated and then read, the process ends with a message that names the file.
/// Without this, SIGBUS would end it without a message.
///
/// Only then are such files mapped at all: a program that uses the library without this handler could be ended by
/// anybody who truncates a file.
pub fn watch_mapped_files() {
    ARE_MAPS_WATCHED.store(true, Ordering::Relaxed);
    // The handler never returns. It runs on the stack of the thread that read from the file, which is intact.
    let handler = on_bus_error as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
    set_actions(&[libc::SIGBUS], |_| true, handler, libc::SA_SIGINFO);
}

/// Signal handler for a failed access to a mapped file: ends the process with a message that names the file.
#[expect(unsafe_code, reason = "the details of a signal are behind a pointer")]
extern "C" fn on_bus_error(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: with SA_SIGINFO, the kernel passes a valid pointer. For SIGBUS, it contains an address.
    let addr = unsafe { (*info).si_addr() } as usize;
    let (mut line, mut path) = ([0; LINE], &b"a file that is read"[..]);
    if let Some(found) = find_mapped_file(addr, &mut line) {
        path = found;
    }
    exit_with_error(&[b"error: ", path, b" became shorter while it was read\n"]);
}

/// From now on, SIGINT, SIGTERM and SIGHUP remove temporary names before they end the program. Also ignores SIGXFSZ:
/// writing beyond the file size limit (`ulimit -f`) then fails with an error instead of ending the program without a
/// message.
#[expect(unsafe_code, reason = "signals' actions are set")]
pub fn leave_nothing_behind() {
    // Signals that were already ignored when this program was started, as by nohup(1), stay ignored.
    let handler = on_end as extern "C" fn(c_int) as usize;
    let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
    set_actions(&signals, |old| old == libc::SIG_DFL, handler, libc::SA_RESETHAND);
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

#[expect(unsafe_code, reason = "the signal is sent once more, now that it has its usual action again")]
extern "C" fn on_end(signal: c_int) {
    remove_hidden();
    // SAFETY: signal handlers may call raise(3). The signal is delivered when this handler returns.
    unsafe { libc::raise(signal) };
}

/// Removes all unfinished files with temporary names. Doesn't allocate or lock.
#[expect(unsafe_code, reason = "a descriptor is known by its number only")]
fn remove_hidden() {
    hidden::each(|directory, name, what| {
        let flags = if what == TemporaryKind::Directory { libc::AT_REMOVEDIR } else { 0 };
        // SAFETY: `name` is a string that ends with NUL. If the descriptor was closed by now or belongs to another
        // directory, the call fails, because no other file has this random name.
        unsafe { libc::unlinkat(directory, name.as_ptr(), flags) };
    });
}

/// The maximum length in bytes of a line in /proc/self/maps.
const LINE: usize = 4096 + 128;

/// Finds the path of the file that is mapped at an address, according to /proc/self/maps; `None` if there is none. The
/// lines are read into the buffer `line`. Doesn't allocate.
#[expect(unsafe_code, reason = "the standard library's ways to open and to read may allocate")]
fn find_mapped_file(addr: usize, line: &mut [u8; LINE]) -> Option<&[u8]> {
    // SAFETY: the path ends with NUL.
    let maps = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let mut len = 0;
    loop {
        let free_part = &mut line[len..];
        // SAFETY: pointer and length are those of a slice that nothing else uses. If /proc/self/maps could not be
        // opened, the call fails. If the buffer is full, it reads nothing.
        let read = unsafe { libc::read(maps, free_part.as_mut_ptr().cast(), free_part.len()) };
        // `None` at the end of the file, after an error, or if the line doesn't fit into the buffer.
        len += usize::try_from(read).ok().filter(|read| *read > 0)?;
        while let Some(end) = line[..len].iter().position(|byte| *byte == b'\n') {
            if let Some(path) = find_path(&line[..end], addr) {
                let path = path..end;
                return Some(&line[path]);
            }
            // The line isn't that of the mapping with the address. Move what follows the line to the start of the
            // buffer.
            line.copy_within(end + 1..len, 0);
            len -= end + 1;
        }
    }
}

/// Where the path starts in a line of /proc/self/maps; `None` if the mapping doesn't contain the address or has no
/// path.
fn find_path(line: &[u8], addr: usize) -> Option<usize> {
    let dash = line.iter().position(|byte| *byte == b'-')?;
    let space = line.iter().position(|byte| *byte == b' ')?;
    let parse_hex = |digits: &[u8]| {
        digits.iter().try_fold(0_usize, |number, digit| {
            let digit = char::from(*digit).to_digit(16)?;
            Some((number << 4) | digit as usize)
        })
    };
    // A line begins with the mapping's start and end address, such as `7f00-7f80 `.
    let range = parse_hex(line.get(..dash)?)?..parse_hex(line.get(dash + 1..space)?)?;
    let path = line.iter().position(|byte| *byte == b'/')?;
    range.contains(&addr).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let sizes = [("1", 1), ("64K", 64 << 10), ("512m", 512 << 20), ("4GiB", 4 << 30), ("1T", 1 << 40)];
        for (text, bytes) in sizes {
            assert_eq!(text.parse::<MemoryLimit>().unwrap(), MemoryLimit::Bytes(bytes), "{text}");
        }
        assert_eq!("50%".parse::<MemoryLimit>().unwrap(), MemoryLimit::Share(50));
        for wrong in ["", "0", "G", "-1", "4X", "0%", "101%", "99999999999999T"] {
            assert!(wrong.parse::<MemoryLimit>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_mapped_file_is_found_by_any_of_its_addresses() {
        let line = b"7f00-7fff r--p 00000000 08:01 12   /a b/c";
        assert_eq!(find_path(line, 0x7f80).map(|at| &line[at..]), Some(&b"/a b/c"[..]));
        assert_eq!(find_path(line, 0x7fff), None);
        assert_eq!(find_path(b"7f00-7fff rw-p 00000000 00:00 0 ", 0x7f80), None);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"text").unwrap();
        let bytes = crate::io::mapped::map_regular(file.as_file()).unwrap();
        let mut line = [0; LINE];
        let found = find_mapped_file(bytes.as_ptr() as usize, &mut line).unwrap();
        assert_eq!(found, file.path().canonicalize().unwrap().as_os_str().as_encoded_bytes());
    }
}
