//! Matches files named after an unknown process ID, such as `perf-1.map` next to a recording of a container, to
//! processes by their contents. `evidence` decides.

use super::{Finder, Source, inner_pid, logs, not_matched, stale, used_unasked};
use crate::error::Warning;
use crate::io::door::Door;
use crate::io::is_directory;
use crate::model::about::TimeExtent;
use crate::model::process::{Clock, FileId, Mapping, SharedMemory};
use crate::model::{Addr, Nanos, Pid};
use crate::records::jit_logs::LogId;
use crate::records::jitdump::{Body, JitDump};
use crate::records::perf_map;
use crate::sources::account::{Account, Kind, SourceState};
use crate::sources::clock::{SLACK, is_monotonic, format_seconds};
use crate::sources::evidence::{Fit, Sign, Verdict, judge};
use crate::sources::options::SourceOptions;
use crate::sources::site::{Sampled, wall_time};
use crate::sources::trust::{Named, file_id};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The maximum number of files to examine per directory, newest first: `/tmp` may contain those of years.
const MOST: usize = 32;

/// A file written at its process's exit may be this much newer than the last sample.
const JUST_AFTER: Duration = Duration::from_secs(10);

/// What is needed to match a file.
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
    /// True if it has no source yet.
    is_wanted: bool,
    /// Executable mappings, sorted and disjoint.
    mapped: Vec<(u64, u64)>,
    /// Sampled addresses in memory for JIT code, and how often each was sampled.
    samples: Vec<(Addr, u64)>,
    began: Option<Nanos>,
    ended: Option<Nanos>,
    markers: Vec<FileId>,
    /// The process ID in its own namespace, if it is still running.
    inner: Option<Pid>,
    /// JIT memory that it may share with other processes.
    memory: Option<SharedMemory>,
}

/// When the recording's samples were taken.
#[derive(Debug, Clone, Copy)]
struct SampledTimes {
    clock: Clock,
    sampled: TimeExtent,
}

impl Finder<'_> {
    /// Matches files to processes without a source.
    pub(super) fn orphans(&mut self) {
        let Some(samples) = self.site.samples else { return };
        let without = self.without_sources();
        if without.is_empty() && self.nobodys.is_empty() {
            return;
        }
        let mut files = self.orphan_files();
        if files.is_empty() {
            return;
        }
        let sampled = samples();
        let processes: Vec<Candidate> = self
            .jit_processes
            .iter()
            .filter_map(|&pid| Some(Candidate { is_wanted: without.contains(&pid), ..self.candidate(pid, &sampled)? }))
            .collect();
        let Some(times) = sampled.times else { return };
        let when = SampledTimes { clock: self.processes.clock, sampled: times };
        // Files in public directories are only worth mentioning if they fit.
        let fits = fits(&files, &processes, &when);
        let verdicts: Vec<_> = (0..files.len()).map(|file| judge(file, &fits)).collect();
        for (verdict, file) in verdicts.into_iter().zip(files.drain(..)) {
            self.carry_out(verdict, file);
        }
    }

    fn candidate(&self, pid: Pid, sampled: &Sampled) -> Option<Candidate> {
        let process = self.processes.by_pid.get(&pid)?;
        let executable = process.mappings.iter().filter(|mapping| mapping.executable);
        let range = |mapping: &Mapping| (mapping.addr.0, mapping.addr.0.saturating_add(mapping.len));
        let mapped = disjoint(executable.clone().map(range).collect());
        let jit = disjoint(executable.filter(|mapping| mapping.backing().may_hold_jit_code()).map(range).collect());
        let samples = sampled.at.get(&pid).into_iter().flatten().map(|(addr, count)| (*addr, *count));
        let samples: Vec<_> = samples.filter(|(addr, _)| holds(&jit, addr.0)).collect();
        (!samples.is_empty()).then(|| Candidate {
            pid,
            is_wanted: false,
            mapped,
            samples,
            began: stale::began(process),
            ended: process.exited,
            markers: self.markers.of(pid).iter().filter_map(|marker| marker.file).collect(),
            inner: self.found.live.get(&pid).and_then(|live| live.inner),
            memory: process.shared_jit_memory(),
        })
    }

    /// Files that haven't been used yet: those that the user named, and those with a usual name in the user's
    /// directories, the input's directory and `/tmp`.
    fn orphan_files(&mut self) -> Vec<Orphan> {
        let mut files = Vec::new();
        for (path, kind) in std::mem::take(&mut self.nobodys) {
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
            for (path, kind) in usual_names(self.door(&directory, named), &directory) {
                // A file with the ID of a recorded process has been tried already.
                let process = inner_pid(&path).and_then(|pid| self.processes.by_pid.get(&pid));
                let is_known = process.is_some_and(|process| process.has_jit_memory);
                if !is_known && !self.seen.contains(&path) {
                    files.extend(self.orphan(&path, kind, named, asked));
                }
            }
        }
        files
    }

    fn orphan(&mut self, path: &Path, kind: Kind, named: Named, asked: bool) -> Option<Orphan> {
        let opened = match self.open(path, named)? {
            Ok(opened) => opened,
            // Nobody asked for this file, so it isn't reported if it can't be opened, for instance because it belongs
            // to another user.
            Err(error) => {
                if asked {
                    self.refused(path, kind, Pid(-1), error);
                }
                return None;
            }
        };
        let (written, id) = (opened.about.modified().ok(), Some(file_id(&opened.about)));
        let (ranges, times) = contents(&opened.bytes, kind)?;
        Some(Orphan { path: path.to_owned(), kind, named, asked, id, written, ranges, times })
    }

    fn carry_out(&mut self, verdict: Verdict<'_>, file: Orphan) {
        let Orphan { path, kind, named, .. } = file;
        let option = kind.option();
        match verdict {
            Verdict::Used(Fit { pid, sign, .. }) => {
                let Some(Ok(opened)) = self.open(&path, named) else { return };
                let remark = sign.map(|sign| used_unasked(&path, *pid, sign.reason()));
                self.seen.insert(path.clone());
                let inner = inner_pid(&path);
                self.add(Source { inner, remark, ..Source::new(path, kind, *pid, opened) });
            }
            Verdict::Offered(Fit { pid, covered, samples, .. }) => {
                let number = inner_pid(&path).filter(|number| !self.processes.by_pid.contains_key(number));
                let number = number.map(|number| format!("is of process {number}, which is not in the recording; "));
                let why = format!(
                    "{}{covered} of {samples} samples of process {pid} in JIT memory are in its code, but there is no second \
                     sign that it belongs to this run, or it fits several processes; hint: use it with {option} {}@{pid}",
                    number.unwrap_or_default(),
                    path.display()
                );
                // Files that the user named get a warning, too.
                if file.asked {
                    self.warnings.push(Warning::new(format!("not matched: {why}")).in_file(&path, None));
                }
                let remark = Some(not_matched(&path, &why));
                self.found.failed.push(Account { path, kind, pid: *pid, state: SourceState::Offered(why), remark });
            }
            Verdict::Refused(fit) => {
                let why = format!("of another run: {}", fit.against.as_deref().unwrap_or_default());
                self.not_matched(&path, kind, fit.pid, why);
            }
            Verdict::Unmatched if file.asked => {
                let why = "its code is not where any process without names was sampled; pass FILE@PID if it is known";
                self.not_matched(&path, kind, Pid(-1), why.to_owned());
                self.warnings.push(Warning::new(format!("not matched: {why}")).in_file(&path, None));
            }
            Verdict::Unmatched => {}
        }
    }
}

/// The jitdumps, perf maps and logs in a directory, going by their names, newest first.
fn usual_names(door: Door<'_>, directory: &Path) -> Vec<(PathBuf, Kind)> {
    let entries = door.entries(directory, |name| kind_by_name(name).is_some()).into_iter();
    let files = entries.filter_map(|(name, about)| {
        let (written, kind) = (about.modified().ok()?, kind_by_name(&name)?);
        Some((written, directory.join(name), kind))
    });
    let mut files: Vec<(SystemTime, PathBuf, Kind)> = files.collect();
    files.sort();
    files.into_iter().rev().take(MOST).map(|(_, path, kind)| (path, kind)).collect()
}

/// True if the file name is that of a jitdump, a perf map, or a log that belongs to a recording.
pub(crate) fn goes_with_recordings(name: &OsStr) -> bool {
    kind_by_name(name).is_some()
}

fn kind_by_name(name: &OsStr) -> Option<Kind> {
    let name = name.to_str()?;
    let has_number = || inner_pid(Path::new(name)).is_some();
    match LogId::named(name).next() {
        _ if name.starts_with("perf-") && name.ends_with(".map") && has_number() => Some(Kind::PerfMap),
        _ if name.starts_with("jit-") && name.ends_with(".dump") && has_number() => Some(Kind::JitDump),
        named => named.map(|(id, _)| Kind::Log(id)),
    }
}

type OrphanContents = (Vec<(u64, u64)>, Option<(Nanos, Nanos)>);

/// The address ranges of a file's code and the times of its first and last record; `None` if it contains no code.
fn contents(bytes: &[u8], kind: Kind) -> Option<OrphanContents> {
    let (mut ranges, mut times) = (Vec::new(), None);
    match kind {
        Kind::PerfMap => {
            let entries = perf_map::read(bytes).0;
            ranges.extend(entries.iter().map(|entry| (entry.start, entry.start.saturating_add(entry.size))));
        }
        Kind::Log(id) => ranges.extend(logs::ranges(id, bytes)?),
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
    let ranges = disjoint(ranges);
    (!ranges.is_empty()).then_some((ranges, times))
}

/// Compares every file with every process.
fn fits(files: &[Orphan], processes: &[Candidate], when: &SampledTimes) -> Vec<Fit> {
    let pairs = files.iter().enumerate().flat_map(|file| processes.iter().map(move |process| (file, process)));
    pairs.map(|((at, file), process)| fit(at, file, process, when)).collect()
}

fn fit(at: usize, file: &Orphan, process: &Candidate, when: &SampledTimes) -> Fit {
    let samples = process.samples.iter().map(|(_, count)| count).sum();
    let covered = process.samples.iter().filter(|(addr, _)| holds(&file.ranges, addr.0)).map(|(_, count)| count).sum();
    let mapped = file.ranges.iter().filter(|(start, _)| holds(&process.mapped, *start)).count();
    let timed = times(file, process, when);
    let signs = [
        (Sign::Inode, file.kind == Kind::JitDump && file.id.is_some_and(|id| process.markers.contains(&id))),
        (Sign::Times, timed == Some(Ok(()))),
        (Sign::Asked, file.asked),
        (Sign::Written, was_written_then(file, when)),
    ];
    Fit {
        file: at,
        kind: file.kind,
        pid: process.pid,
        memory: process.memory,
        is_wanted: process.is_wanted,
        covered,
        samples,
        is_mapped: mapped * 2 >= file.ranges.len(),
        sign: signs.into_iter().find(|(_, holds)| *holds).map(|(sign, _)| sign),
        against: timed.and_then(Result::err).or_else(|| against(file, process, when)),
    }
}

/// Other evidence that a file doesn't belong to a process; `None` if there is none.
fn against(file: &Orphan, process: &Candidate, when: &SampledTimes) -> Option<String> {
    let number = inner_pid(&file.path);
    if let (Some(number), Some(own)) = (number, process.inner.filter(|own| Some(*own) != number)) {
        return Some(format!("the process, which is still running, has the ID {own} in its container, not {number}"));
    }
    let began = process.began.and_then(|began| wall_time(&when.clock, began))?;
    let is_older = file.written.is_some_and(|written| stale::is_before(written, began));
    is_older.then(|| "it was last written before the process began".to_owned())
}

/// Whether a jitdump's times fit the process (the error says why not); `None` if that can't be determined.
fn times(file: &Orphan, process: &Candidate, when: &SampledTimes) -> Option<Result<(), String>> {
    let (first, last) = file.times.filter(|_| is_monotonic(&when.clock))?;
    let against = |what: &str, at: Nanos| {
        Some(Err(format!("its records are of {} to {}, {what} {}", format_seconds(first), format_seconds(last), format_seconds(at))))
    };
    let end = process.ended.unwrap_or(when.sampled.last);
    if first.0 > end.0.saturating_add(SLACK) {
        return against("but the process was last seen at", end);
    }
    match process.began {
        Some(began) if first.0.saturating_add(SLACK) < began.0 => against("but the process began at", began),
        Some(_) => Some(Ok(())),
        // The process started before the recording, but loaded code during it.
        None if last >= when.sampled.first && last.0 <= end.0.saturating_add(SLACK) => Some(Ok(())),
        None => None,
    }
}

/// True if the file was last written while samples were taken, or shortly after.
fn was_written_then(file: &Orphan, when: &SampledTimes) -> bool {
    let wall = |time| wall_time(&when.clock, time);
    let (Some(first), Some(last), Some(written)) = (wall(when.sampled.first), wall(when.sampled.last), file.written)
    else {
        return false;
    };
    (first..=last + JUST_AFTER).contains(&written)
}

/// Sorts ranges and merges those that overlap.
fn disjoint(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
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

fn holds(ranges: &[(u64, u64)], addr: u64) -> bool {
    let behind = ranges.partition_point(|(start, _)| *start <= addr);
    ranges[..behind].last().is_some_and(|(_, end)| addr < *end)
}

#[cfg(test)]
mod tests;
