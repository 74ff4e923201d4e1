//! Selects the part of the code map that goes into the images.

use super::code_uses::{CodeEpoch, CodeUse};
use crate::commands::inject::options::InjectOptions;
use crate::commands::inject::survey::RecordOrder;
use crate::commands::inject::survey::SurveyedRecording;
use crate::error::{Error, Result};
use crate::model::Pid;
use crate::symbolize::code_map::{CodeMap, SegmentSet, SelectedCode, SelectedId, SelectedIds};

/// The code for the images, and the samples before which each part of it must be mapped.
#[derive(Debug)]
pub(in crate::commands::inject) struct CodeSelection<'data> {
    pub(in crate::commands::inject) code: SelectedCode<'data>,
    /// Ordered by sample.
    pub(in crate::commands::inject) first_uses: Vec<FirstUse>,
    /// The number of segments that samples use. [`CodeSelection::code`] has more segments if the user requested all
    /// functions.
    pub(in crate::commands::inject) used_segments: usize,
}

/// The first sample of a process that uses a segment, or the first one after something else was mapped over it.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands::inject) struct FirstUse {
    pub(in crate::commands::inject) pid: Pid,
    pub(in crate::commands::inject) segment: SelectedId,
    pub(in crate::commands::inject) sample: RecordOrder,
}

impl<'data> CodeSelection<'data> {
    /// Selects the code that samples use. If the options ask for all functions, selects all code except that of
    /// processes injected earlier. Also returns how the old segment IDs translate to the new ones.
    pub(in crate::commands::inject) fn new(
        codes: CodeMap<'data>,
        uses: Vec<(CodeEpoch, CodeUse)>,
        survey: &SurveyedRecording<'_>,
        options: &InjectOptions,
    ) -> Result<(Self, SelectedIds)> {
        let mut set = SegmentSet::none_of(codes.segments());
        uses.iter().for_each(|(epoch, _)| set.insert(epoch.segment));
        let used_segments = set.count();
        // If stacks are unwound, which code their call chains use isn't known yet, so all code is selected.
        if options.all_functions || options.unwinds(&survey.input.recording) {
            set.insert_where(codes.segments(), |segment| !survey.injected.contains(&segment.pid));
        }
        let (code, ids) = codes.select(&set);
        let first_uses = uses.into_iter().map(|(epoch, of)| {
            let segment = ids.get(epoch.segment).ok_or_else(|| Error::new("used code was not selected: a bug"))?;
            Ok(FirstUse { pid: epoch.pid, segment, sample: of.first })
        });
        let first_uses = first_uses.collect::<Result<_>>()?;
        Ok((Self { code, first_uses, used_segments }, ids))
    }
}
