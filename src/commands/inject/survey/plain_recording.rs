//! The input recording as a single stream of uncompressed records.
//!
//! The records of an uncompressed file are used in place. Those of compressed recordings and directories are first
//! written to an unlinked temporary file, in their original order. The streams of a directory are concatenated. A
//! directory has no FINISHED_ROUND records, which would allow readers to sort its records piece by piece. So readers
//! sort all records anyway, and the order in which the streams follow each other doesn't matter.

use crate::contract::format::{Format, Read};
use crate::error::{Error, Result, Warnings};
use crate::formats::perf_data::{Feature, Form, Recording};
use crate::parallel::Pool;
use crate::pipeline::open::Input;
use crate::pipeline::recording::streams::{PlainRecords, PlainStream, RecordBytes, main_records};
use std::path::{Path, PathBuf};

/// A recording that is open for rewriting.
#[derive(Debug)]
pub(in crate::commands::inject) struct PlainRecording<'i> {
    /// The header, events and features.
    pub(in crate::commands::inject) recording: Recording,
    input: &'i Input,
    stream: PlainStream<'i>,
    /// The input's path as shown in messages.
    pub(in crate::commands::inject) shown: PathBuf,
    /// How the input stored its records (such as compressed), for the summary. `None` if they were plain.
    pub(in crate::commands::inject) stored_as: Option<String>,
}

/// The error for an input that isn't a perf.data recording.
fn refused(format: &Format) -> Error {
    let instead = match format.rewriter {
        Some(by) => format!("use jitgraft {} for such files", by.command),
        None => "to convert it to another format, use jitgraft export; to look at it, jitgraft view".to_owned(),
    };
    let what =
        format!("is a {} file; inject rewrites perf.data, pprof, OpenTelemetry and Firefox profiles", format.name);
    Error::new(what).with_remedy(Some(instead))
}

impl<'i> PlainRecording<'i> {
    /// Reads an opened input. Fails if it isn't a perf.data recording.
    pub(in crate::commands::inject) fn read(
        input: &'i Input,
        shown: &Path,
        pool: &Pool,
        warnings: &mut Warnings,
    ) -> Result<Self> {
        let mut recording_warnings = Warnings::new();
        let opened = Self::read_shown(input, shown.to_owned(), pool, &mut recording_warnings);
        warnings.append(recording_warnings.in_file(shown));
        opened.map_err(|error| error.in_file(shown))
    }

    /// Like [`read`](Self::read), but errors and warnings don't name the file.
    fn read_shown(input: &'i Input, shown: PathBuf, pool: &Pool, warnings: &mut Warnings) -> Result<Self> {
        if !matches!(input.format.read, Read::Addresses) {
            return Err(refused(input.format));
        }
        let mut recording = Recording::parse(&input.bytes, warnings)?;
        let main = RecordBytes { bytes: main_records(&recording, &input.bytes), base: recording.data.start };
        // Records that are neither compressed nor in several streams are used where they are, without a copy.
        let in_place = if input.streams.is_none() { PlainStream::in_place(&recording, main, pool) } else { None };
        if let Some(stream) = in_place {
            return Ok(Self { recording, input, stream, shown, stored_as: None });
        }
        let mut plain = PlainRecords::create(main.base)?;
        plain.append(&recording, main, warnings)?;
        for file in input.streams.iter().flatten() {
            let mut file_warnings = Warnings::new();
            plain.append(&recording, RecordBytes { bytes: &file.bytes, base: 0 }, &mut file_warnings)?;
            warnings.append(file_warnings.in_file(&file.path));
        }
        let stream = plain.finish(&recording, pool)?;
        let stored_as = match &input.streams {
            Some(streams) => format!("a directory of {} streams", streams.len()),
            None => "compressed".to_owned(),
        };
        // The output is a single plain file, so remove the features that say otherwise.
        recording.features.remove(&Feature::COMPRESSED);
        recording.features.remove(&Feature::DIR_FORMAT);
        Ok(Self { recording, input, stream, shown, stored_as: Some(stored_as) })
    }

    /// The plain records.
    pub(in crate::commands::inject) fn records(&self) -> &[u8] {
        self.stream.records().bytes
    }

    /// The stream of plain records.
    pub(super) fn stream(&self) -> &PlainStream<'i> {
        &self.stream
    }

    /// The offset of the first record in the input file. Offsets in the plain stream count from this number, so that
    /// they are those of the input as long as nothing was decompressed.
    pub(in crate::commands::inject) fn base(&self) -> u64 {
        self.recording.data.start
    }

    /// The bytes before the first record.
    pub(in crate::commands::inject) fn front(&self) -> &[u8] {
        let end = usize::try_from(self.base()).unwrap_or(usize::MAX).min(self.input.bytes.len());
        &self.input.bytes[..end]
    }

    /// True if the input is in pipe form.
    pub(in crate::commands::inject) fn is_pipe(&self) -> bool {
        self.recording.header.form == Form::Pipe
    }

    /// Translates the offset of an AUXTRACE record in the input to its offset in the plain stream.
    pub(in crate::commands::inject) fn auxtrace(&self, offset: u64) -> u64 {
        self.stream.auxtrace_offset(offset)
    }
}
