//! Tests with small artificial cores: a header, writable memory with a descriptor, a list, and its objects.

use super::*;
use crate::bytes::cursor::Endian;
use crate::jit::engine_logs::{LogEventKind, MappedFile};
use crate::test_effort::step;
use object::write::{Object, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, SectionKind, SymbolFlags, SymbolKind, SymbolScope};

/// Start address of the core's memory.
const MEMORY: u64 = 0x7000_0000_0000;
const X86_64: u16 = 62;

/// A relocatable object whose code is at `at`, with these functions of 16 bytes each.
fn object(functions: &[&str], at: u64) -> Vec<u8> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, object::Endianness::Little);
    let text = object.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
    for name in functions {
        let value = object.append_section_data(text, &[0x90; 16], 16);
        object.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value,
            size: 16,
            kind: SymbolKind::Text,
            scope: SymbolScope::Linkage,
            weak: false,
            section: SymbolSection::Section(text),
            flags: SymbolFlags::None,
        });
    }
    let mut bytes = object.write().unwrap();
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let (headers, count) = (word(&bytes, 40), usize::from(bytes[60]));
    let executable = (0..count).map(|section| headers + section * 64).find(|header| word(&bytes, header + 8) & 4 != 0);
    let header = executable.unwrap();
    bytes[header + 16..header + 24].copy_from_slice(&at.to_le_bytes());
    bytes
}

/// The memory of a core: a descriptor, list entries, the objects, and 256 bytes of code.
#[derive(Default)]
struct TestMemory {
    bytes: Vec<u8>,
}

impl TestMemory {
    fn words(&mut self, words: &[u64]) {
        words.iter().for_each(|word| self.bytes.extend_from_slice(&word.to_le_bytes()));
    }

    /// Puts these objects in memory, registered in this order. The code of a single object is at the address that
    /// [`code_addr`] returns.
    fn with_objects(objects: &[Vec<u8>]) -> Self {
        let mut memory = Self::default();
        let entry = |number: usize| MEMORY + 24 + number as u64 * 32;
        memory.words(&[1, 0, entry(0)]);
        let mut at = entry(objects.len());
        for (number, object) in objects.iter().enumerate() {
            let next = if number + 1 < objects.len() { entry(number + 1) } else { 0 };
            let before = number.checked_sub(1).map_or(0, entry);
            memory.words(&[next, before, at, object.len() as u64]);
            at += object.len() as u64;
        }
        objects.iter().for_each(|object| memory.bytes.extend_from_slice(object));
        memory.bytes.extend(0..=255);
        memory
    }

    fn core(&self) -> Vec<u8> {
        let mut header = Self { bytes: b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0\x3e\0\x01\0\0\0".to_vec() };
        header.words(&[0, 64, 0]);
        header.bytes.extend_from_slice(&[0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        let size = self.bytes.len() as u64;
        header.words(&[1 | 6 << 32, 120, MEMORY, 0, size, size, 1]);
        header.bytes.extend_from_slice(&self.bytes);
        header.bytes
    }
}

impl Memory for TestMemory {
    fn endian(&self) -> Endian {
        Endian::Little
    }

    fn read(&self, addr: u64, into: &mut [u8]) -> bool {
        let Some(start) = addr.checked_sub(MEMORY).and_then(|start| usize::try_from(start).ok()) else { return false };
        if start >= self.bytes.len() {
            return false;
        }
        // A page exists or not; the part of it that wasn't filled is zero.
        let rest = &self.bytes[start..];
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        true
    }
}

/// Address of the code in a core with one object.
fn code_addr(object: &[u8]) -> u64 {
    MEMORY + 24 + 32 + object.len() as u64
}

/// Name, address, size and first byte of each code range.
fn codes(core: &[u8]) -> Vec<(String, u64, u64, Option<u8>)> {
    let log = read(core).unwrap();
    let mut codes = Vec::new();
    for event in &log.events {
        let LogEventKind::Load(code) = event.kind else { panic!("{event:?}") };
        let name = String::from_utf8_lossy(log.texts.get(code.name)).into_owned();
        codes.push((name, code.addr, code.size, core[code.memory()].first().copied()));
    }
    codes
}

fn code(name: &str, addr: u64, first: Option<u8>) -> (String, u64, u64, Option<u8>) {
    (name.to_owned(), addr, 16, first)
}

#[test]
fn functions_are_where_their_section_went_with_the_code_that_is_there() {
    let at = code_addr(&object(&["f", "g"], 0));
    let core = TestMemory::with_objects(&[object(&["f", "g"], at)]).core();
    assert!(core_file::is_core(&core));
    assert_eq!(codes(&core), [code("f", at, Some(0)), code("g", at + 16, Some(16))]);
    let log = read(&core).unwrap();
    assert_eq!((log.machine, log.torn, log.skipped.count()), (Some(X86_64), false, 0));
}

#[test]
fn of_objects_for_one_address_the_newer_comes_last() {
    let core = TestMemory::with_objects(&[object(&["newer"], 0x1000), object(&["older"], 0x1000)]).core();
    assert_eq!(codes(&core), [code("older", 0x1000, None), code("newer", 0x1000, None)]);
}

#[test]
fn a_list_that_runs_in_a_circle_ends_and_reports_it() {
    let mut memory = TestMemory::with_objects(&[object(&["f"], 0x1000), object(&["g"], 0x2000)]);
    // Makes the second entry point back to the first.
    memory.bytes[56..64].copy_from_slice(&(MEMORY + 24).to_le_bytes());
    let log = read(&memory.core()).unwrap();
    assert_eq!((log.events.len(), log.skipped.count()), (2, 1));
    let said = log.skipped.into_warning().unwrap().message;
    assert!(said.contains("occurs in the list twice"), "{said}");
}

#[test]
fn an_object_that_is_longer_than_the_memory_is_left_out() {
    let mut memory = TestMemory::with_objects(&[object(&["f"], 0x1000), object(&["g"], 0x2000)]);
    memory.bytes[48..56].copy_from_slice(&u64::MAX.to_le_bytes());
    let log = read(&memory.core()).unwrap();
    assert_eq!((log.events.len(), log.skipped.count()), (1, 1));
}

#[test]
fn a_core_in_which_nothing_is_registered_is_refused() {
    let mut memory = TestMemory::with_objects(&[object(&["f"], 0x1000)]);
    memory.bytes[0] = 2;
    let error = read(&memory.core()).unwrap_err().to_string();
    assert_eq!(error, "contains no code that was registered with GDB's JIT interface");
    assert!(read(b"\x7fELF").is_err());
}

#[test]
fn distances_of_64_bits_to_the_code_are_relocated() {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, object::Endianness::Little);
    let text = object.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
    object.append_section_data(text, &[0x90; 16], 16);
    let frames = object.add_section(Vec::new(), b".eh_frame".to_vec(), SectionKind::ReadOnlyData);
    object.append_section_data(frames, &[0; 16], 8);
    let symbol = object.section_symbol(text);
    let flags = object::RelocationFlags::Elf { r_type: object::elf::R_X86_64_PC64 };
    object.add_relocation(frames, object::write::Relocation { offset: 8, symbol, addend: 5, flags }).unwrap();
    let bytes = object.write().unwrap();
    let section = Symfile::parse(&bytes, X86_64).unwrap().section(".eh_frame").into_owned();
    // Code and section are both at 0 here, so the distance is from 8 to 5.
    assert_eq!(section[8..], (-3_i64).to_le_bytes());
}

#[test]
fn a_snapshot_of_memory_shows_what_the_memory_does() {
    let at = code_addr(&object(&["f", "g"], 0));
    let memory = TestMemory::with_objects(&[object(&["f", "g"], at)]);
    let process = SnapshotProcess { pid: 77, machine: X86_64 };
    let copy = |start, end| snapshot(&memory, std::slice::from_ref(&(start..end)), process);
    let nothing = copy(MEMORY + 8, MEMORY + 64);
    let copy = copy(MEMORY, MEMORY + memory.bytes.len() as u64).unwrap();
    assert_eq!(codes(&copy), codes(&memory.core()));
    assert_eq!(find_process(&copy), Some(LogProcess { pid: Some(77), files: Vec::new() }));
    assert!(nothing.is_none());
    let memory = TestMemory::with_objects(&[b"This is data that is not an object.".to_vec()]);
    let whole = MEMORY..MEMORY + memory.bytes.len() as u64;
    assert!(snapshot(&memory, &[whole], process).is_none(), "a list without a function is not worth a core");
}

#[test]
fn notes_show_the_process_and_its_files() {
    let mut notes = TestMemory::default();
    let note = |notes: &mut TestMemory, kind: u32, bytes: &[u8]| {
        [5, bytes.len() as u32, kind].iter().for_each(|word| notes.bytes.extend_from_slice(&word.to_le_bytes()));
        notes.bytes.extend_from_slice(b"CORE\0\0\0\0");
        notes.bytes.extend_from_slice(bytes);
        notes.bytes.resize(notes.bytes.len().next_multiple_of(4), 0);
    };
    let mut prpsinfo = [0; 136];
    prpsinfo[24..28].copy_from_slice(&4711_i32.to_le_bytes());
    note(&mut notes, 3, &prpsinfo);
    let mut files = TestMemory::default();
    files.words(&[1, 4096, 0x1000, 0x3000, 2]);
    files.bytes.extend_from_slice(b"/usr/bin/lli\0");
    note(&mut notes, 0x4649_4c45, &files.bytes);
    let mut core = notes.core();
    // The only segment contains notes.
    core[64] = 4;
    let file = MappedFile { start: 0x1000, end: 0x3000, offset: 0x2000, path: b"/usr/bin/lli".to_vec() };
    assert_eq!(find_process(&core), Some(LogProcess { pid: Some(4711), files: vec![file] }));
}

#[test]
fn damaged_cores_do_no_harm() {
    let at = code_addr(&object(&["f", "g"], 0));
    let core = TestMemory::with_objects(&[object(&["f", "g"], at)]).core();
    let read_all = |bytes: &[u8]| {
        let Ok(log) = read(bytes) else { return 0 };
        for event in &log.events {
            let LogEventKind::Load(code) = event.kind else { panic!("{event:?}") };
            assert!(code.addr.checked_add(code.size).is_some());
            assert!(bytes.get(code.memory()).is_some());
        }
        log.events.len()
    };
    let cut = (0..core.len()).map(|len| read_all(&core[..len])).max();
    assert_eq!(cut, Some(2), "only code is cut off");
    for at in (0..core.len()).step_by(step(4)) {
        for change in [0x01, 0x15, 0x80, 0xff] {
            let mut changed = core.clone();
            changed[at] ^= change;
            read_all(&changed);
            find_process(&changed);
        }
    }
}
