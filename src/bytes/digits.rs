//! Numbers read from text: all of it must be digits, or what [`str::parse`] takes as well.

use std::str::FromStr;

/// A hexadecimal number without prefix; `None` if it is empty, odd or does not fit.
pub(crate) fn hex(digits: &[u8]) -> Option<u64> {
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

/// The bytes that pairs of hexadecimal digits stand for; `None` if it is anything else.
pub(crate) fn hex_bytes(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(hex_digit(high)? << 4 | hex_digit(low)?)).collect()
}

fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// A decimal number of any type, with its sign, point and exponent.
pub(crate) fn number<T: FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A decimal number; `None` if it is empty, odd or does not fit.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
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
