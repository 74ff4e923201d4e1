//! Numbers as text, without what a formatter does around them: outputs have millions of them.

/// Appends a number in decimal digits.
#[inline]
pub(super) fn push_decimal(value: u64, out: &mut Vec<u8>) {
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
