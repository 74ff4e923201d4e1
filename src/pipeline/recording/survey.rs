//! The first look at a recording: who ran, what was mapped where, and where the records can be cut into chunks.

use super::streams::{RecordChunks, WalkedRecords};
use crate::error::{Warning, Warnings};
use crate::io;
use crate::model::about::{self, TimeExtent};
use crate::model::process::{CpuMode, Processes};
use crate::model::threads::Threads;
use crate::records::perf_data;
use crate::records::perf_data::{Feature, Recording, kind};
use crate::resolve::address_space::AddressSpaces;
use crate::sources::{self, Found, Sampled, Site, SourceOptions, is_this_machine};
use std::path::Path;

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
        let add = |record: &_| survey.add(recording, record);
        let chunks = RecordChunks::new(recording.header.endian, streams, add);
        if let Some(damage) = &chunks.damage {
            let message = format!("what follows cannot be read: {damage}");
            warnings.push(Warning::new(message).in_file(path, None));
        }
        let (processes, threads, skipped) = survey.finish(recording);
        skipped.into_iter().for_each(|skipped| skipped.report(path, warnings));
        Self { recording, path, processes, threads, chunks }
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

/// The name of the recorded machine.
pub(crate) fn host(recording: &Recording) -> Option<&[u8]> {
    recording.features.get(&Feature::HOSTNAME)?.string(recording.header.endian).ok()
}

/// The addresses and times of samples.
pub(crate) fn sampled(recording: &Recording, chunks: &RecordChunks<'_>) -> Sampled {
    let mut sampled = Sampled::default();
    for record in chunks.list().into_iter().flatten().filter(|record| record.kind == kind::SAMPLE) {
        let Ok(sample) = recording.sample(&record) else { continue };
        sampled.times = about::joined(sampled.times, sample.time.map(TimeExtent::at));
        if let (Some((pid, _)), Some(ip), CpuMode::User) = (sample.pid_tid, sample.ip, sample.cpumode) {
            *sampled.at.entry(pid).or_default().entry(ip).or_default() += 1;
        }
        if let (Some((pid, _)), Some(time)) = (sample.pid_tid, sample.time) {
            let first = sampled.first.entry(pid).or_default();
            for (_, frame) in sample.frames().filter(|(mode, _)| *mode == CpuMode::User) {
                let seen = first.entry(frame.for_lookup()).or_insert(time);
                *seen = time.min(*seen);
            }
        }
    }
    sampled
}
