//! Finds the JIT code that samples use, and before which sample each piece of it must be mapped for perf.
//!
//! The symbolizer says which segment of the code map an address belongs to ([`use_finder`]). What inject needs beyond
//! that is when perf would no longer see the segment: each mapping record over it starts a new epoch ([`shadowings`]).
//!
//! One pass over the samples finds all uses. The segments of one source never overlap in address and time, so their
//! mapping records don't hide each other while they are used. Segments of different sources may overlap. For example, a
//! perf map's entry is valid for the whole recording, and a jitdump has code at some of the same addresses for a while.
//! Or a forked child loads code over what it inherited. Then perf must see the one, the other, and the first again.
//! Only in this case is the pass repeated, with the planned mapping records among the shadowings, until they hide
//! nothing that is used later.

mod code_uses;
mod insertions;
mod jit_ranges;
mod selection;
mod shadowings;
#[cfg(test)]
mod tests;
mod use_finder;

pub(in crate::commands::inject) use selection::{CodeSelection, FirstUse};

use crate::analysis::quantity::counted;
use crate::commands::inject::options::InjectContext;
use crate::commands::inject::survey::{JitCode, SurveyedRecording};
use crate::error::Warning;
use crate::pipeline::recording::survey::Survey;
use crate::symbolize::symbolizer::Symbolizer;
pub(in crate::commands::inject) use code_uses::SampleCounts;
use code_uses::{CodeEpoch, CodeUse, CodeUses};
use insertions::find_shadowing_insertions;
use jit_ranges::JitRanges;
use shadowings::Shadowings;
use use_finder::{UseContext, UseFinder};

/// Maximum number of search rounds. An inserted mapping can hide other code and thereby require more insertions. After
/// this many rounds we give up, and some frames stay unnamed.
const MAX_ROUNDS: usize = 8;

/// The JIT code that the samples use.
#[derive(Debug)]
pub(in crate::commands::inject) struct Coverage {
    /// Each use of a piece of code, with the first and last sample that uses it. Ordered by the first of these samples.
    pub(in crate::commands::inject) uses: Vec<(CodeEpoch, CodeUse)>,
    pub(in crate::commands::inject) counts: SampleCounts,
}

impl Coverage {
    /// Finds the code that samples use. One mapping record will be inserted per use. Such a record may hide other code
    /// that is used later. The search is then repeated with the record among the `shadowings` (mappings that hide
    /// code), so that the hidden code becomes another use and is mapped again.
    pub(in crate::commands::inject) fn find(
        survey: &SurveyedRecording<'_>,
        code: &JitCode<'_>,
        context: &mut InjectContext<'_>,
    ) -> Self {
        let SurveyedRecording { input, first_pass, spaces, injected } = survey;
        let Survey { processes, deferred, .. } = first_pass;
        let (codes, dump_ends) = (&code.loaded.map, &code.dump_ends());
        let jit_ranges = &JitRanges::new(codes, processes, injected);
        let mut shadowings = Shadowings::new(processes, jit_ranges);
        let mut round = 1;
        loop {
            let recording = &input.recording;
            let lookup = UseContext {
                recording,
                deferred,
                symbolizer: Symbolizer { spaces, codes },
                jit_ranges,
                shadowings: &shadowings,
                dump_ends,
            };
            let coverage = Self::read(survey, lookup, context);
            let hiding_insertions = find_shadowing_insertions(&coverage.uses, codes, &context.job.pool);
            if hiding_insertions.is_empty() {
                return coverage;
            }
            if round == MAX_ROUNDS {
                let records = counted(hiding_insertions.len() as u64, "mapping record");
                let message = format!(
                    "some JIT frames stay unnamed, because perf takes the code at their addresses from {records} that \
                     jitgraft inserted for other code"
                );
                context.outcome.warnings.push(Warning::new(message).in_file(&input.shown, None));
                return coverage;
            }
            shadowings.extend(hiding_insertions);
            round += 1;
        }
    }

    /// Reads all samples in parallel. Each worker keeps a running total, so that the results of single chunks don't
    /// pile up in memory.
    fn read<'i>(survey: &SurveyedRecording<'i>, lookup: UseContext<'_, 'i>, context: &InjectContext<'_>) -> Self {
        let chunks = survey.first_pass.chunks.list().into_iter();
        let finders = context.job.pool.fold(
            chunks,
            || UseFinder::new(lookup),
            |mut finder, records| {
                let mut bytes = 0;
                finder.read(records.inspect(|record| bytes += record.bytes.len() as u64));
                context.progress.done(bytes);
                finder
            },
        );
        let mut all = CodeUses::default();
        finders.into_iter().for_each(|finder| all.append(finder.finish()));
        let counts = std::mem::take(&mut all.counts);
        Self { uses: all.into_ordered(&context.job.pool), counts }
    }
}
