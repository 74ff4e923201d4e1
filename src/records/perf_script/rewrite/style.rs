//! How frames are named and printed.

use crate::records::perf_script::frame::{Frame, UNKNOWN};
use crate::records::perf_script::known::{BEYOND_ANY_FILE, FileAddresses};
use memchr::memmem;

/// Options for naming and printing frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// Also rename frames that already have a name.
    pub rename: bool,
    /// Print the source line, if known, on a line of its own, like `-F +srcline`.
    pub srcline: bool,
    /// Also name frames in files, if the text shows the mappings.
    pub native: bool,
    /// True if the text has no offsets after its symbols (`-F sym` without `symoff`).
    pub no_offsets: bool,
    /// How the text prints addresses in files, if known.
    pub file_addresses: Option<FileAddresses>,
}

impl Style {
    /// Detects from the beginning of a text whether symbols have offsets and how addresses in files are printed.
    pub fn learn(&mut self, head: &[u8]) {
        let frames =
            || head.split(|&byte| byte == b'\n').filter_map(|line| Frame::parse_indented(line.trim_ascii_end()));
        let mut known = frames().filter(|frame| frame.symbol != UNKNOWN && !frame.inlined).peekable();
        self.no_offsets = known.peek().is_some() && known.all(|frame| frame.offset.is_none());
        // Shared libraries are mapped far above their own file offsets.
        let shared =
            |frame: &Frame<'_>| frame.dso.is_some_and(|dso| memmem::find(dso, b".so").is_some_and(|at| at > 0));
        let mut libraries = frames().filter(|frame| !frame.inlined && shared(frame)).peekable();
        let first = libraries.peek().map(|frame| frame.addr >= BEYOND_ANY_FILE);
        self.file_addresses = first
            .filter(|&first| libraries.all(|frame| (frame.addr >= BEYOND_ANY_FILE) == first))
            .map(|absolute| if absolute { FileAddresses::Absolute } else { FileAddresses::Relative });
    }
}
