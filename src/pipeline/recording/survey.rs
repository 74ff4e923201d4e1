//! The first look at a recording: who ran, what was mapped where, and where the records can be cut into chunks.

use super::streams::{RecordChunks, WalkedRecords};
use crate::error::{Warning, Warnings};
use crate::io;
use crate::model::Nanos;
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

/// The data of the records beside the samples.
#[derive(Debug)]
pub(crate) struct Survey<'data> {
    /// Events and features.
    pub(crate) recording: &'data Recording,
    /// The name of the recording in messages.
    pub(crate) path: &'data Path,
    /// Processes, their mappings and markers.
    pub(crate) processes: Processes,
    /// The names of threads.
    pub(crate) threads: Threads,
    /// All records, for the threads that read samples.
    pub(crate) chunks: RecordChunks<'data>,
    /// The user's part of call chains that samples lack.
    pub(crate) deferred: DeferredChains<'data>,
}

impl<'data> Survey<'data> {
    /// Takes what the records of all streams give.
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
            let message = format!("what follows cannot be read: {damage}");
            warnings.push(Warning::new(message).in_file(path, None));
        }
        let (processes, threads, skipped) = survey.finish(recording);
        skipped.into_iter().for_each(|skipped| skipped.report(path, warnings));
        deferred.settle(recording, chunks.list().into_iter().flatten(), path, warnings);
        Self { recording, path, processes, threads, chunks, deferred }
    }

    /// The place of the recording, and the time and machine of recording.
    pub(crate) fn site<'s>(&'s self, beside: Option<&'s Path>, samples: &'s dyn Fn() -> Sampled) -> Site<'s> {
        site(self.recording, self.path, beside, samples)
    }

    /// The addresses and times of samples.
    pub(crate) fn sampled(&self) -> Sampled {
        sampled(self.recording, &self.chunks)
    }
}

/// The mappings, and the files that list JIT code.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The mappings.
    pub(crate) spaces: AddressSpaces,
    /// Dumps and maps, opened but not read.
    pub(crate) found: Found,
}

impl Memory {
    /// Looks for dumps and maps.
    pub(crate) fn find(survey: &Survey<'_>, options: &SourceOptions, warnings: &mut Warnings) -> Self {
        let processes = &survey.processes;
        let samples = || survey.sampled();
        let site = survey.site(beside(survey.path), &samples);
        let found = sources::find_at(processes, options, &site, warnings);
        Self { spaces: AddressSpaces::new(processes), found }
    }
}

/// The directory that a recording is in, where dumps and maps may stand, too.
fn beside(path: &Path) -> Option<&Path> {
    io::beside(path).filter(|_| io::is_there(path))
}

/// The place of a recording, and the time and machine of recording.
pub(crate) fn site<'s>(
    recording: &'s Recording,
    path: &Path,
    beside: Option<&'s Path>,
    samples: &'s dyn Fn() -> Sampled,
) -> Site<'s> {
    let written = io::about(path).and_then(|data| data.modified().ok());
    // Processes that run here are others than those of an archive, whatever their numbers.
    let proc = (!io::is_archive(path)).then_some(Path::new("/proc"));
    Site { beside, written, host: host(recording), proc, samples: Some(samples) }
}

/// True if the recorded kernel can be the one that runs here: then its build ID and its vdso's can be requested.
pub(crate) fn kernel_runs_here(recording: &Recording, processes: &Processes) -> bool {
    let running = io::of_system(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
    let is_release = |release: &Vec<u8>| release == running.trim_ascii();
    is_this_machine(host(recording)) && processes.os_release.as_ref().is_none_or(is_release)
}

/// True if the recorded kernel is the one that runs here, as far as a recording can show it: host and release, and the
/// kernel's build ID, if that was recorded.
pub(crate) fn is_recorded_kernel(recording: &Recording, processes: &Processes) -> bool {
    if host(recording).is_none() || processes.os_release.is_none() || !kernel_runs_here(recording, processes) {
        return false;
    }
    let mappings = processes.by_pid.values().flat_map(|process| &process.mappings);
    let kernel = mappings.filter(|mapping| mapping.cpumode == CpuMode::Kernel && mapping.backing().is_kernel());
    let mut recorded = kernel.filter_map(|mapping| mapping.build_id);
    let running = running_build_id();
    recorded.all(|id| running.is_none_or(|running| hex(running) == hex(id)))
}

/// When a recording that was made on this machine began and ended. `None` for one of another machine.
pub(crate) fn recorded_here(survey: &Survey<'_>) -> Option<RecordedTime> {
    /// What perf does after the last event: it reads build IDs, and caches files.
    const AFTERWARDS: Duration = Duration::from_secs(60);
    host(survey.recording).filter(|host| is_this_machine(Some(host)))?;
    let about = io::about(survey.path)?;
    let ended = about.modified().ok()?;
    let created =
        about.created().ok().filter(|created| *created <= ended && survey.recording.header.form != Form::Pipe);
    let mappings = survey.processes.by_pid.values().flat_map(|process| &process.mappings).map(|mapping| mapping.time);
    let moments = survey.processes.moments.iter().map(|moment| moment.time);
    let events = mappings.chain(moments).filter(|time| time.0 > 0).map(TimeExtent::at);
    let lasted = |first: Nanos, last: Nanos| Duration::from_nanos(last.0.saturating_sub(first.0));
    let seen = events.reduce(TimeExtent::with).map(|seen| lasted(seen.first, seen.last)).unwrap_or_default();
    // A file that was copied over another one is older than the recording.
    let is_plausible = |created: &SystemTime, lasted: Duration| *created + lasted + AFTERWARDS >= ended;
    if let Some(began) = created.filter(|created| is_plausible(created, seen)) {
        return Some(RecordedTime { began, ended });
    }
    let (first, last) = survey.chunks.times(survey.recording);
    let lasted = lasted(first, last);
    let began = created.filter(|created| is_plausible(created, lasted)).or(ended.checked_sub(lasted))?;
    Some(RecordedTime { began, ended })
}

/// The name of the recorded machine.
pub(crate) fn host(recording: &Recording) -> Option<&[u8]> {
    recording.features.get(&Feature::HOSTNAME)?.string(recording.header.endian).ok()
}

/// The addresses and times of samples.
pub(crate) fn sampled(recording: &Recording, chunks: &RecordChunks<'_>) -> Sampled {
    let mut sampled = Sampled::default();
    for record in chunks.list().into_iter().flatten() {
        let Some(Ok(sample)) = recording.chain_sample(&record) else { continue };
        let is_sample = record.kind == kind::SAMPLE;
        let time = sample.time.filter(|time| is_sample && time.is_valid());
        sampled.times = about::joined(sampled.times, time.map(TimeExtent::at));
        if let (true, Some((pid, _)), Some(ip), CpuMode::User) = (is_sample, sample.pid_tid, sample.ip, sample.cpumode)
        {
            *sampled.at.entry(pid).or_default().entry(ip).or_default() += 1;
        }
        if let (Some((pid, _)), Some(time)) = (sample.pid_tid, sample.time.filter(|time| time.is_valid())) {
            let first = sampled.first.entry(pid).or_default();
            for (_, frame) in sample.frames().filter(|(mode, _)| *mode == CpuMode::User) {
                let seen = first.entry(frame.for_lookup()).or_insert(time);
                *seen = time.min(*seen);
            }
        }
    }
    sampled
}
