//! Numbers as the picture spells them: what the standard library writes, in a fraction of the time.

use std::io::Write;

/// Appends a whole number.
pub(super) fn whole(out: &mut Vec<u8>, mut number: u64) {
    // The longest has 20 digits.
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a whole number with a comma between thousands.
pub(super) fn grouped(out: &mut Vec<u8>, number: u64) {
    let mut digits = Vec::with_capacity(20);
    whole(&mut digits, number);
    for (at, digit) in digits.iter().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(b',');
        }
        out.push(*digit);
    }
}

/// Appends a number with so many digits behind the point, as `{:.N}` does.
pub(super) fn fixed(out: &mut Vec<u8>, number: f64, digits: u32) {
    match scaled(number, digits) {
        Some(scaled) => {
            let unit = 10u64.pow(digits);
            whole(out, scaled / unit);
            out.push(b'.');
            let behind = out.len();
            // The leading 1 keeps the zeros.
            whole(out, unit + scaled % unit);
            out.remove(behind);
        }
        // Writing to memory does not fail.
        None => drop(write!(out, "{number:.*}", digits as usize)),
    }
}

/// `number` × 10^`digits`, rounded; `None` if it is large or lies in the middle between two.
fn scaled(number: f64, digits: u32) -> Option<u64> {
    const MANTISSA: u32 = 52;
    const BIAS: u32 = 1023;
    let bits = number.to_bits();
    let exponent = (bits >> MANTISSA) as u32;
    // From 2^-20 to 2^30, without sign.
    if !(BIAS - 20..BIAS + 30).contains(&exponent) {
        return if bits == 0 { Some(0) } else { None };
    }
    let mantissa = bits & ((1 << MANTISSA) - 1) | 1 << MANTISSA;
    let product = u128::from(mantissa) * u128::from(10u64.pow(digits));
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
        // Neighbours of what ends in 5, where rounding turns.
        let turning = (0..20_000).map(|n| f64::from(n) / 20_000.0);
        let near = turning.flat_map(|number: f64| [number.next_down(), number, number.next_up(), number * 73.0]);
        for number in odd.into_iter().chain(near) {
            for digits in [2, 4] {
                assert_eq!(
                    text(|out| fixed(out, number, digits)),
                    format!("{number:.*}", digits as usize),
                    "{number:e}"
                );
            }
        }
    }
}
