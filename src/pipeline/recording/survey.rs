//! The first pass over a recording: collects processes and mappings, and decides where to split the records into
//! chunks.

use super::streams::{PlainStream, RecordChunks};
use crate::error::{STDIN, Warning, Warnings};
use crate::formats::perf_data;
use crate::formats::perf_data::{DeferredChains, Feature, Form, Recording, kind};
use crate::io::{self, InPath};
use crate::jit::{self, Found, Sampled, Site, SourceOptions, is_this_machine};
use crate::model::Nanos;
use crate::model::about::{self, TimeExtent};
use crate::model::process::{CpuMode, FileId, Processes};
use crate::model::threads::Threads;
use crate::symbolize::address_space::AddressSpaces;
use crate::symbolize::kernel::running_build_id;
use crate::symbolize::symbols::files::{RecordedTime, hex};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What the first pass collects from all records that aren't samples.
#[derive(Debug)]
pub(crate) struct Survey<'data> {
    /// The recording's events and features.
    pub(crate) recording: &'data Recording,
    /// What messages call the recording.
    pub(crate) path: &'data Path,
    /// The processes, with their mappings and their jitdumps.
    pub(crate) processes: Processes,
    /// The names of threads.
    pub(crate) threads: Threads,
    /// All records in chunks, for the workers that read samples.
    pub(crate) chunks: RecordChunks<'data>,
    /// The user parts of call chains that were recorded after their samples (deferred call chains).
    pub(crate) deferred: DeferredChains<'data>,
}

impl<'data> Survey<'data> {
    /// Collects what the records of all streams say, except for samples: processes, mappings, threads and their names.
    /// Finds out where the samples are (`chunks`), and matches user call chains that were recorded later with their
    /// samples (`deferred`).
    pub(crate) fn new(
        recording: &'data Recording,
        streams: &'data [PlainStream<'_>],
        path: &'data Path,
        warnings: &mut Warnings,
    ) -> Self {
        let mut survey = perf_data::RecordSurvey::default();
        let mut deferred = DeferredChains::default();
        let chunks = RecordChunks::new(recording.header.endian, streams, |record| {
            survey.add(recording, record);
            deferred.add(recording, record);
        });
        if let Some(damage) = &chunks.damage {
            let message = format!("cannot read the rest: {damage}");
            warnings.push(Warning::new(message).in_file(path, None));
        }
        let (processes, threads, skipped) = survey.finish(recording);
        for skipped in skipped {
            skipped.report(path, warnings);
        }
        deferred.settle(recording, chunks.list().into_iter().flatten(), path, warnings);
        Self { recording, path, processes, threads, chunks, deferred }
    }

    /// Facts that help to find sources of JIT code: where the recording is, and when and on which machine it was made.
    /// `input_dir` is the directory of the recording. `samples` is only called if the addresses of samples are needed,
    /// because it reads all of them.
    pub(crate) fn site<'s>(&'s self, input_dir: Option<&'s Path>, samples: &'s dyn Fn() -> Sampled) -> Site<'s> {
        let written = io::typed_metadata(self.path).and_then(|data| data.modified().ok());
        // An archive is from another machine, so processes running here aren't the recorded ones, even if their IDs
        // match.
        let proc = if io::is_archive(self.path) { None } else { Some(Path::new("/proc")) };
        Site { input_dir, written, host: host(self.recording), proc, samples: Some(samples) }
    }

    /// Collects what tells whether a source of JIT code fits a process: how often each user address was sampled, when
    /// each user frame was first seen, and the times of the first and last sample. Takes a pass over the recording.
    pub(crate) fn collect_sampled(&self) -> Sampled {
        let mut sampled = Sampled::default();
        for record in self.chunks.list().into_iter().flatten() {
            // `chain_sample` also accepts records with the user part of a call chain that was recorded after its
            // sample.
            let Some(Ok(sample)) = self.recording.chain_sample(&record) else { continue };
            let is_sample = record.kind == kind::SAMPLE;
            let time = sample.time.filter(|time| time.is_valid());
            if is_sample {
                sampled.times = about::join_extents(sampled.times, time.map(TimeExtent::from_moment));
            }
            let Some((pid, _)) = sample.pid_tid else { continue };
            if is_sample
                && sample.cpumode == CpuMode::User
                && let Some(ip) = sample.ip
            {
                *sampled.address_counts.entry(pid).or_default().entry(ip).or_default() += 1;
            }
            if let Some(time) = time {
                let first_times = sampled.first_times.entry(pid).or_default();
                for (_, frame) in sample.frames().filter(|(mode, _)| *mode == CpuMode::User) {
                    let first = first_times.entry(frame.for_lookup()).or_insert(time);
                    *first = time.min(*first);
                }
            }
        }
        sampled
    }
}

/// The address spaces of the recorded processes, and the sources of their JIT code.
#[derive(Debug)]
pub(crate) struct Memory {
    /// What was mapped where and when, for each process.
    pub(crate) spaces: AddressSpaces,
    /// The sources of JIT code that were found. They are open but haven't been read.
    pub(crate) found: Found,
}

impl Memory {
    /// Builds the address spaces, and looks for sources of JIT code.
    pub(crate) fn find(survey: &Survey<'_>, options: &SourceOptions, warnings: &mut Warnings) -> Self {
        let processes = &survey.processes;
        let samples = || survey.collect_sampled();
        let site = survey.site(recording_directory(survey.path), &samples);
        let found = jit::find_at(processes, options, &site, warnings);
        Self { spaces: AddressSpaces::new(processes), found }
    }
}

/// The directory of the recording, which may also contain jitdumps and perf maps. `None` if the recording is neither a
/// file nor standard input.
fn recording_directory(path: &Path) -> Option<&Path> {
    if path == Path::new(STDIN) {
        return InPath::Stdin.directory();
    }
    io::companion_directory(path).filter(|_| io::is_there(path))
}

/// True if the running kernel may be the recorded one, because neither host name nor release say otherwise. Then build
/// IDs of the kernel and the vDSO can be read from the running system.
pub(crate) fn kernel_runs_here(recording: &Recording, processes: &Processes) -> bool {
    if !is_this_machine(host(recording)) {
        return false;
    }
    let running = io::read_system_file(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
    processes.os_release.as_ref().is_none_or(|recorded| recorded == running.trim_ascii())
}

/// True if the running kernel is the recorded one, judging by host name and release and, if it was recorded, by the
/// kernel's build ID.
pub(crate) fn is_recorded_kernel(recording: &Recording, processes: &Processes) -> bool {
    if host(recording).is_none() || processes.os_release.is_none() || !kernel_runs_here(recording, processes) {
        return false;
    }
    // Without a build ID to compare, equal host names and releases are enough.
    let Some(running) = running_build_id() else { return true };
    for mapping in processes.by_pid.values().flat_map(|process| &process.mappings) {
        if mapping.cpumode == CpuMode::Kernel
            && mapping.kind().is_kernel()
            && mapping.build_id.is_some_and(|recorded| hex(recorded) != hex(running))
        {
            return false;
        }
    }
    true
}

/// When a recording that was made on this machine began and ended, according to the times of its file. If the file's
/// creation isn't known, or is too early, the length of the recording says when it began. `None` if the recording may
/// have been made on another machine.
pub(crate) fn recorded_here(survey: &Survey<'_>) -> Option<RecordedTime> {
    /// How long perf may take after the last event to read build IDs and to cache files.
    const AFTERWARDS: Duration = Duration::from_secs(60);
    host(survey.recording).filter(|host| is_this_machine(Some(host)))?;
    let file = io::typed_metadata(survey.path)?;
    let ended = file.modified().ok()?;
    // A recording in pipe form may have been written to a file later, so the creation time says nothing.
    let created = file.created().ok().filter(|created| *created <= ended && survey.recording.header.form != Form::Pipe);
    // If the recording was copied over an existing file, the file's creation time is too early to be the beginning:
    // between creation and last change, more time passed than the recording took. The events that concern processes
    // often suffice to show that the creation time isn't too early. Only if they don't, the times of all samples are
    // looked at, which takes a pass over the recording.
    let is_plausible = |created: &SystemTime, duration: Duration| *created + duration + AFTERWARDS >= ended;
    if let Some(began) = created.filter(|created| is_plausible(created, process_events_duration(&survey.processes))) {
        return Some(RecordedTime { began, ended });
    }
    let (first, last) = survey.chunks.times(survey.recording);
    let duration = Duration::from_nanos(last.0.saturating_sub(first.0));
    let began = created.filter(|created| is_plausible(created, duration)).or(ended.checked_sub(duration))?;
    Some(RecordedTime { began, ended })
}

/// For each file that was first mapped during the recording, the wall-clock time of its first mapping, which may be
/// somewhat too early. Leaves out files that were already mapped when the recording began. Empty if the recording's
/// times can't be converted to wall-clock times.
pub(crate) fn first_mapped(survey: &Survey<'_>) -> FxHashMap<FileId, SystemTime> {
    let mut first: FxHashMap<FileId, Nanos> = FxHashMap::default();
    for mapping in survey.processes.by_pid.values().flat_map(|process| &process.mappings) {
        if let Some(file) = mapping.file {
            let time = first.entry(file).or_insert(mapping.time);
            *time = mapping.time.min(*time);
        }
    }
    let mut times = FxHashMap::default();
    // The same moment on the wall clock and on the recording's clock.
    let Some((wall_moment, recording_moment)) = early_moment(survey) else { return times };
    for (file, time) in first {
        // Mappings that existed before the recording began have time 0.
        if time.0 > 0
            && let Some(since) = time.0.checked_sub(recording_moment.0)
            && let Some(wall_time) = wall_moment.checked_add(Duration::from_nanos(since))
        {
            times.insert(file, wall_time);
        }
    }
    times
}

/// One moment on two clocks: wall-clock time, which may be somewhat too early, and the recording's clock. `None` if
/// neither the recording nor its file tells.
fn early_moment(survey: &Survey<'_>) -> Option<(SystemTime, Nanos)> {
    if let Some((wall, recording_time)) = survey.processes.clock.reference {
        return Some((SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(wall.0))?, recording_time));
    }
    // perf creates the file before the first event, so the file's creation time is a lower bound for that event.
    let file = io::typed_metadata(survey.path)?;
    let ended = file.modified().ok()?;
    let created = file.created().ok().filter(|created| *created <= ended)?;
    Some((created, process_events(&survey.processes)?.first))
}

/// The time from the first to the last event that concerns processes, such as mappings and forks.
fn process_events_duration(processes: &Processes) -> Duration {
    match process_events(processes) {
        Some(extent) => Duration::from_nanos(extent.last.0.saturating_sub(extent.first.0)),
        None => Duration::ZERO,
    }
}

/// The first and the last time of the events that concern processes. `None` if there are no times.
fn process_events(processes: &Processes) -> Option<TimeExtent> {
    let mappings = processes.by_pid.values().flat_map(|process| &process.mappings).map(|mapping| mapping.time);
    let moments = processes.moments.iter().map(|moment| moment.time);
    let extents = mappings.chain(moments).filter(|time| time.0 > 0).map(TimeExtent::from_moment);
    extents.reduce(TimeExtent::join)
}

/// The host name of the recorded machine; `None` if it wasn't recorded.
pub(crate) fn host(recording: &Recording) -> Option<&[u8]> {
    recording.features.get(&Feature::HOSTNAME)?.string(recording.header.endian).ok()
}
