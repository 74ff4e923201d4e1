//! The first pass over a recording: its processes, their mappings, and where the records can be split into chunks.

mod jit_code;
mod plain_recording;

pub(in crate::commands::inject) use jit_code::{JitCode, describe_sources};
pub(in crate::commands::inject) use plain_recording::PlainRecording;

use crate::commands::inject::options::InjectContext;
use crate::error::Warning;
use crate::jit::{self, Found};
use crate::model::process::Mapping;
use crate::model::{Nanos, Pid};
use crate::pipeline::recording::survey::Survey;
use crate::symbolize::address_space::AddressSpaces;
use std::slice;

/// Everything that was learned in the first pass, which reads all records except samples.
#[derive(Debug)]
pub(in crate::commands::inject) struct SurveyedRecording<'i> {
    pub(in crate::commands::inject) input: &'i PlainRecording<'i>,
    /// The processes, and all complete records in chunks for parallel work.
    pub(in crate::commands::inject) first_pass: Survey<'i>,
    pub(in crate::commands::inject) spaces: AddressSpaces,
    /// Processes whose code was already injected by perf or jitgraft. Their code is left alone.
    pub(in crate::commands::inject) injected: Vec<Pid>,
}

impl<'i> SurveyedRecording<'i> {
    /// Reads all records once. Warns if the last record is incomplete.
    pub(in crate::commands::inject) fn read(input: &'i PlainRecording<'i>, context: &mut InjectContext<'_>) -> Self {
        context.progress.phase("reading records");
        let warnings = &mut context.outcome.warnings;
        let first_pass = Survey::new(&input.recording, slice::from_ref(input.stream()), &input.shown, warnings);
        let Survey { processes, chunks, .. } = &first_pass;
        // The bytes after the last complete record.
        let dropped = (input.base() + input.records().len() as u64).saturating_sub(chunks.end());
        // Only warn if the records end too early without other damage: damage before the end was already reported.
        if dropped > 0 && chunks.damage.is_none() {
            let message = format!("the last record is truncated; its {dropped} bytes were dropped");
            warnings.push(Warning::new(message).in_file(&input.shown, Some(chunks.end())));
        }
        context.progress.done(input.records().len() as u64);
        let by_pid = processes.by_pid.iter();
        let injected = by_pid.filter(|(_, process)| process.is_injected()).map(|(pid, _)| *pid).collect();
        Self { input, spaces: AddressSpaces::new(processes), first_pass, injected }
    }

    /// Finds the jitdumps, perf maps and logs of the processes. Finds nothing unless JIT code was requested.
    pub(in crate::commands::inject) fn find_sources(&self, context: &mut InjectContext<'_>) -> Found {
        let InjectContext { options, progress, outcome, .. } = context;
        progress.phase("looking for JIT code");
        if !options.jit {
            return Found::none();
        }
        let samples = || self.first_pass.collect_sampled();
        let site = self.first_pass.site(options.input_directory(), &samples);
        jit::find_at(&self.first_pass.processes, &options.sources, &site, &mut outcome.warnings)
    }
}

/// The position of a record in the order in which perf applies them: by time, then by position in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(in crate::commands::inject) struct RecordOrder {
    /// 0 if the record has no time.
    pub(in crate::commands::inject) time: Nanos,
    /// The record's offset in the stream.
    pub(in crate::commands::inject) offset: u64,
}

impl RecordOrder {
    /// The position of the record that a mapping is from.
    pub(in crate::commands::inject) fn from_mapping(mapping: &Mapping) -> Self {
        Self { time: mapping.time, offset: mapping.offset }
    }
}
