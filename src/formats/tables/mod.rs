//! Samples as a Parquet file, for engines that are queried in SQL: a row per sample, or per sum of those of a stretch of
//! time. Parquet is only written; engines answer the questions (docs/sql.md).
//!
//! | file | what it is for |
//! |---|---|
//! | `columns` | the columns: names, types, and where a row has their cells |
//! | `input` | what the rows of one input have in common: names, threads, stacks, the recording |
//! | `waiting` | rows until their row group is full, as they are or summed |
//! | `parquet` | row groups → a file |
//!
//! A stack is several lists of equal length, outermost frame first, one for each thing that is known of a frame. They
//! are columns of their own, so that a question about functions reads no module and no line: engines leave out columns,
//! and few leave out parts of what is in a list.

mod columns;
mod input;
pub mod parquet;
mod waiting;
