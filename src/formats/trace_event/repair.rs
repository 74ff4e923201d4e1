//! Repairs events that are almost JSON. Some writers produce raw control characters and invalid UTF-8 in strings,
//! invalid escapes, lone surrogates, `NaN`, `+1` or `.5`. Only called for events that serde rejects.

use crate::bytes::escapes::utf16_letter;
use serde::de::IgnoredAny;

/// Why an event can't be repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unrepairable {
    /// The input ends inside the event; more bytes may follow.
    Short,
    /// The event is damaged in a way that can't be repaired: the error message, and the offset of the damage in the
    /// input.
    Damaged(&'static str, usize),
}

/// Rewrites the object at the start of `bytes` as valid JSON. Returns the JSON and the number of input bytes it
/// replaces.
pub(super) fn repair(bytes: &[u8]) -> Result<(String, usize), Unrepairable> {
    let mut json = String::new();
    // The open brackets. They are checked, so that an object without its closing bracket doesn't take in what follows.
    let mut open = Vec::new();
    // True after a value, where only a comma, a colon or a closing bracket may follow.
    let mut is_behind_value = false;
    let mut at = 0;
    loop {
        let byte = *bytes.get(at).ok_or(Unrepairable::Short)?;
        let is_blank = byte.is_ascii_whitespace();
        if is_behind_value && !is_blank && !matches!(byte, b',' | b':' | b'}' | b']') {
            return Err(Unrepairable::Damaged("expected a comma or closing bracket here", at));
        }
        match byte {
            b'"' => {
                at += repair_string(&bytes[at..], &mut json)?;
                is_behind_value = true;
                continue;
            }
            b'{' | b'[' => open.push(byte),
            b'}' | b']' => {
                let opened = if byte == b'}' { b'{' } else { b'[' };
                if open.pop() != Some(opened) {
                    return Err(Unrepairable::Damaged("the wrong bracket is closed here", at));
                }
                is_behind_value = true;
            }
            b',' | b':' => is_behind_value = false,
            _ if is_blank => {}
            _ if is_word_byte(byte) => {
                let len = bytes[at..].iter().take_while(|byte| is_word_byte(**byte)).count();
                let word = String::from_utf8_lossy(&bytes[at..at + len]);
                if at + len == bytes.len() {
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
                at += len;
                is_behind_value = true;
                continue;
            }
            _ => return Err(Unrepairable::Damaged("expected a value here", at)),
        }
        json.push(char::from(byte));
        at += 1;
        if open.is_empty() {
            return Ok((json, at));
        }
    }
}

/// The bytes that numbers and words such as `true` or `NaN` are made of.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

/// Repairs the JSON string at the start of `bytes` and appends it to `json`, with its quotes. Returns its length in
/// `bytes`.
fn repair_string(bytes: &[u8], json: &mut String) -> Result<usize, Unrepairable> {
    json.push('"');
    let mut at = 1;
    loop {
        let rest = &bytes[at..];
        let plain = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count();
        json.push_str(&String::from_utf8_lossy(&rest[..plain]));
        at += plain;
        match (bytes.get(at), bytes.get(at + 1)) {
            (None, _) | (Some(b'\\'), None) => return Err(Unrepairable::Short),
            (Some(b'"'), _) => {
                json.push('"');
                return Ok(at + 1);
            }
            // A valid escape is kept. One for half of a surrogate pair, or with invalid digits, becomes a replacement
            // character.
            (Some(b'\\'), Some(b'u')) => match utf16_letter(&bytes[at..]) {
                Some((Some(_), len)) => {
                    json.push_str(&String::from_utf8_lossy(&bytes[at..at + len]));
                    at += len;
                }
                Some((None, len)) => {
                    json.push_str("\\ufffd");
                    at += len;
                }
                None => {
                    json.push_str("\\ufffd");
                    at += 2;
                }
            },
            (Some(b'\\'), Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => {
                json.push_str(&String::from_utf8_lossy(&bytes[at..at + 2]));
                at += 2;
            }
            (Some(b'\\'), Some(b'\'')) => {
                json.push('\'');
                at += 2;
            }
            // A backslash that wasn't escaped, for example in a Windows path.
            (Some(b'\\'), Some(_)) => {
                json.push_str("\\\\");
                at += 1;
            }
            (Some(control), _) => {
                json.push_str(&format!("\\u{control:04x}"));
                at += 1;
            }
        }
    }
}

/// The contents of a JSON string that serde rejects, after repairing it. A string that is cut off is returned as it is.
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
