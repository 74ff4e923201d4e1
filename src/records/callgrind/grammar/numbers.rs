//! Reads and writes numbers and costs.

use crate::bytes::digits::{decimal, hex};

/// Parses a number: decimal, or hexadecimal after `0x`.
pub(in super::super) fn number(word: &[u8]) -> Option<u64> {
    match word.strip_prefix(b"0x") {
        Some(digits) => hex(digits),
        None => decimal(word),
    }
}

/// The names in the value of an `events:` line.
pub(in super::super) fn event_names(value: &[u8]) -> Vec<Vec<u8>> {
    value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Adds the costs of a line to `sums`, which has one element per event. Returns `None` if a cost isn't a number or a
/// sum overflows.
pub(in super::super) fn add_costs(costs: &[u8], sums: &mut Vec<u64>) -> Option<()> {
    let words = costs.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    for (event, word) in words.enumerate() {
        let cost = number(word)?;
        match sums.get_mut(event) {
            Some(sum) => *sum = sum.checked_add(cost)?,
            None => sums.push(cost),
        }
    }
    Some(())
}

/// A line's cost in the first event; 0 if it isn't a number.
pub(in super::super) fn first_cost(costs: &[u8]) -> u64 {
    let end = costs.iter().position(u8::is_ascii_whitespace).unwrap_or(costs.len());
    number(&costs[..end]).unwrap_or(0)
}

/// Appends a number in hexadecimal. `format!` would allocate for each number, and numbers are most of the output.
pub(in super::super) fn push_hex(value: u64, out: &mut Vec<u8>) {
    let digits = (67 - value.leading_zeros() as usize) / 4;
    let text = u128::from(hex_text((value >> 32) as u32)) | u128::from(hex_text(value as u32)) << 64;
    let end = out.len() + digits.max(1);
    // Written in one step for speed, as in `push_decimal`.
    out.extend_from_slice(&(text >> (8 * (16 - digits.max(1)))).to_le_bytes());
    out.truncate(end);
}

/// Eight hexadecimal digits, the first one in the lowest byte.
fn hex_text(value: u32) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let value = u64::from(value);
    let fours = (value | value << 16) & 0x0000_ffff_0000_ffff;
    let pairs = (fours | fours << 8) & 0x00ff_00ff_00ff_00ff;
    let digits = (pairs | pairs << 4) & (0x0f * EACH);
    let is_letter = (digits + 6 * EACH) >> 4 & EACH;
    (digits + 0x30 * EACH + is_letter * u64::from(b'a' - b'0' - 10)).swap_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::decimal::push_decimal;

    #[test]
    fn numbers_of_every_length() {
        let ones = (0..64).map(|shift| u64::MAX >> shift);
        for number in ones.chain([0, 1, 9, 10, 99, 100, 10_000_000_000_000_000_000]) {
            let (mut hexadecimal, mut told) = (Vec::new(), Vec::new());
            push_hex(number, &mut hexadecimal);
            push_decimal(number, &mut told);
            assert_eq!(hexadecimal, format!("{number:x}").into_bytes());
            assert_eq!(told, number.to_string().into_bytes());
            assert_eq!((hex(&hexadecimal), decimal(&told)), (Some(number), Some(number)));
            let zeros = [b"000000000000000000000", &hexadecimal[..]].concat();
            assert_eq!((hex(&zeros), hex(b"")), (Some(number), None));
        }
        for (place, byte) in (0..8).flat_map(|place| (0..=255).map(move |byte| (place, byte))) {
            let mut text = *b"7f0aB9c3";
            text[place] = byte;
            let expected = char::from(byte).is_ascii_hexdigit().then(|| {
                let text = str::from_utf8(&text).unwrap();
                u64::from_str_radix(text, 16).unwrap()
            });
            assert_eq!(hex(&text), expected, "{text:?}");
        }
        assert_eq!((hex(b"10000000000000000"), hex(b"1g"), hex(b"AbC")), (None, None, Some(0xabc)));
        let much = decimal(b"18446744073709551616");
        assert_eq!(
            (much, decimal(b"1a"), decimal(b""), decimal(b"000000000000000000007")),
            (None, None, None, Some(7))
        );
    }
}
