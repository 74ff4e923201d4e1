//! Parses the feature BPF_PROG_INFO: u32 number of programs, then per program (`struct perf_bpil`) u32 length of the
//! info, u32 length of the data, u64 mask of the arrays present, `struct bpf_prog_info`, the data.
//!
//! Where the kernel has pointers to arrays, the file has offsets in the data. The struct is shorter or longer in other
//! kernel versions; missing fields count as 0. `jited_line_info` has the address of each entry of `line_info`.

use crate::bytes::cursor::{Cursor, Endian};
use crate::error::{Error, Result, Skipped};
use crate::model::bpf::{BpfLine, BpfText};

/// The description of a BPF program.
#[derive(Debug)]
pub(super) struct ProgramInfo<'data> {
    pub(super) id: u32,
    /// Hash of the program's instructions.
    pub(super) tag: [u8; 8],
    pub(super) name: &'data [u8],
    /// ID of the program's BTF object.
    pub(super) btf: u32,
    pub(super) functions: Vec<FunctionInfo<'data>>,
    line_info: InfoArray<'data>,
    line_addrs: InfoArray<'data>,
}

/// A function of a BPF program.
#[derive(Debug)]
pub(super) struct FunctionInfo<'data> {
    pub(super) addr: u64,
    pub(super) bytes: &'data [u8],
    /// Hash of the function's own instructions; `None` if it wasn't recorded.
    pub(super) tag: Option<[u8; 8]>,
    /// Type ID of the function in the BTF object; `None` if it wasn't recorded.
    pub(super) type_id: Option<u32>,
}

/// An array that belongs to a program's description, such as its machine code or its source lines.
#[derive(Debug, Clone, Copy)]
struct InfoArray<'data> {
    bytes: &'data [u8],
    /// Length of an entry in bytes. It may be longer than the fields we know.
    entry_len: usize,
    endian: Endian,
}

/// Where `struct bpf_prog_info` describes one of its arrays, and what the array's entries look like.
struct ArrayField {
    name: &'static str,
    /// The array's bit in [`RawProgram::array_mask`] (`PERF_BPIL_*`).
    bit: u32,
    /// Offset in the struct of the field that holds the array's offset in the data.
    data_field: usize,
    /// Number of entries.
    count: u32,
    /// Length in bytes of an entry in this file.
    entry_len: u32,
    /// Length in bytes of an entry in the first version of the struct. Shorter entries are an error.
    min_entry_len: u32,
}

/// A BPF program as stored in the file.
struct RawProgram<'data> {
    /// The program's `struct bpf_prog_info`, which says where in `data` each array is.
    info: Cursor<'data>,
    /// The arrays, such as machine code and line tables.
    data: Cursor<'data>,
    /// One bit per array that `data` contains (`PERF_BPIL_*`).
    array_mask: u64,
}

/// Calls `each` for every program. An array that can't be read is left empty and counted in `skipped`. A truncated
/// program ends the walk.
pub(super) fn for_each_program<'data>(
    mut section: Cursor<'data>,
    skipped: &mut Skipped,
    mut each: impl FnMut(&ProgramInfo<'data>),
) {
    let count = match section.u32("number of BPF programs") {
        Ok(count) => count,
        Err(error) => return skipped.add(error),
    };
    for _ in 0..count {
        match RawProgram::read(&mut section) {
            Ok(raw) => each(&raw.parse(skipped)),
            Err(error) => return skipped.add(error),
        }
    }
}

impl<'data> RawProgram<'data> {
    fn read(section: &mut Cursor<'data>) -> Result<Self> {
        let (info_len, data_len) = (section.u32("length of bpf_prog_info")?, section.u32("length of BPF arrays")?);
        let array_mask = section.u64("bits of BPF arrays")?;
        let info = section.part(info_len.into(), "bpf_prog_info")?;
        let data = section.part(data_len.into(), "arrays of bpf_prog_info")?;
        Ok(Self { info, data, array_mask })
    }

    /// `N` bytes of the program's `struct bpf_prog_info`, from `offset` on; zeros if the struct is too short.
    fn bytes<const N: usize>(&self, offset: usize) -> &'data [u8; N] {
        self.info.rest().get(offset..).and_then(|bytes| bytes.first_chunk()).unwrap_or(&[0; N])
    }

    fn u32(&self, offset: usize) -> u32 {
        self.info.endian().u32(*self.bytes(offset))
    }

    fn u64(&self, offset: usize) -> u64 {
        self.info.endian().u64(*self.bytes(offset))
    }

    /// Reads an array. It is empty if the recorder didn't ask the kernel for it. An array that can't be read is also
    /// empty, and is counted in `skipped`.
    fn array(&self, field: &ArrayField, skipped: &mut Skipped) -> InfoArray<'data> {
        let bytes = self.array_bytes(field).unwrap_or_else(|error| {
            skipped.add(error);
            &[]
        });
        // `rows` and `len` divide by the length of an entry. An empty array may state the length 0, so make it 1.
        InfoArray { bytes, entry_len: (field.entry_len as usize).max(1), endian: self.info.endian() }
    }

    /// The bytes of an array, from the program's `data`; empty if the program doesn't have the array. Fails if the
    /// array's entries are too short or its end is beyond `data`.
    fn array_bytes(&self, field: &ArrayField) -> Result<&'data [u8]> {
        if self.array_mask >> field.bit & 1 == 0 || field.count == 0 {
            return Ok(&[]);
        }
        let ArrayField { name, data_field, count, entry_len, min_entry_len, .. } = *field;
        if entry_len < min_entry_len {
            return Err(self
                .error(format!("entries of {name} have {entry_len} bytes, but at least {min_entry_len} are needed")));
        }
        let mut data = self.data;
        data.bytes(self.u64(data_field), &format!("the data before {name}"))?;
        data.bytes(u64::from(count) * u64::from(entry_len), name)
    }

    fn error(&self, message: String) -> Error {
        self.info.error(message)
    }

    /// Parses `struct bpf_prog_info` (include/uapi/linux/bpf.h). For each array, `bit` is the number of the flag that
    /// says whether the program has the array, and `min_entry_len` the least length of its entries in bytes.
    /// `data_field`, and the numbers in calls such as `self.u32(16)`, are offsets in the struct.
    fn parse(&self, skipped: &mut Skipped) -> ProgramInfo<'data> {
        // The entries of most arrays always have the same length. For three arrays, the struct states the length,
        // because later kernels may append fields to the entries.
        let mut array = |field: ArrayField| self.array(&field, skipped);
        let code = array(ArrayField {
            name: "jited_prog_insns",
            bit: 0,
            data_field: 24,
            count: self.u32(16),
            entry_len: 1,
            min_entry_len: 1,
        });
        let addrs = array(ArrayField {
            name: "jited_ksyms",
            bit: 3,
            data_field: 112,
            count: self.u32(104),
            entry_len: 8,
            min_entry_len: 8,
        });
        let lens = array(ArrayField {
            name: "jited_func_lens",
            bit: 4,
            data_field: 120,
            count: self.u32(108),
            entry_len: 4,
            min_entry_len: 4,
        });
        let types = array(ArrayField {
            name: "func_info",
            bit: 5,
            data_field: 136,
            count: self.u32(144),
            entry_len: self.u32(132),
            min_entry_len: 8,
        });
        let line_info = array(ArrayField {
            name: "line_info",
            bit: 6,
            data_field: 152,
            count: self.u32(148),
            entry_len: self.u32(172),
            min_entry_len: 16,
        });
        let line_addrs = array(ArrayField {
            name: "jited_line_info",
            bit: 7,
            data_field: 160,
            count: self.u32(168),
            entry_len: self.u32(176),
            min_entry_len: 8,
        });
        let tags = array(ArrayField {
            name: "prog_tags",
            bit: 8,
            data_field: 184,
            count: self.u32(180),
            entry_len: 8,
            min_entry_len: 8,
        });
        let functions = self.functions(code.bytes, [addrs, lens, types, tags], skipped);
        let name: &[u8; 16] = self.bytes(64);
        let name = &name[..memchr::memchr(0, name).unwrap_or(name.len())];
        ProgramInfo { id: self.u32(4), tag: *self.bytes(8), name, btf: self.u32(128), functions, line_info, line_addrs }
    }

    /// The program's functions. Their machine code is stored back to back in `code`, so the lengths tell where each
    /// begins. If a function is longer than what is left of `code`, it and all later ones are left out.
    fn functions(
        &self,
        mut code: &'data [u8],
        [addrs, lens, types, tags]: [InfoArray<'data>; 4],
        skipped: &mut Skipped,
    ) -> Vec<FunctionInfo<'data>> {
        let mut functions = Vec::with_capacity(addrs.len().min(lens.len()));
        for (index, (addr, len)) in addrs.rows().zip(lens.rows()).enumerate() {
            let len = lens.word(len, 0) as usize;
            let Some((bytes, rest)) = code.split_at_checked(len) else {
                let left = code.len();
                skipped.add(self.error(format!(
                    "function {index} of a BPF program has {len} bytes, but only {left} bytes of the program's code \
                     are left"
                )));
                break;
            };
            let addr = addrs.long(addr);
            let tag = tags.rows().nth(index).and_then(|tag| tag.first_chunk()).copied();
            // `struct bpf_func_info`: u32 offset of the function, u32 type ID.
            let type_id = types.rows().nth(index).map(|row| types.word(row, 4));
            functions.push(FunctionInfo { addr, bytes, tag, type_id });
            code = rest;
        }
        functions
    }
}

impl ProgramInfo<'_> {
    /// The source line entries of each function, sorted by offset. The outer list has the order of [`Self::functions`].
    /// Entries whose address isn't in a function are left out.
    pub(super) fn lines(&self) -> Vec<Vec<BpfLine>> {
        let mut lines_by_function = vec![Vec::new(); self.functions.len()];
        // The first address of each function with the function's index, sorted by address.
        let mut starts: Vec<(u64, usize)> = self.functions.iter().map(|function| function.addr).zip(0..).collect();
        starts.sort_unstable();
        for (entry, addr) in self.line_info.rows().zip(self.line_addrs.rows()) {
            let addr = self.line_addrs.long(addr);
            // The function with the entry's address is the last one that starts at or before it.
            let started = starts.partition_point(|&(start, _)| start <= addr);
            let Some(&(start, function)) = starts[..started].last() else { continue };
            let offset = addr - start;
            if offset < self.functions[function].bytes.len() as u64 {
                // `struct bpf_line_info`: u32 number of the BPF instruction (not needed, because `line_addrs` has the
                // address of the machine code), u32 file name, u32 source text, and a u32 with line and column.
                lines_by_function[function].push(BpfLine {
                    offset: offset as u32,
                    file: BpfText(self.line_info.word(entry, 4)),
                    text: BpfText(self.line_info.word(entry, 8)),
                    line: self.line_info.word(entry, 12) >> COLUMN_BITS,
                });
            }
        }
        for lines in &mut lines_by_function {
            lines.sort_by_key(|line| line.offset);
        }
        lines_by_function
    }
}

/// Number of low bits in `line_col` that hold the column.
const COLUMN_BITS: u32 = 10;

impl<'data> InfoArray<'data> {
    fn rows(&self) -> std::slice::ChunksExact<'data, u8> {
        self.bytes.chunks_exact(self.entry_len)
    }

    fn len(&self) -> usize {
        self.bytes.len() / self.entry_len
    }

    /// The 32-bit number at an offset in an array entry (`row`); 0 if the entry is too short.
    fn word(&self, row: &[u8], offset: usize) -> u32 {
        row.get(offset..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| self.endian.u32(*bytes))
    }

    /// The 64-bit number at the start of an array entry (`row`); 0 if the entry is too short.
    fn long(&self, row: &[u8]) -> u64 {
        row.first_chunk().map_or(0, |bytes| self.endian.u64(*bytes))
    }
}
