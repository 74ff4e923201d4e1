//! Matches files named after an unknown process ID, such as `perf-1.map` next to a recording of a container, to
//! processes by their contents. `evidence` decides.

use super::{Finder, Source, inner_pid, logs, not_matched_remark, stale, unasked_use_remark};
use crate::error::Warning;
use crate::io::door::Door;
use crate::io::is_directory;
use crate::model::about::TimeExtent;
use crate::model::process::{Clock, FileId, SharedMemory};
use crate::model::{Addr, Nanos, Pid};
use crate::records::jit_logs::LogId;
use crate::records::jitdump::{Body, JitDump};
use crate::records::perf_map;
use crate::sources::account::{Account, Kind, SourceState};
use crate::sources::clock::{SLACK, format_seconds, is_monotonic};
use crate::sources::evidence::{Fit, Sign, Verdict, judge};
use crate::sources::options::SourceOptions;
use crate::sources::site::{Sampled, wall_time};
use crate::sources::trust::{Named, file_id};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The maximum number of files to examine per directory, newest first: `/tmp` may contain the files of years.
const MAX_PER_DIRECTORY: usize = 32;

/// How much newer than the last sample a file may be: it may have been written when its process exited.
const JUST_AFTER: Duration = Duration::from_secs(10);

/// What matching needs to know about a file that isn't named after a recorded process.
#[derive(Debug)]
struct Orphan {
    path: PathBuf,
    kind: Kind,
    named: Named,
    /// True if the user named the file or its directory.
    asked: bool,
    id: Option<FileId>,
    written: Option<SystemTime>,
    /// Address ranges of its code, sorted and disjoint.
    ranges: Vec<(u64, u64)>,
    /// The times of its first and last record, if it has times in nanoseconds.
    times: Option<(Nanos, Nanos)>,
}

/// A process that a file may belong to.
#[derive(Debug)]
struct Candidate {
    pid: Pid,
    /// True if the process has no source yet.
    is_wanted: bool,
    /// Address ranges of executable mappings, sorted and disjoint.
    mapped: Vec<(u64, u64)>,
    /// Sampled addresses in memory for JIT code, and how often each was sampled.
    samples: Vec<(Addr, u64)>,
    began: Option<Nanos>,
    ended: Option<Nanos>,
    markers: Vec<FileId>,
    /// The process ID in the process's own PID namespace, if the process is still running.
    inner: Option<Pid>,
    /// JIT memory that it may share with other processes.
    memory: Option<SharedMemory>,
}

/// When the recording's samples were taken, and how its clock relates to others.
#[derive(Debug, Clone, Copy)]
struct SampledTimes {
    clock: Clock,
    sampled: TimeExtent,
}

impl Finder<'_> {
    /// Matches files that aren't named after a recorded process to processes without a source.
    pub(super) fn match_orphans(&mut self) {
        let Some(samples) = self.site.samples else { return };
        let without_source = self.processes_without_source();
        if without_source.is_empty() && self.unassigned.is_empty() {
            return;
        }
        let files = self.orphan_files();
        if files.is_empty() {
            return;
        }
        let sampled = samples();
        let Some(times) = sampled.times else { return };
        let mut processes: Vec<Candidate> = Vec::new();
        for &pid in self.jit_processes {
            processes.extend(self.candidate(pid, without_source.contains(&pid), &sampled));
        }
        let when = SampledTimes { clock: self.processes.clock, sampled: times };
        let fits = compare_all(&files, &processes, &when);
        let verdicts: Vec<_> = (0..files.len()).map(|file| judge(file, &fits)).collect();
        for (verdict, file) in verdicts.into_iter().zip(files) {
            self.apply_verdict(verdict, file);
        }
    }

    /// Collects what matching needs to know about a process; `None` if it wasn't sampled in JIT memory.
    fn candidate(&self, pid: Pid, is_wanted: bool, sampled: &Sampled) -> Option<Candidate> {
        let process = self.processes.by_pid.get(&pid)?;
        let (mut mapped, mut jit) = (Vec::new(), Vec::new());
        for mapping in process.mappings.iter().filter(|mapping| mapping.executable) {
            let range = (mapping.addr.0, mapping.addr.0.saturating_add(mapping.len));
            mapped.push(range);
            if mapping.backing().may_hold_jit_code() {
                jit.push(range);
            }
        }
        let (mapped, jit) = (merge_ranges(mapped), merge_ranges(jit));
        let samples = sampled.at.get(&pid)?.iter().map(|(addr, count)| (*addr, *count));
        let samples: Vec<(Addr, u64)> = samples.filter(|(addr, _)| ranges_contain(&jit, addr.0)).collect();
        if samples.is_empty() {
            return None;
        }
        Some(Candidate {
            pid,
            is_wanted,
            mapped,
            samples,
            began: stale::process_start(process),
            ended: process.exited,
            markers: self.markers.of_process(pid).iter().filter_map(|marker| marker.file).collect(),
            inner: self.found.live.get(&pid).and_then(|live| live.inner),
            memory: process.shared_jit_memory(),
        })
    }

    /// The files that haven't been used yet: those that the user named, and those that are named like sources in the
    /// user's directories, the input's directory and `/tmp`.
    fn orphan_files(&mut self) -> Vec<Orphan> {
        let mut files = Vec::new();
        for (path, kind) in std::mem::take(&mut self.unassigned) {
            files.extend(self.orphan(&path, kind, Named::User, true));
        }
        let mut directories: Vec<(PathBuf, Named, bool)> = Vec::new();
        let SourceOptions { jitdump, perf_map, jit_log, .. } = self.options;
        let given = jitdump.iter().chain(perf_map).chain(jit_log).filter(|given| is_directory(&given.path));
        directories.extend(given.map(|given| (given.path.clone(), Named::Directory, true)));
        directories.extend(self.site.beside.map(|path| (path.to_owned(), Named::Habit, false)));
        directories.push((PathBuf::from("/tmp"), Named::Habit, false));
        let mut looked_at = BTreeSet::new();
        for (directory, named, asked) in directories {
            let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
            if !looked_at.insert(directory.canonicalize().unwrap_or_else(|_| directory.clone())) {
                continue;
            }
            for (path, kind) in list_by_name(self.door(&directory, named), &directory) {
                // If the ID in the file's name is that of a recorded process, the file has been tried already.
                let process = inner_pid(&path).and_then(|pid| self.processes.by_pid.get(&pid));
                let is_tried = process.is_some_and(|process| process.has_jit_memory);
                if !is_tried && !self.used_paths.contains(&path) {
                    files.extend(self.orphan(&path, kind, named, asked));
                }
            }
        }
        files
    }

    fn orphan(&mut self, path: &Path, kind: Kind, named: Named, asked: bool) -> Option<Orphan> {
        let opened = match self.open(path, named)? {
            Ok(opened) => opened,
            // Nobody asked for this file, so it isn't reported if it can't be opened, for example because another user
            // owns it.
            Err(error) => {
                if asked {
                    self.report_refused(path, kind, Pid(-1), error);
                }
                return None;
            }
        };
        let OrphanContents { ranges, times } = read_contents(&opened.bytes, kind)?;
        Some(Orphan {
            path: path.to_owned(),
            kind,
            named,
            asked,
            id: Some(file_id(&opened.about)),
            written: opened.about.modified().ok(),
            ranges,
            times,
        })
    }

    fn apply_verdict(&mut self, verdict: Verdict<'_>, file: Orphan) {
        let Orphan { path, kind, named, .. } = file;
        let option = kind.option();
        match verdict {
            Verdict::Used(Fit { pid, sign, .. }) => {
                let Some(Ok(opened)) = self.open(&path, named) else { return };
                let remark = sign.map(|sign| unasked_use_remark(&path, *pid, sign.reason()));
                self.used_paths.insert(path.clone());
                let inner = inner_pid(&path);
                self.add(Source { inner, remark, ..Source::new(path, kind, *pid, opened) });
            }
            Verdict::Offered(Fit { pid, covered, samples, .. }) => {
                let named_pid = match inner_pid(&path) {
                    Some(inner) if !self.processes.by_pid.contains_key(&inner) => {
                        format!("it is from process {inner}, which is not in the recording; ")
                    }
                    _ => String::new(),
                };
                let why = format!(
                    "{named_pid}it covers {covered} of {samples} samples in JIT memory of process {pid}, but nothing else \
                     shows that it is from this run, or it matches several processes; to use it, pass {option} \
                     {}@{pid}",
                    path.display()
                );
                // For files that the user named, also warn.
                if file.asked {
                    self.warnings.push(Warning::new(format!("not matched: {why}")).in_file(&path, None));
                }
                let remark = Some(not_matched_remark(&path, &why));
                self.found.failed.push(Account { path, kind, pid: *pid, state: SourceState::Offered(why), remark });
            }
            Verdict::Refused(fit) => {
                let why = format!("from another run: {}", fit.against.as_deref().unwrap_or_default());
                self.report_not_matched(&path, kind, fit.pid, why);
            }
            Verdict::Unmatched if file.asked => {
                let why = "no unnamed process has samples in its code; pass FILE@PID if you know the process";
                self.report_not_matched(&path, kind, Pid(-1), why.to_owned());
                self.warnings.push(Warning::new(format!("not matched: {why}")).in_file(&path, None));
            }
            // Don't report files that fit no process: they may be anybody's.
            Verdict::Unmatched => {}
        }
    }
}

/// The files in a directory that are named like jitdumps, perf maps or logs, newest first.
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

/// True if a file with this name belongs in a recording's directory, because it is that of a jitdump, perf map or log.
pub(crate) fn goes_with_recordings(name: &OsStr) -> bool {
    kind_by_name(name).is_some()
}

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
    /// Address ranges of its code, sorted and disjoint.
    ranges: Vec<(u64, u64)>,
    /// The times of its first and last record, if it has times in nanoseconds.
    times: Option<(Nanos, Nanos)>,
}

/// Reads the code ranges and times of a file; `None` if it contains no code.
fn read_contents(bytes: &[u8], kind: Kind) -> Option<OrphanContents> {
    let (mut ranges, mut times) = (Vec::new(), None);
    match kind {
        Kind::PerfMap => {
            let entries = perf_map::read(bytes).0;
            ranges.extend(entries.iter().map(|entry| (entry.start, entry.start.saturating_add(entry.size))));
        }
        Kind::Log(id) => ranges = logs::code_ranges(id, bytes)?,
        Kind::JitDump | Kind::PlacedElf => {
            let dump = JitDump::parse(bytes).ok()?;
            for record in dump.records().flatten() {
                let Body::Load(load) = record.body else { continue };
                ranges.push((load.addr, load.addr.saturating_add(load.size)));
                let (first, _) = times.unwrap_or((Nanos(record.timestamp), Nanos(0)));
                times = Some((first, Nanos(record.timestamp)));
            }
            times = times.filter(|(first, _)| !dump.header.has_arch_timestamps() && first.0 != 0);
        }
    }
    let ranges = merge_ranges(ranges);
    if ranges.is_empty() { None } else { Some(OrphanContents { ranges, times }) }
}

/// Compares every file with every process, for `evidence::judge`.
fn compare_all(files: &[Orphan], processes: &[Candidate], when: &SampledTimes) -> Vec<Fit> {
    let mut fits = Vec::new();
    for (index, file) in files.iter().enumerate() {
        fits.extend(processes.iter().map(|process| compare(index, file, process, when)));
    }
    fits
}

/// Compares one file with one process. `index` is the file's index.
fn compare(index: usize, file: &Orphan, process: &Candidate, when: &SampledTimes) -> Fit {
    let (mut samples, mut covered) = (0, 0);
    for (addr, count) in &process.samples {
        samples += count;
        if ranges_contain(&file.ranges, addr.0) {
            covered += count;
        }
    }
    let mapped = file.ranges.iter().filter(|(start, _)| ranges_contain(&process.mapped, *start)).count();
    let (times_fit, contradiction) = match compare_times(file, process, when) {
        Some(Ok(())) => (true, None),
        Some(Err(why)) => (false, Some(why)),
        None => (false, None),
    };
    // The strongest evidence first.
    let sign = if file.kind == Kind::JitDump && file.id.is_some_and(|id| process.markers.contains(&id)) {
        Some(Sign::Inode)
    } else if times_fit {
        Some(Sign::Times)
    } else if file.asked {
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
        is_mapped: mapped * 2 >= file.ranges.len(),
        sign,
        against: contradiction.or_else(|| find_contradiction(file, process, when)),
    }
}

/// Evidence against a file belonging to a process, apart from the times of its records; `None` if there is none.
fn find_contradiction(file: &Orphan, process: &Candidate, when: &SampledTimes) -> Option<String> {
    if let (Some(in_name), Some(inner)) = (inner_pid(&file.path), process.inner)
        && in_name != inner
    {
        return Some(format!("the process is still running, and has PID {inner} in its container, not {in_name}"));
    }
    let began = wall_time(&when.clock, process.began?)?;
    let is_older = stale::is_written_before(file.written?, began);
    is_older.then(|| "it was last written before the process began".to_owned())
}

/// Whether the times of a jitdump's records fit the process; the error says why not. `None` if that can't be
/// determined.
fn compare_times(file: &Orphan, process: &Candidate, when: &SampledTimes) -> Option<Result<(), String>> {
    if !is_monotonic(&when.clock) {
        return None;
    }
    let (first, last) = file.times?;
    let records = format!("its records are from {} to {}", format_seconds(first), format_seconds(last));
    let end = process.ended.unwrap_or(when.sampled.last);
    if first.0 > end.0.saturating_add(SLACK) {
        return Some(Err(format!("{records}, but the process was last seen at {}", format_seconds(end))));
    }
    match process.began {
        Some(began) if first.0.saturating_add(SLACK) < began.0 => {
            Some(Err(format!("{records}, but the process began at {}", format_seconds(began))))
        }
        Some(_) => Some(Ok(())),
        // The marker isn't recorded: the process mapped it before the recording began, but loaded code during the
        // recording.
        None if last >= when.sampled.first && last.0 <= end.0.saturating_add(SLACK) => Some(Ok(())),
        None => None,
    }
}

/// True if the file was last written while samples were taken, or within [`JUST_AFTER`] of the last one.
fn was_written_during_recording(file: &Orphan, when: &SampledTimes) -> bool {
    let (first, last) = (wall_time(&when.clock, when.sampled.first), wall_time(&when.clock, when.sampled.last));
    match (first, last, file.written) {
        (Some(first), Some(last), Some(written)) => (first..=last + JUST_AFTER).contains(&written),
        _ => false,
    }
}

/// Sorts ranges and merges those that overlap.
fn merge_ranges(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.retain(|(start, end)| start < end);
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (start, end) in ranges {
        match merged.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
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
