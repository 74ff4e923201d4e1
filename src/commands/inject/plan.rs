//! The mapping records that are inserted: one directly before each sample that is the first to touch code which perf
//! does not see there yet, with that sample's time, so that readers sort it to that place.

use super::images::Images;
use super::touched::Touched;
use crate::error::{Warning, Warnings};
use crate::formats::cursor::Endian;
use crate::formats::perf_data::{Edit, Mmap, Recording};
use crate::model::process::CpuMode;
use crate::resolve::code_map::CodeMap;
use std::os::unix::ffi::OsStrExt;

const PROT_READ_EXEC: u32 = 1 | 4;
const MAP_PRIVATE: u32 = 2;

/// The insertions, in the order of the stream.
pub(super) fn insertions(
    recording: &Recording,
    codes: &CodeMap<'_>,
    touched: &Touched,
    images: &Images,
    warnings: &mut Warnings,
) -> Vec<Edit> {
    let mut edits = Vec::with_capacity(touched.touches.len());
    let mut homeless = 0;
    for (key, touch) in touched.in_order() {
        let segment = codes.segment(key.segment);
        let Some((image, pgoff)) = images.place(codes, key.segment) else {
            homeless += 1;
            continue;
        };
        let (pid, tid) = touch.id.pid_tid.unwrap_or_default();
        let mmap = Mmap {
            pid,
            tid,
            addr: segment.start,
            len: segment.end.0 - segment.start.0,
            pgoff,
            path: image.path.as_os_str().as_bytes(),
            build_id: Some(image.build_id),
            prot: Some(PROT_READ_EXEC),
            flags: Some(MAP_PRIVATE),
            cpumode: CpuMode::User,
            data: false,
        };
        let attr = &recording.events[touch.event].attr;
        let endian: Endian = recording.header.endian;
        let trailer = attr.sample_id_all().then_some((&touch.id, attr.sample_type));
        match mmap.to_mmap2(trailer, endian) {
            Some(insert) => edits.push(Edit { at: touch.first.offset, remove: 0, insert }),
            None => homeless += 1,
        }
    }
    if homeless > 0 {
        warnings.push(Warning::new(format!("{homeless} pieces of code are too large for an image: they have no name")));
    }
    edits
}
