//! OpenTelemetry profiles (OTLP, `opentelemetry.proto.profiles.v1development`), as Collectors, the eBPF profiler,
//! async-profiler and Pyroscope send and store them. A message is a protocol buffer or its JSON form.
//!
//! ```text
//! ProfilesData
//!   resource_profiles  one process or container: host.name, process.pid, service.name, …
//!     scope_profiles   the tool that measured
//!       profiles       one value type, with its unit and period
//!         samples      a stack, attributes (thread), a link (trace span), and values, timestamps or both
//!   dictionary         stacks → locations → mappings, functions; attributes, strings: shared by the whole message
//! ```
//!
//! | file | what it is for |
//! |---|---|
//! | `framing` | recognizes an input and splits it into messages |
//! | `messages` | the messages and their fields, in binary and as JSON |
//! | `json` | reads and writes fields whose JSON form differs from serde's default |
//! | `version` | decodes messages; refuses those of older protocol versions |
//! | `dictionary`, `owner`, `labels`, `modules`, `read` | a message → stacks |
//! | `rewrite` | adds names to unsymbolized locations |
//! | `stack_writer`, `resource`, `draft`, `write` | rows → messages |
//!
//! Schema: <https://github.com/open-telemetry/opentelemetry-proto>; OTLP's JSON rules:
//! <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

mod dictionary;
mod draft;
mod framing;
mod json;
mod labels;
mod messages;
mod modules;
mod owner;
mod read;
mod resource;
mod rewrite;
mod stack_writer;
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

/// Reads all messages of an input into one profile.
pub fn read(input: &mut dyn io::Read, options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut reader = read::Reader::new(options);
    framing::each_message(input, warnings, &mut |message| reader.read_message(message))?;
    Ok(reader.finish(warnings))
}

/// Starts writing rows as protocol buffers.
pub fn start<'o>(options: &WriteOptions, out: Box<dyn Write + 'o>) -> Result<Box<dyn RowWriter + 'o>> {
    Ok(Box::new(OtlpWriter::new(Framing::Protobuf, options, out)))
}

/// Starts writing rows as JSON, one message per line.
pub(crate) fn start_json<'o>(options: &WriteOptions, out: Box<dyn Write + 'o>) -> Result<Box<dyn RowWriter + 'o>> {
    Ok(Box::new(OtlpWriter::new(Framing::Json, options, out)))
}

/// Writes a complete profile as protocol buffers.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    rows::write_whole(&mut *start(options, Box::new(out))?, profile)
}

/// Writes a complete profile as JSON.
pub fn write_json(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    rows::write_whole(&mut *start_json(options, Box::new(out))?, profile)
}
