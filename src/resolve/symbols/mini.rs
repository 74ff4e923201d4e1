//! MiniDebugInfo: `.gnu_debugdata`, a symbol table of the functions that `.dynsym` leaves out, as an ELF file of
//! its own, compressed with xz. Fedora's stripped programs have it.

use super::image::Image;
use crate::io::Bytes;
use std::io::{self, Write};

/// A symbol table larger than this is not one: sizes of the largest browsers are a tenth of it.
const LIMIT: usize = 256 << 20;

/// The ELF file in an image's `.gnu_debugdata`. `None` if it has none, or a damaged one.
pub fn image(image: &Image) -> Option<Image> {
    let object = image.object().ok()?;
    let packed = image.section(&object, ".gnu_debugdata");
    if packed.is_empty() {
        return None;
    }
    let mut out = Limited(Vec::new());
    lzma_rs::xz_decompress(&mut &packed[..], &mut out).ok()?;
    Image::new(image.path(), Bytes::Owned(out.0)).ok()
}

/// Memory that a damaged file cannot fill.
struct Limited(Vec<u8>);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LIMIT {
            return Err(io::Error::other("decompresses to more than any symbol table needs"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
