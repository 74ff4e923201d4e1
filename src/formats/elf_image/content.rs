//! Computes the build ID, a hash of everything that the image is made from.

use super::image::{Addressing, Image};
use super::layout::FramesAt;
use crate::bytes::cursor::Endian;
use crate::model::process::BuildId;
use sha1::{Digest, Sha1};

/// Identifies the version of this writer, and is a part of the hash. It must be changed when the same content is
/// written differently, so that readers don't find the old form of an image in their caches.
const WRITER: &[u8] = b"jitgraft image 3";

impl Image<'_, '_> {
    /// The build ID. It is the same for the same content at the same offsets and addresses. Computing it takes a
    /// considerable part of the time for writing.
    ///
    /// It is a SHA-1, as in GNU ld, over the inputs and where they are in the image. Parts that are derived from them
    /// (symbol table, DWARF) need not be hashed.
    pub fn build_id(&self) -> BuildId {
        let Self { target, addressing, layout, .. } = self;
        let mut content = HashedContent::new();
        content.bytes(WRITER);
        // The machine, word size, byte order and addressing also decide how the code is written.
        content.number(
            u64::from(target.machine) << 2 | u64::from(target.is_64) << 1 | u64::from(target.endian == Endian::Big),
        );
        content.number(u64::from(*addressing == Addressing::RunTime));
        // Where the unwinding information goes. It is enough to hash whether it is `AfterCodeAlways`: `BeforeCode` and
        // `AfterCode` differ in the addresses below, because with `BeforeCode` the code is at other addresses.
        content.number(u64::from(layout.frames == FramesAt::AfterCodeAlways));
        // The address of the functions that follow the code in an image for viewers (`Layout::for_viewers`).
        content.number(layout.sentinels.unwrap_or_default());
        for (piece, code) in self.with_code(&layout.pieces) {
            for value in [piece.addr, piece.skip, piece.len, code.size, code.lines.base, code.lines.count] {
                content.number(value);
            }
            let (eh_frame, eh_frame_hdr) =
                code.unwind.map_or((None, None), |unwind| (Some(unwind.eh_frame), Some(unwind.eh_frame_hdr)));
            for part in [Some(code.name), code.bytes, Some(code.lines.raw), eh_frame, eh_frame_hdr] {
                // Each part is preceded by its length, or by an impossible length if the part is missing. This makes
                // the encoding unambiguous.
                content.number(part.map_or(u64::MAX, |part| part.len() as u64));
                content.bytes(part.unwrap_or_default());
            }
        }
        BuildId::new(content.finish().as_ref()).expect("no input is known whose SHA-1 is zeros only")
    }
}

/// Hashes content piece by piece. Most pieces are short, so they are collected in a buffer.
struct HashedContent {
    hash: Sha1,
    buffer: Vec<u8>,
}

/// Size of the buffer in bytes.
const BUFFER_LEN: usize = 1 << 13;

impl HashedContent {
    fn new() -> Self {
        Self { hash: Sha1::new(), buffer: Vec::with_capacity(BUFFER_LEN) }
    }

    fn number(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Adds bytes to the hash. Short pieces are collected first, because hashing many short pieces is slow.
    fn bytes(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > BUFFER_LEN {
            self.hash.update(&self.buffer);
            self.buffer.clear();
        }
        match bytes.len() > BUFFER_LEN {
            true => self.hash.update(bytes),
            false => self.buffer.extend_from_slice(bytes),
        }
    }

    fn finish(mut self) -> impl AsRef<[u8]> {
        self.hash.update(&self.buffer);
        self.hash.finalize()
    }
}
