//! The lines of a text that is all there.

/// Each line without the white space at its end, behind the offset at which it begins.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut offset = 0;
    text.split_inclusive(|&byte| byte == b'\n').map(move |line| {
        let end = offset + line.len() as u64;
        (std::mem::replace(&mut offset, end), line.trim_ascii_end())
    })
}
