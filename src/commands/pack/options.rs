//! The recording to pack, and the output.

use crate::error::{Error, Result};
use crate::io::{InPath, OutPath};
use crate::pipeline::recording::RecordingOptions;
use std::path::PathBuf;

/// The recording to pack, and the output.
#[derive(Debug)]
pub struct PackOptions {
    /// The recording.
    pub input: InPath,
    /// The archive; `None` means the recording's name with `.tar.zst` behind it.
    pub output: Option<OutPath>,
    /// How to read.
    pub recording: RecordingOptions,
    /// True if files that ran are packed without their code and data.
    pub symbols_only: bool,
    /// The other parts that go in.
    pub asked_for: Vec<AskedFor>,
    /// Files that go in whoever may read them.
    pub include: Vec<PathBuf>,
    /// True if the archive is not written, and its contents are listed.
    pub list: bool,
}

/// The parts that can be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedFor {
    /// The list of the kernel's symbols, with their addresses.
    Kallsyms,
    /// Scripts that have source maps, and these.
    Scripts,
    /// Source files that samples have lines in.
    Sources,
    /// Core dumps that name code.
    Cores,
    /// Files that others may not read.
    Private,
}

impl PackOptions {
    /// The path of the archive.
    pub(super) fn output(&self) -> Result<OutPath> {
        match (&self.output, self.input.path()) {
            (Some(output), _) => Ok(output.clone()),
            (None, Some(path)) => {
                let mut name = path.as_os_str().to_owned();
                name.push(".tar.zst");
                Ok(OutPath::Path(name.into()))
            }
            (None, None) => Err(Error::usage("pass -o FILE.tar.zst: standard input has no name")),
        }
    }
}
