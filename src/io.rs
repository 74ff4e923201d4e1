//! Opens inputs and replaces outputs; the place for memory maps.
//!
//! An input is never touched. An output gets its name when it is whole ([`NewFile`]): it appears complete or not at all.

mod new_file;

pub use new_file::NewFile;

use crate::error::{Error, Result};
use memmap2::{Mmap, UncheckedAdvice};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::{Deref, Range};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where to read from: `-` is standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InPath {
    /// Standard input.
    Stdin,
    /// A file (or, for perf.data, a directory).
    Path(PathBuf),
}

/// Where to write to: `-` is standard output.
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

impl From<PathBuf> for OutPath {
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::Stdout } else { Self::Path(path) }
    }
}

impl OutPath {
    /// How it is called in messages.
    pub fn shown(&self) -> PathBuf {
        match self {
            Self::Stdout => PathBuf::from("(standard output)"),
            Self::Path(path) => path.clone(),
        }
    }
}

/// The whole of an input: mapped, or in memory where it cannot be mapped.
#[derive(Debug)]
pub enum Bytes {
    /// A memory-mapped file.
    Mapped(Arc<Mmap>),
    /// Read into memory.
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl Bytes {
    /// Something to call with each range of the bytes that will not be looked at again: a mapped file's pages then
    /// leave this process's memory. They come back from the file if they are looked at all the same.
    pub fn releaser(&self) -> impl Fn(Range<usize>) + Send + Sync + 'static {
        let map = match self {
            Self::Mapped(map) => Some(Arc::clone(map)),
            Self::Owned(_) => None,
        };
        move |range| {
            if let Some(map) = &map {
                release(map, range);
            }
        }
    }
}

#[expect(unsafe_code, reason = "the kernel is told to forget pages of a map")]
fn release(map: &Mmap, range: Range<usize>) {
    let page = rustix::param::page_size();
    let (start, end) = (range.start.next_multiple_of(page), range.end.min(map.len()) / page * page);
    if start < end {
        // SAFETY: MADV_DONTNEED destroys what was written to private or anonymous memory; this map is read-only and
        // backed by a file, whose pages are read again when touched. A refusal costs memory, nothing else.
        let _ = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start) };
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Maps a file. Things that cannot be mapped (pipes, /proc) are spooled to an unlinked temporary file.
pub fn map_file(path: &Path) -> Result<Bytes> {
    let file = File::open(path).map_err(|error| Error::new("cannot open").because(error).in_file(path))?;
    map_open_file(file).map_err(|error| error.in_file(path))
}

/// Maps an open file from its start.
pub fn map_open_file(file: File) -> Result<Bytes> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return spool(file);
    }
    map_regular(&file)
}

/// Copies a stream to an unlinked temporary file and maps that: memory stays bounded, and it can be walked twice.
pub fn spool(mut stream: impl Read) -> Result<Bytes> {
    let mut file = temporary()?;
    let len = io::copy(&mut stream, &mut file)?;
    if len == 0 { Ok(Bytes::Owned(Vec::new())) } else { map_regular(&file) }
}

/// A new temporary file without a name.
pub fn temporary() -> Result<File> {
    tempfile::tempfile().map_err(|error| Error::new("cannot make a temporary file").because(error))
}

/// Maps an unlinked temporary file that a reader filled itself.
pub fn map_spool(file: &File) -> Result<Bytes> {
    if file.metadata()?.len() == 0 { Ok(Bytes::Owned(Vec::new())) } else { map_regular(file) }
}

#[expect(unsafe_code, reason = "the only memory map")]
fn map_regular(file: &File) -> Result<Bytes> {
    // SAFETY: the map is read-only and private to this process's view; the contract that memmap2 cannot check is
    // that nobody shortens the file meanwhile. Recordings are finished when we read them; dumps and maps of other
    // owners are refused, or copied first (`sources::trust`). A file cut under us ends the process by SIGBUS:
    // the output, which has no name yet, then never appears.
    let map = unsafe { Mmap::map(file) }.map_err(|error| Error::new("cannot map into memory").because(error))?;
    Ok(Bytes::Mapped(Arc::new(map)))
}

/// Opens an input wherever it is, whole. Standard input that is a regular file is mapped, else spooled.
pub fn open(input: &InPath) -> Result<Bytes> {
    match input {
        InPath::Path(path) => map_file(path),
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
            File::open(path).map_err(|error| Error::new("cannot open").because(error).in_file(path))?
        }
        InPath::Stdin => {
            let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
            widen(&file);
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
    let mut spooled = temporary()?;
    io::copy(&mut file, &mut spooled)?;
    spooled.rewind()?;
    Ok(spooled)
}

/// Lets a pipe hold as much as the system grants to anybody, so that both its ends run longer before they wait for each
/// other: on two processors a quarter of the switches are left. Anything else stays as it is.
fn widen(pipe: impl AsFd) {
    const GRANTED: usize = 1 << 20;
    // Refused where the user's pipes hold much already, and for what is no pipe: slower, nothing else.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, GRANTED);
}

fn map_stdin(mut file: File) -> Result<Bytes> {
    use std::io::Seek;
    // A redirected file may already have been read from: map only if it stands at its start.
    let at_start = file.metadata()?.is_file() && file.stream_position()? == 0;
    if at_start { map_open_file(file) } else { spool(file) }
}

/// An input that is read once from front to back, without ever being held whole. What it is packed in is the
/// caller's business.
pub struct Stream {
    head: Vec<u8>,
    /// How much of `head` was read.
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

/// Whether two paths name one existing file.
pub fn same_file(a: &Path, b: &Path) -> bool {
    match (std::fs::metadata(a), std::fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// An output under way. Dropped without [`Output::commit`], nothing appears.
#[derive(Debug)]
pub struct Output {
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Stdout(BufWriter<io::Stdout>),
    File {
        new: BufWriter<Writing>,
        path: PathBuf,
    },
    /// A device or pipe that cannot be replaced (`/dev/null`, a named pipe) is written to directly.
    Special(BufWriter<File>),
}

const BUFFER: usize = 1 << 18;

/// A new file, written.
#[derive(Debug)]
struct Writing(NewFile);

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    /// Tries the output path before the long work: the temporary file is made now.
    pub fn create(path: &OutPath) -> Result<Self> {
        let inner = match path {
            OutPath::Stdout => {
                widen(io::stdout());
                Inner::Stdout(BufWriter::with_capacity(BUFFER, io::stdout()))
            }
            OutPath::Path(path) => Self::create_file(path).map_err(|error| error.in_file(path))?,
        };
        Ok(Self { inner })
    }

    fn create_file(path: &Path) -> Result<Inner> {
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            let file = File::options().write(true).open(path)?;
            return Ok(Inner::Special(BufWriter::with_capacity(BUFFER, file)));
        }
        if path.is_dir() {
            return Err(Error::new("is a directory"));
        }
        let new = NewFile::create_in(path.parent().unwrap_or(Path::new("")), 0o666);
        let new = new.map_err(|error| Error::new("cannot write there").because(error))?;
        Ok(Inner::File { new: BufWriter::with_capacity(BUFFER, Writing(new)), path: path.to_owned() })
    }

    /// The file behind it where there is a plain one, for copying in the kernel and for writing at offsets.
    /// Flushes what was written so far.
    pub fn as_file(&mut self) -> Result<Option<&mut File>> {
        self.flush()?;
        Ok(match &mut self.inner {
            Inner::Stdout(_) | Inner::Special(_) => None,
            Inner::File { new, .. } => Some(new.get_mut().0.file_mut()),
        })
    }

    /// Appends a stretch of a file, copied by the kernel. `false` if that cannot be done with this output: nothing
    /// was written then.
    pub fn copy_from(&mut self, file: &File, range: Range<u64>) -> Result<bool> {
        let Some(out) = self.as_file()? else { return Ok(false) };
        let (mut at, mut copied) = (range.start, false);
        while at < range.end {
            let left = usize::try_from(range.end - at).unwrap_or(usize::MAX);
            match rustix::fs::copy_file_range(file, Some(&mut at), &out, None, left) {
                Ok(0) => return Err(Error::new("the input became shorter while it was copied").at(at)),
                Ok(_) => copied = true,
                Err(rustix::io::Errno::INTR) => {}
                // Not between these two file systems.
                Err(_) if !copied => return Ok(false),
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
        Ok(true)
    }

    /// Makes the output appear.
    pub fn commit(mut self) -> Result<()> {
        self.flush()?;
        match self.inner {
            Inner::Stdout(_) | Inner::Special(_) => Ok(()),
            Inner::File { new, path } => {
                let Writing(new) = new.into_inner().map_err(|error| Error::from(error.into_error()))?;
                new.persist(&path)
                    .map_err(|error| Error::new("cannot be put into its place").because(error).in_file(&path))
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.inner {
            Inner::Stdout(out) => out.write(bytes),
            Inner::File { new, .. } => new.write(bytes),
            Inner::Special(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.inner {
            Inner::Stdout(out) => out.flush(),
            Inner::File { new, .. } => new.flush(),
            Inner::Special(file) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let out = OutPath::Path(path.clone());
        let mut dropped = Output::create(&out).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let mut whole = Output::create(&out).unwrap();
        whole.write_all(b"whole").unwrap();
        assert!(!path.exists());
        whole.commit().unwrap();
        assert_eq!(&map_file(&path).unwrap()[..], b"whole");
    }

    #[test]
    fn what_was_peeked_at_is_read_again() {
        let mut stream = Stream::new(Box::new(&b"head and rest"[..]));
        assert_eq!(stream.peek(4).unwrap(), b"head");
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        assert_eq!(all, "head and rest");
        assert_eq!(Stream::new(Box::new(io::empty())).peek(100).unwrap(), b"");
    }

    #[test]
    fn a_stream_is_spooled_and_mapped() {
        assert_eq!(&spool(&b"stream"[..]).unwrap()[..], b"stream");
        assert!(spool(io::empty()).unwrap().is_empty());
    }
}
