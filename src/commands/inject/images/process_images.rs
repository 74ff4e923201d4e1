//! Builds the images of one process. Usually there is a single image. If perf has to unwind stacks through the code,
//! there is one image for each group of neighboring code ([`ImageBuilder::build_set`]).

use super::image_file::{ImageDirectory, ImageFile};
use super::libraries::Libraries;
use crate::error::Result;
use crate::formats::elf_image::{Addressing, ImageBuilder, SlotId, SlotPlace, Target};
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
    /// The offset of the byte in the image.
    pub(super) offset: u64,
}

impl ProcessImages {
    /// Writes the images for the given segments of a process.
    pub(super) fn write(request: ImageRequest<'_, '_>, pid: Pid, segments: Vec<SegmentId>) -> Result<Self> {
        let ImageRequest { codes, target, directory, .. } = request;
        // The builder expects the segments in the order in which their code was written.
        let mut by_time: Vec<(Nanos, SegmentId)> = segments.iter().map(|&id| (codes.segment(id).from, id)).collect();
        parallel::sort_unstable_by_key(&mut by_time, |time_and_id| *time_and_id);
        let segments: Vec<SegmentId> = by_time.into_iter().map(|(_, id)| id).collect();
        let PlacedFunctions { by_segment, list } = PlacedFunctions::new(codes, &segments);
        let function_codes: Vec<Code<'_>> = list.iter().map(|placed| codes.code(placed.code)).collect();
        let builder = ImageBuilder::new(target, Addressing::FileOffset);
        let mut builder = if request.for_viewers { builder.for_viewers() } else { builder };
        // `add` returns a slot: the handle by which the finished image says where the function is.
        let slots = function_codes.iter().zip(&list).map(|(code, placed)| builder.add(code, placed.base));
        let slots: Vec<SlotId> = slots.collect();
        let slots_by_segment =
            segments.into_iter().zip(by_segment).map(|(id, function)| (id, slots[function as usize]));
        // `libraries` are given if perf will unwind stacks through the images. That takes several images, which don't
        // overlap any library. Otherwise, a single image has all the code.
        let (files, places) = match request.libraries {
            None => {
                let image = builder.build();
                let places = find_places(codes, slots_by_segment, |slot| Some((0, image.place(slot)?)));
                (vec![ImageFile::write(&image, &[], pid, directory, &[])?], places)
            }
            Some(libraries) => {
                let set = builder.build_set(libraries.ranges(pid));
                let mut files = Vec::new();
                for (index, image) in set.images().enumerate() {
                    let written = ImageFile::write(image, set.aux_mappings(index), pid, directory, &files);
                    // If writing an image fails, delete the images written before it.
                    files.push(written.inspect_err(|_| files.iter().for_each(ImageFile::delete_if_created))?);
                }
                (files, find_places(codes, slots_by_segment, |slot| set.place(slot)))
            }
        };
        Ok(Self { files, places, functions: list.len() })
    }
}

/// Computes where each segment is in the images of its process. A segment is all or a part of a function, and a slot
/// identifies a function in the images. `slots_by_segment` has the slot of each segment's function. `place` returns the
/// index of the image that contains a slot's function, and the function's place in that image. If it returns `None`,
/// the segment is left out.
fn find_places(
    codes: &CodeMap<'_>,
    slots_by_segment: impl Iterator<Item = (SegmentId, SlotId)>,
    place: impl Fn(SlotId) -> Option<(usize, SlotPlace)>,
) -> Vec<(SegmentId, SegmentPlace)> {
    let mut places = Vec::new();
    for (id, slot) in slots_by_segment {
        if let Some((image, function)) = place(slot) {
            let offset = function.offset + codes.segment(id).offset;
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
    /// For each segment, the index of its function in `list`.
    by_segment: Vec<u32>,
    list: Vec<PlacedFunction>,
}

impl PlacedFunctions {
    /// Collects the functions of these segments, in the order of each function's first segment. Segments belong to the
    /// same function if they have the same code and the same start address of the function.
    fn new(codes: &CodeMap<'_>, segments: &[SegmentId]) -> Self {
        let mut indexes: FxHashMap<PlacedFunction, u32> = FxHashMap::default();
        let mut list: Vec<PlacedFunction> = Vec::new();
        let mut by_segment = Vec::with_capacity(segments.len());
        for id in segments {
            let segment = codes.segment(*id);
            let function =
                PlacedFunction { code: segment.code, base: Addr(segment.start.0.wrapping_sub(segment.offset)) };
            let next = list.len() as u32;
            let index = *indexes.entry(function).or_insert(next);
            if index == next {
                list.push(function);
            }
            by_segment.push(index);
        }
        Self { by_segment, list }
    }
}
