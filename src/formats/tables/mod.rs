//! Samples as a table, for engines that are queried in SQL: a row a sample, or a sum of those of a stretch of time, in
//! Parquet files and as a stream of Arrow's batches.
//!
//! | file | what it is for |
//! |---|---|
//! | `schema` | the columns, and the version of all of them together |
//! | `input` | what the rows of one input have in common: names, threads, the recording |
//! | `columns` | rows → Arrow's arrays |
//! | `writer` | rows, as they are or summed → batches, whatever they are written to |
//! | `arrow`, `parquet` | batches → a stream or a file; a file → batches |
//!! | `description`, `thrift` | what a file states about itself, before it is believed |
//! | `chunks` | the bytes of a file that a row group is read from |
//! | `cells`, `stacks`, `read` | batches → stacks |
//! | `stack_table` | the distinct stacks of an input, as a table of their own |
//! | `recordings` | what a data set was made of, as a table of its own |
//!
//! A stack is several lists of equal length, outermost frame first, one for each thing that is known of a frame. They
//! are columns of their own, so that a question about functions reads no module and no line: engines leave out columns,
//! and few leave out parts of what is in a list.

pub mod arrow;
mod cells;
mod chunks;
mod columns;
mod description;
mod input;
pub mod parquet;
mod read;
pub mod recordings;
mod schema;
mod stack_table;
mod stacks;
mod thrift;
mod writer;

use crate::contract::format::DataSet;

/// The parts of a data set of Parquet files besides rows.
pub(super) const DATA_SET: DataSet = DataSet {
    stacks: parquet::start_stacks,
    write_entries: recordings::write,
    read_entries: recordings::read,
    read_files: recordings::read_files,
};
