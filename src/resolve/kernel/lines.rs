//! The lines of a list of the kernel's symbols.

use memchr::memmem;

/// The facts in each symbol's line: address, kind and place of the name in the text.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    high: HighDigits,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a [u8]) -> Self {
        Self { text, at: 0, high: HighDigits::default() }
    }
}

impl Iterator for Lines<'_> {
    type Item = (u64, u8, usize);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.at;
            let rest = self.text.get(start..).filter(|rest| !rest.is_empty())?;
            match usual(rest, &mut self.high) {
                Some((addr, kind, first)) if kind != b'\n' && first != b'\n' => {
                    self.at += line_end(rest, 20) + 1;
                    if is_name(first) {
                        return Some((addr, kind, start + 19));
                    }
                }
                _ => {
                    let end = line_end(rest, 0);
                    self.at += end + 1;
                    if let Some((addr, kind, at)) = fields(&rest[..end]) {
                        return Some((addr, kind, start + at));
                    }
                }
            }
        }
    }
}

/// The address of the first symbol of this name, whatever its kind.
pub(super) fn address_of(text: &[u8], symbol: &[u8]) -> Option<u64> {
    if symbol.is_empty() {
        return None;
    }
    memmem::find_iter(text, symbol).find_map(|at| {
        let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
        let (addr, _, name_at) = fields(&text[start..at + symbol.len()])?;
        (start + name_at == at && name(&text[at..]) == symbol).then_some(addr)
    })
}

/// The end of a line, from a place in it on. Lines are too short for anything that takes longer to begin with.
#[inline]
fn line_end(text: &[u8], from: usize) -> usize {
    const NEW_LINES: u64 = ONES * b'\n' as u64;
    let mut at = from;
    while let Some(eight) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        let other = u64::from_le_bytes(*eight) ^ NEW_LINES;
        let hits = other.wrapping_sub(ONES) & !other & (ONES << 7);
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + text[at..].iter().take_while(|&&byte| byte != b'\n').count()
}

/// A one in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Address, kind and place of the name in a line: `ffffffff81000000 T _text`, and for modules a tab and `[ext4]`
/// behind it.
pub(super) fn fields(line: &[u8]) -> Option<(u64, u8, usize)> {
    if let Some((addr, kind, first)) = usual(line, &mut HighDigits::default()) {
        return is_name(first).then_some((addr, kind, 19));
    }
    let (mut addr, mut at) = (0_u64, 0);
    loop {
        let value = match *line.get(at)? {
            digit @ b'0'..=b'9' => digit - b'0',
            digit @ b'a'..=b'f' => digit - b'a' + 10,
            digit @ b'A'..=b'F' => digit - b'A' + 10,
            b' ' => break,
            _ => return None,
        };
        if addr >> 60 != 0 {
            return None;
        }
        (addr, at) = (addr << 4 | u64::from(value), at + 1);
    }
    let [kind, b' ', rest @ ..] = &line[at + 1..] else { return None };
    rest.first().is_some_and(|&first| is_name(first)).then_some((addr, *kind, at + 3))
}

/// The fields of a line as each one of a 64-bit kernel is written, and the first letter of the name.
#[inline]
fn usual(text: &[u8], high: &mut HighDigits) -> Option<(u64, u8, u8)> {
    let [digits @ .., b' ', kind, b' ', first] = text.first_chunk::<20>()? else { return None };
    Some((sixteen_digits(digits, high)?, *kind, *first))
}

/// True if a name may begin so.
fn is_name(first: u8) -> bool {
    !matches!(first, b'\t' | b' ')
}

/// The upper half of an address and its number: that of the line before, mostly.
#[derive(Debug, Default)]
struct HighDigits(Option<([u8; 8], u64)>);

/// The number that sixteen digits are, the letters among them small.
#[inline]
fn sixteen_digits(digits: &[u8; 16], known: &mut HighDigits) -> Option<u64> {
    let (halves, _) = digits.as_chunks::<8>();
    let [high, low] = halves else { return None };
    let number = match known.0 {
        Some((digits, number)) if digits == *high => number,
        _ => known.0.insert((*high, eight_digits(*high)?)).1,
    };
    Some(number << 32 | eight_digits(*low)?)
}

/// All eight at once, a byte each.
#[inline]
fn eight_digits(digits: [u8; 8]) -> Option<u64> {
    let text = u64::from_be_bytes(digits);
    let nibbles = (text & (0x0f * ONES)) + 9 * (text >> 6 & ONES);
    // Letters that are not digits are spelled otherwise than their number.
    let letters = (nibbles + 6 * ONES) >> 4 & ONES;
    if nibbles & (0xf0 * ONES) != 0
        || nibbles + (u64::from(b'0') * ONES) + letters * u64::from(b'a' - b'0' - 10) != text
    {
        return None;
    }
    let pairs = (nibbles | nibbles >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((fours | fours >> 16) & 0xffff_ffff)
}

/// The name that a text begins with.
pub(super) fn name(text: &[u8]) -> &[u8] {
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
            assert_eq!(fields(text.as_bytes()), expected, "{text}");
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
                let found = fields(line.as_bytes());
                expected.extend(found.map(|(addr, kind, at)| (addr, kind, start + at)));
                start += line.len() + 1;
            }
            assert_eq!(Lines::of(text.as_bytes()).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn the_first_symbol_of_a_name() {
        let list = b"0000000000000010 A my_text\n0000000000000020 t _text_end\n0000000000000030 T _text\t[m]\n\
            0000000000000040 T _text\n";
        assert_eq!(address_of(list, b"_text"), Some(0x30));
        assert_eq!(address_of(list, b"_text_end"), Some(0x20));
        assert_eq!(address_of(list, b"text"), None);
        assert_eq!(address_of(list, b"T _text"), None);
        assert_eq!(address_of(list, b""), None);
    }
}
