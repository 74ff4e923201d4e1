//! Checks that caching between samples doesn't change which code the samples use.

use super::code_uses::CodeUses;
use super::jit_ranges::JitRanges;
use super::shadowings::Shadowings;
use super::use_finder::{UseContext, UseFinder};
use crate::bytes::byte_writer::ByteWriter;
use crate::bytes::cursor::Endian;
use crate::error::Warnings;
use crate::formats::perf_data::{DeferredChains, RawRecord, Recording, Records, kind, record};
use crate::model::code::{Code, Lines, OriginId};
use crate::model::process::{CpuMode, Mapping, Process, Processes};
use crate::model::{Addr, Nanos, Pid};
use crate::parallel::Pool;
use crate::symbolize::address_space::AddressSpaces;
use crate::symbolize::code_map::{CodeList, CodeMap};
use crate::symbolize::symbolizer::Symbolizer;
use linux_perf_event_reader::constants as abi;
use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// An upper bound: all times of the recording are below it.
const END: u64 = 60;

/// Code and mappings start and end at `BASE` plus a multiple of `STEP`.
const BASE: u64 = 0x7000_0000;
const STEP: u64 = 0x1000;

/// A sample. Its call chain is given by the changes to the previous chain of the same thread.
#[derive(Debug, Clone)]
struct MadeSample {
    pid: i32,
    tid: i32,
    time: u64,
    /// How many of the previous chain's innermost entries are removed.
    less: usize,
    /// The entries that replace the removed ones.
    more: Vec<u64>,
    stack: Vec<u64>,
}

fn word() -> impl Strategy<Value = u64> {
    const MARKS: [u64; 5] =
        [abi::PERF_CONTEXT_USER, abi::PERF_CONTEXT_KERNEL, abi::PERF_CONTEXT_GUEST_USER, u64::MAX, -640i64 as u64];
    prop_oneof![
        8 => (0..8u64, -1..3i64).prop_map(|(step, near)| (BASE + step * STEP).wrapping_add_signed(near)),
        2 => select(&MARKS[..]),
        1 => any::<u64>(),
    ]
}

fn sample() -> impl Strategy<Value = MadeSample> {
    let thread = (1..3i32, select(&[1, 2, 33][..]));
    (thread, 0..END, 0..6usize, prop::collection::vec(word(), 0..6), prop::collection::vec(word(), 0..3))
        .prop_map(|((pid, tid), time, less, more, stack)| MadeSample { pid, tid, time, less, more, stack })
}

fn mapping() -> impl Strategy<Value = (i32, Mapping)> {
    let path = select(&["//anon", "/usr/lib/libc.so", "/tmp/jitted-1.so"][..]);
    (1..3i32, 0..END, 0..8u64, 1..4u64, path).prop_map(|(pid, time, step, steps, path)| {
        let mapping = Mapping {
            time: Nanos(time),
            addr: Addr(BASE + step * STEP),
            len: steps * STEP,
            pgoff: 0,
            path: path.into(),
            build_id: None,
            file: None,
            executable: true,
            cpumode: CpuMode::User,
            offset: time,
        };
        (pid, mapping)
    })
}

/// The process and the time of a load, and what was loaded.
fn load() -> impl Strategy<Value = (Pid, Option<Nanos>, Code<'static>)> {
    (1..3i32, prop::option::of(0..END), 0..8u64, 1..3u64).prop_map(|(pid, time, step, steps)| {
        let (addr, size) = (Addr(BASE + step * STEP), steps * STEP);
        let (lines, unwind, origin) = (Lines::default(), None, OriginId(0));
        let code = Code { name: b"f", addr, size, bytes: None, lines, unwind, origin };
        (Pid(pid), time.map(Nanos), code)
    })
}

/// A recording in pipe form: its magic and one attr.
fn recording(has_times: bool) -> Recording {
    let time = if has_times { abi::PERF_SAMPLE_TIME } else { 0 };
    let fields = abi::PERF_SAMPLE_IP | abi::PERF_SAMPLE_TID | abi::PERF_SAMPLE_CALLCHAIN | abi::PERF_SAMPLE_STACK_USER;
    let mut attr = ByteWriter::new(Endian::Little);
    attr.u32(0).u32(64).u64(0).u64(1).u64(fields | time).u64(0).u64(0).u64(0).u64(0);
    let attr = record(kind::HEADER_ATTR, 0, &attr.finish(), Endian::Little).unwrap();
    let magic = [&b"PERFILE2"[..], &16u64.to_le_bytes()].concat();
    Recording::parse(&[magic, attr].concat(), &mut Warnings::new()).unwrap()
}

fn records(samples: &[MadeSample], has_times: bool) -> Vec<u8> {
    let mut chains: BTreeMap<(i32, i32), Vec<u64>> = BTreeMap::new();
    let mut bytes = Vec::new();
    for MadeSample { pid, tid, time, less, more, stack } in samples {
        let chain = chains.entry((*pid, *tid)).or_default();
        chain.drain(..(*less).min(chain.len()));
        chain.splice(..0, more.iter().copied());
        let mut body = ByteWriter::new(Endian::Little);
        body.u64(BASE).u32(pid.cast_unsigned()).u32(tid.cast_unsigned());
        if has_times {
            body.u64(*time);
        }
        body.u64(chain.len() as u64);
        chain.iter().for_each(|word| {
            body.u64(*word);
        });
        body.u64(stack.len() as u64 * 8);
        stack.iter().for_each(|word| {
            body.u64(*word);
        });
        if !stack.is_empty() {
            body.u64(stack.len() as u64 * 8);
        }
        bytes.extend(record(kind::SAMPLE, 2, &body.finish(), Endian::Little).unwrap());
    }
    bytes
}

proptest! {
    #[test]
    fn samples_use_what_each_of_them_uses_alone(
        mut samples in prop::collection::vec(sample(), 1..60),
        mappings in prop::collection::vec(mapping(), 0..20),
        loads in prop::collection::vec(load(), 0..20),
        in_order in any::<bool>(),
        has_times in prop_oneof![4 => Just(true), 1 => Just(false)],
    ) {
        if in_order {
            samples.sort_by_key(|sample| sample.time);
        }
        let mut processes = Processes::default();
        for (pid, mapping) in mappings {
            processes.by_pid.entry(Pid(pid)).or_insert_with(Process::default).mappings.push(mapping);
        }
        processes.by_pid.values_mut().for_each(|process| process.mappings.sort_by_key(|mapping| mapping.time));
        let pool = Pool::new(NonZeroUsize::new(1)).unwrap();
        let mut list = CodeList::default();
        for (pid, time, code) in loads {
            list.load(pid, time, &code);
        }
        let codes = &CodeMap::build(vec![list], &processes, &pool);
        let jit_ranges = &JitRanges::new(codes, &processes, &[]);
        let (shadowings, spaces) = (&Shadowings::new(&processes, jit_ranges), &AddressSpaces::new(&processes));
        let (recording, dump_ends) = (&recording(has_times), &BTreeMap::from([(Pid(1), Nanos(END / 2))]));
        let deferred = &DeferredChains::default();
        let symbolizer = Symbolizer { spaces, codes };
        let context = UseContext { recording, deferred, symbolizer, jit_ranges, shadowings, dump_ends };
        let bytes = records(&samples, has_times);
        let list: Vec<RawRecord<'_>> = Records::new(&bytes, 0, Endian::Little).collect();
        let mut alone = CodeUses::default();
        for record in &list {
            let mut finder = UseFinder::new(context);
            finder.read(std::iter::once(*record));
            alone.append(finder.finish());
        }
        let mut finder = UseFinder::new(context);
        finder.read(list.into_iter());
        let together = finder.finish();
        prop_assert_eq!(format!("{:?}", together.counts), format!("{:?}", alone.counts));
        prop_assert_eq!(format!("{:?}", together.into_ordered(&pool)), format!("{:?}", alone.into_ordered(&pool)));
    }
}
