//! Recognizes lines that perf script prints below a sample's frames for other fields (`-F +iregs` and many more).
//!
//! ```text
//!  ABI:2    AX:0x22c13    BX:0x7ffd1ce8de88
//!  0x402ce1/0x4028bf/P/-/-/37/CALL
//!                0 N/A
//!  insn: 48 01 c8
//! |5        a += b;
//! ```

use super::frame::{is_page_size, parse_address};
use super::header::ADDRESS_WIDTH;
use crate::bytes::digits::decimal;

/// True if a line is the source line of the frame above: `  file.c:12`, `  file.c:12 (inlined)`, `  a.out[1f]`.
pub(super) fn is_source_line(line: &[u8]) -> bool {
    let Some(text) = line.strip_prefix(b"  ").filter(|text| !text.starts_with(b" ")) else { return false };
    memchr::memchr2(b':', b'[', text).is_some() && !is_field_line(line)
}

/// True if a line is the source line of a frame in a text whose lines lost their indentation: `file.c:12`.
pub(super) fn is_source_line_without_indent(line: &[u8]) -> bool {
    let file_and_line = line.strip_suffix(b" (inlined)").unwrap_or(line);
    let Some(colon) = memchr::memrchr(b':', file_and_line) else { return false };
    let number = &file_and_line[colon + 1..];
    colon > 0 && !number.is_empty() && number.iter().all(u8::is_ascii_digit)
}

/// True if a line holds a field that perf prints below the frames, or below the header if there are none.
pub(super) fn is_field_line(line: &[u8]) -> bool {
    match line {
        [b' ', ..] => is_indented_field(line.trim_ascii(), line.len()),
        [b'\t', text @ ..] => is_tabbed_field(text),
        [b'|', text @ ..] => text.first().is_some_and(u8::is_ascii_digit),
        _ => is_branch_line(line),
    }
}

/// True if a line that is indented by blanks holds one of the following fields: registers, instructions, a physical
/// address, a page size, branches, BPF output, or the bytes before and after a change of the kernel's code (a text
/// poke). `text` is the line without the blanks around it, and `columns` is the length of the whole line.
fn is_indented_field(text: &[u8], columns: usize) -> bool {
    const BEGINNINGS: [&[u8]; 8] =
        [b"ABI:", b"insn:", b"ilen:", b"IPC:", b"BPF output:", b"BPF string:", b"old bytes:", b"new bytes:"];
    if BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)) {
        return true;
    }
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return false };
    // BPF output of more than eight bytes continues on lines such as `0008:  00 00`.
    let is_dump = first.strip_suffix(b":").is_some_and(|offset| offset.len() == 4 && is_hex(offset));
    if is_dump || is_page_size(first) || is_branch_line(text) {
        return true;
    }
    // A number is a physical address if a page size follows it, or if it is alone on a line that is no longer than an
    // address column. A frame without a symbol is also a number alone on its line, but ends further to the right.
    let may_be_physical_address = match words.next() {
        Some(second) => is_page_size(second),
        None => columns <= ADDRESS_WIDTH + 1,
    };
    is_hex(first) && may_be_physical_address
}

/// True for a line of branches. The functions' names in it may contain blanks, so each word is tested for the form of a
/// branch. A line that begins with a number is a frame.
fn is_branch_line(text: &[u8]) -> bool {
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let Some(first) = words.clone().next() else { return false };
    !is_hex(first) && words.any(is_branch)
}

/// True if a word is a branch, such as `0x402ce1/0x4028bf/P/-/-/37/CALL` or `work+0x9/leaf+0x0/M/-/-/0/`: it contains
/// the prediction, the two flags of transactions, and a number of cycles. Symbols may contain slashes, so these four
/// parts are searched for anywhere in the word.
fn is_branch(word: &[u8]) -> bool {
    let is_prediction = |part: &[u8]| !part.is_empty() && part.iter().all(|byte| b"PMN-".contains(byte));
    let mut parts = word.split(|byte| *byte == b'/');
    // Test four parts in a row, then go on by one part.
    loop {
        let mut next = parts.clone();
        let (Some(prediction), Some(transaction), Some(abort), Some(cycles)) =
            (next.next(), next.next(), next.next(), next.next())
        else {
            return false;
        };
        if is_prediction(prediction)
            && matches!(transaction, b"X" | b"-")
            && matches!(abort, b"A" | b"-")
            && decimal(cycles).is_some()
        {
            return true;
        }
        parts.next();
    }
}

/// True if a line indented by a tab is no frame: it holds instructions of branches (`-F +brstackinsn`), metrics, or
/// tracepoint fields as simpleperf prints them. `text` is the line without the tab.
fn is_tabbed_field(text: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 4] = [b"metric:", b"tracing data:", b"...", b"mispred"];
    if text.starts_with(b"\t") || BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)) {
        return true;
    }
    let is_instruction = parse_address(text).is_some_and(|(_, rest)| rest.starts_with(b"\t"));
    // A line that ends with a colon names the function of the instructions below it.
    is_instruction || text.trim_ascii_end().ends_with(b":")
}

fn is_hex(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_told_from_frames_and_noise() {
        let fields = [
            " ABI:2    AX:0x22c13    BX:0x7ffd1ce8de88    CX:0x1",
            "               0",
            "        12345678 4K",
            " N/A",
            " 4K 2M",
            " insn: 48 01 c8",
            " ilen: 3",
            " ilen: 3 insn: 48 01 c8",
            " 0x402ce1/0x4028bf/P/-/-/37/CALL  0x402ce1/0x4028bf/P/-/-/37/CALL ",
            " work+0x9/leaf+0x0/M/-/-/0/ ",
            "work+0x9/leaf+0x0/M/-/-/0/CALL/- leaf+0x0/[unknown]/P/-/-/0/RET/- ",
            " operator new(unsigned long)+0x12/std::f(int, a)+0x3/P/-/-/0/CALL ",
            " 0x1(/opt/a b/bin/x)/0x2([unknown])/M/-/-/0/ ",
            "     old bytes: 90 90",
            "|5        a += b;",
            "\tmetric:    0.50  insn per cycle",
            "\tmain+4:",
            "\t00007f1234567890\tinsn: 48 89 e5 \t# PRED",
            "\ttracing data:",
            "\t\tprev_comm : php",
        ];
        for line in fields {
            assert!(is_field_line(line.as_bytes()), "{line}");
            assert!(!is_source_line(line.as_bytes()), "{line}");
        }
        for line in ["        7f00 main (/bin/x)", "\t  7f00 main (/bin/x)", "noise", "", "  main", "\tzzz", "  x.c:3"]
        {
            assert!(!is_field_line(line.as_bytes()), "{line}");
        }
        assert!(is_source_line(b"  x.c:3") && is_source_line(b"  x.c:3 (inlined)") && is_source_line(b"  a.out[1f]"));
        assert!(is_source_line(b"  /home/P/a/-/src/x/y.c:3") && is_source_line(b"  /home/M/-/-/a/x.c:3 (inlined)"));
        assert!(!is_source_line(b"   x.c:3") && !is_source_line(b"  noise"));
    }
}
