//! Parses numbers from text. The whole text must be a number.

use std::str::FromStr;

/// Parses a hexadecimal number without a `0x` prefix. `None` if the text is empty, contains anything else, or the
/// number doesn't fit into 64 bits.
pub(crate) fn hex(digits: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    // 16 digits always fit into 64 bits, so they need no check for overflow.
    let (first, others) = digits.split_at(digits.len().min(16));
    for &digit in first {
        value = value << 4 | u64::from(hex_digit(digit)?);
    }
    for &digit in others {
        value = value.checked_mul(16)?.checked_add(u64::from(hex_digit(digit)?))?;
    }
    (!digits.is_empty()).then_some(value)
}

/// Decodes pairs of hexadecimal digits to bytes. `None` if the text contains anything else, or an odd number of digits.
pub(crate) fn hex_bytes(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(hex_digit(high)? << 4 | hex_digit(low)?)).collect()
}

#[inline]
fn hex_digit(digit: u8) -> Option<u8> {
    let value = HEX_DIGITS[digit as usize];
    (value < 16).then_some(value)
}

/// The value of each byte as a hexadecimal digit; 0xff for other bytes. A table, because the CPU can't predict a branch
/// on whether a byte is a digit or a letter.
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

/// Parses a number of any type that implements [`FromStr`]. Whether it may have a sign, a point or an exponent depends
/// on the type. `None` if the text isn't such a number.
pub(crate) fn number<T: FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses decimal digits. `None` if the text is empty, contains anything else, or the number doesn't fit into 64 bits.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    // 19 digits always fit into 64 bits, so they need no check for overflow.
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
