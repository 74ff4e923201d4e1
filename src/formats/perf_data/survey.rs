//! Collects what a recording's records, except samples, say about processes, threads, mappings and clocks.

use super::bpf::BpfSurvey;
use super::kind;
use super::namespaces::PidNamespaces;
use super::record::{Ksymbol, Mmap, Record, Task};
use super::sample_id::SampleId;
use super::walk::RawRecord;
use super::{Feature, Recording};
use crate::error::{Error, Skipped};
use crate::model::ancestry::Ancestry;
use crate::model::mapping_kind::{self, MappingKind};
use crate::model::process::{
    BuildId, CpuMode, KernelSymbol, Mapping, Marker, Moment, MomentKind, Process, Processes, TscConversion,
};
use crate::model::recorded::cgroup_labels;
use crate::model::recorded_symbols::RecordedSymbols;
use crate::model::threads::Threads;
use crate::model::{Nanos, Pid};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Collects what the records say about processes, threads and mappings, one record at a time. [`RecordSurvey::finish`]
/// sorts everything by time.
#[derive(Debug, Default)]
pub struct RecordSurvey {
    processes: Processes,
    threads: Threads,
    /// Each distinct name of a process or thread. `threads` gives each name a number, which is its index here.
    names: Vec<Arc<[u8]>>,
    /// The conversion between time-stamp counter and nanoseconds from the TIME_CONV record; `None` if there is no such
    /// record.
    tsc: Option<TscConversion>,
    namespaces: PidNamespaces,
    bpf: BpfSurvey,
    /// Number of lost records according to LOST records.
    lost_records: u64,
    /// Number of lost samples according to LOST_SAMPLES records. They count the same losses as LOST records, so the two
    /// must not be added up.
    lost_samples: u64,
    /// Build IDs by path, from HEADER_BUILD_ID records and the BUILD_ID feature.
    build_ids: FxHashMap<Vec<u8>, BuildId>,
    skipped: Skipped,
}

impl RecordSurvey {
    /// Adds the content of a record. Samples are ignored.
    pub fn add(&mut self, recording: &Recording, raw: &RawRecord<'_>) {
        if raw.kind == kind::SAMPLE {
            return;
        }
        let record = match Record::parse(raw) {
            Ok(record) => record,
            Err(error) => return self.skipped.add(error),
        };
        // A closure, so that the time is only looked up for the records that need it. 0 if the record has no time.
        let time = || recording.time(raw).unwrap_or_default();
        match record {
            Record::Mmap(mmap) => self.add_mapping(&mmap, time(), raw.offset),
            Record::Comm(comm) => {
                let time = time();
                let name_number = self.threads.add_name(time, comm.tid, comm.name);
                // Most names occur many times, so all records with the same name share one copy of it.
                let name = self.shared_name(name_number, comm.name);
                let kind = match comm.exec {
                    true => MomentKind::Executed(name.clone()),
                    false => MomentKind::Named(name.clone()),
                };
                self.add_moment(Moment { time, pid: comm.pid, tid: comm.tid, kind });
                let process = self.process(comm.pid);
                if comm.exec {
                    process.execs.push(time);
                }
                if comm.tid.0 == comm.pid.0 {
                    // The name of the main thread is that of the process. An empty list gets room for one name only,
                    // because most processes have just one and there may be many processes.
                    process.comms.reserve_exact(usize::from(process.comms.is_empty()));
                    process.comms.push((time, name));
                }
            }
            Record::Fork(task) => self.add_fork(task),
            // A process ends when its main thread does.
            Record::Exit(task) if task.tid.0 == task.pid.0 => {
                self.add_moment(Moment { time: task.time, pid: task.pid, tid: task.tid, kind: MomentKind::Exited });
                self.process(task.pid).exited = Some(task.time);
            }
            Record::Ksymbol(symbol) => self.add_symbol(&symbol, time()),
            Record::BpfEvent(event) => self.bpf.add_event(time(), event),
            Record::Namespaces(record) => self.namespaces.add(&record),
            Record::Lost(records) => {
                self.lost_records = self.lost_records.saturating_add(records);
                self.add_loss(records, recording.sample_id(raw));
            }
            Record::LostSamples(samples) => self.lost_samples = self.lost_samples.saturating_add(samples),
            Record::Cgroup(cgroup) => {
                let labels = cgroup_labels(&String::from_utf8_lossy(cgroup.path));
                self.processes.cgroups.insert(cgroup.id, labels);
                self.processes.cgroup_paths.insert(cgroup.id, cgroup.path.into());
            }
            Record::TimeConv(tsc) => self.tsc = Some(tsc),
            Record::BuildId(record) => {
                self.build_ids.extend(record.build_id.map(|id| (record.path.to_vec(), id)));
            }
            _ => {}
        }
    }

    /// Returns the shared copy of a name, because most names occur many times. `number` is the number that `threads`
    /// has given the name; a new name has the next number, so it is added at the end of `names`.
    fn shared_name(&mut self, number: usize, name: &[u8]) -> Arc<[u8]> {
        if let Some(known) = self.names.get(number) {
            return known.clone();
        }
        let name: Arc<[u8]> = name.into();
        self.names.push(name.clone());
        name
    }

    fn process(&mut self, pid: Pid) -> &mut Process {
        self.processes.by_pid.entry(pid).or_default()
    }

    /// Adds a KSYMBOL record to the list of kernel symbols. `self.bpf` gets the index that the symbol is about to have
    /// there. After the last record, [`BpfSurvey::finish`] sets the symbol's field `bpf`, because the BPF program that
    /// the symbol belongs to may be reported later.
    fn add_symbol(&mut self, symbol: &Ksymbol<'_>, time: Nanos) {
        self.bpf.add_symbol(time, self.processes.kernel_symbols.len());
        self.processes.kernel_symbols.push(KernelSymbol {
            time,
            addr: symbol.addr,
            len: symbol.len.into(),
            name: symbol.name.to_vec(),
            unregistered: symbol.unregister,
            bpf: None,
        });
    }

    /// Adds an event in the life of a process. It is ignored if its time is 0: perf synthesizes records without a time
    /// for what happened before the recording.
    fn add_moment(&mut self, moment: Moment) {
        if moment.time > Nanos(0) {
            self.processes.moments.push(moment);
        }
    }

    /// Notes when and in which thread records were lost, if the LOST record has this in its trailer.
    fn add_loss(&mut self, records: u64, id: Option<SampleId>) {
        if let Some(SampleId { time: Some(time), pid_tid: Some((pid, tid)), .. }) = id {
            self.add_moment(Moment { time, pid, tid, kind: MomentKind::Lost(records) });
        }
    }

    /// Adds a FORK record. A new thread inherits the name of the thread that started it. Only a new process is also
    /// added to `processes`.
    fn add_fork(&mut self, task: Task) {
        self.threads.add_fork(task.time, task.tid, task.parent_tid);
        self.namespaces.add_fork(task);
        // A new thread of the same process: everything below is about new processes.
        if task.pid == task.parent {
            return;
        }
        let (pid, tid, kind) = (task.parent, task.parent_tid, MomentKind::Forked(task.pid));
        self.add_moment(Moment { time: task.time, pid, tid, kind });
        let process = self.process(task.pid);
        // If a process with this ID exited before, this is another process that got the same ID. It starts with new
        // memory, as after an exec.
        if process.exited.is_some_and(|exited| exited <= task.time) {
            process.execs.push(task.time);
        }
        process.forked.get_or_insert((task.parent, task.time));
    }

    /// Adds an MMAP record at `offset` of the file. A mapping of a jitdump also becomes a [`Marker`], by which the
    /// jitdump can be found.
    fn add_mapping(&mut self, mmap: &Mmap<'_>, time: Nanos, offset: u64) {
        let executable = mmap.executable();
        if let Some(pid_in_name) = jitdump_pid(mmap.path) {
            let path = PathBuf::from(OsStr::from_bytes(mmap.path));
            let Mmap { pid, tid, addr, file, .. } = *mmap;
            let marker = Marker { pid, tid, path, time, addr, file, offset };
            self.processes.markers.push(marker);
            // A runtime in a container only knows the process's ID inside of the container, and names the file by it.
            if pid_in_name != mmap.pid {
                self.process(mmap.pid).inner_pid.get_or_insert(pid_in_name);
            }
        }
        let process = self.process(mmap.pid);
        process.has_jit_memory |= executable && MappingKind::from_path(mmap.path).may_hold_jit_code();
        process.mappings.push(Mapping {
            time,
            addr: mmap.addr,
            len: mmap.len,
            pgoff: mmap.pgoff,
            path: mmap.path.to_vec(),
            build_id: mmap.build_id,
            file: mmap.file,
            executable,
            cpumode: mmap.cpumode,
            offset,
        });
    }

    /// Where the first executable mapping of a file starts: the lowest offset in the file or, for a kernel module, the
    /// lowest address. `None` if the file wasn't mapped as code.
    fn first_mapping(&self, path: &[u8]) -> Option<u64> {
        let mappings = self.processes.by_pid.values().flat_map(|process| &process.mappings);
        let of_file = mappings.filter(|mapping| mapping.executable && mapping.path == path);
        let starts = of_file.map(|mapping| match mapping.cpumode {
            CpuMode::Kernel => mapping.addr.0,
            _ => mapping.pgoff,
        });
        starts.min()
    }

    /// Returns the processes and threads that the records describe, with all lists sorted by time, and counts of what
    /// could not be read: records, BPF tables and symbol tables, in this order.
    pub fn finish(mut self, recording: &Recording) -> (Processes, Threads, [Skipped; 3]) {
        let endian = recording.header.endian;
        if let Some(feature) = recording.features.get(&Feature::BUILD_ID) {
            for record in feature.build_ids(endian) {
                self.build_ids.extend(record.build_id.map(|id| (record.path.to_vec(), id)));
            }
        }
        // Add the process IDs inside of PID namespaces that were found by counting forks. If the name of a jitdump
        // (`jit-PID.dump`) has already told the ID of a process, that ID is kept, because it is more reliable.
        for (pid, inner) in std::mem::take(&mut self.namespaces).inner_pids() {
            self.process(pid).inner_pid.get_or_insert(inner);
        }
        self.break_cycles_of_parents();
        for process in self.processes.by_pid.values_mut() {
            process.mappings.sort_by_key(|mapping| mapping.time);
            process.execs.sort_unstable();
            process.comms.sort_by_key(|(time, _)| *time);
            for mapping in process.mappings.iter_mut().filter(|mapping| mapping.build_id.is_none()) {
                mapping.build_id = self.build_ids.get(build_id_path(mapping)).copied();
            }
        }
        self.processes.moments.sort_by_key(|moment| moment.time);
        self.processes.markers.sort_by_key(|marker| marker.time);
        let mut skipped_files = Skipped::new("symbol table");
        let symbol_files = recording.symbol_files(&mut skipped_files);
        self.processes.recorded_symbols = RecordedSymbols::new(symbol_files, |path| self.first_mapping(path));
        // Finish `bpf` before the kernel symbols are sorted, because `bpf` refers to them by their indices in file
        // order.
        let (bpf_functions, skipped_tables) = self.bpf.finish(recording, &mut self.processes.kernel_symbols);
        self.processes.bpf_functions = bpf_functions;
        self.processes.kernel_symbols.sort_by_key(|symbol| symbol.time);
        self.processes.clock = recording.clock(self.tsc);
        self.processes.machine = recording.machine();
        self.processes.is_recording = true;
        let release = recording.features.get(&Feature::OSRELEASE);
        self.processes.os_release = release.and_then(|feature| feature.string(endian).ok()).map(<[u8]>::to_vec);
        let command = recording.features.get(&Feature::CMDLINE).and_then(|words| words.strings(endian).ok());
        self.processes.command = command.unwrap_or_default().into_iter().map(<[u8]>::to_vec).collect();
        // LOST and LOST_SAMPLES records count the same losses, so take the larger count.
        self.processes.lost = self.lost_records.max(self.lost_samples);
        self.threads.settle(); // sorts the names of threads by time
        (self.processes, self.threads, [self.skipped, skipped_tables, skipped_files])
    }

    /// In a damaged recording, a process may be its own ancestor, or have too many ancestors. Such a process loses its
    /// parent, with a warning, so that every walk from a process to its ancestors ends.
    fn break_cycles_of_parents(&mut self) {
        // `cut_off` lists these processes.
        for &pid in Ancestry::new(&self.processes).cut_off() {
            // All of them have a parent, so the -1 is never used.
            let parent = self.process(pid).forked.take().map_or(Pid(-1), |(parent, _)| parent);
            let message = format!(
                "process {pid} is recorded as forked from process {parent}, but its chain of parent processes is a \
                 loop or too long"
            );
            self.skipped.add(Error::new(message));
        }
    }
}

/// The path under which the recording lists the build ID of a mapping's file. For the kernel, this is the path without
/// the symbol that perf appends (`[kernel.kallsyms]_text`).
fn build_id_path(mapping: &Mapping) -> &[u8] {
    match mapping.cpumode {
        CpuMode::Kernel | CpuMode::GuestKernel => mapping_kind::split_reference_symbol(&mapping.path).0,
        _ => &mapping.path,
    }
}

/// The process ID in a jitdump's file name: `jit-PID.dump`, or `jit-TID-PID.dump` as Bun writes it.
fn jitdump_pid(path: &[u8]) -> Option<Pid> {
    let name = path.rsplit(|&byte| byte == b'/').next()?;
    let text = std::str::from_utf8(name.strip_prefix(b"jit-")?.strip_suffix(b".dump")?).ok()?;
    let mut numbers = Vec::new();
    for number in text.splitn(3, '-') {
        numbers.push(number.parse::<i32>().ok().filter(|number| *number >= 0)?);
    }
    match numbers[..] {
        [pid] | [_, pid] => Some(Pid(pid)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::mapping_kind::tests::paths_where;

    #[test]
    fn memory_for_jit_code_is_reported_by_its_path() {
        let expected = [
            "",
            "//anon",
            "[anon:JIT code]",
            "[anon_shmem:JIT code]",
            "/anon_hugepage",
            "/anon_hugepage (deleted)",
            "/dev/zero",
            "/dev/zero (deleted)",
            "/memfd:doublemapper (deleted)",
            "/SYSV00000000 (deleted)",
            "[heap]",
            "[stack]",
            "[stack:77]",
            "/dev/shm/code (deleted)",
            "/dev/ashmem/dalvik-jit-code-cache (deleted)",
            "/tmp/#77 (deleted)",
        ];
        assert_eq!(paths_where(|path| MappingKind::from_path(path).may_hold_jit_code()), expected);
    }

    #[test]
    fn names_of_jitdumps() {
        assert_eq!(jitdump_pid(b"/tmp/jit-4711.dump"), Some(Pid(4711)));
        assert_eq!(jitdump_pid(b"jit-12-4711.dump"), Some(Pid(4711)));
        for other in [&b"/tmp/jit-.dump"[..], b"jit-1-2-3.dump", b"jit-x.dump", b"xjit-1.dump", b"jit-1.dump.gz"] {
            assert_eq!(jitdump_pid(other), None);
        }
    }
}
