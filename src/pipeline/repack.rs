//! Compresses an output in the same way as its input was compressed.

use super::open::Wrapping;
use crate::error::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// Calls `write` with an output whose contents are compressed before they reach `out`. `wrappings` are the layers of
/// compression, outermost first.
pub(crate) fn compress(
    wrappings: &[Wrapping],
    out: &mut dyn Write,
    write: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    match wrappings.split_first() {
        None => write(out),
        // Text encodings and marks of quotes aren't restored: the output is always plain UTF-8.
        Some((Wrapping::Utf8Mark | Wrapping::Utf16(_) | Wrapping::Quoted | Wrapping::Indented(_), inner)) => {
            compress(inner, out, write)
        }
        Some((Wrapping::Gzip, inner)) => {
            let mut gzip = GzEncoder::new(out, Compression::default());
            write_in_blocks(&mut gzip, |blocks| compress(inner, blocks, write))?;
            gzip.finish()?;
            Ok(())
        }
        Some((Wrapping::Zstd, inner)) => {
            let mut zstd = zstd::stream::write::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
            write_in_blocks(&mut zstd, |blocks| compress(inner, blocks, write))?;
            zstd.finish()?;
            Ok(())
        }
    }
}

/// The size of the blocks that compressors get. Their output depends on how the input is divided into writes. With
/// blocks of one size, the same bytes always compress to the same bytes.
const BLOCK: usize = 1 << 16;

/// Collects bytes into blocks of equal size for a compressor.
struct Blocks<'o> {
    out: &'o mut dyn Write,
    block: Vec<u8>,
}

fn write_in_blocks(out: &mut dyn Write, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut blocks = Blocks { out, block: Vec::with_capacity(BLOCK) };
    write(&mut blocks)?;
    Ok(blocks.out.write_all(&blocks.block)?)
}

impl Write for Blocks<'_> {
    /// Adds as many of the bytes as fit to the block. A full block is passed on to the compressor.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        if self.block.len() == BLOCK {
            self.out.write_all(&self.block)?;
            self.block.clear();
        }
        Ok(taken)
    }

    /// Does nothing, because an incomplete block must not be passed on.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
