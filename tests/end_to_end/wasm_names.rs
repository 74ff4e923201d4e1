//! WebAssembly functions get names and places from their module, and only where it is known which module that is.
//! `fixtures/wasm-node/` has the recordings, of node 20.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The functions of `fib.rs`, in the order of their numbers, and where LLVM's tools state that each was written.
const FUNCTIONS: [(&str, &str); 3] = [("app::table::checksum", "20"), ("app::collatz", "9"), ("run", "30")];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/wasm-node").join(name)
}

/// A directory with these files of the fixture.
fn directory(names: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for name in names {
        fs::copy(fixture(name), directory.path().join(name)).unwrap();
    }
    directory
}

/// What the program prints, and what it states.
fn run(directory: &Path, arguments: &[&str]) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(arguments).current_dir(directory).output().unwrap();
    let (text, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{said}");
    (text, said)
}

/// The innermost functions of folded stacks that are WebAssembly, or were.
fn leaves(folded: &str) -> Vec<&str> {
    let leaf = |line: &'_ str| line.rsplit_once(' ').map(|(stack, _)| stack.len());
    let leaves = folded.lines().filter_map(|line| Some(line[..leaf(line)?].rsplit(';').next().unwrap_or_default()));
    let mut leaves: Vec<&str> = leaves.filter(|leaf| is_of_module(leaf)).collect();
    leaves.sort_unstable();
    leaves.dedup();
    leaves
}

fn is_of_module(name: &str) -> bool {
    name.contains("wasm-function[") || name.contains("collatz") || name.contains("checksum") || name.starts_with("run")
}

fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names
}

const NAMELESS: [&str; 3] = ["wasm-function[0]", "wasm-function[1]", "wasm-function[2]"];

#[test]
fn a_profile_of_a_stripped_module_gets_names_and_lines_from_the_module_that_it_was_made_from() {
    for modules in [&["app.wasm"][..], &["app.wasm", "stripped.wasm"]] {
        let directory = directory(&[&["stripped.cpuprofile"], modules].concat());
        let (folded, said) = run(directory.path(), &["collapse", "--source-maps", "auto", "stripped.cpuprofile"]);
        assert_eq!(leaves(&folded), names(), "{modules:?}");
        assert!(said.contains("3 of 3 functions have names from the original source"), "{said}");
        let csv =
            run(directory.path(), &["export", "--source-maps", "auto", "--to", "speedscope", "stripped.cpuprofile"]).0;
        for (name, line) in FUNCTIONS {
            assert!(
                csv.contains(&format!(r#""name":"{name}","file":"/app/src/fib.rs","line":{line}"#)),
                "{name}: {csv}"
            );
        }
    }
}

#[test]
fn a_module_in_a_directory_of_debugging_information_is_as_good_as_one_beside_the_profile() {
    let (profile, modules) = (directory(&["stripped.cpuprofile"]), directory(&["app.wasm"]));
    let debug = modules.path().display().to_string();
    for flag in ["--debug-dir", "--source-maps"] {
        let usual = if flag == "--debug-dir" { vec!["--source-maps", "auto"] } else { Vec::new() };
        let arguments = [&["collapse", flag, &debug, "stripped.cpuprofile"], &usual[..]].concat();
        assert_eq!(leaves(&run(profile.path(), &arguments).0), names(), "{flag}");
    }
    let (folded, _) = run(profile.path(), &["collapse", "--source-maps", "auto", "stripped.cpuprofile"]);
    assert_eq!(leaves(&folded), NAMELESS, "nowhere");
    let off = ["collapse", "--source-maps", "off", "--debug-dir", &debug, "stripped.cpuprofile"];
    assert_eq!(leaves(&run(profile.path(), &off).0), NAMELESS, "off");
}

#[test]
fn the_names_of_a_linker_become_readable() {
    let directory = directory(&["app.cpuprofile", "app.wasm"]);
    let (folded, _) = run(directory.path(), &["collapse", "--source-maps", "auto", "app.cpuprofile"]);
    assert_eq!(leaves(&folded), names());
}

#[test]
fn firefox_calls_functions_by_the_module_and_the_byte_at_which_they_start() {
    for profile in ["app.json", "stripped.json"] {
        let directory = directory(&["app.wasm", "stripped.wasm"]);
        let recorded = fixture("../wasm-firefox").join(profile);
        fs::copy(recorded, directory.path().join(profile)).unwrap();
        let (folded, said) = run(directory.path(), &["collapse", "--source-maps", "auto", profile]);
        assert_eq!(leaves(&folded), names(), "{profile}");
        assert!(said.contains("3 of 3 functions have names from the original source"), "{said}");
        let exported = run(directory.path(), &["export", "--source-maps", "auto", "--to", "speedscope", profile]).0;
        for (name, line) in FUNCTIONS {
            assert!(
                exported.contains(&format!(r#""name":"{name}","file":"/app/src/fib.rs","line":{line}"#)),
                "{exported}"
            );
        }
    }
}

/// One byte of the code of a module, its number and what else it could be: the constant 48271 in `checksum`.
fn changed(module: &[u8]) -> Vec<u8> {
    let constant = [0x8f, 0xf9, 0x02];
    let at = module.windows(constant.len()).position(|bytes| bytes == constant).unwrap();
    let mut module = module.to_vec();
    module[at] ^= 1;
    module
}

#[test]
fn a_module_of_another_build_is_not_the_one_that_ran() {
    let directory = directory(&["stripped.cpuprofile"]);
    let path = directory.path().join("app.wasm");
    let whole = fs::read(fixture("app.wasm")).unwrap();
    for (what, bytes) in [("changed", changed(&whole)), ("cut", whole[..3000].to_vec()), ("empty", Vec::new())] {
        fs::write(&path, bytes).unwrap();
        let (folded, _) = run(directory.path(), &["collapse", "--source-maps", "auto", "stripped.cpuprofile"]);
        assert_eq!(leaves(&folded), NAMELESS, "{what}");
    }
}

/// Native code, as perf maps name it.
fn native(directory: &Path, lines: &str, maps: &[&str]) -> (Vec<String>, String) {
    let stacks: String = lines.lines().map(|line| format!("node;{line}\n")).collect();
    fs::write(directory.join("in.folded"), stacks).unwrap();
    let given: Vec<&str> = maps.iter().flat_map(|map| ["--source-maps", map]).collect();
    let (folded, said) = run(directory, &[&["collapse", "in.folded"], &given[..]].concat());
    let name = |line: &str| line.rsplit_once(' ').unwrap().0.strip_prefix("node;").unwrap().to_owned();
    (folded.lines().map(name).collect(), said)
}

const NATIVE: &str = "JS:wasm-function[1]-1-turbofan 5\nwasm[0]::function[0] 7\n";

#[test]
fn native_code_has_the_names_of_the_module_that_the_user_gives() {
    let directory = directory(&["app.wasm", "stripped.wasm"]);
    let authored = [
        "JS:app::collatz-1-turbofan /app/src/fib.rs:9:1",
        "wasm[0]::function[0]::app::table::checksum /app/src/fib.rs:20:1",
    ];
    assert_eq!(native(directory.path(), NATIVE, &["app.wasm"]).0, authored);
    let both = native(directory.path(), NATIVE, &["app.wasm", "stripped.wasm"]);
    assert_eq!(both.0, authored, "both are one module");
    let generated = ["JS:wasm-function[1]-1-turbofan", "wasm[0]::function[0]"];
    assert_eq!(native(directory.path(), NATIVE, &["auto"]).0, generated, "nobody said which module it is");
}

#[test]
fn native_code_keeps_its_names_where_the_given_module_may_be_another_one() {
    let directory = directory(&["app.wasm"]);
    fs::write(directory.path().join("other.wasm"), changed(&fs::read(fixture("app.wasm")).unwrap())).unwrap();
    for (lines, maps, why) in [
        (NATIVE, &["app.wasm", "other.wasm"][..], "matches too"),
        (
            "JS:wasm-function[3]-3-turbofan 5\n",
            &["app.wasm"],
            "the module's function 3 is missing, or its name differs",
        ),
        (
            "JS:wasm-function[1]-1-liftoff 5\nJS:fib-0-liftoff 5\n",
            &["app.wasm"],
            "the module's function 0 is missing, or its name differs",
        ),
    ] {
        let (names, said) = native(directory.path(), lines, maps);
        let generated: Vec<&str> = lines.lines().map(|line| line.rsplit_once(' ').unwrap().0).collect();
        assert!(generated.iter().all(|name| names.iter().any(|own| own == name)), "{names:?}");
        assert!(said.contains(why), "{why}: {said}");
    }
}

/// A process that runs two modules has two functions of each number.
#[test]
fn functions_that_were_compiled_twice_may_be_of_two_modules() {
    let directory = directory(&["app.wasm"]);
    let map = "1000 100 JS:wasm-function[1]-1-liftoff\n2000 100 JS:wasm-function[1]-1-liftoff\n";
    fs::write(directory.path().join("perf-7.map"), map).unwrap();
    let script = "node 7 [000] 1.000000:          5 cycles: \n\t            1010 [unknown] (/tmp/perf-7.map)\n\n";
    fs::write(directory.path().join("in.script"), script).unwrap();
    let arguments = ["collapse", "--source-maps", "app.wasm", "--perf-map", "perf-7.map", "in.script"];
    let (folded, said) = run(directory.path(), &arguments);
    assert!(folded.contains("JS:wasm-function[1]-1-liftoff") && said.contains("compiled twice"), "{folded}{said}");
    fs::write(directory.path().join("perf-7.map"), &map[..map.find('\n').unwrap() + 1]).unwrap();
    let (folded, said) = run(directory.path(), &arguments);
    assert!(folded.contains("JS:app::collatz-1-liftoff /app/src/fib.rs:9:1"), "{folded}{said}");
}
