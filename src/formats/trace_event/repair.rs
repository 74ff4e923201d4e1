//! Repairs events that are almost JSON. Some writers produce raw control characters and invalid UTF-8 in strings,
//! invalid escapes, lone surrogates, `NaN`, `+1` or `.5`. Only called for events that serde rejects.

use crate::bytes::escapes::utf16_letter;
use serde::de::IgnoredAny;

/// Why an event can't be repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unrepairable {
    /// The input ends inside the event; more bytes may follow.
    Short,
    /// The event is damaged in a way that can't be repaired. Holds the error message, and the offset of the damage in
    /// the input.
    Damaged(&'static str, usize),
}

/// Rewrites the object at the start of `bytes` as valid JSON. Returns the JSON and the number of input bytes it
/// replaces.
pub(super) fn repair(bytes: &[u8]) -> Result<(String, usize), Unrepairable> {
    let mut json = String::new();
    // The brackets that are open. Each closing bracket must match the last of them; otherwise an object that lacks its
    // closing bracket would extend over the events after it.
    let mut open = Vec::new();
    // True after a value, where only a comma, a colon or a closing bracket may follow.
    let mut is_after_value = false;
    let mut position = 0;
    loop {
        let byte = *bytes.get(position).ok_or(Unrepairable::Short)?;
        let is_blank = byte.is_ascii_whitespace();
        if is_after_value && !is_blank && !matches!(byte, b',' | b':' | b'}' | b']') {
            return Err(Unrepairable::Damaged("expected a comma or closing bracket here", position));
        }
        match byte {
            b'"' => {
                position += repair_string(&bytes[position..], &mut json)?;
                is_after_value = true;
                continue;
            }
            b'{' | b'[' => open.push(byte),
            b'}' | b']' => {
                let opened = if byte == b'}' { b'{' } else { b'[' };
                if open.pop() != Some(opened) {
                    return Err(Unrepairable::Damaged("this bracket does not match the opening bracket", position));
                }
                is_after_value = true;
            }
            b',' | b':' => is_after_value = false,
            _ if is_blank => {}
            _ if is_word_byte(byte) => {
                let len = bytes[position..].iter().take_while(|byte| is_word_byte(**byte)).count();
                let word = String::from_utf8_lossy(&bytes[position..position + len]);
                // The input may have been cut off in the middle of the word.
                if position + len == bytes.len() {
                    return Err(Unrepairable::Short);
                }
                // A word or number that isn't valid JSON, such as NaN, becomes a string.
                if serde_json::from_str::<IgnoredAny>(&word).is_ok() {
                    json.push_str(&word);
                } else {
                    json.push('"');
                    json.push_str(&word);
                    json.push('"');
                }
                position += len;
                is_after_value = true;
                continue;
            }
            _ => return Err(Unrepairable::Damaged("expected a value here", position)),
        }
        json.push(char::from(byte));
        position += 1;
        if open.is_empty() {
            return Ok((json, position));
        }
    }
}

/// The bytes that numbers and words such as `true` or `NaN` are made of.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

/// Repairs the JSON string at the start of `bytes` and appends it to `json`, with its quotes. Returns its length
/// in `bytes`.
fn repair_string(bytes: &[u8], json: &mut String) -> Result<usize, Unrepairable> {
    json.push('"');
    let mut position = 1;
    loop {
        let rest = &bytes[position..];
        let plain = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count();
        json.push_str(&String::from_utf8_lossy(&rest[..plain]));
        position += plain;
        match (bytes.get(position), bytes.get(position + 1)) {
            (None, _) | (Some(b'\\'), None) => return Err(Unrepairable::Short),
            (Some(b'"'), _) => {
                json.push('"');
                return Ok(position + 1);
            }
            // A valid escape is kept. One for half of a surrogate pair, or with invalid digits, becomes a replacement
            // character.
            (Some(b'\\'), Some(b'u')) => match utf16_letter(&bytes[position..]) {
                Some((Some(_), len)) => {
                    json.push_str(&String::from_utf8_lossy(&bytes[position..position + len]));
                    position += len;
                }
                Some((None, len)) => {
                    json.push_str("\\ufffd");
                    position += len;
                }
                None => {
                    json.push_str("\\ufffd");
                    position += 2;
                }
            },
            (Some(b'\\'), Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => {
                json.push_str(&String::from_utf8_lossy(&bytes[position..position + 2]));
                position += 2;
            }
            // JSON doesn't know the escape `\'`, so the quote is written without the backslash.
            (Some(b'\\'), Some(b'\'')) => {
                json.push('\'');
                position += 2;
            }
            // The writer didn't escape this backslash, which may be in a Windows path, for example.
            (Some(b'\\'), Some(_)) => {
                json.push_str("\\\\");
                position += 1;
            }
            // `plain` ended before a byte that is not among those above, so it is a control character.
            (Some(control), _) => {
                json.push_str(&format!("\\u{control:04x}"));
                position += 1;
            }
        }
    }
}

/// The contents of a JSON string that serde rejects, after repairing it. A truncated string is returned as it is.
pub(super) fn lenient_text(json: &str) -> String {
    let mut mended = String::new();
    match repair_string(json.as_bytes(), &mut mended) {
        Ok(_) => serde_json::from_str(&mended).unwrap_or(mended),
        Err(_) => json.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::TraceEvent;
    use super::*;

    #[test]
    fn what_is_almost_json_becomes_json() {
        for (text, mended) in [
            ("{\"a\":\"x\ty\"}", r#"{"a":"x\u0009y"}"#),
            (r#"{"a":"\ud83d!\ude00\uzz\ud83d\ude00"}"#, r#"{"a":"\ufffd!\ufffd\ufffdzz\ud83d\ude00"}"#),
            (r#"{"a":"C:\Users\'"}"#, r#"{"a":"C:\\Users'"}"#),
            (
                r#"{"a":NaN,"b":-Infinity,"c":[+1,.5,01,-2e3],"d":null}"#,
                r#"{"a":"NaN","b":"-Infinity","c":["+1",".5","01",-2e3],"d":null}"#,
            ),
            ("{}rest", "{}"),
        ] {
            let (json, len) = repair(text.as_bytes()).unwrap();
            assert_eq!((json.as_str(), text[len..].trim_end_matches("rest")), (mended, ""), "{text}");
            TraceEvent::parse(&json).unwrap();
            for cut in 0..len {
                assert_eq!(repair(&text.as_bytes()[..cut]), Err(Unrepairable::Short), "{cut}");
            }
        }
        assert_eq!(repair(b"{\"a\":\"\xff\"}").unwrap().0, "{\"a\":\"\u{fffd}\"}");
        assert_eq!(lenient_text(r#""\ud83d\n""#), "\u{fffd}\n");
    }

    #[test]
    fn damage_is_not_mended() {
        for text in [r#"{"a":"x,"ph":"X"}"#, r#"{"l":[1,{"c":1},2}"#, r#"{"a" 1}"#, "{\u{1}}"] {
            assert!(matches!(repair(text.as_bytes()), Err(Unrepairable::Damaged(..))), "{text}");
        }
    }
}
