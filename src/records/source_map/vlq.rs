//! Numbers as source maps write them: base 64 digits of five bits, the lowest first; the sixth bit states that more
//! follow.

/// The value of each digit, [`OTHER`] for bytes that are none.
const DIGITS: [u8; 256] = digits();

/// Not a digit.
const OTHER: u8 = u8::MAX;

const fn digits() -> [u8; 256] {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut digits, mut at) = ([OTHER; 256], 0);
    while at < alphabet.len() {
        digits[alphabet[at] as usize] = at as u8;
        at += 1;
    }
    digits
}

/// The number at the start of a text, which is behind it afterwards. `None` if there is none, or it is too large.
#[inline(always)]
pub(super) fn unsigned(text: &mut &[u8]) -> Option<u64> {
    // Most numbers have one digit.
    let (number, rest) = match text.split_first().map(|(byte, rest)| (DIGITS[usize::from(*byte)], rest)) {
        Some((digit @ ..32, rest)) => (u64::from(digit), rest),
        _ => long(text)?,
    };
    *text = rest;
    Some(number)
}

/// The number at the start of a text, and what follows it.
fn long(mut text: &[u8]) -> Option<(u64, &[u8])> {
    let (mut number, mut shift) = (0u64, 0u32);
    loop {
        let (byte, rest) = text.split_first()?;
        let digit = DIGITS[usize::from(*byte)];
        if digit == OTHER || shift >= 50 {
            return None;
        }
        text = rest;
        number |= u64::from(digit & 31) << shift;
        shift += 5;
        if digit & 32 == 0 {
            return Some((number, text));
        }
    }
}

/// The same, for a number whose lowest bit is its sign.
#[inline(always)]
pub(super) fn signed(text: &mut &[u8]) -> Option<i64> {
    let number = unsigned(text)?;
    let size = (number >> 1) as i64;
    Some(if number & 1 == 0 { size } else { -size })
}
