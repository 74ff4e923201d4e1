//! Ends the program with a one-line message if it can't continue: it ran out of memory, or a mapped input was
//! truncated. Outputs in progress have no name yet, so existing files stay as they were.
//!
//! This, and checking standard output before the standard library replaces it, needs `unsafe`. No library offers it,
//! because the code runs inside an allocator, in a signal handler or before `main`. It neither allocates, locks nor
//! unwinds (signal-safety(7)).

use super::temporary_name;
use libc::siginfo_t;
use rustix::fs::{Mode, OFlags};
use signal_hook::low_level;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

/// The system's allocator, except that the program ends with a message if no memory is left.
#[derive(Debug)]
pub struct GuardedAllocator;

// SAFETY: each call is passed unchanged to the system's allocator, which fulfills the contract. If the allocator
// returns null, the process ends.
#[expect(unsafe_code, reason = "only an allocator learns that there is no memory")]
unsafe impl GlobalAlloc for GuardedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the call is passed unchanged to the system's allocator, see above.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the call is passed unchanged to the system's allocator, see above.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the call is passed unchanged to the system's allocator, see above.
        checked(unsafe { System.realloc(old, layout, size) }, size)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the call is passed unchanged to the system's allocator, see above.
        unsafe { System.dealloc(old, layout) }
    }
}

fn checked(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        // `itoa` formats the number without allocating memory.
        let mut digits = itoa::Buffer::new();
        let size = digits.format(size).as_bytes();
        let (before, after) = (&b"error: out of memory: "[..], &b" bytes more cannot be had (--max-memory)\n"[..]);
        end(&[before, size, after]);
    }
    memory
}

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// True if standard output was closed when the program was started (`>&-`). Before `main`, the standard library opens
/// /dev/null in its place, so that output would be lost without an error. Later, this can't be told from an output to
/// /dev/null that was opened for reading and writing, as Python does.
pub fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// Checks standard output before the standard library does.
#[expect(unsafe_code, reason = "safe code can't run this early")]
// SAFETY: this section is a list of functions that the loader calls one after the other (ELF gABI, `DT_INIT_ARRAY`).
// This function needs nothing that isn't initialized yet.
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

/// Removes temporary names, prints a line and ends the process with status 1.
fn end(line: &[&[u8]]) -> ! {
    temporary_name::remove_all_without_waiting();
    for part in line {
        // Nothing can be done if the message can't be written.
        let _ = rustix::io::write(rustix::stdio::stderr(), part);
    }
    low_level::exit(1)
}

/// From now on, if a mapped file is truncated, the process ends with a message that names the file. Without this,
/// SIGBUS would end it silently.
#[expect(unsafe_code, reason = "a signal handler is registered")]
pub fn watch_mapped_files() {
    // SAFETY: `on_bus_error` does only what signal-safety(7) permits.
    let registered = unsafe { signal_hook_registry::register_sigaction(libc::SIGBUS, on_bus_error) };
    // If the handler can't be registered, SIGBUS ends the process silently, as it does in other programs.
    drop(registered);
}

#[expect(unsafe_code, reason = "the address of a signal is in a union")]
fn on_bus_error(info: &siginfo_t) {
    // SAFETY: the kernel sets the address for SIGBUS.
    let address = unsafe { info.si_addr() } as usize;
    let mut line = [0; MAX_MAPS_LINE];
    let path = mapped_file(address, &mut line).unwrap_or(b"an input");
    end(&[b"error: ", path, b" became shorter while it was read\n"]);
}

/// The maximum length of a line in /proc/self/maps.
const MAX_MAPS_LINE: usize = 4096 + 128;

/// The path of the file mapped at an address, from /proc/self/maps. Doesn't allocate.
#[expect(clippy::disallowed_methods, reason = "a file of the system, opened in a signal handler")]
fn mapped_file(address: usize, line: &mut [u8; MAX_MAPS_LINE]) -> Option<&[u8]> {
    let maps = rustix::fs::open(c"/proc/self/maps", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut len = 0;
    loop {
        // The buffer is full if a line is too long; reading into the rest of length 0 then returns 0.
        let read = rustix::io::read(&maps, &mut line[len..]).ok().filter(|read| *read > 0)?;
        len += read;
        while let Some(end) = line[..len].iter().position(|byte| *byte == b'\n') {
            if let Some(start) = path_start(&line[..end], address) {
                return Some(&line[start..end]);
            }
            line.copy_within(end + 1..len, 0);
            len -= end + 1;
        }
    }
}

/// Where the path starts in a line of /proc/self/maps, if the mapping contains the address and has a file.
fn path_start(line: &[u8], address: usize) -> Option<usize> {
    let dash = line.iter().position(|byte| *byte == b'-')?;
    let space = line.iter().position(|byte| *byte == b' ')?;
    let start = parse_hex(line.get(..dash)?)?;
    let end = parse_hex(line.get(dash + 1..space)?)?;
    let path = line.iter().position(|byte| *byte == b'/')?;
    (start..end).contains(&address).then_some(path)
}

fn parse_hex(digits: &[u8]) -> Option<usize> {
    let mut number = 0;
    for digit in digits {
        number = number << 4 | char::from(*digit).to_digit(16)? as usize;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_mapped_file_is_found_by_any_of_its_addresses() {
        let line = b"7f00-7fff r--p 00000000 08:01 12   /a b/c";
        assert_eq!(path_start(line, 0x7f80).map(|start| &line[start..]), Some(&b"/a b/c"[..]));
        assert_eq!(path_start(line, 0x7fff), None);
        assert_eq!(path_start(b"7f00-7fff rw-p 00000000 00:00 0 ", 0x7f80), None);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"text").unwrap();
        let bytes = crate::io::map_file(file.path()).unwrap();
        let mut line = [0; MAX_MAPS_LINE];
        let found = mapped_file(bytes.as_ptr() as usize, &mut line).unwrap();
        assert_eq!(found, file.path().canonicalize().unwrap().as_os_str().as_encoded_bytes());
    }
}
