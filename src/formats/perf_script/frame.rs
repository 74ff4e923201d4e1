//! Parses a frame of a stack in perf script output: address, symbol, offset, object.

use super::header::{ADDRESS_WIDTH, Header};
use crate::bytes::digits::{decimal, hex};
use crate::model::mapping_kind::{MappingKind, base_name};

/// A frame as printed. All fields borrow from the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// The address as printed. Whether it is absolute depends on perf's version and the object.
    pub(super) addr: u64,
    /// The symbol without its offset; `[unknown]` if perf had none.
    pub(super) symbol: &'a [u8],
    /// The offset of the address in the function, as printed after the symbol; `None` if it was not printed.
    pub(super) offset: Option<u64>,
    /// The object without its parentheses; `None` if it was not printed.
    pub(super) dso: Option<&'a [u8]>,
    /// The offset in the object (`-F +dsoff`); `None` if it was not printed.
    pub(super) dso_offset: Option<u64>,
    /// True if perf marked the frame as a call that was inlined into its caller.
    pub(super) inlined: bool,
}

/// What perf prints for an unknown symbol or object.
pub(super) const UNKNOWN: &[u8] = b"[unknown]";

impl<'a> Frame<'a> {
    /// Parses a frame line, which may be indented but must not end with a line break. `None` if the line is not a
    /// frame. A missing or empty symbol becomes [`UNKNOWN`].
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.trim_ascii_start();
        let (addr, rest) = parse_address(line)?;
        if rest.is_empty() {
            return Some(Self { addr, symbol: UNKNOWN, offset: None, dso: None, dso_offset: None, inlined: false });
        }
        // A blank follows the address or, in texts of simpleperf's first `report_sample.py`, a tab.
        let rest = rest.strip_prefix(b" ").or_else(|| rest.strip_prefix(b"\t"))?;
        let (rest, inlined) = match rest.strip_suffix(INLINED) {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let (symbol, object) = split_dso(rest);
        let (symbol, offset) = split_offset(symbol);
        let symbol = if symbol.is_empty() { UNKNOWN } else { symbol };
        let (dso, dso_offset) = split_dso_offset(object);
        Some(Self { addr, symbol, offset, dso, dso_offset, inlined })
    }

    /// Parses an unnamed frame in its most frequent form, exactly `address [unknown] (object)`. `None` for other lines.
    pub(super) fn parse_unknown(line: &'a [u8]) -> Option<Self> {
        let (addr, rest) = parse_address(line)?;
        let object = rest.strip_prefix(b" [unknown] (")?.strip_suffix(b")")?;
        let (dso, dso_offset) = split_dso_offset(Some(object));
        Some(Self { addr, symbol: UNKNOWN, offset: None, dso, dso_offset, inlined: false })
    }

    /// True if the address is in the kernel's half of the address space. User programs only have the vsyscall page
    /// there.
    pub(super) fn is_in_kernel(&self) -> bool {
        const VSYSCALL: u64 = 0xffff_ffff_ff60_0000;
        self.addr >> 63 != 0 && self.addr & !0xfff != VSYSCALL
    }

    /// Parses a frame line that is indented by a tab or by blanks. perf prints a tab, but terminals, editors and
    /// `expand` turn it into blanks. `None` if the line is not indented, or is something else: a header, an
    /// instruction or, if it holds nothing but a number, a thread ID.
    pub(super) fn parse_indented(line: &'a [u8]) -> Option<Self> {
        let frame = match line.first()? {
            b'\t' | b' ' => Self::parse(line)?,
            _ => return None,
        };
        let is_other_line = match line[0] {
            // A line with a second tab may be an instruction. Few lines have one, so test that first.
            b'\t' => memchr::memchr(b'\t', &line[1..]).is_some() && is_instruction(line),
            // perf pads a thread ID to fewer columns than an address, so a short line that only holds a number is a
            // thread ID.
            _ => is_header(line) || line.len() < ADDRESS_WIDTH && is_number(line.trim_ascii()),
        };
        if is_other_line { None } else { Some(frame) }
    }

    /// Parses the frame of a one-line sample. `text` is the part of the line after the event. Other fields may precede
    /// the frame: a data address with symbol and object (`-F +addr`), or numbers (`-F +weight`). Others may follow it:
    /// a branch target, registers, branches. The frame is therefore taken to begin at the last number that has an
    /// object after it or, if no number has an object, at the last number that may be an address. `None` if there is
    /// none.
    pub(super) fn parse_in_line(text: &'a [u8]) -> Option<Self> {
        let mut found: Option<Self> = None;
        let mut word_end = 0;
        let mut is_first = true;
        let mut tried_numbers = 0;
        // Each round examines the next word, `text[start..word_end]`. `found` is the best frame so far.
        while let Some(blanks) = text[word_end..].iter().position(|byte| !byte.is_ascii_whitespace()) {
            let start = word_end + blanks;
            let len = text[start..].iter().position(u8::is_ascii_whitespace).unwrap_or(text.len() - start);
            word_end = start + len;
            let word = &text[start..word_end];
            if word == b"=>" {
                break; // the target of a branch follows
            }
            // perf pads addresses to a fixed width, so only the first word may be an address without padding.
            let may_be_address = is_first || blanks + len >= ADDRESS_WIDTH;
            is_first = false;
            if !may_be_address || !is_number(word) {
                continue;
            }
            tried_numbers += 1;
            if tried_numbers > MAX_NUMBERS {
                break;
            }
            let line = text[start..].trim_ascii_end();
            // What follows the number shows that it belongs to another field.
            if is_other_field(&line[len..]) {
                continue;
            }
            // Leave out the fields that follow the object. `len` is the length of the address.
            let end = object_end(&line[len..]).map_or(line.len(), |end| len + end);
            let Some(frame) = Self::parse(&line[..end]) else { continue };
            // A frame with an object is kept, even if a later number looks like a frame without an object.
            let has_found_object = found.is_some_and(|found| found.dso.is_some());
            if frame.dso.is_some() || !has_found_object {
                found = Some(frame);
            }
        }
        found
    }

    /// Parses a frame line that lost its indentation. Only symbol and object distinguish a frame from other lines then,
    /// so the result is `None` for a line without an object.
    pub(super) fn parse_unindented(line: &'a [u8]) -> Option<Self> {
        let has_indent = line.first().is_none_or(u8::is_ascii_whitespace);
        if has_indent || !line.ends_with(b")") {
            return None;
        }
        let frame = Self::parse(line)?;
        // In a perf map, which has similar lines, the word after the address is a length. Such lines aren't frames.
        let begins_with_length =
            memchr::memchr(b' ', frame.symbol).is_some_and(|blank| is_number(&frame.symbol[..blank]));
        if frame.dso.is_none() || begins_with_length || is_header(line) {
            return None;
        }
        Some(frame)
    }
}

/// True if a line shows an instruction between two branches (`-F brstackinsn`): tab, address, tab, instruction.
fn is_instruction(line: &[u8]) -> bool {
    parse_address(line.trim_ascii_start()).is_some_and(|(_, rest)| rest.starts_with(b"\t"))
}

/// What perf prints after an inlined call.
pub(super) const INLINED: &[u8] = b" (inlined)";

/// True if a line that could be a frame is a header. The two look alike if a command is called `dead` or `7f`.
fn is_header(line: &[u8]) -> bool {
    let Some(header) = Header::parse(line) else { return false };
    if header.time.is_some() {
        return true;
    }
    // With a command name and an event, the line is a header. Without a command name, a frame such as
    // `401745 Builtin: Load (x)` also seems to have a thread ID and an event. But only in a one-line sample does a
    // padded address follow the event.
    header.event.is_some() && (!header.comm.is_empty() || is_padded_address(header.tail, ADDRESS_WIDTH))
}

/// Parses the header of a one-line sample that has no thread ID: `shop cycles:u:           401136 pack (/bin/shop)`.
/// Only the padded address after the event distinguishes such a line from other text. `None` for other lines.
pub(super) fn parse_one_line_header(line: &[u8]) -> Option<Header<'_>> {
    // Neither a frame on a line of its own nor a comment has a header.
    if line.starts_with(b"\t") || line.starts_with(b"#") {
        return None;
    }
    let header = Header::parse_above_frames(line);
    let is_sample = header.event.is_some()
        && is_padded_address(header.tail, ADDRESS_WIDTH)
        && Frame::parse_in_line(header.tail).is_some();
    if is_sample { Some(header) } else { None }
}

/// A sample on one line that has no event, and its frame.
pub(super) struct EventlessSample<'a> {
    pub(super) header: Header<'a>,
    pub(super) frame: Frame<'a>,
    /// The number of blanks before the frame's address.
    pub(super) blanks: usize,
}

/// Parses a one-line sample without an event, as `perf script -G -F comm,ip,sym` prints it: a padded command name, a
/// padded address, `pack (/bin/shop)`. Nothing but the padded address distinguishes such a line from others. So this
/// must only be called if all lines of the text are expected to be such samples
/// ([`SampleStart::EventlessSample`](super::layout::SampleStart)). `None` for other lines.
pub(super) fn parse_eventless_sample(line: &[u8]) -> Option<EventlessSample<'_>> {
    // A frame on a line of its own isn't a one-line sample; neither is a comment.
    if line.starts_with(b"\t") || line.starts_with(b"#") {
        return None;
    }
    // Find the first word, except for the line's first one, that is an address padded to perf's width. `fields_end` is
    // the end of the words that were examined. Numbers in the first page of memory are too small for addresses of code.
    let mut fields_end = 0;
    loop {
        let blanks = line[fields_end..].iter().take_while(|byte| **byte == b' ').count();
        let start = fields_end + blanks;
        let word = line[start..].split(u8::is_ascii_whitespace).next().filter(|word| !word.is_empty())?;
        let fields = line[..fields_end].trim_ascii();
        if !fields.is_empty()
            // One blank separates the fields and isn't padding, hence `>`.
            && blanks + word.len() > ADDRESS_WIDTH
            && parse_address(word).is_some_and(|(addr, rest)| addr > FIRST_PAGE && rest.is_empty())
        {
            let tail = &line[fields_end..];
            let frame = Frame::parse_in_line(tail)?;
            // If the fields hold an event, the line has a usual header. Then `eventless_header` returns `None`, and so
            // does this function.
            return Some(EventlessSample { header: eventless_header(&line[..fields_end], tail)?, frame, blanks });
        }
        fields_end = start + word.len();
    }
}

/// The header of a one-line sample that has no event. `fields` is what precedes the frame, `tail` the rest of the line.
/// `None` if the fields hold an event.
fn eventless_header<'a>(fields: &'a [u8], tail: &'a [u8]) -> Option<Header<'a>> {
    /// The width to which perf pads a thread ID, plus one for the blank before the ID.
    const ID_WIDTH: usize = 6;
    // perf pads a thread ID, so a number without padding isn't one. Without a word before it, a number counts as
    // padded.
    let last_word_start = fields.len() - fields.iter().rev().take_while(|byte| !byte.is_ascii_whitespace()).count();
    let previous_word_end = fields[..last_word_start].trim_ascii_end().len();
    let is_padded = previous_word_end == 0 || fields.len() - previous_word_end >= ID_WIDTH;
    let mut header = if decimal(&fields[last_word_start..]).is_some() && !is_padded {
        // The number is the end of the command name, as in `Worker 7`.
        Header { comm: fields.trim_ascii(), ..Header::default() }
    } else {
        Header::parse_above_frames(fields)
    };
    (header.rest, header.tail) = (tail, tail);
    if header.event.is_some() { None } else { Some(header) }
}

/// How many numbers in a line are tried as the address of the line's frame. perf prints fewer numbers before a frame.
/// The limit bounds the time for lines that perf didn't print.
const MAX_NUMBERS: usize = 16;

/// Last address of the first page. Addresses up to it are never code.
pub(super) const FIRST_PAGE: u64 = 0xfff;

/// True if a text begins with white space and an address, and the two together take at least `columns` bytes. Small
/// numbers (up to [`FIRST_PAGE`]) don't count as addresses.
pub(super) fn is_padded_address(text: &[u8], columns: usize) -> bool {
    let number = text.trim_ascii_start();
    let blanks = text.len() - number.len();
    let Some((addr, rest)) = parse_address(number) else { return false };
    let is_word = rest.first().is_none_or(u8::is_ascii_whitespace);
    addr > FIRST_PAGE && is_word && blanks > 0 && text.len() - rest.len() >= columns
}

/// True if a word is a hexadecimal number.
fn is_number(word: &[u8]) -> bool {
    parse_address(word).is_some_and(|(_, rest)| rest.is_empty())
}

/// True if what follows a number shows that the number isn't a frame's address: several blanks, another padded number,
/// or a page size.
fn is_other_field(after: &[u8]) -> bool {
    let blanks = after.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let word = after[blanks..].split(u8::is_ascii_whitespace).next().unwrap_or_default();
    blanks > 1 || is_page_size(word) || is_number(word) && blanks + word.len() > ADDRESS_WIDTH
}

/// True for a page size as `-F data_page_size` and `-F code_page_size` print it: `4K`, `2M`, `N/A`.
pub(super) fn is_page_size(word: &[u8]) -> bool {
    match word.split_last() {
        Some((unit, digits)) => word == b"N/A" || b"BKMGT".contains(unit) && decimal(digits).is_some(),
        None => false,
    }
}

/// The offset at which the object `(…)` of a frame ends, in the text after the frame's address. More fields may follow
/// the object: `=>` and a branch target, or branches. `None` if no object is shown.
fn object_end(text: &[u8]) -> Option<usize> {
    let mut search_start = 0;
    loop {
        // The offset of the opening parenthesis, which a blank precedes. `depth` counts it first, and becomes 0 again
        // at the parenthesis that closes it.
        let open = search_start + memchr::memmem::find(&text[search_start..], b" (")? + 1;
        let mut depth = 0usize;
        let close = text[open..].iter().position(|byte| {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        let end = open + close + 1;
        // An object is a path or begins with a bracket, or it ends the text; other parentheses belong to the symbol.
        if text[open + 1..].starts_with(b"/") || text[open + 1..].starts_with(b"[") || end == text.len() {
            return Some(end);
        }
        search_start = end;
    }
}

/// Parses a hexadecimal number of up to 16 digits at the start of a text, and returns the rest as well.
pub(super) fn parse_address(line: &[u8]) -> Option<(u64, &[u8])> {
    let len = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let addr = hex(&line[..len]).filter(|_| len <= 16)?;
    Some((addr, &line[len..]))
}

/// Splits `symbol (object)`; the object is `None` if there is none. The object is in the parentheses that close at the
/// end of the text, if a space precedes them. Parentheses can be nested: `(/memfd:x (deleted))` is one object, and
/// `f(int) (/lib/x.so)` is split before the second opening parenthesis.
fn split_dso(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    if !text.ends_with(b")") {
        return (text, None);
    }
    // Walk back from the closing parenthesis at the end to the one that opens it, where `depth` becomes 0 again.
    let mut depth = 0usize;
    for (index, &byte) in text.iter().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let object = &text[index + 1..text.len() - 1];
            return match text[..index].split_last() {
                Some((b' ', symbol)) => (symbol, Some(object)),
                // Only the object was printed. If it doesn't look like one, it is a symbol in parentheses, such as
                // `(block)`.
                None if object.starts_with(b"/") || object.starts_with(b"[") => (b"", Some(object)),
                _ => (text, None),
            };
        }
    }
    (text, None)
}

/// Splits `object+0x1f` into the object and the offset, if there is one.
fn split_dso_offset(object: Option<&[u8]>) -> (Option<&[u8]>, Option<u64>) {
    let Some(object) = object else { return (None, None) };
    let digits = object.iter().rev().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (name, number) = object.split_at(object.len() - digits);
    match name.strip_suffix(b"+0x") {
        Some(name) if (1..=16).contains(&digits) => (Some(name), hex(number)),
        _ => (Some(object), None),
    }
}

/// Splits `symbol+0x1f` into the symbol and the offset, if there is one.
fn split_offset(symbol: &[u8]) -> (&[u8], Option<u64>) {
    if let Some(plus) = memchr::memmem::rfind(symbol, b"+0x")
        && let Some((offset, [])) = parse_address(&symbol[plus + b"+0x".len()..])
    {
        return (&symbol[..plus], Some(offset));
    }
    (symbol, None)
}

/// Whether unnamed frames in an object may be JIT code, judged by the object's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DsoKind {
    /// Memory without a file, or an unknown object. The address is absolute. Holds the process ID if the object's name
    /// contains it, as in `/tmp/perf-PID.map`.
    Anonymous(Option<i32>),
    /// A file through which JIT compilers write code, or an ELF image of JIT code. The address may be relative to the
    /// file.
    FileBacked,
    /// A file that was deleted, is in shared memory, or whose path the kernel couldn't state (`//toolong`); or
    /// something else that the kernel can map, such as `anon_inode:[perf_event]`. It may be a library, or JIT code that
    /// a compiler wrote there. The address may be relative to the file.
    MaybeJit,
    /// Any other object: no JIT code.
    Other,
}

impl DsoKind {
    /// Classifies an object by its name; `None` means that no object was printed.
    pub(super) fn classify(dso: Option<&[u8]>) -> Self {
        let Some(dso) = dso else { return Self::Anonymous(None) };
        let kind = MappingKind::from_path(dso);
        if dso == UNKNOWN || dso == b"anon" || dso.starts_with(b"[JIT] ") || kind.is_private_memory() {
            // perf shortens the path `/tmp/perf-PID.map` to `[JIT] tid PID`.
            return Self::Anonymous(dso.strip_prefix(b"[JIT] tid ").and_then(parse_pid));
        }
        if let Some(rest) = dso.strip_prefix(b"/tmp/perf-").and_then(|rest| rest.strip_suffix(b".map")) {
            return Self::Anonymous(parse_pid(rest));
        }
        let base = base_name(dso);
        // An ELF image of JIT code, such as `jitted-77-3.so`.
        let is_image = base.starts_with(b"jitted-") && base.ends_with(b".so");
        if is_image || kind.is_shared_memory() {
            Self::FileBacked
        } else if kind.is_likely_jit_file() || matches!(kind, MappingKind::UnknownPath | MappingKind::AnonInode) {
            Self::MaybeJit
        } else {
            Self::Other
        }
    }
}

fn parse_pid(digits: &[u8]) -> Option<i32> {
    decimal(digits).and_then(|pid| i32::try_from(pid).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::mapping_kind::tests::paths_where;

    type Parts<S> = (u64, S, Option<u64>, Option<S>, bool);

    fn frame(line: &str) -> Parts<String> {
        let frame = Frame::parse(line.as_bytes()).unwrap_or_else(|| panic!("no frame: {line}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (frame.addr, text(frame.symbol), frame.offset, frame.dso.map(text), frame.inlined)
    }

    #[test]
    fn frames_of_every_shape() {
        let cases: [(&str, Parts<&str>); 12] = [
            ("\t    7f1 main+0x1a (/usr/bin/x)", (0x7f1, "main", Some(0x1a), Some("/usr/bin/x"), false)),
            ("\t    7f1 [unknown] ([unknown])", (0x7f1, "[unknown]", None, Some("[unknown]"), false)),
            (
                "\t 7f1 f(int, (a)) (/memfd:jit (deleted))",
                (0x7f1, "f(int, (a))", None, Some("/memfd:jit (deleted)"), false),
            ),
            (
                "7f1 void W.quick(java.util.List, int)+0x379 (/tmp/perf-1.map)",
                (0x7f1, "void W.quick(java.util.List, int)", Some(0x379), Some("/tmp/perf-1.map"), false),
            ),
            ("\t 7f1 std::vec (inlined)", (0x7f1, "std::vec", None, None, true)),
            ("\t 7f1 a+0x1", (0x7f1, "a", Some(1), None, false)),
            (
                "\t ffffffff8168bb05 mod+0x85 ([kernel.kallsyms])",
                (0xffff_ffff_8168_bb05, "mod", Some(0x85), Some("[kernel.kallsyms]"), false),
            ),
            ("\t 7f1 ([unknown])", (0x7f1, "[unknown]", None, Some("[unknown]"), false)),
            ("\t 7f1  (/bin/x)", (0x7f1, "[unknown]", None, Some("/bin/x"), false)),
            ("\t 7f1", (0x7f1, "[unknown]", None, None, false)),
            ("\t 7f1 (block)", (0x7f1, "(block)", None, None, false)),
            (
                "\t 7f1 C::operator()(int) const (/lib/x.so)",
                (0x7f1, "C::operator()(int) const", None, Some("/lib/x.so"), false),
            ),
        ];
        for (line, (addr, symbol, offset, dso, inlined)) in cases {
            assert_eq!(frame(line), (addr, symbol.into(), offset, dso.map(str::to_owned), inlined), "{line}");
        }
    }

    #[test]
    fn offsets_in_the_object_are_not_part_of_its_name() {
        for line in
            ["7f1 [unknown] (/tmp/perf-7.map+0x7f1)", "7f1 main+0x1 (/bin/a b (deleted)+0xda7)", "7f1 (//anon+0x0)"]
        {
            let object = line.rsplit_once(" (/").unwrap().1;
            let (name, offset) = object.trim_end_matches(')').rsplit_once("+0x").unwrap();
            for frame in Frame::parse(line.as_bytes()).into_iter().chain(Frame::parse_unknown(line.as_bytes())) {
                assert_eq!(frame.dso, Some(format!("/{name}").as_bytes()), "{line}");
                assert_eq!(frame.dso_offset, u64::from_str_radix(offset, 16).ok(), "{line}");
            }
        }
        for object in ["/bin/a+0x", "/bin/a+0x12345678901234567", "/bin/a+12", "libstdc++"] {
            let line = format!("7f1 f ({object})");
            assert_eq!(Frame::parse(line.as_bytes()).unwrap().dso, Some(object.as_bytes()));
        }
    }

    #[test]
    fn the_frame_of_a_line_stands_behind_other_fields() {
        let look = Some((0x8e2a, "look", Some("/ld.so")));
        let cases = [
            ("             8e2a look+0xca (/ld.so)", look),
            ("     7f980ddb5d40 [unknown] (/x.so)             8e2a look+0xca (/ld.so)", look),
            ("     7f980ddb5d40 rfv.9+0x0 (/x.so)             8e2a look+0xca (/ld.so)", look),
            ("               0             8e2a look+0xca (/ld.so)", look),
            ("                0                0  /             8e2a look+0xca (/ld.so)", look),
            ("             8e2a look+0xca (/ld.so) =>             8e2b next+0x1 (/ld.so)", look),
            ("             8e2a look+0xca (/ld.so) ABI:2    AX:0x22c13    BX:0x7ffd1ce8de88", look),
            ("             8e2a look+0xca (/ld.so) 0x10/0x20/P/-/-/37/CALL ", look),
            ("             8e2a look+0xca (/ld.so)                0 4K", look),
            ("             8e2a look+0xca", Some((0x8e2a, "look", None))),
            ("             8e2a add", Some((0x8e2a, "add", None))),
            ("             8e2a look(int, (a)) (/ld.so)", Some((0x8e2a, "look(int, (a))", Some("/ld.so")))),
            (" prev_comm=x prev_pid=7", None),
            ("", None),
        ];
        for (text, wanted) in cases {
            let frame = Frame::parse_in_line(text.as_bytes());
            let found = frame.map(|frame| (frame.addr, frame.symbol, frame.dso));
            assert_eq!(
                found,
                wanted.map(|(addr, symbol, dso)| (addr, symbol.as_bytes(), dso.map(str::as_bytes))),
                "{text}"
            );
        }
    }

    #[test]
    fn blanks_indent_frames_and_samples_first_lines() {
        let frames = [
            "        7f00007ad35c decode+0x14 (/opt/app/bin/srv)",
            "  401745 Builtin: Load (/tmp/perf-7.map)",
            "    7f1 f",
            "\t    dead 15670 cpu-clock: (x)",
            "    556200401937\tlibc.so[+4f2b0] (/x/libc.so)",
        ];
        for line in frames {
            assert!(Frame::parse_indented(line.as_bytes()).is_some(), "{line}");
        }
        let others = [
            "            node 15670 [001]   466.577591:    1001001 cpu-clock:              8e2a f+0xca (/ld.so)",
            "            dead 15670 [001]   466.577591:    1001001 cpu-clock:              8e2a f+0xca (/ld.so)",
            "            dead 15670 cpu-clock:              8e2a f+0xca (/ld.so)",
            "  ld.c:9",
            "  dead.c:9",
            " ABI:2    AX:0x1",
            "\t00007f1234567890\tinsn: 48 89 e5 \t# PRED",
            "7f1 f (x)",
        ];
        for line in others {
            assert_eq!(Frame::parse_indented(line.as_bytes()), None, "{line}");
        }
        assert!(Frame::parse_unindented(b"7f1 f (x)").is_some());
        assert!(Frame::parse_unindented(b"ffffff8008081234\tel0_svc ([kernel.kallsyms])").is_some());
        for line in ["dead 15670 466.577591: 1 c: 7f1 f (x)", " 7f1 f (x)", "7f1 f", "no frame (x)"] {
            assert_eq!(Frame::parse_unindented(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn noise_is_not_a_frame() {
        for line in ["", "\t", "\t xyz main (a)", "\t 12345678901234567 a (b)", "  file.c:12"] {
            assert_eq!(Frame::parse(line.as_bytes()), None, "{line}");
        }
        assert_eq!(frame("\t 7f1 ) (b").1, ") (b");
    }

    #[test]
    fn every_sort_of_object_has_its_place() {
        let anonymous = [
            "//anon",
            "[anon:JIT code]",
            "/anon_hugepage",
            "/anon_hugepage (deleted)",
            "[heap]",
            "[stack]",
            "[stack:77]",
            "/tmp/perf-77.map",
            "anon",
            "[unknown]",
            "[JIT] tid 77",
        ];
        assert_eq!(paths_where(|path| matches!(DsoKind::classify(Some(path)), DsoKind::Anonymous(_))), anonymous);
        let file_backed = [
            "[anon_shmem:JIT code]",
            "/dev/zero",
            "/dev/zero (deleted)",
            "/memfd:doublemapper (deleted)",
            "/SYSV00000000 (deleted)",
            "/dev/shm/code (deleted)",
            "/dev/ashmem/dalvik-jit-code-cache (deleted)",
            "/tmp/#77 (deleted)",
            "/run/jitted-77.so",
            "/run/jitted-77-3.so",
        ];
        assert_eq!(paths_where(|path| DsoKind::classify(Some(path)) == DsoKind::FileBacked), file_backed);
        let maybe = ["//toolong", "anon_inode:[perf_event]", "/usr/lib/libc.so.6 (deleted)", "/dev/shm/code"];
        assert_eq!(paths_where(|path| DsoKind::classify(Some(path)) == DsoKind::MaybeJit), maybe);
    }

    #[test]
    fn places_of_jit_code() {
        assert_eq!(DsoKind::classify(Some(b"/tmp/perf-77.map")), DsoKind::Anonymous(Some(77)));
        assert_eq!(DsoKind::classify(Some(b"[JIT] tid 78")), DsoKind::Anonymous(Some(78)));
        assert_eq!(DsoKind::classify(Some(b"//anon")), DsoKind::Anonymous(None));
        assert_eq!(DsoKind::classify(None), DsoKind::Anonymous(None));
        assert_eq!(DsoKind::classify(Some(b"/memfd:doublemapper (deleted)")), DsoKind::FileBacked);
        assert_eq!(DsoKind::classify(Some(b"/run/jitted-77-3.so")), DsoKind::FileBacked);
        assert_eq!(DsoKind::classify(Some(b"/usr/bin/node")), DsoKind::Other);
    }
}
