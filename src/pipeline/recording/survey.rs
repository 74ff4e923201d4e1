//! The first look at a recording: who ran, what was mapped where, and where the records can be cut into chunks.

use super::streams::{RecordBytes, RecordChunks};
use crate::error::{Warning, Warnings};
use crate::formats::perf_data::{self, Recording};
use crate::model::process::Processes;
use crate::model::threads::Threads;
use crate::pipeline::job::Job;
use std::path::Path;

/// What the records beside the samples tell.
#[derive(Debug)]
pub(crate) struct Survey<'data> {
    /// Events and features.
    pub(crate) recording: &'data Recording,
    /// What messages call the recording.
    pub(crate) path: &'data Path,
    /// Processes, their mappings and markers.
    pub(crate) processes: Processes,
    /// The names of threads.
    pub(crate) threads: Threads,
    /// All records, for the threads that read samples.
    pub(crate) chunks: RecordChunks<'data>,
}

impl<'data> Survey<'data> {
    /// Walks all records of all streams once.
    pub(crate) fn new(
        recording: &'data Recording,
        streams: &[RecordBytes<'data>],
        path: &'data Path,
        job: &Job,
        warnings: &mut Warnings,
    ) -> Self {
        let mut survey = perf_data::RecordSurvey::default();
        let add = |record: &_| survey.add(recording, record);
        let chunks = RecordChunks::new(recording, streams, job.pool.threads(), add);
        if let Some(damage) = &chunks.damage {
            let message = format!("what follows cannot be read: {damage}");
            warnings.push(Warning::new(message).in_file(path, None));
        }
        let (processes, threads, skipped) = survey.finish(recording);
        skipped.report(path, warnings);
        Self { recording, path, processes, threads, chunks }
    }
}
