//! What is nested: trees of debugging information, values of OpenTelemetry, and JSON, whose shape the bytes decide. Few
//! bytes make deep trees, which a fuzzer doesn't find by changing the bytes of the format.

use super::framed::Bytes;
use super::{code, maps, readers, spans};
use prost::encoding::encode_varint;

/// The most steps that an input stands for, which is how deep it may be nested: as deep as no stack of a worker holds.
/// Fuzzers get a smaller stack instead (`tests/fuzz/README.md`). Of their inputs, one in sixteen may be that deep: the
/// others are done in a tenth of the time, and have as many shapes.
fn most_steps(bytes: &[u8]) -> usize {
    const DEEP: usize = if cfg!(fuzzing) { 6_000 } else { 100_000 };
    let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(*byte));
    if cfg!(fuzzing) && sum % 16 != 0 { 400 } else { DEEP }
}

/// The steps of a tree: each has a kind, a number, and how many times it is repeated.
struct Steps<'a> {
    bytes: Bytes<'a>,
    left: usize,
}

impl Steps<'_> {
    fn next(&mut self) -> Option<(u8, u8, usize)> {
        if self.bytes.is_empty() || self.left == 0 {
            return None;
        }
        let (kind, number, power) = (self.bytes.byte(), self.bytes.byte(), self.bytes.byte());
        let times = match power % 14 {
            13 => self.left,
            power => (1 << power).min(self.left),
        };
        self.left -= times;
        Some((kind, number, times))
    }
}

fn steps(bytes: Bytes<'_>) -> Steps<'_> {
    Steps { left: most_steps(bytes.0), bytes }
}

/// Tags of DWARF, each with its attributes and forms. Those at even positions have children.
const ENTRIES: &[(u8, &[(u8, u8)])] = {
    const NAME: (u8, u8) = (0x03, 0x08); // string
    const LOW: (u8, u8) = (0x11, 0x01); // addr
    const HIGH: (u8, u8) = (0x12, 0x06); // data4
    const ORIGIN: (u8, u8) = (0x31, 0x13); // ref4
    const SPECIFICATION: (u8, u8) = (0x47, 0x13);
    const CALL_LINE: (u8, u8) = (0x59, 0x0b);
    const IMPORT: (u8, u8) = (0x18, 0x13);
    &[
        (0x11, &[NAME, LOW, HIGH]),              // compile unit
        (0x2e, &[NAME]),                         // subprogram without code
        (0x2e, &[NAME, LOW, HIGH]),              // subprogram
        (0x2e, &[ORIGIN, LOW, HIGH]),            // the code of an abstract one
        (0x1d, &[ORIGIN, LOW, HIGH, CALL_LINE]), // inlined subroutine
        (0x1d, &[ORIGIN, LOW, HIGH]),            // … that ends here
        (0x0b, &[LOW, HIGH]),                    // lexical block
        (0x3d, &[IMPORT]),                       // imported unit
        (0x1d, &[NAME, LOW, HIGH]),              // inlined subroutine with a name
        (0x05, &[NAME]),                         // parameter
        (0x39, &[NAME]),                         // namespace
        (0x34, &[SPECIFICATION]),                // variable
        (0x2e, &[SPECIFICATION, LOW, HIGH]),     // subprogram that was declared
        (0x17, &[NAME]),                         // union
        (0x13, &[NAME, SPECIFICATION]),          // structure
    ]
};

/// Debugging information: entries in entries, with references to any of them, in an ELF file.
pub(super) fn nested_dwarf(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let version = bytes.byte();
    let mut entries = Vec::new();
    let header: u32 = if version & 1 == 0 { 11 } else { 12 };
    let (mut starts, mut open) = (vec![header], 1_u32);
    put_entry(&mut entries, 0, header, 0x100);
    let mut steps = steps(bytes);
    while let Some((kind, number, times)) = steps.next() {
        for _ in 0..times {
            let kind = usize::from(kind) % (ENTRIES.len() + 2);
            let at = header + entries.len() as u32;
            if kind >= ENTRIES.len() {
                // Ends a list of children, mostly only an open one.
                if open > 1 || number == 255 {
                    entries.push(0);
                    open = open.saturating_sub(1);
                }
                continue;
            }
            // Small numbers lead back; large ones to the entry itself, or to the first one.
            let target = match number {
                0..=199 => starts[starts.len().saturating_sub(1 + usize::from(number))],
                200..=229 => at,
                _ => starts[usize::from(number - 230) % starts.len()],
            };
            starts.push(at);
            put_entry(&mut entries, kind, target, 0x100 - u32::from(number & 7));
            open += u32::from(kind.is_multiple_of(2));
        }
    }
    if version & 2 == 0 {
        entries.extend(std::iter::repeat_n(0, open as usize));
    }
    code::elf(&elf_with(&debug_info(version, &entries), &debug_abbrev()));
}

fn put_entry(out: &mut Vec<u8>, kind: usize, target: u32, size: u32) {
    out.push(kind as u8 + 1);
    for (_, form) in ENTRIES[kind].1 {
        match form {
            0x08 => out.extend(b"f\0"),
            0x01 => out.extend(0x1000_u64.to_le_bytes()),
            0x06 => out.extend(size.to_le_bytes()),
            0x13 => out.extend(target.to_le_bytes()),
            _ => out.push(size as u8),
        }
    }
}

fn debug_abbrev() -> Vec<u8> {
    let mut out = Vec::new();
    for (at, (tag, attributes)) in ENTRIES.iter().enumerate() {
        out.extend([at as u8 + 1, *tag, u8::from(at.is_multiple_of(2))]);
        out.extend(attributes.iter().flat_map(|(name, form)| [*name, *form]));
        out.extend([0, 0]);
    }
    out.push(0);
    out
}

fn debug_info(version: u8, entries: &[u8]) -> Vec<u8> {
    // The version, then the offset of the abbreviations and the size of addresses; in DWARF 5, the unit's type before.
    let front: &[u8] = if version & 1 == 0 { &[4, 0, 0, 0, 0, 0, 8] } else { &[5, 0, 1, 8, 0, 0, 0, 0] };
    let len = (front.len() + entries.len()) as u32;
    [&len.to_le_bytes()[..], front, entries].concat()
}

struct Section<'a> {
    name: u32,
    kind: u32,
    flags: u64,
    addr: u64,
    content: &'a [u8],
    /// The index of the section with the names; the word also holds `sh_info`, which is 0.
    link: u64,
    entry: u64,
}

/// An ELF file of x86-64 with one function `f` at 0x1000, and these sections.
fn elf_with(info: &[u8], abbreviations: &[u8]) -> Vec<u8> {
    const NAMES: &[u8] = b"\0.text\0.symtab\0.strtab\0.debug_info\0.debug_abbrev\0f\0";
    let text = vec![0x90; 0x100];
    let mut symbols = vec![0; 24];
    symbols.extend(49_u32.to_le_bytes());
    symbols.extend([0x12, 0, 1, 0]); // a global function in section 1
    symbols.extend(0x1000_u64.to_le_bytes());
    symbols.extend(0x100_u64.to_le_bytes());
    let sections = [
        Section { name: 1, kind: 1, flags: 6, addr: 0x1000, content: &text, link: 0, entry: 0 },
        Section { name: 7, kind: 2, flags: 0, addr: 0, content: &symbols, link: 3, entry: 24 },
        Section { name: 15, kind: 3, flags: 0, addr: 0, content: NAMES, link: 0, entry: 0 },
        Section { name: 23, kind: 1, flags: 0, addr: 0, content: info, link: 0, entry: 0 },
        Section { name: 35, kind: 1, flags: 0, addr: 0, content: abbreviations, link: 0, entry: 0 },
    ];
    let mut file = vec![0; 64 + 56];
    let mut headers = vec![0; 64];
    for Section { name, kind, flags, addr, content, link, entry } in sections {
        headers.extend([name, kind].iter().flat_map(|word| word.to_le_bytes()));
        let words = [flags, addr, file.len() as u64, content.len() as u64, link, 1, entry];
        headers.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        file.extend(content);
    }
    let table = file.len() as u64;
    file.extend(headers);
    let mut front = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    front.extend([0x1000, 64, table, 64 << 32 | 56 << 48].iter().flat_map(|word: &u64| word.to_le_bytes()));
    front.extend([1_u16, 64, 6, 3].iter().flat_map(|half| half.to_le_bytes()));
    front.extend([1_u32, 5].iter().flat_map(|word| word.to_le_bytes())); // loaded, may be read and run
    front.extend([120, 0x1000, 0x1000, 0x100, 0x100, 0x1000].iter().flat_map(|word: &u64| word.to_le_bytes()));
    file[..front.len()].copy_from_slice(&front);
    file
}

/// Messages of OpenTelemetry in messages: values in attributes, links and tables, with any field numbers.
pub(super) fn nested_otlp(bytes: &[u8]) {
    // The fields that lead to a value: of the resource, of the scope, of the profile's tables and of a sample.
    const WAYS: &[&[u8]] = &[&[1, 1, 1, 2], &[1, 2, 1, 3, 2], &[2, 6, 2], &[1, 2, 2, 7, 2], &[2, 4], &[1]];
    let mut bytes = Bytes(bytes);
    let way = WAYS[usize::from(bytes.byte()) % WAYS.len()];
    // What is within stands first in the bytes: a message is put around what was made by then.
    let mut fronts: Vec<Vec<u8>> = Vec::new();
    let (mut len, mut inside) = (0, Vec::new());
    let mut steps = steps(bytes);
    while let Some((kind, number, times)) = steps.next() {
        for _ in 0..times {
            let mut front = Vec::new();
            match kind % 8 {
                // A text, a number, a key before what is there.
                0 => front.extend([10, 1, b'a' + number % 26]),
                1 => front.extend([number & 0x78, number & 0x7f]),
                2 => front.extend([10, 3, b'k', b'e', b'y']),
                // A list of values, a list of pairs, and any other message around it.
                3 => around(&mut front, &[5, 1], len),
                4 => around(&mut front, &[6, 1, 2], len),
                5 => around(&mut front, &[number % 16 + 1], len),
                6 => around(&mut front, &[1], len),
                _ => around(&mut front, &[2], len),
            }
            len += front.len();
            fronts.push(front);
        }
    }
    let mut front = Vec::new();
    around(&mut front, way, len);
    fronts.push(front);
    for front in fronts.iter().rev() {
        inside.extend(front);
    }
    readers::otlp(&inside);
}

/// Puts messages with these field numbers, the outermost first, around `len` bytes.
fn around(front: &mut Vec<u8>, tags: &[u8], len: usize) {
    let mut fronts = Vec::new();
    let mut len = len;
    for tag in tags.iter().rev() {
        let mut one = vec![tag << 3 | 2];
        encode_varint(len as u64, &mut one);
        len += one.len();
        fronts.push(one);
    }
    front.extend(fronts.into_iter().rev().flatten());
}

/// Keys of the formats that are JSON.
const KEYS: &[&str] = &[
    "x",
    "children",
    "head",
    "nodes",
    "callFrame",
    "functionName",
    "id",
    "parent",
    "prefix",
    "frame",
    "stack",
    "args",
    "data",
    "cpuProfile",
    "stackFrames",
    "traceEvents",
    "profiles",
    "events",
    "samples",
    "shared",
    "frames",
    "name",
    "meta",
    "threads",
    "stackTable",
    "frameTable",
    "funcTable",
    "stringArray",
    "lib",
    "libs",
    "resource",
    "attributes",
    "value",
    "arrayValue",
    "values",
    "kvlistValue",
    "key",
    "stringValue",
    "scopeProfiles",
    "dictionary",
    "sections",
    "map",
    "offset",
    "line",
    "column",
    "sources",
    "mappings",
    "names",
    "scopes",
    "bindings",
    "ranges",
    "ph",
    "ts",
    "inlined",
    "resourceProfiles",
    "linkTable",
    "sf",
    "bp",
    "tid",
    "pid",
    "dur",
];

/// The starts of files in these formats, up to a value.
const STARTS: &[&str] = &[
    r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"f"}]},"profiles":"#,
    r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":"#,
    r#"{"meta":{"preprocessedProfileVersion":58},"threads":"#,
    r#"{"meta":{"preprocessedProfileVersion":58},"shared":{"stringArray":["f"]},"libs":"#,
    r#"{"nodes":[{"id":1,"callFrame":{"functionName":"f"},"x":"#,
    r#"{"startTime":0,"endTime":1,"head":"#,
    r#"{"startTime":0,"endTime":1,"samples":[1],"nodes":"#,
    r#"{"resourceProfiles":[{"resource":{"attributes":[{"key":"k","value":"#,
    r#"{"resourceProfiles":"#,
    r#"{"dictionary":"#,
    r#"[{"name":"f","ph":"X","ts":1,"dur":2,"pid":1,"tid":1,"args":"#,
    r#"{"traceEvents":[{"name":"f","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}],"stackFrames":"#,
    r#"{"traceEvents":[{"name":"f","ph":"B","ts":1,"pid":1,"tid":1},"#,
    r#"{"version":3,"sources":["a"],"names":[],"mappings":"AAAA","sections":"#,
    r#"{"version":3,"sections":[{"offset":{"line":0,"column":0},"map":"#,
    r#"{"version":3,"sources":["a"],"names":["f"],"mappings":"AAAA","x":"#,
];

/// JSON in JSON: lists and objects with the keys of the formats, closed or not, read as each of them.
pub(super) fn nested_json(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let start = bytes.byte();
    let closes = bytes.byte() & 3 != 0;
    let start = STARTS[usize::from(start) % STARTS.len()];
    let mut text = start.to_owned();
    // What is open, with the sign that closes it.
    let mut open: Vec<char> = Vec::new();
    let mut in_text = false;
    for sign in start.chars() {
        match sign {
            '"' => in_text = !in_text,
            '{' if !in_text => open.push('}'),
            '[' if !in_text => open.push(']'),
            '}' | ']' if !in_text => _ = open.pop(),
            _ => {}
        }
    }
    let mut is_value_next = true;
    let mut steps = steps(bytes);
    while let Some((kind, number, times)) = steps.next() {
        for _ in 0..times {
            match kind % 8 {
                6 if open.len() > 1 => {
                    if is_value_next {
                        text.push('0');
                    }
                    text.extend(open.pop());
                    is_value_next = false;
                    continue;
                }
                7 => {
                    text.push(char::from(number & 0x7f));
                    continue;
                }
                _ => {}
            }
            if !is_value_next {
                text.push(',');
                if open.last() == Some(&'}') {
                    text.push_str(&["\"", KEYS[usize::from(number) % KEYS.len()], "\":"].concat());
                }
            }
            let key = KEYS[usize::from(number) % KEYS.len()];
            is_value_next = matches!(kind % 8, 0 | 1);
            match kind % 8 {
                0 => {
                    text.push('[');
                    open.push(']');
                }
                1 => {
                    text.push_str(&["{\"", key, "\":"].concat());
                    open.push('}');
                }
                2 => text.push_str(&number.to_string()),
                3 => text.push_str("null"),
                4 => text.push_str(&["\"", key, "\""].concat()),
                _ => text.push_str(&["{\"", key, "\":", &number.to_string(), "}"].concat()),
            }
        }
    }
    if closes {
        if is_value_next {
            text.push('0');
        }
        text.extend(open.iter().rev());
    }
    let text = text.as_bytes();
    readers::speedscope(text);
    readers::firefox(text);
    readers::inject_firefox(text);
    readers::cpuprofile(text);
    readers::otlp(text);
    spans::trace_event(text);
    maps::source_map(text);
}
