//! The text that `perf script` prints, and simpleperf's `report_sample.py`: read, and rewritten frame by frame.
//!
//! ```text
//! node 15670   477.666805:    1001001 cpu-clock:
//! ⇥    7f710cede099 [unknown] (/tmp/perf-15670.map)
//! ⇥           2724a __libc_start_call_main+0x7a (/usr/lib/x86_64-linux-gnu/libc.so.6)
//!
//! ```
//!
//! Facts that the reader must know:
//! * The fields of the first line depend on `-F`; without `pid` the number is a *thread* id. Names of commands may
//!   hold spaces and digits.
//! * Times are cut to microseconds unless `--ns` was given.
//! * perf up to at least 6.1 prints addresses of file-backed objects relative to the file, 7.x absolute; addresses
//!   of anonymous memory and of nothing (`[unknown]`) are absolute in all.
//! * There is not a quoting: a symbol may hold anything, spaces and parentheses too.
//!
//! Printed by `tools/perf/builtin-script.c` and `tools/perf/util/evsel_fprintf.c`.

pub mod branches;
pub mod frame;
pub mod header;
pub mod known;
pub mod read;
pub mod registers;
pub mod rewrite;
pub mod write;

use rustc_hash::FxHasher;
use std::hash::Hasher;

/// True if a text is perf script's: among its first lines is one that begins a sample, behind comments, record lines
/// and blank ones.
pub fn sniff(head: &[u8]) -> bool {
    let complete = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    first_lines(complete).any(|line| known::is_record_line(line) || header::Header::has_time(line))
}

/// The first lines of a text that are neither comments nor blank.
fn first_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|&byte| byte == b'\n');
    lines.filter(|line| !line.starts_with(b"#") && !line.trim_ascii().is_empty()).take(64)
}

/// The end of the last sample that ends in a buffer with an empty line.
fn sample_end(buffer: &[u8]) -> Option<usize> {
    let windows_end = || memchr::memmem::rfind(buffer, b"\n\r\n").map(|at| at + 3);
    memchr::memmem::rfind(buffer, b"\n\n").map(|at| at + 2).or_else(windows_end)
}

/// By what a text is found again.
fn hash_of(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish()
}

/// True if a text that starts like this may be of perf script, in any layout: no other text is filtered.
pub fn may_be_text(head: &[u8]) -> bool {
    let Some(end) = memchr::memrchr(b'\n', head) else { return true };
    let mut lines = first_lines(&head[..end]).peekable();
    lines.peek().is_none()
        || lines.any(|line| line.trim_ascii_end().ends_with(b":") || begins_with_address(line))
        || sniff(head)
}

/// True for a line of a call chain: blanks, then a hexadecimal number.
fn begins_with_address(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    text.len() < line.len() && digits > 0 && text.get(digits).is_none_or(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::{may_be_text, sniff};

    #[test]
    fn other_texts_are_refused_and_frames_alone_are_not() {
        assert!(may_be_text(b"php 1/1 cpu-clock: \n\t    55 [unknown]\n") && may_be_text(b"\t  7f00a0 main\n"));
        assert!(may_be_text(b"# ========\n# captured on\n") && may_be_text(b"a first line without an end"));
        assert!(
            !may_be_text(b"main;work 17\n") && !may_be_text(b"hello world\n") && !may_be_text(b"{\n  \"a\": 1\n}\n")
        );
    }

    #[test]
    fn perf_script_text_is_distinguished_from_other_text() {
        assert!(sniff(b"# ========\n# captured on\n#\nnode 1 2.000000: 100 cycles: \n\t1 a (b)\n"));
        assert!(sniff(b"swapper 0 0.000000: PERF_RECORD_MMAP -1/0: [0x0(0x1) @ 0]: x [kernel]\n"));
        assert!(sniff(b"app main 77/78 [001] 2.000000123: cpu-clock:u: \n"));
        assert!(!sniff(b"main;work;more 17\nmain;idle 3\n"));
        assert!(!sniff(b"PERFILE2 and then binary"));
        assert!(!sniff(b""));
    }
}
