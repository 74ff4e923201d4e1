//! Splits a text in memory into lines.

/// Each line without trailing white space, preceded by its offset in the text.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut offset = 0;
    text.split_inclusive(|&byte| byte == b'\n').map(move |line| {
        let end = offset + line.len() as u64;
        (std::mem::replace(&mut offset, end), line.trim_ascii_end())
    })
}

/// A line without the byte order mark (UTF-8) that it begins with if files with marks were joined by `cat`.
pub(crate) fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}
