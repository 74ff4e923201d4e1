//! Stacks of a measureme profile of 64 MB: by wall and by active time, and its summary.

#[path = "../tests/support/interpreter.rs"]
mod interpreter;
#[path = "../tests/support/names.rs"]
mod names;
#[path = "../tests/support/random.rs"]
mod random;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use interpreter::{Program, Recorder, run};
use jitgraft::internals::analysis::timeline::{CallOptions, Clock, Owner};
use jitgraft::internals::contract::format::ReadOptions;
use jitgraft::internals::contract::spans::SpanInput;
use jitgraft::internals::error::Warnings;
use jitgraft::internals::formats::measureme::SPANS;

fn profile() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bench.mm_profdata");
    let recorder = Recorder::create(&path, "miri ");
    run(Program { frames: 2_000_000, threads: 8, functions: 400, one_id: false }, &recorder, None);
    drop(recorder);
    std::fs::read(path).unwrap()
}

fn benches(criterion: &mut Criterion) {
    let bytes = profile();
    let mut group = criterion.benchmark_group("measureme");
    group.throughput(Throughput::Bytes(bytes.len() as u64)).sample_size(10);
    for (name, clock) in [("wall", Clock::Wall), ("active", Clock::Active(Owner::Next))] {
        let options = ReadOptions { calls: CallOptions { clock, ..CallOptions::default() }, ..ReadOptions::default() };
        group.bench_function(name, |b| {
            b.iter(|| (SPANS.stacks)(SpanInput::whole(&bytes), &options, &mut Warnings::new()).unwrap())
        });
    }
    let summarize = SPANS.summary.unwrap();
    group.bench_function("summary", |b| b.iter(|| summarize(SpanInput::whole(&bytes), &mut Warnings::new()).unwrap()));
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
