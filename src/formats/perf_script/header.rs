//! Parses the first line of a sample (the header): thread, time, event.

use crate::bytes::digits::{decimal, number};
use crate::model::{Nanos, Pid, Tid};
use std::ops::Range;

/// Width to which perf pads an address, in columns.
pub(super) const ADDRESS_WIDTH: usize = 16;

/// The fields that were recognized in a header. All borrow from the line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Header<'a> {
    /// The command name; empty if it was not printed.
    pub(super) comm: &'a [u8],
    /// The process ID; `None` if it was not printed (`-F pid`).
    pub(super) pid: Option<Pid>,
    /// The thread ID; `None` if it was not printed. A single number is taken for the thread ID, which perf prints by
    /// default.
    pub(super) tid: Option<Tid>,
    /// The CPU; `None` if it was not printed.
    pub(super) cpu: Option<u32>,
    /// The time, which perf truncated to microseconds unless `has_nanos` is true. `None` if it was not printed.
    pub(super) time: Option<Nanos>,
    /// True if the time was printed with nine digits (`--ns`).
    pub(super) has_nanos: bool,
    /// The sampling period: the number before the event's name, or before the fields that follow the time. `None` if it
    /// was not printed.
    pub(super) period: Option<u64>,
    /// The event's name, without its colon; `None` if it was not printed.
    pub(super) event: Option<&'a [u8]>,
    /// The rest of the line after the time (or after the thread, if there is no time): period, event and, in one-line
    /// samples, the frame.
    pub(super) rest: &'a [u8],
    /// The end of [`Self::rest`] that follows the event, or all of it if there is no event. In a one-line sample it
    /// contains the frame.
    pub(super) tail: &'a [u8],
}

impl<'a> Header<'a> {
    /// Parses a line. `None` if it cannot be a header: it needs a time, or a thread ID and an event.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        if line.is_empty() || line[0] == b'\t' || line[0] == b'#' {
            return None;
        }
        let words = Words { line, offset: 0 };
        let fields = Self::parse_with_time(line, words).or_else(|| Self::parse_without_time(line, words))?;
        Some(fields.with_event())
    }

    /// True if a line can be a header and has a time.
    pub(super) fn has_time(line: &'a [u8]) -> bool {
        // A cheap test first: the line is only parsed word by word if one of its words ends like a time.
        for colon in memchr::memchr_iter(b':', line) {
            let follows_digit = colon > 0 && line[colon - 1].is_ascii_digit();
            if follows_digit && line.get(colon + 1).is_none_or(u8::is_ascii_whitespace) {
                return Self::parse(line).is_some_and(|header| header.time.is_some());
            }
        }
        false
    }

    /// Parses a line that must be a header because frames follow directly. Depending on `-F`, it may lack time and
    /// event, or consist of nothing but a command name. Words that aren't recognized as another field belong to the
    /// command name, which ends where the first recognized field begins. The command name may contain numbers: in
    /// `my app 2 4711 [003]`, it is `my app 2`, and 4711 is the thread ID.
    pub(super) fn parse_above_frames(line: &'a [u8]) -> Self {
        if let Some(header) = Self::parse(line) {
            return header;
        }
        let mut words = Words { line, offset: 0 };
        // A time ends with a colon like an event, so words that are times are excluded.
        let event = words.find(|(_, word)| is_event(word) && parse_time(word).is_none());
        let fields_end = event.map_or(line.len(), |(start, _)| start);
        let mut header = Self { rest: &line[fields_end..], ..Self::default() };
        // Where the command name ends, as far as known: at the start of the first recognized field.
        let mut comm_end = fields_end;
        // Where the previous word ends.
        let mut last_word_end = 0;
        // Each recognized field moves `comm_end` back to its start, if the field starts before it; only a thread ID may
        // also move it on. A time or period moves the start of `rest`, which until then is the event. `last_word_end`
        // is only needed for the padding in front of a period.
        for (start, word) in (Words { line: &line[..fields_end], offset: 0 }) {
            let time = parse_time(word);
            if time.is_none()
                && !is_padded_number(line, start, word)
                && let Some(Ids { pid, tid }) = parse_ids(word)
            {
                // The last number that isn't padded like a period is the thread ID. A number before it was taken for
                // the thread ID too early: it belongs to the command name, as does everything else before the thread
                // ID. So `comm_end` moves here even if it was set before.
                (header.pid, header.tid) = (pid, tid);
                comm_end = start;
            } else if let Some(cpu) = parse_cpu(word) {
                // The CPU, like the time and the period in the branches below, follows the thread ID or, without one,
                // the command name. So the command name ends here, unless an earlier field has ended it.
                header.cpu = Some(cpu);
                comm_end = comm_end.min(start);
            } else if let Some(PrintedTime { time, has_nanos }) = time {
                (header.time, header.has_nanos) = (Some(time), has_nanos);
                comm_end = comm_end.min(start);
                header.rest = &line[start + word.len()..];
            } else if decimal(word).is_some() {
                // The word is the period. `rest` begins with the period's padding, by which `with_event` recognizes it.
                comm_end = comm_end.min(start);
                header.rest = &line[last_word_end..];
            }
            last_word_end = start + word.len();
        }
        header.comm = line[..comm_end].trim_ascii();
        header.with_event()
    }

    /// Parses a header with a time. The number before the time is the thread ID; the CPU and flags may be printed
    /// between the two. Everything before the thread ID is the command name, which may contain numbers and blanks, so
    /// any number may turn out to be a part of it: in `my app 2 4711 [003] 466.577591:`, the name is `my app 2`. `None`
    /// if no word is a time.
    fn parse_with_time(line: &'a [u8], words: Words<'a>) -> Option<Self> {
        // The last word so far that can hold a process and thread ID: its offset in the line, and the IDs.
        let mut ids: Option<(usize, Ids)> = None;
        let mut cpu = None;
        for (start, word) in words {
            // Without a thread ID, only the line's first word can be the time.
            let time = match ids {
                Some(_) => parse_any_time(line, word),
                None if line[..start].trim_ascii().is_empty() => parse_time(word),
                None => None,
            };
            if let Some(PrintedTime { time, has_nanos }) = time {
                let (comm_end, Ids { pid, tid }) = ids.unwrap_or_default();
                let comm = strip_guest(line[..comm_end].trim_ascii());
                let rest = &line[start + word.len()..];
                return Some(Self { comm, pid, tid, cpu, time: Some(time), has_nanos, rest, ..Self::default() });
            } else if let Some(found) = parse_ids(word) {
                ids = Some((start, found));
                cpu = None;
            } else if let Some(number) = parse_cpu(word) {
                cpu = Some(number);
            // Only flags or a date can stand between the thread ID and the time. Any other word shows that the number
            // before it belongs to the command name.
            } else if ids.is_none() || !is_flags(word) && !is_time_of_day(word) {
                (ids, cpu) = (None, None);
            }
        }
        None
    }

    /// Parses a header without a time, such as `my 2 app 4711 250000 cycles:`. Of numbers that directly follow each
    /// other, the first is the thread ID (4711) and the second the period. Numbers with other words between them and
    /// the thread ID belong to the command name (`my 2 app`). `None` if there is no event, or no number before it.
    fn parse_without_time(line: &'a [u8], words: Words<'a>) -> Option<Self> {
        // The last word so far that can hold a process and thread ID: its range in the line, and the IDs.
        let mut ids: Option<(Range<usize>, Ids)> = None;
        let mut cpu = None;
        // How many numbers (or pairs of IDs) precede the current word, with nothing but a CPU, flags or a time of day
        // between them.
        let mut numbers = 0;
        for (start, word) in words {
            // A padded number at the start of the line is the period (`-F period,…`).
            let is_period = line[..start].trim_ascii().is_empty() && is_padded_number(line, start, word);
            if let Some(found) = parse_ids(word).filter(|_| !is_period) {
                numbers += 1;
                // The second of two numbers in a row is the period, unless it is a pair of IDs.
                if numbers == 1 || found.pid.is_some() {
                    ids = Some((start..start + word.len(), found));
                    cpu = None;
                }
            } else if let Some(number) = parse_cpu(word) {
                cpu = Some(number);
            } else if is_event(word) {
                let (range, Ids { pid, tid }) = ids?;
                let comm = strip_guest(line[..range.start].trim_ascii());
                return Some(Self { comm, pid, tid, cpu, rest: &line[range.end..], ..Self::default() });
            } else if !is_misc(word) && !is_time_of_day(word) {
                numbers = 0;
            }
        }
        None
    }

    /// Finds event and period in [`Self::rest`], and sets [`Self::tail`] to what follows the event.
    fn with_event(mut self) -> Self {
        let event_end = self.event_end();
        let fields = &self.rest[..event_end.unwrap_or(self.rest.len())];
        for (start, word) in (Words { line: fields, offset: 0 }) {
            // Without an event, only the padding to 10 columns shows that a number is a period. A number that is padded
            // to 16 columns is an address, unless it has 16 digits or more: then nothing was padded.
            let is_padded_period = is_padded(fields, start, word, PERIOD_WIDTH)
                && (!is_padded(fields, start, word, ADDRESS_WIDTH) || word.len() >= ADDRESS_WIDTH);
            if (event_end.is_some() || is_padded_period)
                && let Some(period) = number(word)
            {
                self.period = Some(period);
                break;
            }
        }
        self.tail = self.rest;
        if let Some(end) = event_end {
            let start = fields.iter().rposition(u8::is_ascii_whitespace).map_or(0, |blank| blank + 1);
            self.event = Some(&fields[start..end - 1]).filter(|name| !name.is_empty());
            self.tail = &self.rest[end..];
        }
        self
    }

    /// The offset in [`Self::rest`] after the event and its colon; `None` if no event was printed.
    fn event_end(&self) -> Option<usize> {
        for (start, word) in (Words { line: self.rest, offset: 0 }) {
            if word.ends_with(b":") {
                return Some(start + word.len());
            }
            // If no time was printed, fields that follow the thread ID may come before the event. Any other word shows
            // that there is no event.
            let may_precede_event =
                decimal(word).is_some() || is_misc(word) || is_time_of_day(word) || parse_cpu(word).is_some();
            if !may_precede_event {
                return None;
            }
        }
        None
    }

    /// The time as of which to look up JIT code: the end of the microsecond or nanosecond that was printed, because
    /// code that was logged within the same microsecond may be the sampled code. `None` if no time was printed.
    pub(super) fn lookup_time(&self) -> Option<Nanos> {
        self.time.map(|time| if self.has_nanos { time } else { Nanos(time.0.saturating_add(999)) })
    }
}

/// The IDs in a header; `None` for one that wasn't printed.
#[derive(Debug, Clone, Copy, Default)]
struct Ids {
    pid: Option<Pid>,
    tid: Option<Tid>,
}

/// Iterator over the words of a line and their offsets.
#[derive(Clone, Copy)]
struct Words<'a> {
    line: &'a [u8],
    /// Offset in the line from which the next word is searched.
    offset: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = (usize, &'a [u8]);

    /// The offset of the next word in the line, and the word.
    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.line[self.offset..];
        let skipped = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let word = &rest[skipped..];
        let len = word.iter().position(u8::is_ascii_whitespace).unwrap_or(word.len());
        let start = self.offset + skipped;
        self.offset = start + len;
        Some((start, &self.line[start..self.offset]))
    }
}

/// Width to which perf pads a period, in columns.
const PERIOD_WIDTH: usize = 10;

/// True if the word `word`, which begins at offset `start` of a line, is padded with blanks to `width` columns.
fn is_padded(line: &[u8], start: usize, word: &[u8], width: usize) -> bool {
    let blanks = line[..start].iter().rev().take_while(|byte| **byte == b' ').count();
    blanks + word.len() >= width
}

/// True if a word, which must be a number or a pair of IDs, is a number padded with blanks as perf pads a period. A
/// pair such as `31795/31795` can be as long, but isn't a number.
fn is_padded_number(line: &[u8], start: usize, word: &[u8]) -> bool {
    is_padded(line, start, word, PERIOD_WIDTH) && memchr::memchr(b'/', word).is_none()
}

/// True if a word looks like an event's name with its colon.
fn is_event(word: &[u8]) -> bool {
    word.len() > 1 && word.ends_with(b":")
}

/// Removes what perf prints before the command name for the guest of a virtual machine (`VM:12345 VCPU:001`).
fn strip_guest(comm: &[u8]) -> &[u8] {
    let mut comm = comm;
    for word in [&b"VM:"[..], b"VCPU:"] {
        if let Some(rest) = comm.strip_prefix(word) {
            let rest = rest.trim_ascii_start();
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            comm = rest[digits..].trim_ascii_start();
        }
    }
    comm
}

/// Parses the time in a line that also states a thread. The time may have any number of digits up to nine: other tools,
/// and people who shorten a text, print fewer than perf. simpleperf's first `report_sample.py`, which separates fields
/// by tabs, prints the microseconds without leading zeros.
fn parse_any_time(line: &[u8], word: &[u8]) -> Option<PrintedTime> {
    let time = parse_time(word);
    if time.is_some() {
        return time;
    }
    let text = word.strip_suffix(b":")?;
    let dot = text.iter().position(|&byte| byte == b'.')?;
    let (seconds, fraction) = (decimal(&text[..dot])?, &text[dot + 1..]);
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| (1..=9).contains(digits))?;
    let is_simpleperf = digits < 6 && memchr::memchr(b'\t', line).is_some();
    // The value of the last digit in nanoseconds.
    let unit = if is_simpleperf { 1_000 } else { 10u64.pow(9 - digits) };
    let nanos = seconds.checked_mul(1_000_000_000)?.checked_add(decimal(fraction)? * unit)?;
    Some(PrintedTime { time: Nanos(nanos), has_nanos: false })
}

/// A time as perf printed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PrintedTime {
    time: Nanos,
    /// True if the time was printed with nine digits (`--ns`). Otherwise perf truncated it to microseconds.
    has_nanos: bool,
}

/// Parses a time as perf prints it: `477.666805:` or, with `--ns`, `477.666805123:`. `None` for other words.
fn parse_time(word: &[u8]) -> Option<PrintedTime> {
    let text = word.strip_suffix(b":")?;
    let dot = text.iter().position(|&byte| byte == b'.')?;
    let (seconds, fraction) = (decimal(&text[..dot])?, &text[dot + 1..]);
    // How many nanoseconds the last digit stands for.
    let unit = match fraction.len() {
        6 => 1_000,
        9 => 1,
        _ => return None,
    };
    let nanos = seconds.checked_mul(1_000_000_000)?.checked_add(decimal(fraction)? * unit)?;
    Some(PrintedTime { time: Nanos(nanos), has_nanos: unit == 1 })
}

/// Parses `15670` (a thread) or `15670/15671` (process and thread). `None` for other words. perf prints -1 for "no
/// thread".
fn parse_ids(word: &[u8]) -> Option<Ids> {
    let (pid, tid) = match word.iter().position(|&byte| byte == b'/') {
        Some(slash) => (Some(Pid(parse_id(&word[..slash])?)), &word[slash + 1..]),
        None => (None, word),
    };
    Some(Ids { pid, tid: Some(Tid(parse_id(tid)?)) })
}

fn parse_id(text: &[u8]) -> Option<i32> {
    if text == b"-1" { Some(-1) } else { decimal(text).and_then(|id| i32::try_from(id).ok()) }
}

/// Parses a CPU as perf prints it: `[003]`. `None` for other words.
fn parse_cpu(word: &[u8]) -> Option<u32> {
    let inner = word.strip_prefix(b"[")?.strip_suffix(b"]")?;
    decimal(inner).and_then(|cpu| u32::try_from(cpu).ok())
}

/// True for the flags of trace events (`d..1.`, `d.h2.`) and of `-F misc` (`U`, `K`).
fn is_flags(word: &[u8]) -> bool {
    word.len() <= 6 && word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'.')
}

/// True for the flags of `-F misc`.
fn is_misc(word: &[u8]) -> bool {
    word.len() <= 4 && word.iter().all(|byte| b"KUHGgMEFSp".contains(byte))
}

/// True for the date or time of `-F tod`: `2026-11-27`, `04:11:16.695520`.
fn is_time_of_day(word: &[u8]) -> bool {
    let has_two = |separator: u8| word.iter().filter(|byte| **byte == separator).count() == 2;
    word.len() >= 8
        && word[0].is_ascii_digit()
        && word[word.len() - 1].is_ascii_digit()
        && (has_two(b'-') || has_two(b':'))
        && word.iter().all(|byte| byte.is_ascii_digit() || b"-:.".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> (String, Option<i32>, Option<i32>, Option<u64>, Option<String>) {
        let header = Header::parse(line.as_bytes()).unwrap_or_else(|| panic!("not a header: {line}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let time = header.time.map(|time| time.0);
        (text(header.comm), header.pid.map(|p| p.0), header.tid.map(|t| t.0), time, header.event.map(text))
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
    fn further_fields_are_not_part_of_the_name_or_the_thread() {
        let us = Some(622_975_356_000);
        let cases = [
            (
                "il   25872 2026-11-27 04:11:16.695520   622.975356:   10101010 task-clock:u: ",
                ("il", None, Some(25872), us, Some("task-clock:u")),
            ),
            (
                "il   25872 2026-11-27 04:11:16.695520   10101010 task-clock:u: ",
                ("il", None, Some(25872), None, Some("task-clock:u")),
            ),
            (
                "il   25872 U       622.975356:    1001001 task-clock:u: ",
                ("il", None, Some(25872), us, Some("task-clock:u")),
            ),
            ("il   25872 U          1001001 task-clock:u: ", ("il", None, Some(25872), None, Some("task-clock:u"))),
            (
                "VM:25872 VCPU:001 CPU 0/KVM    77 [001]   622.975356: cycles: ",
                ("CPU 0/KVM", None, Some(77), us, Some("cycles")),
            ),
            (
                "il   25872   622.975356:    1001001 task-clock:u:  /user.slice",
                ("il", None, Some(25872), us, Some("task-clock:u")),
            ),
            ("il   25872   622.975356: ", ("il", None, Some(25872), us, None)),
            ("php\t31795 [001] 622.975356:\t\t1001001 cpu-clock:", ("php", None, Some(31795), us, Some("cpu-clock"))),
            (
                "php\t31795 [001] 622.42:\t\t1001001 cpu-clock:",
                ("php", None, Some(31795), Some(622_000_042_000), Some("cpu-clock")),
            ),
            ("a 1 1.0: 1 cycles: ", ("a", None, Some(1), Some(1_000_000_000), Some("cycles"))),
            ("a 1/2 [003] 1.25: cycles:u: ", ("a", Some(1), Some(2), Some(1_250_000_000), Some("cycles:u"))),
            ("a 1 1.12345678: cycles: ", ("a", None, Some(1), Some(1_123_456_780), Some("cycles"))),
            ("a 1.5 7 1.000: cycles: ", ("a 1.5", None, Some(7), Some(1_000_000_000), Some("cycles"))),
        ];
        for (line, (comm, pid, tid, time, event)) in cases {
            assert_eq!(parse(line), (comm.into(), pid, tid, time, event.map(str::to_owned)), "{line}");
        }
        let guest = Header::parse(b"il 25872 U 1001001 task-clock:u: ").unwrap();
        assert_eq!(guest.period, Some(1_001_001));
    }

    #[test]
    fn lines_above_frames_may_print_little() {
        /// Line, command name, thread, whether there is a time, period, event.
        type Case = (&'static str, &'static str, Option<i32>, bool, Option<u64>, Option<&'static str>);
        let cases: [Case; 9] = [
            ("il   25872 ", "il", Some(25872), false, None, None),
            ("il ", "il", None, false, None, None),
            ("", "", None, false, None, None),
            ("  25872 ", "", Some(25872), false, None, None),
            ("task-clock:u: ", "", None, false, None, Some("task-clock:u")),
            ("  10101010 task-clock:u: ", "", None, false, Some(10_101_010), Some("task-clock:u")),
            ("  10101010 ", "", None, false, Some(10_101_010), None),
            ("my il   622.975356: task-clock:u: ", "my il", None, true, None, Some("task-clock:u")),
            ("my il [003]   622.975356: ", "my il", None, true, None, None),
        ];
        for (line, comm, tid, has_time, period, event) in cases {
            let header = Header::parse_above_frames(line.as_bytes());
            assert_eq!(header.comm, comm.as_bytes(), "{line}");
            assert_eq!((header.tid.map(|tid| tid.0), header.time.is_some()), (tid, has_time), "{line}");
            assert_eq!((header.period, header.event), (period, event.map(str::as_bytes)), "{line}");
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
        assert_eq!((header.period, header.lookup_time()), (Some(1_001_001), Some(Nanos(2_000_003_999))));
        assert_eq!(Header::parse(b"n 1 2.000003: cpu-clock: ").unwrap().period, None);
    }
}
