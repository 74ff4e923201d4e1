//! Images of JIT code as real readers see them: readelf, eu-elflint, objdump, addr2line, and the crates `object`,
//! `gimli`, `addr2line` and `framehop`.

use jitgraft::formats::cursor::Endian;
use jitgraft::formats::elf_image::{Addressing, Image, ImageBuilder, SlotId, Target};
use jitgraft::model::Addr;
use jitgraft::model::code::{Code, Line, Lines, OriginId, Unwind};
use std::fs::File;
use std::io::{BufWriter, Cursor};
use std::path::{Path, PathBuf};
use std::process::Command;

const X86_64: Target = Target { machine: 62, is_64: true, endian: Endian::Little };

/// push %rbp; mov %rsp,%rbp; nop × 8; pop %rbp; ret
const BODY: [u8; 14] = [0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x5d, 0xc3];

fn code<'data>(name: &'data [u8], bytes: &'data [u8]) -> Code<'data> {
    Code {
        name,
        addr: Addr(0),
        size: bytes.len() as u64,
        bytes: Some(bytes),
        lines: Lines::default(),
        unwind: None,
        origin: OriginId(0),
    }
}

fn at(code: Code, addr: u64) -> Code {
    Code { addr: Addr(addr), ..code }
}

/// Two lines in a file whose name is odd.
fn lines() -> Lines<'static> {
    fn decode<'data>(_: &Lines<'data>) -> Vec<Line<'data>> {
        let line = |offset, line| Line { offset, file: b"/work/na\xefve app.js", line, discriminator: 3 };
        vec![line(0, 40), line(4, 42)]
    }
    Lines { decode: Some(decode), count: 2, raw: b"two lines", ..Lines::default() }
}

/// What V8 logs for a function with a frame: a CIE and an FDE relative to the place behind `BODY`, then the header.
const V8_FRAMES: [u8; 80] = [
    0x18, 0, 0, 0, 0, 0, 0, 0, 3, b'z', b'L', b'R', 0, 1, 0x78, 0x10, 2, 0xff, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0, 0,
    0, // CIE
    0x1c, 0, 0, 0, 0x20, 0, 0, 0, 0xcc, 0xff, 0xff, 0xff, 14, 0, 0, 0, 0, // FDE, pc_begin = -(36 + 16)
    0x41, 0x0e, 0x10, 0x86, 2, 0x43, 0x0d, 6, 0x49, 0x0c, 7, 8, 0, 0, 0, // push, mov, pop
    0, 0, 0, 0, // terminator
    1, 0x1b, 3, 0x3b, 0xbc, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0xb0, 0xff, 0xff, 0xff,
];

fn unwind() -> Unwind<'static> {
    let (eh_frame, eh_frame_hdr) = V8_FRAMES.split_at(64);
    Unwind { eh_frame, eh_frame_hdr, mapped_size: 0 }
}

struct Made {
    _dir: tempfile::TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
}

fn write(image: &Image) -> Made {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jitted-1.so");
    let mut out = BufWriter::new(File::create(&path).unwrap());
    let written = image.write(&mut out).unwrap();
    drop(out);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(written.len, bytes.len() as u64);
    let mut in_memory = Cursor::new(Vec::new());
    image.write(&mut in_memory).unwrap();
    assert!(in_memory.into_inner() == bytes, "a second writing differs");
    Made { _dir: dir, path, bytes }
}

/// Runs a reader; its standard output and standard error must not say what `forbidden` says.
fn run(tool: &str, args: &[&str], file: &Path, forbidden: &[&str]) -> String {
    let output = Command::new(tool).args(args).arg(file).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {tool} (tests/run.sh installs it): {error}"));
    let text = [output.stdout, output.stderr].map(|part| String::from_utf8_lossy(&part).into_owned()).concat();
    for word in forbidden {
        assert!(!text.contains(word), "{tool} {args:?} says {word:?}:\n{text}");
    }
    assert!(output.status.success(), "{tool} {args:?} failed:\n{text}");
    text
}

/// Both judges of ELF files are content.
fn judge(made: &Made) {
    run("readelf", &["--all", "--wide"], &made.path, &["readelf: ", "Warning", "Error", "error"]);
    let said = run("eu-elflint", &["--gnu-ld"], &made.path, &[]);
    assert_eq!(said.trim(), "No errors");
}

fn build<'a, 'data>(
    target: Target,
    addressing: Addressing,
    codes: &'a [Code<'data>],
) -> (Image<'a, 'data>, Vec<SlotId>) {
    let mut builder = ImageBuilder::new(target, addressing);
    let slots = codes.iter().map(|code| builder.add(code, code.addr)).collect();
    (builder.build(), slots)
}

#[test]
fn everything_that_perf_shows_is_in_an_image() {
    let full = Code { lines: lines(), unwind: Some(unwind()), ..code(b"JS:*f /work/app.js:40", &BODY) };
    let codes =
        [at(full, 0x7f00_0000_1040), at(code(b"Builtin:g", &BODY), 0x7f00_0000_9000), at(full, 0x7f00_0000_1080)];
    let (image, slots) = build(X86_64, Addressing::FileOffset, &codes);
    let made = write(&image);
    judge(&made);
    for (slot, code) in slots.iter().zip(&codes) {
        let place = image.place(*slot).unwrap();
        assert_eq!((place.offset, code.addr.0 - place.offset), (place.addr, 0x7f00_0000_1000 - 0x1000));
        assert_eq!(&made.bytes[place.offset as usize..][..14], &BODY);
    }
    let text = run("objdump", &["-d"], &made.path, &[]);
    for expected in ["<JS:*f /work/app.js:40>:\n    1040:\t55", "<Builtin:g>:\n    9000:\t55", "    104c:\t5d"] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
    let place = image.place(slots[2]).unwrap();
    let addr = format!("{:#x}", place.addr + 5);
    let said = Command::new("addr2line").args(["-f", "-e"]).arg(&made.path).arg(&addr).output().unwrap();
    assert_eq!(said.stdout, b"JS:*f /work/app.js:40\n/work/na\xefve app.js:42\n");
}

#[test]
fn images_of_every_class_and_order_are_clean() {
    for target in [
        X86_64,
        Target::new(183, Endian::Little), // aarch64
        Target::new(22, Endian::Big),     // s390x
        Target::new(21, Endian::Big),     // ppc64
        Target::new(20, Endian::Big),     // ppc
        Target::new(3, Endian::Little),   // i386
        Target::new(40, Endian::Little),  // arm
        Target::new(243, Endian::Little), // riscv64
    ] {
        for addressing in [Addressing::FileOffset, Addressing::RunTime] {
            let full = Code { lines: lines(), ..code(b"\xff odd\nname", &BODY) };
            let only_name = Code { bytes: None, ..code(b"named", &BODY) };
            let codes = [
                at(full, 0x1000),
                at(only_name, 0x1100),
                at(code(b"", &BODY), 0x50_0000),
                at(code(b"empty", &[]), 0x9000),
            ];
            judge(&write(&build(target, addressing, &codes).0));
        }
    }
}

#[test]
fn an_image_without_code_is_clean() {
    for addressing in [Addressing::FileOffset, Addressing::RunTime] {
        judge(&write(&build(X86_64, addressing, &[]).0));
    }
}
