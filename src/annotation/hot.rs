//! Lists the code of the hottest functions of a recording.

use super::annotated::{Annotation, Code, EventTotal, Listing, Precision};
use super::costs::Cost;
use super::functions::{CodePlace, Function, FunctionPlace, Functions, Sampled};
use super::lister::Lister;
use super::names::Names;
use super::options::{CodeOptions, FunctionPattern};
use crate::contract::rows::clamp;
use crate::error::Warnings;
use crate::model::chains::PlaceId;
use crate::model::printable::printable;
use crate::model::stacks::Unit;
use crate::pipeline::Job;
use crate::pipeline::recording::Examined;
use crate::records::perf_data::Event;
use crate::resolve::symbols::SymbolOptions;
use rustc_hash::FxHashMap;

/// The code of the hottest functions, and the instruction that each sample hit.
#[derive(Debug)]
pub struct HotCode {
    /// The listings of code, with costs.
    pub annotation: Annotation,
    /// For each event, the instruction that each of its samples hit.
    pub spots: Vec<EventSpots>,
}

/// Selects functions by the options, and lists their code. `symbols` must be the options with which the recording was
/// symbolized.
pub(crate) fn hot_code(
    examined: &Examined<'_>,
    options: &CodeOptions,
    symbols: &SymbolOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> HotCode {
    let functions = Sampled { examined, symbols }.functions(options.weight, job, warnings);
    let names = Names::new(&functions.list, options.weight);
    let picked = pick(&functions.list, &names, options);
    let lister = Lister::new(examined.resolution, options.syntax, symbols, &names);
    let listings = lister.listings(&picked, &functions.list, job, warnings);
    let spots = spots(examined, &functions, &picked, &listings);
    let annotation = Annotation {
        weight: options.weight,
        events: totals(examined),
        first: examined.samples.sampled.map(|sampled| sampled.first),
        names: names.summaries(&picked, &functions.list),
        all: (names.len(), functions.list.len()),
        hottest: names.hottest(&functions.list),
        listings,
    };
    HotCode { annotation, spots }
}

/// Selects the functions to list: single code ranges or, with `by_name`, all code ranges of a name. Functions whose
/// code isn't available are included with the reason, but don't count toward the limit.
pub(super) fn pick(functions: &[Function], names: &Names, options: &CodeOptions) -> Vec<usize> {
    let wanted = WantedFunctions::new(options.function.as_ref(), functions);
    let every: Vec<usize> = (0..functions.len()).collect();
    let groups: Vec<&[usize]> = if options.by_name { names.codes().collect() } else { every.chunks(1).collect() };
    let limit = options.limit.unwrap_or(usize::MAX);
    let mut picked = Vec::new();
    let mut picked_groups = 0;
    let mut available_groups = 0;
    for group in groups {
        let Some(&first) = group.first() else { continue };
        if !wanted.contains(&functions[first]) {
            continue;
        }
        if available_groups == limit || picked_groups == limit.saturating_mul(2) {
            break;
        }
        picked.extend(group.iter().take(options.codes));
        picked_groups += 1;
        if group.iter().any(|&index| !matches!(functions[index].place, CodePlace::Unknown(_))) {
            available_groups += 1;
        }
    }
    picked
}

/// Which functions the user asked for with a name or a pattern.
enum WantedFunctions<'a> {
    All,
    /// Only functions with exactly this name.
    Name(&'a str),
    Regex(&'a FunctionPattern),
}

impl<'a> WantedFunctions<'a> {
    /// If a function has exactly this name, only it is selected, even if the text is also a regular expression: the
    /// user may have copied the name from some output.
    fn new(pattern: Option<&'a FunctionPattern>, functions: &[Function]) -> Self {
        let Some(pattern) = pattern else { return Self::All };
        let is_name = functions.iter().any(|function| printable(&function.name) == pattern.text.as_str());
        if is_name { Self::Name(&pattern.text) } else { Self::Regex(pattern) }
    }

    fn contains(&self, function: &Function) -> bool {
        match self {
            Self::All => true,
            Self::Name(name) => printable(&function.name) == *name,
            Self::Regex(pattern) => pattern.regex.is_match(&printable(&function.name)),
        }
    }
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

/// An instruction that a sample hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// The index of the listing.
    pub listing: u32,
    /// The index of the instruction in the listing's lines.
    pub line: u32,
}

/// The instructions that the samples of one event hit.
#[derive(Debug)]
pub struct EventSpots {
    /// The name of the event.
    pub event: String,
    /// One entry per sample, in the order of the recording, which is also the order of a profile's rows. `None` if the
    /// sample's code isn't listed.
    pub rows: Vec<Option<Spot>>,
}

/// The instructions that all samples hit, by event, in the order of the recording's events (which is also the order of
/// a profile's series).
pub(super) fn spots(
    examined: &Examined<'_>,
    functions: &Functions,
    picked: &[usize],
    listings: &[Listing],
) -> Vec<EventSpots> {
    let numbers: FxHashMap<usize, usize> = picked.iter().enumerate().map(|(listing, &at)| (at, listing)).collect();
    let mut spots_by_place: Vec<Option<Spot>> = Vec::with_capacity(functions.of_place.len());
    for place in &functions.of_place {
        let spot = place.as_ref().and_then(|place| find_spot(place, *numbers.get(&place.function)?, listings));
        spots_by_place.push(spot);
    }
    let recording = &examined.resolution.survey.recording;
    let events = recording.events.iter().map(|event| EventSpots { event: event.name.clone(), rows: Vec::new() });
    let mut events: Vec<EventSpots> = events.collect();
    for row in &examined.samples.rows {
        let place: Option<PlaceId> = examined.samples.chains.up(row.chain).next();
        if let Some(event) = events.get_mut(row.event as usize) {
            event.rows.push(place.and_then(|place| spots_by_place[place.0 as usize]));
        }
    }
    events
}

/// Finds the instruction at an offset in a function. `None` if the function's listing has no instruction there.
fn find_spot(place: &FunctionPlace, listing: usize, listings: &[Listing]) -> Option<Spot> {
    let Code::Listed { lines, .. } = &listings[listing].code else { return None };
    let line = lines.partition_point(|line| line.offset + line.len <= place.offset);
    if line == lines.len() {
        return None;
    }
    Some(Spot { listing: listing as u32, line: line as u32 })
}

#[cfg(test)]
mod tests {
    use super::super::annotated::Code;
    use super::super::costs::Costs;
    use super::*;
    use crate::io::InPath;
    use crate::model::stacks::{Keep, Weight};
    use crate::pipeline::Outcome;
    use crate::pipeline::any::{LoadOptions, load_and_inspect};
    use crate::resolve::disasm::Syntax;

    /// Summing samples by [`Spot`] gives the same costs per instruction as the annotation has, whether samples are kept
    /// one by one or summed.
    #[test]
    fn the_spots_of_samples_add_up_to_the_costs_of_instructions() {
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
        let HotCode { annotation, spots } = hot.unwrap();
        let mut summed = vec![Vec::new(); annotation.listings.len()];
        for (event, (series, spots)) in profile.series.iter().zip(&spots).enumerate() {
            assert_eq!((&series.name, series.rows.len()), (&spots.event, spots.rows.len()));
            for (row, spot) in series.rows.iter().zip(&spots.rows) {
                let Some(Spot { listing, line }) = *spot else { continue };
                let lines: &mut Vec<Costs> = &mut summed[listing as usize];
                lines.resize(lines.len().max(line as usize + 1), Costs::default());
                lines[line as usize].add(event, Cost { weight: clamp(row.weight), count: row.count });
            }
        }
        let mut compared = 0;
        for (listing, summed) in annotation.listings.iter().zip(summed) {
            let Code::Listed { lines, .. } = &listing.code else { continue };
            for (at, line) in lines.iter().enumerate() {
                let own = summed.get(at).filter(|costs| costs.samples() > 0);
                assert_eq!(own, line.costs.as_ref(), "line {at} of {:?}", listing.name);
                compared += usize::from(own.is_some());
            }
        }
        assert!(compared > 100, "{compared}");
    }
}
