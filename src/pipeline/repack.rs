//! An output that is packed as its input was.

use super::open::Wrapping;
use crate::error::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// Writes, packed in these, the outermost first.
pub(crate) fn packed(
    wrappings: &[Wrapping],
    out: &mut dyn Write,
    write: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    match wrappings.split_first() {
        None => write(out),
        Some((Wrapping::Gzip, inner)) => {
            let mut gzip = GzEncoder::new(out, Compression::default());
            packed(inner, &mut gzip, write)?;
            gzip.finish()?;
            Ok(())
        }
        Some((Wrapping::Zstd, inner)) => {
            let mut zstd = zstd::stream::write::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
            packed(inner, &mut zstd, write)?;
            zstd.finish()?;
            Ok(())
        }
    }
}
