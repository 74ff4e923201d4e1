//! Splits a text in memory into lines.

/// The lines of a text without trailing white space, each with its byte offset in the text.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut offset = 0;
    text.split_inclusive(|&byte| byte == b'\n').map(move |line| {
        let end = offset + line.len() as u64;
        (std::mem::replace(&mut offset, end), line.trim_ascii_end())
    })
}

/// Removes a UTF-8 byte order mark from the start of a line. Marks don't only occur at the start of a text: `cat`
/// doesn't remove them from the files that it joins.
pub(crate) fn strip_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}
