//! The facts about a profile as a whole: who was recorded, where, when and how, and what was mapped meanwhile.
//!
//! Readers fill the fields that their format has; writers put it where theirs has room. Nothing in it decides what a
//! stack is called or weighs.

use super::frame_counts::FrameCounts;
use super::perf_command::{PerfCommand, simpleperf_program};
use super::process::{BuildId, Moment};
use super::units::{Addr, Nanos, Pid};
use crate::model::backing::{Backing, base_name};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::ops::Range;

/// The facts that a profile states about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The command line, word by word: the recorder's with the program's behind it, or the program's alone.
    pub command: Vec<Vec<u8>>,
    /// The machine's name.
    pub host: Option<Vec<u8>>,
    /// Its processor, as `uname -m` states it.
    pub arch: Option<Vec<u8>>,
    /// Its kernel, as `uname -r` states it.
    pub os_release: Option<Vec<u8>>,
    /// The number of processors that it had at work.
    pub cpus: Option<u32>,
    /// The time of the wall clock at time 0 of the profile's own clock: nanoseconds since 1970, to be added to times.
    pub epoch: Option<i128>,
    /// The time of samples, the profile's own clock: for those that count.
    pub sampled: Option<TimeExtent>,
    /// Samples that the recorder states were lost.
    pub lost: u64,
    /// Those of each machine, if the profile is of several and states it.
    pub lost_on: BTreeMap<Box<str>, u64>,
    /// Frames of the samples that count; none if nobody counted them.
    pub frames: FrameCounts,
    /// The files of the frames, by the name that frames have as their module.
    pub modules: BTreeMap<Vec<u8>, Module>,
    /// The processes.
    pub processes: BTreeMap<Pid, ProcessLife>,
    /// The note for a reader of the stacks: that they are an estimate.
    pub notes: Vec<String>,
    /// The other events, in the order of time.
    pub moments: Vec<Moment>,
    /// What a pprof profile states about its values, for the profile that is written.
    pub values: Option<ValueTypes>,
}

/// The values that each sample of a pprof profile has, and what the profile asks its viewers for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValueTypes {
    /// In the order of the file.
    pub types: Vec<SampleValue>,
    /// The name of the type that is shown first; empty: none is stated.
    pub default_type: String,
    /// Name and unit of what was counted between two samples.
    pub period_type: Option<(String, String)>,
    /// How much of it.
    pub period: i64,
    /// Regular expression: functions whose whole name matches are left out, with all that they called.
    pub drop_frames: String,
    /// Regular expression: functions whose whole name matches stay nevertheless.
    pub keep_frames: String,
}

/// One of the values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleValue {
    /// Its name.
    pub name: String,
    /// Its unit, as the file spells it.
    pub unit: String,
    /// The name of the event whose weights or numbers of samples it has; `None` if it belongs to no event.
    pub event: Option<String>,
    /// True if it has the numbers of samples.
    pub is_count: bool,
    /// The number of the event's units that one of the file's is.
    pub scale: u64,
}

impl ValueTypes {
    /// True if they are the values of all these events, of which there are some.
    pub fn are_of<'e>(&self, mut names: impl Iterator<Item = &'e str>) -> bool {
        let weighed = self.types.iter().filter(|value| !value.is_count);
        let events: FxHashSet<&str> = weighed.filter_map(|value| value.event.as_deref()).collect();
        !events.is_empty() && names.all(|name| events.contains(name))
    }

    /// Takes over what a profile read after this one states: the longest period.
    fn merge(&mut self, other: &Self) {
        if self.period_type == other.period_type {
            self.period = self.period.max(other.period);
        }
    }
}

/// From the first to the last of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeExtent {
    /// The first time.
    pub first: Nanos,
    /// The last time.
    pub last: Nanos,
}

/// A fact that several state, and may state differently: the value of all that state one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Agreed<T> {
    /// Nobody stated it.
    #[default]
    Unstated,
    /// All stated this.
    Same(T),
    /// Two stated different values.
    Several,
}

impl<T: PartialEq> Agreed<T> {
    /// Takes what one more states; `None` if nothing.
    pub fn add(&mut self, stated: Option<T>) {
        self.merge(stated.map_or(Self::Unstated, Self::Same));
    }

    /// Takes what others agreed on.
    pub fn merge(&mut self, other: Self) {
        match (&*self, &other) {
            (Self::Same(one), Self::Same(another)) if one != another => *self = Self::Several,
            (Self::Same(_), Self::Several) | (Self::Unstated, _) => *self = other,
            (Self::Same(_), Self::Same(_) | Self::Unstated) | (Self::Several, _) => {}
        }
    }

    /// The value, if all agree.
    pub fn into_option(self) -> Option<T> {
        match self {
            Self::Same(value) => Some(value),
            Self::Unstated | Self::Several => None,
        }
    }
}

/// A file, or what stands for one, whose code was mapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    /// The build ID of the file.
    pub build_id: Agreed<BuildId>,
    /// The same by OpenTelemetry's hash of both ends of the file
    /// ([`Image::htl_hash`](crate::resolve::symbols::image::Image::htl_hash)), if the file was here.
    pub htl_hash: Agreed<[u8; 16]>,
    /// True if it is the kernel or a part of it.
    pub is_kernel: bool,
    /// The mappings of its code, in the order of the profile.
    pub mapped: Vec<MappedRange>,
}

/// The mapping of a module's code in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedRange {
    /// The process; -1 for the kernel.
    pub pid: Pid,
    /// Since when; 0 if it was there before.
    pub time: Nanos,
    /// First address.
    pub addr: Addr,
    /// Length in bytes.
    pub len: u64,
    /// Offset in the file of the first byte.
    pub file_offset: u64,
}

/// A process from its start to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessLife {
    /// The parent, if the fork was seen.
    pub parent: Option<Pid>,
    /// When it was forked, if that was seen.
    pub started: Option<Nanos>,
    /// When it ended, if that was seen.
    pub ended: Option<Nanos>,
}

impl Module {
    /// Adds a mapping, of a profile that does not show whose it is.
    pub fn map(&mut self, name: &[u8], memory: Range<u64>, file_offset: u64) {
        self.is_kernel = Backing::of(name).is_kernel_object();
        let len = memory.end.saturating_sub(memory.start);
        if len > 0 {
            let (pid, addr) = (Pid(if self.is_kernel { -1 } else { 0 }), Addr(memory.start));
            self.mapped.push(MappedRange { pid, time: Nanos(0), addr, len, file_offset });
        }
    }
}

impl TimeExtent {
    /// That of one time.
    pub fn at(time: Nanos) -> Self {
        Self { first: time, last: time }
    }

    /// That of both.
    pub fn with(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// From the first to the last, in nanoseconds.
    pub fn duration(self) -> u64 {
        self.last.0.saturating_sub(self.first.0)
    }
}

/// The extent of both.
pub fn joined(one: Option<TimeExtent>, other: Option<TimeExtent>) -> Option<TimeExtent> {
    one.into_iter().chain(other).reduce(TimeExtent::with)
}

impl About {
    /// The program that was recorded, with its arguments: the command line without the recorder's own words. Empty if
    /// it is not known, or only said how long others were recorded (`perf record -a sleep 5`).
    pub fn program(&self) -> &[Vec<u8>] {
        if let Some(program) = simpleperf_program(&self.command) {
            return program;
        }
        match PerfCommand::parse(&self.command) {
            None => &self.command,
            Some(PerfCommand { records_others: true, .. }) => &[],
            Some(command) => command.program,
        }
    }

    /// The file of the program that was recorded, among the modules: the one that is called like it; else the first that
    /// the first of the processes mapped that are known to have mapped anything.
    pub fn program_module(&self) -> Option<&[u8]> {
        let base = |path: &[u8]| base_name(path).to_vec();
        let programs = || self.modules.iter().filter(|(_, module)| !module.is_kernel);
        let called = self.program().first().map(|path| base(path));
        let named = programs().find(|(path, _)| called.as_ref().is_some_and(|called| *called == base(path)));
        named.map(|(path, _)| &**path).or_else(|| self.first_mapped(|_, _| true))
    }

    /// A process and those that it was forked from, as far as that is known.
    pub fn lineage(&self, pid: Pid) -> impl Iterator<Item = Pid> {
        let parent = |pid: &Pid| self.processes.get(pid)?.parent.filter(|parent| parent != pid);
        // A damaged recording may have them in a circle.
        std::iter::successors(Some(pid), parent).take(self.processes.len().max(1))
    }

    /// The file of the program that a process runs: one that it mapped, or else one that it was forked from, the one
    /// that its thread is called after, or the first.
    pub fn executable(&self, pid: Pid, comm: &[u8]) -> Option<&[u8]> {
        /// The kernel cuts the names of threads there (`TASK_COMM_LEN`).
        const CUT: usize = 15;
        let is_called = |path: &[u8]| {
            let base = base_name(path);
            !comm.is_empty() && &base[..base.len().min(CUT)] == comm
        };
        let of = |pid: Pid| {
            let called = self.first_mapped(|path, range| range.pid == pid && is_called(path));
            called.or_else(|| self.first_mapped(|_, range| range.pid == pid))
        };
        self.lineage(pid).find_map(of)
    }

    /// The program or library of which the first such range was mapped.
    fn first_mapped(&self, counts: impl Fn(&[u8], &MappedRange) -> bool) -> Option<&[u8]> {
        let programs = self.modules.iter().filter(|(_, module)| !module.is_kernel);
        let first = |(path, module): (&'_ Vec<u8>, &'_ Module)| {
            let ranges = module.mapped.iter().filter(|range| counts(path, range));
            ranges.map(|range| place_in_time(&range)).min()
        };
        let mapped = programs.filter_map(|(path, module)| Some((first((path, module))?, &**path)));
        mapped.min().map(|(_, path)| path)
    }

    /// Adds samples that were lost, on this machine if it is known.
    pub fn add_lost(&mut self, lost: u64, host: Option<&str>) {
        add(&mut self.lost, lost);
        if let Some(host) = host {
            add(self.lost_on.entry(host.into()).or_default(), lost);
        }
    }

    /// Takes over what another profile, read after this one, contains: of single facts those that this one does not
    /// know.
    pub fn merge(&mut self, other: &Self) {
        if self.command.is_empty() {
            self.command.clone_from(&other.command);
        }
        self.host = self.host.take().or_else(|| other.host.clone());
        self.arch = self.arch.take().or_else(|| other.arch.clone());
        self.os_release = self.os_release.take().or_else(|| other.os_release.clone());
        self.cpus = self.cpus.or(other.cpus);
        self.epoch = self.epoch.or(other.epoch);
        match (&mut self.values, &other.values) {
            (Some(own), Some(other)) => own.merge(other),
            (own @ None, other) => own.clone_from(other),
            (Some(_), None) => {}
        }
        self.sampled = joined(self.sampled, other.sampled);
        add(&mut self.lost, other.lost);
        other.lost_on.iter().for_each(|(host, lost)| add(self.lost_on.entry(host.clone()).or_default(), *lost));
        self.frames += other.frames;
        for (name, module) in &other.modules {
            let of = self.modules.entry(name.clone()).or_default();
            of.build_id.merge(module.build_id);
            of.htl_hash.merge(module.htl_hash);
            of.is_kernel |= module.is_kernel;
            of.mapped.extend(&module.mapped);
        }
        self.notes.extend(other.notes.iter().cloned());
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

/// Programs map their own file before those that it needs, and below them.
fn place_in_time(range: &&MappedRange) -> (Pid, Nanos, Addr) {
    (range.pid, range.time, range.addr)
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
        let at = |time| Some(TimeExtent::at(Nanos(time)));
        let mut both = About { lost: 1, sampled: at(9), ..About::default() };
        let host = Some(b"h".to_vec());
        both.merge(&About { lost: 2, sampled: at(4), host: host.clone(), ..About::default() });
        assert_eq!((both.lost, both.host, both.sampled.unwrap().duration()), (3, host, 5));
    }

    #[test]
    fn only_what_all_state_alike_is_a_value() {
        let of = |stated: &[Option<u8>]| {
            let mut agreed = Agreed::default();
            stated.iter().for_each(|one| agreed.add(*one));
            agreed
        };
        assert_eq!(of(&[None, Some(1), None, Some(1)]), Agreed::Same(1));
        assert_eq!(of(&[Some(1), Some(2), Some(1), None]), Agreed::Several);
        assert_eq!((of(&[]).into_option(), of(&[Some(1)]).into_option()), (None, Some(1)));
        let mut one = of(&[Some(1)]);
        one.merge(Agreed::Several);
        assert_eq!(one.into_option(), None);
    }
}
