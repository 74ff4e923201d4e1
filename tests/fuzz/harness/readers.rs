//! Readers of profiles that name their own functions, and what gives names to those of other tools.

use crate::contract::options::{ReadOptions, WriteOptions};
use crate::contract::unsymbolized::{NamedCall, OpenUnsymbolized};
use crate::error::{Result, Skipped, Warnings};
use crate::formats::{
    cpuprofile, dtrace, firefox, folded, ghcprof, otlp, pprof, sample, speedscope, vsprof, vtune, xctrace,
};
use crate::model::stacks::Profile;
use std::collections::HashSet;

type Sniffer = fn(&[u8]) -> bool;
type Reader = fn(&[u8], &ReadOptions, &mut Warnings) -> Result<Profile>;

/// Reads everything as this format; no byte can report more stacks than `a_byte`.
fn reads(bytes: &[u8], sniff: Sniffer, read: Reader, a_byte: usize) {
    let _ = sniff(bytes);
    let Ok(profile) = read(bytes, &ReadOptions::default(), &mut Warnings::new()) else { return };
    assert!(profile.stack_count() <= a_byte * bytes.len(), "more stacks than the file could tell");
}

pub(super) fn firefox(bytes: &[u8]) {
    reads(bytes, firefox::sniff, firefox::read, 1);
}

pub(super) fn folded(bytes: &[u8]) {
    let read = |bytes: &[u8], options: &ReadOptions, _: &mut Warnings| {
        let mut reader = folded::open(options, bytes);
        reader.read(bytes, &mut Skipped::new("line"));
        Ok(std::mem::replace(reader.profile(), Profile::new()))
    };
    reads(bytes, folded::sniff, read, 1);
}

pub(super) fn cpuprofile(bytes: &[u8]) {
    reads(bytes, cpuprofile::sniff, cpuprofile::read, 1);
}

pub(super) fn speedscope(bytes: &[u8]) {
    reads(bytes, speedscope::sniff, speedscope::read, 1);
}

/// The fields, the tables, every sample: what is packed gives more than its bytes.
pub(super) fn pprof(bytes: &[u8]) {
    reads(bytes, pprof::sniff, pprof::read, 100);
}

/// Texts of profilers of other systems: each reader reads everything.
pub(super) fn texts(bytes: &[u8]) {
    for (sniff, read) in [
        (dtrace::sniff as Sniffer, dtrace::read as Reader),
        (ghcprof::sniff, ghcprof::read),
        (sample::sniff, sample::read),
        (vsprof::sniff, vsprof::read),
        (vtune::sniff, vtune::read),
        (xctrace::sniff, xctrace::read),
    ] {
        reads(bytes, sniff, read, 1);
    }
}

/// The text of perf script, as it is.
pub(super) fn perf_script(bytes: &[u8]) {
    reads(bytes, crate::formats::perf_script::sniff, crate::formats::perf_script::read::read, 1);
}

/// callgrind's profile: its stacks, which every function may share, and what its instructions cost.
pub(super) fn callgrind(bytes: &[u8]) {
    let _ = crate::formats::callgrind::sniff(bytes);
    let _ = crate::formats::callgrind::read(&mut &bytes[..], &ReadOptions::default(), &mut Warnings::new());
    let _ = crate::formats::callgrind::instruction_costs(bytes, &mut Warnings::new());
}

/// Messages of OpenTelemetry, in each of their forms; and what is written of them can be read again.
pub(super) fn otlp(bytes: &[u8]) {
    let read = |bytes: &[u8]| otlp::read(&mut &bytes[..], &ReadOptions::default(), &mut Warnings::new());
    let _ = otlp::sniff(bytes);
    let Ok(profile) = read(bytes) else { return };
    for write in [otlp::write, otlp::write_json] {
        let mut out = Vec::new();
        write(&profile, &WriteOptions::default(), &mut out).unwrap();
        assert!(otlp::sniff(&out[..out.len().min(1 << 16)]) || sampled(&profile) == 0);
        assert_eq!(sampled(&read(&out).unwrap()), sampled(&profile));
    }
}

/// The number of stacks that have samples: those of samples that were left out are not written.
fn sampled(profile: &Profile) -> usize {
    let rows = profile.series.iter().flat_map(|series| &series.rows);
    rows.map(|row| row.stack).collect::<HashSet<_>>().len()
}

pub(super) fn inject_pprof(bytes: &[u8]) {
    names(bytes, pprof::open_unsymbolized);
}

pub(super) fn inject_firefox(bytes: &[u8]) {
    names(bytes, firefox::open_unsymbolized);
}

/// The unnamed addresses, the file with names, and that it can be read again.
fn names(bytes: &[u8], open: OpenUnsymbolized) {
    let Ok(mut profile) = open(bytes, &mut Warnings::new()) else { return };
    let name = |at: usize| match at % 3 {
        0 => Vec::new(),
        1 => vec![NamedCall { name: b"f\xff", file: b"a.js", line: 3 }],
        _ => vec![NamedCall { name: b"inner", file: b"", line: 0 }, NamedCall { name: b"g", file: b"", line: 1 }],
    };
    let mut out = Vec::new();
    if profile.write(&name, &mut out).is_ok() {
        assert!(open(&out, &mut Warnings::new()).is_ok(), "what was read is read again");
    }
}
