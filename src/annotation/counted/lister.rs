//! Converts functions of a callgrind file to listings: disassembles their code, and adds jump targets, source lines and
//! calls.

use super::super::annotated::{Calls, Code, Listing, SourceFile, SourceLine, TargetPlace};
use super::super::functions::{CodePlace, Function};
use super::super::lister::{lines, new_listing};
use super::super::names::Names;
use super::super::options::AnnotateOptions;
use super::super::sources::Texts;
use super::functions::{Booked, Stated, code};
use crate::error::Warnings;
use crate::model::Addr;
use crate::model::abi::HOST_MACHINE;
use crate::pipeline::Job;
use crate::resolve::disasm::{Disassembler, TargetKind};
use crate::resolve::dso::DsoId;
use crate::resolve::symbols::image::Image;
use crate::resolve::symbols::{self, Base, Request, SymbolOptions};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Makes listings of functions whose costs were counted by callgrind.
pub(super) struct CountedLister<'a, 'data> {
    pub(super) booked: &'a Booked<'a, 'data>,
    pub(super) options: &'a AnnotateOptions,
    pub(super) names: &'a Names,
}

/// The machine code of a function.
struct FunctionBytes<'a> {
    bytes: &'a [u8],
    addr: u64,
    of: CodeOf<'a>,
}

/// What says how to decode machine code: a machine type, or the ELF file that contains the code.
enum CodeOf<'a> {
    Machine(u16),
    File(&'a Image),
}

/// The name of a function, and an offset in it in bytes.
type NamedOffset = (Vec<u8>, u64);

impl<'a> CountedLister<'a, '_> {
    /// Makes the listings of the functions with the indexes `picked`, in this order.
    pub(super) fn listings(
        &self,
        picked: &[usize],
        functions: &[Function],
        stated: &[Stated],
        job: &Job,
        warnings: &mut Warnings,
    ) -> Vec<Listing> {
        let mut listings: Vec<Listing> = picked.iter().map(|&at| self.listing(at, &functions[at])).collect();
        let named = self.targets(picked, functions, &listings, job, warnings);
        let mut texts = Texts::new(&self.options.recording.symbols.search);
        for (&at, listing) in picked.iter().zip(&mut listings) {
            self.name_targets(&functions[at], listing, &named);
            self.add_sources(&functions[at], &stated[at], listing, &mut texts);
            add_calls(&stated[at], listing);
        }
        warnings.append(texts.into_warnings());
        listings
    }

    fn listing(&self, at: usize, function: &Function) -> Listing {
        let (number, all_versions) = self.names.version(at);
        new_listing(function, number, all_versions, self.code(function), None)
    }

    /// Finds the machine code of a function. The error says why there is none.
    fn bytes(&self, function: &Function) -> Result<FunctionBytes<'a>, &'static str> {
        let found = match &function.place {
            CodePlace::Jit(id) => {
                let machine = self.booked.loaded.machine.unwrap_or(HOST_MACHINE);
                let bytes = self.booked.jit_bytes(*id);
                bytes.map(|bytes| FunctionBytes { bytes, addr: function.last.base, of: CodeOf::Machine(machine) })
            }
            CodePlace::File(dso, extent) => self.booked.images.get(*dso).and_then(|image| {
                let bytes = code(image, extent.clone())?;
                Some(FunctionBytes { bytes, addr: extent.start, of: CodeOf::File(image) })
            }),
            CodePlace::Bpf(_) => None,
            CodePlace::Unknown(why) => return Err(why),
        };
        found.filter(|found| !found.bytes.is_empty()).ok_or("the function has no bytes")
    }

    /// Disassembles a function. Rejects machine code that can't be what was executed.
    fn code(&self, function: &Function) -> Code {
        let FunctionBytes { bytes, addr, of } = match self.bytes(function) {
            Ok(found) => found,
            Err(why) => return Code::Missing(why.to_owned()),
        };
        let syntax = self.options.code.syntax;
        let instructions = match of {
            CodeOf::Machine(machine) => Disassembler::new(machine, syntax).decode(bytes, addr),
            CodeOf::File(image) => Disassembler::decode_file(image, syntax, bytes, addr),
        };
        let lines = lines(instructions, bytes.len(), addr, &function.at);
        let starts: BTreeSet<u64> = lines.iter().map(|line| line.offset).collect();
        let strange = function.at.keys().filter(|offset| !starts.contains(offset)).count();
        // A few costs at addresses inside an instruction are normal: code may jump over a `lock` prefix. More than a
        // few mean that this isn't the code that ran.
        if strange > function.at.len() / 16 {
            return Code::Missing(format!(
                "this is not the code that ran: {strange} of {} addresses with costs are not at the start of an \
                 instruction",
                function.at.len()
            ));
        }
        Code::Listed { addr, bytes: bytes.to_vec(), lines, files: Vec::new() }
    }

    /// For native code: finds the functions at addresses to which the code refers outside of its own function.
    fn targets(
        &self,
        picked: &[usize],
        functions: &[Function],
        listings: &[Listing],
        job: &Job,
        warnings: &mut Warnings,
    ) -> FxHashMap<(DsoId, u64), NamedOffset> {
        let mut wanted: BTreeMap<DsoId, BTreeSet<u64>> = BTreeMap::new();
        for (&at, listing) in picked.iter().zip(listings) {
            let (CodePlace::File(dso, _), Code::Listed { lines, .. }) = (&functions[at].place, &listing.code) else {
                continue;
            };
            // An immediate value may not be an address at all, so it isn't looked up.
            let targets = lines.iter().filter_map(|line| line.target.as_ref());
            let targets = targets.filter(|target| target.kind != TargetKind::Immediate);
            wanted.entry(*dso).or_default().extend(targets.map(|target| target.addr));
        }
        let options = SymbolOptions { lines: false, inlines: false, ..self.options.recording.symbols.clone() };
        let mut named = FxHashMap::default();
        for (dso, addresses) in wanted {
            let request = [Request { dso, offsets: addresses.into_iter().collect(), base: Base::Linked(0) }];
            let parts = symbols::resolve(&request, self.booked.images, &options, &job.pool, warnings);
            let frames = parts.iter().flat_map(|part| (0..part.len()).map(move |at| (part, at)));
            for ((part, at), &addr) in frames.zip(&request[0].offsets) {
                if let Some((name, offset)) =
                    part.get(at).outermost().and_then(|frame| Some((frame.name?, frame.offset?)))
                {
                    named.insert((dso, addr), (part.text(name).to_vec(), offset));
                }
            }
        }
        named
    }

    /// Sets the names of addresses outside of the function to which its instructions refer.
    fn name_targets(&self, function: &Function, listing: &mut Listing, named: &FxHashMap<(DsoId, u64), NamedOffset>) {
        let Code::Listed { lines, .. } = &mut listing.code else { return };
        let at = |addr: u64| match function.place {
            CodePlace::File(dso, _) => named.get(&(dso, addr)).cloned(),
            _ => {
                let map = &self.booked.loaded.map;
                let hit = map.lookup(self.booked.pid, Addr(addr), None)?;
                let name = self.options.recording.symbols.display_name(map.code(hit.code).name);
                Some((name.into_owned(), hit.offset))
            }
        };
        let targets = lines.iter_mut().filter_map(|line| line.target.as_mut());
        for target in targets.filter(|target| target.place == TargetPlace::Unknown) {
            if let Some((name, offset)) = at(target.addr) {
                target.place = TargetPlace::Function(name, offset);
            }
        }
    }

    /// Adds source lines: those in the callgrind file or, for JIT code, which callgrind has no lines for, those of the
    /// jitdump.
    fn add_sources(&self, function: &Function, stated: &Stated, listing: &mut Listing, texts: &mut Texts) {
        let Code::Listed { lines, files, .. } = &mut listing.code else { return };
        let of_dump = match function.place {
            CodePlace::Jit(id) => self.booked.loaded.map.code(id).lines.entries(),
            _ => Vec::new(),
        };
        let mut places: FxHashMap<Vec<u8>, usize> = FxHashMap::default();
        places.extend(files.iter().enumerate().map(|(at, file)| (file.name.clone(), at)));
        for line in lines {
            let entry = of_dump.partition_point(|entry| entry.offset <= line.offset).checked_sub(1);
            let of_dump = entry.map(|entry| (of_dump[entry].file, of_dump[entry].line));
            let counted =
                stated.lines.get(&line.offset).map(|source| (&self.booked.costs.files[source.file][..], source.line));
            let Some((name, number)) = counted.or(of_dump).filter(|(name, line)| *line > 0 && *name != b"???") else {
                continue;
            };
            let file = places.get(name).copied().unwrap_or_else(|| {
                let text = texts.read(name);
                files.push(SourceFile::new(name, text));
                places.insert(name.to_vec(), files.len() - 1);
                files.len() - 1
            });
            line.source = Some(SourceLine { file, line: number });
        }
    }
}

/// Adds to a listing the inclusive costs, and the calls of each instruction.
fn add_calls(stated: &Stated, listing: &mut Listing) {
    listing.inclusive.clone_from(&stated.inclusive);
    let Code::Listed { lines, .. } = &mut listing.code else { return };
    for line in lines {
        for (_, calls) in stated.calls.range(line.offset..line.offset + line.len) {
            Calls::join(&mut line.calls, calls);
        }
    }
}
