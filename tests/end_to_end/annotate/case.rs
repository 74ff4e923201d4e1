//! A recording of `fixtures/`, unpacked into a directory of its own, with what annotate reports it.

use super::hex;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) struct Case {
    dir: tempfile::TempDir,
    /// Below which the recorded programs are, if they are in the fixture.
    pub(super) symfs: Option<PathBuf>,
    /// The output of annotate.
    pub(super) annotation: Value,
}

impl Case {
    /// `program`: that was recorded as `/tmp/demo/NAME`.
    pub(super) fn new(fixture: &str, program: Option<&str>, arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(super::fixture(fixture)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            match name.strip_suffix(".zst") {
                Some(unpacked) => {
                    let bytes = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
                    let unpacked = if unpacked == "recorded.data" { "perf.data" } else { unpacked };
                    fs::write(dir.path().join(unpacked), bytes).unwrap();
                }
                None if path.is_file() => _ = fs::copy(&path, dir.path().join(name)).unwrap(),
                None => {}
            }
        }
        let symfs = program.map(|program| {
            let root = dir.path().join("root");
            fs::create_dir_all(root.join("tmp/demo")).unwrap();
            fs::copy(dir.path().join(program), root.join("tmp/demo").join(program)).unwrap();
            root
        });
        let mut case = Self { dir, symfs, annotation: Value::Null };
        let mut all = vec!["annotate", "--format", "json", "--limit", "60", "-i", "perf.data"];
        all.extend(arguments);
        case.annotation = serde_json::from_slice(&case.jitgraft(&all)).unwrap();
        case
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The program of the fixture, and the images of JIT code that `inject` made.
    pub(super) fn own_files(&self) -> Vec<String> {
        let dir = self.symfs.as_ref().map_or_else(|| self.path().to_owned(), |root| root.join("tmp/demo"));
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| self.symfs.is_some() || name.starts_with("jitted-")).collect()
    }

    /// The output of the program.
    pub(super) fn jitgraft(&self, arguments: &[&str]) -> Vec<u8> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        command.current_dir(self.path()).args(arguments).stdin(Stdio::null());
        if let Some(root) = &self.symfs {
            command.arg("--symfs").arg(root);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// The listings that have instructions, and are wanted.
    pub(super) fn listed(&self, wanted: impl Fn(&Value) -> bool) -> Vec<&Value> {
        let listings = self.annotation["listings"].as_array().unwrap().iter();
        listings.filter(|listing| listing["instructions"].is_array() && wanted(listing)).collect()
    }
}

/// The first address of a listing.
pub(super) fn base(listing: &Value) -> u64 {
    hex(&listing["address"])
}

/// True if it is JIT code.
pub(super) fn is_jit(listing: &Value) -> bool {
    listing["versions"][0]["category"] != "native"
}
