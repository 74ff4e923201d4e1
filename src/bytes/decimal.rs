//! Numbers as text, without what a formatter does around them: outputs have millions of them.

/// Appends a number in decimal digits.
#[inline]
pub(crate) fn push_decimal(value: u64, out: &mut Vec<u8>) {
    if value < 100_000_000 {
        return push_8_digits(value, out);
    }
    let mut text = [0; 20];
    let (mut start, mut rest) = (text.len(), value);
    loop {
        start -= 1;
        text[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[start..]);
}

/// All digits of a short number at once, in a register: digits written one by one to memory cannot be read back together
/// before they are all there.
fn push_8_digits(value: u64, out: &mut Vec<u8>) {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // Fours, pairs, then digits, the first in the lowest place. The products are right for what is that small.
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | (pairs - tens * 10) << 8;
    let zeros = (digits.trailing_zeros() as usize / 8).min(7);
    let end = out.len() + 8 - zeros;
    out.extend_from_slice(&((digits | (0x30 * EACH)) >> (8 * zeros)).to_le_bytes());
    out.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length() {
        let powers = (0..20).map(|exponent| 10u64.pow(exponent));
        let around = powers.flat_map(|power| [power - 1, power, power + 1, power.wrapping_mul(7)]);
        for number in (0..20_000).chain((0..100_000_000).step_by(9_973)).chain(around).chain([u64::MAX]) {
            let mut text = b"(".to_vec();
            push_decimal(number, &mut text);
            assert_eq!(text, format!("({number}").into_bytes());
        }
    }
}
