//! Checks images with real readers: readelf, eu-elflint, objdump, addr2line, and the crates `object`, `gimli`,
//! `addr2line` and `framehop`.

use crate::bytes::cursor::Endian;
use crate::formats::elf_image::{Addressing, AuxMapping, Image, ImageBuilder, SlotId, Target};
use crate::model::Addr;
use crate::model::code::{Code, Line, Lines, OriginId, Unwind};
use object::{Object, ObjectSection, ObjectSymbol};
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

/// Two lines in a file with an odd name.
fn lines() -> Lines<'static> {
    fn decode<'data>(_: &Lines<'data>) -> Vec<Line<'data>> {
        let line = |offset, line| Line { offset, file: b"/src/na\xefve app.js", line, discriminator: 3, inlined: None };
        vec![line(0, 40), line(4, 42)]
    }
    Lines { decode: Some(decode), count: 2, raw: b"two lines", ..Lines::default() }
}

/// V8's unwinding data for a function with a frame: a CIE and an FDE relative to the position after `BODY`, then the
/// header.
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

/// Runs a reader. Its output must not contain any of the `forbidden` texts.
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

/// Checks an image with readelf and eu-elflint.
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
    let full = Code { lines: lines(), unwind: Some(unwind()), ..code(b"JS:*f /src/app.js:40", &BODY) };
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
    for expected in ["<JS:*f /src/app.js:40>:\n    1040:\t55", "<Builtin:g>:\n    9000:\t55", "    104c:\t5d"] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
    let place = image.place(slots[2]).unwrap();
    let addr = format!("{:#x}", place.addr + 5);
    let said = Command::new("addr2line").args(["-f", "-e"]).arg(&made.path).arg(&addr).output().unwrap();
    assert_eq!(said.stdout, b"JS:*f /src/app.js:40\n/src/na\xefve app.js:42\n");
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
            judge(&write(&build(target, addressing, &[at(only_name, 0x1100)]).0));
        }
    }
}

/// The names of the functions in code sections, as samply looks for them, and the name of the very first function, by
/// which samply files all code of the image.
fn functions(made: &Made) -> (Vec<String>, String) {
    let file = object::File::parse(&*made.bytes).unwrap();
    let functions: Vec<_> = file.symbols().filter(|symbol| symbol.kind() == object::SymbolKind::Text).collect();
    let in_code = functions.iter().filter(|symbol| {
        let section = file.section_by_index(symbol.section_index().unwrap()).unwrap();
        section.kind() == object::SectionKind::Text
    });
    let name = |symbol: &object::Symbol<'_, '_>| symbol.name().unwrap().to_owned();
    (in_code.map(name).collect(), functions.first().map(name).unwrap())
}

#[test]
fn viewers_find_functions_without_code_bytes_and_do_not_judge_all_by_the_first() {
    let names = [&b"JS:*first"[..], b"py::second"];
    let codes = names.map(|name| Code { bytes: None, ..code(name, &BODY) });
    let [for_perf, for_viewers] = [false, true].map(|for_viewers| {
        let builder = ImageBuilder::new(X86_64, Addressing::FileOffset);
        let mut builder = if for_viewers { builder.for_viewers() } else { builder };
        for (code, addr) in codes.iter().zip([0x7f00_0000_1000, 0x7f00_0000_9000]) {
            builder.add(code, Addr(addr));
        }
        builder.build()
    });
    assert_ne!(for_perf.build_id(), for_viewers.build_id());
    let made = write(&for_viewers);
    judge(&made);
    let shown = ["JS:*first", "py::second", "[end]", "[end]"].map(String::from).to_vec();
    assert_eq!(functions(&made), (shown, "[JIT]".to_owned()));
    // Other readers look only at the code itself, not at the address to which its last call would return.
    let symbols = run("readelf", &["--wide", "--symbols"], &made.path, &[]);
    assert!(symbols.contains(" 0000000000009000 ") && symbols.contains(" 0000000000009020 "), "{symbols}");
    assert_eq!(functions(&write(&for_perf)), (vec![], "[JIT]".to_owned()));
}

#[test]
fn an_image_without_code_is_clean() {
    for addressing in [Addressing::FileOffset, Addressing::RunTime] {
        judge(&write(&build(X86_64, addressing, &[]).0));
    }
}

/// Compares the CFA rules that gimli finds through the header's search table with those that framehop finds.
#[test]
fn unwinding_information_is_found_through_the_search_table() {
    let full = Code { unwind: Some(unwind()), ..code(b"f", &BODY) };
    let broken = Unwind { eh_frame: &V8_FRAMES[..40], ..unwind() };
    let broken = Code { unwind: Some(broken), ..code(b"broken", &BODY) };
    let codes = [at(full, 0x7f00_0000_5000), at(broken, 0x7f00_0000_4000), at(full, 0x7f00_0000_1040)];
    for target in [X86_64, Target { machine: 183, ..X86_64 }] {
        let (image, slots) = build(target, Addressing::FileOffset, &codes);
        let made = write(&image);
        judge(&made);
        for slot in [slots[0], slots[2]] {
            let place = image.place(slot).unwrap();
            // After `push`, after `mov`, after `pop`.
            let rules = [(0, (7, 8)), (1, (7, 16)), (4, (6, 16)), (13, (7, 8))];
            for (offset, rule) in rules {
                assert_eq!(cfa(&made.bytes, place.addr + offset), Some(rule), "{offset} bytes into the code");
            }
        }
        let place = image.place(slots[1]).unwrap();
        assert_eq!(cfa(&made.bytes, place.addr), None);
        assert_eq!(image.write(&mut Cursor::new(Vec::new())).unwrap().counts.bad_unwind, 1);
    }
}

fn section<'a>(bytes: &'a [u8], name: &str) -> (u64, &'a [u8]) {
    use object::{Object, ObjectSection};
    let file = object::File::parse(bytes).unwrap();
    let section = file.section_by_name(name).unwrap();
    let (at, len) = section.file_range().unwrap();
    (section.address(), &bytes[at as usize..(at + len) as usize])
}

/// The CFA rule at an address, as (register, offset).
fn cfa(bytes: &[u8], addr: u64) -> Option<(u16, i64)> {
    use gimli::{BaseAddresses, CfaRule, EhFrame, EhFrameHdr, LittleEndian, UnwindContext, UnwindSection};
    let ((hdr_at, hdr), (frame_at, frame)) = (section(bytes, ".eh_frame_hdr"), section(bytes, ".eh_frame"));
    let bases = BaseAddresses::default().set_eh_frame_hdr(hdr_at).set_eh_frame(frame_at);
    let hdr = EhFrameHdr::new(hdr, LittleEndian).parse(&bases, 8).unwrap();
    let frames = EhFrame::new(frame, LittleEndian);
    let table = hdr.table().unwrap();
    let fde = table.fde_for_address(&frames, &bases, addr, EhFrame::cie_from_offset).ok()?;
    let mut context = UnwindContext::new();
    let row = fde.unwind_info_for_address(&frames, &bases, &mut context, addr).unwrap();
    match *row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Some((register.0, offset)),
        CfaRule::Expression(_) => None,
    }
}

/// On this stack, the function called itself twice, and the innermost call has pushed %rbp but not yet set it.
#[test]
fn framehop_unwinds_through_an_image() {
    use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
    use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};
    let codes = [at(Code { unwind: Some(unwind()), ..code(b"f", &BODY) }, 0x7f00_0000_5000)];
    let mut builder = ImageBuilder::new(X86_64, Addressing::FileOffset);
    let slot = builder.add(&codes[0], codes[0].addr);
    let set = builder.build_set([]);
    let made = write(set.images().next().unwrap());
    judge(&made);
    let (_, place) = set.place(slot).unwrap();
    let base = codes[0].addr.0 - place.offset;
    let ((hdr_at, hdr), (frame_at, frame)) = (section(&made.bytes, ".eh_frame_hdr"), section(&made.bytes, ".eh_frame"));
    let info = ExplicitModuleSectionInfo {
        base_svma: 0,
        eh_frame_hdr_svma: Some(hdr_at..hdr_at + hdr.len() as u64),
        eh_frame_hdr: Some(hdr),
        eh_frame_svma: Some(frame_at..frame_at + frame.len() as u64),
        eh_frame: Some(frame),
        ..Default::default()
    };
    let mut unwinder = UnwinderX86_64::new();
    unwinder.add_module(Module::new("image".into(), base..base + made.bytes.len() as u64, base, info));
    // 0x100: saved rbp, 0x108: return into f (its frame is set up); 0x110: saved rbp, 0x118: return to 0x4242.
    let memory = |addr: u64| match addr {
        0x100 => Ok(0x110),
        0x108 => Ok(0x7f00_0000_5008),
        0x110 => Ok(0),
        0x118 => Ok(0x4242),
        _ => Err(()),
    };
    let mut memory = memory;
    let mut cache = CacheX86_64::<framehop::MustNotAllocateDuringUnwind>::new_in();
    let regs = UnwindRegsX86_64::new(0x7f00_0000_5001, 0x100, 0x110);
    let mut frames = unwinder.iter_frames(0x7f00_0000_5001, regs, &mut cache, &mut memory);
    let mut found = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        found.push(frame.address());
    }
    assert_eq!(found, [0x7f00_0000_5001, 0x7f00_0000_5008, 0x4242]);
}

#[test]
fn a_set_has_an_image_for_each_stretch_and_shows_what_else_to_map() {
    let full = Code { unwind: Some(unwind()), lines: lines(), ..code(b"f", &BODY) };
    let bare = code(b"bare", &BODY);
    let places = [(full, 0x7f00_0000_5000), (full, 0x7f00_0000_5040), (full, 0x7f00_0009_0000), (bare, 0x40_0000)];
    let codes: Vec<Code> = places.map(|(code, addr)| at(code, addr)).to_vec();
    let mut builder = ImageBuilder::new(X86_64, Addressing::FileOffset);
    let slots: Vec<SlotId> = codes.iter().map(|code| builder.add(code, code.addr)).collect();
    // A library lies between the two code ranges and extends up to the second one, whose information must therefore
    // come after it.
    let library = 0x7f00_0006_0000..0x7f00_0009_0000;
    let set = builder.build_set(Some(library.clone()));
    let images: Vec<usize> = slots.iter().map(|&slot| set.place(slot).unwrap().0).collect();
    assert_eq!(images, [1, 1, 2, 0]);
    for (index, image) in set.images().enumerate() {
        let made = write(image);
        judge(&made);
        // There is a table even without information, because libunwind falls back to frame pointers only if there is
        // one.
        let (hdr_at, hdr) = section(&made.bytes, ".eh_frame_hdr");
        let base = slots.iter().zip(&codes).find_map(|(&slot, code)| {
            set.place(slot).filter(|(of, _)| *of == index).map(|(_, place)| code.addr.0 - place.offset)
        });
        let base = base.unwrap();
        let aux_mappings = set.aux_mappings(index);
        assert_eq!(aux_mappings.is_empty(), index == 0);
        assert!(aux_mappings.iter().all(|aux| aux.addr == base + aux.offset), "{aux_mappings:x?}");
        assert!(aux_mappings.iter().all(|aux| aux.len == 1 || !(library.contains(&aux.addr))), "{aux_mappings:x?}");
        // libunwind takes the lowest map for the image's start, and reads the table through the maps.
        if index > 0 {
            assert_eq!(aux_mappings[0].offset, 0);
            let table = hdr_at..hdr_at + hdr.len() as u64;
            let covers = |aux: &AuxMapping| aux.offset <= table.start && table.end <= aux.offset + aux.len;
            assert!(aux_mappings.iter().any(covers), "{table:x?} is not in {aux_mappings:x?}");
        }
    }
}

#[test]
fn both_addr2lines_name_function_and_line() {
    let full = Code { lines: lines(), ..code(b"f", &BODY) };
    let codes = [at(full, 0x5000)];
    let (image, slots) = build(Target::new(22, Endian::Big), Addressing::FileOffset, &codes);
    let made = write(&image);
    judge(&made);
    let addr = image.place(slots[0]).unwrap().addr + 4;
    let load = |id: gimli::SectionId| {
        use object::{Object, ObjectSection};
        let file = object::File::parse(&made.bytes[..]).unwrap();
        let range = file.section_by_name(id.name()).and_then(|section| section.file_range());
        let bytes = range.map_or(&[][..], |(at, len)| &made.bytes[at as usize..(at + len) as usize]);
        Ok::<_, gimli::Error>(gimli::EndianSlice::new(bytes, gimli::BigEndian))
    };
    let context = addr2line::Context::from_dwarf(gimli::Dwarf::load(load).unwrap()).unwrap();
    let mut frames = context.find_frames(addr).skip_all_loads().unwrap();
    let frame = frames.next().unwrap().unwrap();
    assert_eq!(frame.function.unwrap().raw_name().unwrap(), "f");
    let location = frame.location.unwrap();
    assert_eq!((location.line, location.column), (Some(42), Some(3)));
    assert!(location.file.unwrap().ends_with("ve app.js"));
}

#[test]
fn a_hundred_thousand_functions_need_no_more_disk_than_they_have_code() {
    use std::os::unix::fs::MetadataExt;
    let names: Vec<String> = (0..100_000).map(|n| format!("function {n}")).collect();
    let codes: Vec<Code> = names
        .iter()
        .enumerate()
        .map(|(n, name)| at(code(name.as_bytes(), &BODY), 0x7f00_0000_0000 + n as u64 * 64))
        .collect();
    let made = write(&build(X86_64, Addressing::FileOffset, &codes).0);
    judge(&made);
    assert!(run("nm", &[], &made.path, &[]).contains("t function 99999\n"));
    let scattered: Vec<Code> =
        codes[..16].iter().enumerate().map(|(n, code)| at(*code, n as u64 * 0xf0_0000)).collect();
    let made = write(&build(X86_64, Addressing::FileOffset, &scattered).0);
    judge(&made);
    let metadata = std::fs::metadata(&made.path).unwrap();
    assert!(metadata.len() > 200 << 20 && metadata.blocks() * 512 < 1 << 20, "{} blocks", metadata.blocks());
}

#[test]
fn the_build_id_is_of_the_content() {
    let id = |code: Code, addr| build(X86_64, Addressing::FileOffset, &[at(code, addr)]).0.build_id();
    let first = id(code(b"f", &BODY), 0x1000);
    assert_eq!(first, id(code(b"f", &BODY), 0x1000));
    let others = [
        id(code(b"g", &BODY), 0x1000),
        id(code(b"f", &BODY[1..]), 0x1000),
        id(code(b"f", &BODY), 0x1010),
        id(Code { bytes: None, ..code(b"f", &BODY) }, 0x1000),
        id(Code { lines: lines(), ..code(b"f", &BODY) }, 0x1000),
        id(Code { unwind: Some(unwind()), ..code(b"f", &BODY) }, 0x1000),
    ];
    assert!(others.iter().all(|other| *other != first));
    let made = write(&build(X86_64, Addressing::FileOffset, &[at(code(b"f", &BODY), 0x1000)]).0);
    let hex: String = first.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(run("readelf", &["-n"], &made.path, &[]).contains(&hex));
}
