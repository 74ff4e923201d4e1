//! MiniDebugInfo (`.gnu_debugdata`): an xz-compressed ELF file inside a stripped program. It has symbols for the
//! functions that `.dynsym` lacks. Fedora's programs contain it.

use super::image::Image;
use crate::io::Bytes;
use lzma_rust2::XzReader;
use std::io::Read;

/// The maximum unpacked size in bytes: ten times that of the largest browsers.
const LARGEST: u64 = 256 << 20;

/// The maximum memory for unpacking, in bytes: the dictionary of `xz -9`, plus room for its tables.
const LARGEST_DICTIONARY: u32 = 96 << 20;

/// Unpacks the ELF file in an image's `.gnu_debugdata`. `None` if the image has no such section or the section is
/// damaged.
pub fn image(image: &Image) -> Option<Image> {
    let object = image.object().ok()?;
    let packed = image.section(&object, ".gnu_debugdata");
    if packed.is_empty() {
        return None;
    }
    let out = unpack(&packed, LARGEST)?;
    Image::new(image.path(), Bytes::Owned(out)).ok()
}

/// Unpacks xz data. `None` if the data is damaged, or larger than `most` bytes when unpacked. Unpacking stops at that
/// size.
fn unpack(packed: &[u8], most: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let unpacked = XzReader::new_mem_limit(packed, false, LARGEST_DICTIONARY >> 10);
    unpacked.take(most + 1).read_to_end(&mut out).ok()?;
    (out.len() as u64 <= most).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_larger_than_any_symbol_table_is_refused() {
        let packed = zstd::decode_all(&include_bytes!("../../../fixtures/gnu-debugdata/zeros.xz.zst")[..]).unwrap();
        assert!(packed.len() < 50_000, "what is packed is small");
        assert!(unpack(&packed, 1 << 20).is_none());
        assert!(unpack(&packed[..1000], LARGEST).is_none());
        assert!(unpack(b"no xz data", LARGEST).is_none());
    }
}
