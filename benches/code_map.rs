//! The code map at work: built from many loads, and asked.
//!
//! Two shapes: functions side by side, each loaded once, and few places used again and again.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use jitgraft::internals::model::code::{Code, Lines, OriginId};
use jitgraft::internals::model::process::Processes;
use jitgraft::internals::model::{Addr, Nanos, Pid};
use jitgraft::internals::parallel::Pool;
use jitgraft::internals::symbolize::code_map::{CodeList, CodeMap};
use std::num::NonZeroUsize;

const LOADS: u64 = 200_000;

const CODE: [u8; 64] = [0x90; 64];

/// One load a microsecond; each tenth is bigger than its place and cuts its neighbor.
fn loads(places: u64) -> CodeList<'static> {
    let mut list = CodeList::with_capacity(LOADS as usize);
    for n in 0..LOADS {
        let place = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % places;
        let size = if n % 10 == 0 { 64 } else { 48 };
        let bytes = Some(&CODE[..size]);
        let addr = Addr(0x7f00_0000_0000 + place * 56);
        let (name, lines, origin) = (&b"function"[..], Lines::default(), OriginId(0));
        let code = Code { name, addr, size: size as u64, bytes, lines, unwind: None, origin };
        list.load(Pid(7), Some(Nanos(n * 1000)), &code);
    }
    list
}

fn code_map(criterion: &mut Criterion) {
    let processes = Processes::default();
    for (shape, places) in [("side-by-side", LOADS), ("reused", 1000)] {
        let mut group = criterion.benchmark_group(shape);
        group.throughput(Throughput::Elements(LOADS));
        for threads in [1, 2] {
            let pool = Pool::new(NonZeroUsize::new(threads)).expect("threads can be started");
            group.bench_function(format!("build, {threads} threads"), |bencher| {
                let lists = || vec![loads(places)];
                bencher.iter_batched(lists, |lists| CodeMap::build(lists, &processes, &pool), BatchSize::LargeInput);
            });
        }
        let pool = Pool::new(NonZeroUsize::new(1)).expect("threads can be started");
        let map = CodeMap::build(vec![loads(places)], &processes, &pool);
        group.bench_function("look-up", |bencher| {
            bencher.iter(|| {
                let ask = |n: u64| {
                    let addr = Addr(0x7f00_0000_0000 + n.wrapping_mul(0x2545_f491_4f6c_dd1d) % (places * 56));
                    map.lookup(Pid(7), addr, Some(Nanos(n * 1000)))
                };
                (0..LOADS).filter(|n| ask(*n).is_some()).count()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, code_map);
criterion_main!(benches);
