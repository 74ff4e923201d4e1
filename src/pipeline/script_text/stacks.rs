//! A text that becomes stacks: each block is read as soon as it has names.

use super::feeder::Cutting;
use super::spare::Spare;
use super::{Filtered, Made, NamedBlock, TextFilter, beside, frameless, images_directory, summarise, untold};
use crate::error::{Result, Skipped, Warnings};
use crate::formats::perf_script::read::{TextPart, cut, read_part};
use crate::formats::perf_script::rewrite::Style;
use crate::io::{InPath, OutPath, Stream};
use crate::model::stacks::{Keep, Profile};
use crate::pipeline::lines::BLOCK;
use crate::pipeline::open::shown;
use crate::pipeline::parts::Parts;
use crate::pipeline::{Job, Outcome};
use crate::resolve::symbols::SymbolOptions;
use crate::sources::SourceOptions;

/// Reads a text, with names for its frames of JIT code.
pub(crate) fn stacks(
    (input, path): (Stream, &InPath),
    keep: Keep,
    sources: &SourceOptions,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Profile> {
    let images = images_directory(&OutPath::Stdout);
    let symbols = &SymbolOptions::default();
    let filter = TextFilter { style: Style::default(), sources, symbols, beside: beside(path), images, job };
    let (buffers, mut parts) = (&Spare::default(), Parts::of("line", keep));
    let make = &|block: NamedBlock| {
        let TextPart { profile, skipped } = read_part(&block.bytes, block.state.known(), keep);
        let skipped = skipped.moved(block.at);
        buffers.give_buffer(block.bytes, 4 * BLOCK);
        block.before.into_iter().for_each(|before| buffers.give_buffer(before, 4 * BLOCK));
        (profile, skipped)
    };
    let take = &mut |part: (Profile, Skipped)| {
        parts.add(part.0, part.1);
        Ok(())
    };
    let cutting = Cutting { block: BLOCK, cut, at_pauses: false };
    let Filtered { counts, nameless } =
        filter.run(input, Made { cutting, buffers, make, take }, &mut outcome.warnings)?;
    if counts.named > 0 {
        summarise(&counts, outcome);
        outcome.summary.extend(untold(&counts, &nameless));
    }
    outcome.summary.extend(frameless(&counts));
    let mut warnings = Warnings::new();
    let mut profile = parts.into_profile(&mut warnings);
    profile.perf_names = true;
    outcome.warnings.append(warnings.in_file(&shown(path)));
    Ok(profile)
}
