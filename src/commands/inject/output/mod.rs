//! Writes the edited recording, in file form to a file and in pipe form to standard output.

mod build_id_cache;
pub(in crate::commands::inject) mod summary;

use crate::commands::inject::edits::PlannedEdits;
use crate::commands::inject::images::JitImages;
use crate::commands::inject::options::InjectContext;
use crate::commands::inject::survey::{PlainRecording, SurveyedRecording};
use crate::error::Result;
use crate::formats::perf_data::{EditSink, Front, front_can_stay, moved_offset, pipe_front};
use crate::io::Output;
use crate::jit::Found;
use crate::pipeline::Outcome;
use std::io::Write;
use std::ops::Range;

/// Writes the output to temporary files, then gives the images and the output their final names.
pub(in crate::commands::inject) fn write(
    survey: &SurveyedRecording<'_>,
    planned: PlannedEdits<'_>,
    images: &JitImages<'_, '_>,
    mut output: Output,
    context: &mut InjectContext<'_>,
) -> Result<()> {
    context.progress.phase("writing records");
    // If the output is a stream, the images get their names first: a reader at the other end opens an image as soon as
    // its mapping record arrives.
    if context.options.output.is_stream() {
        images.put_in_place()?;
    }
    let written = write_records(survey, planned, &mut output, context);
    let placed = written.and_then(|()| images.put_in_place()).and_then(|()| output.commit());
    placed.map_err(|error| error.in_file(&context.options.output.shown()))
}

/// Writes the header, the edited records and, in file form, the features after them.
fn write_records(
    survey: &SurveyedRecording<'_>,
    planned: PlannedEdits<'_>,
    output: &mut Output,
    context: &mut InjectContext<'_>,
) -> Result<()> {
    let input = survey.input;
    let range = input.base()..survey.first_pass.chunks.end();
    let front = front(input, &planned, &range, context);
    let PlannedEdits { edits, mut features, .. } = planned;
    let endian = input.recording.header.endian;
    let start = front.len() as u64;
    // The AUXTRACE feature has file offsets of records, which change if something is inserted or removed before them.
    features.move_auxtrace(endian, |offset| moved_offset(&edits, input.auxtrace(offset), range.start, start));
    output.write_all(&front)?;
    // The features follow the records. They move, because the records have a new length, and so has the front (the
    // header and all else before the records).
    let end = start + edits.new_len(range.end - range.start);
    edits.apply(range, &mut Copier { input, output })?;
    if !context.options.writes_pipe() {
        output.write_all(&features.encode(end, endian))?;
    }
    Ok(())
}

/// Copies images into perf's build ID cache: all of them if the user asked for it, otherwise only those of processes
/// that are still running in another mount namespace. perf looks for the files of such a process in its namespace,
/// where the images aren't. But it looks into the cache first.
pub(in crate::commands::inject) fn fill_cache(
    images: &JitImages<'_, '_>,
    sources: &Found,
    context: &mut InjectContext<'_>,
) {
    let Outcome { warnings, summary, .. } = &mut *context.outcome;
    for (pid, image) in images.iter() {
        let is_hidden = sources.is_hidden_from(pid, &image.path);
        let is_added = (is_hidden || context.options.cache) && build_id_cache::add(image, warnings);
        if is_hidden && is_added {
            summary.push(format!(
                "process {pid} is still running in another mount namespace, where perf looks for {}; jitgraft put a \
                 copy into the build-ID cache (~/.debug), where perf finds it",
                image.path.display()
            ));
        }
    }
}

/// Everything that comes before the records in the output: the header and events or, in pipe form, the records that
/// stand for them. `records` is the range of the input's records in the stream.
fn front(
    input: &PlainRecording<'_>,
    planned: &PlannedEdits<'_>,
    records: &Range<u64>,
    context: &mut InjectContext<'_>,
) -> Vec<u8> {
    let PlannedEdits { edits, features, recording, .. } = planned;
    let data_size = edits.new_len(records.end - records.start);
    // From pipe to pipe, the front is only the short header, because the records with the events are among those that
    // are copied. From file to file, the input's front is kept if its events stay the same.
    match (context.options.writes_pipe(), input.is_pipe()) {
        (true, true) => input.front().to_vec(),
        (true, false) => pipe_front(recording, features, &mut context.outcome.warnings),
        (false, false) if front_can_stay(recording) && !planned.has_new_events() => {
            Front::keep(recording, input.front(), data_size, features).bytes
        }
        (false, _) => Front::build(recording, data_size, features).bytes,
    }
}

/// Copies unchanged records from the input's memory map to the output. The survey and coverage have just read these
/// pages, so one copy in memory is all it costs. `copy_file_range(2)` would be slower: it goes through a pipe, sixteen
/// pages at a time.
struct Copier<'a> {
    input: &'a PlainRecording<'a>,
    output: &'a mut Output,
}

impl EditSink for Copier<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.output.write_all(bytes)?)
    }

    fn copy(&mut self, range: Range<u64>) -> Result<()> {
        let base = self.input.base();
        let records = self.input.records();
        let index = |offset: u64| usize::try_from(offset - base).unwrap_or(usize::MAX).min(records.len());
        Ok(self.output.write_all(&records[index(range.start)..index(range.end)])?)
    }
}
