//! Matches names against patterns.

/// True if the name matches a pattern in which each `*` stands for any text, including none.
pub(crate) fn matches_glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut pattern_index, mut name_index) = (0, 0);
    // The position in the pattern after the last star, and the position in the name up to which that star matches so
    // far.
    let mut last_star = None;
    while name_index < name.len() {
        match pattern.get(pattern_index) {
            Some(b'*') => {
                pattern_index += 1;
                last_star = Some((pattern_index, name_index));
            }
            Some(byte) if *byte == name[name_index] => {
                pattern_index += 1;
                name_index += 1;
            }
            _ => {
                // Let the last star match one more byte.
                let Some((after_star, end)) = last_star else { return false };
                last_star = Some((after_star, end + 1));
                (pattern_index, name_index) = (after_star, end + 1);
            }
        }
    }
    pattern[pattern_index..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name) in [
            ("", ""),
            ("*", ""),
            ("*", "a.b"),
            ("a", "a"),
            ("a*", "a"),
            ("*.log", ".log"),
            ("*.log", "a.log.log"),
            ("isolate-*-v8.log", "isolate-0x1-2-v8.log"),
            ("a*b*c", "abbbcbc"),
            ("**a*", "ba"),
        ] {
            assert!(matches_glob(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "a"),
            ("a", ""),
            ("a", "ab"),
            ("*.log", "a.log1"),
            ("a*b*c", "acb"),
            ("isolate-*-v8.log", "isolate-v8.log"),
        ] {
            assert!(!matches_glob(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        // The time doesn't grow with the number of possible matches.
        assert!(!matches_glob(&b"*a".repeat(50), &[b'b'; 1 << 14]));
    }
}
