//! Helpers for reading and writing bytes that don't depend on any format: cursors, numbers, lines, escapes, name
//! patterns, protocol buffers.

pub mod byte_writer;
pub mod csv_line;
pub mod cursor;
pub(crate) mod decimal;
pub(crate) mod digits;
pub(crate) mod escapes;
pub(crate) mod glob;
pub(crate) mod lines;
pub mod protobuf;
pub mod splices;
pub mod utf16;
