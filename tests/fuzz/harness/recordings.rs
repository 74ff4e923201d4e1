//! Recordings, and what names JIT code: dumps, maps and logs of engines.

use crate::error::Warnings;
use crate::formats::elf_image::{Addressing, ImageBuilder, Target};
use crate::formats::perf_data::{
    Decompressor, Features, Packed, Record, RecordSurvey, Recording, is_compressed, leave_pipe, pipe_front,
};
use crate::jit::engine_logs::{JIT_LOGS, JitLog, LogEventKind, LogId};
use crate::jit::jitdump::{Body, JitDump, decode_lines};
use crate::model::Addr;
use crate::model::code::{Code, Lines, OriginId, SourceMap};

/// perf.data: header, attrs, features, BPF programs, every record, every sample, packed records, and what a rewrite
/// makes of them.
pub(super) fn perf_data(bytes: &[u8]) {
    let mut warnings = Warnings::new();
    let Ok(recording) = Recording::parse(bytes, &mut warnings) else { return };
    let mut survey = RecordSurvey::default();
    let mut packed = None;
    for raw in recording.records(bytes) {
        survey.add(&recording, &raw);
        let _ = Record::parse(&raw);
        let _ = recording.sample_id(&raw);
        if is_compressed(&raw)
            && let Ok(mut record) = Packed::new(&raw)
        {
            let start = || Decompressor::new(recording.header.endian, recording.mmap_len()).unwrap();
            let stream = packed.get_or_insert_with(start);
            while let Ok(Some(records)) = stream.unpack(&mut record) {
                assert!(records.len() < 1 << 20, "a piece of the records");
            }
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
    let mut features = Features::from_recording(&recording);
    features.move_auxtrace(recording.header.endian, |offset| offset.wrapping_add(8));
    let _ = features.encode(0, recording.header.endian);
    let _ = pipe_front(&recording, &features, &mut warnings);
    let _ = leave_pipe(&recording, bytes, 0, &mut features);
}

/// jitdump: header, records, lines, and the ELF image of the loaded code.
pub(super) fn jitdump(bytes: &[u8]) {
    /// An image mirrors addresses: code far apart makes a file with holes, which in memory are not holes.
    const SPAN: u64 = 1 << 20;
    let Ok(dump) = JitDump::parse(bytes) else { return };
    let (mut codes, mut info, mut unwind) = (Vec::new(), None, None);
    for record in dump.records().flatten() {
        match record.body {
            Body::DebugInfo(lines) => info = Some(lines),
            Body::Unwinding(frames) => unwind = frames,
            Body::Load(load) => {
                let size = load.size;
                let lines = info.take().map_or_else(Lines::default, |info| Lines {
                    raw: info.entries,
                    decode: Some(decode_lines),
                    count: info.count,
                    base: info.addr,
                    size,
                    big_endian: false,
                    function: load.name,
                    positions: None,
                    authored: None,
                });
                assert!(lines.entries().iter().all(|line| line.offset <= size));
                let addr = Addr(load.addr % SPAN);
                let (bytes, unwind) = (load.code, unwind.take());
                codes.push(Code { name: load.name, addr, size, bytes, lines, unwind, origin: OriginId(0) });
            }
            _ => {}
        }
    }
    let target = Target::new(dump.header.machine, dump.header.endian);
    for addressing in [Addressing::FileOffset, Addressing::RunTime] {
        let mut builder = ImageBuilder::new(target, addressing);
        codes.iter().for_each(|code| {
            builder.add(code, code.addr);
        });
        let _ = builder.build().write(&mut std::io::Cursor::new(Vec::new()));
    }
    let mut builder = ImageBuilder::new(target, Addressing::FileOffset);
    codes.iter().for_each(|code| {
        builder.add(code, code.addr);
    });
    for image in builder.build_set(std::iter::once(0x8000..0x9000)).images() {
        let _ = image.write(&mut std::io::Cursor::new(Vec::new()));
    }
}

/// perf map: every line form.
pub(super) fn perf_map(bytes: &[u8]) {
    let lines = bytes.split(|&byte| byte == b'\n').count();
    let (entries, skipped) = crate::jit::perf_map::read(bytes);
    assert!(entries.len() as u64 + skipped.count() <= lines as u64);
    assert!(entries.iter().all(|entry| entry.start.checked_add(entry.size).is_some()));
}

/// Logs of engines: every sort, whatever the bytes look like.
pub(super) fn jit_logs(bytes: &[u8]) {
    JIT_LOGS.iter().for_each(|log| jit_log(log, bytes));
}

/// Reads the bytes as this log, with the source lines of all code.
pub(super) fn jit_log(log: &JitLog, bytes: &[u8]) {
    let _ = (log.sniff)(bytes);
    let Ok(read) = (log.read)(bytes) else { return };
    for (at, event) in read.events.iter().enumerate() {
        match event.kind {
            LogEventKind::Load(code) => {
                let _ = read.texts.get(code.name);
                assert!(code.addr.checked_add(code.size).is_some(), "{}: {code:?}", log.id);
                let in_log = || bytes.get(code.line_range()).unwrap_or_default();
                let entry = code.position_key.map_or_else(in_log, |key| read.texts.get(key));
                assert!(bytes.get(code.memory()).is_some(), "{}: {code:?}", log.id);
                let map = read.line_decoder.as_ref().map(|positions| positions.source_map(bytes, entry));
                let calls = |map: &SourceMap<'_>| map.calls.len();
                let known = map.as_ref().map_or(0, calls);
                let lines = map.iter().flat_map(|map| &map.lines);
                assert!(lines.into_iter().all(|line| line.inlined.is_none_or(|call| (call as usize) < known)));
            }
            LogEventKind::Move { load, .. } | LogEventKind::Unload { load, .. } => assert!(load < at, "{}", log.id),
        }
    }
}

/// HotSpot's compilation log, with the inlining of each task, and its code list.
pub(super) fn hotspot(bytes: &[u8]) {
    let Some(id) = LogId::detect(bytes).filter(|id| id.log().id.starts_with("hotspot-")) else { return };
    let Ok(log) = (id.log().read)(bytes) else { return };
    let mut names = 0;
    for (at, event) in log.events.iter().enumerate() {
        match event.kind {
            LogEventKind::Load(code) => {
                assert!(code.addr.checked_add(code.size).is_some());
                names += log.texts.get(code.name).len();
                let entry = &bytes[code.line_range()];
                let calls =
                    log.line_decoder.as_ref().map_or_else(Vec::new, |positions| positions.expanded_calls(entry));
                assert!(calls.len() <= entry.len() / b"<parse>".len());
            }
            LogEventKind::Unload { load, .. } | LogEventKind::Move { load, .. } => assert!(load < at),
        }
    }
    // The longest spelling of a type is `boolean, ` for `Z`, an array's dimension `[]` for `[`.
    assert!(names <= 16 * bytes.len());
}
