//! Edits to samples, each only on request: turn stack copies into call chains ([`call_chains`]), remove the entries of
//! a call chain for which perf would drop the whole chain ([`drop_bad_entries`]), and move JIT code to addresses of its
//! own ([`relocations`]).
//!
//! The changes are planned before the images are written. They are applied afterwards, when the place of each code
//! range in the images is known.

mod call_chains;
mod relocations;
mod remapped_files;

use crate::commands::inject::images::JitImages;
use crate::commands::inject::options::InjectContext;
use crate::commands::inject::survey::{JitCode, PlainRecording, SurveyedRecording};
use crate::error::Result;
use crate::formats::perf_data::{
    Edit, RawRecord, Recording, Records, copies_stacks, kind, remove_bad_deferred_entries, remove_bad_entries,
};
use crate::parallel::Pool;
use call_chains::PlainChains;
use relocations::Relocations;

/// The planned changes to samples.
#[derive(Debug)]
pub(in crate::commands::inject) struct SampleChanges {
    /// The header and events of the output if its events change, else `None`.
    recording: Option<Recording>,
    /// Edits that replace samples and attr records by new ones.
    replacements: Vec<Edit>,
    relocations: Relocations,
}

impl SampleChanges {
    /// Plans the changes to samples that the options request: unwinds copied stacks to plain call chains, drops bad
    /// entries of call chains, and replaces addresses in JIT code by those to which the code moves (`--relocate`). Only
    /// unwinding changes the recording's header and events.
    pub(in crate::commands::inject) fn find(
        survey: &SurveyedRecording<'_>,
        code: &JitCode<'_>,
        context: &mut InjectContext<'_>,
    ) -> Result<Self> {
        let options = context.options;
        let unwinds = options.unwinds(&survey.input.recording);
        let plain_chains = if unwinds { Some(PlainChains::unwind(survey, code, context)?) } else { None };
        let (recording, mut replacements) = match plain_chains {
            Some(PlainChains { recording, edits }) => (Some(recording), edits),
            None => (None, Vec::new()),
        };
        if options.drop_bad_chain_entries {
            replacements.extend(drop_bad_entries(survey, unwinds, &context.job.pool));
        }
        let relocations = match options.relocate {
            true => Relocations::find(survey, &code.loaded.map, recording.as_ref(), &replacements, &context.job.pool),
            false => Relocations::default(),
        };
        Ok(Self { recording, replacements, relocations })
    }

    /// Adds the planned changes to `edits`. Returns the header and events of the output; `None` if its events don't
    /// change.
    pub(super) fn apply(
        self,
        input: &PlainRecording<'_>,
        images: &JitImages<'_, '_>,
        edits: &mut Vec<Edit>,
    ) -> Option<Recording> {
        edits.extend(self.replacements);
        self.relocations.apply(input, images, edits);
        self.recording
    }
}

/// `--drop-bad-chain-entries`: removes the call chain entries for which perf would drop the whole chain. With
/// `unwinds`, samples that have a stack copy are skipped, because they get a new chain without such entries anyway.
fn drop_bad_entries(survey: &SurveyedRecording<'_>, unwinds: bool, pool: &Pool) -> Vec<Edit> {
    let recording = &survey.input.recording;
    let find = |records: Records<'_>| {
        records.filter_map(|raw| drop_bad_entries_of_record(recording, unwinds, &raw)).collect::<Vec<_>>()
    };
    let mut edits = Vec::new();
    pool.each(survey.first_pass.chunks.list().into_iter(), find, |part| edits.extend(part));
    edits
}

/// The edit that removes the invalid entries from the call chain in a record; `None` if it has none, is damaged, or is
/// of another kind. With `unwinds`, samples with a stack copy are skipped, because they get a new chain.
fn drop_bad_entries_of_record(recording: &Recording, unwinds: bool, raw: &RawRecord<'_>) -> Option<Edit> {
    match raw.kind {
        kind::SAMPLE => drop_bad_entries_of_sample(recording, unwinds, raw),
        kind::CALLCHAIN_DEFERRED => {
            let insert = remove_bad_deferred_entries(raw).ok()??;
            Some(Edit { at: raw.offset, remove: raw.bytes.len() as u64, insert })
        }
        _ => None,
    }
}

/// The edit that removes bad entries from one sample. `None` if the sample stays as it is. A damaged sample also stays
/// as it is; `coverage` counts and reports it.
fn drop_bad_entries_of_sample(recording: &Recording, unwinds: bool, raw: &RawRecord<'_>) -> Option<Edit> {
    let sample = recording.sample(raw).ok()?;
    let attr = &recording.events[sample.event].attr;
    if unwinds && copies_stacks(attr) {
        return None;
    }
    let insert = remove_bad_entries(raw, attr).ok()??;
    Some(Edit { at: raw.offset, remove: raw.bytes.len() as u64, insert })
}
