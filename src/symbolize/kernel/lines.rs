//! Parses the lines of a kernel symbol list.

/// One line of a kernel symbol list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SymbolLine {
    pub(super) addr: u64,
    /// The letter for the symbol's type, as in nm(1).
    pub(super) kind: u8,
    /// The offset of the name in the text that was parsed: a line, or the whole list.
    pub(super) name: usize,
}

/// Parses the lines of a symbol list. Skips lines that can't be parsed. Names are given by their offset in `text`.
pub(super) fn parse_list(text: &[u8]) -> impl Iterator<Item = SymbolLine> {
    let mut next = 0;
    text.split(|&byte| byte == b'\n').filter_map(move |line| {
        let start = next;
        next += line.len() + 1;
        let symbol = parse_line(line)?;
        Some(SymbolLine { name: start + symbol.name, ..symbol })
    })
}

/// The address of the first symbol with this name, of whatever type; `None` if there is none.
pub(super) fn find_address(text: &[u8], name: &[u8]) -> Option<u64> {
    let symbol = parse_list(text).find(|symbol| name_at_start(&text[symbol.name..]) == name)?;
    Some(symbol.addr)
}

/// Parses one line, such as `ffffffff81000000 T _text`. For a symbol of a module, a tab and the module's name follow
/// (`[ext4]`). `None` for a malformed line.
pub(super) fn parse_line(line: &[u8]) -> Option<SymbolLine> {
    let (digits, rest) = line.split_at(line.iter().position(|&byte| byte == b' ')?);
    // After the address come a blank, the letter for the type, a blank, and the name.
    let [_, kind, b' ', first_of_name, ..] = *rest else { return None };
    let addr = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    if matches!(first_of_name, b'\t' | b' ') {
        return None;
    }
    Some(SymbolLine { addr, kind, name: digits.len() + 3 })
}

/// The symbol's name at the start of `text`: everything up to the next blank.
pub(super) fn name_at_start(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| matches!(byte, b'\t' | b' ' | b'\n'));
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_width_are_read_alike() {
        for (text, expected) in [
            ("ffffffff81a0b9cf T f", Some((0xffff_ffff_81a0_b9cf, b'T', 19))),
            ("0123456789abcdef t f", Some((0x0123_4567_89ab_cdef, b't', 19))),
            ("FFFFFFFF81A0B9CF T f", Some((0xffff_ffff_81a0_b9cf, b'T', 19))),
            ("00ffffffff81000000 T f", Some((0xffff_ffff_8100_0000, b'T', 21))),
            ("c1000000 T f", Some((0xc100_0000, b'T', 11))),
            ("ffffffff81a0b9cg T f", None),
            ("ffffffff81a0b9:f T f", None),
            ("ffffffff81a0b9\u{7f}f T f", None),
            ("fffffffff81a0b9cf T f", None),
            ("ffffffff81a0b9cf T  f", None),
            ("ffffffff81a0b9cf T ", None),
            ("ffffffff81a0b9cfTT f", None),
        ] {
            let expected = expected.map(|(addr, kind, name)| SymbolLine { addr, kind, name });
            assert_eq!(parse_line(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn lines_are_what_lies_between_line_ends() {
        let texts = [
            "ffffffff81a0b9cf T f\nffffffff81a0b9cf t g_of_some_length\t[ext4]\n\nc1000000 T h\n",
            "ffffffff81a0b9cf T f",
            "0000000000000010 A x\nffffffff81a0b9cf T f\n0000000000000020 A y\n0000000100000020 A z\n",
            "ffffffff81a0b9cf \n f\nffffffff81a0b9cf T \nffffffff81a0b9cf T  f\nffffffff81a0b9cf T x",
            "nothing\nof the kind\n\n",
            "",
        ];
        for text in texts {
            let mut start = 0;
            let mut expected = Vec::new();
            for line in text.split('\n') {
                let found = parse_line(line.as_bytes());
                expected.extend(found.map(|symbol| SymbolLine { name: start + symbol.name, ..symbol }));
                start += line.len() + 1;
            }
            assert_eq!(parse_list(text.as_bytes()).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn the_first_symbol_of_a_name() {
        let list = b"0000000000000010 A my_text\n0000000000000020 t _text_end\n0000000000000030 T _text\t[m]\n\
            0000000000000040 T _text\n";
        assert_eq!(find_address(list, b"_text"), Some(0x30));
        assert_eq!(find_address(list, b"_text_end"), Some(0x20));
        assert_eq!(find_address(list, b"text"), None);
        assert_eq!(find_address(list, b"T _text"), None);
        assert_eq!(find_address(list, b""), None);
    }
}
