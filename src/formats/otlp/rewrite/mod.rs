//! Adds names to locations that have none. The eBPF profiler and others leave them unsymbolized: native code is given
//! by file and address, JIT code by address alone.
//!
//! ```text
//! Location { address: 0x1139, mapping_index: 3 }                       no line: symbolization is left to the backend
//! Mapping  { file_offset: …, filename: "work", attribute: build_id.gnu = 93b9… }
//!   question: address 0x1139 in the file with this build ID            (for JIT code: a process and a memory address)
//!   answer:   f at a.c:3, and a call inlined in it
//! Location { …, lines: [{ function_index: 9, line: 1 }, { function_index: 8, line: 3 }] }
//! ```
//!
//! * New functions and strings are appended to the dictionary, so existing indices stay valid.
//! * A location that is not the innermost frame holds either a return address or an address inside the call
//!   instruction. Both are looked up the same way, since the byte before either address is still part of the call.
//! * All processes share the dictionary. The same location can mean different functions in different processes, or as a
//!   caller and as the innermost frame. The first meaning keeps the location; each other one gets a copy at the end of
//!   the table, and its samples get copies of their stacks.
//! * Messages in which nothing gets a name pass through byte for byte. In others, all known fields keep their values.
//!   Unknown fields can't be kept; they are counted and reported.
//! * Messages are handled one at a time, so memory depends on the largest message and the number of distinct addresses.

mod framed;
mod names;
mod uses;

use crate::analysis::quantity::counted;
use crate::contract::unsymbolized::{BareAddress, CodeFile, FindCalls, Unsymbolized};
use crate::error::{Result, Skipped, Warning, Warnings};
use crate::formats::otlp::messages::{ProfilesData, SCHEMA};
use crate::model::interner::Interner;
use framed::{Framed, Opened, split_messages};
use names::LookUp;
use prost::Message;
use prost::bytes::Bytes;
use std::io::Write;
use uses::LocationUses;

/// An input with locations that need names.
#[derive(Debug)]
struct UnsymbolizedOtlp<'d> {
    bytes: &'d [u8],
    /// The files that contain the addresses. A [`BareAddress`] has the number of its file.
    files: Interner<CodeFile, u32>,
    /// The addresses to look up, each once, in ascending order.
    addresses: Vec<BareAddress>,
    /// Number of locations, in all messages, that lie in files whose version is unknown.
    unversioned: u64,
    /// The unknown fields of messages that need names. Such fields get lost when a message is written again.
    unknown: Skipped,
}

/// Opens an input and collects the addresses to look up. Damaged messages will be passed through unchanged.
pub fn open<'d>(bytes: &'d [u8], warnings: &mut Warnings) -> Result<Box<dyn Unsymbolized + 'd>> {
    let mut profile = UnsymbolizedOtlp {
        bytes,
        files: Interner::default(),
        addresses: Vec::new(),
        unversioned: 0,
        unknown: Skipped::new("unknown field"),
    };
    // Messages that can't be read are skipped. But if there are no others, fail with the error of the very first
    // message. So that error is kept apart from the others, in `first_error`.
    let (mut read, mut first_error, mut skipped) = (0, None, Skipped::new("message"));
    for framed in split_messages(bytes) {
        match profile.collect_addresses(&framed) {
            Ok(()) => read += 1,
            Err(error) if read == 0 && first_error.is_none() => first_error = Some(error),
            Err(error) => skipped.add(error),
        }
    }
    if let Some(error) = first_error {
        if read == 0 {
            return Err(error);
        }
        // The warning quotes the error that is added first, so `first_error` is put before the others.
        let later = std::mem::replace(&mut skipped, Skipped::new("message"));
        skipped.add(error);
        skipped.append(later);
    }
    warnings.extend(skipped.into_warning());
    warnings.extend(std::mem::take(&mut profile.unknown).into_warning());
    if profile.unversioned > 0 {
        let locations = counted(profile.unversioned, "location");
        let why = "the mappings of these locations state neither a build ID nor the attribute \
                   process.executable.build_id.htlhash, so it is unknown which version of the file ran";
        warnings.push(Warning::new(format!("{locations} in files stay unnamed: {why}")));
    }
    Ok(Box::new(profile))
}

impl UnsymbolizedOtlp<'_> {
    /// Collects the addresses to look up for one message. If there are any, also counts the message's unknown fields,
    /// which would be lost if the message is written with names.
    fn collect_addresses(&mut self, framed: &Framed<'_>) -> Result<()> {
        let opened = framed.open()?;
        let message = ProfilesData::from_bytes(Bytes::copy_from_slice(&opened.message))?;
        let uses = LocationUses::find(&message, &mut self.files);
        self.unversioned += uses.unversioned;
        if !uses.list.is_empty() {
            SCHEMA.find_unknown(&opened.message, &mut self.unknown);
        }
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

    /// Writes the messages with names. `find_calls` gets the index of an address in `addresses`, and returns the calls
    /// at that address.
    fn write(&mut self, find_calls: &FindCalls<'_>, out: &mut dyn Write) -> Result<()> {
        // `named_message` collects a message's addresses again. Each has the number of its file, which must be the same
        // as in `self.addresses`. So it gets a copy of the table in which `open` numbered the files. All files are in
        // there already, so none is added.
        let mut files = self.files.clone();
        let look_up = |address: &BareAddress| match self.addresses.binary_search(address) {
            Ok(index) => find_calls(index),
            Err(_) => Vec::new(),
        };
        for framed in split_messages(self.bytes) {
            // Damaged messages pass through unchanged; `open` has warned about them.
            let Ok(opened) = framed.open() else {
                out.write_all(framed.whole)?;
                continue;
            };
            match named_message(&opened, &mut files, &look_up)? {
                Some(named) => framed.write(&named, &opened, out)?,
                None => out.write_all(framed.whole)?,
            }
        }
        Ok(())
    }
}

/// The message with names added; `None` if no location gets a name or the message is damaged. `files` are the files
/// that were numbered so far, and `look_up` returns the calls at an address.
fn named_message(
    opened: &Opened<'_>,
    files: &mut Interner<CodeFile, u32>,
    look_up: &LookUp<'_>,
) -> Result<Option<Vec<u8>>> {
    let Ok(mut message) = ProfilesData::from_bytes(Bytes::copy_from_slice(&opened.message)) else { return Ok(None) };
    let uses = LocationUses::find(&message, files);
    if uses.list.is_empty() {
        return Ok(None);
    }
    let is_changed = names::add_names(&mut message, &uses, look_up)?;
    Ok(if is_changed { Some(message.encode_to_vec()) } else { None })
}
