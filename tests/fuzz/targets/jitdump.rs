#![no_main]
//! jitdump: header, records, lines, and the ELF image of what was loaded.

use jitgraft::formats::elf_image::{Addressing, ImageBuilder, Target};
use jitgraft::formats::jitdump::{Body, JitDump, decode_lines};
use jitgraft::model::Addr;
use jitgraft::model::code::{Code, Lines, OriginId};
use libfuzzer_sys::fuzz_target;

/// An image mirrors addresses: code far apart makes a file with holes, which in memory are not holes.
const SPAN: u64 = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
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
    for image in builder.build_set([0x8000..0x9000]).images() {
        let _ = image.write(&mut std::io::Cursor::new(Vec::new()));
    }
});
