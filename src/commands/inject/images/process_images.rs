//! Builds the images of one process. Usually there is a single image. If stacks are unwound through the code, there is
//! one image for each separate stretch of code ([`ImageBuilder::build_set`]).

use super::image_file::{ImageDirectory, ImageFile};
use super::libraries::Libraries;
use crate::error::Result;
use crate::formats::elf_image::{Addressing, ImageBuilder, Place, SlotId, Target};
use crate::model::code::Code;
use crate::model::{Addr, Nanos, Pid};
use crate::parallel;
use crate::symbolize::code_map::{CodeId, CodeMap, SegmentId};
use rustc_hash::FxHashMap;

/// The code for the images of a process, and how to build and write them.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageRequest<'a, 'data> {
    pub(super) codes: &'a CodeMap<'data>,
    pub(super) target: Target,
    /// True if the images are for tools that load each image only once (`--relocate`), not for perf.
    pub(super) for_viewers: bool,
    /// The libraries that images must not overlap. `None` unless the recording has stack copies for perf to unwind.
    pub(super) libraries: Option<&'a Libraries<'a>>,
    pub(super) directory: ImageDirectory<'a>,
}

/// The images of a process, and where its segments are in them.
#[derive(Debug)]
pub(super) struct ProcessImages {
    pub(super) files: Vec<ImageFile>,
    pub(super) places: Vec<(SegmentId, SegmentPlace)>,
    /// The number of functions in the images.
    pub(super) functions: usize,
}

/// Where the first byte of a segment is in the images of its process.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentPlace {
    /// The index of the image among those of its process.
    pub(super) image: u32,
    /// The offset in that image.
    pub(super) offset: u64,
}

impl ProcessImages {
    /// Writes the images for the given segments of a process.
    pub(super) fn write(request: ImageRequest<'_, '_>, pid: Pid, segments: Vec<SegmentId>) -> Result<Self> {
        let ImageRequest { codes, target, directory, .. } = request;
        // The builder needs the segments ordered by time.
        let mut by_time: Vec<(Nanos, SegmentId)> = segments.iter().map(|&id| (codes.segment(id).from, id)).collect();
        parallel::sort_unstable_by_key(&mut by_time, |at| *at);
        let segments: Vec<SegmentId> = by_time.into_iter().map(|(_, id)| id).collect();
        let PlacedFunctions { of_segments, list } = PlacedFunctions::new(codes, &segments);
        let whole: Vec<Code<'_>> = list.iter().map(|placed| codes.code(placed.code)).collect();
        let builder = ImageBuilder::new(target, Addressing::FileOffset);
        let mut builder = if request.for_viewers { builder.for_viewers() } else { builder };
        let slots = whole.iter().zip(&list).map(|(whole, placed)| builder.add(whole, placed.base));
        let slots: Vec<SlotId> = slots.collect();
        let slot_of = segments.into_iter().zip(of_segments).map(|(id, number)| (id, slots[number as usize]));
        let (files, places) = match request.libraries {
            None => {
                let image = builder.build();
                let places = places(codes, slot_of, |slot| Some((0, image.place(slot)?)));
                (vec![ImageFile::write(&image, &[], pid, directory, &[])?], places)
            }
            Some(libraries) => {
                let set = builder.build_set(libraries.ranges(pid));
                let mut files = Vec::new();
                for (index, image) in set.images().enumerate() {
                    let written = ImageFile::write(image, set.aux_mappings(index), pid, directory, &files);
                    // If writing an image fails, delete the images written before it.
                    files.push(written.inspect_err(|_| files.iter().for_each(ImageFile::take_away))?);
                }
                (files, places(codes, slot_of, |slot| set.place(slot)))
            }
        };
        Ok(Self { files, places, functions: list.len() })
    }
}

/// Computes where each segment is in the images, from where the function is that it belongs to.
fn places(
    codes: &CodeMap<'_>,
    slot_of: impl Iterator<Item = (SegmentId, SlotId)>,
    place: impl Fn(SlotId) -> Option<(usize, Place)>,
) -> Vec<(SegmentId, SegmentPlace)> {
    let mut places = Vec::new();
    for (id, slot) in slot_of {
        if let Some((image, whole)) = place(slot) {
            let offset = whole.offset + codes.segment(id).offset;
            places.push((id, SegmentPlace { image: image as u32, offset }));
        }
    }
    places
}

/// A function at one of its addresses. A function that moved has several addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PlacedFunction {
    code: CodeId,
    /// The address of the function's first byte.
    base: Addr,
}

/// The distinct functions that the segments belong to. If a function was partly overwritten, its remaining parts are
/// several segments.
#[derive(Debug)]
struct PlacedFunctions {
    /// For each segment, an index into `list`.
    of_segments: Vec<u32>,
    list: Vec<PlacedFunction>,
}

impl PlacedFunctions {
    fn new(codes: &CodeMap<'_>, segments: &[SegmentId]) -> Self {
        let mut indexes: FxHashMap<PlacedFunction, u32> = FxHashMap::default();
        let mut list: Vec<PlacedFunction> = Vec::new();
        let mut of_segments = Vec::with_capacity(segments.len());
        for id in segments {
            let segment = codes.segment(*id);
            let function =
                PlacedFunction { code: segment.code, base: Addr(segment.start.0.wrapping_sub(segment.offset)) };
            let next = list.len() as u32;
            let index = *indexes.entry(function).or_insert(next);
            if index == next {
                list.push(function);
            }
            of_segments.push(index);
        }
        Self { of_segments, list }
    }
}
