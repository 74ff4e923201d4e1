//! An output in progress: a file that appears when it is complete, or a stream.

use super::door::OutputName;
use super::modes::{ANY_MODE, Content, OWNER};
use super::new_file::{NamedPlace, NewFile};
use super::permissions::FileAttributes;
use super::run::{OutputPlace, Run};
use super::target::{self, OutputTarget};
use super::{OutPath, enlarge_pipe, unopened};
use crate::error::{Error, Result};
use rustix::fs::{Mode, OFlags, fchmod};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, IoSlice, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An output in progress. If it is dropped without [`Output::commit`], no file appears.
#[derive(Debug)]
pub struct Output {
    out: BufWriter<Destination>,
    /// The output's name for error messages.
    shown: PathBuf,
}

/// Where an output is written.
#[derive(Debug)]
struct Destination {
    kind: DestinationKind,
    run: Run,
}

#[derive(Debug)]
enum DestinationKind {
    /// A new file, which gets its name only when it is complete.
    New(PendingFile),
    /// A file that is already open and is written to directly, such as standard output. The place is `None` for a
    /// device or pipe. Written bytes can't be taken back, so writing fails as soon as the same file is opened as an
    /// input.
    Open(File, Option<OutputPlace>),
}

/// A new file that isn't complete, and the name that it will get.
#[derive(Debug)]
struct PendingFile {
    file: NewFile,
    name: OsString,
    content: Content,
    /// True if the new file replaces another one, whose attributes it has already.
    replaces: bool,
}

/// The buffer size in bytes. A text that is at least as long is written directly, without copying it into the buffer,
/// in pieces of [`MAX_WRITE`] bytes. The buffer is half as large as that, so that the last piece, which is shorter, is
/// mostly written directly, too.
const BUFFER: usize = MAX_WRITE / 2;

/// The maximum number of bytes per write. Longer writes take Linux several times as long: a gigabyte of a mapped file
/// took 1.1 to 2.5 s in one call, but 0.2 to 0.4 s in calls of up to half a megabyte (Linux 6.18, ext4; the reason is
/// unknown).
const MAX_WRITE: usize = 1 << 17;

fn first_write(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(MAX_WRITE)]
}

/// The slices to write first: as many as fit into [`MAX_WRITE`] bytes. Empty if the first slice alone is longer.
fn slices_of_first_write<'s, 'data>(slices: &'s [IoSlice<'data>]) -> &'s [IoSlice<'data>] {
    let mut len = 0;
    let fits = |slice: &&IoSlice<'_>| {
        len += slice.len();
        len <= MAX_WRITE
    };
    &slices[..slices.iter().take_while(fits).count()]
}

impl Destination {
    /// The file to write to. Fails if the output goes to a file that was already open, such as standard output, and the
    /// run has opened the same file as an input in the meantime.
    fn file(&mut self) -> io::Result<&mut File> {
        match &mut self.kind {
            DestinationKind::New(new) => Ok(new.file.file_mut()),
            DestinationKind::Open(file, place) => {
                if let Some(place) = place {
                    self.run.check(place).map_err(io::Error::other)?;
                }
                Ok(file)
            }
        }
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(first_write(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match slices_of_first_write(slices) {
            [] => self.write(slices.first().map_or(&[], |first| first)),
            some => self.file()?.write_vectored(some),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    /// Starts an output. Fails if another output of the run goes to the same place, or if an input is there. A new file
    /// is created now, under no or a temporary name, so that an unusable path is noticed before the long work.
    pub fn create(path: &OutPath, run: &Run) -> Result<Self> {
        Self::create_for(path, run.content(), run)
    }

    /// Creates an output whose content isn't what the run's outputs usually have. Who may read the output depends on
    /// the content. Apart from that, like [`Self::create`].
    pub fn create_for(path: &OutPath, content: Content, run: &Run) -> Result<Self> {
        let shown = path.shown();
        let kind = DestinationKind::new(path, content, run).map_err(|error| error.in_file(&shown))?;
        Ok(Self { out: BufWriter::with_capacity(BUFFER, Destination { kind, run: run.clone() }), shown })
    }

    /// Flushes the buffer and returns the new file, for writing at offsets. `None` if there is no new file: the output
    /// goes to a descriptor that was already open, or to a device or pipe.
    pub fn as_file(&mut self) -> Result<Option<&mut File>> {
        self.flush()?;
        Ok(match &mut self.out.get_mut().kind {
            DestinationKind::Open(..) => None,
            DestinationKind::New(new) => Some(new.file.file_mut()),
        })
    }

    /// The path at which the new file will appear. `None` if there is no new file: the output goes to a descriptor that
    /// was already open, or to a device or pipe.
    pub fn new_path(&self) -> Option<&Path> {
        match &self.out.get_ref().kind {
            DestinationKind::Open(..) => None,
            DestinationKind::New(_) => Some(&self.shown),
        }
    }

    /// True if the output goes to a terminal.
    pub fn is_terminal(&self) -> bool {
        matches!(&self.out.get_ref().kind, DestinationKind::Open(file, _) if file.is_terminal())
    }

    /// Completes the output, and gives a new file its name. Fails if the file with this name was opened as an input in
    /// the meantime.
    pub fn commit(mut self) -> Result<()> {
        self.flush()?;
        let Self { out, shown } = self;
        let Destination { kind, run } = out.into_inner().map_err(|error| write_error(error.into_error(), &shown))?;
        // An output that goes to a file that was already open is complete now.
        let DestinationKind::New(new) = kind else { return Ok(()) };
        let place = new.file.place(&new.name).map_err(|error| placing_error(error, &shown))?;
        run.check(&OutputPlace::Name(place)).map_err(|error| error.in_file(&shown))?;
        new.set_mode(&run).map_err(|error| placing_error(error, &shown))?;
        new.file.persist(&new.name).map_err(|error| placing_error(error, &shown))
    }
}

impl DestinationKind {
    /// Opens the destination of an output: a new file, or a file that is already open. Fails if the run doesn't allow
    /// an output there.
    fn new(path: &OutPath, content: Content, run: &Run) -> Result<Self> {
        let file = match path {
            OutPath::Stdout => {
                let out = target::reopen(1).map_err(closed_error)?;
                enlarge_pipe(&out);
                out
            }
            OutPath::Path(path) => match OutputTarget::resolve(path)? {
                OutputTarget::File(place) => return Self::file(path, *place, content, run),
                OutputTarget::Descriptor(number) => target::reopen(number).map_err(closed_error)?,
                OutputTarget::Special(file) => target::writable(&file, OFlags::empty())?,
            },
        };
        // Output to a descriptor, device or pipe is written right away, without a new file. The file behind it is still
        // claimed for this run, because it may also be an input or the target of another output.
        let place = OutputPlace::open(&file);
        if let Some(place) = &place {
            run.claim(place)?;
        }
        Ok(Self::Open(file, place))
    }

    /// Creates the new file for the output's place. If it will replace a file, takes over that file's attributes.
    fn file(path: &Path, place: OutputName, content: Content, run: &Run) -> Result<Self> {
        let OutputName { directory, name, existing } = place;
        run.claim(&OutputPlace::Name(NamedPlace::look_up(&directory, &name)?))?;
        let replaced = existing.and_then(|existing| FileAttributes::read(&existing, &directory));
        let replaces = replaced.is_some();
        // Nobody else may open the new file before it has the attributes of the file that it replaces.
        let new = NewFile::create_at(directory, if replaces { OWNER } else { content.initial_mode() });
        let file = new.map_err(|error| unopened::output_error(path.parent().unwrap_or(Path::new("")), error))?;
        if let Some(replaced) = replaced {
            replaced.apply_to(&file)?;
        }
        Ok(Self::New(PendingFile { file, name, content, replaces }))
    }
}

impl PendingFile {
    /// Sets the permissions of the complete file. They depend on those of the inputs, which are all known only now.
    fn set_mode(&self, run: &Run) -> io::Result<()> {
        let own = self.file.file().metadata()?.mode() & ANY_MODE;
        let mode = self.content.final_mode(own, self.replaces, run.mode_of_inputs());
        if mode == own { Ok(()) } else { Ok(fchmod(self.file.file(), Mode::from_raw_mode(mode))?) }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|error| write_error(error, &self.shown))
    }

    /// Writes the slices directly, after what is in the buffer, without copying them into it.
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        write_through(&mut self.out, slices).map_err(|error| write_error(error, &self.shown))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|error| write_error(error, &self.shown))
    }
}

fn write_through(out: &mut BufWriter<impl Write>, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    if !out.buffer().is_empty() {
        out.flush()?;
    }
    out.get_mut().write_vectored(slices)
}

/// Adds the output's name to a write error, in a form that the caller can turn back into an [`Error`]. An error because
/// of a closed pipe stays as it is: callers recognize it by its kind.
fn write_error(error: io::Error, shown: &Path) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted => error,
        _ => match error.downcast::<Error>() {
            Ok(own) => io::Error::other(own.in_file(shown)),
            Err(error) => io::Error::other(Error::new("cannot be written").because(error).in_file(shown)),
        },
    }
}

/// The error for a descriptor that can't be written to.
fn closed_error(error: io::Error) -> Error {
    Error::new("is closed").because(error)
}

fn placing_error(error: io::Error, shown: &Path) -> Error {
    Error::new("the finished temporary file cannot be renamed to this name").because(error).in_file(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{map_file, remember_input_directory};
    use std::fs;

    #[test]
    fn an_output_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let out = OutPath::Path(path.clone());
        let mut dropped = Output::create(&out, &Run::begin()).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let mut whole = Output::create(&out, &Run::begin()).unwrap();
        whole.write_all(b"whole").unwrap();
        assert!(!path.exists());
        whole.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn slices_are_written_behind_what_was_buffered_and_not_too_many_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut out = Output::create(&OutPath::Path(path.clone()), &Run::begin()).unwrap();
        out.write_all(b"first ").unwrap();
        let (short, long) = (vec![b's'; MAX_WRITE - 1], vec![b'l'; MAX_WRITE + 1]);
        let mut written = Vec::new();
        for texts in [[&b""[..], b"one", &short], [&long[..], b"", b"two"]] {
            let mut slices = texts.map(IoSlice::new);
            let (mut left, mut counts) = (&mut slices[..], Vec::new());
            IoSlice::advance_slices(&mut left, 0);
            while !left.is_empty() {
                counts.push(out.write_vectored(left).unwrap());
                IoSlice::advance_slices(&mut left, counts[counts.len() - 1]);
            }
            written.push(counts);
        }
        out.write_all(b" last").unwrap();
        out.commit().unwrap();
        let expected = [&b"first one"[..], &short, &long, b"two last"].concat();
        assert!(std::fs::read(&path).unwrap() == expected);
        assert_eq!(written, [vec![3, MAX_WRITE - 1], vec![MAX_WRITE, 4]]);
    }

    fn directory() -> (tempfile::TempDir, impl Fn(&str) -> PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let root = dir.path().to_owned();
        (dir, move |name| root.join(name))
    }

    fn write(run: &Run, path: PathBuf) -> Result<()> {
        let mut output = Output::create(&OutPath::Path(path), run)?;
        output.write_all(b"new")?;
        output.commit()
    }

    #[test]
    fn a_file_read_by_one_run_may_be_written_by_another() {
        let (_dir, at) = directory();
        // The log is shared by all runs of the process, so another run must last longer than both.
        let outer = Run::begin();
        for (from, to) in [("a", "b"), ("b", "a"), ("b", "a")] {
            let run = Run::begin();
            map_file(&at(from)).unwrap();
            assert!(write(&run, at(from)).unwrap_err().is_usage());
            write(&run, at(to)).unwrap();
        }
        drop(outer);
    }

    #[test]
    fn a_file_opened_after_the_output_was_begun_is_not_replaced() {
        let (_dir, at) = directory();
        let run = Run::begin();
        let output = Output::create(&OutPath::Path(at("a")), &run).unwrap();
        map_file(&at("a")).unwrap();
        assert!(output.commit().unwrap_err().is_usage());
        assert_eq!(fs::read(at("a")).unwrap(), b"a");
    }

    #[test]
    fn an_input_that_is_moved_to_where_the_output_goes_stays() {
        let (_dir, at) = directory();
        let run = Run::begin();
        map_file(&at("a")).unwrap();
        for place in ["b", "new"] {
            let mut output = Output::create(&OutPath::Path(at(place)), &run).unwrap();
            output.write_all(b"new").unwrap();
            fs::rename(at("a"), at(place)).unwrap();
            assert!(output.commit().unwrap_err().is_usage());
            assert_eq!(fs::read(at(place)).unwrap(), b"a");
            fs::rename(at(place), at("a")).unwrap();
        }
    }

    #[test]
    fn two_outputs_have_two_places() {
        let (_dir, at) = directory();
        std::os::unix::fs::symlink("new", at("link")).unwrap();
        let run = Run::begin();
        let first = Output::create(&OutPath::Path(at("new")), &run).unwrap();
        assert!(Output::create(&OutPath::Path(at("link")), &run).unwrap_err().is_usage());
        assert!(run.leave_outputs(&at("new")).unwrap_err().is_usage());
        run.leave_outputs(&at("other")).unwrap();
        first.commit().unwrap();
        assert!(Output::create(&OutPath::Path(at("new")), &run).unwrap_err().is_usage());
    }

    #[test]
    fn nothing_is_written_into_a_directory_that_is_an_input() {
        let (dir, at) = directory();
        let run = Run::begin();
        remember_input_directory(dir.path());
        assert!(write(&run, at("new")).unwrap_err().is_usage());
        assert!(!at("new").exists());
    }
}
