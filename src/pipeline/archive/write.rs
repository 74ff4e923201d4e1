//! Writes archives. The same files always produce the same bytes.

use super::manifest::{MANIFEST, MARK, Manifest, PackedFile};
use crate::error::Result;
use std::borrow::Cow;
use std::io::{self, Read, Write};
use tar::{Builder, EntryType, Header};

/// The contents of the archive's first file, for people who unpack the archive.
const ABOUT: &[u8] = b"A recording of perf with all that names its code: jitgraft reads the archive as it is.\n";

/// A part of the contents of a file.
#[derive(Debug, Clone)]
pub(crate) enum Piece<'a> {
    /// The bytes themselves.
    Bytes(Cow<'a, [u8]>),
    /// A sequence of zero bytes, given by its length, so that the bytes need no memory.
    Zeros(u64),
}

impl Piece<'_> {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeros(len) => *len,
        }
    }

    /// Calls `show` with the bytes of this piece, in one or more slices. Zeros aren't stored, so they come from a
    /// constant block.
    pub(crate) fn each(&self, mut show: impl FnMut(&[u8])) {
        const ZEROS: [u8; 1 << 12] = [0; 1 << 12];
        match self {
            Self::Bytes(bytes) => show(bytes),
            Self::Zeros(len) => {
                let (full_blocks, remainder) = (len / ZEROS.len() as u64, len % ZEROS.len() as u64);
                (0..full_blocks).for_each(|_| show(&ZEROS));
                show(&ZEROS[..remainder as usize]);
            }
        }
    }

    fn reader(&self) -> Box<dyn Read + '_> {
        match self {
            Self::Bytes(bytes) => Box::new(&bytes[..]),
            Self::Zeros(len) => Box::new(io::repeat(0).take(*len)),
        }
    }
}

/// Writes an archive. `contents` has the pieces of each file, in the order of the manifest.
pub(crate) fn write(out: &mut dyn Write, manifest: &Manifest, contents: &[&[Piece<'_>]]) -> Result<()> {
    let mut zstd = zstd::stream::write::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    let mut tar = Builder::new(&mut zstd);
    // `0`: the mark and the manifest have no modification time of their own.
    append(&mut tar, MARK, 0, ABOUT.len() as u64, ABOUT)?;
    // Flushing ends the compressed block here. So the first bytes of an archive are always the same, whatever follows.
    tar.get_mut().flush()?;
    let listed = serde_json::to_vec_pretty(manifest).map_err(io::Error::from)?;
    append(&mut tar, MANIFEST, 0, listed.len() as u64, &listed[..])?;
    for (PackedFile { path, modified, size, .. }, pieces) in manifest.files.iter().zip(contents) {
        let mut content: Box<dyn Read> = Box::new(io::empty());
        for piece in *pieces {
            content = Box::new(content.chain(piece.reader()));
        }
        append(&mut tar, path, modified.0, *size, content)?;
    }
    tar.into_inner()?;
    zstd.finish()?;
    Ok(())
}

/// Appends a file. `modified` is its modification time, in seconds since 1970.
fn append(tar: &mut Builder<impl Write>, path: &str, modified: i64, size: u64, content: impl Read) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o600);
    header.set_mtime(modified.try_into().unwrap_or_default());
    header.set_size(size);
    tar.append_data(&mut header, path, content)
}
