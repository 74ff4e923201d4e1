//! Quotes words for shells, so that a printed command can be pasted whatever its words contain.
//!
//! A recorded command line is hostile input. When pasted, each word stays one word and runs nothing. Control characters
//! are escaped.

use super::printable::printable;
use std::borrow::Cow;
use std::fmt::Write;

/// Quotes a word for a POSIX shell, if necessary. Words with bytes that a terminal may obey, or that aren't UTF-8, are
/// written as `$'…'` with octal escapes (POSIX.1-2024; supported by bash, zsh and ksh).
pub fn quoted(word: &[u8]) -> Cow<'_, str> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(byte);
    // `printable` returns `Owned` if a byte isn't UTF-8 or may be obeyed by a terminal.
    match printable(word) {
        Cow::Borrowed(text) if !text.is_empty() && word.iter().all(is_plain) => Cow::Borrowed(text),
        Cow::Borrowed(text) => Cow::Owned(format!("'{}'", text.replace('\'', r"'\''"))),
        Cow::Owned(_) => Cow::Owned(escape(word)),
    }
}

/// Writes the word as `$'…'` with escape sequences.
fn escape(word: &[u8]) -> String {
    let mut text = String::from("$'");
    for &byte in word {
        match byte {
            b'\'' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            // Always three digits, so that a digit that follows isn't taken as part of the escape sequence. Writing to
            // a string can't fail.
            _ => drop(write!(text, "\\{byte:03o}")),
        }
    }
    text + "'"
}

/// Quotes the words of a command line where necessary. The first word is also quoted if a shell would otherwise take it
/// for an assignment (`A=1`).
pub fn line<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut line = String::new();
    for (index, word) in words.into_iter().enumerate() {
        if index > 0 {
            line.push(' ');
        }
        match quoted(word) {
            // The word needed no quotes (`Borrowed`). But as the first word of the line, it would be taken for an
            // assignment.
            Cow::Borrowed(text) if index == 0 && text.contains('=') => line.push_str(&format!("'{text}'")),
            text => line.push_str(&text),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;

    #[test]
    fn plain_words_stay_and_others_are_quoted() {
        for (word, wanted) in [
            (&b"node"[..], "node"),
            (b"--v8-flags=--perf-prof,--x", "--v8-flags=--perf-prof,--x"),
            (b"", "''"),
            (b"a b", "'a b'"),
            (b"$(reboot)", "'$(reboot)'"),
            (b"it's", r"'it'\''s'"),
            ("grün".as_bytes(), "'grün'"),
            (b"a\x1b]0;x\x07", r"$'a\033]0;x\007'"),
            (b"\xff1", r"$'\3771'"),
            ("a\u{202e}b'".as_bytes(), r"$'a\342\200\256b\''"),
        ] {
            assert_eq!(quoted(word), wanted);
        }
        assert_eq!(line([&b"A=b"[..], b"c=d"]), "'A=b' c=d");
    }

    #[test]
    fn a_shell_reads_what_was_quoted_and_runs_nothing() {
        let mut words: Vec<Vec<u8>> = (1..=255u8).map(|byte| vec![b'a', byte, b'1']).collect();
        words.extend(
            [&b"\n"[..], b"~", "*".as_bytes(), b"{a,b}", b"`id`", b"!!", b"#", b"-e", b"\\", b"$'x'"]
                .map(<[u8]>::to_vec),
        );
        words.push((1..=255u8).collect());
        let line = line(words.iter().map(|word| &word[..]));
        assert!(!line.chars().any(char::is_control), "{line}");
        let script = format!("LC_ALL=C printf '%s\\0' {line}");
        let output =
            Command::new("bash").args(["-c".as_ref(), std::ffi::OsStr::from_bytes(script.as_bytes())]).output();
        let read = output.unwrap().stdout;
        let read: Vec<&[u8]> = read.strip_suffix(b"\0").unwrap().split(|byte| *byte == 0).collect();
        assert_eq!(read, words);
    }
}
