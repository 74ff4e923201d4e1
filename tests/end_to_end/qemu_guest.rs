//! Recordings of QEMU's user mode: the perf map has addresses of the guest, and the guest's own ELF file shows which
//! functions these are. The expected name of each sample is found with `nm`.

use crate::support::tool;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tool::run;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-qemu").join(name)
}

/// One of the two recordings.
struct Case {
    kind: &'static str,
    map: &'static str,
    /// The base of the file, the map's first instruction of `leave` or a debugger gives.
    base: u64,
}

const CASES: [Case; 2] = [
    Case { kind: "static", map: "perf-19177.map", base: 0 },
    Case { kind: "static-pie", map: "perf-19810.map", base: 0x7f2c_63ad_7000 },
];

impl Case {
    /// The recording and its map, and the guest's file if it is wanted, in a directory of their own.
    fn unpacked(&self, with_guest: bool) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let packed = fs::read(fixture(&format!("perf-{}.data.zst", self.kind))).unwrap();
        fs::write(dir.path().join("perf.data"), zstd::decode_all(&packed[..]).unwrap()).unwrap();
        fs::copy(fixture(self.map), dir.path().join(self.map)).unwrap();
        if with_guest {
            fs::copy(fixture(&self.guest()), dir.path().join(self.guest())).unwrap();
        }
        dir
    }

    fn guest(&self) -> String {
        format!("guest-{}", self.kind)
    }

    /// The function at an address of the guest, as `nm` gives.
    fn functions(&self) -> Vec<(u64, u64, String)> {
        let text = run("nm", &["-S", "--defined-only", fixture(&self.guest()).to_str().unwrap()], Path::new("."));
        let number = |digits: &str| u64::from_str_radix(digits, 16).unwrap();
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let functions = lines.filter(|words| words.len() == 4 && matches!(words[2], "t" | "T"));
        functions.map(|words| (self.base + number(words[0]), number(words[1]), words[3].to_owned())).collect()
    }

    /// The function of each sample, by the map and `nm`.
    fn expected(&self, dir: &Path) -> BTreeMap<String, u64> {
        let map = fs::read_to_string(fixture(self.map)).unwrap();
        let number = |digits: &str| u64::from_str_radix(digits, 16).unwrap();
        let lines = map.lines().map(|line| line.splitn(3, ' ').collect::<Vec<_>>());
        let code: Vec<(u64, u64, &str)> = lines.map(|words| (number(words[0]), number(words[1]), words[2])).collect();
        let functions = self.functions();
        let mut expected = BTreeMap::new();
        let samples = run("perf", &["script", "-i", "perf.data", "-F", "ip"], dir);
        for sample in samples.split_whitespace().map(number) {
            let Some((.., name)) = code.iter().find(|(start, size, _)| (*start..start + size).contains(&sample)) else {
                continue;
            };
            let Some(addr) = name.strip_prefix("guest-0x").map(number) else { continue };
            let inside = |(start, size, _): &&(u64, u64, String)| (*start..start + size).contains(&addr);
            let (.., function) = functions.iter().find(inside).unwrap_or_else(|| panic!("{name} is in no function"));
            *expected.entry(format!("qemu-aarch64;{function}")).or_default() += 1;
        }
        expected
    }
}

/// The samples in code of the guest, by stack.
fn named(dir: &Path, options: &[&str]) -> BTreeMap<String, u64> {
    let arguments = [&["collapse", "--weight", "samples", "perf.data"], options].concat();
    let folded = run(env!("CARGO_BIN_EXE_jitgraft"), &arguments, dir);
    let of_guest = ["mix", "sum", "fib", "sieve", "_start", "leave"];
    let rows = folded.lines().map(|line| line.rsplit_once(' ').unwrap());
    let rows = rows.filter(|(stack, _)| of_guest.iter().any(|name| stack.ends_with(&format!(";{name}"))));
    rows.map(|(stack, count)| (stack.to_owned(), count.parse().unwrap())).collect()
}

#[test]
fn code_of_a_guest_is_called_by_its_functions_wherever_it_stands() {
    for case in CASES {
        let dir = case.unpacked(true);
        let expected = case.expected(dir.path());
        assert!(expected.len() >= 3 && expected.values().sum::<u64>() > 700, "{}: {expected:?}", case.kind);
        assert_eq!(named(dir.path(), &[]), expected, "{}: the recorded command line leads to the file", case.kind);
        let away = case.unpacked(false);
        let guest = fixture(&case.guest());
        let given = named(away.path(), &["--guest", guest.to_str().unwrap()]);
        assert_eq!(given, expected, "{}: the user names the file", case.kind);
    }
}

#[test]
fn without_the_guests_file_addresses_stay_as_they_are() {
    for case in CASES {
        let dir = case.unpacked(false);
        assert!(named(dir.path(), &[]).is_empty(), "{}", case.kind);
        let folded = run(env!("CARGO_BIN_EXE_jitgraft"), &["collapse", "perf.data"], dir.path());
        assert!(folded.contains(";guest-0x"), "{}: {folded}", case.kind);
        // A file that is linked to where nothing ran has nothing to state.
        let other = fixture("guest-static");
        let named = named(dir.path(), &["--guest", other.to_str().unwrap()]);
        assert_eq!(named.is_empty(), case.kind != "static", "{}", case.kind);
    }
}
