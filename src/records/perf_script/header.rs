//! The first line of a sample: who, when, which event.

use crate::bytes::digits::{decimal, number};
use crate::model::{Nanos, Pid, Tid};
use std::ops::Range;

/// The fields of a sample's first line that could be determined. All borrow from the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// The command's name; empty if it was not printed.
    pub comm: &'a [u8],
    /// The process, if `pid` was printed.
    pub pid: Option<Pid>,
    /// The thread, if `tid` was printed. A single number is taken for a thread, as perf's default prints it.
    pub tid: Option<Tid>,
    /// The processor.
    pub cpu: Option<u32>,
    /// The time; cut to microseconds unless `nanos` states otherwise.
    pub time: Option<Nanos>,
    /// True if the time was printed with nine digits (`--ns`).
    pub nanos: bool,
    /// The rest: period, event and, in one-line samples, the frame.
    pub rest: &'a [u8],
}

impl<'a> Header<'a> {
    /// Takes a line apart. `None` if it cannot be the first line of a sample.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        if line.is_empty() || line[0] == b'\t' || line[0] == b'#' {
            return None;
        }
        let tokens = Tokens { line, at: 0 };
        Self::by_time(line, tokens).or_else(|| Self::by_event(line, tokens))
    }

    /// True if a line can be the first of a sample and has a time.
    pub(super) fn has_time(line: &'a [u8]) -> bool {
        // Words of other texts are not looked at one by one if nothing ends as a time does.
        let ends_a_number = |at: usize| at > 0 && line[at - 1].is_ascii_digit();
        let ends_a_word = |at: usize| line.get(at + 1).is_none_or(u8::is_ascii_whitespace);
        let mut colons = memchr::memchr_iter(b':', line);
        colons.any(|at| ends_a_number(at) && ends_a_word(at))
            && Self::parse(line).is_some_and(|header| header.time.is_some())
    }

    /// With a time: the number before it (and before the processor and flags) is the thread, all before the name.
    fn by_time(line: &'a [u8], tokens: Tokens<'a>) -> Option<Self> {
        let mut ids: Option<(usize, Ids)> = None;
        let mut cpu = None;
        for (start, token) in tokens {
            if let (Some((time, nanos)), true) =
                (parse_time(token), ids.is_some() || line[..start].trim_ascii().is_empty())
            {
                let (name_end, (pid, tid)) = ids.unwrap_or((0, (None, None)));
                let comm = line[..name_end].trim_ascii();
                let rest = &line[start + token.len()..];
                return Some(Self { comm, pid, tid, cpu, time: Some(time), nanos, rest });
            } else if let Some(found) = parse_ids(token) {
                (ids, cpu) = (Some((start, found)), None);
            } else if let Some(number) = parse_cpu(token) {
                cpu = Some(number);
            } else if !is_flags(token) || ids.is_none() {
                (ids, cpu) = (None, None);
            }
        }
        None
    }

    /// Without a time: the last number before the event's name that can be a thread.
    fn by_event(line: &'a [u8], tokens: Tokens<'a>) -> Option<Self> {
        let mut ids: Option<(usize, usize, Ids)> = None;
        let mut cpu = None;
        let mut numbers = 0;
        for (start, token) in tokens {
            if let Some(found) = parse_ids(token) {
                numbers += 1;
                // A second plain number in a row is the period.
                if numbers == 1 || found.0.is_some() {
                    (ids, cpu) = (Some((start, start + token.len(), found)), None);
                }
            } else if let Some(number) = parse_cpu(token) {
                cpu = Some(number);
            } else if token.len() > 1 && token.ends_with(b":") {
                let (name_end, rest, (pid, tid)) = ids?;
                let comm = line[..name_end].trim_ascii();
                return Some(Self { comm, pid, tid, cpu, time: None, nanos: false, rest: &line[rest..] });
            } else {
                numbers = 0;
            }
        }
        None
    }

    /// The event's name: what precedes the last colon that ends a word, behind the period.
    pub fn event(&self) -> Option<&'a [u8]> {
        self.event_place().map(|place| &self.rest[place])
    }

    /// The place of that name in `rest`.
    pub(super) fn event_place(&self) -> Option<Range<usize>> {
        let (start, event) = Tokens { line: self.rest, at: 0 }.find(|(_, token)| token.ends_with(b":"))?;
        (event.len() > 1).then_some(start..start + event.len() - 1)
    }

    /// The end of the event in `rest`, if it was printed: it is first, or behind the period.
    pub(super) fn event_end(&self) -> Option<usize> {
        let mut tokens = Tokens { line: self.rest, at: 0 };
        let (start, first) = tokens.next()?;
        let (start, event) = if decimal(first).is_some() { tokens.next()? } else { (start, first) };
        event.ends_with(b":").then_some(start + event.len())
    }

    /// The period, if it was printed: a number right before the event's name.
    pub fn period(&self) -> Option<u64> {
        number(Tokens { line: self.rest, at: 0 }.next()?.1)
    }

    /// The time to ask the code map for: the end of the printed unit, since code logged within the same microsecond
    /// may be what was sampled.
    pub fn lookup_time(&self) -> Option<Nanos> {
        self.time.map(|time| if self.nanos { time } else { Nanos(time.0.saturating_add(999)) })
    }
}

type Ids = (Option<Pid>, Option<Tid>);

/// Words of a line, with their places.
#[derive(Clone, Copy)]
struct Tokens<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.line[self.at..];
        let skipped = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let word = &rest[skipped..];
        let len = word.iter().position(u8::is_ascii_whitespace).unwrap_or(word.len());
        let start = self.at + skipped;
        self.at = start + len;
        Some((start, &self.line[start..self.at]))
    }
}

/// `477.666805:` or, with `--ns`, `477.666805123:`.
fn parse_time(token: &[u8]) -> Option<(Nanos, bool)> {
    let text = token.strip_suffix(b":")?;
    let dot = text.iter().position(|&byte| byte == b'.')?;
    let (seconds, fraction) = (decimal(&text[..dot])?, &text[dot + 1..]);
    let unit = match fraction.len() {
        6 => 1_000,
        9 => 1,
        _ => return None,
    };
    let nanos = seconds.checked_mul(1_000_000_000)?.checked_add(decimal(fraction)? * unit)?;
    Some((Nanos(nanos), unit == 1))
}

/// `15670` (a thread) or `15670/15671` (process and thread); -1 is perf's "no thread".
fn parse_ids(token: &[u8]) -> Option<Ids> {
    match token.iter().position(|&byte| byte == b'/') {
        Some(slash) => Some((Some(Pid(id(&token[..slash])?)), Some(Tid(id(&token[slash + 1..])?)))),
        None => Some((None, Some(Tid(id(token)?)))),
    }
}

fn id(text: &[u8]) -> Option<i32> {
    if text == b"-1" { Some(-1) } else { decimal(text).and_then(|id| i32::try_from(id).ok()) }
}

/// `[003]`
fn parse_cpu(token: &[u8]) -> Option<u32> {
    let inner = token.strip_prefix(b"[")?.strip_suffix(b"]")?;
    decimal(inner).and_then(|cpu| u32::try_from(cpu).ok())
}

/// The flags of trace events (`d..1.`, `d.h2.`) and of `-F misc` (`U`, `K`).
fn is_flags(token: &[u8]) -> bool {
    token.len() <= 6 && token.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> (String, Option<i32>, Option<i32>, Option<u64>, Option<String>) {
        let header = Header::parse(line.as_bytes()).unwrap_or_else(|| panic!("not a header: {line}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let time = header.time.map(|time| time.0);
        (text(header.comm), header.pid.map(|p| p.0), header.tid.map(|t| t.0), time, header.event().map(text))
    }

    #[test]
    fn every_common_choice_of_fields() {
        let us = Some(477_666_805_000);
        let cases = [
            ("node 16014   477.666805:    1001001 cpu-clock: ", ("node", None, Some(16014), us, Some("cpu-clock"))),
            (
                "  wörk er 717 18337   477.666805:    1001001 cpu-clock:u:  7f1 a+0x1 (b)",
                ("wörk er 717", None, Some(18337), us, Some("cpu-clock:u")),
            ),
            (
                "java 18314/18337 [001]   477.666805: 1 cycles:ppp: ",
                ("java", Some(18314), Some(18337), us, Some("cycles:ppp")),
            ),
            (
                "java 18314/18337 [001] d..1.  477.666805: sched:sched_switch: prev",
                ("java", Some(18314), Some(18337), us, Some("sched:sched_switch")),
            ),
            ("16014   477.666805:    1001001 cpu-clock: ", ("", None, Some(16014), us, Some("cpu-clock"))),
            ("  477.666805:    1001001 cpu-clock: ", ("", None, None, us, Some("cpu-clock"))),
            ("a 1 2 3 477.666805123: cpu-clock: ", ("a 1 2", None, Some(3), Some(477_666_805_123), Some("cpu-clock"))),
            ("node 16014 cpu-clock: ", ("node", None, Some(16014), None, Some("cpu-clock"))),
            ("node 16014    1001001 cpu-clock: ", ("node", None, Some(16014), None, Some("cpu-clock"))),
            ("node 16014/16015 cpu-clock: ", ("node", Some(16014), Some(16015), None, Some("cpu-clock"))),
            (":-1    -1   477.666805: 1 cycles: ", (":-1", None, Some(-1), us, Some("cycles"))),
        ];
        for (line, (comm, pid, tid, time, event)) in cases {
            assert_eq!(parse(line), (comm.into(), pid, tid, time, event.map(str::to_owned)), "{line}");
        }
    }

    #[test]
    fn frames_and_noise_are_not_headers() {
        for line in ["\t 7f71 a (b)", "", "# cmdline", "no numbers here: at all", "\u{0}\u{1}\u{2}", "  src.c:12"] {
            assert_eq!(Header::parse(line.as_bytes()), None, "{line:?}");
        }
    }

    #[test]
    fn periods_and_the_end_of_the_microsecond() {
        let header = Header::parse(b"n 1 2.000003:    1001001 cpu-clock: ").unwrap();
        assert_eq!((header.period(), header.lookup_time()), (Some(1_001_001), Some(Nanos(2_000_003_999))));
        assert_eq!(Header::parse(b"n 1 2.000003: cpu-clock: ").unwrap().period(), None);
    }
}
