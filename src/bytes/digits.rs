//! Parses numbers from text. The whole text must be a number.

use std::str::FromStr;

/// Parses a hexadecimal number without a `0x` prefix. `None` if the text is empty, contains anything else, or the
/// number doesn't fit into 64 bits.
pub(crate) fn hex(digits: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    // 16 digits always fit into 64 bits, so they need no check for overflow.
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

/// Decodes pairs of hexadecimal digits to bytes. `None` if the text contains anything else, or an odd number of digits.
pub(crate) fn hex_bytes(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(hex_digit(high)? << 4 | hex_digit(low)?)).collect()
}

/// Parses eight hexadecimal digits at once.
#[inline]
fn hex_of_8(digits: [u8; 8]) -> Option<u64> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let text = u64::from_be_bytes(digits);
    let is_letter = text >> 6 & EACH;
    let values = (text & (0x0f * EACH)) + 9 * is_letter;
    // In ASCII, the upper half of a digit's byte is 3, and that of a letter is 4 or 6. A letter's value must be 10 to
    // 15.
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

/// Parses a number of any type that implements [`FromStr`]. A sign, point or exponent is accepted if the type accepts
/// it. `None` if the text isn't such a number.
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
