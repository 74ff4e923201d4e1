//! A second reader of the ReadyToRun image in `fixtures/recording-dotnet`. It shares no code with `src/`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const LIBRARY: &str = "opt/dotnet/shared/Microsoft.NETCore.App/3.1.23/System.Web.HttpUtility.dll";

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-dotnet").join(name)
}

pub(crate) fn library() -> Vec<u8> {
    fs::read(fixture("root").join(LIBRARY)).unwrap()
}

/// Reads the image by the offsets in the format's documentation. Every step is written out.
pub(crate) struct Second {
    pub(crate) bytes: Vec<u8>,
}

impl Second {
    pub(crate) fn number(&self, at: usize, size: usize) -> usize {
        self.bytes[at..at + size].iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte))
    }

    pub(crate) fn file_offset(&self, rva: usize) -> usize {
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

    /// The offset of the .NET header.
    pub(crate) fn dot_net(&self) -> usize {
        let optional = self.number(0x3c, 4) + 24;
        assert_eq!(self.number(optional, 2), 0x20b, "PE32+");
        self.file_offset(self.number(optional + 112 + 14 * 8, 4))
    }

    pub(crate) fn native_section(&self, wanted: usize) -> (usize, usize) {
        let header = self.file_offset(self.number(self.dot_net() + 64, 4));
        let sections = (0..self.number(header + 12, 4)).map(|section| header + 16 + section * 12);
        let at = sections.into_iter().find(|&at| self.number(at, 4) == wanted).unwrap();
        (self.file_offset(self.number(at + 4, 4)), self.number(at + 8, 4))
    }

    /// Reads a number in the format's variable-length encoding, and returns it with the offset after it. The numbers
    /// here have at most three bytes.
    pub(crate) fn packed(&self, at: usize) -> (usize, usize) {
        match self.bytes[at] & 3 {
            0 | 2 => (self.number(at, 1) >> 1, at + 1),
            1 => (self.number(at, 2) >> 2, at + 2),
            _ => (self.number(at, 3) >> 3, at + 3),
        }
    }

    /// The first code range of each method, by method number. The tree of each block is walked completely.
    pub(crate) fn entry_points(&self) -> BTreeMap<usize, usize> {
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

    pub(crate) fn walk(&self, at: usize, bit: usize, first: usize, found: &mut BTreeMap<usize, usize>) {
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

    /// The name of each method (`Owner::Method`), by number. The widths of columns are those of this file.
    pub(crate) fn method_names(&self) -> Vec<String> {
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

    /// Start, end and name of each method. Only the first code range of a method is included.
    pub(crate) fn methods(&self) -> Vec<(u64, u64, String)> {
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

/// Extracts `Owner::Method` from a full name: the part between the assembly and the arguments.
pub(crate) fn plain(name: &str) -> String {
    let behind = name.split_once("[System.Web.HttpUtility] ").unwrap().1;
    behind.split_once('(').unwrap().0.to_owned()
}
