#![no_main]
//! perf.data: header, attrs, features, BPF programs, every record, every sample, packed records, and what a rewrite makes of them.

use jitgraft::error::Warnings;
use jitgraft::formats::perf_data::{
    Decompressor, Features, RecordSurvey, Recording, is_compressed, leave_pipe, pipe_front,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut warnings = Warnings::new();
    let Ok(recording) = Recording::parse(bytes, &mut warnings) else { return };
    let mut survey = RecordSurvey::default();
    let mut packed = Decompressor::new(recording.header.endian).ok();
    for raw in recording.records(bytes) {
        survey.add(&recording, &raw);
        let _ = recording.parse_record(&raw);
        let _ = recording.sample_id(&raw);
        if let Some(packed) = packed.as_mut().filter(|_| is_compressed(&raw)) {
            let _ = packed.feed(&raw);
        }
        if let Ok(sample) = recording.sample(&raw) {
            let words = sample.callchain.iter().count() + sample.frames().count();
            let branches = sample.branches.into_iter().flat_map(|list| list.iter()).count();
            assert!(words.max(branches) <= 4 * raw.bytes.len(), "more than the record has");
        }
    }
    let (processes, ..) = survey.finish(&recording);
    for function in &processes.bpf_functions {
        let texts = function.lines.iter().flat_map(|line| [line.file, line.text]).chain(function.name);
        assert!(texts.map(|text| function.text(text).len()).max().unwrap_or_default() <= 512, "a text without an end");
        assert!(function.lines.len() + function.bytes.len() <= bytes.len(), "more than the file has");
        assert!(function.line_at(u64::MAX).is_some() != function.lines.is_empty(), "a line is lost");
    }
    let mut features = Features::of(&recording);
    features.move_auxtrace(recording.header.endian, |offset| offset.wrapping_add(8));
    let _ = features.behind_data(0, recording.header.endian);
    let _ = pipe_front(&recording, &features, &mut warnings);
    let _ = leave_pipe(&recording, bytes, 0, &mut features);
});
