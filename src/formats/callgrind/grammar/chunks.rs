//! Cuts a file into chunks between the blocks of functions, so that the chunks can be processed in parallel.

use crate::error::{Error, Result};
use std::io::Read;

/// Approximate length of a chunk in bytes. A chunk is longer if it contains a function whose block is longer, because
/// blocks aren't split. A parsed chunk takes about as much memory as its text. At most two chunks per thread
/// are in memory at a time.
pub const CHUNK_SIZE: usize = 1 << 18;

/// Consecutive whole blocks of a file.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Number of the chunk, from 0.
    pub index: usize,
    /// Offset of the chunk in the file.
    pub offset: u64,
    /// The chunk's text. All chunks but the first begin with an `fn=` line.
    pub bytes: &'a [u8],
    /// True for the last chunk of the file.
    pub last: bool,
}

/// The line feed before a function's block, and the start of the block. A text can be cut after the line feed.
const FUNCTION_START: &[u8] = b"\nfn=";

/// Cuts a file into chunks of at most `size` bytes, each at the last place in these bytes where a function's block
/// begins. If no block begins there, the chunk is longer.
pub fn chunks(text: &[u8], size: usize) -> impl Iterator<Item = Chunk<'_>> {
    let (mut index, mut offset) = (0, 0);
    // Offset of the end of the text that was searched so far. After a long block, it may be more than `size` bytes
    // beyond the start of the next chunk. In this case, no block begins between that start and this offset.
    let mut searched = 0usize;
    std::iter::from_fn(move || {
        let rest = text.get(offset..).filter(|rest| !rest.is_empty())?;
        searched = searched.max(offset.saturating_add(size));
        let mut start = offset;
        let mut cut = None;
        // If this search would go beyond the end of the text, there is no cut, and the rest of the text is the last
        // chunk.
        while cut.is_none() && searched <= text.len() {
            // The cut is after the line feed, hence `+ 1`.
            cut = memchr::memmem::rfind(&text[start..searched], FUNCTION_START).map(|found| start + found + 1 - offset);
            if cut.is_none() {
                // `FUNCTION_START` may straddle the end of the bytes that were searched so far, so search the last of
                // them again.
                start = searched.saturating_sub(FUNCTION_START.len()).max(offset);
                searched = searched.saturating_add(size.max(1));
            }
        }
        let bytes = &rest[..cut.unwrap_or(rest.len())];
        let chunk = Chunk { index, offset: offset as u64, bytes, last: cut.is_none() };
        index += 1;
        offset += bytes.len();
        Some(chunk)
    })
}

/// An iterator that reads a stream and cuts it into chunks between functions. Yields each chunk's offset and bytes.
#[derive(Debug)]
pub(in super::super) struct ReadChunks<R> {
    input: R,
    /// Approximate length of a chunk in bytes.
    size: usize,
    /// Offset of the next chunk in the file.
    offset: u64,
    /// Bytes that were read from the input but follow the last returned chunk. They become the start of the next chunk.
    rest: Vec<u8>,
    /// True if the input has no more bytes.
    ended: bool,
}

impl<R: Read> ReadChunks<R> {
    /// Cuts `input` into chunks of about `size` bytes.
    pub(in super::super) fn new(input: R, size: usize) -> Self {
        Self { input, size, offset: 0, rest: Vec::new(), ended: false }
    }

    /// Reads the next chunk and returns its offset in the file and its bytes; `None` at the end. A chunk that contains
    /// no place to cut becomes longer until it does, or until the input ends.
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
        // The rest is copied instead of split off the chunk, so that the chunk keeps the buffer with its reserved
        // capacity.
        self.rest = bytes[cut..].to_vec();
        bytes.truncate(cut);
        let offset = self.offset;
        self.offset += cut as u64;
        Ok(Some((offset, bytes)))
    }

    /// Reads until `bytes` has `want` bytes or the input ends. Returns the offset in `bytes` at which to end the chunk:
    /// the last one at which a function's block begins or, if the input ended, the end. `None` if no block begins in
    /// the bytes that this call read; the caller then reads more.
    fn fill(&mut self, bytes: &mut Vec<u8>, want: usize) -> Result<Option<usize>> {
        let old_len = bytes.len();
        bytes.reserve_exact(want.saturating_sub(old_len));
        while bytes.len() < want && !self.ended {
            let missing = (want - bytes.len()) as u64;
            let got = (&mut self.input)
                .take(missing)
                .read_to_end(bytes)
                .map_err(|error| Error::from(error).at_offset(self.offset + bytes.len() as u64))?;
            // Fewer bytes than asked for mean that the input has ended.
            self.ended = got == 0 || (got as u64) < missing;
        }
        // `FUNCTION_START` may straddle the end of the bytes that an earlier call has read, so search the last of them
        // again.
        let from = old_len.saturating_sub(FUNCTION_START.len());
        let found = memchr::memmem::rfind(&bytes[from..], FUNCTION_START).map(|at| from + at + 1);
        Ok(if self.ended { Some(bytes.len()) } else { found })
    }
}

impl<R: Read> Iterator for ReadChunks<R> {
    type Item = Result<(u64, Vec<u8>)>;

    /// The next chunk: its offset in the file, and its bytes. An error if it can't be read.
    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_chunk();
        // After an error, the iterator yields nothing more.
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
