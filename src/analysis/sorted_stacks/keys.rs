//! A stack as bytes whose order is that of its frames' names, outermost first.
//!
//! In the order of names a stack precedes all that continue it, and these stand together. Of folded text this does not
//! hold, for some bytes are less than `;`. In a key a frame's end is 0, which is less than all others; the bytes of
//! names below the line break, which is in no name, are moved up by one.

use std::borrow::Cow;

/// Is between two frames.
pub(super) const END: u8 = 0;

pub(super) const SEPARATOR: u8 = b';';

/// Appends the key of a stack, which has no line break in it.
pub(super) fn push(stack: &[u8], keys: &mut Vec<u8>) {
    keys.extend(stack.iter().map(|&byte| if byte == SEPARATOR { END } else { byte + u8::from(byte < b'\n') }));
}

/// The text of frame's key.
pub(super) fn name(key: &[u8]) -> Cow<'_, str> {
    if key.iter().all(|byte| *byte > b'\n') {
        return String::from_utf8_lossy(key);
    }
    let name: Vec<u8> = key.iter().map(|&byte| byte - u8::from(byte <= b'\n')).collect();
    Cow::Owned(String::from_utf8_lossy(&name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_back_from_its_key() {
        let mut bytes: Vec<u8> = (0..128).filter(|byte| !b"\n;".contains(byte)).collect();
        bytes.extend("größer".bytes());
        let mut key = Vec::new();
        push(&bytes, &mut key);
        assert!(!key.contains(&END));
        assert_eq!(name(&key).as_bytes(), bytes);
    }

    proptest::proptest! {
        #[test]
        fn keys_sort_as_frames_do(one in "[\t b;:<]{0,6}", other in "[\t b;:<]{0,6}") {
            let (mut keys, mut other_keys) = (Vec::new(), Vec::new());
            push(one.as_bytes(), &mut keys);
            push(other.as_bytes(), &mut other_keys);
            let frames = |stack: &str| stack.split(';').map(str::to_owned).collect::<Vec<_>>();
            proptest::prop_assert_eq!(keys.cmp(&other_keys), frames(&one).cmp(&frames(&other)));
        }
    }
}
