//! The recording in `fixtures/php-recording`.

use std::path::{Path, PathBuf};

/// The ID of the recorded process, which is part of the jitdump's name.
pub(crate) const PID: &str = "31795";

/// The path of the compressed recording.
pub(crate) fn recording() -> PathBuf {
    folder().join("perf.data.zst")
}

/// The name under which jitgraft finds the jitdump.
pub(crate) fn dump_name() -> String {
    format!("jit-{PID}.dump")
}

/// The path of the jitdump.
pub(crate) fn dump() -> PathBuf {
    folder().join(dump_name())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/php-recording")
}
