//! Runs perf on recordings of the tests.

use std::path::Path;
use std::process::{Command, Stdio};

/// What perf printed on stdout and stderr.
pub(crate) struct Said {
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

/// Runs perf on a recording. Panics if perf fails.
pub(crate) fn perf(args: &[&str], data: &Path) -> Said {
    let mut command = Command::new("perf");
    command.args(args).arg("-i").arg(data).stdin(Stdio::null());
    let output = command.output().expect("perf is needed (tests/run.sh installs linux-perf)");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{err}", output.status);
    Said { out: output.stdout, err }
}

/// Runs `perf script` with the columns that [`super::truth::read_script`] expects.
pub(crate) fn script(data: &Path) -> Said {
    perf(&["script", "--no-inline", "--no-demangle", "--ns", "-F", "pid,tid,time,ip,sym,dso"], data)
}

/// The number of records of each type, as `perf report --stats` prints them: `("MMAP2", 3)`.
pub(crate) fn stats(data: &Path) -> Vec<(String, u64)> {
    let text = String::from_utf8(perf(&["report", "--stats"], data).out).unwrap();
    let counts = text.lines().filter_map(|line| {
        let (name, rest) = line.trim().split_once(" events:")?;
        Some((name.to_owned(), rest.split_whitespace().next()?.parse().ok()?))
    });
    counts.collect()
}
