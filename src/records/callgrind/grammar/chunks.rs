//! Cuts a file where the block of one function ends and the next begins, so that chunks can be worked on separately.

use crate::error::{Error, Result};
use std::io::Read;

/// The amount that is cut off at a time. The block of a function that is longer makes a longer chunk.
pub const CHUNK_SIZE: usize = 1 << 21;

/// A run of whole blocks of a file.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Position in the order of the file, from 0.
    pub index: usize,
    /// Offset in the file of its first byte.
    pub offset: u64,
    /// Its bytes. All but the first begin with a `fn=` line.
    pub bytes: &'a [u8],
    /// True if nothing follows.
    pub last: bool,
}

const MARK: &[u8] = b"\nfn=";

/// The chunks of a file in order, of about `size` bytes each.
pub fn chunks(text: &[u8], size: usize) -> impl Iterator<Item = Chunk<'_>> {
    // So much has been looked at: behind a long block that is more than one size from where the next chunk starts.
    let (mut index, mut offset, mut seen) = (0, 0, 0usize);
    std::iter::from_fn(move || {
        let rest = text.get(offset..).filter(|rest| !rest.is_empty())?;
        seen = seen.max(offset.saturating_add(size));
        let (mut from, mut cut) = (offset, None);
        while cut.is_none() && seen <= text.len() {
            // The mark may straddle what was looked at before.
            cut = memchr::memmem::rfind(&text[from..seen], MARK).map(|at| from + at + 1 - offset);
            if cut.is_none() {
                from = seen.saturating_sub(MARK.len()).max(offset);
                seen = seen.saturating_add(size.max(1));
            }
        }
        let bytes = &rest[..cut.unwrap_or(rest.len())];
        let chunk = Chunk { index, offset: offset as u64, bytes, last: cut.is_none() };
        index += 1;
        offset += bytes.len();
        Some(chunk)
    })
}

/// The same of a stream; each with its offset.
#[derive(Debug)]
pub(in super::super) struct ReadChunks<R> {
    input: R,
    size: usize,
    offset: u64,
    rest: Vec<u8>,
    ended: bool,
}

impl<R: Read> ReadChunks<R> {
    /// Cuts `input` into chunks of about `size` bytes.
    pub(in super::super) fn new(input: R, size: usize) -> Self {
        Self { input, size, offset: 0, rest: Vec::new(), ended: false }
    }

    fn next_chunk(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        let mut bytes = std::mem::take(&mut self.rest);
        let mut want = self.size;
        let cut = loop {
            if let Some(cut) = self.fill(&mut bytes, want)? {
                break cut;
            }
            if self.ended {
                break bytes.len();
            }
            want = bytes.len().saturating_add(self.size);
        };
        if bytes.is_empty() {
            return Ok(None);
        }
        // Copied, not split off: the chunk that is handed out keeps its capacity.
        self.rest = bytes[cut..].to_vec();
        bytes.truncate(cut);
        let offset = self.offset;
        self.offset += cut as u64;
        Ok(Some((offset, bytes)))
    }

    /// Reads until there are `want` bytes; the place of the last cut in them.
    fn fill(&mut self, bytes: &mut Vec<u8>, want: usize) -> Result<Option<usize>> {
        let before = bytes.len();
        bytes.reserve_exact(want.saturating_sub(before));
        while bytes.len() < want && !self.ended {
            let missing = (want - bytes.len()) as u64;
            let got = (&mut self.input)
                .take(missing)
                .read_to_end(bytes)
                .map_err(|error| Error::from(error).at(self.offset + bytes.len() as u64))?;
            self.ended = got == 0 || (got as u64) < missing;
        }
        // The mark may straddle what was there before.
        let from = before.saturating_sub(MARK.len());
        let found = memchr::memmem::rfind(&bytes[from..], MARK).map(|at| from + at + 1);
        Ok(if self.ended { Some(bytes.len()) } else { found })
    }
}

impl<R: Read> Iterator for ReadChunks<R> {
    type Item = Result<(u64, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_chunk();
        if next.is_err() {
            self.ended = true;
            self.rest.clear();
        }
        next.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_but_the_first_begins_with_a_function() {
        let text = b"head\n\nfn=a\n1 1\nfn=b\n2 2\n3 3\nob=x\nfn=c\n4 4\n";
        for size in 1..=text.len() + 1 {
            let parts: Vec<Chunk<'_>> = chunks(text, size).collect();
            assert_eq!(parts.iter().flat_map(|part| part.bytes).copied().collect::<Vec<u8>>(), text, "size {size}");
            assert!(parts[1..].iter().all(|part| part.bytes.starts_with(b"fn=")), "size {size}");
            assert!(parts.iter().all(|part| text[part.offset as usize..].starts_with(part.bytes)), "size {size}");
            let last: Vec<bool> = parts.iter().map(|part| part.last).collect();
            assert!(
                last.iter().rposition(|last| !last).is_none_or(|at| at + 1 == last.len() - 1) && last[last.len() - 1]
            );
            let read: Vec<(u64, Vec<u8>)> = ReadChunks::new(&text[..], size).map(Result::unwrap).collect();
            assert!(
                read.iter().map(|(at, bytes)| (*at, &bytes[..])).eq(parts.iter().map(|part| (part.offset, part.bytes)))
            );
        }
        assert_eq!((chunks(text, 8).count(), chunks(b"", 8).count()), (4, 0));
    }
}
