//! Tests on hand-made dumps with all the oddities of real ones.

use super::*;
use crate::model::code::Lines;

/// Writes a dump in either byte order.
struct Writer {
    endian: Endian,
    bytes: Vec<u8>,
}

impl Writer {
    fn new(endian: Endian, header_size: u32, version: u32, flags: u64) -> Self {
        let mut writer = Self { endian, bytes: Vec::new() };
        writer.u32(0x4A69_5444).u32(version).u32(header_size).u32(62).u32(0).u32(77).u64(5).u64(flags);
        writer.bytes.resize(header_size as usize, 0xEE);
        writer
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        let bytes = if self.endian == Endian::Little { value.to_le_bytes() } else { value.to_be_bytes() };
        self.bytes.extend(bytes);
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        let bytes = if self.endian == Endian::Little { value.to_le_bytes() } else { value.to_be_bytes() };
        self.bytes.extend(bytes);
        self
    }

    fn record(&mut self, id: u32, payload: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.bytes.len();
        self.u32(id).u32(0).u64(9);
        payload(self);
        let size = (self.bytes.len() - start) as u32;
        let bytes = if self.endian == Endian::Little { size.to_le_bytes() } else { size.to_be_bytes() };
        self.bytes[start + 4..start + 8].copy_from_slice(&bytes);
        self
    }

    fn load(&mut self, name: &[u8], addr: u64, size: u64, code: &[u8]) -> &mut Self {
        self.record(0, |w| {
            w.u32(77).u32(78).u64(0).u64(addr).u64(size).u64(3);
            w.bytes.extend_from_slice(name);
            w.bytes.push(0);
            w.bytes.extend_from_slice(code);
        })
    }
}

fn said(bytes: &[u8]) -> Vec<String> {
    let dump = JitDump::parse(bytes).unwrap();
    let shown = |record: Result<Record<'_>>| match record {
        Err(error) => format!("{error}"),
        Ok(Record { timestamp, body, .. }) => match body {
            Body::Load(load) => {
                format!(
                    "load {} {:#x} {:?} at {timestamp}",
                    String::from_utf8_lossy(load.name),
                    load.addr,
                    load.code.unwrap_or(b"cut")
                )
            }
            Body::Move(moved) => format!("move {:#x} {:#x} {}", moved.from, moved.to, moved.index),
            Body::DebugInfo(info) => format!("lines {:#x} {} {:x?}", info.addr, info.count, info.first_addr),
            Body::Unwinding(unwind) => {
                format!("unwind {:?}", unwind.map(|u| (u.eh_frame, u.eh_frame_hdr, u.mapped_size)))
            }
            Body::Close => "close".to_owned(),
            Body::Other(id) => format!("other {id}"),
        },
    };
    dump.records().map(shown).collect()
}

/// One record of each type, each with some oddity.
fn full(endian: Endian) -> Vec<u8> {
    let mut dump = Writer::new(endian, 48, 2, 0b101);
    dump.record(2, |w| {
        w.u64(0x1000).u64(2).u64(0x1040).u32(7).u32(1);
        w.bytes.extend_from_slice(b"a.js\0");
        w.u64(0x1041).u32(8).u32(0);
        w.bytes.extend_from_slice(b"\xff\0");
    });
    dump.record(4, |w| {
        w.u64(6).u64(2).u64(0);
        w.bytes.extend_from_slice(b"framHD__");
    });
    dump.load(b"f \xfe", 0x1000, 2, b"pad\x90\xc3");
    dump.record(3, |_| {});
    dump.record(1, |w| {
        w.u32(77).u32(78).u64(0).u64(0x1000).u64(0x2000).u64(2).u64(3);
    });
    dump.record(5, |w| w.bytes.push(1));
    dump.load(b"", 0x3000, 0, b"");
    dump.bytes
}

#[test]
fn both_byte_orders_long_headers_and_records_behind_close() {
    let expected = [
        "lines 0x1000 2 Some(1040)",
        "unwind Some(([102, 114, 97, 109], [72, 68], 0))",
        "load f \u{fffd} 0x1000 [144, 195] at 9",
        "close",
        "move 0x1000 0x2000 3",
        "other 5",
        "load  0x3000 [] at 9",
    ];
    for endian in [Endian::Little, Endian::Big] {
        let bytes = full(endian);
        assert_eq!(said(&bytes), expected);
        let header = JitDump::parse(&bytes).unwrap().header;
        assert_eq!((header.version, header.pid, header.machine, header.endian), (2, 77, 62, endian));
        assert!(header.has_arch_timestamps());
        assert_eq!(header.unknown_flags(), 0b100);
    }
}

#[test]
fn lines_are_decoded_up_to_the_first_nonsense() {
    let bytes = full(Endian::Big);
    let dump = JitDump::parse(&bytes).unwrap();
    let Some(Ok(Record { body: Body::DebugInfo(info), .. })) = dump.records().next() else { panic!("no lines") };
    let lines = Lines {
        raw: info.entries,
        decode: Some(decode_lines),
        count: info.count,
        base: 0x1040,
        size: 2,
        big_endian: true,
        function: b"",
        positions: None,
        authored: None,
    };
    let decoded: Vec<_> = lines.entries().iter().map(|line| (line.offset, line.file, line.line)).collect();
    assert_eq!(decoded, [(0, &b"a.js"[..], 7), (1, b"a.js", 8)]);
    let short = Lines { size: 0, count: u64::MAX, ..lines };
    assert_eq!(short.entries().len(), 1);
    assert!(Lines { base: 0x9999, ..lines }.entries().is_empty());
}

#[test]
fn errors_name_the_record_the_field_and_both_values() {
    let mut dump = Writer::new(Endian::Little, 40, 1, 0);
    dump.load(b"f", 0x1000, 99, b"code").load(b"g", 0x2000, 1, b"c");
    let at = dump.bytes.len();
    dump.u32(0).u32(8).u64(0).load(b"behind", 0, 0, b"");
    assert_eq!(
        said(&dump.bytes),
        [
            "at byte 0x62: JIT_CODE_LOAD code_size is 99, but 4 bytes follow the name".to_owned(),
            "load g 0x2000 [99] at 9".to_owned(),
            format!(
                "at byte {at:#x}: JIT_CODE_LOAD total_size is 8, less than its 16-byte prefix: the record is damaged"
            ),
            "load behind 0x0 [] at 9".to_owned(),
        ]
    );
    let mut huge = Writer::new(Endian::Little, 40, 1, 0);
    huge.load(b"f", u64::MAX, 1, b"c").u32(2).u32(u32::MAX).u64(0);
    assert_eq!(
        said(&huge.bytes),
        [
            "at byte 0x62: JIT_CODE_LOAD code_addr 0xffffffffffffffff and code_size 0x1 extend beyond the address \
             space",
            "at byte 0x63: JIT_CODE_DEBUG_INFO total_size is 4294967295, but only 16 bytes are left: the dump is \
             truncated here",
        ]
    );
}

#[test]
fn a_last_load_cut_in_its_code_has_its_name_and_one_in_the_middle_is_damaged() {
    let mut dump = Writer::new(Endian::Little, 40, 1, 0);
    dump.load(b"first", 0x1000, 4, b"code");
    let at = dump.bytes.len();
    dump.load(b"last", 0x2000, 8, b"longcode");
    let end = dump.bytes.len();
    let last = |len: usize| said(&dump.bytes[..len]).pop().unwrap();
    for len in end - 8..end {
        assert_eq!(last(len), "load last 0x2000 [99, 117, 116] at 9", "{len} of {end}");
    }
    for len in at + 1..end - 8 {
        let said = last(len);
        assert!(said.starts_with("at byte ") && said.ends_with("the dump is truncated here"), "{len} of {end}: {said}");
    }
    // Now the same length is claimed in the middle of the file.
    dump.bytes[at + 4..at + 8].copy_from_slice(&0x1000u32.to_le_bytes());
    dump.load(b"behind", 0x3000, 1, b"c");
    let said = said(&dump.bytes);
    assert!(said[1].ends_with("bytes are left: the record is damaged"), "{said:?}");
    assert_eq!(said[2], "load behind 0x3000 [99] at 9");
}

#[test]
fn headers_that_are_none() {
    let say = |bytes: &[u8]| JitDump::parse(bytes).unwrap_err().to_string();
    // CPython's child processes that end with os._exit leave such files.
    assert_eq!(
        say(b""),
        "at byte 0x0: the file is empty: the process was killed or called _exit before it flushed its buffer, or could \
         not map the file (noexec mount)"
    );
    assert_eq!(say(b"DT"), "at byte 0x0: the file is not a jitdump: it has 2 bytes, and the header alone has 40");
    assert_eq!(say(b"\x7fELFrest"), "at byte 0x0: the file is not a jitdump: it does not start with \"DTiJ\"");
    let short = Writer::new(Endian::Little, 24, 1, 0).bytes;
    assert!(JitDump::parse(&short).is_err());
    assert!(!sniff(b"PERFILE2") && sniff(b"JiTD") && sniff(b"DTiJ"));
}

#[test]
fn every_prefix_and_every_flipped_byte_ends_without_a_panic() {
    for endian in [Endian::Little, Endian::Big] {
        let whole = full(endian);
        let good = |bytes: &[u8]| JitDump::parse(bytes).map_or(0, |dump| dump.records().flatten().count());
        for len in 0..whole.len() {
            assert!(good(&whole[..len]) <= 7);
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bent = whole.clone();
                bent[at] ^= 1 << bit;
                // Each record needs at least 16 bytes for its prefix.
                assert!(good(&bent) <= whole.len() / 16);
            }
        }
    }
}
