//! The contract of a format: the types of the table of formats, options of readers and writers, rows that are written
//! as they come.

pub mod format;
pub mod options;
pub mod rows;
pub mod spans;
pub mod unsymbolized;
