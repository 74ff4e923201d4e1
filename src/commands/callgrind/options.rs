//! The options of `callgrind`.

use crate::io::{InPath, OutPath};
use crate::jit::SourceOptions;
use crate::model::Pid;
use crate::model::code_file::object_name;
use std::path::{Path, PathBuf};

/// The options of `callgrind`: the profile to name, and where to write the result.
#[derive(Debug)]
pub struct CallgrindOptions {
    /// The callgrind file or report.
    pub input: InPath,
    /// `None` means the input's name with `.jit` appended, or standard output if the input is standard input.
    pub output: Option<OutPath>,
    /// The path of the ELF object. `None` means `jitted-PID.elf` next to the output.
    pub object: Option<PathBuf>,
    /// The process ID. Overrides the one that the file's content or name states.
    pub pid: Option<Pid>,
    /// A directory of raw machine code, with one file per function. `None` means the directory where MoarVM puts it.
    pub bytecode_dir: Option<PathBuf>,
    /// Where to find the names of JIT code.
    pub sources: SourceOptions,
}

impl CallgrindOptions {
    /// The path of the input; `None` for standard input.
    pub(super) fn path(&self) -> Option<&Path> {
        self.input.path()
    }

    /// Where to write the result.
    pub(super) fn output(&self) -> OutPath {
        match (&self.output, self.path()) {
            (Some(output), _) => output.clone(),
            (None, Some(path)) => OutPath::Path(with_suffix(path, ".jit")),
            (None, None) => OutPath::Stdout,
        }
    }

    /// The path of the ELF object, and the name by which the profile refers to it: only the file name if the object and
    /// the profile are in the same directory.
    pub(super) fn object(&self, pid: Pid) -> (PathBuf, Vec<u8>) {
        use std::os::unix::ffi::OsStrExt;
        let output = self.output();
        // If the profile goes to standard output, it has no directory, and the object is written next to the input.
        let directory = output.directory().or_else(|| self.path()?.parent()).unwrap_or(Path::new(""));
        let path = self.object.clone().unwrap_or_else(|| directory.join(object_name(pid)));
        let is_next_to_profile = path.parent().is_none_or(|parent| parent == directory);
        let name = if is_next_to_profile { Path::new(path.file_name().unwrap_or_default()) } else { &path };
        let name = name.as_os_str().as_bytes().to_vec();
        (path, name)
    }
}

/// Appends a suffix to the file name of a path.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
