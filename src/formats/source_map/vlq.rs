//! Decodes numbers as source maps encode them: base64 digits of five bits each, the lowest first. The sixth bit of a
//! digit says whether more digits follow.

/// The value of each byte as a base64 digit; [`OTHER`] if the byte isn't one.
const DIGITS: [u8; 256] = digits();

/// Marks bytes that are not base64 digits.
const OTHER: u8 = u8::MAX;

/// Builds [`DIGITS`].
const fn digits() -> [u8; 256] {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut digits = [OTHER; 256];
    let mut digit = 0;
    while digit < alphabet.len() {
        digits[alphabet[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
}

/// Reads an unsigned number at the start of `text` and advances past it. `None` if there is none or it has more than
/// ten digits.
#[inline(always)]
pub(super) fn unsigned(text: &mut &[u8]) -> Option<u64> {
    // Most numbers have one digit, which is handled first for speed. A digit below 32 is the last one of its number.
    let (number, rest) = match text.split_first().map(|(byte, rest)| (DIGITS[usize::from(*byte)], rest)) {
        Some((digit @ ..32, rest)) => (u64::from(digit), rest),
        _ => unsigned_of_any_length(text)?,
    };
    *text = rest;
    Some(number)
}

/// Reads an unsigned number at the start of `text`, and returns the rest of the text. `None` if there is none or it has
/// more than ten digits.
fn unsigned_of_any_length(mut text: &[u8]) -> Option<(u64, &[u8])> {
    let (mut number, mut shift) = (0u64, 0u32);
    loop {
        let (byte, rest) = text.split_first()?;
        let digit = DIGITS[usize::from(*byte)];
        // Ten digits have 50 bits.
        if digit == OTHER || shift >= 50 {
            return None;
        }
        text = rest;
        number |= u64::from(digit & 31) << shift;
        shift += 5;
        // The highest of a digit's six bits says that another digit follows.
        if digit & 32 == 0 {
            return Some((number, text));
        }
    }
}

/// Like [`unsigned`], for a number whose lowest bit is its sign (1 for negative numbers).
#[inline(always)]
pub(super) fn signed(text: &mut &[u8]) -> Option<i64> {
    let number = unsigned(text)?;
    let size = (number >> 1) as i64;
    Some(if number & 1 == 0 { size } else { -size })
}
