//! Selects the part of the code map that goes into the images.

use super::code_uses::{CodeEpoch, CodeUse};
use crate::commands::inject::options::InjectOptions;
use crate::commands::inject::survey::{RecordOrder, SurveyedRecording};
use crate::model::Pid;
use crate::symbolize::code_map::{CodeMap, Segment, SegmentId};

/// The code for the images, and the samples before which each part of it must be mapped.
#[derive(Debug)]
pub(in crate::commands::inject) struct CodeSelection<'c, 'data> {
    /// The whole code map, selected or not.
    pub(in crate::commands::inject) codes: &'c CodeMap<'data>,
    /// For each segment of the code map, whether it is selected.
    is_selected: Vec<bool>,
    /// For each use of the code: its first sample, before which the code must be mapped. Ordered by these samples.
    pub(in crate::commands::inject) first_uses: Vec<FirstUse>,
    /// The number of segments that samples use. [`CodeSelection::new`] may have selected more.
    pub(in crate::commands::inject) used_segments: usize,
}

/// The first sample of a process that uses a segment, or the first one after something else was mapped over it.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands::inject) struct FirstUse {
    pub(in crate::commands::inject) pid: Pid,
    pub(in crate::commands::inject) segment: SegmentId,
    pub(in crate::commands::inject) sample: RecordOrder,
}

impl<'c, 'data> CodeSelection<'c, 'data> {
    /// Selects the code that samples use. If the options ask for all functions, or if stack copies will be unwound, all
    /// other code is selected, too, except that of processes that an earlier run injected: the recording already has
    /// mapping records for their code.
    pub(in crate::commands::inject) fn new(
        codes: &'c CodeMap<'data>,
        uses: Vec<(CodeEpoch, CodeUse)>,
        survey: &SurveyedRecording<'_>,
        options: &InjectOptions,
    ) -> Self {
        let mut is_selected = vec![false; codes.segments().len()];
        let mut first_uses = Vec::with_capacity(uses.len());
        for (CodeEpoch { pid, segment, .. }, CodeUse { first, .. }) in uses {
            is_selected[segment.0 as usize] = true;
            first_uses.push(FirstUse { pid, segment, sample: first });
        }
        let used_segments = is_selected.iter().filter(|is_selected| **is_selected).count();
        // If stack copies are unwound, `uses` lacks the code that only the unwound call chains use, because it was
        // collected before the unwinding. To include that code, all code is selected.
        if options.all_functions || options.unwinds(&survey.input.recording) {
            for (is_selected, segment) in is_selected.iter_mut().zip(codes.segments()) {
                *is_selected |= !survey.injected.contains(&segment.pid);
            }
        }
        Self { codes, is_selected, first_uses, used_segments }
    }

    /// The selected segments, in the order of the code map.
    pub(in crate::commands::inject) fn segments(&self) -> impl Iterator<Item = (SegmentId, &Segment)> {
        let all = self.is_selected.iter().zip(self.codes.segments()).zip((0..).map(SegmentId));
        all.filter(|((is_selected, _), _)| **is_selected).map(|((_, segment), id)| (id, segment))
    }
}
