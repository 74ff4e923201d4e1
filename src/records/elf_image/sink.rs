//! The output file with its position: writes in order of offset and leaves holes.

use crate::error::Result;
use std::io::{Seek, SeekFrom, Write};

/// Gaps up to this length are written out, larger ones are left as holes: a filesystem keeps no smaller ones.
const SMALLEST_HOLE: u64 = 4096;

/// So much of a gap is filled at a time: most are shorter.
const FILL: usize = 64;

/// An output that has its offset. Buffer what is behind it: most writes are small.
pub(super) struct ByteSink<'w, W> {
    out: &'w mut W,
    at: u64,
}

impl<'w, W: Write + Seek> ByteSink<'w, W> {
    /// Continues at offset `at`.
    pub(super) fn new(out: &'w mut W, at: u64) -> Result<Self> {
        out.seek(SeekFrom::Start(at))?;
        Ok(Self { out, at })
    }

    /// The offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.at
    }

    /// Writes bytes here.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Goes on to `offset`, which is not behind: short gaps are filled with `fill`, long ones become holes of zeros.
    pub(super) fn skip_to(&mut self, offset: u64, fill: u8) -> Result<()> {
        let gap = offset.saturating_sub(self.at);
        if gap < SMALLEST_HOLE {
            let fill = [fill; FILL];
            for _ in 0..gap as usize / FILL {
                self.bytes(&fill)?;
            }
            return self.bytes(&fill[..gap as usize % FILL]);
        }
        self.out.seek(SeekFrom::Start(offset))?;
        self.at = offset;
        Ok(())
    }

    /// Goes on to the next multiple of `align`, a power of two.
    pub(super) fn align(&mut self, align: u64) -> Result<()> {
        self.skip_to(self.at.next_multiple_of(align), 0)
    }
}
