//! What every format must provide and what it is given: the types of the format table, options for reading and writing,
//! and output that is written row by row.

pub mod format;
pub mod options;
pub mod rows;
pub mod spans;
pub mod unsymbolized;
