//! Parses the elements of HotSpot's log: `<name key='value' key='value'/>`, each on a line of its own.
//!
//! An XML parser would not help: the log of a running or killed JVM ends anywhere, and unfinished parts of a thread's
//! log are in CDATA. But `<`, `>`, `&` and quotes are always escaped in text and values, so anything that looks like an
//! element is one (`xmlStream` in HotSpot's share/utilities/xmlstream.cpp).

use crate::bytes::digits::hex;
use crate::bytes::escapes::utf16_letter;
use std::borrow::Cow;

/// The text between `<`, with which `bytes` begin, and the next `>`, without the `/` of an element such as `<bc …/>`.
/// `None` if the line or file ends before the `>`.
pub(super) fn tag(bytes: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr2(b'>', b'\n', bytes)?;
    (bytes[end] == b'>').then(|| bytes[1..end].strip_suffix(b"/").unwrap_or(&bytes[1..end]))
}

/// The keys and values of an element, still escaped.
pub(super) fn attributes(tag: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = tag;
    std::iter::from_fn(move || {
        let open = memchr::memmem::find(rest, b"='")?;
        let value = &rest[open + 2..];
        let close = memchr::memchr(b'\'', value)?;
        let key = rest[..open].rsplit(|&byte| byte == b' ').next()?;
        rest = &value[close + 1..];
        Some((key, &value[..close]))
    })
}

/// The value of the attribute `key`, still escaped.
pub(super) fn attribute<'a>(tag: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    attributes(tag).find(|(other, _)| *other == key).map(|(_, value)| value)
}

/// Parses a hexadecimal number with `0x`.
pub(super) fn address(value: &[u8]) -> Option<u64> {
    hex(value.strip_prefix(b"0x")?)
}

/// Resolves the escapes in a value: those of XML, and those like `\u00df`. HotSpot prints each UTF-16 unit of a
/// character that isn't ASCII in this way (`Symbol::print_utf8_on`).
pub(super) fn unescape(value: &[u8]) -> Cow<'_, [u8]> {
    const ESCAPES: [(&[u8], u8); 5] =
        [(b"&lt;", b'<'), (b"&gt;", b'>'), (b"&amp;", b'&'), (b"&apos;", b'\''), (b"&quot;", b'"')];
    if memchr::memchr2(b'&', b'\\', value).is_none() {
        return Cow::Borrowed(value);
    }
    let mut plain = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&first, after)) = rest.split_first() {
        // Escapes of characters beyond 16 bits are pairs. Half a pair isn't a character and stays as it is.
        if let Some((Some(letter), len)) = utf16_letter(rest) {
            plain.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &rest[len..];
            continue;
        }
        match ESCAPES.iter().find(|(escape, _)| rest.starts_with(escape)) {
            Some((escape, letter)) => {
                plain.push(*letter);
                rest = &rest[escape.len()..];
            }
            None => {
                plain.push(first);
                rest = after;
            }
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::digits::number;

    #[test]
    fn a_tag_ends_in_its_line() {
        assert_eq!(tag(b"<a b='c'/>\n<d/>"), Some(&b"a b='c'"[..]));
        assert_eq!(tag(b"<task id='1'>"), Some(&b"task id='1'"[..]));
        assert_eq!(tag(b"<a b='c\n'/>"), None);
        assert_eq!(tag(b"<a b='c"), None);
    }

    #[test]
    fn attributes_are_reported_by_whole_keys() {
        let tag =
            b"relocated nmethod compile_id='7' new_address='0x1f' address='0x2f' method='A &lt;init&gt; (&amp;x)V'";
        assert_eq!(attribute(tag, b"compile_id").and_then(number), Some(7));
        assert_eq!(attribute(tag, b"address").and_then(address), Some(0x2f));
        assert_eq!(attribute(tag, b"id"), None);
        assert_eq!(attribute(tag, b"method").map(unescape).unwrap(), &b"A <init> (&x)V"[..]);
        assert_eq!(unescape(br"gro\u00dfe &amp; \ud83d\ude00\u00e9\ud83d \u12"), "große & 😀é\\ud83d \\u12".as_bytes());
        assert_eq!(attributes(b"a='1' b='2").count(), 1);
        assert_eq!(address(b"0x"), None);
        assert_eq!(address(b"0x+1"), None);
    }
}
