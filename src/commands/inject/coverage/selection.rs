//! The parts of the code map that go into the images.

use super::code_uses::{CodeEpoch, CodeUse};
use crate::commands::inject::options::InjectOptions;
use crate::commands::inject::survey::RecordOrder;
use crate::commands::inject::survey::SurveyedRecording;
use crate::error::{Error, Result};
use crate::model::Pid;
use crate::resolve::code_map::{CodeMap, SegmentSet, SelectedCode, SelectedId, SelectedIds};

/// The code that the images must have, and the samples before which perf must know it.
#[derive(Debug)]
pub(in crate::commands::inject) struct CodeSelection<'data> {
    pub(in crate::commands::inject) code: SelectedCode<'data>,
    /// In the order of the samples.
    pub(in crate::commands::inject) first_uses: Vec<FirstUse>,
    /// The number of segments that the samples use; [`CodeSelection::code`] may have more.
    pub(in crate::commands::inject) used_segments: usize,
}

/// The sample that is the first of its process to use a segment, or the first after something shadowed the segment.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands::inject) struct FirstUse {
    pub(in crate::commands::inject) pid: Pid,
    pub(in crate::commands::inject) segment: SelectedId,
    pub(in crate::commands::inject) sample: RecordOrder,
}

impl<'data> CodeSelection<'data> {
    /// Selects what is used, or all code but that of processes that were injected before. Gives also the numbers that
    /// the segments have from now on.
    pub(in crate::commands::inject) fn new(
        codes: CodeMap<'data>,
        uses: Vec<(CodeEpoch, CodeUse)>,
        survey: &SurveyedRecording<'_>,
        options: &InjectOptions,
    ) -> Result<(Self, SelectedIds)> {
        let mut set = SegmentSet::none_of(codes.segments());
        uses.iter().for_each(|(epoch, _)| set.insert(epoch.segment));
        let used_segments = set.count();
        // The code that unwound stacks use is not known from their copies.
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
