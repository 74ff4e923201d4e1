//! Names that maps have for code of files: what a file names itself keeps its name, in every output, as in perf.

use crate::support::tool;

use std::path::Path;
use tempfile::TempDir;
use tool::run;

fn jitgraft(arguments: &[&str], dir: &Path) -> String {
    run(env!("CARGO_BIN_EXE_jitgraft"), arguments, dir)
}

/// A recorded program without JIT code.
struct Recorded {
    dir: TempDir,
    pid: u32,
    /// The address range of the program's code.
    text: (u64, u64),
}

impl Recorded {
    fn new(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/deep.c");
        run("gcc", &[&["-O1", "-g0", "-fno-omit-frame-pointer", "-o", "deep", source], flags].concat(), dir.path());
        let record = ["record", "-q", "-k", "mono", "-e", "cpu-clock:u", "-F", "4000", "-g", "-o", "perf.data"];
        run("perf", &[&record[..], &["--", "./deep", "100"]].concat(), dir.path());
        let mappings = run("perf", &["script", "-i", "perf.data", "--show-mmap-events"], dir.path());
        let line = mappings.lines().find(|line| line.contains(" r-xp ") && line.ends_with("/deep"));
        let line = line.unwrap_or_else(|| panic!("no mapping of the program:\n{mappings}"));
        // deep 77 5.25: PERF_RECORD_MMAP2 77/77: [0x55d0a8a4c000(0x1000) @ 0x1000 08:01 9 0]: r-xp /tmp/deep
        let (_, rest) = line.split_once("PERF_RECORD_MMAP2 ").unwrap();
        let pid = rest.split_once('/').unwrap().0.parse().unwrap();
        let (start, rest) = rest.split_once("[0x").unwrap().1.split_once("(0x").unwrap();
        let hexadecimal = |digits| u64::from_str_radix(digits, 16).unwrap();
        let (start, len) = (hexadecimal(start), hexadecimal(rest.split_once(')').unwrap().0));
        Self { dir, pid, text: (start, start + len) }
    }

    /// The option that gives a map of these lines.
    fn map(&self, name: &str, lines: &[(u64, u64, &str)]) -> String {
        let line = |&(start, end, name): &(u64, u64, &str)| format!("{start:x} {:x} {name}\n", end - start);
        let text: String = lines.iter().map(line).collect();
        std::fs::write(self.dir.path().join(name), text).unwrap();
        format!("--perf-map={name}@{}", self.pid)
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// perf's output for a copy into which jitgraft has merged the map.
    fn injected(&self, map: &str) -> String {
        jitgraft(&["inject", map, "-o", "injected.data", "perf.data"], self.path());
        run("perf", &["script", "-i", "injected.data", "-F", "ip,sym"], self.path())
    }

    /// The content of each output with the map.
    fn outputs(&self, map: &str) -> [String; 3] {
        let collapsed = jitgraft(&["collapse", map, "perf.data"], self.path());
        let script = jitgraft(&["script", "-F", "ip,sym", map, "perf.data"], self.path());
        [collapsed, script, self.injected(map)]
    }
}

#[test]
fn lines_of_a_map_do_not_rename_functions_that_the_file_names() {
    let recorded = Recorded::new(&[]);
    let (start, end) = recorded.text;
    let without = run("perf", &["script", "-i", "perf.data", "-F", "ip,sym"], recorded.path());
    assert!(without.contains(" main\n") && without.contains(" n_"), "{without}");
    let maps = [
        recorded.map("whole.map", &[(start, end, "js_whole")]),
        recorded.map("before.map", &[(start - 0x2000, end - 1, "js_before")]),
        recorded.map("behind.map", &[(start + 1, end + 0x2000, "js_behind")]),
        recorded.map("pages.map", &[(start, start + 0x800, "js_low"), (start + 0x800, end, "js_high")]),
    ];
    for map in maps {
        let [collapsed, script, injected] = recorded.outputs(&map);
        assert!(!collapsed.contains("js_") && collapsed.contains(";main;"), "{map}:\n{collapsed}");
        assert!(!script.contains("js_") && script.contains(" main\n"), "{map}:\n{script}");
        assert_eq!(injected, without, "{map}");
    }
}

#[test]
fn lines_of_a_map_name_code_for_which_its_file_has_no_symbols() {
    let recorded = Recorded::new(&["-s"]);
    let (start, end) = recorded.text;
    let inside = recorded.map("inside.map", &[(start, end, "js_inside")]);
    for output in recorded.outputs(&inside) {
        assert!(output.contains("js_inside"), "{output}");
    }
    // Code that extends beyond the file is not one of its functions.
    let across = recorded.map("across.map", &[(start - 0x1000, end, "js_across")]);
    for output in recorded.outputs(&across) {
        assert!(!output.contains("js_across"), "{output}");
    }
}

/// Functions as ocamlopt calls them, and what begins alike.
const OCAML: [&str; 9] = [
    "camlStdlib__List__rev_merge_552",
    "camlM__$2b$2b$2b_81",
    "camlM__go$27_89",
    "camlM__fun_573",
    "camlM$f",
    "camlM__x___y",
    "camlM.f_3",
    "caml_alloc_small",
    "camlp4",
];

#[test]
fn names_of_ocaml_are_those_of_perf() {
    let dir = tempfile::tempdir().unwrap();
    let function = |(place, name)| {
        let body = "for (volatile int i = 0; i < 20000000; i++);";
        format!("void f{place}(void) __asm__(\"{name}\");\nvoid f{place}(void) {{ {body} }}\n")
    };
    let functions: String = OCAML.iter().enumerate().map(function).collect();
    let calls: String = (0..OCAML.len()).map(|place| format!("f{place}(); ")).collect();
    let source = format!("{functions}int main(void) {{ {calls}return 0; }}\n");
    std::fs::write(dir.path().join("work.c"), source).unwrap();
    run("gcc", &["-O0", "-g0", "-o", "work", "work.c"], dir.path());
    run("perf", &["record", "-q", "-e", "cpu-clock:u", "-F", "4000", "-o", "perf.data", "./work"], dir.path());
    // A sample may hit the loader, whose inlined calls only one of the two has debugging information for.
    let fields = ["script", "--no-inline", "-F", "ip,sym"];
    let theirs = run("perf", &[&fields[..], &["-i", "perf.data"]].concat(), dir.path());
    let ours = jitgraft(&[&fields[..], &["perf.data"]].concat(), dir.path());
    let name_of = |line: &str| Some(line.trim().split_once(' ')?.1.to_owned());
    let names = |text: &str| text.lines().filter_map(name_of).collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&theirs));
    for name in ["M.+++_81", "M.go'_89", "M.x._y", "caml_alloc_small"] {
        assert!(names(&ours).iter().any(|ours| ours == name), "no sample in {name}:\n{ours}");
    }
}
