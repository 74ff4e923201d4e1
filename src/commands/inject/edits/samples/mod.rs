//! What becomes of the samples themselves: copies of user stacks can become call chains ([`call_chains`]), JIT code can
//! get addresses of its own ([`relocations`]). Without either, nothing does.
//!
//! The changes are found while the whole code map is there; they are applied when it is known where the images are.

mod call_chains;
mod relocations;
mod remapped_files;

use crate::commands::inject::images::JitImages;
use crate::commands::inject::options::InjectContext;
use crate::commands::inject::survey::{JitCode, PlainRecording, SurveyedRecording};
use crate::error::Result;
use crate::formats::perf_data::{Edit, Recording};
use crate::resolve::code_map::{SegmentId, SelectedId, SelectedIds};
use call_chains::PlainChains;
use relocations::Relocations;

/// The changes. Segments of code have their numbers in the whole map ([`SegmentId`]) until it is selected what the
/// images have, then those in the selection ([`SelectedId`]).
#[derive(Debug)]
pub(in crate::commands::inject) struct SampleChanges<Id> {
    plain_chains: Option<PlainChains>,
    relocations: Relocations<Id>,
}

impl SampleChanges<SegmentId> {
    /// Finds what the options ask for.
    pub(in crate::commands::inject) fn find(
        survey: &SurveyedRecording<'_>,
        code: &JitCode<'_>,
        context: &mut InjectContext<'_>,
    ) -> Result<Self> {
        let options = context.options;
        let unwinds = options.unwinds(&survey.input.recording);
        let plain_chains = if unwinds { Some(PlainChains::unwind(survey, code, context)?) } else { None };
        let relocations = match options.relocate {
            true => Relocations::find(survey, &code.map, plain_chains.as_ref(), &context.job.pool),
            false => Relocations::default(),
        };
        Ok(Self { plain_chains, relocations })
    }

    /// The same changes, with the numbers that code has in the selection.
    pub(in crate::commands::inject) fn select(self, ids: SelectedIds) -> SampleChanges<SelectedId> {
        let Self { plain_chains, relocations } = self;
        SampleChanges { plain_chains, relocations: relocations.select(&ids) }
    }
}

impl SampleChanges<SelectedId> {
    /// Adds the edits that make the changes. Gives the recording as it is then, if its events are others.
    pub(super) fn apply(
        self,
        input: &PlainRecording,
        images: &JitImages<'_, '_>,
        edits: &mut Vec<Edit>,
    ) -> Option<Recording> {
        let recording = self.plain_chains.map(|PlainChains { recording, edits: replacements }| {
            edits.extend(replacements);
            recording
        });
        self.relocations.apply(input, images, edits);
        recording
    }
}
