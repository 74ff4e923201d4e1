//! Annotates a callgrind file that has a cost for every instruction (`--dump-instr=yes`).
//!
//! Native code is read from the file that an `ob=` line names. JIT code is read from the same sources that `jitgraft
//! callgrind` uses. callgrind knows only the functions that were entered by a call instruction, and adds the costs of
//! JIT code to the one that was entered last; here, each address belongs to the code that was there. Source lines come
//! from the callgrind file or from the jitdump. Calls and their inclusive costs are shown as callgrind states them.

mod functions;

use super::costs::Costs;
use super::functions::Function;
use super::grouping::regroup;
use super::lister::Lister;
use super::machine_code::CodeFiles;
use super::names::Names;
use super::options::AnnotateOptions;
use super::overview::{Annotation, EventTotal, Precision};
use crate::analysis::filter::Filter;
use crate::error::{Error, Result, Warning, Warnings};
use crate::formats::callgrind::{InstructionCosts, anonymous_kind, instruction_costs};
use crate::jit::raw_code::RawCode;
use crate::model::Pid;
use crate::model::abi::HOST_MACHINE;
use crate::model::stacks::{Unit, Weight};
use crate::pipeline::Job;
use crate::pipeline::callgrind::{CodeSources, directory, find_pid};
use crate::pipeline::recording::check_events;
use crate::symbolize::symbols::images::Images;
use functions::{CallgrindCosts, Objects};
use rustc_hash::FxHashMap;

/// Annotates the functions that the options select. Fails if the file doesn't have costs per instruction.
pub(crate) fn annotate(
    bytes: &[u8],
    options: &AnnotateOptions,
    job: &Job,
    warnings: &mut Warnings,
) -> Result<Annotation> {
    let costs = instruction_costs(bytes, warnings);
    check(&costs, options, warnings)?;
    let path = options.input.path();
    // 0 stands for an unknown process.
    let pid = find_pid(costs.pid, path).unwrap_or(Pid(0));
    let code_sources = CodeSources::find(Some(pid), path, &options.recording.sources, warnings);
    let sources = code_sources.load(&job.pool, warnings);
    // MoarVM writes a perf map without machine code; the code is in separate files in the directory `moar-jit.PID`.
    let raw_code = RawCode::find_usual(path, pid, options.recording.sources.force, warnings);
    let raw_bytes = raw_code.as_ref().map(|raw| raw.match_first_map(&sources, warnings)).unwrap_or_default();
    let objects = Objects::new(&costs, path.and_then(directory));
    let symbols = &options.recording.symbols;
    let images = Images::new(objects.dsos.iter(), symbols.search.clone());
    // `load_times` is empty, because callgrind records no times with which they could be compared.
    let code = CodeFiles {
        sources: &sources,
        images: &images,
        dsos: &objects.dsos,
        processes: &code_sources.processes,
        raw: &raw_bytes,
        machine: sources.machine.unwrap_or(HOST_MACHINE),
        load_times: &FxHashMap::default(),
        source_names: &costs.files,
        symbols,
    };
    let anonymous = anonymous_kind(&costs.command);
    let callgrind = CallgrindCosts { costs: &costs, code: &code, objects: &objects, pid, anonymous };
    let functions = callgrind.functions(job, warnings);
    let names = Names::new(&functions, Weight::Period);
    let picked = names.pick(&functions, &options.code);
    let lister = Lister { code: &code, names: &names, targets: &callgrind, syntax: options.code.syntax };
    let listings = lister.list(&picked, &functions, job, warnings);
    let annotation = Annotation {
        weight: Weight::Period,
        events: events(&costs, &functions, &options.recording.event),
        // callgrind records no times, so there is no first sample.
        first: None,
        names: names.summaries(&picked, &functions),
        all_names: names.len(),
        all_codes: functions.len(),
        hottest: names.hottest(&functions),
        listings: regroup(listings, options.grouping),
    };
    warnings.append(images.into_warnings());
    Ok(annotation)
}

/// Fails if the file has no costs per instruction, if it lacks a requested event, or if a filter is set. Warns if the
/// costs don't add up to the totals that the file states.
fn check(costs: &InstructionCosts, options: &AnnotateOptions, warnings: &mut Warnings) -> Result<()> {
    if !costs.has_addresses {
        let remedy = "run the program again with valgrind --tool=callgrind --dump-instr=yes".to_owned();
        let message = "has costs per source line, but annotate needs costs per instruction";
        return Err(Error::new(message).with_remedy(Some(remedy)));
    }
    let names: Vec<String> = costs.events.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    check_events(&names.iter().map(String::as_str).collect::<Vec<_>>(), &options.recording.event)?;
    if options.recording.filter != Filter::default() {
        return Err(Error::usage("callgrind profiles have no times, threads or processors to filter by"));
    }
    let mut sums = vec![0i64; costs.events.len()];
    for instruction in costs.functions.iter().flat_map(|function| function.instructions.values()) {
        for (sum, cost) in sums.iter_mut().zip(&instruction.costs) {
            *sum = sum.saturating_add(*cost);
        }
    }
    // A file without totals has an empty list of them, so nothing is compared.
    for ((sum, stated), name) in sums.iter().zip(&costs.totals).zip(&names) {
        if sum != stated {
            warnings.push(Warning::new(format!(
                "the cost lines add up to {sum} {name}, but the file states a total of {stated}; percentages are of \
                 {sum}"
            )));
        }
    }
    Ok(())
}

/// The events that have any costs. If `wanted` isn't empty, only those that it lists.
fn events(costs: &InstructionCosts, functions: &[Function], wanted: &[String]) -> Vec<EventTotal> {
    let mut total = Costs::default();
    for function in functions {
        total.join(&function.costs);
    }
    let mut events = Vec::new();
    for (number, name) in costs.events.iter().enumerate() {
        let name = String::from_utf8_lossy(name).into_owned();
        let total = total.get(number);
        if total.count > 0 && (wanted.is_empty() || wanted.contains(&name)) {
            let unit = Unit::Named(name.clone());
            events.push(EventTotal { number, name, unit, total, precision: Precision::Exact });
        }
    }
    events
}
