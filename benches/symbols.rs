//! The speed at which addresses of this very program become functions, and a copied stack becomes a chain.

use criterion::{Criterion, criterion_group, criterion_main};
use jitgraft::internals::error::Warnings;
use jitgraft::internals::io::guard::watch_mapped_files;
use jitgraft::internals::model::process::{CpuMode, Mapping, Process, Processes};
use jitgraft::internals::model::{Addr, Nanos, Pid};
use jitgraft::internals::parallel::Pool;
use jitgraft::internals::symbolize::address_space::AddressSpaces;
use jitgraft::internals::symbolize::code_map::CodeMap;
use jitgraft::internals::symbolize::symbolizer::Symbolizer;
use jitgraft::internals::symbolize::symbols::files::SearchOptions;
use jitgraft::internals::symbolize::symbols::images::Images;
use jitgraft::internals::symbolize::symbols::{self, Base, Request, SymbolOptions};
use jitgraft::internals::symbolize::unwind::registers::{Machine, Registers, x86_64};
use jitgraft::internals::symbolize::unwind::{Cache, MAX_DEPTH, Unwinder, UnwoundChain, UserStack};
use object::{Object, ObjectSection};
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;

/// Unique addresses, as many as a long recording of one program has.
const ADDRESSES: u64 = 5000;
const JIT: u64 = 0x10_0000;

/// This program's code, mapped at 0 with its own offsets, and JIT code in anonymous memory above it.
fn processes() -> (Processes, Vec<u64>) {
    watch_mapped_files(); // so that files are mapped, as in the program
    let path = std::env::current_exe().expect("a benchmark is a file");
    let bytes = std::fs::read(&path).expect("which can be read");
    let object = object::File::parse(&*bytes).expect("and is an ELF file");
    let (start, size) = object.section_by_name(".text").and_then(|text| text.file_range()).expect("with code");
    let offsets = (0..ADDRESSES).map(|n| start + size * n / ADDRESSES).collect();
    let mapping = |addr, path: &[u8]| Mapping {
        time: Nanos(0),
        addr: Addr(addr),
        len: 1 << 16,
        pgoff: 0,
        path: path.into(),
        build_id: None,
        file: None,
        executable: true,
        cpumode: CpuMode::User,
        offset: 0,
    };
    let mappings = vec![mapping(0, path.as_os_str().as_bytes()), mapping(JIT, b"//anon")];
    let process = Process { mappings, ..Process::default() };
    (Processes { by_pid: [(Pid(1), process)].into(), ..Processes::default() }, offsets)
}

fn resolving(criterion: &mut Criterion) {
    let (processes, offsets) = processes();
    let spaces = AddressSpaces::new(&processes);
    let pool = Pool::new(None).expect("threads");
    let dso = spaces.dsos().iter().next().map(|(id, _)| id).expect("one is mapped");
    for (name, inlines) in [("5,000 addresses, symbols only", false), ("5,000 addresses, with inlined calls", true)] {
        let options = SymbolOptions { inlines, ..SymbolOptions::default() };
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                let images = Images::new(spaces.dsos().iter(), SearchOptions::default());
                let requests = [Request { dso, offsets: offsets.clone(), base: Base::File }];
                black_box(symbols::resolve(&requests, &images, &options, &pool, &mut Warnings::new()));
            });
        });
    }
}

fn unwinding(criterion: &mut Criterion) {
    let (processes, _) = processes();
    let spaces = AddressSpaces::new(&processes);
    let codes = CodeMap::default();
    let images = Images::new(spaces.dsos().iter(), SearchOptions::default());
    let unwinder = Unwinder::new(Symbolizer { spaces: &spaces, codes: &codes }, &images, MAX_DEPTH);
    let base = 0x7000_0000;
    let words = (0..100).flat_map(|frame| [base + 16 * (frame + 1), JIT + 8 * frame]);
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let mut registers = Registers::new(Machine::X86_64);
    for (register, value) in [(x86_64::RIP, JIT), (x86_64::RSP, base), (x86_64::RBP, base)] {
        registers.set(register, value);
    }
    let stack = UserStack { pid: Pid(1), time: Nanos(1), registers: &registers, bytes: &bytes };
    let (mut cache, mut chain) = (Cache::default(), UnwoundChain::default());
    criterion.bench_function("a stack of 100 frames by frame pointer", |bencher| {
        bencher.iter(|| {
            unwinder.unwind(black_box(&stack), &mut cache, &mut chain);
            black_box(chain.frames.len())
        });
    });
}

criterion_group!(benches, resolving, unwinding);
criterion_main!(benches);
