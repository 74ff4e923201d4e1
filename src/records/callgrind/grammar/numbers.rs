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
    let (eights, first) = first.as_chunks();
    for eight in eights {
        value = value << 32 | hex_of_8(*eight)?;
    }
    for &digit in first {
        value = value << 4 | u64::from(hex_digit(digit)?);
    }
    for &digit in others {
        value = value.checked_mul(16)?.checked_add(u64::from(hex_digit(digit)?))?;
    }
    (!digits.is_empty()).then_some(value)
}

/// Eight digits at once.
#[inline]
fn hex_of_8(digits: [u8; 8]) -> Option<u64> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let text = u64::from_be_bytes(digits);
    let is_letter = text >> 6 & EACH;
    let values = (text & (0x0f * EACH)) + 9 * is_letter;
    // `3` in front of a digit below ten; `4` or `6` in front of a letter, whose value is from ten to fifteen.
    let kinds = (text | is_letter << 5) & (0xf0 * EACH);
    let above_9 = (values + 6 * EACH) >> 4 & (0x0f * EACH);
    if kinds != (EACH + is_letter) * 0x30 || above_9 != is_letter || values & (0xf0 * EACH) != 0 {
        return None;
    }
    let pairs = (values | values >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((fours | fours >> 16) & 0xffff_ffff)
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

/// Appends a number in hexadecimal digits. Numbers are most of the output: `format!` would take an allocation each.
pub(in super::super) fn push_hex(value: u64, out: &mut Vec<u8>) {
    let digits = (67 - value.leading_zeros() as usize) / 4;
    let text = u128::from(hex_text((value >> 32) as u32)) | u128::from(hex_text(value as u32)) << 64;
    let end = out.len() + digits.max(1);
    // At once: see `push_decimal`.
    out.extend_from_slice(&(text >> (8 * (16 - digits.max(1)))).to_le_bytes());
    out.truncate(end);
}

/// Eight digits, the first in the lowest byte.
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
