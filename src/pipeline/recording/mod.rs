//! perf.data → samples with places → names: what `load` and `script` build on.
//!
//! Phases, each over what the one before left: the records beside the samples (processes, threads, mappings) → JIT
//! code and address spaces → samples as chains of spots, in parallel → each distinct spot named once.

mod branches;
mod counted;
mod named;
mod profile;
pub(crate) mod records;
mod samples;
mod spots;
mod text;

pub(crate) use named::Named;
pub(crate) use profile::profile;
pub(crate) use samples::Samples;
pub(crate) use spots::Spot;
pub use text::TextOptions;
pub(crate) use text::write_text;

use super::job::{Job, Outcome};
use super::open::Input;
use crate::error::{Result, Skipped, Warning, Warnings};
use crate::formats::perf_data::{Recording, Survey};
use crate::model::Nanos;
use crate::model::filter::Filter;
use crate::model::process::Processes;
use crate::model::threads::Threads;
use crate::resolve::Resolver;
use crate::resolve::address_space::AddressSpaces;
use crate::resolve::kernel::KernelOptions;
use crate::resolve::symbols::SymbolOptions;
use crate::resolve::symbols::files::SearchOptions;
use crate::resolve::symbols::images::Images;
use crate::resolve::unwind::registers::Machine;
use crate::resolve::unwind::{MAX_DEPTH, Unwinder};
use crate::sources::{self, Account, Kind, SourceOptions};
use counted::Counted;
use records::Pieces;
use samples::{Context, Reading};
use spots::Spots;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// What most recordings are of, where they do not say.
const EM_X86_64: u16 = 62;

/// What to read of a recording, and how.
#[derive(Debug, Clone)]
pub struct RecordingOptions {
    /// The events whose samples count, by name with or without modifiers; empty: all.
    pub event: Vec<String>,
    /// Which samples count.
    pub filter: Filter,
    /// Whether addresses are kept, or equal offsets of one file are one.
    pub keep_addr: bool,
    /// What is wanted of native code.
    pub symbols: SymbolOptions,
    /// Where kernel symbols come from.
    pub kernel: KernelOptions,
    /// Whether samples of different processors are kept apart.
    pub by_cpu: bool,
    /// Whether the last branches are told above the callers.
    pub branch_stack: bool,
    /// How many frames a stack may have; `None`: as many as were recorded, or [`MAX_DEPTH`] if it is unwound.
    pub max_stack: Option<usize>,
    /// Whether the last branches are kept beside the stacks.
    pub keep_branches: bool,
    /// Whether data addresses and registers are kept beside the stacks.
    pub keep_beside: bool,
    /// Where the names of JIT code come from.
    pub sources: SourceOptions,
}

/// A recording's samples, named.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// Events and features.
    pub(crate) recording: Recording,
    /// Rows and stacks.
    pub(crate) samples: Samples,
    /// What the spots of the stacks are called.
    pub(crate) named: Named,
    /// The processor, as ELF's `e_machine`.
    pub(crate) machine: u16,
}

/// All that is known while a recording is loaded, for who asks why.
#[derive(Debug)]
pub(crate) struct Inside<'a, 'files> {
    /// Processes, their mappings and markers.
    pub(crate) processes: &'a Processes,
    /// What was mapped.
    pub(crate) spaces: &'a AddressSpaces,
    /// The files that are here.
    pub(crate) images: &'a Images<'files>,
    /// What became of every dump and map.
    pub(crate) accounts: &'a [Account],
    /// Events, samples, names.
    pub(crate) loaded: &'a Loaded,
}

/// Reads and names what the options ask for.
pub(crate) fn load(
    input: &Input,
    path: &Path,
    options: &RecordingOptions,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Loaded> {
    load_and_look(input, path, options, job, outcome, |_| ()).map(|(loaded, ())| loaded)
}

/// The same, with a look at what the names came from.
pub(crate) fn load_and_look<T>(
    input: &Input,
    path: &Path,
    options: &RecordingOptions,
    job: &Job,
    outcome: &mut Outcome,
    look: impl FnOnce(&Inside<'_, '_>) -> T,
) -> Result<(Loaded, T)> {
    let mut warnings = Warnings::new();
    let recording = Recording::parse(&input.bytes, &mut warnings)?;
    let mut parts = vec![records::data(&recording, &input.bytes)];
    parts.extend(input.parts.iter().map(|part| (&part[..], 0)));
    let plain = parts.iter().map(|&part| records::decompressed(&recording, part, &mut warnings));
    let plain = plain.collect::<Result<Vec<_>>>()?;
    outcome.warnings.append(warnings.in_file(path));
    for (part, plain) in parts.iter_mut().zip(&plain) {
        if let Some(plain) = plain {
            *part = (&plain[..], 0);
        }
    }
    let (processes, threads, pieces) = survey(&recording, &parts, path, job, outcome);
    let beside = path.parent().filter(|_| path.exists());
    let found = sources::find(&processes, &options.sources, beside, &job.pool, &mut outcome.warnings);
    let sources::Loaded { map, accounts, .. } = found.load(&processes, &job.pool, &mut outcome.warnings);
    let codes = &map;
    let spaces = AddressSpaces::new(&processes);
    let spots = Spots { spaces: &spaces, codes, keep_addr: options.keep_addr };
    let os_release = processes.os_release.clone();
    let search = SearchOptions { machine: processes.machine, os_release, ..options.symbols.search.clone() };
    let images = Images::new(spaces.dsos().iter(), search);
    let unwinder = Unwinder::new(&spaces, codes, &images, options.max_stack.unwrap_or(MAX_DEPTH));
    let e_machine = processes.machine.unwrap_or(EM_X86_64);
    let machine = Machine::new(e_machine);
    let (first, last) = if options.filter.asks_time() { pieces.times(&recording) } else { (Nanos(0), Nanos(0)) };
    let context = Context {
        recording: &recording,
        threads: &threads,
        filter: &options.filter.placed(first, last),
        spots: &spots,
        unwinder: machine.map(|machine| (&unwinder, machine)),
        events: &wanted(&recording, &options.event),
        by_cpu: options.by_cpu,
        branch_stack: options.branch_stack,
        max_stack: options.max_stack.unwrap_or(usize::MAX),
        keep_branches: options.keep_branches,
        keep_beside: options.keep_beside,
    };
    let mut samples = read(context, &pieces, job)?;
    std::mem::replace(&mut samples.skipped, Skipped::new("sample")).report(path, &mut outcome.warnings);
    let recorded = Some(path.join("kcore_dir/kallsyms")).filter(|list| list.is_file());
    let os_release = processes.os_release.clone();
    let kernel = KernelOptions { os_release, recorded, ..options.kernel.clone() };
    let resolver = Resolver { spaces: &spaces, codes, images: &images, options: &options.symbols, kernel: &kernel };
    let named = Named::new(&samples.chains, &spots, &origins(&accounts), &resolver, &job.pool, &mut outcome.warnings);
    let loaded = Loaded { recording, samples, named, machine: e_machine };
    let (processes, accounts) = (&processes, &accounts[..]);
    let seen = look(&Inside { processes, spaces: &spaces, images: &images, accounts, loaded: &loaded });
    outcome.warnings.append(images.into_warnings());
    Ok((loaded, seen))
}

fn survey<'data>(
    recording: &Recording,
    parts: &[(&'data [u8], u64)],
    path: &Path,
    job: &Job,
    outcome: &mut Outcome,
) -> (Processes, Threads, Pieces<'data>) {
    let mut survey = Survey::default();
    let pieces = Pieces::new(recording, parts, job.pool.threads(), |record| survey.add(recording, record));
    if let Some(damage) = &pieces.damage {
        let message = format!("what follows cannot be read: {damage}");
        outcome.warnings.push(Warning::new(message).in_file(path, None));
    }
    let (processes, threads, skipped) = survey.finish(recording);
    skipped.report(path, &mut outcome.warnings);
    (processes, threads, pieces)
}

fn read(context: Context<'_>, pieces: &Pieces<'_>, job: &Job) -> Result<Samples> {
    let mut counted = Counted::new(context.recording, pieces).into_iter();
    let list = pieces.list().into_iter().map(|records| (records, counted.next().unwrap_or_default()));
    let parts = job.pool.map(list.collect(), |(records, counted)| Reading::new(context).read(records, &counted));
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_default();
    parts.try_for_each(|part| all.append(part))?;
    all.check()?;
    Ok(all)
}

/// The files that JIT code is said to be in: the image that `inject` makes of a dump, or the perf map; by both,
/// inferno knows JIT code.
fn origins(accounts: &[Account]) -> Vec<Vec<u8>> {
    let name = |account: &Account| match account.kind {
        Kind::JitDump => {
            let image = account.path.with_file_name(format!("jitted-{}.so", account.pid));
            image.into_os_string().into_vec()
        }
        Kind::PerfMap => format!("/tmp/perf-{}.map", account.pid).into_bytes(),
        Kind::PlacedElf => account.path.clone().into_os_string().into_vec(),
    };
    accounts.iter().map(name).collect()
}

/// Which events count.
fn wanted(recording: &Recording, names: &[String]) -> Vec<bool> {
    let is = |event: &str, name: &str| event == name || event.split(':').next() == Some(name);
    let counts = |event: &str| names.is_empty() || names.iter().any(|name| is(event, name));
    recording.events.iter().map(|event| counts(&event.name)).collect()
}
