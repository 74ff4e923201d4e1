//! Matches files named after an unknown process ID, such as `perf-1.map` next to a recording of a container, to
//! processes by their contents. `evidence` decides.

use super::markers::inner_pid;
use super::progress::Search;
use super::scene::Scene;
use super::steps::{NamedPath, Step, UNKNOWN_PROCESS, not_matched, not_matched_remark, unasked_use_remark};
use super::{logs, stale};
use crate::error::Warning;
use crate::io::door::Door;
use crate::jit::account::{Account, Kind, SourceState};
use crate::jit::clock::{SLACK, format_seconds, is_monotonic};
use crate::jit::engine_logs::LogId;
use crate::jit::evidence::{Fit, Sign, Verdict, judge};
use crate::jit::found::Source;
use crate::jit::jitdump::{Body, JitDump};
use crate::jit::perf_map;
use crate::jit::site::{Sampled, wall_time};
use crate::jit::trust::{Named, file_id};
use crate::model::about::TimeExtent;
use crate::model::process::{Clock, FileId, SharedMemory};
use crate::model::{Addr, Nanos, Pid};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The maximum number of files to examine per directory, newest first: `/tmp` may contain the files of years.
const MAX_PER_DIRECTORY: usize = 32;

/// How long after the last sample a file may have been written: some files are written when the process exits.
const JUST_AFTER: Duration = Duration::from_secs(10);

/// What is known about a file that isn't named after a recorded process, to find the process that it belongs to.
#[derive(Debug)]
struct Orphan {
    path: PathBuf,
    kind: Kind,
    /// Who named the path.
    named: Named,
    /// True if the user named the file, or the directory that it is in.
    is_from_user: bool,
    /// The file's device and inode, to compare with those of markers.
    id: Option<FileId>,
    /// When the file was last modified.
    written: Option<SystemTime>,
    /// Address ranges of the file's code, sorted and disjoint.
    ranges: Vec<(u64, u64)>,
    /// The times of the file's first and last record; `None` if it has no times in nanoseconds.
    times: Option<(Nanos, Nanos)>,
}

/// A process that a file may belong to.
#[derive(Debug)]
struct PossibleOwner {
    pid: Pid,
    /// True if the process has no source yet.
    is_wanted: bool,
    /// Address ranges of executable mappings, sorted and disjoint.
    mapped: Vec<(u64, u64)>,
    /// Sampled addresses in memory for JIT code, and how often each was sampled.
    samples: Vec<(Addr, u64)>,
    /// When the process was forked or, if that wasn't recorded, when it first called exec.
    began: Option<Nanos>,
    ended: Option<Nanos>,
    /// The jitdumps that the process mapped as its markers.
    markers: Vec<FileId>,
    /// The process ID in the process's own PID namespace, if the process is still running.
    inner: Option<Pid>,
    /// JIT memory that the process may share with others.
    memory: Option<SharedMemory>,
}

/// When the recording's samples were taken, and how its clock relates to others.
#[derive(Debug, Clone, Copy)]
struct SampledTimes {
    clock: Clock,
    extent: TimeExtent,
}

/// Matches files that aren't named after a recorded process to processes without a source. What counts is how many of a
/// process's samples are in the code that a file lists.
pub(super) fn matched_files<'a>(search: &Search<'a>) -> Vec<Step<'a>> {
    let scene = &search.scene;
    let mut steps = Vec::new();
    let Some(samples) = scene.site.samples else { return steps };
    let without_source = search.processes_without_source();
    // `unassigned` has the files that the user passed without saying for which process.
    if without_source.is_empty() && search.unassigned.is_empty() {
        return steps;
    }
    let files = orphan_files(search, &mut steps);
    if files.is_empty() {
        return steps;
    }
    // Reading the samples takes long, so this comes after everything that may make it unnecessary.
    let sampled = samples();
    let Some(times) = sampled.times else { return steps };
    // Processes that have a source are compared, too: a file that may be theirs isn't certain to be another's.
    let mut processes: Vec<PossibleOwner> = Vec::new();
    for &pid in &scene.jit_processes {
        processes.extend(PossibleOwner::find(pid, without_source.contains(&pid), scene, &sampled));
    }
    let when = SampledTimes { clock: scene.processes.clock, extent: times };
    let fits = compare_all(&files, &processes, &when);
    for (index, file) in files.iter().enumerate() {
        steps.extend(plan_verdict(judge(index, &fits), file, scene));
    }
    steps
}

/// Lists the orphans: unused files that may belong to a process although they aren't named after it.
/// These are the files that the user passed without a process, and files that are named like sources in the directories
/// of [`Scene::orphan_directories`]. Adds steps that report the user's files that can't be opened.
fn orphan_files<'a>(search: &Search<'a>, steps: &mut Vec<Step<'a>>) -> Vec<Orphan> {
    let scene = &search.scene;
    let mut files = Vec::new();
    for (path, kind) in &search.unassigned {
        files.extend(read_orphan(NamedPath::new(path, Named::User), *kind, scene, steps));
    }
    // The same directory may be in the list twice, for example as the input's directory and as `/tmp`.
    let mut listed = BTreeSet::new();
    for NamedPath { path: directory, named } in scene.orphan_directories() {
        if !listed.insert(directory.canonicalize().unwrap_or_else(|_| directory.clone())) {
            continue;
        }
        for (path, kind) in list_by_name(scene.door(&directory, named), &directory) {
            // If the ID in the file's name is that of a recorded process with memory for JIT code, the file has been
            // tried already.
            let process = inner_pid(&path).and_then(|pid| scene.process(pid));
            let is_tried = process.is_some_and(|process| process.has_jit_memory);
            if !is_tried && !search.used_paths.contains(&path) {
                files.extend(read_orphan(NamedPath::new(path, named), kind, scene, steps));
            }
        }
    }
    files
}

/// Reads what is needed to match a file to a process. `None` if the file can't be opened or contains no code. If the
/// user named a file that can't be opened, adds a step that reports it. `scene` is what is known about the recording.
fn read_orphan<'a>(named_path: NamedPath, kind: Kind, scene: &Scene<'_>, steps: &mut Vec<Step<'a>>) -> Option<Orphan> {
    // Files that the user didn't name aren't reported if they can't be opened, for example because another user owns
    // them.
    let is_from_user = matches!(named_path.named, Named::User | Named::Directory);
    let opened = match scene.open(&named_path)? {
        Ok(opened) => opened,
        Err(error) => {
            if is_from_user {
                steps.push(Step::Refuse { path: named_path.path, kind, pid: UNKNOWN_PROCESS, error });
            }
            return None;
        }
    };
    let OrphanContents { ranges, times } = read_contents(&opened.bytes, kind)?;
    let (id, written) = (Some(file_id(&opened.about)), opened.about.modified().ok());
    Some(Orphan { path: named_path.path, kind, named: named_path.named, is_from_user, id, written, ranges, times })
}

/// Decides what to do with a file, given the verdict on which process it belongs to. `None` if there is nothing to do
/// or to report. This is so if the file fits no process and the user didn't name it, because it may belong to anybody,
/// or if it can't be opened again. `scene` is what is known about the recording.
fn plan_verdict<'a>(verdict: Verdict<'_>, file: &Orphan, scene: &Scene<'_>) -> Option<Step<'a>> {
    let Orphan { path, kind, named, .. } = file;
    match verdict {
        Verdict::Used(Fit { pid, sign, .. }) => {
            // The file was closed after the comparison, so it is opened again. If it has been deleted since, nothing is
            // done.
            let opened = scene.open(&NamedPath::new(path, *named))?.ok()?;
            // The sign is the evidence that decided.
            let remark = sign.map(|sign| unasked_use_remark(path, *pid, sign.reason()));
            let source = Source::new(path.clone(), *kind, *pid, opened);
            Some(Step::Use(Box::new(Source { inner: inner_pid(path), remark, ..source })))
        }
        Verdict::Offered(fit) => Some(offer(fit, file, scene)),
        Verdict::Refused(fit) => {
            let why = format!("from another run, because {}", fit.contradiction.as_deref().unwrap_or_default());
            Some(Step::NotMatched { account: not_matched(path.clone(), *kind, fit.pid, why), warning: None })
        }
        Verdict::Unmatched if file.is_from_user => {
            let why =
                "the file's addresses fit no process with unnamed JIT code; if you know the process, pass FILE@PID";
            let account = not_matched(path.clone(), *kind, UNKNOWN_PROCESS, why.to_owned());
            Some(Step::NotMatched { account, warning: Some(not_matched_warning(path, why)) })
        }
        Verdict::Unmatched => None,
    }
}

/// Tells the user how to use a file that fits a process, but not with certainty. `scene` is what is known about the
/// recording.
fn offer<'a>(fit: &Fit, file: &Orphan, scene: &Scene<'_>) -> Step<'a> {
    let (Orphan { path, kind, .. }, Fit { pid, covered, samples, .. }) = (file, fit);
    let named_pid = match inner_pid(path) {
        Some(inner) if scene.process(inner).is_none() => {
            format!("the file is from process {inner}, which is not in the recording; ")
        }
        _ => String::new(),
    };
    let why = format!(
        "{named_pid}the file covers {covered} of {samples} samples in JIT memory of process {pid}, but other files or \
         processes match as well, or only the addresses match. To use the file, pass {option} {}@{pid}",
        path.display(),
        option = kind.option()
    );
    let warning = if file.is_from_user { Some(not_matched_warning(path, &why)) } else { None };
    let remark = Some(not_matched_remark(path, &why));
    let account = Account { path: path.clone(), kind: *kind, pid: *pid, state: SourceState::Offered(why), remark };
    Step::NotMatched { account, warning }
}

/// The warning about a file that the user named and that isn't used.
fn not_matched_warning(path: &Path, why: &str) -> Warning {
    Warning::new(format!("not matched: {why}")).in_file(path, None)
}

impl PossibleOwner {
    /// Collects what is needed to match files to a process; `None` if the process wasn't sampled in JIT code.
    /// `is_wanted` is true if the process has no source yet, and `scene` is what is known about the recording.
    fn find(pid: Pid, is_wanted: bool, scene: &Scene<'_>, sampled: &Sampled) -> Option<Self> {
        let process = scene.process(pid)?;
        // All executable memory of the process, and the part of it that may hold JIT code. Only samples in that part
        // count.
        let (mut mapped, mut jit) = (Vec::new(), Vec::new());
        for mapping in process.mappings.iter().filter(|mapping| mapping.executable) {
            let range = (mapping.addr.0, mapping.addr.0.saturating_add(mapping.len));
            mapped.push(range);
            if mapping.kind().may_hold_jit_code() {
                jit.push(range);
            }
        }
        let (mapped, jit) = (merge_ranges(mapped), merge_ranges(jit));
        let samples = sampled.address_counts.get(&pid)?.iter().map(|(addr, count)| (*addr, *count));
        let samples: Vec<(Addr, u64)> = samples.filter(|(addr, _)| ranges_contain(&jit, addr.0)).collect();
        if samples.is_empty() {
            return None;
        }
        Some(Self {
            pid,
            is_wanted,
            mapped,
            samples,
            began: stale::process_start(process),
            ended: process.exited,
            markers: scene.markers.process_markers(pid).iter().filter_map(|marker| marker.file).collect(),
            inner: scene.live.get(&pid).and_then(|live| live.inner),
            memory: process.shared_jit_memory(),
        })
    }
}

/// The files in a directory that are named like jitdumps, perf maps or logs: the newest [`MAX_PER_DIRECTORY`], newest
/// first.
fn list_by_name(door: Door<'_>, directory: &Path) -> Vec<(PathBuf, Kind)> {
    let mut files: Vec<(SystemTime, PathBuf, Kind)> = Vec::new();
    for (name, about) in door.entries(directory, |name| kind_by_name(name).is_some()) {
        if let (Ok(written), Some(kind)) = (about.modified(), kind_by_name(&name)) {
            files.push((written, directory.join(name), kind));
        }
    }
    files.sort();
    files.into_iter().rev().take(MAX_PER_DIRECTORY).map(|(_, path, kind)| (path, kind)).collect()
}

/// True if this is the name of a jitdump, perf map or log. Such files belong in a recording's directory.
pub(crate) fn goes_with_recordings(name: &OsStr) -> bool {
    kind_by_name(name).is_some()
}

/// The kind of a file, judged by its name; `None` if it isn't named like a source.
fn kind_by_name(name: &OsStr) -> Option<Kind> {
    let name = name.to_str()?;
    let has_pid = || inner_pid(Path::new(name)).is_some();
    if name.starts_with("perf-") && name.ends_with(".map") && has_pid() {
        return Some(Kind::PerfMap);
    }
    if name.starts_with("jit-") && name.ends_with(".dump") && has_pid() {
        return Some(Kind::JitDump);
    }
    LogId::find_by_name(name).next().map(|(id, _)| Kind::Log(id))
}

/// The code in a file, and when it was recorded.
struct OrphanContents {
    /// Address ranges of the file's code, sorted and disjoint.
    ranges: Vec<(u64, u64)>,
    /// The times of the file's first and last record; `None` if it has no times in nanoseconds.
    times: Option<(Nanos, Nanos)>,
}

/// Reads the address ranges of the code in a file and, for a jitdump, the times of its first and last code. `None` if
/// it contains no code.
fn read_contents(bytes: &[u8], kind: Kind) -> Option<OrphanContents> {
    let (mut ranges, mut times) = (Vec::new(), None);
    match kind {
        Kind::PerfMap => {
            let (entries, _skipped) = perf_map::read(bytes);
            ranges.extend(entries.iter().map(|entry| (entry.start, entry.start.saturating_add(entry.size))));
        }
        Kind::Log(id) => ranges = logs::code_ranges(id, bytes)?,
        // An object that the user placed is never an orphan, so this is a jitdump.
        Kind::JitDump | Kind::PlacedElf => {
            let dump = JitDump::parse(bytes).ok()?;
            for record in dump.records().flatten() {
                let Body::Load(load) = record.body else { continue };
                ranges.push((load.addr, load.addr.saturating_add(load.size)));
                let (first, _) = times.unwrap_or((Nanos(record.timestamp), Nanos(0)));
                times = Some((first, Nanos(record.timestamp)));
            }
            // Times are of no use if they are those of another clock, or if the runtime writes none.
            times = times.filter(|(first, _)| !dump.header.has_arch_timestamps() && first.0 != 0);
        }
    }
    let ranges = merge_ranges(ranges);
    if ranges.is_empty() { None } else { Some(OrphanContents { ranges, times }) }
}

/// Compares every file with every process. `evidence::judge` decides on the basis of the results.
fn compare_all(files: &[Orphan], processes: &[PossibleOwner], when: &SampledTimes) -> Vec<Fit> {
    let mut fits = Vec::new();
    for (index, file) in files.iter().enumerate() {
        fits.extend(processes.iter().map(|process| compare(index, file, process, when)));
    }
    fits
}

/// Compares one file with one process: how many of the process's samples are in the file's code, and what else shows
/// that file and process belong together or don't. `index` is the file's index in the list that `evidence` judges.
fn compare(index: usize, file: &Orphan, process: &PossibleOwner, when: &SampledTimes) -> Fit {
    let (mut samples, mut covered) = (0, 0);
    for (addr, count) in &process.samples {
        samples += count;
        if ranges_contain(&file.ranges, addr.0) {
            covered += count;
        }
    }
    let mapped_ranges = file.ranges.iter().filter(|(start, _)| ranges_contain(&process.mapped, *start)).count();
    let (times_fit, contradicting_times) = match compare_times(file, process, when) {
        Some(Ok(())) => (true, None),
        Some(Err(why)) => (false, Some(why)),
        None => (false, None),
    };
    // Only the strongest evidence counts, so look for that first.
    let sign = if file.kind == Kind::JitDump && file.id.is_some_and(|id| process.markers.contains(&id)) {
        Some(Sign::Inode)
    } else if times_fit {
        Some(Sign::Times)
    } else if file.is_from_user {
        Some(Sign::Asked)
    } else if was_written_during_recording(file, when) {
        Some(Sign::Written)
    } else {
        None
    };
    Fit {
        file: index,
        kind: file.kind,
        pid: process.pid,
        memory: process.memory,
        is_wanted: process.is_wanted,
        covered,
        samples,
        // At least half of the file's code is at addresses that the process has mapped.
        is_mapped: mapped_ranges * 2 >= file.ranges.len(),
        sign,
        contradiction: contradicting_times.or_else(|| find_contradiction(file, process, when)),
    }
}

/// Explains why a file can't belong to a process, judged by the process ID in its name and by when it was written (the
/// times of its records are compared elsewhere). `None` if nothing contradicts, or if the times needed are unknown.
fn find_contradiction(file: &Orphan, process: &PossibleOwner, when: &SampledTimes) -> Option<String> {
    if let (Some(in_name), Some(inner)) = (inner_pid(&file.path), process.inner)
        && in_name != inner
    {
        return Some(format!(
            "the process is still running and has PID {inner} in its container, but the file is named after PID {in_name}"
        ));
    }
    let began = wall_time(&when.clock, process.began?)?;
    let is_older = stale::is_written_before(file.written?, began);
    is_older.then(|| "the file was last written before the process began".to_owned())
}

/// Tells whether the times of a jitdump's records fit the process; the error says why they don't. `None` if that can't
/// be determined, because the file has no usable times or the recording uses another clock than jitdumps.
fn compare_times(file: &Orphan, process: &PossibleOwner, when: &SampledTimes) -> Option<Result<(), String>> {
    if !is_monotonic(&when.clock) {
        return None;
    }
    let (first, last) = file.times?;
    let [from, to] = [first, last].map(format_seconds);
    let end = process.ended.unwrap_or(when.extent.last);
    if first.0 > end.0.saturating_add(SLACK) {
        return Some(Err(format!(
            "the code in the file was loaded between {from} and {to}, but the process was last seen at {}",
            format_seconds(end)
        )));
    }
    match process.began {
        Some(began) if first.0.saturating_add(SLACK) < began.0 => Some(Err(format!(
            "the code in the file was loaded between {from} and {to}, but the process began at {}",
            format_seconds(began)
        ))),
        Some(_) => Some(Ok(())),
        // The process began before the recording, at an unknown time, and its jitdump may be as old. The jitdump fits
        // if its last code was loaded after the first sample and before the process ended.
        None if last >= when.extent.first && last.0 <= end.0.saturating_add(SLACK) => Some(Ok(())),
        None => None,
    }
}

/// True if the file was last written while samples were taken, or within [`JUST_AFTER`] of the last one.
fn was_written_during_recording(file: &Orphan, when: &SampledTimes) -> bool {
    let (first, last) = (wall_time(&when.clock, when.extent.first), wall_time(&when.clock, when.extent.last));
    match (first, last, file.written) {
        (Some(first), Some(last), Some(written)) => (first..=last + JUST_AFTER).contains(&written),
        _ => false,
    }
}

/// Sorts ranges, drops empty ones, and merges those that overlap.
fn merge_ranges(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.retain(|(start, end)| start < end);
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (start, end) in ranges {
        match merged.last_mut() {
            Some((_, last_end)) if start < *last_end => *last_end = end.max(*last_end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

fn ranges_contain(ranges: &[(u64, u64)], addr: u64) -> bool {
    let started = ranges.partition_point(|(start, _)| *start <= addr);
    ranges[..started].last().is_some_and(|(_, end)| addr < *end)
}

#[cfg(test)]
mod tests;
