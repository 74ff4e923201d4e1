//! An output file that keeps track of its position, for writing in order of offset with holes.

use crate::error::Result;
use std::io::{Seek, SeekFrom, Write};

/// Gaps shorter than this are written out; longer ones become holes. Filesystems don't keep smaller holes.
const MIN_HOLE: u64 = 4096;

/// Gaps are filled in steps of this many bytes; most are shorter.
const FILL: usize = 64;

/// An output with its current offset. Most writes are small, so `out` should be buffered.
pub(super) struct ByteSink<'w, W> {
    out: &'w mut W,
    /// The offset of the next byte.
    offset: u64,
}

impl<'w, W: Write + Seek> ByteSink<'w, W> {
    /// Starts writing at this offset.
    pub(super) fn new(out: &'w mut W, offset: u64) -> Result<Self> {
        out.seek(SeekFrom::Start(offset))?;
        Ok(Self { out, offset })
    }

    /// The offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Moves forward to `offset`. Short gaps are filled with `fill`, long ones become holes of zeros.
    pub(super) fn skip_to(&mut self, offset: u64, fill: u8) -> Result<()> {
        let gap = offset.saturating_sub(self.offset);
        if gap < MIN_HOLE {
            let fill = [fill; FILL];
            for _ in 0..gap as usize / FILL {
                self.bytes(&fill)?;
            }
            return self.bytes(&fill[..gap as usize % FILL]);
        }
        self.out.seek(SeekFrom::Start(offset))?;
        self.offset = offset;
        Ok(())
    }

    /// Moves to the next multiple of `align`, a power of two.
    pub(super) fn align(&mut self, align: u64) -> Result<()> {
        self.skip_to(self.offset.next_multiple_of(align), 0)
    }
}
