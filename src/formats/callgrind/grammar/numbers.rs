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

/// Parses the costs of a line, one per event. `None` stands for a word that isn't a whole number, or is too large.
///
/// Costs can be negative: differences, or freed memory. Old versions of cachegrind write `.` for a count that does not
/// apply to the line, and other tools read it as 0.
pub(in super::super) fn costs(text: &[u8]) -> impl Iterator<Item = Option<i64>> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(cost)
}

/// Parses a cost. A dot means 0. `None` if the word isn't a number, or doesn't fit into 64 bits.
fn cost(word: &[u8]) -> Option<i64> {
    if word == b"." {
        return Some(0);
    }
    match word.strip_prefix(b"-") {
        Some(digits) => 0i64.checked_sub_unsigned(number(digits)?),
        None => i64::try_from(number(word)?).ok(),
    }
}

/// Adds the costs of a line to `sums`, element by element. `sums` is extended if the line has more costs. Returns the
/// line's cost in the first event (0 if it has none), or `None` if a cost isn't a number or a sum overflows; the costs
/// before it have been added then.
pub(in super::super) fn add_costs(text: &[u8], sums: &mut Vec<i64>) -> Option<i64> {
    let mut first = 0;
    for (event, cost) in costs(text).enumerate() {
        let cost = cost?;
        if event == 0 {
            first = cost;
        }
        if sums.len() <= event {
            sums.push(0);
        }
        sums[event] = sums[event].checked_add(cost)?;
    }
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::decimal::push_decimal;

    #[test]
    fn numbers_of_every_length() {
        let ones = (0..64).map(|shift| u64::MAX >> shift);
        for number in ones.chain([0, 1, 9, 10, 99, 100, 10_000_000_000_000_000_000]) {
            let (hexadecimal, mut told) = (format!("{number:x}").into_bytes(), Vec::new());
            push_decimal(number, &mut told);
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

    #[test]
    fn costs_are_whole_numbers_of_either_sign_or_a_dot() {
        let all = |text: &str| costs(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(all("7  -5\t0x10 . 0"), [7, -5, 16, 0, 0].map(Some));
        assert_eq!(all("9223372036854775807 -9223372036854775808"), [Some(i64::MAX), Some(i64::MIN)]);
        assert_eq!(all("9223372036854775808 -9223372036854775809 1.5 x - .. -."), [None; 7]);
        let mut sums = vec![1];
        assert_eq!((add_costs(b"-3 . 4", &mut sums), &sums[..]), (Some(-3), &[-2, 0, 4][..]));
        assert_eq!(add_costs(b"-9223372036854775807", &mut sums), None, "an overflow");
        assert_eq!((add_costs(b"x", &mut sums), add_costs(b"", &mut sums)), (None, Some(0)));
    }
}
