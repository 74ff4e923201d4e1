//! Writes the recording with its edits, in the form that the output wants: a file's to a file, a pipe's to standard
//! output.

pub(in crate::commands) mod build_id_cache;
pub(in crate::commands) mod summary;

use crate::commands::inject::edits::build_ids::build_id_record;
use crate::commands::inject::images::Images;
use crate::commands::inject::options::InjectOptions;
use crate::commands::inject::survey::input::Input;
use crate::error::{Result, Warnings};
use crate::formats::cursor::Endian;
use crate::formats::perf_data::{
    Edit, Edits, Feature, Features, Front, Sink, front_can_stay, leave_pipe, moved, pipe_front,
};
use crate::io::{OutPath, Output};
use crate::model::process::CpuMode;
use std::io::Write;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

/// What becomes the output.
#[derive(Debug)]
pub(in crate::commands) struct Parts<'a> {
    pub(in crate::commands) input: &'a Input,
    /// Where the stream's last whole record ends.
    pub(in crate::commands) end: u64,
    pub(in crate::commands) edits: Vec<Edit>,
    /// Entries for the BUILD_ID section.
    pub(in crate::commands) build_ids: &'a [u8],
    pub(in crate::commands) images: &'a Images,
    /// Whether events are other than they were.
    pub(in crate::commands) new_attrs: bool,
}

/// Writes it all.
pub(in crate::commands) fn write(
    parts: Parts<'_>,
    options: &InjectOptions,
    output: &mut Output,
    warnings: &mut Warnings,
) -> Result<()> {
    let Parts { input, end, mut edits, build_ids, images, new_attrs } = parts;
    let mut features = Features::of(&input.recording);
    let to_pipe = options.output == OutPath::Stdout;
    if input.is_pipe() && !to_pipe {
        edits.extend(leave_pipe(&input.recording, input.records(), input.base(), &mut features));
    }
    let endian = input.recording.header.endian;
    add_build_ids(&mut features, build_ids, images, endian);
    let edits = Edits::new(edits);
    let range = input.base()..end;
    let data_size = edits.new_len(range.end - range.start);
    let front = match (to_pipe, input.is_pipe()) {
        (true, true) => input.front().to_vec(),
        (true, false) => pipe_front(&input.recording, &features, warnings),
        (false, false) if front_can_stay(&input.recording) && !new_attrs => {
            Front::kept(&input.recording, input.front(), data_size, &features).bytes
        }
        (false, _) => Front::made(&input.recording, data_size, &features).bytes,
    };
    let start = front.len() as u64;
    features.move_auxtrace(endian, |offset| moved(&edits, input.auxtrace(offset), range.start, start));
    output.write_all(&front)?;
    edits.apply(range, &mut Copier { input, output })?;
    if !to_pipe {
        output.write_all(&features.behind_data(start + data_size, endian))?;
    }
    Ok(())
}

/// The BUILD_ID section tells perf archive which files to pack: the images belong there, where there is one. It is
/// made for build IDs that were asked for.
fn add_build_ids(features: &mut Features, build_ids: &[u8], images: &Images, endian: Endian) {
    if !build_ids.is_empty() {
        features.sections.entry(Feature::BUILD_ID).or_default().extend(build_ids);
    }
    if let Some(section) = features.sections.get_mut(&Feature::BUILD_ID) {
        for image in images.iter() {
            section.extend(build_id_record(&image.build_id, image.path.as_os_str().as_bytes(), CpuMode::User, endian));
        }
    }
}

/// Copies long stretches in the kernel, where both ends are files.
struct Copier<'a> {
    input: &'a Input,
    output: &'a mut Output,
}

/// Shorter stretches are not worth a system call of their own.
const LONG: u64 = 1 << 20;

impl Sink for Copier<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.output.write_all(bytes)?)
    }

    fn copy(&mut self, range: Range<u64>) -> Result<()> {
        let place = self.input.in_file(range.clone());
        if let Some(file) = self.input.file.as_ref().filter(|_| range.end - range.start >= LONG)
            && self.output.copy_from(file, place)?
        {
            return Ok(());
        }
        let base = self.input.base();
        let records = self.input.records();
        let index = |offset: u64| usize::try_from(offset - base).unwrap_or(usize::MAX).min(records.len());
        Ok(self.output.write_all(&records[index(range.start)..index(range.end)])?)
    }
}
