//! The images of one process's code: one; where user stacks are unwound through it, one for each stretch of its code
//! ([`ImageBuilder::build_set`]).

use super::image_file::{ImageDirectory, ImageFile};
use super::libraries::Libraries;
use crate::error::Result;
use crate::model::code::Code;
use crate::model::{Addr, Nanos, Pid};
use crate::parallel;
use crate::records::elf_image::{Addressing, ImageBuilder, Place, SlotId, Target};
use crate::resolve::code_map::{CodeId, SelectedCode, SelectedId};
use rustc_hash::FxHashMap;

/// The sources and the readers of images.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageRequest<'a, 'data> {
    pub(super) code: &'a SelectedCode<'data>,
    pub(super) target: Target,
    /// True if the images are for readers that are not perf.
    pub(super) for_viewers: bool,
    /// The libraries that images keep away from, if the recording has copies of user stacks, which are unwound through
    /// them.
    pub(super) libraries: Option<&'a Libraries<'a>>,
    /// The directory of the images.
    pub(super) directory: ImageDirectory<'a>,
}

/// The images of a process and what is in them.
#[derive(Debug)]
pub(super) struct ProcessImages {
    pub(super) files: Vec<ImageFile>,
    pub(super) places: Vec<(SelectedId, SegmentPlace)>,
    /// The number of functions that the images have.
    pub(super) functions: usize,
}

/// The place of a segment's first byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentPlace {
    /// The image, as one of its process's.
    pub(super) image: u32,
    /// The offset in the image.
    pub(super) offset: u64,
}

impl ProcessImages {
    /// Writes the images of a process that has these segments.
    pub(super) fn write(request: ImageRequest<'_, '_>, pid: Pid, segments: Vec<SelectedId>) -> Result<Self> {
        let ImageRequest { code, target, directory, .. } = request;
        // In the order of time, as the builder wants it.
        let mut by_time: Vec<(Nanos, SelectedId)> = segments.iter().map(|&id| (code.segment(id).from, id)).collect();
        parallel::sort_unstable_by_key(&mut by_time, |at| *at);
        let segments: Vec<SelectedId> = by_time.into_iter().map(|(_, id)| id).collect();
        let PlacedFunctions { of_segments, list } = PlacedFunctions::of(code, &segments);
        let whole: Vec<Code<'_>> = list.iter().map(|placed| code.code(placed.code)).collect();
        let builder = ImageBuilder::new(target, Addressing::FileOffset);
        let mut builder = if request.for_viewers { builder.for_viewers() } else { builder };
        let slots = whole.iter().zip(&list).map(|(whole, placed)| builder.add(whole, placed.base));
        let slots: Vec<SlotId> = slots.collect();
        let slot_of = segments.into_iter().zip(of_segments).map(|(id, number)| (id, slots[number as usize]));
        let (files, places) = match request.libraries {
            None => {
                let image = builder.build();
                let places = places(code, slot_of, |slot| Some((0, image.place(slot)?)));
                (vec![ImageFile::write(&image, &[], pid, directory, &[])?], places)
            }
            Some(libraries) => {
                let set = builder.build_set(libraries.ranges(pid));
                let mut files = Vec::new();
                for (index, image) in set.images().enumerate() {
                    let written = ImageFile::write(image, set.aux_mappings(index), pid, directory, &files);
                    // If one cannot be written, those before it go.
                    files.push(written.inspect_err(|_| files.iter().for_each(ImageFile::take_away))?);
                }
                (files, places(code, slot_of, |slot| set.place(slot)))
            }
        };
        Ok(Self { files, places, functions: list.len() })
    }
}

/// The places of segments whose whole code is at `place`.
fn places(
    code: &SelectedCode<'_>,
    slot_of: impl Iterator<Item = (SelectedId, SlotId)>,
    place: impl Fn(SlotId) -> Option<(usize, Place)>,
) -> Vec<(SelectedId, SegmentPlace)> {
    let place = |(id, slot)| {
        let (image, whole) = place(slot)?;
        Some((id, SegmentPlace { image: image as u32, offset: whole.offset + code.segment(id).offset }))
    };
    slot_of.filter_map(place).collect()
}

/// A code range at one address.
#[derive(Debug, Clone, Copy)]
struct PlacedFunction {
    code: CodeId,
    /// The address of its first byte.
    base: Addr,
}

/// The different code ranges that segments are of. The parts of an overwritten range are several segments of one.
#[derive(Debug)]
struct PlacedFunctions {
    /// The list entry of each segment.
    of_segments: Vec<u32>,
    list: Vec<PlacedFunction>,
}

impl PlacedFunctions {
    fn of(code: &SelectedCode<'_>, segments: &[SelectedId]) -> Self {
        // Most code is at one address only: the map is for the others. A process's code has numbers that follow each
        // other.
        let codes = || segments.iter().map(|id| code.segment(*id).code.0 as usize);
        let (lowest, highest) = (codes().min().unwrap_or(0), codes().max().unwrap_or(0));
        let mut first: Vec<Option<(Addr, u32)>> = vec![None; highest - lowest + 1];
        let mut others: FxHashMap<(CodeId, Addr), u32> = FxHashMap::default();
        let mut list = Vec::new();
        let number = |id: &SelectedId| {
            let segment = code.segment(*id);
            let (code, base) = (segment.code, Addr(segment.start.0.wrapping_sub(segment.offset)));
            let mut new = || {
                list.push(PlacedFunction { code, base });
                list.len() as u32 - 1
            };
            let (known, number) = *first[code.0 as usize - lowest].get_or_insert_with(|| (base, new()));
            if known == base { number } else { *others.entry((code, base)).or_insert_with(new) }
        };
        Self { of_segments: segments.iter().map(number).collect(), list }
    }
}
