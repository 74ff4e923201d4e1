//! Options for which frames to name, and how to print them.

use crate::formats::perf_script::frame::{Frame, UNKNOWN};
use crate::formats::perf_script::layout::complete_lines;
use crate::formats::perf_script::record_lines::{BEYOND_ANY_FILE, FileAddresses};
use memchr::memmem;

/// Which frames to name, and how to print them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// Also rename frames that already have a name.
    pub rename: bool,
    /// Print the source line, if known, on a line of its own below the frame, as with `-F +srcline`.
    pub srcline: bool,
    /// Also name frames of native code in files, if the text shows the mappings.
    pub native: bool,
    /// Print no offsets after symbols, because the text has none (`-F sym` without `symoff`).
    pub no_offsets: bool,
    /// Whether the text has file offsets or addresses in the process for frames in mapped files; `None` if unknown.
    pub file_addresses: Option<FileAddresses>,
}

impl Style {
    /// Sets [`Self::no_offsets`] and [`Self::file_addresses`] to what the beginning of a text shows: whether perf
    /// printed offsets after symbols (`main+0x4`), and whether it printed code in mapped files by its offset in the
    /// file or by its address in the process.
    pub fn detect(&mut self, head: &[u8]) {
        let (mut has_symbols, mut has_offsets) = (false, false);
        let (mut has_absolute, mut has_relative) = (false, false);
        for line in complete_lines(head).split(|&byte| byte == b'\n') {
            let Some(frame) = Frame::parse_indented(line.trim_ascii_end()) else { continue };
            // An inlined frame has neither an offset nor an object.
            if frame.inlined {
                continue;
            }
            if frame.symbol != UNKNOWN {
                has_symbols = true;
                has_offsets |= frame.offset.is_some();
            }
            // The address of a frame in a shared library shows whether it is absolute: libraries are mapped far above
            // any file offset.
            if frame.dso.is_some_and(is_shared_library) {
                has_absolute |= frame.addr >= BEYOND_ANY_FILE;
                has_relative |= frame.addr < BEYOND_ANY_FILE;
            }
        }
        self.no_offsets = has_symbols && !has_offsets;
        self.file_addresses = match (has_absolute, has_relative) {
            (true, false) => Some(FileAddresses::Absolute),
            (false, true) => Some(FileAddresses::Relative),
            _ => None,
        };
    }
}

/// True if the name of an object contains `.so`, but not at its beginning.
fn is_shared_library(dso: &[u8]) -> bool {
    memmem::find(dso, b".so").is_some_and(|start| start > 0)
}
