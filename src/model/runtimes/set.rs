//! The runtimes of a process.

use super::runtime::Runtime;
use super::table::RUNTIMES;
use crate::model::Pid;
use crate::model::near_map::NearMap;
use crate::model::programs::Programs;
use rustc_hash::FxHashSet;

/// The runtimes of a process: one may embed another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RuntimeSet(u64);

impl RuntimeSet {
    /// Those that a process runs, by what its program has mapped.
    pub fn of_process(programs: &Programs<'_>, pid: Pid) -> Self {
        Self::of_files(programs.mappings(pid).map(|mapping| &mapping.path[..]))
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
        // A process has thousands of mappings, and few names.
        let names: FxHashSet<&[u8]> = paths.map(base_name).filter(|name| !name.is_empty()).collect();
        for name in names {
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

/// The runtimes of the processes of a recording, each looked for once.
#[derive(Debug)]
pub struct ProcessRuntimes<'a> {
    programs: Programs<'a>,
    known: NearMap<Pid, RuntimeSet>,
}

impl<'a> ProcessRuntimes<'a> {
    /// Of the processes that run these programs.
    pub fn new(programs: Programs<'a>) -> Self {
        Self { programs, known: NearMap::default() }
    }

    /// Those that the process runs.
    pub fn of(&mut self, pid: Pid) -> RuntimeSet {
        *self.known.entry(pid).or_insert_with(|| RuntimeSet::of_process(&self.programs, pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_known_by_what_its_process_maps() {
        let of = |paths: &[&'static str]| {
            let files = RuntimeSet::of_files(paths.iter().map(|path| path.as_bytes()));
            files.iter().map(|runtime| runtime.name).collect::<Vec<_>>()
        };
        assert_eq!(of(&["/usr/bin/python3.13", "/x/_libwasmtime.so"]), ["Wasmtime", "CPython"]);
        let compiler = "/x/wasmer_compiler_cranelift.cpython-310-x86_64-linux-gnu.so";
        assert_eq!(of(&["/usr/bin/python3.10", compiler]), ["Wasmer", "CPython"]);
        assert_eq!(of(&["/usr/bin/python3.13", "//anon"]), ["CPython"]);
        assert_eq!(of(&["/usr/lib/jvm/bin/java", "/usr/lib/jvm/lib/server/libjvm.so"]), ["OpenJDK"]);
        assert!(of(&["/usr/bin/nodemon", "/usr/lib/libc.so.6"]).is_empty());
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
                // LuaJIT knows no place-holder: there the name is the user's.
                assert!(file.contains("PID") || *file == "./luajit.dump", "{}: {file}", runtime.name);
            }
        }
    }

    #[test]
    fn a_switch_is_known_by_a_whole_word() {
        let shown = |words: &str| {
            let switches = RUNTIMES.iter().filter(|runtime| runtime.name == "CPython" || runtime.name == "Node.js");
            let shown = switches.flat_map(|runtime| runtime.switches).filter(|switch| switch.is_shown_by(words));
            shown.map(|switch| switch.word).collect::<Vec<_>>()
        };
        assert_eq!(shown(" node --perf-prof a.js"), ["--perf-prof"]);
        assert_eq!(shown(" node --perf-prof-unwinding-info a.js"), [""; 0]);
        assert_eq!(shown(" deno --v8-flags=--perf-prof,--x"), ["--perf-prof"]);
        assert_eq!(shown(" python -X perf_jit a.py"), ["-X perf_jit"]);
        assert_eq!(shown(" python -X perf"), ["-X perf"]);
    }

    #[test]
    fn advice_names_every_way() {
        let node = RuntimeSet::of_program(b"node").first().unwrap();
        assert_eq!(
            node.advice().unwrap(),
            "run node with --perf-prof --interpreted-frames-native-stack (leaves ./jit-PID.dump), or with \
             --perf-basic-prof (leaves /tmp/perf-PID.map), or with --log-code --log-source-position \
             --interpreted-frames-native-stack, which tells of inlined calls, too (leaves ./isolate-*-PID-v8.log)"
        );
        assert_eq!(RuntimeSet::of_program(b"sbcl").first().unwrap().advice(), None);
    }
}
