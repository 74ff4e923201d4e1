//! Formats numbers with a fraction exactly as the standard library does, but several times faster.

use crate::bytes::decimal::push_decimal;
use std::io::Write;

/// Appends a number with `places` decimal places, as `{:.N}` would format it.
pub(super) fn push_fixed(out: &mut Vec<u8>, number: f64, places: usize) {
    let Some(scaled) = scale(number, places) else {
        // Writing to a `Vec` can't fail.
        return drop(write!(out, "{number:.places$}"));
    };
    let power = 10u64.pow(places as u32);
    push_decimal(scaled / power, out);
    out.push(b'.');
    let decimals = scaled % power;
    // The digits after the point, one by one, because `push_decimal` would leave out leading zeros.
    for place in (0..places as u32).rev() {
        out.push(b'0' + (decimals / 10u64.pow(place) % 10) as u8);
    }
}

/// `number` × 10^`digits`, rounded to an integer. `None` if the number is outside the range of the fast algorithm, or
/// if the product is exactly halfway between two integers, where rounding is left to the standard library.
fn scale(number: f64, digits: usize) -> Option<u64> {
    const MANTISSA: u32 = 52;
    const BIAS: u32 = 1023;
    let bits = number.to_bits();
    let exponent = (bits >> MANTISSA) as u32;
    // The fast algorithm takes numbers from 2^-20 up to 2^30. A negative number is outside of this range, because its
    // sign bit, which is above the exponent, counts as a part of the exponent here.
    if !(BIAS - 20..BIAS + 30).contains(&exponent) {
        // All bits of the number 0 are 0.
        return if bits == 0 { Some(0) } else { None };
    }
    // The number is `mantissa` × 2^-`shift`. Its product with the power of ten is exact in 128 bits, so the bits below
    // 2^`shift` tell how to round.
    let mantissa = bits & ((1 << MANTISSA) - 1) | 1 << MANTISSA;
    let product = u128::from(mantissa) * u128::from(10u64.pow(digits as u32));
    let shift = BIAS + MANTISSA - exponent;
    let whole = u64::try_from(product >> shift).ok()?;
    let (fraction, half) = (product & ((1 << shift) - 1), 1 << (shift - 1));
    if fraction == half { None } else { Some(whole + u64::from(fraction > half)) }
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
        let odd = [0.0, -0.0, 0.25, 0.5, 0.125, 0.03125, 0.00005, 99.99995, 100.0, 1e-9, 1e12, -3.0, f64::NAN];
        // Numbers whose last digit is 5, and the floating-point numbers next to them: here the rounding direction
        // changes.
        let turning = (0..20_000).map(|n| f64::from(n) / 20_000.0);
        let near = turning.flat_map(|number: f64| [number.next_down(), number, number.next_up(), number * 73.0]);
        for number in odd.into_iter().chain(near) {
            for digits in [2, 4] {
                assert_eq!(text(|out| push_fixed(out, number, digits)), format!("{number:.digits$}"), "{number:e}");
            }
        }
    }
}
