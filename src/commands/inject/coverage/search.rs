//! Looks for the code that samples touch, until no record that is inserted for it hides any.

use super::covers::{Covers, hidden_by_insertions};
use super::input::Input;
use super::touched::{Context, Key, Reach, Touch, Touched};
use super::{Job, Pieces, Progress};
use crate::error::{Result, Warning, Warnings};
use crate::formats::perf_data::Records;
use crate::model::Pid;
use crate::model::process::Processes;
use crate::resolve::address_space::AddressSpaces;
use crate::resolve::code_map::{self, CodeMap, SegmentId};

/// So often insertions may make other insertions necessary; beyond that some frames stay without a name.
const MAX_ROUNDS: usize = 8;

/// Looks for the code that samples touch.
#[derive(Clone, Copy)]
pub(super) struct Search<'a, 'data> {
    pub(super) input: &'a Input,
    pub(super) codes: &'a CodeMap<'data>,
    pub(super) processes: &'a Processes,
    pub(super) spaces: &'a AddressSpaces,
    /// The processes whose code perf or jitgraft has injected before: it stays as it is.
    pub(super) injected: &'a [Pid],
}

impl Search<'_, '_> {
    /// What is touched, in order, and what else was found.
    pub(super) fn run(
        &self,
        pieces: &Pieces<'_>,
        progress: &Progress,
        (job, warnings): (&Job, &mut Warnings),
    ) -> Result<(Vec<(Key, Touch)>, Touched)> {
        let Self { input, codes, processes, spaces, injected } = *self;
        let reach = Reach::new(codes, processes, injected);
        let mut covers = Covers::new(processes, &reach);
        let mut round = 0;
        loop {
            round += 1;
            let context = Context { recording: &input.recording, codes, reach: &reach, covers: &covers, spaces };
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
fn search(context: Context<'_, '_>, pieces: &Pieces<'_>, progress: &Progress, job: &Job) -> Result<Touched> {
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

/// The code that the images shall have: what is touched, or all. Gives also its new numbers by the old ones, and how
/// many stretches of it are touched.
pub(super) fn keep_wanted<'data>(
    codes: CodeMap<'data>,
    touches: &[(Key, Touch)],
    all: bool,
    injected: &[Pid],
) -> (code_map::Pieces<'data>, Vec<Option<SegmentId>>, usize) {
    let mut wanted = vec![false; codes.segments().len()];
    touches.iter().for_each(|(key, _)| wanted[key.segment.0 as usize] = true);
    let touched = wanted.iter().filter(|wanted| **wanted).count();
    if all {
        let of_own = codes.segments().iter().map(|segment| !injected.contains(&segment.pid));
        wanted.iter_mut().zip(of_own).for_each(|(wanted, own)| *wanted |= own);
    }
    let mut codes = codes.into_pieces();
    let numbers = codes.keep_only(&wanted);
    (codes, numbers, touched)
}
