//! Reads the output of `jcmd PID Compiler.codelist`. A line has number, level and state of a compiled method, its name,
//! and the addresses of its code.
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
use crate::records::jit_logs::code_log::{CodeLog, LogClock, LogCode};
use std::ops::Range;

/// True if nearly all lines in the beginning of a file look like a code list.
pub(super) fn sniff(head: &[u8]) -> bool {
    // The last line may be cut.
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..=end]);
    let lines = || own_lines(whole).filter(|(_, line)| number_of_jcmd(line).is_none());
    let known = lines().filter(|(_, line)| parse(line).is_some()).count();
    known > 0 && lines().count() <= known + known / 8
}

/// Reads a code list.
pub(super) fn read(bytes: &[u8]) -> Result<CodeLog> {
    let mut log = CodeLog::new(LogClock::None, "line");
    for (number, (at, line)) in own_lines(bytes).enumerate() {
        if let Some((name, range)) = parse(line) {
            let name = log.texts.intern(&name);
            let code = LogCode::new(name, range.start, range.end - range.start);
            log.load(None, code);
        } else if let (0, Some(pid)) = (number, number_of_jcmd(line)) {
            log.pid = Some(pid);
        } else {
            log.skipped.add(Error::new(format!("line {} is not a line of a code list", number + 1)).at(at));
        }
    }
    log.torn = bytes.last().is_some_and(|last| *last != b'\n');
    Ok(log)
}

/// The non-empty lines with their file offsets.
fn own_lines(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    lines(bytes).map(|(at, line)| (at, line.trim_ascii_start())).filter(|(_, line)| !line.is_empty())
}

/// The process ID in jcmd's line `4711:`.
fn number_of_jcmd(line: &[u8]) -> Option<i32> {
    line.strip_suffix(b":").and_then(number)
}

/// The method of a line, and the addresses of its code.
fn parse(line: &[u8]) -> Option<(Vec<u8>, Range<u64>)> {
    let mut words = line.splitn(4, |&byte| byte == b' ');
    let mut number = || number::<i64>(words.next()?);
    let (_id, level, _state) = (number()?, number()?, number()?);
    let rest = words.next()?;
    let bracket = memchr::memmem::rfind(rest, b" [0x")?;
    let (header, range) = split(rest[bracket + 2..].strip_suffix(b"]")?, b", ")?;
    address(header)?;
    let (start, end) = split(range, b" - ")?;
    let (start, end) = (address(start)?, address(end)?);
    let mut name = Method::from_joined(&rest[..bracket])?.spelled();
    name.extend_from_slice(compiler_mark(b"", u32::try_from(level).ok()));
    (start <= end).then_some((name, start..end))
}

fn split<'a>(text: &'a [u8], by: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(text, by)?;
    Some((&text[..at], &text[at + by.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::jit_logs::code_log::{LogEvent, LogEventKind};

    const LIST: &[u8] = b"4711:\n\
        2759 3 0 java.lang.String.equals(Ljava/lang/Object;)Z [0x00007f162ab37c08, 0x00007f162ab37d00 - 0x00007f162ab380f0]\n\
        909 0 0 A.linkToStatic([LA;)V [0x00007f162ab35d88, 0x00007f162ab35e80 - 0x00007f162ab35ea0]\n\
        11 4 1 A.f(I)I [0x10, 0x20 - 0x30]\n";

    fn told(list: &[u8]) -> (Vec<(String, u64, u64)>, CodeLog) {
        let log = read(list).unwrap();
        let code = |event: &LogEvent| match event.kind {
            LogEventKind::Load(code) => {
                (String::from_utf8_lossy(log.texts.get(code.name)).into_owned(), code.addr, code.size)
            }
            other => panic!("{other:?}"),
        };
        (log.events.iter().map(code).collect(), log)
    }

    #[test]
    fn lines_show_name_tier_and_place() {
        assert!(sniff(LIST) && sniff(&LIST[6..]) && sniff(&LIST[..200]));
        let (codes, log) = told(LIST);
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
        let whole = told(LIST).0;
        for at in 0..LIST.len() {
            assert!(told(&LIST[..at]).0.iter().all(|code| whole.contains(code)));
            let mut bent = LIST.to_vec();
            bent[at] ^= 1 << (at % 8);
            assert!(told(&bent).0.len() + 2 >= whole.len(), "byte {at}");
        }
    }
}
