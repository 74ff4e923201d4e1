//! File formats, one file or folder each, with all that reads, writes and rewrites it. The code of a format opens no
//! files, starts no threads and uses no other format.
//!
//! [`FORMATS`] is the only list of the profile formats that jitgraft reads and writes; help, detection and tests are
//! based on it. A new format needs its own file or folder, one `mod` line and one entry here. The other formats here
//! are parts of profiles, or what is written beside them: `tracepoint`, `valgrind_text`, `source_map`, `wasm`,
//! `elf_image`.

pub mod callgrind;
#[cfg(test)]
mod conversion_tests;
pub mod cpuprofile;
pub mod csv;
pub mod dtrace;
pub mod elf_image;
pub mod firefox;
pub mod folded;
pub mod ghcprof;
pub mod json;
pub mod measureme;
pub mod otlp;
pub mod perf_data;
pub mod perf_script;
pub mod pprof;
pub mod sample;
pub mod source_map;
pub mod speedscope;
#[cfg(test)]
mod table_tests;
#[cfg(feature = "tables")]
pub mod tables;
pub mod trace_event;
pub mod tracepoint;
pub mod unread;
pub mod valgrind_text;
pub mod vsprof;
pub mod vtune;
pub mod wasm;
pub mod xctrace;

use crate::bytes::glob::matches_glob;
use crate::contract::format::{Detail, Events, Format, Read, Rewriter, StartRowsFn, WriteFn, Writer};
use crate::model::stacks::Keep;
use crate::render::flamegraph;
use crate::runtimes::jit_names::JitNames;

/// The values that entries of [`FORMATS`] have unless they state others: a format that is neither read nor written.
const PLAIN: Format =
    Format { name: "", about: "", files: &[], sniff: None, read: Read::No, write: None, rewriter: None };

/// Makes a writer with default values: the format holds every sample of all events with all addresses, and `run` writes
/// it once the profile is complete. Entries of [`FORMATS`] override the values that differ.
const fn writer(run: WriteFn) -> Writer {
    let (rows, events, detail, jit_names) = (Keep::EachRow, Events::All, Detail::Addresses, JitNames::Raw);
    Writer {
        run,
        rows,
        events,
        detail,
        jit_names,
        by_cpu: false,
        labels: false,
        signed: false,
        spans: None,
        stream: None,
        is_partitioned: false,
        not_for_terminals: None,
    }
}

/// Like [`writer`], for a format of which each row can be written as soon as it was read. `start` begins such an
/// output; `run` writes a profile that is already complete.
const fn row_writer(run: WriteFn, start: StartRowsFn) -> Writer {
    Writer { jit_names: JitNames::Merged, by_cpu: true, signed: true, stream: Some(start), ..writer(run) }
}

/// Why JSON that only programs read shouldn't be written to a terminal.
const JSON_FOR_PROGRAMS: Option<&str> = Some("JSON for programs");

/// Every format that jitgraft reads or writes. [`detect`] tries them in this order.
pub const FORMATS: &[Format] = &[
    Format {
        name: "perf-data",
        about: "perf.data from perf record or simpleperf, as a file, pipe or directory",
        sniff: Some(perf_data::sniff),
        read: Read::Addresses,
        rewriter: Some(Rewriter { command: "inject", open: None }),
        ..PLAIN
    },
    Format {
        name: "measureme",
        about: "measureme profile (rustc -Zself-profile, Miri -Zmiri-measureme), versions 7 to 9",
        sniff: Some(measureme::sniff),
        read: Read::Spans(measureme::SPANS),
        ..PLAIN
    },
    Format {
        name: "cpuprofile",
        about: "V8 CPU profile (.cpuprofile) from node --cpu-prof or Chrome's DevTools",
        sniff: Some(cpuprofile::sniff),
        read: Read::Stacks(cpuprofile::read),
        ..PLAIN
    },
    Format {
        name: "firefox",
        about: "Firefox Profiler's processed profile (JSON)",
        files: &["*.firefox.json"],
        sniff: Some(firefox::sniff),
        read: Read::Stacks(firefox::read),
        write: Some(Writer {
            events: Events::One,
            jit_names: JitNames::Pretty,
            not_for_terminals: JSON_FOR_PROGRAMS,
            ..writer(firefox::write)
        }),
        rewriter: Some(Rewriter { command: "inject", open: Some(firefox::open_unsymbolized) }),
    },
    Format {
        name: "speedscope",
        about: "speedscope file (JSON)",
        files: &["*.speedscope.json", "*.speedscope"],
        sniff: Some(speedscope::sniff),
        read: Read::Stacks(speedscope::read),
        write: Some(Writer {
            detail: Detail::Lines,
            jit_names: JitNames::Pretty,
            not_for_terminals: JSON_FOR_PROGRAMS,
            ..writer(speedscope::write)
        }),
        ..PLAIN
    },
    Format {
        name: "pprof",
        about: "pprof profile (gzipped protocol buffer)",
        files: &["*.pb.gz", "*.pprof"],
        sniff: Some(pprof::sniff),
        read: Read::Stacks(pprof::read),
        write: Some(Writer {
            jit_names: JitNames::Pretty,
            by_cpu: true,
            labels: true,
            signed: true,
            not_for_terminals: Some("binary"),
            ..writer(pprof::write)
        }),
        rewriter: Some(Rewriter { command: "inject", open: Some(pprof::open_unsymbolized) }),
    },
    Format {
        name: "otlp",
        about: "OpenTelemetry profiles (protocol buffers)",
        files: &["*.otlp"],
        sniff: Some(otlp::sniff),
        read: Read::Stream(otlp::read),
        write: Some(Writer { not_for_terminals: Some("binary"), ..row_writer(otlp::write, otlp::start) }),
        rewriter: Some(Rewriter { command: "inject", open: Some(otlp::open_unsymbolized) }),
    },
    Format {
        name: "otlp-json",
        about: "OpenTelemetry profiles (JSON), one message per line",
        files: &["*.otlp.json"],
        write: Some(Writer { not_for_terminals: JSON_FOR_PROGRAMS, ..row_writer(otlp::write_json, otlp::start_json) }),
        ..PLAIN
    },
    Format {
        name: "json",
        about: "stacks with all their attributes (plain JSON)",
        files: &["*.json"],
        write: Some(Writer { by_cpu: true, signed: true, not_for_terminals: JSON_FOR_PROGRAMS, ..writer(json::write) }),
        ..PLAIN
    },
    Format {
        name: "chrome",
        about: "trace events (JSON) from Chromium, node, clang, tracing-chrome or Miri",
        files: &["*.trace.json", "*.chrome.json"],
        sniff: Some(trace_event::sniff),
        read: Read::Spans(trace_event::SPANS),
        write: Some(Writer {
            events: Events::One,
            detail: Detail::Names,
            jit_names: JitNames::Pretty,
            spans: Some(trace_event::start_spans),
            not_for_terminals: JSON_FOR_PROGRAMS,
            ..writer(trace_event::write)
        }),
        ..PLAIN
    },
    Format {
        name: "callgrind",
        about: "callgrind profile from valgrind, Xdebug or KCachegrind's converters",
        files: &["callgrind.out*", "*.callgrind"],
        sniff: Some(callgrind::sniff),
        read: Read::Stream(callgrind::read),
        write: Some(Writer { rows: Keep::Sums, signed: true, ..writer(callgrind::write) }),
        rewriter: Some(Rewriter { command: "callgrind", open: None }),
    },
    Format {
        name: "sample",
        about: "call graph printed by macOS's sample",
        sniff: Some(sample::sniff),
        read: Read::Stacks(sample::read),
        ..PLAIN
    },
    Format {
        name: "xctrace",
        about: "Instruments time profile from xctrace export (XML)",
        sniff: Some(xctrace::sniff),
        read: Read::Stacks(xctrace::read),
        ..PLAIN
    },
    Format {
        name: "dtrace",
        about: "DTrace aggregations of ustack() or stack(), as text",
        sniff: Some(dtrace::sniff),
        read: Read::Stacks(dtrace::read),
        ..PLAIN
    },
    Format {
        name: "vtune",
        about: "VTune top-down report (CSV)",
        sniff: Some(vtune::sniff),
        read: Read::Stacks(vtune::read),
        ..PLAIN
    },
    Format {
        name: "vsprof",
        about: "call tree of Visual Studio's instrumentation profiler (CSV)",
        sniff: Some(vsprof::sniff),
        read: Read::Stacks(vsprof::read),
        ..PLAIN
    },
    Format {
        name: "ghcprof",
        about: "GHC time and allocation profile (.prof)",
        sniff: Some(ghcprof::sniff),
        read: Read::Stacks(ghcprof::read),
        ..PLAIN
    },
    Format {
        name: "perf-script",
        about: "text from perf script or simpleperf's report_sample.py",
        sniff: Some(perf_script::sniff),
        read: Read::Script,
        rewriter: Some(Rewriter { command: "script", open: None }),
        ..PLAIN
    },
    Format {
        name: "folded",
        about: "folded stacks, such as from inferno-collapse-perf or stackcollapse-*.pl",
        files: &["*.folded", "*.collapsed", "*.txt"],
        sniff: Some(folded::sniff),
        read: Read::Lines { open: folded::open, is_plain: folded::is_plain },
        write: Some(Writer { rows: Keep::Sums, events: Events::One, detail: Detail::Names, ..writer(folded::write) }),
        ..PLAIN
    },
    Format {
        name: "flamegraph",
        about: "flame graph (SVG)",
        files: &["*.svg"],
        write: Some(Writer {
            rows: Keep::Sums,
            events: Events::One,
            detail: Detail::Names,
            not_for_terminals: Some("a picture (SVG)"),
            ..writer(flamegraph::write)
        }),
        ..PLAIN
    },
    Format {
        name: "csv",
        about: "one line per sample (CSV): event, thread, time, weight, function, module, tier, stack",
        files: &["*.csv"],
        write: Some(Writer { detail: Detail::Names, by_cpu: true, signed: true, ..writer(csv::write) }),
        ..PLAIN
    },
    #[cfg(feature = "tables")]
    Format {
        name: "parquet",
        about: PARQUET,
        files: &["*.parquet"],
        write: Some(Writer {
            is_partitioned: true,
            not_for_terminals: Some("binary"),
            ..row_writer(tables::parquet::write, tables::parquet::start)
        }),
        ..PLAIN
    },
];

/// A format that this build doesn't include.
#[derive(Debug)]
pub struct LeftOut {
    /// The name the format has in builds that include it.
    pub name: &'static str,
    /// Describes the format in one line of the help text.
    pub about: &'static str,
    /// The file name extension of the format.
    extension: &'static str,
}

/// Tells users which builds of jitgraft include all formats. Part of messages about the formats in [`LEFT_OUT`].
pub const HAS_ALL: &str = "use a release, the wheel (pip install jitgraft), or a build with --features tables";

/// The formats that this build doesn't include.
pub const LEFT_OUT: &[LeftOut] =
    if cfg!(feature = "tables") { &[] } else { &[LeftOut { name: "parquet", about: PARQUET, extension: ".parquet" }] };

const PARQUET: &str = "one row per sample or time bucket (Parquet), for SQL";

/// Finds the format that an output with this file name would have, among the formats that this build doesn't include.
/// `None` if the file's extension is that of no such format.
pub fn find_left_out_for_file(name: &[u8]) -> Option<&'static LeftOut> {
    LEFT_OUT.iter().find(|format| name.to_ascii_lowercase().ends_with(format.extension.as_bytes()))
}

/// Why the format with this name shouldn't be written to a terminal; `None` if it may be, or if there is no such
/// format.
pub fn not_for_terminals(name: &str) -> Option<&'static str> {
    find_format(name)?.write?.not_for_terminals
}

/// The format with this name; `None` if there is no such format.
pub fn find_format(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Finds the format for an output by its file name, ignoring case. Of several matching patterns, the longest decides.
/// `None` if none matches.
pub fn find_format_for_file(name: &[u8]) -> Option<&'static Format> {
    find_for_file(name).map(|(_, format)| format)
}

/// The pattern by which [`find_format_for_file`] finds the format.
pub fn find_pattern_for_file(name: &[u8]) -> Option<&'static str> {
    find_for_file(name).map(|(pattern, _)| pattern)
}

fn find_for_file(name: &[u8]) -> Option<(&'static str, &'static Format)> {
    let name = name.to_ascii_lowercase();
    let patterns = FORMATS.iter().flat_map(|format| format.files.iter().map(move |pattern| (*pattern, format)));
    let fitting = patterns.filter(|(pattern, _)| fits(pattern.as_bytes(), &name));
    fitting.max_by_key(|(pattern, _)| pattern.len())
}

/// True if a file name matches a pattern such as `*.pb.gz`.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    // A name such as `.csv` has no extension: it is that of a hidden file.
    let is_hidden = pattern.starts_with(b"*") && name.len() < pattern.len();
    !is_hidden && matches_glob(pattern, name)
}

/// Detects the format of an input from its first bytes: at least 4 KiB, or the whole input if it is shorter. `None` if
/// jitgraft has no reader for it.
pub fn detect(head: &[u8]) -> Option<&'static Format> {
    // A JSON object that no format recognizes for certain is taken for a trace. So JSON of formats that jitgraft
    // doesn't read has to be ruled out before.
    let is_other_json = head.trim_ascii_start().starts_with(b"{") && unread::recognize(head).is_some();
    if is_other_json || unread::looks_like_another(head) {
        return None;
    }
    FORMATS.iter().find(|format| format.sniff.is_some_and(|sniff| sniff(head)))
}

#[cfg(test)]
mod tests {
    use super::unread::tests::EXAMPLES;
    use super::*;

    #[test]
    fn no_reader_takes_what_is_known_and_not_read() {
        for (name, head) in EXAMPLES {
            let shown = String::from_utf8_lossy(head);
            assert_eq!(detect(head).map(|format| format.name), None, "{name}: {shown}");
        }
    }
}
