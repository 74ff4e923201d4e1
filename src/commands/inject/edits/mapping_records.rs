//! The mapping records that are inserted: one directly before each sample that is the first to touch code which perf
//! does not see there yet, with that sample's time, so that readers sort it to that place.
//!
//! Images whose code got addresses of its own ([`super::samples::relocations`]) are mapped once, as a whole. An image's helpers ([`Helper`]) are mapped before its first code, and once more behind every other record that maps
//! something over them.

use crate::commands::inject::coverage::code_uses::{Key, Touch};
use crate::commands::inject::images::{Images, Written};
use crate::error::{Warning, Warnings};
use crate::formats::elf_image::Helper;
use crate::formats::perf_data::{Edit, Mmap, Recording, Records, Sample, SampleId};
use crate::model::process::{CpuMode, Mapping, Processes};
use crate::model::{Addr, Nanos, Pid};
use crate::resolve::code_map::Pieces;
use rustc_hash::FxHashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const PROT_READ_EXEC: u32 = 1 | 4;
const MAP_PRIVATE: u32 = 2;

/// The insertions under way.
pub(in crate::commands) struct Plan<'a, 'data> {
    recording: &'a Recording,
    codes: &'a Pieces<'data>,
    images: &'a Images,
    processes: &'a Processes,
    /// Processes and the images (by path) that they have used.
    used: FxHashSet<(Pid, &'a Path)>,
    /// In the order of the stream, but for those of helpers.
    pub(in crate::commands) edits: Vec<Edit>,
    homeless: u64,
    /// The stream, and the offset of its first byte.
    stream: (&'a [u8], u64),
    /// The sample that was looked at last: several touches come from one.
    last: Option<Stamp>,
}

/// Who and when an inserted record says it is.
#[derive(Clone, Copy)]
struct Stamp {
    id: SampleId,
    event: usize,
    /// Where in the stream it goes.
    at: u64,
}

impl<'a, 'data> Plan<'a, 'data> {
    /// Nothing is inserted yet.
    pub(in crate::commands) fn new(
        recording: &'a Recording,
        codes: &'a Pieces<'data>,
        images: &'a Images,
        processes: &'a Processes,
        stream: (&'a [u8], u64),
    ) -> Self {
        let (used, edits, homeless) = (FxHashSet::default(), Vec::new(), 0);
        Self { recording, codes, images, processes, used, edits, homeless, stream, last: None }
    }

    /// Plans a record for everything that is touched; the touches are in order.
    pub(in crate::commands) fn insert(&mut self, touches: &[(Key, Touch)], warnings: &mut Warnings) {
        for &(key, touch) in touches {
            self.touch(key, touch);
        }
        let homeless = self.homeless;
        if homeless > 0 {
            let message = format!("{homeless} pieces of code are too large for an image: they have no name");
            warnings.push(Warning::new(message));
        }
    }

    fn touch(&mut self, key: Key, touch: Touch) {
        let Some((image, pgoff)) = self.images.place(self.codes, key.segment) else {
            self.homeless += 1;
            return;
        };
        if self.last.is_none_or(|last| last.at != touch.first.offset) {
            self.last = self.stamp(touch.first.offset);
        }
        let Some(stamp) = self.last else { return };
        let is_first = (image.base.is_some() || !image.helpers.is_empty()) && self.used.insert((key.pid, &image.path));
        if let Some(base) = image.base {
            // Nothing else is ever mapped there: once is enough.
            if is_first {
                self.map(image, base, image.code_end, 0, stamp);
            }
            return;
        }
        if is_first {
            self.help(key.pid, image, stamp);
        }
        let segment = self.codes.segment(key.segment);
        self.map(image, segment.start, segment.end.0 - segment.start.0, pgoff, stamp);
    }

    /// What the sample at an offset says of itself; `None` for none, which no touch comes from.
    fn stamp(&self, at: u64) -> Option<Stamp> {
        let (stream, base) = self.stream;
        let bytes = stream.get(usize::try_from(at.checked_sub(base)?).ok()?..)?;
        let raw = Records::new(bytes, at, self.recording.header.endian).next()?;
        let sample = self.recording.sample(&raw).ok()?;
        let Sample { pid_tid, time, id, stream_id, cpu, event, .. } = sample;
        Some(Stamp { id: SampleId { pid_tid, time, id, stream_id, cpu }, event, at })
    }

    /// Maps an image's helpers, now and after each record that covers them.
    fn help(&mut self, pid: Pid, image: &'a Written, stamp: Stamp) {
        for helper in &image.helpers {
            self.map(image, Addr(helper.addr), helper.len, helper.offset, stamp);
            let Some(process) = self.processes.by_pid.get(&pid) else { continue };
            let since = (stamp.id.time.unwrap_or_default(), stamp.at);
            let covers = process.mappings.iter().filter(|map| (map.time, map.offset) > since && covers(map, helper));
            for cover in covers {
                // Readers sort by time: a nanosecond later it is behind the other record, wherever it stands.
                let id = SampleId { time: Some(Nanos(cover.time.0.saturating_add(1))), ..stamp.id };
                self.map(image, Addr(helper.addr), helper.len, helper.offset, Stamp { id, at: cover.offset, ..stamp });
            }
        }
    }

    fn map(&mut self, image: &Written, addr: Addr, len: u64, pgoff: u64, stamp: Stamp) {
        let (pid, tid) = stamp.id.pid_tid.unwrap_or_default();
        let mmap = Mmap {
            pid,
            tid,
            addr,
            len,
            pgoff,
            path: image.path.as_os_str().as_bytes(),
            build_id: Some(image.build_id),
            prot: Some(PROT_READ_EXEC),
            flags: Some(MAP_PRIVATE),
            cpumode: CpuMode::User,
            data: false,
        };
        let attr = &self.recording.events[stamp.event].attr;
        let trailer = attr.sample_id_all().then_some((&stamp.id, attr.sample_type));
        match mmap.to_mmap2(trailer, self.recording.header.endian) {
            Some(insert) => self.edits.push(Edit { at: stamp.at, remove: 0, insert }),
            None => self.homeless += 1,
        }
    }
}

fn covers(map: &Mapping, helper: &Helper) -> bool {
    map.addr.0 < helper.addr.saturating_add(helper.len) && helper.addr < map.addr.0.saturating_add(map.len)
}
