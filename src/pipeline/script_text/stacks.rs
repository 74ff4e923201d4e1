//! Reads perf script's text as stacks. A block is parsed as soon as its frames of JIT code have names.

use super::feeder::LONGEST;
use super::{BlockHandling, Filtered, HEAD, NamedBlock, TextFilter};
use super::{images_directory, input_directory, report_frameless, report_nameless, summarize};
use crate::error::{Result, Warnings};
use crate::formats::perf_script::read::{Demangler, PartReader};
use crate::formats::perf_script::rewrite::Style;
use crate::formats::perf_script::{Layout, cut};
use crate::io::{InPath, OutPath, Stream};
use crate::jit::SourceOptions;
use crate::model::stacks::{Keep, Profile};
use crate::pipeline::authored;
use crate::pipeline::blocks::{Cutting, Spare};
use crate::pipeline::lines::BLOCK;
use crate::pipeline::open::shown;
use crate::pipeline::readers::{AddedParts, HasProfile, PartRead, Readers};
use crate::pipeline::{Job, Outcome};
use crate::symbolize::symbols::SymbolOptions;

/// Reads perf script's text into a profile, and names its frames of JIT code.
pub(crate) fn read_stacks(
    mut input: Stream,
    path: &InPath,
    keep: Keep,
    sources: &SourceOptions,
    readable: Demangler,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Profile> {
    let layout = Layout::detect(input.peek_all(HEAD)?);
    let mut parts = AddedParts::new("line", keep);
    let new_reader = || PartReader::new(keep, layout.clone()).with_readable_names(readable);
    let readers = Readers::new(&new_reader, job);
    let read_block = |block: &NamedBlock| readers.read(block.offset, |reader| reader.read(&block.bytes, &block.facts));
    let text = ScriptText { input, layout: &layout, path, sources };
    let named = each_block(text, job, outcome, &read_block, &mut |part: PartRead| parts.add(part))?;
    let mut warnings = Warnings::new();
    let mut profile = readers.into_profile(parts, &mut warnings);
    // The names have perf's spelling, also those that the text already had.
    profile.perf_names = true;
    outcome.warnings.append(warnings.in_file(&shown(path)));
    let directory = input_directory(path);
    // If frames were named from the code map, source maps have been applied to these names already, and must not be
    // applied to native code again. Otherwise, all names are those of the text.
    if named > 0 {
        authored::apply_to_scripts(&mut profile, sources, directory.as_deref(), outcome);
    } else {
        authored::apply(&mut profile, sources, directory.as_deref(), outcome);
    }
    Ok(profile)
}

/// A text to read.
struct ScriptText<'a> {
    input: Stream,
    layout: &'a Layout,
    path: &'a InPath,
    /// Where to find names of JIT code.
    sources: &'a SourceOptions,
}

/// Cuts a text into blocks, and names the frames of JIT code in each. Calls `make` with each block, in parallel, and
/// `take` with the results, in order. Returns the number of frames that got a name.
fn each_block<T: Send>(
    text: ScriptText<'_>,
    job: &Job,
    outcome: &mut Outcome,
    make: &(dyn Fn(&NamedBlock) -> T + Sync),
    take: &mut dyn FnMut(T),
) -> Result<u64> {
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
        let result = make(&block);
        // `4 * BLOCK`: a buffer that has grown beyond that isn't kept.
        buffers.give_buffer(block.bytes, 4 * BLOCK);
        if let Some(before) = block.before {
            buffers.give_buffer(before, 4 * BLOCK);
        }
        result
    };
    let take = &mut |result| {
        take(result);
        Ok(())
    };
    let cut = &|bytes: &[u8]| cut(bytes, text.layout);
    let cutting = Cutting { block: BLOCK, cut, longest: LONGEST, at_pauses: false };
    let handling = BlockHandling { layout: text.layout, cutting, buffers, make, take };
    let Filtered { counts, nameless, map_remarks } = filter.run(text.input, handling, &mut outcome.warnings)?;
    outcome.summary.extend(map_remarks);
    // If no frame needed a name, the text had all names already. Then a report about naming would only confuse.
    if counts.named > 0 {
        summarize(&counts, outcome);
        outcome.summary.extend(report_nameless(&counts, &nameless));
    }
    outcome.summary.extend(report_frameless(&counts));
    Ok(counts.named)
}

impl HasProfile for PartReader {
    fn profile(&mut self) -> &mut Profile {
        self.profile()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::label::{Annotate, RootFrame};
    use crate::contract::format::WriteOptions;
    use crate::formats::folded;
    use crate::parallel::Pool;
    use std::fmt::Write;
    use std::io::Cursor;
    use std::num::NonZeroUsize;
    use std::path::PathBuf;

    /// A text with several blocks: many distinct stacks, events that appear late (with and without periods),
    /// several threads, names that folded stacks spell differently, and invalid lines.
    fn text() -> String {
        let mut text = String::new();
        for sample in 0..20_000u32 {
            let (comm, tid) = [("app", 7), ("java", 8), ("a b", 9)][(sample % 7 % 3) as usize];
            let event = match sample {
                5_000.. if sample % 3 == 0 => "7 late:u:",
                6_000.. if sample % 5 == 0 => "cycles:",
                _ if sample % 2 == 0 => "3 cycles:",
                _ => "cpu-clock:",
            };
            writeln!(text, "{comm} {tid} {}.000001: {event} ", sample / 10).unwrap();
            // Only few stacks repeat.
            let mut seed = if sample % 8 == 7 { sample - 7 } else { sample };
            for frame in 0..12 {
                seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                let name = ["f", "Lorg/a/B;::call(I)V", "g(int)", "a;b", "[unknown]"][(seed >> 16) as usize % 5];
                let object = ["/bin/app", "[kernel.kallsyms]", "/tmp/perf-7.map"][(seed >> 20) as usize % 3];
                let number = if name == "f" { frame * 1000 + (seed >> 24) % 100 } else { 0 };
                writeln!(text, "\t    55d0 {name}{number}+0x1f ({object})").unwrap();
            }
            text += if sample % 1_000 == 999 { "no sample\n\n" } else { "\n" };
        }
        text
    }

    /// For each event its name and folded stacks, and the facts and warnings, if this many threads read the text.
    fn read_with(threads: usize, text: &str) -> (Vec<(String, String)>, String) {
        let pool = Pool::new(NonZeroUsize::new(threads)).unwrap();
        let (job, mut outcome) = (Job { pool, ..Job::quiet().unwrap() }, Outcome::default());
        let input = Stream::new(Box::new(Cursor::new(text.to_owned().into_bytes())));
        let path = InPath::Path(PathBuf::from("script.txt"));
        let sources = SourceOptions::default();
        let profile = read_stacks(input, &path, Keep::Sums, &sources, |_| None, &job, &mut outcome).unwrap();
        let annotate = Annotate { jit: true, tid: true, ..Annotate::default() };
        let mut events = Vec::new();
        for (series, event) in profile.series.iter().enumerate() {
            let options = WriteOptions { series, by: RootFrame::Tid, annotate, ..WriteOptions::default() };
            let mut lines = Vec::new();
            folded::write(&profile, &options, &mut lines).unwrap();
            events.push((event.name.clone(), String::from_utf8(lines).unwrap()));
        }
        (events, format!("{:?} {:?}", profile.about, outcome.warnings))
    }

    #[test]
    fn stacks_are_the_same_for_any_number_of_threads() {
        let text = text();
        let (events, warnings) = read_with(1, &text);
        assert_eq!(events.len(), 4);
        assert!(warnings.contains("20 lines skipped"), "{warnings}");
        assert!(read_with(3, &text) == (events, warnings));
    }
}
