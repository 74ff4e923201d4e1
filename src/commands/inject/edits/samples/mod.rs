//! What becomes of the samples themselves: copies of user stacks can become call chains ([`call_chains`]), JIT code can get
//! addresses of its own ([`relocations`]). Without either, nothing does.

mod call_chains;
pub(in crate::commands) mod relocations;

use crate::commands::inject::coverage::search::Search;
use crate::commands::inject::images::Images;
use crate::commands::inject::options::InjectOptions;
use crate::commands::inject::survey::input::Input;
use crate::error::{Error, Result};
use crate::formats::perf_data::{Edit, Recording};
use crate::io::OutPath;
use crate::pipeline::recording::streams::RecordChunks;
use crate::pipeline::{Job, Outcome};
use crate::resolve::code_map::{self, SegmentId};
use crate::resolve::symbols::{self, files::SearchOptions};
use crate::resolve::unwind::registers::Machine;
use crate::resolve::unwind::{MAX_DEPTH, Unwinder};
use linux_perf_event_reader::constants::PERF_SAMPLE_STACK_USER;
use relocations::Moves;

/// The changes.
#[derive(Debug, Default)]
pub(in crate::commands) struct Samples {
    /// The recording as it is after the conversion of its user stacks, and the edits that make it so.
    converted: Option<(Recording, Vec<Edit>)>,
    moves: Moves,
}

impl Samples {
    /// Finds what `options` ask for. `machine` is the one that was recorded.
    pub(in crate::commands) fn find(
        search: Search<'_, '_>,
        pieces: &RecordChunks<'_>,
        machine: u16,
        options: &InjectOptions,
        (job, outcome): (&Job, &mut Outcome),
    ) -> Result<Self> {
        let input = search.input;
        let mut samples = Self::default();
        if options.convert_callchain || (options.relocate && has_user_stacks(&input.recording)) {
            samples.converted = Some(convert(search, pieces, machine, options, (job, outcome))?);
        }
        if options.relocate {
            let converted = samples.converted.as_ref();
            let (recording, edits) = converted.map_or((&input.recording, &[][..]), |(of, edits)| (of, edits));
            samples.moves = relocations::find(search, recording, pieces, edits, job);
        }
        Ok(samples)
    }

    /// Whether copies of user stacks become call chains. Which code these touch is not known from the copies.
    pub(in crate::commands) fn are_converted(&self) -> bool {
        self.converted.is_some()
    }

    /// Gives code its new numbers.
    pub(in crate::commands) fn renumber(&mut self, numbers: &[Option<SegmentId>]) {
        self.moves.renumber(numbers);
    }

    /// Adds the edits. The recording is then as it will be.
    pub(in crate::commands) fn apply(
        self,
        input: &mut Input,
        codes: &code_map::Pieces<'_>,
        images: &Images,
        edits: &mut Vec<Edit>,
    ) {
        if let Some((recording, converted)) = self.converted {
            edits.extend(converted);
            input.recording = recording;
        }
        self.moves.apply(input, codes, images, edits);
    }
}

/// Whether some samples have a copy of the user stack, which perf unwinds.
pub(in crate::commands) fn has_user_stacks(recording: &Recording) -> bool {
    recording.events.iter().any(|event| event.attr.samples(PERF_SAMPLE_STACK_USER))
}

/// The recording as it is after the conversion of its user stacks, and the edits that make it so.
fn convert(
    Search { input, codes, spaces, .. }: Search<'_, '_>,
    pieces: &RecordChunks<'_>,
    machine: u16,
    options: &InjectOptions,
    (job, outcome): (&Job, &mut Outcome),
) -> Result<(Recording, Vec<Edit>)> {
    let Some(known) = Machine::new(machine) else {
        return Err(Error::new(format!("stacks of machine {machine} cannot be unwound: only x86-64 and AArch64 can")));
    };
    let search = SearchOptions { machine: Some(machine), ..SearchOptions::default() };
    let files = symbols::images::Images::new(spaces.dsos().iter(), search);
    let unwinder = Unwinder::new(spaces, codes, &files, MAX_DEPTH);
    let place = (&*input.shown, &mut outcome.warnings);
    let mut edits = call_chains::samples(&input.recording, pieces, &unwinder, known, place, job);
    let mut recording = input.recording.clone();
    recording.plain_chains();
    if input.is_pipe() && options.output == OutPath::Stdout {
        edits.extend(call_chains::attrs(&recording, pieces));
    }
    Ok((recording, edits))
}
