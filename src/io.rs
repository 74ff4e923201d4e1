//! Opens inputs and replaces outputs. All memory maps are created here.
//!
//! Inputs are never modified: every file that is opened as an input is remembered (`opened`), and no output of the same
//! [`Run`] may replace it. An output gets its name only when it is complete ([`NewFile`]), so it appears as a whole or
//! not at all.

mod archive;
mod copy;
pub mod door;
pub mod guard;
mod hidden;
mod mapped;
mod modes;
mod new_file;
mod opened;
mod out_directory;
mod output;
mod permissions;
mod run;
mod spool;
pub mod started;
mod target;
mod terminal;
mod typed;
mod unopened;
mod viewing;
mod whole;

pub use archive::{Archive, is_archive};
pub use mapped::Bytes;
pub use modes::{Content, common_mode};
pub use new_file::NewFile;
pub use out_directory::OutDirectory;
pub use output::Output;
pub use run::Run;
pub use spool::{Spool, spool, temporary};
pub use terminal::{Terminal, is_color_forced};
pub use typed::{
    is_directory, is_file, is_there, open_system_file, read_system_file, read_system_text, typed_metadata, typed_names,
};
pub use viewing::{PrivateDirectory, has_viewer, show};

use crate::error::{Error, Result};
use door::{Door, Named, Start};
use mapped::map_regular;
use new_file::open_directory;
use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An input of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InPath {
    /// Standard input, typed as `-`.
    Stdin,
    /// A file whose path the user typed. For a perf.data recording, it may also be a directory.
    Path(PathBuf),
    /// A file that was found in a directory or named by a list, so that the user didn't type its path.
    Found(FoundPath),
}

/// The path of an input that was found in a directory or read from a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPath {
    path: PathBuf,
    /// The directory that the user typed and that `path` begins with; `None` for a path from a list.
    below: Option<Arc<Path>>,
}

/// An output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutPath {
    /// Standard output, typed as `-`.
    Stdout,
    /// A file, device or pipe with this path.
    Path(PathBuf),
}

impl From<PathBuf> for InPath {
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::Path(path) }
    }
}

impl InPath {
    /// The input's path; `None` for standard input.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdin => None,
            Self::Path(path) | Self::Found(FoundPath { path, .. }) => Some(path),
        }
    }

    /// The directory of the input, in which its jitdumps and perf maps may be, too. Empty for the current directory,
    /// and also for standard input: people type `jitgraft < perf.data` where the files are.
    pub fn directory(&self) -> Option<&Path> {
        self.path().map_or_else(|| Some(Path::new("")), Path::parent)
    }

    /// Metadata of the input's file. If a found path is a symbolic link, it is that of the link itself. `None` for
    /// standard input, or if there is no such file.
    pub fn metadata(&self) -> Option<Metadata> {
        match self {
            Self::Stdin => None,
            Self::Path(path) => typed_metadata(path),
            Self::Found(found) => found.door().look(&found.path),
        }
    }

    /// True if the input is a regular file.
    pub fn is_file(&self) -> bool {
        self.metadata().is_some_and(|about| about.is_file())
    }

    /// True if the input is a directory.
    pub fn is_directory(&self) -> bool {
        self.metadata().is_some_and(|about| about.is_dir())
    }

    /// The input for a file in this directory.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> Self {
        match self {
            Self::Stdin => Self::Stdin,
            Self::Path(path) => Self::Path(path.join(name)),
            Self::Found(found) => Self::Found(FoundPath { path: found.path.join(name), below: found.below.clone() }),
        }
    }

    /// How the files in an input directory may be opened. The user typed the directory but not the files' names, and
    /// other users may own the files.
    pub fn door_to_parts(&self) -> Door<'_> {
        match self {
            Self::Found(found) => found.door(),
            Self::Path(path) => Door { start: Start::Typed(path), ..Named::Part.door(false) },
            Self::Stdin => Named::Part.door(false),
        }
    }
}

impl FoundPath {
    /// An input whose path was read from a list.
    pub fn listed(path: PathBuf) -> Self {
        Self { path, below: None }
    }

    /// An input found below a directory that the user typed.
    pub fn below(directory: Arc<Path>, path: PathBuf) -> Self {
        Self { path, below: Some(directory) }
    }

    fn door(&self) -> Door<'_> {
        let start = self.below.as_deref().map_or(Start::Here, Start::Typed);
        Door { start, ..Named::Part.door(false) }
    }
}

impl From<PathBuf> for OutPath {
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::Stdout } else { Self::Path(path) }
    }
}

impl OutPath {
    /// The name of the output in messages.
    pub fn shown(&self) -> PathBuf {
        match self {
            Self::Stdout => PathBuf::from("(standard output)"),
            Self::Path(path) => path.clone(),
        }
    }

    /// The directory for files that jitgraft writes beside the output. `None` if the output is no file but standard
    /// output, a device or a pipe.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Path(path) if !self.is_stream() => path.parent(),
            Self::Path(_) | Self::Stdout => None,
        }
    }

    /// Fails if the output's path leads through a symbolic link that another user created. Needed only for files that
    /// another program will write: jitgraft's own outputs check this when they are created.
    pub fn refuse_foreign_links(&self) -> Result<()> {
        match self {
            Self::Path(path) => target::refuse_foreign_links(path).map_err(|error| error.in_file(path)),
            Self::Stdout => Ok(()),
        }
    }

    /// True if the output goes to a terminal.
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Path(path) => target::OutputTarget::resolve(path).is_ok_and(|target| target.is_terminal()),
        }
    }

    /// True if the output is a stream (standard output, a device or a pipe), which is written from front to back and
    /// can't be replaced.
    pub fn is_stream(&self) -> bool {
        match self {
            Self::Stdout => true,
            Self::Path(path) => target::OutputTarget::resolve(path).is_ok_and(|target| target.is_stream()),
        }
    }
}

/// The directory in which to look for jitdumps, perf maps and other files that belong to an input: the input's
/// directory, or the input itself if it is an archive.
pub fn companion_directory(input: &Path) -> Option<&Path> {
    if is_archive(input) { Some(input) } else { input.parent() }
}

/// Opens a path that the user typed. It may be any kind of file.
fn open_typed(path: &Path) -> Result<File> {
    open_system_file(path).map_err(|error| unopened::input_error(path, error))
}

/// Opens a path that the user didn't type. Fails unless it leads to a regular file.
fn open_found(found: &FoundPath) -> Result<File> {
    let absent = || unopened::input_error(&found.path, rustix::io::Errno::NOENT.into());
    found.door().open_file(&found.path).unwrap_or_else(|| Err(absent()))
}

/// Reads a text file whose path the user typed, and remembers the file as an input.
pub fn read_typed(path: &Path) -> io::Result<String> {
    let file = open_system_file(path)?;
    remember_typed(path, &file)?;
    io::read_to_string(file)
}

/// Maps a file whose path the user typed, and remembers it as an input. Files that can't be mapped (pipes, /proc) are
/// first copied to an unlinked temporary file.
pub fn map_file(path: &Path) -> Result<Bytes> {
    let map = || {
        let file = open_typed(path)?;
        remember_typed(path, &file)?;
        map_open_file(file)
    };
    map().map_err(|error| error.in_file(path))
}

/// Remembers a file whose path the user typed, so that no output of this run replaces it.
fn remember_typed(path: &Path, file: &File) -> io::Result<()> {
    let about = file.metadata()?;
    opened::remember(&about, modes::mode_of_typed(path, &about));
    Ok(())
}

/// Remembers the file that standard input reads from, so that no output of this run replaces it. The file's path is
/// unknown.
fn remember_stdin(file: &File) -> io::Result<()> {
    let about = file.metadata()?;
    let link_to_file = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    opened::remember(&about, modes::mode_of_typed(&link_to_file, &about));
    Ok(())
}

/// The contents of a file that is already open, whatever its position. The file is mapped, except in a program that
/// only uses the library (`whole`).
pub fn map_open_file(file: File) -> Result<Bytes> {
    map_unremembered(file)
}

/// Maps a file that an output of this run will replace. Unlike other inputs, it isn't remembered, because that would
/// forbid the output.
pub fn map_to_replace(path: &Path) -> Result<Bytes> {
    let file = open_typed(path)?;
    map_unremembered(file).map_err(|error| error.in_file(path))
}

fn map_unremembered(file: File) -> Result<Bytes> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return spool(file);
    }
    whole::contents(&file)
}

/// Remembers a directory of which all files are inputs, such as that of a recording. No output may be written there.
pub fn remember_input_directory(path: &Path) {
    if let Some(directory) = opened::FileId::from_path(path) {
        opened::remember_directory(directory);
    }
}

/// Maps a file that this process created and that nobody else can change.
pub fn map_own(file: &File) -> Result<Bytes> {
    if file.metadata()?.len() == 0 { Ok(Bytes::Owned(Vec::new())) } else { map_regular(file) }
}

/// Calls `write` with standard output, for commands that have no option for another output. Fails if standard output is
/// closed, or if not everything could be written.
pub fn print<T>(write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    if guard::stdout_was_closed() {
        return Err(Error::new("is closed").in_file(Path::new("(standard output)")));
    }
    let mut out = io::stdout().lock();
    let done = write(&mut out)?;
    out.flush()?;
    Ok(done)
}

/// Opens an input for random access. Standard input is mapped if it is a regular file, and copied to a temporary file
/// otherwise.
pub fn open(input: &InPath) -> Result<Bytes> {
    match input {
        InPath::Path(path) => map_file(path),
        InPath::Found(found) => map_open_file(open_found(found)?).map_err(|error| error.in_file(&found.path)),
        InPath::Stdin => {
            let stdin = io::stdin();
            let file = File::from(stdin.as_fd().try_clone_to_owned()?);
            map_stdin(file).map_err(|error| error.in_file(Path::new("(standard input)")))
        }
    }
}

/// Opens an input to be read once from its start, and remembers it. `None` for a directory, which has to be opened in
/// another way; it is opened here only to see whether that is possible.
pub fn open_stream(input: &InPath) -> Result<Option<File>> {
    let file = match input {
        InPath::Path(path) => {
            let file = open_typed(path)?;
            remember_typed(path, &file)?;
            file
        }
        InPath::Found(found) if input.is_directory() => open_directory(&found.path)?,
        InPath::Found(found) => open_found(found)?,
        // Standard input is remembered like the other inputs, so that no output replaces the file that it reads from.
        InPath::Stdin => {
            let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
            enlarge_pipe(&file);
            remember_stdin(&file)?;
            file
        }
    };
    Ok(if file.metadata()?.is_dir() { None } else { Some(file) })
}

/// Opens an input that will be read several times from its start, but not mapped. Anything but a regular file is first
/// copied to a temporary file without a name.
pub fn open_rewindable(input: &InPath) -> Result<File> {
    use std::io::Seek;
    let Some(mut file) = open_stream(input)? else { return Err(Error::new("is a directory")) };
    let at_start = file.metadata()?.is_file() && file.stream_position()? == 0;
    if at_start {
        return Ok(file);
    }
    let mut spooled = temporary()?.filled(file)?.into_file();
    spooled.rewind()?;
    Ok(spooled)
}

/// Enlarges the buffer of a pipe, so that programs at both ends run longer before one waits for the other. On two
/// processors this avoided three quarters of the context switches. Does nothing for other files.
fn enlarge_pipe(pipe: impl AsFd) {
    /// The largest size that Linux allows every user by default (`/proc/sys/fs/pipe-max-size`).
    const PIPE_SIZE: usize = 1 << 20;
    // Ignore an error: either `pipe` isn't a pipe, or this user's pipes already take up all the memory that they may.
    // In the latter case, the pipe is just slower.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_SIZE);
}

/// Maps standard input if it is a regular file that nothing was read from; otherwise copies what is left of it to a
/// temporary file.
fn map_stdin(mut file: File) -> Result<Bytes> {
    use std::io::Seek;
    remember_stdin(&file)?;
    // Standard input may be a file of which another program of the same shell command has read a part already.
    let at_start = file.metadata()?.is_file() && file.stream_position()? == 0;
    if at_start {
        return map_open_file(file);
    }
    spool(file)
}

/// An input that is read once from front to back, so that it is never in memory as a whole. The caller decompresses it
/// if necessary.
pub struct Stream {
    /// The bytes that were read so far in order to peek at them.
    head: Vec<u8>,
    /// How many bytes at the start of `head` the caller has consumed.
    consumed: usize,
    /// The reader for everything after `head`.
    rest: Box<dyn Read + Send>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("head", &self.head.len())
            .field("consumed", &self.consumed)
            .finish_non_exhaustive()
    }
}

impl Stream {
    /// A stream from any reader, such as a decompressor around another stream.
    pub fn new(rest: Box<dyn Read + Send>) -> Self {
        Self { head: Vec::new(), consumed: 0, rest }
    }

    /// The next bytes of the input, which stay in the stream: at most `most` bytes, and at least 4 KiB unless `most` is
    /// less or the input ends before that.
    pub fn peek(&mut self, most: usize) -> Result<&[u8]> {
        self.fill(most.min(1 << 12), most)
    }

    /// The first `len` bytes of the input, which stay in the stream. Fewer only if the input is shorter.
    pub fn peek_all(&mut self, len: usize) -> Result<&[u8]> {
        self.fill(len, len)
    }

    /// Converts the stream to a boxed reader that starts where this stream is. Unlike a boxed [`Stream`], it doesn't
    /// need the caller's buffers to be zeroed before it fills them.
    pub fn into_reader(self) -> Box<dyn Read + Send> {
        let mut head = io::Cursor::new(self.head);
        head.set_position(self.consumed as u64);
        Box::new(head.chain(self.rest))
    }

    /// Reads until `head` has at least `least` bytes or the input ends. `head` never gets more than `most` bytes.
    /// Returns the bytes of `head` that weren't consumed. After an error, what was read before it is kept.
    fn fill(&mut self, least: usize, most: usize) -> Result<&[u8]> {
        if self.head.len() < least {
            let mut filled = self.head.len();
            // Allocate the buffer anew, because the allocator can provide zeros at once. `Vec::resize` writes byte by
            // byte in a debug build, which took longer than all other work for a small input.
            let mut head = vec![0; most];
            head[..filled].copy_from_slice(&self.head);
            let mut result = Ok(());
            while filled < least && result.is_ok() {
                match self.rest.read(&mut head[filled..]) {
                    Ok(0) => break,
                    Ok(read) => filled += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => result = Err(error),
                }
            }
            // Keep what was read, even if an error came after it.
            head.truncate(filled);
            self.head = head;
            result?;
        }
        Ok(&self.head[self.consumed..])
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.consumed == self.head.len() {
            return self.rest.read(into);
        }
        let len = (&self.head[self.consumed..]).read(into)?;
        self.consumed += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peeked_bytes_are_read_again() {
        let mut stream = Stream::new(Box::new(&b"head and rest"[..]));
        assert_eq!(stream.peek(4).unwrap(), b"head");
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        assert_eq!(all, "head and rest");
        assert_eq!(Stream::new(Box::new(io::empty())).peek(100).unwrap(), b"");
    }
}
