//! The output of Firefox Profiler's own command line for a profile that samply saved, before and after.

use super::firefox::in_map;
use super::recorded::Recorded;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The version that these tests were written with; its files are in one package.
const PACKAGE: &str = "@firefox-devtools/profiler-cli@0.10.0";

/// The command line, in the directory of a recording.
struct ProfilerCli<'r>(&'r Recorded);

impl<'r> ProfilerCli<'r> {
    fn install(recorded: &'r Recorded) -> Self {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix", ".", PACKAGE]).current_dir(recorded.path("."));
        let output = npm.stdin(Stdio::null()).output().expect("npm is needed: tests/run.sh --all installs it");
        assert!(output.status.success(), "npm: {}", String::from_utf8_lossy(&output.stderr));
        Self(recorded)
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new("node");
        command.arg("node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js").args(words);
        command.current_dir(self.0.path(".")).env("HOME", self.0.path(".")).stdin(Stdio::null());
        command.output().expect("node is needed: tests/run.sh --all installs it")
    }

    /// The samples in each function of the busiest thread, by library (empty for none) and name.
    fn functions(&self, file: &str) -> BTreeMap<(String, String), u64> {
        // It gives the server that it starts half a second, which may be too little; the server goes on starting.
        self.run(&["load", file, "--session", file]);
        let list = ["thread", "functions", "--json", "--limit", "0", "--include-idle", "--session", file];
        let mut listed = self.run(&list);
        for _ in 0..120 {
            if listed.status.success() {
                break;
            }
            sleep(Duration::from_millis(500));
            listed = self.run(&list);
        }
        self.run(&["stop", file]);
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        let mut samples = BTreeMap::new();
        for function in listed["functions"].as_array().unwrap() {
            let text = |key: &str| function[key].as_str().unwrap_or_default().to_owned();
            *samples.entry((text("library"), text("name"))).or_insert(0) += function["selfSamples"].as_u64().unwrap();
        }
        samples
    }
}

#[test]
#[ignore = "needs npm: tests/run.sh --all"]
fn it_shows_the_names_of_the_map_in_place_of_addresses() {
    let recorded = Recorded::all().find(|recorded| recorded.names.ends_with(".map")).unwrap();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/recording-node/samply.json.gz");
    recorded.write("samply.json.gz", &std::fs::read(fixture).unwrap());
    recorded.jitgraft(&["inject", "-i", "samply.json.gz", "-o", "named.json.gz"]);
    let cli = ProfilerCli::install(&recorded);
    let (before, after) = (cli.functions("samply.json.gz"), cli.functions("named.json.gz"));
    let map = String::from_utf8(recorded.read(recorded.names)).unwrap();
    let (mut expected, mut named) = (BTreeMap::new(), 0);
    for ((library, name), samples) in &before {
        let address = name.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let in_map = address.filter(|_| library.is_empty()).and_then(|address| in_map(&map, address));
        named += u64::from(in_map.is_some());
        *expected.entry((library.clone(), in_map.unwrap_or(name).to_owned())).or_insert(0) += samples;
    }
    assert!(named > 50, "{named}");
    assert!(!before.keys().any(|(_, name)| name.contains("fibonacci")));
    assert!(after.keys().any(|(_, name)| name.starts_with("JS:*fibonacci ")), "{after:?}");
    assert_eq!(after, expected);
}
