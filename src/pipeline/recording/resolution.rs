//! Resolves the addresses of a recording that has been surveyed: what they belong to, and what that is called.

use super::counted::Counted;
use super::frame_location::FrameLocation;
use super::named::{Named, Origin};
use super::options::RecordingOptions;
use super::profile::ProfileTables;
use super::reading::{Context, SampleReader};
use super::replaced::warn_about_replaced;
use super::samples::{Merging, SampleChunk, Samples};
use super::survey::{Memory, Survey, first_mapped, is_recorded_kernel, recorded_here};
use crate::error::{Error, Result, Skipped, Warnings};
use crate::formats::perf_data::{RawRecord, Records};
use crate::io::Bytes;
use crate::jit::{self, Account, Found, Kind, SourceState};
use crate::model::abi::EM_X86_64;
use crate::model::chains::{Chains, PlaceId};
use crate::model::code_file::code_file;
use crate::model::process::{CpuMode, Processes};
use crate::model::stacks::{Keep, Profile};
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use crate::pipeline::job::Job;
use crate::pipeline::progress::Progress;
use crate::runtimes::ProcessRuntimes;
use crate::symbolize::Location;
use crate::symbolize::address_space::AddressSpaces;
use crate::symbolize::dso::{DsoId, DsoKind};
use crate::symbolize::kernel::{KernelOptions, KernelSymbols};
use crate::symbolize::resolver::Resolver;
use crate::symbolize::symbolizer::Symbolizer;
use crate::symbolize::symbols::SymbolOptions;
use crate::symbolize::symbols::data::{Variable, Variables};
use crate::symbolize::symbols::files::SearchOptions;
use crate::symbolize::symbols::image::Image;
use crate::symbolize::symbols::images::Images;
use crate::symbolize::unwind::registers::Machine;
use crate::symbolize::unwind::{MAX_DEPTH, Unwinder};
use rustc_hash::FxHashMap;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many bytes of records are read between updates of the progress bar.
const PROGRESS_STEP: u64 = 1 << 18;

/// What is needed to resolve addresses: mappings, JIT code and available files.
#[derive(Debug)]
pub(crate) struct Resolution<'a> {
    /// Processes, threads and records, from the first pass.
    pub(crate) survey: &'a Survey<'a>,
    /// The address spaces of all processes: what was mapped where and when.
    pub(crate) spaces: &'a AddressSpaces,
    /// The JIT code, and what became of each of its sources (jitdumps, perf maps, logs).
    pub(crate) sources: jit::Loaded<'a>,
    /// The ELF files that the recorded processes had mapped, as far as they are available on this machine.
    pub(crate) images: Images<'a>,
    /// The sources of JIT code that were found: jitdumps, perf maps and logs.
    pub(crate) found: &'a Found,
    options: &'a RecordingOptions,
}

impl<'a> Resolution<'a> {
    /// Reads the sources of JIT code that were found (jitdumps, perf maps, logs), and prepares the search for files
    /// with symbols. No addresses are looked up and no other files are opened yet.
    pub(crate) fn new(
        survey: &'a Survey<'a>,
        memory: &'a Memory,
        options: &'a RecordingOptions,
        job: &Job,
        warnings: &mut Warnings,
    ) -> Self {
        let Memory { spaces, found } = memory;
        let sources = found.load(&survey.processes, &job.pool, warnings);
        let Processes { machine, os_release, .. } = &survey.processes;
        let search = SearchOptions {
            machine: *machine,
            os_release: os_release.clone(),
            kernel_runs_here: is_recorded_kernel(survey.recording, &survey.processes),
            recorded_here: recorded_here(survey),
            first_mapped: first_mapped(survey),
            ..options.symbols.search.clone()
        };
        Self { survey, spaces, sources, images: Images::new(spaces.dsos().iter(), search), found, options }
    }

    /// Fails if the user named an event that the recording lacks.
    pub(crate) fn check_events(&self) -> Result<()> {
        let events: Vec<&str> = self.survey.recording.events.iter().map(|event| event.name.as_str()).collect();
        check_events(&events, &self.options.event)
    }

    /// How to find symbols of native code.
    pub(crate) fn symbol_options(&self) -> &SymbolOptions {
        &self.options.symbols
    }

    /// Where to search for files.
    pub(crate) fn search(&self) -> &SearchOptions {
        &self.options.symbols.search
    }

    /// The maximum number of frames to unwind per stack.
    pub(crate) fn max_stack(&self) -> usize {
        self.options.max_stack.unwrap_or(MAX_DEPTH)
    }

    /// True if the user gave a list of the kernel's symbols.
    pub(crate) fn has_given_kernel(&self) -> bool {
        self.options.kernel.kallsyms.is_some()
    }

    /// The machine type (`e_machine` of ELF).
    pub(crate) fn machine(&self) -> u16 {
        // If the recording doesn't state the machine, assume the most common one.
        self.survey.processes.machine.unwrap_or(EM_X86_64)
    }

    fn symbolizer(&self) -> Symbolizer<'_> {
        Symbolizer { spaces: self.spaces, codes: &self.sources.map }
    }

    /// Reads the samples that the options ask for, in parallel, and determines the code location of each address.
    fn samples(&self, keep: Keep, job: &Job, warnings: &mut Warnings) -> Result<Samples> {
        let chunks = self.survey.chunks.list().len();
        // With one chunk or one thread, there is nothing to merge.
        let mut samples = if chunks < 2 || job.pool.threads() < 2 {
            self.read_all(keep, job)
        } else {
            let mut merging = Merging::new(Samples::keeping(keep));
            self.read(keep, job, |chunk| merging.append(chunk))?;
            merging.samples
        };
        samples.check()?;
        std::mem::replace(&mut samples.skipped, Skipped::new("sample")).report(self.survey.path, warnings);
        Ok(samples)
    }

    /// Reads the samples that the options ask for, and names the code locations in them.
    pub(crate) fn named_samples(&self, keep: Keep, job: &Job, warnings: &mut Warnings) -> Result<(Samples, Named)> {
        let samples = self.samples(keep, job, warnings)?;
        let named = self.name(&samples.chains, job, warnings);
        Ok((samples, named))
    }

    /// Reads the samples again, in a second pass, and calls `each` with a profile that has the rows of one chunk, for
    /// all chunks in order. `samples` are the sums from the first pass, whose IDs the rows get. Returns `tables`
    /// without rows.
    pub(super) fn each_chunk(
        &self,
        samples: Samples,
        mut tables: ProfileTables,
        job: &Job,
        mut each: impl FnMut(&mut Profile) -> Result<()>,
    ) -> Result<ProfileTables> {
        let mut merged = Merging::new(samples);
        self.read(Keep::EachRow, job, |mut chunk| {
            let rows = merged.translate(&mut chunk)?;
            tables.push(&rows);
            each(&mut tables.profile)?;
            tables.clear();
            Ok(())
        })?;
        Ok(tables)
    }

    /// Reads all chunks in parallel and calls `each` with them in order. Only a few are in memory at a time.
    pub(super) fn read(&self, keep: Keep, job: &Job, each: impl FnMut(SampleChunk) -> Result<()>) -> Result<()> {
        self.with_context(keep, job, |context, chunks, progress| {
            // Each worker has a reader of its own, and the readers are numbered.
            let workers = AtomicUsize::new(0);
            let new_reader = || SampleReader::new(context, workers.fetch_add(1, Ordering::Relaxed));
            let read_chunk = |reader: &mut SampleReader<'_, 'a>, (records, counted): (Records<'a>, Counted)| {
                reader.read_chunk(with_progress(records, progress), &counted)
            };
            job.pool.stream_with(chunks, new_reader, read_chunk, each)
        })
    }

    /// Reads all chunks on the current thread.
    fn read_all(&self, keep: Keep, job: &Job) -> Samples {
        self.with_context(keep, job, |context, chunks, progress| {
            let mut reader = SampleReader::new(context, 0);
            for (records, counted) in chunks {
                reader.read(with_progress(records, progress), &counted);
            }
            reader.samples
        })
    }

    /// Prepares the reading of samples, and calls `read` with the context for [`SampleReader`], the chunks to read, and
    /// a progress bar.
    fn with_context<O>(
        &self,
        keep: Keep,
        job: &Job,
        read: impl FnOnce(Context<'_>, WeightedChunks<'_, 'a>, &Progress) -> O,
    ) -> O {
        let options = self.options;
        let recording = self.survey.recording;
        let chunks = &self.survey.chunks;
        let max_depth = options.max_stack.unwrap_or(MAX_DEPTH);
        let unwinder = Unwinder::new(self.symbolizer(), &self.images, max_depth);
        // The filter's times may be relative to those of the samples. Finding these takes a pass over all samples.
        let asks_time = options.filter.asks_time();
        let (first, last) = if asks_time { chunks.times(recording) } else { (Nanos(0), Nanos(0)) };
        let context = Context {
            recording,
            threads: &self.survey.threads,
            deferred: &self.survey.deferred,
            filter: &options.filter.place(first, last),
            symbolizer: self.symbolizer(),
            keep_addr: options.keep_addr,
            // Stacks of machines that the unwinder doesn't know stay as they were recorded.
            unwinder: Machine::is_any_known(self.machine()).then_some((&unwinder, self.machine())),
            events: &recording.events.iter().map(|event| is_wanted(&event.name, &options.event)).collect::<Vec<_>>(),
            keep,
            by_cpu: options.by_cpu,
            cgroups: options.by_cgroup.then_some(&self.survey.processes.cgroups),
            branch_stack: options.branch_stack,
            max_stack: options.max_stack.unwrap_or(usize::MAX),
            keep_branches: options.keep_branches,
            // The data of tracepoints is stored with the other fields, so keep them if tracepoints are to be printed.
            keep_other_fields: options.keep_other_fields || options.keep_trace && recording.prints_more_than_frames(),
        };
        let progress = Progress::new(chunks.len(), job);
        progress.phase("reading samples");
        let mut counted = Counted::new(recording, chunks).into_iter();
        let mut list = chunks.list().into_iter().map(|records| (records, counted.next().unwrap_or_default()));
        read(context, &mut list, &progress)
    }

    /// The options for finding the recorded kernel's symbols.
    fn kernel(&self) -> KernelOptions {
        // If the recording is a directory, it may contain the kernel's symbols.
        let recorded = Some(self.survey.path.join("kcore_dir/kallsyms"));
        let os_release = self.survey.processes.os_release.clone();
        KernelOptions { os_release, recorded, ..self.options.kernel.clone() }
    }

    /// The recorded kernel's list of symbols; `None` if it isn't available.
    pub(crate) fn kernel_list(&self, warnings: &mut Warnings) -> Option<Bytes> {
        let dsos = self.spaces.dsos();
        let reference = self.spaces.kernel_reference();
        // Only the list itself is wanted, so no addresses are passed for which to find symbols.
        KernelSymbols::find(&[], dsos, reference, &self.kernel(), self.search(), warnings).into_list()
    }

    /// For each of these addresses, the name of the kernel's function there, and the address's offset in the function.
    /// Addresses without a known symbol are left out.
    pub(super) fn kernel_functions(&self, mut addresses: Vec<u64>) -> FxHashMap<u64, (Vec<u8>, u64)> {
        let has_kernel = self.spaces.dsos().iter().any(|(_, dso)| dso.kind == DsoKind::Kernel);
        if addresses.is_empty() || !has_kernel {
            return FxHashMap::default();
        }
        addresses.sort_unstable();
        addresses.dedup();
        let dsos = self.spaces.dsos();
        let reference = self.spaces.kernel_reference();
        // Drop warnings about missing symbols: the printed tracepoints show where a name is missing.
        let mut warnings = Warnings::new();
        let symbols = KernelSymbols::find(&addresses, dsos, reference, &self.kernel(), self.search(), &mut warnings);
        let mut functions = FxHashMap::default();
        for addr in addresses {
            if let Some(symbol) = symbols.lookup(addr) {
                functions.insert(addr, (symbol.name.to_vec(), symbol.offset));
            }
        }
        functions
    }

    /// Names all code locations that occur in `chains`: prepares everything that knows names (symbols, JIT code, BPF
    /// programs, the kernel) and looks all of them up at once.
    pub(crate) fn name(&self, chains: &Chains<FrameLocation>, job: &Job, warnings: &mut Warnings) -> Named {
        let kernel = self.kernel();
        let resolver = Resolver {
            symbolizer: self.symbolizer(),
            bpf: &self.survey.processes.bpf_functions,
            recorded: &self.survey.processes.recorded_symbols,
            images: &self.images,
            options: &self.options.symbols,
            kernel: &kernel,
        };
        let origins: Vec<Origin> =
            self.sources.accounts.iter().map(|account| origin(account, &self.survey.processes)).collect();
        let runtimes = ProcessRuntimes::new(&self.survey.processes);
        Named::new(chains, self.options.keep_addr, &origins, runtimes, &resolver, &job.pool, warnings)
    }

    /// The variables in a file and, if available, in its separate debug file.
    fn variables_of(&self, image: &Image) -> Variables {
        let debugging = self.search().find_debugging(image, &mut Warnings::new());
        let images: Vec<&Image> = std::iter::once(image).chain(&debugging).collect();
        Variables::new(&images)
    }

    /// The variables at these locations, as far as they are known. The locations should be distinct.
    pub(super) fn variables(&self, chains: &Chains<FrameLocation>, places: &[PlaceId]) -> FxHashMap<PlaceId, Variable> {
        let mut found = FxHashMap::default();
        let mut variables_by_file: FxHashMap<DsoId, Variables> = FxHashMap::default();
        for &place in places {
            // Only files have symbols of variables. Memory of the heap, stack and JIT code has none.
            let Location::File(dso, offset) = chains.places()[place.0 as usize].location else { continue };
            if self.spaces.dsos().get(dso).kind == DsoKind::File
                && let Some(image) = self.images.get(dso)
                && let Some(vaddr) = image.vaddr_in_memory(offset)
            {
                let variables = variables_by_file.entry(dso).or_insert_with(|| self.variables_of(image));
                if let Some(variable) = variables.find(vaddr) {
                    found.insert(place, variable);
                }
            }
        }
        found
    }

    /// The code location of an address of a process at a time, as an ID in `chains`. The address must be one that an
    /// instruction refers to, not that of a frame.
    pub(crate) fn place_at(
        &self,
        chains: &mut Chains<FrameLocation>,
        pid: Pid,
        mode: CpuMode,
        addr: Addr,
        time: Nanos,
    ) -> PlaceId {
        let frame = (mode, FrameAddr::Ip(addr));
        let found = FrameLocation::find(self.symbolizer(), self.options.keep_addr, pid, frame, time);
        chains.place(found.answer)
    }

    /// Reports problems with the files that were opened for symbols.
    pub(crate) fn finish(self, warnings: &mut Warnings) {
        let dsos = self.spaces.dsos();
        let opened = self.images.opened().map(|(id, image)| (dsos.get(id), image));
        warn_about_replaced(opened, &self.survey.processes, warnings);
        warnings.append(self.images.into_warnings());
    }
}

/// Chunks of records. Each comes with the weights of its samples that contain counter values.
type WeightedChunks<'list, 'data> = &'list mut (dyn Iterator<Item = (Records<'data>, Counted)> + Send);

/// Returns the records unchanged. The progress bar advances while they are read.
fn with_progress<'data>(records: Records<'data>, progress: &Progress) -> impl Iterator<Item = RawRecord<'data>> {
    let mut bytes = 0;
    records.inspect(move |record| {
        bytes += record.bytes.len() as u64;
        if bytes >= PROGRESS_STEP {
            progress.done(std::mem::take(&mut bytes));
        }
    })
}

/// Describes a source of JIT code for the output: to which file its code is attributed, and to which process it
/// belongs.
fn origin(account: &Account, processes: &Processes) -> Origin {
    let file = match account.kind {
        Kind::JitDump | Kind::PerfMap | Kind::Log(_) => {
            let path = path_in_process(account, processes);
            let directory = path.parent().unwrap_or(Path::new(""));
            // For a jitdump, this is the image that `inject` would make of it; for others, the process's perf map.
            code_file(account.pid, account.kind == Kind::JitDump, directory)
        }
        Kind::PlacedElf => account.path.clone().into_os_string().into_vec(),
    };
    // The process certainly wrote the source if it was loaded. A missing source counts as well, because the recording
    // mentions it. But a file that exists and wasn't used may be from another process.
    let is_sure = matches!(account.state, SourceState::Loaded { .. } | SourceState::Missing { .. });
    Origin { file, pid: (account.kind != Kind::PlacedElf).then_some(account.pid), is_sure }
}

/// The absolute path of a jitdump as the recorded process saw it, wherever the file is now.
fn path_in_process(account: &Account, processes: &Processes) -> PathBuf {
    // The file was opened through the root directory of the process.
    if let Ok(path) = account.path.strip_prefix(format!("/proc/{}/root", account.pid)) {
        return Path::new("/").join(path);
    }
    // Otherwise, the recording has the path if the process mapped its jitdump: the mapping is a marker.
    let mut markers = processes.markers.iter().filter(|marker| marker.pid == account.pid);
    match markers.find(|marker| marker.path.is_absolute()) {
        Some(marker) => marker.path.clone(),
        None => std::path::absolute(&account.path).unwrap_or_else(|_| account.path.clone()),
    }
}

/// True if `name` is the name of the event, with or without the event's modifiers.
fn is_called(event: &str, name: &str) -> bool {
    event == name || event.split(':').next() == Some(name)
}

/// Fails if one of the names that the user gave matches no event.
pub(crate) fn check_events(events: &[&str], names: &[String]) -> Result<()> {
    let Some(missing) = names.iter().find(|name| !events.iter().any(|event| is_called(event, name))) else {
        return Ok(());
    };
    let known = if events.is_empty() { "none".to_owned() } else { events.join(", ") };
    Err(Error::new(format!("no event named {missing}; the input has {known}")))
}

/// True if one of the names that the user gave matches the event, or if the user gave none.
pub(crate) fn is_wanted(event: &str, names: &[String]) -> bool {
    names.is_empty() || names.iter().any(|name| is_called(event, name))
}
