//! Cuts a stream where the block of one function ends and the next begins, so that chunks can be worked on separately.

use crate::error::{Error, Result};
use std::io::Read;

/// How much is read at a time. The block of a function that is longer makes a longer chunk.
pub const CHUNK_SIZE: usize = 1 << 21;

/// A run of whole blocks of a file.
#[derive(Debug)]
pub struct Chunk {
    /// Position in the order of the file, from 0.
    pub index: usize,
    /// Offset in the file of its first byte.
    pub offset: u64,
    /// Its bytes. All but the first begin with a `fn=` line.
    pub bytes: Vec<u8>,
    /// Whether nothing follows.
    pub last: bool,
}

/// The chunks of a stream in order; the same cuts for the same bytes, however they arrive.
#[derive(Debug)]
pub struct Chunks<R> {
    input: R,
    size: usize,
    index: usize,
    offset: u64,
    rest: Vec<u8>,
    ended: bool,
}

impl<R: Read> Chunks<R> {
    /// Cuts `input` into chunks of about `size` bytes.
    pub fn new(input: R, size: usize) -> Self {
        Self { input, size, index: 0, offset: 0, rest: Vec::new(), ended: false }
    }

    fn next_chunk(&mut self) -> Result<Option<Chunk>> {
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
        let chunk = Chunk { index: self.index, offset: self.offset, last: self.ended && self.rest.is_empty(), bytes };
        self.index += 1;
        self.offset += cut as u64;
        Ok(Some(chunk))
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

const MARK: &[u8] = b"\nfn=";

impl<R: Read> Iterator for Chunks<R> {
    type Item = Result<Chunk>;

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
            let parts: Vec<Chunk> = Chunks::new(&text[..], size).map(Result::unwrap).collect();
            let joined: Vec<u8> = parts.iter().flat_map(|part| part.bytes.clone()).collect();
            assert_eq!(joined, text, "size {size}");
            assert!(parts[1..].iter().all(|part| part.bytes.starts_with(b"fn=")), "size {size}");
            assert!(parts.iter().all(|part| text[part.offset as usize..].starts_with(&part.bytes)), "size {size}");
        }
        assert_eq!(Chunks::new(&text[..], 8).count(), 4);
        assert_eq!(Chunks::new(&b""[..], 8).count(), 0);
    }
}
