//! Looks for the code that samples touch, until no record that is inserted for it hides any.

use super::code_uses::{Context, Key, Touch, Touched};
use super::insertions::hidden_by_insertions;
use super::jit_ranges::JitRanges;
use super::shadowings::Covers;
use crate::commands::inject::survey::input::Input;
use crate::error::{Result, Warning, Warnings};
use crate::formats::perf_data::Records;
use crate::model::Pid;
use crate::model::process::Processes;
use crate::pipeline::Job;
use crate::pipeline::progress::Progress;
use crate::pipeline::recording::streams::RecordChunks;
use crate::resolve::address_space::AddressSpaces;
use crate::resolve::code_map::CodeMap;

/// So often insertions may make other insertions necessary; beyond that some frames stay without a name.
const MAX_ROUNDS: usize = 8;

/// Looks for the code that samples touch.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Search<'a, 'data> {
    pub(in crate::commands) input: &'a Input,
    pub(in crate::commands) codes: &'a CodeMap<'data>,
    pub(in crate::commands) processes: &'a Processes,
    pub(in crate::commands) spaces: &'a AddressSpaces,
    /// The processes whose code perf or jitgraft has injected before: it stays as it is.
    pub(in crate::commands) injected: &'a [Pid],
}

impl Search<'_, '_> {
    /// What is touched, in order, and what else was found.
    pub(in crate::commands) fn run(
        &self,
        pieces: &RecordChunks<'_>,
        progress: &Progress,
        (job, warnings): (&Job, &mut Warnings),
    ) -> Result<(Vec<(Key, Touch)>, Touched)> {
        let Self { input, codes, processes, spaces, injected } = *self;
        let jit_ranges = JitRanges::new(codes, processes, injected);
        let mut covers = Covers::new(processes, &jit_ranges);
        let mut round = 0;
        loop {
            round += 1;
            let context =
                Context { recording: &input.recording, codes, jit_ranges: &jit_ranges, covers: &covers, spaces };
            let mut touched = search(context, pieces, progress, job)?;
            let touches = touched.take();
            let hidden = hidden_by_insertions(&touches, codes, &job.pool);
            if hidden.is_empty() || round == MAX_ROUNDS {
                if !hidden.is_empty() {
                    let message = format!(
                        "{} mapping records hide code that is used once more: some of its frames have no name",
                        hidden.len()
                    );
                    warnings.push(Warning::new(message).in_file(&input.shown, None));
                }
                return Ok((touches, touched));
            }
            covers.extend(hidden);
        }
    }
}

/// Parts are added as they come: not all of them are in memory at a time.
fn search(context: Context<'_, '_>, pieces: &RecordChunks<'_>, progress: &Progress, job: &Job) -> Result<Touched> {
    let read = |records: Records<'_>| {
        let mut bytes = 0;
        let touched = Touched::read(context, records.inspect(|record| bytes += record.bytes.len() as u64));
        progress.done(bytes);
        touched
    };
    let mut all = Touched::default();
    job.pool.stream(pieces.list().into_iter(), read, |part| {
        all.append(part);
        Ok(())
    })?;
    Ok(all)
}
