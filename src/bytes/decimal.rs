//! Formats numbers as decimal text.

/// Appends a number in decimal digits.
#[inline]
pub(crate) fn push_decimal(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length() {
        let powers = (0..20).map(|exponent| 10u64.pow(exponent));
        let around = powers.flat_map(|power| [power - 1, power, power + 1, power.wrapping_mul(7)]);
        for number in around.chain([u64::MAX]) {
            let mut text = b"(".to_vec();
            push_decimal(number, &mut text);
            assert_eq!(text, format!("({number}").into_bytes());
        }
    }
}
