//! Spans of a trace of some 40 MB, beside what a parser of whole documents takes for the same bytes.

#[path = "../tests/support/miri.rs"]
mod miri;
#[path = "../tests/support/names.rs"]
mod names;
#[path = "../tests/support/random.rs"]
mod random;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use jitgraft::internals::contract::format::ReadOptions;
use jitgraft::internals::contract::spans::SpanInput;
use jitgraft::internals::error::Warnings;
use jitgraft::internals::formats::trace_event::SPANS;

fn benches(criterion: &mut Criterion) {
    let mut bytes = Vec::new();
    miri::trace(&mut bytes, 11_000).unwrap();
    let mut group = criterion.benchmark_group("trace_event");
    group.throughput(Throughput::Bytes(bytes.len() as u64)).sample_size(10);
    let options = ReadOptions::default();
    group.bench_function("spans", |b| {
        b.iter(|| (SPANS.timeline)(SpanInput::whole(&bytes), &options, &mut Warnings::new()).unwrap())
    });
    group.bench_function("serde_json", |b| b.iter(|| serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()));
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
