//! Reads WebAssembly modules: their functions, where the code of each is, and the names from the name section.
//!
//! ```text
//! \0asm 1   section*          section: number, size, contents
//! 0 custom: name, …           .debug_info and others (DWARF), name
//! 2 imports    10 code: size and body of each function
//! ```
//!
//! <https://webassembly.github.io/spec/core/binary/modules.html>,
//! <https://webassembly.github.io/spec/core/appendix/custom.html#name-section>

use crate::error::{Error, Result};
use crate::model::file_bytes::FileBytes;
use crate::model::wasm_module::{WasmHash, WasmModule};
use gimli::{EndianSlice, LittleEndian, Reader};
use std::collections::BTreeMap;
use std::ops::Range;

/// How every module begins: magic number and version 1, the only one.
pub const MAGIC: &[u8] = b"\0asm\x01\0\0\0";

/// Section numbers of the module format.
const CUSTOM: u8 = 0;
const IMPORT: u8 = 2;
const CODE: u8 = 10;

/// The maximum number of functions that a module may import, and of those that it may define. Engines reject modules
/// with more (<https://webassembly.github.io/spec/js-api/#limits>).
const MOST_FUNCTIONS: u32 = 1_000_000;

/// Limit for the sections of a module. Compilers write a few dozen.
const MOST_SECTIONS: usize = 10_000;

/// The maximum length in bytes of data that V8 hashes (`String::kMaxHashCalcLength`). Of longer data, it uses the
/// length instead of a hash.
const LONGEST_HASHED: usize = 16_383;

/// A part of a module, from which LEB128 numbers can be read.
type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// A section: its number, its range in the file including the header (`whole`), and the range of its contents.
struct Section {
    number: u8,
    whole: Range<usize>,
    contents: Range<usize>,
}

/// Parses a module. Fails if it is damaged or truncated.
pub fn parse(file: &FileBytes) -> Result<WasmModule> {
    parse_module(file).ok_or_else(|| Error::new("is not a complete WebAssembly module"))
}

/// Parses a WebAssembly module. `None` if the file isn't one, or is damaged.
fn parse_module(file: &FileBytes) -> Option<WasmModule> {
    let bytes = file.bytes();
    let sections = sections(bytes)?;
    let mut module = WasmModule {
        file: file.clone(),
        imports: 0,
        bodies: Vec::new(),
        code: 0..0,
        name: None,
        names: BTreeMap::new(),
        custom: Vec::new(),
        hashes: hashes(bytes, &sections),
    };
    for Section { number, contents, .. } in sections {
        match number {
            CUSTOM => module.custom.extend(custom(bytes, contents)),
            IMPORT => module.imports = imported_functions(&bytes[contents])?,
            CODE => (module.bodies, module.code) = (bodies(bytes, contents.clone())?, contents),
            _ => {}
        }
    }
    let name_section = module.section("name").to_vec();
    let functions = module.imports + u32::try_from(module.bodies.len()).ok()?;
    // Engines ignore a damaged name section, so it is no reason to reject the module.
    if let Some((name, names)) = read_names(&name_section, functions) {
        (module.name, module.names) = (name, names);
    }
    Some(module)
}

/// Finds the sections of a module. `None` if the file isn't a WebAssembly module, or is damaged.
fn sections(bytes: &[u8]) -> Option<Vec<Section>> {
    let mut rest = Bytes::new(bytes.strip_prefix(MAGIC)?, LittleEndian);
    let mut sections = Vec::new();
    while !rest.is_empty() {
        let start = bytes.len() - rest.len();
        let (number, len) = (rest.read_u8().ok()?, number(&mut rest)? as usize);
        let contents_start = bytes.len() - rest.len();
        rest.split(len).ok()?;
        if sections.len() == MOST_SECTIONS {
            return None;
        }
        let end = contents_start + len;
        sections.push(Section { number, whole: start..end, contents: contents_start..end });
    }
    Some(sections)
}

/// The name of a custom section, and the range in the file of its contents after the name. `None` if the name is
/// damaged.
fn custom(bytes: &[u8], contents: Range<usize>) -> Option<(String, Range<usize>)> {
    let mut rest = Bytes::new(&bytes[contents.clone()], LittleEndian);
    let name = text(&mut rest)?.to_owned();
    Some((name, contents.end - rest.len()..contents.end))
}

/// The number of functions that a module imports. `contents` are those of its import section; `None` if they are
/// damaged.
fn imported_functions(contents: &[u8]) -> Option<u32> {
    /// Numbers of the kinds of imports.
    const FUNCTION: u8 = 0;
    const TABLE: u8 = 1;
    const MEMORY: u8 = 2;
    const GLOBAL: u8 = 3;
    const TAG: u8 = 4;
    let mut rest = Bytes::new(contents, LittleEndian);
    let mut functions = 0;
    for _ in 0..number(&mut rest).filter(|imports| *imports <= MOST_FUNCTIONS)? {
        // An import begins with two names: that of the module from which it imports, and that of the imported item.
        text(&mut rest)?;
        text(&mut rest)?;
        match rest.read_u8().ok()? {
            FUNCTION => {
                // Skips the index of the function's type.
                number(&mut rest)?;
                functions += 1;
            }
            TABLE => {
                value_type(&mut rest)?;
                limits(&mut rest)?;
            }
            MEMORY => limits(&mut rest)?,
            GLOBAL => {
                value_type(&mut rest)?;
                // Skips the flag that tells whether the global can be changed.
                rest.read_u8().ok()?;
            }
            TAG => {
                // Skips an attribute and the index of the tag's type.
                rest.read_u8().ok()?;
                number(&mut rest)?;
            }
            _ => return None,
        }
    }
    Some(functions)
}

/// Finds the function bodies in the code section. `None` if the section is damaged.
fn bodies(bytes: &[u8], contents: Range<usize>) -> Option<Vec<Range<usize>>> {
    let mut rest = Bytes::new(&bytes[contents.clone()], LittleEndian);
    let count = number(&mut rest).filter(|count| *count <= MOST_FUNCTIONS)?;
    // Each body takes at least one byte. A damaged count must not make us allocate memory for more.
    let mut bodies = Vec::with_capacity((count as usize).min(rest.len()));
    for _ in 0..count {
        let len = number(&mut rest)? as usize;
        let start = contents.end - rest.len();
        rest.split(len).ok()?;
        bodies.push(start..start + len);
    }
    Some(bodies)
}

/// Reads the contents of the name section. Returns the module's name, and the names of functions by index. Names of
/// functions that don't exist are ignored; `functions` is the number of functions. `None` if the section is damaged.
fn read_names(section: &[u8], functions: u32) -> Option<(Option<String>, BTreeMap<u32, String>)> {
    /// Numbers of the subsections of the name section.
    const MODULE: u8 = 0;
    const FUNCTIONS: u8 = 1;
    let (mut module, mut names) = (None, BTreeMap::new());
    let mut rest = Bytes::new(section, LittleEndian);
    while !rest.is_empty() {
        let (subsection, len) = (rest.read_u8().ok()?, number(&mut rest)? as usize);
        let mut contents = rest.split(len).ok()?;
        match subsection {
            MODULE => module = Some(text(&mut contents)?.to_owned()),
            FUNCTIONS => {
                for _ in 0..number(&mut contents)? {
                    let (function, name) = (number(&mut contents)?, text(&mut contents)?);
                    if function < functions {
                        names.insert(function, name.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    Some((module, names))
}

/// The hashes that V8 may have computed of the module: as it is, without custom sections, and without names and debug
/// information. Tools strip such sections before the module is shipped, so the module that ran may be any of the three.
fn hashes(bytes: &[u8], sections: &[Section]) -> Vec<WasmHash> {
    let all: Vec<&Section> = sections.iter().collect();
    let standard: Vec<&Section> = sections.iter().filter(|section| section.number != CUSTOM).collect();
    let stripped: Vec<&Section> = sections.iter().filter(|section| !is_debug_section(bytes, section)).collect();
    let mut hashes: Vec<WasmHash> = [all, standard, stripped].iter().filter_map(|kept| hash(bytes, kept)).collect();
    hashes.dedup();
    hashes
}

/// True for custom sections that contain names or debug information.
fn is_debug_section(bytes: &[u8], section: &Section) -> bool {
    if section.number != CUSTOM {
        return false;
    }
    let name = custom(bytes, section.contents.clone()).map(|(name, _)| name);
    name.is_some_and(|name| name == "name" || name.starts_with(".debug_"))
}

/// V8's hash of the module that would remain if only the sections `kept` were in it, and where its code would begin.
/// `None` if no code section would be in it.
fn hash(bytes: &[u8], kept: &[&Section]) -> Option<WasmHash> {
    let mut len = MAGIC.len();
    let mut code = None;
    for section in kept {
        if section.number == CODE {
            // Where the contents of the code section begin in a module that only has these sections.
            code = Some(len + section.contents.start - section.whole.start);
        }
        len += section.whole.len();
    }
    let hash = if len > LONGEST_HASHED {
        // V8 uses the length of long data instead of a hash.
        len as u32
    } else {
        let contents = kept.iter().flat_map(|section| &bytes[section.whole.clone()]);
        one_at_a_time(MAGIC.iter().chain(contents))
    };
    // In V8, the two lowest bits state the kind of the value: 2 means a hash.
    Some(WasmHash { hash: hash << 2 | 2, code: code? })
}

/// Jenkins's one-at-a-time hash (V8 src/strings/string-hasher-inl.h).
fn one_at_a_time<'b>(bytes: impl Iterator<Item = &'b u8>) -> u32 {
    let mut hash = 0u32;
    for byte in bytes {
        hash = hash.wrapping_add(u32::from(*byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

fn number(rest: &mut Bytes<'_>) -> Option<u32> {
    rest.read_uleb128_u32().ok()
}

fn text<'a>(rest: &mut Bytes<'a>) -> Option<&'a str> {
    let len = number(rest)? as usize;
    std::str::from_utf8(rest.split(len).ok()?.slice()).ok()
}

/// Skips the type of a value. `None` if it is cut off.
fn value_type(rest: &mut Bytes<'_>) -> Option<()> {
    /// Codes of the reference types that are followed by a heap type.
    const REFERENCES: [u8; 2] = [0x63, 0x64];
    if REFERENCES.contains(&rest.read_u8().ok()?) {
        rest.read_uleb128().ok()?;
    }
    Some(())
}

/// Skips the limits of a table or memory: the minimum size and, if flags say so, the maximum size and the page size.
/// `None` if they are cut off.
fn limits(rest: &mut Bytes<'_>) -> Option<()> {
    const HAS_MOST: u8 = 1;
    const HAS_PAGE_SIZE: u8 = 8;
    let flags = rest.read_u8().ok()?;
    let numbers = 1 + [HAS_MOST, HAS_PAGE_SIZE].iter().filter(|flag| flags & **flag != 0).count();
    (0..numbers).try_for_each(|_| rest.read_uleb128().map(drop)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(number: u8, contents: &[u8]) -> Vec<u8> {
        [&[number, contents.len() as u8][..], contents].concat()
    }

    /// One imported function and memory; two defined functions, at offsets 3 and 7 of the code section; names.
    fn module() -> Vec<u8> {
        let names = b"\x04name\0\x02\x01m\x01\x09\x02\x01\x02aa\x02\x02bb";
        [
            MAGIC.to_vec(),
            section(IMPORT, b"\x02\x01e\x01f\0\0\x01e\x01m\x02\x01\x01\x02"),
            section(CODE, b"\x02\x03\0\x01\x0b\x02\0\x0b"),
            section(CUSTOM, names),
            section(CUSTOM, b"\x0b.debug_lineLINE"),
        ]
        .concat()
    }

    #[test]
    fn functions_have_numbers_bodies_and_names() {
        let bytes = module();
        let module = parse(&FileBytes::new(bytes.clone())).unwrap();
        assert_eq!((module.imports, module.bodies.len(), module.name.as_deref()), (1, 2, Some("m")));
        assert_eq!(module.names.into_iter().collect::<Vec<_>>(), [(1, "aa".to_owned()), (2, "bb".to_owned())]);
        let module = parse(&FileBytes::new(bytes)).unwrap();
        assert_eq!(module.body(2).map(|body| body.len()), Some(2));
        assert_eq!((module.body(0), module.body(3)), (None, None));
        assert_eq!([2, 6, 3].map(|offset| module.function_starting_at(offset)), [Some(1), Some(2), None]);
        assert_eq!((module.section(".debug_line"), module.section(".debug_info")), (&b"LINE"[..], &b""[..]));
    }

    #[test]
    fn the_hash_is_that_of_v8_for_shipped_modules_too() {
        // The URL of this module in Node.js 20 is wasm://wasm/6a13f0fa
        let shipped = include_bytes!("../../fixtures/wasm-node/stripped.wasm");
        let module = parse(&FileBytes::new(shipped.to_vec())).unwrap();
        // `code` is the offset at which the contents of the code section start.
        assert_eq!(module.hashes, [WasmHash { hash: 0x6a13_f0fa, code: 111 }]);
        let whole = include_bytes!("../../fixtures/wasm-node/app.wasm");
        let hashes = parse(&FileBytes::new(whole.to_vec())).unwrap().hashes;
        // The first hash is that of the whole file. The others are those of the file without some of its custom
        // sections, of which one is what was shipped.
        assert!(hashes[1..].contains(&module.hashes[0]) && hashes[0] != module.hashes[0]);
    }

    fn leb(mut number: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number > 0x7f {
            bytes.push(0x80 | (number & 0x7f) as u8);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    #[test]
    fn a_module_takes_no_more_memory_than_engines_allow() {
        // Each of these sections is two bytes long: its number 4, and its size 0.
        let many = [MAGIC, &[4, 0].repeat(MOST_SECTIONS + 1)].concat();
        assert!(parse(&FileBytes::new(many[..many.len() - 2].to_vec())).is_ok());
        assert!(parse(&FileBytes::new(many)).is_err());
        let bodies = |count: u32| {
            let contents = [leb(count), vec![0; count as usize]].concat();
            parse(&FileBytes::new([MAGIC, &[CODE], &leb(contents.len() as u32), &contents].concat()))
        };
        assert!(bodies(MOST_FUNCTIONS).is_ok() && bodies(MOST_FUNCTIONS + 1).is_err());
        let named = |function| {
            [MAGIC.to_vec(), section(CUSTOM, &[b"\x04name\x01\x04\x01", &[function][..], b"\x01a"].concat())].concat()
        };
        let names = |function| parse(&FileBytes::new(named(function))).unwrap().names.len();
        // A name of a function that doesn't exist takes no memory either.
        assert_eq!(names(0), 0, "a module without functions has no names of functions");
    }

    #[test]
    fn a_module_that_was_cut_is_an_error() {
        let bytes = module();
        for len in 0..bytes.len() {
            // A prefix that ends after a section is a valid module.
            if let Ok(cut) = parse(&FileBytes::new(bytes[..len].to_vec())) {
                assert!(cut.bodies.len() < 3);
            }
        }
        assert!(parse(&FileBytes::new(b"\0asm\x02\0\0\0".to_vec())).is_err());
        assert!(parse(&FileBytes::new([MAGIC, b"\x0a\x05\xff\xff\xff\xff\x0f"].concat())).is_err());
    }
}
