//! Writes samples as a Parquet file, for SQL engines: one row per sample, or per sum of the samples in a time bucket.
//! Parquet can't be read back; queries are the engines' job (docs/sql.md).
//!
//! | file | what it is for |
//! |---|---|
//! | `columns` | the columns: their names and types, and how to get their cells from a row |
//! | `input` | what the rows of one input share: names, threads, stacks, the recording |
//! | `waiting` | buffers rows, as they are or summed, until their row group is full |
//! | `parquet` | row groups → a file |
//!
//! A stack is several list columns of equal length, outermost frame first: one for functions, one for modules, and so
//! on. They are separate columns so that a query about functions doesn't read modules or lines. Engines skip unused
//! columns, but few of them skip unused fields inside a list.

mod columns;
mod input;
pub mod parquet;
mod waiting;
