//! The images of one process's code: one; where user stacks are unwound through it, one for each stretch of its code
//! ([`ImageBuilder::build_set`]).

use super::image_file::ImageFile;
use crate::error::Result;
use crate::formats::elf_image::{Addressing, ImageBuilder, SlotId, Target};
use crate::io::Run;
use crate::model::ancestry::Ancestry;
use crate::model::code::Code;
use crate::model::process::Processes;
use crate::model::{Addr, Pid};
use crate::resolve::code_map::{CodeId, SelectedCode, SelectedId};
use rayon::slice::ParallelSliceMut;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

/// What images are made from, and for whom.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageRequest<'a, 'data> {
    pub(super) code: &'a SelectedCode<'data>,
    pub(super) target: Target,
    /// Whether the images are for readers that are not perf.
    pub(super) for_viewers: bool,
    /// The processes, if the recording has copies of user stacks, which are unwound through the images.
    pub(super) unwinding: Option<&'a Processes>,
    /// Where the images go.
    pub(super) directory: &'a Path,
    /// Knows the outputs, whose names no image may get.
    pub(super) run: &'a Run,
}

/// The images of a process and what is in them.
#[derive(Debug)]
pub(super) struct ProcessImages {
    pub(super) files: Vec<ImageFile>,
    pub(super) places: Vec<(SelectedId, SegmentPlace)>,
    /// How many functions the images have.
    pub(super) functions: usize,
}

/// Where a segment's first byte is.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentPlace {
    /// The image, as one of its process's.
    pub(super) image: u32,
    /// The offset in the image.
    pub(super) offset: u64,
}

impl ProcessImages {
    /// Writes the images of a process that has these segments.
    pub(super) fn write(request: ImageRequest<'_, '_>, pid: Pid, mut segments: Vec<SelectedId>) -> Result<Self> {
        let ImageRequest { code, target, directory, run, .. } = request;
        // In the order of time, as the builder wants it.
        segments.par_sort_unstable_by_key(|&id| (code.segment(id).from, id));
        let Functions { of_segments, list } = Functions::of(code, &segments);
        let whole: Vec<Code<'_>> = list.iter().map(|function| code.code(function.code)).collect();
        let builder = ImageBuilder::new(target, Addressing::FileOffset);
        let mut builder = if request.for_viewers { builder.for_viewers() } else { builder };
        let slots = whole.iter().zip(&list).map(|(whole, function)| builder.add(whole, function.base));
        let slots: Vec<SlotId> = slots.collect();
        let functions = list.len();
        let slot_of = segments.into_iter().zip(of_segments).map(|(id, function)| (id, slots[function as usize]));
        let place = |id: SelectedId, image: usize, offset: u64| {
            (id, SegmentPlace { image: image as u32, offset: offset + code.segment(id).offset })
        };
        let Some(processes) = request.unwinding else {
            let image = builder.build();
            let places = slot_of.filter_map(|(id, slot)| Some(place(id, 0, image.place(slot)?.offset)));
            let places = places.collect();
            return Ok(Self { files: vec![ImageFile::write(&image, &[], pid, directory, run)?], places, functions });
        };
        let set = builder.build_set(other_files(processes, pid));
        let files = set.images().enumerate();
        let files = files.map(|(index, image)| ImageFile::write(image, set.aux_mappings(index), pid, directory, run));
        let files = all_or_none(files)?;
        let places = slot_of.filter_map(|(id, slot)| {
            let (image, found) = set.place(slot)?;
            Some(place(id, image, found.offset))
        });
        Ok(Self { files, places: places.collect(), functions })
    }
}

/// If one cannot be written, those before it go.
fn all_or_none(written: impl Iterator<Item = Result<ImageFile>>) -> Result<Vec<ImageFile>> {
    let mut files = Vec::new();
    for file in written {
        match file {
            Ok(file) => files.push(file),
            Err(error) => {
                files.iter().for_each(ImageFile::take_away);
                return Err(error);
            }
        }
    }
    Ok(files)
}

/// A piece of code at one address.
#[derive(Debug, Clone, Copy)]
struct Function {
    code: CodeId,
    /// The address of its first byte.
    base: Addr,
}

/// The different pieces of code that segments are of. What stood out of an overwritten piece is several segments of
/// one.
#[derive(Debug)]
struct Functions {
    /// Which of the list each segment is of.
    of_segments: Vec<u32>,
    list: Vec<Function>,
}

impl Functions {
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
                list.push(Function { code, base });
                list.len() as u32 - 1
            };
            let (known, number) = *first[code.0 as usize - lowest].get_or_insert_with(|| (base, new()));
            if known == base { number } else { *others.entry((code, base)).or_insert_with(new) }
        };
        Self { of_segments: segments.iter().map(number).collect(), list }
    }
}

/// Where programs and libraries were mapped in a process and in those that it forked, which share its code.
fn other_files(processes: &Processes, pid: Pid) -> Vec<Range<u64>> {
    let ancestry = Ancestry::new(processes);
    let shares = |of: &Pid| ancestry.ancestors(*of).any(|of| of == pid);
    let mut ranges = Vec::new();
    for (_, process) in processes.by_pid.iter().filter(|(of, _)| shares(of)) {
        let code = process.mappings.iter().filter(|map| map.executable && map.backing().is_library());
        let programs: BTreeSet<&[u8]> = code.map(|map| map.path.as_slice()).collect();
        let maps = process.mappings.iter().filter(|map| programs.contains(map.path.as_slice()));
        ranges.extend(maps.map(|map| map.addr.0..map.addr.0.saturating_add(map.len)));
    }
    ranges
}

#[cfg(test)]
mod tests {
    use crate::model::backing::{Backing, tests::those};

    #[test]
    fn images_keep_away_from_other_files() {
        let expected = [
            "/lib/modules/6.1/kernel/fs/ext4.ko",
            "/usr/bin/node",
            "/usr/lib/libc.so.6 (deleted)",
            "/dev/shm/code",
            "/usr/lib/jit-helper.so",
            "/tmp/perf-77.map",
            "/run/jitted-77.so",
            "/run/jitted-77-3.so",
        ];
        assert_eq!(those(|path| Backing::of(path).is_library()), expected);
    }
}
