//! The recording to be rewritten, as one stream of plain records.
//!
//! A file's records are used where they are. Compressed records, pipes and directories are written out plainly to an
//! unlinked temporary file first, in the order in which they stand (a directory's streams one after the other: it
//! has no rounds, readers sort them).

use crate::contract::format::{Format, Read};
use crate::error::{Error, Result, Warnings};
use crate::io::{self, Bytes};
use crate::parallel::Pool;
use crate::pipeline::archive::Packed;
use crate::pipeline::open;
use crate::pipeline::recording::streams::{MovedRecord, PlainRecords, RecordBytes, own_records};
use crate::pipeline::recording::walk::Walk;
use crate::records::perf_data::{Feature, Form, Recording};
use std::path::{Path, PathBuf};

/// An opened recording.
#[derive(Debug)]
pub(in crate::commands::inject) struct PlainRecording {
    /// The data around the records.
    pub(in crate::commands::inject) recording: Recording,
    /// The file's bytes.
    bytes: Bytes,
    /// The plain records, where they are not the file's own.
    plain: Option<Bytes>,
    /// AUXTRACE records in the input and in `plain`.
    auxtrace: Vec<MovedRecord>,
    /// The place of the plain records.
    pub(in crate::commands::inject) walk: Walk,
    /// The way it is called in messages.
    pub(in crate::commands::inject) shown: PathBuf,
    /// The way the records were kept, if that was not plainly.
    pub(in crate::commands::inject) was: Option<String>,
    /// Keeps the archive open that it is from.
    _packed: Option<Packed>,
}

/// The error for an input whose addresses nobody has to look up.
fn refused(format: &Format) -> Error {
    let instead = format.rewriter.map(|by| format!("`jitgraft {}` names the code in such a file", by.command));
    let what = format!("is {}, and no recording (perf.data), which inject rewrites", format.name);
    Error::new(what).with_remedy(instead)
}

impl PlainRecording {
    /// Reads what was opened.
    pub(in crate::commands::inject) fn read(
        input: open::Input,
        shown: &Path,
        pool: &Pool,
        warnings: &mut Warnings,
    ) -> Result<Self> {
        let mut own = Warnings::new();
        let opened = Self::read_shown(input, shown.to_owned(), pool, &mut own);
        warnings.append(own.in_file(shown));
        opened.map_err(|error| error.in_file(shown))
    }

    fn read_shown(input: open::Input, shown: PathBuf, pool: &Pool, warnings: &mut Warnings) -> Result<Self> {
        let open::Input { bytes, streams, format, packed, .. } = input;
        if !matches!(format.read, Read::Addresses) {
            return Err(refused(format));
        }
        let recording = Recording::parse(&bytes, warnings)?;
        let endian = recording.header.endian;
        let plain = |bytes: &[u8], base| Walk::of(bytes, base, endian, pool);
        let is_plain = streams.is_none() && !recording.says_compressed();
        let walk = if is_plain { plain(own_records(&recording, &bytes), recording.data.start) } else { Walk::none() };
        let is_plain = is_plain && !walk.has_compressed;
        let mut input =
            Self { recording, bytes, plain: None, auxtrace: Vec::new(), walk, shown, was: None, _packed: packed };
        if !is_plain {
            input.write_plain(streams.as_deref(), warnings)?;
            input.walk = plain(input.records(), input.base());
        }
        Ok(input)
    }

    fn write_plain(&mut self, streams: Option<&[open::StreamFile]>, warnings: &mut Warnings) -> Result<()> {
        let mut spool = io::temporary()?;
        let mut plain = PlainRecords::new(&mut spool, self.base());
        plain.append(&self.recording, RecordBytes { bytes: self.records(), base: self.base() }, warnings)?;
        self.was = Some(match streams {
            Some(streams) => format!("a directory of {} streams", streams.len()),
            None => "compressed".to_owned(),
        });
        for stream in streams.into_iter().flatten() {
            let mut own = Warnings::new();
            plain.append(&self.recording, RecordBytes { bytes: &stream.bytes, base: 0 }, &mut own)?;
            warnings.append(own.in_file(&stream.path));
        }
        self.auxtrace = plain.finish()?;
        self.plain = Some(spool.map()?);
        self.recording.features.remove(&Feature::COMPRESSED);
        self.recording.features.remove(&Feature::DIR_FORMAT);
        Ok(())
    }

    /// The plain records.
    pub(in crate::commands::inject) fn records(&self) -> &[u8] {
        self.plain.as_deref().unwrap_or_else(|| own_records(&self.recording, &self.bytes))
    }

    /// The offset that the first record is claimed to have.
    pub(in crate::commands::inject) fn base(&self) -> u64 {
        self.recording.data.start
    }

    /// The bytes before the first record.
    pub(in crate::commands::inject) fn front(&self) -> &[u8] {
        let end = usize::try_from(self.base()).unwrap_or(usize::MAX).min(self.bytes.len());
        &self.bytes[..end]
    }

    /// True if the input is a pipe's.
    pub(in crate::commands::inject) fn is_pipe(&self) -> bool {
        self.recording.header.form == Form::Pipe
    }

    /// The place in the stream of the AUXTRACE record that was at `offset` of the input.
    pub(in crate::commands::inject) fn auxtrace(&self, offset: u64) -> u64 {
        let found = self.auxtrace.binary_search_by_key(&offset, |moved| moved.from);
        found.map_or(offset, |at| self.auxtrace[at].to)
    }
}
