//! Recordings of `fixtures/` with what names their JIT code, in a directory of their own; and what perf shows of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A recording, unpacked, with its dump or map.
pub(crate) struct Recorded {
    dir: tempfile::TempDir,
    /// The file that names its JIT code.
    pub(crate) names: &'static str,
}

/// A dump of PHP, a map of node, one of java, a dump of wasmtime: no address of these had several functions.
const ALL: [(&str, &str); 4] = [
    ("php-recording", "jit-31795.dump"),
    ("recording-node", "perf-12592.map"),
    ("recording-java", "perf-12611.map"),
    ("recording-wasmtime", "jit-12638.dump"),
];

impl Recorded {
    fn new((folder, names): (&str, &'static str)) -> Self {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder);
        let recorded = Self { dir: tempfile::tempdir().unwrap(), names };
        for name in ["perf.data", names] {
            let packed = from.join(format!("{name}.zst"));
            let bytes = match packed.exists() {
                true => zstd::decode_all(fs::File::open(packed).unwrap()).unwrap(),
                false => fs::read(from.join(name)).unwrap(),
            };
            recorded.write(name, &bytes);
        }
        recorded
    }

    /// Its addresses had several functions, one after the other.
    pub(crate) fn of_tiers() -> Self {
        Self::new(("tiers-recording", "jit-11463.dump"))
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        ALL.into_iter().map(Self::new)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// Takes the file with the names away, into a directory of that name.
    pub(crate) fn hide_names(&self, directory: &str) {
        fs::create_dir(self.path(directory)).unwrap();
        fs::rename(self.path(self.names), self.path(directory).join(self.names)).unwrap();
    }

    /// Runs the program here; gives what it states on standard error.
    pub(crate) fn jitgraft(&self, args: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        let output = command.args(args).current_dir(self.dir.path()).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {said}");
        said
    }

    /// The names that perf shows at each address where JIT code was interrupted, once it was injected into the
    /// recording.
    pub(crate) fn names_by_perf(&self) -> BTreeMap<u64, BTreeSet<String>> {
        self.jitgraft(&["inject", "-i", "perf.data", "-o", "perf.jit.data"]);
        let mut command = Command::new("perf");
        // Of callers perf prints places in the image.
        let script = ["script", "--hide-call-graph", "--no-demangle", "-F", "ip,sym,dso", "-i"];
        command.args(script).arg(self.path("perf.jit.data")).stdin(Stdio::null());
        let output = command.output().expect("perf is needed (tests/run.sh installs linux-perf)");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut names: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Some((frame, dso)) = line.trim().rsplit_once(" (") else { continue };
            let Some((ip, name)) = frame.split_once(' ').filter(|_| dso.contains("jitted-")) else { continue };
            names.entry(u64::from_str_radix(ip, 16).unwrap()).or_default().insert(name.to_owned());
        }
        assert!(!names.is_empty());
        names
    }
}
