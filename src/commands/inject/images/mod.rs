//! Writes the ELF images that perf reads in place of JIT code, and knows where each segment is in them.
//!
//! If the output isn't written, the images that this run created are deleted.

mod address_allocator;
mod image_file;
mod libraries;
mod process_images;

use image_file::ImageDirectory;
pub(in crate::commands::inject) use image_file::ImageFile;

use crate::commands::inject::coverage::CodeSelection;
use crate::commands::inject::options::{InjectContext, has_user_stacks};
use crate::commands::inject::survey::SurveyedRecording;
use crate::error::{Result, Warning};
use crate::formats::elf_image::Target;
use crate::io::OutDirectory;
use crate::model::Pid;
use crate::symbolize::code_map::SegmentId;
use address_allocator::AddressAllocator;
use libraries::Libraries;
use process_images::{ImageRequest, ProcessImages, SegmentPlace};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// All images of a run.
#[derive(Debug)]
pub(in crate::commands::inject) struct JitImages<'s, 'data> {
    /// The code map, and which part of its code is in the images.
    pub(in crate::commands::inject) selection: &'s CodeSelection<'s, 'data>,
    by_pid: BTreeMap<Pid, Vec<ImageFile>>,
    /// For each segment of the code map, its place in the images of its process; `None` if it is in none.
    places: Vec<Option<SegmentPlace>>,
    /// The number of functions in the images.
    pub(in crate::commands::inject) functions: usize,
    /// True once the output is in place. The images are then kept when this is dropped; otherwise they are deleted.
    kept: bool,
}

impl<'s, 'data> JitImages<'s, 'data> {
    /// Writes images of the selected code. `machine` is ELF's `e_machine`, and `mode` the permissions of the files.
    pub(in crate::commands::inject) fn write(
        selection: &'s CodeSelection<'s, 'data>,
        machine: u16,
        mode: u32,
        survey: &SurveyedRecording<'_>,
        context: &mut InjectContext<'_>,
    ) -> Result<Self> {
        context.progress.phase("writing images");
        let (options, recording) = (context.options, &survey.input.recording);
        let places = vec![None; selection.codes.segments().len()];
        let mut images = Self { selection, by_pid: BTreeMap::new(), places, functions: 0, kept: false };
        if selection.segments().next().is_none() {
            return Ok(images);
        }
        let target = Target::new(machine, recording.header.endian);
        // If the output keeps the stack copies, perf unwinds them itself. It then must find the unwind data of each
        // image, and the images must not overlap any library.
        let perf_unwinds = has_user_stacks(recording) && !options.unwinds(recording);
        let libraries = perf_unwinds.then(|| Libraries::new(&survey.first_pass.processes));
        let directory = &Arc::new(OutDirectory::make(options.image_directory())?);
        let root = options.image_root.as_deref().map(OutDirectory::make).transpose()?;
        let root = root.as_ref().map(OutDirectory::path);
        if let Some(root) = root.filter(|root| !directory.path().starts_with(root)) {
            let message = format!(
                "the images are in {}, which is not below {}, so perf report --symfs will not find them",
                directory.path().display(),
                root.display()
            );
            context.outcome.warnings.push(Warning::new(message));
        }
        let directory = ImageDirectory { directory, root, run: context.run, mode, waiting: &AtomicUsize::new(0) };
        // With `--relocate`, images are for viewers such as hotspot and samply, so they are built as these expect.
        let (for_viewers, libraries) = (options.relocate, libraries.as_ref());
        images
            .write_all(ImageRequest { codes: selection.codes, target, for_viewers, libraries, directory }, context)?;
        if options.relocate {
            let mut addresses = AddressAllocator::new(&survey.first_pass.processes, selection, target.is_64);
            for image in images.by_pid.values_mut().flatten() {
                image.base = Some(addresses.allocate(image.code_end)?);
            }
        }
        Ok(images)
    }

    /// Writes the images of all processes in parallel, and adds them to `self`. If some fail, returns the first error
    /// after all have finished.
    fn write_all(&mut self, request: ImageRequest<'_, '_>, context: &InjectContext<'_>) -> Result<()> {
        let mut segments: BTreeMap<Pid, Vec<SegmentId>> = BTreeMap::new();
        for (id, segment) in self.selection.segments() {
            segments.entry(segment.pid).or_default().push(id);
        }
        let pool = &context.job.pool;
        let results = pool.map(segments.into_iter().collect(), |(pid, segments): (Pid, Vec<SegmentId>)| {
            (pid, pool.install(|| ProcessImages::write(request, pid, segments)))
        });
        let mut first_error = None;
        for (pid, result) in results {
            match result {
                Ok(written) => self.add(pid, written),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Adds the images of a process.
    fn add(&mut self, pid: Pid, written: ProcessImages) {
        self.by_pid.insert(pid, written.files);
        written.places.into_iter().for_each(|(id, place)| self.places[id.0 as usize] = Some(place));
        self.functions += written.functions;
    }

    /// The image that contains the first byte of a segment, and the byte's offset in it. `None` if the segment has no
    /// place in an image.
    pub(in crate::commands::inject) fn place(&self, segment: SegmentId) -> Option<(&ImageFile, u64)> {
        let place = self.places.get(segment.0 as usize).copied().flatten()?;
        let files = self.by_pid.get(&self.selection.codes.segment(segment).pid)?;
        Some((files.get(place.image as usize)?, place.offset))
    }

    /// All images with their process.
    pub(in crate::commands::inject) fn iter(&self) -> impl Iterator<Item = (Pid, &ImageFile)> {
        self.by_pid.iter().flat_map(|(pid, images)| images.iter().map(|image| (*pid, image)))
    }

    /// Gives the images their names. Called just before the output is put in place.
    pub(in crate::commands::inject) fn put_in_place(&self) -> Result<()> {
        self.iter().try_for_each(|(_, image)| image.put_in_place())
    }

    /// Marks the images so that they aren't deleted on drop. Called once the output is in place.
    pub(in crate::commands::inject) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for JitImages<'_, '_> {
    fn drop(&mut self) {
        if !self.kept {
            self.iter().for_each(|(_, image)| image.delete_if_created());
        }
    }
}
