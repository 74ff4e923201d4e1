//! Parses the lines of PyPy's log that the reader needs.

use super::trace::TraceId;
use crate::bytes::digits::{self, hex};
use memchr::memmem;
use std::ops::Range;

/// The start of a section, `[3f857057e8f0] {jit-backend-dump`, or its end, `[3f8570582ade] jit-backend-dump}`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bracket<'a> {
    /// The time in brackets at the start of the line: the value of the time-stamp counter (x86), or else the CPU time
    /// of the thread.
    pub(super) time: u64,
    /// The section's name.
    pub(super) section: &'a [u8],
    pub(super) is_begin: bool,
}

/// Parses the start or end of a section. Newer versions of PyPy write the number of the thread in front (`0# `). `None`
/// for any other line.
pub(super) fn parse_bracket(line: &[u8]) -> Option<Bracket<'_>> {
    let thread_len = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let line = if thread_len > 0 { line[thread_len..].strip_prefix(b"# ")? } else { line };
    // `[TIME] {SECTION` at the start, `[TIME] SECTION}` at the end.
    let line = line.strip_prefix(b"[")?;
    let end = memchr::memchr(b']', line)?;
    let (time, text) = (hex(&line[..end])?, line[end + 1..].trim_ascii());
    let (section, is_begin) = match text.strip_prefix(b"{") {
        Some(section) => (section, true),
        None => (text.strip_suffix(b"}")?, false),
    };
    let is_word = section.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if section.is_empty() || !is_word {
        return None;
    }
    Some(Bracket { time, section, is_begin })
}

/// A parsed line such as `debug_merge_point(1, 2, 'add;…')`. It states the interpreter's position in the source, to
/// which the operations after it belong.
pub(super) struct MergePointLine {
    /// How deep the position is nested in calls that were traced through; 0 in the outermost function.
    pub(super) depth: u32,
    /// Number of the call that the merge point is in.
    pub(super) call: u64,
    /// The range of the quoted text in the line.
    pub(super) text: Range<usize>,
}

/// Parses a line such as `debug_merge_point(0, 0, '<code object f. file 'f.py'. line 1> #9')`: the depth, the number
/// of the call, and the range of the text within the line. `None` if it is another line.
pub(super) fn parse_merge_point(line: &[u8]) -> Option<MergePointLine> {
    let rest = line.strip_prefix(b"debug_merge_point(")?;
    let mut numbers = rest.splitn(3, |&byte| byte == b',').map(<[u8]>::trim_ascii);
    let depth = digits::number::<u64>(numbers.next()?)?;
    let call = digits::number::<u64>(numbers.next()?)?;
    let quote = memchr::memchr2(b'\'', b'"', line)?;
    let end = memchr::memrchr(line[quote], line).filter(|&end| end > quote)?;
    Some(MergePointLine { depth: u32::try_from(depth).ok()?, call, text: quote + 1..end })
}

/// Parses the line above a trace's operations, such as `Loop 1 (…) : loop with 76 ops`, and returns the trace's ID.
/// `offset` is the line's offset in the log.
pub(super) fn parse_head(head: &[u8], offset: usize) -> Option<TraceId> {
    let end =
        if head.starts_with(b"Loop ") { memmem::rfind(head, b") : ")? + 1 } else { memmem::rfind(head, b" with ")? };
    TraceId::parse(&head[..end], offset)
}

/// True if an operation ends a call that was traced through. The next operations belong to that call's caller.
pub(super) fn leaves_call(operation: &[u8]) -> bool {
    memmem::find(operation, b": leave_portal_frame(").is_some()
}

/// The address of an operation's guard (`descr=<Guard0x…>`); `None` if it has none.
pub(super) fn parse_guard(operation: &[u8]) -> Option<u64> {
    const BEGIN: &[u8] = b"descr=<Guard0x";
    let rest = &operation[memmem::find(operation, BEGIN)? + BEGIN.len()..];
    hex(&rest[..memchr::memchr(b'>', rest)?])
}

/// ELF `e_machine` for PyPy's name of a CPU.
pub(super) fn parse_machine(backend: &[u8]) -> Option<u16> {
    Some(match backend {
        b"x86" => 3,
        b"x86_64" => 62,
        b"aarch64" => 183,
        b"ppc64" | b"ppc-64" => 21,
        b"s390x" => 22,
        _ => return None,
    })
}
