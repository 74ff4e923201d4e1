//! The first pass over a recording: processes, mappings, and where to split the records into chunks.

use super::streams::{RecordChunks, WalkedRecords};
use crate::error::{Warning, Warnings};
use crate::io;
use crate::model::about::{self, TimeExtent};
use crate::model::process::{CpuMode, Processes};
use crate::model::threads::Threads;
use crate::records::perf_data;
use crate::records::perf_data::{DeferredChains, Feature, Form, Recording, kind};
use crate::resolve::address_space::AddressSpaces;
use crate::resolve::kernel::running_build_id;
use crate::resolve::symbols::files::{RecordedTime, hex};
use crate::sources::{self, Found, Sampled, Site, SourceOptions, is_this_machine};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What the records other than samples contain.
#[derive(Debug)]
pub(crate) struct Survey<'data> {
    /// Events and features.
    pub(crate) recording: &'data Recording,
    /// How messages call the recording.
    pub(crate) path: &'data Path,
    /// Processes, their mappings and jitdump markers.
    pub(crate) processes: Processes,
    /// The names of threads.
    pub(crate) threads: Threads,
    /// All records in chunks, for the workers that read samples.
    pub(crate) chunks: RecordChunks<'data>,
    /// User parts of call chains that were recorded after their samples.
    pub(crate) deferred: DeferredChains<'data>,
}

impl<'data> Survey<'data> {
    /// Collects information from the records of all streams.
    pub(crate) fn new(
        recording: &'data Recording,
        streams: &[WalkedRecords<'data>],
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

    /// Where the recording is, and when and on which machine it was recorded.
    pub(crate) fn site<'s>(&'s self, beside: Option<&'s Path>, samples: &'s dyn Fn() -> Sampled) -> Site<'s> {
        site(self.recording, self.path, beside, samples)
    }

    /// The addresses and times of samples.
    pub(crate) fn collect_sampled(&self) -> Sampled {
        collect_sampled(self.recording, &self.chunks)
    }
}

/// The address spaces, and the sources of JIT code.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The address spaces.
    pub(crate) spaces: AddressSpaces,
    /// The sources of JIT code, opened but not read.
    pub(crate) found: Found,
}

impl Memory {
    /// Looks for sources of JIT code.
    pub(crate) fn find(survey: &Survey<'_>, options: &SourceOptions, warnings: &mut Warnings) -> Self {
        let processes = &survey.processes;
        let samples = || survey.collect_sampled();
        let site = survey.site(recording_directory(survey.path), &samples);
        let found = sources::find_at(processes, options, &site, warnings);
        Self { spaces: AddressSpaces::new(processes), found }
    }
}

/// The recording's directory, which may also contain jitdumps and perf maps.
fn recording_directory(path: &Path) -> Option<&Path> {
    io::beside(path).filter(|_| io::is_there(path))
}

/// Where a recording is, and when and on which machine it was recorded.
pub(crate) fn site<'s>(
    recording: &'s Recording,
    path: &Path,
    beside: Option<&'s Path>,
    samples: &'s dyn Fn() -> Sampled,
) -> Site<'s> {
    let written = io::about(path).and_then(|data| data.modified().ok());
    // An archive is from another machine, so processes running here aren't the recorded ones, even if their IDs match.
    let proc = (!io::is_archive(path)).then_some(Path::new("/proc"));
    Site { beside, written, host: host(recording), proc, samples: Some(samples) }
}

/// True if the recorded kernel may be the running one, so that its build ID and the vDSO's can be read from the system.
pub(crate) fn kernel_runs_here(recording: &Recording, processes: &Processes) -> bool {
    if !is_this_machine(host(recording)) {
        return false;
    }
    let running = io::of_system(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
    processes.os_release.as_ref().is_none_or(|recorded| recorded == running.trim_ascii())
}

/// True if the recorded kernel is the running one, judging by host name and release, and by the kernel's build ID if it
/// was recorded.
pub(crate) fn is_recorded_kernel(recording: &Recording, processes: &Processes) -> bool {
    if host(recording).is_none() || processes.os_release.is_none() || !kernel_runs_here(recording, processes) {
        return false;
    }
    let Some(running) = running_build_id() else { return true };
    for mapping in processes.by_pid.values().flat_map(|process| &process.mappings) {
        if mapping.cpumode == CpuMode::Kernel
            && mapping.backing().is_kernel()
            && mapping.build_id.is_some_and(|recorded| hex(recorded) != hex(running))
        {
            return false;
        }
    }
    true
}

/// When a recording from this machine began and ended; `None` if it is from another machine.
pub(crate) fn recorded_here(survey: &Survey<'_>) -> Option<RecordedTime> {
    /// perf may take this long after the last event to read build IDs and cache files.
    const AFTERWARDS: Duration = Duration::from_secs(60);
    host(survey.recording).filter(|host| is_this_machine(Some(host)))?;
    let file = io::about(survey.path)?;
    let ended = file.modified().ok()?;
    let created = file.created().ok().filter(|created| *created <= ended && survey.recording.header.form != Form::Pipe);
    // If the recording was copied over an existing file, the creation time is too early.
    let is_plausible = |created: &SystemTime, duration: Duration| *created + duration + AFTERWARDS >= ended;
    if let Some(began) = created.filter(|created| is_plausible(created, process_events_duration(&survey.processes))) {
        return Some(RecordedTime { began, ended });
    }
    let (first, last) = survey.chunks.times(survey.recording);
    let duration = Duration::from_nanos(last.0.saturating_sub(first.0));
    let began = created.filter(|created| is_plausible(created, duration)).or(ended.checked_sub(duration))?;
    Some(RecordedTime { began, ended })
}

/// The time between the first and the last mapping, fork or other event of a process.
fn process_events_duration(processes: &Processes) -> Duration {
    let mappings = processes.by_pid.values().flat_map(|process| &process.mappings).map(|mapping| mapping.time);
    let moments = processes.moments.iter().map(|moment| moment.time);
    let extents = mappings.chain(moments).filter(|time| time.0 > 0).map(TimeExtent::of_moment);
    match extents.reduce(TimeExtent::join) {
        Some(extent) => Duration::from_nanos(extent.last.0.saturating_sub(extent.first.0)),
        None => Duration::ZERO,
    }
}

/// The host name of the recorded machine.
pub(crate) fn host(recording: &Recording) -> Option<&[u8]> {
    recording.features.get(&Feature::HOSTNAME)?.string(recording.header.endian).ok()
}

/// The addresses and times of samples.
pub(crate) fn collect_sampled(recording: &Recording, chunks: &RecordChunks<'_>) -> Sampled {
    let mut sampled = Sampled::default();
    for record in chunks.list().into_iter().flatten() {
        // Besides samples, these are the user parts of call chains.
        let Some(Ok(sample)) = recording.chain_sample(&record) else { continue };
        let is_sample = record.kind == kind::SAMPLE;
        let time = sample.time.filter(|time| time.is_valid());
        if is_sample {
            sampled.times = about::join_extents(sampled.times, time.map(TimeExtent::of_moment));
        }
        let Some((pid, _)) = sample.pid_tid else { continue };
        if is_sample
            && sample.cpumode == CpuMode::User
            && let Some(ip) = sample.ip
        {
            *sampled.at.entry(pid).or_default().entry(ip).or_default() += 1;
        }
        if let Some(time) = time {
            let first_times = sampled.first.entry(pid).or_default();
            for (_, frame) in sample.frames().filter(|(mode, _)| *mode == CpuMode::User) {
                let first = first_times.entry(frame.for_lookup()).or_insert(time);
                *first = time.min(*first);
            }
        }
    }
    sampled
}
