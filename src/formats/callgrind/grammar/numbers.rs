//! Numbers and costs, read and written.

/// A number as the format writes it: decimal, or hexadecimal behind `0x`.
pub(in super::super) fn number(word: &[u8]) -> Option<u64> {
    match word.strip_prefix(b"0x") {
        Some(digits) => hex(digits),
        None => decimal(word),
    }
}

/// A hexadecimal number without prefix; `None` if it is empty, odd or does not fit.
pub(in super::super) fn hex(digits: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    // With more digits than these it may not fit.
    let (first, others) = digits.split_at(digits.len().min(16));
    for &digit in first {
        value = value << 4 | u64::from(hex_digit(digit)?);
    }
    for &digit in others {
        value = value.checked_mul(16)?.checked_add(u64::from(hex_digit(digit)?))?;
    }
    (!digits.is_empty()).then_some(value)
}

#[inline]
fn hex_digit(digit: u8) -> Option<u8> {
    let value = HEX_DIGITS[digit as usize];
    (value < 16).then_some(value)
}

/// The value of each byte as a digit: which kind comes next cannot be foreseen.
const HEX_DIGITS: [u8; 256] = {
    let mut values = [0xff; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// A decimal number; `None` if it is empty, odd or does not fit.
pub(in super::super) fn decimal(digits: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    // With more digits than these it may not fit.
    let (first, others) = digits.split_at(digits.len().min(19));
    for &digit in first {
        value = value * 10 + u64::from(decimal_digit(digit)?);
    }
    for &digit in others {
        value = value.checked_mul(10)?.checked_add(u64::from(decimal_digit(digit)?))?;
    }
    (!digits.is_empty()).then_some(value)
}

fn decimal_digit(digit: u8) -> Option<u8> {
    digit.is_ascii_digit().then(|| digit - b'0')
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

/// Appends a number in hexadecimal digits. Numbers are most of what is written: `format!` would take an allocation each.
pub(in super::super) fn push_hex(value: u64, out: &mut Vec<u8>) {
    let mut text = [0; 16];
    let (mut start, mut rest) = (text.len(), value);
    loop {
        start -= 1;
        text[start] = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::decimal::push_decimal;

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
        assert_eq!((hex(b"10000000000000000"), hex(b"1g"), hex(b"AbC")), (None, None, Some(0xabc)));
        let much = decimal(b"18446744073709551616");
        assert_eq!(
            (much, decimal(b"1a"), decimal(b""), decimal(b"000000000000000000007")),
            (None, None, None, Some(7))
        );
    }
}
