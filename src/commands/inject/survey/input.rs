//! The recording to be rewritten, as one stream of plain records.
//!
//! A file's records are used where they are. Compressed records, pipes and directories are written out plainly to an
//! unlinked temporary file first, in the order in which they stand (a directory's streams one after the other: it
//! has no rounds, readers sort them).

use crate::error::{Error, Result, Warning, Warnings};
use crate::formats::perf_data::{Decompressor, Feature, Form, Recording, Records, Stop, is_compressed, kind};
use crate::io::{self, Bytes, InPath};
use crate::pipeline::open::{recording_in, unpack};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// An opened recording.
#[derive(Debug)]
pub(in crate::commands) struct Input {
    /// What stands around the records.
    pub(in crate::commands) recording: Recording,
    /// The file's bytes.
    bytes: Bytes,
    /// The plain records, where they are not the file's own.
    plain: Option<Bytes>,
    /// What `plain` or `bytes` shows, for copying in the kernel.
    pub(in crate::commands) file: Option<File>,
    /// Where AUXTRACE records were in the input, and where they are in `plain`.
    auxtrace: Vec<(u64, u64)>,
    /// How it is called in messages.
    pub(in crate::commands) shown: PathBuf,
    /// How the records were kept, if that was not plainly.
    pub(in crate::commands) was: Option<String>,
}

impl Input {
    /// Opens it.
    pub(in crate::commands) fn open(path: &InPath, warnings: &mut Warnings) -> Result<Self> {
        let shown = crate::pipeline::open::shown(path);
        let mut own = Warnings::new();
        let opened = Self::open_shown(path, shown.clone(), &mut own);
        warnings.append(own.in_file(&shown));
        opened.map_err(|error| error.in_file(&shown))
    }

    fn open_shown(path: &InPath, shown: PathBuf, warnings: &mut Warnings) -> Result<Self> {
        let directory = match path {
            InPath::Path(path) if path.is_dir() => Some(path.as_path()),
            _ => None,
        };
        let (bytes, file) = match (path, directory) {
            (_, Some(directory)) => (io::map_file(&recording_in(directory)?)?, None),
            (InPath::Path(path), None) => (io::map_file(path)?, File::open(path).ok()),
            (InPath::Stdin, None) => (io::open(path)?, None),
        };
        // What was packed is not in the file as it stands, so it cannot be copied from there.
        let packed_len = bytes.len();
        let bytes = unpack(bytes)?;
        let file = file.filter(|_| bytes.len() == packed_len);
        let recording = Recording::parse(&bytes, warnings)?;
        let mut input = Self { recording, bytes, plain: None, file, auxtrace: Vec::new(), shown, was: None };
        if directory.is_some() || input.is_compressed() {
            input.write_plain(directory, warnings)?;
        }
        Ok(input)
    }

    fn is_compressed(&self) -> bool {
        let records = || self.recording.records(&self.bytes);
        self.recording.says_compressed() || records().any(|record| is_compressed(&record))
    }

    fn write_plain(&mut self, directory: Option<&Path>, warnings: &mut Warnings) -> Result<()> {
        let file = tempfile::tempfile().map_err(|error| Error::new("cannot make a temporary file").because(error))?;
        let base = self.recording.data.start;
        let mut plain = Plain { out: BufWriter::with_capacity(1 << 20, &file), at: base, auxtrace: Vec::new() };
        let own = own_records(&self.recording, &self.bytes);
        plain.append(&self.recording, own, base, warnings)?;
        let streams = directory.map(streams).transpose()?;
        self.was = Some(match &streams {
            Some(streams) => format!("a directory of {} streams", streams.len()),
            None => "compressed".to_owned(),
        });
        for path in streams.into_iter().flatten() {
            let bytes = io::map_file(&path)?;
            let mut own = Warnings::new();
            plain.append(&self.recording, &bytes, 0, &mut own)?;
            warnings.append(own.in_file(&path));
        }
        plain.out.flush()?;
        self.auxtrace = std::mem::take(&mut plain.auxtrace);
        drop(plain);
        self.plain = Some(io::map_spool(&file)?);
        self.file = Some(file);
        self.recording.features.remove(&Feature::COMPRESSED);
        self.recording.features.remove(&Feature::DIR_FORMAT);
        Ok(())
    }

    /// The plain records.
    pub(in crate::commands) fn records(&self) -> &[u8] {
        self.plain.as_deref().unwrap_or_else(|| own_records(&self.recording, &self.bytes))
    }

    /// The offset that the first record is said to have.
    pub(in crate::commands) fn base(&self) -> u64 {
        self.recording.data.start
    }

    /// Where a stretch of the stream is in [`Input::file`].
    pub(in crate::commands) fn in_file(&self, range: Range<u64>) -> Range<u64> {
        let base = if self.plain.is_some() { self.base() } else { 0 };
        range.start - base..range.end - base
    }

    /// The bytes before the first record.
    pub(in crate::commands) fn front(&self) -> &[u8] {
        let end = usize::try_from(self.base()).unwrap_or(usize::MAX).min(self.bytes.len());
        &self.bytes[..end]
    }

    /// Whether the input is a pipe's.
    pub(in crate::commands) fn is_pipe(&self) -> bool {
        self.recording.header.form == Form::Pipe
    }

    /// Where in the stream the AUXTRACE record is that was at `offset` of the input.
    pub(in crate::commands) fn auxtrace(&self, offset: u64) -> u64 {
        let found = self.auxtrace.binary_search_by_key(&offset, |(from, _)| *from);
        found.map_or(offset, |at| self.auxtrace[at].1)
    }
}

fn own_records<'data>(recording: &Recording, bytes: &'data [u8]) -> &'data [u8] {
    let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let (start, end) = (place(recording.data.start), place(recording.data.end));
    &bytes[start..end.max(start)]
}

/// The streams of a directory, by their number.
fn streams(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut streams = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_prefix("data.")?.parse::<u64>().ok());
        streams.extend(number.map(|number| (number, path)));
    }
    streams.sort();
    Ok(streams.into_iter().map(|(_, path)| path).collect())
}

/// Plain records on their way to a file.
struct Plain<'file> {
    out: BufWriter<&'file File>,
    at: u64,
    auxtrace: Vec<(u64, u64)>,
}

impl Plain<'_> {
    /// One stream: it has its own zstd stream, if it is compressed.
    fn append(&mut self, recording: &Recording, data: &[u8], base: u64, warnings: &mut Warnings) -> Result<()> {
        let mut unpacked = Decompressor::new(recording.header.endian)?;
        let mut records = Records::new(data, base, recording.header.endian);
        for record in records.by_ref() {
            if is_compressed(&record) {
                match unpacked.feed(&record) {
                    Ok(bytes) => self.write(bytes)?,
                    Err(error) => warnings.push(error.into_warning()),
                }
                continue;
            }
            let start = usize::try_from(record.offset - base).unwrap_or(usize::MAX);
            let end = usize::try_from(record.end() - base).unwrap_or(usize::MAX);
            let Some(whole) = data.get(start..end) else { break };
            if record.kind == kind::AUXTRACE {
                self.auxtrace.push((record.offset, self.at));
            }
            self.write(whole)?;
        }
        if unpacked.pending() > 0 {
            warnings.push(Warning::new("the last record is incomplete: the compressed data end inside it"));
        }
        if let Stop::Damage(error) = records.stop() {
            warnings.push(Error::new("what follows cannot be read").because(error).into_warning());
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }
}
