//! The options of `pack`.

use crate::error::{Error, Result};
use crate::io::{InPath, OutPath};
use crate::pipeline::recording::RecordingOptions;
use std::path::PathBuf;

/// The options of `pack`: what to pack, and where to write the archive.
#[derive(Debug)]
pub struct PackOptions {
    /// The recording.
    pub input: InPath,
    /// The path of the archive. `None` means the recording's path with `.tar.zst` appended.
    pub output: Option<OutPath>,
    /// How to read the recording.
    pub recording: RecordingOptions,
    /// Pack ELF files without their code and data.
    pub symbols_only: bool,
    /// Parts that are packed only on request.
    pub requested: Vec<OptionalPart>,
    /// Files that are packed even if only their owner may read them.
    pub include: Vec<PathBuf>,
    /// List the contents instead of writing the archive.
    pub list: bool,
}

/// A part of the archive that is packed only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionalPart {
    /// The kernel's symbols with their addresses.
    Kallsyms,
    /// Scripts that have source maps, and the source maps.
    Scripts,
    /// The source files that contain the lines of samples.
    Sources,
    /// Core dumps that name JIT code.
    Cores,
    /// Files that other users can't read.
    Private,
}

impl PackOptions {
    /// The path of the archive. Fails if it must be derived from a recording on standard input.
    pub(super) fn output(&self) -> Result<OutPath> {
        match (&self.output, self.input.path()) {
            (Some(output), _) => Ok(output.clone()),
            (None, Some(path)) => {
                let mut name = path.as_os_str().to_owned();
                name.push(".tar.zst");
                Ok(OutPath::Path(name.into()))
            }
            (None, None) => Err(Error::usage("standard input has no name; pass -o FILE.tar.zst")),
        }
    }
}
