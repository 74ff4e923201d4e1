//! The recording in `fixtures/php-recording`: its process and its files.

use std::path::{Path, PathBuf};

/// The process, which is part of the dump's name.
pub(crate) const PID: &str = "31795";

/// The packed recording.
pub(crate) fn recording() -> PathBuf {
    folder().join("perf.data.zst")
}

/// The name under which its dump is found.
pub(crate) fn dump_name() -> String {
    format!("jit-{PID}.dump")
}

/// The dump.
pub(crate) fn dump() -> PathBuf {
    folder().join(dump_name())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/php-recording")
}
