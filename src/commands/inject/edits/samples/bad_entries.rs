//! `--drop-bad-chain-entries`: call chains lose the entries for which perf drops them whole.

use crate::commands::inject::survey::SurveyedRecording;
use crate::parallel::Pool;
use crate::records::perf_data::{Edit, RawRecord, Recording, copies_stacks, kind, without_bad_entries};

/// The samples that have such entries, without them. `unwinds`: copies of stacks become call chains, so that samples
/// with one are replaced already, by chains without such entries.
pub(super) fn dropped(survey: &SurveyedRecording<'_>, unwinds: bool, pool: &Pool) -> Vec<Edit> {
    let recording = &survey.input.recording;
    let parts = pool.map(survey.chunks.list(), |records| {
        let samples = records.filter(|raw| raw.kind == kind::SAMPLE);
        samples.filter_map(|raw| of_sample(recording, unwinds, &raw)).collect::<Vec<_>>()
    });
    parts.into_iter().flatten().collect()
}

/// Damaged samples are counted where used code is looked for; they stay as they are.
fn of_sample(recording: &Recording, unwinds: bool, raw: &RawRecord<'_>) -> Option<Edit> {
    let sample = recording.sample(raw).ok()?;
    let attr = &recording.events[sample.event].attr;
    if unwinds && copies_stacks(attr) {
        return None;
    }
    let insert = without_bad_entries(raw, attr).ok()??;
    Some(Edit { at: raw.offset, remove: raw.bytes.len() as u64, insert })
}
