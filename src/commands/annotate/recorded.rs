//! A recording → the code of its hottest functions: picks them, finds their bytes, and asks what their branches lead
//! to.

use super::annotation::{Annotation, Code, EventTotal, Line, Listing, Precision, TargetPlace};
use super::costs::Cost;
use super::functions::{CodePlace, Function, Places, Sampled};
use super::listing;
use super::names::Names;
use super::options::AnnotateOptions;
use super::sources::Sources;
use crate::error::{Result, Warning, Warnings};
use crate::formats::perf_data::{Event, Recording};
use crate::model::chains::PlaceId;
use crate::model::printable::printable;
use crate::model::stacks::{Keep, Unit};
use crate::model::{Addr, Nanos};
use crate::pipeline::Job;
use crate::pipeline::open::Input;
use crate::pipeline::recording::{Memory, Resolution, Samples, Streams, Survey};
use crate::resolve::code_map::CodeId;
use crate::resolve::disasm::{Disassembler, TargetKind};
use rustc_hash::FxHashMap;
use std::path::Path;

/// Reads a recording and lists what the options ask for.
pub(super) fn annotate(
    input: &Input,
    path: &Path,
    options: &AnnotateOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Result<Annotation> {
    let streams = Streams::open(input, path, warnings)?;
    let survey = Survey::new(&streams.recording, &streams.list(), path, job, warnings);
    let memory = Memory::find(&survey, &options.recording, warnings);
    let resolution = Resolution::new(&survey, &memory, &options.recording, job, warnings);
    let samples = &resolution.samples(Keep::EachRow, job, warnings)?;
    let named = &resolution.name(&samples.chains, job, warnings);
    let sampled = Sampled { resolution: &resolution, samples, named, symbols: &options.recording.symbols };
    let functions = sampled.functions(options.weight, job, warnings);
    let names = Names::new(&functions);
    let picked = pick(&functions, options);
    let lister = Lister { resolution: &resolution, options, names: &names, loads: loads(&resolution) };
    let listings = lister.listings(&picked, &functions, job, warnings);
    let annotation = Annotation {
        weight: options.weight,
        events: totals(samples, &streams.recording),
        first: samples.sampled.map(|sampled| sampled.first),
        names: names.summaries(&picked, &functions),
        all: (names.len(), functions.len()),
        listings,
    };
    resolution.finish(warnings);
    Ok(annotation)
}

/// The numbers of the functions to list. Those whose code is not here are told of, but do not count.
fn pick(functions: &[Function], options: &AnnotateOptions) -> Vec<usize> {
    let wanted = |function: &Function| match &options.function {
        Some(pattern) => pattern.is_match(&printable(&function.name)),
        None => true,
    };
    let limit = options.limit.unwrap_or(usize::MAX);
    let (mut picked, mut listed) = (Vec::new(), 0);
    for (at, function) in functions.iter().enumerate().filter(|(_, function)| wanted(function)) {
        if listed == limit || picked.len() == limit.saturating_mul(2) {
            break;
        }
        picked.push(at);
        listed += usize::from(!matches!(function.place, CodePlace::Unknown(_)));
    }
    picked
}

/// The events that have samples.
fn totals(samples: &Samples, recording: &Recording) -> Vec<EventTotal> {
    let mut totals = vec![Cost::default(); recording.events.len()];
    for row in &samples.rows {
        if let Some(total) = totals.get_mut(row.event as usize) {
            total.add(Cost { weight: row.period, count: row.count });
        }
    }
    let sampled = totals.into_iter().zip(&recording.events).enumerate().filter(|(_, (total, _))| total.count > 0);
    sampled.map(|(number, (total, event))| event_total(number, total, event)).collect()
}

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

/// When each piece of code was loaded first.
fn loads(resolution: &Resolution<'_>) -> FxHashMap<CodeId, Nanos> {
    let mut loads = FxHashMap::default();
    for segment in resolution.sources.map.segments().iter().filter(|segment| segment.from.0 > 0) {
        let first = loads.entry(segment.code).or_insert(segment.from);
        *first = segment.from.min(*first);
    }
    loads
}

/// Makes listings of functions.
struct Lister<'a> {
    resolution: &'a Resolution<'a>,
    options: &'a AnnotateOptions,
    names: &'a Names,
    loads: FxHashMap<CodeId, Nanos>,
}

impl Lister<'_> {
    fn listings(&self, picked: &[usize], functions: &[Function], job: &Job, warnings: &mut Warnings) -> Vec<Listing> {
        let mut disassembler = Disassembler::new(self.resolution.machine(), self.options.syntax);
        if !disassembler.is_known() {
            let machine = self.resolution.machine();
            warnings.push(Warning::new(format!(
                "code of this machine (e_machine {machine}) is told in bytes: only x86 is decoded"
            )));
        }
        let listing = |&at: &usize| self.listing(at, &functions[at], &mut disassembler);
        let mut listings: Vec<Listing> = picked.iter().map(listing).collect();
        self.name_targets(picked, functions, &mut listings, job, warnings);
        let mut sources = Sources::new(self.resolution, &self.options.recording.symbols);
        for (&at, listing) in picked.iter().zip(&mut listings) {
            sources.add_to(listing, &functions[at], job, warnings);
        }
        listings
    }

    fn listing(&self, at: usize, function: &Function, disassembler: &mut Disassembler) -> Listing {
        let loaded = match function.place {
            CodePlace::Jit(code) => self.loads.get(&code).copied(),
            _ => None,
        };
        Listing {
            name: function.name.clone(),
            module: function.module.clone(),
            category: function.category,
            version: self.names.version(at),
            pid: function.last.pid,
            loaded,
            costs: function.costs.clone(),
            code: self.code(function, disassembler),
        }
    }

    fn code(&self, function: &Function, disassembler: &mut Disassembler) -> Code {
        let (bytes, addr) = match &function.place {
            CodePlace::Jit(code) => (self.resolution.sources.map.code(*code).bytes, function.last.base),
            CodePlace::File(dso, extent) => {
                let image = self.resolution.images.get(*dso);
                (image.and_then(|image| image.loaded(extent.clone())), extent.start)
            }
            CodePlace::Unknown(why) => return Code::Missing((*why).to_owned()),
        };
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else {
            return Code::Missing("the function has no bytes".to_owned());
        };
        let lines = listing::lines(disassembler, bytes, addr, &function.at);
        Code::Listed { addr, bytes: bytes.to_vec(), lines, files: Vec::new() }
    }

    /// Asks what is at addresses outside of the functions that name them, in the process and at the time of the
    /// function's last sample.
    fn name_targets(
        &self,
        picked: &[usize],
        functions: &[Function],
        listings: &mut [Listing],
        job: &Job,
        warnings: &mut Warnings,
    ) {
        let mut places = Places::default();
        let mut wanted: Vec<PlaceId> = Vec::new();
        each_unknown_target(picked, functions, listings, |function, shift, target_addr, _| {
            let addr = Addr(target_addr.wrapping_add(shift));
            wanted.push(self.resolution.place_at(&mut places, (function.last.pid, addr), function.last.time));
        });
        let named = self.resolution.name(&places, job, warnings);
        let mut wanted = wanted.into_iter();
        each_unknown_target(picked, functions, listings, |_, _, _, place| {
            let Some(at) = wanted.next() else { return };
            named.each(at, |frame| {
                if let Some(name) = frame.name {
                    *place = TargetPlace::Function(name.to_vec(), frame.offset);
                }
            });
        });
    }
}

/// Shows each address that leads out of its function: what it is added to at run time, itself, and what is there.
fn each_unknown_target(
    picked: &[usize],
    functions: &[Function],
    listings: &mut [Listing],
    mut each: impl FnMut(&Function, u64, u64, &mut TargetPlace),
) {
    for (&at, listing) in picked.iter().zip(listings) {
        let Code::Listed { addr, lines, .. } = &mut listing.code else { continue };
        let shift = functions[at].last.base.wrapping_sub(*addr);
        for target in lines.iter_mut().filter_map(|line: &mut Line| line.target.as_mut()) {
            // A number need not be an address.
            let shift = if target.kind == TargetKind::Immediate { 0 } else { shift };
            if !matches!(target.place, TargetPlace::Inside(_)) {
                each(&functions[at], shift, target.addr, &mut target.place);
            }
        }
    }
}
