//! Images of JIT code: laid out and written, bare and with lines and unwinding information.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use jitgraft::internals::bytes::cursor::Endian;
use jitgraft::internals::formats::elf_image::{Addressing, ImageBuilder, Target};
use jitgraft::internals::model::Addr;
use jitgraft::internals::model::code::{Code, Line, Lines, OriginId, Unwind};
use std::io::Cursor;

const FUNCTIONS: u64 = 20_000;
const SIZE: u64 = 96;
const BODY: [u8; SIZE as usize] = [0x90; SIZE as usize];

/// A CIE and an FDE for 96 bytes of code before them, and a terminator; then the header of a search table.
#[rustfmt::skip]
const FRAMES: [u8; 72] = [
    0x14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 0x10, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
    0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0x80, 0xff, 0xff, 0xff, SIZE as u8, 0, 0, 0, 0, 0x41, 0x0e, 0x10, 0x86, 2, 0, 0,
    0, 0, 0, 0,
    1, 0x1b, 3, 0x3b, 0xc8, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0xa0, 0xff, 0xff, 0xff, 0, 0, 0, 0,
];

fn lines(_: &Lines<'_>) -> Vec<Line<'static>> {
    (0..6)
        .map(|n| Line { offset: n * 16, file: b"/src/app.js", line: n as u32 + 1, discriminator: 0, inlined: None })
        .collect()
}

fn code(n: u64, name: &str, full: bool) -> Code<'_> {
    let (eh_frame, eh_frame_hdr) = FRAMES.split_at(52);
    let with_lines = Lines { decode: Some(lines), count: 6, raw: b"six lines", ..Lines::default() };
    let unwind = full.then_some(Unwind { eh_frame, eh_frame_hdr, mapped_size: 0 });
    let lines = if full { with_lines } else { Lines::default() };
    let (name, addr, bytes) = (name.as_bytes(), Addr(0x7f00_0000_0000 + n * SIZE), Some(&BODY[..]));
    Code { name, addr, size: SIZE, bytes, lines, unwind, origin: OriginId(0) }
}

fn elf_image(criterion: &mut Criterion) {
    let names: Vec<String> = (0..FUNCTIONS).map(|n| format!("JS:*function{n} /src/app.js:{n}")).collect();
    let target = Target { machine: 62, is_64: true, endian: Endian::Little };
    let mut group = criterion.benchmark_group("elf_image");
    group.throughput(Throughput::Elements(FUNCTIONS));
    for (shape, full) in [("bare", false), ("lines and unwinding", true)] {
        let codes: Vec<Code<'_>> = (0..).zip(&names).map(|(n, name)| code(n, name, full)).collect();
        group.bench_function(shape, |bench| {
            bench.iter(|| {
                let mut builder = ImageBuilder::new(target, Addressing::FileOffset);
                codes.iter().for_each(|code| {
                    builder.add(code, code.addr);
                });
                let mut out = Cursor::new(Vec::new());
                let written = builder.build().write(&mut out).expect("memory takes it all");
                assert_eq!(written.counts.bad_unwind, 0);
                out.into_inner().len()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, elf_image);
criterion_main!(benches);
