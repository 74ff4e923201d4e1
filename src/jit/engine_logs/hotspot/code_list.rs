//! Reads the output of `jcmd PID Compiler.codelist`. A line has the number, compilation level and state of a compiled
//! method, its name, and the addresses of its code.
//!
//! ```text
//! 4711:
//! 2759 3 0 java.lang.String.equals(Ljava/lang/Object;)Z [0x00007f162ab37c08, 0x00007f162ab37d00 - 0x00007f162ab380f0]
//! ```
//!
//! The first address is the header, the others are start and end of the code. There are no times: the list
//! shows the moment when it was printed, without code that was freed before (`CodeCache::print_codelist` in
//! share/code/codeCache.cpp). The first line is printed by jcmd itself.

use super::element::address;
use super::method::{Method, compiler_mark};
use crate::bytes::digits::number;
use crate::bytes::lines::lines;
use crate::error::{Error, Result};
use crate::jit::engine_logs::code_log::{CodeLog, LogClock, LogCode};
use std::ops::Range;

/// True if nearly all lines in the beginning of a file look like a code list.
pub(super) fn sniff(head: &[u8]) -> bool {
    // The last line of `head` may be incomplete, so it isn't looked at.
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..=end]);
    let (mut all, mut parsed) = (0, 0);
    for (_, line) in filled_lines(whole) {
        // The first line of a list may have only the process ID.
        if parse_pid(line).is_none() {
            all += 1;
            parsed += usize::from(parse_line(line).is_some());
        }
    }
    // A code list may contain other lines, but not more than one in nine.
    parsed > 0 && all <= parsed + parsed / 8
}

/// Reads a code list.
pub(super) fn read(bytes: &[u8]) -> Result<CodeLog> {
    let mut log = CodeLog::new(LogClock::None, "line");
    for (index, (offset, line)) in filled_lines(bytes).enumerate() {
        if let Some((name, range)) = parse_line(line) {
            let name = log.texts.intern(&name);
            let code = LogCode::new(name, range.start, range.end - range.start);
            log.load(None, code);
        } else if index == 0
            && let Some(pid) = parse_pid(line)
        {
            log.pid = Some(pid);
        } else {
            log.skipped.add(Error::new(format!("line {} is not a line of a code list", index + 1)).at_offset(offset));
        }
    }
    // Torn (truncated): the last line has no line break.
    log.torn = bytes.last().is_some_and(|last| *last != b'\n');
    Ok(log)
}

/// The non-empty lines with their file offsets.
fn filled_lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    lines(bytes).map(|(offset, line)| (offset, line.trim_ascii_start())).filter(|(_, line)| !line.is_empty())
}

/// The process ID in jcmd's line `4711:`.
fn parse_pid(line: &[u8]) -> Option<i32> {
    line.strip_suffix(b":").and_then(number)
}

/// The method in a line, and the addresses of its code. `None` if the line has another form.
fn parse_line(line: &[u8]) -> Option<(Vec<u8>, Range<u64>)> {
    let mut words = line.splitn(4, |&byte| byte == b' ');
    let mut next_number = || number::<i64>(words.next()?);
    let (_id, level, _state) = (next_number()?, next_number()?, next_number()?);
    // The method, then ` [HEADER, START - END]`.
    let rest = words.next()?;
    let bracket = memchr::memmem::rfind(rest, b" [0x")?;
    let (header, range) = split_once(rest[bracket + 2..].strip_suffix(b"]")?, b", ")?;
    // The header isn't code. Its address is only checked, to recognize the line.
    address(header)?;
    let (start, end) = split_once(range, b" - ")?;
    let (start, end) = (address(start)?, address(end)?);
    let mut name = Method::from_joined(&rest[..bracket])?.spell();
    // A code list doesn't name the compiler (`b""`), but the compilation level tells which one it was.
    name.extend_from_slice(compiler_mark(b"", u32::try_from(level).ok()));
    if start <= end { Some((name, start..end)) } else { None }
}

fn split_once<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let end = memchr::memmem::find(text, separator)?;
    Some((&text[..end], &text[end + separator.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jit::engine_logs::code_log::LogEventKind;

    const LIST: &[u8] = b"4711:\n\
        2759 3 0 java.lang.String.equals(Ljava/lang/Object;)Z [0x00007f162ab37c08, 0x00007f162ab37d00 - 0x00007f162ab380f0]\n\
        909 0 0 A.linkToStatic([LA;)V [0x00007f162ab35d88, 0x00007f162ab35e80 - 0x00007f162ab35ea0]\n\
        11 4 1 A.f(I)I [0x10, 0x20 - 0x30]\n";

    /// Name, address and size of each code range, and the log itself.
    fn read_codes(list: &[u8]) -> (Vec<(String, u64, u64)>, CodeLog) {
        let log = read(list).unwrap();
        let mut codes = Vec::new();
        for event in &log.events {
            let LogEventKind::Load(code) = event.kind else { panic!("{event:?}") };
            let name = String::from_utf8_lossy(log.texts.get(code.name)).into_owned();
            codes.push((name, code.addr, code.size));
        }
        (codes, log)
    }

    #[test]
    fn lines_show_name_tier_and_place() {
        assert!(sniff(LIST) && sniff(&LIST[6..]) && sniff(&LIST[..200]));
        let (codes, log) = read_codes(LIST);
        let expected = [
            ("boolean java.lang.String.equals(java.lang.Object) [c1]", 0x7f16_2ab3_7d00, 0x3f0),
            ("void A.linkToStatic(A[])", 0x7f16_2ab3_5e80, 0x20),
            ("int A.f(int) [c2]", 0x20, 0x10),
        ];
        assert_eq!(codes, expected.map(|(name, start, size)| (name.to_owned(), start, size)));
        assert_eq!((log.pid, log.torn, log.skipped.count()), (Some(4711), false, 0));
    }

    #[test]
    fn a_false_list_is_not_taken_for_one() {
        for other in
            [&b""[..], b"4711:\n", b"7f00 10 f\n", b"4711:\nCommand executed successfully\n", b"1 2 3 A.f(I)I\n"]
        {
            assert!(!sniff(other), "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn damage_loses_a_line_at_most() {
        let whole = read_codes(LIST).0;
        for at in 0..LIST.len() {
            assert!(read_codes(&LIST[..at]).0.iter().all(|code| whole.contains(code)));
            let mut bent = LIST.to_vec();
            bent[at] ^= 1 << (at % 8);
            assert!(read_codes(&bent).0.len() + 2 >= whole.len(), "byte {at}");
        }
    }
}
