//! The build ID: a hash over everything that the image is made from.

use super::image::{Addressing, Image};
use super::layout::FramesAt;
use crate::model::process::BuildId;
use sha1::{Digest, Sha1};

/// Changes when the same content is written differently: the readers' caches must not mix the two.
const WRITER: &[u8] = b"jitgraft image 3";

impl Image<'_, '_> {
    /// The build ID: the same for the same content at the same places. It takes as long as a good part of writing.
    pub fn build_id(&self) -> BuildId {
        build_id(self)
    }
}

/// The ID of an image: SHA-1, as GNU ld makes it, over the inputs and their places. What is derived from them (symbol
/// table, DWARF) need not be hashed.
fn build_id(image: &Image) -> BuildId {
    let Image { target, addressing, slots, layout } = image;
    let mut hash = Sha1::new();
    hash.update(WRITER);
    number(&mut hash, u64::from(target.machine) << 2 | u64::from(target.is_64) << 1 | u64::from(target.is_big()));
    number(&mut hash, u64::from(*addressing == Addressing::RunTime));
    number(&mut hash, u64::from(layout.frames == FramesAt::BehindAlways));
    number(&mut hash, layout.sentinels.unwrap_or_default());
    for piece in &layout.pieces {
        let code = slots[piece.slot as usize].code;
        for value in [piece.addr, piece.skip, piece.len, code.size, code.lines.base, code.lines.count] {
            number(&mut hash, value);
        }
        let (eh_frame, eh_frame_hdr) = code.unwind.map_or((None, None), |u| (Some(u.eh_frame), Some(u.eh_frame_hdr)));
        for part in [Some(code.name), code.bytes, Some(code.lines.raw), eh_frame, eh_frame_hdr] {
            // A length before each part, and one that no part has for a missing one: nothing else hashes alike.
            number(&mut hash, part.map_or(u64::MAX, |part| part.len() as u64));
            hash.update(part.unwrap_or_default());
        }
    }
    BuildId::new(&hash.finalize()).expect("no input is known whose SHA-1 is zeros only")
}

fn number(hash: &mut Sha1, value: u64) {
    hash.update(value.to_le_bytes());
}
