//! The way frames are named and printed.

use crate::records::perf_script::frame::{Frame, UNKNOWN};
use crate::records::perf_script::known::{BEYOND_ANY_FILE, FileAddresses};
use memchr::memmem;

/// The options for naming and printing frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// Name frames that already have a name, too.
    pub rename: bool,
    /// Print the source line, where it is known, on a line of its own, as `-F +srcline` does.
    pub srcline: bool,
    /// Name frames of files, too, where the text shows the mappings.
    pub native: bool,
    /// True if this text has no offsets behind its symbols (`-F sym` without `symoff`).
    pub no_offsets: bool,
    /// The way this text prints the addresses of files, if that is known.
    pub file_addresses: Option<FileAddresses>,
}

impl Style {
    /// Finds out from a text's first bytes whether offsets are printed behind symbols, and how addresses of files are.
    pub fn learn(&mut self, head: &[u8]) {
        let frames =
            || head.split(|&byte| byte == b'\n').filter_map(|line| Frame::parse_indented(line.trim_ascii_end()));
        let mut known = frames().filter(|frame| frame.symbol != UNKNOWN && !frame.inlined).peekable();
        self.no_offsets = known.peek().is_some() && known.all(|frame| frame.offset.is_none());
        // A shared library is never mapped as low as its own offsets are.
        let shared =
            |frame: &Frame<'_>| frame.dso.is_some_and(|dso| memmem::find(dso, b".so").is_some_and(|at| at > 0));
        let mut libraries = frames().filter(|frame| !frame.inlined && shared(frame)).peekable();
        let first = libraries.peek().map(|frame| frame.addr >= BEYOND_ANY_FILE);
        self.file_addresses = first
            .filter(|&first| libraries.all(|frame| (frame.addr >= BEYOND_ANY_FILE) == first))
            .map(|absolute| if absolute { FileAddresses::Absolute } else { FileAddresses::Relative });
    }
}
