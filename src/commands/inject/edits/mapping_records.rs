//! Plans the mapping records to insert. Each record goes directly before the first sample that uses code which perf
//! doesn't see yet. It gets that sample's time, so that readers that sort records by time keep this order.
//!
//! With `--relocate`, the code moves to addresses that nothing else uses (`samples::relocations`), so each image is
//! mapped once, as a whole. Otherwise, an image may also have parts that contain no code but that libunwind reads
//! ([`AuxMapping`]). They are mapped before the image's first code, and again after each record that maps something
//! over them.

use crate::commands::inject::coverage::FirstUse;
use crate::commands::inject::images::{ImageFile, JitImages};
use crate::commands::inject::survey::RecordOrder;
use crate::commands::inject::survey::SurveyedRecording;
use crate::error::{Warning, Warnings};
use crate::formats::elf_image::AuxMapping;
use crate::formats::perf_data::{Edit, Mmap, Records, Sample, SampleId};
use crate::model::abi::{MAP_PRIVATE, PROT_READ_EXEC};
use crate::model::process::{CpuMode, Mapping};
use crate::model::{Addr, Nanos, Pid};
use crate::parallel::Pool;
use rustc_hash::FxHashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The number of first uses that one parallel task handles.
const USES_PER_TASK: usize = 1 << 12;

/// Plans all mapping records to insert, so that perf finds the images of the code that samples use. They are in stream
/// order, except those for [`AuxMapping`]s.
pub(super) fn plan_insertions(
    survey: &SurveyedRecording<'_>,
    images: &JitImages<'_, '_>,
    pool: &Pool,
    warnings: &mut Warnings,
) -> Vec<Edit> {
    let uses = &images.selection.first_uses;
    // Uses are split into parallel tasks, unless an image or a part of it is mapped only once. Then a single task
    // handles all uses, because it has to know whether that image or part is mapped already.
    let are_independent = images.iter().all(|(_, image)| !is_mapped_once(image));
    // `chunks` panics if the length is 0, as it would be without uses.
    let tasks = uses.chunks(if are_independent { USES_PER_TASK } else { uses.len().max(1) });
    let results = pool.map(tasks.collect(), |uses: &[FirstUse]| {
        let mut inserter = MappingInserter::new(survey, images);
        uses.iter().for_each(|first_use| inserter.insert_before_use(first_use));
        (inserter.edits, inserter.unplaced)
    });
    let unplaced: u64 = results.iter().map(|(_, unplaced)| unplaced).sum();
    if unplaced > 0 {
        let message =
            format!("pieces of JIT code that stay unnamed, because they are too large for an ELF image: {unplaced}");
        warnings.push(Warning::new(message));
    }
    results.into_iter().flat_map(|(edits, _)| edits).collect()
}

/// True if the image as a whole (`--relocate`) or an additional part of it ([`AuxMapping`]) is mapped once, before the
/// image's first code.
fn is_mapped_once(image: &ImageFile) -> bool {
    image.base.is_some() || !image.aux_mappings.is_empty()
}

/// Plans the insertions of one parallel task.
struct MappingInserter<'a> {
    survey: &'a SurveyedRecording<'a>,
    images: &'a JitImages<'a, 'a>,
    /// The process and path of each image that is mapped already, whole or in part.
    begun: FxHashSet<(Pid, &'a Path)>,
    edits: Vec<Edit>,
    /// The number of code ranges that can't be mapped: no image has a place for them, or the mapping record would be
    /// too long.
    unplaced: u64,
    /// The sample of the previous insertion, so that it is read only once: several code ranges may be first used by the
    /// same sample.
    last_sample: Option<AnchorSample>,
}

/// The sample before which a record is inserted. The record copies its time, thread and other ID fields.
#[derive(Clone, Copy)]
struct AnchorSample {
    id: SampleId,
    /// The index of the sample's event in the recording.
    event: usize,
    /// The sample's offset in the stream of records.
    offset: u64,
}

/// The part of an image to map.
struct MappedPart {
    addr: Addr,
    len: u64,
    /// The part's offset in the image file.
    pgoff: u64,
}

impl From<&AuxMapping> for MappedPart {
    fn from(aux: &AuxMapping) -> Self {
        Self { addr: Addr(aux.addr), len: aux.len, pgoff: aux.offset }
    }
}

impl<'a> MappingInserter<'a> {
    fn new(survey: &'a SurveyedRecording<'a>, images: &'a JitImages<'a, 'a>) -> Self {
        let begun = FxHashSet::default();
        Self { survey, images, begun, edits: Vec::new(), unplaced: 0, last_sample: None }
    }

    /// Plans the mapping records that perf needs before the first use of a segment (a range of JIT code). They are
    /// inserted directly before the sample that uses the segment (`anchor`), and copy the sample's time and thread.
    fn insert_before_use(&mut self, first_use: &FirstUse) {
        let FirstUse { pid, segment, sample } = *first_use;
        // `pgoff` is the segment's offset in its image. A segment has no place in an image if its size is absurd, or if
        // the image had no room for it.
        let Some((image, pgoff)) = self.images.place(segment) else {
            self.unplaced += 1;
            return;
        };
        if self.last_sample.is_none_or(|last| last.offset != sample.offset) {
            self.last_sample = self.read_anchor(sample.offset);
        }
        // `last_sample` is always set here, because the record of a first use is a sample or a deferred call chain.
        let Some(anchor) = self.last_sample else { return };
        // `insert` returns true if this process and image aren't in the set yet.
        let is_first = is_mapped_once(image) && self.begun.insert((pid, &image.path));
        if let Some(base) = image.base {
            // No other code is ever mapped at the image's addresses, so mapping the image once is enough.
            if is_first {
                self.insert_mapping(image, MappedPart { addr: base, len: image.code_end, pgoff: 0 }, anchor);
            }
            return;
        }
        if is_first {
            self.insert_aux_mappings(pid, image, anchor);
        }
        let segment = self.images.selection.codes.segment(segment);
        let part = MappedPart { addr: segment.start, len: segment.end.0 - segment.start.0, pgoff };
        self.insert_mapping(image, part, anchor);
    }

    /// Reads the ID fields of the sample or deferred call chain at an offset. `None` if the record there is neither,
    /// which can't happen for a first use.
    fn read_anchor(&self, offset: u64) -> Option<AnchorSample> {
        let input = self.survey.input;
        let bytes = input.records().get(usize::try_from(offset.checked_sub(input.base())?).ok()?..)?;
        let raw = Records::new(bytes, offset, input.recording.header.endian).next()?;
        let sample = input.recording.chain_sample(&raw)?.ok()?;
        let Sample { pid_tid, time, id, stream_id, cpu, event, .. } = sample;
        Some(AnchorSample { id: SampleId { pid_tid, time, id, stream_id, cpu }, event, offset })
    }

    /// Inserts the mapping records for the additional parts of an image ([`AuxMapping`]). Each part is mapped before
    /// `anchor`, and again after each later record that maps something else over the part.
    fn insert_aux_mappings(&mut self, pid: Pid, image: &'a ImageFile, anchor: AnchorSample) {
        let since = RecordOrder { time: anchor.id.time.unwrap_or_default(), offset: anchor.offset };
        let mappings = self.survey.first_pass.processes.by_pid.get(&pid).map_or(&[][..], |process| &process.mappings);
        for aux in &image.aux_mappings {
            self.insert_mapping(image, aux.into(), anchor);
            let overlaps_aux = |map: &&Mapping| {
                map.addr.0 < aux.addr.saturating_add(aux.len) && aux.addr < map.addr.0.saturating_add(map.len)
            };
            let later_mappings = mappings.iter().filter(|map| RecordOrder::from_mapping(map) > since);
            for shadowing in later_mappings.filter(overlaps_aux) {
                // perf sorts records by time. With a time one nanosecond later, our record takes effect after the one
                // that hides the part, wherever ours is in the file.
                let id = SampleId { time: Some(Nanos(shadowing.time.0.saturating_add(1))), ..anchor.id };
                self.insert_mapping(image, aux.into(), AnchorSample { id, offset: shadowing.offset, ..anchor });
            }
        }
    }

    /// Inserts the mapping record for a part of an image.
    fn insert_mapping(&mut self, image: &ImageFile, part: MappedPart, anchor: AnchorSample) {
        let (pid, tid) = anchor.id.pid_tid.unwrap_or_default();
        let mmap = Mmap {
            pid,
            tid,
            addr: part.addr,
            len: part.len,
            pgoff: part.pgoff,
            path: image.recorded.as_os_str().as_bytes(),
            build_id: Some(image.build_id),
            file: None,
            prot: Some(PROT_READ_EXEC),
            flags: Some(MAP_PRIVATE),
            cpumode: CpuMode::User,
            data: false,
        };
        let recording = &self.survey.input.recording;
        let attr = &recording.events[anchor.event].attr;
        let trailer = attr.sample_id_all().then_some((&anchor.id, attr.sample_type));
        match mmap.to_mmap2(trailer, recording.header.endian) {
            Some(insert) => self.edits.push(Edit { at: anchor.offset, remove: 0, insert }),
            // The image's path is too long for a record.
            None => self.unplaced += 1,
        }
    }
}
