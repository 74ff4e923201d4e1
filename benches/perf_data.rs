//! perf.data: the walk over records, samples parsed, and records passed on with edits between them.

#[path = "../tests/support/generated.rs"]
#[expect(dead_code, reason = "only the recording is measured, without dumps")]
mod generated;
#[path = "../tests/support/random.rs"]
mod random;
#[path = "../tests/support/writers/mod.rs"]
#[expect(dead_code, reason = "the writers can do more than this program needs")]
mod writers;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use jitgraft::internals::error::{Result, Warnings};
use jitgraft::internals::formats::perf_data::{Edit, EditSink, Edits, Recording, kind};
use std::hint::black_box;
use std::ops::Range;

use bytes::Order;
use generated::{Plan, generate};
use perf_data::Mode;
use writers::{bytes, jitdump, perf_data};

struct Memory<'a> {
    from: &'a [u8],
    to: Vec<u8>,
}

impl EditSink for Memory<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.to.extend(bytes);
        Ok(())
    }

    fn copy(&mut self, range: Range<u64>) -> Result<()> {
        self.to.extend(&self.from[range.start as usize..range.end as usize]);
        Ok(())
    }
}

fn perf_data(c: &mut Criterion) {
    let plan = Plan {
        loads: 10_000,
        samples: 50_000,
        processes: 1,
        heap: None,
        moves: true,
        order: Order::Little,
        mode: Mode::File,
    };
    let file = generate(plan, "/nowhere").perf_data;
    let recording = Recording::parse(&file, &mut Warnings::new()).unwrap();
    let mut group = c.benchmark_group("perf_data");
    group.throughput(Throughput::Bytes(file.len() as u64));
    group.bench_function("walk", |bench| bench.iter(|| recording.records(black_box(&file)).count()));
    let samples = || recording.records(&file).filter(|record| record.kind == kind::SAMPLE);
    group.bench_function("samples", |bench| {
        bench.iter(|| samples().filter_map(|record| recording.sample(&record).ok()?.ip).fold(0, |sum, ip| sum ^ ip.0))
    });
    let at = samples().step_by(10).map(|record| Edit { at: record.offset, remove: 0, insert: vec![0; 120] });
    let edits = Edits::new(at.collect());
    group.bench_function("rewrite", |bench| {
        bench.iter(|| {
            let mut sink = Memory { from: &file, to: Vec::with_capacity(2 * file.len()) };
            edits.apply(recording.data.clone(), &mut sink).unwrap();
            sink.to.len()
        })
    });
    group.finish();
}

criterion_group!(benches, perf_data);
criterion_main!(benches);
