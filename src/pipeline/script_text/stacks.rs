//! Reads perf script's text as stacks. A block is parsed as soon as its frames of JIT code have names.

use super::feeder::Cutting;
use super::{BlockHandling, Filtered, HEAD, NamedBlock, TextFilter};
use super::{images_directory, input_directory, report_frameless, report_nameless, summarize};
use crate::error::{Result, Warnings};
use crate::io::{InPath, OutPath, Stream};
use crate::model::stacks::{Keep, Profile};
use crate::pipeline::lines::BLOCK;
use crate::pipeline::open::shown;
use crate::pipeline::readers::{AddedParts, HasProfile, PartRead, Readers};
use crate::pipeline::spare::Spare;
use crate::pipeline::{Job, Outcome};
use crate::records::perf_script::read::{PartReader, Readable};
use crate::records::perf_script::rewrite::Style;
use crate::records::perf_script::{Layout, cut};
use crate::resolve::symbols::SymbolOptions;
use crate::sources::SourceOptions;

/// Reads perf script's text into a profile, and names its frames of JIT code.
pub(crate) fn read_stacks(
    mut input: Stream,
    path: &InPath,
    keep: Keep,
    sources: &SourceOptions,
    readable: Readable,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Profile> {
    let layout = Layout::detect(input.peek_all(HEAD)?);
    let mut parts = AddedParts::new("line", keep);
    let new_reader = || PartReader::new(keep, layout.clone()).with_readable_names(readable);
    let readers = Readers::new(&new_reader, job);
    let read_block = |block: &NamedBlock| readers.read(block.at, |reader| reader.read(&block.bytes, &block.facts));
    let text = ScriptText { input, layout: &layout, path, sources };
    each_block(text, job, outcome, &read_block, &mut |part: PartRead| parts.add(part))?;
    let mut warnings = Warnings::new();
    let mut profile = readers.into_profile(parts, &mut warnings);
    profile.perf_names = true;
    outcome.warnings.append(warnings.in_file(&shown(path)));
    Ok(profile)
}

/// A text to read.
pub(super) struct ScriptText<'a> {
    pub(super) input: Stream,
    pub(super) layout: &'a Layout,
    pub(super) path: &'a InPath,
    /// Where to find names of JIT code.
    pub(super) sources: &'a SourceOptions,
}

/// Names the frames of JIT code in each block of a text. Calls `make` with each block, in parallel, and `take` with the
/// results, in order.
pub(super) fn each_block<T: Send>(
    text: ScriptText<'_>,
    job: &Job,
    outcome: &mut Outcome,
    make: &(dyn Fn(&NamedBlock) -> T + Sync),
    take: &mut dyn FnMut(T),
) -> Result<()> {
    let filter = TextFilter {
        style: Style::default(),
        sources: text.sources,
        symbols: &SymbolOptions::default(),
        input_directory: input_directory(text.path),
        images: images_directory(&OutPath::Stdout),
        job,
    };
    let buffers = &Spare::default();
    let make = &|block: NamedBlock| {
        let made = make(&block);
        buffers.give_buffer(block.bytes, 4 * BLOCK);
        if let Some(before) = block.before {
            buffers.give_buffer(before, 4 * BLOCK);
        }
        made
    };
    let take = &mut |made| {
        take(made);
        Ok(())
    };
    let cutting = Cutting { block: BLOCK, cut, at_pauses: false };
    let handling = BlockHandling { layout: text.layout, cutting, buffers, make, take };
    let Filtered { counts, nameless, maps } = filter.run(text.input, handling, &mut outcome.warnings)?;
    outcome.summary.extend(maps);
    if counts.named > 0 {
        summarize(&counts, outcome);
        outcome.summary.extend(report_nameless(&counts, &nameless));
    }
    outcome.summary.extend(report_frameless(&counts));
    Ok(())
}

impl HasProfile for PartReader {
    fn profile(&mut self) -> &mut Profile {
        self.profile()
    }
}
