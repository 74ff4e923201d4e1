//! Opens inputs and replaces outputs. All memory maps are created here.
//!
//! Inputs are never modified: every file opened here is remembered (`opened`), and no output of the same [`Run`] may
//! replace it. An output only gets its name when it is complete ([`NewFile`]), so it appears as a whole or not at all.

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
    /// A file whose path the user typed. For perf.data, it may be a directory.
    Path(PathBuf),
    /// A file that was found in a directory or named by a list, so that the user didn't type its path.
    Found(FoundPath),
}

/// A path that was found in a directory, or read from a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPath {
    path: PathBuf,
    /// The directory that the user typed, with which the path begins; `None` for a path from a list.
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

    /// The directory of the input, in which jitdumps and perf maps may be as well. It is empty for the current
    /// directory, which is also that of standard input: people type `jitgraft < perf.data` where the files are.
    pub fn directory(&self) -> Option<&Path> {
        self.path().map_or_else(|| Some(Path::new("")), Path::parent)
    }

    /// Metadata of the input's file. For a found path that is a symbolic link, the link's own metadata. `None` for
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

    /// The rules for opening the files of an input that is a directory. The user typed the directory but not the files'
    /// names, and other users may own the files.
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

    /// The directory for files that accompany the output; `None` if the output isn't a file but standard output, a
    /// device or a pipe.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Path(path) if !self.is_stream() => path.parent(),
            Self::Path(_) | Self::Stdout => None,
        }
    }

    /// Fails if the output's path leads through a symbolic link that another user created. jitgraft's own outputs check
    /// this when they are created; call this for files that another program will write.
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

/// Opens a path that the user typed, whatever kind of file it is.
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
    let own = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    opened::remember(&about, modes::mode_of_typed(&own, &about));
    Ok(())
}

/// The contents of an input that is already open, from its start. They are mapped, unless this is a program that only
/// uses the library (`whole`).
pub fn map_open_file(file: File) -> Result<Bytes> {
    map_unremembered(file)
}

/// Maps a file that this run will replace. It doesn't count as an input, because an output may overwrite it.
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

/// Remembers that all files in a directory are inputs, so that no output is written there: for a recording's directory.
pub fn remember_input_directory(path: &Path) {
    if let Some(directory) = opened::FileId::from_path(path) {
        opened::remember_directory(directory);
    }
}

/// Maps a private file that this process created.
pub fn map_own(file: &File) -> Result<Bytes> {
    if file.metadata()?.len() == 0 { Ok(Bytes::Owned(Vec::new())) } else { map_regular(file) }
}

/// Passes standard output to `write`, for commands without an option for the output. Fails if standard output is closed
/// or not everything could be written.
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

/// Opens an input to be read once from its start, and notes that no output of this run may replace it. `None` for a
/// directory, which must be opened in another way; it is opened here only to be checked.
pub fn open_stream(input: &InPath) -> Result<Option<File>> {
    let file = match input {
        InPath::Path(path) => {
            let file = open_typed(path)?;
            remember_typed(path, &file)?;
            file
        }
        InPath::Found(found) if input.is_directory() => open_directory(&found.path)?,
        InPath::Found(found) => open_found(found)?,
        InPath::Stdin => {
            let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
            enlarge_pipe(&file);
            remember_stdin(&file)?;
            file
        }
    };
    Ok(if file.metadata()?.is_dir() { None } else { Some(file) })
}

/// Opens an input that will be read several times from its start, without mapping it. Anything but a regular file is
/// copied to an unlinked temporary file.
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

/// Enlarges the buffer of a pipe, so that both ends run longer before they wait for each other. On two processors this
/// avoided three quarters of the context switches. Does nothing for other files.
fn enlarge_pipe(pipe: impl AsFd) {
    /// As large as Linux allows for any user by default (`/proc/sys/fs/pipe-max-size`).
    const PIPE_SIZE: usize = 1 << 20;
    // Fails if the user's pipes are already large, or if this isn't a pipe. The only consequence is lower speed.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_SIZE);
}

/// Maps standard input if it is a regular file that nothing was read from; otherwise copies what is left of it to a
/// temporary file.
fn map_stdin(mut file: File) -> Result<Bytes> {
    use std::io::Seek;
    remember_stdin(&file)?;
    // If the shell redirects a file, another program may have read a part of it already.
    let at_start = file.metadata()?.is_file() && file.stream_position()? == 0;
    if at_start {
        return map_open_file(file);
    }
    spool(file)
}

/// An input that is read once from front to back, without being in memory as a whole. The caller decompresses it.
pub struct Stream {
    /// Bytes that were read in order to peek at them.
    head: Vec<u8>,
    /// How many bytes of `head` the caller has read.
    consumed: usize,
    /// Provides what follows `head`.
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

    /// The next bytes of the input, without consuming them: at most `most` bytes, and at least 4 KiB unless `most` is
    /// less or the input ends before that.
    pub fn peek(&mut self, most: usize) -> Result<&[u8]> {
        self.fill(most.min(1 << 12), most)
    }

    /// The first `len` bytes of the input without consuming them; fewer only if the input is shorter.
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

    /// Reads until `head` has at least `least` bytes or the input ends, but never more than `most` bytes. Returns the
    /// bytes of `head` that weren't consumed. After an error, the bytes that were read before it are kept.
    fn fill(&mut self, least: usize, most: usize) -> Result<&[u8]> {
        if self.head.len() < least {
            let mut filled = self.head.len();
            // The allocator zeroes it. `Vec::resize` writes byte by byte in a debug build, which took longer than
            // everything else that is done for a small input.
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
