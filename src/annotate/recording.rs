//! Annotates a recording: sums its samples by function, lists the hottest functions, and says which instruction each
//! sample hit.

use super::costs::Cost;
use super::functions::FunctionOffset;
use super::grouping::regroup;
use super::lister::Lister;
use super::listing::Listing;
use super::machine_code::CodeFiles;
use super::names::Names;
use super::options::{AnnotateOptions, CodeOptions};
use super::overview::{Annotation, EventTotal, Precision};
use super::samples::{Sampled, SampledFunctions};
use crate::contract::rows::clamp;
use crate::error::{Result, Warnings};
use crate::formats::perf_data::Event;
use crate::model::Nanos;
use crate::model::chains::PlaceId;
use crate::model::stacks::{Keep, Unit};
use crate::pipeline::Job;
use crate::pipeline::open::Input;
use crate::pipeline::recording::{Examined, Resolution, with_samples};
use crate::symbolize::code_map::CodeId;
use crate::symbolize::symbols::SymbolOptions;
use rustc_hash::FxHashMap;
use std::path::Path;

/// Reads a recording, and lists the code of the functions that the options select, with the costs of each instruction.
/// Only functions in which samples have their innermost frame can be selected.
pub(crate) fn annotate(
    input: &Input,
    path: &Path,
    options: &AnnotateOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Result<Annotation> {
    let AnnotateOptions { recording, code, .. } = options;
    with_samples(input, path, recording, Keep::EachRow, job, warnings, |examined, warnings| {
        let symbols = examined.resolution.symbol_options();
        let mut annotation = hot_code(examined, code, symbols, job, warnings).annotation;
        annotation.listings = regroup(annotation.listings, options.grouping);
        Ok(annotation)
    })
}

/// The code of the hottest functions, and the instruction that each sample hit.
#[derive(Debug)]
pub struct HotCode {
    /// The listings of code, with costs.
    pub annotation: Annotation,
    /// For each event, the instruction that each of its samples hit. Empty for exact costs.
    pub instructions: Vec<SampledInstructions>,
}

/// Selects functions by the options, lists their code, and finds the instruction that each sample hit. `symbols` must
/// be the options with which the recording was symbolized.
pub(crate) fn hot_code(
    examined: &Examined<'_>,
    options: &CodeOptions,
    symbols: &SymbolOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> HotCode {
    let sampled = Sampled { examined, symbols };
    let functions = sampled.functions(options.weight, job, warnings);
    let names = Names::new(&functions.list, options.weight);
    let picked = names.pick(&functions.list, options);
    let Resolution { sources, images, spaces, survey, .. } = examined.resolution;
    // `raw` and `source_names` are only needed for callgrind files.
    let code = CodeFiles {
        sources,
        images,
        dsos: spaces.dsos(),
        processes: &survey.processes,
        raw: &FxHashMap::default(),
        machine: examined.resolution.machine(),
        load_times: &load_times(examined.resolution),
        source_names: &[],
        symbols,
    };
    let lister = Lister { code: &code, names: &names, targets: &sampled, syntax: options.syntax };
    let listings = lister.list(&picked, &functions.list, job, warnings);
    let instructions = sampled_instructions(examined, &functions, &picked, &listings);
    let annotation = Annotation {
        weight: options.weight,
        events: totals(examined),
        first: examined.samples.sampled.map(|sampled| sampled.first),
        names: names.summaries(&picked, &functions.list),
        all_names: names.len(),
        all_codes: functions.list.len(),
        hottest: names.hottest(&functions.list),
        listings,
    };
    HotCode { annotation, instructions }
}

/// When each code range was first loaded. Code ranges without a time are left out.
fn load_times(resolution: &Resolution<'_>) -> FxHashMap<CodeId, Nanos> {
    let mut times = FxHashMap::default();
    for segment in resolution.sources.map.segments() {
        // Skip segments with time 0: the source of their code states no time.
        if segment.from.0 > 0 {
            let first = times.entry(segment.code).or_insert(segment.from);
            *first = segment.from.min(*first);
        }
    }
    times
}

/// The events that have samples, with their totals.
fn totals(examined: &Examined<'_>) -> Vec<EventTotal> {
    let events = &examined.resolution.survey.recording.events;
    let mut totals = vec![Cost::default(); events.len()];
    for row in &examined.samples.rows {
        if let Some(total) = totals.get_mut(row.event as usize) {
            *total += Cost { weight: clamp(row.period), count: row.count };
        }
    }
    let mut sampled = Vec::new();
    for (number, (total, event)) in totals.into_iter().zip(events).enumerate() {
        if total.count > 0 {
            sampled.push(event_total(number, total, event));
        }
    }
    sampled
}

/// Derives the unit and the precision of an event from its name and attributes.
fn event_total(number: usize, total: Cost, event: &Event) -> EventTotal {
    let name = event.name.clone();
    // The name up to the modifiers, such as `:u`.
    let base = name.split([':', '/']).next().unwrap_or(&name);
    let is_timer = matches!(base, "cpu-clock" | "task-clock");
    let unit = if is_timer { Unit::Nanos } else { Unit::Named(base.to_owned()) };
    let precision = match event.attr.precise_ip() {
        0 if is_timer => Precision::Timer,
        0 => Precision::Skids,
        level => Precision::Precise(level),
    };
    EventTotal { number, name, unit, total, precision }
}

/// An instruction of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstructionIndex {
    /// The index of the listing.
    pub listing: u32,
    /// The index of the instruction in the listing's rows.
    pub row: u32,
}

/// The instructions that the samples of one event hit.
#[derive(Debug)]
pub struct SampledInstructions {
    /// The name of the event.
    pub event: String,
    /// One entry per sample, in the order of the recording, which is also the order of a profile's rows. `None` if the
    /// sample's code isn't listed.
    pub samples: Vec<Option<InstructionIndex>>,
}

/// For each event, the instruction that each of its samples hit (in its innermost frame); `None` for a sample in code
/// that isn't listed. Events have the order of the recording, which is also that of a profile's series. `picked` has
/// the index of each listing's function.
fn sampled_instructions(
    examined: &Examined<'_>,
    functions: &SampledFunctions,
    picked: &[usize],
    listings: &[Listing],
) -> Vec<SampledInstructions> {
    let mut listing_by_function: FxHashMap<usize, usize> = FxHashMap::default();
    for (listing, &function) in picked.iter().enumerate() {
        listing_by_function.insert(function, listing);
    }
    let find_instruction = |FunctionOffset { function, offset }| {
        let listing = *listing_by_function.get(&function)?;
        let row = listings[listing].find_row(offset)?;
        Some(InstructionIndex { listing: listing as u32, row: row as u32 })
    };
    let mut by_place: Vec<Option<InstructionIndex>> = Vec::with_capacity(functions.offsets.len());
    for offset in &functions.offsets {
        by_place.push(offset.and_then(find_instruction));
    }
    let mut events: Vec<SampledInstructions> = Vec::new();
    for event in &examined.resolution.survey.recording.events {
        events.push(SampledInstructions { event: event.name.clone(), samples: Vec::new() });
    }
    for row in &examined.samples.rows {
        let place: Option<PlaceId> = examined.samples.chains.places_up(row.chain).next();
        if let Some(event) = events.get_mut(row.event as usize) {
            event.samples.push(place.and_then(|place| by_place[place.0 as usize]));
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::super::costs::Costs;
    use super::*;
    use crate::io::InPath;
    use crate::model::stacks::Weight;
    use crate::pipeline::Outcome;
    use crate::pipeline::any::{LoadOptions, load_and_inspect};
    use crate::symbolize::disasm::Syntax;

    /// Summing samples by [`InstructionIndex`] gives the same costs per instruction as the annotation has, whether
    /// samples are kept one by one or summed.
    #[test]
    fn the_instructions_of_samples_add_up_to_the_costs_of_instructions() {
        let input = InPath::from(std::path::PathBuf::from("fixtures/php-recording/perf.data.zst"));
        let (load, job, mut outcome) = (LoadOptions::default(), Job::quiet().unwrap(), Outcome::default());
        let options = CodeOptions {
            function: None,
            limit: Some(30),
            by_name: false,
            codes: usize::MAX,
            weight: Weight::Period,
            syntax: Syntax::Att,
        };
        let mut hot = None;
        let mut ask = |examined: &Examined<'_>, job: &Job, warnings: &mut Warnings| {
            hot = Some(hot_code(examined, &options, &load.recording().symbols, job, warnings));
        };
        let profile = load_and_inspect((&[input]).into(), Keep::EachRow, &load, &mut ask, &job, &mut outcome).unwrap();
        let HotCode { annotation, instructions } = hot.unwrap();
        let mut summed = vec![Vec::new(); annotation.listings.len()];
        for (event, (series, hit)) in profile.series.iter().zip(&instructions).enumerate() {
            assert_eq!((&series.name, series.rows.len()), (&hit.event, hit.samples.len()));
            for (row, instruction) in series.rows.iter().zip(&hit.samples) {
                let Some(InstructionIndex { listing, row: line }) = *instruction else { continue };
                let lines: &mut Vec<Costs> = &mut summed[listing as usize];
                lines.resize(lines.len().max(line as usize + 1), Costs::default());
                lines[line as usize].add(event, Cost { weight: clamp(row.weight), count: row.count });
            }
        }
        let mut compared = 0;
        for (listing, summed) in annotation.listings.iter().zip(summed) {
            for (at, line) in listing.rows.iter().enumerate() {
                let own = summed.get(at).filter(|costs| costs.samples() > 0);
                assert_eq!(own, line.costs.as_ref(), "line {at} of {:?}", listing.name);
                compared += usize::from(own.is_some());
            }
        }
        assert!(compared > 100, "{compared}");
    }
}
