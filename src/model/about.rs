//! Facts about a profile as a whole: what was recorded, on which machine, when and how, and which modules were mapped.
//!
//! Readers fill in the fields that their format provides; writers output those that their format has room for. Nothing
//! here affects the names or weights of stacks.

use super::frame_counts::FrameCounts;
use super::perf_command::{PerfCommand, simpleperf_program};
use super::process::{BuildId, Moment};
use super::units::{Addr, Nanos, Pid};
use crate::model::mapping_kind::{MappingKind, base_name};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::ops::Range;

/// What is known about a profile as a whole. Fields that the input doesn't provide are empty, zero or `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The command line, word by word: either the recorder's (including the recorded program's) or only the program's.
    pub command: Vec<Vec<u8>>,
    /// The host name of the recorded machine.
    pub host: Option<Vec<u8>>,
    /// The machine's architecture, as `uname -m` prints it.
    pub arch: Option<Vec<u8>>,
    /// The machine's operating system, as `uname -s` prints it (`Linux`, `Darwin`), or `Windows`.
    pub os: Option<Vec<u8>>,
    /// The machine's kernel release, as `uname -r` prints it.
    pub os_release: Option<Vec<u8>>,
    /// The number of the machine's CPUs that were online.
    pub cpus: Option<u32>,
    /// The wall-clock time at time 0 of the profile's clock, in nanoseconds since 1970. Adding it to a sample's time
    /// gives a date.
    pub epoch: Option<i128>,
    /// The times of the first and last sample, on the profile's clock. Samples that were filtered out don't count.
    pub sampled: Option<TimeExtent>,
    /// How many samples were lost, according to the recorder.
    pub lost: u64,
    /// The number of lost samples of each host. Empty for a profile of a single machine, or if the input doesn't state
    /// losses per host.
    pub lost_on: BTreeMap<Box<str>, u64>,
    /// The number of samples whose labels the reader skipped, because the caller didn't ask for labels. If an output
    /// format can't store labels, a remark states this number.
    pub samples_without_labels: u64,
    /// Counts of frames with and without names, over all samples that weren't filtered out. All zero if the reader
    /// didn't count them.
    pub frames: FrameCounts,
    /// The modules that frames belong to. The key is the module's name as in
    /// [`Frame::module`](super::stacks::Frame::module).
    pub modules: BTreeMap<Vec<u8>, Module>,
    /// All known processes.
    pub processes: BTreeMap<Pid, ProcessLife>,
    /// Remarks to show along with the stacks, for instance that the stacks are an estimate.
    pub notes: Vec<String>,
    /// A sentence that says why stacks are truncated. `None` if none are, or if the reason is unknown.
    pub truncation: Option<String>,
    /// Events other than samples (renames, forks, exits, losses), by time.
    pub moments: Vec<Moment>,
    /// The value types of the pprof profile that was read, so that they can be written again; `None` for other inputs.
    pub values: Option<ValueTypes>,
}

/// The value types of a pprof profile, and its hints for viewers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValueTypes {
    /// The type of each value that a sample has, in the order of the file.
    pub types: Vec<SampleValue>,
    /// The name of the value type to show first; empty if the file doesn't state one.
    pub default_type: String,
    /// Type and unit of the event whose occurrences the sampling period counts, for example `cpu` and `nanoseconds`.
    pub period_type: Option<(String, String)>,
    /// The sampling period: the number of events between samples, in the unit of `period_type`.
    pub period: i64,
    /// Regular expression. Functions whose whole name matches are removed from stacks, along with everything they
    /// called.
    pub drop_frames: String,
    /// Regular expression: functions whose whole name matches are kept even if `drop_frames` matches.
    pub keep_frames: String,
    /// Free text about the profile.
    pub comments: Vec<String>,
    /// The URL of documentation about this kind of profile; empty if the file doesn't state one.
    pub doc_url: String,
    /// The unit of each sample label whose values are numbers; empty if it has none. All other labels are text.
    pub number_labels: BTreeMap<Box<str>, Box<str>>,
    /// The label that holds the time of each sample; `None` if the file has no such label.
    pub time_label: Option<TimeLabel>,
}

/// The label of a pprof profile's samples that holds their time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeLabel {
    /// The label's key, such as `end_timestamp_ns`.
    pub key: String,
    /// The unit as the file spells it; empty if it doesn't state one.
    pub unit: String,
    /// The number of nanoseconds in one unit of the file.
    pub scale: u64,
}

/// One value type of a pprof profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleValue {
    /// The type's name, such as `cpu` or `alloc_space`.
    pub name: String,
    /// The unit as the file spells it.
    pub unit: String,
    /// The profile's event for which this is the weight or the number of samples (see `is_count`); `None` if it is
    /// neither.
    pub event: Option<String>,
    /// True if the value is a sample count, false if it is a weight.
    pub is_count: bool,
    /// How many units of the event's weight one unit of the file is, for example 1,000 if the file counts microseconds
    /// and the event nanoseconds.
    pub scale: u64,
}

impl ValueTypes {
    /// True if each of these events has a value type for its weight, so that the value types can be written again.
    /// False if none of the value types is a weight.
    pub fn cover<'e>(&self, mut events: impl Iterator<Item = &'e str>) -> bool {
        let weights = self.types.iter().filter(|value| !value.is_count);
        let weighed: FxHashSet<&str> = weights.filter_map(|value| value.event.as_deref()).collect();
        !weighed.is_empty() && events.all(|event| weighed.contains(event))
    }

    /// Merges the value types of a profile that was read after this one. Comments of both are kept, and so is the
    /// longer period if both count the same event (`period_type`). A number label with different units in the two
    /// profiles gets no unit. The other profile's time label is taken if this one has none. All other fields keep their
    /// values.
    fn merge(&mut self, other: &Self) {
        let known: FxHashSet<&String> = self.comments.iter().collect();
        let new: Vec<String> = other.comments.iter().filter(|comment| !known.contains(comment)).cloned().collect();
        self.comments.extend(new);
        for (key, unit) in &other.number_labels {
            let merged = self.number_labels.entry(key.clone()).or_insert_with(|| unit.clone());
            if merged != unit {
                *merged = Box::default();
            }
        }
        if self.period_type == other.period_type {
            self.period = self.period.max(other.period);
        }
        if self.time_label.is_none() {
            self.time_label.clone_from(&other.time_label);
        }
    }
}

/// An interval of time, including both ends; for example, the one in which the samples of a profile were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeExtent {
    /// When the interval begins: for samples, the time of the first one.
    pub first: Nanos,
    /// When the interval ends: for samples, the time of the last one.
    pub last: Nanos,
}

/// A fact about one thing that is stated in several places, possibly differently: for example the build ID of a module,
/// in the records of all its mappings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Agreed<T> {
    /// The fact is stated nowhere.
    #[default]
    Unstated,
    /// The fact is stated at least once, and always with this value.
    Same(T),
    /// The fact is stated several times, with different values.
    Several,
}

impl<T: PartialEq> Agreed<T> {
    /// Adds what one more place states; `None` if it doesn't state the fact.
    pub fn add(&mut self, stated: Option<T>) {
        self.merge(stated.map_or(Self::Unstated, Self::Same));
    }

    /// Adds what several other places agree on.
    pub fn merge(&mut self, other: Self) {
        match (&*self, &other) {
            (Self::Same(one), Self::Same(another)) if one != another => *self = Self::Several,
            (Self::Same(_), Self::Several) | (Self::Unstated, _) => *self = other,
            // `other` adds nothing new, or the values differ already.
            (Self::Same(_), Self::Same(_) | Self::Unstated) | (Self::Several, _) => {}
        }
    }

    /// The value, if the fact is stated and always the same; otherwise `None`.
    pub fn into_option(self) -> Option<T> {
        match self {
            Self::Same(value) => Some(value),
            Self::Unstated | Self::Several => None,
        }
    }
}

/// A mapped file, or something else that contains code, such as the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    /// The build ID of the mapped file.
    pub build_id: Agreed<BuildId>,
    /// OpenTelemetry's hash of the beginning and end of the file
    /// ([`Image::htl_hash`](crate::symbolize::symbols::image::Image::htl_hash)); unstated if the file wasn't available.
    pub htl_hash: Agreed<[u8; 16]>,
    /// True for the kernel and its modules.
    pub is_kernel: bool,
    /// Mappings of the module's code, in the order in which the profile has them.
    pub mapped: Vec<MappedRange>,
}

/// One mapping of a module's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedRange {
    /// The process; -1 for the kernel.
    pub pid: Pid,
    /// When the code was mapped, on the profile's clock; 0 if before the recording began.
    pub time: Nanos,
    /// The first address of the mapping.
    pub addr: Addr,
    /// The mapping's length in bytes.
    pub len: u64,
    /// The file offset of the mapping's first byte.
    pub file_offset: u64,
}

/// A process's parent, start and end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessLife {
    /// The parent process, if the recording contains the fork.
    pub parent: Option<Pid>,
    /// When the process was forked, if the recording contains the fork.
    pub started: Option<Nanos>,
    /// When the process exited, if the recording contains the exit.
    pub ended: Option<Nanos>,
}

impl Module {
    /// Adds a mapping from a profile that doesn't say which process mapped the module. `name` is the module's name,
    /// which also shows whether it is the kernel.
    pub fn map(&mut self, name: &[u8], memory: Range<u64>, file_offset: u64) {
        self.is_kernel = MappingKind::from_path(name).is_kernel_object();
        let len = memory.end.saturating_sub(memory.start);
        if len > 0 {
            let (pid, addr) = (Pid(if self.is_kernel { -1 } else { 0 }), Addr(memory.start));
            self.mapped.push(MappedRange { pid, time: Nanos(0), addr, len, file_offset });
        }
    }
}

impl TimeExtent {
    /// The extent that contains a single time.
    pub fn from_moment(time: Nanos) -> Self {
        Self { first: time, last: time }
    }

    /// The smallest extent that contains both `self` and `other`.
    pub fn join(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// The duration in nanoseconds.
    pub fn duration(self) -> u64 {
        self.last.0.saturating_sub(self.first.0)
    }
}

/// The smallest extent that contains the given extents; `None` if neither is given.
pub fn join_extents(one: Option<TimeExtent>, other: Option<TimeExtent>) -> Option<TimeExtent> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.join(other)),
        (one, other) => one.or(other),
    }
}

impl About {
    /// The recorded program with its arguments: the command line without the recorder's own words. Empty if unknown, or
    /// if the program ran only to limit how long other processes were recorded (`perf record -a sleep 5`).
    pub fn program(&self) -> &[Vec<u8>] {
        if let Some(program) = simpleperf_program(&self.command) {
            return program;
        }
        match PerfCommand::parse(&self.command) {
            // Recorders other than perf and simpleperf store only the program's own command line.
            None => &self.command,
            Some(PerfCommand { records_others: true, .. }) => &[],
            Some(command) => command.program,
        }
    }

    /// The module of the recorded program: the one with the program's file name. If there is none, the first module
    /// that was mapped by the process with the lowest ID; `None` if nothing was mapped.
    pub fn program_module(&self) -> Option<&[u8]> {
        if let Some(program) = self.program().first() {
            let is_program = |path: &[u8], module: &Module| !module.is_kernel && base_name(path) == base_name(program);
            if let Some((path, _)) = self.modules.iter().find(|(path, module)| is_program(path, module)) {
                return Some(path);
            }
        }
        self.first_mapped(|_, _| true)
    }

    /// Returns the process, its parent, its grandparent and so on, as far as the recording contains the forks.
    pub fn lineage(&self, pid: Pid) -> impl Iterator<Item = Pid> {
        // In damaged recordings, a process may be its own ancestor.
        let most = self.processes.len().max(1);
        std::iter::successors(Some(pid), |pid| self.processes.get(pid)?.parent.filter(|parent| parent != pid))
            .take(most)
    }

    /// The module of the program that a process runs. `comm` is the name of the process's first thread, which the
    /// kernel names after the program's file. So this is the mapped file of that name, or else the first module that
    /// the process mapped. If the process mapped nothing, its nearest ancestor that mapped something decides. `None` if
    /// there is no such ancestor.
    pub fn executable(&self, pid: Pid, comm: &[u8]) -> Option<&[u8]> {
        /// The kernel truncates thread names to this many bytes (`TASK_COMM_LEN`).
        const LONGEST_COMM: usize = 15;
        for pid in self.lineage(pid) {
            if !comm.is_empty() {
                let is_named = |path: &[u8]| {
                    let name = base_name(path);
                    &name[..name.len().min(LONGEST_COMM)] == comm
                };
                if let Some(path) = self.first_mapped(|path, range| range.pid == pid && is_named(path)) {
                    return Some(path);
                }
            }
            if let Some(path) = self.first_mapped(|_, range| range.pid == pid) {
                return Some(path);
            }
        }
        None
    }

    /// The module of the first mapping that `is_match` accepts, given the module's name and the mapping. Ignores the
    /// kernel. Mappings are ordered by process ID, then by time, then by address.
    fn first_mapped(&self, is_match: impl Fn(&[u8], &MappedRange) -> bool) -> Option<&[u8]> {
        let modules = self.modules.iter().filter(|(_, module)| !module.is_kernel);
        let ranges = modules.flat_map(|(path, module)| module.mapped.iter().map(move |range| (path, range)));
        let matching = ranges.filter(|(path, range)| is_match(path, range));
        // A program is mapped before the libraries that it needs. If the times are equal, it is the one at the lowest
        // address.
        let (path, _) = matching.min_by_key(|(_, range)| (range.pid, range.time, range.addr))?;
        Some(path)
    }

    /// Adds lost samples to the total and, if their host is known, to the number of this host.
    pub fn add_lost(&mut self, lost: u64, host: Option<&str>) {
        add(&mut self.lost, lost);
        if let Some(host) = host {
            add(self.lost_on.entry(host.into()).or_default(), lost);
        }
    }

    /// Adds the facts of a profile that was read after this one. Lists and counts are added up. Of facts that can only
    /// have one value, this profile's value is kept if it has one.
    pub fn merge(&mut self, other: &Self) {
        if self.command.is_empty() {
            self.command.clone_from(&other.command);
        }
        self.host = self.host.take().or_else(|| other.host.clone());
        self.arch = self.arch.take().or_else(|| other.arch.clone());
        self.os = self.os.take().or_else(|| other.os.clone());
        self.os_release = self.os_release.take().or_else(|| other.os_release.clone());
        self.cpus = self.cpus.or(other.cpus);
        self.epoch = self.epoch.or(other.epoch);
        match (&mut self.values, &other.values) {
            (Some(values), Some(other)) => values.merge(other),
            (values @ None, other) => values.clone_from(other),
            (Some(_), None) => {}
        }
        self.sampled = join_extents(self.sampled, other.sampled);
        add(&mut self.lost, other.lost);
        add(&mut self.samples_without_labels, other.samples_without_labels);
        for (host, lost) in &other.lost_on {
            add(self.lost_on.entry(host.clone()).or_default(), *lost);
        }
        self.frames += other.frames;
        // Facts about a module on which the two profiles disagree (`Several`) then count as unknown.
        for (name, other) in &other.modules {
            let module = self.modules.entry(name.clone()).or_default();
            module.build_id.merge(other.build_id);
            module.htl_hash.merge(other.htl_hash);
            module.is_kernel |= other.is_kernel;
            module.mapped.extend(&other.mapped);
        }
        self.notes.extend(other.notes.iter().cloned());
        self.truncation = self.truncation.take().or_else(|| other.truncation.clone());
        self.moments.extend(other.moments.iter().cloned());
        self.moments.sort_by_key(|moment| moment.time);
        for (pid, process) in &other.processes {
            self.processes.entry(*pid).or_insert_with(|| process.clone());
        }
    }
}

fn add(sum: &mut u64, number: u64) {
    *sum = sum.saturating_add(number);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(command: &str) -> String {
        let command = command.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        let about = About { command, ..About::default() };
        let words: Vec<_> = about.program().iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        words.join(" ")
    }

    #[test]
    fn the_recorders_own_words_are_not_the_program() {
        assert_eq!(program("/usr/bin/perf record -k mono -F 999 -g -o x.data node -e 1"), "node -e 1");
        assert_eq!(program("perf record --call-graph dwarf,4096 -ge cpu-clock -- php x.php"), "php x.php");
        assert_eq!(program("perf record --call-graph=fp -F999 -e cycles ./a.out -g"), "./a.out -g");
        assert_eq!(program("perf record -g -p 77"), "");
        assert_eq!(program("perf record -F 99 -ag -- sleep 5"), "");
        assert_eq!(program("perf record --pid=7 sleep 5"), "");
        assert_eq!(program("perf record -eapt:x node -a"), "node -a");
        assert_eq!(program("simpleperf x"), "simpleperf x");
        assert_eq!(program("/data/simpleperf record -f 999 --call-graph fp -o x.data ./spin -g"), "./spin -g");
        assert_eq!(program("simpleperf record -g --app org.example --duration 10"), "");
        assert_eq!(program("simpleperf record -a --duration 10 sleep 5"), "");
    }

    #[test]
    fn the_program_s_own_file_is_the_one_called_like_it_or_the_first_that_was_mapped() {
        let range =
            |time, addr| MappedRange { pid: Pid(7), time: Nanos(time), addr: Addr(addr), len: 1, file_offset: 0 };
        let module = |time, addr| Module { mapped: vec![range(time, addr)], ..Module::default() };
        let modules = [(&b"/lib/libc.so.6"[..], module(5, 0x7000)), (b"/bin/python3.11", module(5, 0x5000))];
        let modules = modules.map(|(path, module)| (path.to_vec(), module)).into_iter().collect();
        let mut about = About { modules, ..About::default() };
        assert_eq!(about.program_module(), Some(&b"/bin/python3.11"[..]));
        about.command = vec![b"/opt/libc.so.6".to_vec()];
        assert_eq!(about.program_module(), Some(&b"/lib/libc.so.6"[..]));
    }

    #[test]
    fn facts_missing_in_one_profile_come_from_the_other() {
        let moment = |time| Some(TimeExtent::from_moment(Nanos(time)));
        let mut both = About { lost: 1, sampled: moment(9), ..About::default() };
        let host = Some(b"h".to_vec());
        both.merge(&About { lost: 2, sampled: moment(4), host: host.clone(), ..About::default() });
        assert_eq!((both.lost, both.host, both.sampled.unwrap().duration()), (3, host, 5));
    }

    #[test]
    fn only_what_all_state_alike_is_a_value() {
        let agree = |stated: &[Option<u8>]| {
            let mut agreed = Agreed::default();
            stated.iter().for_each(|one| agreed.add(*one));
            agreed
        };
        assert_eq!(agree(&[None, Some(1), None, Some(1)]), Agreed::Same(1));
        assert_eq!(agree(&[Some(1), Some(2), Some(1), None]), Agreed::Several);
        assert_eq!((agree(&[]).into_option(), agree(&[Some(1)]).into_option()), (None, Some(1)));
        let mut one = agree(&[Some(1)]);
        one.merge(Agreed::Several);
        assert_eq!(one.into_option(), None);
    }
}
