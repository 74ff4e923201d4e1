//! Plans all edits to the records, the feature sections and the events.

mod build_ids;
mod mapping_records;
pub(in crate::commands::inject) mod samples;

use crate::bytes::cursor::Endian;
use crate::commands::inject::images::JitImages;
use crate::commands::inject::options::InjectContext;
use crate::commands::inject::survey::{PlainRecording, SurveyedRecording};
use crate::error::Result;
use crate::formats::perf_data::{Edit, Edits, Feature, Features, Recording, leave_pipe};
use crate::model::process::CpuMode;
use build_ids::{BuildIdEdits, build_id_record};
use samples::SampleChanges;
use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;

/// All planned changes to the recording, and the parts of the output that replace those of the input.
#[derive(Debug)]
pub(in crate::commands::inject) struct PlannedEdits<'a> {
    /// Edits to the stream of records.
    pub(in crate::commands::inject) edits: Edits,
    /// The output's feature sections. They are final except for the offsets of AUXTRACE records, which still refer to
    /// the input.
    pub(in crate::commands::inject) features: Features,
    /// The output's header and events; borrowed if they are the same as the input's.
    pub(in crate::commands::inject) recording: Cow<'a, Recording>,
    /// The number of inserted mapping records.
    pub(in crate::commands::inject) inserted: usize,
}

impl<'a> PlannedEdits<'a> {
    /// Plans all edits: inserts mapping records for the images, adds build IDs, removes records that would mislead perf
    /// or that the output's form doesn't have, and changes samples. The changes to samples (`samples`) were planned
    /// before the images were written.
    pub(in crate::commands::inject) fn new(
        survey: &SurveyedRecording<'a>,
        images: &JitImages<'_, '_>,
        samples: SampleChanges,
        context: &mut InjectContext<'_>,
    ) -> Result<Self> {
        let input = survey.input;
        let mut edits =
            mapping_records::plan_insertions(survey, images, &context.job.pool, &mut context.outcome.warnings);
        let inserted = edits.len();
        let build_ids = BuildIdEdits::find(survey, context)?;
        edits.extend(build_ids.edits);
        // A program may have moved its own code to anonymous memory. perf names that code only if it takes it for code
        // of the program's file, so hide the move from perf: remove the record of the anonymous mapping.
        edits.extend(remove_own_text(survey));
        // `None` if the header and events stay the same.
        let new_recording = samples.apply(input, images, &mut edits);
        let mut features = Features::from_recording(&input.recording);
        // If the input is a pipe and the output a file, remove the records with attrs and features: a file has these
        // outside of its records.
        if input.is_pipe() && !context.options.writes_pipe() {
            edits.extend(leave_pipe(&input.recording, input.records(), input.base(), &mut features));
        }
        add_build_ids(&mut features, &build_ids.entries, images, survey);
        let recording = new_recording.map_or(Cow::Borrowed(&input.recording), Cow::Owned);
        Ok(Self { edits: Edits::new(edits), features, recording, inserted })
    }

    /// True if the events differ from the input's.
    pub(in crate::commands::inject) fn has_new_events(&self) -> bool {
        matches!(self.recording, Cow::Owned(_))
    }
}

/// Plans the removal of mapping records of anonymous memory to which a program moved its own code (to use huge pages
/// for its text). Without these records, perf finds the earlier mapping of the program's file at these addresses, and
/// takes the names of the code from that file.
fn remove_own_text(survey: &SurveyedRecording<'_>) -> Vec<Edit> {
    let mut removals = Vec::new();
    for &offset in survey.spaces.own_text() {
        if let Some(len) = record_len(survey.input, offset) {
            removals.push(Edit { at: offset, remove: len, insert: Vec::new() });
        }
    }
    removals
}

/// The length of the record at an offset of the stream.
fn record_len(input: &PlainRecording<'_>, offset: u64) -> Option<u64> {
    let index = usize::try_from(offset.checked_sub(input.base())?).ok()?;
    // The last 2 of the 8 bytes of `struct perf_event_header` are the record's size.
    let size = *input.records().get(index..)?.get(6..)?.first_chunk()?;
    Some(u64::from(match input.recording.header.endian {
        Endian::Little => u16::from_le_bytes(size),
        Endian::Big => u16::from_be_bytes(size),
    }))
}

/// Adds build IDs to the BUILD_ID section, which tells perf archive which files to pack. `file_entries` are the entries
/// of ordinary files, or empty unless the user requested build IDs. The images are only added to an existing section:
/// that of the input, or one that was just created for `file_entries`.
fn add_build_ids(
    features: &mut Features,
    file_entries: &[u8],
    images: &JitImages<'_, '_>,
    survey: &SurveyedRecording<'_>,
) {
    let endian = survey.input.recording.header.endian;
    if !file_entries.is_empty() {
        features.sections.entry(Feature::BUILD_ID).or_default().extend(file_entries);
    }
    if let Some(section) = features.sections.get_mut(&Feature::BUILD_ID) {
        for (_, image) in images.iter() {
            section.extend(build_id_record(
                &image.build_id,
                image.recorded.as_os_str().as_bytes(),
                CpuMode::User,
                endian,
            ));
        }
    }
}
