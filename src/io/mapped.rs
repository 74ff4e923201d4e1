//! The contents of inputs, and the only place that creates memory maps.

use crate::error::{Error, Result};
use memmap2::{Mmap, MmapOptions, UncheckedAdvice};
use std::fs::File;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The whole contents of an input: mapped if possible, otherwise in memory.
#[derive(Debug)]
pub enum Bytes {
    /// The contents of a memory-mapped file.
    Mapped(Arc<Mmap>),
    /// Contents that were read into memory.
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl Bytes {
    /// A second handle to the same bytes. A memory map is shared; owned bytes are copied.
    pub(super) fn duplicate(&self) -> Self {
        match self {
            Self::Mapped(map) => Self::Mapped(Arc::clone(map)),
            Self::Owned(bytes) => Self::Owned(bytes.clone()),
        }
    }

    /// Returns a function to call with ranges of bytes that won't be used again. If the bytes are a mapped file, it
    /// removes their pages from this process's memory. Bytes that are used nevertheless are read from the file again.
    pub fn releaser(&self) -> impl Fn(Range<usize>) + Send + Sync + 'static {
        let map = match self {
            Self::Mapped(map) => Some(Arc::clone(map)),
            Self::Owned(_) => None,
        };
        move |range| {
            if let Some(map) = &map {
                release(map, range);
            }
        }
    }
}

/// The size of the units in which pages are released: a multiple of the page size on all systems (4 to 64 KiB).
const PAGES: usize = 1 << 16;

/// Removes those pages of a mapped file from memory that are entirely in this range.
#[expect(unsafe_code, reason = "the kernel is advised to drop pages of a map")]
fn release(map: &Mmap, range: Range<usize>) {
    let (start, end) = (range.start.next_multiple_of(PAGES), range.end.min(map.len()) / PAGES * PAGES);
    if start < end {
        // SAFETY: MADV_DONTNEED destroys what was written to private or anonymous memory. This map is read-only and
        // backed by a file, whose pages are read again when they are accessed. If the call fails, the pages merely stay
        // in memory.
        let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start) };
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Maps a regular file that is not empty.
pub(super) fn map_regular(file: &File) -> Result<Bytes> {
    map_regular_to(file, file.metadata()?.len())
}

/// Maps a regular file up to the offset `end`, which isn't 0.
#[expect(unsafe_code, reason = "the only memory map")]
pub(super) fn map_regular_to(file: &File, end: u64) -> Result<Bytes> {
    let len = usize::try_from(end).map_err(|_| Error::new("is too large to map into memory"))?;
    // SAFETY: the map is read-only and private to this process. memmap2 can't check that nobody truncates the file
    // meanwhile. Recordings are complete when we read them; jitdumps and perf maps of other owners are refused, or
    // copied first (`jit::trust`). If a file is truncated nevertheless, the process ends (`guard`), and the output,
    // which has no name yet, never appears.
    let map = unsafe { MmapOptions::new().len(len).map(file) }
        .map_err(|error| Error::new("cannot map into memory").because(error))?;
    Ok(Bytes::Mapped(Arc::new(map)))
}
