//! Splits lines of comma-separated values.

/// Splits a line into its fields and removes the quotes around them (RFC 4180). An unclosed quote extends to the end of
/// the line.
pub fn fields(line: &[u8]) -> Vec<Vec<u8>> {
    let (mut fields, mut field, mut in_quotes) = (Vec::new(), Vec::new(), false);
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            // Within quotes, two quotes stand for one.
            b'"' if in_quotes && bytes.peek() == Some(&b'"') => {
                field.push(b'"');
                bytes.next();
            }
            b'"' => in_quotes = !in_quotes,
            b',' if !in_quotes => fields.push(std::mem::take(&mut field)),
            byte => field.push(byte),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_commas_and_quotes() {
        let line = br#"6,"f(int, ""x"")",,"2,893",a"#;
        assert_eq!(fields(line), [&b"6"[..], b"f(int, \"x\")", b"", b"2,893", b"a"]);
        assert_eq!(fields(b""), [b""]);
        assert_eq!(fields(b"\"a,b"), [b"a,b"]);
    }
}
