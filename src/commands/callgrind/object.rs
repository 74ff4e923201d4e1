//! Writes the ELF object that accompanies the named profile. It has the code at its run-time addresses, for
//! KCachegrind's machine code view.

use crate::bytes::cursor::Endian;
use crate::error::{Error, Result, Warnings};
use crate::formats::elf_image::{Addressing, ImageBuilder, Target};
use crate::io::Output;
use crate::jit::raw_code::RawCode;
use crate::model::Addr;
use crate::model::abi::HOST_MACHINE;
use crate::model::code::{Code, OriginId};
use crate::pipeline::callgrind::CodeNames;
use rustc_hash::FxHashMap;
use std::io::{Seek, Write};

/// Counts of the code ranges in the object, for the summary.
pub(super) struct ObjectContents {
    /// The number of code ranges in the object.
    pub(super) pieces: usize,
    /// The number of code ranges whose machine code is known.
    pub(super) with_code: usize,
}

/// Writes an ELF object with all code of `names` to `output`. `raw` has the machine code of functions that only a perf
/// map names, and the origin ID of that map. `machine` is ELF's `e_machine`; `None` means the host's. Fails if the
/// output isn't a regular file.
pub(super) fn write<'data>(
    names: &CodeNames<'_, 'data>,
    raw: Option<(&'data RawCode, OriginId)>,
    machine: Option<u16>,
    mut output: Output,
    warnings: &mut Warnings,
) -> Result<ObjectContents> {
    let mut raw_bytes = FxHashMap::default();
    if let Some((raw, origin)) = raw {
        // The functions of the perf map, in the order of its lines.
        let listed = names.codes_of_origin(origin);
        let lines: Vec<Code<'data>> = listed.iter().map(|(_, code)| *code).collect();
        for (line, bytes) in raw.match_lines(&lines, warnings) {
            raw_bytes.insert(listed[line].0, bytes);
        }
    }
    let mut codes: Vec<(Code<'data>, Addr)> = Vec::new();
    for entry in names.visible_entries() {
        let mut code = names.code(entry);
        code.bytes = code.bytes.or_else(|| raw_bytes.get(&entry.id).copied());
        codes.push((code, Addr(entry.addr)));
    }
    // Callgrind's files don't state a byte order, so the object gets that of the host.
    let endian = if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };
    // `RunTime`: the object has the code at the addresses at which it ran, which are those in the profile.
    let mut builder = ImageBuilder::new(Target::new(machine.unwrap_or(HOST_MACHINE), endian), Addressing::RunTime);
    for (code, addr) in &codes {
        builder.add(code, *addr);
    }
    // The parts of the object are written out of order, at offsets, so a pipe won't do.
    let Some(file) = output.as_file()? else {
        let message = "the ELF object can only be written to a regular file; pass one with --object FILE";
        return Err(Error::new(message));
    };
    let mut file = std::io::BufWriter::new(file);
    file.rewind()?;
    builder.build().write(&mut file)?;
    file.flush()?;
    drop(file);
    output.commit()?;
    let with_code = codes.iter().filter(|(code, _)| code.bytes.is_some()).count();
    Ok(ObjectContents { pieces: codes.len(), with_code })
}
