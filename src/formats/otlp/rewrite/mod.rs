//! Names for locations that have none, as the eBPF profiler and others leave them: native code by file and address, JIT
//! code by address alone.
//!
//! ```text
//! Location { address: 0x1139, mapping_index: 3 }                       no line: the backend shall find it
//! Mapping  { file_offset: …, filename: "work", attribute: build_id.gnu = 93b9… }
//!   asked: the file of this build ID, 0x1139                           or a process and an address in its memory
//!   told:  inlined in f, f at a.c:3
//! Location { …, lines: [{ function_index: 9, line: 1 }, { function_index: 8, line: 3 }] }
//! ```
//!
//! * Functions and strings come in behind those of the dictionary; nothing gets another number.
//! * The entry for a return address in a location that is not the leaf's, or an address inside the call before it, is
//!   one: a byte before either of them is inside the call.
//! * The dictionary is of all processes. If those of several, or calls and leaves, share a location that means
//!   different functions, each but the first gets a location of its own, behind the others, and its samples stacks with
//!   it.
//! * All else passes byte for byte: messages one by one, so that memory grows with the largest, and with the addresses.

mod edits;
mod framed;
mod plan;
mod uses;

use crate::analysis::quantity::counted;
use crate::contract::unsymbolized::{Ask, BareAddress, CodeFile, Unsymbolized};
use crate::error::{Result, Skipped, Warning, Warnings};
use crate::formats::otlp::message::Message;
use crate::formats::otlp::version::Notation;
use crate::model::interner::Interner;
use framed::{Framed, Opened, frames};
use plan::Asked;
use std::io::Write;
use uses::LocationUses;

/// Messages, some of whose locations have no name.
#[derive(Debug)]
struct UnsymbolizedOtlp<'d> {
    bytes: &'d [u8],
    files: Interner<CodeFile, u32>,
    /// In ascending order.
    addresses: Vec<BareAddress>,
    /// The locations in files whose version is not known, in all messages.
    unversioned: u64,
}

/// Reads messages. Those that are damaged are passed on as they are.
pub fn open<'d>(bytes: &'d [u8], warnings: &mut Warnings) -> Result<Box<dyn Unsymbolized + 'd>> {
    let mut profile = UnsymbolizedOtlp { bytes, files: Interner::default(), addresses: Vec::new(), unversioned: 0 };
    let (mut read, mut first, mut skipped) = (0, None, Skipped::new("message"));
    for framed in frames(bytes) {
        match profile.ask_for(&framed) {
            Ok(()) => read += 1,
            Err(error) if read == 0 && first.is_none() => first = Some(error),
            Err(error) => skipped.add(error),
        }
    }
    if let Some(error) = first.filter(|_| read == 0) {
        return Err(error);
    }
    warnings.extend(skipped.into_warning());
    if profile.unversioned > 0 {
        let locations = counted(profile.unversioned, "location");
        let why = "their mappings have neither a build ID nor an htlhash, so the version of the file is not known";
        warnings.push(Warning::new(format!("{locations} in files stay unnamed: {why}")));
    }
    Ok(Box::new(profile))
}

impl UnsymbolizedOtlp<'_> {
    /// Takes up what a message requests.
    fn ask_for(&mut self, framed: &Framed<'_>) -> Result<()> {
        let opened = framed.open()?;
        let message = Message::read(&opened.message, Notation::Protobuf)?;
        let uses = LocationUses::find(&message, &mut self.files);
        self.unversioned += uses.unversioned;
        self.addresses.extend(uses.addresses());
        self.addresses.sort_unstable();
        self.addresses.dedup();
        Ok(())
    }
}

impl Unsymbolized for UnsymbolizedOtlp<'_> {
    fn addresses(&self) -> &[BareAddress] {
        &self.addresses
    }

    fn files(&self) -> &[CodeFile] {
        self.files.items()
    }

    fn write(&self, ask: &Ask<'_>, out: &mut dyn Write) -> Result<()> {
        // Each file is known by now.
        let mut files = self.files.clone();
        let asked = |address: &BareAddress| self.addresses.binary_search(address).map_or_else(|_| Vec::new(), ask);
        for framed in frames(self.bytes) {
            // Damaged messages stay as they are, and were reported.
            let opened = framed.open();
            let is_read = |opened: &Opened<'_>| Message::read(&opened.message, Notation::Protobuf).is_ok();
            let Some(opened) = opened.ok().filter(is_read) else {
                out.write_all(framed.whole)?;
                continue;
            };
            match named(&opened, &mut files, &asked)? {
                Some(changed) => framed.write(&changed, &opened, out)?,
                None => out.write_all(framed.whole)?,
            }
        }
        Ok(())
    }
}

/// The rewritten message; `None` if it stays.
fn named(opened: &Opened<'_>, files: &mut Interner<CodeFile, u32>, asked: &Asked<'_>) -> Result<Option<Vec<u8>>> {
    let message = Message::read(&opened.message, Notation::Protobuf)?;
    let uses = LocationUses::find(&message, files);
    let plan = plan::Plan::of(&message, &uses, asked)?;
    if plan.is_empty() {
        return Ok(None);
    }
    edits::written(&opened.message, &message, &plan).map(Some)
}
