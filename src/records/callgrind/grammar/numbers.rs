//! Numbers and costs, read and written.

use crate::bytes::digits::{decimal, hex};
use std::io::Write;

/// A number as the format writes it: decimal, or hexadecimal behind `0x`.
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

/// Adds the numbers of a cost line to a sum for each event.
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

/// The first number of a cost line.
pub(in super::super) fn first_cost(costs: &[u8]) -> u64 {
    let end = costs.iter().position(u8::is_ascii_whitespace).unwrap_or(costs.len());
    number(&costs[..end]).unwrap_or(0)
}

/// Appends a number in hexadecimal digits.
pub(in super::super) fn push_hex(value: u64, out: &mut Vec<u8>) {
    write!(out, "{value:x}").expect("a vector takes everything");
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
