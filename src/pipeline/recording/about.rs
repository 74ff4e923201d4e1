//! Collects the facts about a recording that a profile has: machine, command, processes and their mappings.

use super::options::RecordingOptions;
use super::resolution::Resolution;
use super::samples::Samples;
use crate::formats::perf_data::{Feature, FeatureSection, Recording};
use crate::model::Pid;
use crate::model::about::{About, MappedRange, Module, ProcessLife};
use crate::model::frame_counts::FrameCounts;
use crate::model::mapping_kind;
use crate::model::process::{CpuMode, Mapping, Process};
use crate::symbolize::dso::{Dso, DsoKind};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

/// Collects the facts about a recording. Modules are only included if addresses or lines are kept, or if the options
/// ask for them.
pub(super) fn collect_facts(
    resolution: &Resolution<'_>,
    samples: &Samples,
    counts: FrameCounts,
    options: &RecordingOptions,
) -> About {
    let survey = resolution.survey;
    let recording = survey.recording;
    let text = |feature| feature_of(recording, feature)?.string(recording.header.endian).ok();
    let cpus = feature_of(recording, Feature::NRCPUS);
    let with_modules = options.keep_modules || options.keep_addr || options.symbols.lines;
    About {
        command: command(recording),
        host: text(Feature::HOSTNAME).map(<[u8]>::to_vec),
        arch: text(Feature::ARCH).map(<[u8]>::to_vec),
        // perf.data doesn't state the operating system, but perf only exists for Linux.
        os: Some(b"Linux".to_vec()),
        os_release: survey.processes.os_release.clone(),
        cpus: cpus.and_then(|section| section.online_cpus(recording.header.endian).ok()),
        // `reference` is one moment on two clocks: wall-clock time and the recording's own. Their difference is the
        // wall-clock time at which the recording's clock, that of its samples, was 0.
        epoch: survey.processes.clock.reference.map(|(wall, own)| i128::from(wall.0) - i128::from(own.0)),
        sampled: samples.sampled,
        lost: survey.processes.lost,
        frames: counts,
        modules: if with_modules { modules(resolution) } else { BTreeMap::new() },
        processes: survey.processes.by_pid.iter().map(|(pid, process)| (*pid, life(process))).collect(),
        moments: survey.processes.moments.clone(),
        ..About::default()
    }
}

fn feature_of(recording: &Recording, feature: Feature) -> Option<&FeatureSection> {
    recording.features.get(&feature)
}

fn command(recording: &Recording) -> Vec<Vec<u8>> {
    let words = feature_of(recording, Feature::CMDLINE).and_then(|line| line.strings(recording.header.endian).ok());
    words.unwrap_or_default().into_iter().map(<[u8]>::to_vec).collect()
}

fn life(process: &Process) -> ProcessLife {
    let (parent, started) = process.forked.unzip();
    ProcessLife { parent, started, ended: process.exited }
}

/// The modules of a recording, by the name that frames have as their module: files with executable mappings, the vDSO
/// and the kernel.
fn modules(resolution: &Resolution<'_>) -> BTreeMap<Vec<u8>, Module> {
    let mut modules: BTreeMap<Vec<u8>, Module> = BTreeMap::new();
    for (&pid, process) in &resolution.survey.processes.by_pid {
        for mapping in process.mappings.iter().filter(|mapping| mapping.executable) {
            let is_kernel = mapping.cpumode == CpuMode::Kernel;
            // Memory that no file backs, such as `//anon`, doesn't count as a module.
            if !is_kernel && Dso::kind_of_user_path(&mapping.path) == DsoKind::Anonymous {
                continue;
            }
            // The kernel's mapping is called `[kernel.kallsyms]_text`, but frames only have the part in brackets.
            let name = if is_kernel { mapping_kind::split_reference_symbol(&mapping.path).0 } else { &mapping.path };
            let module = modules.entry(name.to_vec()).or_default();
            module.build_id.add(mapping.build_id);
            module.is_kernel |= is_kernel;
            module.mapped.push(range(pid, mapping));
        }
    }
    for (id, image) in resolution.images.opened() {
        let dso = resolution.spaces.dsos().get(id);
        // The image may be a copy of the file in another directory. A stripped copy has another hash, so only use one
        // with the recorded path.
        let is_its_file = dso.build_id.is_some() && image.path().as_os_str().as_bytes().ends_with(&dso.path);
        // If several versions of the file were mapped, `build_id` is empty. The hash of one version would be wrong for
        // the others.
        if let Some(module) = modules.get_mut(&dso.path)
            && is_its_file
            && module.build_id.into_option() == dso.build_id
        {
            module.htl_hash.add(Some(image.htl_hash()));
        }
    }
    modules
}

fn range(pid: Pid, mapping: &Mapping) -> MappedRange {
    let Mapping { time, addr, len, pgoff, .. } = *mapping;
    MappedRange { pid, time, addr, len, file_offset: pgoff }
}
