//! Numbers as the picture spells them: what the standard library writes, in a fraction of the time.

use std::io::Write;

/// The longest has 20 digits, and a point.
const ROOM: usize = 24;

/// `00` to `99`
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut at = 0;
    while at < 100 {
        pairs[at] = [b'0' + (at / 10) as u8, b'0' + (at % 10) as u8];
        at += 1;
    }
    pairs
};

/// Writes a number's digits so that they end at `end`; where they begin.
fn digits(text: &mut [u8; ROOM], mut end: usize, mut number: u64) -> usize {
    while number >= 100 {
        end -= 2;
        text[end..end + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number >= 10 {
        end -= 2;
        text[end..end + 2].copy_from_slice(&PAIRS[number as usize]);
    } else {
        end -= 1;
        text[end] = b'0' + number as u8;
    }
    end
}

/// Appends a whole number.
pub(super) fn whole(out: &mut Vec<u8>, number: u64) {
    let mut text = [0; ROOM];
    let start = digits(&mut text, ROOM, number);
    out.extend_from_slice(&text[start..]);
}

/// Appends a whole number with a comma between thousands.
pub(super) fn grouped(out: &mut Vec<u8>, number: u64) {
    let mut text = [0; ROOM];
    let start = digits(&mut text, ROOM, number);
    for (at, &digit) in text.iter().enumerate().skip(start) {
        if at > start && (ROOM - at).is_multiple_of(3) {
            out.push(b',');
        }
        out.push(digit);
    }
}

/// Appends a number with this many digits behind the point, as `{:.N}` does.
pub(super) fn fixed(out: &mut Vec<u8>, number: f64, behind: usize) {
    let Some(mut rest) = scaled(number, behind) else {
        // Writing to memory does not fail.
        return drop(write!(out, "{number:.behind$}"));
    };
    let mut text = [0; ROOM];
    let point = ROOM - behind - 1;
    for digit in text[point + 1..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text[point] = b'.';
    let start = digits(&mut text, point, rest);
    out.extend_from_slice(&text[start..]);
}

/// `number` × 10^`digits`, rounded; `None` if it is large or lies in the middle between two.
fn scaled(number: f64, digits: usize) -> Option<u64> {
    const MANTISSA: u32 = 52;
    const BIAS: u32 = 1023;
    let bits = number.to_bits();
    let exponent = (bits >> MANTISSA) as u32;
    // From 2^-20 to 2^30, without sign.
    if !(BIAS - 20..BIAS + 30).contains(&exponent) {
        return if bits == 0 { Some(0) } else { None };
    }
    let mantissa = bits & ((1 << MANTISSA) - 1) | 1 << MANTISSA;
    let product = u128::from(mantissa) * u128::from(10u64.pow(digits as u32));
    let shift = BIAS + MANTISSA - exponent;
    let (down, rest, half) = (product >> shift, product & ((1 << shift) - 1), 1 << (shift - 1));
    let down = u64::try_from(down).ok()?;
    (rest != half).then_some(down + u64::from(rest > half))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn as_the_standard_library_writes_them() {
        for number in [0, 7, 10, 999, 1000, 1_234_567, u64::MAX] {
            assert_eq!(text(|out| whole(out, number)), number.to_string());
        }
        assert_eq!(text(|out| grouped(out, 999)), "999");
        assert_eq!(text(|out| grouped(out, 1_234_567)), "1,234,567");
        let odd = [0.0, -0.0, 0.25, 0.5, 0.125, 0.03125, 0.00005, 99.99995, 100.0, 1e-9, 1e12, -3.0, f64::NAN];
        // Neighbors of numbers that end in 5, where rounding turns.
        let turning = (0..20_000).map(|n| f64::from(n) / 20_000.0);
        let near = turning.flat_map(|number: f64| [number.next_down(), number, number.next_up(), number * 73.0]);
        for number in odd.into_iter().chain(near) {
            for digits in [2, 4] {
                assert_eq!(text(|out| fixed(out, number, digits)), format!("{number:.digits$}"), "{number:e}");
            }
        }
    }
}
