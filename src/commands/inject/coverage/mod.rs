//! The JIT code that the samples use, and the sample before which perf must have it.

mod code_uses;
mod insertions;
mod jit_ranges;
mod memo;
mod selection;
mod shadowings;
#[cfg(test)]
mod tests;
mod use_finder;

pub(in crate::commands::inject) use selection::{CodeSelection, FirstUse};

use crate::commands::inject::options::InjectContext;
use crate::commands::inject::survey::{JitCode, SurveyedRecording};
use crate::error::Warning;
pub(in crate::commands::inject) use code_uses::SampleCounts;
use code_uses::{CodeEpoch, CodeUse, CodeUses};
use insertions::shadowed_by_insertions;
use jit_ranges::JitRanges;
use shadowings::Shadowings;
use use_finder::{UseContext, UseFinder};

/// So often insertions may make other insertions necessary; beyond that some frames stay unnamed.
const MAX_ROUNDS: usize = 8;

/// The uses of JIT code by the samples.
#[derive(Debug)]
pub(in crate::commands::inject) struct Coverage {
    /// In the order of their first samples.
    pub(in crate::commands::inject) uses: Vec<(CodeEpoch, CodeUse)>,
    pub(in crate::commands::inject) counts: SampleCounts,
}

impl Coverage {
    /// Looks for the code that samples use, until no record that will be inserted for it shadows any.
    pub(in crate::commands::inject) fn find(
        survey: &SurveyedRecording<'_>,
        code: &JitCode<'_>,
        context: &mut InjectContext<'_>,
    ) -> Self {
        let SurveyedRecording { input, processes, spaces, injected, deferred, .. } = survey;
        let (codes, dump_ends) = (&code.map, &code.loaded.dump_ends());
        let jit_ranges = &JitRanges::new(codes, processes, injected);
        let files = &jit_ranges.with_files(processes);
        let mut shadowings = Shadowings::new(processes, jit_ranges);
        let mut round = 1;
        loop {
            let recording = &input.recording;
            let lookup = UseContext {
                recording,
                deferred,
                codes,
                jit_ranges,
                shadowings: &shadowings,
                spaces,
                dump_ends,
                files,
            };
            let coverage = Self::read(survey, lookup, context);
            let shadowed = shadowed_by_insertions(&coverage.uses, codes, &context.job.pool);
            if shadowed.is_empty() {
                return coverage;
            }
            if round == MAX_ROUNDS {
                let message = format!(
                    "{} mapping records hide code that is used once more: some of its frames have no name",
                    shadowed.len()
                );
                context.outcome.warnings.push(Warning::new(message).in_file(&input.shown, None));
                return coverage;
            }
            shadowings.extend(shadowed);
            round += 1;
        }
    }

    /// Looks at all samples, in parallel. Each worker adds up what it finds: not all of it is in memory at a time.
    fn read<'i>(survey: &SurveyedRecording<'i>, lookup: UseContext<'_, '_, 'i>, context: &InjectContext<'_>) -> Self {
        let stretches = survey.chunks.list().into_iter();
        let finders = context.job.pool.fold(
            stretches,
            || UseFinder::new(lookup),
            |mut finder, records| {
                let mut bytes = 0;
                finder.read(records.inspect(|record| bytes += record.bytes.len() as u64));
                context.progress.done(bytes);
                finder
            },
        );
        let mut all = CodeUses::default();
        finders.into_iter().for_each(|finder| all.append(finder.found()));
        let counts = std::mem::take(&mut all.counts);
        Self { uses: all.in_order(&context.job.pool), counts }
    }
}
