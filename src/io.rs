//! Opens inputs and replaces outputs; the place for memory maps.
//!
//! An input is never touched: whatever is opened here is remembered (`opened`), and no output of the same [`Run`] may
//! take its place. An output gets its name when it is whole ([`NewFile`]): it appears complete or not at all.

mod archive;
mod copy;
pub mod door;
pub mod guard;
mod mapped;
pub mod memory_limit;
mod modes;
mod new_file;
mod opened;
mod out_directory;
mod output;
mod permissions;
mod run;
pub mod signals;
mod spool;
pub mod started;
mod target;
mod temporary_name;
mod terminal;
mod typed;
mod unopened;
mod viewing;

pub use archive::{Archive, is_archive};
pub use mapped::Bytes;
pub use modes::{Content, mode_within};
pub use new_file::NewFile;
pub use out_directory::OutDirectory;
pub use output::Output;
pub use run::Run;
pub use spool::{Spool, spool, temporary};
pub use terminal::{Terminal, is_colour_forced};
pub use typed::{about, is_directory, is_file, is_there, of_system, open_of_system, text_of_system, typed_names};
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

/// The input: `-` is standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InPath {
    /// Standard input.
    Stdin,
    /// A file (or, for perf.data, a directory).
    Path(PathBuf),
    /// One that was found in a directory, or that a list names: nobody typed its path.
    Found(FoundPath),
}

/// A path that was found below a directory, or in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPath {
    path: PathBuf,
    /// The directory that the user typed, which the path has at its start; `None` for one of a list.
    below: Option<Arc<Path>>,
}

/// The output: `-` is standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutPath {
    /// Standard output.
    Stdout,
    /// A file.
    Path(PathBuf),
}

impl From<PathBuf> for InPath {
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::Path(path) }
    }
}

impl InPath {
    /// Its path; `None` for standard input.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdin => None,
            Self::Path(path) | Self::Found(FoundPath { path, .. }) => Some(path),
        }
    }

    /// The file that is there, if anything is: of one that was found, a link that is not followed.
    pub fn about(&self) -> Option<Metadata> {
        match self {
            Self::Stdin => None,
            Self::Path(path) => about(path),
            Self::Found(found) => found.door().look(&found.path),
        }
    }

    /// True if it is a regular file.
    pub fn is_file(&self) -> bool {
        self.about().is_some_and(|about| about.is_file())
    }

    /// True if it is a directory.
    pub fn is_directory(&self) -> bool {
        self.about().is_some_and(|about| about.is_dir())
    }

    /// The same file of a directory.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> Self {
        match self {
            Self::Stdin => Self::Stdin,
            Self::Path(path) => Self::Path(path.join(name)),
            Self::Found(found) => Self::Found(FoundPath { path: found.path.join(name), below: found.below.clone() }),
        }
    }

    /// The way to the files of an input that is a directory: what is in it nobody typed, and it may be anybody's.
    pub fn door_to_parts(&self) -> Door<'_> {
        match self {
            Self::Found(found) => found.door(),
            Self::Path(path) => Door { start: Start::Typed(path), ..Named::Part.door(false) },
            Self::Stdin => Named::Part.door(false),
        }
    }
}

impl FoundPath {
    /// A path that a list names.
    pub fn listed(path: PathBuf) -> Self {
        Self { path, below: None }
    }

    /// A path below a directory that the user typed.
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
    /// The way it is called in messages.
    pub fn shown(&self) -> PathBuf {
        match self {
            Self::Stdout => PathBuf::from("(standard output)"),
            Self::Path(path) => path.clone(),
        }
    }

    /// The directory in which files that belong to the output go; `None` if it is written to no file: to standard
    /// output, a device or a pipe.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Path(path) if !self.is_stream() => path.parent(),
            Self::Path(_) | Self::Stdout => None,
        }
    }

    /// Refuses a place that a link of somebody else's leads to. Outputs of our own refuse it by themselves; this is for what
    /// another program writes.
    pub fn refuse_foreign_links(&self) -> Result<()> {
        match self {
            Self::Path(path) => target::refuse_foreign_links(path).map_err(|error| error.in_file(path)),
            Self::Stdout => Ok(()),
        }
    }

    /// True if a person sees it as it is written.
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Path(path) => target::OutputTarget::of(path).is_ok_and(|target| target.is_terminal()),
        }
    }

    /// True if it is written from front to back, as it is, and never replaced: standard output, a device, a pipe.
    pub fn is_stream(&self) -> bool {
        match self {
            Self::Stdout => true,
            Self::Path(path) => target::OutputTarget::of(path).is_ok_and(|target| target.is_stream()),
        }
    }
}

/// The directory of files that belong to an input: its own, or the input itself if it is an archive.
pub fn beside(input: &Path) -> Option<&Path> {
    if is_archive(input) { Some(input) } else { input.parent() }
}

/// Opens what the user typed, whatever it is.
fn open_typed(path: &Path) -> Result<File> {
    open_of_system(path).map_err(|error| unopened::input(path, error))
}

/// Opens what was found, if it is a regular file.
fn open_found(found: &FoundPath) -> Result<File> {
    let absent = || unopened::input(&found.path, rustix::io::Errno::NOENT.into());
    found.door().open_file(&found.path).unwrap_or_else(|| Err(absent()))
}

/// Reads a text that the user typed the path of.
pub fn read_typed(path: &Path) -> io::Result<String> {
    let file = open_of_system(path)?;
    remember_typed(path, &file)?;
    io::read_to_string(file)
}

/// Maps a file. Things that cannot be mapped (pipes, /proc) are spooled to an unlinked temporary file.
pub fn map_file(path: &Path) -> Result<Bytes> {
    let map = || {
        let file = open_typed(path)?;
        remember_typed(path, &file)?;
        map_open_file(file)
    };
    map().map_err(|error| error.in_file(path))
}

/// Notes an input that the user typed.
fn remember_typed(path: &Path, file: &File) -> io::Result<()> {
    let about = file.metadata()?;
    opened::remember(&about, modes::mode_of_typed(path, &about));
    Ok(())
}

/// Notes standard input, whose path is not known.
fn remember_stdin(file: &File) -> io::Result<()> {
    let about = file.metadata()?;
    let own = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    opened::remember(&about, modes::mode_of_typed(&own, &about));
    Ok(())
}

/// Maps an input that was opened here, from its start.
pub fn map_open_file(file: File) -> Result<Bytes> {
    map_unremembered(file)
}

/// Maps a file that the run will write anew: it is not input that an output could destroy.
pub fn map_to_replace(path: &Path) -> Result<Bytes> {
    let file = open_typed(path)?;
    map_unremembered(file).map_err(|error| error.in_file(path))
}

fn map_unremembered(file: File) -> Result<Bytes> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return spool(file);
    }
    map_regular(&file)
}

/// Records that a directory is an input as a whole, such as that of a recording.
pub fn opens_directory(path: &Path) {
    if let Some(directory) = opened::FileId::at(path) {
        opened::remember_directory(directory);
    }
}

/// Maps a file that this process has made and that is private.
pub fn map_own(file: &File) -> Result<Bytes> {
    if file.metadata()?.len() == 0 { Ok(Bytes::Owned(Vec::new())) } else { map_regular(file) }
}

/// Writes text to standard output, where no option names another place: all of it, or it is an error.
pub fn print<T>(write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    let to_stdout = |error: Error| error.in_file(Path::new("(standard output)"));
    if guard::stdout_was_closed() {
        return Err(to_stdout(Error::new("is closed")));
    }
    let mut out = io::stdout().lock();
    let done = write(&mut out)?;
    out.flush()?;
    Ok(done)
}

/// Opens an input wherever it is, whole. Standard input that is a regular file is mapped, else spooled.
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

/// Opens an input for reading once from its start; `None` for one that has to be opened another way (a directory).
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
            widen(&file);
            remember_stdin(&file)?;
            file
        }
    };
    Ok(if file.metadata()?.is_dir() { None } else { Some(file) })
}

/// Opens an input to be read several times from its start without being mapped: a regular file as it is, anything
/// else copied to an unlinked temporary file.
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

/// Lets a pipe hold as much as the system grants to anybody, so that both its ends run longer before they wait for each
/// other: on two processors a quarter of the switches are left. Anything else stays as it is.
fn widen(pipe: impl AsFd) {
    const GRANTED: usize = 1 << 20;
    // Refused where the user's pipes hold much already, and for what is not a pipe: slower, nothing else.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, GRANTED);
}

fn map_stdin(mut file: File) -> Result<Bytes> {
    use std::io::Seek;
    // A redirected file may already have been read from: map only if it is at its start.
    remember_stdin(&file)?;
    let at_start = file.metadata()?.is_file() && file.stream_position()? == 0;
    if at_start {
        return map_open_file(file);
    }
    spool(file)
}

/// An input that is read once from front to back, without ever being held whole. The caller handles the packing.
pub struct Stream {
    head: Vec<u8>,
    /// The part of `head` that was read.
    at: usize,
    rest: Box<dyn Read + Send>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("head", &self.head.len()).field("at", &self.at).finish_non_exhaustive()
    }
}

impl Stream {
    /// A stream from any reader, such as a decompressor around another stream.
    pub fn new(rest: Box<dyn Read + Send>) -> Self {
        Self { head: Vec::new(), at: 0, rest }
    }

    /// The first bytes, which stay to be read: one read's worth, but at least 4 KiB unless the input is shorter; at
    /// most `most`.
    pub fn peek(&mut self, most: usize) -> Result<&[u8]> {
        self.fill(most.min(1 << 12), most)
    }

    /// The first `len` bytes, which stay to be read; fewer only if the input is shorter.
    pub fn peek_all(&mut self, len: usize) -> Result<&[u8]> {
        self.fill(len, len)
    }

    /// The same as a reader of the standard library's, which need not clear the buffers that it fills.
    pub fn into_reader(self) -> Box<dyn Read + Send> {
        let mut head = io::Cursor::new(self.head);
        head.set_position(self.at as u64);
        Box::new(head.chain(self.rest))
    }

    fn fill(&mut self, least: usize, most: usize) -> Result<&[u8]> {
        while self.head.len() < least {
            let old = self.head.len();
            self.head.resize(most.max(old), 0);
            let read = self.rest.read(&mut self.head[old..]);
            self.head.truncate(old + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => break,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error.into()),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(&self.head[self.at..])
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.head.len() {
            return self.rest.read(into);
        }
        let len = (&self.head[self.at..]).read(into)?;
        self.at += len;
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
