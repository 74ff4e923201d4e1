//! Writes the ELF object that accompanies the named profile. It has the code at its run-time addresses, for
//! KCachegrind's machine code view.

use crate::bytes::cursor::Endian;
use crate::error::{Error, Result, Warnings};
use crate::io::Output;
use crate::model::Addr;
use crate::model::abi::HOST_MACHINE;
use crate::model::code::{Code, OriginId};
use crate::pipeline::callgrind::{CodeNames, JitEntry};
use crate::records::elf_image::{Addressing, ImageBuilder, Target};
use crate::sources::raw_code::RawCode;
use rustc_hash::FxHashMap;
use std::io::{Seek, Write};

/// An ELF object that is completely written but doesn't have its final name yet.
pub(super) struct NewObject {
    output: Output,
    pub(super) contents: ObjectContents,
    pub(super) warnings: Warnings,
}

impl NewObject {
    /// Gives the object its final name.
    pub(super) fn commit(self) -> Result<()> {
        self.output.commit()
    }
}

/// Counts of the code ranges in the object, for the summary.
pub(super) struct ObjectContents {
    /// The number of code ranges in the object.
    pub(super) pieces: usize,
    /// The number of code ranges whose machine code is known.
    pub(super) with_code: usize,
}

/// Writes an ELF object with all code of `names` to `output`. `raw` has the machine code of functions that only a perf
/// map names, and the origin ID of that map. `machine` is ELF's `e_machine`; `None` means the host's. Fails if the
/// output isn't seekable.
pub(super) fn write<'data>(
    names: &CodeNames<'_, 'data>,
    raw: Option<(&'data RawCode, OriginId)>,
    machine: Option<u16>,
    mut output: Output,
) -> Result<NewObject> {
    let (mut bytes, mut warnings) = (FxHashMap::default(), Warnings::new());
    if let Some((raw, origin)) = raw {
        let listed = names.codes_of_origin(origin);
        let lines: Vec<Code<'data>> = listed.iter().map(|(_, code)| *code).collect();
        bytes.extend(raw.match_lines(&lines, &mut warnings).into_iter().map(|(line, bytes)| (listed[line].0, bytes)));
    }
    let with_bytes = |entry: &JitEntry<'data>| {
        let code = names.code(entry);
        Code { bytes: code.bytes.or_else(|| bytes.get(&entry.id).copied()), ..code }
    };
    let mut codes: Vec<(Code<'data>, Addr)> = Vec::with_capacity(names.visible_entries().count());
    codes.extend(names.visible_entries().map(|entry| (with_bytes(entry), Addr(entry.addr))));
    let endian = if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };
    let mut builder = ImageBuilder::new(Target::new(machine.unwrap_or(HOST_MACHINE), endian), Addressing::RunTime);
    for (code, addr) in &codes {
        builder.add(code, *addr);
    }
    let with_code = codes.iter().filter(|(code, _)| code.bytes.is_some()).count();
    let Some(file) = output.as_file()? else {
        return Err(Error::new("the object must be a regular file, because it is not written sequentially"));
    };
    let mut file = std::io::BufWriter::new(file);
    file.rewind()?;
    builder.build().write(&mut file)?;
    file.flush()?;
    drop(file);
    let contents = ObjectContents { pieces: codes.len(), with_code };
    Ok(NewObject { output, contents, warnings })
}
