//! The runtimes of a process.

use super::runtime::Runtime;
use super::table::RUNTIMES;
use crate::model::process::Process;

/// The runtimes of a process: one may embed another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RuntimeSet(u64);

impl RuntimeSet {
    /// Those of a process, by what it has mapped since it last replaced its image.
    pub fn of_process(process: &Process) -> Self {
        let since = process.execs.last().copied().unwrap_or_default();
        let mappings = process.mappings.iter().filter(|mapping| mapping.time >= since);
        Self::of_files(mappings.map(|mapping| &mapping.path[..]))
    }

    /// Those of whatever has mapped these files.
    pub fn of_files<'p>(paths: impl Iterator<Item = &'p [u8]>) -> Self {
        Self::of(paths, Runtime::maps)
    }

    /// That of a program, by its path.
    pub fn of_program(path: &[u8]) -> Self {
        Self::of(std::iter::once(path), Runtime::is_program)
    }

    fn of<'p>(paths: impl Iterator<Item = &'p [u8]>, has: impl Fn(&Runtime, &[u8]) -> bool) -> Self {
        let mut found = 0;
        for name in paths.map(base_name).filter(|name| !name.is_empty()) {
            let those = RUNTIMES.iter().enumerate().filter(|(_, runtime)| has(runtime, name));
            found |= those.fold(0, |found, (at, _)| found | 1 << at);
        }
        Self(found)
    }

    /// The runtimes in it, those that embed others first.
    pub fn iter(self) -> impl Iterator<Item = &'static Runtime> {
        RUNTIMES.iter().enumerate().filter(move |(at, _)| self.0 & 1 << at != 0).map(|(_, runtime)| runtime)
    }

    /// What people would call the process.
    pub fn first(self) -> Option<&'static Runtime> {
        self.iter().next()
    }
}

fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::process::{CpuMode, Mapping};
    use crate::model::{Addr, Nanos};

    fn process(mapped: &[(u64, &str)]) -> Process {
        let mapping = |&(time, path): &(u64, &str)| Mapping {
            time: Nanos(time),
            addr: Addr(0),
            len: 1,
            pgoff: 0,
            path: path.as_bytes().to_vec(),
            build_id: None,
            executable: true,
            cpumode: CpuMode::User,
            offset: 0,
        };
        Process { mappings: mapped.iter().map(mapping).collect(), ..Process::default() }
    }

    fn name(process: &Process) -> Option<&'static str> {
        RuntimeSet::of_process(process).first().map(|runtime| runtime.name)
    }

    #[test]
    fn a_runtime_is_known_by_what_its_process_maps() {
        let of = |paths: &[&str]| name(&process(&paths.iter().map(|&path| (0, path)).collect::<Vec<_>>()));
        assert_eq!(of(&["/usr/bin/python3.13", "/x/_libwasmtime.so"]), Some("Wasmtime"));
        assert_eq!(of(&["/usr/bin/python3.13", "//anon"]), Some("CPython"));
        assert_eq!(of(&["/usr/lib/jvm/bin/java", "/usr/lib/jvm/lib/server/libjvm.so"]), Some("OpenJDK"));
        assert_eq!(of(&["/usr/bin/nodemon", "/usr/lib/libc.so.6"]), None);
    }

    #[test]
    fn what_a_process_was_before_its_exec_does_not_count() {
        let mut launched = process(&[(1, "/usr/bin/node"), (9, "/usr/bin/php8.2")]);
        assert_eq!(name(&launched), Some("Node.js"));
        launched.execs.push(Nanos(8));
        assert_eq!(name(&launched), Some("PHP"));
    }

    #[test]
    fn a_program_is_known_by_its_path() {
        let of = |path: &[u8]| RuntimeSet::of_program(path).first().map(|runtime| runtime.name);
        assert_eq!(of(b"/opt/node/bin/node"), Some("Node.js"));
        assert_eq!(of(b"java"), Some("OpenJDK"));
        assert_eq!(of(b""), None);
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
                assert!(file.ends_with("PID.dump") || file.ends_with("PID.map"), "{}: {file}", runtime.name);
            }
        }
    }

    #[test]
    fn advice_names_every_way() {
        let node = RuntimeSet::of_program(b"node").first().unwrap();
        assert_eq!(
            node.advice().unwrap(),
            "run node with --perf-prof --interpreted-frames-native-stack (leaves ./jit-PID.dump), or with \
             --perf-basic-prof (leaves /tmp/perf-PID.map)"
        );
        assert_eq!(RuntimeSet::of_program(b"pypy3").first().unwrap().advice(), None);
    }
}
