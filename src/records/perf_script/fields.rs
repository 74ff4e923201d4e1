//! Recognizes lines that perf script prints below a sample's frames for other fields (`-F +iregs` and many more).
//!
//! ```text
//!  ABI:2    AX:0x22c13    BX:0x7ffd1ce8de88
//!  0x402ce1/0x4028bf/P/-/-/37/CALL
//!                0 N/A
//!  insn: 48 01 c8
//! |5        a += b;
//! ```

use super::frame::{address, is_page_size};

/// True if a line is the source line of the frame above: `  file.c:12`, `  file.c:12 (inlined)`, `  a.out[1f]`.
pub(super) fn is_source_line(line: &[u8]) -> bool {
    let Some(text) = line.strip_prefix(b"  ").filter(|text| !text.starts_with(b" ")) else { return false };
    memchr::memchr2(b':', b'[', text).is_some() && !is_field_line(line)
}

/// True if a line holds a field that perf prints below the frames, or below the header if there are none.
pub(super) fn is_field_line(line: &[u8]) -> bool {
    match line {
        [b' ', ..] => is_fields(line.trim_ascii()),
        [b'\t', text @ ..] => is_block_of_branch(text),
        [b'|', text @ ..] => text.first().is_some_and(u8::is_ascii_digit),
        _ => false,
    }
}

/// True if a line indented by blanks holds one of these fields: registers, instructions, physical address, page size,
/// branches, BPF output. `text` is the line without blanks around it.
fn is_fields(text: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 6] = [b"ABI:", b"insn:", b"ilen:", b"IPC:", b"BPF output:", b"BPF string:"];
    if BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)) {
        return true;
    }
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return false };
    if is_branch(first) {
        return true;
    }
    // BPF output continues on lines such as `0008:  00 00`.
    let is_dump = first.strip_suffix(b":").is_some_and(|offset| offset.len() == 4 && is_hex(offset));
    let is_physical = is_hex(first) && words.clone().next().is_none_or(is_page_size);
    is_dump || is_physical || is_page_size(first) || is_fields_behind(words)
}

fn is_fields_behind<'l>(mut words: impl Iterator<Item = &'l [u8]>) -> bool {
    words.next().is_some_and(is_branch)
}

/// True if a word is a branch, such as `0x402ce1/0x4028bf/P/-/-/37/CALL` or `work+0x9/leaf+0x0/M/-/-/0/`.
fn is_branch(word: &[u8]) -> bool {
    let mut parts = word.rsplit(|byte| *byte == b'/');
    let is_flag = |part: &[u8]| matches!(part, b"P" | b"M" | b"-" | b"X" | b"A" | b"N");
    memchr::memchr_iter(b'/', word).count() >= 5 && parts.any(is_flag)
}

/// True if a line indented by a tab holds instructions of branches (`-F +brstackinsn`), metrics, or tracepoint fields
/// as simpleperf prints them. `text` is the line without the tab.
fn is_block_of_branch(text: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 4] = [b"metric:", b"tracing data:", b"...", b"mispred"];
    if text.starts_with(b"\t") || BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)) {
        return true;
    }
    let is_instruction = address(text).is_some_and(|(_, rest)| rest.starts_with(b"\t"));
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
        assert!(!is_source_line(b"   x.c:3") && !is_source_line(b"  noise"));
    }
}
