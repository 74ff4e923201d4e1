//! The input recording as a single stream of uncompressed records.
//!
//! The records of an uncompressed file are used in place. Those of compressed recordings and directories are first
//! written to an unlinked temporary file, in their original order. The streams of a directory are concatenated. A
//! directory has no rounds (FINISHED_ROUND), so readers sort all its records anyway.

use crate::contract::format::{Format, Read};
use crate::error::{Error, Result, Warnings};
use crate::formats::perf_data::{Feature, Form, Recording};
use crate::io::{self, Bytes};
use crate::parallel::Pool;
use crate::pipeline::archive::Packed;
use crate::pipeline::open;
use crate::pipeline::recording::streams::{MovedRecord, PlainRecords, RecordBytes, main_records};
use crate::pipeline::recording::walk::Walk;
use std::path::{Path, PathBuf};

/// A recording that is open for rewriting.
#[derive(Debug)]
pub(in crate::commands::inject) struct PlainRecording {
    /// The header, events and features.
    pub(in crate::commands::inject) recording: Recording,
    /// The content of the input file.
    bytes: Bytes,
    /// The uncompressed records, if they had to be written to a temporary file.
    plain: Option<Bytes>,
    /// The old and new offsets of AUXTRACE records that were copied to `plain`.
    auxtrace: Vec<MovedRecord>,
    /// What a single walk over the plain records found.
    pub(in crate::commands::inject) walk: Walk,
    /// The input's path as shown in messages.
    pub(in crate::commands::inject) shown: PathBuf,
    /// How the input stored its records (such as compressed), for the summary. `None` if they were plain.
    pub(in crate::commands::inject) was: Option<String>,
    /// The archive that contains the input, if any. It must stay open, because its files can't be opened once it is
    /// dropped.
    _packed: Option<Packed>,
}

/// The error for an input that isn't a perf.data recording.
fn refused(format: &Format) -> Error {
    let instead = format.rewriter.map(|by| format!("use jitgraft {} for such files", by.command));
    let what =
        format!("is a {} file; inject rewrites perf.data, pprof, OpenTelemetry and Firefox profiles", format.name);
    Error::new(what).with_remedy(instead)
}

impl PlainRecording {
    /// Reads an opened input. Fails if it isn't a perf.data recording.
    pub(in crate::commands::inject) fn read(
        input: open::Input,
        shown: &Path,
        pool: &Pool,
        warnings: &mut Warnings,
    ) -> Result<Self> {
        let mut recording_warnings = Warnings::new();
        let opened = Self::read_shown(input, shown.to_owned(), pool, &mut recording_warnings);
        warnings.append(recording_warnings.in_file(shown));
        opened.map_err(|error| error.in_file(shown))
    }

    /// Like [`read`](Self::read), but errors and warnings don't contain the path.
    fn read_shown(input: open::Input, shown: PathBuf, pool: &Pool, warnings: &mut Warnings) -> Result<Self> {
        let open::Input { bytes, streams, format, packed, .. } = input;
        if !matches!(format.read, Read::Addresses) {
            return Err(refused(format));
        }
        let recording = Recording::parse(&bytes, warnings)?;
        let endian = recording.header.endian;
        let plain = |bytes: &[u8], base| Walk::find_records(bytes, base, endian, pool);
        let is_plain = streams.is_none() && !recording.says_compressed();
        let walk = if is_plain { plain(main_records(&recording, &bytes), recording.data.start) } else { Walk::none() };
        let is_plain = is_plain && !walk.has_compressed;
        let mut input =
            Self { recording, bytes, plain: None, auxtrace: Vec::new(), walk, shown, was: None, _packed: packed };
        if !is_plain {
            input.write_plain(streams.as_deref(), warnings)?;
            input.walk = plain(input.records(), input.base());
        }
        Ok(input)
    }

    /// Writes the records uncompressed to a temporary file, and removes the features that no longer apply.
    fn write_plain(&mut self, streams: Option<&[open::StreamFile]>, warnings: &mut Warnings) -> Result<()> {
        let mut spool = io::temporary()?;
        let mut plain = PlainRecords::new(&mut spool, self.base());
        plain.append(&self.recording, RecordBytes { bytes: self.records(), base: self.base() }, warnings)?;
        self.was = Some(match streams {
            Some(streams) => format!("a directory of {} streams", streams.len()),
            None => "compressed".to_owned(),
        });
        for stream in streams.into_iter().flatten() {
            let mut stream_warnings = Warnings::new();
            plain.append(&self.recording, RecordBytes { bytes: &stream.bytes, base: 0 }, &mut stream_warnings)?;
            warnings.append(stream_warnings.in_file(&stream.path));
        }
        self.auxtrace = plain.finish()?;
        self.plain = Some(spool.map()?);
        self.recording.features.remove(&Feature::COMPRESSED);
        self.recording.features.remove(&Feature::DIR_FORMAT);
        Ok(())
    }

    /// The plain records.
    pub(in crate::commands::inject) fn records(&self) -> &[u8] {
        self.plain.as_deref().unwrap_or_else(|| main_records(&self.recording, &self.bytes))
    }

    /// The offset of the first record in the input file. Offsets in the plain stream start at this number, too.
    pub(in crate::commands::inject) fn base(&self) -> u64 {
        self.recording.data.start
    }

    /// The bytes before the first record.
    pub(in crate::commands::inject) fn front(&self) -> &[u8] {
        let end = usize::try_from(self.base()).unwrap_or(usize::MAX).min(self.bytes.len());
        &self.bytes[..end]
    }

    /// True if the input is in pipe form.
    pub(in crate::commands::inject) fn is_pipe(&self) -> bool {
        self.recording.header.form == Form::Pipe
    }

    /// Translates the offset of an AUXTRACE record in the input to its offset in the plain stream.
    pub(in crate::commands::inject) fn auxtrace(&self, offset: u64) -> u64 {
        let found = self.auxtrace.binary_search_by_key(&offset, |moved| moved.from);
        found.map_or(offset, |at| self.auxtrace[at].to)
    }
}
