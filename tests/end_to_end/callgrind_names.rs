//! Callgrind files that are read as stacks: their JIT code has the names of the maps and dumps beside them, and where
//! there are none, a line says so.

use crate::support::jitdump::{JitDump, Load};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Two functions in memory without a file, which `main` calls.
const PROFILE: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 77\ncmd: php hot.php\npart: 1\n\n\
    positions: instr line\nevents: Ir Dr\nsummary: 1000 10\n\nob=(1) /usr/bin/php8.2\nfl=(1) main.c\nfn=(1) main\n\
    0x401000 5 100 1\ncob=(2) ???\ncfi=(2) ???\ncfn=(2) 0x0000000010200900\ncalls=1 0x10200900 0\n0x401004 5 900 9\n\n\
    ob=(2)\nfl=(2)\nfn=(2)\n0x10200900 0 600 6\n0x10200a00 0 300 3\n\ntotals: 1000 10\n";

const NAMES: [(&str, u64); 2] = [("JIT$hot", 0x1020_0900), ("JIT$warm", 0x1020_0a00)];

fn map() -> String {
    NAMES.iter().map(|(name, addr)| format!("{addr:x} 100 {name}\n")).collect()
}

fn dump() -> Vec<u8> {
    let mut dump = JitDump::new(77);
    for (index, (name, addr)) in (0..).zip(NAMES) {
        dump.load(5 + index, Load { tid: 77, addr, index, name: name.as_bytes(), code: &[0x90; 0x100] });
    }
    dump.into_bytes()
}

/// The profile with these files beside it.
fn scene(profile: &str, beside: &[(&str, &[u8])]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("callgrind.out.77");
    fs::write(&path, profile).unwrap();
    for (name, bytes) in beside {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    (dir, path)
}

fn run(args: &[&str], input: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(args).arg(input).env("HOME", "/nonexistent").current_dir(input.parent().unwrap());
    command.output().unwrap()
}

fn said(args: &[&str], input: &Path) -> (String, String) {
    let output = run(args, input);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args:?}: {err}");
    (out.into_owned(), err.into_owned())
}

#[test]
fn code_has_the_names_of_the_map_or_dump_beside_the_file() {
    let (map, dump) = (map(), dump());
    for beside in [("perf-77.map", map.as_bytes()), ("jit-77.dump", &dump)] {
        let (_dir, path) = scene(PROFILE, &[beside]);
        let (folded, err) = said(&["collapse"], &path);
        let event =
            |lines: &str| lines.lines().filter(|line| line.contains("JIT$")).map(str::to_owned).collect::<Vec<_>>();
        assert!(event(&folded).iter().any(|line| line.ends_with("JIT$hot 600")), "{}: {folded}{err}", beside.0);
        assert!(event(&folded).iter().any(|line| line.ends_with("JIT$warm 300")), "{}: {folded}", beside.0);
        assert!(!err.contains("-k mono") && !err.contains("without a name"), "{err}");
        for args in
            [&["report"][..], &["export", "--to", "csv"], &["export", "--to", "speedscope"], &["flamegraph", "-o", "-"]]
        {
            let (out, err) = said(args, &path);
            assert!(out.contains("JIT$hot"), "{args:?}: {out}{err}");
        }
        // As a stream, its process is in the file, and nothing is beside it.
        let packed = path.with_extension("zst");
        fs::write(&packed, zstd::encode_all(PROFILE.as_bytes(), 1).unwrap()).unwrap();
        assert!(said(&["collapse"], &packed).0.contains("JIT$hot 600"));
    }
}

#[test]
fn sums_stay_what_they_are() {
    let sum = |folded: &str| -> u64 {
        folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    };
    let (_dir, bare) = scene(PROFILE, &[]);
    let (_other, named) = scene(PROFILE, &[("perf-77.map", map().as_bytes())]);
    for event in ["Ir", "Dr"] {
        let of = |path: &Path| sum(&said(&["collapse", "-q", "--event", event], path).0);
        assert_eq!(of(&bare), of(&named), "{event}");
    }
}

#[test]
fn code_without_a_name_is_told_with_the_command_that_shows_why() {
    let (_dir, path) = scene(PROFILE, &[]);
    for args in [&["report"][..], &["collapse"], &["export", "--to", "csv"]] {
        let (_, err) = said(args, &path);
        assert!(err.contains("90.0% of Ir is in JIT code without a name; run jitgraft doctor"), "{args:?}: {err}");
    }
    let (_, err) = said(&["report", "-q"], &path);
    assert_eq!(err, "");
    // Without a known runtime, code in no file need not be JIT code.
    let (_other, native) = scene(&PROFILE.replace("cmd: php hot.php", "cmd: ./native"), &[]);
    let (_, err) = said(&["report"], &native);
    assert!(err.contains("90.0% of Ir is in unnamed code outside any file; run"), "{err}");
    // A map of another run names nothing.
    let (_dir, path) = scene(PROFILE, &[("perf-77.map", b"10 20 f\n")]);
    assert!(said(&["report"], &path).1.contains("90.0% of Ir"));
    // Code of files has names.
    let (_dir, path) = scene(&PROFILE.replace("???", "/usr/lib/libx.so"), &[]);
    assert!(!said(&["report"], &path).1.contains("without a name"));
}

/// Whether code in memory without a file is a JIT compiler's is judged by the program, and alike by all commands.
#[test]
fn unnamed_code_is_of_one_kind_in_tables_and_listings() {
    for (command, kind) in [("php hot.php", "JIT, unnamed"), ("./app", "unnamed code (no file)")] {
        let (_dir, path) = scene(&PROFILE.replace("php hot.php", command), &[]);
        let (table, _) = said(&["report", "-q", "--by", "kind", "--limit", "0", "--to", "csv"], &path);
        assert!(table.lines().any(|line| line.contains(kind)), "{command}: {table}");
        let (listings, _) = said(&["annotate", "-q", ".", "--to", "json"], &path);
        assert!(listings.contains(&format!("\"category\":\"{kind}\"")), "{command}: {listings}");
    }
}

#[test]
fn costs_are_called_costs_and_summary_and_doctor_agree() {
    let (_dir, path) = scene(PROFILE, &[]);
    let (report, _) = said(&["report", "--event", "Ir"], &path);
    assert!(report.starts_with("# 1,000 Ir\n"), "{report}");
    let (summary, _) = said(&[], &path);
    assert!(summary.contains("\n1,000 Ir, 1 more event\n") && !summary.contains("samples"), "{summary}");
    let doctor = summary.lines().find(|line| line.starts_with("doctor: ")).unwrap();
    let (diagnosis, _) = said(&["doctor"], &path);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cause = doctor.split_once("% of the cost: ").unwrap_or_else(|| panic!("{doctor}")).1;
    assert!(words(&diagnosis).contains(&words(cause)), "{doctor}\n{diagnosis}");
    // What runs it again works as it is printed.
    assert!(
        words(&diagnosis)
            .contains("valgrind --tool=callgrind --dump-instr=yes php -d opcache.jit_debug=48 -d opcache.enable_cli=1")
    );
    // valgrind has no clock.
    let (_dir, path) = scene(PROFILE, &[("jit-77.dump", &dump())]);
    let (out, err) = said(&["doctor"], &path);
    assert!(!out.contains("-k mono") && !err.contains("-k mono"), "{out}{err}");
}
