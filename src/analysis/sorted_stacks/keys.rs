//! Encodes stacks as byte strings that sort by the names of their frames, outermost first.
//!
//! In this order, a stack directly precedes all its continuations. Folded text doesn't sort like that, because some
//! bytes are less than `;`. In a key, frames are separated by 0, which is less than any other byte; bytes of names
//! below the line break, which no name contains, are increased by one.
//!
//! One frame sorts after all its siblings: the label for missing outermost frames, if it is the outermost frame or
//! directly on top of the process. In a key, it is preceded by a byte that occurs in no text.

use crate::model::stacks::TRUNCATED;
use std::borrow::Cow;

/// The byte between two frames of a key.
pub(super) const END: u8 = 0;

pub(super) const SEPARATOR: u8 = b';';

/// The byte before the frame that sorts after all its siblings.
const LAST: u8 = 0xff;

/// Appends the sort key of a folded stack to `keys`. The stack must not contain line breaks.
pub(super) fn push(stack: &[u8], keys: &mut Vec<u8>) {
    let key = |&byte: &u8| if byte == SEPARATOR { END } else { byte + u8::from(byte < b'\n') };
    let behind_process = || memchr::memchr(SEPARATOR, stack).map(|end| end + 1);
    let is_truncated =
        |at: &usize| stack[*at..].strip_prefix(TRUNCATED).is_some_and(|rest| matches!(rest, [] | [SEPARATOR, ..]));
    let truncated = Some(0).filter(is_truncated).or_else(|| behind_process().filter(is_truncated));
    let (process, rest) = stack.split_at(truncated.unwrap_or(0));
    keys.extend(process.iter().map(key));
    keys.extend(truncated.map(|_| LAST));
    keys.extend(rest.iter().map(key));
}

/// Converts a frame's part of a key back to the frame's name.
pub(super) fn name(key: &[u8]) -> Cow<'_, str> {
    let key = key.strip_prefix(&[LAST]).filter(|name| *name == TRUNCATED).unwrap_or(key);
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

    #[test]
    fn stacks_without_their_outer_part_come_last() {
        let key = |stack: &str| {
            let mut key = Vec::new();
            push(stack.as_bytes(), &mut key);
            key
        };
        for stack in ["[truncated]", "[truncated];f", "node;[truncated]", "node;[truncated];f;[truncated]"] {
            let names: Vec<_> = key(stack).split(|byte| *byte == END).map(|key| name(key).into_owned()).collect();
            assert_eq!(names.join(";"), stack);
        }
        assert!(key("zsh;f") < key("[truncated];f") && key("node;größer") < key("node;[truncated]"));
        assert!(key("[truncatedly]") < key("a") && key("node;[truncated]") < key("node2"));
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
