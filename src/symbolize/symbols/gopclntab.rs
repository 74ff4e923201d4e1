//! Go's own table of functions, files, lines and inlined calls: `.gopclntab`. The Go runtime needs it for tracebacks,
//! so it remains in programs without symbols and DWARF (`-ldflags="-s -w"`).
//!
//! ```text
//! header          magic (version), instruction quantum, size of a pointer, offsets of the parts
//! function table  (first address, offset of the function's record), sorted; then the end of the last function
//! record          offsets of: the name; value tables for files, lines and so on; the inline tree
//! value table     (change of the value, for how many quanta it holds) as varints
//! inline tree     an entry for each inlined call: the function's name, where it was inlined
//! ```
//!
//! Go's sources call the value tables beyond those for files and lines `PCDATA`, and the pointers that follow them in a
//! record `FUNCDATA`. For inlined calls, `PCDATA_InlTreeIndex` gives the index of an entry in the inline tree, to which
//! `FUNCDATA_InlTree` points.
//!
//! | magic | since | addresses | inline tree found by |
//! |---|---|---|---|
//! | `0xfffffffb` | 1.2 | absolute | its address |
//! | `0xfffffffa` | 1.16 | absolute | its address |
//! | `0xfffffff0` | 1.18 | relative to the start of the text | an offset from `go:func.*` |
//! | `0xfffffff1` | 1.20 | relative to the start of the text | an offset from `go:func.*` |
//!
//! The addresses of `go:func.*` and, since 1.26, of the text are in the module data: a structure in a data section that
//! begins with the table's address. Only what a lookup needs is read, and everything is checked, because the table
//! comes from an untrusted file.
//!
//! Spec: golang.org/s/go12symtab; Go's src/runtime/symtab.go and src/debug/gosym/pclntab.go.

use super::image::Image;
use object::{Object, ObjectSection};
use std::ops::Range;

/// The maximum length of a name in bytes. If a name is longer, the table with the names (`gopclntab`) is damaged.
const MAX_NAME_LEN: usize = 64 << 10;

/// How many entries of value tables are read for one lookup, so that malicious tables can't make it slow.
const MAX_STEPS: usize = 1 << 18;

/// The fields of a function record are numbered. Field 1 is the offset of the name. Field 4 (the table of stack
/// pointers) isn't used.
const FIELD_NAME: usize = 1;
/// The field with the offset of the value table that gives the file at each address.
const FIELD_FILES: usize = 5;
/// The field with the offset of the value table that gives the line at each address.
const FIELD_LINES: usize = 6;
/// The field with the number of further value tables.
const FIELD_TABLE_COUNT: usize = 7;
/// The field with the index of the compilation unit's first entry in [`Parts::units`].
const FIELD_UNIT: usize = 8;

/// The `.gopclntab` of one Go program.
#[derive(Debug)]
pub struct GoTable<'a> {
    image: &'a Image,
    /// The bytes of the whole `gopclntab`.
    table: Words<'a>,
    version: Version,
    /// The size in bytes of which all instruction sizes are multiples.
    quantum: u64,
    function_count: usize,
    parts: Parts,
    /// The start of the program's text. Since Go 1.18, addresses of functions are relative to it.
    text: u64,
    /// The link-time address of `go:func.*`, from which the offsets of inline trees count. `None` if unknown.
    func_data: Option<u64>,
    /// How the program's version of Go stores inlined calls. `None` if that isn't known; inlined calls aren't found
    /// then.
    inline_layout: Option<InlineLayout>,
}

/// A function of a Go program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoFunction<'a> {
    /// The range of link-time addresses of the function's code.
    pub range: Range<u64>,
    /// The function's name, such as `main.(*T).run`.
    pub name: &'a [u8],
}

/// A function that was active at an address: an inlined one, or the compiled function that contains the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoCall<'a> {
    pub name: &'a [u8],
    /// The source file; empty if unknown.
    pub file: &'a [u8],
    /// The line that was executing, counted from 1; 0 if unknown.
    pub line: u32,
}

/// The format of a table, named after the release of Go that introduced it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    Go12,
    Go116,
    Go118,
    Go120,
}

/// The offsets of the parts of the table, in bytes from its start.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    /// Where the names of functions start.
    names: usize,
    /// For each compilation unit, the list of its files. An entry is the offset of the file's path from `files`.
    units: usize,
    /// Where the paths of files start; until Go 1.15, a list of their offsets from the start of the table.
    files: usize,
    /// The offset from which the offsets of value tables count.
    values: usize,
    /// Where the function table starts.
    functions: usize,
    /// The offset from which the offsets of function records count.
    records: usize,
}

/// How inline trees are stored, which depends on the version of Go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InlineLayout {
    /// Which of a function's further value tables has the index of the inlined call at each address
    /// (`PCDATA_InlTreeIndex`).
    index_table: usize,
    /// Which of a function's data pointers leads to its inline tree (`FUNCDATA_InlTree`).
    tree_pointer: usize,
    /// The size of an entry of the tree: 20 bytes if it has the file and line of the call, otherwise 16.
    entry_size: usize,
}

/// Reads numbers from bytes, in the byte order of the program.
#[derive(Debug, Clone, Copy)]
struct Words<'a> {
    bytes: &'a [u8],
    is_little: bool,
    /// The size of a pointer in bytes.
    pointer: usize,
}

impl<'a> Words<'a> {
    fn u32_at(&self, offset: usize) -> Option<u32> {
        let bytes = *self.bytes.get(offset..)?.first_chunk()?;
        Some(if self.is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn i32_at(&self, offset: usize) -> Option<i32> {
        self.u32_at(offset).map(u32::cast_signed)
    }

    /// Reads a pointer at `offset`, or an offset that is as large as a pointer.
    fn pointer_at(&self, offset: usize) -> Option<u64> {
        if self.pointer == 4 {
            return self.u32_at(offset).map(u64::from);
        }
        let bytes = *self.bytes.get(offset..)?.first_chunk()?;
        Some(if self.is_little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) })
    }

    /// Reads an offset in `bytes`, which is as large as a pointer. `None` if it is past the end.
    fn offset_at(&self, offset: usize) -> Option<usize> {
        usize::try_from(self.pointer_at(offset)?).ok().filter(|&target| target <= self.bytes.len())
    }

    /// The text at `offset`, up to the NUL that ends it. `None` if it is longer than a name can be.
    fn text_at(&self, offset: usize) -> Option<&'a [u8]> {
        let rest = self.bytes.get(offset..)?;
        let rest = &rest[..rest.len().min(MAX_NAME_LEN)];
        Some(&rest[..memchr::memchr(0, rest)?])
    }
}

impl<'a> GoTable<'a> {
    /// Finds the table of a file and checks it. `None` if the file isn't a Go program or the table is damaged.
    pub fn read(image: &'a Image) -> Option<Self> {
        let object = image.object().ok()?;
        let (address, bytes) = find_table(image, &object)?;
        let is_little = object.is_little_endian();
        let head = bytes.first_chunk::<8>()?;
        if !is_head(head, is_little) {
            return None;
        }
        let words = Words { bytes, is_little, pointer: head[7].into() };
        let mut table = Self::from_words(image, words, build_version(image, &object))?;
        if table.version >= Version::Go118 {
            table.read_module(&object, address);
            // If neither the header nor the module data states where the text starts, it starts with the section
            // `.text`.
            if table.text == 0 {
                table.text = object.section_by_name(".text")?.address();
            }
        }
        // The whole function table must be in the file, including its last entry, which states where the last function
        // ends.
        let is_complete = table.function_count > 0 && table.function_start(table.function_count).is_some();
        if is_complete { Some(table) } else { None }
    }

    /// Reads the table's header: 8 bytes with the magic, the quantum (the unit in which the table counts code bytes)
    /// and the size of a pointer, then words of that size: the number of functions, the number of files, and the
    /// offsets of the table's parts. `build` is the minor release of Go 1 with which the program was built; `None` if
    /// unknown.
    fn from_words(image: &'a Image, table: Words<'a>, build: Option<u32>) -> Option<Self> {
        let head = table.bytes.first_chunk::<8>()?;
        let version = Version::from_magic([head[0], head[1], head[2], head[3]], table.is_little)?;
        let mut parts = Parts::default();
        // A word of the header by its number, which counts from 0.
        let word = |index: usize| table.offset_at(8 + index * table.pointer);
        let function_count = word(0)?;
        let mut text = 0;
        match version {
            // Until Go 1.15, the header has no offsets of the parts. The function table directly follows the number of
            // functions. After its last entry, which is only an address, comes the offset of the list of files. All
            // other offsets count from the start of the table, so the other parts begin at 0.
            Version::Go12 => {
                parts.functions = 8 + table.pointer;
                let end = function_count.checked_mul(2 * table.pointer)?.checked_add(parts.functions)?;
                parts.files = usize::try_from(table.u32_at(end.checked_add(table.pointer)?)?).ok()?;
            }
            Version::Go116 => {
                (parts.names, parts.units, parts.files) = (word(2)?, word(3)?, word(4)?);
                (parts.values, parts.functions) = (word(5)?, word(6)?);
                // The function table has the offsets of the functions' records, which count from its own start.
                parts.records = parts.functions;
            }
            Version::Go118 | Version::Go120 => {
                // Since Go 1.26, this field is 0, and `read` finds out where the text starts.
                text = table.pointer_at(8 + 2 * table.pointer)?;
                (parts.names, parts.units, parts.files) = (word(3)?, word(4)?, word(5)?);
                (parts.values, parts.functions) = (word(6)?, word(7)?);
                parts.records = parts.functions;
            }
        }
        let quantum = u64::from(head[6]);
        let (func_data, inline_layout) = (None, version.inline_layout(build));
        Some(Self { image, table, version, quantum, function_count, parts, text, func_data, inline_layout })
    }

    /// The link-time address range from the start of the first function to the end of the last one.
    pub fn extent(&self) -> Range<u64> {
        let first = self.function_start(0).unwrap_or_default();
        first..self.function_start(self.function_count).unwrap_or_default().max(first)
    }

    /// The compiled function that contains a link-time address; `None` if there is none.
    pub fn find(&self, addr: u64) -> Option<GoFunction<'a>> {
        let index = self.find_index(addr)?;
        let record = self.record_offset(index)?;
        let name = self.name(self.record_field(record, FIELD_NAME)?)?;
        let range = self.function_start(index)?..self.function_start(index + 1)?;
        (!name.is_empty()).then_some(GoFunction { range, name })
    }

    /// The functions that were active at a link-time address: inlined calls first (innermost first), then the compiled
    /// function. Empty if no function contains the address.
    pub fn calls(&self, addr: u64) -> Vec<GoCall<'a>> {
        let mut calls = Vec::new();
        let Some(index) = self.find_index(addr) else { return calls };
        let Some(start) = self.function_start(index) else { return calls };
        let Some(record) = self.record_offset(index) else { return calls };
        let mut values = ValueReader { go: self, start, record, steps_left: MAX_STEPS };
        // Goes from the innermost call outwards. `file` and `line` are the position that the next function to be added
        // was executing.
        let mut inlined = values.inlined_call(addr);
        let (mut file, mut line) = values.position(addr);
        while let Some(call) = inlined {
            let Some(name) = self.name(call.name) else { break };
            calls.push(GoCall { name, file, line });
            let call_addr = start.saturating_add(call.call_site);
            (file, line) = values.position(call_addr);
            // The call around this one has a smaller index, because an entry comes after the entry of the call that it
            // was inlined into. Checking this makes sure that the loop ends, even if the table is damaged.
            inlined = values.inlined_call(call_addr).filter(|outer| outer.index < call.index);
        }
        if let Some(name) = self.record_field(record, FIELD_NAME).and_then(|name| self.name(name)) {
            calls.push(GoCall { name, file, line });
        }
        calls
    }

    /// The index of the function that contains a link-time address; `None` if there is none. Functions are sorted by
    /// address, and each ends where the next one starts.
    fn find_index(&self, addr: u64) -> Option<usize> {
        let (mut low, mut high) = (0, self.function_count);
        while low < high {
            let middle = low.midpoint(high);
            if self.function_start(middle)? <= addr {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let index = low.checked_sub(1)?;
        (addr < self.function_start(index + 1)?).then_some(index)
    }

    /// The first link-time address of the function with this index. For the index after the last function, the end of
    /// the last function.
    fn function_start(&self, index: usize) -> Option<u64> {
        let size = self.address_size();
        let offset = index.checked_mul(2 * size)?.checked_add(self.parts.functions)?;
        if self.version >= Version::Go118 {
            return self.text.checked_add(u64::from(self.table.u32_at(offset)?));
        }
        self.table.pointer_at(offset)
    }

    /// The offset of the record of the function with this index.
    fn record_offset(&self, index: usize) -> Option<usize> {
        // An entry of the function table has the function's address and the offset of its record, which are equally
        // large.
        let size = self.address_size();
        let offset = index.checked_mul(2 * size)?.checked_add(self.parts.functions + size)?;
        let record = match size {
            4 => u64::from(self.table.u32_at(offset)?),
            _ => self.table.pointer_at(offset)?,
        };
        usize::try_from(record).ok()?.checked_add(self.parts.records)
    }

    /// The size of an address in the function table, in bytes.
    fn address_size(&self) -> usize {
        if self.version >= Version::Go118 { 4 } else { self.table.pointer }
    }

    /// Reads a field of a function record. `record` is the offset of the record, `number` one of the constants
    /// `FIELD_…`.
    fn record_field(&self, record: usize, number: usize) -> Option<u32> {
        self.table.u32_at(record.checked_add(self.address_size() + 4 * (number - 1))?)
    }

    fn name(&self, offset: u32) -> Option<&'a [u8]> {
        self.table.text_at(self.parts.names.checked_add(usize::try_from(offset).ok()?)?)
    }

    /// The path of a file. `number` is its number in the compilation unit of the function whose record is at offset
    /// `record`; until Go 1.15, it is its number in the whole program.
    fn file(&self, record: usize, number: i32) -> Option<&'a [u8]> {
        let number = usize::try_from(number).ok()?;
        if self.version == Version::Go12 {
            // The first entry of the list of files is its length, so files are numbered from 1.
            if number == 0 {
                return None;
            }
            let offset = self.table.u32_at(number.checked_mul(4)?.checked_add(self.parts.files)?)?;
            return self.table.text_at(usize::try_from(offset).ok()?);
        }
        let unit = usize::try_from(self.record_field(record, FIELD_UNIT)?).ok()?;
        let entry = unit.checked_add(number)?.checked_mul(4)?.checked_add(self.parts.units)?;
        // An entry with all bits set has no path.
        let offset = self.table.u32_at(entry).filter(|&offset| offset != u32::MAX)?;
        self.table.text_at(self.parts.files.checked_add(usize::try_from(offset).ok()?)?)
    }

    /// Finds the lists after the fixed part of the record at offset `record`. The first is the list of further value
    /// tables (`PCDATA`), the second that of data pointers (`FUNCDATA`). Returns the offset of the first list, and the
    /// length of the second.
    fn value_tables(&self, record: usize) -> Option<(usize, usize)> {
        // The fixed part consists of the function's address, `field_count` fields of 4 bytes each, 3 bytes of flags,
        // and a byte with the number of data pointers.
        let field_count = match self.version {
            Version::Go12 => 7,
            Version::Go116 | Version::Go118 => 8,
            Version::Go120 => 9,
        };
        let flags = record.checked_add(self.address_size() + 4 * field_count)?;
        let count = *self.table.bytes.get(flags.checked_add(3)?)?;
        Some((flags + 4, usize::from(count)))
    }

    /// The link-time address to which a function's data pointer with index `number` leads. `list` is where its data
    /// pointers are. `None` if the pointer leads nowhere. Since Go 1.18, pointers are offsets from `go:func.*`.
    fn tree_address(&self, list: usize, number: usize) -> Option<u64> {
        if self.version >= Version::Go118 {
            let offset = self.table.u32_at(list.checked_add(4 * number)?)?;
            // An offset with all bits set leads nowhere.
            if offset == u32::MAX {
                return None;
            }
            return self.func_data?.checked_add(u64::from(offset));
        }
        // Before Go 1.18, pointers are addresses. Their list is aligned to the size of a pointer.
        let pointer = self.table.pointer;
        let list = list.checked_next_multiple_of(pointer)?;
        self.table.pointer_at(list.checked_add(pointer * number)?).filter(|&address| address != 0)
    }

    /// Finds the program's module data, and reads the start of the text and the address of `go:func.*` from it. Module
    /// data begins with the address of this table (`table`), so this address is searched for. Changes nothing if module
    /// data can't be found.
    fn read_module(&mut self, object: &object::File<'a>, table: u64) {
        // Linkers put the module data into one of these sections.
        const NAMES: [&str; 4] = [".go.module", ".noptrdata", ".data", ".data.rel.ro"];
        let pointer = self.table.pointer;
        // The bytes to search for: the table's address as it is stored in memory.
        let wanted = match (self.table.is_little, pointer) {
            (true, 8) => table.to_le_bytes().to_vec(),
            (false, 8) => table.to_be_bytes().to_vec(),
            (true, _) => (table as u32).to_le_bytes().to_vec(),
            (false, _) => (table as u32).to_be_bytes().to_vec(),
        };
        let sections = NAMES.iter().filter_map(|name| object.section_by_name(name));
        for bytes in sections.filter_map(|section| section.data().ok()) {
            for offset in memchr::memmem::find_iter(bytes, &wanted).filter(|offset| offset.is_multiple_of(pointer)) {
                let module = Words { bytes: &bytes[offset..], ..self.table };
                if self.take_module(&module, table).is_some() {
                    return;
                }
            }
        }
    }

    /// Reads the start of the text and the address of `go:func.*`, if `module` is the program's module data; otherwise
    /// returns `None`. `table` is the address of this table.
    fn take_module(&mut self, module: &Words<'_>, table: u64) -> Option<()> {
        let word = |index: usize| module.pointer_at(index * module.pointer);
        // In real module data, a pointer to the list of names follows the pointer to the table. Otherwise, the bytes
        // matched by chance.
        if word(1)? != table.checked_add(self.parts.names as u64)? {
            return None;
        }
        // The numbers of words are those of fields in the struct `moduledata` (src/runtime/symtab.go).
        self.text = word(22)?;
        self.func_data = Some(if self.version == Version::Go118 { word(38)? } else { word(40)? });
        Some(())
    }
}

/// Reads the value tables of one function. A value table gives a number for each address.
struct ValueReader<'t, 'a> {
    go: &'t GoTable<'a>,
    /// The function's first link-time address.
    start: u64,
    /// The offset of the function's record in `gopclntab`.
    record: usize,
    /// How many more entries may be read for this lookup. Without a limit, reading a malicious table could take hours.
    steps_left: usize,
}

impl<'a> ValueReader<'_, 'a> {
    /// The source file and line of the instruction at `addr`. The file is empty and the line 0 if unknown.
    fn position(&mut self, addr: u64) -> (&'a [u8], u32) {
        let file = self.read_field_value(FIELD_FILES, addr);
        let file = file.and_then(|file| self.go.file(self.record, file)).unwrap_or_default();
        let line = self.read_field_value(FIELD_LINES, addr);
        let line = line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        (file, line)
    }

    /// The value at `addr` in the value table whose offset is in a field of the record. `None` if it has no value
    /// there.
    fn read_field_value(&mut self, field: usize, addr: u64) -> Option<i32> {
        self.read_value(self.go.record_field(self.record, field)?, addr)
    }

    /// The value at `addr` in the value table at offset `table`. `None` if there is no value for this address. The
    /// table is a list of pairs: by how much the value changes, and for how many bytes of code it then stays the same.
    fn read_value(&mut self, table: u32, addr: u64) -> Option<i32> {
        // An offset of 0 means that the function has no such table.
        if table == 0 {
            return None;
        }
        let offset = self.go.parts.values.checked_add(usize::try_from(table).ok()?)?;
        let mut rest = self.go.table.bytes.get(offset..)?;
        // `value` is what the value table gives for the code before `end`. Before the first change, it is -1.
        let (mut value, mut end) = (-1_i32, self.start);
        let mut is_first = true;
        while self.steps_left > 0 {
            self.steps_left -= 1;
            let change = take_varint(&mut rest)?;
            // A change of 0 ends the value table, unless it is the table's first change.
            if change == 0 && !is_first {
                return None;
            }
            is_first = false;
            // The lowest bit is the sign, and the other bits are the number (zigzag encoding).
            let change = if change & 1 == 0 { change >> 1 } else { !(change >> 1) };
            value = value.wrapping_add(change.cast_signed());
            end = end.checked_add(u64::from(take_varint(&mut rest)?).checked_mul(self.go.quantum)?)?;
            if addr < end {
                return Some(value);
            }
        }
        None
    }

    /// The innermost inlined call at `addr`; `None` if there is none. A value table of the function
    /// (`PCDATA_InlTreeIndex`) gives the index of the call's entry in the function's inline tree.
    fn inlined_call(&mut self, addr: u64) -> Option<InlinedCall> {
        let (go, record) = (self.go, self.record);
        let layout = go.inline_layout?;
        let table_count = usize::try_from(go.record_field(record, FIELD_TABLE_COUNT)?).ok()?;
        let (tables, pointer_count) = go.value_tables(record)?;
        if layout.index_table >= table_count || layout.tree_pointer >= pointer_count {
            return None;
        }
        let index_table = go.table.u32_at(tables.checked_add(4 * layout.index_table)?)?;
        // The index is negative where nothing is inlined.
        let index = usize::try_from(self.read_value(index_table, addr)?).ok()?;
        // The data pointers follow the list of value tables.
        let pointers = tables.checked_add(table_count.checked_mul(4)?)?;
        let tree = go.tree_address(pointers, layout.tree_pointer)?;
        let start = tree.checked_add(u64::try_from(index.checked_mul(layout.entry_size)?).ok()?)?;
        let bytes = go.image.loaded(start..start.checked_add(layout.entry_size as u64)?)?;
        let entry = Words { bytes, ..go.table };
        // The offsets of the name and the call site in an entry. Since Go 1.20, entries are shorter.
        let (name_field, call_site_field) = if layout.entry_size == 16 { (4, 8) } else { (12, 16) };
        let name = entry.u32_at(name_field)?;
        let call_site = u64::try_from(entry.i32_at(call_site_field)?).ok()?;
        Some(InlinedCall { index, name, call_site })
    }
}

/// An inlined call: an entry of a function's inline tree.
#[derive(Debug, Clone, Copy)]
struct InlinedCall {
    index: usize,
    /// The offset of the name of the function that was inlined.
    name: u32,
    /// The offset, within the compiled function, of an instruction that has the same source position as the call
    /// (`parentPc` in Go's sources). What is inlined at that instruction is the caller of this call.
    call_site: u64,
}

impl Version {
    /// The format of a table that starts with these bytes; `None` if they don't start a table.
    fn from_magic(magic: [u8; 4], is_little: bool) -> Option<Self> {
        let magic = if is_little { u32::from_le_bytes(magic) } else { u32::from_be_bytes(magic) };
        match magic {
            0xffff_fffb => Some(Self::Go12),
            0xffff_fffa => Some(Self::Go116),
            0xffff_fff0 => Some(Self::Go118),
            0xffff_fff1 => Some(Self::Go120),
            _ => None,
        }
    }

    /// How inline trees are stored; `None` if unknown. `build` is the minor release of Go 1 with which the program was
    /// built.
    fn inline_layout(self, build: Option<u32>) -> Option<InlineLayout> {
        match self {
            Self::Go120 => Some(InlineLayout { index_table: 2, tree_pointer: 3, entry_size: 16 }),
            Self::Go118 | Self::Go116 => Some(InlineLayout { index_table: 2, tree_pointer: 3, entry_size: 20 }),
            Self::Go12 => match build? {
                14..=15 => Some(InlineLayout { index_table: 2, tree_pointer: 4, entry_size: 20 }),
                12..=13 => Some(InlineLayout { index_table: 1, tree_pointer: 2, entry_size: 20 }),
                _ => None,
            },
        }
    }
}

/// Takes a number from the start of `rest`: 7 bits per byte, lowest first, and the highest bit set in all bytes but the
/// last. `None` if it has more than 5 bytes, or if `rest` ends before it.
fn take_varint(rest: &mut &[u8]) -> Option<u32> {
    let mut value = 0_u32;
    for shift in (0..35).step_by(7) {
        let byte = *rest.split_off_first()?;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Finds the link-time address and the bytes of the table. The table has a section of its own. If a linker other than
/// Go's merged that section with others, the table is searched for by its first bytes. `None` if there is none.
fn find_table<'a>(image: &'a Image, object: &object::File<'a>) -> Option<(u64, &'a [u8])> {
    for name in [".gopclntab", ".data.rel.ro.gopclntab"] {
        if let Some(section) = object.section_by_name(name) {
            let start = section.address();
            return Some((start, image.loaded(start..start.checked_add(section.size())?)?));
        }
    }
    // Every Go program has one of these two sections. In other files, the table isn't searched for.
    object.section_by_name(".go.buildinfo").or_else(|| object.section_by_name(".note.go.buildid"))?;
    for section in [".data.rel.ro", ".rodata"].iter().filter_map(|name| object.section_by_name(name)) {
        let Ok(bytes) = section.data() else { continue };
        // A table starts with three bytes 0xff and a fourth byte. In little-endian files, the fourth byte comes first.
        for three_ff in memchr::memmem::find_iter(bytes, b"\xff\xff\xff") {
            for start in [three_ff.checked_sub(1), Some(three_ff)].into_iter().flatten() {
                if start.is_multiple_of(4)
                    && let Some(head) = bytes[start..].first_chunk::<8>()
                    && is_head(head, object.is_little_endian())
                {
                    return Some((section.address().checked_add(start as u64)?, &bytes[start..]));
                }
            }
        }
    }
    None
}

/// True if a table may start with these bytes: magic, two zeros, instruction quantum, size of a pointer.
fn is_head(head: &[u8; 8], is_little: bool) -> bool {
    let [a, b, c, d, 0, 0, quantum, pointer] = *head else { return false };
    let is_known = Version::from_magic([a, b, c, d], is_little).is_some();
    is_known && matches!(quantum, 1 | 2 | 4) && matches!(pointer, 4 | 8)
}

/// The minor release of Go 1 with which the program was built. It is in `.go.buildinfo`, which exists since Go 1.13.
/// `None` if unknown.
fn build_version(image: &Image, object: &object::File<'_>) -> Option<u32> {
    let section = object.section_by_name(".go.buildinfo")?;
    let bytes = section.data().ok()?;
    let head = bytes.first_chunk::<32>().filter(|head| head.starts_with(b"\xff Go buildinf:"))?;
    let (pointer, flags) = (usize::from(head[14]), head[15]);
    // Go 1.18 and later set bit 1 of the flags and store the version in another way. It isn't read then, because the
    // version of the table itself tells how inlined calls are stored.
    if !matches!(pointer, 4 | 8) || flags & 2 != 0 {
        return None;
    }
    // At offset 16, there is a pointer to the version. It leads to a Go string: the address of the text, then its
    // length.
    let words = Words { bytes, is_little: flags & 1 == 0, pointer };
    let string_addr = words.pointer_at(16)?;
    let string_bytes = image.loaded(string_addr..string_addr.checked_add(2 * pointer as u64)?)?;
    let string = Words { bytes: string_bytes, ..words };
    // No version is longer than 32 bytes.
    let (start, len) = (string.pointer_at(0)?, string.pointer_at(pointer)?.min(32));
    let version = std::str::from_utf8(image.loaded(start..start.checked_add(len)?)?).ok()?;
    // In `go1.15.3`, the minor release is 15.
    let minor = version.strip_prefix("go1.")?;
    minor.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Bytes;
    use std::path::Path;

    fn fixture() -> Vec<u8> {
        zstd::decode_all(&include_bytes!("../../../fixtures/go-program/hot.zst")[..]).unwrap()
    }

    fn image(bytes: Vec<u8>) -> Image {
        Image::new(Path::new("hot"), Bytes::Owned(bytes)).unwrap()
    }

    #[test]
    fn calls_are_those_of_the_program_with_debugging_information() {
        const CASES: [(u64, &[(&str, u32)]); 7] = [
            (0x45_7c8a, &[("main.main", 38)]),
            (0x45_7c92, &[("main.outer", 24), ("main.(*shape).area", 17), ("main.main", 40)]),
            (0x45_7d20, &[("main.(*shape).area", 17), ("main.main", 40)]),
            (0x45_7dba, &[("main.inner", 30), ("main.outer", 24), ("main.(*shape).area", 17), ("main.main", 40)]),
            (
                0x45_7de6,
                &[
                    ("main.square", 19),
                    ("main.inner", 31),
                    ("main.outer", 24),
                    ("main.(*shape).area", 17),
                    ("main.main", 40),
                ],
            ),
            (0x45_7e38, &[("main.add[...]", 5), ("main.sum[...]", 10)]),
            (0x45_7e6c, &[("main.sum[...]", 10)]),
        ];
        let image = image(fixture());
        assert!(!image.has_symtab() && image.is_go());
        let go = GoTable::read(&image).unwrap();
        for (addr, expected) in CASES {
            let calls = go.calls(addr);
            let found: Vec<_> = calls.iter().map(|call| (std::str::from_utf8(call.name).unwrap(), call.line)).collect();
            assert_eq!(found, expected, "{addr:#x}");
            assert!(calls.iter().all(|call| call.file == b"./hot.go"), "{addr:#x}");
        }
        let function = go.find(0x45_7de6).unwrap();
        assert_eq!((function.range.start, function.name), (0x45_7c60, &b"main.main"[..]));
        assert!(go.find(go.extent().end).is_none() && go.find(0x1000).is_none());
    }

    /// A table of this version. It has one function, `a.b` at 0x1000, which is at line 7 for 3 quanta and then at line
    /// 9.
    fn table(version: Version) -> Vec<u8> {
        let mut bytes: Vec<u8> = match version {
            Version::Go12 => b"\xfb\xff\xff\xff\0\0\x04\x08".to_vec(),
            Version::Go116 => b"\xfa\xff\xff\xff\0\0\x04\x08".to_vec(),
            Version::Go118 => b"\xf0\xff\xff\xff\0\0\x04\x08".to_vec(),
            Version::Go120 => b"\xf1\xff\xff\xff\0\0\x04\x08".to_vec(),
        };
        let word = |bytes: &mut Vec<u8>, words: &[u64]| words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        let half = |bytes: &mut Vec<u8>, words: &[u32]| words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        // File table: value 0, or 1 if the list of files starts with its length. Line table: 7, then 9.
        let (file, values) = if version == Version::Go12 { (4, 0x100) } else { (2, 0) };
        let tables = [0, file, 10, 0, 16, 3, 4, 7, 0];
        match version {
            Version::Go12 => {
                // The offset of the file list follows the function table.
                word(&mut bytes, &[1, 0x1000, 0x40, 0x1020]);
                half(&mut bytes, &[0x90]);
                bytes.resize(0x40, 0);
                word(&mut bytes, &[0x1000]);
                half(&mut bytes, &[0x80, 0, 0, 0, values + 1, values + 4, 0]);
                bytes.resize(0x80, 0);
                bytes.extend(b"a.b\0");
                bytes.resize(0x90, 0);
                half(&mut bytes, &[2, 0xa0]);
                bytes.resize(0xa0, 0);
                bytes.extend(b"x.go\0");
                bytes.resize(0x100, 0);
            }
            Version::Go116 => {
                word(&mut bytes, &[1, 1, 0x80, 0x90, 0xa0, 0x100, 0x180]);
                bytes.resize(0x80, 0);
                bytes.extend(b"a.b\0");
                bytes.resize(0x90, 0);
                half(&mut bytes, &[0]);
                bytes.resize(0xa0, 0);
                bytes.extend(b"x.go\0");
                bytes.resize(0x100, 0);
            }
            Version::Go118 | Version::Go120 => {
                word(&mut bytes, &[1, 1, 0x1000, 0x80, 0x90, 0xa0, 0x100, 0x180]);
                bytes.resize(0x80, 0);
                bytes.extend(b"a.b\0");
                bytes.resize(0x90, 0);
                half(&mut bytes, &[0]);
                bytes.resize(0xa0, 0);
                bytes.extend(b"x.go\0");
                bytes.resize(0x100, 0);
            }
        }
        bytes.extend(tables);
        if version != Version::Go12 {
            bytes.resize(0x180, 0);
            match version {
                Version::Go116 => {
                    word(&mut bytes, &[0x1000, 24, 0x1020]);
                    word(&mut bytes, &[0x1000]);
                }
                _ => half(&mut bytes, &[0, 12, 0x20, 0]),
            }
            half(&mut bytes, &[0, 0, 0, 0, 1, 4, 0, 0, 0, 0]);
        }
        bytes
    }

    #[test]
    fn functions_and_lines_of_every_version() {
        let carrier = image(fixture());
        let extra = [0; 64];
        for version in [Version::Go12, Version::Go116, Version::Go118, Version::Go120] {
            let bytes = [&table(version)[..], &extra].concat();
            let table = Words { bytes: &bytes, is_little: true, pointer: 8 };
            let go = GoTable::from_words(&carrier, table, None).unwrap();
            let function = go.find(0x100c).unwrap();
            assert_eq!((function.range, function.name), (0x1000..0x1020, &b"a.b"[..]), "{version:?}");
            let at = |addr| go.calls(addr).pop().map(|call| (call.file, call.line));
            assert_eq!(at(0x100b), Some((&b"x.go"[..], 7)), "{version:?}");
            assert_eq!(at(0x100c), Some((&b"x.go"[..], 9)), "{version:?}");
            assert_eq!((at(0xfff), at(0x1020)), (None, None), "{version:?}");
        }
    }

    #[test]
    fn damaged_tables_are_read_as_far_as_they_go() {
        let whole = fixture();
        let start = memchr::memmem::find(&whole, b"\xf0\xff\xff\xff\0\0\x01\x08").unwrap();
        let mut random = 1_u64;
        for _ in 0..200 {
            let mut bytes = whole.clone();
            for _ in 0..40 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = start + 8 + (random >> 33) as usize % 120_000;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = (random >> 20) as u8;
                }
            }
            let image = image(bytes);
            let Some(go) = GoTable::read(&image) else { continue };
            for addr in (0x40_1000..0x45_8000).step_by(0x1357) {
                go.find(addr);
                go.calls(addr);
            }
        }
    }
}
