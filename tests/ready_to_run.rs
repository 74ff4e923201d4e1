//! A recording of .NET whose hot code was compiled ahead of time, into a PE file: no map reports it. The name of each
//! method is found by a second reader of the file, which shares no code with `src/`; how it is spelled, .NET itself
//! states, which was made to compile the same methods when they ran.

use jitgraft::resolve::symbols::ready_to_run::ReadyToRun;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "opt/dotnet/shared/Microsoft.NETCore.App/3.1.23/System.Web.HttpUtility.dll";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-dotnet").join(name)
}

fn library() -> Vec<u8> {
    fs::read(fixture("root").join(LIBRARY)).unwrap()
}

/// Reads the file by offsets that the documents give; every step is written out.
struct Second {
    bytes: Vec<u8>,
}

impl Second {
    fn number(&self, at: usize, size: usize) -> usize {
        self.bytes[at..at + size].iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte))
    }

    fn file_offset(&self, rva: usize) -> usize {
        let pe = self.number(0x3c, 4);
        let table = pe + 24 + self.number(pe + 20, 2);
        let sections = (0..self.number(pe + 6, 2)).map(|section| table + section * 40);
        let holds = |&at: &usize| {
            let start = self.number(at + 12, 4);
            (start..start + self.number(at + 16, 4)).contains(&rva)
        };
        let section = sections.into_iter().find(holds).expect("an address in no section");
        rva - self.number(section + 12, 4) + self.number(section + 20, 4)
    }

    /// The offset of .NET's own header.
    fn dot_net(&self) -> usize {
        let optional = self.number(0x3c, 4) + 24;
        assert_eq!(self.number(optional, 2), 0x20b, "PE32+");
        self.file_offset(self.number(optional + 112 + 14 * 8, 4))
    }

    fn native_section(&self, wanted: usize) -> (usize, usize) {
        let header = self.file_offset(self.number(self.dot_net() + 64, 4));
        let sections = (0..self.number(header + 12, 4)).map(|section| header + 16 + section * 12);
        let at = sections.into_iter().find(|&at| self.number(at, 4) == wanted).unwrap();
        (self.file_offset(self.number(at + 4, 4)), self.number(at + 8, 4))
    }

    /// Numbers of this file have one or two bytes.
    fn packed(&self, at: usize) -> (usize, usize) {
        match self.bytes[at] & 3 {
            0 | 2 => (self.number(at, 1) >> 1, at + 1),
            1 => (self.number(at, 2) >> 2, at + 2),
            _ => (self.number(at, 3) >> 3, at + 3),
        }
    }

    /// First code ranges, by the number of the method: the tree of each block is walked over as a whole.
    fn entry_points(&self) -> BTreeMap<usize, usize> {
        let (at, _) = self.native_section(103);
        let (head, base) = self.packed(at);
        let width = 1 << (head & 3);
        let mut found = BTreeMap::new();
        for block in 0..(head >> 2).div_ceil(16) {
            let root = base + self.number(base + block * width, width);
            self.walk(root, 8, block * 16, &mut found);
        }
        found
    }

    fn walk(&self, at: usize, bit: usize, first: usize, found: &mut BTreeMap<usize, usize>) {
        if bit == 0 {
            let (entry, _) = self.packed(at);
            found.insert(first + 1, if entry & 1 == 1 { entry >> 2 } else { entry >> 1 });
            return;
        }
        let (node, behind) = self.packed(at);
        if node & 3 == 0 {
            let within = first & !15;
            self.walk(behind, 0, within + (node >> 2), found);
        }
        if node & 1 == 1 {
            self.walk(behind, bit / 2, first, found);
        }
        if node & 2 == 2 {
            self.walk(at + (node >> 2), bit / 2, first + bit, found);
        }
    }

    /// `Owner::Method` by number, read by the widths that this file's tables have.
    fn method_names(&self) -> Vec<String> {
        let root = self.file_offset(self.number(self.dot_net() + 8, 4));
        let streams = root + 16 + self.number(root + 12, 4) + 4;
        let (mut at, mut of) = (streams, BTreeMap::new());
        for _ in 0..self.number(streams - 2, 2) {
            let name: Vec<u8> = self.bytes[at + 8..].iter().copied().take_while(|&byte| byte != 0).collect();
            of.insert(String::from_utf8(name.clone()).unwrap(), root + self.number(at, 4));
            at += 8 + (name.len() / 4 + 1) * 4;
        }
        let tables = of["#~"];
        assert_eq!(self.bytes[tables + 6], 0, "all heaps are small");
        let present = self.number(tables + 8, 8);
        let (mut rows, mut at) = ([0; 64], tables + 24);
        for table in (0..64).filter(|table| present >> table & 1 == 1) {
            rows[table] = self.number(at, 4);
            at += 4;
        }
        assert!(rows.iter().all(|&rows| rows < 0x800), "all numbers of rows have two bytes");
        let width = |table: usize| {
            [10, 6, 14, 2, 6, 2, 14, 2, 6, 4, 6, 6, 6, 4, 6, 8, 6, 2, 4, 2, 6, 4, 2, 6, 6, 6, 2, 2, 8, 6, 8, 4, 22, 4]
                .get(table)
                .copied()
                .unwrap_or(match table {
                    0x22 => 12,
                    0x23 => 20,
                    0x29 => 4,
                    _ => 0,
                })
        };
        let start = |table: usize| at + (0..table).map(|before| rows[before] * width(before)).sum::<usize>();
        assert!((0x24..0x29).all(|table| rows[table] == 0));
        let text = |offset: usize| {
            let from = of["#Strings"] + offset;
            let end = self.bytes[from..].iter().position(|&byte| byte == 0).unwrap();
            String::from_utf8(self.bytes[from..from + end].to_vec()).unwrap()
        };
        let nested: BTreeMap<usize, usize> = (0..rows[0x29])
            .map(|row| start(0x29) + 4 * row)
            .map(|row| (self.number(row, 2), self.number(row + 2, 2)))
            .collect();
        let own_name = |class: usize| {
            let row = start(2) + 14 * (class - 1);
            let (name, space) = (text(self.number(row + 4, 2)), text(self.number(row + 6, 2)));
            if space.is_empty() { name } else { format!("{space}.{name}") }
        };
        let full_name = |class: usize| {
            let (mut name, mut inner) = (own_name(class), class);
            while let Some(&outer) = nested.get(&inner) {
                name = format!("{}+{name}", own_name(outer));
                inner = outer;
            }
            name
        };
        let mut names = vec![String::new()];
        for class in 1..=rows[2] {
            let first = |class: usize| self.number(start(2) + 14 * (class - 1) + 12, 2);
            let end = if class == rows[2] { rows[6] + 1 } else { first(class + 1) };
            for method in first(class)..end {
                let name = text(self.number(start(6) + 14 * (method - 1) + 8, 2));
                names.push(format!("{}::{name}", full_name(class)));
            }
        }
        names
    }

    /// Begin, end and name of each method, where it has one code range only also those.
    fn methods(&self) -> Vec<(u64, u64, String)> {
        let (functions, _) = self.native_section(102);
        let names = self.method_names();
        let piece =
            |number: usize| (self.number(functions + 12 * number, 4), self.number(functions + 12 * number + 4, 4));
        let found = self.entry_points().into_iter().map(|(method, first)| {
            let (start, end) = piece(first);
            (start as u64, end as u64, names[method].clone())
        });
        found.collect()
    }
}

/// `Owner::Method` of a name as it is spelled for people: what is between the assembly and the arguments.
fn plain(name: &str) -> String {
    let behind = name.split_once("[System.Web.HttpUtility] ").unwrap().1;
    behind.split_once('(').unwrap().0.to_owned()
}

#[test]
fn every_method_is_called_as_a_second_reader_calls_it() {
    let image = ReadyToRun::read(&library()).unwrap();
    assert_eq!(image.machine, 62, "x86-64");
    let by_start: BTreeMap<u64, (u64, String)> = image
        .methods
        .iter()
        .map(|method| (method.start, (method.end, plain(&String::from_utf8_lossy(&method.name)))))
        .collect();
    let second = Second { bytes: library() }.methods();
    assert_eq!(second.len(), 69);
    for (start, end, name) in &second {
        assert_eq!(by_start.get(start), Some(&(*end, name.clone())), "at {start:#x}");
    }
    // Handlers of exceptions have their method's name; nothing else is reported for.
    let entries: BTreeSet<u64> = second.iter().map(|method| method.0).collect();
    for (start, (_, name)) in by_start.iter().filter(|(start, _)| !entries.contains(start)) {
        let before = second.iter().filter(|method| method.0 < *start).max().unwrap();
        assert_eq!(name, &before.2, "at {start:#x}");
    }
}

#[test]
fn methods_are_spelled_as_dot_net_spells_them() {
    let image = ReadyToRun::read(&library()).unwrap();
    let names: BTreeSet<String> =
        image.methods.iter().map(|method| String::from_utf8_lossy(&method.name).replace("[PreJIT]", "")).collect();
    let own = fs::read_to_string(fixture("jit-names.txt")).unwrap();
    assert_eq!(own.lines().count(), 18);
    for line in own.lines() {
        assert!(names.contains(line.strip_suffix("[Optimized]").unwrap()), "{line}");
    }
}

fn text(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error} (tests/run.sh installs it)"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_frame_in_the_image_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("perf.data");
    fs::write(&data, zstd::decode_all(&fs::read(fixture("perf.data.zst")).unwrap()[..]).unwrap()).unwrap();
    let data = data.to_str().unwrap();
    let maps = text("perf", &["script", "-i", data, "--show-mmap-events", "-F", "comm,ip"]);
    let map = maps.lines().find(|line| line.contains("MMAP") && line.ends_with("System.Web.HttpUtility.dll"));
    let start = map.unwrap().split_once("[0x").unwrap().1.split_once('(').unwrap().0;
    // Code of this file begins in its first page; it is one of a section that is loaded 0x20000 behind the beginning.
    let start = u64::from_str_radix(start, 16).unwrap() - 0x2_0000;
    let second = Second { bytes: library() }.methods();
    let root = fixture("root");
    let script = text(env!("CARGO_BIN_EXE_jitgraft"), &["script", data, "--symfs", root.to_str().unwrap()]);
    let frames = script.lines().filter(|line| line.ends_with("System.Web.HttpUtility.dll)"));
    let (mut count, mut methods) = (0, BTreeSet::new());
    for line in frames {
        let (addr, name) = line.trim().split_once(' ').unwrap();
        let addr = u64::from_str_radix(addr, 16).unwrap() - start;
        let method = second.iter().find(|method| (method.0..=method.1).contains(&addr));
        let (_, _, expected) = method.unwrap_or_else(|| panic!("no method at {addr:#x}: {line}"));
        assert_eq!(&plain(name), expected, "{line}");
        assert!(name.contains("[PreJIT]+0x"), "{line}");
        count += 1;
        methods.insert(expected);
    }
    assert_eq!((count, methods.len()), (836, 17));
}

/// The parts of the file that are read besides its first bytes: .NET's header and the image's own, metadata, lists of
/// methods.
const PARTS: [std::ops::Range<usize>; 3] = [0xca0..0x123c, 0x2520..0x4208, 0x6ef4..0x6feb];

/// The image without its code and whatever else is not read: each part is a section of its own.
fn small_image() -> Vec<u8> {
    const SECTION_TABLE: usize = 0x188;
    let whole = library();
    let second = Second { bytes: whole.clone() };
    let pe = second.number(0x3c, 4);
    assert_eq!(pe + 24 + second.number(pe + 20, 2), SECTION_TABLE, "where the table of sections is");
    let mut small = whole[..0x400].to_vec();
    small[pe + 6] = PARTS.len() as u8;
    for (index, part) in PARTS.into_iter().enumerate() {
        // The code's section, which all parts are of, is at 0x20800 in memory and at 0x800 in the file.
        let (rva, size, offset) = (part.start + 0x2_0000, part.len(), small.len());
        for (field, value) in [(8, size), (12, rva), (16, size), (20, offset)] {
            let at = SECTION_TABLE + 40 * index + field;
            small[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
        }
        small.extend_from_slice(&whole[part]);
    }
    small
}

#[test]
fn an_image_is_read_whatever_is_cut_off_and_whichever_byte_is_wrong() {
    let small = small_image();
    let methods = |bytes: &[u8]| ReadyToRun::read(bytes).map_or(Vec::new(), |image| image.methods);
    let all = methods(&small);
    assert_eq!(all, methods(&library()));
    let check = |at: usize| {
        assert!(methods(&small[..at]).len() <= all.len(), "{at} bytes");
        let mut bent = small.clone();
        bent[at] ^= 0xff;
        assert!(methods(&bent).len() <= small.len() / 8, "byte {at:#x}");
    };
    let workers = std::thread::available_parallelism().unwrap().get();
    std::thread::scope(|scope| {
        for first in 0..workers {
            let check = &check;
            let len = small.len();
            scope.spawn(move || (first..len).step_by(workers).for_each(check));
        }
    });
}
