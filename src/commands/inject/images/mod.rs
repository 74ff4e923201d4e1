//! The ELF images that perf reads in place of the JIT code: one for each process; where user stacks are unwound through
//! it, one for each stretch of its code ([`ImageBuilder::build_set`]).
//!
//! An image has the name `jitted-PID.so`. If a file of that name is there already and is another one, the new one is
//! called `jitted-PID.2.so`, and so on: an older output may still refer to the first. Images that this run made are
//! taken away again if the output does not come about.

mod address_allocator;

pub(in crate::commands) use address_allocator::AddressAllocator;

use crate::error::{Error, Result};
use crate::formats::elf_image::{Addressing, Helper, Image, ImageBuilder, Place, SlotId, Target};
use crate::io::{self, NewFile};
use crate::model::ancestry::Ancestry;
use crate::model::code::Code;
use crate::model::process::{BuildId, Processes};
use crate::model::{Addr, Pid};
use crate::parallel::{self, Pool};
use crate::resolve::code_map::{CodeId, Pieces, SegmentId};
use rayon::slice::ParallelSliceMut;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// An image of one process's code.
#[derive(Debug)]
pub(in crate::commands) struct Written {
    /// Absolute path.
    pub(in crate::commands) path: PathBuf,
    /// Made from its content.
    pub(in crate::commands) build_id: BuildId,
    /// What of it must be mapped beside the code.
    pub(in crate::commands) helpers: Vec<Helper>,
    /// Where its code ends in the file.
    pub(in crate::commands) code_end: u64,
    /// Where all of it is mapped, if its code got addresses of its own.
    pub(in crate::commands) base: Option<Addr>,
    /// Whether this run made the file.
    made: bool,
}

/// All images of a run, and where in them each segment is.
#[derive(Debug, Default)]
pub(in crate::commands) struct Images {
    by_pid: BTreeMap<Pid, Vec<Written>>,
    /// By segment: which of its process's images it is in, and where.
    places: Vec<Option<(u32, u64)>>,
    /// How many pieces of code are in them.
    pub(in crate::commands) codes: usize,
    kept: bool,
}

/// What images are made from.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Wanted<'a, 'data> {
    /// The code that they shall have, all of it.
    pub(in crate::commands) codes: &'a Pieces<'data>,
    pub(in crate::commands) target: Target,
    /// Whether the code gets addresses of its own, for readers that are not perf.
    pub(in crate::commands) relocate: bool,
    /// The processes, if the recording has copies of user stacks, which are unwound through the images.
    pub(in crate::commands) unwinding: Option<&'a Processes>,
}

impl Images {
    /// Writes images into a directory, which is made if it is not there.
    pub(in crate::commands) fn write(wanted: Wanted<'_, '_>, directory: &Path, pool: &Pool) -> Result<Self> {
        let segments = wanted.codes.segments();
        let mut images = Self::default();
        images.places.resize(segments.len(), None);
        if segments.is_empty() {
            return Ok(images);
        }
        fs::create_dir_all(directory).map_err(|error| Error::from(error).in_file(directory))?;
        let directory = directory.canonicalize().map_err(|error| Error::from(error).in_file(directory))?;
        let mut by_pid: BTreeMap<Pid, Vec<SegmentId>> = BTreeMap::new();
        for (segment, id) in segments.iter().zip(0..) {
            by_pid.entry(segment.pid).or_default().push(SegmentId(id));
        }
        let made = pool.map(by_pid.into_iter().collect(), |(pid, list): (Pid, Vec<SegmentId>)| {
            (pid, pool.install(|| of_process(wanted, list, pid, &directory)))
        });
        let mut failed = None;
        for (pid, result) in made {
            match result {
                Ok((written, places, count)) => {
                    images.by_pid.insert(pid, written);
                    places.into_iter().for_each(|(id, place)| images.places[id.0 as usize] = Some(place));
                    images.codes += count;
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(images), Err)
    }

    /// Where a segment's first byte is: the image, and the offset in it. `None` if it could not get a place.
    pub(in crate::commands) fn place(&self, codes: &Pieces<'_>, segment: SegmentId) -> Option<(&Written, u64)> {
        let (image, offset) = self.places.get(segment.0 as usize).copied().flatten()?;
        Some((self.by_pid.get(&codes.segment(segment).pid)?.get(image as usize)?, offset))
    }

    /// Gives each a place to be mapped at, which `find` finds for so many bytes.
    pub(in crate::commands) fn set_bases(&mut self, mut find: impl FnMut(u64) -> Result<Addr>) -> Result<()> {
        for image in self.by_pid.values_mut().flatten() {
            image.base = Some(find(image.code_end)?);
        }
        Ok(())
    }

    /// All of them.
    pub(in crate::commands) fn iter(&self) -> impl Iterator<Item = &Written> {
        self.by_pid.values().flatten()
    }

    /// The output that refers to them is there: they stay.
    pub(in crate::commands) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        for image in self.by_pid.values().flatten().filter(|image| image.made && !self.kept) {
            // The run has failed already, for a better reason than this one could be.
            let _ = fs::remove_file(&image.path);
        }
    }
}

/// A process's images, its segments' places in them, and the number of pieces of code.
type Made = (Vec<Written>, Vec<(SegmentId, (u32, u64))>, usize);

fn of_process(wanted: Wanted<'_, '_>, mut segments: Vec<SegmentId>, pid: Pid, directory: &Path) -> Result<Made> {
    let codes = wanted.codes;
    // In the order of time, as the builder wants it.
    segments.par_sort_unstable_by_key(|&id| (codes.segment(id).from, id));
    let (numbers, pieces) = distinct(codes, &segments);
    let whole: Vec<Code<'_>> = pieces.iter().map(|&(code, _)| codes.code(code)).collect();
    let builder = ImageBuilder::new(wanted.target, Addressing::FileOffset);
    let mut builder = if wanted.relocate { builder.for_viewers() } else { builder };
    let slots: Vec<SlotId> = whole.iter().zip(&pieces).map(|(code, &(_, base))| builder.add(code, base)).collect();
    let count = pieces.len();
    drop(pieces);
    let slot_of = segments.into_iter().zip(numbers).map(|(id, number)| (id, slots[number as usize]));
    let within = |id: SegmentId, place: Place| place.offset + codes.segment(id).offset;
    let Some(processes) = wanted.unwinding else {
        let image = builder.build();
        let places = slot_of.filter_map(|(id, slot)| Some((id, (0, within(id, image.place(slot)?)))));
        return Ok((vec![write(&image, pid, directory, &[])?], places.collect(), count));
    };
    let set = builder.build_set(other_files(processes, pid));
    let written = set.images().enumerate().map(|(index, image)| write(image, pid, directory, set.helpers(index)));
    let written: Vec<Written> = written.collect::<Result<_>>()?;
    let place = |(id, slot)| set.place(slot).map(|(image, place)| (id, (image as u32, within(id, place))));
    Ok((written, slot_of.filter_map(place).collect(), count))
}

/// The different pieces of code that segments are of, with the addresses of their first bytes, and which of these
/// each segment is of. What stood out of an overwritten piece is several segments of one.
fn distinct(codes: &Pieces<'_>, segments: &[SegmentId]) -> (Vec<u32>, Vec<(CodeId, Addr)>) {
    // Most code is at one address only: the map is for the others. A process's code has numbers that follow each other.
    let numbers = || segments.iter().map(|id| codes.segment(*id).code.0 as usize);
    let (lowest, highest) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
    let mut first: Vec<Option<(Addr, u32)>> = vec![None; highest - lowest + 1];
    let mut others: FxHashMap<(CodeId, Addr), u32> = FxHashMap::default();
    let mut pieces = Vec::new();
    let number = |id: &SegmentId| {
        let segment = codes.segment(*id);
        let (code, base) = (segment.code, Addr(segment.start.0.wrapping_sub(segment.offset)));
        let mut new = || {
            pieces.push((code, base));
            pieces.len() as u32 - 1
        };
        let (known, number) = *first[code.0 as usize - lowest].get_or_insert_with(|| (base, new()));
        if known == base { number } else { *others.entry((code, base)).or_insert_with(new) }
    };
    (segments.iter().map(number).collect(), pieces)
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

/// Writes an image under the first name that is free, or taken by the very same image.
fn write(image: &Image<'_, '_>, pid: Pid, directory: &Path, helpers: &[Helper]) -> Result<Written> {
    let in_directory = |error: Error| error.in_file(directory);
    let mut new = NewFile::create_in(directory, 0o755).map_err(|error| in_directory(error.into()))?;
    let build_id = write_to(&new, image).map_err(in_directory)?;
    let code_end = image.code_end();
    let written = |path, made| Written { path, build_id, helpers: helpers.to_vec(), code_end, base: None, made };
    for number in 1.. {
        let name = if number == 1 { format!("jitted-{pid}.so") } else { format!("jitted-{pid}.{number}.so") };
        let path = directory.join(name);
        let placed = new.persist_noclobber(&path);
        match placed.map_err(|error| Error::new("cannot be put into its place").because(error).in_file(&path))? {
            None => return Ok(written(path, true)),
            Some(back) => new = back,
        }
        if same_content(new.file(), &path) {
            return Ok(written(path, false));
        }
    }
    Err(in_directory(Error::new(format!("all names for the image of process {pid} are taken"))))
}

/// Writes an image; half of the work is done beside the other.
fn write_to(new: &NewFile, image: &Image<'_, '_>) -> Result<BuildId> {
    let writer = || BufWriter::with_capacity(1 << 18, new.writer());
    let code = || {
        let mut out = writer();
        image.write_code(&mut out)?;
        Ok(out.flush()?)
    };
    let rest = || {
        let mut out = writer();
        let (build_id, rest) = (image.build_id(), image.write_rest(&mut out)?);
        image.finish(&rest, build_id, &mut out)?;
        Ok(build_id)
    };
    let (code, rest): (Result<()>, Result<BuildId>) = parallel::join(code, rest);
    code.and(rest)
}

fn same_content(new: &File, path: &Path) -> bool {
    let len = |metadata: std::io::Result<fs::Metadata>| metadata.map(|metadata| metadata.len()).ok();
    if len(new.metadata()) != len(fs::metadata(path)) {
        return false;
    }
    let new = new.try_clone().map_err(Error::from).and_then(io::map_open_file);
    matches!((new, io::map_file(path)), (Ok(a), Ok(b)) if a[..] == b[..])
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
