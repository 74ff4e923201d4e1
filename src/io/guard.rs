//! The limits that end the program in order where it could not go on: memory that is not available, and an input that
//! became shorter while it was mapped. Both state one line and leave with status 1; outputs under way have no name yet,
//! so that what was there before is there still. If they had to have one (`hidden`), it is taken away, as it
//! is when a signal ends the program.
//!
//! Memory is limited from the start (`RLIMIT_DATA`, setrlimit(2)): else a file that unpacks to more than the machine has
//! would end other programs first. Reading inputs instead of mapping them would cost what mapping them wins.
//!
//! All that is unsafe here is done without allocating, locking or unwinding: in an allocator nothing of that can be
//! relied upon, in a signal handler it is forbidden (signal-safety(7)).

use super::hidden::{self, Passing};
use super::typed::text_of_system;
use crate::error::{Error, Result};
use libc::{c_int, c_void, siginfo_t};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The memory of its own that the program may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// Bytes.
    Bytes(u64),
    /// Percent of the memory of that the machine, or the control group that the program is in, has.
    Share(u8),
}

impl Default for MemoryLimit {
    fn default() -> Self {
        Self::Share(90)
    }
}

impl FromStr for MemoryLimit {
    type Err = Error;

    /// `4G`, `512M`, `64K`, bytes, or `50%`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::new("must be a size such as 4G or 512M, or a percentage such as 50%");
        if let Some(digits) = text.strip_suffix('%') {
            let share = digits.parse().ok().filter(|share| (1..=100).contains(share));
            return share.map(Self::Share).ok_or_else(wrong);
        }
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(end);
        let shift = match unit.to_ascii_uppercase().as_str() {
            "" | "B" => 0,
            "K" | "KB" | "KIB" => 10,
            "M" | "MB" | "MIB" => 20,
            "G" | "GB" | "GIB" => 30,
            "T" | "TB" | "TIB" => 40,
            _ => return Err(wrong()),
        };
        let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
        bytes.filter(|bytes| *bytes > 0).map(Self::Bytes).ok_or_else(wrong)
    }
}

/// Limits the memory that is this process's own from now on. Mapped files do not count.
pub fn limit_memory(limit: MemoryLimit) -> Result<()> {
    let most = match limit {
        MemoryLimit::Bytes(bytes) => Some(bytes),
        MemoryLimit::Share(share) => available().map(|bytes| bytes / 100 * u64::from(share)),
    };
    let Some(most) = most else { return Ok(()) };
    let old = getrlimit(Resource::Data);
    let tighter = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
    let new = Rlimit { current: tighter(old.current), maximum: old.maximum };
    // The first one is that which this program was started with.
    OLD_LIMIT.get_or_init(|| old);
    setrlimit(Resource::Data, new)
        .map_err(|error| Error::new("cannot limit memory").because(std::io::Error::from(error)))
}

/// The memory that this program might have taken before it was limited.
static OLD_LIMIT: OnceLock<Rlimit> = OnceLock::new();

/// Starts a program of the user's as if this one were not between them: neither the limit of memory nor the signal that is
/// ignored here is handed down.
#[expect(unsafe_code, reason = "a signal's action is set")]
pub(crate) fn as_started<T>(start: impl FnOnce() -> T) -> T {
    let own = getrlimit(Resource::Data);
    // A limit that was lower before can always be set again.
    let _ = OLD_LIMIT.get().map(|old| setrlimit(Resource::Data, *old));
    // SAFETY: usual action or none: no code of this program runs in either.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
    let started = start();
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let _ = OLD_LIMIT.get().map(|_| setrlimit(Resource::Data, own));
    started
}

/// The program to which signals are passed on; 0 until there is one.
static PASSED_TO: AtomicI32 = AtomicI32::new(0);

/// The last signal that came before there was one.
static CAME_EARLY: AtomicI32 = AtomicI32::new(0);

/// The signals that end a program, or make perf write a part of its recording.
const PASSED: [c_int; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR2];

/// While this lives, signals do not end this program but the one that it waits for.
#[derive(Debug)]
pub struct PassedSignals(());

impl PassedSignals {
    /// From now on. Signals that were ignored (nohup(1)) stay so.
    pub fn begin() -> Self {
        let handler = on_passed as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        set_actions(&PASSED, |old| old != libc::SIG_IGN, handler, libc::SA_SIGINFO | libc::SA_RESTART);
        Self(())
    }

    /// To this program, with what came since.
    #[expect(unsafe_code, reason = "a signal is sent")]
    pub fn pass_to(&self, child: u32) {
        let child = child.cast_signed();
        PASSED_TO.store(child, Ordering::SeqCst);
        let early = CAME_EARLY.swap(0, Ordering::SeqCst);
        if early != 0 {
            // SAFETY: kill(2) of a child that nobody has waited for yet.
            unsafe { libc::kill(child, early) };
        }
    }
}

impl Drop for PassedSignals {
    fn drop(&mut self) {
        PASSED_TO.store(0, Ordering::SeqCst);
        set_actions(&PASSED, |old| old != libc::SIG_IGN, libc::SIG_DFL, 0);
        leave_nothing_behind();
    }
}

/// Gives signals this action, which does only what signal-safety(7) allows, instead of those that are `replaced`.
#[expect(unsafe_code, reason = "signals' actions are set")]
fn set_actions(signals: &[c_int], replaced: impl Fn(usize) -> bool, handler: usize, flags: c_int) {
    for &signal in signals {
        // SAFETY: all-zero bytes are a `sigaction` without flags and with an empty mask; both pointers are valid. The
        // handlers are those of this file, or the usual action, which runs no code of this program.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            if replaced(action.sa_sigaction) {
                (action.sa_sigaction, action.sa_flags) = (handler, flags);
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
    }
}

#[expect(unsafe_code, reason = "a signal is sent, and its details are behind a pointer")]
extern "C" fn on_passed(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // A signal from a terminal also goes to the other program. SAFETY: with SA_SIGINFO the kernel gives a valid
    // pointer.
    if unsafe { (*info).si_code } == SI_KERNEL {
        return;
    }
    match PASSED_TO.load(Ordering::SeqCst) {
        0 => CAME_EARLY.store(signal, Ordering::SeqCst),
        // SAFETY: kill(2) may be called in a handler; the number is that of a child that nobody has waited for yet, or it
        // has just gone, and nobody else has its number so soon.
        child => drop(unsafe { libc::kill(child, signal) }),
    }
}

/// The sender of a signal: the kernel (asm-generic/siginfo.h).
const SI_KERNEL: c_int = 0x80;

/// Ends this program by the signal that ended another one.
#[expect(unsafe_code, reason = "a signal's action is set, and it is sent")]
pub fn end_by(signal: i32) -> ! {
    // SAFETY: the usual action runs no code of this program; raise(3) sends the signal to this thread.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    // Some signals end nothing: as a shell would put it.
    std::process::exit(128 + signal)
}

/// The available memory: the machine's, or less if a control group has less.
fn available() -> Option<u64> {
    let machine = text_of_system(Path::new("/proc/meminfo")).ok().and_then(|text| {
        let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        total.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
    });
    let groups = text_of_system(Path::new("/proc/self/cgroup")).unwrap_or_default();
    machine.into_iter().chain(groups.lines().filter_map(of_group)).min()
}

/// The least limit of a control group and those that it is in. `0::/a/b`, or `9:memory:/a/b` of the first version.
fn of_group(line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':');
    let (controllers, group) = (fields.nth(1)?, fields.next()?);
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return None,
    };
    let limit = |group: &Path| {
        let path = Path::new(root).join(group.strip_prefix("/").unwrap_or(group)).join(file);
        text_of_system(&path).ok()?.trim().parse::<u64>().ok()
    };
    Path::new(group).ancestors().filter_map(limit).min()
}

/// The system's allocator; where that has nothing left, the program ends with a line that reports it.
#[derive(Debug)]
pub struct GuardedAllocator;

// SAFETY: each call is passed on as it came to the system's allocator, which keeps the contract; what it gives is given
// on, and where that is null the process ends.
#[expect(unsafe_code, reason = "only an allocator sees that there is no memory")]
unsafe impl GlobalAlloc for GuardedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.realloc(old, layout, size) }, size)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(old, layout) }
    }
}

fn given(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        // Nothing of this allocates.
        let mut digits = itoa::Buffer::new();
        let size = digits.format(size).as_bytes();
        let (start, end) = (&b"error: out of memory: "[..], &b" bytes more cannot be had (--max-memory)\n"[..]);
        leave(&[start, size, end]);
    }
    memory
}

/// True if standard output was closed when the program was started.
static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// True if standard output was closed when the program was started (`>&-`): the standard library then opens /dev/null
/// in its place, before `main`, where all that is written is lost without an error.
pub fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// Looks at it before the standard library does.
#[expect(unsafe_code, reason = "nothing that is safe is run so early")]
// SAFETY: what is in this section is a list of functions, which the loader calls one after the other; this one neither
// allocates nor locks, and needs nothing that is not there yet.
#[unsafe(link_section = ".init_array")]
#[used]
static LOOK_AT_STDOUT: extern "C" fn() = {
    extern "C" fn look() {
        // SAFETY: fcntl(2) with F_GETFD reads and changes nothing; a number that is not a descriptor gives an error.
        let is_closed = unsafe { libc::fcntl(1, libc::F_GETFD) } == -1;
        STDOUT_WAS_CLOSED.store(is_closed, Ordering::Relaxed);
    }
    look
};

/// Prints a line, and ends the process without more ado.
#[expect(unsafe_code, reason = "the standard library's ways to write and to exit may allocate and lock")]
fn leave(parts: &[&[u8]]) -> ! {
    remove_hidden();
    for part in parts {
        // SAFETY: the pointer and the length are those of a slice. Messages that cannot be written are dropped.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: _exit(2) runs nothing of this process any more.
    unsafe { libc::_exit(1) }
}

/// From now on a mapped file that becomes shorter ends the process with a line that names it (SIGBUS otherwise ends it
/// without a word).
pub fn watch_mapped_files() {
    // It never returns, and runs on the stack of the thread that read, which is in order.
    let handler = on_bus_error as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
    set_actions(&[libc::SIGBUS], |_| true, handler, libc::SA_SIGINFO);
}

#[expect(unsafe_code, reason = "the details of a signal are behind a pointer")]
extern "C" fn on_bus_error(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: with SA_SIGINFO the kernel gives a valid pointer; SIGBUS has an address.
    let addr = unsafe { (*info).si_addr() } as usize;
    let (mut line, mut path) = ([0; LINE], &b"a file that is read"[..]);
    if let Some(found) = mapped_at(addr, &mut line) {
        path = found;
    }
    leave(&[b"error: ", path, b" became shorter while it was read\n"]);
}

/// From now on a signal by which somebody ends the program takes away what is by a name that is not for good. A file
/// that may not become larger (`ulimit -f`) is an error of the writer, and not the end without a word.
#[expect(unsafe_code, reason = "signals' actions are set")]
pub fn leave_nothing_behind() {
    // Signals that were ignored (nohup(1)) stay so.
    let handler = on_end as extern "C" fn(c_int) as usize;
    let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
    set_actions(&signals, |old| old == libc::SIG_DFL, handler, libc::SA_RESETHAND);
    // SAFETY: to ignore a signal runs nothing.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

#[expect(unsafe_code, reason = "the signal is sent once more, now that it has its usual action again")]
extern "C" fn on_end(signal: c_int) {
    remove_hidden();
    // SAFETY: raise(3) may be called in a handler; the signal is delivered when this one returns.
    unsafe { libc::raise(signal) };
}

/// Takes away all names that are not for good. It allocates nothing, and locks nothing.
#[expect(unsafe_code, reason = "a descriptor is known by its number only")]
fn remove_hidden() {
    hidden::each(|directory, name, what| {
        let flags = if what == Passing::Directory { libc::AT_REMOVEDIR } else { 0 };
        // SAFETY: the name is one, and ends in a NUL. A number that is not a descriptor any more, or is another's by
        // now, gives an error: no file has that name by chance.
        unsafe { libc::unlinkat(directory, name.as_ptr(), flags) };
    });
}

/// The longest line of /proc/self/maps.
const LINE: usize = 4096 + 128;

/// The file that is mapped at an address, by /proc/self/maps; nothing is allocated.
#[expect(unsafe_code, reason = "the standard library's ways to open and to read may allocate")]
fn mapped_at(addr: usize, line: &mut [u8; LINE]) -> Option<&[u8]> {
    // SAFETY: the name ends in a NUL.
    let maps = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let mut len = 0;
    loop {
        let left = &mut line[len..];
        // SAFETY: pointer and length are those of a slice that nothing else uses. A descriptor that could not be opened
        // gives an error, as does a full line.
        let read = unsafe { libc::read(maps, left.as_mut_ptr().cast(), left.len()) };
        len += usize::try_from(read).ok().filter(|read| *read > 0)?;
        while let Some(end) = line[..len].iter().position(|byte| *byte == b'\n') {
            if let Some(path) = path_of(&line[..end], addr) {
                let path = path..end;
                return Some(&line[path]);
            }
            line.copy_within(end + 1..len, 0);
            len -= end + 1;
        }
    }
}

/// The place of the path in a line of /proc/self/maps, if the mapping has the address.
fn path_of(line: &[u8], addr: usize) -> Option<usize> {
    let dash = line.iter().position(|byte| *byte == b'-')?;
    let space = line.iter().position(|byte| *byte == b' ')?;
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0_usize, |number, digit| {
            let digit = char::from(*digit).to_digit(16)?;
            Some((number << 4) | digit as usize)
        })
    };
    let range = number(line.get(..dash)?)?..number(line.get(dash + 1..space)?)?;
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
        assert_eq!(path_of(line, 0x7f80).map(|at| &line[at..]), Some(&b"/a b/c"[..]));
        assert_eq!(path_of(line, 0x7fff), None);
        assert_eq!(path_of(b"7f00-7fff rw-p 00000000 00:00 0 ", 0x7f80), None);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"text").unwrap();
        let bytes = crate::io::map_file(file.path()).unwrap();
        let mut line = [0; LINE];
        let found = mapped_at(bytes.as_ptr() as usize, &mut line).unwrap();
        assert_eq!(found, file.path().canonicalize().unwrap().as_os_str().as_encoded_bytes());
    }
}
