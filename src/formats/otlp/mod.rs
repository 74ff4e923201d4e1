//! OpenTelemetry's profiles (OTLP, `opentelemetry.proto.profiles.v1development`), as collectors, the eBPF profiler,
//! async-profiler and Pyroscope pass them on: protocol buffers, or the same in JSON.
//!
//! ```text
//! ProfilesData
//!   resource_profiles  a process or container: host.name, process.pid, service.name, …
//!     scope_profiles   who measured
//!       profiles       one type of values with its unit and period
//!         samples      a stack, attributes (thread), a link (span), and values or times or both
//!   dictionary         stacks → locations → mappings, functions; attributes, strings: shared by all of the message
//! ```
//!
//! | file | what it is for |
//! |---|---|
//! | `framing` | what an input is made of: one message, or many behind each other, and how it is known |
//! | `schema` | the messages: numbers and JSON names of their fields |
//! | `json` | JSON → protocol buffers and back, by the schema |
//! | `version` | older protocols, which are refused |
//! | `message`, `dictionary`, `owner`, `labels`, `modules`, `read` | a message → stacks |
//! | `rewrite` | messages → the same with names |
//! | `messages`, `places`, `resource`, `draft`, `write` | rows → messages |
//!
//! Schema: <https://github.com/open-telemetry/opentelemetry-proto>; rules of OTLP's JSON:
//! <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

mod dictionary;
mod draft;
mod framing;
mod json;
mod labels;
mod message;
mod messages;
mod modules;
mod owner;
mod places;
mod read;
mod resource;
mod rewrite;
mod schema;
mod version;
mod write;

pub use framing::sniff;
pub use rewrite::open as open_unsymbolized;

use crate::contract::format::{ReadOptions, WriteOptions};
use crate::contract::rows;
use crate::contract::rows::RowWriter;
use crate::error::{Result, Warnings};
use crate::model::stacks::Profile;
use std::io::{self, Write};
use write::{Framing, OtlpWriter};

/// Reads all messages of an input.
pub fn read(input: &mut dyn io::Read, options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut reader = read::Reader::new(options);
    framing::each_message(input, warnings, &mut |message, notation| reader.message(message, notation))?;
    Ok(reader.finish(warnings))
}

/// Starts an output of protocol buffers.
pub fn start<'o>(options: &WriteOptions, out: Box<dyn Write + 'o>) -> Result<Box<dyn RowWriter + 'o>> {
    Ok(Box::new(OtlpWriter::new(Framing::Protobuf, options, out)))
}

/// Starts an output of JSON, a line a message.
pub(crate) fn start_json<'o>(options: &WriteOptions, out: Box<dyn Write + 'o>) -> Result<Box<dyn RowWriter + 'o>> {
    Ok(Box::new(OtlpWriter::new(Framing::Json, options, out)))
}

/// Writes a profile that is all there.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    rows::write_whole(&mut *start(options, Box::new(out))?, profile)
}

/// The same in JSON.
pub fn write_json(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    rows::write_whole(&mut *start_json(options, Box::new(out))?, profile)
}
