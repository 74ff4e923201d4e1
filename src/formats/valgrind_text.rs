//! Names frames in reports of valgrind's tools other than callgrind, as far as the reports contain addresses of stacks:
//! massif, DHAT, and the text and XML of memcheck, helgrind and DRD. A frame in memory without a file has an address
//! but no name. It gets a name; everything else is copied byte for byte.
//!
//! | report | frame without a name | its process |
//! |---|---|---|
//! | massif | `n1: 65544 0x10401083: ???` | only in the file's name |
//! | DHAT | `"0x10400904: ???"` in `ftbl` | `"pid":` |
//! | text | `==PID==    by 0x10401083: ???` | `==PID==` |
//! | XML | `<ip>0x10401083</ip>` without `<obj>` and `<fn>` | `<pid>` |
//!
//! A stripped object shows up as `??? (in FILE)`; such frames are not renamed. The address of the innermost frame
//! (`at`) is exact. A caller's address is inside or just after the call instruction, so the byte before it is looked
//! up.
//!
//! Files of cachegrind contain no addresses.
//!
//! Specification: <https://valgrind.org/docs/manual/>, `massif/ms_print.in`, `dhat/dh_main.c` and
//! `docs/internals/xml-output-protocol4.txt` in valgrind's sources.

use crate::bytes::digits::{hex, number};
use crate::bytes::escapes::escape_markup;
use crate::error::Result;
use memchr::memmem;
use std::io::{BufRead, Write};

/// The kinds of reports that valgrind's tools write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// A report of massif, `massif.out.PID`.
    Massif,
    /// A report of DHAT, `dhat.out.PID`.
    Dhat,
    /// Text output or log of memcheck, helgrind or DRD.
    Text,
    /// XML output of memcheck, helgrind or DRD (`--xml=yes`).
    Xml,
    /// `cachegrind.out.PID`, which contains nothing to name.
    Cachegrind,
}

/// Detects the kind of a report by its beginning; `None` if the text isn't a report of valgrind.
pub fn sniff(head: &[u8]) -> Option<Report> {
    let has = |needle: &[u8]| memmem::find(head, needle).is_some();
    if head.starts_with(b"{\"dhatFileVersion\"") {
        Some(Report::Dhat)
    } else if head.starts_with(b"<?xml") && has(b"<valgrindoutput>") {
        Some(Report::Xml)
    } else if head.starts_with(b"desc:") && has(b"\ntime_unit:") {
        Some(Report::Massif)
    } else if text_pid(head).is_some() {
        Some(Report::Text)
    } else if (head.starts_with(b"desc:") || head.starts_with(b"cmd:")) && has(b"\nevents:") && !has(b"\npositions:") {
        // A file of callgrind has the line `positions:`; a file of cachegrind doesn't.
        Some(Report::Cachegrind)
    } else {
        None
    }
}

/// The process ID that the beginning of a report contains; `None` if it doesn't contain one.
pub fn pid(report: Report, head: &[u8]) -> Option<i32> {
    let key: &[u8] = match report {
        Report::Dhat => b"\"pid\":",
        Report::Xml => b"<pid>",
        Report::Text => return text_pid(head),
        // Files of massif and cachegrind don't state the process ID. Only their names may contain it.
        Report::Massif | Report::Cachegrind => return None,
    };
    let start = memmem::find(head, key)? + key.len();
    let (pid, _) = leading_number(&head[start..])?;
    Some(pid)
}

/// Parses the process ID in `==PID==` or `--PID--` at the start of a line. `None` for other lines.
fn text_pid(head: &[u8]) -> Option<i32> {
    let rest = head.strip_prefix(b"==").or_else(|| head.strip_prefix(b"--"))?;
    let (pid, after) = leading_number(rest)?;
    (after.starts_with(b"==") || after.starts_with(b"--")).then_some(pid)
}

/// Parses a decimal number at the start of a text, and returns the rest as well.
fn leading_number(text: &[u8]) -> Option<(i32, &[u8])> {
    let (digits, after) = text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count());
    Some((number(digits)?, after))
}

/// A function whose name is inserted into a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportFunction<'a> {
    /// The function's name.
    pub name: &'a [u8],
    /// Source file and line, if known.
    pub place: Option<(&'a [u8], u32)>,
}

/// Counts of the unnamed frames in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportFrames {
    /// Number of frames that had neither name nor object.
    pub unknown: u64,
    /// How many of the `unknown` frames got a name.
    pub named: u64,
}

/// Copies a report and names its unnamed frames. `lookup` returns the function that contains an address. For callers,
/// it is called with the address before the recorded one, which is inside the call.
pub fn graft<'a>(
    report: Report,
    input: &mut dyn BufRead,
    lookup: &dyn Fn(u64) -> Option<ReportFunction<'a>>,
    out: &mut dyn Write,
) -> Result<ReportFrames> {
    let mut grafter = Grafter { report, lookup, frames: ReportFrames::default(), line: Vec::new() };
    match report {
        Report::Xml => grafter.copy_xml(input, out)?,
        Report::Massif | Report::Dhat | Report::Text => grafter.copy_lines(input, out)?,
        // A report of cachegrind contains no addresses, so there is nothing to name.
        Report::Cachegrind => _ = std::io::copy(input, out)?,
    }
    Ok(grafter.frames)
}

struct Grafter<'a, 'f> {
    report: Report,
    lookup: &'f dyn Fn(u64) -> Option<ReportFunction<'a>>,
    frames: ReportFrames,
    /// The line that was read last. Its memory is reused for the next one.
    line: Vec<u8>,
}

/// What follows the address of an unnamed frame.
const UNKNOWN: &[u8] = b": ???";

impl<'a> Grafter<'a, '_> {
    /// Reads the next line into `line`. Returns false at the end of the input.
    fn next_line(&mut self, input: &mut dyn BufRead) -> Result<bool> {
        self.line.clear();
        Ok(input.read_until(b'\n', &mut self.line)? > 0)
    }

    /// Looks up the function of a frame, and counts the frame. For a caller, looks up the byte before its address,
    /// which is inside the call; if nothing is there, the address itself, in case it is the first of some code. For an
    /// innermost frame, looks up the address itself.
    fn find_function(&mut self, addr: u64, is_innermost: bool) -> Option<ReportFunction<'a>> {
        // Only called for frames without a name in the report, so each of them counts as unknown.
        self.frames.unknown += 1;
        let mut function = None;
        if !is_innermost {
            function = addr.checked_sub(1).and_then(self.lookup);
        }
        let function = function.or_else(|| (self.lookup)(addr));
        self.frames.named += u64::from(function.is_some());
        function
    }

    /// Copies a report that is text or JSON, and inserts the names of JIT functions after their addresses.
    fn copy_lines(&mut self, input: &mut dyn BufRead, out: &mut dyn Write) -> Result<()> {
        while self.next_line(input)? {
            let line = std::mem::take(&mut self.line);
            // Offset in the line up to which it was written or replaced. One line of DHAT may contain many frames.
            let mut written = 0;
            // `UNKNOWN` is `: ???`, which follows the address of a frame without a name.
            for addr_end in memmem::find_iter(&line, UNKNOWN) {
                let end = addr_end + UNKNOWN.len();
                // The line ends after `???` or, in JSON, the string does. If an object or a source file follows
                // instead, the frame isn't JIT code.
                let ends_here = line[end..].trim_ascii_end().is_empty() || line.get(end) == Some(&b'"');
                if !ends_here {
                    continue;
                }
                let Some(addr_start) = find_trailing_address(&line[..addr_end]) else { continue };
                let Some(addr) = hex(&line[addr_start + b"0x".len()..addr_end]) else { continue };
                // Only the report in text form tells innermost frames (`at`) from callers (`by`). In the others, every
                // frame counts as a caller.
                let is_innermost = self.report == Report::Text && line[..addr_start].ends_with(b" at ");
                if let Some(function) = self.find_function(addr, is_innermost) {
                    out.write_all(&line[written..addr_end + b": ".len()])?;
                    self.write_function(function, out)?;
                    written = end;
                }
            }
            out.write_all(&line[written..])?;
            self.line = line;
        }
        Ok(())
    }

    /// Writes a function with its source line. Characters that would break the report are replaced or escaped.
    fn write_function(&self, function: ReportFunction<'_>, out: &mut dyn Write) -> Result<()> {
        let mut text = function.name.to_vec();
        if let Some((file, line)) = function.place {
            text.extend_from_slice(b" (");
            text.extend_from_slice(file);
            text.extend_from_slice(format!(":{line})").as_bytes());
        }
        let text = String::from_utf8_lossy(&text);
        for c in text.chars() {
            match c {
                '"' | '\\' if self.report == Report::Dhat => write!(out, "\\{c}")?,
                c if c.is_control() => write!(out, " ")?,
                c => write!(out, "{c}")?,
            }
        }
        Ok(())
    }

    /// Copies an XML report, and inserts elements with the names of JIT functions into unnamed frames.
    fn copy_xml(&mut self, input: &mut dyn BufRead, out: &mut dyn Write) -> Result<()> {
        // True if the next frame is the first of a stack.
        let mut is_next_innermost = false;
        let mut has_line = self.next_line(input)?;
        while has_line {
            let line = std::mem::take(&mut self.line);
            out.write_all(&line)?;
            is_next_innermost |= memmem::find(&line, b"<stack>").is_some();
            // Reads the line after `line` into `self.line`.
            has_line = self.next_line(input)?;
            let Some(addr) = parse_ip(&line) else { continue };
            let is_innermost = is_next_innermost;
            is_next_innermost = false;
            // The next line shows whether the frame has a name: a frame without one ends right after its address.
            if !self.line.trim_ascii().starts_with(b"</frame>") {
                continue;
            }
            if let Some(function) = self.find_function(addr, is_innermost) {
                let indent = line.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                write_xml(function, &line[..indent], out)?;
            }
        }
        Ok(())
    }
}

/// Offset of the address `0x…` at the end of `text`; `None` if there is none.
fn find_trailing_address(text: &[u8]) -> Option<usize> {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let start = text.len().checked_sub(b"0x".len() + digits)?;
    (digits > 0 && text[start..].starts_with(b"0x")).then_some(start)
}

/// Parses the address in a line such as `<ip>0x10401083</ip>`. `None` for other lines.
fn parse_ip(line: &[u8]) -> Option<u64> {
    hex(line.trim_ascii().strip_prefix(b"<ip>0x")?.strip_suffix(b"</ip>")?)
}

/// Writes the elements that describe a frame's function, in the order in which Valgrind writes them.
fn write_xml(function: ReportFunction<'_>, indent: &[u8], out: &mut dyn Write) -> Result<()> {
    write_element("fn", function.name, indent, out)?;
    let Some((path, line)) = function.place else { return Ok(()) };
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => {
            write_element("dir", &path[..slash], indent, out)?;
            write_element("file", &path[slash + 1..], indent, out)?;
        }
        None => write_element("file", path, indent, out)?,
    }
    write_element("line", line.to_string().as_bytes(), indent, out)
}

fn write_element(name: &str, value: &[u8], indent: &[u8], out: &mut dyn Write) -> Result<()> {
    out.write_all(indent)?;
    writeln!(out, "<{name}>{}</{name}>", escape(value))?;
    Ok(())
}

fn escape(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    escape_markup(text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(addr: u64) -> Option<ReportFunction<'static>> {
        match addr {
            0x1000..0x1010 => Some(ReportFunction { name: b"f\"<1>", place: None }),
            0x1010..0x1020 => Some(ReportFunction { name: b"g", place: Some((b"/src/g.js", 7)) }),
            _ => None,
        }
    }

    fn grafted(report: Report, text: &str) -> (String, ReportFrames) {
        let mut out = Vec::new();
        let frames = graft(report, &mut text.as_bytes(), &lookup, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), frames)
    }

    #[test]
    fn frames_of_lines() {
        let text = "==7==    at 0x1010: ???\n==7==    by 0x1010: ???\n==7==    by 0x1011: ???\r\n==7==    by 0x9: ???\n\
            ==7==    by 0x1012: ??? (in /bin/x)\n==7== 0x: ???";
        let want = "==7==    at 0x1010: g (/src/g.js:7)\n==7==    by 0x1010: f\"<1>\n==7==    by 0x1011: g (/src/g.js:7)\r\n\
            ==7==    by 0x9: ???\n==7==    by 0x1012: ??? (in /bin/x)\n==7== 0x: ???";
        assert_eq!(grafted(Report::Text, text), (want.into(), ReportFrames { unknown: 4, named: 3 }));
        let massif = grafted(Report::Massif, "heap_tree=peak\n n1: 65544 0x1000: ???\n");
        assert_eq!(massif.0, "heap_tree=peak\n n1: 65544 0x1000: f\"<1>\n");
        let dhat = grafted(Report::Dhat, " [\"[root]\"\n ,\"0x1004: ???\",\"0x1014: ???\"\n");
        assert_eq!(dhat.0, " [\"[root]\"\n ,\"0x1004: f\\\"<1>\",\"0x1014: g (/src/g.js:7)\"\n");
    }

    #[test]
    fn frames_of_xml() {
        let text = "<stack>\n  <frame>\n    <ip>0x1000</ip>\n  </frame>\n  <frame>\n    <ip>0x1011</ip>\n  </frame>\n  \
            <frame>\n    <ip>0x1012</ip>\n    <obj>/bin/x</obj>\n  </frame>\n</stack>\n";
        let (named, frames) = grafted(Report::Xml, text);
        assert!(named.contains("    <ip>0x1000</ip>\n    <fn>f&quot;&lt;1&gt;</fn>\n  </frame>"), "{named}");
        assert!(
            named.contains("<fn>g</fn>\n    <dir>/src</dir>\n    <file>g.js</file>\n    <line>7</line>\n"),
            "{named}"
        );
        assert_eq!(frames, ReportFrames { unknown: 2, named: 2 });
        assert_eq!(grafted(Report::Xml, &named).0, named);
    }

    #[test]
    fn reports_are_distinguished() {
        assert_eq!(sniff(b"desc: x\ncmd: y\ntime_unit: i\n"), Some(Report::Massif));
        assert_eq!(sniff(b"desc: x\ncmd: y\nevents: Ir\nfl=a\n"), Some(Report::Cachegrind));
        assert_eq!(sniff(b"==4711== Memcheck, a memory error detector\n"), Some(Report::Text));
        assert_eq!(pid(Report::Text, b"==4711== Memcheck"), Some(4711));
        assert_eq!(pid(Report::Dhat, b"{\"dhatFileVersion\":2\n,\"pid\":77\n"), Some(77));
        assert_eq!(sniff(b"# callgrind format\n"), None);
    }
}
