//! The edits of samples: copies of user stacks can become call chains ([`call_chains`]), chains can lose the entries
//! that perf takes offence at ([`bad_entries`]), JIT code can get addresses of its own ([`relocations`]). If none is
//! requested, nothing does.
//!
//! The changes are found while the whole code map is there; they are applied when it is known where the images are.

mod bad_entries;
mod call_chains;
mod relocations;
mod remapped_files;

use crate::commands::inject::images::JitImages;
use crate::commands::inject::options::InjectContext;
use crate::commands::inject::survey::{JitCode, PlainRecording, SurveyedRecording};
use crate::error::Result;
use crate::records::perf_data::{Edit, Recording};
use crate::resolve::code_map::{SegmentId, SelectedId, SelectedIds};
use call_chains::PlainChains;
use relocations::Relocations;

/// The changes. Segments of code have their numbers in the whole map ([`SegmentId`]) until it is selected what the
/// images have, then those in the selection ([`SelectedId`]).
#[derive(Debug)]
pub(in crate::commands::inject) struct SampleChanges<Id> {
    /// The recording as it will be, if its events are others then.
    recording: Option<Recording>,
    /// Samples and attrs in place of others.
    replacements: Vec<Edit>,
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
        let (recording, mut replacements) = match plain_chains {
            Some(PlainChains { recording, edits }) => (Some(recording), edits),
            None => (None, Vec::new()),
        };
        if options.drop_bad_chain_entries {
            replacements.extend(bad_entries::dropped(survey, unwinds, &context.job.pool));
        }
        let relocations = match options.relocate {
            true => Relocations::find(survey, &code.map, recording.as_ref(), &replacements, &context.job.pool),
            false => Relocations::default(),
        };
        Ok(Self { recording, replacements, relocations })
    }

    /// The same changes, with the numbers that code has in the selection.
    pub(in crate::commands::inject) fn select(self, ids: SelectedIds) -> SampleChanges<SelectedId> {
        let Self { recording, replacements, relocations } = self;
        SampleChanges { recording, replacements, relocations: relocations.select(&ids) }
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
        edits.extend(self.replacements);
        self.relocations.apply(input, images, edits);
        self.recording
    }
}
